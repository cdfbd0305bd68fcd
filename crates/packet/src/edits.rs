//! The difference between two versions of a packet as a list of edits. Each edit can be applied to
//! a third version, in which other functions have changed other parts.

use crate::bytes::{self, Area};
use crate::field::{Access, FIELDS, Field, Header};
use crate::layout::Layout;
use crate::packet::{Packet, checksums};
use crate::wire::vlan;
use std::sync::Arc;

/// The most bytes of one edit of the payload.
const PIECE: usize = 16;

/// A part of the difference between two versions of a packet.
#[derive(Clone, PartialEq, Debug)]
pub enum Edit {
    /// A tag has this value.
    Tag(Arc<str>, u128),
    /// There is one more VLAN tag, the outermost one.
    PushVlan,
    /// The outermost VLAN tag is gone.
    PopVlan,
    /// A field has this value.
    Field(Field, u128),
    /// Bytes of the payload: their offset, their number, and their value.
    Payload(u128, usize, u128),
    /// Bytes that no other edit covers.
    Rest(Rest),
    /// Other headers or another length: the whole packet.
    Whole(Box<Packet>),
}

/// Bytes that belong to no field that can be written, and changes of checksums that do not follow
/// from other edits. They apply to packets with as many captured bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rest {
    captured: usize,
    /// Offsets and new values.
    bytes: Vec<(usize, u8)>,
    /// Offsets of checksums, and what is added to each in ones' complement.
    sums: Vec<(usize, u16)>,
}

/// The edits that turn one version of a packet into another. Fields and payload bytes are compared
/// one by one, so what was written with the value that it had is no edit. A packet that has lost or
/// got VLAN tags and is otherwise as long is compared behind these tags.
#[must_use]
pub fn edits(before: &Packet, after: &Packet) -> Vec<Edit> {
    let mut found = Vec::new();
    let names =
        before.tags.keys().chain(after.tags.keys().filter(|n| !before.tags.contains_key(*n)));
    for name in names {
        let value = after.tags.value(name);
        if before.tags.value(name) != value {
            found.push(Edit::Tag(name.clone(), value));
        }
    }
    let mut now = before.clone();
    found.extend(tags_changed(&mut now, after));
    if (now.link, now.wire_len, now.data().len())
        != (after.link, after.wire_len, after.data().len())
    {
        found.push(Edit::Whole(Box::new(after.clone())));
        return found;
    }
    if now.data() == after.data() {
        return found;
    }
    let layout = now.parse();
    for info in FIELDS.iter().filter(|info| info.access == Access::Rw) {
        let value = after.get(&layout, info.field);
        let Some(value) = value.filter(|_| now.get(&layout, info.field) != value) else { continue };
        let edit = Edit::Field(info.field, value);
        edit.apply(&mut now);
        found.extend((now.get(&layout, info.field) == Some(value)).then_some(edit));
    }
    // Ports and types decide which bytes are payload.
    let layout = now.parse();
    found.extend(payload(&mut now, after, &layout));
    found.extend(rest(&now, after, &layout).map(Edit::Rest));
    found
}

/// Adds or removes VLAN tags until the packet has as many as another version, if that makes it as
/// long.
fn tags_changed(now: &mut Packet, after: &Packet) -> Vec<Edit> {
    let count = |packet: &Packet| {
        let layout = packet.parse();
        [Header::Vlan, Header::Vlan2].iter().filter(|tag| layout.has(**tag)).count()
    };
    let (old, new) = (count(now), count(after));
    let (more, less) = (new.saturating_sub(old), old.saturating_sub(new));
    if now.data().len() + more * vlan::LEN != after.data().len() + less * vlan::LEN {
        return Vec::new();
    }
    let pushes = (0..more).filter(|_| now.push_vlan(0)).map(|_| Edit::PushVlan).collect();
    let pops: Vec<Edit> = (0..less).filter(|_| now.pop_vlan()).map(|_| Edit::PopVlan).collect();
    [pushes, pops].concat()
}

/// Makes the payload that of another version.
fn payload(now: &mut Packet, after: &Packet, layout: &Layout) -> Vec<Edit> {
    let start = layout.payload_offset();
    let len = now.payload(layout).len();
    let mut found = Vec::new();
    for at in (0..len).step_by(PIECE) {
        let (from, to) = (start + at, start + len.min(at + PIECE));
        let bytes = after.data().get(from..to).unwrap_or_default();
        let value = bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte));
        let edit = Edit::Payload(at as u128, bytes.len(), value);
        if now.data().get(from..to) != Some(bytes) {
            edit.apply(now);
            // Bytes that must not be written as payload are part of the rest.
            found.extend((now.data().get(from..to) == Some(bytes)).then_some(edit));
        }
    }
    found
}

/// The remaining difference. The layout is the first packet's.
fn rest(now: &Packet, after: &Packet, layout: &Layout) -> Option<Rest> {
    let word = |packet: &Packet, at: usize| {
        let bytes = packet.data().get(at..at + 2)?;
        Some(u16::from_be_bytes(bytes.try_into().ok()?))
    };
    let mut sums = Vec::new();
    let mut covered = Vec::new();
    for at in checksums(layout).map(|place| place.offset) {
        // A checksum of 0 may mean that there is none.
        let (Some(old @ 1..), Some(new @ 1..)) = (word(now, at), word(after, at)) else { continue };
        covered.extend([at, at + 1]);
        if old != new {
            sums.push((at, added(new, !old)));
        }
    }
    let pairs = now.data().iter().zip(after.data()).enumerate();
    let bytes = pairs.filter(|(at, (old, new))| old != new && !covered.contains(at));
    let bytes: Vec<(usize, u8)> = bytes.map(|(at, (_, new))| (at, *new)).collect();
    let rest = Rest { captured: now.data().len(), bytes, sums };
    (!rest.bytes.is_empty() || !rest.sums.is_empty()).then_some(rest)
}

/// The sum of two numbers in ones' complement.
fn added(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum.wrapping_add(carry.into())
}

impl Rest {
    /// Applies the edit to a packet with as many captured bytes.
    pub fn apply(&self, packet: &mut Packet) {
        if packet.data().len() != self.captured {
            return;
        }
        for (at, value) in &self.bytes {
            if let Some(byte) = packet.data_mut().get_mut(*at) {
                *byte = *value;
            }
        }
        for (at, more) in &self.sums {
            if let Some([high, low]) = packet.data_mut().get_mut(*at..at + 2) {
                [*high, *low] = added(u16::from_be_bytes([*high, *low]), *more).to_be_bytes();
            }
        }
    }
}

impl Edit {
    /// Applies the edit. It does nothing where a packet lacks its place.
    fn apply(&self, packet: &mut Packet) {
        match self {
            Edit::Tag(name, value) => packet.tags.set(name, *value),
            Edit::PushVlan => {
                packet.push_vlan(0);
            }
            Edit::PopVlan => {
                packet.pop_vlan();
            }
            Edit::Field(field, value) => {
                let layout = packet.parse();
                packet.set(&layout, *field, *value);
            }
            Edit::Payload(at, len, value) => {
                let layout = packet.parse();
                let _ = bytes::store(packet, &layout, (Area::Payload, *at), *len, *value);
            }
            Edit::Rest(rest) => rest.apply(packet),
            Edit::Whole(whole) => packet.become_like(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::verify;
    use crate::{Link, Shape, build_fresh};
    use proptest::prelude::*;

    fn packet(shape: Shape) -> Packet {
        let fields = [(Field::L4Sport, 7), (Field::L4Dport, 80)];
        build_fresh(Link::Ethernet, 0, shape, &fields, b"twenty bytes as load").unwrap()
    }

    fn replay(before: &Packet, edits: &[Edit]) -> Packet {
        let mut now = before.clone();
        edits.iter().for_each(|edit| edit.apply(&mut now));
        now
    }

    #[test]
    fn fields_and_payload_are_edits_and_checksums_follow() {
        let before = packet(Shape::Tcp4);
        let mut after = before.clone();
        let layout = after.parse();
        after.set(&layout, Field::IpTtl, 3);
        after.set(&layout, Field::TcpSport, 9);
        bytes::store(&mut after, &layout, (Area::Payload, 17), 1, 0x41).unwrap();
        let found = edits(&before, &after);
        let ends = u128::from_be_bytes(*b"\0\0\0\0\0\0\0\0\0\0\0\0lAad");
        let expected = [
            Edit::Field(Field::IpTtl, 3),
            Edit::Field(Field::TcpSport, 9),
            Edit::Payload(16, 4, ends),
        ];
        assert_eq!(found, expected);
        assert_eq!(replay(&before, &found), after);
    }

    #[test]
    fn nothing_written_is_no_edit() {
        let before = packet(Shape::Udp6);
        assert_eq!(edits(&before, &before), []);
    }

    #[test]
    fn vlan_tags_are_pushed_and_popped() {
        let before = packet(Shape::Udp4);
        let mut after = before.clone();
        after.push_vlan(7);
        assert_eq!(edits(&before, &after), [Edit::PushVlan, Edit::Field(Field::VlanId, 7)]);
        assert_eq!(edits(&after, &before), [Edit::PopVlan]);
        let mut tagged = after.clone();
        tagged.push_vlan(9);
        assert_eq!(replay(&after, &edits(&after, &tagged)), tagged);
    }

    #[test]
    fn other_lengths_are_the_whole_packet() {
        let before = packet(Shape::Tcp4);
        let mut after = before.clone();
        let layout = after.parse();
        assert!(crate::options::push(&mut after, &layout, Header::TcpMss, &[1400]));
        assert_eq!(edits(&before, &after), [Edit::Whole(Box::new(after.clone()))]);
        assert_eq!(replay(&before, &edits(&before, &after)), after);
    }

    #[test]
    fn tags_are_edits_also_when_they_end() {
        let mut before = packet(Shape::Tcp4);
        let mut after = before.clone();
        before.tags.set("old", 1);
        after.tags.set("new", 2);
        let found = edits(&before, &after);
        assert_eq!(found, [Edit::Tag("old".into(), 0), Edit::Tag("new".into(), 2)]);
        let now = replay(&before, &found);
        assert_eq!((now.tags.value("old"), now.tags.value("new")), (0, 2));
    }

    #[test]
    fn bytes_beside_fields_keep_what_others_wrote_and_the_checksum_right() {
        // The protocol of the IP header can only be read, and native code changed it and the
        // checksum. Another function wrote the TTL.
        let before = packet(Shape::Tcp4);
        let mut after = before.clone();
        let ip = after.parse().ip();
        after.data_mut()[ip + 9] = 253;
        crate::checksum::fill(&mut after);
        let mut other = before.clone();
        let layout = other.parse();
        other.set(&layout, Field::IpTtl, 3);
        let now = replay(&other, &edits(&before, &after));
        assert_eq!((now.data()[ip + 8], now.data()[ip + 9]), (3, 253));
        assert_eq!(verify(&now, &now.parse()).ip, Some(true));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(500)))]

        #[test]
        fn edits_lead_to_the_other_version(
            shape in 0..4_usize,
            changes in proptest::collection::vec((0..80_usize, any::<u8>()), 0..6),
            tags in (0..3_usize, 0..3_usize),
        ) {
            let shapes = [Shape::Tcp4, Shape::Tcp6, Shape::Udp4, Shape::Udp6];
            let [mut before, mut after] = [packet(shapes[shape]), packet(shapes[shape])];
            for (at, value) in changes {
                if let Some(byte) = after.data_mut().get_mut(at) {
                    *byte = value;
                }
            }
            prop_assert!((0..tags.0).all(|_| before.push_vlan(5)));
            prop_assert!((0..tags.1).all(|_| after.push_vlan(6)));
            let found = edits(&before, &after);
            let now = replay(&before, &found);
            prop_assert_eq!(now.data(), after.data());
        }
    }
}
