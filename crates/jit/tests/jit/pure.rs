//! Arithmetic of every width, and random programs.

use crate::host::Recorder;
use crate::interp::Interp;
use crate::random::{Builder, Random, to};
use braid_ir::model::{BinOp, CmpOp, EventArg, EventId, Op, SetRef, TagId, ValueId};
use braid_ir::residual::{CounterListId, End, HeaderMask, Residual, What};
use braid_ir::value::IntervalSet;
use braid_jit::{Count, Work, compile};
use braid_packet::{Link, Packet};

const ANY: HeaderMask = HeaderMask { care: 0, present: 0 };
const COMPARE: [CmpOp; 6] = [CmpOp::Eq, CmpOp::Ne, CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge];

/// Runs machine code and the interpreter on the same input. Both must end, call and count alike.
pub fn same(residual: &Residual, inputs: &[Vec<u128>], context: &str) {
    let code = compile(residual, &mut |_, _| None).unwrap_or_else(|why| panic!("{context}: {why}"));
    for tags in inputs {
        let run = |machine: bool| {
            let mut host = Recorder { tags: tags.clone(), ..Recorder::new(residual) };
            let mut packet = Packet::new(Link::RawIp, 0, vec![0x45; 33]);
            let mut layout = packet.parse();
            let mut counts = [Count::default(); 3];
            let (packet, layout, counts_now) = (&mut packet, &mut layout, &mut counts[..]);
            let now = 7;
            let ended = if machine {
                code.run(&mut host, Work { packet, layout, now, counts: counts_now }).unwrap()
            } else {
                let mut interp = Interp {
                    residual,
                    host: &mut host,
                    packet,
                    layout,
                    now,
                    counts: counts_now,
                    values: Vec::new(),
                    entered: Vec::new(),
                };
                interp.run()
            };
            (ended, host.asked, counts)
        };
        assert_eq!(run(true), run(false), "{context} on {tags:x?}");
    }
}

fn show(builder: &mut Builder, values: &[ValueId]) {
    let args = values.iter().map(|value| EventArg::Value(*value)).collect();
    builder.op(Op::Emit { event: EventId(0), args });
}

fn tag(builder: &mut Builder, number: u32, width: u16) -> ValueId {
    let out = builder.value(width);
    builder.op(Op::LoadTag { out, tag: TagId(number) });
    out
}

fn bin(builder: &mut Builder, op: BinOp, width: u16, a: ValueId, b: ValueId) -> ValueId {
    let out = builder.value(width);
    builder.op(Op::Bin { out, op, a, b });
    out
}

/// Values at the edges of a width.
fn edges(width: u16) -> Vec<u128> {
    let max = braid_ir::show::max_of(width);
    let mut all = vec![0, 1, 2, max, max - max.min(1), max / 2, max / 2 + 1, max / 3];
    all.extend([u128::from(width), u128::from(width) - 1, u128::from(width) + 1]);
    all.extend([64, 63, 65, u128::from(u64::MAX), u128::from(u64::MAX) + 1, 1 << 100 | 3]);
    all.iter().map(|value| value & max).collect()
}

#[test]
fn every_operator_of_every_width_is_as_interpreted_at_the_edges() {
    for width in [1, 2, 7, 8, 9, 16, 20, 31, 32, 33, 48, 63, 64, 65, 96, 127, 128] {
        let mut builder = Builder::new(ANY, 1);
        let (a, b) = (tag(&mut builder, 0, width), tag(&mut builder, 1, width));
        let mut results = Vec::new();
        for op in BinOp::ALL.into_iter().filter(|op| !matches!(op, BinOp::Div | BinOp::Rem)) {
            results.push(bin(&mut builder, op, width, a, b));
        }
        for op in COMPARE {
            let out = builder.value(1);
            builder.op(Op::Cmp { out, op, a, b });
            results.push(out);
        }
        let out = builder.value(width);
        builder.op(Op::Not { out, a });
        results.push(out);
        show(&mut builder, &results);
        // Last, since they may fault.
        let quotient = bin(&mut builder, BinOp::Div, width, a, b);
        let rest = bin(&mut builder, BinOp::Rem, width, a, b);
        show(&mut builder, &[quotient, rest]);
        let edges = edges(width);
        let pairs = edges.iter().flat_map(|a| edges.iter().map(|b| vec![*a, *b]));
        same(&builder.residual, &pairs.collect::<Vec<_>>(), &format!("width {width}"));
    }
}

#[test]
fn operators_on_constants_are_as_interpreted() {
    for width in [1, 8, 31, 64, 65, 128] {
        let mut builder = Builder::new(ANY, 1);
        let a = tag(&mut builder, 0, width);
        let mut results = Vec::new();
        for value in edges(width) {
            let constant = builder.constant(width, value);
            for op in BinOp::ALL {
                if value != 0 || !matches!(op, BinOp::Div | BinOp::Rem) {
                    results.push(bin(&mut builder, op, width, a, constant));
                }
                // A constant has few significant bits, and so has a result with a constant as its
                // first operand.
                if !matches!(op, BinOp::Div | BinOp::Rem) {
                    results.push(bin(&mut builder, op, width, constant, a));
                }
            }
        }
        show(&mut builder, &results);
        let inputs: Vec<_> = edges(width).into_iter().map(|a| vec![a]).collect();
        same(&builder.residual, &inputs, &format!("width {width}"));
    }
}

#[test]
fn changes_of_width_keep_low_bits_or_stop() {
    let widths = [1, 5, 8, 16, 32, 63, 64, 65, 100, 128];
    let mut builder = Builder::new(ANY, 1);
    let mut results = Vec::new();
    for (number, from) in (0..).zip(widths) {
        let a = tag(&mut builder, number, from);
        for width in widths {
            let (resized, clamped) = (builder.value(width), builder.value(width));
            builder.op(Op::Resize { out: resized, a });
            builder.op(Op::Clamp { out: clamped, a });
            // And back, so that a wide type has a narrow value.
            let back = builder.value(from);
            builder.op(Op::Resize { out: back, a: resized });
            let sum = bin(&mut builder, BinOp::AddWrap, width, resized, clamped);
            results.extend([resized, clamped, back, sum]);
        }
    }
    show(&mut builder, &results);
    let mut random = Random::new(3);
    let inputs: Vec<Vec<_>> =
        (0..40).map(|_| widths.map(|width| random.value(width)).to_vec()).collect();
    same(&builder.residual, &inputs, "widths");
}

#[test]
fn members_of_sets_are_those_of_their_intervals() {
    let sets: Vec<Vec<(u128, u128)>> = vec![
        vec![],
        vec![(0, 0)],
        vec![(5, 9), (20, 20)],
        vec![(0, u128::MAX)],
        (0..40).map(|n| (n * 10, n * 10 + n % 4)).collect(),
        (0..128).map(|n| (n << 120, (n << 120) + 9)).collect(),
        // Too many intervals for machine code: the host tests them.
        (0..200).map(|n| (n * 3, n * 3)).collect(),
    ];
    for width in [8, 16, 64, 128] {
        let mut builder = Builder::new(ANY, 1);
        let a = tag(&mut builder, 0, width);
        let mut results = Vec::new();
        for set in &sets {
            let out = builder.value(1);
            let set = IntervalSet::new(set.iter().copied());
            if set.intervals().len() <= 128 {
                builder.op(Op::InSet { out, a, set: SetRef::Const(set) });
                results.push(out);
            }
        }
        show(&mut builder, &results);
        let inside = sets
            .iter()
            .flatten()
            .flat_map(|(low, high)| [low.wrapping_sub(1), *low, *high, high.wrapping_add(1)]);
        let max = braid_ir::show::max_of(width);
        let inputs: Vec<_> = inside.map(|value| vec![value & max]).collect();
        same(&builder.residual, &inputs, &format!("width {width}"));
    }
}

#[test]
fn sets_too_large_for_code_are_asked_of_the_host() {
    let mut builder = Builder::new(ANY, 1);
    let a = tag(&mut builder, 0, 16);
    let out = builder.value(1);
    let set = IntervalSet::new((0..200).map(|n| (n * 3, n * 3)));
    builder.op(Op::InSet { out, a, set: SetRef::Const(set) });
    show(&mut builder, &[out]);
    let code = compile(&builder.residual, &mut |_, _| None).unwrap();
    let mut host = Recorder { tags: vec![5], ..Recorder::new(&builder.residual) };
    let mut packet = Packet::new(Link::RawIp, 0, Vec::new());
    let (mut layout, mut counts) = (packet.parse(), [Count::default(); 3]);
    let (packet, layout) = (&mut packet, &mut layout);
    code.run(&mut host, Work { packet, layout, now: 0, counts: &mut counts }).unwrap();
    let steps: Vec<u32> = host
        .asked
        .iter()
        .map(|asked| match asked {
            crate::host::Asked::Step(_, step, _) => *step,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(steps, [0, 1, 2]);
}

const WIDTHS: [u16; 14] = [1, 1, 1, 4, 8, 12, 16, 32, 48, 63, 64, 65, 127, 128];

/// A random program: some blocks that jump forward, with parameters.
pub fn program(random: &mut Random) -> (Residual, Vec<u16>) {
    let blocks = 1 + random.below(5);
    let mut builder = Builder::new(ANY, blocks);
    let mut tags = Vec::new();
    let mut defined: Vec<(ValueId, u16)> = Vec::new();
    for _ in 0..3 + random.below(4) {
        let width = random.one_of(&WIDTHS);
        defined.push((tag(&mut builder, tags.len() as u32, width), width));
        tags.push(width);
    }
    let params: Vec<Vec<(ValueId, u16)>> = (0..blocks)
        .map(|block| {
            let count = if block == 0 { 0 } else { random.below(3) };
            let mut param = || {
                let width = random.one_of(&WIDTHS);
                (builder.param(block, width), width)
            };
            (0..count).map(|_| param()).collect()
        })
        .collect();
    let entry = defined.len();
    for block in 0..blocks {
        builder.block = block;
        // Values of block 0 may be used everywhere; other blocks use only their own values besides.
        let mut here = defined.clone();
        here.extend(&params[block]);
        for _ in 0..random.below(25) {
            some_step(&mut builder, random, &mut here);
        }
        let values: Vec<ValueId> = here.iter().map(|(value, _)| *value).collect();
        show(&mut builder, &values[values.len().saturating_sub(12)..]);
        if block == 0 {
            defined = here.clone();
        }
        if block + 1 < blocks {
            let mut target = |builder: &mut Builder, random: &mut Random| {
                let to_block = block + 1 + random.below(blocks - block - 1);
                let args: Vec<ValueId> = params[to_block]
                    .iter()
                    .map(|(_, width)| value_of(builder, random, &mut here, *width))
                    .collect();
                to(to_block, &args)
            };
            let yes = target(&mut builder, random);
            let no = target(&mut builder, random);
            let cond = value_of(&mut builder, random, &mut here, 1);
            match random.below(4) {
                0 => builder.end(End::Jump(yes)),
                _ => builder.end(End::Branch { cond, yes, no }),
            }
        }
    }
    assert!(entry > 0);
    (builder.residual, tags)
}

/// A value of a width: an existing one or a new one.
fn value_of(
    builder: &mut Builder,
    random: &mut Random,
    here: &mut Vec<(ValueId, u16)>,
    width: u16,
) -> ValueId {
    let fit: Vec<ValueId> = here.iter().filter(|(_, w)| *w == width).map(|(v, _)| *v).collect();
    if !fit.is_empty() && random.chance(80) {
        return random.one_of(&fit);
    }
    let out = if random.chance(40) {
        let value = random.value(width);
        builder.constant(width, value)
    } else {
        let (a, _) = random.one_of(here);
        let out = builder.value(width);
        let resize = random.chance(60);
        builder.op(if resize { Op::Resize { out, a } } else { Op::Clamp { out, a } });
        out
    };
    here.push((out, width));
    out
}

fn some_step(builder: &mut Builder, random: &mut Random, here: &mut Vec<(ValueId, u16)>) {
    let width = random.one_of(&WIDTHS);
    let a = value_of(builder, random, here, width);
    let b = value_of(builder, random, here, width);
    let (out, width) = match random.below(12) {
        0 => {
            builder.push(What::Count(CounterListId(2)));
            return;
        }
        1 | 2 => {
            let out = builder.value(1);
            builder.op(Op::Cmp { out, op: random.one_of(&COMPARE), a, b });
            (out, 1)
        }
        3 => {
            let out = builder.value(width);
            builder.op(Op::Not { out, a });
            (out, width)
        }
        4 => {
            let cond = value_of(builder, random, here, 1);
            let out = builder.value(width);
            builder.op(Op::Select { out, cond, a, b });
            (out, width)
        }
        5 => {
            let out = builder.value(1);
            let set = (0..random.below(12)).map(|_| {
                let (x, y) = (random.value(width), random.value(width));
                (x.min(y), x.max(y))
            });
            let set = SetRef::Const(IntervalSet::new(set.collect::<Vec<_>>()));
            builder.op(Op::InSet { out, a, set });
            (out, 1)
        }
        _ => (bin(builder, random.one_of(&BinOp::ALL), width, a, b), width),
    };
    here.push((out, width));
}

#[test]
fn programs_at_random_do_what_they_do_when_interpreted() {
    for seed in braid_cases::seeds(120) {
        let mut random = Random::new(seed);
        let (residual, tags) = program(&mut random);
        let inputs: Vec<Vec<u128>> =
            (0..12).map(|_| tags.iter().map(|width| random.value(*width)).collect()).collect();
        same(&residual, &inputs, &format!("seed {seed}"));
    }
}
