//! What is known about each header of a packet on a path: it is present, absent, or unknown.

use braid_packet::{Field, Header};

/// Headers, as bits by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Headers {
    present: u128,
    open: u128,
    /// Headers that are either all present or all absent. Which of the two is not known.
    together: u128,
    /// Headers whose presence was tested.
    pub(super) asked: u128,
}

pub(super) fn bit(header: Header) -> u128 {
    1 << header as u32
}

/// A header and the headers that it implies.
fn closure(header: Header) -> u128 {
    header.implies().iter().fold(bit(header), |bits, header| bits | bit(*header))
}

/// The bits of all headers.
pub(super) const EVERY: u128 = (1 << braid_packet::HEADERS.len()) - 1;

/// Headers in the order of their numbers.
pub(super) fn all() -> impl Iterator<Item = Header> {
    braid_packet::HEADERS.iter().map(|(header, _)| *header)
}

/// The headers that the type of an ICMP message decides: the quoted headers, and the identifier of
/// an echo.
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
    /// Exactly these headers are present.
    pub(super) fn exactly(present: u128) -> Self {
        Self { present: present | bit(Header::Pkt), open: 0, together: 0, asked: 0 }
    }

    /// Whether a header is present. An error means that this is not known.
    pub(super) fn has(&mut self, header: Header) -> Result<bool, Header> {
        self.asked |= bit(header);
        if self.open & bit(header) != 0 {
            return Err(header);
        }
        Ok(self.present & bit(header) != 0)
    }

    /// The knowledge about presence, without the record of tested headers.
    pub(super) fn known(&self) -> (u128, u128, u128) {
        (self.present, self.open, self.together)
    }

    /// Headers whose presence is not known.
    pub(super) fn open(&self) -> u128 {
        self.open
    }

    /// Records whether a header is present, and the consequences for other headers.
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

    /// Forgets whether these headers are present.
    pub(super) fn forget(&mut self, bits: u128) {
        self.present &= !bits;
        self.open |= bits;
        self.together &= !bits;
    }

    /// Records that these headers may be gone. The present ones are now all present or all
    /// absent.
    pub(super) fn doubt(&mut self, bits: u128) {
        self.together |= self.present & bits;
        self.present &= !bits;
        self.open |= self.together;
    }
}
