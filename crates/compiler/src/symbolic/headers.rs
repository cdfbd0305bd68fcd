//! What is known about a packet's headers at a place: present, absent, or open.

use braid_packet::{Field, Header};

/// Headers, as bits by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Headers {
    present: u128,
    open: u128,
    /// Headers that are all present or all absent, which of the two is open.
    together: u128,
    /// Headers whose presence was asked for.
    pub(super) asked: u128,
}

pub(super) fn bit(header: Header) -> u128 {
    1 << header as u32
}

/// A header and those that it implies.
fn closure(header: Header) -> u128 {
    header.implies().iter().fold(bit(header), |bits, header| bits | bit(*header))
}

/// The bits of all headers.
pub(super) const EVERY: u128 = (1 << braid_packet::HEADERS.len()) - 1;

/// Headers in the order of their numbers.
pub(super) fn all() -> impl Iterator<Item = Header> {
    braid_packet::HEADERS.iter().map(|(header, _)| *header)
}

/// Headers that the type of an ICMP message decides about: what is quoted, and the identifier of an
/// echo.
pub(super) fn behind_icmp() -> u128 {
    Field::IcmpType.decided_bits() | Field::Icmp6Type.decided_bits()
}

/// Headers that a UDP port announces.
pub(super) fn behind_ports() -> u128 {
    Field::UdpDport.decided_bits()
}

/// The headers with these bits.
pub(super) fn listed(bits: u128) -> impl Iterator<Item = Header> {
    all().filter(move |header| bits & bit(*header) != 0)
}

impl Headers {
    /// Exactly these.
    pub(super) fn exactly(present: u128) -> Self {
        Self { present: present | bit(Header::Pkt), open: 0, together: 0, asked: 0 }
    }

    /// Whether a header is present, or that this is not known.
    pub(super) fn has(&mut self, header: Header) -> Result<bool, Header> {
        self.asked |= bit(header);
        if self.open & bit(header) != 0 {
            return Err(header);
        }
        Ok(self.present & bit(header) != 0)
    }

    /// What is known, without what was asked for.
    pub(super) fn known(&self) -> (u128, u128, u128) {
        (self.present, self.open, self.together)
    }

    /// Headers whose presence is not known.
    pub(super) fn open(&self) -> u128 {
        self.open
    }

    /// Notes whether a header is present, and what follows from that.
    pub(super) fn set(&mut self, header: Header, present: bool) {
        if self.together & bit(header) != 0 {
            let all = std::mem::take(&mut self.together);
            self.open &= !all;
            self.present = if present { self.present | all } else { self.present & !all };
        } else if present {
            self.present |= closure(header);
            self.open &= !closure(header);
        } else {
            let gone = all().filter(|other| closure(*other) & bit(header) != 0);
            let gone = gone.fold(0, |bits, other| bits | bit(other));
            self.present &= !gone;
            self.open &= !gone;
        }
    }

    /// Whether a header is present is no longer known.
    pub(super) fn forget(&mut self, bits: u128) {
        self.present &= !bits;
        self.open |= bits;
        self.together &= !bits;
    }

    /// All of these that are present may have gone, but only together.
    pub(super) fn doubt(&mut self, bits: u128) {
        self.together |= self.present & bits;
        self.present &= !bits;
        self.open |= self.together;
    }
}
