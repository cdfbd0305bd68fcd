//! What the monitor finds, written to files and listed.

use std::collections::HashMap;
use std::io;

use braid_tcp::{ConnectionId, Direction, Gap, Kept, Overlap, Place, Report, Sink};

use super::files::Files;
use super::listing::{self, Found};
use crate::answer::Failure;
use crate::output::Output;

/// The most gaps, and the most overlaps, of a stream that are listed. Further ones are counted.
const MOST_LISTED: usize = 1_000;
/// The most gaps and overlaps of all open streams that are kept for the listing.
const MOST_KEPT: usize = 1_000_000;

/// The longest hole of a file (bytes). Longer gaps are listed with their length, and their hole is
/// shorter, so that a forged number makes no giant file.
const MOST_HOLE: u64 = 16 << 20;
/// The most bytes of all holes of a file.
const MOST_HOLES: u64 = 1 << 30;

/// A stream.
pub type Key = (ConnectionId, Direction);

/// Writes streams to files, and lists each connection when it ends.
pub struct Written<'a> {
    files: Files<Key>,
    found: HashMap<Key, Found>,
    kept: usize,
    output: &'a Output,
    failure: Option<Failure>,
    /// The bytes written.
    pub bytes: u64,
    /// Bytes that came again, for comparison.
    buffer: Vec<u8>,
}

impl<'a> Written<'a> {
    /// Nothing is written yet.
    pub fn new(files: Files<Key>, output: &'a Output) -> Self {
        let (found, buffer) = (HashMap::new(), Vec::new());
        Self { files, found, kept: 0, output, failure: None, bytes: 0, buffer }
    }

    /// The first failure to write or read a file.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// The number of files.
    pub fn files(&self) -> u64 {
        self.files.made
    }

    fn note(&mut self, result: io::Result<()>) {
        if let Err(why) = result
            && self.failure.is_none()
        {
            self.failure = Some(Failure::file(self.files.dir(), why));
        }
    }

    /// The number of bytes by which a place in the file is in front of the place in the stream.
    fn left_out(&self, place: &Place) -> u64 {
        self.found.get(&key(place)).map_or(0, |found| found.left_out)
    }

    fn add_overlap(&mut self, key: Key, overlap: Overlap) {
        let found = self.found.entry(key).or_default();
        found.all_overlaps += 1;
        if found.overlaps.len() < MOST_LISTED && self.kept < MOST_KEPT {
            found.overlaps.push(overlap);
            self.kept += 1;
        }
    }
}

fn key(place: &Place) -> Key {
    (place.connection, place.direction)
}

impl Sink for Written<'_> {
    fn data(&mut self, place: &Place, offset: u64, bytes: &[u8]) {
        // Nothing is written behind a failure: the command ends with it.
        if self.failure.is_none() {
            let at = offset - self.left_out(place);
            let result = self.files.write(key(place), &place.flow, at, bytes);
            self.note(result);
            self.bytes += bytes.len() as u64;
        }
    }

    fn repeated(&mut self, place: &Place, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        let is_missing = |found: &Found| {
            let is_in = |gap: &Gap| gap.offset < end && gap.offset + gap.len > offset;
            // In front of a gap that the file does not have in full, places are not known.
            offset < found.behind || found.gaps.iter().any(is_in)
        };
        if self.failure.is_some() || self.found.get(&key(place)).is_some_and(is_missing) {
            return;
        }
        let at = offset - self.left_out(place);
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(bytes.len(), 0);
        let result = self.files.read(key(place), &place.flow, at, &mut buffer);
        if matches!(result, Ok(true))
            && let Some(overlap) = Overlap::between(offset, &buffer, bytes, Kept::Earlier)
        {
            self.add_overlap(key(place), overlap);
        }
        self.note(result.map(drop));
        self.buffer = buffer;
    }

    fn gap(&mut self, place: &Place, gap: Gap) {
        let found = self.found.entry(key(place)).or_default();
        let hole = gap.len.min(MOST_HOLE).min(MOST_HOLES - found.holes);
        found.holes += hole;
        if hole < gap.len {
            found.left_out += gap.len - hole;
            found.behind = gap.offset + gap.len;
        }
        if found.gaps.len() < MOST_LISTED && self.kept < MOST_KEPT {
            found.gaps.push(gap);
            self.kept += 1;
        }
    }

    fn overlap(&mut self, place: &Place, overlap: Overlap) {
        self.add_overlap(key(place), overlap);
    }

    fn closed(&mut self, report: &Report) {
        for direction in Direction::BOTH {
            let key = (report.connection, direction);
            let file = self.files.close(key);
            let found = self.found.remove(&key).unwrap_or_default();
            self.kept -= found.gaps.len() + found.overlaps.len();
            let stream = listing::Stream { report, direction, file, found: &found };
            self.output.text(if self.output.json { stream.json() } else { stream.text() });
        }
    }
}
