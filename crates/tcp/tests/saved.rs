//! Connections that move to another monitor as bytes go on as they would have done, and damaged
//! bytes do no harm.

use braid_packet::FlowKey;
use braid_tcp::{Flags, Gap, Monitor, Options, Overlap, Place, Reader, Report, Segment, Seq, Sink};
use proptest::collection::vec;
use proptest::prelude::*;

/// What a sink has been told, as text. Connections have no numbers there.
#[derive(Default)]
struct Told(Vec<String>);

impl Told {
    fn add(&mut self, place: &Place, what: String) {
        self.0.push(format!("{:?} {:?} {what}", place.flow, place.direction));
    }
}

impl Sink for Told {
    fn data(&mut self, place: &Place, offset: u64, bytes: &[u8]) {
        self.add(place, format!("data {offset} {bytes:?}"));
    }

    fn repeated(&mut self, place: &Place, offset: u64, bytes: &[u8]) {
        self.add(place, format!("repeated {offset} {bytes:?}"));
    }

    fn gap(&mut self, place: &Place, gap: Gap) {
        self.add(place, format!("{gap:?}"));
    }

    fn overlap(&mut self, place: &Place, overlap: Overlap) {
        self.add(place, format!("{overlap:?}"));
    }

    fn opened(&mut self, place: &Place) {
        self.add(place, "opened".to_owned());
    }

    fn over(&mut self, place: &Place) {
        self.add(place, "over".to_owned());
    }

    fn closed(&mut self, report: &Report) {
        self.0.push(format!("{:?} {:?} closed", report.flow, report.opening));
    }
}

/// A segment to come.
#[derive(Clone, Debug)]
struct Say {
    port: u16,
    from_client: bool,
    flags: u8,
    seq: u32,
    ack: u32,
    payload: Vec<u8>,
    options: (Option<u8>, Option<u32>),
    wait_ns: u64,
}

fn say() -> impl Strategy<Value = Say> {
    const FLAGS: [u8; 12] = [16, 16, 16, 16, 16, 16, 2, 18, 17, 20, 4, 24];
    let wait =
        prop_oneof![8 => 0..1_000_000_u64, 1 => 0..3_000_000_000_u64, 1 => 0..90_000_000_000_u64];
    let options = (proptest::option::of(0..20_u8), proptest::option::of(0..9_u32));
    let bytes = vec(b'a'..b'd', 0..9);
    let end = (0..3_u16, any::<bool>(), prop::sample::select(&FLAGS[..]));
    (end, (0..30_u32, 0..30_u32), bytes, options, wait).prop_map(
        |((port, from_client, flags), (seq, ack), payload, options, wait_ns)| {
            let seq = if flags & 2 != 0 { seq % 2 } else { seq };
            Say { port, from_client, flags, seq, ack, payload, options, wait_ns }
        },
    )
}

/// Gives segments to a monitor. Returns what it tells.
fn run(monitor: &mut Monitor, now_ns: &mut u64, all: &[Say]) -> Vec<String> {
    let mut told = Told::default();
    for say in all {
        let (version, sport) = (4 + 2 * u8::from(say.port == 2), 1000 + say.port);
        let flow = FlowKey { version, src: 1, dst: 2, proto: 6, sport, dport: 80 };
        *now_ns += say.wait_ns;
        let len = u32::try_from(say.payload.len()).expect("short");
        let segment = Segment {
            flow: if say.from_client { flow } else { flow.reversed() },
            time_ns: *now_ns,
            wire_len: 54 + len,
            seq: Seq(say.seq.wrapping_sub(9)),
            ack: Seq(say.ack.wrapping_sub(9)),
            flags: Flags(say.flags),
            window: 5000,
            wscale: say.options.0,
            sack_ok: false,
            timestamp: say.options.1,
            len,
            payload: &say.payload,
            is_right: !say.seq.is_multiple_of(7),
        };
        monitor.segment(&segment, &mut told);
    }
    told.0
}

fn saved(monitor: &Monitor) -> Vec<u8> {
    let mut bytes = Vec::new();
    monitor.save(&mut bytes);
    bytes
}

/// A monitor that has taken over the connections in these bytes, if they are right.
fn restored(bytes: &[u8]) -> Option<Monitor> {
    let (mut monitor, from) = (Monitor::new(Options::default()), &mut Reader(bytes));
    let all = monitor.restore(from)?;
    assert!(all.iter().map(|one| one.connection).eq(monitor.connections()));
    from.is_at_end().then_some(monitor)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

    #[test]
    fn restored_monitor_goes_on_as_the_saved_one(all in vec(say(), 1..80), at in 0..80_usize) {
        let (before, after) = all.split_at(at.min(all.len()));
        let (mut monitor, mut now_ns) = (Monitor::new(Options::default()), 1);
        run(&mut monitor, &mut now_ns, before);
        let bytes = saved(&monitor);
        let mut next = restored(&bytes).expect("a monitor takes what a monitor saves");
        prop_assert_eq!(saved(&next), bytes);
        prop_assert_eq!(next.memory(), monitor.memory());
        let mut also_ns = now_ns;
        let expected = run(&mut monitor, &mut now_ns, after);
        prop_assert_eq!(run(&mut next, &mut also_ns, after), expected);
        prop_assert_eq!(saved(&next), saved(&monitor));
    }

    #[test]
    fn damaged_bytes_do_no_harm(
        all in vec(say(), 1..60),
        changes in vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..5),
    ) {
        let (before, after) = all.split_at(all.len() / 2);
        let (mut monitor, mut now_ns) = (Monitor::new(Options::default()), 1);
        run(&mut monitor, &mut now_ns, before);
        let mut bytes = saved(&monitor);
        for (at, byte, how) in changes {
            match how {
                0 => bytes.truncate(at.index(bytes.len() + 1)),
                1 => bytes.insert(at.index(bytes.len() + 1), byte),
                _ if bytes.is_empty() => {}
                _ => {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
        }
        if let Some(mut monitor) = restored(&bytes) {
            prop_assert!(monitor.memory() < 4096 * (1 + bytes.len()));
            run(&mut monitor, &mut now_ns, after);
            monitor.finish(&mut Told::default());
        }
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..200)) {
        let _ = restored(&bytes);
    }
}

#[test]
fn monitor_with_connections_takes_the_ones_that_it_does_not_know() {
    let say = |port, seq| Say {
        port,
        from_client: true,
        flags: 16,
        seq,
        ack: 0,
        payload: b"ab".to_vec(),
        options: (None, None),
        wait_ns: 1,
    };
    let [mut first, mut second] = [(); 2].map(|()| Monitor::new(Options::default()));
    run(&mut first, &mut 1, &[say(0, 0), say(1, 0)]);
    run(&mut second, &mut 5, &[say(2, 0), say(1, 0), say(0, 0), say(0, 2)]);
    let (bytes, known) = (saved(&second), saved(&first));
    let restored = first.restore(&mut Reader(&bytes)).expect("right");
    let is_same: Vec<_> = restored.iter().map(|one| (one.connection.0, one.is_same)).collect();
    assert_eq!(is_same, [(2, true), (1, true), (0, false)]);
    assert!(first.connections().map(|one| one.0).eq([0, 1, 2]));
    assert_ne!(saved(&first), known);
    // The next bytes of a connection come where the first monitor was.
    let told = run(&mut first, &mut 9, &[say(0, 2)]);
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("data 2"), "{told:?}");
}
