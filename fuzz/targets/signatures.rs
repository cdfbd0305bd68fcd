#![no_main]
//! Reads a file of signatures, and lets them inspect bytes as a connection, as segments, and as
//! datagrams. What is saved after each part must go on as what was not, and memory must stay within
//! its limit.

use braid_signatures::{
    Alert, Counts, Datagrams, Flow, Inspection, Kind, Number, Packet, Rules, Signatures,
    Thresholds, limits, load,
};
use libfuzzer_sys::fuzz_target;

const FLOW: Flow = Flow { version: 4, src: 1, dst: 2, sport: 1000, dport: 80 };
/// The numbers of packets, except for options.
const NUMBERS: [Number; 16] = [
    Number::Flags,
    Number::Seq,
    Number::Ack,
    Number::Window,
    Number::Length,
    Number::IcmpType,
    Number::IcmpCode,
    Number::IcmpId,
    Number::IcmpSeq,
    Number::Ttl,
    Number::Tos,
    Number::Id,
    Number::Protocol,
    Number::HasSameEnds,
    Number::FragmentBits,
    Number::FragmentOffset,
];
/// Two directions with their bytes, heads and bodies, in vectors that may have twice the room.
const MEMORY: usize = 4
    * (limits::STREAM_DEPTH + limits::MAX_HEAD + limits::RAW_BODY_DEPTH + limits::BODY_DEPTH)
    + (1 << 20);

/// What the rules say. With `is_saved`, everything is saved and read again after each part.
fn play(set: &Signatures, parts: &[&[u8]], is_saved: bool) -> (Vec<Alert>, Counts) {
    let (mut thresholds, mut counts, mut alerts) = Default::default();
    let (mut inspection, mut datagrams) = (Inspection::default(), Datagrams::default());
    let mut offsets = [0; 2];
    for (place, part) in parts.iter().enumerate() {
        let from_client = place % 2 == 0;
        let flow = if from_client { FLOW } else { FLOW.reversed() };
        let now = place as u64 * 1_000_000_000;
        let rules = &mut Rules {
            set,
            thresholds: &mut thresholds,
            now,
            counts: &mut counts,
            alerts: &mut alerts,
        };
        let offset = &mut offsets[usize::from(from_client)];
        // The part's own bytes are its numbers too. Behind its end, the packet lacks the header.
        let number = |of: Number| {
            let place = match of {
                Number::HasOption(kind) => usize::from(kind.unwrap_or(u8::MAX)),
                of => NUMBERS.iter().position(|one| *one == of)?,
            };
            part.get(place).copied().map(u32::from)
        };
        let packet = |kind| Packet {
            kind,
            flow,
            from_client,
            is_established: place > 1,
            bytes: part,
            number: &number,
        };
        inspection.packet(rules, &packet(Kind::Tcp));
        inspection.data(rules, (flow, from_client), (*offset, part));
        *offset += part.len() as u64;
        for kind in [Kind::Udp, Kind::Icmp, Kind::Other, Kind::Fragment] {
            datagrams.packet(rules, &packet(kind));
        }
        if is_saved {
            inspection = Inspection::from_bytes(&inspection.to_bytes()).expect("whole");
            datagrams = Datagrams::from_bytes(&datagrams.to_bytes()).expect("whole");
            thresholds = Thresholds::from_bytes(&thresholds.to_bytes()).expect("whole");
        }
        assert!(inspection.memory() <= MEMORY);
    }
    let now = u64::MAX;
    let (thresholds, counts_now) = (&mut thresholds, &mut counts);
    let rules = &mut Rules { set, thresholds, now, counts: counts_now, alerts: &mut alerts };
    inspection.close(rules, FLOW);
    (alerts, counts)
}

/// The parts, each behind a byte with its length.
fn parts(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while let Some((len, rest)) = bytes.split_first() {
        let (part, behind) = rest.split_at(rest.len().min(usize::from(*len)));
        parts.push(part);
        bytes = behind;
    }
    parts
}

// A file of signatures, a zero byte, and the parts.
fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]);
    let parts = parts(bytes.get(end + 1..).unwrap_or_default());
    let loaded = load(&text);
    for refused in &loaded.refused {
        assert!(!refused.name.is_empty() && refused.at <= refused.text.len());
    }
    let again = load(&loaded.set.lines().join("\n"));
    assert_eq!((again.set == loaded.set, again.refused.len()), (true, 0));
    let found = play(&loaded.set, &parts, false);
    assert!(found.0.iter().all(|alert| loaded.set.get(alert.rule).is_some()));
    // What is read again forgets how often rules were tried, and which have taken too long.
    if parts.len() <= usize::from(limits::TRIES) && found.1.exhausted == 0 {
        assert_eq!(play(&loaded.set, &parts, true), found);
    }
});
