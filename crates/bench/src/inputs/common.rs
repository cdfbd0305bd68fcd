//! What generated rules and routes have in common.

/// The seed of everything that is generated.
pub const SEED: u64 = 251_713_855;

/// Number of next hops of generated routes. A router's list of next hops has as many.
pub const HOPS: u64 = 16;

/// Whether an address belongs to no host. Routers drop packets with such an address.
#[must_use]
pub fn is_martian(address: u32) -> bool {
    matches!(address >> 24, 0 | 127 | 224..=239 | 255)
}

/// The mask of a prefix of this length.
pub(super) fn mask(length: u32) -> u32 {
    u32::MAX.checked_shl(32 - length).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn masks_have_as_many_bits_as_the_prefix() {
        assert_eq!([0, 1, 24, 32].map(mask), [0, 0x8000_0000, 0xffff_ff00, u32::MAX]);
    }
}
