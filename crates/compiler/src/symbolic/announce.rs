//! The consequences of assigning a field that announces headers, such as the EtherType or the type
//! of an ICMP message.

use super::headers::listed;
use super::state::State;
use braid_ir::value::IntervalSet;
use braid_packet::field::Where;
use braid_packet::{FIELDS, Field, Header};

/// Updates the knowledge about headers before a field that announces headers is assigned a value in
/// `range`.
pub(super) fn decide_headers(state: &mut State, cell: Field, range: &IntervalSet) {
    let decided = cell.decided_bits();
    for header in listed(decided) {
        let by = header.info().follows.iter().filter(|(field, _)| field.owner() == cell);
        let values = by.flat_map(|(_, values)| *values).map(|value| (*value).into());
        let values = IntervalSet::new(values.map(|value| (value, value)));
        if values.is_empty() || !is_possible(state, header, decided) {
            continue;
        }
        let was = state.headers.has(header);
        // The header, and the headers that come and go with it.
        let with: Vec<Header> = listed(decided & family(header))
            .filter(|one| is_possible(state, *one, decided))
            .collect();
        // The program relies on the presence of these headers in the shape.
        for one in &with {
            let _ = state.headers.has(*one);
        }
        let hit = range.intersection(&values);
        let is = match hit == *range {
            _ if hit.is_empty() => Some(false),
            // The bytes behind the field stay, so the parser recognises them again.
            true if header.is_certain() || was == Ok(true) => Some(true),
            _ => None,
        };
        if is.is_some_and(|is| was == Ok(is)) {
            continue;
        }
        match is {
            Some(is) => state.headers.set(header, is),
            None => state.headers.forget(Header::bits(&with)),
        }
        // The parser may now see another header in these bytes, so their content must be loaded
        // again.
        let behind = FIELDS.iter().filter(|info| {
            let halves = matches!(info.place, Where::Halves(other, ..) if other == header);
            halves || with.contains(&info.header)
        });
        state.reload(behind.map(|info| info.field));
        state.reload([Field::PktPayloadLen]);
        state.stale = true;
    }
}

/// Updates the knowledge about headers after bytes of the payload have changed: they may now be one
/// of the headers with these bits. Headers that are there stay, because the payload is behind them.
pub(super) fn doubt_in_payload(state: &mut State, among: u128) {
    let doubted = among & !state.headers.present();
    let behind = FIELDS.iter().filter(|info| doubted & info.header.bit() != 0);
    let fields: Vec<Field> = behind.map(|info| info.field).collect();
    state.headers.forget(doubted);
    state.reload(fields);
    state.reload([Field::PktPayloadLen]);
    state.stale = true;
}

/// A header and the headers that imply it, as bits.
fn family(header: Header) -> u128 {
    let all = super::headers::all().filter(|one| one.implies().contains(&header));
    header.bit() | Header::bits(all)
}

/// Whether a packet may have a header after a field was assigned that decides which of the headers
/// `decided` are present. None of the other headers that this header implies may be known to be
/// absent.
fn is_possible(state: &mut State, header: Header, decided: u128) -> bool {
    let mut needed = header.implies().iter().filter(|one| decided & one.bit() == 0);
    needed.all(|one| state.headers.has(*one) != Ok(false))
}
