//! Adds functions of the program, token buckets, counters, named members of a pool, and random
//! numbers.

use crate::generate::Rng;
use crate::generate::program::function::draft::{Draft, Use, add, test};
use crate::generate::program::pieces::{ParamKind, Per, State};
use crate::generate::program::types::{self, SIZE, TIME};
use braid_ir::model::Ty;
use braid_packet::{Field, Header};

/// Adds a `fn` and a statement that uses it.
pub(super) fn function(rng: &mut Rng, draft: &mut Draft) {
    let number = draft.own.len();
    let (factor, limit) = (rng.range(1, 5), rng.range(1, 255));
    draft.own.push(format!("fn h{number}(x: u8) -> u8 = min(x * {factor}, {limit});"));
    let mut used = test(String::new(), &[Header::Inet]);
    used.lines.push(format!("inet.ttl = h{number}(inet.ttl);"));
    draft.uses.push(used);
}

/// Adds an `action` that ends the path of some packets.
pub(super) fn action(rng: &mut Rng, draft: &mut Draft) {
    let number = draft.own.len();
    let port = rng.range(1, 9000);
    draft.own.push(format!(
        "action a{number}(v: port) {{ if v > {port} {{ drop \"by action\"; }} l4.sport = v; }}"
    ));
    let mut used = test(String::new(), &[Header::L4]);
    used.lines.push(format!("a{number}(l4.dport);"));
    draft.uses.push(used);
}

/// Adds a token bucket that a timer fills.
pub(super) fn bucket(rng: &mut Rng, draft: &mut Draft) {
    let name = format!("s{}", draft.pieces.states.len());
    let rate = add(
        draft,
        ParamKind::Scalar(types::BITRATE),
        "bitrate",
        format!("{} kbit/s", rng.range(50, 900)),
        rng.one_in(2),
    );
    let period = types::duration(rng);
    let most = rng.range(500, 4000);
    draft.pieces.states.push(State {
        name: name.clone(),
        per: Per::Global,
        slots: vec![(String::new(), SIZE)],
        default: true,
        tied: false,
        refuses: false,
        text: format!("state {name}: size global = {most};"),
    });
    draft
        .every
        .push((period.clone(), format!("{name} = min({name} + {rate} * {period}, {most});")));
    let mut used = test(format!("pkt.len <= {name}"), &[Header::Inet]);
    used.lines.push(format!("{name} -= pkt.len;"));
    draft.uses.push(used);
}

/// Adds counters and a time. Packets change them in ways that can be combined. Tests compare them.
pub(super) fn counter(rng: &mut Rng, draft: &mut Draft) {
    let number = draft.pieces.states.len();
    let name = format!("s{number}");
    let (per, key, header) = match rng.below(5) {
        0..3 => (Per::Flow, "flow", Header::Inet),
        3 => (Per::Biflow, "biflow", Header::Inet),
        _ => (Per::Fields(vec![Field::IpSrc]), "(ip.src)", Header::Ip4),
    };
    let width = *rng.pick(&[4, 8, 64]);
    let idle =
        if rng.one_in(2) { format!("idle {}, ", types::duration(rng)) } else { String::new() };
    let capacity = rng.range(2, 20);
    draft.pieces.states.push(State {
        name: name.clone(),
        per,
        slots: vec![
            ("n".to_owned(), Ty::uint(width)),
            ("bytes".to_owned(), SIZE),
            ("at".to_owned(), TIME),
        ],
        default: true,
        tied: false,
        refuses: false,
        text: format!(
            "state {name}: {{ n: u{width}, bytes: size, at: time }} per {key} = \
             {{ n: 0, bytes: 0, at: 0 }}, {idle}capacity {capacity}, full evict_oldest;"
        ),
    });
    let mut used = test(String::new(), &[header]);
    // Any row behind the first one needs packets too.
    used.first = rng.one_in(2);
    match rng.below(3) {
        0 => used.test = format!("{name}.n < {}", rng.range(3, 15)),
        _ if used.first => used.test = format!("pkt.len > {}", rng.range(42, 80)),
        _ => {}
    }
    let lines = [
        format!("{name}.n += {};", rng.range(1, 2)),
        format!("{name}.n = wrapping({name}.n + 1);"),
        format!("{name}.bytes += size(pkt.len);"),
        format!("{name}.bytes = 2 * {name}.bytes;"),
        format!("{name}.at = pkt.time;"),
        format!("{name}.at = pkt.time + 5 ms;"),
        format!("if {name}.bytes > {} {{ drop \"many bytes\"; }}", rng.range(200, 3000)),
    ];
    let sets: [&[usize]; 7] = [&[0], &[1], &[0, 2, 4], &[2, 4], &[0, 6], &[2, 3, 5], &[1, 4]];
    let kinds = rng.pick(&sets);
    used.lines.extend(kinds.iter().map(|kind| lines[*kind].clone()));
    draft.uses.push(used);
}

/// Adds a pool and a request for the packet's own port from it.
pub(super) fn wanted_member(rng: &mut Rng, draft: &mut Draft) {
    let value = format!("{{ 1..{}, 5000, 8080 }}", rng.range(100, 9000));
    let pool = add(draft, ParamKind::Pool, "pool<port>", value, rng.one_in(2));
    let number = draft.pieces.params.len();
    let mut used = test(String::new(), &[Header::L4]);
    used.lines.push(format!("let w{number} = take({pool}, l4.sport) else drop \"taken\";"));
    used.lines.push(format!("l4.dport = w{number};"));
    draft.uses.push(used);
    let mut used = test(String::new(), &[Header::L4]);
    used.lines.push(format!("release({pool}, l4.dport);"));
    draft.uses.push(used);
}

/// Uses random numbers from the seeded generator, or the payload's checksum.
pub(super) fn drawn(rng: &mut Rng, draft: &mut Draft) {
    let mut used: Use = test(String::new(), &[Header::Ip4]);
    if rng.one_in(2) {
        used.lines.push(format!("ip.id = u16(random({}));", rng.range(0, 70_000)));
    } else {
        used.lines.push("ip.id = checksum();".to_owned());
    }
    draft.uses.push(used);
}

/// Reads and writes bytes of the payload: in a predicate, behind an `else`, or behind a test of the
/// same bytes; or replaces them. Offsets are constant, or depend on a field.
pub(super) fn payload(rng: &mut Rng, draft: &mut Draft) {
    let (ty, bytes) = *rng.pick(&[("u8", 1), ("u16", 2), ("port", 2), ("u24", 3), ("u64", 8)]);
    let offset = rng.below(12);
    match rng.below(8) {
        7 => {
            let old = *rng.pick(&["0", "2", "ip.ttl % 8", "size(pkt.payload_len) - 3 B"]);
            let new = *rng.pick(&["", "x", "GET /", "17 bytes of text!"]);
            let mut used = test(String::new(), &[Header::L4, Header::Ip4]);
            used.lines.push(format!(
                "bytes<32> at payload + {offset} for {old} = \"{new}\" else drop \"short\";"
            ));
            draft.uses.push(used);
        }
        6 => {
            let len = *rng.pick(&["3", "ip.ttl % 20", "size(pkt.payload_len) - 2 B"]);
            let mut used = test(String::new(), &[Header::Ip4]);
            used.lines.push(format!(
                "let bytes{offset} = bytes<16> at payload + {offset} for {len} else drop \"short\";"
            ));
            used.lines.push(format!(
                "if bytes{offset} == \"\\u{{0}}\\u{{0}}\\u{{0}}\" {{ drop \"zeros\"; }}"
            ));
            used.lines.push(format!("ip.id = u16(bytes{offset}.len);"));
            draft.uses.push(used);
        }
        4 => {
            let text = *rng.pick(&["GET", "\\u{0}", "\\u{0}\\u{0}\\u{0}\\u{0}", "evil"]);
            let mut used = test(format!("\"{text}\" at payload + {offset}"), &[]);
            used.headers.push(Header::L4);
            used.lines
                .push(format!("{ty} at payload + {offset} = {ty}(l4.sport) else drop \"short\";"));
            draft.uses.push(used);
        }
        5 => {
            let kind = rng.pick(&[2, 3, 5, 8]);
            let number = format!("{ty} at tcp.option({kind}) + {}", rng.below(3));
            let mut used = test(format!("{number} > 0"), &[Header::Tcp]);
            used.lines.push(format!("{number} = {ty}(tcp.window) else drop \"no option\";"));
            draft.uses.push(used);
        }
        0 => {
            let (mask, value) = (rng.range(1, 7), rng.range(0, 1));
            let number = format!("u8 at payload + {offset}");
            draft.uses.push(test(format!("{number} & {mask} == {value}"), &[]));
        }
        1 => {
            let mut used = test(String::new(), &[Header::Ip4]);
            let at = *rng.pick(&["ip.ttl % 16", "ip.id", "size(pkt.payload_len) - 2 B"]);
            used.lines.push(format!("let n{offset} = {ty} at payload + {at} else drop \"short\";"));
            used.lines.push(format!("ip.id = u16(n{offset});"));
            draft.uses.push(used);
        }
        2 => {
            let mut used = test(format!("u8 at payload + {} > 100", offset + bytes - 1), &[]);
            used.headers.push(Header::Ip4);
            used.lines.push(format!("ip.tos = u8({ty} at payload + {offset});"));
            draft.uses.push(used);
        }
        _ => {
            let mut used = test(String::new(), &[Header::L4]);
            let port = *rng.pick(&["l4.dport", "l4.sport"]);
            used.lines
                .push(format!("let m{offset} = u16 at payload + {offset} else drop \"short\";"));
            used.lines
                .push(format!("{ty} at payload + {offset} = {ty}({port}) else drop \"short\";"));
            used.lines.push(format!("{port} = m{offset};"));
            draft.uses.push(used);
        }
    }
}
