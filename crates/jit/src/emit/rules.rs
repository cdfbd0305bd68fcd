//! Rule sets.

use super::{Emitter, Place, at};
use crate::error::Error;
use crate::sys::Fields;
use braid_ir::model::ValueId;
use braid_ir::residual::{RuleFields, What};
use braid_ir::rules::RuleWords;
use cranelift_codegen::ir::{InstBuilder, Value};
use std::mem::offset_of;

impl Emitter<'_, '_> {
    pub(super) fn classify(
        &mut self,
        place: Place,
        number: u32,
        (pass, rule): (ValueId, ValueId),
        packet: &RuleFields,
    ) -> Result<(), Error> {
        if self.has_words(packet) {
            let [addrs, ports, bits] = self.words(packet)?;
            let count = self.imm(self.is_counted(place).into());
            let result = self.host_call(at::CLASSIFY4, number, &[addrs, ports, bits, count], 1)[0];
            self.flag_and_number(result, pass, rule);
            return Ok(());
        }
        let fields = self.scratch(size_of::<Fields>());
        for (value, offset) in
            [(packet.src, offset_of!(Fields, src)), (packet.dst, offset_of!(Fields, dst))]
        {
            let (low, high) = self.halves(value)?;
            self.put(low, fields, offset);
            self.put(high, fields, offset + 8);
        }
        let version = self.imm(u64::from(packet.version));
        self.put(version, fields, offset_of!(Fields, version));
        let proto = self.low(packet.proto)?;
        self.put(proto, fields, offset_of!(Fields, proto));
        let flags = packet.tcp_flags.map(|flags| [flags].to_vec());
        let pair = |pair: Option<(ValueId, ValueId)>| pair.map(|(a, b)| [a, b].to_vec());
        for (parts, width, offset) in [
            (pair(packet.ports), 16, offset_of!(Fields, ports)),
            (flags, 8, offset_of!(Fields, tcp_flags)),
            (pair(packet.icmp), 8, offset_of!(Fields, icmp)),
        ] {
            let word = self.optional(parts.as_deref(), width)?;
            self.put(word, fields, offset);
        }
        let result = self.host_call(at::CLASSIFY, number, &[fields], 1)[0];
        self.flag_and_number(result, pass, rule);
        Ok(())
    }

    /// Tells the host of a packet that will be asked for. False if it does not fit into words.
    pub(super) fn ask(&mut self, number: u32, packet: &RuleFields) -> Result<bool, Error> {
        if !self.has_words(packet) {
            return Ok(false);
        }
        let [addrs, ports, bits] = self.words(packet)?;
        self.host_call(at::ASK, number, &[addrs, ports, bits], 0);
        Ok(true)
    }

    /// Whether a packet fits into [`RuleWords`].
    fn has_words(&self, packet: &RuleFields) -> bool {
        let fits = |value: ValueId, bits: u16| self.bits(value) <= bits;
        let pair = |pair: Option<(ValueId, ValueId)>, bits: u16| {
            pair.is_none_or(|(a, b)| fits(a, bits) && fits(b, bits))
        };
        packet.version == 4
            && pair(Some((packet.src, packet.dst)), 32)
            && pair(packet.ports, 16)
            && pair(packet.icmp, 8)
            && [Some(packet.proto), packet.tcp_flags].iter().flatten().all(|byte| fits(*byte, 8))
    }

    /// As [`RuleWords`] has them.
    fn words(&mut self, packet: &RuleFields) -> Result<[Value; 3], Error> {
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
            self.gathered(0, &[(Some(packet.dst), 0), (Some(packet.src), 32)])?,
            self.gathered(RuleWords::GUARDS, &[(sport, 0), (dport, RuleWords::DPORT)])?,
            self.gathered(headers, &bits)?,
        ])
    }

    /// A word with these bits, and values from these bits on.
    fn gathered(&mut self, bits: u64, parts: &[(Option<ValueId>, u32)]) -> Result<Value, Error> {
        let mut word = self.imm(bits);
        for (part, from) in parts {
            let Some(part) = part else { continue };
            let value = self.low(*part)?;
            let value = self.up(value, i64::from(*from));
            word = self.build.ins().bor(word, value);
        }
        Ok(word)
    }

    /// Values of a width one after the other from bit 0 on, and the bit above them; 0 if there are none.
    fn optional(&mut self, parts: Option<&[ValueId]>, width: i64) -> Result<Value, Error> {
        let Some(parts) = parts else { return Ok(self.imm(0)) };
        let mut word = self.imm(1 << (width * parts.len() as i64));
        for (index, part) in (0..).zip(parts) {
            let value = self.low(*part)?;
            let value = self.up(value, width * index);
            word = self.build.ins().bor(word, value);
        }
        Ok(word)
    }

    /// Whether the rule of a `Classify` of a packet in words is counted by the step behind it.
    fn is_counted(&self, place: Place) -> bool {
        let steps = &self.residual.blocks[place.block as usize].steps;
        let [first, second, ..] = &steps[place.step as usize..] else { return false };
        match (&first.what, &second.what) {
            (
                What::Classify { rule, param, packet: Some(packet), .. },
                What::CountRule { param: counted, rule: by },
            ) => {
                let same = (param, rule) == (counted, by) && first.site.node == second.site.node;
                same && self.has_words(packet)
            }
            _ => false,
        }
    }

    pub(super) fn count_rule(
        &mut self,
        place: Place,
        number: u32,
        rule: ValueId,
    ) -> Result<(), Error> {
        let before = place.step.checked_sub(1).map(|step| Place { step, ..place });
        if before.is_some_and(|before| self.is_counted(before)) {
            return Ok(());
        }
        let rule = self.low(rule)?;
        self.host_call(at::COUNT_RULE, number, &[rule], 0);
        Ok(())
    }
}
