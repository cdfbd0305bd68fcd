//! Functions that read and write numbers in the payload: behind TCP and UDP, in tunnels, in cut
//! packets. Written bytes may become a header of a tunnel.

use super::Family;
use braid_compiler::synth::SynthMutant;
use braid_testkit::generate::Rng;

pub const FAMILY: Family = Family {
    functions: FUNCTIONS,
    names: &NAMES,
    packet,
    keys: "",
    mutants: &[SynthMutant::PayloadSumKept, SynthMutant::PayloadTunnelMissed],
};

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
nf words() {
  match {
    "GET /index.html HTTP/1.1\r\n" at payload => drop "the index";
    u32 at payload in { "GET ", "HEAD", 0x13000000 } => { output back; }
    "GET" at payload + ip.ttl % 2 => { ip.tos = 8; output; }
    has l4 and "T " at payload + 2 => { u24 at payload = "PUT" else drop; output; }
    else => output;
  }
}
event WORD { word: string, n: u8 }
nf strings() {
  state last: bytes<32> per (u8) , capacity 3, full evict_oldest;
  state times: u16 per (bytes<32>, u8) = 0, capacity 5, full evict_oldest;
  match {
    bytes<16> at payload + 2 for ip.ttl % 20 == "T /" => drop "a path";
    has l4 => {
      let word = bytes<32> at payload + 1 for size(pkt.payload_len) - 2 B else output;
      if exists last[1] and word == last[1] { output back; }
      last[1] = word;
      times[word, 3] += 1;
      if word.len < 9 { emit WORD { word: word, n: 3 }; }
      if times["ET /index.html", 3] > 1 { drop "often"; }
      if times[word, 3] > 2 and word.len > 4 { l4.dport = 9; }
      output;
    }
    else => output;
  }
}
nf walk() {
  match {
    has udp or has tcp => {
      let mut at = u16(0);
      let mut seen = { sum: u32(0), steps: u8(0) };
      let mut step = u8 at payload else drop "empty";
      for i in 0..5 {
        if step & 0x0f != 0 {
          at += u16(step & 0x0f);
          seen.sum = wrapping(seen.sum * 31 + u32(step));
          step = u8 at payload + at else output back;
        } else if seen.steps == 0 {
          seen.steps = i + 1;
        }
      }
      if seen.steps > 2 { drop "long"; }
      if has ip { ip.id = u16(seen.sum & 0xffff); }
      output;
    }
    else => output;
  }
}
nf rewrite() {
  match {
    has l4 and "GET " at payload => {
      bytes<16> at payload for 3 = "POST" else drop "no room";
      output;
    }
    has l4 and u8 at payload + 1 > 99 => {
      bytes<32> at payload + 1 for (u8 at payload + 1 & 7) = "" else output back;
      output;
    }
    has l4 => {
      let word = bytes<32> at payload + 2 for size(pkt.payload_len) / 2 else output;
      bytes<32> at payload + pkt.payload_len = word else bytes<32> at payload for 1 = word else drop;
      output;
    }
    else => output;
  }
}
nf size() {
  match {
    ip.len > 50 or has ip and udp.len & 1 == 0 => { ip.tos = u8(pkt.payload_len & 0xff); output; }
    ip6.len > 20 => drop;
    else => output;
  }
}
nf back() { match { ip4 at payload in 0.0.0.0/1 => output back; else => output; } }
"#;

const NAMES: [&str; 14] = [
    "first", "last", "odd", "exchange", "tunnel", "inside", "sum", "remember", "words", "strings",
    "walk", "rewrite", "size", "back",
];

fn packet(rng: &mut Rng) -> String {
    let (from, to) = (7 + rng.below(3), *rng.pick(&[53, 4789, 6081, 6081]));
    let ttl = rng.pick(&[60, 62, 64]);
    let cut = rng.pick(&["", "", "", " snap=44", " snap=50", " pad=3"]);
    let body: String = match rng.below(5) {
        4 => {
            let text =
                rng.pick(&["GET /index.html HTTP/1.1\\r\\n", "GET /index.html", "HEAD /", " GET"]);
            format!(" \"{text}\"")
        }
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
