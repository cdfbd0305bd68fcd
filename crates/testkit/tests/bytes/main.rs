//! Tests chains of functions that read and write bytes whose place or presence is up to the packet.

mod declared;
mod options;
mod payload;
mod secrets;
mod strings;
mod tunnels;

use braid_compiler::synth::SynthMutant;
use braid_engine::{Compiled, Options};
use braid_ir::chain::Chain;
use braid_ir::residual::Extent;
use braid_packet::{Field, Link, Packet};
use braid_testkit::generate::Rng;
use braid_testkit::harness::{self, ENGINES, Engine, Form, budget};
use braid_testkit::packet::parse;
use braid_testkit::record::{Detail, Output, Stimulus, record};
use std::fmt::Write as _;

/// Number of chains unless `BRAID_CASES` sets it, and number of packets for each.
const CHAINS: u64 = 100;
const PACKETS: usize = 60;
/// One of this number of chains also runs as machine code.
const MACHINE_CODE_EVERY: u64 = 10;

/// Functions that are drawn for chains, and packets for them.
struct Family {
    /// The functions' text. Each of them acts on some packets only.
    functions: &'static str,
    names: &'static [&'static str],
    /// Draws a packet's text.
    packet: fn(&mut Rng) -> String,
    /// The lines of a file of keys that each function has as its parameter `k`. None for functions
    /// without parameters.
    keys: &'static str,
    /// The mistakes of the synthesis that these chains find.
    mutants: &'static [SynthMutant],
}

impl Family {
    fn source(&self, rng: &mut Rng) -> String {
        let names: Vec<_> = (0..1 + rng.below(5)).map(|_| *rng.pick(self.names)).collect();
        let mut text = format!("{}\nchain c {{\n", self.functions);
        for (place, name) in names.iter().enumerate() {
            let args = if self.keys.is_empty() { "" } else { "keys(\"k\")" };
            let _ = writeln!(text, "  f{place} = {name}({args});");
        }
        let path: Vec<_> = (0..names.len()).map(|place| format!("f{place}")).collect();
        let _ = writeln!(text, "  interface lan;\n  interface wan;");
        let _ = writeln!(text, "  path lan <-> {} <-> wan;", path.join(" <-> "));
        if names.len() > 1 && rng.one_in(4) {
            let place = rng.below(names.len() - 1);
            let mut rules = format!("Priority(f{place} > f{});", place + 1);
            if place + 2 < names.len() && rng.one_in(2) {
                // One function of the group is between these two.
                let _ = write!(rules, " Priority(f{place} > f{});", place + 2);
            }
            let _ = writeln!(text, "  policy {{ {rules} }}");
        }
        text + "}\n"
    }

    /// The chain of a seed, its text, and packets for it.
    fn drawn(&self, seed: u64) -> (Chain, String, Vec<Stimulus>) {
        let mut rng = Rng::new(seed);
        let source = self.source(&mut rng);
        let files = [("k".to_owned(), self.keys.to_owned())].into();
        let chain = harness::compile(&source, &files, Form::AsWritten);
        let chain = chain.unwrap_or_else(|errors| panic!("{source}\n{errors}"));
        let stimuli = (0..PACKETS)
            .map(|_| {
                let text = (self.packet)(&mut rng);
                let spec = parse(&text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
                let interface = u16::try_from(rng.below(2)).unwrap_or(0);
                Stimulus::Packet(interface, spec.at(0))
            })
            .collect();
        (chain, source, stimuli)
    }

    /// Checks that all engines do the same on these chains.
    fn engines_are_equal(&self) {
        for seed in budget::seeds(CHAINS) {
            let (chain, source, stimuli) = self.drawn(seed);
            let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
            for engine in Engine::drawn(seed, seed % MACHINE_CODE_EVERY == 0) {
                let same = engine.check(&chain, &stimuli, &expected);
                same.unwrap_or_else(|report| panic!("seed {seed}: {report}\n{source}"));
            }
        }
    }

    /// Checks that these chains find each of the mistakes.
    fn mutants_are_found(&self) {
        for bug in self.mutants {
            let is_found = |seed: u64| {
                let (chain, _, stimuli) = self.drawn(seed);
                let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
                let (extent, options) = (Extent::Chain, Options::default());
                let wrong = Compiled::with_mutant(chain, extent, options, *bug).expect("an engine");
                record(&mut { wrong }, &stimuli, Detail::End) != expected
            };
            assert!((0..CHAINS).any(is_found), "{bug:?}");
        }
    }
}

#[test]
fn engines_are_equal_on_chains_of_functions_that_read_and_write_payloads() {
    payload::FAMILY.engines_are_equal();
}

#[test]
fn these_chains_find_a_synthesis_that_overlooks_writes_to_the_payload() {
    payload::FAMILY.mutants_are_found();
}

#[test]
fn engines_are_equal_on_chains_of_functions_that_add_and_remove_tcp_options() {
    options::FAMILY.engines_are_equal();
}

#[test]
fn these_chains_find_a_synthesis_that_overlooks_tcp_options() {
    options::FAMILY.mutants_are_found();
}

#[test]
fn engines_are_equal_on_chains_of_functions_with_headers_of_their_own() {
    declared::FAMILY.engines_are_equal();
}

#[test]
fn these_chains_find_a_synthesis_that_overlooks_new_lengths_of_payloads() {
    declared::FAMILY.mutants_are_found();
}

#[test]
fn engines_are_equal_on_chains_of_functions_that_add_and_remove_outer_headers() {
    tunnels::FAMILY.engines_are_equal();
}

#[test]
fn these_chains_find_a_synthesis_that_overlooks_outer_headers() {
    tunnels::FAMILY.mutants_are_found();
}

#[test]
fn engines_are_equal_on_chains_of_functions_that_encrypt_and_decrypt() {
    secrets::FAMILY.engines_are_equal();
}

#[test]
fn these_chains_find_a_synthesis_that_overlooks_encrypted_packets() {
    secrets::FAMILY.mutants_are_found();
}

#[test]
fn engines_are_equal_on_chains_of_functions_with_sets_of_strings_and_places_of_patterns() {
    strings::FAMILY.engines_are_equal();
}

#[test]
fn these_chains_find_a_synthesis_that_swaps_places_or_loses_lengths() {
    strings::FAMILY.mutants_are_found();
}

/// A statement that makes a packet longer, and by how many bytes.
const LONGER: [(&str, u128); 2] = [
    ("push tcp.ts(1, 2) else output;", 12),
    ("bytes<16> at payload for 1 = \"longer\" else output;", 5),
];

#[test]
fn length_of_a_pppoe_session_is_that_of_the_changed_packet() {
    let plain = parse("tcp 10.0.0.1:1 > 10.0.0.2:80 S \"abc\"").expect("a packet").at(0);
    let body = u8::try_from(plain.data().len() - 14 + 2).expect("a short packet");
    let session = [0x88, 0x64, 0x11, 0, 0, 5, 0, body, 0x00, 0x21];
    let data = [&plain.data()[..12], &session, &plain.data()[14..]].concat();
    let stimuli = [Stimulus::Packet(0, Packet::new(Link::Ethernet, 0, data))];
    for (statement, more) in LONGER {
        // The first function reads the length before it changes.
        let source = format!(
            "nf first() {{ match {{ pppoe.len > 5000 => drop; else => output; }} }}
             nf longer() {{ match {{ has tcp => {{ {statement} output; }} else => output; }} }}
             nf note() {{ match {{ has pppoe and has ip => {{ ip.id = pppoe.len; output; }} else => drop; }} }}
             chain c {{ path in <-> first() <-> longer() <-> note() <-> out; }}"
        );
        let chain = harness::compile(&source, &Default::default(), Form::AsWritten);
        let chain = chain.unwrap_or_else(|errors| panic!("{errors}"));
        let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
        let [Output::Packet(_, packet)] = expected.outputs[0].as_slice() else {
            panic!("{expected:?}");
        };
        let id = packet.get(&packet.parse(), Field::IpId);
        assert_eq!(id, Some(u128::from(body) + more));
        for engine in ENGINES {
            let same = engine.check(&chain, &stimuli, &expected);
            same.unwrap_or_else(|report| panic!("{statement} {report}"));
        }
    }
}

#[test]
fn record_of_tagged_packets_adds_no_tunnel_around_a_packet_behind_snap() {
    let source = "nf wrap() { match { has ip => {
                      push ip { src: 192.0.2.1, dst: 192.0.2.2 } else output; output;
                  } else => output; } }
                  chain c { path in <-> wrap() <-> out; }";
    let chain = harness::compile(source, &Default::default(), Form::AsWritten);
    let chain = chain.unwrap_or_else(|errors| panic!("{errors}"));
    let tagged = parse("vlan 7 / vlan 8 / tcp 10.0.0.1:7 > 10.0.0.2:80 S \"abc\"").unwrap().at(0);
    let body = u8::try_from(tagged.data().len() - 14).expect("a short packet");
    // The IP header lies where it lies behind two tags.
    let snap = [0, body, 0xaa, 0xaa, 3, 0, 0, 0];
    let behind = [&tagged.data()[..12], &snap, &tagged.data()[20..]].concat();
    let behind = Stimulus::Packet(0, Packet::new(Link::Ethernet, 0, behind));
    let mut stimuli = vec![Stimulus::Packet(0, tagged); 9];
    stimuli.push(behind);
    let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
    let lengths: Vec<_> = expected.outputs.iter().flatten().map(length).collect();
    assert_eq!(lengths[8..], [Some(65 + 20), Some(65)], "a packet behind SNAP stays as it is");
    for engine in ENGINES {
        let same = engine.check(&chain, &stimuli, &expected);
        same.unwrap_or_else(|report| panic!("{report}"));
    }
}

/// The length of a packet that leaves.
fn length(output: &Output) -> Option<usize> {
    match output {
        Output::Packet(_, packet) => Some(packet.data().len()),
        _ => None,
    }
}
