//! Adds events between functions. There are three families of event types. A function takes events
//! of one family at most, and publishes events of later families only, so that no events go round
//! in a circle.

use super::super::draft::{Draft, test};
use crate::generate::Rng;
use braid_packet::Header;

/// The number of families.
const FAMILIES: usize = 3;
/// How much the types of a family have in addition to their ancestors.
const DEPTHS: usize = 3;

/// The declarations of all types.
pub(in crate::generate::program) fn types() -> String {
    let family = |family: usize| {
        format!(
            "event FAMILY{family} extends EVENT {{ src: addr, size: u16 }}
event FAMILY{family}_1 extends FAMILY{family} {{ port: u16 }}
event FAMILY{family}_2 extends FAMILY{family}_1 {{ what: string, last: bool }}
"
        )
    };
    (0..FAMILIES).map(family).collect()
}

fn name(family: usize, depth: usize) -> String {
    match depth {
        0 => format!("FAMILY{family}"),
        depth => format!("FAMILY{family}_{depth}"),
    }
}

/// Makes a function publish events for others, take events, or both.
pub(in crate::generate::program::function) fn between(rng: &mut Rng, draft: &mut Draft) {
    // Many functions take the first families, so that events often have several handlers.
    let taken = (!rng.one_in(3)).then(|| *rng.pick(&[0, 0, 0, 1, 1, 2]));
    let later = taken.map_or(0, |taken| taken + 1);
    let publishes = later < FAMILIES && (taken.is_none() || !rng.one_in(3));
    if publishes {
        for _ in 0..1 + rng.below(2) {
            publish(rng, draft, later);
        }
    }
    if let Some(family) = taken {
        take(rng, draft, family, publishes.then_some(later));
    }
}

/// A statement that publishes an event of a later family.
fn emit(rng: &mut Rng, later: usize, src: &str, size: &str) -> String {
    let family = if rng.one_in(3) { later + rng.below(FAMILIES - later) } else { later };
    let depth = rng.below(DEPTHS);
    let more = ["", ", port: 7", ", port: 9, what: \"more\", last: true"][depth];
    format!("emit {} {{ src: {src}, size: {size}{more} }};", name(family, depth))
}

fn publish(rng: &mut Rng, draft: &mut Draft, later: usize) {
    match rng.below(7) {
        0 => {
            let (src, size) = (rng.range(1, 4).to_string(), rng.below(3).to_string());
            let line = emit(rng, later, &src, &size);
            draft.every.push(("70 ms".to_owned(), line));
        }
        1 => {
            let state = format!("aging{}", draft.own.len());
            let capacity = rng.range(1, 4);
            draft.own.push(format!(
                "state {state}: u16 per (u128) = 0, idle 40 ms, tick 1 ms, capacity {capacity}, full evict_oldest;"
            ));
            let line = emit(rng, later, "key[0]", &state);
            draft.expire.push((state.clone(), vec![line]));
            let mut used = test(String::new(), &[Header::Inet]);
            used.lines.push(format!("{state}[inet.src] += 1;"));
            draft.uses.push(used);
        }
        2 | 3 => {
            // The program goes on with the entry that it has found before the event.
            let number = draft.own.len();
            draft.own.push(format!(
                "state base{number}: u8 per inet.src = 0, idle 50 ms, capacity 4, full evict_oldest;
state tied{number}: u8 per inet.dst = 0, lives with base{number}, capacity 4, full evict_oldest;"
            ));
            let mut used = test(String::new(), &[Header::Inet]);
            used.lines.push(format!("base{number} += 1;"));
            used.lines.push(emit(rng, later, "inet.src", "8"));
            used.lines.push(format!("tied{number} = base{number};"));
            draft.uses.push(used);
        }
        _ => {
            let mut used = test(String::new(), &[Header::Inet]);
            let src = *rng.pick(&["inet.src", "inet.dst"]);
            let size = *rng.pick(&["u16(pkt.len)", "5", "u16(inet.proto)"]);
            let line = emit(rng, later, src, size);
            let line = match rng.below(3) {
                0 => line,
                1 => format!("if inet.ttl > {} {{ {line} }}", rng.below(70)),
                _ => format!("{line} {}", emit(rng, later, "inet.src", "u16(pkt.payload_len)")),
            };
            used.lines.push(line);
            draft.uses.push(used);
        }
    }
}

/// Takes a family of events: with one handler, or with two for types that extend each other.
fn take(rng: &mut Rng, draft: &mut Draft, family: usize, later: Option<usize>) {
    let full = *rng.pick(&["", ", full evict_oldest"]);
    let time = *rng.pick(&["", ", idle 30 ms", ", hard 50 ms, tick 1 ms"]);
    let capacity = rng.range(1, 5);
    draft.own.push(format!(
        "state taken: u32 per (u128) = 0{time}, capacity {capacity}{full};
state sizes: {{ last: u16, sum: u32 }} per (u128), idle 60 ms, capacity 3, full evict_oldest;
state noted: u32 global = 0;"
    ));
    // Engines run the handlers of such a function outside of programs.
    let ties = rng.one_in(10);
    if ties {
        draft.own.push(
            "state bound: u8 per (u128) = 0, lives with sizes, capacity 3, full evict_oldest;"
                .to_owned(),
        );
    }
    let depth = rng.below(DEPTHS);
    handler(rng, draft, &name(family, depth), later, ties);
    if depth > 0 && rng.one_in(2) {
        handler(rng, draft, &name(family, depth - 1), later, ties);
    }
    let mut used = test(format!("taken[inet.src] > {}", rng.below(3)), &[Header::Inet]);
    used.lines.push(format!("if taken[inet.src] > {} {{ drop \"taken\"; }}", rng.range(2, 9)));
    draft.uses.push(used);
    let mut used = test("exists sizes[inet.src]".to_owned(), &[Header::Inet]);
    used.lines.push("inet.ttl = u8(sizes[inet.src].sum);".to_owned());
    used.lines.push("if noted > 20 { noted = 0; }".to_owned());
    if ties {
        used.lines.push("if bound[inet.src] > 3 { drop \"bound\"; }".to_owned());
    }
    draft.uses.push(used);
}

fn handler(rng: &mut Rng, draft: &mut Draft, event: &str, later: Option<usize>, ties: bool) {
    let mut lines = Vec::new();
    if ties {
        lines.push("if exists sizes[event.src] { bound[event.src] += 1; }".to_owned());
    }
    for _ in 0..1 + rng.below(4) {
        lines.push(match rng.below(11) {
            0 => "taken[event.src] = u32(event.size);".to_owned(),
            1 => format!("if taken[event.src] > {} {{ delete taken[event.src]; }}", rng.below(4)),
            2 => "sizes[event.src] = { last: event.size, sum: u32(event.size) };".to_owned(),
            3 => "if exists sizes[event.src] { sizes[event.src].sum += 1; }".to_owned(),
            // The size may be 0: a fault.
            4 => "noted += u32(400 / event.size);".to_owned(),
            5 => "noted = u32(random(50));".to_owned(),
            6..9 if let Some(later) = later => emit(rng, later, "event.src", "event.size"),
            9 if let Some(later) = later => {
                format!("if noted > 3 {{ {} }}", emit(rng, later, "u128(noted)", "3"))
            }
            _ => "taken[event.src] += 1; noted += 1;".to_owned(),
        });
    }
    draft.handlers.push((event.to_owned(), lines));
}
