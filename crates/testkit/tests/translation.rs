//! Tests translation validation. It accepts the synthesis of small chains and of the library, and
//! rejects every mutant of the synthesis.
//!
//! The tests need z3 or cvc5. Without a solver they print a message and pass, unless `CI` is set.

use std::time::Duration;

use braid_compiler::synth::{self, SynthMutant};
use braid_engine::{Compiled, Options};
use braid_ir::chain::Chain;
use braid_ir::engine::Engine;
use braid_ir::graph::Graph;
use braid_ir::residual::Extent;
use braid_lang::{Loader, compile};
use braid_packet::Packet;
use braid_reference::Reference;
use braid_verify::chain::{Overall, Report, verify};
use braid_verify::check::{Difference, Verdict};
use braid_verify::example;
use braid_verify::replay::replay;
use braid_verify::solver::Solver;

/// No files, because the chains here name none.
struct NoFiles;

impl Loader for NoFiles {
    fn read(&self, path: &str, _: &str) -> Result<Vec<u8>, String> {
        Err(format!("{path}: the chains of these tests have no files"))
    }
}

/// A solver, or `None` if there is none. With `CI` set, the solver is required.
fn solver() -> Option<Solver> {
    match Solver::find(None, Duration::from_secs(20)) {
        Ok(solver) => Some(solver),
        Err(why) => {
            assert!(std::env::var_os("CI").is_none(), "{why}");
            eprintln!("skipped: {why}");
            None
        }
    }
}

/// A folder from which chains read files.
struct Folder(&'static str);

impl Loader for Folder {
    fn read(&self, path: &str, _: &str) -> Result<Vec<u8>, String> {
        std::fs::read(format!("{}/{path}", self.0)).map_err(|why| format!("{path}: {why}"))
    }
}

/// The chain of a text that names no files.
fn chain(text: &str) -> Chain {
    chain_with(text, &NoFiles)
}

/// The chain of a text, with the files that it names.
fn chain_with(text: &str, files: &dyn Loader) -> Chain {
    let library: Vec<(&str, &str)> =
        braid_nfs::all().iter().map(|nf| (nf.name, nf.source)).collect();
    let compiled = compile(("chain.braid", text), &library, files);
    let unit = compiled.unit.unwrap_or_else(|| panic!("the chain has errors: {text}"));
    unit.chains.into_iter().next().expect("a chain")
}

/// A chain of the given functions between `a` and `b`.
fn between(functions: &str, nodes: &[&str]) -> Chain {
    let lines: String =
        nodes.iter().enumerate().map(|(at, node)| format!("  f{at} = {node}();\n")).collect();
    let path: Vec<_> = (0..nodes.len()).map(|at| format!("f{at}")).collect();
    let path = path.join(" <-> ");
    chain(&format!(
        "{functions}\nchain c {{\n  interface a;\n  interface b;\n{lines}  path a <-> {path} <-> b;\n}}\n"
    ))
}

/// The report on a chain, up to the first program that is not proven.
fn found(chain: &Chain, bug: Option<SynthMutant>, solver: &Solver) -> Report {
    let graph = Graph::new(chain).expect("a chain's graph");
    let mut programs = |point, presence| match bug {
        Some(bug) => {
            synth::residual_with_mutant(chain, &graph, point, presence, Extent::Chain, bug)
        }
        None => synth::residual(chain, &graph, point, presence, Extent::Chain),
    };
    let mut each = |case: &braid_verify::chain::Case| case.found.verdict == Verdict::Proven;
    verify(chain, &graph, &mut programs, solver, &mut each)
}

fn difference(report: &Report) -> &Difference {
    let refuted = report.cases.iter().find_map(|case| match &case.found.verdict {
        Verdict::Refuted(difference) => Some(&**difference),
        _ => None,
    });
    refuted.expect("a refutation")
}

/// Checks that a chain is proven, that its mutant is not, and that the difference is this one.
fn catches(bug: SynthMutant, chain: &Chain, differs: &str) {
    let Some(solver) = solver() else { return };
    let right = found(chain, None, &solver);
    assert_eq!(right.overall(), Overall::Proven, "{:?}", right.cases.last());
    let wrong = found(chain, Some(bug), &solver);
    assert_eq!(wrong.overall(), Overall::Refuted, "{bug:?}: {:?}", wrong.cases.last());
    let difference = difference(&wrong);
    assert!(difference.parts.iter().any(|part| part == differs), "{difference:?}");
    let packet = example::packet(difference).expect("a packet that shows the bug");
    let wanted = difference.presence & (1 << braid_packet::Header::Ip4 as u32);
    assert_eq!(packet.parse().presence() & wanted, wanted);
    differs_when_run(bug, chain, &packet);
}

/// Checks that the packet makes a difference between the reference engine and the engine with the
/// mutant's programs, but not with the right programs.
fn differs_when_run(bug: SynthMutant, chain: &Chain, packet: &Packet) {
    let engine = |bug: Option<SynthMutant>| {
        let (chain, options) = (chain.clone(), Options::default());
        let engine = match bug {
            Some(bug) => Compiled::with_mutant(chain, Extent::Chain, options, bug),
            None => Compiled::new(chain, Extent::Chain, options),
        };
        Box::new(engine.expect("an engine")) as Box<dyn Engine>
    };
    let reference = || {
        let engine = Reference::new(chain.clone()).expect("the reference engine");
        Some(Box::new(engine) as Box<dyn Engine>)
    };
    let mut right = |together| if together { Some(engine(None)) } else { reference() };
    assert_eq!(replay(chain, packet, &mut right), None, "{bug:?}");
    let mut wrong = |together| if together { Some(engine(Some(bug))) } else { reference() };
    let found = replay(chain, packet, &mut wrong);
    let found = found.unwrap_or_else(|| panic!("{bug:?}: {packet:?} makes no difference"));
    assert_ne!(found.chain, found.program);
    assert!(found.text(chain).contains("enters  packet at"));
}

const HOP: &str = "nf hop() {
  match { ip.ttl > 1 => { ip.ttl -= 1; output; } has ip => drop \"expired\"; else => output; }
}";

const MARK: &str = "nf mark() {
  match {
    l4.dport == 80 and has ip => { ip.dscp = 10; output; }
    has ip => { ip.dscp = 20; output; }
    else => output;
  }
}
nf look() { match { ip.dscp == 10 => drop \"ten\"; else => output; } }";

#[test]
fn field_that_still_reads_as_it_arrived_is_refuted() {
    catches(SynthMutant::StaleBinding, &between(HOP, &["hop", "hop"]), "where it ends");
}

#[test]
fn lost_decrement_is_refuted() {
    catches(SynthMutant::LostDecrement, &between(HOP, &["hop", "hop"]), "ip.ttl");
}

#[test]
fn value_of_one_path_where_two_meet_is_refuted() {
    catches(SynthMutant::WrongMerge, &between(MARK, &["mark", "look"]), "where it ends");
}

#[test]
fn checksum_that_stays_as_it_was_is_refuted() {
    let same = "nf same() { match { has ip => { ip.ttl = ip.ttl; output; } else => output; } }";
    let differs = "whether ip.checksum is brought up to date";
    catches(SynthMutant::ForgottenCanonical, &between(same, &["same"]), differs);
}

#[test]
fn belief_about_an_old_value_is_refuted() {
    catches(SynthMutant::FactKept, &between(HOP, &["hop", "hop"]), "where it ends");
}

#[test]
fn key_of_the_packet_as_it_is_now_is_refuted() {
    let entry = "nf entry() {
      state n: u32 per ip.src = 0, capacity 10;
      match { has ip => { ip.src = 10.0.0.1; n += 1; output; } else => output; }
    }";
    // The other key may be refused where this one is accepted.
    catches(SynthMutant::EntryIsCurrent, &between(entry, &["entry"]), "where it ends");
}

#[test]
fn count_of_one_path_that_is_lost_is_refuted() {
    let chain = between(MARK, &["mark", "look"]);
    catches(SynthMutant::CountDropped, &chain, "packets at row 1 of f0");
}

#[test]
fn bound_that_is_just_reached_is_refuted() {
    let low =
        "nf low() { match { ip.ttl >= 10 => output; has ip => drop \"low\"; else => output; } }
    nf lower() { match { ip.ttl <= 10 => drop \"ten\"; else => output; } }";
    catches(SynthMutant::BoundOffByOne, &between(low, &["low", "lower"]), "where it ends");
}

#[test]
fn outcome_from_before_an_assignment_is_refuted() {
    let seen = "nf seen() {
      state s: u32 per ip.src, capacity 10;
      match {
        has ip and not exists s => {
          s[ip.dst] = 1 else drop \"full\";
          if exists s { drop \"to itself\"; }
          output;
        }
        else => output;
      }
    }";
    catches(SynthMutant::FindReused, &between(seen, &["seen"]), "where it ends");
}

#[test]
fn exchanged_parts_of_a_key_are_refuted() {
    let flows = "nf flows() {
      state n: u32 per flow = 0, capacity 10;
      match { has inet => { n += 1; output; } else => output; }
    }";
    catches(SynthMutant::KeyPartsSwapped, &between(flows, &["flows"]), "where it ends");
}

#[test]
fn two_translations_of_addresses_and_ports_are_proven() {
    let Some(solver) = solver() else { return };
    let chain = chain(
        "chain c {
          interface lan { behind 10.0.0.0/8 }
          interface wan;
          one = napt(public: 203.0.113.1);
          two = napt(public: 203.0.113.2);
          path lan <-> one <-> two <-> wan;
        }",
    );
    let report = found(&chain, None, &solver);
    assert_eq!(report.overall(), Overall::Proven, "{:?}", report.cases.last());
    assert!(report.cases.len() >= 20, "{} programs", report.cases.len());
}

/// Tags that are added and removed. Skipped tag operations must make no difference.
const TAGS: &str = "nf look() {
  match {
    pkt.len > 100 B => drop \"long\";
    vlan.id == 9 and ip.ttl > 9 => { vlan.id = 10; ip.ttl -= 1; output; }
    has vlan2 => { vlan2.pcp = 1; output; }
    else => output;
  }
}
nf untag() { match { has vlan => { pop vlan; output; } else => output; } }
nf nine() { match { has eth => { push vlan(9); vlan.dei = 1; output; } else => output; } }";

#[test]
fn tags_that_are_added_and_removed_again_are_proven() {
    let Some(solver) = solver() else { return };
    for nodes in [
        &["nine", "look", "untag"][..],
        &["untag", "look", "nine"],
        &["nine", "nine", "look", "untag", "untag"],
        &["untag", "nine", "look", "untag"],
    ] {
        let report = found(&between(TAGS, nodes), None, &solver);
        assert_eq!(report.overall(), Overall::Proven, "{nodes:?}: {:?}", report.cases.last());
    }
}

#[test]
fn entry_that_is_looked_up_before_paths_meet_is_proven() {
    let Some(solver) = solver() else { return };
    let twice = "nf twice() {
      state n: u32 per ip.src = 0, capacity 10;
      match {
        has ip => {
          if ip.ttl > 9 { if exists n { ip.dscp = 1; } } else { if exists n { ip.dscp = 2; } }
          n += 1;
          output;
        }
        else => output;
      }
    }";
    let report = found(&between(twice, &["twice", "twice"]), None, &solver);
    assert_eq!(report.overall(), Overall::Proven, "{:?}", report.cases.last());
}

/// The synthesis knows the protocol of TCP and UDP packets, and so computes the first remainder and
/// the first quotient. The ports remain unknown.
#[test]
fn quotients_of_numbers_that_the_synthesis_knows_are_proven() {
    let Some(solver) = solver() else { return };
    let parts = "event PART extends EVENT { proto: u16, high: u16, port: u16, part: u16 }
    nf parts() {
      match {
        has l4 => {
          emit PART {
            proto: u16(inet.proto) % 3,
            high: u16(inet.proto) / 5,
            port: u16(l4.dport) % 1000,
            part: u16(l4.sport) / 7,
          };
          output;
        }
        else => output;
      }
    }";
    let report = found(&between(parts, &["parts"]), None, &solver);
    assert_eq!(report.overall(), Overall::Proven, "{:?}", report.cases.last());
}

#[test]
fn program_for_other_packets_than_asked_for_is_refuted() {
    let Some(solver) = solver() else { return };
    let chain = between(HOP, &["hop"]);
    let graph = Graph::new(&chain).expect("a chain's graph");
    // Always returns the program for packets without any header.
    let mut programs = |point, _| synth::residual(&chain, &graph, point, 1, Extent::Chain);
    let report = verify(&chain, &graph, &mut programs, &solver, &mut |_| true);
    assert_eq!(report.overall(), Overall::Refuted);
    assert!(!report.shapes.is_empty());
}

#[test]
fn first_example_is_proven() {
    let Some(solver) = solver() else { return };
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let source = std::fs::read_to_string(format!("{examples}/demo.braid")).expect("an example");
    let chain = chain_with(&source, &Folder(examples));
    let report = found(&chain, None, &solver);
    assert_eq!(report.overall(), Overall::Proven, "{:?}", report.cases.last());
    assert!(report.cases.len() >= 40, "{} programs", report.cases.len());
}
