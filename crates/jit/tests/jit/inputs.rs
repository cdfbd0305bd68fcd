//! Inputs of programs for events.

use crate::calls::{named, ready, show, shown};
use crate::random::Builder;
use braid_ir::model::Op;
use braid_ir::residual::HeaderMask;
use braid_jit::{Count, Ended, GuardFailure};
use std::cell::Cell;

const ANY: HeaderMask = HeaderMask { care: 0, present: 0 };

#[test]
fn inputs_are_the_words_with_their_numbers() {
    let mut builder = Builder::new(ANY, 1);
    let inputs = [(32, 1), (128, 3), (64, 0)].map(|(width, field)| {
        let out = builder.value(width);
        builder.op(Op::LoadEvent { out, field });
        out
    });
    show(&mut builder, &inputs);
    let (code, mut host) = ready(&builder);
    let (mut packet, counts) = (named("udp"), <[Cell<Count>; 3]>::default());
    let mut layout = packet.parse();
    let words = [u128::from(u64::MAX), 0xffff_fffe, 9, u128::MAX - 5];
    let mut runner = code.runner_with_inputs(&mut host, &counts, &words).expect("enough words");
    assert_eq!(runner.run(&mut packet, &mut layout, 0), Ok(Ended::End(0)));
    assert_eq!(shown(&host), [[0xffff_fffe, u128::MAX - 5, u128::from(u64::MAX)]]);
}

#[test]
fn programs_do_not_run_without_their_inputs() {
    let mut reading = Builder::new(ANY, 1);
    let out = reading.value(8);
    reading.op(Op::LoadEvent { out, field: 2 });
    let (reading, mut host) = ready(&reading);
    let (plain, _) = ready(&Builder::new(ANY, 1));
    let counts = <[Cell<Count>; 3]>::default();
    let few = reading.runner_with_inputs(&mut host, &counts, &[1, 2]).map(|_| ());
    assert_eq!(few, Err(GuardFailure::Inputs));
    assert_eq!(reading.runner(&mut host, &counts).map(|_| ()), Err(GuardFailure::Inputs));
    let mut runner = plain.runner(&mut host, &counts).expect("no inputs are needed");
    assert_eq!(runner.switch_to(&reading, &counts), Err(GuardFailure::Inputs));
    let words = [1, 2, 3];
    let mut runner = plain.runner_with_inputs(&mut host, &counts, &words).expect("enough words");
    assert_eq!(runner.switch_to(&reading, &counts), Ok(()));
}
