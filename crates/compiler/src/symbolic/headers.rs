//! What is known about a packet's headers at a place: present, absent, or open.

use braid_packet::Header;

/// Headers, as bits by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Headers {
    present: u32,
    open: u32,
    /// Headers that are all present or all absent, which of the two is open.
    together: u32,
    /// Headers whose presence was asked for.
    pub(super) asked: u32,
}

pub(super) fn bit(header: Header) -> u32 {
    1 << header as u32
}

/// A header and those that it implies.
fn closure(header: Header) -> u32 {
    header.implies().iter().fold(bit(header), |bits, header| bits | bit(*header))
}

/// Headers in the order of their numbers.
pub(super) fn all() -> impl Iterator<Item = Header> {
    braid_packet::HEADERS.iter().map(|(header, _)| *header)
}

/// What may be quoted, and the identifier of an echo.
pub(super) const BEHIND_ICMP: [Header; 7] = [
    Header::IcmpEcho,
    Header::Icmp6Echo,
    Header::Quoted,
    Header::Quoted4,
    Header::Quoted6,
    Header::QuotedL4,
    Header::QuotedEcho,
];

impl Headers {
    /// Exactly these.
    pub(super) fn exactly(present: u32) -> Self {
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
    pub(super) fn known(&self) -> (u32, u32, u32) {
        (self.present, self.open, self.together)
    }

    /// Headers whose presence is not known.
    pub(super) fn open(&self) -> u32 {
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
    pub(super) fn forget(&mut self, bits: u32) {
        self.present &= !bits;
        self.open |= bits;
        self.together &= !bits;
    }

    /// All of these that are present may have gone, but only together.
    pub(super) fn doubt(&mut self, bits: u32) {
        self.together |= self.present & bits;
        self.present &= !bits;
        self.open |= self.together;
    }
}
