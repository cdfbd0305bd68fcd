//! Functions that add, change, test and remove TCP options, and that send packets with them.

use super::Family;
use braid_compiler::synth::SynthMutant;
use braid_testkit::generate::Rng;
use braid_testkit::harness::{self, Form};
use braid_testkit::packet::parse;
use braid_testkit::record::{Detail, Output, Stimulus, record};

pub const FAMILY: Family = Family {
    functions: FUNCTIONS,
    names: &NAMES,
    packet,
    keys: "",
    mutants: &[
        SynthMutant::OptionMissed,
        SynthMutant::OptionLengthsKept,
        SynthMutant::SecondOptionMissed,
    ],
};

/// Functions by name. Each of them acts on some packets only.
const FUNCTIONS: &str = r#"
nf clamp() {
  match {
    has tcp.mss and tcp.mss > 1400 => { tcp.mss = 1400; output; }
    has tcp and tcp.flags & SYN != 0 => { push tcp.mss(1400) else output back; output; }
    else => output;
  }
}
nf strip() {
  match {
    has tcp.mss => { pop tcp.mss; output; }
    has tcp.ts => { pop tcp.ts; if has tcp.sack_ok { pop tcp.sack_ok; } output; }
    else => output;
  }
}
nf counted() {
  state seen: u16 per flow = 0, capacity 4, full evict_oldest;
  match {
    tcp.mss > 1000 => {
      pop tcp.mss;
      seen += 1;
      tcp.window = seen;
      if has ip { ip.ttl = 9; }
      push tcp.wscale(3) else { seen = 0; output; }
      l4.dport = u16(tcp.wscale) + 1;
      seen += 1;
      output;
    }
    else => output;
  }
}
nf stamp() {
  match {
    has tcp => {
      push tcp.ts(u32(tcp.window), tcp.ack) else { tcp.urgent = 7; output; }
      tcp.ts_ecr = wrapping(tcp.ts_val + 1);
      output;
    }
    else => output;
  }
}
nf scale() {
  match {
    has tcp and tcp.sport == 7 => {
      push tcp.wscale(u8(tcp.hlen)) else drop "no room";
      push tcp.sack_ok else drop "no room for a second one";
      if tcp.wscale > 20 { output back; }
      output;
    }
    has tcp.wscale => { tcp.window = u16(tcp.wscale); output; }
    else => output;
  }
}
nf lengths() {
  match {
    has tcp and has ip and ip.len > 44 => { ip.ttl = u8(ip.len & 0xff); output; }
    has tcp and has ip6 and ip6.len > 24 => { ip6.ttl = u8(ip6.len & 0xff); output; }
    has tcp and tcp.hlen == 24 and has ip and pkt.len > 58 B => { ip.id = u16(pkt.len); output; }
    else => output;
  }
}
nf sums() {
  match {
    has tcp and l4.checksum & 1 == 1 => { tcp.window = 9; output; }
    has ip and ip.checksum & 1 == 1 => { ip.tos = 4; output; }
    else => output;
  }
}
nf answer() {
  match {
    has tcp and has ip and tcp.flags & SYN != 0 and tcp.dport == 80 => {
      send tcp {
        tcp.sport = tcp.dport;
        tcp.dport = tcp.sport;
        tcp.flags = SYN | ACK;
        push tcp.mss(1000);
        push tcp.sack_ok;
        push tcp.ts(tcp.seq, 5);
        push tcp.wscale(7);
        payload = same;
      }
      output;
    }
    has tcp and has ip6 and tcp.dport == 80 => {
      send tcp6 {
        if tcp.flags & ACK == 0 { tcp.window = 9; push tcp.mss(tcp.window); }
        push tcp.sack_ok;
        if tcp.wscale < 9 and tcp.sport > 7 { push tcp.wscale(tcp.wscale); tcp.ack = 4; }
      } to left;
      output;
    }
    else => output;
  }
}
nf kinds() {
  match {
    u32 at tcp.option(5) + ip.ttl % 3 > 7 => {
      u32 at tcp.option(5) = wrapping(u32(tcp.window) + 1) else drop "no room for an edge";
      output;
    }
    has tcp and u16 at tcp.option(2) == 1460 => {
      u16 at tcp.option(2) = 1300 else drop "no size";
      if has tcp.mss { tcp.window = tcp.mss; }
      output;
    }
    "\u{0}\u{7}" at tcp.option(8) + 2 => output back;
    has tcp => { let echo = u32 at tcp.option(8) + 4 else output; tcp.ack = echo; output; }
    else => output;
  }
}
nf any_option() {
  state sizes: u16 per (u8) = 0, capacity 4, full evict_oldest;
  match {
    has tcp and tcp.sport == 7 => {
      pop tcp.option(5) else { tcp.window = 3; output; }
      if has ip and ip.len > 60 { ip.tos = u8(tcp.hlen); }
      output;
    }
    has tcp and has ip => {
      let text = bytes<16> at payload for pkt.payload_len else output;
      push tcp.option(253, text) else { pop tcp.option(253); output back; }
      sizes[tcp.hlen] += u16(pkt.len & 0xff);
      if sizes[tcp.hlen] > 200 { drop "much"; }
      if u8 at tcp.option(253) == 0x47 { push tcp.sack_ok else output; }
      output;
    }
    has tcp => {
      push tcp.option(30, "0123456789abcdef0123456789abcdef01") else drop "no room";
      pop tcp.option(8 + 22) else output back;
      l4.dport = u16(pkt.len);
      output;
    }
    else => output;
  }
}
nf ip_options() {
  match {
    "\u{0}\u{0}" at ip.option(ROUTER_ALERT) => drop "router alert";
    u8 at ip.option(LOOSE_ROUTE) < 8 and ip.ttl > 60 => {
      let hop = u32 at ip.option(LOOSE_ROUTE) + 1 else drop "short";
      ip.dst = ip4(hop);
      output;
    }
    has ip => { let last = u16 at ip.option(RECORD_ROUTE) + 3 else output; ip.id = last; output; }
    u8 at ip6.extension(HOP_BY_HOP) + 1 == 4 => drop "padded";
    has ip6 => {
      let left = u8 at ip6.extension(ROUTING) + 1 else output;
      ip6.ttl = left + 7;
      output;
    }
    else => output;
  }
}
nf moved() {
  match {
    has vlan and has tcp => { pop vlan; push tcp.mss(536) else drop; push vlan(9); output; }
    has eth and has tcp => { push vlan(3); tcp.seq = 1; push tcp.wscale(2) else output; output; }
    else => output;
  }
}
nf rewrite() {
  match {
    has tcp and has ip => {
      ip.dst = 192.0.2.9;
      u16 at payload = 0xbeef else output;
      if has tcp.mss { l4.dport = tcp.mss; }
      output;
    }
    else => output;
  }
}
"#;

const NAMES: [&str; 14] = [
    "any_option",
    "clamp",
    "strip",
    "counted",
    "stamp",
    "scale",
    "lengths",
    "sums",
    "answer",
    "kinds",
    "moved",
    "rewrite",
    "ip_options",
    "ip_options",
];

/// SACK with two edges.
const EDGES: &str = "opt=050a0000000900000012";

fn packet(rng: &mut Rng) -> String {
    let (from, to, ttl) = (7 + rng.below(3), *rng.pick(&[80, 443]), rng.pick(&[60, 64]));
    let flags = rng.pick(&["S", "SA", "A", "PA"]);
    let known = ["mss=1460", "mss=536", "wscale=7", "sackok", "ts=1,2", "ts=7,9", "nop", EDGES];
    let options: Vec<&str> = (0..rng.below(6)).map(|_| *rng.pick(&known)).collect();
    let options = options.join(" ");
    let body = rng.pick(&["", "", " bytes=3", " \"GET /\""]);
    let tag = rng.pick(&["", "", "vlan 5 / "]);
    let cut = rng.pick(&["", "", "", " snap=60", " pad=6", " sum=9"]);
    // A router alert; a loose source route; a recorded route behind a NOP.
    let ip = ["", "", " ipopts=94040000", " ipopts=8307040a00000900", " ipopts=01070704c0000201"];
    let ip = rng.pick(&ip);
    let extensions =
        rng.pick(&["", "", " ext=hop", " ext=hop,dst", " ext=route", " ext=dst,route"]);
    match rng.below(8) {
        0 => format!("udp 10.0.0.1:{from} > 10.0.0.2:{to}{body}"),
        1 | 2 => {
            format!(
                "{tag}tcp [2001:db8::1]:{from} > [2001:db8::2]:{to} {flags} {options}{extensions}{body}"
            )
        }
        3 => format!("tcp 10.0.0.1:{from} > 10.0.0.2:{to} {flags} {options} mf{body}"),
        _ => format!(
            "{tag}tcp 10.0.0.1:{from} > 10.0.0.2:{to} {flags} {options} ttl={ttl}{ip}{body}{cut}"
        ),
    }
}

#[test]
fn new_packet_gets_what_its_conditions_say_in_the_order_of_the_text() {
    let source = "nf f() { match {
      has ip and has tcp => {
        send tcp {
          tcp.window = 1; tcp.flags = RST;
          if has tcp.ts { push tcp.ts(tcp.ts_ecr, tcp.ts_val); tcp.window = 2; }
          push tcp.mss(1000);
          if tcp.sport > 7 { push tcp.sack_ok; tcp.urgent = tcp.sport; }
        }
        consume;
      }
      else => drop;
    } }
    chain c { path in <-> f() <-> out; }";
    let chain = harness::compile(source, &Default::default(), Form::AsWritten).expect("a chain");
    let sent = |text: &str| {
        let packet = parse(text).expect("a packet").at(0);
        let stimuli = [Stimulus::Packet(0, packet)];
        let trace = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
        let Some([Output::Packet(_, packet), ..]) = trace.outputs.first().map(Vec::as_slice) else {
            panic!("no packet");
        };
        let tcp = &packet.data()[34..];
        let number = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        // NOPs fill the header up to whole words.
        let options = tcp[20..].iter().copied().filter(|byte| *byte != 1).collect::<Vec<u8>>();
        (number(14), number(18), options)
    };
    let mss = [2, 4, 3, 232];
    let stamps = [8, 10, 0, 0, 0, 9, 0, 0, 0, 5];
    let plain = "tcp 10.0.0.1:7 > 10.0.0.2:80 A";
    assert_eq!(sent(plain), (1, 0, mss.to_vec()));
    let stamped = "tcp 10.0.0.1:7 > 10.0.0.2:80 A ts=5,9";
    assert_eq!(sent(stamped), (2, 0, [&stamps[..], &mss].concat()));
    let later = "tcp 10.0.0.1:8 > 10.0.0.2:80 A";
    assert_eq!(sent(later), (1, 8, [&mss[..], &[4, 2]].concat()));
    let both = "tcp 10.0.0.1:8 > 10.0.0.2:80 A ts=5,9";
    assert_eq!(sent(both), (2, 8, [&stamps[..], &mss, &[4, 2]].concat()));
}
