//! Which records rest on which entries.

use crate::bugs::RecordBug;
use crate::records::Records;
use crate::store::TableRef;
use crate::table::NONE;
use crate::uses::{MOST_WRITERS, Use};

/// That a record rests on an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// The table of the root of the entry's group, and its number there. For an entry that must not be there,
    /// [`Records::absent_table`] and its number in [`crate::absent::Absences`].
    pub(crate) root: (u32, u32),
    pub(crate) record: u32,
    /// The next one of the record.
    pub(crate) next: u32,
    /// Its neighbours among those on the same group.
    before: u32,
    pub(crate) behind: u32,
    /// Where the entry is in its table.
    pub(crate) place: u32,
    /// The number of its [`Use`], or [`NONE`].
    pub(crate) how: u32,
}

/// The links on a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// The first one.
    pub(crate) first: u32,
    len: u32,
    /// Slots that records take for granted, as bits that several slots may have ([`bits`]);
    /// also those of links that have ended since there was none.
    pub(crate) reads: u16,
    /// Those that count.
    pub(crate) counts: u16,
    /// Those that are read, and assigned, for each packet.
    live: u16,
    puts: u16,
}

impl Head {
    pub(crate) const NONE: Head =
        Head { first: NONE, len: 0, reads: 0, counts: 0, live: 0, puts: 0 };
}

/// Bits for slots of one of a group's tables.
pub(crate) fn bits(table: TableRef, slots: u64) -> u16 {
    let all = (0..4).fold(0, |all, part| all | (slots >> (16 * part)) as u16);
    all.rotate_left(table.0 % 16)
}

impl Records {
    /// The links on the group with this root.
    #[inline]
    pub(crate) fn head(&self, (table, number): (usize, usize)) -> Head {
        self.heads[table].get(number).copied().unwrap_or(Head::NONE)
    }

    /// When a record that rests on a group was last taken.
    pub(crate) fn seen(&self, root: (usize, usize)) -> Option<u64> {
        let mut at = self.head(root).first;
        let mut latest = None;
        while at != NONE {
            let link = &self.links[at as usize];
            latest = latest.max(Some(self.body(link.record).seen));
            at = link.behind;
        }
        latest
    }

    /// Whether a record that does this with an entry of a group gets on with those that are there.
    pub(crate) fn fits(&self, root: (u32, u32), one: &Use) -> bool {
        let head = self.head((root.0 as usize, root.1 as usize));
        if self.has_bug(RecordBug::ContentionIgnored) {
            return true;
        }
        let [reads, counts, live, puts] =
            [one.reads, one.counts(), one.live, one.puts].map(|slots| bits(one.table, slots));
        let few = head.len < MOST_WRITERS || head.counts | counts == 0;
        let clash = reads & (head.counts | head.puts)
            | counts & (head.reads | head.live | head.puts)
            | live & head.counts
            | puts & (head.reads | head.counts);
        few && clash == 0
    }

    /// Where links on absent entries are.
    pub(crate) fn absent_table(&self) -> u32 {
        (self.heads.len() - 1) as u32
    }

    /// Lets a record rest on an entry of a group.
    pub(crate) fn tie(&mut self, record: u32, root: (u32, u32), place: u32, one: Option<&Use>) {
        let how = one.map_or(NONE, |one| self.uses.number(one));
        let heads = &mut self.heads[root.0 as usize];
        let number = root.1 as usize;
        if heads.len() <= number {
            heads.resize(number + 1, Head::NONE);
        }
        let head = &mut heads[number];
        if let Some(one) = one {
            head.reads |= bits(one.table, one.reads);
            head.counts |= bits(one.table, one.counts());
            head.live |= bits(one.table, one.live);
            head.puts |= bits(one.table, one.puts);
        }
        head.len += 1;
        let behind = head.first;
        let next = self.link(record);
        let link = Link { root, record, next, before: NONE, behind, place, how };
        let at = self.spare;
        let at = if at == NONE {
            self.links.push(link);
            (self.links.len() - 1) as u32
        } else {
            self.spare = self.links[at as usize].next;
            self.links[at as usize] = link;
            at
        };
        self.heads[root.0 as usize][number].first = at;
        if behind != NONE {
            self.links[behind as usize].before = at;
        }
        self.set_link(record, at);
    }

    /// Takes a link out of those on its group, and gives it back: its group and the record's next one.
    pub(crate) fn untie(&mut self, at: u32) -> Link {
        let link = self.links[at as usize];
        let head = &mut self.heads[link.root.0 as usize][link.root.1 as usize];
        head.len -= 1;
        match link.before {
            NONE => head.first = link.behind,
            before => self.links[before as usize].behind = link.behind,
        }
        if head.first == NONE {
            *head = Head::NONE;
            if link.root.0 as usize == self.heads.len() - 1 {
                self.absences.forget(link.root.1);
            }
        }
        if link.behind != NONE {
            self.links[link.behind as usize].before = link.before;
        }
        self.links[at as usize].next = self.spare;
        self.spare = at;
        link
    }

    /// Whether a record rests on this already.
    pub(crate) fn rests(&self, record: u32, root: (u32, u32)) -> bool {
        let mut at = self.link(record);
        while at != NONE {
            let link = &self.links[at as usize];
            if link.root == root {
                return true;
            }
            at = link.next;
        }
        false
    }
}
