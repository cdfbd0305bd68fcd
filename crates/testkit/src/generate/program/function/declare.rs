//! Generates declarations, each with the rows that use it.

pub(super) mod bytes;
pub(in crate::generate::program) mod events;
pub(in crate::generate::program) mod files;
mod more;
mod state;

use super::draft::{Draft, Use, add, test};
use crate::generate::Rng;
use crate::generate::program::pieces::{Event, ParamKind, Per, State};
use crate::generate::program::types::{self, ADDR, IP4, IP6, PORT, SCALARS, SIZE, U32, literal};
use braid_ir::model::{Kind, Ty};
use braid_packet::Header;

/// Adds a random declaration.
pub(super) fn something(rng: &mut Rng, draft: &mut Draft, function: usize) {
    match rng.below(30) {
        0 | 1 => scalar(rng, draft),
        2 => set(rng, draft),
        3 => rules(rng, draft, function),
        4 => routes(rng, draft, function),
        5 => patterns(rng, draft, function),
        6 => pool(rng, draft),
        7 => list(rng, draft),
        8 => backends(rng, draft),
        9 => event(rng, draft, function),
        10 => queue(draft),
        11 => timer(rng, draft),
        12 => tag(rng, draft),
        13 => port(draft),
        14 => more::function(rng, draft),
        15 => more::action(rng, draft),
        16 => more::bucket(rng, draft),
        17 => more::wanted_member(rng, draft),
        18 => more::drawn(rng, draft),
        19 | 20 => more::counter(rng, draft),
        21 => more::payload(rng, draft),
        22 => strings(rng, draft, function),
        23 => keys(rng, draft, function),
        _ => state::table(rng, draft),
    }
}

fn scalar(rng: &mut Rng, draft: &mut Draft) {
    let (ty, field, headers): (Ty, &str, &[Header]) = *rng.pick(&[
        (IP4, "ip.dst", &[Header::Ip4][..]),
        (IP4, "ip.src", &[Header::Ip4]),
        (IP6, "ip6.dst", &[Header::Ip6]),
        (ADDR, "inet.dst", &[Header::Inet]),
        (PORT, "l4.dport", &[Header::L4]),
        (SIZE, "pkt.len", &[]),
        (Ty { width: 8, kind: Kind::Uint }, "inet.ttl", &[Header::Inet]),
    ]);
    let value = literal(rng, ty);
    let default = rng.one_in(2);
    let name = add(draft, ParamKind::Scalar(ty), &types::name(ty), value, default);
    let op = if matches!(ty.kind, Kind::Ip4 | Kind::Ip6 | Kind::Addr) {
        *rng.pick(&["==", "!="])
    } else {
        *rng.pick(&["==", "<", ">=", "!="])
    };
    draft.uses.push(test(format!("{field} {op} {name}"), headers));
}

/// Adds a limit on packets that workers may divide, and a count that no other rows use.
pub(super) fn limit(rng: &mut Rng, draft: &mut Draft) {
    let value = rng.range(2, 40).to_string();
    let name = add(draft, ParamKind::Scalar(U32), "u32", value, rng.one_in(2));
    let per = *rng.pick(&["global", "global", "per inet.src", "per l4.dport"]);
    draft.own.push(format!("state counted: u32 {per} = 0, portions ({name});"));
    let mut used = test(String::new(), &[Header::Inet, Header::L4]);
    used.lines.push("counted += 1;".to_owned());
    used.lines.push(format!("if counted > {name} {{ drop \"limit\"; }}"));
    draft.uses.push(used);
}

fn set(rng: &mut Rng, draft: &mut Draft) {
    if rng.one_in(2) {
        let low = rng.range(1, 2000);
        let value = format!("{{ {low}..{}, 5000, 8080 }}", low + rng.range(0, 500));
        let name = add(draft, ParamKind::Set(PORT), "set<port>", value, rng.one_in(2));
        draft.uses.push(test(format!("l4.dport in {name}"), &[Header::L4]));
    } else if rng.one_in(2) {
        let value = types::addresses(rng);
        let name = add(draft, ParamKind::Set(ADDR), "set<addr>", value, false);
        draft.uses.push(test(format!("inet.src in {name}"), &[Header::Inet]));
    } else {
        let value = format!("{{ {}, {} }}", types::prefix4(rng), types::prefix4(rng));
        let name = add(draft, ParamKind::Set(IP4), "prefixes", value, false);
        let (field, header) = *rng.pick(&[("ip.src", Header::Ip4), ("inet.src", Header::Inet)]);
        draft.uses.push(test(format!("{field} in {name}"), &[header]));
    }
}

fn rules(rng: &mut Rng, draft: &mut Draft, function: usize) {
    let file = format!("rules{function}_{}.txt", draft.files.len());
    draft.files.insert(file.clone(), files::rules(rng));
    let name = add(draft, ParamKind::Rules, "rules", format!("rules({file:?})"), false);
    let mut used = test(format!("packet in {name}"), &[Header::Inet]);
    if rng.one_in(3) {
        used.lines.push(format!("inet.ttl = u8(rule(packet, {name}));"));
    }
    draft.uses.push(used);
}

fn routes(rng: &mut Rng, draft: &mut Draft, function: usize) {
    let file = format!("routes{function}_{}.txt", draft.files.len());
    draft.files.insert(file.clone(), files::routes(rng));
    let name = add(draft, ParamKind::Routes, "routes", format!("routes({file:?})"), false);
    let mut used = test(String::new(), &[Header::Ip4]);
    used.lines.push(format!("let hop = route(ip.dst, {name}) else drop \"no route\";"));
    used.lines.push("ip.tos = u8(hop);".to_owned());
    draft.uses.push(used);
}

fn patterns(rng: &mut Rng, draft: &mut Draft, function: usize) {
    let file = format!("patterns{function}_{}.txt", draft.files.len());
    draft.files.insert(file.clone(), files::patterns(rng));
    let name = add(draft, ParamKind::Patterns, "patterns", format!("patterns({file:?})"), false);
    if let Some(used) = search(&mut Rng::new(rng.clone().bits() ^ 0x7365_6172_6368), &name) {
        draft.uses.push(used);
    }
    if rng.one_in(3) {
        draft.uses.push(test(format!("payload matches {name}"), &[]));
    } else if rng.one_in(2) {
        let mut used = test(String::new(), &[Header::Ip4]);
        used.lines.push(format!("let place = find(payload, {name}) else drop \"no place\";"));
        used.lines.push("ip.id = u16(place.start * 256 + place.end);".to_owned());
        used.lines
            .push("if place.number == 1 { ip.tos = u8(place.end - place.start); }".to_owned());
        draft.uses.push(used);
    } else {
        let mut used = test(String::new(), &[Header::Ip4]);
        used.lines.push(format!("let found = which(payload, {name}) else drop \"no pattern\";"));
        used.lines.push("ip.id = u16(found);".to_owned());
        draft.uses.push(used);
    }
}

/// A search of a part of the payload, or of a string, for patterns of a parameter or for written
/// ones.
fn search(rng: &mut Rng, name: &str) -> Option<Use> {
    if rng.one_in(2) {
        return None;
    }
    let written = "{ \"last\", regex(\"[a-c]+x\"), nocase(\"EVIL\"), \"GET\" }";
    let set = if rng.one_in(2) { name } else { written };
    let place = *rng.pick(&[
        "payload[1..9]",
        "payload[0..ip.ttl & 15]",
        "payload[ip.ttl & 3..65_535]",
        "bytes<32> at payload + 1 for 5",
    ]);
    if rng.one_in(2) {
        let condition = format!("{}{place} matches {set}", rng.pick(&["", "not "]));
        return Some(test(condition, &[Header::Ip4]));
    }
    let mut used = test(String::new(), &[Header::Ip4]);
    let place = match place.starts_with("bytes") {
        true => {
            used.lines.push(format!("let text = {place} else drop \"no text\";"));
            "text"
        }
        false => place,
    };
    used.lines.push(format!("let found = find({place}, {set}) else drop \"no place\";"));
    used.lines.push("ip.id = u16(found.start * 256 + found.end + found.number);".to_owned());
    Some(used)
}

/// Adds secret keys, and a row that encrypts or decrypts the payload with one of them.
fn keys(rng: &mut Rng, draft: &mut Draft, function: usize) {
    let file = format!("keys{function}_{}.txt", draft.files.len());
    draft.files.insert(file.clone(), files::keys());
    let name = add(draft, ParamKind::Keys, "keys", format!("keys({file:?})"), false);
    let (number, offset) = (rng.range(1, 3), rng.pick(&["0", "1", "4", "ip.ttl % 8"]));
    let encrypt = format!("encrypt({name}, {number}, u64(ip.id), {offset}) else drop \"no room\";");
    let decrypt = format!("decrypt({name}, {number}, {offset}) else drop \"forged\";");
    let mut used = test(String::new(), &[Header::L4, Header::Ip4]);
    if rng.one_in(2) {
        used.lines.push(encrypt);
        used.lines.extend(rng.one_in(2).then_some(decrypt));
    } else {
        used.lines.push(decrypt);
    }
    draft.uses.push(used);
}

/// Adds a set of strings or of host names, in a file or written down, and a test whether it has a
/// string of the payload.
fn strings(rng: &mut Rng, draft: &mut Draft, function: usize) {
    let of_hosts = rng.one_in(2);
    let (ty, kind) = if of_hosts { ("hosts", "hosts") } else { ("set<bytes<32>>", "strings") };
    let value = if rng.one_in(2) {
        let file = format!("{kind}{function}_{}.txt", draft.files.len());
        draft.files.insert(file.clone(), files::strings(rng, of_hosts));
        format!("{kind}({file:?})")
    } else {
        "{ \"www.example.org\", \"last\" }".to_owned()
    };
    let name = add(draft, ParamKind::Strings, ty, value, false);
    let at = *rng.pick(&["payload", "payload", "payload + 1"]);
    let len = *rng.pick(&["pkt.payload_len", "size(pkt.payload_len) - 1 B", "4"]);
    let string = format!("bytes<32> at {at} for {len}");
    if rng.one_in(2) {
        draft.uses.push(test(format!("{string} in {name}"), &[]));
    } else {
        let number = draft.pieces.params.len();
        let mut used = test(String::new(), &[Header::Ip4]);
        used.lines.push(format!("let word{number} = {string} else drop \"no string\";"));
        used.lines.push(format!("if lowercase(word{number}) in {name} {{ drop \"known\"; }}"));
        used.lines.push(format!("if word{number} in {{ \"GET /\", \"\" }} {{ ip.tos = 1; }}"));
        draft.uses.push(used);
    }
}

/// Adds a pool with a mapping, like that of a NAT. A flow takes a value when it starts, and the
/// value is released when the flow ends.
fn pool(rng: &mut Rng, draft: &mut Draft) {
    let order = *rng.pick(&["", ", lowest", ", fifo", ", random"]);
    let low = rng.range(1, 3) * 1000;
    let value = format!("{low}..{}", low + rng.range(1, 6));
    let name = add(draft, ParamKind::Pool, &format!("pool<port{order}>"), value, rng.one_in(3));
    let number = draft.pieces.states.len();
    let state = format!("s{number}");
    let idle = types::duration(rng);
    let capacity = rng.range(1, 8);
    let full = if rng.one_in(2) { "refuse" } else { "evict_oldest" };
    draft.pieces.states.push(State {
        name: state.clone(),
        per: Per::Flow,
        slots: vec![(String::new(), PORT)],
        default: false,
        tied: false,
        refuses: full == "refuse",
        text: format!(
            "state {state}: port per flow, idle {idle}, capacity {capacity}, full {full};"
        ),
    });
    let port = format!("taken{number}");
    draft.uses.push(Use {
        test: format!("exists {state}"),
        headers: vec![Header::L4],
        lines: vec![format!("l4.sport = {state};")],
        exists: Some(number),
        ..Use::default()
    });
    let mut lines = vec![format!("let {port} = take({name}) else drop \"pool empty\";")];
    if full == "refuse" {
        lines.push(format!("{state} = {port} else {{"));
        lines.push(format!("release({name}, {port});"));
        lines.extend(["drop \"table full\";".to_owned(), "}".to_owned()]);
    } else {
        lines.push(format!("{state} = {port};"));
    }
    lines.push(format!("l4.sport = {port};"));
    draft.uses.push(Use { headers: vec![Header::L4], lines, ..Use::default() });
    draft.expire.push((state.clone(), vec![format!("release({name}, {state});")]));
}

fn list(rng: &mut Rng, draft: &mut Draft) {
    let value = format!("[{}, {}, 10.9.9.9]", types::ip4(rng), types::ip4(rng));
    let name = add(draft, ParamKind::List, "list<ip4>", value, false);
    if rng.one_in(2) {
        draft.uses.push(test(format!("ip.dst in {name}"), &[Header::Ip4]));
    } else {
        let mut used = test(String::new(), &[Header::Ip4, Header::L4]);
        // Sometimes the index is past the end, which is a fault.
        let over = if rng.one_in(4) { " + 1" } else { "" };
        used.lines.push(format!("ip.dst = {name}[hash(biflow) % len({name}){over}];"));
        draft.uses.push(used);
    }
}

fn backends(rng: &mut Rng, draft: &mut Draft) {
    let value = "[10.7.0.1, 10.7.0.2, 10.7.0.3]".to_owned();
    let name = add(draft, ParamKind::Backends, "backends<ip4>", value, false);
    let how = *rng.pick(&["maglev", "pick"]);
    let key = *rng.pick(&["hash(biflow)", "hash(ip.src)", "hash(flow)"]);
    let number = draft.pieces.params.len();
    draft.uses.push(Use {
        headers: vec![Header::Ip4],
        lines: vec![
            format!("let b{number} = {how}({name}, {key}) else drop \"no backend\";"),
            format!("ip.dst = {name}[b{number}];"),
        ],
        ..Use::default()
    });
}

fn event(rng: &mut Rng, draft: &mut Draft, function: usize) {
    let name = format!("EVENT_{function}_{}", draft.pieces.events.len());
    let mut fields =
        vec![("length".to_owned(), Some(SIZE)), ("what".to_owned(), Some(*rng.pick(SCALARS)))];
    if rng.one_in(2) {
        fields.push(("said".to_owned(), None));
        if draft.param(ParamKind::Text).is_none() && draft.pieces.events.is_empty() {
            add(draft, ParamKind::Text, "string", "\"a \\\"name\\\"\"".to_owned(), rng.one_in(2));
        }
    }
    draft.pieces.events.push(Event { name, fields });
    // Makes one row for each event so far, so that each event is used whichever one a row takes.
    let all = draft.pieces.events.len();
    if all == 1 {
        draft.uses.push(Use { headers: vec![Header::Ip4], emits: true, ..Use::default() });
    } else {
        draft.pieces.events.pop();
    }
}

fn queue(draft: &mut Draft) {
    if draft.queue {
        return;
    }
    draft.queue = true;
    let mut used = test(crate::generate::program::pred::HELD.to_owned(), &[]);
    used.first = true;
    draft.uses.push(used);
    let mut used = test(String::new(), &[Header::L4]);
    used.lines.push("if pkt.len > 80 {".to_owned());
    used.lines.push("hold waiting for 5 ms else drop \"queue full\";".to_owned());
    used.lines.push("}".to_owned());
    draft.uses.push(used);
}

/// Adds a number that a timer changes.
fn timer(rng: &mut Rng, draft: &mut Draft) {
    let number = draft.pieces.states.len();
    let name = format!("s{number}");
    draft.pieces.states.push(State {
        name: name.clone(),
        per: Per::Global,
        slots: vec![(String::new(), U32)],
        default: true,
        tied: false,
        refuses: false,
        text: format!("state {name}: u32 global = {};", rng.range(0, 20)),
    });
    draft.timers.push(types::duration(rng));
    let mut used = test(format!("{name} > {}", rng.range(1, 9)), &[]);
    used.lines.push(format!("{name} -= 1;"));
    draft.uses.push(used);
}

/// Adds a tag. Functions share a tag by its name.
fn tag(rng: &mut Rng, draft: &mut Draft) {
    let (name, ty) = if rng.one_in(2) { ("colour", Ty::uint(8)) } else { ("mark", U32) };
    if draft.pieces.tags.iter().any(|(known, _)| known == name) {
        return;
    }
    draft.pieces.tags.push((name.to_owned(), ty));
    let mut used = test(format!("{name} == {}", rng.range(1, 3)), &[]);
    used.lines.push(format!("{name} += 1;"));
    draft.uses.push(used);
}

fn port(draft: &mut Draft) {
    if draft.pieces.ports.len() >= 2 {
        return;
    }
    let name = format!("side{}", draft.pieces.ports.len());
    let mut used = test(String::new(), &[Header::L4]);
    used.lines.push("if l4.dport > 8000 {".to_owned());
    used.lines.push(format!("output {name};"));
    used.lines.push("}".to_owned());
    draft.pieces.ports.push(name);
    draft.uses.push(used);
}
