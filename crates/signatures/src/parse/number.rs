//! `byte_test`, `byte_jump` and `byte_extract`.

use super::digits;
use super::fault::Fault;
use crate::limits::{MAX_PLACE, MAX_VARIABLES};
use crate::number::{Comparison, Encoding, Format, Jump, NumberAt, Operator, Origin, Scale, Value};
use crate::rule::What;

/// The most bytes of a number, and of one that is written with digits.
const MAX_LEN: usize = 8;
const MAX_DIGITS: usize = 23;

/// What an option looks for, and what its words say.
pub struct Read {
    pub what: What,
    pub is_relative: bool,
    /// Whether more bytes cannot make it false.
    pub is_plain: bool,
}

/// The names of the numbers that `byte_extract` has found, by their places.
pub type Names = Vec<String>;

/// The words behind the first parts of an option.
#[derive(Default)]
struct Words {
    is_relative: bool,
    is_little: Option<bool>,
    is_text: bool,
    base: Option<u32>,
    mask: Option<u64>,
    multiplier: Option<u16>,
    align: Option<u8>,
    origin: Option<Origin>,
    post_offset: Option<i32>,
}

/// Reads one of the options.
pub fn read(name: &str, value: &str, names: &mut Names) -> Result<Read, Fault> {
    let mut parts = value.split(',').map(str::trim);
    let mut next = |what: &str| {
        let part = parts.next().filter(|part| !part.is_empty());
        part.ok_or_else(|| Fault::wrong(name, format!("{what} is missing")))
    };
    let len = digits::number(name, next("the number of bytes")?)?;
    let (comparison, value) = match name {
        "byte_test" => {
            let comparison = comparison(name, next("an operator")?)?;
            let value = self::value(name, next("a value")?, names)?;
            if matches!(value, Value::Fixed(..0)) {
                return Err(Fault::wrong(name, "no number is below 0"));
            }
            (Some(comparison), value)
        }
        _ => (None, Value::Fixed(0)),
    };
    let at = self::value(name, next("an offset")?, names)?;
    let variable = match name {
        "byte_extract" => Some(next("a name")?),
        _ => None,
    };
    let words = Words::read(name, parts)?;
    let number = NumberAt { format: words.format(name, len)?, at };
    let (is_relative, origin) = (words.is_relative, words.origin.unwrap_or(Origin::Number));
    let (multiplier, align) = (words.multiplier.unwrap_or(1), words.align.unwrap_or(1));
    let scale = Scale { multiplier, align };
    let what = match (comparison, variable) {
        (Some(comparison), _) => What::Compare(number, comparison, value),
        (None, Some(variable)) => What::Extract(number, scale, declare(name, variable, names)?),
        (None, None) => {
            let post_offset = words.post_offset.unwrap_or(0);
            What::Jump(number, Jump { origin, scale, post_offset })
        }
    };
    Ok(Read { what, is_relative, is_plain: origin != Origin::End })
}

/// A number, or the name of one that was found before.
pub fn value(name: &str, text: &str, names: &Names) -> Result<Value, Fault> {
    if let Some(at) = names.iter().position(|of| of == text) {
        return Ok(Value::Found(at));
    }
    if text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return Err(Fault::wrong(name, format!("`{text}` is no name of a byte_extract")));
    }
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let number = match digits.starts_with("0x") {
        true => hexadecimal(digits),
        false => digits::number(name, digits).ok(),
    };
    let number = number.map(|number: u64| match is_negative {
        true => -i128::from(number),
        false => number.into(),
    });
    number.map(Value::Fixed).ok_or_else(|| Fault::wrong(name, format!("`{text}` is no number")))
}

/// A hexadecimal number, with or without `0x`.
fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| is_number)
}

/// A name for a number that is found.
fn declare(option: &str, name: &str, names: &mut Names) -> Result<usize, Fault> {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !is_name || names.iter().any(|of| of == name) {
        return Err(Fault::wrong(option, format!("`{name}` is no new name")));
    }
    if names.len() >= MAX_VARIABLES {
        let why = format!("a rule has at most {MAX_VARIABLES} of them");
        return Err(Fault::wrong(option, why));
    }
    names.push(name.to_owned());
    Ok(names.len() - 1)
}

fn comparison(name: &str, text: &str) -> Result<Comparison, Fault> {
    let (is_negated, text) = match text.strip_prefix('!') {
        Some(text) => (true, text.trim_start()),
        None => (false, text),
    };
    let operator = match text {
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        "=" => Operator::Equal,
        ">=" => Operator::GreaterOrEqual,
        ">" => Operator::Greater,
        "&" => Operator::And,
        "^" => Operator::Xor,
        _ => return Err(Fault::wrong(name, "an operator is one of < <= = >= > & ^")),
    };
    Ok(Comparison { operator, is_negated })
}

impl Words {
    fn read<'a>(name: &str, parts: impl Iterator<Item = &'a str>) -> Result<Self, Fault> {
        let mut words = Self::default();
        let mut kinds = Vec::new();
        for part in parts {
            let (word, of) = part.split_once(char::is_whitespace).unwrap_or((part, ""));
            let kind = match word {
                "" => return Err(Fault::wrong(name, "a word is missing")),
                "big" | "little" => "big or little",
                "hex" | "dec" | "oct" => "hex, dec or oct",
                "from_beginning" | "from_end" => "from_beginning or from_end",
                word => word,
            };
            if kinds.contains(&kind) {
                return Err(Fault::wrong(name, format!("{kind} comes twice")));
            }
            kinds.push(kind);
            words.word(name, word, of.trim())?;
        }
        Ok(words)
    }

    fn word(&mut self, name: &str, word: &str, of: &str) -> Result<(), Fault> {
        let is_test = name == "byte_test";
        match (word, of) {
            ("relative", "") => self.is_relative = true,
            ("big", "") => self.is_little = Some(false),
            ("little", "") => self.is_little = Some(true),
            ("string", "") => self.is_text = true,
            ("hex", "") => self.base = Some(16),
            ("dec", "") => self.base = Some(10),
            ("oct", "") => self.base = Some(8),
            ("bitmask", mask) => {
                let mask = hexadecimal(mask).filter(|mask| *mask != 0);
                let wrong = || Fault::wrong(name, "a bitmask is a hexadecimal number");
                self.mask = Some(mask.ok_or_else(wrong)?);
            }
            ("multiplier", by) if !is_test => {
                let by = digits::number(name, by)?;
                if by == 0 {
                    return Err(Fault::wrong(name, "a multiplier is from 1 on"));
                }
                self.multiplier = Some(by);
            }
            ("align", "") if name == "byte_jump" => self.align = Some(4),
            ("align", "2") if name == "byte_extract" => self.align = Some(2),
            ("align", "4") if name == "byte_extract" => self.align = Some(4),
            ("align", _) if name == "byte_extract" => {
                return Err(Fault::wrong(name, "it has align 2 or align 4"));
            }
            ("from_beginning", "") if name == "byte_jump" => self.origin = Some(Origin::Start),
            ("from_end", "") if name == "byte_jump" => self.origin = Some(Origin::End),
            ("post_offset", by) if name == "byte_jump" => {
                let by = digits::signed(name, by).ok();
                let by = by.filter(|by: &i32| by.unsigned_abs() <= MAX_PLACE);
                let wrong = || Fault::wrong(name, "a post_offset is a number");
                self.post_offset = Some(by.ok_or_else(wrong)?);
            }
            _ => return Err(Fault::unsupported(name, format!("`{word}`"))),
        }
        Ok(())
    }

    fn format(&self, name: &str, len: usize) -> Result<Format, Fault> {
        let (most, encoding) = match (self.is_text, self.base) {
            (true, Some(base)) if self.is_little.is_none() => (MAX_DIGITS, Encoding::Digits(base)),
            (true, None) => {
                return Err(Fault::unsupported(name, "`string` without hex, dec or oct"));
            }
            (false, None) if self.is_little == Some(true) => (MAX_LEN, Encoding::Little),
            (false, None) => (MAX_LEN, Encoding::Big),
            _ => return Err(Fault::wrong(name, "a number is in bytes, or a string with a base")),
        };
        match (1..=most).contains(&len) {
            true => Ok(Format { len, encoding, mask: self.mask.unwrap_or(u64::MAX) }),
            false => Err(Fault::wrong(name, format!("a number has from 1 to {most} bytes"))),
        }
    }
}
