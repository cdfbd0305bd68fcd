//! The listing: a text or a JSON object for each stream, and one for the whole.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use braid_packet::FlowKey;
use braid_tcp::{Counts, Direction, Gap, Overlap, Report, SideReport};
use serde_json::{Value, json};

use crate::table::count;

/// The gaps and overlaps of a stream.
#[derive(Default)]
pub struct Found {
    pub gaps: Vec<Gap>,
    pub overlaps: Vec<Overlap>,
    /// The number of overlaps, listed or not.
    pub all_overlaps: u64,
    /// The number of bytes in holes of the file.
    pub holes: u64,
    /// How many bytes of long gaps the file's holes do not have.
    pub left_out: u64,
    /// The end of the last gap that is longer than its hole.
    pub behind: u64,
}

/// A stream that has ended.
pub struct Stream<'a> {
    pub report: &'a Report,
    pub direction: Direction,
    /// The name of its file, if it has bytes.
    pub file: Option<String>,
    pub found: &'a Found,
}

impl Stream<'_> {
    fn side(&self) -> &SideReport {
        self.report.sides.of(self.direction)
    }

    fn flow(&self) -> FlowKey {
        match self.direction {
            Direction::Forward => self.report.flow,
            Direction::Backward => self.report.flow.reversed(),
        }
    }

    /// Whether there is something to list: a packet, or bytes that the other end acknowledges.
    fn is_empty(&self) -> bool {
        self.side().traffic.packets == 0 && self.side().stream.gaps == 0
    }

    /// A line, and lines on what is odd.
    pub fn text(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let (side, flow) = (self.side(), self.flow());
        let (src, dst) = ends(&flow);
        let mut text = format!(
            "{src} > {dst}: {} bytes, {}, {}, {}\n",
            count(side.stream.delivered),
            self.report.opening.name(),
            side.began.name(),
            side.ended.name()
        );
        for Gap { offset, len, why } in &self.found.gaps {
            let _ = writeln!(text, "  gap at {offset}: {len} bytes ({})", why.name());
        }
        for Overlap { offset, len, kept } in &self.found.overlaps {
            let _ = writeln!(text, "  overlap at {offset}: {len} bytes, kept {}", kept.name());
        }
        let gaps = side.stream.gaps - self.found.gaps.len() as u64;
        let overlaps = self.found.all_overlaps - self.found.overlaps.len() as u64;
        let odd = [(gaps, "more gaps"), (overlaps, "more overlaps")];
        let odd = odd.into_iter().chain(numbers(side).map(|(name, number)| (number, name)));
        let odd: Vec<String> = odd
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{} {}", count(number), what.replace('_', " ")))
            .collect();
        if !odd.is_empty() {
            let _ = writeln!(text, "  {}", odd.join(", "));
        }
        text
    }

    /// An object on one line.
    pub fn json(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let (side, flow) = (self.side(), self.flow());
        let (src, dst) = ends(&flow);
        let gap =
            |gap: &Gap| json!({ "offset": gap.offset, "len": gap.len, "why": gap.why.name() });
        let overlap = |one: &Overlap| json!({ "offset": one.offset, "len": one.len, "kept": one.kept.name() });
        let direction = match self.direction {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        };
        let mut value = json!({
            "type": "stream",
            "connection": self.report.connection.0,
            "direction": direction,
            "src": src.ip(),
            "sport": src.port(),
            "dst": dst.ip(),
            "dport": dst.port(),
            "file": self.file,
            "bytes": side.stream.delivered,
            "packets": side.traffic.packets,
            "wire_bytes": side.traffic.bytes,
            "first_ns": side.traffic.first_ns,
            "last_ns": side.traffic.last_ns,
            "opening": self.report.opening.name(),
            "began": side.began.name(),
            "ended": side.ended.name(),
            "state": side.state.name(),
            "window_scale": side.window_scale,
            "sack_permitted": side.sack_permitted,
            "timestamps": side.timestamps,
            "gap_count": side.stream.gaps,
            "gap_bytes": side.stream.gap_bytes,
            "gaps": self.found.gaps.iter().map(gap).collect::<Vec<Value>>(),
            "overlap_count": self.found.all_overlaps,
            "overlaps": self.found.overlaps.iter().map(overlap).collect::<Vec<Value>>(),
        });
        for (name, number) in numbers(side) {
            value[name] = number.into();
        }
        format!("{value}\n")
    }
}

/// The numbers of what is odd about a stream, by their keys in JSON.
fn numbers(side: &SideReport) -> impl Iterator<Item = (&'static str, u64)> {
    let stream = &side.stream;
    [
        ("retransmissions", side.retransmissions),
        ("repeated_bytes", stream.repeated_bytes),
        ("out_of_order", side.out_of_order),
        ("keep_alives", side.keep_alives),
        ("early_bytes", stream.early_bytes),
        ("late_bytes", stream.late_bytes),
        ("surplus_bytes", stream.surplus_bytes),
        ("out_of_window", side.out_of_window),
        ("old_timestamps", side.old_timestamps),
        ("unacceptable", side.unacceptable),
        ("wrong_resets", side.wrong_resets),
        ("after_end", side.after_end),
        ("ignored_bytes", side.ignored_bytes),
    ]
    .into_iter()
}

/// The two ends of a flow.
fn ends(flow: &FlowKey) -> (SocketAddr, SocketAddr) {
    let end = |address: u128, port: u16| {
        let v4 = u32::try_from(address).ok().filter(|_| flow.version == 4);
        let address = match v4 {
            Some(address) => IpAddr::V4(Ipv4Addr::from(address)),
            None => IpAddr::V6(Ipv6Addr::from(address)),
        };
        SocketAddr::new(address, port)
    };
    (end(flow.src, flow.sport), end(flow.dst, flow.dport))
}

/// The end of the listing.
pub fn total(counts: &Counts, files: u64, bytes: u64, json: bool) -> String {
    let packets = counts.segments
        + counts.other
        + counts.fragments
        + counts.malformed
        + counts.wrong_checksums;
    let odd = [
        ("not_tcp", counts.other),
        ("fragments", counts.fragments),
        ("malformed", counts.malformed),
        ("wrong_checksums", counts.wrong_checksums),
        ("cut_segments", counts.cut),
        ("given_up", counts.given_up),
        ("memory_gaps", counts.memory_gaps),
    ];
    if json {
        let mut value = json!({
            "type": "total",
            "packets": packets,
            "segments": counts.segments,
            "connections": counts.connections,
            "files": files,
            "bytes": bytes,
        });
        for (name, number) in odd {
            value[name] = number.into();
        }
        return format!("{value}\n");
    }
    let mut text = format!(
        "{} connections, {} bytes in {} files; {} packets, {} TCP segments",
        count(counts.connections),
        count(bytes),
        count(files),
        count(packets),
        count(counts.segments)
    );
    for (name, number) in odd.into_iter().filter(|(_, number)| *number > 0) {
        let _ = write!(text, ", {} {}", count(number), name.replace('_', " "));
    }
    text + "\n"
}
