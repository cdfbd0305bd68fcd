//! Keys of tables: parts of any width, packed into words.

use super::Emitter;
use crate::error::Error;
use braid_ir::model::ValueId;
use cranelift_codegen::ir::{InstBuilder, Value};

impl Emitter<'_, '_> {
    /// Writes a key to the stack.
    pub(super) fn key(&mut self, words: &[Value]) -> Value {
        let key = self.scratch(words.len() * 8);
        for (index, word) in words.iter().enumerate() {
            self.put(*word, key, index * 8);
        }
        key
    }

    /// The words of a key.
    pub(super) fn key_words(&mut self, parts: &[ValueId]) -> Result<Vec<Value>, Error> {
        let width: usize = parts.iter().map(|part| usize::from(self.width(*part))).sum();
        let words = width.div_ceil(64);
        let mut packed: Vec<Option<Value>> = vec![None; words];
        let mut at = 0;
        for part in parts {
            let (low, high) = self.halves(*part)?;
            let bits = usize::from(self.bits(*part));
            self.lay(&mut packed, at, low, bits.min(64));
            if bits > 64 {
                self.lay(&mut packed, at + 64, high, bits - 64);
            }
            at += usize::from(self.width(*part));
        }
        Ok(packed.into_iter().map(|word| word.unwrap_or_else(|| self.imm(0))).collect())
    }

    /// Adds a value of so many bits (at most 64) from bit `at` on.
    fn lay(&mut self, packed: &mut [Option<Value>], at: usize, value: Value, bits: usize) {
        let (word, shift) = (at / 64, at % 64);
        let low = self.up(value, shift as i64);
        self.merge(&mut packed[word], low);
        if shift + bits > 64 {
            let high = self.down(value, (64 - shift) as i64);
            self.merge(&mut packed[word + 1], high);
        }
    }

    fn merge(&mut self, word: &mut Option<Value>, more: Value) {
        *word = Some(match *word {
            None => more,
            Some(word) => self.build.ins().bor(word, more),
        });
    }
}
