//! `random(n)`: a seeded random number.

use crate::call::{CallCtx, Results};
use crate::signature::{
    ArgSpec, Code, Example, Extern, Profile, ResultKind, ResultSpec, Signature, Touch, Width,
};

/// The operator.
pub static RANDOM: Extern = Extern {
    signature: Signature {
        name: "random",
        args: &[ArgSpec { name: "n", width: Width::Bits(32) }],
        variadic: false,
        takes_param: None,
        results: &[ResultSpec { name: "number", kind: ResultKind::Uint(32) }],
        profile: Profile { payload: Touch::No, state: Touch::Writes },
        doc: "A number from 0 to n - 1, all equally likely; 0 when n is 0. Drawn from the instance's \
              own generator (SplitMix64), which the chain's `seed` and the instance's position start, \
              so that a run can be repeated. Not for secrets.",
        examples: &[
            Example::of("random(1)", &[(1, 32)], &[0]),
            Example::of("random(0)", &[(0, 32)], &[0]),
            // The first draw of seed 0 is 0xE220A8397B1DCDAF, whose low 7 bits are 47.
            Example::of("random(100)", &[(100, 32)], &[47]),
        ],
    },
    code: Code::Own(run),
};

fn run(ctx: &mut CallCtx<'_>) -> Results {
    [ctx.rng.below(ctx.arg(0)), 0]
}
