#![no_main]
//! Sends segments to the monitor. Each byte must be delivered, missing or left out, in order, and
//! memory must stay within its limit.

use braid_packet::FlowKey;
use braid_tcp::{
    Checksums, ConnectionId, Direction, Flags, Gap, Monitor, Options, Place, Policies, Policy,
    Report, Segment, Seq, Sink,
};
use libfuzzer_sys::fuzz_target;
use std::collections::HashMap;

const MEMORY: usize = 64 << 10;
const PAYLOAD: [u8; 4096] = [7; 4096];

/// Where each stream stands.
#[derive(Default)]
struct Ends {
    at: HashMap<(ConnectionId, Direction), u64>,
    closed: u64,
}

impl Ends {
    fn go_on(&mut self, place: &Place, offset: u64, len: u64) {
        assert!(len > 0);
        let at = self.at.entry((place.connection, place.direction)).or_default();
        assert_eq!(*at, offset);
        *at += len;
    }
}

impl Sink for Ends {
    fn data(&mut self, place: &Place, offset: u64, bytes: &[u8]) {
        self.go_on(place, offset, bytes.len() as u64);
    }

    fn repeated(&mut self, place: &Place, offset: u64, bytes: &[u8]) {
        let at = self.at[&(place.connection, place.direction)];
        assert!(offset + bytes.len() as u64 <= at);
    }

    fn gap(&mut self, place: &Place, gap: Gap) {
        self.go_on(place, gap.offset, gap.len);
    }

    fn closed(&mut self, report: &Report) {
        self.closed += 1;
        for direction in Direction::BOTH {
            let stream = report.sides.of(direction).stream;
            let at = self.at.remove(&(report.connection, direction)).unwrap_or(0);
            assert_eq!(stream.delivered + stream.gap_bytes, at);
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let policy = Policy::ALL[usize::from(first) % Policy::ALL.len()].name();
    let policies = Policies::new(&[policy.parse().expect("a policy")]).expect("one policy");
    let checksums = [Checksums::Ignored, Checksums::Verified, Checksums::Learned];
    let options = Options {
        policies,
        memory: MEMORY,
        stream_memory: 8192,
        is_inline: first & 64 != 0,
        checksums: checksums[usize::from(first >> 3) % checksums.len()],
        ..Options::default()
    };
    let (mut monitor, mut ends) = (Monitor::new(options), Ends::default());
    let mut now = 0;
    for &[who, flags, seq, ack, len, more] in rest.as_chunks::<6>().0 {
        // Numbers are near each other, now and then far away, and wrap.
        let number =
            |byte: u8| u32::from(byte).wrapping_mul(if more & 1 == 0 { 1 } else { 0x0101_0101 });
        let flow = FlowKey {
            version: 4,
            src: 1,
            dst: 2,
            proto: 6,
            sport: u16::from(who >> 1 & 3),
            dport: 80,
        };
        now += u64::from(more >> 1) * 100_000_000;
        let len = usize::from(len) * if more & 2 == 0 { 1 } else { 16 };
        let segment = Segment {
            flow: if who & 1 == 0 { flow } else { flow.reversed() },
            time_ns: now,
            wire_len: 60,
            seq: Seq(number(seq).wrapping_sub(100)),
            ack: Seq(number(ack).wrapping_sub(100)),
            flags: Flags(flags),
            window: u16::from(more) << 8,
            wscale: (who & 64 != 0).then_some(who >> 3),
            sack_ok: false,
            timestamp: (who & 128 != 0).then_some(number(more)),
            len: u32::try_from(len).unwrap(),
            is_right: len % 7 != 6,
            payload: &PAYLOAD[..if who & 32 == 0 { len } else { len / 2 }],
        };
        monitor.segment(&segment, &mut ends);
        assert!(monitor.memory() <= MEMORY);
    }
    monitor.finish(&mut ends);
    assert_eq!((ends.closed, monitor.memory()), (monitor.counts().connections, 0));
    assert!(ends.at.is_empty());
});
