//! Assigns fields, and updates the checksums that cover them (RFC 1624, equation 3).
//!
//! One's complement sums do not depend on the byte order (RFC 1071 §2 (B)). So the code sums bytes
//! in their order in memory: a byte at an even offset counts once, a byte at an odd offset 256
//! times. It adds up the changes of all fields of a step and updates each checksum once.

use super::emitter::{Emitter, at};
use super::load;
use super::load::pieces;
use crate::error::Error;
use braid_ir::model::ValueId;
use braid_ir::show::max_of;
use braid_packet::field::{Address, Cover as Sum};
use braid_packet::layout::parts;
use braid_packet::{Access, Base, Field, Header, Spot};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

/// A multiple of 2^16 - 1, which stands for 0 in one's complement sums. It keeps sums positive: the
/// differences of all fields of a step are smaller. (A part of 4 bytes changes a sum by less than
/// 2^40, because a byte counts at most 256 times.)
const ZERO: u64 = 0xffff << 46;
/// As [`ZERO`], if all fields of the step are [`short`](Part::is_short).
const ZERO_SHORT: i64 = 0xffff << 9;
/// The largest number of fields of a step, so that differences stay below [`ZERO`].
const MOST: usize = 256;

/// The checksums that cover a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cover {
    None,
    /// The checksum of the IPv4 header, and the transport checksum if its pseudo header contains
    /// the field.
    Ip(Pseudo),
    /// The transport checksum, if its pseudo header contains the field.
    Ip6(Pseudo),
    /// The transport checksum.
    Transport,
}

/// Whether the pseudo header of the transport checksum contains a field of the IP header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pseudo {
    No,
    Yes,
    /// It does, unless a source route gives another destination.
    Dst,
}

/// An assignment of a field.
pub(super) struct Part {
    spot: Spot,
    cover: Cover,
    value: ValueId,
}

impl Part {
    /// Whether the field fills all of its bytes.
    fn is_whole(&self) -> bool {
        u32::from(self.spot.width) == u32::from(self.spot.len) * 8
    }

    /// Whether the field changes a sum by less than 2^16.
    fn is_short(&self) -> bool {
        let odd = self.spot.offset % 2 == 1;
        self.cover == Cover::None || self.spot.len == 1 || self.spot.len == 2 && !odd
    }
}

/// The facts about a transport checksum that are known when code is generated.
#[derive(Clone, Copy)]
struct Kind {
    /// The offset of the checksum from the transport header, if it certainly exists.
    known_at: Option<usize>,
    udp: Option<bool>,
    has_pseudo: Option<bool>,
}

/// The changes of the sums that the checksums cover.
#[derive(Clone, Copy, Default)]
struct Changes {
    ip: Option<Value>,
    /// The change under the transport checksum, if there is one.
    transport: Option<Value>,
    /// The change under the transport checksum if it has a pseudo header.
    pseudo: Option<Value>,
    /// The change under the transport checksum if it has a pseudo header that contains the IP
    /// header's destination address.
    dst: Option<Value>,
}

/// Plans the assignment of fields. `None` if the host must do it.
pub(super) fn plan_writes(e: &Emitter<'_, '_>, fields: &[(Field, ValueId)]) -> Option<Vec<Part>> {
    let part = |(field, value): &(Field, ValueId)| {
        let spot = load::spot_of(e, *field).filter(|_| field.info().access == Access::Rw)?;
        Some(Part { spot, cover: cover_of(e, *field, spot)?, value: *value })
    };
    if fields.len() > MOST { None } else { fields.iter().map(part).collect() }
}

/// The checksums that cover a field. `None` if machine code does not update them.
fn cover_of(e: &Emitter<'_, '_>, field: Field, spot: Spot) -> Option<Cover> {
    let info = field.info();
    let pseudo = match info.address {
        Some(Address::Src) => Pseudo::Yes,
        Some(Address::Dst) => Pseudo::Dst,
        None => Pseudo::No,
    };
    Some(match info.header.info().sum {
        Sum::None => Cover::None,
        Sum::Ip4 => Cover::Ip(pseudo),
        // The TTL is the only writable field of this header.
        Sum::Inet if e.facts.headers.has(Header::Ip4)? => Cover::Ip(Pseudo::No),
        Sum::Inet => Cover::None,
        Sum::Ip6 if info.address.is_some() => Cover::Ip6(pseudo),
        Sum::Ip6 => Cover::None,
        // TCP options may lie at odd offsets.
        Sum::Transport if spot.base == Base::L4 => Cover::Transport,
        Sum::Transport | Sum::Gre | Sum::Quoted => return None,
    })
}

pub(super) fn assign_fields(e: &mut Emitter<'_, '_>, plan: &[Part]) -> Result<(), Error> {
    e.loaded.clear();
    let mut changes = Changes::default();
    let short = plan.iter().all(Part::is_short);
    let old: Vec<_> = plan.iter().map(|part| load_old(e, part)).collect();
    for (part, old) in plan.iter().zip(old) {
        let value = e.sized(part.value, part.spot.len == 16)?;
        let base = load::base_address(e, part.spot.base);
        let change = store_field(e, part, base, value, old);
        let Some(change) = change else { continue };
        let under = |sum: &mut Option<Value>, this: &mut Emitter<'_, '_>| {
            *sum = Some(match *sum {
                None => change,
                Some(before) => this.build.ins().iadd(before, change),
            });
        };
        let pseudo = match part.cover {
            Cover::None => continue,
            Cover::Transport => {
                under(&mut changes.transport, e);
                continue;
            }
            Cover::Ip(pseudo) => {
                under(&mut changes.ip, e);
                pseudo
            }
            Cover::Ip6(pseudo) => pseudo,
        };
        match pseudo {
            Pseudo::No => {}
            Pseudo::Yes => under(&mut changes.pseudo, e),
            Pseudo::Dst => under(&mut changes.dst, e),
        }
    }
    if let Some(change) = changes.ip {
        let ip = load::base_address(e, Base::Ip);
        let old = e.load_bytes(e.memories.packet, 2, ip, Field::IpChecksum.offset());
        let new = updated_sum(e, old, change, short);
        load::store_raw(e, new, ip, Field::IpChecksum.offset(), 2);
    }
    update_transport(e, changes, short);
    Ok(())
}

/// Loads the old bytes of a field that checksums cover. This happens before all stores, because the
/// bytes are often still in a register. A field that shares bytes with other fields is loaded
/// later, after their stores.
fn load_old(e: &mut Emitter<'_, '_>, part: &Part) -> Vec<Value> {
    if part.cover == Cover::None || !part.is_whole() {
        return Vec::new();
    }
    let base = load::base_address(e, part.spot.base);
    let pieces = pieces(part.spot.len).into_iter();
    pieces.map(|(at, bytes)| load::load_raw(e, base, part.spot, at, bytes)).collect()
}

/// Stores a field. Returns the change of the sum of its bytes, if checksums cover the field.
fn store_field(
    e: &mut Emitter<'_, '_>,
    part: &Part,
    base: Value,
    value: Value,
    known: Vec<Value>,
) -> Option<Value> {
    let (spot, summed, whole) = (part.spot, part.cover != Cover::None, part.is_whole());
    let (low, high) = e.split(value);
    let mut change = None;
    let mut known = known.into_iter();
    for (at, bytes) in pieces(spot.len) {
        let offset = usize::from(spot.offset + at);
        // A field that shares bytes with other fields has at most one piece.
        let old =
            known.next().or_else(|| (!whole).then(|| load::load_raw(e, base, spot, at, bytes)));
        let new = match old {
            Some(old) if !whole => rewritten_bits(e, old, low, spot, bytes),
            _ => {
                let behind = spot.len - at - bytes;
                let half = if behind >= 8 { high } else { low };
                let part = e.shift_right(half, i64::from(behind % 8) * 8);
                load::swapped(e, part, bytes)
            }
        };
        load::store_raw(e, new, base, offset, bytes);
        if summed && let Some(old) = old {
            let one = sum_difference(e, old, new, bytes, offset % 2 == 1);
            change = Some(match change {
                None => one,
                Some(before) => e.build.ins().iadd(before, one),
            });
        }
    }
    change
}

/// Replaces the bits of a field in bytes as they are in memory.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a field that shares bytes with others has at most 64 bits"
)]
fn rewritten_bits(
    e: &mut Emitter<'_, '_>,
    old: Value,
    value: Value,
    spot: Spot,
    bytes: u8,
) -> Value {
    let mask = (max_of(u16::from(spot.width)) << spot.shift) as u64;
    let old = load::swapped(e, old, bytes);
    let mask_value = e.imm(!mask);
    let kept = e.build.ins().band(old, mask_value);
    let value = e.masked(value, u16::from(spot.width));
    let placed = e.shift_left(value, i64::from(spot.shift));
    let new = e.build.ins().bor(kept, placed);
    load::swapped(e, new, bytes)
}

/// The change of the sum of `bytes` bytes. A negative change wraps.
fn sum_difference(e: &mut Emitter<'_, '_>, old: Value, new: Value, bytes: u8, odd: bool) -> Value {
    let mut sides = [old, new];
    for side in &mut sides {
        if bytes == 8 {
            let high = e.shift_right(*side, 32);
            let low = e.masked(*side, 32);
            *side = e.build.ins().iadd(low, high);
        }
        if odd {
            *side = e.shift_left(*side, 8);
        }
    }
    e.build.ins().isub(sides[1], sides[0])
}

/// The new checksum, in its order in memory, after a change of the sum. It is never 0xffff.
fn updated_sum(e: &mut Emitter<'_, '_>, old: Value, change: Value, short: bool) -> Value {
    let all = e.imm(0xffff);
    let complement = e.build.ins().bxor(old, all);
    let sum = e.build.ins().iadd(complement, change);
    // The sum is positive, so folding does not give 0.
    let folded = if short {
        let sum = e.build.ins().iadd_imm_u(sum, ZERO_SHORT);
        let sum = e.build.ins().ireduce(types::I32, sum);
        folded_short(e, sum)
    } else {
        let zero = e.imm(ZERO);
        let sum = e.build.ins().iadd(sum, zero);
        folded(e, sum)
    };
    e.build.ins().bxor(folded, all)
}

/// Folds a sum to 16 bits. The result is 0 only if the sum is 0. A number plus itself with
/// exchanged halves has in its upper half the sum of both halves, with the carry added (RFC 1071 §2
/// (A)).
fn folded(e: &mut Emitter<'_, '_>, sum: Value) -> Value {
    let exchanged = e.build.ins().rotl_imm_u(sum, 32);
    let sum = e.build.ins().iadd(sum, exchanged);
    let sum = e.shift_right(sum, 32);
    let sum = e.build.ins().ireduce(types::I32, sum);
    folded_short(e, sum)
}

/// As [`folded`], for a sum of 32 bits.
fn folded_short(e: &mut Emitter<'_, '_>, sum: Value) -> Value {
    let exchanged = e.build.ins().rotl_imm_u(sum, 16);
    let sum = e.build.ins().iadd(sum, exchanged);
    let sum = e.shift_right(sum, 16);
    e.narrowed(sum)
}

fn checksum_kind(e: &Emitter<'_, '_>) -> Kind {
    let headers = e.facts.headers;
    let mut present = Header::transports().filter(|header| headers.is_present(*header));
    if let Some(sum) = present.find_map(|header| header.info().holds) {
        return Kind {
            known_at: Some(sum.at),
            udp: Some(sum.is_udp()),
            has_pseudo: Some(sum.has_pseudo()),
        };
    }
    let ports = headers.is_present(Header::L4);
    let version6 = headers.is_present(Header::Ip6);
    Kind { known_at: None, udp: None, has_pseudo: (ports || version6).then_some(true) }
}

/// Updates the transport checksum, if there is one.
fn update_transport(e: &mut Emitter<'_, '_>, changes: Changes, short: bool) {
    let kind = checksum_kind(e);
    let Some((change, touched)) = under_transport(e, kind, changes) else { return };
    let done = e.build.create_block();
    let skip_unless = |this: &mut Emitter<'_, '_>, condition: Value| {
        let go_on = this.build.create_block();
        this.build.ins().brif(condition, go_on, &[], done, &[]);
        this.build.switch_to_block(go_on);
    };
    if let Some(touched) = touched {
        skip_unless(e, touched);
    }
    let (base, offset) = match kind.known_at {
        Some(offset) => (load::base_address(e, Base::L4), offset),
        None => {
            let at = e.layout_part(parts::SUM_AT, 2);
            skip_unless(e, at);
            if kind.has_pseudo.is_none() && changes.transport.is_none() {
                let rules = e.layout_part(parts::SUM_KIND, 1);
                let icmp = i64::from(parts::SUM_ICMP);
                let pseudo = e.build.ins().icmp_imm_u(IntCC::NotEqual, rules, icmp);
                skip_unless(e, pseudo);
            }
            let data = e.frame_word(at::DATA);
            (e.build.ins().iadd(data, at), 0)
        }
    };
    let old = e.load_bytes(e.memories.packet, 2, base, offset);
    let new = updated_sum(e, old, change, short);
    let new = canonical(e, old, new, kind.udp);
    load::store_raw(e, new, base, offset, 2);
    e.build.ins().jump(done, &[]);
    e.build.switch_to_block(done);
}

/// The change under the transport checksum, and the condition under which it applies (`None`:
/// always).
fn under_transport(
    e: &mut Emitter<'_, '_>,
    kind: Kind,
    changes: Changes,
) -> Option<(Value, Option<Value>)> {
    let sum = |this: &mut Emitter<'_, '_>, a: Option<Value>, b: Option<Value>| match (a, b) {
        (Some(a), Some(b)) => Some(this.build.ins().iadd(a, b)),
        (one, other) => one.or(other),
    };
    if kind.has_pseudo == Some(false) {
        return changes.transport.map(|change| (change, None));
    }
    let certain = sum(e, changes.transport, changes.pseudo);
    let Some(dst) = changes.dst else { return certain.map(|change| (change, None)) };
    let ip = e.layout_part(Base::Ip.in_layout()?.0, 2);
    let is_ip4 = e.facts.headers.is_present(Header::Ip4);
    let field = if is_ip4 { Field::IpDst } else { Field::Ip6Dst };
    let offset = e.imm(field.offset() as u64);
    let dst_at = e.build.ins().iadd(ip, offset);
    let pseudo_dst = e.layout_part(parts::PSEUDO_DST, 2);
    let same = e.build.ins().icmp(IntCC::Equal, dst_at, pseudo_dst);
    let Some(certain) = certain else { return Some((dst, Some(same))) };
    let zero = e.imm(0);
    let dst = e.build.ins().select(same, dst, zero);
    Some((e.build.ins().iadd(certain, dst), None))
}

/// Canonicalises a new checksum. In UDP, 0 means "no checksum": an old 0 stays, and a new 0 becomes
/// 0xffff.
fn canonical(e: &mut Emitter<'_, '_>, old: Value, new: Value, udp: Option<bool>) -> Value {
    let is_udp = match udp {
        Some(false) => return new,
        Some(true) => None,
        None => {
            let rules = e.layout_part(parts::SUM_KIND, 1);
            let udp = i64::from(parts::SUM_UDP);
            Some(e.build.ins().icmp_imm_u(IntCC::Equal, rules, udp))
        }
    };
    let all = e.imm(0xffff);
    let canonical = e.build.ins().select(new, new, all);
    let canonical = e.build.ins().select(old, canonical, old);
    match is_udp {
        None => canonical,
        Some(is_udp) => e.build.ins().select(is_udp, canonical, new),
    }
}
