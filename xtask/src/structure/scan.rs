//! A scanner that is just good enough for rules on Rust sources: it blanks out comments, strings
//! and character literals, so that only code is left.

/// The text with spaces for everything that is not code. Line breaks stay.
#[must_use]
pub fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => line_end(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => comment_end(&chars, at),
            '"' => string_end(&chars, at),
            'r' if !follows_word(&chars, at) => raw_string_end(&chars, at),
            '\'' => char_end(&chars, at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

fn follows_word(chars: &[char], at: usize) -> bool {
    // A `b` may come before the `r` of a raw byte string.
    let before = at.checked_sub(1).map(|i| chars[i]);
    before.is_some_and(|c| (c.is_alphanumeric() || c == '_') && c != 'b')
}

fn line_end(chars: &[char], at: usize) -> usize {
    chars[at..].iter().position(|&c| c == '\n').map_or(chars.len(), |len| at + len)
}

fn comment_end(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (at, depth) = (at + 2, depth + 1),
            ('*', Some('/')) => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

fn string_end(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// The end of the raw string that starts here, or `start` if there is none.
fn raw_string_end(chars: &[char], start: usize) -> usize {
    let hashes = chars[start + 1..].iter().take_while(|&&c| c == '#').count();
    if chars.get(start + 1 + hashes) != Some(&'"') {
        return start;
    }
    let mut at = start + 2 + hashes;
    while at < chars.len() {
        let closing = chars[at] == '"'
            && chars[at + 1..].iter().take_while(|&&c| c == '#').take(hashes).count() == hashes;
        at += 1;
        if closing {
            return at + hashes;
        }
    }
    at
}

/// The end of the character literal that starts here, or `start` if it is a lifetime.
fn char_end(chars: &[char], start: usize) -> usize {
    match (chars.get(start + 1), chars.get(start + 2)) {
        (Some('\\'), _) => {
            let escaped = start + 3;
            let len = chars.get(escaped..).and_then(|rest| rest.iter().position(|&c| c == '\''));
            len.map_or(start, |len| escaped + len + 1)
        }
        (Some(_), Some('\'')) => start + 3,
        _ => start,
    }
}

/// A function: its name, its first line (from 1) and its number of lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// The name.
    pub name: String,
    /// The first line, from 1.
    pub line: usize,
    /// The number of lines from `fn` to the closing brace.
    pub lines: usize,
}

/// The functions with a body in a source file.
#[must_use]
pub fn functions(text: &str) -> Vec<Function> {
    let code = code_only(text);
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_') {
            continue;
        }
        let name: String =
            code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let Some(end) = body_end(bytes, at).filter(|_| !name.is_empty()) else { continue };
        let line = code[..at].matches('\n').count() + 1;
        let lines = code[at..end].matches('\n').count() + 1;
        found.push(Function { name, line, lines });
    }
    found
}

/// The position after the closing brace of the function at `at`, if it has a body.
fn body_end(code: &[u8], at: usize) -> Option<usize> {
    let (mut braces, mut other) = (0_usize, 0_i32);
    for (i, &byte) in code.iter().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => other += 1,
            b')' | b']' => other -= 1,
            b';' if braces == 0 && other == 0 => return None,
            b'{' => braces += 1,
            b'}' => {
                braces = braces.checked_sub(1)?;
                if braces == 0 {
                    return Some(i + 1);
                }
            }
            _ => {}
        }
    }
    None
}
