//! Rewrites expressions of PCRE for the crates that search them. `regex-syntax` reads expressions
//! for automata, `fancy-regex` reads expressions that need backtracking. Where PCRE would read the
//! same text in another way, it is written so that the meaning stays, or is refused.

use super::fault::Fault;
use super::flags::Flags;
use crate::expression::ALWAYS;

/// Who reads the expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    Automaton,
    Backtracking,
}

/// A rewritten expression, and what it has.
#[derive(Debug)]
pub struct Rewriting {
    pub text: String,
    /// It has something that no automaton can search. Then the text is of no use to one.
    pub needs_backtracking: bool,
    /// What stands in front of a match may decide whether it is one.
    pub looks_behind: bool,
    /// What stands behind a match may decide whether it is one.
    pub looks_ahead: bool,
    dialect: Dialect,
    /// How `$` is written.
    end: &'static str,
    /// The groups that are open: whether a group was added within each.
    groups: Vec<bool>,
    is_class: bool,
    /// The last character was a repetition.
    is_repeated: bool,
}

/// The end of the text, or the line feed in front of it.
const LAST_LINE_END: &str = r"(?=\n?\z)";

/// The letters that stand behind a `\` for the same in PCRE and in `fancy-regex`.
const ESCAPES: &str = "dDsSwWnrtfaxvbBAzZ";

impl Rewriting {
    /// Rewrites an expression.
    ///
    /// # Errors
    /// The expression has something that the dialect cannot say.
    pub fn of(source: &str, dialect: Dialect, flags: &Flags) -> Result<Self, Fault> {
        let end = match dialect {
            Dialect::Backtracking if flags.is_dollar_end => r"\z",
            Dialect::Backtracking if !flags.is_multi_line => LAST_LINE_END,
            _ => "$",
        };
        let mut rewriting = Self {
            text: String::with_capacity(source.len() + 16),
            needs_backtracking: false,
            looks_behind: flags.is_anchored,
            looks_ahead: false,
            dialect,
            end,
            groups: Vec::new(),
            is_class: false,
            is_repeated: false,
        };
        if flags.is_anchored {
            rewriting.text.push_str(r"\A(?:");
        }
        let mut rest = source;
        while let Some(c) = rest.chars().next() {
            let taken = match c {
                '\\' => rewriting.escape(rest)?,
                _ if rewriting.is_class => rewriting.in_class(c, rest)?,
                '(' => rewriting.group(rest)?,
                _ => rewriting.outside(c, rest)?,
            };
            rest = rest.get(taken..).unwrap_or_default();
        }
        if flags.is_anchored {
            // A comment may end the expression.
            rewriting.text.push_str(if flags.is_extended { "\n)" } else { ")" });
        }
        Ok(rewriting)
    }

    /// Writes the first `taken` bytes of `rest`. Returns their number.
    fn keep(&mut self, rest: &str, taken: usize) -> usize {
        self.text.push_str(rest.get(..taken).unwrap_or_default());
        taken
    }

    /// A character in a class.
    fn in_class(&mut self, c: char, rest: &str) -> Result<usize, Fault> {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '[' if after.starts_with(':') && after.contains(":]") => {
                return Ok(self.keep(rest, rest.find(":]").map_or(1, |at| at + 2)));
            }
            '[' | '&' | '~' | '#' => self.text.extend(['\\', c]),
            // With the flag `x`, only PCRE takes white space in a class for a member.
            c if c.is_ascii_whitespace() => {
                self.text.push_str(&format!("\\x{:02x}", u32::from(c)));
            }
            '-' if after.starts_with('-') => return Err(refused("`--` in a class")),
            ']' => {
                self.text.push(']');
                self.is_class = false;
            }
            c => self.text.push(c),
        }
        Ok(c.len_utf8())
    }

    /// A character outside of classes.
    fn outside(&mut self, c: char, rest: &str) -> Result<usize, Fault> {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        let was_repeated = std::mem::replace(&mut self.is_repeated, false);
        match c {
            '[' => {
                self.is_class = true;
                // A `]` right at the start is a member.
                let start = ["[^]", "[]", "[^", "["].into_iter().find(|s| rest.starts_with(s));
                let start = start.unwrap_or("[");
                self.text.push_str(&start.replace(']', "\\]"));
                return Ok(start.len());
            }
            ')' => {
                if self.groups.pop().unwrap_or_default() {
                    self.text.push(')');
                    self.text.push_str(ALWAYS);
                }
                self.text.push(')');
            }
            ']' => self.text.push_str("\\]"),
            '{' if !is_repetition(after) => self.text.push_str("\\{"),
            // For automata, that would be one repetition within another.
            '+' if was_repeated => return Err(refused("a possessive repetition")),
            '{' => {
                self.is_repeated = true;
                return Ok(self.keep(rest, rest.find('}').map_or(1, |at| at + 1)));
            }
            '*' | '+' | '?' => {
                self.is_repeated = true;
                self.text.push(c);
            }
            '^' => {
                self.looks_behind = true;
                self.text.push('^');
            }
            '$' => {
                self.looks_ahead = true;
                self.text.push_str(self.end);
            }
            c => self.text.push(c),
        }
        Ok(c.len_utf8())
    }

    /// The start of a group, or all of one that sets flags or repeats another one.
    fn group(&mut self, rest: &str) -> Result<usize, Fault> {
        self.is_repeated = false;
        let is = |start: &str| rest.starts_with(start);
        let starts = ["(?<=", "(?<!", "(?=", "(?!", "(?>", "(?:", "(?P<", "(?<"];
        if let Some(start) = starts.into_iter().find(|start| is(start)) {
            match start {
                "(?<=" | "(?<!" => self.looks_behind = true,
                "(?=" | "(?!" | "(?>" => self.looks_ahead = true,
                _ => {
                    self.groups.push(false);
                    return Ok(self.keep(rest, start.len()));
                }
            }
            self.needs_backtracking = true;
            // The group within keeps what it matches from automata, see `ALWAYS`.
            self.keep(rest, start.len());
            self.text.push_str("(?:");
            self.groups.push(true);
            return Ok(start.len());
        }
        if is("(?P=") {
            self.needs_backtracking = true;
            return Ok(self.keep(rest, rest.find(')').map_or(rest.len(), |at| at + 1)));
        }
        if is("(*") {
            return Err(refused("a group that begins with `*`"));
        }
        let Some(flags) = rest.strip_prefix("(?") else {
            self.groups.push(false);
            return Ok(self.keep(rest, 1));
        };
        let end = flags.find(|c: char| !matches!(c, 'i' | 'm' | 's' | 'x' | 'U' | '-'));
        let end = end.unwrap_or(flags.len());
        let (letters, behind) = flags.split_at(end);
        if letters.is_empty() || !behind.starts_with([':', ')']) {
            return Err(refused("this kind of group"));
        }
        if self.dialect == Dialect::Backtracking && letters.contains(['m', 'U', 'x']) {
            return Err(refused("`m`, `U` or `x` within it, with what needs backtracking"));
        }
        if behind.starts_with(':') {
            self.groups.push(false);
        }
        Ok(self.keep(rest, "(?".len() + end + 1))
    }

    /// A `\` and what belongs to it.
    fn escape(&mut self, rest: &str) -> Result<usize, Fault> {
        self.is_repeated = false;
        let mut following = rest.chars().skip(1);
        let Some(c) = following.next() else { return Ok(self.keep(rest, 1)) };
        let taken = 1 + c.len_utf8();
        let is_for_backtracking = self.dialect == Dialect::Backtracking;
        let has_other_meaning = match self.is_class {
            true => c.is_ascii_digit() || matches!(c, 'b' | 'B' | 'A' | 'z' | 'Z'),
            false => c == '0',
        };
        if is_for_backtracking
            && (has_other_meaning || c.is_ascii_alphabetic() && !ESCAPES.contains(c))
        {
            return Err(refused(format!("`\\{c}` with what needs backtracking")));
        }
        match c {
            'A' | 'b' | 'B' if !self.is_class => {
                if c == 'b' && rest.starts_with("\\b{") {
                    return Err(refused("`\\b{` in it"));
                }
                self.looks_behind = true;
                self.looks_ahead |= c != 'A';
            }
            // In an automaton, `\z` would mean what `$` means.
            'z' | 'Z' if !self.is_class => {
                (self.needs_backtracking, self.looks_ahead) = (true, true);
                if c == 'Z' {
                    self.text.push_str(LAST_LINE_END);
                    return Ok(taken);
                }
            }
            'z' | 'Z' | 'G' => return Err(refused(format!("`\\{c}` in it"))),
            '1'..='9' if !self.is_class => {
                if following.next().is_some_and(|next| next.is_ascii_digit()) {
                    return Err(refused("a backreference of two digits"));
                }
                self.needs_backtracking = true;
            }
            // Behind a `\`, they would be limits of words.
            '<' | '>' => {
                self.text.push(c);
                return Ok(taken);
            }
            // Any white space that ends a line.
            'v' => {
                let members = r"\n\x0b\f\r\x85";
                let class = if self.is_class { members.into() } else { format!("[{members}]") };
                self.text.push_str(&class);
                return Ok(taken);
            }
            'x' if rest.starts_with("\\x{") => {
                return Ok(self.keep(rest, rest.find('}').map_or(taken, |at| at + 1)));
            }
            _ => {}
        }
        Ok(self.keep(rest, taken))
    }
}

fn refused(why: impl Into<String>) -> Fault {
    Fault::unsupported("pcre", why)
}

/// Whether a `{` before these characters begins a repetition: `N}`, `N,}` or `N,N}`.
fn is_repetition(after: &str) -> bool {
    let Some((inner, _)) = after.split_once('}') else { return false };
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && are_digits(least) && are_digits(most)
}
