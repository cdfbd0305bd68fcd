//! Generated rules, routes and next hops for benches. The same seed gives the same text everywhere.

mod common;
mod routes;
mod rules;
mod wider;

pub use common::{HOPS, SEED, is_martian};
pub use routes::routes;
pub use rules::rules;
pub use wider::wider;

use std::fmt::Write as _;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_next_hop_is_in_the_list() {
        assert_eq!(hops().matches("left: false").count() as u64, HOPS);
        assert!(hops().ends_with("left: false }]"));
    }
}
