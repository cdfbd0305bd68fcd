//! The fields at the places where records test and write bits.

use std::fmt;

use braid_engine::{FlowTemplate, Guard, Number, WIRE};
use braid_ir::model::Op;
use braid_ir::residual::{HeaderMask, What};
use braid_packet::rewrite::{WIDE, WIDE_BYTES};
use braid_packet::{Bits, Field};

/// A condition on packets that take a record.
pub struct Condition {
    /// The field, `pkt.len`, or the bytes of the packet.
    pub field: String,
    /// The bits of the number that matter. `None` if all of them matter.
    pub mask: Option<u32>,
    pub least: u32,
    pub most: u32,
    /// The largest value that the bits can hold.
    all: u32,
    /// The position of the field's lowest bit in the number that the guard tests.
    shift: u32,
}

impl Condition {
    /// A number that the guard has tested, as the value of the field.
    pub fn show(&self, number: u32) -> String {
        let value = number >> self.shift;
        if self.mask.is_some() { format!("{value:#x}") } else { value.to_string() }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, mask, least, most, all, .. } = self;
        f.write_str(field)?;
        if let Some(mask) = mask {
            write!(f, " & {mask:#x}")?;
            return match least == most {
                true => write!(f, " == {least:#x}"),
                false => write!(f, " in {least:#x}..{most:#x}"),
            };
        }
        match (least, most) {
            (least, most) if least == most => write!(f, " == {least}"),
            (0, most) => write!(f, " <= {most}"),
            (least, most) if most >= all => write!(f, " >= {least}"),
            (least, most) => write!(f, " in {least}..{most}"),
        }
    }
}

/// Fields that the functions of a template's path load or write, each with the headers that
/// determine its place.
fn fields(template: &FlowTemplate, writes_only: bool) -> Vec<(Field, HeaderMask)> {
    let mut all = Vec::new();
    for residual in &template.programs {
        for step in residual.blocks.iter().flat_map(|block| &block.steps) {
            match &step.what {
                What::Op(Op::Load { field, .. }) if !writes_only => {
                    all.push((*field, residual.shape));
                }
                What::Write(fields) => {
                    all.extend(fields.iter().map(|(field, _)| (*field, residual.shape)));
                }
                _ => {}
            }
        }
    }
    let natives = template.path.natives().flat_map(|native| &native.writes);
    all.extend(natives.map(|field| (*field, template.shape)));
    all
}

/// A guard, with the name of the field at its place, if a program loads such a field. It may be
/// about the outer headers of a tunnel that ends on the path.
pub fn condition(template: &FlowTemplate, guard: &Guard, is_outer: bool) -> Condition {
    let Guard { number, least, most } = *guard;
    if number.at == WIRE {
        let field = if is_outer { "outer pkt.len" } else { "pkt.len" }.to_owned();
        return Condition { field, mask: None, least, most, all: u32::MAX, shift: 0 };
    }
    let outline = match template.path.outer_outline() {
        Some(outline) if is_outer => outline,
        _ => template.path.outline,
    };
    let mut near: Vec<(Field, Number, u32)> = fields(template, false)
        .into_iter()
        .filter(|(field, _)| !field.info().is_flow)
        .filter_map(|(field, shape)| {
            let bits = Bits::of(field, outline, &|header| shape.has(header))?;
            let whole = Number::of_bits(bits)?;
            let same = (whole.at, whole.len) == (number.at, number.len);
            (same && number.mask & !whole.mask == 0).then_some((field, whole, bits.shift))
        })
        .collect();
    near.sort_by_key(|(field, whole, _)| (whole.mask.count_ones(), *field as u32));
    let (field, whole, shift) = match near.first() {
        Some((field, whole, shift)) => (field.info().name.to_owned(), whole.mask, *shift),
        None => (format!("bytes {}..{}", number.at, number.at + number.len), u32::MAX, 0),
    };
    Condition {
        field: if is_outer { format!("outer {field}") } else { field },
        mask: (whole != number.mask).then_some(number.mask >> shift),
        least: least >> shift,
        most: most >> shift,
        all: number.mask >> shift,
        shift,
    }
}

/// Fields that a template's records write, in packet order. Of overlapping fields, the list has the
/// widest.
pub fn written(template: &FlowTemplate) -> Vec<(Field, Bits)> {
    let mut left = [0; WIDE_BYTES];
    for rewrite in template.path.rewrites() {
        let (words, _) = left.as_chunks_mut::<8>();
        for (bytes, keep) in words.iter_mut().zip::<[u64; WIDE]>(rewrite.keep) {
            *bytes = (u64::from_le_bytes(*bytes) | !keep).to_le_bytes();
        }
    }
    let place = |(field, shape): (Field, HeaderMask)| {
        Some((field, Bits::of(field, template.path.outline, &|header| shape.has(header))?))
    };
    let mut fields: Vec<_> = fields(template, true).into_iter().filter_map(place).collect();
    fields.sort_by_key(|(field, bits)| (u32::MAX - bits.width, bits.at, *field as u32));
    let mut found = Vec::new();
    for (field, bits) in fields {
        let mut own = [0; WIDE_BYTES];
        bits.set(&mut own, u128::MAX);
        if own.iter().zip(&left).all(|(own, left)| own & !left == 0) {
            left.iter_mut().zip(own).for_each(|(left, own)| *left &= !own);
            found.push((field, bits));
        }
    }
    found.sort_by_key(|(_, bits)| (bits.at, u32::MAX - bits.shift));
    found
}
