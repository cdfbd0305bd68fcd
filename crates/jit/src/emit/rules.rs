//! Classification by rule sets.

use super::emitter::{Emitter, Place, at};
use crate::error::Error;
use crate::sys::Fields;
use braid_ir::model::ValueId;
use braid_ir::residual::{RuleFields, What};
use braid_ir::rules::RuleWords;
use cranelift_codegen::ir::{InstBuilder, Value};
use std::mem::offset_of;

pub(super) fn classify(
    e: &mut Emitter<'_, '_>,
    place: Place,
    number: u32,
    (pass, rule): (ValueId, ValueId),
    packet: &RuleFields,
) -> Result<(), Error> {
    if has_words(e, packet) {
        let [addrs, ports, bits] = rule_words(e, packet)?;
        let count = e.imm(is_counted(e, place).into());
        let [result] = e.host_call(at::CLASSIFY4, number, &[addrs, ports, bits, count]);
        e.flag_and_number(result, pass, rule);
        return Ok(());
    }
    let fields = e.scratch(size_of::<Fields>());
    for (value, offset) in
        [(packet.src, offset_of!(Fields, src)), (packet.dst, offset_of!(Fields, dst))]
    {
        let (low, high) = e.halves(value)?;
        e.store_word(low, fields, offset);
        e.store_word(high, fields, offset + 8);
    }
    let version = e.imm(u64::from(packet.version));
    e.store_word(version, fields, offset_of!(Fields, version));
    let proto = e.low(packet.proto)?;
    e.store_word(proto, fields, offset_of!(Fields, proto));
    let flags = packet.tcp_flags.map(|flags| [flags].to_vec());
    let pair = |pair: Option<(ValueId, ValueId)>| pair.map(|(a, b)| [a, b].to_vec());
    for (parts, width, offset) in [
        (pair(packet.ports), 16, offset_of!(Fields, ports)),
        (flags, 8, offset_of!(Fields, tcp_flags)),
        (pair(packet.icmp), 8, offset_of!(Fields, icmp)),
    ] {
        let word = optional_word(e, parts.as_deref(), width)?;
        e.store_word(word, fields, offset);
    }
    let [result] = e.host_call(at::CLASSIFY, number, &[fields]);
    e.flag_and_number(result, pass, rule);
    Ok(())
}

/// Announces to the host a packet that it will probably have to classify. Returns false if the
/// packet's fields do not fit into words.
pub(super) fn prefetch_packet(
    e: &mut Emitter<'_, '_>,
    number: u32,
    packet: &RuleFields,
) -> Result<bool, Error> {
    if !has_words(e, packet) {
        return Ok(false);
    }
    let [addrs, ports, bits] = rule_words(e, packet)?;
    let [] = e.host_call(at::PREFETCH_CLASSIFY, number, &[addrs, ports, bits]);
    Ok(true)
}

/// Whether the fields of a packet fit into [`RuleWords`].
fn has_words(e: &Emitter<'_, '_>, packet: &RuleFields) -> bool {
    let fits = |value: ValueId, bits: u16| e.bits(value) <= bits;
    let pair = |pair: Option<(ValueId, ValueId)>, bits: u16| {
        pair.is_none_or(|(a, b)| fits(a, bits) && fits(b, bits))
    };
    packet.version == 4
        && pair(Some((packet.src, packet.dst)), 32)
        && pair(packet.ports, 16)
        && pair(packet.icmp, 8)
        && [Some(packet.proto), packet.tcp_flags].iter().flatten().all(|byte| fits(*byte, 8))
}

/// The words of [`RuleWords`] for a packet.
fn rule_words(e: &mut Emitter<'_, '_>, packet: &RuleFields) -> Result<[Value; 3], Error> {
    let here = |is_here: bool, bit: u64| if is_here { bit } else { 0 };
    let headers = here(packet.tcp_flags.is_some(), RuleWords::FLAGS_HERE)
        | here(packet.icmp.is_some(), RuleWords::ICMP_HERE)
        | here(packet.ports.is_some(), RuleWords::PORTS_HERE);
    let (kind, code) = packet.icmp.unzip();
    let (sport, dport) = packet.ports.unzip();
    let bits = [
        (Some(packet.proto), 0),
        (packet.tcp_flags, RuleWords::FLAGS),
        (code, RuleWords::ICMP),
        (kind, RuleWords::ICMP + 8),
    ];
    Ok([
        gathered_word(e, 0, &[(Some(packet.dst), 0), (Some(packet.src), 32)])?,
        gathered_word(e, RuleWords::GUARDS, &[(sport, 0), (dport, RuleWords::DPORT)])?,
        gathered_word(e, headers, &bits)?,
    ])
}

/// A word with the bits `bits` set that holds each value from its given bit on.
fn gathered_word(
    e: &mut Emitter<'_, '_>,
    bits: u64,
    parts: &[(Option<ValueId>, u32)],
) -> Result<Value, Error> {
    let mut word = e.imm(bits);
    for (part, from) in parts {
        let Some(part) = part else { continue };
        let value = e.low(*part)?;
        let value = e.shift_left(value, i64::from(*from));
        word = e.build.ins().bor(word, value);
    }
    Ok(word)
}

/// A word with the values one after the other, each `width` bits wide, and a set bit above the last
/// one. 0 if there are no values.
fn optional_word(
    e: &mut Emitter<'_, '_>,
    parts: Option<&[ValueId]>,
    width: i64,
) -> Result<Value, Error> {
    let Some(parts) = parts else { return Ok(e.imm(0)) };
    let mut word = e.imm(1 << (width * parts.len() as i64));
    for (index, part) in (0..).zip(parts) {
        let value = e.low(*part)?;
        let value = e.shift_left(value, width * index);
        word = e.build.ins().bor(word, value);
    }
    Ok(word)
}

/// Whether the next step counts the rule that the `Classify` at `place` finds, and the packet fits
/// into words. If so, one host call does both.
#[expect(clippy::indexing_slicing, reason = "`place` is a step of the program")]
fn is_counted(e: &Emitter<'_, '_>, place: Place) -> bool {
    let steps = &e.residual.blocks[place.block as usize].steps;
    let [first, second, ..] = &steps[place.step as usize..] else { return false };
    match (&first.what, &second.what) {
        (
            What::Classify { rule, param, packet: Some(packet), .. },
            What::CountRule { param: counted, rule: by },
        ) => {
            let same = (param, rule) == (counted, by) && first.site.node == second.site.node;
            same && has_words(e, packet)
        }
        _ => false,
    }
}

pub(super) fn count_rule(
    e: &mut Emitter<'_, '_>,
    place: Place,
    number: u32,
    rule: ValueId,
) -> Result<(), Error> {
    let before = place.step.checked_sub(1).map(|step| Place { step, ..place });
    if before.is_some_and(|before| is_counted(e, before)) {
        return Ok(());
    }
    let rule = e.low(rule)?;
    let [] = e.host_call(at::COUNT_RULE, number, &[rule]);
    Ok(())
}
