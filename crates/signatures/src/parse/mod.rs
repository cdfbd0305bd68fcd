//! Reads rule files.

mod content;
mod digits;
mod fault;
mod flags;
mod flowbits;
mod header;
mod line;
mod names;
mod number;
mod options;
mod packet;
mod pcre;
mod rewriting;
mod threshold;

use crate::limits::{MAX_LINE, MAX_NAMES, MAX_REGEXES, MAX_RULES};
use crate::rule::{Rule, What};
use crate::set::Signatures;
pub use fault::Cause;
use fault::Fault;
use names::Names;
use std::collections::HashSet;

/// A line that is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The line's number, from 1.
    pub line: u32,
    /// The place in the line (bytes).
    pub at: usize,
    /// Why.
    pub cause: Cause,
    /// The name of the option or of the part of the rule.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
    /// The line.
    pub text: String,
}

/// What a file holds.
#[derive(Debug)]
pub struct Loaded {
    /// The rules that are supported.
    pub set: Signatures,
    /// The number of lines with rules.
    pub rules: usize,
    /// The lines that are refused, in order.
    pub refused: Vec<Refused>,
}

/// Reads a rule file: variables, classes and rules, one a line.
#[must_use]
pub fn load(text: &str) -> Loaded {
    let mut loader = Loader::default();
    for (line, text) in (1..).zip(text.lines()) {
        loader.line(line, text);
    }
    loader.finish()
}

#[derive(Default)]
struct Loader {
    names: Names,
    lines: Vec<String>,
    rules: Vec<Rule>,
    keys: HashSet<u64>,
    /// The memory of regular expressions so far.
    regexes: usize,
    count: usize,
    refused: Vec<Refused>,
}

impl Loader {
    fn line(&mut self, line: u32, whole: &str) {
        let begin = whole.trim_start_matches('\u{feff}').trim_start();
        let text = begin.trim_end();
        if text.is_empty() || text.starts_with('#') {
            return;
        }
        let taken = match text.split_whitespace().next() {
            _ if text.len() > MAX_LINE => {
                self.count += 1;
                Err(Fault::wrong("line", format!("a line has at most {MAX_LINE} bytes")))
            }
            Some("var" | "ipvar" | "portvar") => self.variable(text),
            Some("config") => self.class(text),
            _ => {
                self.count += 1;
                self.rule(text)
            }
        };
        match taken {
            Ok(()) => self.lines.push(text.to_owned()),
            Err(Fault { cause, name, why, at }) => {
                let at = whole.len() - begin.len() + at.unwrap_or(0);
                let text = whole.to_owned();
                self.refused.push(Refused { line, at, cause, name, why, text });
            }
        }
    }

    fn room(&self) -> Result<(), Fault> {
        match self.names.lists.len() + self.names.classes.len() {
            ..MAX_NAMES => Ok(()),
            _ => Err(Fault::wrong("var", format!("a file has at most {MAX_NAMES} names"))),
        }
    }

    /// `var NAME LIST`.
    fn variable(&mut self, text: &str) -> Result<(), Fault> {
        self.room()?;
        let mut words = text.splitn(3, char::is_whitespace);
        let (name, list) = (words.nth(1).unwrap_or_default(), words.next().unwrap_or_default());
        let name = name.strip_prefix('$').unwrap_or(name);
        if name.is_empty() || list.trim().is_empty() {
            return Err(Fault::wrong("var", "a variable is declared by: var NAME LIST"));
        }
        self.names.lists.declare(name, list.trim())
    }

    /// `config classification: NAME,DESCRIPTION,PRIORITY`.
    fn class(&mut self, text: &str) -> Result<(), Fault> {
        self.room()?;
        let wrong = || {
            let form = "a class is declared by: config classification: NAME,DESCRIPTION,PRIORITY";
            Fault::wrong("config", form)
        };
        let rest = text.strip_prefix("config").unwrap_or_default().trim_start();
        let rest = rest.strip_prefix("classification:").ok_or_else(wrong)?;
        let (name, rest) = rest.split_once(',').ok_or_else(wrong)?;
        let (_, priority) = rest.rsplit_once(',').ok_or_else(wrong)?;
        let priority = options::priority(priority)?;
        self.names.classes.insert(name.trim().to_ascii_lowercase(), priority);
        Ok(())
    }

    fn rule(&mut self, text: &str) -> Result<(), Fault> {
        if self.rules.len() >= MAX_RULES {
            return Err(Fault::wrong("rule", format!("a file has at most {MAX_RULES} rules")));
        }
        let rule = line::rule(text, &self.names)?;
        if self.keys.contains(&rule.signature.key()) {
            let sid = rule.signature.sid;
            return Err(Fault::wrong("sid", format!("there is a rule with the sid {sid}")));
        }
        let tests = rule.buffers.iter().flat_map(|of| &of.tests);
        let memory = tests.map(|test| match &test.what {
            What::Regex(regex) => regex.memory(),
            _ => 0,
        });
        let memory = self.regexes + memory.sum::<usize>();
        if memory > MAX_REGEXES {
            let most = MAX_REGEXES >> 20;
            let why = format!("the regular expressions of a file have at most {most} MiB");
            return Err(Fault::wrong("pcre", why));
        }
        self.regexes = memory;
        self.keys.insert(rule.signature.key());
        self.rules.push(rule);
        Ok(())
    }

    fn finish(self) -> Loaded {
        let Self { lines, rules, count, mut refused, .. } = self;
        let set = Signatures::new(lines, rules).unwrap_or_else(|why| {
            let name = "content".to_owned();
            let (cause, text) = (Cause::Wrong, String::new());
            refused.push(Refused { line: 0, at: 0, cause, name, why, text });
            Signatures::default()
        });
        Loaded { set, rules: count, refused }
    }
}
