//! Every capture below `BRAID_DATA`: streams against a map of bytes by sequence number. Without
//! `BRAID_DATA`, the tests take the bundled capture.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use braid_io::{CaptureReader, PacketSource};
use braid_packet::{Field, FlowKey, Header, Packet};
use braid_tcp::{Began, ConnectionId, Direction, Gap, Monitor, Options, Place, Report, Sink};

/// What the monitor tells of each stream: bytes with holes.
#[derive(Default)]
struct Told {
    bytes: HashMap<(ConnectionId, Direction), Vec<Option<u8>>>,
    reports: Vec<Report>,
}

impl Told {
    fn stream(&mut self, place: &Place, offset: u64) -> &mut Vec<Option<u8>> {
        let stream = self.bytes.entry((place.connection, place.direction)).or_default();
        assert_eq!(stream.len() as u64, offset, "{place:?}");
        stream
    }
}

impl Sink for Told {
    fn data(&mut self, place: &Place, offset: u64, bytes: &[u8]) {
        self.stream(place, offset).extend(bytes.iter().copied().map(Some));
    }

    fn gap(&mut self, place: &Place, gap: Gap) {
        let stream = self.stream(place, gap.offset);
        // A gap may be as long as a receiver says; the end of a long one is not kept.
        let len = usize::try_from(gap.len).unwrap();
        stream.resize(stream.len() + len.min(1 << 24), None);
    }

    fn closed(&mut self, report: &Report) {
        self.reports.push(*report);
    }
}

/// The segments of one end, as numbers and bytes.
#[derive(Default)]
struct Naive {
    isns: BTreeSet<u32>,
    /// Each byte by its sequence number, with all values that came.
    bytes: BTreeMap<u32, BTreeSet<u8>>,
}

/// Puts a packet's bytes at their numbers. Only fields by name are used.
fn learn(ends: &mut HashMap<FlowKey, Naive>, packet: &Packet) {
    let layout = packet.parse();
    if !layout.has(Header::Tcp) || layout.is_fragment() {
        return;
    }
    let number = |field| u32::try_from(packet.get(&layout, field).unwrap()).unwrap();
    let (flags, seq) = (number(Field::TcpFlags), number(Field::TcpSeq));
    let end = ends.entry(packet.flow_key(&layout).unwrap()).or_default();
    let syn = flags >> 1 & 1;
    if syn == 1 {
        end.isns.insert(seq);
    }
    for (at, byte) in (0..).zip(packet.payload(&layout)) {
        end.bytes.entry(seq.wrapping_add(syn).wrapping_add(at)).or_default().insert(*byte);
    }
}

/// Compares the streams of a capture that are simple: one SYN, and nothing left out. Returns their
/// number, with that of their bytes.
fn compare(path: &Path) -> [u64; 2] {
    let Ok(mut reader) = CaptureReader::open(path) else { return [0; 2] };
    let (mut monitor, mut told) = (Monitor::new(Options::default()), Told::default());
    let (mut ends, mut packets) = (HashMap::new(), 0);
    while let Ok(Some(packet)) = reader.next_packet() {
        packets += 1;
        monitor.packet(&packet, &packet.parse(), &mut told);
        learn(&mut ends, &packet);
    }
    monitor.finish(&mut told);
    let counts = monitor.counts();
    let counted = counts.segments + counts.other + counts.fragments + counts.malformed;
    assert_eq!(counted + counts.wrong_checksums, packets, "{}", path.display());
    assert_eq!(monitor.memory(), 0);
    assert_eq!(told.reports.len() as u64, counts.connections);
    let mut of_ends: HashMap<FlowKey, u64> = HashMap::new();
    for report in &told.reports {
        *of_ends.entry(report.flow.bidirectional()).or_default() += 1;
    }
    let mut compared = [0; 2];
    for report in told.reports.iter().filter(|one| of_ends[&one.flow.bidirectional()] == 1) {
        for direction in Direction::BOTH {
            let side = report.sides.of(direction);
            let flow = match direction {
                Direction::Forward => report.flow,
                Direction::Backward => report.flow.reversed(),
            };
            let Some(naive) = ends.get(&flow).filter(|naive| naive.isns.len() == 1) else {
                continue;
            };
            let odd = side.out_of_window
                + side.old_timestamps
                + side.unacceptable
                + side.ignored_bytes
                + side.stream.late_bytes
                + side.stream.surplus_bytes
                + side.keep_alives;
            if odd > 0 || side.began != Began::Syn || naive.bytes.is_empty() {
                continue;
            }
            let first = naive.isns.first().unwrap().wrapping_add(1);
            let found = &told.bytes[&(report.connection, direction)];
            let name = format!("{} {flow:?}", path.display());
            assert_eq!(found.iter().flatten().count(), naive.bytes.len(), "{name}");
            for (number, values) in &naive.bytes {
                let at = number.wrapping_sub(first) as usize;
                let byte = found.get(at).copied().flatten();
                assert!(byte.is_some_and(|byte| values.contains(&byte)), "{name}: byte {at}");
            }
            compared = [compared[0] + 1, compared[1] + found.len() as u64];
        }
    }
    compared
}

/// The files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

#[test]
fn simple_streams_of_captures_have_each_byte_at_its_number() {
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/captures");
    let mut found = vec![bundled.join("domain-client.pcap.gz")];
    assert!(compare(&found[0])[0] > 100);
    match std::env::var_os("BRAID_DATA") {
        Some(data) => files(Path::new(&data), &mut found),
        None => println!("BRAID_DATA is not set: only the bundled capture is read"),
    }
    let [streams, bytes] = found
        .iter()
        .map(|path| compare(path))
        .fold([0; 2], |all, one| [all[0] + one[0], all[1] + one[1]]);
    println!("{streams} streams with {bytes} bytes in {} files", found.len());
}
