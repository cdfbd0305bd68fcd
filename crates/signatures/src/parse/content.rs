//! The bytes of contents, and texts in quotes.

use super::fault::Fault;
use crate::limits::MAX_CONTENT;

/// The text of a value in quotes, and whether a `!` stands before it.
pub fn quoted<'a>(name: &str, value: &'a str) -> Result<(bool, &'a str), Fault> {
    let (is_negated, text) = match value.strip_prefix('!') {
        Some(text) => (true, text.trim_start()),
        None => (false, value),
    };
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let inner = inner.ok_or_else(|| Fault::wrong(name, "the value is a text in quotes"))?;
    Ok((is_negated, inner))
}

/// The bytes of a content: characters, `\` before a character that has another meaning, and
/// hexadecimal bytes between `|`.
pub fn bytes(text: &str) -> Result<Vec<u8>, Fault> {
    let wrong = |why: &str| Fault::wrong("content", why);
    let mut out = Vec::new();
    let mut hex: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, &mut hex) {
            ('|', None) => hex = Some(String::new()),
            ('|', Some(digits)) => {
                let pairs = digits.as_bytes().chunks(2).map(|pair| {
                    let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
                    u8::from_str_radix(pair, 16).ok()
                });
                let pairs: Option<Vec<u8>> = pairs.collect();
                out.extend(pairs.ok_or_else(|| wrong("a byte has two hexadecimal digits"))?);
                hex = None;
            }
            (c, Some(digits)) if c.is_ascii_hexdigit() => digits.push(c),
            (' ', Some(_)) => {}
            (_, Some(_)) => return Err(wrong("hexadecimal digits stand between `|`")),
            ('\\', None) => match chars.next() {
                Some(c @ ('"' | ';' | '\\' | ':')) => out.extend(c.to_string().as_bytes()),
                _ => return Err(wrong("a `\\` stands before one of `\" ; \\ :`")),
            },
            (c, None) => out.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    if hex.is_some() {
        return Err(wrong("a `|` is missing"));
    }
    match out.len() {
        0 => Err(wrong("a content has at least one byte")),
        1..=MAX_CONTENT => Ok(out),
        _ => Err(wrong(&format!("a content has at most {MAX_CONTENT} bytes"))),
    }
}

/// A text without the `\` before `"`, `;`, `\` and `:`.
pub fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_escape = c == '\\' && matches!(chars.peek(), Some('"' | ';' | '\\' | ':'));
        out.extend(if is_escape { chars.next() } else { Some(c) });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{bytes, text};

    #[test]
    fn contents_are_bytes() {
        let shown = |text: &str| bytes(text).ok();
        assert_eq!(shown("a|0D 0a|b|00|").as_deref(), Some(&b"a\r\nb\0"[..]));
        assert_eq!(shown("|0d0A|").as_deref(), Some(&b"\r\n"[..]));
        assert_eq!(shown(r#"\"\;\\\:x"#).as_deref(), Some(&b"\";\\:x"[..]));
        assert_eq!(shown("é").as_deref(), Some(&b"\xc3\xa9"[..]));
        for wrong in ["", "||", "|0", "|0|", "|0g|", "a\\", "\\a", "|00 ", &"x".repeat(1_025)] {
            assert_eq!(shown(wrong), None, "{wrong}");
        }
        assert_eq!(shown(&"x".repeat(1_024)).map(|bytes| bytes.len()), Some(1_024));
    }

    #[test]
    fn texts_lose_escapes() {
        assert_eq!(text(r#"a\"b\;c\\d\e"#), r#"a"b;c\d\e"#);
    }
}
