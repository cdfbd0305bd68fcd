//! MPLS label stacks (RFC 3032). The bytes behind the stack are payload, because no field announces
//! their kind.

use crate::declare::{Behind, Declaration, Outer, Own, Parse, bits, ro, rw};
use crate::layout::Layout;
use crate::malformed::Malformed;
use crate::names::{Base, Field, Header};
use crate::window::{Stop, Window};

/// Length of a stack entry.
pub(crate) const LEN: usize = 4;
/// Offset of the byte whose lowest bit marks the last entry.
pub(crate) const BOTTOM: usize = 2;
/// The most stack entries that are parsed.
const MAX: usize = 16;

/// Topmost MPLS label stack entry.
pub(crate) const MPLS: Declaration = Declaration {
    follows: &[(Field::EthType, &[0x8847, 0x8848])],
    at: (Base::Network, 0),
    parse: Parse::Own(Own(parse)),
    takes_declared: true,
    summary: Some(("MPLS", &[("label ", Field::MplsLabel), ("ttl ", Field::MplsTtl)])),
    outer: Some(Outer {
        behind: &[Header::Eth, Header::Mpls],
        required: &[Field::MplsLabel],
        defaults: &[(Field::MplsTtl, 64)],
        ..Outer::of(LEN)
    }),
    fields: &[
        rw(Field::MplsLabel, "mpls.label", 20, bits(0, 4, 12, 20), "Label of the topmost entry."),
        rw(Field::MplsTc, "mpls.tc", 3, bits(0, 4, 9, 3), "Traffic class of the topmost entry."),
        ro(
            Field::MplsBos,
            "mpls.bos",
            1,
            bits(0, 4, 8, 1),
            "1 when the topmost entry is the last one.",
        ),
        rw(Field::MplsTtl, "mpls.ttl", 8, bits(0, 4, 0, 8), "Time to live of the topmost entry."),
    ],
    ..Declaration::new(Header::Mpls, "mpls", &[])
};

fn parse<'a>(layout: &mut Layout, window: Window<'a>) -> Result<Behind<'a>, Stop> {
    let rest = check(window)?;
    layout.add(Header::Mpls);
    layout.begin(Base::Network, window);
    layout.behind(rest);
    layout.behind(bottom(window)?);
    Ok(None)
}

/// The bytes behind the topmost entry.
pub(crate) fn check(window: Window<'_>) -> Result<Window<'_>, Stop> {
    window.fixed::<LEN>(Malformed::MplsShort)?;
    Ok(window.skip(LEN))
}

/// The bytes behind the whole stack. `window` starts at the topmost entry, which is already
/// checked.
pub(crate) fn bottom(window: Window<'_>) -> Result<Window<'_>, Stop> {
    let mut window = window;
    for _ in 0..MAX {
        let entry = window.fixed::<LEN>(Malformed::MplsShort)?;
        window = window.skip(LEN);
        if entry[2] & 1 == 1 {
            return Ok(window);
        }
    }
    Err(Stop::Bad(Malformed::MplsDepth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_ends_behind_the_bottom_entry() {
        let data = [0, 1, 0, 64, 0, 2, 1, 64, 0x45];
        assert_eq!(bottom(Window::new(&data, 9)).unwrap().at(), 8);
    }

    #[test]
    fn stack_without_bottom_is_malformed() {
        let depth = bottom(Window::new(&[0; 100], 100)).unwrap_err();
        assert_eq!(depth, Stop::Bad(Malformed::MplsDepth));
        let short = bottom(Window::new(&[0; 7], 7)).unwrap_err();
        assert_eq!(short, Stop::Bad(Malformed::MplsShort));
    }
}
