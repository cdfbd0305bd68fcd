//! Hostile segments and damaged bytes do no harm: no panic, no loop, no memory beyond the limits.

use braid_endpoint::{Endpoint, Incoming, Settings};
use braid_tcp::{Flags, Reader, Seq, Stored};
use proptest::collection::vec;
use proptest::prelude::*;

/// What happens to an endpoint.
#[derive(Clone, Debug)]
enum Step {
    Segment { seq: i32, ack: i32, flags: u8, window: u16, options: Vec<u8>, len: usize },
    Wait(u64),
    Read(usize),
    Write(usize),
    Close,
    Abort,
}

/// Distances from the numbers that the endpoint expects: mostly small.
fn distance() -> impl Strategy<Value = i32> {
    prop_oneof![4 => Just(0), 4 => -50..50_i32, 2 => -70_000..70_000_i32, 1 => any::<i32>()]
}

/// Options: known kinds with any bytes, and any bytes.
fn options() -> impl Strategy<Value = Vec<u8>> {
    let known = (2_u8..9, vec(any::<u8>(), 0..32)).prop_map(|(kind, body)| {
        let len = u8::try_from(2 + body.len()).unwrap();
        [vec![kind, len], body].concat()
    });
    prop_oneof![Just(Vec::new()), known, vec(any::<u8>(), 0..40)]
}

fn step() -> impl Strategy<Value = Step> {
    let flags = prop_oneof![6 => Just(0x10_u8), 1 => Just(0x11), 1 => Just(0x02), 1 => any::<u8>()];
    let segment = (distance(), distance(), flags, any::<u16>(), options(), 0..3000_usize);
    let segment = segment.prop_map(|(seq, ack, flags, window, options, len)| Step::Segment {
        seq,
        ack,
        flags,
        window,
        options,
        len,
    });
    prop_oneof![
        12 => segment,
        2 => prop_oneof![0..1000_u64, any::<u64>()].prop_map(Step::Wait),
        1 => any::<usize>().prop_map(Step::Read),
        2 => (0..5000_usize).prop_map(Step::Write),
        1 => Just(Step::Close),
        1 => prop_oneof![9 => Just(Step::Close), 1 => Just(Step::Abort)],
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    (any::<u16>(), 0..200_000_u32, 0..200_000_u32, any::<[bool; 3]>()).prop_map(
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

/// An endpoint in the hands of an enemy who sees all that it sends.
struct Attack {
    endpoint: Endpoint,
    now: u64,
    /// The next number of the endpoint, and the one that it expects.
    numbers: (Seq, Seq),
    limit: usize,
}

impl Attack {
    fn take(&mut self, step: &Step) {
        match *step {
            Step::Segment { seq, ack, flags, window, ref options, len } => {
                let bytes = vec![0x55; len];
                let segment = Incoming {
                    seq: self.numbers.1.plus(seq.cast_unsigned()),
                    ack: self.numbers.0.plus(ack.cast_unsigned()),
                    flags: Flags(flags),
                    window,
                    options,
                    payload: &bytes,
                };
                self.endpoint.segment(&segment, self.now);
            }
            Step::Wait(time) => self.now = self.now.saturating_add(time),
            Step::Read(count) => self.endpoint.consume(count),
            Step::Write(count) => {
                self.endpoint.write(&vec![0xaa; count]);
            }
            Step::Close => self.endpoint.close(),
            Step::Abort => self.endpoint.abort(),
        }
        let numbers = &mut self.numbers;
        let sent = self.endpoint.send(self.now, 10_000, &mut |segment| {
            assert!(segment.options.len() <= 40 && segment.options.len() % 4 == 0);
            let flags = u32::from(segment.flags.has(Flags::SYN) || segment.flags.has(Flags::FIN));
            let len = u32::try_from(segment.payload_len()).unwrap();
            numbers.0 = segment.seq.plus(len + flags);
            if segment.flags.has(Flags::ACK) {
                numbers.1 = segment.ack;
            }
        });
        assert!(sent < 10_000, "the endpoint does not come to rest");
        let deadline = self.endpoint.deadline();
        assert!(deadline.is_none_or(|at| at > self.now || self.now == u64::MAX));
        assert!(self.endpoint.memory() <= self.limit, "{} bytes", self.endpoint.memory());
    }
}

fn attack(settings: &Settings, syn: Option<&Incoming<'_>>) -> Attack {
    let isn = 4_294_960_000;
    let endpoint = match syn {
        Some(syn) => Endpoint::accept(settings, syn, isn, 0),
        None => Endpoint::connect(settings, isn, 0),
    };
    // A ring takes up to twice its bytes.
    let buffers =
        settings.send.max(settings.mss.into()) + settings.receive.max(settings.mss.into());
    let limit = 2 * usize::try_from(buffers).unwrap() + 20_000;
    Attack { endpoint, now: 0, numbers: (Seq(isn), Seq(7)), limit }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(500)))]

    #[test]
    fn hostile_segments_do_no_harm(
        settings in settings(),
        opens in proptest::option::of(options()),
        steps in vec(step(), 1..60),
        answer in options(),
    ) {
        let options = opens.clone().unwrap_or_default();
        let syn = Incoming {
            seq: Seq(6),
            ack: Seq(0),
            flags: Flags::SYN,
            window: 5000,
            options: &options,
            payload: &[],
        };
        let mut attack = attack(&settings, opens.is_some().then_some(&syn));
        // The handshake mostly comes through.
        let flags = if opens.is_some() { 0x10 } else { 0x12 };
        attack.take(&Step::Wait(0));
        attack.numbers.1 = Seq(if opens.is_some() { 7 } else { 6 });
        let answer =
            Step::Segment { seq: 0, ack: 0, flags, window: 5000, options: answer, len: 0 };
        attack.take(&answer);
        for step in &steps {
            attack.take(step);
            let mut bytes = Vec::new();
            attack.endpoint.put(&mut bytes);
            prop_assert!(Endpoint::get(&mut Reader(&bytes)).is_some(), "{:?}", attack.endpoint);
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_make_an_endpoint_that_works(
        settings in settings(),
        steps in vec(step(), 1..20),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        later in vec(step(), 1..20),
    ) {
        let mut attack = attack(&settings, None);
        attack.take(&Step::Wait(0));
        attack.numbers.1 = Seq(6);
        let answer = vec![2, 4, 2, 0, 3, 3, 2, 4, 2];
        let answer = Step::Segment {
            seq: 0,
            ack: 0,
            flags: 0x12,
            window: 5000,
            options: answer,
            len: 0,
        };
        attack.take(&answer);
        steps.iter().for_each(|step| attack.take(step));
        let mut bytes = Vec::new();
        attack.endpoint.put(&mut bytes);
        for (index, value) in damage {
            *index.get_mut(&mut bytes) = value;
        }
        if let Some(endpoint) = Endpoint::get(&mut Reader(&bytes)) {
            attack.endpoint = endpoint;
            attack.limit = usize::MAX;
            later.iter().for_each(|step| attack.take(step));
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in vec(any::<u8>(), 0..300)) {
        let _ = Endpoint::get(&mut Reader(&bytes));
    }
}
