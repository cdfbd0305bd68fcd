//! The keys of a file, by number.

use crate::cipher::{CIPHERS, Key};
use std::collections::BTreeMap;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Keys by number, such as the security parameters index of ESP.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Keys(Arc<BTreeMap<u32, Key>>);

/// The part that a line of keys lacks. It shows nothing of the key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyError {
    /// The line has not three words.
    #[error("`NUMBER CIPHER KEY`")]
    Words,
    /// The first word is no number.
    #[error("a number of 32 bits, such as 4097 or 0x1001")]
    Number,
    /// Another line has this number.
    #[error("a number that no other line has")]
    Twice,
    /// There is no such cipher.
    #[error("one of the ciphers {}", names())]
    Cipher,
    /// The key has another length, or other characters than digits.
    #[error("a key of {0} bytes as hexadecimal digits")]
    Key(usize),
}

fn names() -> String {
    CIPHERS.map(|(name, _)| name).join(", ")
}

impl Keys {
    /// The key with this number.
    #[must_use]
    pub fn get(&self, number: u128) -> Option<&Key> {
        u32::try_from(number).ok().and_then(|number| self.0.get(&number))
    }

    /// The keys' numbers, in ascending order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.keys().copied()
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the key in a line: its number, its cipher, its bytes in hexadecimal digits.
    ///
    /// # Errors
    /// The reason why the line is no key.
    pub fn add(&mut self, line: &str) -> Result<(), KeyError> {
        let mut words = line.split_ascii_whitespace();
        let (Some(number), Some(cipher), Some(digits), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(KeyError::Words);
        };
        let parsed = match number.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        let number = parsed.map_err(|_| KeyError::Number)?;
        let found = CIPHERS.iter().find(|(name, _)| *name == cipher);
        let (_, len) = *found.ok_or(KeyError::Cipher)?;
        let key = bytes(digits.strip_prefix("0x").unwrap_or(digits));
        let key = key.and_then(|key| Key::new(cipher, key)).ok_or(KeyError::Key(len))?;
        if self.0.contains_key(&number) {
            return Err(KeyError::Twice);
        }
        Arc::make_mut(&mut self.0).insert(number, key);
        Ok(())
    }
}

/// The bytes of hexadecimal digits.
fn bytes(digits: &str) -> Option<Zeroizing<Vec<u8>>> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    let mut bytes = Zeroizing::new(Vec::with_capacity(pairs.len()));
    for pair in pairs {
        let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
        bytes.push(u8::try_from(16 * high? + low?).ok()?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_a_number_a_cipher_and_a_key() {
        let mut keys = Keys::default();
        let digits = "0123456789abcdefABCDEF0123456789aabbccdd";
        assert_eq!(keys.add(&format!(" 0x10  aes-128-gcm\t{digits}")), Ok(()));
        assert_eq!(keys.add(&format!("17 aes-128-gcm 0x{digits}")), Ok(()));
        assert_eq!(keys.len(), 2);
        assert_eq!(keys.get(16), keys.get(17));
        assert!(keys.get(18).is_none() && keys.get(1 << 64 | 16).is_none());
        for (line, why) in [
            ("18 aes-128-gcm".to_owned(), KeyError::Words),
            (format!("18 aes-128-gcm {digits} more"), KeyError::Words),
            (format!("x18 aes-128-gcm {digits}"), KeyError::Number),
            (format!("4294967296 aes-128-gcm {digits}"), KeyError::Number),
            (format!("16 aes-128-gcm {digits}"), KeyError::Twice),
            (format!("18 des {digits}"), KeyError::Cipher),
            (format!("18 aes-256-gcm {digits}"), KeyError::Key(36)),
            (format!("18 aes-128-gcm {digits}1"), KeyError::Key(20)),
            (format!("18 aes-128-gcm {}", digits.replace('a', "g")), KeyError::Key(20)),
            (format!("18 aes-128-gcm {}", digits.replace("01", "é")), KeyError::Key(20)),
        ] {
            assert_eq!(keys.add(&line), Err(why), "{line}");
        }
        assert_eq!(keys.len(), 2);
        let words = [KeyError::Cipher, KeyError::Key(20)].map(|error| error.to_string());
        assert!(!words.concat().contains("0123"));
    }
}
