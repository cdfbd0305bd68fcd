//! Tests that state survives files, and that no change of a file's bytes makes Braid panic.

use braid_ir::chain::Chain;
use braid_ir::snapshot::Snapshot;
use braid_runtime::state_files::{StateError, StateFiles, decode, encode};
use braid_testkit::breaks::{Kind, resumed};
use braid_testkit::generate::Rng;
use braid_testkit::generate::program::any;
use braid_testkit::generate::traffic::stimuli;
use braid_testkit::harness::{self, ENGINES, Form, budget};
use braid_testkit::record::{Detail, record, step};
use std::os::unix::fs::PermissionsExt;

/// Number of chains, unless `BRAID_CASES` sets it.
const CASES: u64 = 25;
/// Number of changed files for each chain.
const CHANGED: usize = 40;
/// Number of stimuli of each chain.
const STIMULI: usize = 120;

/// A generated chain, and its state after traffic.
fn state(seed: u64) -> (Chain, Snapshot) {
    let program = any(seed);
    let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
    let chain = chain.unwrap_or_else(|errors| panic!("seed {seed}\n{program}\n{errors}"));
    let mut engine = harness::reference(&chain);
    record(engine.as_mut(), &stimuli(&chain, seed, STIMULI), Detail::End);
    (chain, engine.export())
}

#[test]
fn state_is_the_same_after_it_was_written_and_read() {
    for seed in budget::seeds(CASES) {
        let (_, snapshot) = state(seed);
        assert!(decode(&encode(&snapshot)).expect("its own file") == snapshot, "seed {seed}");
    }
}

#[test]
fn changed_file_is_refused() {
    for seed in budget::seeds(CASES) {
        let (_, snapshot) = state(seed);
        let file = encode(&snapshot);
        let mut rng = Rng::new(seed);
        for _ in 0..CHANGED {
            let cut = rng.below(file.len());
            assert!(decode(&file[..cut]).is_err(), "seed {seed}: cut at {cut}");
            let mut flipped = file.clone();
            let (at, bit) = (rng.below(file.len()), rng.below(8));
            flipped[at] ^= 1 << bit;
            assert!(decode(&flipped).is_err(), "seed {seed}: bit {bit} of byte {at}");
        }
    }
}

/// Changes that the checksum does not show, as if a faulty program had written the file.
#[test]
fn wrong_contents_are_refused_or_used_but_never_cause_a_panic() {
    let (mut refused, mut used) = (0, 0);
    for seed in budget::seeds(CASES) {
        let (chain, snapshot) = state(seed);
        let bytes = snapshot.to_bytes();
        let mut rng = Rng::new(seed);
        for _ in 0..CHANGED {
            let mut changed = bytes.clone();
            for _ in 0..=rng.below(3) {
                let at = rng.below(changed.len());
                changed[at] = rng.below(256) as u8;
            }
            changed.truncate(if rng.one_in(4) { rng.below(bytes.len()) } else { bytes.len() });
            let Ok(snapshot) = Snapshot::from_bytes(&changed) else {
                refused += 1;
                continue;
            };
            let engines = ENGINES.iter().filter(|engine| !engine.has_machine_code());
            let kinds: Vec<_> =
                engines.copied().map(Kind::Compiled).chain([Kind::Reference]).collect();
            match resumed(*rng.pick(&kinds), &chain, snapshot) {
                Ok(mut engine) => {
                    used += 1;
                    for stimulus in stimuli(&chain, seed, 20) {
                        step(engine.as_mut(), &stimulus);
                    }
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 0 && used > 0, "{refused} refused, {used} used");
}

#[test]
fn torn_file_is_refused_and_the_one_before_is_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let named = |chain: &str| Snapshot { chain: chain.to_owned(), ..Snapshot::default() };
    let open = || StateFiles::new(&folder.path().join("state"), "a b").expect("a folder");
    let load = |files: &mut StateFiles| {
        let (loaded, refused) = files.load(|_, snapshot| Ok(snapshot.chain));
        (loaded, refused.into_iter().map(|one| one.error).collect::<Vec<_>>())
    };
    let mut files = open();
    assert!(matches!(load(&mut files), (None, refused) if refused.is_empty()));
    files.save(&named("first")).expect("saved");
    files.save(&named("second")).expect("saved");
    let refused = StateFiles::new(&folder.path().join("state"), "a b").expect_err("it is locked");
    assert!(refused.to_string().contains("another run"), "{refused}");
    drop(files);
    assert_eq!(load(&mut open()).0.as_deref(), Some("second"));
    let saved = folder.path().join("state/a_b.state");
    assert_eq!(saved.metadata().expect("a file").permissions().mode() & 0o777, 0o600);

    let current = folder.path().join("state/a_b.state");
    let whole = std::fs::read(&current).expect("the file");
    std::fs::write(&current, &whole[..whole.len() - 1]).expect("written");
    let mut files = open();
    let (loaded, refused) = load(&mut files);
    assert_eq!(loaded.as_deref(), Some("first"));
    assert!(matches!(refused[..], [StateError::Torn { .. }]), "{refused:?}");

    // The torn file does not take the place of the good one.
    files.save(&named("third")).expect("saved");
    drop(files);
    std::fs::write(&current, b"something else").expect("written");
    let (loaded, refused) = load(&mut open());
    assert_eq!(loaded.as_deref(), Some("first"));
    assert!(matches!(refused[..], [StateError::Foreign]), "{refused:?}");

    let mut newer = whole.clone();
    newer[8] = 9;
    std::fs::write(&current, newer).expect("written");
    assert!(matches!(load(&mut open()).1[..], [StateError::Version(9)]));
}
