//! Plants faults in flow records. The check of a bench finds them, because its packets take
//! records.

mod common;

use braid_bench::check::observe;
use braid_bench::definition::{Case, embedded};
use braid_bench::feed::Feed;
use braid_bench::selection::Selection;
use braid_bench::setup::{Given, Setup};
use braid_bench::subject::Kind;
use braid_engine::{Compiled, Options, RecordMutant};
use braid_ir::residual::Extent;

/// Number of packets of a bench's check.
const CHECK: u64 = 20_000;

fn wrong(setup: &Setup, mutant: RecordMutant) -> Compiled {
    let chain = setup.chain.clone();
    Compiled::with_record_mutant(chain, Extent::Chain, Options::fused(), mutant).unwrap()
}

#[test]
fn check_finds_wrong_records_that_the_first_packets_do_not_show() {
    let definition = embedded().unwrap().into_iter().find(|one| one.name == "napts").unwrap();
    let case = Case { flows: 50_000, ..definition.cases(false)[0] };
    let setup = definition.set_up(&case, &Given::default(), &common::chain).unwrap();
    let selection = Selection::new(&setup, CHECK);
    let reference = || Kind::Reference.make(&setup.chain, case.flows).unwrap();
    let expected = selection.observe(reference().as_mut());
    let first = |subject: &mut dyn braid_bench::subject::Subject| {
        let mut cursor = setup.ring.cursor(u64::MAX);
        observe(subject, &mut |feed: &mut Feed| cursor.add(feed), CHECK)
    };
    let expected_first = first(reference().as_mut());
    let mutant = RecordMutant::WrongDelta;
    let why = match selection.compare(Kind::Fused, &mut wrong(&setup, mutant), &expected, true) {
        Ok(outcome) => panic!("not found, with {:?} hits", outcome.hits),
        Err(why) => why.of("napts").to_string(),
    };
    assert!(why.contains("other bytes"), "{why}");
    // Each flow's first packet takes no record.
    let shown = first(&mut wrong(&setup, mutant));
    assert_eq!((shown.difference(&expected_first), shown.hits), (None, Some(0)));
}

#[test]
fn check_of_flows_that_come_and_go_finds_wrong_records() {
    let definition = embedded().unwrap().into_iter().find(|one| one.name == "traces").unwrap();
    let case = Case { flows: 300, ..definition.cases(false)[0] };
    let given = Given { measured: Some(30_000), ..Given::default() };
    let setup = definition.set_up(&case, &given, &common::chain).unwrap();
    let selection = Selection::new(&setup, 1_000);
    let mut reference = Kind::Reference.make(&setup.chain, case.flows).unwrap();
    let expected = selection.observe(reference.as_mut());
    // The packets last for three seconds, so that entries without packets time out.
    for mutant in [RecordMutant::WrongDelta, RecordMutant::StaleEntry, RecordMutant::LivenessLost] {
        let found = selection.compare(Kind::Fused, &mut wrong(&setup, mutant), &expected, true);
        assert!(found.is_err(), "{mutant:?} is not found");
    }
}
