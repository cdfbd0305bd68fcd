//! A packet: its captured bytes and its attributes.

use crate::field::{Field, Header};
use crate::frame::{Frame, Pool};
use crate::layout::Layout;
pub use crate::link::Link;
use crate::place::{Place, bytes, place};
use crate::retag::Retag;
use crate::tags::Tags;
use crate::wire::{ether_type, ethernet, ipv4, vlan};

/// The most bytes of an arriving packet, captured and on the wire. Tags that functions add may
/// exceed this limit. Inserted bytes may not.
pub const MOST: u32 = u32::MAX / 2;

/// A packet: a descriptor of one cache line that owns the frame with the bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(align(64))]
pub struct Packet {
    /// The header that the bytes start with.
    pub link: Link,
    /// Its time in nanoseconds since the epoch.
    pub time_ns: u64,
    /// Number of bytes on the wire, with the link header but without FCS. It is never less than the
    /// number of captured bytes.
    pub wire_len: u32,
    /// Number of the interface where the packet entered.
    pub ingress: u16,
    /// Whether the packet goes backward (right to left) through the current function.
    pub backward: bool,
    /// Whether the packet comes back from a queue in which that function held it.
    pub held: bool,
    /// A number by which a driver recognises the packet and its copies when they leave. Functions
    /// do not see it. 0 means none.
    pub mark: u32,
    /// Tags that functions have set.
    pub tags: Tags,
    frame: Frame,
}

const _: () = assert!(size_of::<Packet>() == 64, "a packet's descriptor is one cache line");

impl Packet {
    /// A packet without any bytes.
    #[must_use]
    #[inline]
    pub const fn empty(link: Link) -> Self {
        Packet {
            link,
            time_ns: 0,
            wire_len: 0,
            ingress: 0,
            backward: false,
            held: false,
            mark: 0,
            tags: Tags::new(),
            frame: Frame::empty(),
        }
    }

    /// A packet captured as a whole. Bytes past [`MOST`] are cut off.
    #[must_use]
    pub fn new(link: Link, time_ns: u64, data: impl AsRef<[u8]>) -> Self {
        Packet::snapped(link, time_ns, data, 0)
    }

    /// A packet of `wire_len` bytes. `data` holds the captured ones. A `wire_len` less than the
    /// length of `data` is raised to that length. No packet is longer than [`MOST`].
    #[must_use]
    pub fn snapped(link: Link, time_ns: u64, data: impl AsRef<[u8]>, wire_len: u32) -> Self {
        Packet::in_frame(link, time_ns, Frame::of(data.as_ref()), wire_len)
    }

    /// A packet of `wire_len` bytes. The frame holds the captured ones. The same limits
    /// hold as for [`Self::snapped`].
    #[must_use]
    #[inline]
    pub fn in_frame(link: Link, time_ns: u64, mut frame: Frame, wire_len: u32) -> Self {
        let captured = u32::try_from(frame.len()).unwrap_or(u32::MAX).min(MOST);
        frame.truncate(captured as usize);
        Packet { time_ns, wire_len: wire_len.clamp(captured, MOST), frame, ..Packet::empty(link) }
    }

    /// Makes this empty packet a packet as [`Self::snapped`] does, in a frame of the pool if the
    /// bytes fit and a frame is free.
    #[inline(always)]
    pub(crate) fn hold(
        &mut self,
        link: Link,
        time_ns: u64,
        bytes: &[u8],
        wire_len: u32,
        pool: &mut Pool,
    ) {
        let captured = u32::try_from(bytes.len()).unwrap_or(u32::MAX).min(MOST);
        let bytes = bytes.get(..captured as usize).unwrap_or(bytes);
        self.link = link;
        self.time_ns = time_ns;
        self.wire_len = wire_len.clamp(captured, MOST);
        self.ingress = 0;
        if !self.frame.come_from(pool) || !self.frame.push(bytes) {
            self.frame = Frame::of(bytes);
        }
    }

    /// Makes this empty packet a packet that is an Ethernet frame with all bytes from the wire.
    /// Bytes past [`MOST`] are cut off.
    #[inline(always)]
    pub(crate) fn be_frame(&mut self, ingress: u16, time_ns: u64, frame: &mut Frame) {
        frame.truncate(MOST as usize);
        self.link = Link::Ethernet;
        self.time_ns = time_ns;
        self.wire_len = u32::try_from(frame.len()).unwrap_or(MOST);
        self.ingress = ingress;
        self.frame.take_over(frame);
    }

    /// Appends the frame to a list. The rest of the packet has no meaning afterwards.
    #[inline(always)]
    pub fn give_frame(&mut self, frames: &mut Vec<Frame>) {
        // The list gets its memory before the frame moves, so the frame moves only once.
        frames.extend(std::iter::once_with(|| self.frame.take()));
    }

    /// Takes the packet out of its place and leaves an empty one there.
    pub(crate) fn take(&mut self) -> Packet {
        std::mem::replace(self, Packet::empty(self.link))
    }

    /// Leaves a packet without bytes, as a place for another packet. A frame of `pool` returns to
    /// it. [`Self::hold`] and [`Self::be_frame`] make the other packet; they write the fields that
    /// stay here.
    #[inline(always)]
    pub(crate) fn recycle(&mut self, pool: &mut Pool) {
        pool.put_from(&mut self.frame);
        (self.backward, self.held, self.mark) = (false, false, 0);
        self.tags.clear();
    }

    /// The captured bytes.
    #[must_use]
    #[inline(always)]
    pub fn data(&self) -> &[u8] {
        self.frame.bytes()
    }

    /// The captured bytes, to be changed in place. Checksums are not updated.
    #[inline(always)]
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.frame.bytes_mut()
    }

    /// Returns the frame with the captured bytes and ends the packet.
    #[must_use]
    #[inline]
    pub fn into_frame(self) -> Frame {
        self.frame
    }

    /// Finds the packet's headers.
    #[inline]
    #[must_use]
    pub fn parse(&self) -> Layout {
        Layout::parse(self.link, self.data(), self.wire_len)
    }

    /// Finds the packet's headers and writes them to `layout`, as [`Layout::parse_here`] does.
    #[inline]
    pub fn parse_to(&self, layout: &mut Layout) {
        layout.parse_here(self.link, self.data(), self.wire_len);
    }

    /// The captured part of the payload (see [`Layout::payload_offset`]), link padding excluded.
    #[must_use]
    pub fn payload(&self, layout: &Layout) -> &[u8] {
        let end = layout.payload_end().min(self.data().len());
        self.data().get(layout.payload_offset()..end).unwrap_or(&[])
    }

    /// Takes the bits of fields, and all checksums, from a version of this packet's first bytes.
    /// Fields that have no fixed bits ([`crate::FieldInfo::has_bits`]), that the packet lacks or
    /// that lie behind those bytes stay.
    pub fn take_fields(&mut self, from: &[u8], fields: &[Field]) {
        let layout = self.parse();
        let fields = fields.iter().filter_map(|field| place(&layout, *field));
        for place in fields.chain(checksums(&layout)) {
            let range = place.offset..place.offset + place.len;
            let own = self.frame.bytes_mut().get_mut(range.clone());
            let (Some(old), Some(new)) = (own, from.get(range)) else { continue };
            let mask = (place.mask() << place.shift).to_be_bytes();
            let mask = mask.get(mask.len() - old.len().min(mask.len())..).unwrap_or_default();
            for ((old, new), mask) in old.iter_mut().zip(new).zip(mask) {
                *old = *old & !mask | *new & mask;
            }
        }
    }

    /// Exchanges the captured bytes. If there are more or fewer of them, the packet was as much
    /// longer or shorter on the wire. Earlier layouts become invalid. The limits of
    /// [`Self::snapped`] hold.
    pub fn take_bytes(&mut self, bytes: &[u8]) {
        let before = u32::try_from(self.data().len()).unwrap_or(MOST);
        if self.data().len() == bytes.len() {
            self.data_mut().copy_from_slice(bytes);
            return;
        }
        self.frame = Frame::of(bytes.get(..MOST as usize).unwrap_or(bytes));
        let captured = u32::try_from(self.frame.len()).unwrap_or(MOST);
        let wire_len = self.wire_len.saturating_add(captured).saturating_sub(before);
        self.wire_len = wire_len.clamp(captured, MOST);
    }

    /// Takes the bytes of another packet, with their link type and length on the wire. Earlier
    /// layouts become invalid.
    pub fn become_like(&mut self, other: &Packet) {
        self.take_bytes(other.data());
        (self.link, self.wire_len) = (other.link, other.wire_len);
    }

    /// Adds an outermost 802.1Q tag with this identifier (its low 12 bits), PCP 0 and DEI 0.
    /// Earlier layouts become invalid. Returns false, and changes nothing, when there is no
    /// Ethernet header.
    pub fn push_vlan(&mut self, id: u16) -> bool {
        if self.link != Link::Ethernet || self.data().len() < ethernet::LEN {
            return false;
        }
        let [tpid_high, tpid_low] = ether_type::VLAN.to_be_bytes();
        let [high, low] = (id & 0xfff).to_be_bytes();
        self.put(ethernet::TYPE, &[tpid_high, tpid_low, high, low])
    }

    /// Removes the outermost VLAN tag. Earlier layouts become invalid. Returns false, and changes
    /// nothing, when there is no tag.
    pub fn pop_vlan(&mut self) -> bool {
        if !self.parse().has(crate::field::Header::Vlan) {
            return false;
        }
        self.remove(ethernet::TYPE, vlan::LEN)
    }

    /// Replaces the outermost VLAN tags by tags with these bytes. The packet must have the tags
    /// that it loses. Earlier layouts become invalid.
    pub fn retag(&mut self, tags: &Retag) {
        if self.remove(ethernet::TYPE, tags.lost * vlan::LEN) {
            self.put(ethernet::TYPE, &tags.got);
        }
    }

    /// Inserts bytes at an offset of the captured bytes, as when a header is added. Lengths and
    /// checksums of other headers are not updated, and earlier layouts become invalid. Returns
    /// false, and changes nothing, when the offset is past the captured bytes or the packet would
    /// be too long.
    pub fn insert(&mut self, at: usize, bytes: &[u8]) -> bool {
        let Ok(more) = u32::try_from(bytes.len()) else { return false };
        self.wire_len.checked_add(more).is_some_and(|len| len <= MOST) && self.put(at, bytes)
    }

    /// Inserts bytes at an offset of the captured bytes, even if the packet gets longer than
    /// [`MOST`]. Returns false, and changes nothing, when the offset is past the captured bytes.
    fn put(&mut self, at: usize, bytes: &[u8]) -> bool {
        if !self.frame.open(at, bytes.len()) {
            return false;
        }
        if let Some(gap) = self.data_mut().get_mut(at..at + bytes.len()) {
            gap.copy_from_slice(bytes);
        }
        let more = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.wire_len = self.wire_len.saturating_add(more);
        true
    }

    /// Removes the bytes from an offset on, whether they were captured or not. Lengths and
    /// checksums of headers are not updated.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.frame.truncate(len);
        self.wire_len = self.wire_len.min(u32::try_from(len).unwrap_or(u32::MAX));
    }

    /// Removes captured bytes, as when a header is removed. As for [`Self::insert`], lengths,
    /// checksums and earlier layouts are not updated. Returns false, and changes nothing, when not
    /// all of the bytes were captured.
    pub fn remove(&mut self, at: usize, len: usize) -> bool {
        let is_gone = self.frame.close(at, len);
        if is_gone {
            let less = u32::try_from(len).unwrap_or(u32::MAX);
            self.wire_len = self.wire_len.saturating_sub(less);
        }
        is_gone
    }
}

/// The places of a packet's checksums, also of ones behind headers that the capture has cut.
pub(crate) fn checksums(layout: &Layout) -> impl Iterator<Item = Place> {
    let own = layout.has(Header::Ip4).then(|| layout.ip() + ipv4::CHECKSUM);
    let quoted = layout.quoted();
    let inner =
        quoted.filter(|quoted| quoted.version == 4).map(|quoted| quoted.ip + ipv4::CHECKSUM);
    let transport = [layout.sum(), quoted.and_then(|quoted| quoted.sum)].map(|sum| Some(sum?.at));
    let all = [own, inner, layout.gre_sum()].into_iter().chain(transport);
    all.flatten().map(|at| bytes(at, 2))
}
