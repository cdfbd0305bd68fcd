//! Tests `braid verify` on wrong programs: its output, and that it has run the packet.
//!
//! The tests need the feature `mutants`, and z3 or cvc5. Without a solver they print a message
//! and pass, except where `CI` is set.

mod common;

use common::{Ended, Folder, braid};

/// Runs `braid verify` on functions in a row between `a` and `b`, with a mutant if one is given.
fn verify(functions: &str, nodes: &[&str], bug: Option<&str>, json: bool) -> Option<Ended> {
    let folder = Folder::new();
    let lines: String =
        (0..nodes.len()).map(|at| format!("  f{at} = {}();\n", nodes[at])).collect();
    let path: String = (0..nodes.len()).map(|at| format!("f{at} <-> ")).collect();
    let chain =
        format!("chain c {{\n  interface a;\n  interface b;\n{lines}  path a <-> {path}b;\n}}\n");
    folder.write("c.braid", &format!("{functions}\n{chain}"));
    let file = folder.path("c.braid");
    let mut args = vec!["verify", file.to_str().expect("a path")];
    args.extend(bug.iter().flat_map(|bug| ["--bug", bug]));
    args.extend(json.then_some("--json"));
    let ended = braid(&args);
    if ended.code == 3 && ended.err.contains("z3") {
        assert!(std::env::var_os("CI").is_none(), "{}", ended.err);
        eprintln!("skipped: {}", ended.err);
        return None;
    }
    Some(ended)
}

const HOP: &str = "nf hop() {
  match { ip.ttl > 1 => { ip.ttl -= 1; output; } has ip => drop \"expired\"; else => output; }
}";

/// The function notes the first packet of each source. It counts later packets there, and gives
/// them another source.
const SECOND: &str = "nf second() {
  state seen: u32 per ip.src, capacity 10;
  match {
    has ip and not exists seen => { seen = 1 else drop \"full\"; output; }
    has ip and exists seen => { ip.src = 10.0.0.1; seen += 1; output; }
    else => output;
  }
}";

#[test]
fn lost_decrement_is_shown_by_a_packet_that_was_run_on_both() {
    let Some(ended) = verify(HOP, &["hop", "hop"], Some("LostDecrement"), false) else { return };
    let ended = ended.code(1).says("REFUTED at f0, forward").says("  differs: ip.ttl\n");
    ended
        .says("  confirmed by running it on both:\n  enters  packet at ")
        .says("  only put together:\n    packet at ");
}

#[test]
fn same_chain_without_the_bug_is_proven() {
    let Some(ended) = verify(HOP, &["hop", "hop"], None, false) else { return };
    ended.code(0).says("\nPROVEN: ");
}

#[test]
fn difference_that_needs_an_entry_is_shown_behind_the_packet_that_makes_it() {
    let Some(ended) = verify(SECOND, &["second"], Some("EntryIsCurrent"), false) else { return };
    let ended = ended.code(1).says("  confirmed by running it on both:\n  before  packet at ");
    ended.says("  enters  packet at ").says("    entry f0.seen[");
}

#[test]
fn refutation_in_json_says_that_it_is_confirmed() {
    let Some(ended) = verify(HOP, &["hop"], Some("ForgottenCanonical"), true) else { return };
    let proven = ended.json();
    assert_eq!(proven["verdict"], "proven", "a decrement changes the field: {proven}");
    let Some(ended) = verify(HOP, &["hop", "hop"], Some("StaleBinding"), true) else { return };
    let refuted = ended.code(1).json();
    assert_eq!(refuted["verdict"], "refuted");
    let programs = refuted["programs"].as_array().expect("a list");
    let wrong: Vec<_> = programs.iter().filter(|one| one["verdict"] == "refuted").collect();
    assert!(!wrong.is_empty());
    for one in wrong {
        assert_eq!(one["confirmed"], true, "{one}");
        assert!(one["packet"]["ip.ttl"].is_string(), "{one}");
    }
}

/// Two of three functions write fields under one checksum, and the third writes nothing. Paths with
/// writes to different fields join. The programs are right, but were refuted once.
const COVERED: &str = "nf r() {
  match {
    has l4 and l4.dport == 80 => { l4.dport = 81; output; }
    has ip => { ip.src = 203.0.113.1; output; }
    else => output;
  }
}
nf m() {
  match {
    has ip and ip.tos > 4 => output;
    has ip => { ip.dst = ip.src; output; }
    else => output;
  }
}
nf k() { match { has l4 and l4.dport == 5 => drop \"five\"; else => output; } }";

#[test]
fn fields_under_one_checksum_on_paths_that_meet_are_proven() {
    let Some(ended) = verify(COVERED, &["r", "m", "k"], None, false) else { return };
    ended.code(0).says("\nPROVEN: ");
}

/// The function changes only packets with GRE. No packet for a run can be built with GRE.
const GRE: &str = "nf hop() {
  match { has gre and ip.ttl > 1 => { ip.ttl -= 1; output; } else => output; }
}";

#[test]
fn difference_that_no_run_confirms_is_not_called_refuted() {
    let Some(ended) = verify(GRE, &["hop", "hop"], Some("LostDecrement"), false) else { return };
    let ended = ended.code(6).says("UNCONFIRMED at f0, forward").says("\nUNCONFIRMED: ");
    assert!(!ended.out.contains("REFUTED"), "{}", ended.out);
    let Some(ended) = verify(GRE, &["hop", "hop"], Some("LostDecrement"), true) else { return };
    assert_eq!(ended.code(6).json()["verdict"], "unconfirmed");
}

#[test]
fn programs_that_end_in_front_of_a_tcp_stack_are_proven() {
    let own = "
      stream nf log() { on data { forward; } }
      nf hop() { match { has ip and ip.ttl > 1 => { ip.ttl -= 1; output; } else => output; } }";
    let all = ["hop", "log", "hop"];
    let Some(ended) = verify(own, &all, None, false) else { return };
    ended.code(0).says("\nPROVEN: ").says("\n  - TCP packets go to the stack of f1 as they are\n");
    let Some(ended) = verify(own, &all, Some("LostDecrement"), false) else { return };
    ended.code(1).says("REFUTED");
}
