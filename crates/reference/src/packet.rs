//! The packet that a program works on: its current state, and its state on entry to the function.

use braid_ir::model::Word;
use braid_ir::rules::RulePacket;
use braid_packet::bytes::{self, Area, Cut};
use braid_packet::tunnel::Change;
use braid_packet::{Field, Header, Layout, Packet, crypt, options, replace};

/// A packet in a function.
pub(super) struct PacketState {
    pub(super) now: Packet,
    /// The layout of the current packet, parsed again after every change.
    pub(super) layout: Layout,
    pub(super) entry: Packet,
    pub(super) entry_layout: Layout,
}

impl PacketState {
    pub(super) fn new(packet: Packet) -> Self {
        let layout = packet.parse();
        let entry = packet.clone();
        let entry_layout = entry.parse();
        Self { now: packet, layout, entry, entry_layout }
    }

    pub(super) fn get(&self, field: Field) -> Option<u128> {
        self.now.get(&self.layout, field)
    }

    pub(super) fn get_at_entry(&self, field: Field) -> Option<u128> {
        self.entry.get(&self.entry_layout, field)
    }

    pub(super) fn set(&mut self, field: Field, value: u128) -> bool {
        let done = self.now.set(&self.layout, field, value);
        self.layout = self.now.parse();
        done
    }

    pub(super) fn push_vlan(&mut self, id: u16) -> bool {
        let done = self.now.push_vlan(id);
        self.layout = self.now.parse();
        done
    }

    pub(super) fn pop_vlan(&mut self) -> bool {
        let done = self.now.pop_vlan();
        self.layout = self.now.parse();
        done
    }

    /// Whether the packet can get a TCP option.
    pub(super) fn has_room(&self, option: Header) -> bool {
        options::has_room(&self.now, &self.layout, option)
    }

    /// Adds a TCP option with these values, or removes one if there are no values to add.
    pub(super) fn change_option(&mut self, option: Header, values: Option<&[Word]>) -> bool {
        let done = options::change(&mut self.now, &self.layout, option, values);
        self.layout = self.now.parse();
        done
    }

    /// The payload, if the capture has all of it.
    pub(super) fn payload(&self) -> Option<&[u8]> {
        (!self.layout.payload_truncated()).then(|| self.now.payload(&self.layout))
    }

    /// The number in some bytes of an area. `None` if the area ends before.
    pub(super) fn number(&self, place: (Area, Word), bytes: usize) -> Result<Option<Word>, Cut> {
        bytes::load(&self.now, &self.layout, place, bytes)
    }

    /// Reads a string in an area into words. Returns false if the area ends before.
    pub(super) fn string(
        &self,
        place: (Area, Word),
        len: Word,
        words: &mut [Word],
    ) -> Result<bool, Cut> {
        bytes::string(&self.now, &self.layout, place, len, words)
    }

    /// Adds outer headers or removes some. Returns false if that is not possible.
    pub(super) fn tunnel(&mut self, change: &Change) -> Result<bool, Cut> {
        let done = change.apply(&mut self.now, &self.layout);
        self.layout = self.now.parse();
        done
    }

    /// Encrypts the payload or decrypts it. Returns false if that is not possible.
    pub(super) fn crypt(&mut self, change: &crypt::Change) -> Result<bool, Cut> {
        let done = change.apply(&mut self.now, &self.layout);
        self.layout = self.now.parse();
        done
    }

    /// Writes a number to an area. Returns false if the area ends before.
    pub(super) fn set_number(
        &mut self,
        place: (Area, Word),
        bytes: usize,
        value: Word,
    ) -> Result<bool, Cut> {
        let done = bytes::store(&mut self.now, &self.layout, place, bytes, value);
        self.layout = self.now.parse();
        done
    }

    /// Replaces bytes of the payload: from an offset on this number, by these. Returns false if
    /// that is refused.
    pub(super) fn replace(
        &mut self,
        place: (Word, Word),
        new: (Word, &[Word]),
    ) -> Result<bool, Cut> {
        let done = replace::replace(&mut self.now, &self.layout, place, new);
        self.layout = self.now.parse();
        done
    }

    /// Adds a TCP option of any kind, or removes one. Returns whether the packet has changed.
    pub(super) fn set_option(&mut self, kind: u8, value: Option<&[u8]>) -> bool {
        let done = options::set(&mut self.now, &self.layout, kind, value);
        self.layout = self.now.parse();
        done
    }

    /// The fields that rules read. `None` for packets that are not IP.
    pub(super) fn for_rules(&self) -> Option<RulePacket> {
        RulePacket::read(|field| self.get(field))
    }
}
