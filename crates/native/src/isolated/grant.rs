//! The bytes of packets that an isolated function gets and gives back, by its action profile. What
//! it does not get, it cannot read. What Braid does not take back, it cannot change.

use super::call::{Call, Reply};
use super::link::{Link, Lost};
use braid_ir::model::TagDecl;
use braid_ir::native::Profile;
use braid_packet::{Access, FIELDS, Field, Packet};

/// What a function gets and gives back.
pub(super) struct Grant {
    /// Whether it gets the headers only.
    is_headers: bool,
    back: Back,
    /// The tags that it gets and gives back.
    tags: Vec<TagDecl>,
    /// Memory for the bytes that come back.
    bytes: Vec<u8>,
}

/// What Braid takes back.
enum Back {
    Nothing,
    /// The bits of these fields, and checksums.
    Fields(Vec<Field>),
    Everything,
}

impl Grant {
    /// What a profile allows, and these tags.
    pub(super) fn of(profile: &Profile, tags: &[TagDecl]) -> Self {
        let Profile { adds, removes, writes_bytes, writes_payload, .. } = *profile;
        let may_write = |field: &Field| profile.may_write(*field);
        let fields: Vec<Field> = FIELDS
            .iter()
            .filter(|info| info.access == Access::Rw)
            .map(|info| info.field)
            .filter(may_write)
            .collect();
        let is_fixed = |field: &Field| field.info().has_bits();
        let back = match adds || removes || writes_bytes || writes_payload {
            false if fields.is_empty() => Back::Nothing,
            false if fields.iter().all(is_fixed) => Back::Fields(fields),
            _ => Back::Everything,
        };
        let is_headers =
            matches!(back, Back::Nothing) && !(profile.reads_payload || profile.reads_bytes);
        Self { is_headers, back, tags: tags.to_vec(), bytes: Vec::new() }
    }

    /// Lets the process run a packet, and takes back what it may have changed.
    pub(super) fn give(
        &mut self,
        packet: &mut Packet,
        call: Call,
        link: &mut Link,
    ) -> Result<Reply, Lost> {
        let all = packet.data();
        let given = match self.is_headers {
            true => all.get(..packet.parse().payload_offset()).unwrap_or(all),
            false => all,
        };
        if !link.memory.put(given) {
            return Err(Lost::TooLong);
        }
        link.memory.set_tags(self.tags.iter().map(|tag| packet.tags.value(&tag.name)));
        let length = u32::try_from(given.len()).unwrap_or(u32::MAX);
        let reply = link.call(&Call { length, ..call })?;
        if !reply.fits {
            return Ok(reply);
        }
        match &self.back {
            Back::Nothing => {}
            Back::Fields(fields) => {
                link.memory.get(length as usize, &mut self.bytes);
                packet.take_fields(&self.bytes, fields);
            }
            Back::Everything => {
                link.memory.get(reply.length as usize, &mut self.bytes);
                packet.take_bytes(&self.bytes);
            }
        }
        for (tag, value) in self.tags.iter().zip(link.memory.tags()) {
            // A value that the function has left alone may be wider than its own type.
            if value != packet.tags.value(&tag.name) {
                packet.tags.set(&tag.name, value & tag.ty.max());
            }
        }
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::{Back, Grant};
    use braid_ir::native::Profile;
    use braid_packet::Field;

    fn grant(reads: &str, writes: &str, may: u32) -> Grant {
        Grant::of(&Profile::declared(reads, writes, may).unwrap(), &[])
    }

    #[test]
    fn function_that_only_reads_headers_gets_headers_and_gives_nothing_back() {
        let grant = grant("ip.src tcp.flags", "", 1);
        assert!(grant.is_headers && matches!(grant.back, Back::Nothing));
    }

    #[test]
    fn function_that_reads_payloads_gets_them() {
        for reads in ["payload", "*"] {
            let grant = grant(reads, "", 0);
            assert!(!grant.is_headers && matches!(grant.back, Back::Nothing), "{reads}");
        }
    }

    #[test]
    fn function_that_writes_fields_gives_their_bits_back() {
        let grant = grant("", "ip.src", 0);
        let Back::Fields(fields) = &grant.back else { panic!() };
        assert!(fields.contains(&Field::IpSrc) && !fields.contains(&Field::IpDst));
        assert!(!grant.is_headers);
    }

    #[test]
    fn function_that_changes_payloads_or_lengths_gives_everything_back() {
        for (writes, may) in [("payload", 0), ("*", 0), ("", 2), ("", 4)] {
            assert!(matches!(grant("", writes, may).back, Back::Everything), "{writes} {may}");
        }
    }
}
