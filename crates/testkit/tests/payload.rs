//! Tests chains of functions that read and write numbers in the payload: behind TCP and UDP, in
//! tunnels, in cut packets. Written bytes may become a header of a tunnel.

use braid_compiler::synth::SynthMutant;
use braid_engine::{Compiled, Options};
use braid_ir::chain::Chain;
use braid_ir::residual::Extent;
use braid_testkit::generate::Rng;
use braid_testkit::harness::{self, Engine, Form, budget};
use braid_testkit::packet::parse;
use braid_testkit::record::{Detail, Stimulus, record};
use std::fmt::Write as _;

/// Number of chains unless `BRAID_CASES` sets it, and number of packets for each.
const CHAINS: u64 = 100;
const PACKETS: usize = 60;
/// One of this number of chains also runs as machine code.
const NATIVE_EVERY: u64 = 10;

/// Functions by name. Each of them acts on some packets only.
const FUNCTIONS: &str = r#"
nf first() {
  match {
    u8 at payload == 0 => drop "zero";
    u16 at payload + 2 > 0x8000 and has ip => { ip.id = u16 at payload + 1; output; }
    else => output;
  }
}
nf last() {
  match {
    has l4 => {
      let end = size(pkt.payload_len) - 2 B;
      let tail = u16 at payload + end else output;
      u16 at payload + end = wrapping(tail + 1) else drop "short";
      output;
    }
    else => output;
  }
}
nf odd() {
  match {
    has l4 => { u24 at payload + 1 = 0xabcdef else drop "no three bytes"; output; }
    else => output;
  }
}
nf exchange() {
  match {
    has l4 => {
      let port = u16 at payload else output;
      u16 at payload = l4.dport else drop;
      l4.dport = port;
      output;
    }
    else => output;
  }
}
nf tunnel() {
  match {
    has udp and udp.sport == 9 => { udp.dport = 6081; u8 at payload = 0 else drop "empty"; output; }
    has udp and udp.sport == 8 => { u8 at payload = 63 else drop "empty"; output; }
    else => output;
  }
}
nf inside() {
  match {
    has geneve => { let vni = u24 at payload else drop "empty"; if vni == 5 { drop; } output; }
    has vxlan and u8 at payload + 3 == 1 => drop "one";
    has udp and pkt.payload_len < 8 B => drop "small";
    else => output;
  }
}
nf sum() {
  match {
    has l4 and l4.checksum & 1 == 1 and has ip => { ip.ttl = 9; output; }
    has ip and has l4 => { u64 at payload + ip.ttl % 8 = 77 else output back; output; }
    else => output;
  }
}
nf remember() {
  state seen: u16 per (u8, u16) = 0, capacity 4, full evict_oldest;
  match {
    u16 at payload + 1 > 0 => {
      seen[u8 at payload, u16 at payload + 1] += 1;
      if seen[u8 at payload, u16 at payload + 1] > 2 { drop "often"; }
      output;
    }
    else => output;
  }
}
nf back() { match { ip4 at payload in 0.0.0.0/1 => output back; else => output; } }
"#;

const NAMES: [&str; 9] =
    ["first", "last", "odd", "exchange", "tunnel", "inside", "sum", "remember", "back"];

fn source(rng: &mut Rng) -> String {
    let names: Vec<_> = (0..1 + rng.below(5)).map(|_| *rng.pick(&NAMES)).collect();
    let mut text = format!("{FUNCTIONS}\nchain c {{\n");
    for (place, name) in names.iter().enumerate() {
        let _ = writeln!(text, "  f{place} = {name}();");
    }
    let path: Vec<_> = (0..names.len()).map(|place| format!("f{place}")).collect();
    let _ = writeln!(text, "  interface lan;\n  interface wan;");
    let _ = writeln!(text, "  path lan <-> {} <-> wan;", path.join(" <-> "));
    if names.len() > 1 && rng.one_in(4) {
        let place = rng.below(names.len() - 1);
        let _ = writeln!(text, "  policy {{ Priority(f{place} > f{}); }}", place + 1);
    }
    text + "}\n"
}

fn packet(rng: &mut Rng) -> String {
    let (from, to) = (7 + rng.below(3), *rng.pick(&[53, 4789, 6081, 6081]));
    let ttl = rng.pick(&[60, 62, 64]);
    let cut = rng.pick(&["", "", "", " snap=44", " snap=50", " pad=3"]);
    let body: String = match rng.below(4) {
        0 => format!(" bytes={}", rng.below(12)),
        // A header of Geneve, or half of one.
        1 => " hex=0000655800000500aabbccdd".to_owned(),
        2 => " hex=3f0065580000".to_owned(),
        _ => {
            let bytes: String = (0..rng.below(14)).map(|_| format!("{:02x}", rng.byte())).collect();
            if bytes.is_empty() { String::new() } else { format!(" hex={bytes}") }
        }
    };
    match rng.below(8) {
        0 => format!("icmp 10.0.0.1 > 10.0.0.2 echo-request id=3{body}{cut}"),
        1 => format!("udp [2001:db8::1]:{from} > [2001:db8::2]:{to}{body}"),
        2 | 3 => format!("tcp 10.0.0.1:{from} > 10.0.0.2:{to} PA ttl={ttl}{body}{cut}"),
        4 => format!("udp 10.0.0.1:{from} > 10.0.0.2:{to} nosum{body}"),
        5 => format!("ip 10.0.0.1 > 10.0.0.2 proto=6{body}"),
        _ => format!("udp 10.0.0.1:{from} > 10.0.0.2:{to} ttl={ttl}{body}{cut}"),
    }
}

/// The chain of a seed, its text, and packets for it.
fn drawn(seed: u64) -> (Chain, String, Vec<Stimulus>) {
    let mut rng = Rng::new(seed);
    let source = source(&mut rng);
    let chain = harness::compile(&source, &Default::default(), Form::AsWritten);
    let chain = chain.unwrap_or_else(|errors| panic!("{source}\n{errors}"));
    let stimuli = (0..PACKETS)
        .map(|_| {
            let text = packet(&mut rng);
            let spec = parse(&text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
            let interface = u16::try_from(rng.below(2)).unwrap_or(0);
            Stimulus::Packet(interface, spec.at(0))
        })
        .collect();
    (chain, source, stimuli)
}

#[test]
fn engines_are_equal_on_chains_of_functions_that_read_and_write_payloads() {
    for seed in budget::seeds(CHAINS) {
        let (chain, source, stimuli) = drawn(seed);
        let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
        for engine in Engine::drawn(seed, seed % NATIVE_EVERY == 0) {
            let same = engine.check(&chain, &stimuli, &expected);
            same.unwrap_or_else(|report| panic!("seed {seed}: {report}\n{source}"));
        }
    }
}

#[test]
fn these_chains_find_a_synthesis_that_overlooks_writes_to_the_payload() {
    for bug in [SynthMutant::PayloadSumKept, SynthMutant::PayloadTunnelMissed] {
        let is_found = |seed: u64| {
            let (chain, _, stimuli) = drawn(seed);
            let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
            let (extent, options) = (Extent::Chain, Options::default());
            let wrong = Compiled::with_mutant(chain, extent, options, bug).expect("an engine");
            record(&mut { wrong }, &stimuli, Detail::End) != expected
        };
        assert!((0..CHAINS).any(is_found), "{bug:?}");
    }
}
