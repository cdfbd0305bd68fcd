//! The monitor on scripts of segments: how connections begin, go on and end.

mod attacks;
mod budget;
mod opening;
mod streams;

use std::collections::BTreeMap;

use braid_packet::FlowKey;
use braid_tcp::{
    Direction, Flags, Gap, Monitor, Options, Overlap, Place, Report, Segment, Seq, Sink,
};

/// A second (ns).
const S: u64 = 1_000_000_000;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// The end that sends: the client is at port 1000.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Client,
    Server,
}
use End::{Client, Server};

/// What a sink has been told, by stream.
#[derive(Default)]
struct Told {
    bytes: BTreeMap<(u64, Direction), Vec<u8>>,
    gaps: Vec<(u64, Direction, Gap)>,
    overlaps: Vec<Overlap>,
    reports: Vec<Report>,
}

fn key(place: &Place) -> (u64, Direction) {
    (place.connection.0, place.direction)
}

impl Sink for Told {
    fn data(&mut self, place: &Place, offset: u64, bytes: &[u8]) {
        let known = self.bytes.entry(key(place)).or_default();
        assert_eq!(known.len() as u64, offset);
        known.extend(bytes);
    }

    fn gap(&mut self, place: &Place, gap: Gap) {
        let known = self.bytes.entry(key(place)).or_default();
        assert_eq!(known.len() as u64, gap.offset);
        known.resize(known.len() + usize::try_from(gap.len).unwrap(), b'.');
        self.gaps.push((place.connection.0, place.direction, gap));
    }

    fn overlap(&mut self, _place: &Place, overlap: Overlap) {
        self.overlaps.push(overlap);
    }

    fn closed(&mut self, report: &Report) {
        self.reports.push(*report);
    }
}

/// A script: segments go to a monitor.
struct Script {
    monitor: Monitor,
    told: Told,
    now_ns: u64,
    client: u128,
    version: u8,
}

/// A segment of a script, before its end and time are known.
#[derive(Clone, Copy)]
struct Say<'a> {
    flags: u8,
    seq: u32,
    ack: u32,
    payload: &'a [u8],
    window: u16,
    wscale: Option<u8>,
    timestamp: Option<u32>,
}

impl<'a> Say<'a> {
    fn new(flags: u8, seq: u32, ack: u32, payload: &'a [u8]) -> Self {
        Self { flags, seq, ack, payload, window: 0xffff, wscale: None, timestamp: None }
    }
}

impl Script {
    fn new() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        let (monitor, told) = (Monitor::new(options), Told::default());
        Self { monitor, told, now_ns: S, client: 1, version: 4 }
    }

    fn say(&mut self, end: End, say: Say<'_>) {
        let (src, dst, version) = (self.client, 2, self.version);
        let flow = FlowKey { version, src, dst, proto: 6, sport: 1000, dport: 80 };
        let segment = Segment {
            flow: if end == Client { flow } else { flow.reversed() },
            time_ns: self.now_ns,
            wire_len: 54 + u32::try_from(say.payload.len()).unwrap(),
            seq: Seq(say.seq),
            ack: Seq(say.ack),
            flags: Flags(say.flags),
            window: say.window,
            wscale: say.wscale,
            sack_ok: false,
            timestamp: say.timestamp,
            len: u32::try_from(say.payload.len()).unwrap(),
            payload: say.payload,
            is_right: true,
        };
        self.now_ns += 1_000_000;
        self.monitor.segment(&segment, &mut self.told);
    }

    fn send(&mut self, end: End, flags: u8, seq: u32, ack: u32, payload: &[u8]) {
        self.say(end, Say::new(flags, seq, ack, payload));
    }

    /// A handshake. The first bytes have the numbers 101 and 501.
    fn open(&mut self) {
        self.send(Client, SYN, 100, 0, b"");
        self.send(Server, SYN | ACK, 500, 101, b"");
        self.send(Client, ACK, 101, 501, b"");
    }

    fn finish(mut self) -> Told {
        self.monitor.finish(&mut self.told);
        assert_eq!(self.monitor.memory(), 0);
        self.told
    }
}

impl Told {
    fn text(&self, connection: u64, direction: Direction) -> String {
        let bytes = self.bytes.get(&(connection, direction));
        String::from_utf8_lossy(bytes.map_or(&[][..], Vec::as_slice)).into_owned()
    }

    /// The bytes of the first connection, from client and from server.
    fn texts(&self) -> [String; 2] {
        Direction::BOTH.map(|direction| self.text(0, direction))
    }

    #[track_caller]
    fn only(&self) -> &Report {
        assert_eq!(self.reports.len(), 1, "{:#?}", self.reports);
        &self.reports[0]
    }
}
