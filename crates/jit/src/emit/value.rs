//! Values, constants and memory.

use super::{Emitter, at};
use crate::error::Error;
use braid_ir::model::{ValueId, Word};
use braid_ir::show::max_of;
use braid_packet::Packet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AliasRegion, InstBuilder, MemFlagsData, Type, Value, types};
use std::mem::offset_of;

impl Emitter<'_, '_> {
    /// Whether a value is an `i128`.
    pub(super) fn is_wide(&self, value: ValueId) -> bool {
        self.bits(value) > 64
    }

    /// Bits above these are 0.
    pub(super) fn bits(&self, value: ValueId) -> u16 {
        self.facts.bits[value.index()]
    }

    /// Bits of its type.
    pub(super) fn width(&self, value: ValueId) -> u16 {
        self.residual.values[value.index()].width
    }

    fn value(&mut self, value: ValueId) -> Result<Value, Error> {
        if let Some(is) = self.facts.consts.get(value.index()).copied().flatten() {
            return Ok(self.constant(is, self.is_wide(value)));
        }
        if let Some(variable) = self.records.variables.get(&value) {
            return Ok(self.build.use_var(*variable));
        }
        self.values.get(value.index()).copied().flatten().ok_or(Error::Value(value))
    }

    /// Whether it is defined already.
    pub(super) fn is_known(&self, value: ValueId) -> bool {
        self.values[value.index()].is_some()
    }

    /// Its low 64 bits, as an `i64`.
    pub(super) fn low(&mut self, value: ValueId) -> Result<Value, Error> {
        let known = self.value(value)?;
        Ok(self.narrowed(known))
    }

    /// As an `i128`.
    pub(super) fn wide(&mut self, value: ValueId) -> Result<Value, Error> {
        let known = self.value(value)?;
        Ok(self.widened(known))
    }

    /// As an `i128` if `wide`, else its low 64 bits.
    pub(super) fn sized(&mut self, value: ValueId, wide: bool) -> Result<Value, Error> {
        if wide { self.wide(value) } else { self.low(value) }
    }

    /// Its low and high 64 bits.
    pub(super) fn halves(&mut self, value: ValueId) -> Result<(Value, Value), Error> {
        let known = self.value(value)?;
        Ok(self.split(known))
    }

    pub(super) fn split(&mut self, value: Value) -> (Value, Value) {
        if self.type_of(value) == types::I128 {
            self.build.ins().isplit(value)
        } else {
            (self.narrowed(value), self.imm(0))
        }
    }

    pub(super) fn narrowed(&mut self, value: Value) -> Value {
        let ty = self.type_of(value);
        if ty == types::I128 {
            self.build.ins().ireduce(types::I64, value)
        } else if ty == types::I64 {
            value
        } else {
            self.build.ins().uextend(types::I64, value)
        }
    }

    pub(super) fn widened(&mut self, value: Value) -> Value {
        match self.type_of(value) {
            types::I128 => value,
            _ => self.build.ins().uextend(types::I128, value),
        }
    }

    fn type_of(&self, value: Value) -> Type {
        self.build.func.dfg.value_type(value)
    }

    /// Defines a value by one that has no bits above those that it can have.
    pub(super) fn set(&mut self, out: ValueId, value: Value) {
        let wide = self.is_wide(out);
        let value = if wide { self.widened(value) } else { self.narrowed(value) };
        if let Some(variable) = self.records.variables.get(&out) {
            self.build.def_var(*variable, value);
        }
        self.values[out.index()] = Some(value);
    }

    /// A number of 64 bits.
    pub(super) fn imm(&mut self, number: u64) -> Value {
        self.build.ins().iconst(types::I64, number.cast_signed())
    }

    /// A number, as an `i128` if `wide`.
    pub(super) fn constant(&mut self, number: Word, wide: bool) -> Value {
        let low = self.imm((number & Word::from(u64::MAX)) as u64);
        if !wide {
            return low;
        }
        let high = self.imm((number >> 64) as u64);
        self.build.ins().iconcat(low, high)
    }

    /// The low bits of a value.
    pub(super) fn masked(&mut self, value: Value, width: u16) -> Value {
        let wide = self.type_of(value) == types::I128;
        if width >= if wide { 128 } else { 64 } {
            return value;
        }
        let mask = self.constant(max_of(width), wide);
        self.build.ins().band(value, mask)
    }

    /// The value, or the largest one of the width if that is less.
    pub(super) fn limited(&mut self, value: Value, width: u16) -> Value {
        let wide = self.type_of(value) == types::I128;
        if width >= if wide { 128 } else { 64 } {
            return value;
        }
        let max = self.constant(max_of(width), wide);
        self.lesser(value, max)
    }

    pub(super) fn lesser(&mut self, a: Value, b: Value) -> Value {
        if self.type_of(a) == types::I64 {
            return self.build.ins().umin(a, b);
        }
        let less = self.build.ins().icmp(IntCC::UnsignedLessThan, a, b);
        self.pick(less, a, b)
    }

    pub(super) fn greater(&mut self, a: Value, b: Value) -> Value {
        if self.type_of(a) == types::I64 {
            return self.build.ins().umax(a, b);
        }
        let less = self.build.ins().icmp(IntCC::UnsignedLessThan, a, b);
        self.pick(less, b, a)
    }

    /// One of two values of one type. Wide ones half by half: Cranelift takes some comparisons with a
    /// `select` of 128 bits for `umin` or `umax`, which it cannot generate at that width.
    pub(super) fn pick(&mut self, cond: Value, a: Value, b: Value) -> Value {
        if self.type_of(a) != types::I128 {
            return self.build.ins().select(cond, a, b);
        }
        let ((a_low, a_high), (b_low, b_high)) = (self.split(a), self.split(b));
        let low = self.build.ins().select(cond, a_low, b_low);
        let high = self.build.ins().select(cond, a_high, b_high);
        self.build.ins().iconcat(low, high)
    }

    /// Shifted left by so many bits, fewer than it has.
    pub(super) fn up(&mut self, value: Value, by: i64) -> Value {
        if by == 0 { value } else { self.build.ins().ishl_imm_u(value, by) }
    }

    /// Shifted right by so many bits, fewer than it has.
    pub(super) fn down(&mut self, value: Value, by: i64) -> Value {
        if by == 0 { value } else { self.build.ins().ushr_imm_u(value, by) }
    }

    /// Loads from an address that is valid but may not be aligned.
    pub(super) fn load(
        &mut self,
        region: AliasRegion,
        ty: Type,
        from: Value,
        offset: usize,
    ) -> Value {
        let flags = MemFlagsData::new().with_notrap().with_alias_region(Some(region));
        self.build.ins().load(ty, flags, from, displacement(offset))
    }

    /// Loads 1, 2, 4 or 8 bytes from such an address, as an `i64`.
    pub(super) fn load_bytes(
        &mut self,
        region: AliasRegion,
        bytes: usize,
        from: Value,
        offset: usize,
    ) -> Value {
        let flags = MemFlagsData::new().with_notrap().with_alias_region(Some(region));
        let offset = displacement(offset);
        match bytes {
            1 => self.build.ins().uload8(types::I64, flags, from, offset),
            2 => self.build.ins().uload16(types::I64, flags, from, offset),
            4 => self.build.ins().uload32(flags, from, offset),
            _ => self.build.ins().load(types::I64, flags, from, offset),
        }
    }

    /// Stores to such an address.
    pub(super) fn store(&mut self, region: AliasRegion, value: Value, to: Value, offset: usize) {
        let flags = MemFlagsData::new().with_notrap().with_alias_region(Some(region));
        self.build.ins().store(flags, value, to, displacement(offset));
    }

    /// Stores to the stack, or through a pointer that a host gave.
    pub(super) fn put(&mut self, value: Value, to: Value, offset: usize) {
        let flags = MemFlagsData::new().with_notrap();
        self.build.ins().store(flags, value, to, displacement(offset));
    }

    /// Loads from the stack, or through a pointer that a host gave.
    pub(super) fn take(&mut self, from: Value, offset: usize) -> Value {
        let flags = MemFlagsData::new().with_notrap();
        self.build.ins().load(types::I64, flags, from, displacement(offset))
    }

    /// A word of the frame.
    pub(super) fn framed(&mut self, offset: usize) -> Value {
        self.load(self.regions.frame, types::I64, self.frame, offset)
    }

    /// A field of the packet itself of so many bytes, as an `i64`.
    pub(super) fn kept(&mut self, offset: usize, bytes: usize) -> Value {
        let packet = self.framed(at::PACKET);
        self.load_bytes(self.regions.frame, bytes, packet, offset)
    }

    /// The packet's bytes on the wire.
    pub(super) fn wire_len(&mut self) -> Value {
        self.kept(offset_of!(Packet, wire_len), size_of::<u32>())
    }

    /// A part of the layout of so many bytes, as an `i64`.
    pub(super) fn laid_out(&mut self, offset: usize, bytes: usize) -> Value {
        let layout = self.framed(at::LAYOUT);
        self.load_bytes(self.regions.frame, bytes, layout, offset)
    }
}

/// An offset in an instruction. Those of frames, layouts, headers and tallies that fit in memory fit.
fn displacement(offset: usize) -> i32 {
    i32::try_from(offset).unwrap_or(i32::MAX)
}
