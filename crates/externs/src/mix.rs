//! FNV-1a and MurmurHash3's finaliser, from which operators make their hashes.

/// The 64-bit FNV-1a.
pub(crate) struct Fnv(pub(crate) u64);

impl Fnv {
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// MurmurHash3's 64-bit finaliser.
pub(crate) fn fmix64(mut h: u64) -> u64 {
    h = (h ^ (h >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ (h >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ (h >> 33)
}

#[cfg(test)]
mod tests {
    use super::{Fnv, fmix64};

    #[test]
    fn fnv1a_gives_the_published_values() {
        // draft-eastlake-fnv, appendix C: FNV-1a 64 of "", "a", "foobar".
        let fnv = |bytes: &[u8]| {
            let mut state = Fnv::new();
            state.write(bytes);
            state.0
        };
        assert_eq!(fnv(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn finaliser_lets_every_input_bit_flip_about_half_of_the_output() {
        for bit in 0..64 {
            let flipped = (fmix64(0x0123_4567_89ab_cdef)
                ^ fmix64(0x0123_4567_89ab_cdef ^ 1 << bit))
            .count_ones();
            assert!((12..=52).contains(&flipped), "bit {bit}: {flipped}");
        }
    }
}
