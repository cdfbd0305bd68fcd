//! Random chains of small functions, and traffic for them.

use braid_ir::chain::Chain;
use braid_packet::{Field, Link, Packet, Shape, build_fresh};
use braid_testkit::generate::Rng;
use braid_testkit::harness::{self, Form};
use braid_testkit::record::Stimulus;
use std::collections::BTreeMap;

/// Functions that read, write, tag, drop, count, remember, tell and send, some of them on some
/// paths only. Two write what was there before.
const FUNCTIONS: &str = "
event TOLD extends EVENT { port: port }
event NUMBER extends EVENT { n: u32 }
nf count() { state n: u64 per flow = 0; match { has inet => { n += 1; output; } else => output; } }
nf ports() { state n: u32 per l4.dport = 0; match { has l4 => { n += 1; output; } else => output; } }
nf acl() { match { ip.src == 10.0.0.3 => drop \"no\"; else => output; } }
nf limit() { state n: u32 per ip.dst = 0; match {
  has ip and n > 9 => drop \"many\"; has ip => { n += 1; output; } else => output; } }
nf ttl() { match { has ip and ip.ttl > 3 => { ip.ttl -= 1; output; } else => output; } }
nf fixed() { match { l4.dport < 3 => { inet.ttl = 9; output; } else => output; } }
nf usual() { match { l4.dport > 1 => { inet.ttl = 64; output; } else => output; } }
nf mark() { match { has ip and l4.dport == 1 => { ip.dscp = 10; output; } else => output; } }
nf ecn() { match { has ip and l4.sport == 1 => { ip.ecn = 3; output; } else => output; } }
nf tos() { match { ip.src == 10.0.0.1 => { ip.tos = 7; output; } else => output; } }
nf plain() { match { has ip and l4.sport == 3 => { ip.tos = 0; output; } else => output; } }
nf dnat() { match { forward and has ip and has l4 => { ip.dst = 192.0.2.9; l4.dport = 4; output; }
  else => output; } }
nf snat() { match { ip.src == 10.0.0.1 => { ip.src = 203.0.113.1; output; } else => output; } }
nf window() { match { has tcp => { tcp.window = 99; output; } else => output; } }
nf dye() { tag colour: u8; match { l4.sport == 2 => { colour = 5; output; } else => output; } }
nf dyed() { tag colour: u8; match { colour == 5 => drop \"dyed\"; else => output; } }
nf over() { tag colour: u8; match { l4.dport == 2 => { colour = 6; output; } else => output; } }
nf tag_on() { match { has eth and l4.sport == 3 => { push vlan(7); output; } else => output; } }
nf tag_off() { match { has vlan => { pop vlan; output; } else => output; } }
nf retag() { match { vlan.id == 7 => { vlan.id = 8; output; } else => output; } }
nf long() { match { pkt.len > 60 => drop \"long\"; else => output; } }
nf look(p: patterns) { match { payload matches p => drop \"seen\"; else => output; } }
nf peek(p: patterns) { match {
  has l4 and payload matches p => { emit TOLD { port: l4.dport }; output; } else => output; } }
nf sum() { state n: u32 per ip.checksum = 0; match { has ip => { n += 1; output; } else => output; } }
nf tell() { match { l4.dport == 2 => { emit TOLD { port: l4.dport }; output; } else => output; } }
nf recall() { state n: u32 per l4.sport = 0, idle 3 ms, capacity 3, full evict_oldest;
  on expire n { emit NUMBER { n: n }; }
  match { has l4 => { n += 1; output; } else => output; } }
nf beat() { state n: u32 global = 0; every 2 ms { emit NUMBER { n: n }; }
  match { has ip => { n += 1; output; } else => output; } }
nf forget() { state n: u32 per l4.dport = 0, idle 2 ms; match {
  has l4 and n > 2 => drop \"often\"; has l4 => { n += 1; output; } else => output; } }
nf bounce() { match { l4.dport == 4 and l4.sport == 4 => output back; else => output; } }
nf copy() { match { l4.sport == 1 => { mirror right; output; } else => output; } }
nf refuse() { match { has ip and has tcp and l4.dport == 3 => {
  send tcp { tcp.sport = tcp.dport; tcp.dport = tcp.sport; } drop \"refused\"; }
  else => output; } }
";

const NAMES: [&str; 32] = [
    "count", "ports", "acl", "limit", "ttl", "fixed", "usual", "mark", "ecn", "tos", "plain",
    "dnat", "snat", "window", "dye", "dyed", "over", "tag_on", "tag_off", "retag", "long", "look",
    "peek", "sum", "tell", "recall", "beat", "forget", "bounce", "copy", "refuse", "count",
];

/// A chain of these functions between `lan` and `wan`.
pub fn chain(names: &[&str], policy: &str) -> Chain {
    let instance = |(at, name): (usize, &&str)| {
        let args = if ["look", "peek"].contains(name) { "p: patterns(\"p\")" } else { "" };
        format!("f{at} = {name}({args});\n")
    };
    let instances: String = names.iter().enumerate().map(instance).collect();
    let path: Vec<String> = (0..names.len()).map(|at| format!("f{at}")).collect();
    let text = format!(
        "{FUNCTIONS}\nchain c {{ interface lan {{ behind 10.0.0.0/8 }} interface wan;\n{instances}\
         path lan <-> {} <-> wan;\n{policy} }}",
        path.join(" <-> ")
    );
    let files = BTreeMap::from([("p".to_owned(), "\"bad\"\n".to_owned())]);
    harness::compile(&text, &files, Form::AsWritten).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

/// A random chain. Few functions send packets elsewhere, because such chains have few stages.
pub fn any(rng: &mut Rng) -> (Vec<&'static str>, Chain) {
    let length = 2 + rng.below(5);
    let kinds = if rng.one_in(4) { NAMES.len() } else { NAMES.len() - 4 };
    let names: Vec<&str> = (0..length).map(|_| NAMES[rng.below(kinds)]).collect();
    let chain = chain(&names, "");
    (names, chain)
}

/// Packets from both sides, some of them cut by the capture, with leaps of time.
pub fn traffic(rng: &mut Rng, count: usize) -> Vec<Stimulus> {
    let mut now = 1_000_000;
    let mut all: Vec<Stimulus> = (0..count)
        .map(|_| {
            now += *rng.pick(&[0, 0, 1_000, 300_000, 300_000, 1_000_000, 5_000_000]);
            let (ingress, packet) = packet(rng, now);
            Stimulus::Packet(ingress, packet)
        })
        .collect();
    let leap = all.len() / 2;
    all.insert(leap, Stimulus::Advance(now));
    all.push(Stimulus::Advance(u64::MAX));
    all
}

fn packet(rng: &mut Rng, now: u64) -> (u16, Packet) {
    let backward = rng.one_in(3);
    let mut inside = u128::from(0x0a00_0001_u32) + rng.below(4) as u128;
    let mut outside = u128::from(0xc000_0201_u32) + rng.below(3) as u128;
    if backward {
        std::mem::swap(&mut inside, &mut outside);
    }
    let payloads: [&[u8]; 3] = [b"x", b"bad", b"a longer payload than others"];
    let payload = payloads[rng.below(payloads.len())];
    let ends = [(Field::IpSrc, inside), (Field::IpDst, outside)];
    let (sport, dport) = (rng.below(5) as u128, rng.below(5) as u128);
    let packet = match rng.below(3) {
        0 => {
            let ports = [(Field::TcpSport, sport), (Field::TcpDport, dport)];
            build_fresh(Link::Ethernet, now, Shape::Tcp4, &[ends, ports].concat(), payload)
        }
        1 => {
            let ports = [(Field::UdpSport, sport), (Field::UdpDport, dport)];
            build_fresh(Link::Ethernet, now, Shape::Udp4, &[ends, ports].concat(), payload)
        }
        _ => build_fresh(Link::Ethernet, now, Shape::Icmp, &ends, payload),
    };
    let mut packet = packet.expect("a packet");
    if rng.one_in(4) {
        packet.push_vlan(7);
    }
    if rng.one_in(8) {
        let len = packet.data().len();
        let kept = packet.data()[..len - rng.below(20)].to_vec();
        packet = Packet::snapped(packet.link, now, kept, packet.wire_len);
    }
    (u16::from(backward), packet)
}
