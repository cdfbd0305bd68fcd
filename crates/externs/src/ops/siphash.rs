//! `siphash(key, a, b, …)`: a hash of values that nobody can predict without the key.
//!
//! SipHash-2-4 with a result of 64 bits (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
//! INDOCRYPT 2012) of each argument behind the key in order, big-endian, in the bytes that its
//! width needs.

use siphasher::sip::SipHasher24;
use std::hash::Hasher;

use super::hash::with_bytes;
use crate::call::{CallCtx, Results};
use crate::signature::{
    ArgSpec, Code, Example, Extern, Profile, ResultKind, ResultSpec, Signature, Width,
};

/// The operator.
pub static SIPHASH: Extern = Extern {
    signature: Signature {
        name: "siphash",
        args: &[
            ArgSpec { name: "key", width: Width::Bits(128) },
            ArgSpec { name: "value", width: Width::Any },
        ],
        variadic: true,
        takes_param: None,
        results: &[ResultSpec { name: "hash", kind: ResultKind::Uint(64) }],
        profile: Profile::PURE,
        doc: "SipHash-2-4 of the values' big-endian bytes (each value takes the bytes that hold its \
              width), with a key whose first byte is its highest one. Without the key, nobody can \
              predict the result or find collisions: use it for SYN cookies and wherever a sender \
              chooses what is hashed. Give the key by a parameter, and choose it at random.",
        // The key and the results are the test vectors of the authors' reference code for inputs of
        // 1, 2 and 15 bytes.
        examples: &[
            Example::of("siphash(KEY, u8(0))", &[KEY, (0, 8)], &[0x74f8_39c5_93dc_67fd]),
            Example::of("siphash(KEY, u16(1))", &[KEY, (1, 16)], &[0x0d6c_8009_d9a9_4f5a]),
            Example::of(
                "siphash(KEY, u120(0x000102030405060708090a0b0c0d0e))",
                &[KEY, (0x0000_0102_0304_0506_0708_090a_0b0c_0d0e, 120)],
                &[0xa129_ca61_49be_45e5],
            ),
        ],
    },
    code: Code::Own(run),
};

/// The key of the test vectors: the bytes 0 to 15.
const KEY: (u128, u16) = (0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f, 128);

fn run(ctx: &mut CallCtx<'_>) -> Results {
    let (key, values) = ctx.args.split_first().unwrap_or((&(0, 128), &[]));
    let mut hasher = SipHasher24::new_with_key(&key.0.to_be_bytes());
    for &value in values {
        with_bytes(value, |bytes| hasher.write(bytes));
    }
    [u128::from(hasher.finish()), 0]
}
