//! Random operations on outer headers, and on what is encrypted.

use super::Maker;
use braid_ir::model::*;

impl Maker {
    /// One of the kinds from 19 to 23.
    pub(super) fn outer_op(&mut self, kind: usize, a: ValueId) -> Op {
        match kind {
            19 => {
                let words = vec![a; self.below(3)];
                let (inner, parts) = (self.inner(), vec![self.header(), self.header()]);
                let (ok, seal) = (self.out(), self.association(a).map(|of| (of, a)));
                Op::Encapsulate { ok, inner, parts, len: 3, words, seal }
            }
            20 => {
                let (ok, inner, last) = (self.out(), self.inner(), self.header());
                Op::Decapsulate { ok, inner, last, offset: a, association: self.association(a) }
            }
            21 => Op::Encrypt { ok: self.out(), key: self.cipher_key(a), number: a, offset: a },
            22 => Op::Decrypt { ok: self.out(), key: self.cipher_key(a), offset: a },
            _ => self.translation(a),
        }
    }

    fn cipher_key(&mut self, number: ValueId) -> KeyRef {
        KeyRef { keys: self.param_id(), number }
    }

    fn association(&mut self, a: ValueId) -> Option<Association> {
        let high = self.coin().then_some(a);
        self.coin().then(|| Association { key: self.cipher_key(a), high })
    }

    fn translation(&mut self, a: ValueId) -> Op {
        let to = self.pick(&[Version::Ip4, Version::Ip6]);
        Op::Translate { ok: self.out(), to, own: [a, a], quoted: self.coin().then_some([a, a]) }
    }
}
