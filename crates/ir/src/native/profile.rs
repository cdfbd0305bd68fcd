//! Action profiles of native functions (NFP §4.2, §5.4), declared by the function or observed in a
//! run.

use super::fields::{FieldSet, names_of};
use braid_packet::Field;
use serde::{Deserialize, Serialize};

/// The actions that a function may perform on packets, or was observed to perform.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Profile {
    /// Header fields that it reads.
    pub reads: FieldSet,
    /// Header fields that it writes. Checksums follow automatically.
    pub writes: FieldSet,
    /// Whether it reads the payload.
    pub reads_payload: bool,
    /// Whether it writes the payload.
    pub writes_payload: bool,
    /// Whether it reads the packet's bytes directly, and so may read everything.
    pub reads_bytes: bool,
    /// Whether it writes the packet's bytes directly.
    pub writes_bytes: bool,
    /// Whether it adds bytes (headers).
    pub adds: bool,
    /// Whether it removes bytes (headers).
    pub removes: bool,
    /// Whether it drops packets.
    pub drops: bool,
    /// Whether packets may leave other than onward: back, by a port, or not at all.
    pub redirects: bool,
}

/// An invalid declaration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("its profile names `{0}`, which is no field")]
pub struct UnknownName(pub String);

/// Bits of the actions that a function declares.
pub mod may {
    /// Drop packets.
    pub const DROP: u32 = 1;
    /// Add headers.
    pub const ADD: u32 = 2;
    /// Remove headers.
    pub const REMOVE: u32 = 4;
    /// Send packets back, by a port, or consume them.
    pub const REDIRECT: u32 = 8;
}

impl Profile {
    /// The profile that a function declares. `reads` and `writes` have names of fields separated by
    /// blanks, `payload`, and `*` for all bytes.
    ///
    /// # Errors
    /// The first name that no field has.
    pub fn declared(reads: &str, writes: &str, may: u32) -> Result<Self, UnknownName> {
        let mut profile = Self {
            adds: may & may::ADD != 0,
            removes: may & may::REMOVE != 0,
            drops: may & may::DROP != 0,
            redirects: may & may::REDIRECT != 0,
            ..Self::default()
        };
        for name in reads.split_whitespace() {
            match name {
                "payload" => profile.reads_payload = true,
                "*" => {
                    profile.reads = FieldSet::ALL;
                    (profile.reads_payload, profile.reads_bytes) = (true, true);
                }
                name => profile.reads.insert(known(name)?),
            }
        }
        for name in writes.split_whitespace() {
            match name {
                "payload" => profile.writes_payload = true,
                "*" => {
                    profile.writes = FieldSet::ALL;
                    (profile.writes_payload, profile.writes_bytes) = (true, true);
                }
                name => profile.writes.insert(known(name)?),
            }
        }
        Ok(profile)
    }

    /// A profile that allows everything. It applies to functions that declare none.
    pub const ANYTHING: Self = Self {
        reads: FieldSet::ALL,
        writes: FieldSet::ALL,
        reads_payload: true,
        writes_payload: true,
        reads_bytes: true,
        writes_bytes: true,
        adds: true,
        removes: true,
        drops: true,
        redirects: true,
    };

    /// The actions of both profiles.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.reads.extend(other.reads.iter());
        self.writes.extend(other.writes.iter());
        self.reads_payload |= other.reads_payload;
        self.writes_payload |= other.writes_payload;
        self.reads_bytes |= other.reads_bytes;
        self.writes_bytes |= other.writes_bytes;
        self.adds |= other.adds;
        self.removes |= other.removes;
        self.drops |= other.drops;
        self.redirects |= other.redirects;
        self
    }

    /// Whether it allows a read of a field. Every function may read attributes of the packet
    /// itself.
    #[must_use]
    pub fn may_read(&self, field: Field) -> bool {
        field.info().header == braid_packet::Header::Pkt || has(&self.reads, field)
    }

    /// Whether it allows a write of a field.
    #[must_use]
    pub fn may_write(&self, field: Field) -> bool {
        has(&self.writes, field)
    }
}

/// Whether a set contains a field under this name or another name of the same place.
fn has(set: &FieldSet, field: Field) -> bool {
    set.contains(field) || names_of(field).iter().any(|other| set.contains(*other))
}

fn known(name: &str) -> Result<Field, UnknownName> {
    Field::by_name(name).ok_or_else(|| UnknownName(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{Profile, may};
    use braid_packet::Field;

    #[test]
    fn declaration_allows_what_it_names_by_any_name() -> Result<(), super::UnknownName> {
        let profile = Profile::declared("inet.src tcp.flags", "l4.dport", may::DROP)?;
        assert!(profile.may_read(Field::IpSrc) && profile.may_read(Field::TcpFlags));
        assert!(profile.may_read(Field::PktLen));
        assert!(!profile.may_read(Field::IpDst));
        assert!(profile.may_write(Field::UdpDport) && !profile.may_write(Field::IpSrc));
        assert!(profile.drops && !profile.adds && !profile.reads_payload);
        Ok(())
    }

    #[test]
    fn unknown_name_is_told() {
        let wrong = Profile::declared("ip.source", "", 0);
        assert_eq!(
            wrong.map_err(|why| why.to_string()),
            Err("its profile names `ip.source`, which is no field".into())
        );
    }
}
