//! The values of a running program.

use crate::model::{Ty, ValueId, Word};
use crate::residual::RuleFields;
use crate::rules::RulePacket;

/// Values of a running program, with their types.
#[derive(Debug)]
pub struct Values<'a> {
    /// The values, by number.
    pub words: &'a mut [Word],
    /// The types, by number.
    pub types: &'a [Ty],
}

impl Values<'_> {
    /// A value.
    #[must_use]
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a verified program refers only to its own values")]
    pub fn get(&self, id: ValueId) -> Word {
        self.words[id.index()]
    }

    /// Whether a value is not 0.
    #[must_use]
    #[inline]
    pub fn truth(&self, id: ValueId) -> bool {
        self.get(id) != 0
    }

    /// Assigns a value.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a verified program refers only to its own values")]
    pub fn set(&mut self, id: ValueId, value: Word) {
        self.words[id.index()] = value;
    }

    /// Assigns several values.
    #[inline]
    pub fn set_all(&mut self, ids: &[ValueId], values: &[Word]) {
        for (id, value) in ids.iter().zip(values) {
            self.set(*id, *value);
        }
    }

    /// The type of a value.
    #[must_use]
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a verified program refers only to its own values")]
    pub fn ty(&self, id: ValueId) -> Ty {
        self.types[id.index()]
    }

    /// The width of a value in bits.
    #[must_use]
    #[inline]
    pub fn width(&self, id: ValueId) -> u16 {
        self.ty(id).width
    }

    /// The input of rules for a packet with these fields.
    #[must_use]
    pub fn rule_packet(&self, fields: &RuleFields) -> RulePacket {
        #[expect(clippy::cast_possible_truncation, reason = "a port has 16 bits")]
        let port = |id| self.get(id) as u16;
        #[expect(clippy::cast_possible_truncation, reason = "these fields have 8 bits")]
        let byte = |id| self.get(id) as u8;
        RulePacket {
            version: fields.version,
            src: self.get(fields.src),
            dst: self.get(fields.dst),
            proto: byte(fields.proto),
            ports: fields.ports.map(|(sport, dport)| (port(sport), port(dport))),
            tcp_flags: fields.tcp_flags.map(byte),
            icmp: fields.icmp.map(|(kind, code)| (byte(kind), byte(code))),
        }
    }
}
