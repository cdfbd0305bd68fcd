//! Faults of one direction, with a clock of the test.

use super::*;

/// Puts frames with these numbers, a millisecond apart, and returns what comes out, with the time.
fn passed(faults: Faults, count: u32) -> (Vec<(u64, Vec<u8>)>, Injected) {
    let (start, mut wire, mut found) = (Instant::now(), Wire::new(faults, faults.seed), Vec::new());
    for ms in 0..u64::from(count) + 100 {
        let now = start + Duration::from_millis(ms);
        if ms < u64::from(count) {
            let number = u32::try_from(ms).unwrap();
            wire.put(Frame::of(&number.to_be_bytes().repeat(8)), now);
        }
        while let Some(frame) = wire.take(now) {
            found.push((ms, frame.bytes().to_vec()));
        }
    }
    assert!(wire.frames.is_empty() && wire.behind.is_none());
    (found, wire.injected)
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(*frame.first_chunk().unwrap())
}

#[test]
fn without_faults_every_frame_passes_at_once() {
    let (found, injected) = passed(Faults::default(), 50);
    assert_eq!(injected, Injected::default());
    assert!((0..50).eq(found.iter().map(|(ms, _)| *ms)));
    assert!((0..50).eq(found.iter().map(|(_, frame)| number(frame))));
}

#[test]
fn faults_have_their_chances_and_are_counted() {
    let tenth = CERTAIN / 10;
    let near = |count: u64| (800..1200).contains(&count);
    let (found, injected) = passed(Faults { loss: tenth, ..Faults::default() }, 10_000);
    assert!(near(injected.loss) && found.len() as u64 == 10_000 - injected.loss);

    let (found, injected) = passed(Faults { duplicate: tenth, ..Faults::default() }, 10_000);
    assert!(near(injected.duplicate) && found.len() as u64 == 10_000 + injected.duplicate);

    let (found, injected) = passed(Faults { corrupt: tenth, ..Faults::default() }, 10_000);
    let wrong = found.iter().zip(0..).filter(|((_, frame), number): &(_, u32)| {
        let expected = number.to_be_bytes().repeat(8);
        let bits: u32 = frame.iter().zip(&expected).map(|(a, b)| (a ^ b).count_ones()).sum();
        assert!(bits <= 1);
        bits == 1
    });
    assert!(near(injected.corrupt) && wrong.count() as u64 == injected.corrupt);

    let (found, injected) = passed(Faults { truncate: tenth, ..Faults::default() }, 10_000);
    let short = found.iter().filter(|(_, frame)| frame.len() < 32).count();
    assert!(near(injected.truncate) && short as u64 == injected.truncate);
}

#[test]
fn delayed_and_reordered_frames_come_later_and_none_is_lost() {
    let half = CERTAIN / 2;
    let (mut found, injected) = passed(Faults { delay: half, ..Faults::default() }, 1000);
    let late = found.iter().filter(|(ms, frame)| *ms == u64::from(number(frame)) + 20);
    assert_eq!(late.count() as u64, injected.delay);
    found.sort_by_key(|(_, frame)| number(frame));
    assert!((0..1000).eq(found.iter().map(|(_, frame)| number(frame))));

    let (found, injected) = passed(Faults { reorder: half, ..Faults::default() }, 1000);
    let order: Vec<u32> = found.iter().map(|(_, frame)| number(frame)).collect();
    assert!(injected.reorder > 100 && order.len() == 1000 && !order.is_sorted());
    assert!(order.iter().zip(0..).all(|(number, at): (_, u32)| number.abs_diff(at) <= 1));
}

#[test]
fn stall_holds_frames_back_and_loses_none() {
    let (found, injected) = passed(Faults { stall: CERTAIN / 50, ..Faults::default() }, 1000);
    assert!(injected.stall > 5);
    assert!((0..1000).eq(found.iter().map(|(_, frame)| number(frame))));
    assert!(found.iter().any(|(ms, frame)| *ms == u64::from(number(frame)) + 20));
}

#[test]
fn same_seed_has_the_same_faults() {
    let all = CERTAIN / 20;
    let faults = |seed| Faults {
        loss: all,
        duplicate: all,
        reorder: all,
        corrupt: all,
        truncate: all,
        delay: all,
        stall: all,
        seed,
        ..Faults::default()
    };
    assert_eq!(passed(faults(5), 500), passed(faults(5), 500));
    assert_ne!(passed(faults(5), 500), passed(faults(6), 500));
}

#[test]
fn faults_are_written_as_a_list() {
    let faults: Faults = "loss=1%,delay=0.25%,stall=100%,time=5ms,seed=7".parse().unwrap();
    let expected = Faults {
        loss: 10_000,
        delay: 2_500,
        stall: CERTAIN,
        time: Duration::from_millis(5),
        seed: 7,
        ..Faults::default()
    };
    assert_eq!(faults, expected);
    let wrong =
        ["", "loss", "loss=1", "loss=101%", "loss=-1%", "loss=.5%", "lose=1%", "time=5", "seed=x"];
    for wrong in wrong {
        assert!(wrong.parse::<Faults>().is_err(), "{wrong}");
    }
}
