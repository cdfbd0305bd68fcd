//! `crc32(a, b, …)`: CRC-32 of values, as Ethernet, gzip and most switches compute it.

use crc32fast::Hasher;

use super::hash::with_bytes;
use crate::call::{CallCtx, Results};
use crate::signature::{
    ArgSpec, Code, Example, Extern, Profile, ResultKind, ResultSpec, Signature, Width,
};

/// The operator.
pub static CRC32: Extern = Extern {
    signature: Signature {
        name: "crc32",
        args: &[ArgSpec { name: "value", width: Width::Any }],
        variadic: true,
        takes_param: None,
        results: &[ResultSpec { name: "crc", kind: ResultKind::Uint(32) }],
        profile: Profile::PURE,
        doc: "CRC-32 (IEEE 802.3: polynomial 0x04C11DB7 reflected, start and final value all ones) of \
              the values' big-endian bytes (each value takes the bytes that hold its width).",
        examples: &[
            // "123456789", the check value of the CRC catalogue.
            Example::of(
                "crc32(u72(0x313233343536373839))",
                &[(0x0031_3233_3435_3637_3839, 72)],
                &[0xcbf4_3926],
            ),
            Example::of("crc32(u8(0))", &[(0, 8)], &[0xd202_ef8d]),
        ],
    },
    code: Code::Own(run),
};

fn run(ctx: &mut CallCtx<'_>) -> Results {
    let mut hasher = Hasher::new();
    for &arg in ctx.args {
        with_bytes(arg, |bytes| hasher.update(bytes));
    }
    [u128::from(hasher.finalize()), 0]
}
