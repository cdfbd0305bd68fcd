//! The fields that records read and write, by name.
#![expect(
    clippy::indexing_slicing,
    reason = "flows are identified by fields in the first `WIDE_BYTES` bytes"
)]

use crate::bindings::{Bindings, HeaderChange};
use crate::extractors::Extractors;
use crate::guard::{Guard, Number, WIRE};
use crate::host::Programs;
use crate::key::{Bits, bits, is_key, kind_mask};
use crate::listing::Listed;
use crate::path::{Path, Subpath};
use braid_ir::model::Op;
use braid_ir::residual::{HeaderMask, What};
use braid_packet::Field;
use braid_packet::rewrite::{Follows, Outline, WIDE, WIDE_BYTES, Window, widened};
use std::fmt;

/// The sources of a path's fields: key extractors and programs.
pub(crate) type Source<'a, P> = (&'a Extractors, &'a P);

/// A condition on packets that take a record.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FlowGuard {
    /// The field, `pkt.len`, or the bytes of the packet.
    pub field: String,
    /// The bits of the number that matter. `None` if all of them matter.
    pub mask: Option<u32>,
    /// The least value.
    pub least: u32,
    /// The largest value.
    pub most: u32,
    /// The largest value that the bits can hold.
    pub all: u32,
    /// The position of the field's lowest bit in the number that the guard tests.
    pub(crate) shift: u32,
}

/// The start of packets, as far as all packets of a flow or of a path share it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedBytes {
    /// The shared bits.
    pub mask: [u8; WIDE_BYTES],
    /// The bytes. Bits that are not in the mask mean nothing.
    pub bytes: [u8; WIDE_BYTES],
}

impl fmt::Display for FlowGuard {
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

/// What a record writes.
pub(crate) struct Written {
    /// The first bytes of the record's packets after the rewrite, as far as it assigns them.
    pub(crate) head: [u8; WIDE_BYTES],
    /// The fields to which it adds amounts, with the amounts.
    pub(crate) adds: Vec<(Field, u32)>,
    /// The sums of the amounts that it adds to checksums. Amounts that differ by packet are not
    /// among them.
    pub(crate) sums: [Option<u16>; 2],
}

/// What a record writes.
pub(crate) fn final_head(
    path: &Path,
    one: &Listed,
    is_narrow: bool,
    bindings: Option<&Bindings>,
) -> Written {
    let mut written = match is_narrow {
        false => one.head,
        true => widened(&[one.head[0], one.head[1]]),
    };
    written.iter_mut().zip(path.first).for_each(|(word, first)| *word |= first);
    let last = HeaderChange { rewrite: path.rewrite, bytes: written, sums: one.sums };
    let before = bindings.into_iter().flat_map(Bindings::changes);
    let (mut head, mut sums, mut adds) = ([0; WIDE], [None; 2], Vec::new());
    for HeaderChange { rewrite, bytes, sums: added } in before.chain([&last]) {
        for ((word, keep), bytes) in head.iter_mut().zip(rewrite.keep).zip(bytes) {
            *word = *word & keep | bytes & !keep;
        }
        let new = self::bytes(bytes);
        adds.extend(rewrite.adds.iter().filter_map(|add| {
            let amount = new.get(add.from.into()..)?.get(..add.field.whole_bytes()?.into())?;
            let amount = amount.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
            Some((add.field, amount))
        }));
        for at in [0, 1].into_iter().filter(|at| rewrite.sums[*at]) {
            let (sum, carry) = added[at].overflowing_add(sums[at].unwrap_or(0));
            sums[at] = Some(sum + u16::from(carry));
        }
    }
    // An amount that changes no sum stands for one that differs by packet.
    let follows = |at: usize| {
        let of = if at == 0 { Follows::Ip } else { Follows::Transport };
        path.rewrites().any(|rewrite| rewrite.adds.iter().any(|add| add.follows == of))
    };
    for at in [0, 1].into_iter().filter(|at| follows(*at)) {
        sums[at] = sums[at].filter(|sum| *sum != u16::MAX);
    }
    Written { head: bytes(&head), adds, sums }
}

/// Fields that the functions of a path load or write, each with the headers that determine its
/// place.
fn fields<P: Programs>(
    path: &Path,
    writes_only: bool,
    (extractors, programs): Source<'_, P>,
) -> Vec<(Field, HeaderMask)> {
    let mut all = Vec::new();
    for subpath in &path.subpaths {
        let Subpath::Program(through) = subpath else { continue };
        let Some(residual) = programs.residual(through.program as usize) else { continue };
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
    let none = HeaderMask { care: 0, present: 0 };
    let shape = extractors.place(path.entry, programs).map_or(none, |(_, shape)| shape);
    let natives = path.natives().flat_map(|native| &native.writes);
    all.extend(natives.map(|field| (*field, shape)));
    all
}

/// Fields that a path writes, in their order in the packet.
pub(crate) fn written<P: Programs>(path: &Path, source: Source<'_, P>) -> Vec<(Field, Bits)> {
    let mut assigned = [0; WIDE];
    for rewrite in path.rewrites() {
        assigned.iter_mut().zip(rewrite.keep).for_each(|(word, keep)| *word |= !keep);
    }
    named(path.outline, fields(path, true, source), &bytes(&assigned))
}

/// A guard with the name of the field at its place, if a program loads such a field.
pub(crate) fn named_guard<P: Programs>(
    path: &Path,
    guard: &Guard,
    source: Source<'_, P>,
) -> FlowGuard {
    in_words(fields(path, false, source), path.outline, guard)
}

/// Fields whose bits are all in a mask, in packet order. Of overlapping fields, the list has the
/// widest.
fn named(
    outline: Outline,
    fields: Vec<(Field, HeaderMask)>,
    mask: &[u8; WIDE_BYTES],
) -> Vec<(Field, Bits)> {
    let place = |(field, shape)| Some((field, bits(shape, outline, field)?));
    let mut fields: Vec<_> = fields.into_iter().filter_map(place).collect();
    fields.sort_by_key(|(field, bits)| (u32::MAX - bits.width, bits.at, *field as u32));
    let mut left = *mask;
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

/// The link addresses of a path's packets.
pub(crate) fn link(path: &Path) -> SharedBytes {
    let window = |words: [u64; 2]| bytes(&std::array::from_fn(|at| *words.get(at).unwrap_or(&0)));
    SharedBytes { mask: window(path.link.mask), bytes: window(path.link.is) }
}

/// The bytes that a flow's packets have in common. The mask leaves out the IP version and the bits
/// that exclude fragments.
pub(crate) fn key(
    outline: Outline,
    mut mask: [u8; WIDE_BYTES],
    bytes: [u8; WIDE_BYTES],
) -> SharedBytes {
    for (at, known) in kind_mask(outline).into_iter().enumerate() {
        if at <= outline.ip || at != outline.proto() && bytes[at] & known == 0 {
            mask[at] &= !known;
        }
    }
    SharedBytes { mask, bytes }
}

/// A guard, with the name of one of these fields.
fn in_words(fields: Vec<(Field, HeaderMask)>, outline: Outline, guard: &Guard) -> FlowGuard {
    let Guard { number, least, most } = *guard;
    if number.at == WIRE {
        let field = "pkt.len".to_owned();
        return FlowGuard { field, mask: None, least, most, all: u32::MAX, shift: 0 };
    }
    let mut near: Vec<(Field, Number, u32)> = fields
        .into_iter()
        .filter(|(field, _)| !is_key(*field))
        .filter_map(|(field, shape)| {
            let bits = bits(shape, outline, field)?;
            let whole = bits.number()?;
            let same = (whole.at, whole.len) == (number.at, number.len);
            (same && number.mask & !whole.mask == 0).then_some((field, whole, bits.shift))
        })
        .collect();
    near.sort_by_key(|(field, whole, _)| (whole.mask.count_ones(), *field as u32));
    let (field, whole, shift) = match near.first() {
        Some((field, whole, shift)) => (field.info().name.to_owned(), whole.mask, *shift),
        None => (format!("bytes {}..{}", number.at, number.at + number.len), u32::MAX, 0),
    };
    FlowGuard {
        field,
        mask: (whole != number.mask).then_some(number.mask >> shift),
        least: least >> shift,
        most: most >> shift,
        all: number.mask >> shift,
        shift,
    }
}

/// The bytes of words.
pub(crate) fn bytes(window: &Window<WIDE>) -> [u8; WIDE_BYTES] {
    let mut bytes = [0; WIDE_BYTES];
    let (chunks, _) = bytes.as_chunks_mut::<8>();
    chunks.iter_mut().zip(window).for_each(|(chunk, word)| *chunk = word.to_le_bytes());
    bytes
}
