//! Generates state tables of all granularities and options.

use crate::generate::Rng;
use crate::generate::program::function::draft::{Draft, Use, default_of, test};
use crate::generate::program::pieces::{Per, State};
use crate::generate::program::types::{self, BOOL, SCALARS, U32};
use braid_ir::model::Ty;
use braid_packet::{Field, Header};

/// The lists of fields that make up keys.
const KEYS: &[&[Field]] = &[
    &[Field::IpSrc],
    &[Field::IpDst, Field::L4Dport],
    &[Field::InetProto, Field::InetSport],
    &[Field::EthSrc],
    &[Field::Ip6Src, Field::Ip6Dst],
    &[Field::TcpFlags],
];

/// Adds a table, with a row that tests it and a row that assigns it.
pub(super) fn table(rng: &mut Rng, draft: &mut Draft) {
    let number = draft.pieces.states.len();
    let name = format!("s{number}");
    let keys = *rng.pick(KEYS);
    let per = match rng.below(8) {
        0 => Per::Global,
        1 | 2 => Per::Flow,
        3 | 4 => Per::Biflow,
        5 => Per::Types(keys.iter().map(|field| types::of_field(*field)).collect()),
        _ => Per::Fields(keys.to_vec()),
    };
    let slots = slots(rng);
    let default = per == Per::Global || rng.one_in(2);
    let parent = draft.pieces.states.iter().rposition(|state| {
        matches!(state.per, Per::Flow | Per::Biflow | Per::Fields(_)) && !state.tied
    });
    let parent = parent.filter(|_| !matches!(per, Per::Global) && rng.one_in(4));
    let owner = parent.map(|at| draft.pieces.states[at].clone());
    let text = declaration(rng, &name, &per, &slots, default, owner.as_ref());
    let needs = match &per {
        Per::Types(_) => keys.iter().map(|field| field.info().header).collect(),
        per => per.needs(),
    };
    let refuses = !text.contains("evict_oldest");
    let state = State { name, per, slots, default, tied: parent.is_some(), refuses, text };
    add_rows(rng, draft, &state, number, parent, &needs, keys);
    if state.per != Per::Global && rng.one_in(3) {
        draft.expire.push((state.name.clone(), Vec::new()));
    }
    draft.pieces.states.push(state);
}

fn slots(rng: &mut Rng) -> Vec<(String, Ty)> {
    match rng.below(6) {
        0..2 => vec![(String::new(), BOOL)],
        2 => vec![(String::new(), U32)],
        3 | 4 => vec![(String::new(), *rng.pick(SCALARS))],
        _ => vec![("a".to_owned(), *rng.pick(SCALARS)), ("b".to_owned(), *rng.pick(SCALARS))],
    }
}

fn declaration(
    rng: &mut Rng,
    name: &str,
    per: &Per,
    slots: &[(String, Ty)],
    default: bool,
    parent: Option<&State>,
) -> String {
    let ty = match slots {
        [(slot, ty)] if slot.is_empty() => types::name(*ty),
        slots => {
            let parts: Vec<_> =
                slots.iter().map(|(slot, ty)| format!("{slot}: {}", types::name(*ty))).collect();
            format!("{{ {} }}", parts.join(", "))
        }
    };
    let key = match per {
        Per::Global => "global".to_owned(),
        Per::Flow => "per flow".to_owned(),
        Per::Biflow => "per biflow".to_owned(),
        Per::Fields(fields) => {
            let names: Vec<_> = fields.iter().map(|field| field.info().name).collect();
            format!("per ({})", names.join(", "))
        }
        Per::Types(types) => {
            let names: Vec<_> = types.iter().map(|ty| types::name(*ty)).collect();
            format!("per ({})", names.join(", "))
        }
    };
    let mut text = format!("state {name}: {ty} {key}");
    if default {
        let values: Vec<_> = slots
            .iter()
            .map(|(slot, ty)| {
                let value = default_of(rng, *ty);
                if slot.is_empty() { value } else { format!("{slot}: {value}") }
            })
            .collect();
        text += &match slots {
            [(slot, _)] if slot.is_empty() => format!(" = {}", values[0]),
            _ => format!(" = {{ {} }}", values.join(", ")),
        };
    }
    if *per != Per::Global {
        text += &options(rng, parent);
    }
    text + ";"
}

fn options(rng: &mut Rng, parent: Option<&State>) -> String {
    let mut text = String::new();
    match parent {
        Some(parent) => text += &format!(", lives with {}", parent.name),
        None => {
            if rng.one_in(2) {
                text += &format!(", idle {}", types::duration(rng));
            }
            if rng.one_in(4) {
                text += &format!(", hard {}", types::duration(rng));
            }
            if rng.one_in(3) {
                let tick = rng.pick(&["1 ms", "7 ms", "1 s"]);
                text += &format!(", tick {tick}");
            }
        }
    }
    if rng.one_in(2) {
        text += &format!(", capacity {}", rng.range(1, 9));
    }
    if rng.one_in(2) {
        text += if rng.one_in(2) { ", full refuse" } else { ", full evict_oldest" };
    }
    // Tables that live together are sharded together.
    let sharded = parent.map_or(rng.one_in(8), |parent| parent.text.contains(", sharded"));
    if sharded {
        text += ", sharded";
    }
    text
}

/// Adds the rows that use a table.
fn add_rows(
    rng: &mut Rng,
    draft: &mut Draft,
    state: &State,
    number: usize,
    parent: Option<usize>,
    needs: &[Header],
    keys: &[Field],
) {
    let name = &state.name;
    let key: Vec<_> = keys.iter().map(|field| field.info().name).collect();
    let place = match state.per {
        Per::Types(_) => format!("{name}[{}]", key.join(", ")),
        _ => name.clone(),
    };
    let tested = match (state.scalar(), state.default) {
        (Some(ty), true) if ty == BOOL => place,
        (Some(ty), true) => format!("{place} == {}", types::literal(rng, ty)),
        (None, true) if state.per == Per::Global => {
            let (slot, ty) = &state.slots[0];
            match *ty == BOOL {
                true => format!("{place}.{slot}"),
                false => format!("{place}.{slot} != {}", types::literal(rng, *ty)),
            }
        }
        _ => format!("exists {place}"),
    };
    let exists = (!state.default && !matches!(state.per, Per::Types(_))).then_some(number);
    draft.uses.push(Use { exists, ..test(tested, needs) });
    further_rows(rng, draft, state);
    let mut assigning = test(String::new(), needs);
    if let Some(parent) = parent {
        assigning.headers.extend(draft.pieces.states[parent].per.needs());
        assigning.assigns.push(parent);
    }
    assigning.assigns.push(number);
    if state.per == Per::Global {
        assigning.headers.push(Header::Inet);
    }
    draft.uses.push(assigning);
}

/// Adds rows with the keys of quoted and of reversed packets, and with parts of records.
fn further_rows(rng: &mut Rng, draft: &mut Draft, state: &State) {
    let name = &state.name;
    if matches!(state.per, Per::Flow | Per::Biflow) && rng.one_in(2) {
        draft.uses.push(test(format!("exists {name}[quoted]"), &[Header::Quoted4]));
    }
    if state.per == Per::Flow && rng.one_in(2) {
        draft.uses.push(test(format!("exists {name}[reverse]"), &[Header::Inet]));
    }
    if let [(first, ty), _] = &state.slots[..]
        && state.default
        && !matches!(state.per, Per::Types(_))
    {
        let mut used = test(String::new(), &state.per.needs());
        used.headers.push(Header::Inet);
        used.lines.push(format!("{name}.{first} = {};", types::literal(rng, *ty)));
        draft.uses.push(used);
    }
}
