//! Reads files of secret keys.

use super::cursor::each_line;
use super::error::{Fault, ImportErrors};
use braid_crypto::Keys;

/// The most keys of a file.
const MAX_KEYS: usize = 65_536;

/// What a message says instead of the text that it found.
const HIDDEN: &str = "something else (lines with keys are not shown)";

/// Reads secret keys: a number, a cipher and the key in hexadecimal digits on each line. At most
/// 65,536 lines. Errors show nothing of the text.
///
/// # Errors
/// All lines that cannot be used.
pub fn keys(text: &str) -> Result<Keys, ImportErrors> {
    let mut keys = Keys::default();
    let errors = each_line(text, |_, line| {
        let start = line.rest();
        let fault = |expected| Fault { at: start.at, expected, found: HIDDEN.to_owned() };
        if keys.len() == MAX_KEYS {
            return Err(fault(format!("at most {MAX_KEYS} lines")));
        }
        let (words, _) = start.text.split_once("#").unwrap_or((start.text, ""));
        keys.add(words).map_err(|why| fault(why.to_string()))
    });
    errors.finish(keys).map_err(|mut errors| {
        errors.errors.iter_mut().for_each(|error| error.text.clear());
        errors
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_keys_and_errors_show_nothing_of_them() {
        let secret = "00112233445566778899aabbccddeeff01020304";
        let text = format!("# keys\n\n7 aes-128-gcm {secret}\n0x8 aes-128-gcm {secret} # east\n");
        assert_eq!(keys(&text).map(|keys| keys.numbers().collect()), Ok(vec![7, 8]));
        let wrong = format!("7 aes-128-gcm {secret}\n  8 aes-256-gcm {secret}\n{secret}\n");
        let errors = keys(&wrong).unwrap_err();
        let found: Vec<_> = errors.errors.iter().map(|one| (one.line, one.column)).collect();
        assert_eq!(found, [(2, 3), (3, 1)]);
        assert!(!format!("{errors:?}").contains("0011"));
    }
}
