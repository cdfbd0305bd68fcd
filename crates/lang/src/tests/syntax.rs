//! Tests the parser and the formatter on random trees. A printed tree must read back unchanged.
//! Formatting must keep the meaning and every comment, and must not change its own output.

use super::support::entropy::Entropy;
use super::support::{gen_chain, print_item, without_spans};
use crate::diag::{Style, render};
use crate::fmt::format;
use crate::lexer::{Tok, lex};
use crate::parse::parse;
use crate::source::SourceMap;
use proptest::prelude::*;

/// The tree without its spans. An error if the text does not parse.
fn read(text: &str) -> Result<String, TestCaseError> {
    let (file, diagnostics) = parse(text, 0);
    if diagnostics.is_empty() {
        return Ok(without_spans(&file));
    }
    let mut sources = SourceMap::new();
    sources.add("text", text);
    let said = render(&diagnostics, &sources, Style::default());
    Err(TestCaseError::fail(format!("{said}\n{text}")))
}

/// The same tokens with other spaces, line ends and numbered comments between them. Also returns
/// the number of comments.
fn shaken(text: &str, e: &mut Entropy) -> (String, usize) {
    let lexed = lex(text, 0, 0);
    let mut out = String::new();
    let mut comments = 0;
    for pair in lexed.tokens.windows(2) {
        let word = &text[pair[0].start as usize..pair[0].end as usize];
        out.push_str(word);
        let gap = pair[0].end < pair[1].start;
        // A unit stays on the line of its number, and ports stay on the line of `output`.
        let same_line = pair[0].kind == Tok::Int || word == "output";
        let choice = if gap { e.below(9) } else { 0 };
        match choice {
            0 if !gap => {}
            3 | 4 if !same_line => {
                let breaks = e.of(&["\n", "\n\n", "\r\n   ", "\n\n\n\t"]);
                out.push_str(breaks);
            }
            5 if !same_line => {
                comments += 1;
                out.push_str(&format!(" // c{comments}.\n"));
            }
            6 if !same_line => {
                comments += 2;
                out.push_str(&format!(
                    "\n\n// c{}.\n  /* c{comments}.\n   and on */\n",
                    comments - 1
                ));
            }
            7 => {
                comments += 1;
                out.push_str(&format!(" /* c{comments}. */ "));
            }
            _ => out.push(' '),
        }
    }
    (out, comments)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: braid_cases::cases(256), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printed_tree_is_read_back(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let file = gen_chain::file(&mut Entropy::new(bytes));
        let text = print_item::file(&file);
        prop_assert_eq!(read(&text)?, without_spans(&file), "{}", text);
    }

    #[test]
    fn formatting_keeps_meaning_and_comments(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        shake in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let file = gen_chain::file(&mut Entropy::new(bytes));
        let (text, comments) = shaken(&print_item::file(&file), &mut Entropy::new(shake));
        prop_assert_eq!(read(&text)?, without_spans(&file), "{}", text);
        let once = format(&text).map_err(|d| TestCaseError::fail(format!("{d:?}")))?;
        prop_assert_eq!(read(&once)?, without_spans(&file), "{}\n=>\n{}", text, once);
        for number in 1..=comments {
            let found = once.matches(&format!("c{number}.")).count();
            prop_assert_eq!(found, 1, "comment {}\n{}\n=>\n{}", number, text, once);
        }
        let twice = format(&once).map_err(|d| TestCaseError::fail(format!("{d:?}\n{once}")))?;
        prop_assert_eq!(&twice, &once, "from\n{}", text);
        prop_assert!(once.lines().all(|line| line == line.trim_end()), "{}", once);
        prop_assert!(!once.contains("\n\n\n"), "{}", once);
    }
}
