//! Functions that read and write headers of their own: with fields of some bits, with a length of
//! their own, behind one another, and behind UDP, TCP and IP.

use super::{Family, PACKETS};
use braid_compiler::synth::SynthMutant;
use braid_ir::chain::Chain;
use braid_testkit::generate::Rng;
use braid_testkit::harness::{self, Form, budget};
use braid_testkit::packet::parse;
use braid_testkit::record::{Detail, Output, Stimulus, record};

pub const FAMILY: Family = Family {
    functions: FUNCTIONS,
    names: &NAMES,
    packet,
    keys: "",
    mutants: &[SynthMutant::PayloadLengthsKept, SynthMutant::CountedLater],
};

/// Functions by name. Each of them acts on some packets only.
const FUNCTIONS: &str = r#"
const PORTS = { 2152, 4789, 6081 };
fn is_tunnel() -> bool = udp.dport in PORTS and udp.sport < 10;

header gtpu after udp when is_tunnel() and gtpu.version == 1 {
  version: u3, protocol: bool, reserved: u1, flags: u3,
  kind: u8, length: u16, teid: u32,
}
header more after gtpu when gtpu.flags != 0 { seq: u16, npdu: u8, next: u8 }
header inner after gtpu when not has more and inner.version == 4 and gtpu.kind == 255 {
  version: u4, words: u4, tos: u8, total: u16,
} length 4 * u16(inner.words);
header inner_more after more when inner_more.version == 4 {
  version: u4, words: u4, tos: u8, total: u16,
} length 4 * u32(inner_more.words);
header ports after inner when inner.tos == 17, inner_more when inner_more.tos < 9 { sport: port, odd: u5, dport: u11, }
header lines after tcp, udp when udp.sport == 9 and lines.first > 3, gtpu when gtpu.teid == 2 { first: u8, rest: u24 }
header long after tcp when long.a == 5 { a: u7, pad: u97, middle: u64, rest: u72, z: u16, } checksum z;
header hello after ip when ip.proto in { 6, 17, 89 } { version: u8, kind: u4, twist: u12, router: ip4 }
  length hello.version;

nf relabel() {
  match {
    has gtpu and gtpu.teid in 0..3 => {
      gtpu.teid += 1;
      gtpu.kind = wrapping(gtpu.kind + 1);
      output;
    }
    gtpu.protocol => drop "not GTP";
    else => output;
  }
}
nf order() {
  match {
    more.seq > 0x7fff and more.next == 0 => { more.seq &= 0x7fff; more.npdu = 3; output; }
    more.npdu == 3 => { gtpu.flags = 0; output back; }
    else => output;
  }
}
nf within() {
  match {
    has ports and u11(ports.odd) < ports.dport => {
      ports.odd = ports.odd >> 1;
      ports.dport = u11(ports.sport & 0x7ff);
      if ports.odd == 0 { drop "odd"; }
      output;
    }
    inner.words == 6 => { inner.tos = 17; inner.total = u16(pkt.payload_len); output; }
    inner_more.words == 5 => { inner_more.words = 4; output; }
    else => output;
  }
}
nf count() {
  state seen: u32 per (ip4, u32) = 0, capacity 4, full evict_oldest;
  match {
    has gtpu and has ip => {
      seen[ip.src, gtpu.teid] += 1;
      if seen[ip.src, gtpu.teid] > 2 and u8 at gtpu + 8 != 0 { drop "often"; }
      if has more { u16 at more + 2 = 0xbeef else drop; }
      output;
    }
    else => output;
  }
}
nf line() {
  match {
    lines.first == 0 => drop "zero";
    has lines => {
      lines.rest = lines.rest ^ u24(lines.first);
      if "ab" at lines + 1 { output back; }
      output;
    }
    else => output;
  }
}
nf routing() {
  match {
    hello.twist > 99 and hello.router in 10.0.0.0/8 => drop "twisted";
    has hello => { ip.tos = u8(hello.kind); ip.ttl = hello.version; output; }
    else => output;
  }
}
nf wrap() {
  match {
    has udp and udp.dport == 53 => {
      push gtpu { version: 1, kind: 255, teid: u32(udp.sport), flags: 2 } else drop "no room";
      udp.dport = 2152;
      if has gtpu { push more { seq: 0x8000, next: 1 } else output back; }
      output;
    }
    else => output;
  }
}
nf unwrap() {
  match {
    has more => { pop more else drop "kept"; gtpu.flags = 0; output; }
    has gtpu and gtpu.kind != 255 => { pop gtpu else output back; output; }
    has inner => { pop inner else output; output; }
    else => output;
  }
}
nf tag() {
  match {
    has tcp and not has long => { push long { a: 5, middle: 0x123456789abcdef } else output; output; }
    long.pad == 0 => { long.pad = u97(tcp.seq); long.middle ^= 0xff00; output; }
    long.middle > 0 => { pop long else drop; output; }
    else => output;
  }
}
nf lengths() {
  state sizes: u32 per (u16) = 0, capacity 5, full evict_oldest;
  match {
    udp.len > 30 and has ip and pkt.payload_len > 24 B => { sizes[udp.len] += 1; ip.tos = 4; output; }
    ip.len & 1 == 1 => { ip.id = ip.len; output; }
    ip6.len & 3 == 2 and pkt.len > 70 B => drop "odd";
    else => output;
  }
}
nf aim() {
  match {
    has gtpu => { udp.dport = 4789; if has gtpu { gtpu.flags = 1; } else { output back; } output; }
    has udp and udp.sport == 9 => { udp.dport = 2152; u8 at payload = 0x30 else drop; output; }
    else => output;
  }
}
"#;

const NAMES: [&str; 11] = [
    "relabel", "order", "within", "count", "line", "routing", "aim", "wrap", "unwrap", "tag",
    "lengths",
];

fn packet(rng: &mut Rng) -> String {
    let mut hex = |bytes: &str, most: usize| {
        let rest: String = (0..rng.below(most)).map(|_| format!("{:02x}", rng.byte())).collect();
        format!("{bytes}{rest}")
    };
    let bodies = [
        hex("30ff001000000001", 6),
        hex("30ff00100000000245110008", 24),
        hex("30ff00100000000346110008", 30),
        hex("32ff001000000000", 12),
        hex("34ff00100000000190010000", 3),
        hex("32ff0010000000029001030045000008", 30),
        hex("20ff001000000001", 6),
        hex("0c03", 14),
        hex("00", 5),
        hex("", 20),
    ];
    let body = rng.pick(&bodies).clone();
    let body = if body.is_empty() { body } else { format!(" hex={body}") };
    let (from, to) = (7 + rng.below(4), *rng.pick(&[2152, 2152, 2152, 4789, 6081, 53]));
    let cut = rng.pick(&["", "", "", "", " snap=44", " snap=50", " pad=3"]);
    match rng.below(8) {
        0 => format!("icmp 10.0.0.1 > 10.0.0.2 echo-request id=3{cut}"),
        1 => format!("udp [2001:db8::1]:{from} > [2001:db8::2]:{to}{body}"),
        2 => format!("tcp 10.0.0.1:{from} > 10.0.0.2:{to} PA{body}{cut}"),
        3 => format!("ip 10.0.0.1 > 10.0.0.2 proto=89{body}{cut}"),
        4 => format!("udp 10.0.0.1:{from} > 10.0.0.2:{to} nosum{body}"),
        _ => format!("udp 10.0.0.1:{from} > 10.0.0.2:{to}{body}{cut}"),
    }
}

/// The same functions in two notations: with declared headers and with numbers in the payload, with
/// sets and with comparisons, with a loop that ends and with one that goes on without effect.
const PAIRS: [(&str, &str); 7] = [
    (
        "const TUNNELS = { 4789, 6081, 2152 } - { 4789 };
         nf same(more: set<port> = { 53 }, hosts: list<ip4> = { 10.0.0.1, 10.0.0.9 }) {
           match {
             l4.dport in TUNNELS | more and not ip.src in (0.0.0.0/0 - hosts) => output back;
             l4.sport + 1 in { 1..9 } & { 8..20 } - more => drop;
             else => output;
           }
         }",
        "nf same() {
           match {
             (l4.dport == 6081 or l4.dport == 2152 or l4.dport == 53)
               and not (has ip and ip.src != 10.0.0.1 and ip.src != 10.0.0.9) => output back;
             l4.sport + 1 >= 8 and l4.sport + 1 <= 9 => drop;
             else => output;
           }
         }",
    ),
    (
        "nf same(rate: bitrate = 100 bit/s, burst: size = 150 B) {
           state credit: bucket per (ip.src, l4.dport), capacity 3, full evict_oldest;
           match {
             has l4 and has ip => { spend(credit, pkt.len, rate, burst) else output back; output; }
             else => drop;
           }
         }",
        "nf same(rate: bitrate = 100 bit/s, burst: size = 150 B) {
           state credit: { left: u128, since: time } per (ip.src, l4.dport), capacity 3,
               full evict_oldest;
           match {
             has l4 and has ip => {
               let mut left = u128(burst) * 8_000_000_000;
               if exists credit {
                 left = min(left, credit.left + u128(rate) * u128(pkt.time - credit.since));
               }
               let cost = u128(pkt.len) * 8_000_000_000;
               if left >= cost {
                 credit = { left: left - cost, since: pkt.time };
                 output;
               }
               credit = { left: left, since: pkt.time };
               output back;
             }
             else => drop;
           }
         }",
    ),
    (
        "nf same() {
           match {
             has ip => {
               let mut at = u16(0);
               for i in 0..6 while u8 at payload + at > 0x20 and i < ip.ttl {
                 let next = u16 at payload + at else drop;
                 at += 1 + next & 1;
               }
               ip.id = at;
               output;
             }
             else => drop;
           }
         }",
        "nf same() {
           match {
             has ip => {
               let mut at = u16(0);
               let mut on = true;
               for i in 0..6 {
                 on = on and u8 at payload + at > 0x20;
                 if on { let next = u16 at payload + at else drop; at += 1 + next & 1; }
               }
               ip.id = at;
               output;
             }
             else => drop;
           }
         }",
    ),
    (
        "header gtpu after udp when udp.dport == 2152 {
           version: u3, low: u5, kind: u8, length: u16, teid: u32,
         }
         nf same() {
           match {
             gtpu.low > 1 and gtpu.teid == 2 => drop;
             has gtpu => { gtpu.teid = 0xabcdef; gtpu.version = 7; output; }
             else => output back;
           }
         }",
        "nf same() {
           match {
             udp.dport == 2152 and u64 at payload & 0x1fff_ffff_ffff_ffff >= 0x200_0000_0000_0000
               and u32 at payload + 4 == 2 => drop;
             udp.dport == 2152 and u64 at payload >= 0 => {
               let first = u8 at payload else drop;
               u32 at payload + 4 = 0xabcdef else drop;
               u8 at payload = first | 0xe0 else drop;
               output;
             }
             else => output back;
           }
         }",
    ),
    (
        "header outer after udp when not udp.dport == 53 { kind: u8, len: u8 } length outer.len;
         header next after outer when outer.kind > 5 { twist: bool, value: u15 }
         nf same() {
           match { next.twist => { next.value = 1; output; } has outer => output; else => drop; }
         }",
        "nf same() {
           match {
             has udp and not udp.dport in { 53, 4789, 6081 } and u8 at payload + 1 > 1
               and u8 at payload + (u8 at payload + 1) - 1 >= 0 => {
               let kind = u8 at payload else drop;
               let len = u8 at payload + 1 else drop;
               let value = u16 at payload + len else output;
               if kind > 5 and value > 0x7fff { u16 at payload + len = 0x8001 else drop; }
               output;
             }
             else => drop;
           }
         }",
    ),
    (
        "header lines after tcp { first: u8, rest: u24 }
         nf same() { match { has lines => { lines.rest += 1; output; } else => drop; } }",
        "nf same() {
           match {
             has tcp and u32 at payload >= 0 => {
               let rest = u24 at payload + 1 else drop;
               u24 at payload + 1 = rest + 1 else drop;
               output;
             }
             else => drop;
           }
         }",
    ),
    (
        "header hello after ip when hello.kind != 3 { version: u8, kind: u4, twist: u12 }
         nf same() { match { has hello => { ip.id = u16(hello.twist); output; } else => drop; } }",
        "nf same() {
           match {
             has ip and not ip.proto in { 1, 6, 17, 47, 50, 51 } and pkt.later_fragment == 0
               and u8 at payload + 1 & 0xf0 != 0x30 and u24 at payload >= 0 => {
               ip.id = u16 at payload + 1 & 0x0fff;
               output;
             }
             else => drop;
           }
         }",
    ),
];

#[test]
fn functions_in_two_notations_do_the_same() {
    for (nth, (one, other)) in PAIRS.iter().enumerate() {
        let chain = |text: &str| {
            let source = format!("{text}\nchain c {{ path in <-> same() <-> out; }}");
            let chain = harness::compile(&source, &Default::default(), Form::AsWritten);
            chain.unwrap_or_else(|errors| panic!("{source}\n{errors}"))
        };
        let (one, other) = (chain(one), chain(other));
        let mut changed = 0;
        for seed in budget::seeds(40) {
            let mut rng = Rng::new(seed);
            let stimuli: Vec<Stimulus> = (0..PACKETS as u64)
                .map(|nth| {
                    let text = packet(&mut rng);
                    let spec = parse(&text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
                    Stimulus::Packet(0, spec.at(nth * 700_000_000))
                })
                .collect();
            let run = |chain: &Chain| {
                record(harness::reference(chain).as_mut(), &stimuli, Detail::End).outputs
            };
            let (a, b) = (run(&one), run(&other));
            assert_eq!(a, b, "pair {nth}, seed {seed}");
            changed += usize::from(a != run(&chain("nf same() { output; }")));
        }
        assert!(changed > 0, "pair {nth} does nothing");
    }
}

/// The header, in front of two other bytes, of a UDP packet behind the function of a program.
fn summed(rows: &str, header: &str) -> Vec<u8> {
    let source = format!(
        "header h after udp when udp.dport == 9 {{
           a: u5, b: u11, sum: u16, c: u24, d: u40, e: u8,
         }} checksum sum;
         nf f() {{ match {{ {rows} else => drop; }} }}
         chain c {{ path in <-> f() <-> out; }}"
    );
    let chain = harness::compile(&source, &Default::default(), Form::AsWritten).expect("a chain");
    let packet = parse(&format!("udp 10.0.0.1:1 > 10.0.0.2:9 hex={header}")).expect("a packet");
    let stimuli = [Stimulus::Packet(0, packet.at(0))];
    let trace = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
    let Some([Output::Packet(_, packet), ..]) = trace.outputs.first().map(Vec::as_slice) else {
        panic!("no packet");
    };
    packet.data()[42..].to_vec()
}

/// The sum of the words of bytes modulo 65,535, where 0 counts as 65,535 (RFC 1071).
fn sum_of(bytes: &[u8]) -> u64 {
    let word = |two: &[u8]| u64::from(two[0]) << 8 | u64::from(*two.get(1).unwrap_or(&0));
    let sum: u64 = bytes.chunks(2).map(word).sum();
    if sum.is_multiple_of(0xffff) { 0xffff } else { sum % 0xffff }
}

#[test]
fn checksum_of_a_header_follows_its_fields() {
    // A header of 13 bytes with a right checksum, and one whose checksum is wrong by 1.
    let right = "1234d4b70102030405060708090a";
    let wrong = "1234d4b80102030405060708090a";
    assert_eq!(sum_of(&[0x12, 0x34, 0xd4, 0xb7, 1, 2, 3, 4, 5, 6, 7, 8, 9]), 0xffff);
    for assigned in ["a = 31", "b = 0x7ff", "c = 0xffffff", "d = 0", "d = 0x1122334455", "e = 200"]
    {
        let rows = format!("has h => {{ h.{assigned}; output; }}");
        let changed = summed(&rows, right);
        assert_ne!(changed[..13], [0x12, 0x34, 0xd4, 0xb7, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(sum_of(&changed[..13]), 0xffff, "{assigned}: {changed:02x?}");
        assert_eq!(sum_of(&summed(&rows, wrong)[..13]), 1, "{assigned}");
    }
    // An assigned checksum stays, and a pushed header gets one unless it is given.
    assert_eq!(summed("has h => { h.sum = 7; h.sum = 8; output; }", right)[2..4], [0, 8]);
    let pushed =
        summed("has h => { push h { a: 3, c: 0xabcdef, e: 1 } else drop; output; }", right);
    assert_eq!(pushed[..2], [0x18, 0]);
    assert_eq!(pushed[4..13], [0xab, 0xcd, 0xef, 0, 0, 0, 0, 0, 1]);
    assert_eq!(sum_of(&pushed[..13]), 0xffff);
    let given = summed("has h => { push h { sum: 0x1234 } else drop; output; }", right);
    assert_eq!(given[..4], [0, 0, 0x12, 0x34]);
}
