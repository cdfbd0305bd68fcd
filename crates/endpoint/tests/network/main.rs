//! Two endpoints over a simulated network: all bytes arrive, and both sides end.

mod link;
mod run;

use braid_endpoint::{Failure, Settings};
use braid_externs::rng::Rng;
use link::Path;
use proptest::prelude::*;
use run::{Run, User};

const MILLISECOND: u64 = 1_000_000;

fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut random = Rng::new(seed);
    (0..count).map(|_| random.next_u64().to_le_bytes()[0]).collect()
}

fn user(settings: Settings, count: usize) -> User {
    User { settings, bytes: bytes(count, 1), reads: (usize::MAX, 0), closes_last: false }
}

fn settings() -> impl Strategy<Value = Settings> {
    let buffer = || prop_oneof![500_u32..5000, 5000_u32..100_000, Just(1 << 20)];
    (40_u16..1500, buffer(), buffer(), any::<[bool; 3]>()).prop_map(
        |(mss, receive, send, [wscale, sack, timestamps])| Settings {
            mss,
            receive,
            send,
            wscale,
            sack,
            timestamps,
        },
    )
}

fn users() -> impl Strategy<Value = User> {
    let count = prop_oneof![0_usize..2000, 0_usize..60_000];
    let reads = prop_oneof![
        Just((usize::MAX, 0)),
        (1_usize..5000, 1..200 * MILLISECOND).prop_map(|(count, pause)| (count.max(300), pause)),
    ];
    (settings(), count, any::<u64>(), reads, any::<bool>()).prop_map(
        |(settings, count, seed, reads, closes_last)| User {
            settings,
            bytes: bytes(count, seed),
            reads,
            closes_last,
        },
    )
}

fn path() -> impl Strategy<Value = Path> {
    (
        prop_oneof![Just(0_u64), 100_000_u64..100_000_000],
        0..100 * MILLISECOND,
        prop_oneof![Just(0), 0..50 * MILLISECOND],
        prop_oneof![Just(0_u64), 0_u64..250],
        prop_oneof![Just(0_u64), 0_u64..250],
    )
        .prop_map(|(rate, delay, jitter, loss, duplicates)| Path {
            rate,
            delay,
            jitter,
            loss,
            duplicates,
            queue: 50,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(120)))]

    #[test]
    fn all_bytes_arrive_and_both_sides_end(
        users in [users(), users()],
        paths in [path(), path()],
        seed in any::<u64>(),
        is_saved in any::<bool>(),
    ) {
        let mut users = users;
        // If each waited for the other, none would ever close.
        users[1].closes_last &= !users[0].closes_last;
        let sent = users.clone().map(|user| user.bytes);
        let outcome = Run::new(users, paths, seed, is_saved).run();
        // The last acknowledgements may all be lost until one side has left TIME-WAIT.
        let failures: Vec<_> = outcome.failures.into_iter().flatten().collect();
        prop_assert!(matches!(failures[..], [] | [Failure::Reset]), "{:?}", failures);
        prop_assert!(outcome.received[1] == sent[0], "the server has other bytes");
        prop_assert!(outcome.received[0] == sent[1], "the client has other bytes");
    }
}

/// A path of 10 Mbit/s with a round trip of 20 ms.
fn link(loss: u64) -> Path {
    Path { rate: 10_000_000, delay: 10 * MILLISECOND, jitter: 0, loss, duplicates: 0, queue: 30 }
}

/// The time of a transfer of 10 MB in hundredths of the time that its bytes need on the link.
fn slowness(settings: Settings, loss: u64, seed: u64) -> u64 {
    let count = 10_000_000;
    let users = [user(settings, count), user(settings, 0)];
    let outcome = Run::new(users, [link(loss), link(0)], seed, false).run();
    assert_eq!(outcome.failures, [None, None]);
    assert_eq!(outcome.received[1].len(), count);
    let ideal = count as u64 * 8 * 100;
    outcome.last_byte_at * 100 / ideal
}

#[test]
fn a_transfer_without_random_loss_fills_the_link() {
    for sack in [true, false] {
        let slowness = slowness(Settings { sack, ..Settings::default() }, 0, 1);
        assert!(slowness < 115, "sack {sack}: {slowness} % of the ideal time");
    }
}

#[test]
fn a_transfer_with_one_percent_of_loss_takes_less_than_twice_as_long() {
    for sack in [true, false] {
        for seed in 0..4 {
            let slowness = slowness(Settings { sack, ..Settings::default() }, 10, seed);
            assert!(slowness < 200, "sack {sack}, seed {seed}: {slowness} % of the ideal time");
        }
    }
}
