//! A packet's headers in a specialisation: assigned bits, added and removed VLAN tags, the places
//! of fields, and the rewrite of the record.

use crate::bindings::HeaderChange;
use crate::guard::{Guards, Number};
use crate::key::{TAG_LEN, TAGS, in_sum, is_key, is_link};
use crate::mutants::{Mutants, RecordMutant};
use crate::value_dependency::{Origin, ValueDependency};
use crate::wrapped::Wrapped;
use braid_ir::model::Word;
use braid_ir::residual::HeaderMask;
use braid_packet::field::Cover;
use braid_packet::rewrite::{
    Add, Follows, NARROW_AT, NARROW_BYTES, Outline, Retag, Rewrite, WIDE, WIDE_BYTES, sums,
    wide_window, words,
};
use braid_packet::{Base, Bits, Field, Header, Layout, Packet};
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

/// The largest number of VLAN tags of a packet at any time. With one more tag, the parser
/// recognises no header after the tags.
const MOST: usize = 8;

/// Where a field is.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// In the packet's first bytes. The offset is the one on arrival.
    Came(Bits),
    /// In the bytes of VLAN tags that functions have added.
    Got(Bits),
}

/// A number in the packet to which an amount was added.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Added {
    field: Field,
    follows: Follows,
    /// The place of the number in the packet's first bytes, if it has one.
    place: Option<Bits>,
    /// The place of the amount in the new bytes of the rewrite.
    amount_at: Bits,
    amount: u32,
}

/// The headers of a packet at some point of its path.
pub(crate) struct Headers<'a> {
    /// The packet on arrival, and the layout of its headers then.
    pub(crate) origin: &'a Packet,
    pub(crate) layout: &'a Layout,
    pub(crate) outline: Outline,
    /// The packet when it entered the current program, except for checksums.
    pub(crate) packet: Cow<'a, Packet>,
    /// The headers that packets of the program have.
    pub(crate) shape: HeaderMask,
    /// Whether the program has added or removed tags since the packet was last parsed.
    pub(crate) stale: bool,
    /// Whether outer headers were added. Nothing is known of the packet any more, apart from what
    /// `wrapped` tells.
    pub(crate) sealed: bool,
    /// The packet in outer headers, if it has entered another function with them.
    pub(crate) wrapped: Option<Box<Wrapped>>,
    /// Behind the start of a tunnel: the bits of the key, if programs may read others.
    pub(crate) covered: Option<[u8; WIDE_BYTES]>,
    /// The headers that programs have asked for.
    pub(crate) asked: Cell<u128>,
    /// Whether a program has read bits that the key lacks, although it could have them.
    pub(crate) lacks_key: Cell<bool>,
    /// The changes of TTL and checksums since the last [`HeaderChange`].
    pub(crate) rewrite: Rewrite,
    /// VLAN tags that functions have removed and added.
    pub(crate) vlans: Retag,
    /// Whether a change of addresses updates transport checksums, too. False only with a mutant.
    follows: bool,
    /// The packet's first bytes as they are now, except for checksums.
    pub(crate) head: [u8; WIDE_BYTES],
    /// The first bytes at the last [`HeaderChange`], and the mask of the bits that were assigned
    /// since then.
    base: [u8; WIDE_BYTES],
    pub(crate) mask: [u8; WIDE_BYTES],
    /// The mask of the bits that the current program has assigned, and whether it has assigned any
    /// field after the Ethernet header and the VLAN tags.
    pub(crate) fresh: [u8; WIDE_BYTES],
    pub(crate) writes: bool,
    /// The mask of the bits that were assigned before the current program, and the checksums that
    /// were updated before it.
    pub(crate) written: [u8; WIDE_BYTES],
    summed: [bool; 2],
    /// The numbers to which amounts were added since the last [`HeaderChange`], and the mask of all
    /// numbers to which amounts were added.
    pub(crate) added: Vec<Added>,
    /// What the new bytes of the rewrite store for outer headers.
    stored: Vec<(Bits, Word)>,
    sums_of: [u8; WIDE_BYTES],
    mutants: Mutants,
    /// The decrease of the TTL before the current program, and before the last [`HeaderChange`].
    pub(crate) down: u8,
    down_before: u8,
}

impl<'a> Headers<'a> {
    /// The headers of a packet to which nothing has been assigned yet.
    pub(crate) fn of(
        packet: &'a Packet,
        layout: &'a Layout,
        outline: Outline,
        mutants: Mutants,
    ) -> Self {
        let (head, none) = (wide_window(packet.data()), [0; WIDE_BYTES]);
        Self {
            origin: packet,
            layout,
            outline,
            packet: Cow::Borrowed(packet),
            shape: HeaderMask { care: 0, present: 0 },
            stale: false,
            sealed: false,
            wrapped: None,
            covered: None,
            asked: Cell::new(0),
            lacks_key: Cell::new(false),
            rewrite: Rewrite::NONE,
            vlans: Retag::default(),
            follows: !mutants.has(RecordMutant::PseudoHeaderForgotten),
            head,
            base: head,
            mask: none,
            fresh: none,
            writes: false,
            written: none,
            summed: [false; 2],
            added: Vec::new(),
            stored: Vec::new(),
            sums_of: none,
            mutants,
            down: 0,
            down_before: 0,
        }
    }

    /// Whether a field is a checksum that was updated before the current program.
    pub(crate) fn is_summed(&self, field: Field) -> bool {
        match field {
            Field::IpChecksum => self.summed[0],
            Field::L4Checksum => self.summed[1],
            _ => false,
        }
    }

    /// Prepares an assignment to a field. Returns the field's place, if it is known.
    pub(crate) fn writable(&mut self, field: Field) -> Option<Place> {
        self.writes |= !is_link(field);
        self.place(field).filter(|_| !self.stale)
    }

    /// Whether the path has assigned some of these bits.
    pub(crate) fn has_assigned(&self, bits: Bits) -> bool {
        let is_ttl = bits.at == self.outline.ttl() && self.down > 0;
        is_ttl || bits.are_in(&self.fresh).0 || bits.are_in(&self.written).0
    }

    /// Assigns bits of an added VLAN tag.
    pub(crate) fn set_tag(&mut self, bits: Bits, value: Word) {
        bits.set(&mut self.vlans.got, value);
    }

    /// Assigns the TTL with which the packet arrived, plus `add`.
    pub(crate) fn count_down(
        &mut self,
        field: Field,
        bits: Bits,
        value: Word,
        add: i64,
    ) -> Option<()> {
        self.sums_follow(field)?;
        // The difference counts from the TTL on arrival, even if the TTL has been assigned before.
        let down = -add - i64::from(self.down_before);
        self.rewrite.ttl = u8::try_from(down).ok()?;
        bits.set(&mut self.head, value);
        bits.set(&mut self.mask, 0);
        Some(())
    }

    /// Whether a number in the packet is the field with all of its bits.
    pub(crate) fn is_at(&self, field: Field, origin: Origin) -> bool {
        match (origin, self.place(field)) {
            (Origin::Field(one), None) => one == field,
            (Origin::First(number), Some(Place::Came(bits))) => {
                Number::of_bits(bits) == Some(number)
            }
            _ => false,
        }
    }

    /// Adds an amount to a field, whose value changes from `was` to `value`. Returns the place of
    /// the amount in the new bytes of the rewrite.
    pub(crate) fn add(&mut self, field: Field, (was, value): (u32, u32)) -> Option<Bits> {
        if self.stale || self.added.iter().any(|one| one.field == field) {
            return None;
        }
        let bytes = field.whole_bytes()?;
        let len = usize::from(bytes);
        let place = match self.place(field) {
            Some(Place::Came(bits)) => Some(bits),
            Some(Place::Got(_)) => return None,
            None => None,
        };
        let amount_at = match place {
            Some(bits) => Some(bits).filter(|bits| self.is_free(bits.at, len))?,
            None => self.free(0..WIDE_BYTES, len)?,
        };
        let follows = self.covering(field)?;
        let amount = value.wrapping_sub(was);
        let amount = if len == 2 { amount & 0xffff } else { amount };
        self.writes = true;
        if let Some(bits) = place {
            bits.set(&mut self.head, value.into());
            bits.set(&mut self.fresh, Word::MAX);
            bits.set(&mut self.sums_of, Word::MAX);
        }
        self.added.push(Added { field, follows, place, amount_at, amount });
        Some(amount_at)
    }

    /// Whether these of the rewrite's new bytes store no amount and nothing of outer headers.
    fn is_free(&self, at: usize, len: usize) -> bool {
        let amounts = self.added.iter().map(|one| one.amount_at);
        let mut taken = amounts.chain(self.stored.iter().map(|(bits, _)| *bits));
        taken.all(|bits| bits.at >= at + len || bits.at + bits.len <= at)
    }

    /// The last `len` of these new bytes of the rewrite that store and assign nothing.
    fn free(&self, among: Range<usize>, len: usize) -> Option<Bits> {
        let last = among.end.checked_sub(len)?;
        let is_assigned = |at: usize| self.mask.iter().skip(at).take(len).any(|mask| *mask != 0);
        let mut places = (among.start..=last).rev();
        let at = places.find(|at| self.is_free(*at, len) && !is_assigned(*at))?;
        Some(Bits { at, len, shift: 0, width: 8 * u32::try_from(len).ok()? })
    }

    /// Stores a number of this many bytes in the new bytes of the rewrite, for outer headers: in
    /// bytes that narrow records have, if there is room. Returns its place, or `None` if there is
    /// no room at all.
    pub(crate) fn store(&mut self, len: usize, value: Word) -> Option<Bits> {
        let narrow = self.free(NARROW_AT..NARROW_BYTES, len);
        let bits = narrow.or_else(|| self.free(0..WIDE_BYTES, len))?;
        self.stored.push((bits, value));
        Some(bits)
    }

    /// Forgets the last numbers that were stored for outer headers.
    pub(crate) fn forget_stored(&mut self, numbers: usize) {
        self.stored.truncate(self.stored.len().saturating_sub(numbers));
    }

    /// The checksum that covers a field to which an amount is added. `None` if no record can update
    /// it. Marks the checksum as updated.
    fn covering(&mut self, field: Field) -> Option<Follows> {
        let info = field.info();
        let follows = match info.header.info().sum {
            Cover::Gre | Cover::Quoted => return None,
            Cover::Transport => Follows::Transport,
            Cover::None => Follows::Nothing,
            Cover::Ip4 | Cover::Inet | Cover::Ip6 if info.address.is_some() => return None,
            Cover::Ip4 | Cover::Inet | Cover::Ip6 if self.outline.is_ip6 => Follows::Nothing,
            Cover::Ip4 | Cover::Inet | Cover::Ip6 => Follows::Ip,
        };
        self.rewrite.sums[0] |= follows == Follows::Ip;
        self.rewrite.sums[1] |= follows == Follows::Transport;
        Some(follows)
    }

    /// Brings the packet up to date with the assignments so far. `None` if the packet then has
    /// another layout.
    #[expect(
        clippy::indexing_slicing,
        reason = "`len` is at most the length of the packet's data and of `head`"
    )]
    pub(crate) fn renew(&mut self) -> Option<()> {
        if self.added.iter().any(|one| one.place.is_none()) {
            // Later programs would find the old value.
            return None;
        }
        let rewrite = self.rewrite;
        (self.writes, self.fresh) = (false, [0; WIDE_BYTES]);
        self.parse();
        self.down = self.down_before + rewrite.ttl;
        self.summed.iter_mut().zip(rewrite.sums).for_each(|(summed, sum)| *summed |= sum);
        self.written.iter_mut().zip(self.mask).for_each(|(written, mask)| *written |= mask);
        if self.head != wide_window(self.packet.data()) {
            let len = self.packet.data().len().min(WIDE_BYTES);
            self.packet.to_mut().data_mut()[..len].copy_from_slice(&self.head[..len]);
            let layout = self.packet.parse();
            let same = layout.presence() == self.layout.presence();
            return (same && Outline::of(&layout) == Some(self.outline)).then_some(());
        }
        Some(())
    }

    /// The change of the headers since the last call of this function. `None` if no record can
    /// express it.
    pub(crate) fn change(&mut self) -> Option<HeaderChange> {
        let mut rewrite = std::mem::replace(&mut self.rewrite, Rewrite::NONE);
        // Other packets of the flow may have the checksum, although the capture has cut it off this
        // packet.
        if rewrite.sums[1] && self.layout.lacks_sum() {
            return None;
        }
        let (mask, mut bytes) = (words::<WIDE>(&self.mask), words::<WIDE>(&self.head));
        bytes.iter_mut().zip(mask).for_each(|(word, mask)| *word &= mask);
        rewrite.keep = mask.map(|word| !word);
        let mut assigned = self.head;
        let mut stored = [0; WIDE_BYTES];
        for one in std::mem::take(&mut self.added) {
            if one.amount_at.are_in(&self.mask).0 {
                return None;
            }
            let is_twice = self.mutants.has(RecordMutant::AmountTwice);
            one.amount_at.set(&mut stored, Word::from(one.amount) << u32::from(is_twice));
            if let Some(bits) = one.place {
                bits.set(&mut assigned, bits.get(&self.base));
            }
            let forgets = self.mutants.has(RecordMutant::AmountUnsummed);
            let follows = if forgets { Follows::Nothing } else { one.follows };
            let from = u8::try_from(one.amount_at.at).ok()?;
            if !rewrite.adds.push(Add { field: one.field, from, follows }) {
                return None;
            }
        }
        for (bits, value) in std::mem::take(&mut self.stored) {
            bits.set(&mut stored, value);
        }
        let stored = words::<WIDE>(&stored);
        bytes.iter_mut().zip(stored).for_each(|(word, stored)| *word |= stored);
        let sums = sums(self.layout, self.outline, &self.base, &assigned);
        self.down_before += rewrite.ttl;
        (self.base, self.mask) = (self.head, [0; WIDE_BYTES]);
        Some(HeaderChange { rewrite, bytes, sums })
    }

    /// Assigns a fixed value to the bits of a field.
    pub(crate) fn assign(
        &mut self,
        guards: &mut Guards,
        field: Field,
        bits: Bits,
        value: Word,
    ) -> Option<()> {
        if bits.are_in(&self.sums_of).0 {
            return None;
        }
        self.sums_follow(field)?;
        let is_written = bits.are_in(&self.written).1;
        if in_sum(self.outline, field) && !is_written && is_key(field) && !self.is_covered(bits) {
            return None;
        }
        if in_sum(self.outline, field) && !is_key(field) && !is_written {
            let old = self.origin.get(self.layout, field)?;
            guards.fix(Number::of_bits(bits)?, u32::try_from(old).ok()?, bits.shift)?;
        }
        if bits.at == self.outline.ttl() {
            self.rewrite.ttl = 0;
        }
        bits.set(&mut self.head, value);
        bits.set(&mut self.mask, Word::MAX);
        bits.set(&mut self.fresh, Word::MAX);
        Some(())
    }

    /// Whether bits of the kind that keys have are in the keys of this record.
    fn is_covered(&self, bits: Bits) -> bool {
        let is_covered = self.covered.is_none_or(|covered| bits.are_in(&covered).1)
            || self.mutants.has(RecordMutant::KeyTooNarrow);
        self.lacks_key.set(self.lacks_key.get() || !is_covered);
        is_covered
    }

    /// Marks the checksums that cover a field as updated.
    fn sums_follow(&mut self, field: Field) -> Option<()> {
        let follows = self.follows;
        let sums = &mut self.rewrite.sums;
        let info = field.info();
        let header = info.header.info();
        match header.sum {
            Cover::None => {}
            Cover::Ip4 | Cover::Ip6 | Cover::Inet => {
                sums[0] = !self.outline.is_ip6;
                if info.address.is_some() {
                    let (has, lacks) = (self.layout.has_pseudo_sum(), self.layout.lacks_sum());
                    sums[1] |= follows && (has || lacks);
                }
            }
            // TCP options may lie at odd offsets.
            Cover::Transport if header.at.0 == Base::L4 => sums[1] = true,
            Cover::Transport | Cover::Gre | Cover::Quoted => return None,
        }
        Some(())
    }

    /// The packet's current number of VLAN tags. `None` if its outline does not give the number on
    /// arrival.
    fn tags(&self) -> Option<usize> {
        let has = |header| usize::from(self.layout.has(header));
        let came = has(Header::Vlan) + has(Header::Vlan2);
        let tags = &self.vlans;
        (came == self.outline.tags()).then(|| came - tags.lost + tags.got.len() / TAG_LEN)
    }

    /// Records that outer headers were added.
    pub(crate) fn seal(&mut self) {
        (self.sealed, self.stale) = (true, true);
    }

    /// Records that the outer headers were removed again. `shape` tells what headers all packets
    /// of the record have, and `stored` what the new bytes of the rewrite store no longer.
    pub(crate) fn unseal(&mut self, shape: HeaderMask, stored: &[Bits]) {
        self.stored.retain(|(bits, _)| !stored.contains(bits));
        (self.sealed, self.stale, self.shape) = (false, true, shape);
    }

    /// Takes note that the packet was parsed, so that its fields are where the layout shows them.
    pub(crate) fn parse(&mut self) {
        // A link header in front of the outer headers stays as it was.
        let is_known = |wrapped: &Wrapped| !wrapped.has(Field::EthSrc);
        self.stale = self.sealed && !self.wrapped.as_deref().is_some_and(is_known);
    }

    /// The headers that the packet has now.
    pub(crate) fn presence(&self) -> u128 {
        self.wrapped.as_ref().map_or(self.layout, |wrapped| &wrapped.layout).presence()
    }

    /// Adds an outermost VLAN tag to the packet.
    pub(crate) fn push_tag(&mut self, id: Word) -> Option<()> {
        if self.sealed || self.tags()? == MOST {
            return None;
        }
        let [high, low] = u16::try_from(id).unwrap_or(u16::MAX).to_be_bytes();
        self.vlans.got.splice(..0, [0x81, 0, high & 0xf, low]);
        self.stale = true;
        Some(())
    }

    /// Removes the packet's outermost VLAN tag.
    pub(crate) fn pop_tag(&mut self) -> Option<()> {
        if self.sealed || self.tags()? == 0 {
            return None;
        }
        let tags = &mut self.vlans;
        match tags.got.is_empty() {
            true => tags.lost += 1,
            false => drop(tags.got.drain(..TAG_LEN)),
        }
        self.stale = true;
        Some(())
    }

    /// Forgets assignments to VLAN tags that the packet has lost.
    #[expect(
        clippy::indexing_slicing,
        reason = "a packet with an outline has at most two tags to lose"
    )]
    pub(crate) fn forget_lost(&mut self) {
        let lost = self.vlans.lost;
        self.mask[TAGS..TAGS + lost * TAG_LEN].fill(0);
    }

    /// Whether the packet has a header now. `None` if that is not the same for all packets of the
    /// flow.
    pub(crate) fn has(&self, header: Header) -> Option<bool> {
        let is_moved = self.vlans.longer() != 0 || self.vlans.lost > 0;
        match header {
            Header::Vlan if is_moved => Some(self.tags()? >= 1),
            Header::Vlan2 if is_moved => Some(self.tags()? >= 2),
            _ => {
                self.asked.set(self.asked.get() | header.bit());
                self.shape.has(header)
            }
        }
    }

    /// Where a field is, if it is in the packet's first bytes.
    pub(crate) fn place(&self, field: Field) -> Option<Place> {
        let outline = self.outline.with(&self.vlans);
        let bits = Bits::of(field, outline, &|header| self.has(header))?;
        match self.vlans.origin(bits.at) {
            Some(at) => (at + bits.len <= WIDE_BYTES).then_some(Place::Came(Bits { at, ..bits })),
            None => Some(Place::Got(Bits { at: bits.at - TAGS, ..bits })),
        }
    }

    /// The current value of a field that has bytes of its own in the packet, its dependency and, if
    /// the field is an unchanged part of the key, its bits.
    pub(crate) fn field(&self, field: Field) -> Option<(Word, ValueDependency, Option<Bits>)> {
        let is_link = is_link(field);
        let bits = match self.place(field) {
            Some(Place::Got(bits)) => {
                return Some((bits.get(&self.vlans.got), ValueDependency::Fixed, None));
            }
            Some(Place::Came(bits)) => bits,
            // The field may have moved, or its value may have changed.
            None if self.writes || is_link => return None,
            None => {
                return Some((self.packet.get(self.layout, field)?, ValueDependency::Packet, None));
            }
        };
        if bits.are_in(&self.sums_of).0 {
            return None;
        }
        let value = bits.get(&self.head);
        let (some, all) = bits.are_in(&self.fresh);
        if some {
            let fixed = all && (is_key(field) || is_link);
            return fixed.then_some((value, ValueDependency::Fixed, None));
        }
        let is_key = is_key(field);
        // The assignments may have changed this field, too.
        if self.writes && !is_link && !is_key {
            return None;
        }
        if self.is_summed(field) {
            return Some((value, ValueDependency::Packet, None));
        }
        match bits.are_in(&self.written) {
            (_, true) => return Some((value, ValueDependency::Fixed, None)),
            (true, false) => return None,
            (false, false) if is_key => {
                let is_same = self.is_covered(bits);
                return is_same.then_some((value, ValueDependency::Fixed, Some(bits)));
            }
            (false, false) => {}
        }
        let down = if bits.at == self.outline.ttl() { self.down } else { 0 };
        let add = -i64::from(down);
        let dependency = |number| ValueDependency::Number { number, shift: bits.shift, add };
        Some((value, Number::of_bits(bits).map_or(ValueDependency::Packet, dependency), None))
    }
}
