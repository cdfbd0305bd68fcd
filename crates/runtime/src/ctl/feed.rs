//! Feeds: lines and packets that workers send to a client at once. A worker never waits for a
//! client.

use braid_packet::Packet;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// The most lines, and the most bytes of packets, that wait for a client. The client misses further
/// ones.
const LINES: usize = 1_024;
const BYTES: usize = 8 << 20;

/// A worker's end of a feed. Several workers may have one.
#[derive(Clone)]
pub(crate) struct Feed {
    lines: SyncSender<Line>,
    shared: Arc<Shared>,
}

/// The client's end of a feed.
pub(crate) struct Reader {
    lines: Receiver<Line>,
    shared: Arc<Shared>,
    /// The number of packets that the client still gets.
    left: u64,
    /// The number of lines since the last report of losses.
    untold: usize,
}

struct Shared {
    /// The client has gone.
    is_over: AtomicBool,
    /// The bytes of packets that wait for the client.
    bytes: AtomicUsize,
    /// The number of packets that the client still wants. Workers that send at the same time may
    /// send more.
    left: AtomicU64,
    /// The number of lines that the client has missed and that no report has counted yet.
    lost: AtomicU64,
}

/// A line for a client.
pub(crate) enum Line {
    /// A line of text, sent unchanged.
    Text(String),
    /// A packet at an interface.
    Packet(Sighting),
}

/// A packet that was seen at an interface or a function.
pub(crate) struct Sighting {
    /// The name of the interface or the function.
    pub(crate) point: Arc<str>,
    /// The event there, in words.
    pub(crate) what: String,
    /// The packet.
    pub(crate) time_ns: u64,
    pub(crate) wire_len: u32,
    pub(crate) bytes: Vec<u8>,
}

impl Sighting {
    /// A packet at an interface or a function. Its fate there is not known yet.
    pub(crate) fn new(point: Arc<str>, packet: &Packet) -> Self {
        let (time_ns, wire_len) = (packet.time_ns, packet.wire_len);
        let bytes = packet.data().to_vec();
        Self { point, what: String::new(), time_ns, wire_len, bytes }
    }

    fn value(&self) -> Value {
        let mut hex = String::with_capacity(self.bytes.len() * 2);
        for byte in &self.bytes {
            // Writing to a text cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        json!({
            "time_ns": self.time_ns,
            "point": &*self.point,
            "what": self.what,
            "length": self.wire_len,
            "bytes": hex,
        })
    }
}

/// A feed of this many packets at most.
pub(crate) fn feed(most: u64) -> (Feed, Reader) {
    let (send, lines) = sync_channel(LINES);
    let shared = Arc::new(Shared {
        is_over: AtomicBool::new(false),
        bytes: AtomicUsize::new(0),
        left: AtomicU64::new(most),
        lost: AtomicU64::new(0),
    });
    let reader = Reader { lines, shared: Arc::clone(&shared), left: most, untold: 0 };
    (Feed { lines: send, shared }, reader)
}

impl Feed {
    /// Whether the client has gone, or has got all packets that it wanted.
    pub(crate) fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Relaxed) || self.shared.left.load(Ordering::Relaxed) == 0
    }

    /// Sends a line, or counts it as lost.
    pub(crate) fn text(&self, line: String) {
        self.send(Line::Text(line));
    }

    /// Sends a packet, or counts it as lost.
    pub(crate) fn packet(&self, packet: Sighting) {
        let Shared { bytes, left, lost, .. } = &*self.shared;
        let relaxed = Ordering::Relaxed;
        if left.load(relaxed) == 0 {
            return;
        }
        let length = packet.bytes.len();
        if bytes.fetch_add(length, relaxed) + length > BYTES {
            lost.fetch_add(1, relaxed);
            bytes.fetch_sub(length, relaxed);
        } else if self.send(Line::Packet(packet)) {
            // Another worker may have sent the last one.
            let _ = left.fetch_update(relaxed, relaxed, |left| left.checked_sub(1));
        } else {
            bytes.fetch_sub(length, relaxed);
        }
    }

    /// Counts a packet as lost.
    pub(crate) fn lose(&self) {
        self.shared.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends a line. If there is no place for it, counts it as lost, and returns false.
    fn send(&self, line: Line) -> bool {
        let is_sent = self.lines.try_send(line).is_ok();
        self.shared.lost.fetch_add(u64::from(!is_sent), Ordering::Relaxed);
        is_sent
    }
}

impl Reader {
    /// The next line, if there is one within this time. After the waiting lines, or after as many
    /// lines as can wait, a line reports the number of lost lines.
    pub(crate) fn next(&mut self, within: Duration) -> Result<String, RecvTimeoutError> {
        if self.left == 0 {
            return Err(RecvTimeoutError::Disconnected);
        }
        let waiting = if self.untold < LINES { self.lines.try_recv().ok() } else { None };
        let line = match waiting.map_or_else(|| self.lost().ok_or(()), Ok) {
            Ok(line) => line,
            Err(()) => match self.lines.recv_timeout(within) {
                Ok(line) => line,
                Err(why) => self.lost().ok_or(why)?,
            },
        };
        self.untold += 1;
        Ok(match line {
            Line::Text(text) => text,
            Line::Packet(packet) => {
                self.left -= 1;
                self.shared.bytes.fetch_sub(packet.bytes.len(), Ordering::Relaxed);
                packet.value().to_string()
            }
        })
    }

    /// A line that reports the number of lost lines, if any were lost.
    fn lost(&mut self) -> Option<Line> {
        self.untold = 0;
        let lost = self.shared.lost.swap(0, Ordering::Relaxed);
        (lost > 0).then(|| Line::Text(json!({ "lost": lost }).to_string()))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_packet::Link;

    fn sighting(length: usize) -> Sighting {
        Sighting::new("lan".into(), &Packet::new(Link::Ethernet, 7, vec![0xab; length]))
    }

    fn lines(reader: &mut Reader) -> Vec<String> {
        std::iter::from_fn(|| reader.next(Duration::ZERO).ok()).collect()
    }

    #[test]
    fn slow_client_loses_lines_and_is_told_how_many() {
        let (feed, mut reader) = feed(u64::MAX);
        (0..LINES + 5).for_each(|number| feed.text(number.to_string()));
        let read = lines(&mut reader);
        assert_eq!(
            (read.len(), read.last().map(String::as_str)),
            (LINES + 1, Some(r#"{"lost":5}"#))
        );
        feed.text("next".into());
        assert_eq!(lines(&mut reader), ["next"]);
    }

    #[test]
    fn client_that_never_catches_up_is_told_of_its_losses() {
        let (feed, mut reader) = feed(u64::MAX);
        let told = (0..4 * LINES).filter(|number| {
            (0..2).for_each(|_| feed.text(number.to_string()));
            reader.next(Duration::ZERO).is_ok_and(|line| line.contains("lost"))
        });
        assert!((2..=4).contains(&told.count()));
    }

    #[test]
    fn packets_that_wait_are_bounded_by_their_bytes() {
        let (feed, mut reader) = feed(u64::MAX);
        (0..12).for_each(|_| feed.packet(sighting(1 << 20)));
        let read = lines(&mut reader);
        assert_eq!((read.len(), read.last().map(String::as_str)), (9, Some(r#"{"lost":4}"#)));
        feed.packet(sighting(2));
        let line = r#"{"bytes":"abab","length":2,"point":"lan","time_ns":7,"what":""}"#;
        assert_eq!(lines(&mut reader), [line]);
    }

    #[test]
    fn feed_is_over_after_its_packets_or_without_its_client() {
        let (first, mut reader) = feed(2);
        let second = first.clone();
        first.packet(sighting(1));
        assert!(!first.is_over());
        second.packet(sighting(1));
        first.packet(sighting(1));
        assert!(first.is_over() && second.is_over());
        assert_eq!(lines(&mut reader).len(), 2);
        let (feed, reader) = feed(u64::MAX);
        drop(reader);
        assert!(feed.is_over());
    }
}
