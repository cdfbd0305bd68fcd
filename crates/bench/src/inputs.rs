//! Generated rules, routes and next hops for benches. The same seed gives the same text everywhere.

mod routes;
mod rules;
mod wider;

pub use routes::routes;
pub use rules::rules;
pub use wider::wider;

use std::fmt::Write as _;

/// The seed of everything that is generated.
pub const SEED: u64 = 251_713_855;

/// Number of next hops of generated routes. A router's list of next hops has as many.
pub const HOPS: u64 = 16;

/// A list of [`HOPS`] next hops to the right, in the Braid language.
#[must_use]
pub fn hops() -> String {
    let mut text = String::from("[");
    for hop in 0..HOPS {
        let _ = write!(
            text,
            "{{ mac: 02:00:00:00:01:{hop:02x}, neighbour: 02:00:00:00:02:{hop:02x}, left: false }}, "
        );
    }
    text.truncate(text.len() - 2);
    text.push(']');
    text
}

/// Whether an address belongs to no host. Routers drop packets with such an address.
#[must_use]
pub fn is_martian(address: u32) -> bool {
    matches!(address >> 24, 0 | 127 | 224..=239 | 255)
}

/// The mask of a prefix of this length.
fn mask(length: u32) -> u32 {
    u32::MAX.checked_shl(32 - length).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_as_many_bits_as_the_prefix() {
        assert_eq!([0, 1, 24, 32].map(mask), [0, 0x8000_0000, 0xffff_ff00, u32::MAX]);
    }

    #[test]
    fn every_next_hop_is_in_the_list() {
        assert_eq!(hops().matches("left: false").count() as u64, HOPS);
        assert!(hops().ends_with("left: false }]"));
    }
}
