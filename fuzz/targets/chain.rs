#![no_main]
//! Runs chains of the library's functions. With any packets in any order at any times, the engine
//! must continue and account for all of them.

use braid_testkit::harness;
use braid_testkit::hostile::stimuli;
use braid_testkit::record::step;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((chain, stimuli)) = stimuli(bytes) else { return };
    let mut engine = harness::reference(chain);
    for stimulus in &stimuli {
        step(engine.as_mut(), stimulus);
    }
    assert!(engine.counters().balanced(), "{:?}", engine.counters());
    let _ = engine.state();
});
