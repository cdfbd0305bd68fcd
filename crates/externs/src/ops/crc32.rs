//! `crc32(a, b, …)`: CRC-32 of values, as Ethernet, gzip and most switches compute it.

use super::hash::with_bytes;
use crate::call::{CallCtx, Results};
use crate::signature::{
    ArgSpec, Example, Extern, Profile, ResultKind, ResultSpec, Signature, Width,
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
    run,
};

/// The polynomial, reflected.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// The effect of each byte value.
const TABLE: [u32; 256] = table();

fn run(ctx: &mut CallCtx<'_>) -> Results {
    let mut crc = u32::MAX;
    for &arg in ctx.args {
        with_bytes(arg, |bytes| crc = bytes.iter().fold(crc, |crc, &byte| step(crc, byte)));
    }
    [u128::from(!crc), 0]
}

fn step(crc: u32, byte: u8) -> u32 {
    let [low, ..] = crc.to_le_bytes();
    crc >> 8 ^ TABLE[usize::from(low ^ byte)]
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}
