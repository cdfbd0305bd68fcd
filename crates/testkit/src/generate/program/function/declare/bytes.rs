//! Rows that read and write bytes outside of the header table: payloads of any packet, headers of
//! the program, headers inside of tunnels, IP options and quoted packets; and rows with loops,
//! buckets and sets that are combined.

use super::super::draft::{Draft, Use, add, test};
use crate::generate::Rng;
use crate::generate::program::pieces::ParamKind;
use crate::generate::program::types::{self, IP4};
use braid_packet::Header;

/// A header that rows use, for the start of a program.
pub(in super::super) const PARCEL: &str = "\
header parcel after udp when udp.sport < 2000, ip when ip.proto == 99, eth when eth.type == 0x88b5 {
  kind: u8, flags: u4, more: u4, id: u16,
} length 4 + u32(parcel.more) holds packet when parcel.kind > 4;
";

/// Adds a row to one of three functions.
pub(in super::super) fn row(rng: &mut Rng, draft: &mut Draft) {
    if !rng.one_in(3) {
        return;
    }
    let used = match rng.below(11) {
        0 | 1 => payload(rng),
        2 | 3 => parcel(rng),
        4 => inside(rng),
        5 => option(rng),
        6 => combined(rng, draft),
        7 => bucket(rng, draft),
        8 => rounds(rng),
        9 => quoted(rng),
        _ => session(rng),
    };
    draft.uses.push(used);
}

/// Writes to the payload, whatever header is in front of it, or replaces a part.
fn payload(rng: &mut Rng) -> Use {
    let headers: [&[Header]; 6] = [
        &[],
        &[Header::Eth],
        &[Header::Inet],
        &[Header::IcmpEcho],
        &[Header::Icmp6Echo],
        &[Header::Quoted4],
    ];
    let headers: &[Header] = headers[rng.below(headers.len())];
    let mut used = test(String::new(), headers);
    let at = *rng.pick(&["0", "1", "6", "size(pkt.payload_len) - 2 B"]);
    used.lines.push(match rng.below(3) {
        0 => {
            let (old, text) = (rng.below(4), *rng.pick(&["", "x", "GET /", "17 bytes of text!"]));
            format!("bytes<32> at payload + {at} for {old} = \"{text}\" else drop \"short\";")
        }
        1 => format!("u16 at payload + {at} = 0xfffe else drop \"short\";"),
        _ => format!("u8 at payload + {at} = u8(pkt.payload_len % 256) else drop \"short\";"),
    });
    used
}

/// Reads, changes, adds or removes a header of the program.
fn parcel(rng: &mut Rng) -> Use {
    let mut used = match rng.below(4) {
        0 => {
            let mut used = test(String::new(), &[Header::Udp]);
            used.lines.push("push parcel { kind: 7, id: 5 } else drop \"no room\";".to_owned());
            return used;
        }
        1 => test(format!("has parcel and parcel.kind > {}", rng.below(6)), &[]),
        _ => test("has parcel".to_owned(), &[]),
    };
    used.lines.push(
        (*rng.pick(&[
            "parcel.id = parcel.id ^ 0xff00;",
            "parcel.flags = 3;",
            "parcel.more = 2;",
            "pop parcel else drop \"stays\";",
            "if parcel.id > 99 { drop \"id\"; }",
        ]))
        .to_owned(),
    );
    used
}

/// Looks into tunnels, which may be in a header of the program, and changes what is inside.
fn inside(rng: &mut Rng) -> Use {
    let tests = [
        "has inner.ip and inner.ip.ttl > 3",
        "has inner.udp",
        "has inner.ip and has parcel",
        "has inner.tcp and inner.tcp.dport < 1024",
        "has inner.ip6",
        "has inner.eth and inner.eth.type == 0x0800",
    ];
    let picked = *rng.pick(&tests);
    let mut used = test(picked.to_owned(), &[]);
    let assigned = match picked {
        _ if rng.one_in(2) => return used,
        "has inner.udp" => "inner.udp.dport = 5000;",
        "has inner.ip6" => "inner.ip6.dst = 2001:db8::9;",
        _ if picked.contains("inner.tcp") => "inner.tcp.flags = 0x11;",
        _ if picked.contains("inner.eth") => "inner.eth.src = 02:00:00:00:00:09;",
        _ => "inner.ip.src = 192.0.2.9;",
    };
    used.lines.push(assigned.to_owned());
    used
}

/// Reads an option of IPv4 or an extension header of IPv6, or adds a TCP option of any kind and
/// removes it.
fn option(rng: &mut Rng) -> Use {
    let mut own = Rng::new(rng.clone().bits() ^ 0x6f70_7469_6f6e);
    if own.one_in(3) {
        let mut used = test(String::new(), &[Header::Tcp]);
        let push = "push tcp.option(30, \"text\") else drop \"no room\";";
        let pop = "pop tcp.option(30) else { tcp.window = 30; }";
        let lines = *own.pick(&[[push, "tcp.urgent = 30;"], [push, pop], [pop, push]]);
        used.lines.extend(lines.map(str::to_owned));
        return used;
    }
    let (area, header) = *rng.pick(&[
        ("ip.option(7)", Header::Ip4),
        ("ip.option(148)", Header::Ip4),
        ("ip6.extension(0)", Header::Ip6),
        ("ip6.extension(43)", Header::Ip6),
    ]);
    if rng.one_in(2) {
        return test(format!("u8 at {area} + {} > {}", rng.below(3), rng.below(4)), &[header]);
    }
    let mut used = test(String::new(), &[header]);
    used.lines.push(format!("let part = u16 at {area} + 1 else drop \"no option\";"));
    used.lines.push("if part > 900 { drop \"option\"; }".to_owned());
    used
}

/// Tests membership in two sets that are combined.
fn combined(rng: &mut Rng, draft: &mut Draft) -> Use {
    let mut set = || {
        let value = format!("{{ {}, {} }}", types::prefix4(rng), types::prefix4(rng));
        add(draft, ParamKind::Set(IP4), "prefixes", value, false)
    };
    let (a, b) = (set(), set());
    let op = *rng.pick(&["|", "&", "-"]);
    test(format!("ip.src in {a} {op} {b}"), &[Header::Ip4])
}

/// Takes packets from a token bucket.
fn bucket(rng: &mut Rng, draft: &mut Draft) -> Use {
    let (per, header) =
        *rng.pick(&[("ip.src", Header::Ip4), ("inet.dst", Header::Inet), ("l4.dport", Header::L4)]);
    let name = format!("purse{}", draft.own.len());
    draft.own.push(format!("state {name}: bucket per {per}, full evict_oldest;"));
    let mut used = test(String::new(), &[header]);
    let (rate, burst) = (rng.range(1, 900), rng.range(100, 4000));
    used.lines
        .push(format!("spend({name}, pkt.len, {rate} kbit/s, {burst} B) else drop \"over rate\";"));
    used
}

/// Counts in a loop that ends by a condition.
fn rounds(rng: &mut Rng) -> Use {
    let mut used = test(String::new(), &[Header::Ip4]);
    used.lines.push("let mut sum = u32(ip.ttl);".to_owned());
    let most = rng.range(10, 300);
    used.lines.push(format!("for i in 0..8 while sum < {most} {{ sum += 3 + u32(i); }}"));
    used.lines.push("ip.id = u16(sum);".to_owned());
    used
}

/// Assigns fields of a packet that an ICMP error quotes.
fn quoted(rng: &mut Rng) -> Use {
    let (header, line) = *rng.pick(&[
        (Header::Quoted4, "quoted.ip.src = 10.0.0.9;"),
        (Header::Quoted4, "quoted.ip.dst = ip.src;"),
        (Header::QuotedL4, "quoted.l4.sport = 99;"),
        (Header::QuotedEcho, "quoted.icmp.id = 7;"),
        (Header::Quoted4, "quoted.ip.ttl = ip.ttl; quoted.ip.id = 0xff01;"),
        (Header::Quoted6, "quoted.ip6.ttl = 3;"),
    ]);
    let mut used = test(String::new(), &[header]);
    used.lines.push(line.to_owned());
    used
}

/// Puts packets into sessions of PPPoE, or takes them out.
fn session(rng: &mut Rng) -> Use {
    let change = *rng.pick(&["push pppoe { session: 9 }, ppp", "pop pppoe, ppp"]);
    let mut used = test(String::new(), &[Header::Eth]);
    used.lines.push(format!(
        "if pkt.len > {} B {{ {change} else drop \"no session\"; output; }}",
        rng.range(60, 120)
    ));
    used
}
