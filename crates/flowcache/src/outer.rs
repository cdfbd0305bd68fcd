//! Outer headers that a record adds. They are the last change of the packet on a path: nothing is
//! known of the packet behind them.
//!
//! The flows of a path mostly have different bytes there: a source port that comes from a hash, or
//! the address of the tunnel's other end. Each record stores these bytes among the new bytes of its
//! rewrite. The other bytes belong to the record template.

use crate::effects::{OuterHeaders, Stored};
use crate::findings::Findings;
use crate::guard::Guard;
use crate::headers::Headers;
use crate::key::LENGTH;
use crate::mutants::RecordMutant;
use arrayvec::ArrayVec;
use braid_ir::model::{BinOp, Op, Ty, ValueId, Word};
use braid_ir::residual::{Block, What};
use braid_ir::values::Values;
use braid_packet::Header;
use braid_packet::bytes::MAX_WORDS;
use braid_packet::tunnel::encapsulate;

/// The number of bits of a word of headers.
const BITS: u32 = Word::BITS;

/// Adds outer headers to the path. `None` if some packet of the record could not take them, or if a
/// checksum would cover bytes of the packet. A guard bounds the packets' length.
pub(crate) fn add(
    findings: &mut Findings,
    headers: &mut Headers<'_>,
    blocks: &[Block],
    values: &mut Values<'_>,
    op: &Op,
) -> Option<()> {
    // Each encrypted packet has a number of its own.
    let Op::Encapsulate { ok, inner, parts, len, words, seal: None } = op else { return None };
    if words.len() > MAX_WORDS || parts.contains(&Header::Ip6) && parts.contains(&Header::Udp) {
        return None;
    }
    for word in words {
        findings.fix(values, *word)?;
    }
    // The packets of a record have the same headers in front, so this succeeds for all or for none,
    // apart from their length.
    let mut trial = headers.origin.clone();
    let contents: ArrayVec<Word, MAX_WORDS> = words.iter().map(|word| values.get(*word)).collect();
    let place = (*inner, parts.as_slice());
    let done = encapsulate(&mut trial, headers.layout, place, (*len as usize, &contents), None);
    if done != Ok(true) {
        return None;
    }
    let before = findings.path.effects.longer() + i64::from(headers.vlans.longer().max(0));
    let more = u32::try_from(before).ok()?.checked_add(*len)?;
    let most = u32::from(u16::MAX).checked_sub(more)?;
    findings.guards.add(Guard { number: LENGTH, least: 0, most });
    let outer = OuterHeaders {
        inner: *inner,
        parts: parts.clone(),
        len: *len as usize,
        words: contents.to_vec(),
        stored: Vec::new(),
    };
    let outer = stored(outer, findings, headers, &varying(blocks, values.types), (values, words));
    findings.path.effects.outer.push(outer);
    headers.seal();
    findings.know(values, *ok, 1);
    Some(())
}

/// Divides the contents of headers into bytes that each record stores and bytes of the template.
/// `varying` is as in [`varying`]. A word whose bytes find no room among the new bytes of the
/// rewrite is pinned.
fn stored(
    mut outer: OuterHeaders,
    findings: &mut Findings,
    headers: &mut Headers<'_>,
    varying: &[Word],
    (values, words): (&Values<'_>, &[ValueId]),
) -> OuterHeaders {
    let is_constant = findings.mutants.has(RecordMutant::OuterConstant);
    for (number, (word, id)) in outer.words.iter_mut().zip(words).enumerate() {
        let varies = match is_constant {
            true => 0,
            false => varying.get(id.index()).copied().unwrap_or(Word::MAX),
        };
        for (shift, bytes) in runs(varies) {
            let most = Word::MAX >> (BITS - 8 * bytes);
            let Some(from) = headers.store(bytes as usize, *word >> shift & most) else {
                findings.pin(values, *id);
                break;
            };
            findings.recording.store(from, (*id, shift), values.get(*id));
            outer.stored.push(Stored { word: number, shift, from });
            *word &= !(most << shift);
        }
    }
    outer
}

/// The runs of bytes in which bits of a word are set: the number of bits below each run, and its
/// length in bytes.
fn runs(word: Word) -> impl Iterator<Item = (u32, u32)> {
    let is_set = move |byte: u32| word >> (8 * byte) & 0xff != 0;
    (0..BITS / 8).filter(move |byte| is_set(*byte) && (*byte == 0 || !is_set(byte - 1))).map(
        move |byte| {
            let end = (byte..BITS / 8).find(|one| !is_set(*one)).unwrap_or(BITS / 8);
            (8 * byte, end - byte)
        },
    )
}

/// For each value of a program, the bits that may differ between two packets. All others follow
/// from constants of the program.
fn varying(blocks: &[Block], types: &[Ty]) -> Vec<Word> {
    let mut varies: Vec<Word> = types.iter().map(|ty| ty.max()).collect();
    let mut constants: Vec<Option<Word>> = vec![None; types.len()];
    let steps = blocks.iter().flat_map(|block| &block.steps);
    for op in steps.filter_map(|step| if let What::Op(op) = &step.what { Some(op) } else { None }) {
        let of = |id: ValueId| varies.get(id.index()).copied().unwrap_or(Word::MAX);
        let known = |id: ValueId| constants.get(id.index()).copied().flatten();
        let (out, bits) = match *op {
            Op::Const { out, value } => {
                if let Some(constant) = constants.get_mut(out.index()) {
                    *constant = Some(value);
                }
                (out, 0)
            }
            Op::Resize { out, a } => (out, of(a)),
            Op::Bin { out, op: BinOp::Or | BinOp::Xor, a, b } => (out, of(a) | of(b)),
            Op::Bin { out, op: BinOp::And, a, b } => {
                let may = |one, other| of(one) & known(other).unwrap_or(Word::MAX);
                (out, may(a, b) | may(b, a))
            }
            Op::Bin { out, op: BinOp::Shl, a, b } => {
                let by = known(b).and_then(|by| u32::try_from(by).ok());
                (out, by.map_or(Word::MAX, |by| of(a).checked_shl(by).unwrap_or(0)))
            }
            Op::Bin { out, op: BinOp::Shr, a, b } => {
                let by = known(b).and_then(|by| u32::try_from(by).ok());
                (out, by.map_or(Word::MAX, |by| of(a).checked_shr(by).unwrap_or(0)))
            }
            _ => continue,
        };
        if let Some(varies) = varies.get_mut(out.index()) {
            *varies &= bits;
        }
    }
    varies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_whole_bytes() {
        let word = 0x0001_0000_ff80_0000_u128 | 1 << 127;
        assert_eq!(runs(word).collect::<Vec<_>>(), [(16, 2), (48, 1), (120, 1)]);
        assert_eq!(runs(Word::MAX).collect::<Vec<_>>(), [(0, 16)]);
        assert_eq!(runs(0).count(), 0);
    }
}
