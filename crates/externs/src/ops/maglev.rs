//! `maglev(BACKENDS, h)`: consistent hashing with a lookup table (Eisenbud et al., Maglev, NSDI'16,
//! §3.4).
//!
//! The position of a packet in the table ([`crate::maglev`]) is its hash modulo the table's size.

use crate::call::{CallCtx, Results};
use crate::maglev::Table;
use crate::signature::{CHOICE, Code, Example, Extern, Signature};

/// The operator.
pub static MAGLEV: Extern = Extern {
    signature: Signature {
        name: "maglev",
        doc: "The backend that consistent hashing gives to this hash (Maglev, NSDI'16, §3.4), among \
              the backends that are up. No answer when none is up. Shares are equal within 1 %. When one of n \
              backends fails, its flows spread over the others, and few other flows move. A backend \
              is known by its first column, so the order of the list does not matter; give each \
              backend another value there. The table has 65,537 positions for up to 655 backends and \
              655,373 above.",
        examples: &[
            Example {
                call: "maglev(servers, 12345)  // with the second of two down",
                args: &[(12345, 32)],
                payload: &[],
                backends: &[(0x0a00_0001, true), (0x0a00_0002, false)],
                seed: 0,
                results: &[1, 0],
            },
            Example {
                call: "maglev(servers, 12345)  // with none up",
                args: &[(12345, 32)],
                payload: &[],
                backends: &[(0x0a00_0001, false), (0x0a00_0002, false)],
                seed: 0,
                results: &[0, 0],
            },
        ],
        ..CHOICE
    },
    code: Code::Own(run),
};

fn run(ctx: &mut CallCtx<'_>) -> Results {
    let hash = ctx.arg(0);
    let Some(backends) = ctx.backends else { return [0, 0] };
    let table = match &mut ctx.cache.maglev {
        Some(table) if table.is_current(backends) => table,
        stale => stale.insert(Table::new(backends)),
    };
    match table.lookup(hash) {
        Some(index) => [1, u128::from(index)],
        None => [0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::run;
    use crate::call::{Cache, CallCtx};
    use crate::rng::Rng;

    type List = Vec<(u128, bool)>;

    #[test]
    fn cached_table_follows_every_change_of_the_backends() {
        let mut cache = Cache::default();
        let mut list: List = (1..=4).map(|i| (0x0a00_0000 + i, true)).collect();
        let mut call = |list: &List, hash| {
            run(&mut CallCtx {
                args: &[(hash, 32)],
                payload: &[],
                backends: Some(list),
                rng: &mut Rng::new(0),
                cache: &mut cache,
            })
        };
        let first = call(&list, 99);
        let chosen = usize::try_from(first[1]).expect("an index");
        list[chosen].1 = false;
        assert_ne!(call(&list, 99)[1], first[1]);
        list[chosen].1 = true;
        assert_eq!(call(&list, 99), first);
        list.truncate(1);
        assert_eq!(call(&list, 99), [1, 0]);
        list.clear();
        assert_eq!(call(&list, 99), [0, 0]);
    }
}
