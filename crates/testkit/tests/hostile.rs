//! Runs the check of the fuzz target `engines`, for machine code and flow records, on random input.

use braid_testkit::generate::Rng;
use braid_testkit::harness::budget;
use braid_testkit::hostile::check;

#[test]
fn engines_are_equal_on_hostile_packets() {
    for seed in budget::seeds(40) {
        let mut rng = Rng::new(seed ^ 0x686f_7374);
        let bytes: Vec<u8> = (0..rng.below(400)).map(|_| rng.byte()).collect();
        if let Err(report) = check(&bytes) {
            panic!("seed {seed}, {bytes:?}: {report}");
        }
    }
}
