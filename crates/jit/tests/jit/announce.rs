//! Announcements of the lookups of packets that begin flows.

use crate::calls::{named, packed, ready, run, tag};
use crate::host::Asked;
use crate::random::{Builder, to};
use braid_ir::model::{BinOp, Key, Op, ParamId, StateId, ValueId};
use braid_ir::residual::{End, HeaderMask, What};

const ANY: HeaderMask = HeaderMask { care: 0, present: 0 };
/// The value of the tag that is the first key, and what the host gives out of its pool.
const FIRST: u128 = 9;
const TAKEN: u128 = 1 << 60 | 7;

/// Creates an entry, and leads to the block `next` if there is room.
fn create(
    builder: &mut Builder,
    (state, key, value): (u32, ValueId, ValueId),
    next: (usize, &[ValueId]),
) {
    let ok = builder.value(1);
    let key = Key::Explicit(vec![key]);
    builder.op(Op::StateSet { ok, state: StateId(state), key, values: vec![value] });
    builder.end(End::Branch { cond: ok, yes: to(next.0, next.1), no: to(6, &[]) });
}

/// A translation: looks up table 1. Without an entry, takes a number and creates entries in the
/// tables 1 and 2. Then it looks up table 3. The key of tables 2 and 3 follows from the number, or
/// from another one that is taken between.
fn translation(takes_again: bool) -> Builder {
    let mut builder = Builder::new(ANY, 7);
    let first = tag(&mut builder, 0, 64);
    let (found, entry) = (builder.value(1), builder.value(64));
    builder.push(What::Find { found, entry, state: StateId(1), key: vec![first] });
    builder.end(End::Branch { cond: found, yes: to(1, &[]), no: to(2, &[]) });
    builder.block = 1;
    builder.end(End::Jump(to(5, &[first])));
    builder.block = 2;
    let take = |builder: &mut Builder| {
        let (ok, out) = (builder.value(1), builder.value(64));
        builder.op(Op::Take { ok, out, pool: ParamId(0) });
        (ok, out)
    };
    let (ok, number) = take(&mut builder);
    builder.end(End::Branch { cond: ok, yes: to(3, &[]), no: to(6, &[]) });
    builder.block = 3;
    create(&mut builder, (1, first, number), (4, &[]));
    builder.block = 4;
    let number = if takes_again { take(&mut builder).1 } else { number };
    let (one, second) = (builder.constant(64, 1), builder.value(64));
    builder.op(Op::Bin { out: second, op: BinOp::AddWrap, a: number, b: one });
    let param = builder.param(5, 64);
    create(&mut builder, (2, second, first), (5, &[second]));
    builder.block = 5;
    let (found, entry) = (builder.value(1), builder.value(64));
    builder.push(What::Find { found, entry, state: StateId(3), key: vec![param] });
    builder
}

/// What the host is asked, except for steps.
fn asked(builder: &Builder, is_known: bool, room: bool) -> Vec<Asked> {
    let (code, mut host) = ready(builder);
    host.tags = vec![FIRST];
    host.room = room;
    if is_known {
        host.entries.insert((101, packed(&[(FIRST, 64)])), (3, vec![1]));
    }
    run(&code, &mut host, &mut named("udp"));
    host.asked.into_iter().filter(|one| !matches!(one, Asked::Step(..))).collect()
}

fn key(value: u128) -> Vec<u64> {
    packed(&[(value, 64)])
}

#[test]
fn lookups_of_a_new_flow_are_announced_as_soon_as_their_keys_are_known() {
    let all = asked(&translation(false), false, true);
    let expected = [
        Asked::Find(101, key(FIRST)),
        Asked::Take(600),
        Asked::Announce(102, key(TAKEN + 1)),
        Asked::Announce(103, key(TAKEN + 1)),
        Asked::Set(101, key(FIRST), key(TAKEN)),
        Asked::Set(102, key(TAKEN + 1), key(FIRST)),
        Asked::Find(103, key(TAKEN + 1)),
    ];
    assert_eq!(all, expected);
}

#[test]
fn keys_that_come_later_are_announced_later() {
    let all = asked(&translation(true), false, true);
    let expected = [
        Asked::Find(101, key(FIRST)),
        Asked::Take(600),
        Asked::Set(101, key(FIRST), key(TAKEN)),
        Asked::Take(600),
        Asked::Announce(103, key(TAKEN + 1)),
        Asked::Set(102, key(TAKEN + 1), key(FIRST)),
        Asked::Find(103, key(TAKEN + 1)),
    ];
    assert_eq!(all, expected);
}

#[test]
fn nothing_is_announced_for_a_flow_that_has_an_entry() {
    let all = asked(&translation(false), true, true);
    assert_eq!(all, [Asked::Find(101, key(FIRST)), Asked::Find(103, key(FIRST))]);
}
