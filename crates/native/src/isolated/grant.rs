//! The bytes of packets that an isolated function gets and gives back, by its action profile. What
//! it does not get, it cannot read. What Braid does not take back, it cannot change.

use super::call::{Call, Reply};
use crate::sys::{ALONE, Shared};
use braid_ir::model::TagDecl;
use braid_ir::native::Profile;
use braid_packet::{Access, FIELDS, Field, Layout, Packet};

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

    /// Puts what the process gets of a packet into a place for its call, and completes the call.
    /// `None` if it does not fit. The layout, if there is one, is the packet's.
    pub(super) fn put(
        &self,
        (packet, layout): (&Packet, Option<&Layout>),
        call: Call,
        memory: &Shared,
        place: usize,
    ) -> Option<Call> {
        let all = packet.data();
        let headers = || match layout {
            Some(layout) => layout.payload_offset(),
            None => packet.parse().payload_offset(),
        };
        let given = match self.is_headers {
            true => all.get(..headers()).unwrap_or(all),
            false => all,
        };
        if !memory.put(place, given) {
            return None;
        }
        memory.set_tags(place, self.tags.iter().map(|tag| packet.tags.value(&tag.name)));
        let length = u32::try_from(given.len()).unwrap_or(u32::MAX);
        Some(Call { length, gives_back: !matches!(self.back, Back::Nothing), ..call })
    }

    /// Takes back what the process may have changed, from the place of the call.
    pub(super) fn take(
        &mut self,
        packet: &mut Packet,
        reply: &Reply,
        memory: &Shared,
        place: usize,
    ) {
        let from = if reply.is_long { ALONE } else { place };
        let (length, own) = (reply.length as usize, packet.data().len());
        match &self.back {
            Back::Nothing => {}
            Back::Fields(fields) => {
                memory.fetch(from, own, &mut self.bytes);
                packet.take_fields(&self.bytes, fields);
            }
            Back::Everything if length == own => drop(memory.get(from, packet.data_mut())),
            Back::Everything => {
                memory.fetch(from, length, &mut self.bytes);
                packet.take_bytes(&self.bytes);
            }
        }
        for (tag, value) in self.tags.iter().zip(memory.tags(place)) {
            // A value that the function has left alone may be wider than its own type.
            if value != packet.tags.value(&tag.name) {
                packet.tags.set(&tag.name, value & tag.ty.max());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Back, Grant};
    use crate::isolated::call::Reply;
    use crate::sys::{ALONE, Shared};
    use braid_ir::model::{TagDecl, Ty};
    use braid_ir::native::Profile;
    use braid_packet::{Field, Link, Packet};

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

    #[test]
    fn whatever_the_process_answers_leaves_a_packet() {
        let (memory, _) = Shared::new().unwrap();
        for place in [3, ALONE] {
            memory.put(place, &[0xff; 2048]);
        }
        memory.set_tags(3, std::iter::repeat(u128::MAX));
        let tags = [TagDecl { name: "colour".into(), ty: Ty::uint(8) }];
        for writes in ["", "ip.src udp.sport", "*"] {
            let mut grant = Grant::of(&Profile::declared("", writes, 0).unwrap(), &tags);
            for (length, is_long) in [0, 1, 60, 2049, 300_000, u32::MAX]
                .into_iter()
                .flat_map(|n| [(n, false), (n, true)])
            {
                let mut packet = Packet::new(Link::Ethernet, 0, [0; 60]);
                let reply = Reply { length, is_long, fits: true, ..Reply::default() };
                grant.take(&mut packet, &reply, &memory, 3);
                assert!(packet.data().len() <= 256 * 1024, "{writes} {length}");
                assert_eq!(packet.tags.value("colour"), 0xff);
            }
        }
    }
}
