//! Reads and assigns fields. An assignment leaves a right checksum right and a wrong one wrong.

use crate::checksum::{self, Delta};
use crate::field::{Access, Address, Cover, Field, Header, Where};
use crate::layout::Layout;
use crate::packet::Packet;
use crate::place::{Place, number, place, words};
use crate::wire::ipv4;

impl Packet {
    /// A field's value; `None` when its header is absent. The layout must be this packet's.
    ///
    /// `pkt.time` is the packet's own time. An engine whose time must not go back corrects it
    /// first.
    #[must_use]
    pub fn get(&self, layout: &Layout, field: Field) -> Option<u128> {
        if let Some(place) = place(layout, field) {
            let value = number(self.data(), place)? >> place.shift & place.mask();
            return Some(value);
        }
        if layout.has(field.info().header) { self.computed(layout, field) } else { None }
    }

    /// The value of a field that has no bytes of its own in the packet.
    fn computed(&self, layout: &Layout, field: Field) -> Option<u128> {
        use Field::*;
        if let Some(place) = words(layout, field) {
            return Some(4 * (number(self.data(), place)? >> place.shift & place.mask()));
        }
        if let Where::Number(header, yes, no) = field.info().place {
            return Some(if layout.has(header) { yes } else { no }.into());
        }
        let wire = |len: usize| u128::try_from(len).ok();
        Some(match field {
            PktLen => u128::from(self.wire_len),
            PktPayloadLen => wire(layout.payload_len())?,
            PktTime => u128::from(self.time_ns),
            PktIngress => u128::from(self.ingress),
            PktBackward => u128::from(self.backward),
            PktFragment => u128::from(layout.is_fragment()),
            PktLaterFragment => u128::from(layout.is_later_fragment()),
            PktHeld => u128::from(self.held),
            PktTruncated => u128::from(wire(self.data().len())? < u128::from(self.wire_len)),
            EthType => u128::from(layout.ether_type()),
            Ip6Proto | InetProto => u128::from(layout.proto()),
            InetSport | InetDport => 0,
            QuotedProto => u128::from(layout.quoted()?.proto),
            QuotedInetSport | QuotedInetDport => 0,
            _ => return None,
        })
    }

    /// Assigns a field. The value's low bits count, up to the field's width. Each checksum that
    /// covers the field is updated by the difference, so a wrong checksum stays as wrong as it was.
    /// Returns false, and changes nothing, when the field's header is absent or the field is
    /// read-only.
    ///
    /// Updated checksums are in canonical form (see [`crate::checksum`]), even if the value does
    /// not change. The integrity value of AH and the checksums of unrecognised protocols are not
    /// updated.
    pub fn set(&mut self, layout: &Layout, field: Field, value: u128) -> bool {
        let Some((place, delta)) = self.write(layout, field, value) else { return false };
        self.follow(layout, field, place, delta);
        true
    }

    /// Assigns a field and leaves all checksums as they are. Returns how the bytes changed.
    pub(crate) fn write(
        &mut self,
        layout: &Layout,
        field: Field,
        value: u128,
    ) -> Option<(Place, Delta)> {
        if field.info().access == Access::Ro {
            return None;
        }
        let place = place(layout, field)?;
        let old = number(self.data(), place)?;
        let mask = place.mask() << place.shift;
        let new = old & !mask | value << place.shift & mask;
        let raw = self.data_mut().get_mut(place.offset..place.offset + place.len)?;
        raw.copy_from_slice(new.to_be_bytes().get(16 - place.len..)?);
        Some((place, Delta::between(old, new, place.len)))
    }

    /// Updates the checksums that cover a field.
    fn follow(&mut self, layout: &Layout, field: Field, place: Place, delta: Delta) {
        match field.info().header.info().sum {
            Cover::None => {}
            Cover::Ip4 => {
                self.follow_ip(layout.ip(), place, delta);
                self.follow_address(layout, field, place, delta);
            }
            // The TTL is the only field here that models may write.
            Cover::Inet => {
                if layout.has(Header::Ip4) {
                    self.follow_ip(layout.ip(), place, delta);
                }
            }
            Cover::Ip6 => self.follow_address(layout, field, place, delta),
            Cover::Gre => {
                if let Some(at) = layout.gre_sum() {
                    let delta = delta.at(place.offset.abs_diff(layout.l4()));
                    checksum::update(self.data_mut(), at, delta, false);
                }
            }
            Cover::Quoted => self.follow_quoted(layout, field, place, delta),
            Cover::Transport => {
                self.follow_transport(layout, delta.at(place.offset.abs_diff(layout.l4())));
            }
        }
    }

    fn follow_ip(&mut self, ip: usize, place: Place, delta: Delta) -> Option<(u16, u16)> {
        let delta = delta.at(place.offset.abs_diff(ip));
        checksum::update(self.data_mut(), ip + ipv4::CHECKSUM, delta, false)
    }

    fn follow_transport(&mut self, layout: &Layout, delta: Delta) {
        if let Some(sum) = layout.sum() {
            checksum::update(self.data_mut(), sum.at, delta, sum.is_udp());
        }
    }

    /// Updates the transport checksum if the field is an address in its pseudo header.
    fn follow_address(&mut self, layout: &Layout, field: Field, place: Place, delta: Delta) {
        let covered = is_covered(field, place, layout.pseudo_dst());
        if covered && layout.sum().is_some_and(|sum| sum.has_pseudo()) {
            self.follow_transport(layout, delta);
        }
    }

    /// Updates the quoted packet's checksums. Then updates the checksum of the ICMP error, which
    /// covers the field and the quoted checksums.
    fn follow_quoted(&mut self, layout: &Layout, field: Field, place: Place, delta: Delta) {
        let Some(quoted) = layout.quoted() else { return };
        let mut total = delta.at(place.offset.abs_diff(quoted.ip));
        if field.info().header == Header::Quoted4 {
            total = total.and(Delta::around(self.follow_ip(quoted.ip, place, delta)));
        }
        let covered = is_covered(field, place, quoted.pseudo_dst);
        if let Some(sum) = quoted.sum {
            let of_ip = matches!(field.info().header, Header::Quoted4 | Header::Quoted6);
            if !of_ip || covered && sum.has_pseudo() {
                let change = checksum::update(self.data_mut(), sum.at, delta, sum.is_udp());
                total = total.and(Delta::around(change));
            }
        }
        self.follow_transport(layout, total);
    }
}

/// Whether the field is an address in a pseudo header whose destination is at `pseudo_dst`.
fn is_covered(field: Field, place: Place, pseudo_dst: usize) -> bool {
    match field.info().address {
        Some(Address::Src) => true,
        Some(Address::Dst) => place.offset == pseudo_dst,
        None => false,
    }
}
