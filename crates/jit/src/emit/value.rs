//! Values, constants and memory.

use super::emitter::{Emitter, at};
use crate::error::Error;
use braid_ir::model::{ValueId, Word};
use braid_ir::show::max_of;
use braid_packet::Packet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AliasRegion, InstBuilder, MemFlagsData, Type, Value, types};
use std::mem::offset_of;

#[expect(clippy::indexing_slicing, reason = "`Facts` has checked the values that are used")]
impl Emitter<'_, '_> {
    /// Whether a value is an `i128`.
    pub(super) fn is_wide(&self, value: ValueId) -> bool {
        self.bits(value) > 64
    }

    /// The significant bits of a value: all bits above them are 0.
    pub(super) fn bits(&self, value: ValueId) -> u16 {
        self.facts.bits[value.index()]
    }

    /// The width of a value's type.
    pub(super) fn width(&self, value: ValueId) -> u16 {
        self.residual.values[value.index()].width
    }

    /// The value, if it is a constant.
    pub(super) fn constant_of(&self, value: ValueId) -> Option<Word> {
        self.facts.consts[value.index()]
    }

    /// The largest number of words that the program reads from an entry.
    pub(super) fn words(&self, entry: ValueId) -> u32 {
        self.facts.words[entry.index()]
    }

    fn value(&mut self, value: ValueId) -> Result<Value, Error> {
        if let Some(is) = self.facts.consts.get(value.index()).copied().flatten() {
            return Ok(self.constant(is, self.is_wide(value)));
        }
        if let Some(variable) = self.outcomes.variables.get(&value) {
            return Ok(self.build.use_var(*variable));
        }
        self.values.get(value.index()).copied().flatten().ok_or(Error::Value(value))
    }

    /// Whether a value is already defined.
    pub(super) fn is_known(&self, value: ValueId) -> bool {
        self.values[value.index()].is_some()
    }

    /// The low 64 bits of a value, as an `i64`.
    pub(super) fn low(&mut self, value: ValueId) -> Result<Value, Error> {
        let known = self.value(value)?;
        Ok(self.narrowed(known))
    }

    /// A value as an `i128`.
    pub(super) fn wide(&mut self, value: ValueId) -> Result<Value, Error> {
        let known = self.value(value)?;
        Ok(self.widened(known))
    }

    /// A value as an `i128` if `wide`, else its low 64 bits.
    pub(super) fn sized(&mut self, value: ValueId, wide: bool) -> Result<Value, Error> {
        if wide { self.wide(value) } else { self.low(value) }
    }

    /// The low and the high 64 bits of a value, each as an `i64`.
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

    /// Defines a value. All bits of `value` above the significant ones must be 0.
    pub(super) fn set(&mut self, out: ValueId, value: Value) {
        let wide = self.is_wide(out);
        let value = if wide { self.widened(value) } else { self.narrowed(value) };
        if let Some(variable) = self.outcomes.variables.get(&out) {
            self.build.def_var(*variable, value);
        }
        self.values[out.index()] = Some(value);
    }

    /// An `i64` constant.
    pub(super) fn imm(&mut self, number: u64) -> Value {
        self.build.ins().iconst(types::I64, number.cast_signed())
    }

    /// A constant, as an `i128` if `wide`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the cast keeps the low half, and the high half is a constant of its own"
    )]
    pub(super) fn constant(&mut self, number: Word, wide: bool) -> Value {
        let low = self.imm((number & Word::from(u64::MAX)) as u64);
        if !wide {
            return low;
        }
        let high = self.imm((number >> 64) as u64);
        self.build.ins().iconcat(low, high)
    }

    /// The low `width` bits of a value.
    pub(super) fn masked(&mut self, value: Value, width: u16) -> Value {
        let wide = self.type_of(value) == types::I128;
        if width >= if wide { 128 } else { 64 } {
            return value;
        }
        let mask = self.constant(max_of(width), wide);
        self.build.ins().band(value, mask)
    }

    /// The value, limited to the largest value of `width` bits.
    pub(super) fn limited(&mut self, value: Value, width: u16) -> Value {
        let wide = self.type_of(value) == types::I128;
        if width >= if wide { 128 } else { 64 } {
            return value;
        }
        let max = self.constant(max_of(width), wide);
        self.min(value, max)
    }

    pub(super) fn min(&mut self, a: Value, b: Value) -> Value {
        if self.type_of(a) == types::I64 {
            return self.build.ins().umin(a, b);
        }
        let less = self.build.ins().icmp(IntCC::UnsignedLessThan, a, b);
        self.pick(less, a, b)
    }

    pub(super) fn max(&mut self, a: Value, b: Value) -> Value {
        if self.type_of(a) == types::I64 {
            return self.build.ins().umax(a, b);
        }
        let less = self.build.ins().icmp(IntCC::UnsignedLessThan, a, b);
        self.pick(less, b, a)
    }

    /// Selects one of two values of the same type. Wide values are selected half by half, because
    /// Cranelift turns some comparisons with a 128-bit `select` into `umin` or `umax`, for which it
    /// generates no code at that width.
    pub(super) fn pick(&mut self, cond: Value, a: Value, b: Value) -> Value {
        if self.type_of(a) != types::I128 {
            return self.build.ins().select(cond, a, b);
        }
        let ((a_low, a_high), (b_low, b_high)) = (self.split(a), self.split(b));
        let low = self.build.ins().select(cond, a_low, b_low);
        let high = self.build.ins().select(cond, a_high, b_high);
        self.build.ins().iconcat(low, high)
    }

    /// Shifts a value left by fewer bits than it has.
    pub(super) fn shift_left(&mut self, value: Value, by: i64) -> Value {
        if by == 0 { value } else { self.build.ins().ishl_imm_u(value, by) }
    }

    /// Shifts a value right by fewer bits than it has.
    pub(super) fn shift_right(&mut self, value: Value, by: i64) -> Value {
        if by == 0 { value } else { self.build.ins().ushr_imm_u(value, by) }
    }

    /// Loads from an address that is valid but may be unaligned.
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

    /// Stores to an address that is valid but may be unaligned.
    pub(super) fn store(&mut self, region: AliasRegion, value: Value, to: Value, offset: usize) {
        let flags = MemFlagsData::new().with_notrap().with_alias_region(Some(region));
        self.build.ins().store(flags, value, to, displacement(offset));
    }

    /// Stores a word to the stack, or through a pointer from the host.
    pub(super) fn store_word(&mut self, value: Value, to: Value, offset: usize) {
        let flags = MemFlagsData::new().with_notrap();
        self.build.ins().store(flags, value, to, displacement(offset));
    }

    /// Loads a word from the stack, or through a pointer from the host.
    pub(super) fn load_word(&mut self, from: Value, offset: usize) -> Value {
        let flags = MemFlagsData::new().with_notrap();
        self.build.ins().load(types::I64, flags, from, displacement(offset))
    }

    /// Loads a word of the frame.
    pub(super) fn frame_word(&mut self, offset: usize) -> Value {
        self.load(self.memories.frame, types::I64, self.frame, offset)
    }

    /// Loads `bytes` bytes of the packet's metadata, as an `i64`.
    pub(super) fn packet_part(&mut self, offset: usize, bytes: usize) -> Value {
        let packet = self.frame_word(at::PACKET);
        self.load_bytes(self.memories.frame, bytes, packet, offset)
    }

    /// The packet's length on the wire.
    pub(super) fn wire_len(&mut self) -> Value {
        self.packet_part(offset_of!(Packet, wire_len), size_of::<u32>())
    }

    /// Loads `bytes` bytes of the layout, as an `i64`.
    pub(super) fn layout_part(&mut self, offset: usize, bytes: usize) -> Value {
        let layout = self.frame_word(at::LAYOUT);
        self.load_bytes(self.memories.frame, bytes, layout, offset)
    }
}

/// An offset as an instruction holds it. Offsets in frames, layouts, headers and counters fit,
/// because these structures are small.
fn displacement(offset: usize) -> i32 {
    i32::try_from(offset).unwrap_or(i32::MAX)
}
