//! `checksum()`: the Internet checksum of the payload (RFC 1071).

use crate::call::{CallCtx, Results};
use crate::signature::{Code, Example, Extern, Profile, ResultKind, ResultSpec, Signature, Touch};

/// The operator.
pub static CHECKSUM: Extern = Extern {
    signature: Signature {
        name: "checksum",
        args: &[],
        variadic: false,
        takes_param: None,
        results: &[ResultSpec { name: "checksum", kind: ResultKind::Uint(16) }],
        profile: Profile { payload: Touch::Reads, state: Touch::No },
        doc: "The Internet checksum of the payload (RFC 1071): the complement of the one's complement \
              sum of its 16-bit words, big-endian; an odd last byte counts as the high half of a word. \
              Of an empty payload 0xFFFF. A payload that the capture cut is a fault `truncated`.",
        examples: &[
            // RFC 1071, section 3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
            Example {
                call: "checksum()",
                args: &[],
                payload: &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7],
                backends: &[],
                seed: 0,
                results: &[0x220d],
            },
        ],
    },
    code: Code::Own(run),
};

fn run(ctx: &mut CallCtx<'_>) -> Results {
    [u128::from(!sum(ctx.payload)), 0]
}

/// One's complement sum of 16-bit big-endian words.
fn sum(bytes: &[u8]) -> u16 {
    let (words, odd) = bytes.as_chunks::<2>();
    let last = odd.first().map_or(0, |&byte| u64::from(byte) << 8);
    let mut sum = words.iter().fold(last, |sum, &word| sum + u64::from(u16::from_be_bytes(word)));
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let [.., high, low] = sum.to_be_bytes();
    u16::from_be_bytes([high, low])
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn odd_last_byte_counts_as_high_half() {
        assert_eq!(sum(&[0x12, 0x34, 0x56]), 0x1234 + 0x5600);
    }

    #[test]
    fn carries_wrap_around_also_twice() {
        // ffff + ffff = 1fffe -> ffff; ffff + 0001 = 10000 -> 0001.
        assert_eq!(sum(&[0xff, 0xff, 0xff, 0xff]), 0xffff);
        assert_eq!(sum(&[0xff, 0xff, 0x00, 0x01]), 0x0001);
        assert_eq!(sum(&[]), 0);
    }
}
