//! Reads lists of strings, and lists of host names: one for each line.

use super::cursor::{Cursor, each_line};
use super::error::{Collector, Fault, ImportErrors};
use super::patterns::literal;
use braid_ir::strings::{MAX_STRINGS, StringSet, check_host};

/// Reads a list of strings of at most `most` bytes. A line has a word, or a text in quotes. At most
/// [`MAX_STRINGS`] lines.
///
/// # Errors
/// All lines that cannot be used.
pub fn strings(text: &str, most: usize) -> Result<StringSet, ImportErrors> {
    let mut all = Vec::new();
    let errors = each_line(text, |_, line| {
        let start = line.rest();
        let string = match start.text.starts_with('"') {
            true => {
                line.skip(1);
                literal(line)?.1
            }
            false => line.word().text.into(),
        };
        line.end("the end of the line after the string")?;
        if string.len() > most {
            return Err(start.fault(format!("a string of at most {most} bytes")));
        }
        admit(&mut all, string, line)
    });
    finish(errors, StringSet::exact(all))
}

/// Reads a list of host names, with a `*.` in front or without. At most [`MAX_STRINGS`] lines.
///
/// # Errors
/// All lines that cannot be used.
pub fn hosts(text: &str) -> Result<StringSet, ImportErrors> {
    let mut all = Vec::new();
    let errors = each_line(text, |_, line| {
        let word = line.word();
        if let Err(why) = check_host(word.text.as_bytes()) {
            return Err(word.fault(format!("a host name ({why})")));
        }
        line.end("the end of the line after the host name")?;
        admit(&mut all, word.text.as_bytes().to_vec(), line)
    });
    finish(errors, StringSet::hosts(all.iter().map(Vec::as_slice)))
}

fn admit<T>(all: &mut Vec<T>, one: T, line: &Cursor<'_>) -> Result<(), Fault> {
    if all.len() == MAX_STRINGS {
        return Err(Fault::new(0, format!("at most {MAX_STRINGS} lines"), line.line()));
    }
    all.push(one);
    Ok(())
}

/// Each string was checked at its line.
fn finish<E: std::fmt::Display>(
    errors: Collector,
    set: Result<StringSet, (usize, E)>,
) -> Result<StringSet, ImportErrors> {
    match set {
        Ok(set) => errors.finish(set),
        Err((_, why)) => {
            let mut errors = errors;
            errors.push(1, "", Fault::new(0, why.to_string(), ""));
            errors.finish(StringSet::default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_STRINGS, hosts, strings};

    #[test]
    fn a_line_has_a_word_or_a_quoted_text() {
        let text = "\u{feff}one # first\n\n  # none\n\"two words\\x00\" \ntwo\r\none\n";
        let set = strings(text, 16).expect("good lines");
        assert_eq!(set.entries(), [&b"one"[..], b"two", b"two words\0"]);
        assert!(strings("", 16).expect("no lines").is_empty());
    }

    #[test]
    fn bad_lines_of_strings_are_errors_with_their_places() {
        let text = "good\ntwo words\n\"open\n\"\"\n\"a\"b\n12345678901234567\n\"\\q\"\n";
        let errors = strings(text, 16).expect_err("bad lines");
        let lines: Vec<u32> = errors.errors.iter().map(|error| error.line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 6, 7]);
        assert_eq!(errors.errors[4].expected, "a string of at most 16 bytes");
    }

    #[test]
    fn host_names_may_have_a_star_in_front() {
        let set = hosts("Example.org\n*.example.net # all below\n").expect("good lines");
        assert_eq!(set.entries(), [&b"*.example.net"[..], b"example.org"]);
        let text = "a..b\nexample.org.\n0.0.0.0 example.org\nhttp://x\nm\u{fc}ller.de\n*\n";
        let errors = hosts(text).expect_err("bad lines");
        let lines: Vec<u32> = errors.errors.iter().map(|error| error.line).collect();
        assert_eq!(lines, [1, 3, 4, 5, 6]);
    }

    #[test]
    fn lines_past_the_limit_are_errors() {
        let text = "a\n".repeat(MAX_STRINGS + 2);
        for errors in [hosts(&text), strings(&text, 16)] {
            let errors = errors.expect_err("two too many");
            assert_eq!(errors.errors.len(), 2);
        }
    }
}
