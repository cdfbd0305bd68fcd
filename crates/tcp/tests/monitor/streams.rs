//! Both streams of a connection, interleaved, reordered and repeated, with numbers that wrap.

use braid_tcp::{Direction, Gap, Output, Overlap, Policy, Seq, Stream};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::{ACK, Client, End, FIN, SYN, Script, Server};

fn config() -> ProptestConfig {
    let mut config = ProptestConfig::with_cases(braid_cases::cases(256));
    if let RngSeed::Random = config.rng_seed {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

/// A stream's bytes.
fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| u8::try_from((at * 7 + usize::from(seed)) % 253).unwrap()).collect()
}

/// A segment of one end: the place in the stream and the number of bytes.
type Piece = (bool, usize, usize);

proptest! {
    #![proptest_config(config())]

    #[test]
    fn both_streams_come_out_as_they_were_sent(
        (client, server) in (any::<u32>(), any::<u32>()),
        near_wrap in any::<bool>(),
        (up, down) in (0_usize..400, 0_usize..400),
        extra in proptest::collection::vec((any::<bool>(), 0_usize..400, 1_usize..90), 0..40),
        order in any::<u64>(),
        has_fin in any::<bool>(),
    ) {
        let isn = |seq: u32| if near_wrap { 0_u32.wrapping_sub(seq % 500) } else { seq };
        let (client, server) = (isn(client), isn(server));
        let (up, down) = (bytes(up, 1), bytes(down, 100));
        let of = |is_up: bool| if is_up { &up } else { &down };
        let whole = |is_up: bool| (0..of(is_up).len()).step_by(11).map(move |at| (is_up, at, 11));
        let mut pieces: Vec<Piece> = whole(true).chain(whole(false)).chain(extra).collect();
        pieces.retain(|(is_up, at, _)| *at < of(*is_up).len());
        let rank = |at: usize| (at as u64 + 1).wrapping_mul(order | 1).rotate_left(23);
        let mut ranked: Vec<(u64, Piece)> =
            pieces.into_iter().enumerate().map(|(at, piece)| (rank(at), piece)).collect();
        ranked.sort_unstable();

        let mut script = Script::new();
        let first = |end: End| if end == Client { client } else { server }.wrapping_add(1);
        script.send(Client, SYN, client, 0, b"");
        script.send(Server, SYN | ACK, server, first(Client), b"");
        script.send(Client, ACK, first(Client), first(Server), b"");
        for (_, (is_up, at, len)) in ranked {
            let (end, other) = if is_up { (Client, Server) } else { (Server, Client) };
            let stream = of(is_up);
            let stop = stream.len().min(at + len);
            let seq = first(end).wrapping_add(u32::try_from(at).unwrap());
            let flags = if has_fin && stop == stream.len() { FIN | ACK } else { ACK };
            script.send(end, flags, seq, first(other), &stream[at..stop]);
        }
        let told = script.finish();
        let found = |direction| told.bytes.get(&(0, direction)).cloned().unwrap_or_default();
        prop_assert_eq!(found(Direction::Forward), up);
        prop_assert_eq!(found(Direction::Backward), down);
        prop_assert!(told.gaps.is_empty() && told.overlaps.is_empty());
        let report = told.only();
        for side in [report.sides.forward, report.sides.backward] {
            prop_assert_eq!((side.out_of_window, side.unacceptable, side.ignored_bytes), (0, 0, 0));
        }
    }
}

/// A stream of more than 8 GiB: its numbers wrap twice.
#[test]
fn offsets_go_on_where_numbers_wrap() {
    let (base, step) = (Seq(0xfff0_0000), 1 << 20);
    let payload = vec![1; 1 << 20];
    let (mut stream, mut out) = (Stream::new(Policy::First), Count(0));
    let mut seq = base;
    for _ in 0..9 << 10 {
        let offset = base.offset_of(seq, stream.frontier());
        stream.segment(offset, step, &payload, &mut out);
        seq = seq.plus(step);
    }
    assert_eq!((out.0, stream.frontier()), (9 << 30, 9 << 30));
}

/// Counts the bytes of a stream.
struct Count(u64);

impl Output for Count {
    fn data(&mut self, offset: u64, bytes: &[u8]) {
        assert_eq!(offset, self.0);
        self.0 += bytes.len() as u64;
    }

    fn repeated(&mut self, offset: u64, _: &[u8]) {
        panic!("nothing comes twice: {offset}");
    }

    fn gap(&mut self, gap: Gap) {
        panic!("nothing is missing: {gap:?}");
    }

    fn overlap(&mut self, overlap: Overlap) {
        panic!("nothing overlaps: {overlap:?}");
    }
}
