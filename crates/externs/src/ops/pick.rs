//! `pick(BACKENDS, h)`: the backend whose number, among the backends that are up, is the hash
//! modulo their count.

use crate::backends::Backends;
use crate::call::{CallCtx, Results};
use crate::signature::{CHOICE, Code, Example, Extern, Signature};

/// The operator.
pub static PICK: Extern = Extern {
    signature: Signature {
        name: "pick",
        doc: "The backend with number hash mod u among the u backends that are up, in list order. No \
              answer when none is up. When a backend fails most flows move: see `maglev`.",
        examples: &[
            Example {
                call: "pick(servers, 5)  // second of four down: 5 mod 3 = 2",
                args: &[(5, 32)],
                payload: &[],
                backends: &[(1, true), (2, false), (3, true), (4, true)],
                seed: 0,
                results: &[1, 3],
            },
            Example {
                call: "pick(servers, 5)  // with none up",
                args: &[(5, 32)],
                payload: &[],
                backends: &[(1, false)],
                seed: 0,
                results: &[0, 0],
            },
        ],
        ..CHOICE
    },
    code: Code::Own(run),
};

fn run(ctx: &mut CallCtx<'_>) -> Results {
    match ctx.backends.and_then(|backends| choose(backends, ctx.arg(0))) {
        Some(index) => [1, index as u128],
        None => [0, 0],
    }
}

fn choose(backends: &dyn Backends, hash: u128) -> Option<usize> {
    let up = || (0..backends.count()).filter(|&index| backends.is_up(index));
    let rank = hash.checked_rem(up().count() as u128)?;
    up().nth(usize::try_from(rank).ok()?)
}

#[cfg(test)]
mod tests {
    use super::choose;

    #[test]
    fn hashes_go_round_the_backends_that_are_up() {
        let list = vec![(10, true), (11, false), (12, true)];
        let chosen: Vec<_> = (0..4).map(|hash| choose(&list, hash)).collect();
        assert_eq!(chosen, [Some(0), Some(2), Some(0), Some(2)]);
        assert_eq!(choose(&vec![(10, false)], 3), None);
        assert_eq!(choose(&Vec::<(u128, bool)>::new(), 3), None);
    }
}
