//! Payloads that patterns match.

use braid_externs::patterns::{Matcher, Pattern};

/// A payload that a pattern matches, or nearly matches. For a literal it is the literal. For a
/// regular expression it is one simple reading: the first alternatives, and each repetition once.
pub(super) fn payload_for(pattern: &Pattern) -> Vec<u8> {
    match &pattern.matcher {
        Matcher::Literal { bytes, .. } => bytes.clone(),
        Matcher::Regex { source, .. } => plain_reading(source),
    }
}

fn plain_reading(source: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '^' | '$' | '+' | '*' | '?' | '(' | ')' => {}
            '|' => break,
            '.' => out.push(b'x'),
            '{' => drop(chars.by_ref().find(|&c| c == '}')),
            '[' => {
                let class: String = chars.by_ref().take_while(|&c| c != ']').collect();
                out.extend(class.bytes().next().filter(|&byte| byte != b'^').or(Some(b'~')));
            }
            '\\' => match chars.next() {
                Some('d') => out.push(b'1'),
                Some('w') => out.push(b'a'),
                Some('s') => out.push(b' '),
                Some('x') => {
                    let digits: String = chars.by_ref().take(2).collect();
                    out.extend(u8::from_str_radix(&digits, 16));
                }
                Some(c) => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
                None => {}
            },
            c => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_reading_takes_each_part_once() {
        assert_eq!(plain_reading(r"^GET\s+/[a-z]+\.php\?id=\d{1,5}$"), b"GET /a.php?id=1");
        assert_eq!(plain_reading(r"\x41(b|c)"), b"Ab");
    }
}
