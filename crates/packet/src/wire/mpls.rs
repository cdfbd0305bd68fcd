//! MPLS label stacks (RFC 3032). What is behind the stack is payload: its kind is not announced.

use super::{Stop, Window};
use crate::malformed::Malformed;

/// Length of a stack entry.
pub(crate) const LEN: usize = 4;
/// Most entries that are walked.
const MAX: usize = 16;

/// What is behind the topmost entry.
pub(crate) fn check(window: Window<'_>) -> Result<Window<'_>, Stop> {
    window.fixed::<LEN>(Malformed::MplsShort)?;
    Ok(window.skip(LEN))
}

/// What is behind the whole stack, its topmost entry (already checked) included.
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
