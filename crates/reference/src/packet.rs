//! The packet that a program works on: its current state, and its state on entry to the function.

use braid_ir::rules::RulePacket;
use braid_packet::{Field, Header, Layout, Packet};

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

    /// The payload, if the capture has all of it.
    pub(super) fn payload(&self) -> Option<&[u8]> {
        (!self.layout.payload_truncated()).then(|| self.now.payload(&self.layout))
    }

    /// The fields that rules read. `None` for packets that are not IP.
    pub(super) fn for_rules(&self) -> Option<RulePacket> {
        let byte = |field| self.get(field).and_then(|value| u8::try_from(value).ok());
        let port = |field| self.get(field).and_then(|value| u16::try_from(value).ok());
        let icmp = match self.layout.has(Header::Icmp6) {
            true => byte(Field::Icmp6Type).zip(byte(Field::Icmp6Code)),
            false => byte(Field::IcmpType).zip(byte(Field::IcmpCode)),
        };
        Some(RulePacket {
            version: byte(Field::InetVersion)?,
            src: self.get(Field::InetSrc)?,
            dst: self.get(Field::InetDst)?,
            proto: byte(Field::InetProto)?,
            ports: port(Field::L4Sport).zip(port(Field::L4Dport)),
            tcp_flags: byte(Field::TcpFlags),
            icmp,
        })
    }
}
