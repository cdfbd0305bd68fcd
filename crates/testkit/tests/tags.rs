//! Tests chains of functions that add, remove, read and write VLAN tags, on packets with up to
//! eight tags. Engines may skip tag operations only if that makes no difference.

use braid_testkit::generate::Rng;
use braid_testkit::harness::{self, Engine, Form, budget};
use braid_testkit::packet::parse;
use braid_testkit::record::{Detail, Stimulus, record};
use std::fmt::Write as _;

/// Number of chains unless `BRAID_CASES` sets it, and number of packets for each.
const CHAINS: u64 = 100;
const PACKETS: usize = 60;
/// One of this number of chains also runs as machine code.
const MACHINE_CODE_EVERY: u64 = 10;

/// Functions by name. Each of them acts on some packets only.
const FUNCTIONS: &str = r#"
nf add() { match { has eth and l4.dport != 1 => { push vlan(9); output; } else => output; } }
nf some() {
  match {
    has eth and udp.dport == 2 => { push vlan(7); vlan.pcp = 5; output; }
    has eth and not has vlan => { push vlan(6); output; }
    else => output;
  }
}
nf strip() { match { has vlan => { pop vlan; output; } else => output; } }
nf strip_nine() {
  match { vlan.id == 9 => { pop vlan; output; } vlan.pcp == 5 => drop "five"; else => output; }
}
nf swap() { match { has vlan => { pop vlan; push vlan(5); output; } else => output; } }
nf twice() { match { has vlan2 => { pop vlan; pop vlan; output; } else => output; } }
nf renumber() {
  match {
    has vlan2 and vlan2.id == 9 => { vlan2.id = 10; vlan.dei = 1; output; }
    vlan.id > 5 => { vlan.id = vlan.id + 1; output; }
    else => output;
  }
}
nf keep() { match { has vlan => { let id = vlan.id; pop vlan; push vlan(id); output; } else => output; } }
nf hop() {
  match {
    pkt.len > 100 B => drop "long";
    ip.ttl <= 60 and has ip => drop "expired";
    has ip => { ip.ttl -= 1; output; }
    else => output;
  }
}
nf watch() { port tap; match { udp.dport == 3 => { mirror tap; output; } else => output; } }
nf count() {
  state n: u32 per vlan.id = 0, capacity 4;
  match { has vlan => { n += 1; output; } else => output; }
}
nf typed() {
  match {
    has eth and eth.type == 0x8100 => { eth.dst = 02:00:00:00:00:81; output; }
    has eth and pkt.payload_len > 40 B => { eth.src = 02:00:00:00:00:40; output; }
    else => output;
  }
}
nf back() { match { has vlan and udp.dport == 4 => output back; else => output; } }
"#;

const NAMES: [&str; 13] = [
    "add",
    "some",
    "strip",
    "strip_nine",
    "swap",
    "twice",
    "renumber",
    "keep",
    "hop",
    "watch",
    "count",
    "back",
    "typed",
];

fn source(rng: &mut Rng) -> String {
    let names: Vec<_> = (0..2 + rng.below(5)).map(|_| *rng.pick(&NAMES)).collect();
    let mut text = format!("{FUNCTIONS}\nchain c {{\n  interface lan;\n  interface wan;\n");
    let mut links = String::new();
    for (place, name) in names.iter().enumerate() {
        let _ = writeln!(text, "  f{place} = {name}();");
        if *name == "watch" {
            let _ = writeln!(text, "  interface log{place};");
            let _ = writeln!(links, "  link f{place}.tap -> log{place};");
        }
    }
    let path: String = (0..names.len()).map(|place| format!("f{place} <-> ")).collect();
    let _ = writeln!(text, "  path lan <-> {path}wan;\n{links}}}");
    text
}

fn packet(rng: &mut Rng) -> String {
    let tags = *rng.pick(&[0, 0, 1, 1, 1, 2, 2, 3, 7, 8]);
    let mut text = String::new();
    for _ in 0..tags {
        let (id, pcp) = (rng.pick(&[5, 6, 9, 10]), rng.pick(&[0, 5]));
        let tpid = rng.pick(&["", "", " tpid=0x88a8"]);
        let _ = write!(text, "vlan {id} pcp={pcp}{tpid} / ");
    }
    let (port, ttl) = (1 + rng.below(5), rng.pick(&[60, 62, 64]));
    let cut = rng.pick(&["", "", "", " snap=20", " snap=40"]);
    text + &match rng.below(8) {
        0 => "arp request 10.0.0.1 > 10.0.0.2".to_owned(),
        1 if tags == 0 => format!("rawip / udp 10.0.0.1:9 > 10.0.0.2:{port} ttl={ttl}"),
        2 => format!("udp [2001:db8::1]:9 > [2001:db8::2]:{port} bytes=50"),
        _ => format!("udp 10.0.0.1:9 > 10.0.0.2:{port} ttl={ttl} bytes=30{cut}"),
    }
}

#[test]
fn engines_are_equal_on_chains_of_functions_that_change_tags() {
    for seed in budget::seeds(CHAINS) {
        let mut rng = Rng::new(seed);
        let source = source(&mut rng);
        let chain = harness::compile(&source, &Default::default(), Form::AsWritten);
        let chain = chain.unwrap_or_else(|errors| panic!("{source}\n{errors}"));
        let stimuli: Vec<Stimulus> = (0..PACKETS)
            .map(|_| {
                let text = packet(&mut rng);
                let spec = parse(&text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
                let interface = u16::try_from(rng.below(2)).unwrap_or(0);
                Stimulus::Packet(interface, spec.at(0))
            })
            .collect();
        let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
        for engine in Engine::drawn(seed, seed % MACHINE_CODE_EVERY == 0) {
            let same = engine.check(&chain, &stimuli, &expected);
            same.unwrap_or_else(|report| panic!("seed {seed}: {report}\n{source}"));
        }
    }
}
