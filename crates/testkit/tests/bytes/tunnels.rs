//! Functions that put packets and frames into tunnels and take them out: IP in IP, GRE, VXLAN,
//! Geneve, MPLS and a header of the program. Functions between them read what is inside and
//! outside.

use super::Family;
use braid_compiler::synth::SynthMutant;
use braid_testkit::generate::Rng;

pub const FAMILY: Family = Family {
    functions: FUNCTIONS,
    names: &NAMES,
    packet,
    keys: "",
    mutants: &[SynthMutant::TunnelMissed, SynthMutant::TunnelFieldsKept],
};

/// Functions by name. Each of them acts on some packets only.
const FUNCTIONS: &str = r#"
header own after udp when udp.dport == 2152 { kind: u8, length: u16, key: u32 }
header deeper after own when own.kind == 9 { mark: u16 }

nf ipip() {
  match {
    has ip and ip.ttl > 60 => {
      push ip { src: 192.0.2.1, dst: ip.dst, ttl: ip.ttl, tos: ip.tos, id: ip.id } else drop "no room";
      if has eth { eth.src = 02:00:00:00:00:09; }
      output;
    }
    has ip6 => { push ip6 { src: ip6.dst, dst: ip6.src } else output back; output; }
    else => output;
  }
}
nf gre() {
  match {
    has l4 and l4.sport == 7 => {
      push ip { src: 192.0.2.1, dst: 192.0.2.2 }, gre { key: u32(l4.dport) } else drop;
      if has ip { ip.ttl = 9; }
      output;
    }
    has inet => { push ip6 { src: 2001:db8::1, dst: 2001:db8::2, ttl: 9 }, gre else drop; output; }
    else => output;
  }
}
nf vxlan() {
  match {
    has eth and not has vlan => {
      push eth { src: eth.dst, dst: eth.src }, ip { src: 192.0.2.1, dst: 192.0.2.2, df: 1 },
        udp { sport: 5 }, vxlan { vni: 42 } else output back;
      output;
    }
    else => output;
  }
}
nf geneve() {
  match {
    has udp => {
      push ip6 { src: 2001:db8::1, dst: 2001:db8::2 }, udp { sport: udp.sport }, geneve { vni: 9, control: 1 }
        else drop;
      output;
    }
    has eth and has tcp => {
      push eth { src: eth.src, dst: eth.dst }, ip6 { src: 2001:db8::1, dst: 2001:db8::2 },
        udp { sport: 7 }, geneve { vni: 10 } else drop;
      output;
    }
    else => output;
  }
}
nf label() {
  match {
    has inet => { push mpls { label: 5 }, mpls { label: 6, tc: 3, ttl: 9 } else output; output; }
    has mpls and mpls.ttl > 1 => { push mpls { label: 7 } else drop; output; }
    else => output;
  }
}
nf with_own() {
  match {
    has ip => {
      push ip { src: 192.0.2.1, dst: 192.0.2.2 }, udp { sport: 1, dport: 2152 },
        own { kind: 9, length: u16(pkt.len), key: 77 }, deeper { mark: ip.id } else drop;
      output;
    }
    else => output;
  }
}
nf unlabel() { match { has mpls => { pop mpls else drop "no bottom"; output; } else => output; } }
nf unwrap() {
  match {
    has gre and has ip => { pop ip, gre else pop eth, ip, gre else drop "no tunnel"; output; }
    has gre => { pop ip6, gre else drop; output; }
    has vxlan => { pop eth, ip, udp, vxlan else output; output; }
    has geneve and geneve.vni == 9 => { pop ip6, udp, geneve else output back; output; }
    has geneve => { pop eth, ip6, udp, geneve else drop "no frame"; output; }
    has deeper => { pop ip, udp, own, deeper else drop; output; }
    has ip => { pop ip else output; output; }
    has ip6 => { pop ip6 else output; output; }
    else => output;
  }
}
nf twice() {
  state seen: u16 per flow = 0, capacity 5, full evict_oldest;
  match {
    has ip and has inet => {
      let before = ip.src;
      push ip { src: before, dst: 192.0.2.9 } else drop;
      if has ip and ip.dst == 192.0.2.9 { ip.ttl = 7; }
      seen += 1;
      if seen > 2 and has ip {
        pop ip else drop;
        if has ip and ip.src == before { ip.id = seen; }
      }
      output;
    }
    else => output;
  }
}
nf flows() {
  state seen: u32 per flow = 0, capacity 8, full evict_oldest;
  match { has inet => { seen += 1; if seen > 4 { drop "often"; } output; } else => output; }
}
nf sizes() {
  match {
    has ip and pkt.payload_len > 60 B => { ip.tos = u8(ip.len & 0xff); output; }
    pkt.len > 120 B => drop "long";
    has eth => { eth.src = 02:00:00:00:00:40; output; }
    else => output;
  }
}
nf ports() { match { has l4 and l4.dport == 80 => { l4.dport = 8080; output; } else => output; } }
nf tag() { match { has eth and not has vlan => { push vlan(9); output; } else => output; } }
nf untag() { match { has vlan => { pop vlan; output; } else => output; } }
nf long() {
  match {
    has ip and has eth => {
      push ip { src: 192.0.2.1, dst: 192.0.2.2, id: u16(pkt.len) } else drop;
      if pkt.len > 99 B { drop "long"; }
      output;
    }
    else => output;
  }
}
nf peek() {
  state seen: u16 per ip4 = 0, capacity 4, full evict_oldest;
  match {
    has ip and has inner.ip and inner.ip.ttl > 60 => {
      ip.id = inner.ip.id;
      seen[inner.ip.src] += 1;
      if seen[inner.ip.src] > 3 { drop "often inside"; }
      output;
    }
    inner.tcp.dport == 80 => drop "web inside";
    else => output;
  }
}
nf mark() {
  tag deep: u8;
  match { has gre or has vxlan or has mpls => { deep = 1; output; } deep == 1 => drop "was deep"; else => output; }
}
"#;

const NAMES: [&str; 20] = [
    "ipip", "gre", "vxlan", "geneve", "label", "with_own", "unlabel", "unwrap", "unwrap", "unwrap",
    "twice", "flows", "sizes", "ports", "tag", "untag", "long", "mark", "peek", "peek",
];

fn packet(rng: &mut Rng) -> String {
    let (from, to) = (7 + rng.below(2), *rng.pick(&[53, 80, 80, 4789, 6081]));
    let ttl = rng.pick(&[60, 62, 64]);
    let body = format!(" bytes={}", rng.pick(&[0, 1, 4, 40, 41]));
    let cut = rng.pick(&["", "", "", "", " snap=40", " pad=3"]);
    let tag = rng.pick(&["", "", "", "vlan 7 / "]);
    match rng.below(12) {
        // Behind SNAP, the IP header lies where it lies behind two tags.
        10 => format!(
            "link=eth hex=020000000002020000000001003caaaa0300000008004500003400000000400{}",
            "666c20a0000010a0000020007005000000000000000005002ffff00000000".to_owned()
                + &"61".repeat(12)
        ),
        11 => format!("vlan 7 / vlan 8 / tcp 10.0.0.1:7 > 10.0.0.2:80 S ttl={ttl}{body}"),
        0 => format!("{tag}icmp 10.0.0.1 > 10.0.0.2 echo-request id=3{body}{cut}"),
        1 => format!("{tag}udp [2001:db8::1]:{from} > [2001:db8::2]:{to}{body}"),
        2 => format!("tcp [2001:db8::1]:{from} > [2001:db8::2]:{to} S{body}"),
        3 => {
            "ip 10.0.0.1 > 10.0.0.2 proto=4 hex=4500001400000000400600000a0000010a000002".to_owned()
        }
        4 => format!("ip 10.0.0.1 > 10.0.0.2 proto=47 hex=00000800{}", "45".repeat(20)),
        5 => format!("udp 10.0.0.1:{from} > 10.0.0.2:4789 hex=0800000000002a00{}", "02".repeat(16)),
        6 => format!("{tag}udp 10.0.0.1:{from} > 10.0.0.2:{to} nosum ttl={ttl}{body}{cut}"),
        _ => format!("{tag}tcp 10.0.0.1:{from} > 10.0.0.2:{to} PA ttl={ttl}{body}{cut}"),
    }
}
