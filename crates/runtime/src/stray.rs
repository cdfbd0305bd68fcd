//! Says why no packet of a run entered, and what its interfaces lack.

use std::net::{Ipv4Addr, Ipv6Addr};

use braid_ir::chain::{Chain, Interface};
use braid_ir::value::IntervalSet;
use braid_packet::Packet;

use crate::split::NO_INTERFACE;

/// The most parts of an interface's addresses that are shown.
const SHOWN: usize = 3;

/// The warning if all packets of a run were lost. `first` is the first of them, if it is known.
pub(crate) fn lost_everything(chain: &Chain, packets: u64, first: Option<&Packet>) -> String {
    let first = first.map_or_else(String::new, |packet| format!("; the first is {packet}"));
    let behind: Vec<String> = chain.interfaces.iter().map(behind).collect();
    format!(
        "no packet entered: all {packets} were lost as {NO_INTERFACE}, because neither their \
         source nor their destination address belongs to an interface of chain `{}`{first}; {}; add \
         the addresses to a `behind`, or name the interface with --in NAME=FILE",
        chain.name,
        behind.join(", ")
    )
}

/// `` `lan` is behind 10.0.0.0/8 ``
fn behind(interface: &Interface) -> String {
    let name = &interface.name;
    let four = parts(&interface.behind4, 32, |at| {
        Ipv4Addr::from_bits(u32::try_from(at).unwrap_or(u32::MAX)).to_string()
    });
    let six = parts(&interface.behind6, 128, |at| Ipv6Addr::from_bits(at).to_string());
    let all: Vec<String> = four.chain(six).collect();
    match all.len() {
        0 => format!("`{name}` has no `behind`"),
        1..=SHOWN => format!("`{name}` is behind {}", all.join(", ")),
        more => {
            let shown = all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
            format!("`{name}` is behind {shown} and {} more", more - SHOWN)
        }
    }
}

/// The parts of a set of addresses with this number of bits, as prefixes where they are some.
fn parts(
    set: &IntervalSet,
    bits: u32,
    show: impl Fn(u128) -> String,
) -> impl Iterator<Item = String> {
    set.intervals().iter().map(move |&(low, high)| {
        let size = high - low;
        let host = u128::BITS - size.leading_zeros();
        let is_prefix = size & size.wrapping_add(1) == 0 && low & size == 0;
        match is_prefix {
            true => format!("{}/{}", show(low), bits - host.min(bits)),
            false => format!("{}..{}", show(low), show(high)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_prefixes_or_ranges() {
        let set = IntervalSet::new([(0x0a00_0000, 0x0aff_ffff), (5, 7), (9, 9)]);
        let interface = Interface { name: "lan".into(), behind4: set, ..Interface::default() };
        let text = "`lan` is behind 0.0.0.5..0.0.0.7, 0.0.0.9/32, 10.0.0.0/8";
        assert_eq!(behind(&interface), text);
        let set = IntervalSet::new([(0, u128::MAX)]);
        let interface = Interface { name: "wan".into(), behind6: set, ..Interface::default() };
        assert_eq!(behind(&interface), "`wan` is behind ::/0");
        let set = IntervalSet::new((0..9).map(|at| (at * 4, at * 4)));
        let interface = Interface { name: "wan".into(), behind4: set, ..Interface::default() };
        assert!(behind(&interface).ends_with("0.0.0.8/32 and 6 more"));
    }
}
