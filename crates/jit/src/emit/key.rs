//! Keys of tables: fields of any width, packed into words.

use super::emitter::Emitter;
use crate::error::Error;
use braid_ir::model::ValueId;
use cranelift_codegen::ir::{InstBuilder, Value};

/// Writes a key to the stack.
pub(super) fn store_key(e: &mut Emitter<'_, '_>, words: &[Value]) -> Value {
    let key = e.scratch(words.len() * 8);
    for (index, word) in words.iter().enumerate() {
        e.store_word(*word, key, index * 8);
    }
    key
}

/// The words of a key.
pub(super) fn key_words(e: &mut Emitter<'_, '_>, parts: &[ValueId]) -> Result<Vec<Value>, Error> {
    let width: usize = parts.iter().map(|part| usize::from(e.width(*part))).sum();
    let words = width.div_ceil(64);
    let mut packed: Vec<Option<Value>> = vec![None; words];
    let mut at = 0;
    for part in parts {
        let (low, high) = e.halves(*part)?;
        let bits = usize::from(e.bits(*part));
        pack(e, &mut packed, at, low, bits.min(64));
        if bits > 64 {
            pack(e, &mut packed, at + 64, high, bits - 64);
        }
        at += usize::from(e.width(*part));
    }
    Ok(packed.into_iter().map(|word| word.unwrap_or_else(|| e.imm(0))).collect())
}

/// Adds a value of `bits` bits (at most 64) to the words, from bit `at` on.
#[expect(clippy::indexing_slicing, reason = "the caller has made room for the widths of all parts")]
fn pack(
    e: &mut Emitter<'_, '_>,
    packed: &mut [Option<Value>],
    at: usize,
    value: Value,
    bits: usize,
) {
    let (word, shift) = (at / 64, at % 64);
    let low = e.shift_left(value, shift as i64);
    merge(e, &mut packed[word], low);
    if shift + bits > 64 {
        let high = e.shift_right(value, (64 - shift) as i64);
        merge(e, &mut packed[word + 1], high);
    }
}

fn merge(e: &mut Emitter<'_, '_>, word: &mut Option<Value>, more: Value) {
    *word = Some(match *word {
        None => more,
        Some(word) => e.build.ins().bor(word, more),
    });
}
