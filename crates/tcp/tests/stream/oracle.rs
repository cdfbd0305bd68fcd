//! The oracle: one cell for each offset, with the byte that counts and the segment that it is from.

use braid_tcp::{Kept, Overlap, Policy};

#[derive(Clone, Copy)]
struct Cell {
    byte: u8,
    segment: usize,
}

/// A stream as an array of cells.
pub struct Naive {
    policy: Policy,
    cells: Vec<Option<Cell>>,
    segments: usize,
    /// Cells in front of this one are delivered and do not change.
    frontier: usize,
    pub overlaps: Vec<Overlap>,
    pub repeated: Vec<(u64, u8)>,
    pub early: u64,
    /// The number of bytes that came again.
    pub again: u64,
}

impl Naive {
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            cells: Vec::new(),
            segments: 0,
            frontier: 0,
            overlaps: Vec::new(),
            repeated: Vec::new(),
            early: 0,
            again: 0,
        }
    }

    pub fn segment(&mut self, offset: i64, bytes: &[u8]) {
        self.segments += 1;
        // A segment without bytes shows, too, that all bytes in front of it were sent.
        let sent = usize::try_from(offset + bytes.len() as i64).unwrap_or(0);
        self.cells.resize(self.cells.len().max(sent), None);
        let mut new: Vec<(usize, u8)> = Vec::new();
        for (at, byte) in (offset..).zip(bytes) {
            match usize::try_from(at) {
                Err(_) => self.early += 1,
                Ok(at) if at < self.frontier => {
                    self.repeated.push((at as u64, *byte));
                    self.again += 1;
                }
                Ok(at) => new.push((at, *byte)),
            }
        }
        let (Some(&(start, _)), Some(&(last, _))) = (new.first(), new.last()) else { return };
        let end = last + 1;
        let before = self.cells.clone();
        // The runs of cells of one segment, before the new one came.
        let same = |a: Option<Cell>, b: Option<Cell>| match (a, b) {
            (Some(a), Some(b)) => a.segment == b.segment,
            _ => false,
        };
        let mut at = self.frontier;
        let mut decided = vec![Kept::Later; end];
        while at < before.len() {
            let mut stop = at + 1;
            while stop < before.len() && same(before[at], before[stop]) {
                stop += 1;
            }
            let both = at.max(start)..stop.min(end);
            if before[at].is_some() && !both.is_empty() {
                let kept = self.decide((at, stop), (start, end));
                let old = |at: usize| before[at].unwrap().byte;
                let differs = |at: &usize| old(*at) != new[*at - start].1;
                let wrong: Vec<usize> = both.clone().filter(differs).collect();
                if let (Some(first), Some(last)) = (wrong.first(), wrong.last()) {
                    let (offset, len) = (*first as u64, (last - first + 1) as u64);
                    self.overlaps.push(Overlap { offset, len, kept });
                }
                self.again += both.len() as u64;
                decided[both].fill(kept);
            }
            at = stop;
        }
        for (at, byte) in new {
            if decided[at] == Kept::Later {
                self.cells[at] = Some(Cell { byte, segment: self.segments });
            }
        }
        while self.cells.get(self.frontier).is_some_and(Option::is_some) {
            self.frontier += 1;
        }
    }

    /// The policies, as a table: where the later segment begins (before, with, behind the earlier
    /// one), and whether it ends behind it.
    fn decide(&self, (old_start, old_end): (usize, usize), (start, end): (usize, usize)) -> Kept {
        use std::cmp::Ordering::{Equal, Less};
        match (self.policy, start.cmp(&old_start), end > old_end) {
            (Policy::Last, ..) => Kept::Later,
            (Policy::First, ..) => Kept::Earlier,
            (Policy::Bsd | Policy::Linux, Less, _) => Kept::Later,
            (Policy::Linux | Policy::OldLinux | Policy::Solaris, Equal, true) => Kept::Later,
            (Policy::OldLinux, Less, _) => Kept::Later,
            (Policy::OldLinux, Equal, _) if end == old_end => Kept::Later,
            (Policy::Solaris, _, true) => Kept::Later,
            (Policy::Solaris, Less | Equal, _) if end == old_end => Kept::Later,
            _ => Kept::Earlier,
        }
    }

    /// What is delivered.
    pub fn delivered(&self) -> Vec<Option<u8>> {
        self.cells[..self.frontier].iter().map(|cell| cell.map(|cell| cell.byte)).collect()
    }

    /// All bytes, with holes.
    pub fn all(&self) -> Vec<Option<u8>> {
        self.cells.iter().map(|cell| cell.map(|cell| cell.byte)).collect()
    }

    /// The holes: offset and length.
    pub fn gaps(&self) -> Vec<(u64, u64)> {
        let mut gaps: Vec<(u64, u64)> = Vec::new();
        for (at, _) in self.cells.iter().enumerate().filter(|(_, cell)| cell.is_none()) {
            match gaps.last_mut() {
                Some((offset, len)) if *offset + *len == at as u64 => *len += 1,
                _ => gaps.push((at as u64, 1)),
            }
        }
        gaps
    }
}
