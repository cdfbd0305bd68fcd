//! Tests several limits on counters of records together. A record with fuel left does not notice
//! that another record counts past its limit, so no record may do that.

use crate::{chain, enter, same};
use braid_engine::{Compiled, Options, RecordMutant};
use braid_ir::chain::Chain;
use braid_ir::residual::Extent;
use braid_testkit::compare::difference;
use braid_testkit::harness;
use braid_testkit::record::{Detail, Stimulus, record};

/// A chain of one function with these declarations and rows.
fn one(state: &str, rows: &str) -> Chain {
    let text = format!(
        "nf limits() {{ state {state}; match {{ {rows} else => output; }} }}
         chain c {{
           interface lan {{ behind 10.0.0.0/8 }}
           interface wan;
           path lan <-> limits() <-> wan;
         }}"
    );
    chain(&text, &[])
}

/// A host and a server send packets in turn, with these numbers of packets per turn.
fn in_turn(forward: usize, backward: usize) -> Vec<Stimulus> {
    let texts = ["udp 10.0.0.1:9 > 192.0.2.1:9", "udp 192.0.2.1:9 > 10.0.0.1:9"];
    let turn = [vec![0; forward], vec![1; backward]].concat();
    let sides = turn.iter().copied().cycle().take(120);
    (1..).zip(sides).map(|(at, side)| enter(at, side, texts[usize::from(side)])).collect()
}

const TURNS: [(usize, usize); 9] =
    [(1, 1), (2, 1), (1, 2), (3, 3), (5, 2), (2, 5), (8, 8), (4, 13), (13, 4)];

/// Checks that the chain behaves the same with and without flow records, and that the mutant whose
/// records ignore the limits of others is found.
fn keeps_all_limits(chain: &Chain) {
    is_kept_but_for(chain, RecordMutant::OtherBoundsIgnored);
}

/// Checks that the chain behaves the same with and without flow records, and differently with the
/// mutant.
fn is_kept_but_for(chain: &Chain, bug: RecordMutant) {
    let mut found = 0;
    for (forward, backward) in TURNS {
        let stimuli = in_turn(forward, backward);
        let (_, flows) = same(chain, &stimuli);
        assert!(flows.hits > 0, "{flows:?}");
        let options = Options { eager: true, ..Options::fused() };
        let wrong = Compiled::with_record_mutant(chain.clone(), Extent::Chain, options, bug);
        let wrong = record(&mut wrong.expect("an engine"), &stimuli, Detail::End);
        let expected = record(harness::reference(chain).as_mut(), &stimuli, Detail::End);
        found += usize::from(difference(&expected, &wrong).is_some());
    }
    assert!(found > 0, "no turns show {bug:?}");
}

#[test]
fn two_slots_of_a_table_keep_their_limits() {
    keeps_all_limits(&one(
        "a: u32 per ip.src = 0",
        "has ip and a[ip.src] > 6 and a[ip.dst] < 20 => { a[ip.dst] += 1; consume; }
         has ip => { a[ip.src] += 1; output; }",
    ));
}

#[test]
fn two_directions_keep_their_limits_on_one_entry() {
    keeps_all_limits(&one(
        "a: u32 per ip.src = 0",
        "has ip and forward and a < 20 => { a += 1; consume; }
         has ip and a[ip.dst] < 35 => { a[ip.dst] += 1; output; }",
    ));
}

#[test]
fn quota_of_packets_by_direction_is_kept() {
    keeps_all_limits(&one(
        "n: u32 per biflow = 0, idle 60 s, full evict_oldest",
        "forward and n >= 20 => drop \"upload quota\";
         backward and n >= 40 => drop \"download quota\";
         has inet => { n += 1; output; }",
    ));
}

#[test]
fn quota_of_bytes_by_direction_is_kept() {
    keeps_all_limits(&one(
        "n: size per biflow = 0, idle 60 s, full evict_oldest",
        "forward and n > 900 B => drop \"upload quota\";
         backward and n > 2 KB => drop \"download quota\";
         has inet => { n += pkt.len; output; }",
    ));
}

#[test]
fn sum_that_wraps_is_compared_where_the_counter_stops() {
    // The sum wraps at 256, before and while the counter stops at 255.
    let chain = one(
        "n: u8 per biflow = 0",
        "has inet and wrapping(n + 50) >= 50 => { n += 60; output; }
         has inet => drop \"round\";",
    );
    is_kept_but_for(&chain, RecordMutant::WrapForgotten);
}
