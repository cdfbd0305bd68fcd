//! `hash(a, b, …)`: a stable hash of values.
//!
//! The input is each argument in order, big-endian, in the bytes that its width needs. The operator
//! computes the 64-bit FNV-1a of these bytes (draft-eastlake-fnv), then the 64-bit finaliser of
//! MurmurHash3; the high 32 bits are the result. With FNV-1a alone the low bits would be too
//! regular for `hash % n`. The finaliser spreads every input bit over all output bits. There is no
//! seed: the result is the same everywhere, for ever.

use crate::call::{Arg, CallCtx, Results};
use crate::mix::{Fnv, fmix64};
use crate::signature::{
    ArgSpec, Code, Example, Extern, Profile, ResultKind, ResultSpec, Signature, Width,
};

/// The operator.
pub static HASH: Extern = Extern {
    signature: Signature {
        name: "hash",
        args: &[ArgSpec { name: "value", width: Width::Any }],
        variadic: true,
        takes_param: None,
        results: &[ResultSpec { name: "hash", kind: ResultKind::Uint(32) }],
        profile: Profile::PURE,
        doc: "A stable hash of the values' big-endian bytes (each value takes the bytes that hold its \
              width): FNV-1a with 64 bits, MurmurHash3's 64-bit finaliser, high 32 bits. It has no \
              seed, so an attacker can find collisions: spread load by it, don't defend by it.",
        examples: &[
            Example::of("hash(u8(97))", &[(0x61, 8)], &[0x82a2_a958]),
            Example::of("hash(10.0.0.1, port(80))", &[(0x0a00_0001, 32), (80, 16)], &[0x11bc_26ce]),
        ],
    },
    code: Code::Own(run),
};

/// The widest argument in bytes.
const ARG_BYTES: usize = 16;

fn run(ctx: &mut CallCtx<'_>) -> Results {
    [u128::from(of_args(ctx.args)), 0]
}

/// The hash of arguments.
#[must_use]
pub fn of_args(args: &[Arg]) -> u32 {
    let mut state = Fnv::new();
    for &arg in args {
        with_bytes(arg, |bytes| state.write(bytes));
    }
    high_half(fmix64(state.0))
}

/// Calls `f` with the bytes of an argument: big-endian, as many as its width needs.
#[expect(clippy::indexing_slicing, reason = "`count` is at most `ARG_BYTES`")]
pub(crate) fn with_bytes((value, width): Arg, f: impl FnOnce(&[u8])) {
    let count = usize::from(width).div_ceil(8).clamp(1, ARG_BYTES);
    f(&value.to_be_bytes()[ARG_BYTES - count..]);
}

fn high_half(h: u64) -> u32 {
    let [a, b, c, d, ..] = h.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::of_args;

    #[test]
    fn width_is_part_of_what_is_hashed() {
        assert_ne!(of_args(&[(1, 8)]), of_args(&[(1, 16)]));
        assert_eq!(of_args(&[(0x0102, 16)]), of_args(&[(1, 8), (2, 8)]), "only bytes count");
        assert_eq!(of_args(&[(1, 1)]), of_args(&[(1, 8)]), "a bool takes a byte");
    }

    #[test]
    fn neighbours_spread_over_a_small_modulus() {
        // 10,000 consecutive ports over 10 buckets: 1,000 each, sigma 30.
        let mut buckets = [0_i32; 10];
        for port in 0..10_000_u128 {
            let hash = of_args(&[(0x0a00_0001, 32), (port, 16)]);
            buckets[hash as usize % 10] += 1;
        }
        assert!(buckets.iter().all(|n| (n - 1_000).abs() < 150), "{buckets:?}");
    }
}
