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
use crate::recording::WORD_BITS;
use arrayvec::ArrayVec;
use braid_ir::arith::binary;
use braid_ir::model::{BinOp, Op, Ty, ValueId, Word};
use braid_ir::residual::{Block, What};
use braid_ir::values::Values;
use braid_packet::Header;
use braid_packet::bytes::MAX_WORDS;
use braid_packet::tunnel::Envelope;

/// The contents of outer headers.
type Contents = ArrayVec<Word, MAX_WORDS>;

/// The bytes of a word.
const WORD_BYTES: usize = size_of::<Word>();

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
    let contents: Contents = words.iter().map(|word| values.get(*word)).collect();
    let mut packet = headers.origin.clone();
    for earlier in &findings.path.effects.outer {
        let layout = packet.parse();
        earlier.envelope.add(&mut packet, &layout, |_| ()).then_some(())?;
    }
    let (layout, place) = (packet.parse(), (*inner, &parts[..]));
    let around =
        |contents: &[Word]| Envelope::new(&packet, &layout, place, (*len as usize, contents));
    let all = around(&contents)?;
    let before = findings.path.effects.longer() + i64::from(headers.vlans.longer().max(0));
    let more = u32::try_from(before).ok()?.checked_add(*len)?;
    let most = u32::from(u16::MAX).checked_sub(more)?;
    findings.guards.add(Guard { number: LENGTH, least: 0, most });
    let steps = blocks.iter().flat_map(|block| &block.steps);
    let ops = steps.filter_map(|step| if let What::Op(op) = &step.what { Some(op) } else { None });
    let varying = varying(ops, values.types);
    let (stored, rest) = stored(&all, contents, (findings, headers), &varying, (values, words));
    let (parts, envelope) = (parts.clone(), around(&rest)?);
    findings.path.effects.outer.push(OuterHeaders { parts, envelope, stored });
    headers.seal();
    findings.know(values, *ok, 1);
    Some(())
}

/// Divides the contents of headers into bytes that each record stores and bytes of the template,
/// which `all` has. Returns the former, and the contents with zeros in their place. `varying`
/// holds, for each value of the program, the bits that may differ between packets. If the new bytes
/// of the rewrite have no room, all words are pinned, and the template holds them.
fn stored(
    all: &Envelope,
    contents: Contents,
    (findings, headers): (&mut Findings, &mut Headers<'_>),
    varying: &[Word],
    (values, words): (&Values<'_>, &[ValueId]),
) -> (Vec<Stored>, Contents) {
    if findings.mutants.has(RecordMutant::OuterConstant) {
        return (Vec::new(), contents);
    }
    let mut found: Vec<(Stored, ValueId, u32)> = Vec::new();
    let mut rest = contents.clone();
    for (number, (word, id)) in rest.iter_mut().zip(words).enumerate() {
        let end = WORD_BYTES * (number + 1);
        let inside = match end.saturating_sub(all.len()) {
            outside @ 0..WORD_BYTES => Word::MAX << (8 * outside),
            _ => 0,
        };
        let varies = varying.get(id.index()).copied().unwrap_or(Word::MAX);
        for (shift, len) in runs(varies & inside) {
            let at = end - (shift / 8 + len) as usize;
            let value = *word >> shift & most(8 * len);
            let is_free = all.is_free(at, len as usize);
            let from = is_free.then(|| headers.store(len as usize, value)).flatten();
            let Some(from) = from else {
                headers.forget_stored(found.len());
                words.iter().for_each(|word| findings.pin(values, *word));
                return (Vec::new(), contents);
            };
            found.push((Stored { at, from }, *id, shift));
            *word &= !(most(8 * len) << shift);
        }
    }
    for (stored, id, shift) in &found {
        findings.recording.store(stored.from, (*id, *shift), values.get(*id));
    }
    (found.into_iter().map(|(stored, ..)| stored).collect(), rest)
}

/// The largest number of this many bits.
fn most(bits: u32) -> Word {
    Word::MAX >> (Word::BITS - bits)
}

/// The runs of bytes in which bits of a word are set: the number of bits below each run, and its
/// length in bytes.
fn runs(word: Word) -> impl Iterator<Item = (u32, u32)> {
    let is_set = move |byte: u32| word >> (8 * byte) & 0xff != 0;
    (0..Word::BITS / 8).filter(move |byte| is_set(*byte) && (*byte == 0 || !is_set(byte - 1))).map(
        move |byte| {
            let end = (byte..Word::BITS / 8).find(|one| !is_set(*one)).unwrap_or(Word::BITS / 8);
            (8 * byte, end - byte)
        },
    )
}

/// For each value of a program with these operations, the bits that may differ between two packets.
/// All others follow from constants of the program.
fn varying<'a>(ops: impl Iterator<Item = &'a Op>, types: &[Ty]) -> Vec<Word> {
    let mut varies: Vec<Word> = types.iter().map(|ty| ty.max()).collect();
    let mut constants: Vec<Option<Word>> = vec![None; types.len()];
    for op in ops {
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
            // If no bit above the limit varies, all values are too large, or none is.
            Op::Clamp { out, a } => (out, if of(a) <= of(out) { of(a) } else { Word::MAX }),
            Op::Bin { out, op: BinOp::Or | BinOp::Xor, a, b } => (out, of(a) | of(b)),
            Op::Bin { out, op: BinOp::And, a, b } => {
                let may = |one, other| of(one) & known(other).unwrap_or(Word::MAX);
                (out, may(a, b) | may(b, a))
            }
            Op::Bin { out, op: op @ (BinOp::Shl | BinOp::Shr), a, b } => {
                let shifted = known(b).and_then(|by| binary(op, WORD_BITS, of(a), by).ok());
                (out, shifted.unwrap_or(Word::MAX))
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
    use braid_packet::Field;

    #[test]
    fn bits_that_follow_from_constants_do_not_vary() {
        let [port, mask, base, low, sum, wide, by, up, down, other] =
            std::array::from_fn(|at| ValueId(at as u32));
        let bin = |out, op, a, b| Op::Bin { out, op, a, b };
        let ops = [
            Op::Load { out: port, field: Field::L4Sport },
            Op::Const { out: mask, value: 0x3fff },
            Op::Const { out: base, value: 0xc000 },
            bin(low, BinOp::And, port, mask),
            bin(sum, BinOp::Or, low, base),
            Op::Resize { out: wide, a: sum },
            Op::Const { out: by, value: 96 },
            bin(up, BinOp::Shl, wide, by),
            bin(down, BinOp::Shr, up, by),
            bin(other, BinOp::AddWrap, low, base),
        ];
        let (port, word) = (Ty::uint(16), Ty::uint(128));
        let types = [port, port, port, port, port, word, word, word, word, port];
        let expected = [0xffff, 0, 0, 0x3fff, 0x3fff, 0x3fff, 0, 0x3fff << 96, 0x3fff, 0xffff];
        assert_eq!(varying(ops.iter(), &types), expected);
    }

    #[test]
    fn limit_keeps_constant_bits_where_it_cannot_depend_on_the_others() {
        let [port, mask, low, few, all] = std::array::from_fn(|at| ValueId(at as u32));
        let ops = [
            Op::Load { out: port, field: Field::L4Sport },
            Op::Const { out: mask, value: 0xf0 },
            Op::Bin { out: low, op: BinOp::And, a: port, b: mask },
            Op::Clamp { out: few, a: low },
            Op::Clamp { out: all, a: port },
        ];
        let (port, byte) = (Ty::uint(16), Ty::uint(8));
        let types = [port, port, port, byte, byte];
        assert_eq!(varying(ops.iter(), &types), [0xffff, 0, 0xf0, 0xf0, 0xff]);
    }

    #[test]
    fn runs_are_whole_bytes() {
        let word = 0x0001_0000_ff80_0000_u128 | 1 << 127;
        assert_eq!(runs(word).collect::<Vec<_>>(), [(16, 2), (48, 1), (120, 1)]);
        assert_eq!(runs(Word::MAX).collect::<Vec<_>>(), [(0, 16)]);
        assert_eq!(runs(0).count(), 0);
    }
}
