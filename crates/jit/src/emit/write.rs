//! Assigning fields, with the checksums that cover them (RFC 1624, equation 3).
//!
//! One's complement sums don't care for the order of bytes (RFC 1071 §2 (B)), so that everything is
//! added up as it lies in memory: a byte at an even offset counts once, one at an odd offset
//! 256 times. What changes is added up for all fields of a step; each checksum is updated once.

use super::load::pieces;
use super::{Emitter, at};
use crate::error::Error;
use braid_ir::model::ValueId;
use braid_ir::show::max_of;
use braid_packet::field::{Address, Cover as Sum};
use braid_packet::layout::parts;
use braid_packet::{Access, Base, Field, Header, Spot};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

/// Offset of the checksum in an IPv4 header.
const IP_SUM: usize = 10;
/// Offset of the destination address in an IPv4 and an IPv6 header.
const IP_DST: (u64, u64) = (16, 24);

/// A multiple of 2^16 - 1, which stands for 0 in one's complement sums, above all that is ever
/// subtracted: bytes count at most 256 times, so that a piece of 4 is below 2^40.
const ZERO: u64 = 0xffff << 46;
/// The same where all pieces are [`short`](Part::is_short).
const ZERO_SHORT: i64 = 0xffff << 9;
/// Most fields of a step, so that differences stay below [`ZERO`].
const MOST: usize = 256;

/// Which checksums cover a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cover {
    None,
    /// The IPv4 header's, and the transport checksum if it has a pseudo header with this.
    Ip(Pseudo),
    /// The transport checksum, if it has a pseudo header with this.
    Ip6(Pseudo),
    /// The transport checksum.
    Transport,
}

/// Whether an IP header's field is in the pseudo header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pseudo {
    No,
    Yes,
    /// Unless a source route has another destination.
    Dst,
}

/// An assignment.
pub(super) struct Part {
    spot: Spot,
    cover: Cover,
    value: ValueId,
}

impl Part {
    /// Whether the field is all of its bytes.
    fn is_whole(&self) -> bool {
        u32::from(self.spot.width) == u32::from(self.spot.len) * 8
    }

    /// Whether a change of it is less than 2^16.
    fn is_short(&self) -> bool {
        let odd = self.spot.offset % 2 == 1;
        self.cover == Cover::None || self.spot.len == 1 || self.spot.len == 2 && !odd
    }
}

/// What a transport checksum is, as far as it is known when code is made.
#[derive(Clone, Copy)]
struct Kind {
    /// It is there, at this offset from the transport header.
    known_at: Option<usize>,
    udp: Option<bool>,
    has_pseudo: Option<bool>,
}

/// What has changed under the checksums, each time as a difference of sums.
#[derive(Clone, Copy, Default)]
struct Changes {
    ip: Option<Value>,
    /// Certainly under the transport checksum, if there is one.
    transport: Option<Value>,
    /// Under it if it has a pseudo header.
    pseudo: Option<Value>,
    /// Under it if it has a pseudo header with the destination address of the IP header.
    dst: Option<Value>,
}

impl Emitter<'_, '_> {
    /// How to assign fields, if that is not the host's.
    pub(super) fn plan(&self, fields: &[(Field, ValueId)]) -> Option<Vec<Part>> {
        let part = |(field, value): &(Field, ValueId)| {
            let spot = self.spot(*field).filter(|_| field.info().access == Access::Rw)?;
            Some(Part { spot, cover: self.cover(*field, spot)?, value: *value })
        };
        if fields.len() > MOST { None } else { fields.iter().map(part).collect() }
    }

    /// Which checksums cover a field, if they are updated here.
    fn cover(&self, field: Field, spot: Spot) -> Option<Cover> {
        let info = field.info();
        let pseudo = match info.address {
            Some(Address::Src) => Pseudo::Yes,
            Some(Address::Dst) => Pseudo::Dst,
            None => Pseudo::No,
        };
        Some(match info.header.info().sum {
            Sum::None => Cover::None,
            Sum::Ip4 => Cover::Ip(pseudo),
            // Of these only the TTL is written.
            Sum::Inet if self.facts.headers.has(Header::Ip4)? => Cover::Ip(Pseudo::No),
            Sum::Inet => Cover::None,
            Sum::Ip6 if info.address.is_some() => Cover::Ip6(pseudo),
            Sum::Ip6 => Cover::None,
            // Options of TCP may lie at odd offsets.
            Sum::Transport if spot.base == Base::L4 => Cover::Transport,
            Sum::Transport | Sum::Gre | Sum::Quoted => return None,
        })
    }

    pub(super) fn write(&mut self, plan: &[Part]) -> Result<(), Error> {
        self.loaded.clear();
        let mut changes = Changes::default();
        let short = plan.iter().all(Part::is_short);
        let old: Vec<_> = plan.iter().map(|part| self.old(part)).collect();
        for (part, old) in plan.iter().zip(old) {
            let value = self.sized(part.value, part.spot.len == 16)?;
            let base = self.base(part.spot.base);
            let change = self.assign(part, base, value, old);
            let Some(change) = change else { continue };
            let under = |sum: &mut Option<Value>, this: &mut Self| {
                *sum = Some(match *sum {
                    None => change,
                    Some(before) => this.build.ins().iadd(before, change),
                });
            };
            let pseudo = match part.cover {
                Cover::None => continue,
                Cover::Transport => {
                    under(&mut changes.transport, self);
                    continue;
                }
                Cover::Ip(pseudo) => {
                    under(&mut changes.ip, self);
                    pseudo
                }
                Cover::Ip6(pseudo) => pseudo,
            };
            match pseudo {
                Pseudo::No => {}
                Pseudo::Yes => under(&mut changes.pseudo, self),
                Pseudo::Dst => under(&mut changes.dst, self),
            }
        }
        if let Some(change) = changes.ip {
            let ip = self.base(Base::Ip);
            let old = self.load_bytes(self.regions.packet, 2, ip, IP_SUM);
            let new = self.updated(old, change, short);
            self.put_raw(new, ip, IP_SUM, 2);
        }
        self.transport(changes, short);
        Ok(())
    }

    /// What lies where a field will be stored, if checksums cover it: loaded before anything is stored, since
    /// it often is at hand. Others may have part of the bytes of a field that is not all of them.
    fn old(&mut self, part: &Part) -> Vec<Value> {
        if part.cover == Cover::None || !part.is_whole() {
            return Vec::new();
        }
        let base = self.base(part.spot.base);
        let pieces = pieces(part.spot.len).into_iter();
        pieces.map(|(at, bytes)| self.raw(base, part.spot, at, bytes)).collect()
    }

    /// Stores a field; how the sum of its bytes has changed, if checksums cover it.
    fn assign(
        &mut self,
        part: &Part,
        base: Value,
        value: Value,
        known: Vec<Value>,
    ) -> Option<Value> {
        let (spot, summed, whole) = (part.spot, part.cover != Cover::None, part.is_whole());
        let (low, high) = self.split(value);
        let mut change = None;
        let mut known = known.into_iter();
        for (at, bytes) in pieces(spot.len) {
            let offset = usize::from(spot.offset + at);
            // A field that is not all of its bytes is at most one piece.
            let old = known.next().or_else(|| (!whole).then(|| self.raw(base, spot, at, bytes)));
            let new = match old {
                Some(old) if !whole => self.blended(old, low, spot, bytes),
                _ => {
                    let behind = spot.len - at - bytes;
                    let half = if behind >= 8 { high } else { low };
                    let part = self.down(half, i64::from(behind % 8) * 8);
                    self.swapped(part, bytes)
                }
            };
            self.put_raw(new, base, offset, bytes);
            if summed && let Some(old) = old {
                let one = self.difference(old, new, bytes, offset % 2 == 1);
                change = Some(match change {
                    None => one,
                    Some(before) => self.build.ins().iadd(before, one),
                });
            }
        }
        change
    }

    /// Bytes as they lie in memory with the bits of a field replaced.
    fn blended(&mut self, old: Value, value: Value, spot: Spot, bytes: u8) -> Value {
        let mask = (max_of(u16::from(spot.width)) << spot.shift) as u64;
        let old = self.swapped(old, bytes);
        let mask_value = self.imm(!mask);
        let kept = self.build.ins().band(old, mask_value);
        let value = self.masked(value, u16::from(spot.width));
        let placed = self.up(value, i64::from(spot.shift));
        let new = self.build.ins().bor(kept, placed);
        self.swapped(new, bytes)
    }

    /// By how much the sum of some bytes has changed; may wrap below 0.
    fn difference(&mut self, old: Value, new: Value, bytes: u8, odd: bool) -> Value {
        let mut sides = [old, new];
        for side in &mut sides {
            if bytes == 8 {
                let high = self.down(*side, 32);
                let low = self.masked(*side, 32);
                *side = self.build.ins().iadd(low, high);
            }
            if odd {
                *side = self.up(*side, 8);
            }
        }
        self.build.ins().isub(sides[1], sides[0])
    }

    /// A checksum (as it lies in memory) after a change: never 0xffff.
    fn updated(&mut self, old: Value, change: Value, short: bool) -> Value {
        let all = self.imm(0xffff);
        let complement = self.build.ins().bxor(old, all);
        let sum = self.build.ins().iadd(complement, change);
        // Above 0, so that folding it does not give 0.
        let folded = if short {
            let sum = self.build.ins().iadd_imm_u(sum, ZERO_SHORT);
            let sum = self.build.ins().ireduce(types::I32, sum);
            self.folded_short(sum)
        } else {
            let zero = self.imm(ZERO);
            let sum = self.build.ins().iadd(sum, zero);
            self.folded(sum)
        };
        self.build.ins().bxor(folded, all)
    }

    /// A sum in 16 bits; 0 only if it was 0. Adding a number to itself with its halves exchanged gives
    /// the sum of the halves with its carry added (RFC 1071 §2 (A)), in the upper half.
    fn folded(&mut self, sum: Value) -> Value {
        let exchanged = self.build.ins().rotl_imm_u(sum, 32);
        let sum = self.build.ins().iadd(sum, exchanged);
        let sum = self.down(sum, 32);
        let sum = self.build.ins().ireduce(types::I32, sum);
        self.folded_short(sum)
    }

    /// The same for a sum of 32 bits.
    fn folded_short(&mut self, sum: Value) -> Value {
        let exchanged = self.build.ins().rotl_imm_u(sum, 16);
        let sum = self.build.ins().iadd(sum, exchanged);
        let sum = self.down(sum, 16);
        self.narrowed(sum)
    }

    fn kind(&self) -> Kind {
        let headers = self.facts.headers;
        let known = |at: usize, udp: bool, has_pseudo: bool| Kind {
            known_at: Some(at),
            udp: Some(udp),
            has_pseudo: Some(has_pseudo),
        };
        if headers.is_present(Header::Tcp) {
            return known(16, false, true);
        }
        if headers.is_present(Header::Udp) {
            return known(6, true, true);
        }
        if headers.is_present(Header::Icmp) {
            return known(2, false, false);
        }
        if headers.is_present(Header::Icmp6) {
            return known(2, false, true);
        }
        let ports = headers.is_present(Header::L4);
        let version6 = headers.is_present(Header::Ip6);
        Kind { known_at: None, udp: None, has_pseudo: (ports || version6).then_some(true) }
    }

    /// Updates the transport checksum, if there is one.
    fn transport(&mut self, changes: Changes, short: bool) {
        let kind = self.kind();
        let Some((change, touched)) = self.under_transport(kind, changes) else { return };
        let done = self.build.create_block();
        let skip_unless = |this: &mut Self, condition: Value| {
            let go_on = this.build.create_block();
            this.build.ins().brif(condition, go_on, &[], done, &[]);
            this.build.switch_to_block(go_on);
        };
        if let Some(touched) = touched {
            skip_unless(self, touched);
        }
        let (base, offset) = match kind.known_at {
            Some(offset) => (self.base(Base::L4), offset),
            None => {
                let at = self.laid_out(parts::SUM_AT, 2);
                skip_unless(self, at);
                if kind.has_pseudo.is_none() && changes.transport.is_none() {
                    let rules = self.laid_out(parts::SUM_KIND, 1);
                    let icmp = i64::from(parts::SUM_ICMP);
                    let pseudo = self.build.ins().icmp_imm_u(IntCC::NotEqual, rules, icmp);
                    skip_unless(self, pseudo);
                }
                let data = self.framed(at::DATA);
                (self.build.ins().iadd(data, at), 0)
            }
        };
        let old = self.load_bytes(self.regions.packet, 2, base, offset);
        let new = self.updated(old, change, short);
        let new = self.canonical(old, new, kind.udp);
        self.put_raw(new, base, offset, 2);
        self.build.ins().jump(done, &[]);
        self.build.switch_to_block(done);
    }

    /// What has changed under the transport checksum, and on what it depends whether anything has.
    fn under_transport(&mut self, kind: Kind, changes: Changes) -> Option<(Value, Option<Value>)> {
        let sum = |this: &mut Self, a: Option<Value>, b: Option<Value>| match (a, b) {
            (Some(a), Some(b)) => Some(this.build.ins().iadd(a, b)),
            (one, other) => one.or(other),
        };
        if kind.has_pseudo == Some(false) {
            return changes.transport.map(|change| (change, None));
        }
        let certain = sum(self, changes.transport, changes.pseudo);
        let Some(dst) = changes.dst else { return certain.map(|change| (change, None)) };
        let ip = self.laid_out(Base::Ip.in_layout()?.0, 2);
        let offset = if self.facts.headers.is_present(Header::Ip4) { IP_DST.0 } else { IP_DST.1 };
        let offset = self.imm(offset);
        let dst_at = self.build.ins().iadd(ip, offset);
        let pseudo_dst = self.laid_out(parts::PSEUDO_DST, 2);
        let same = self.build.ins().icmp(IntCC::Equal, dst_at, pseudo_dst);
        let Some(certain) = certain else { return Some((dst, Some(same))) };
        let zero = self.imm(0);
        let dst = self.build.ins().select(same, dst, zero);
        Some((self.build.ins().iadd(certain, dst), None))
    }

    /// UDP's "no checksum" stays, and does not come out otherwise.
    fn canonical(&mut self, old: Value, new: Value, udp: Option<bool>) -> Value {
        let is_udp = match udp {
            Some(false) => return new,
            Some(true) => None,
            None => {
                let rules = self.laid_out(parts::SUM_KIND, 1);
                let udp = i64::from(parts::SUM_UDP);
                Some(self.build.ins().icmp_imm_u(IntCC::Equal, rules, udp))
            }
        };
        let all = self.imm(0xffff);
        let canonical = self.build.ins().select(new, new, all);
        let canonical = self.build.ins().select(old, canonical, old);
        match is_udp {
            None => canonical,
            Some(is_udp) => self.build.ins().select(is_udp, canonical, new),
        }
    }
}
