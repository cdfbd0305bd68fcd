//! Sets of header fields, as bits.

use braid_packet::{FIELDS, Field};
use serde::{Deserialize, Serialize};

/// The number of words. They have at least one bit for each field of the field table.
const WORDS: usize = 3;
const _: () = assert!(FIELDS.len() <= WORDS * 64, "a field for each bit");

/// A set of fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FieldSet([u64; WORDS]);

impl FieldSet {
    /// All fields.
    pub const ALL: Self = Self([u64::MAX; WORDS]);

    /// Adds a field.
    #[expect(clippy::indexing_slicing, reason = "the words have a bit for each field")]
    pub fn insert(&mut self, field: Field) {
        let at = field as usize;
        self.0[at / 64] |= 1 << (at % 64);
    }

    /// Adds fields.
    pub fn extend(&mut self, fields: impl IntoIterator<Item = Field>) {
        fields.into_iter().for_each(|field| self.insert(field));
    }

    /// Whether the set contains a field.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "the words have a bit for each field")]
    pub fn contains(&self, field: Field) -> bool {
        let at = field as usize;
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    /// The fields of the set, in the order of the field table.
    pub fn iter(&self) -> impl Iterator<Item = Field> + '_ {
        FIELDS.iter().map(|info| info.field).filter(|field| self.contains(*field))
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// All names of one place of a packet. A function that may read `inet.src` may also read `ip.src`,
/// and so on.
#[must_use]
pub fn names_of(field: Field) -> &'static [Field] {
    use Field::{
        InetDport, InetDst, InetProto, InetSport, InetSrc, InetTtl, Ip6Dst, Ip6Proto, Ip6Src,
        Ip6Ttl, IpDscp, IpDst, IpEcn, IpProto, IpSrc, IpTos, IpTtl, L4Dport, L4Sport, TcpDport,
        TcpSport, UdpDport, UdpSport,
    };
    const GROUPS: &[&[Field]] = &[
        &[IpSrc, Ip6Src, InetSrc],
        &[IpDst, Ip6Dst, InetDst],
        &[IpProto, Ip6Proto, InetProto],
        &[IpTtl, Ip6Ttl, InetTtl],
        &[IpTos, IpDscp, IpEcn],
        &[L4Sport, TcpSport, UdpSport, InetSport],
        &[L4Dport, TcpDport, UdpDport, InetDport],
    ];
    GROUPS.iter().find(|group| group.contains(&field)).copied().unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::FieldSet;
    use braid_packet::Field;

    #[test]
    fn set_has_what_was_put_in() {
        let mut set = FieldSet::default();
        assert!(set.is_empty());
        set.extend([Field::QuotedInetDport, Field::IpSrc]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [Field::IpSrc, Field::QuotedInetDport]);
        assert!(set.contains(Field::IpSrc) && !set.contains(Field::IpDst));
    }
}
