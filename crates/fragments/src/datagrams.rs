//! The datagrams whose fragments have not all come.

use crate::fragment::{Fragment, Key, MOST};
use braid_packet::{Link, Packet};
use hashlink::LinkedHashMap;
use hashlink::linked_hash_map::Entry;
use std::collections::BTreeMap;

/// The links by their numbers in saved memory.
const LINKS: [Link; 4] = [Link::Ethernet, Link::RawIp, Link::Cooked, Link::Cooked2];

/// What a datagram and a fragment take beside their bytes.
const DATAGRAM: usize = 256;
const PART: usize = 160;

/// Limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most memory (bytes). Beyond it, the datagrams that began first are given up.
    pub(crate) memory: usize,
    /// A datagram is given up after this time (ns).
    pub(crate) timeout: u64,
}

/// What a fragment has brought.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Brought {
    /// More fragments of its datagram must come, or it has come already.
    Nothing,
    /// The whole packet, from the link header on.
    Whole(Vec<u8>),
    /// No datagram has such a fragment, or not beside the others. All its fragments are dropped.
    Wrong,
}

/// The datagrams, the one that began first in front.
#[derive(Debug)]
pub(crate) struct Datagrams {
    limits: Limits,
    all: LinkedHashMap<Key, Datagram>,
    memory: usize,
    /// The number of datagrams that were given up because of their age, and because of the memory.
    pub(crate) timed_out: u64,
    pub(crate) given_up: u64,
}

/// A datagram.
#[derive(Debug)]
struct Datagram {
    /// When its first fragment came (ns).
    began: u64,
    /// Its fragments by their places.
    parts: BTreeMap<usize, Fragment>,
    /// The bytes that have come.
    len: usize,
    /// The number of all bytes, if the last fragment has come.
    total: Option<usize>,
    /// A fragment that is not sound, or does not fit the others. Then nothing else is kept.
    wrong: Option<Fragment>,
    /// What it takes (bytes).
    memory: usize,
}

impl Datagram {
    fn new(began: u64) -> Self {
        Self { began, parts: BTreeMap::new(), len: 0, total: None, wrong: None, memory: DATAGRAM }
    }

    /// Takes a fragment.
    fn add(&mut self, fragment: Fragment) -> Brought {
        if self.wrong.is_some() {
            return Brought::Wrong;
        }
        if self.has(&fragment) {
            return Brought::Nothing;
        }
        let memory = PART + fragment.bytes.len();
        if !self.fits(&fragment) {
            let wrong = Some(fragment);
            *self = Self { wrong, memory: DATAGRAM + memory, ..Self::new(self.began) };
            return Brought::Wrong;
        }
        self.memory += memory;
        self.len += fragment.part().len();
        if !fragment.has_more {
            self.total = Some(fragment.end());
        }
        self.parts.insert(fragment.offset, fragment);
        match self.total == Some(self.len) {
            true => self.whole().map_or(Brought::Wrong, Brought::Whole),
            false => Brought::Nothing,
        }
    }

    /// Whether this fragment came before.
    fn has(&self, fragment: &Fragment) -> bool {
        let is_same =
            |one: &Fragment| one.has_more == fragment.has_more && one.part() == fragment.part();
        self.parts.get(&fragment.offset).is_some_and(is_same)
    }

    /// Whether a fragment is sound, shares no byte with earlier ones (RFC 5722), and ends where the
    /// datagram may.
    fn fits(&self, fragment: &Fragment) -> bool {
        let before = self.parts.range(..=fragment.offset).next_back();
        let behind = self.parts.range(fragment.offset..).next();
        let ends = match (self.total, fragment.has_more) {
            (Some(total), true) => fragment.end() < total,
            (Some(_), false) => false,
            (None, true) => true,
            (None, false) => {
                self.parts.values().next_back().is_none_or(|last| last.end() <= fragment.offset)
            }
        };
        ends && fragment.is_sound()
            && before.is_none_or(|(_, before)| before.end() <= fragment.offset)
            && behind.is_none_or(|(place, _)| fragment.end() <= *place)
    }

    /// The whole packet.
    fn whole(&self) -> Option<Vec<u8>> {
        let is_marked = self.parts.values().any(Fragment::is_marked);
        let mut whole = self.parts.get(&0)?.whole(self.len, is_marked)?;
        self.parts.values().for_each(|part| whole.extend(part.part()));
        // No frame is longer, its link header included.
        (whole.len() <= MOST).then_some(whole)
    }
}

impl Datagrams {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, all: LinkedHashMap::new(), memory: 0, timed_out: 0, given_up: 0 }
    }

    /// A fragment has come.
    pub(crate) fn add(&mut self, key: Key, fragment: Fragment, now: u64) -> Brought {
        self.advance(now);
        let datagram = match self.all.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                self.memory += DATAGRAM;
                place.insert(Datagram::new(now))
            }
        };
        self.memory -= datagram.memory;
        let brought = datagram.add(fragment);
        self.memory += datagram.memory;
        if let Brought::Whole(_) = brought {
            self.remove(&key);
        }
        self.relieve();
        brought
    }

    /// Gives up the datagrams that are too old.
    pub(crate) fn advance(&mut self, now: u64) {
        let is_old =
            |datagram: &Datagram| now.saturating_sub(datagram.began) >= self.limits.timeout;
        while let Some((key, _)) = self.all.front().filter(|(_, oldest)| is_old(oldest)) {
            let key = *key;
            self.timed_out += 1;
            self.memory -= self.all.remove(&key).map_or(0, |oldest| oldest.memory);
        }
    }

    /// Gives up the oldest datagrams until they take no more memory than they may.
    fn relieve(&mut self) {
        while self.memory > self.limits.memory
            && let Some((_, oldest)) = self.all.pop_front()
        {
            self.memory -= oldest.memory;
            self.given_up += 1;
        }
    }

    fn remove(&mut self, key: &Key) {
        self.memory -= self.all.remove(key).map_or(0, |datagram| datagram.memory);
    }

    /// The memory of all datagrams (bytes).
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// For each datagram: its key, and the numbers of its fragments and bytes.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&Key, usize, usize)> {
        self.all.iter().map(|(key, datagram)| (key, datagram.parts.len(), datagram.len))
    }

    /// All datagrams as bytes: for each one when it began, whether it is wrong, and its fragments.
    pub(crate) fn save(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for datagram in self.all.values() {
            let fragments: Vec<&Fragment> =
                datagram.parts.values().chain(&datagram.wrong).collect();
            number(datagram.began, &mut out);
            number(datagram.wrong.is_some().into(), &mut out);
            number(fragments.len() as u64, &mut out);
            for fragment in fragments {
                let link = LINKS.iter().position(|link| *link == fragment.link).unwrap_or(0);
                number(link as u64, &mut out);
                number(fragment.is_backward.into(), &mut out);
                number(fragment.bytes.len() as u64, &mut out);
                out.extend(&fragment.bytes);
            }
        }
        out
    }

    /// Goes on from bytes that another instance has saved. `None` if they are damaged.
    pub(crate) fn restore(&mut self, mut from: &[u8]) -> Option<()> {
        while !from.is_empty() {
            let mut datagram = Datagram::new(read(&mut from)?);
            let is_wrong = read(&mut from)? != 0;
            let mut of = None;
            for _ in 0..read(&mut from)? {
                let link = *LINKS.get(usize::try_from(read(&mut from)?).ok()?)?;
                let is_backward = read(&mut from)? != 0;
                let len = usize::try_from(read(&mut from)?).ok()?;
                let (bytes, rest) = from.split_at_checked(len)?;
                from = rest;
                let mut packet = Packet::new(link, datagram.began, bytes);
                packet.backward = is_backward;
                let layout = packet.parse();
                let (key, fragment) =
                    Fragment::of(&packet, &layout.is_fragment().then_some(layout)?)?;
                if *of.get_or_insert(key) != key {
                    return None;
                }
                match is_wrong {
                    true => {
                        datagram.memory = DATAGRAM + PART + fragment.bytes.len();
                        datagram.wrong = Some(fragment);
                    }
                    false if datagram.add(fragment) == Brought::Nothing => {}
                    false => return None,
                }
            }
            self.memory += datagram.memory;
            if self.all.insert(of?, datagram).is_some() {
                return None;
            }
        }
        self.relieve();
        Some(())
    }
}

fn number(number: u64, out: &mut Vec<u8>) {
    out.extend(number.to_le_bytes());
}

fn read(from: &mut &[u8]) -> Option<u64> {
    let (number, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u64::from_le_bytes(*number))
}
