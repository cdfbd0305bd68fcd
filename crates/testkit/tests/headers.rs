//! Tests that all engines are equal on chains of functions that read and write the fields of VXLAN,
//! Geneve and PPPoE. The functions also write ports that decide whether a tunnel's header is
//! present, and change tags before PPPoE.

use braid_testkit::generate::Rng;
use braid_testkit::harness::{self, Engine, Form, budget};
use braid_testkit::packet::parse;
use braid_testkit::record::{Detail, Stimulus, record};
use std::fmt::Write as _;

/// Number of chains unless `BRAID_CASES` sets it, and number of packets for each.
const CHAINS: u64 = 60;
const PACKETS: usize = 80;
/// One of this number of chains also runs as machine code.
const MACHINE_CODE_EVERY: u64 = 10;

/// Functions by name. Each of them acts on some packets only.
const FUNCTIONS: &str = r#"
nf relabel() {
  match {
    geneve.vni == 9 => { geneve.vni = 10; output; }
    vxlan.vni == 9 => { vxlan.vni = 11; output; }
    else => output;
  }
}
nf to_geneve() { match { has vxlan and vxlan.vni != 7 => { udp.dport = 6081; output; } else => output; } }
nf to_vxlan() { match { has geneve => { udp.dport = 4789; output; } else => output; } }
nf to_port() { match { udp.sport == 2 => { udp.dport = udp.dport + 1; output; } else => output; } }
nf from_port() { match { udp.dport == 6082 => { udp.dport = 6081; output; } else => output; } }
nf judge() {
  match {
    geneve.control == 1 => drop "control";
    geneve.options > 4 => { geneve.critical = 1; output; }
    geneve.proto != 0x6558 and has geneve => drop "no ethernet";
    vxlan.vni == 10 => drop "ten";
    else => output;
  }
}
nf sizes() { match { has eth and pkt.payload_len > 24 B => { eth.src = 02:00:00:00:00:40; output; } else => output; } }
nf count() {
  state n: u32 per geneve.vni = 0, capacity 4;
  match { has geneve => { n += 1; output; } else => output; }
}
nf session() {
  match {
    pppoe.session == 5 => { pppoe.session = 6; output; }
    pppoe.code == 9 => drop "discovery";
    ppp.proto == 0xc021 => drop "control";
    pppoe.len > 60 and has ip => { ip.tos = 4; output; }
    else => output;
  }
}
nf translate() {
  match {
    has ppp and has ip => { ip.src = 192.0.2.1; output; }
    has ip and has udp => { udp.sport = 2; output; }
    else => output;
  }
}
nf flows() {
  state seen: u32 per flow = 0, capacity 8;
  match { has inet => { seen += 1; output; } else => output; }
}
nf hop() { match { ip.ttl <= 60 and has ip => drop "expired"; has ip => { ip.ttl -= 1; output; } else => output; } }
nf add() { match { has eth and has pppoe and not has vlan => { push vlan(9); output; } else => output; } }
nf strip() { match { has vlan => { pop vlan; output; } else => output; } }
"#;

const NAMES: [&str; 14] = [
    "relabel",
    "to_geneve",
    "to_vxlan",
    "to_port",
    "from_port",
    "judge",
    "sizes",
    "count",
    "session",
    "translate",
    "flows",
    "hop",
    "add",
    "strip",
];

fn source(rng: &mut Rng) -> String {
    let names: Vec<_> = (0..2 + rng.below(5)).map(|_| *rng.pick(&NAMES)).collect();
    let mut text = format!("{FUNCTIONS}\nchain c {{\n  interface lan;\n  interface wan;\n");
    for (place, name) in names.iter().enumerate() {
        let _ = writeln!(text, "  f{place} = {name}();");
    }
    let path: String = (0..names.len()).map(|place| format!("f{place} <-> ")).collect();
    let _ = writeln!(text, "  path lan <-> {path}wan;\n}}");
    text
}

/// A packet of one of a few flows, often with a tunnel's header, often in a PPPoE session.
fn packet(rng: &mut Rng) -> Vec<u8> {
    let port = rng.pick(&[4789, 6081, 6081, 6082, 53]);
    let vni = rng.pick(&[7_u8, 9, 10]);
    let flags = rng.pick(&["0800", "0000", "0265", "4000", "0080", "0140"]);
    let proto = rng.pick(&["6558", "6558", "0800"]);
    let header = format!("{flags}{proto}0000{vni:02x}00");
    let (sport, ttl) = (rng.pick(&[2, 3]), rng.pick(&[60, 64]));
    let body = format!("hex={header}{}", "5a".repeat(*rng.pick(&[0, 4, 20, 30])));
    let version6 = rng.below(4) == 0;
    let text = if version6 {
        format!("udp [2001:db8::1]:{sport} > [2001:db8::2]:{port} {body}")
    } else {
        format!("udp 10.0.0.1:{sport} > 10.0.0.2:{port} ttl={ttl} {body}")
    };
    let data = parse(&text).unwrap_or_else(|why| panic!("{text}: {why:?}")).frame().data;
    if rng.below(2) == 0 { data } else { in_session(rng, &data, version6) }
}

/// The IP packet of a frame in a PPPoE session. Sometimes it is not a session packet, or is
/// damaged.
fn in_session(rng: &mut Rng, frame: &[u8], version6: bool) -> Vec<u8> {
    let (kind, code) = *rng.pick(&[(0x64_u8, 0_u8), (0x64, 0), (0x64, 0), (0x63, 9)]);
    let usual = if version6 { [0, 0x57] } else { [0, 0x21] };
    let protocol = *rng.pick(&[usual, usual, usual, [0xc0, 0x21]]);
    let len = u16::try_from(frame.len() - 14 + 2).unwrap_or(0);
    let len = len + u16::from(rng.below(12) == 0);
    let tag: &[u8] = if rng.below(4) == 0 { &[0x81, 0, 0, 5] } else { &[] };
    let [high, low] = len.to_be_bytes();
    let session = *rng.pick(&[5, 6]);
    let pppoe = [0x88, kind, 0x11, code, 0, session, high, low];
    [&frame[..12], tag, &pppoe, &protocol, &frame[14..]].concat()
}

fn hex(data: &[u8]) -> String {
    data.iter().fold("hex=".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[test]
fn engines_are_equal_on_chains_that_touch_tunnels() {
    for seed in budget::seeds(CHAINS) {
        let mut rng = Rng::new(seed);
        let source = source(&mut rng);
        let chain = harness::compile(&source, &Default::default(), Form::AsWritten);
        let chain = chain.unwrap_or_else(|errors| panic!("{source}\n{errors}"));
        let packets: Vec<_> = (0..8).map(|_| hex(&packet(&mut rng))).collect();
        // Packets of a flow recur, so that there are flow records.
        let stimuli: Vec<Stimulus> = (0..PACKETS)
            .map(|_| {
                let text = rng.pick(&packets);
                let spec = parse(text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
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
