//! The knowledge about the headers of a packet on a path: each is present, absent or unknown.

use braid_ir::residual::HeaderMask;
use braid_packet::field::Cover;
use braid_packet::{Field, FieldInfo, Header};

/// The knowledge about all headers, as bits by the headers' numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Headers {
    present: u128,
    open: u128,
    /// Headers that are either all present or all absent.
    together: u128,
    /// Headers whose presence was tested.
    pub(super) asked: u128,
}

/// The bits of all headers.
pub(super) const EVERY: u128 = (1 << braid_packet::HEADERS.len()) - 1;

/// Headers in the order of their numbers.
pub(super) fn all() -> impl Iterator<Item = Header> {
    braid_packet::HEADERS.iter().map(|(header, _)| *header)
}

/// The headers with these bits.
pub(super) fn listed(bits: u128) -> impl Iterator<Item = Header> {
    all().filter(move |header| bits & header.bit() != 0)
}

/// The headers of transport protocols. One header stands for TCP and UDP.
pub(super) fn transports() -> impl Iterator<Item = Header> {
    Header::transports().map(Header::group)
}

/// The fields of a quoted packet.
pub(super) fn quoted_fields() -> impl Iterator<Item = Field> {
    let quoted = |info: &&FieldInfo| info.header.info().sum == Cover::Quoted;
    braid_packet::FIELDS.iter().filter(quoted).map(|info| info.field)
}

/// The headers of the packets that enter a program.
pub(super) struct Entering {
    present: u128,
    /// Headers whose presence matters to the program.
    pub(super) asked: u128,
}

impl Entering {
    /// Packets with exactly these headers.
    pub(super) fn new(present: u128) -> Self {
        Self { present, asked: 0 }
    }

    /// The knowledge about their headers.
    pub(super) fn headers(&self) -> Headers {
        Headers::exactly(self.present)
    }

    /// Whether they have a field's header.
    pub(super) fn has_field(&mut self, field: Field) -> bool {
        let header = field.info().header.bit();
        self.asked |= header;
        (self.present | Header::Pkt.bit()) & header != 0
    }

    /// The header shape that the program is for.
    pub(super) fn shape(&self) -> HeaderMask {
        let care = self.asked & !Header::Pkt.bit();
        HeaderMask { care, present: self.present & care }
    }
}

impl Headers {
    /// Exactly these headers are present.
    fn exactly(present: u128) -> Self {
        Self { present: present | Header::Pkt.bit(), open: 0, together: 0, asked: 0 }
    }

    /// Whether a header is present. An error with the header means that this is unknown.
    pub(super) fn has(&mut self, header: Header) -> Result<bool, Header> {
        self.asked |= header.bit();
        if self.open & header.bit() != 0 {
            return Err(header);
        }
        Ok(self.present & header.bit() != 0)
    }

    /// The knowledge about presence, without the record of tested headers. Equal for paths that
    /// know the same.
    pub(super) fn known(&self) -> (u128, u128, u128) {
        (self.present, self.open, self.together)
    }

    /// Headers that are known to be present. This tests none of them.
    pub(super) fn present(&self) -> u128 {
        self.present
    }

    /// Headers whose presence is not known.
    pub(super) fn open(&self) -> u128 {
        self.open
    }

    /// Records whether a header is present, and the consequences for other headers.
    pub(super) fn set(&mut self, header: Header, present: bool) {
        if self.together & header.bit() != 0 {
            let all = std::mem::take(&mut self.together);
            self.open &= !all;
            self.present = if present { self.present | all } else { self.present & !all };
        } else if present {
            self.present |= header.closure();
            self.open &= !header.closure();
        } else {
            let gone = all().filter(|other| other.closure() & header.bit() != 0);
            let gone = Header::bits(gone);
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

    /// Records that these headers may have become unrecognised. The present ones are now either all
    /// present or all absent.
    pub(super) fn doubt(&mut self, bits: u128) {
        self.together |= self.present & bits;
        self.present &= !bits;
        self.open |= self.together;
    }
}
