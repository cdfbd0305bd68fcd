//! Generates values for header fields. Most are at or beside boundaries.

use crate::generate::{Boundaries, Rng};
use braid_ir::chain::Interface;
use braid_ir::model::Word;
use braid_ir::value::IntervalSet;
use braid_packet::Field;
use std::collections::BTreeSet;

/// An element of a set, if it has any.
fn one_of<T: Copy>(rng: &mut Rng, set: &BTreeSet<T>) -> Option<T> {
    set.iter().nth(rng.below(set.len())).copied()
}

/// A value for a field.
pub(super) fn of_field(rng: &mut Rng, boundaries: &Boundaries, field: Field) -> Word {
    let known = boundaries.fields.get(&field).filter(|_| !rng.one_in(6));
    match known.and_then(|values| one_of(rng, values)) {
        Some(value) => value,
        None => rng.wide() >> (128 - u32::from(field.info().width)),
    }
}

/// A port.
pub(super) fn port(rng: &mut Rng, boundaries: &Boundaries) -> u16 {
    match rng.below(8) {
        0 => *rng.pick(&[0, 1, 53, 80, 443, 1023, 1024, 4789, 65535]),
        1 => rng.short(),
        _ => one_of(rng, &boundaries.ports).unwrap_or_else(|| 1000 + rng.short() % 8),
    }
}

/// An address. If an interface is given, it is the address of a host behind it.
pub(super) fn address(
    rng: &mut Rng,
    boundaries: &Boundaries,
    behind: Option<&Interface>,
    v6: bool,
) -> u128 {
    let behind = behind.map(|interface| if v6 { &interface.behind6 } else { &interface.behind4 });
    if let Some(value) = behind.filter(|_| !rng.one_in(5)).and_then(|set| member(rng, set)) {
        return value;
    }
    // Few hosts that recur, so that flows share entries.
    let few = u128::from(rng.range(1, 3));
    if v6 {
        let known = one_of(rng, &boundaries.ip6).filter(|_| !rng.one_in(4));
        known.unwrap_or(0x2001_0db8_u128 << 96 | few)
    } else {
        let known = one_of(rng, &boundaries.ip4).filter(|_| !rng.one_in(4));
        known.map_or(0xc633_6400 | few, u128::from)
    }
}

/// A member of a set: one from a few members, or an end of an interval.
fn member(rng: &mut Rng, set: &IntervalSet) -> Option<u128> {
    let intervals = set.intervals();
    let &(low, high) = intervals.get(rng.below(intervals.len()))?;
    Some(match rng.below(6) {
        0 => low,
        1 => high,
        _ => (low + Word::from(rng.range(1, 4))).min(high),
    })
}
