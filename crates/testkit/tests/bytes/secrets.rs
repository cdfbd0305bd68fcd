//! Functions that encrypt and decrypt payloads and packets in tunnels of ESP, and that give packets
//! in tunnels of AH a check value. Functions between them read what is encrypted, change it so that
//! it is refused, and read what comes out.

use super::Family;
use braid_compiler::synth::SynthMutant;
use braid_testkit::generate::Rng;

pub const FAMILY: Family = Family {
    functions: FUNCTIONS,
    names: &NAMES,
    packet,
    keys: KEYS,
    mutants: &[SynthMutant::TunnelMissed, SynthMutant::PayloadLengthsKept],
};

const KEYS: &str = "1 aes-128-gcm 0102030405060708090a0b0c0d0e0f10a1a2a3a4
2 aes-128-cbc-hmac-sha-256-128 0102030405060708090a0b0c0d0e0f10\
404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f
3 hmac-sha-256-128 404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f
80 aes-256-gcm 0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20b1b2b3b4\n";

/// Functions by name. Each of them acts on some packets only.
const FUNCTIONS: &str = r#"
nf seal(k: keys) {
  state sent: u32 global = 0;
  match {
    has ip and ip.ttl > 60 => {
      sent += 1;
      push ip { src: 192.0.2.1, dst: 192.0.2.2, tos: ip.tos },
        esp { spi: 1 + u32(ip.id % 4), seq: sent, keys: k, iv: u64(sent) } else drop "no key";
      if has ip and has esp and esp.spi == 2 { ip.ttl = 9; }
      output;
    }
    has ip6 => {
      push ip6 { src: 2001:db8::1, dst: 2001:db8::2 }, esp { spi: 80, seq: 7, keys: k, iv: 9 }
        else output back;
      output;
    }
    else => output;
  }
}
nf open(k: keys) {
  state seen: u32 per ip.src = 0, capacity 8, full evict_oldest;
  match {
    has esp and has ip => {
      pop ip, esp { keys: k } else drop "forged";
      if has ip { seen += 1; ip.id = u16(seen); }
      output;
    }
    has esp => { pop ip6, esp { keys: k } else output; output; }
    else => output;
  }
}
nf seal_long(k: keys) {
  state sent: u64 global = 0xffffffff;
  match {
    has udp and udp.dport == 4500 => output;
    has ip and ip.ttl > 60 => {
      sent += 1;
      let high = u32(sent >> 32);
      let low = u32(sent & 0xffffffff);
      push ip { src: 192.0.2.1, dst: 192.0.2.2, ttl: 61 }, udp { sport: 4500, dport: 4500 },
        esp { spi: 1 + u32(ip.id % 3), seq: low, high: high, keys: k, iv: sent } else drop "no key";
      if has ip and has udp and low % 4 == 2 { udp.sport = 7; ip.tos = 9; }
      output;
    }
    has ip6 => {
      push ip6 { src: 2001:db8::1, dst: 2001:db8::2 }, udp { sport: 4500, dport: 4500 },
        esp { spi: 80, seq: 7, keys: k, iv: 9 } else output back;
      output;
    }
    else => output;
  }
}
nf open_long(k: keys) {
  match {
    has ip and has udp and udp.dport == 4500 => {
      let high = u32 at payload + 4 else drop "short";
      pop ip, udp, esp { keys: k, high: if high < 1000 { u32(1) } else { u32(0) } } else drop "forged";
      if has ip { ip.id = 5; }
      output;
    }
    has udp and udp.dport == 4500 => { pop ip6, udp, esp { keys: k } else output; output; }
    else => output;
  }
}
nf sign(k: keys) {
  state sent: u32 global = 0;
  match {
    has ah => output;
    has ip and ip.ttl > 60 => {
      sent += 1;
      push ip { src: 192.0.2.1, dst: 192.0.2.2, tos: ip.tos, ttl: 61 },
        ah { spi: 2 + u32(ip.id % 3), seq: sent, keys: k } else drop "no key";
      if has ip and has ah and ah.spi == 3 and ah.seq % 4 == 2 { ip.tos = 9; ip.ttl = 8; }
      output;
    }
    has ip6 => {
      push ip6 { src: 2001:db8::1, dst: 2001:db8::2 }, ah { spi: 3, seq: 7, keys: k } else output back;
      output;
    }
    else => output;
  }
}
nf check(k: keys) {
  state seen: u32 per ip.src = 0, capacity 8, full evict_oldest;
  match {
    has ah and has ip => {
      pop ip, ah { keys: k } else drop "forged";
      if has ip { seen += 1; ip.id = u16(seen); }
      output;
    }
    has ah => { pop ip6, ah { keys: k } else output; output; }
    else => output;
  }
}
nf forge(_k: keys) {
  match {
    has ah and ah.seq % 4 == 1 and has ip => { ip.id += 1; output; }
    has esp and esp.seq % 4 == 1 => {
      push ip { src: 192.0.2.7, dst: 192.0.2.8, ttl: u8(esp.seq) } else drop;
      output;
    }
    has udp and udp.sport == 8 => { u8 at payload + 20 = 1 else output; output; }
    else => output;
  }
}
nf unpack(_k: keys) { match { has ip and ip.proto == 4 => { pop ip else drop; output; } else => output; } }
nf hide(k: keys) {
  match {
    has l4 => { encrypt(k, u32(l4.dport), u64(l4.sport), 0) else output back; output; }
    else => output;
  }
}
nf show(k: keys) {
  match {
    has l4 and pkt.payload_len > 3 B => {
      decrypt(k, u32(l4.dport), 0) else output;
      if has ip { ip.tos = u8(pkt.payload_len % 256); }
      output;
    }
    else => output;
  }
}
nf part(k: keys) {
  match {
    has l4 and has ip => {
      let from = u32(ip.ttl % 4);
      if pkt.len > 70 B {
        decrypt(k, 2, from) else drop "forged";
      } else {
        encrypt(k, 2, u64(ip.id), from) else drop "no room";
      }
      if pkt.payload_len > 40 B { ip.id = ip.len; }
      output;
    }
    else => output;
  }
}
nf port(_k: keys) { match { has l4 => { l4.dport = u16(1 + l4.dport % 3); output; } else => output; } }
nf tunnel(k: keys) {
  match { has udp and udp.sport == 7 => { udp.dport = 6081; decrypt(k, 2, 0) else output; output; } else => output; }
}
nf inside(_k: keys) { match { has geneve => drop "tunnel"; else => output; } }
nf flows(_k: keys) {
  state seen: u32 per flow = 0, capacity 8, full evict_oldest;
  match { has inet => { seen += 1; if seen > 6 { drop "often"; } output; } else => output; }
}
nf sizes(_k: keys) {
  match {
    has ip and pkt.payload_len > 60 B => { ip.tos = u8(ip.len & 0xff); output; }
    pkt.len > 190 B => drop "long";
    else => output;
  }
}
nf tag(_k: keys) { match { has eth and not has vlan => { push vlan(9); output; } else => output; } }
"#;

const NAMES: [&str; 24] = [
    "seal",
    "seal",
    "open",
    "open",
    "seal_long",
    "seal_long",
    "open_long",
    "open_long",
    "sign",
    "sign",
    "check",
    "check",
    "forge",
    "unpack",
    "hide",
    "hide",
    "show",
    "part",
    "port",
    "tunnel",
    "inside",
    "flows",
    "sizes",
    "tag",
];

/// What follows the header of ESP in a packet that scapy 2.8.0 encrypted with key 1.
const GENUINE: &str = "0000000000000000f7a0a37baf50c5a05557c748927e174fcf0d0b2ecef2dd9291dec6dbe0fc66a610bc\
    1992cf55b0a3ad7cb1ce52bd9171b387863f";
/// A header of Geneve, encrypted with key 2 by the Python library `cryptography` 48.0.
const HIDDEN: &str = "000102030405060708090a0b0c0d0e0f56e3a2755084b323d644fc5ae477014625abe400456be4bef316\
    3998b273ab74";
/// AH and what follows it in a packet to which scapy 2.8.0 gave a check value with key 3.
const AUTHENTIC: &str = "04050000000000030000004d2124356c68897d2d6eef956a13bd7671\
    4500002000050000401166c20a0000030a00000400070002000c270061626364";

fn packet(rng: &mut Rng) -> String {
    let (from, to) = (7 + rng.below(2), *rng.pick(&[1, 2, 2, 80, 81, 6081]));
    let ttl = rng.pick(&[60, 62, 64]);
    let body = format!(" bytes={}", rng.pick(&[0, 1, 4, 15, 16, 40, 41]));
    let cut = rng.pick(&["", "", "", "", " snap=50", " pad=3"]);
    let tag = rng.pick(&["", "", "", "vlan 7 / "]);
    let id = rng.below(4);
    match rng.below(12) {
        10 => {
            format!("ip 10.0.0.1 > 10.0.0.2 / ah spi=3 seq=9 / ip 10.0.0.3 > 10.0.0.4{body}{cut}")
        }
        11 => format!("ip 192.0.2.1 > 198.51.100.2 proto=51 ipid=4660 ttl={ttl} hex={AUTHENTIC}"),
        0 => format!("{tag}icmp 10.0.0.1 > 10.0.0.2 echo-request id=3{body}{cut}"),
        1 => format!("{tag}udp [2001:db8::1]:{from} > [2001:db8::2]:{to}{body}"),
        2 => format!("tcp [2001:db8::1]:{from} > [2001:db8::2]:{to} S{body}{cut}"),
        3 => format!("ip 10.0.0.1 > 10.0.0.2 / esp spi={} seq=9 hex={}", rng.below(4), GENUINE),
        4 => format!("ip 10.0.0.1 > 10.0.0.2 / esp spi=1 seq=9{body}"),
        5 => format!("{tag}udp 10.0.0.1:7 > 10.0.0.2:2 ttl={ttl} hex={HIDDEN}"),
        6 => format!("{tag}udp 10.0.0.1:{from} > 10.0.0.2:{to} nosum ttl={ttl} ipid={id}{body}"),
        _ => format!("{tag}tcp 10.0.0.1:{from} > 10.0.0.2:{to} PA ttl={ttl} ipid={id}{body}{cut}"),
    }
}
