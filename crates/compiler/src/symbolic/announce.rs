//! The consequences of assigning a field that announces headers, such as the EtherType or the type
//! of an ICMP message.

use super::headers::{bit, listed, quoted_fields, quoted_parts};
use super::range::intersect;
use super::state::State;
use braid_ir::model::Word;
use braid_ir::value::IntervalSet;
use braid_packet::{Field, Header};

/// Updates the knowledge about headers before a field that announces headers is assigned a value in
/// `range`.
pub(super) fn decide_headers(state: &mut State, cell: Field, range: &IntervalSet) {
    let set = |kinds: &[Word]| IntervalSet::new(kinds.iter().map(|kind| (*kind, *kind)));
    if !matches!(cell, Field::IcmpType | Field::Icmp6Type) {
        decide_announced(state, cell, range);
        return;
    }
    use Field::{Icmp6Id, Icmp6Rest, Icmp6Seq, IcmpId, IcmpRest, IcmpSeq};
    let (echo, rest) = match cell {
        Field::IcmpType => {
            let rest = [IcmpRest, IcmpId, IcmpSeq];
            (Header::IcmpEcho, rest)
        }
        _ => (Header::Icmp6Echo, [Icmp6Rest, Icmp6Id, Icmp6Seq]),
    };
    let types = |header: Header| -> Vec<Word> {
        header.announced_by(cell).iter().map(|kind| (*kind).into()).collect()
    };
    let (echoes, errors) = (set(&types(echo)), set(&types(Header::Quoted)));
    let outcome = |kinds: &IntervalSet| {
        let hit = intersect(range, kinds);
        if hit.is_empty() { Some(false) } else { (hit == *range).then_some(true) }
    };
    if outcome(&echoes).is_none_or(|present| state.headers.has(echo) != Ok(present)) {
        state.reload(rest);
    }
    match outcome(&echoes) {
        Some(present) => state.headers.set(echo, present),
        None => state.headers.forget(bit(echo)),
    }
    let quoted = state.headers.has(Header::Quoted);
    match outcome(&errors) {
        Some(false) => state.headers.set(Header::Quoted, false),
        // The packet in an ICMP error stays recognised as a quoted packet.
        Some(true) if quoted == Ok(true) => {
            for header in quoted_parts() {
                let _ = state.headers.has(header);
            }
        }
        _ => {
            let own = if cell == Field::IcmpType { Header::Quoted4 } else { Header::Quoted6 };
            let open = [Header::Quoted, own, Header::QuotedL4, Header::QuotedEcho];
            state.headers.forget(open.iter().fold(0, |bits, header| bits | bit(*header)));
            state.reload(quoted_fields());
        }
    }
    state.stale = true;
}

/// As [`decide_headers`], for a field whose values each announce one header.
fn decide_announced(state: &mut State, cell: Field, range: &IntervalSet) {
    let set = |kinds: &[Word]| IntervalSet::new(kinds.iter().map(|kind| (*kind, *kind)));
    let decided = cell.decided_bits();
    let was: Vec<_> = listed(decided).map(|header| state.headers.has(header)).collect();
    if cell == Field::L4Dport && state.headers.has(Header::Tcp) == Ok(true) {
        return;
    }
    let mut may_change = false;
    for (header, was) in listed(decided).zip(was) {
        let by = header.info().follows.iter().filter(|(field, _)| field.owner() == cell);
        let values: Vec<_> =
            by.flat_map(|(_, values)| *values).map(|value| (*value).into()).collect();
        if was != Ok(false) {
            // The parser may now see another header in these bytes, so their content must be loaded
            // again.
            let fields = header.info().fields.iter().map(|info| info.field);
            state.reload(fields);
        }
        if !values.is_empty() && intersect(range, &set(&values)).is_empty() {
            state.headers.set(header, false);
            may_change |= was != Ok(false);
        } else {
            state.headers.forget(bit(header));
            may_change = true;
        }
    }
    if may_change {
        state.reload([Field::PktPayloadLen]);
        state.stale = true;
    }
}
