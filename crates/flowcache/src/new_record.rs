//! A record that is about to be made.

use crate::absences::Keys;
use braid_state::Handle;

/// A new record; see [`crate::slab::Record`].
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a, const K: usize, const W: usize> {
    /// The key of the record's flow.
    pub key: [u64; K],
    /// The hash of the key.
    pub hash: u64,
    /// The kind of the record ([`crate::key::kind`]).
    pub kind: u32,
    /// The record's template.
    pub template: u32,
    /// The words that the record writes over the packet's first bytes, under the template's mask.
    pub head: [u64; W],
    /// The amounts that the record adds to the packet's IPv4 and transport checksums.
    pub sums: [u16; 2],
    /// The time (ns).
    pub now: u64,
    /// Entries that the record depends on: each once.
    pub entries: &'a [Handle],
    /// The number of the list of uses that the record has of the entries
    /// ([`crate::Records::uses`]).
    pub uses: u32,
    /// Packed keys of entries that must be absent.
    pub absent: &'a Keys,
}

impl<'a, const K: usize, const W: usize> NewRecord<'a, K, W> {
    /// The same record with a key and words of other lengths: shortened, or extended with zeros.
    #[must_use]
    pub fn with<const L: usize, const V: usize>(
        &self,
        key: [u64; L],
        head: [u64; V],
    ) -> NewRecord<'a, L, V> {
        let NewRecord { hash, kind, template, sums, now, entries, uses, absent, .. } = *self;
        NewRecord { key, hash, kind, template, head, sums, now, entries, uses, absent }
    }
}
