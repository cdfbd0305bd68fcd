//! Small functions between the functions of library chains. They change VLAN tags and packet tags,
//! add amounts to numbers of TCP, and publish events. So these actions happen often, and together
//! with the actions of all other functions.

use crate::generate::Rng;

const STAMP: &str = "nf stamp(id: u12) {
  match { has eth and not has vlan2 => { push vlan(id); output; } else => output; }
}
";

const STRIP: &str = "nf strip() {
  match { has vlan => { pop vlan; output; } else => output; }
}
";

const SWAP: &str = "nf swap(id: u12, pcp: u3) {
  match {
    has vlan => { pop vlan; push vlan(id); if has vlan { vlan.pcp = pcp; } output; }
    else => output;
  }
}
";

const DEEPER: &str = "nf deeper() {
  match {
    has vlan and vlan.pcp < 4 and not has vlan2 => {
      let id = vlan.id;
      vlan.id = 9;
      push vlan(id);
      output;
    }
    vlan2.id == 9 => { pop vlan; vlan.id = 10; output; }
    else => output;
  }
}
";

const ZONE: &str = "nf zone() {
  state seen: u12 per ip.dst = 3, capacity 20;
  match {
    has ip and has vlan and not has vlan2 => { seen = vlan.id; pop vlan; output; }
    has ip and has eth and not has vlan => { push vlan(seen); output; }
    else => output;
  }
}
";

const NOTE: &str = "event NOTED extends EVENT { src: ip4, port: port, length: size, at: time, colour: u8, by: string, nth: u32, ttl: u8 }

nf note(by: string) {
  tag colour: u8;
  state n: u32 per ip.src = 0, capacity 30;
  match {
    has ip and has l4 and pkt.len < 200 B => {
      n += 1;
      emit NOTED {
        src: ip.src,
        port: l4.dport,
        length: pkt.len,
        at: pkt.time,
        colour: colour,
        by: by,
        nth: n,
        ttl: ip.ttl
      };
      output;
    }
    else => output;
  }
}
";

const PAINT: &str = "nf paint(first: u8) {
  tag colour: u8;
  match {
    has ip and ip.src in 10.0.0.0/8 => { colour = first; output; }
    has tcp => { colour = colour + 1; output; }
    else => output;
  }
}
";

const SORT: &str = "nf sort(least: u8) {
  tag colour: u8;
  match {
    has ip and colour > least => { ip.tos = colour; colour = 0; output; }
    colour == 1 => drop \"colour\";
    else => output;
  }
}
";

/// Translates sequence numbers, timestamps and identifiers by amounts per connection.
const RENUMBER: &str = "nf renumber(step: u32) {
  state by: { seq: u32, ts: u32, id: u16 } per biflow, idle 900 ms, capacity 20, full evict_oldest;
  match {
    tcp.flags & 0x12 == 0x02 or forward and has tcp and not exists by => {
      by = { seq: wrapping(tcp.seq * step), ts: step, id: u16(step & 0xfff) };
      tcp.seq = wrapping(tcp.seq + by.seq);
      output;
    }
    forward and exists by and has tcp => {
      tcp.seq = wrapping(tcp.seq + by.seq);
      if has tcp.ts { tcp.ts_val = wrapping(tcp.ts_val + by.ts); }
      if has ip { ip.id = wrapping(ip.id - by.id); }
      output;
    }
    exists by and has tcp => {
      tcp.ack = wrapping(tcp.ack - by.seq);
      if has tcp.ts { tcp.ts_ecr = wrapping(tcp.ts_ecr - by.ts); }
      if tcp.ack < 0x40000000 { tcp.window = wrapping(tcp.window + 3); }
      output;
    }
    else => output;
  }
}
";

/// A function that puts packets into tunnels whose outer headers differ from flow to flow: by a
/// hash, by an entry, by a parameter and by the packet. Records hold these bytes if it is the last
/// function of a path.
pub(super) const WRAP: &str = "nf wrap(least: port, ends: list<ip4>) {
  state far: { at: ip4, key: u24 } per ip.dst, capacity 20, full evict_oldest;
  match {
    backward and has vxlan => { pop eth, ip, udp, vxlan else drop \"no frame\"; output; }
    backward and has gre => { pop ip, gre else drop \"no packet\"; output; }
    forward and has ip and has eth and l4.dport > least => {
      if not exists far { far = { at: ends[u32(ip.dst) % len(ends)], key: u24(u32(ip.dst) & 0xffff) }; }
      let port = 0xc000 | u16(hash(flow) & 0x3fff);
      push eth { src: 02:00:00:00:00:01, dst: eth.dst }, ip { src: 192.0.2.1, dst: far.at },
          udp { sport: port }, vxlan { vni: far.key } else drop \"no room\";
      output;
    }
    forward and has ip6 => {
      push ip { src: 192.0.2.1, dst: ends[0], tos: 8 }, gre { key: hash(ip6.src) } else drop \"no room\";
      output;
    }
    forward and has ip and ip.ttl > 3 => {
      push ip6 { src: 2001:db8::1, dst: ip6(0x20010db8000000000000000000000000 | u128(u32(ip.src))) }
          else drop \"no room\";
      output;
    }
    else => output;
  }
}
";

/// A function that takes packets out of the tunnels of [`WRAP`].
pub(super) const UNWRAP: &str = "nf unwrap() {
  match {
    forward and has vxlan => { pop eth, ip, udp, vxlan else drop \"no frame\"; output; }
    forward and has gre => { pop ip, gre else drop \"no packet\"; output; }
    else => output;
  }
}
";

/// A function with IPv4 at one side and IPv6 at the other: `up` is 1 if IPv4 is on the left.
pub(super) const SIIT: &str = "nf siit(up: u8) {
  fn low(addr: ip6) -> ip4 = ip4(u32(u128(addr) & 0xffff_ffff));
  fn high(addr: ip4) -> ip6 = ip6(0x64ff9b << 96 | u128(addr));
  fn outward() -> bool = forward and up == 1 or backward and up == 0;
  match {
    outward() and has quoted.ip => {
      to_ip6(high(ip.src), high(ip.dst), high(quoted.ip.src), high(quoted.ip.dst))
          else drop \"not translated\";
      output;
    }
    outward() and has ip => {
      to_ip6(high(ip.src), high(ip.dst)) else drop \"not translated\";
      output;
    }
    has quoted.ip6 and not outward() => {
      to_ip4(low(ip6.src), low(ip6.dst), low(quoted.ip6.src), low(quoted.ip6.dst))
          else drop \"not translated\";
      if has ip and ip.df == 0 { ip.id = 7; }
      output;
    }
    has ip6 and not outward() => {
      to_ip4(low(ip6.src), low(ip6.dst)) else drop \"not translated\";
      output;
    }
    else => output;
  }
}
";

/// A function for the end of a path, with a port `side` that leads out of the chain.
pub(super) const TAP: &str = "nf tap(least: port) {
  port side;
  state n: u32 per ip.src = 0, capacity 30;
  match {
    forward and has ip and l4.dport > least => { n += 1; mirror side; output; }
    forward and has ip and has tcp => { n += 1; output side, right; }
    forward and has ip and has vlan and n < 90 => { mirror side; vlan.pcp = 2; output; }
    forward and has ip and n < 90 => { mirror side; mirror side; drop \"only copied\"; }
    else => output;
  }
}
";

/// A function with its arguments, and its source.
pub(super) fn one(rng: &mut Rng) -> (String, &'static str) {
    let id = 1 + rng.below(12);
    match rng.below(18) {
        0 | 1 => (format!("stamp(id: {id})"), STAMP),
        2 => ("strip()".to_owned(), STRIP),
        3 => (format!("swap(id: {id}, pcp: {})", rng.below(8)), SWAP),
        4 => ("deeper()".to_owned(), DEEPER),
        5 => ("zone()".to_owned(), ZONE),
        6..9 => (format!("note(by: \"{id}\")"), NOTE),
        9 | 10 => (format!("paint(first: {})", 1 + rng.below(3)), PAINT),
        11 => (format!("sort(least: {})", 1 + rng.below(3)), SORT),
        _ => (format!("renumber(step: {})", rng.word()), RENUMBER),
    }
}
