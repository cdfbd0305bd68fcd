//! Reads pattern files. A line is `[NUMBER] "literal" [nocase]` or `[NUMBER] /regular
//! expression/[i]`.

use super::cursor::{Cursor, Word, decimal, hexadecimal, lines};
use super::error::{Collector, Fault, ImportErrors, MAX_ERRORS};
use braid_externs::patterns::{MAX_PATTERNS, Matcher, Pattern, PatternError, PatternSet};

/// A pattern and its place.
struct Placed<'a> {
    line: u32,
    text: &'a str,
    /// Byte offset behind the opening quote or slash.
    at: usize,
    pattern: Pattern,
}

/// Reads a pattern file. A pattern without a number gets its position in the file, from 1.
///
/// # Errors
/// All lines that cannot be used, and patterns that do not compile.
pub fn patterns(text: &str) -> Result<PatternSet, ImportErrors> {
    let (mut faults, mut more) = (Vec::new(), 0);
    let mut placed = Vec::new();
    for (position, (line, text)) in (1..).zip(lines(text)) {
        let pattern = match placed.len() {
            ..MAX_PATTERNS => pattern(&mut Cursor::new(text), position),
            _ => Err(Fault::new(0, format!("at most {MAX_PATTERNS} patterns"), text)),
        };
        match pattern {
            Ok((at, pattern)) => placed.push(Placed { line, text, at, pattern }),
            Err(fault) if faults.len() < MAX_ERRORS => faults.push((line, text, fault)),
            Err(_) => more += 1,
        }
    }
    // The patterns are compiled even when lines are wrong, so that all errors are reported at once.
    let set = match PatternSet::new(placed.iter().map(|p| p.pattern.clone()).collect()) {
        Ok(set) => set,
        Err(errors) => {
            faults.extend(errors.iter().map(|error| compile_fault(error, &placed)));
            PatternSet::default()
        }
    };
    faults.sort_by_key(|(line, ..)| *line);
    let mut errors = Collector::default();
    for (line, text, fault) in faults {
        errors.push(line, text, fault);
    }
    errors.count_more(more);
    errors.finish(set)
}

/// Places an error of the compiler at its pattern. An error of the whole set goes to the first
/// pattern.
fn compile_fault<'a>(error: &PatternError, placed: &[Placed<'a>]) -> (u32, &'a str, Fault) {
    let Some(place) = error.index().map_or(placed.first(), |index| placed.get(index)) else {
        return (1, "", Fault::new(0, error.to_string(), ""));
    };
    let (at, expected) = match error {
        PatternError::RegexSyntax { offset, message, .. } => {
            (place.at + offset, format!("a valid regular expression ({message})"))
        }
        error => (place.at, format!("patterns within the limits ({error})")),
    };
    let found = place.text.get(at..).unwrap_or("");
    (place.line, place.text, Fault::new(at, expected, found))
}

/// Reads a line. Also returns the offset behind the opening quote or slash.
fn pattern(line: &mut Cursor<'_>, position: u32) -> Result<(usize, Pattern), Fault> {
    let number = number(line)?.unwrap_or(position);
    let open = line.rest();
    let (at, matcher) = match open.text.chars().next() {
        Some('"') => {
            line.skip(1);
            let (at, bytes) = literal(line)?;
            (at, Matcher::Literal { bytes, nocase: line.keyword("nocase") })
        }
        Some('/') => {
            line.skip(1);
            let (at, source) = regex(line)?;
            let options = line.until(|c| c.is_whitespace() || c == '#');
            let nocase = match options.text {
                "" => false,
                "i" => true,
                _ => return Err(options.fault("`i` or nothing after the closing `/`")),
            };
            (at, Matcher::Regex { source, nocase })
        }
        _ => return Err(open.fault("a number, a literal in \"quotes\" or a /regular expression/")),
    };
    line.end("the end of the line after the pattern")?;
    Ok((at, Pattern { number, matcher }))
}

fn number(line: &mut Cursor<'_>) -> Result<Option<u32>, Fault> {
    let word = line.until(|c| !c.is_ascii_digit());
    if word.text.is_empty() {
        return Ok(None);
    }
    // The number 0 means "no match" wherever a number is reported.
    let number = decimal(word.text).filter(|&number| number > 0);
    number.map(Some).ok_or_else(|| word.fault(format!("a number from 1 to {}", u32::MAX)))
}

/// Reads a literal behind its opening quote, including the closing quote.
pub(super) fn literal(line: &mut Cursor<'_>) -> Result<(usize, Vec<u8>), Fault> {
    let (start, text) = line.raw();
    let mut bytes = Vec::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' if bytes.is_empty() => {
                return Err(Fault::new(start + at, "at least one byte in the literal", "\""));
            }
            '"' => {
                line.skip(at + 1);
                return Ok((start, bytes));
            }
            '\\' => {
                let rest = text.get(at..).unwrap_or("");
                let (byte, length) = escape(rest).ok_or_else(|| escape_fault(start + at, rest))?;
                bytes.push(byte);
                // The backslash is already consumed, and escapes are ASCII.
                chars.nth(length - 2);
            }
            c => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Err(Fault::new(start + text.len(), "`\"` at the end of the literal", ""))
}

/// The byte of an escape and the escape's length, which is at least 2.
fn escape(text: &str) -> Option<(u8, usize)> {
    match text.as_bytes().get(1)? {
        b'n' => Some((b'\n', 2)),
        b'r' => Some((b'\r', 2)),
        b't' => Some((b'\t', 2)),
        &byte @ (b'"' | b'\\') => Some((byte, 2)),
        b'x' => {
            let value = hexadecimal(&format!("0x{}", text.get(2..4)?))?;
            Some((u8::try_from(value).ok()?, 4))
        }
        _ => None,
    }
}

fn escape_fault(at: usize, rest: &str) -> Fault {
    let found: String = rest.chars().take(4).collect();
    Fault::new(at, "one of the escapes \\xHH \\n \\r \\t \\\" \\\\", &found)
}

/// Reads a regular expression behind its opening slash, including the closing slash. `\/` stays,
/// because it means a slash to the compiler too.
fn regex(line: &mut Cursor<'_>) -> Result<(usize, String), Fault> {
    let (start, text) = line.raw();
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '/' if at == 0 => {
                return Err(Fault::new(start, "a regular expression between the slashes", "/"));
            }
            '/' if !escaped => {
                line.skip(at + 1);
                return Ok((start, text[..at].to_owned()));
            }
            c => escaped = c == '\\' && !escaped,
        }
    }
    let word = Word { at: start + text.len(), text: "" };
    Err(word.fault("`/` at the end of the regular expression"))
}

#[cfg(test)]
mod tests {
    use super::patterns;
    use braid_externs::patterns::Matcher;

    fn first(text: &str) -> (u32, Matcher) {
        let set = patterns(text).expect("a good file");
        (set.patterns()[0].number, set.patterns()[0].matcher.clone())
    }

    fn places(text: &str) -> Vec<(u32, u32)> {
        let errors = patterns(text).expect_err("a bad file");
        errors.errors.iter().map(|e| (e.line, e.column)).collect()
    }

    #[test]
    fn literal_escapes_are_bytes() {
        let (number, matcher) = first(r#"7 "a\x00\xFf\\\"\n é" nocase # why"#);
        let bytes = b"a\x00\xff\\\"\n \xc3\xa9".to_vec();
        assert_eq!((number, matcher), (7, Matcher::Literal { bytes, nocase: true }));
    }

    #[test]
    fn regex_ends_at_the_first_plain_slash() {
        let source = r"a\/b\\".to_owned();
        assert_eq!(first(r"/a\/b\\/i"), (1, Matcher::Regex { source, nocase: true }));
        let set = patterns(r"/GET \/[a-z]+\.php/").expect("good");
        assert_eq!(set.lowest_match(b"GET /index.php"), Some(1));
        assert_eq!(set.lowest_match(b"GET index.php"), None);
    }

    #[test]
    fn missing_numbers_are_positions() {
        let set = patterns("# comment\n\"a\"\n\n9 \"b\"\n\"c\"\n").expect("good");
        let numbers: Vec<_> = set.patterns().iter().map(|p| p.number).collect();
        assert_eq!(numbers, [1, 9, 3]);
    }

    #[test]
    fn bad_lines_are_errors_at_their_place() {
        assert_eq!(places("\"abc\n\"\"\nabc\n0 \"a\"\n"), [(1, 5), (2, 2), (3, 1), (4, 1)]);
        assert_eq!(places(r#""a\q""#), [(1, 3)]);
        assert_eq!(places(r#""\x4""#), [(1, 2)]);
        assert_eq!(places("/abc\n//\n/a/x\n\"a\" no\n"), [(1, 5), (2, 2), (3, 4), (4, 5)]);
        assert_eq!(places("99999999999 \"a\""), [(1, 1)]);
    }

    #[test]
    fn regex_errors_point_into_the_expression_in_file_order() {
        assert_eq!(places("/ok/\n12 /ab(c/\n\"\n/[z-a]/\n"), [(2, 7), (3, 2), (4, 3)]);
    }

    #[test]
    fn errors_past_the_limit_are_counted_over_both_passes() {
        let text = format!("{}{}", "/(/\n".repeat(5), "\"\n".repeat(30));
        let errors = patterns(&text).expect_err("35 bad lines");
        assert_eq!((errors.errors.len(), errors.more), (20, 15));
        assert!(errors.errors.is_sorted_by_key(|e| e.line));
        assert_eq!(errors.errors[0].line, 1);
    }

    #[test]
    fn patterns_past_the_limit_are_errors() {
        let text = "\"a\"\n".repeat(super::MAX_PATTERNS + 2);
        let errors = patterns(&text).expect_err("two too many");
        let lines: Vec<_> = errors.errors.iter().map(|e| e.line as usize).collect();
        assert_eq!(lines, [super::MAX_PATTERNS + 1, super::MAX_PATTERNS + 2]);
    }

    #[test]
    fn printed_patterns_read_back() {
        let text = "3 \"a\\x00\\\\\\\"~ \\xe9\" nocase\n4 /a\\/[0-9]{2}/i\n5 /x/\n6 \"q\"\n";
        let set = patterns(text).expect("good");
        let printed: String = set.patterns().iter().map(|p| format!("{p}\n")).collect();
        assert_eq!(printed, text);
        assert_eq!(patterns(&printed), Ok(set));
    }
}
