//! The numbers of interfaces in another chain.

use std::collections::BTreeMap;

/// Switches to the number that an interface has in another chain.
pub(super) fn renumber(interface: &mut u16, numbers: &BTreeMap<u16, u16>) {
    if let Some(number) = numbers.get(interface) {
        *interface = *number;
    }
}
