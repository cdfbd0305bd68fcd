//! Malformed programs give errors and do nothing worse.

use crate::calls::{named, numbered, run, show, tag};
use crate::host::Recorder;
use crate::random::{Builder, FAULTS, Random, to};
use braid_ir::model::{BinOp, BlockId, Key, Op, StateId, ValueId};
use braid_ir::residual::{CounterListId, End, HeaderMask, Residual, What};
use braid_jit::{Error, compile};
use braid_packet::Field;

const ANY: HeaderMask = HeaderMask { care: 0, present: 0 };

#[test]
fn programs_that_are_not_well_formed_are_errors() {
    let error = |builder: &Builder| compile(&builder.residual, &mut numbered).unwrap_err();
    let new = || Builder::new(ANY, 2);

    let mut builder = new();
    let a = builder.value(8);
    let out = builder.value(8);
    builder.op(Op::Not { out, a });
    assert_eq!(error(&builder), Error::Value(a), "no definition");

    let mut builder = new();
    let a = builder.constant(8, 1);
    builder.op(Op::Const { out: a, value: 2 });
    assert_eq!(error(&builder), Error::Value(a), "two definitions");

    let mut builder = new();
    builder.op(Op::Const { out: ValueId(9), value: 2 });
    assert_eq!(error(&builder), Error::Value(ValueId(9)), "no type");

    let mut builder = new();
    builder.constant(8, 256);
    assert_eq!(error(&builder), Error::Width(ValueId(0)), "a constant too large");

    let mut builder = new();
    let (a, b, out) = (builder.constant(8, 1), builder.constant(9, 1), builder.value(8));
    builder.op(Op::Bin { out, op: BinOp::And, a, b });
    assert_eq!(error(&builder), Error::Width(out), "two widths");

    let mut builder = new();
    builder.value(129);
    assert_eq!(error(&builder), Error::Width(ValueId(0)), "129 bits");

    let mut builder = new();
    builder.end(End::Jump(to(0, &[])));
    assert_eq!(error(&builder), Error::Jump(to(0, &[]).block), "backwards");

    let mut builder = new();
    builder.end(End::Jump(to(2, &[])));
    assert_eq!(error(&builder), Error::Jump(to(2, &[]).block), "nowhere");

    let mut builder = new();
    builder.param(1, 8);
    builder.end(End::Jump(to(1, &[])));
    assert_eq!(error(&builder), Error::Jump(to(1, &[]).block), "too few values");

    let mut builder = new();
    builder.push(What::Count(CounterListId(3)));
    assert_eq!(error(&builder), Error::Counter(3));

    let mut builder = new();
    builder.residual.counter_lists.truncate(FAULTS.0 as usize);
    builder.constant(1, 1);
    assert_eq!(error(&builder), Error::Counter(FAULTS.0));

    let mut builder = new();
    builder.op(Op::StateDelete { state: StateId(0), key: Key::Explicit(vec![ValueId(0)]) });
    assert_eq!(error(&builder), Error::Value(ValueId(0)));

    let mut builder = new();
    let out = builder.value(32);
    builder.op(Op::LoadEntry { out, field: Field::IpSrc });
    assert_eq!(error(&builder), Error::Operation { block: 0, step: 0 });

    let mut builder = new();
    builder.residual.blocks.clear();
    assert_eq!(error(&builder), Error::Size);
}

#[test]
fn blocks_that_nothing_leads_to_do_no_harm() {
    let mut builder = Builder::new(ANY, 2);
    builder.block = 1;
    builder.op(Op::Not { out: ValueId(8), a: ValueId(9) });
    builder.end(End::Jump(to(7, &[])));
    compile(&builder.residual, &mut numbered).unwrap();
}

#[test]
fn value_that_is_not_defined_on_all_paths_is_an_error() {
    let mut builder = Builder::new(ANY, 3);
    let cond = tag(&mut builder, 0, 1);
    builder.end(End::Branch { cond, yes: to(1, &[]), no: to(2, &[]) });
    builder.block = 1;
    let here = builder.constant(8, 1);
    let tagged = tag(&mut builder, 0, 8);
    builder.end(End::Jump(to(2, &[])));
    builder.block = 2;
    show(&mut builder, &[here, tagged]);
    let error = compile(&builder.residual, &mut numbered).unwrap_err();
    assert!(matches!(error, Error::Generator(_)), "{error}");
}

/// Changes one detail of a program, so that it is probably malformed.
fn spoil(random: &mut Random, residual: &mut Residual) {
    let values = residual.values.len() as u32;
    let value = ValueId(random.below(values as usize + 2) as u32);
    let at = random.below(residual.blocks.len());
    let count = residual.blocks.len();
    let block = &mut residual.blocks[at];
    match random.below(7) {
        0 => {
            let at = random.below(residual.values.len());
            residual.values[at].width = random.one_of(&[0, 1, 8, 64, 65, 128, 129]);
        }
        1 => {
            let step = random.below(block.steps.len());
            if let Some(step) = block.steps.get_mut(step) {
                let mut left = random.below(4);
                step.what.visit_uses_mut(&mut |used| {
                    if left == 0 {
                        *used = value;
                    }
                    left = left.wrapping_sub(1);
                });
            }
        }
        2 => {
            let step = random.below(block.steps.len());
            if let Some(step) = block.steps.get_mut(step) {
                step.what.visit_outs_mut(&mut |out| *out = value);
            }
        }
        3 => {
            let block_id = BlockId(random.below(count + 1) as u32);
            block.end.visit_targets_mut(&mut |target| target.block = block_id);
        }
        4 => {
            block.end.visit_targets_mut(&mut |target| {
                target.args.pop();
            });
        }
        5 => {
            let (from, to) = (random.below(block.steps.len()), random.below(block.steps.len()));
            if !block.steps.is_empty() {
                block.steps.swap(from, to);
            }
        }
        _ => {
            let step = random.below(block.steps.len());
            if let Some(step) = block.steps.get_mut(step) {
                step.fault = random.one_of(&[None, Some(CounterListId(9))]);
            }
        }
    }
}

#[test]
fn spoiled_programs_are_errors_or_run_to_an_end() {
    let (mut errors, mut runs) = (0, 0);
    for seed in 0..braid_cases::at_least(250).into() {
        let mut random = Random::new(seed);
        let (mut residual, tags) = crate::pure::program(&mut random);
        for _ in 0..1 + random.below(2) {
            spoil(&mut random, &mut residual);
        }
        match compile(&residual, &mut numbered) {
            Err(error) => {
                assert_ne!(error.to_string(), "");
                errors += 1;
            }
            Ok(code) => {
                let tags = tags.iter().map(|width| random.value(*width)).collect();
                let mut host = Recorder { tags, ..Recorder::new(&residual) };
                run(&code, &mut host, &mut named("udp"));
                runs += 1;
            }
        }
    }
    assert!(errors > 50 && runs > 50, "{errors} errors, {runs} runs");
}
