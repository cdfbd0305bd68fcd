//! Checks the operations that look strings up.

use super::place::Problem;
use super::types::{Checked, OpCheck};
use crate::model::{Association, Haystack, KeyRef, MAX_STRING_WORDS, Op, ParamTy, ValueId};

impl OpCheck<'_> {
    /// Checks a search for the place of a pattern, or the lookup of a string.
    pub(super) fn strings(&self, op: &Op) -> Checked {
        match op {
            Op::FindPatterns { outs, param, of } => {
                self.kind(*param, "patterns", |ty| *ty == ParamTy::Patterns)?;
                self.widths("results", outs, &[1, 32, 32, 32])?;
                match of {
                    Haystack::Payload => Ok(()),
                    Haystack::Part(first, last) => {
                        self.widths("places", &[*first, *last], &[32, 32])
                    }
                    Haystack::Text(len, words) => self.string(*len, words),
                }
            }
            Op::InStrings { out, param, len, words } => {
                let is = |ty: &ParamTy| matches!(ty, ParamTy::Strings(_) | ParamTy::Hosts);
                self.kind(*param, "a set of strings", is)?;
                self.width(*out, 1)?;
                self.string(*len, words)
            }
            _ => Ok(()),
        }
    }

    /// Checks a string, which has a word at least.
    fn string(&self, len: ValueId, words: &[ValueId]) -> Checked {
        self.width(len, 8)?;
        if words.is_empty() {
            return Err(Problem::Words(0));
        }
        self.words(words)
    }

    /// Checks the reference to a key.
    pub(super) fn cipher_key(&self, key: KeyRef) -> Checked {
        self.kind(key.keys, "keys", |ty| *ty == ParamTy::Keys)?;
        self.width(key.number, 32)
    }

    /// Checks what both ends of a tunnel know of a packet.
    pub(super) fn association(&self, association: Association) -> Checked {
        self.cipher_key(association.key)?;
        association.high.map_or(Ok(()), |high| self.width(high, 32))
    }

    /// Checks the words of a string.
    pub(super) fn words(&self, words: &[ValueId]) -> Checked {
        if words.len() > MAX_STRING_WORDS {
            return Err(Problem::Words(words.len()));
        }
        words.iter().try_for_each(|word| self.width(*word, 128))
    }
}

#[cfg(test)]
mod tests {
    use crate::text::parse;
    use crate::verify::verify;

    #[test]
    fn sets_of_strings_have_a_type_and_fit_it() {
        let errors = |param: &str| -> Vec<String> {
            let rest = "row \"body\" row \"fault\" packet { b0: output onward at row0 }";
            let model = parse(&format!("model m {{ param {param} {rest} }}")).expect("a model");
            verify(&model).err().unwrap_or_default().iter().map(ToString::to_string).collect()
        };
        assert_eq!(errors("a: strings<24>"), ["param0: the type strings<24> does not exist"]);
        assert_eq!(errors("a: strings<256>"), ["param0: the type strings<256> does not exist"]);
        assert_eq!(
            errors("a: strings<16> = strings {\"12345678901234567\"}"),
            ["param0: its default: a string of 17 bytes is no bytes<16>"]
        );
        assert_eq!(
            errors("a: hosts = strings {\"a\"}"),
            ["param0: its default: a value of another type"]
        );
        assert!(errors("a: hosts = hosts {\"*.a\"}").is_empty());
        assert!(errors("a: strings<240> = strings {\"*.a\", \"\"}").is_empty());
    }
}
