//! Control files: configuration changes of a chain at given times of a run.
//!
//! A line is `TIME set FUNCTION.PARAM VALUE | add-rule FUNCTION.PARAM [at N] RULE | remove-rule
//! FUNCTION.PARAM N | backend FUNCTION.PARAM up|down|add|remove VALUE…`. TIME is in seconds with up
//! to nine decimals. It counts from the epoch or, with `+`, from the run's first packet.
//! `docs/cli.md` describes the format for its users.

mod follow;

pub use follow::{Line, follow};

use braid_ir::chain::{Chain, Change, Scheduled, When};
use braid_ir::model::{ParamDecl, ParamId, ParamTy, Ty, Word};
use braid_ir::value::ParamValue;

use crate::ast::Span;
use crate::chain::args::unfit;
use crate::diag::{Code, Diagnostic, Diagnostics, codes, did_you_mean_help};
use crate::import::parse_rule;
use crate::parse::parse_expr;
use crate::sema::env::{Env, Loader};
use crate::sema::eval::param_value;
use crate::source::{SourceMap, offset};

/// The most changes in a file. Further lines are an error.
const MAX_CHANGES: usize = 1 << 20;

/// The lines of a control file, in order. Wrong lines are reported and omitted. `file` is the
/// control file's number in `sources`. Values may name files, which `loader` reads.
pub fn control(
    file: u32,
    chain: &Chain,
    loader: &dyn Loader,
    sources: &SourceMap,
    diags: &mut Diagnostics,
) -> Vec<Line> {
    let text = sources.get(file).map_or("", |source| source.text());
    let env = Env { constants: &(), loader, sources };
    let mut reader = Reader { file, chain, env: &env, diags };
    let mut changes = Vec::new();
    let mut start = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let words = Words::new(line, start);
        start += line.len();
        if words.is_done() {
            continue;
        }
        if changes.len() >= MAX_CHANGES {
            let message = format!("a control file has at most {MAX_CHANGES} changes");
            let rest = words.rest();
            reader.report(codes::CONTROL_LINE, message, rest, "one too many");
            break;
        }
        changes.extend(reader.line(number, words));
    }
    changes
}

/// The change that a file of one line describes: the line is that of a control file without its
/// time. If it is wrong, it is reported.
pub fn change(
    file: u32,
    chain: &Chain,
    loader: &dyn Loader,
    sources: &SourceMap,
    diags: &mut Diagnostics,
) -> Option<Scheduled> {
    let text = sources.get(file).map_or("", |source| source.text());
    let env = Env { constants: &(), loader, sources };
    let mut reader = Reader { file, chain, env: &env, diags };
    let mut lines = text.split_inclusive('\n');
    let line = lines.next().unwrap_or_default();
    let mut start = line.len();
    for further in lines {
        let words = Words::new(further, start);
        if !words.is_done() {
            reader.report(codes::CONTROL_LINE, "a change is one line", words.rest(), "one more");
            return None;
        }
        start += further.len();
    }
    let line = reader.change((None, When::At(0)), Words::new(line, 0))?;
    Some(line.scheduled)
}

/// A piece of a line, with the place of its first byte in the file.
#[derive(Clone, Copy)]
struct Piece<'t> {
    text: &'t str,
    at: usize,
}

/// The words of a line without its comment, in order.
struct Words<'t> {
    rest: &'t str,
    at: usize,
}

impl<'t> Words<'t> {
    fn new(line: &'t str, at: usize) -> Self {
        Self { rest: without_comment(line).trim_end(), at }.skip_space()
    }

    fn skip_space(self) -> Self {
        let rest = self.rest.trim_start();
        Self { at: self.at + self.rest.len() - rest.len(), rest }
    }

    fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// The rest of the line.
    fn rest(&self) -> Piece<'t> {
        Piece { text: self.rest, at: self.at }
    }

    /// The next word. It is empty at the end.
    fn next(&mut self) -> Piece<'t> {
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let piece = Piece { text: word, at: self.at };
        *self = Self { rest, at: self.at + end }.skip_space();
        piece
    }
}

/// The line up to a `#` outside of quotes that starts the line or follows a space.
fn without_comment(line: &str) -> &str {
    let (mut quoted, mut escaped, mut space) = (false, false, true);
    for (at, c) in line.char_indices() {
        match c {
            '#' if space && !quoted => return &line[..at],
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        space = c.is_whitespace();
    }
    line
}

struct Reader<'a, 'e> {
    file: u32,
    chain: &'a Chain,
    env: &'a Env<'e>,
    diags: &'a mut Diagnostics,
}

/// A parameter of a function of the chain.
struct Target<'c> {
    node: u16,
    param: ParamId,
    decl: &'c ParamDecl,
    place: Piece<'c>,
}

impl<'a> Reader<'a, '_> {
    fn span(&self, piece: Piece<'_>) -> Span {
        Span { file: self.file, start: offset(piece.at), end: offset(piece.at + piece.text.len()) }
    }

    fn report(&mut self, code: Code, message: impl Into<String>, at: Piece<'_>, label: &str) {
        let span = self.span(at);
        self.diags.push(Diagnostic::new(code, message, span, label));
    }

    /// Reports an unexpected word. `known` holds words that it may be a misspelling of.
    fn expected(&mut self, code: Code, expected: &str, found: Piece<'_>, known: &[&str]) {
        let message = match found.text {
            "" => format!("expected {expected}, found the end of the line"),
            text => format!("expected {expected}, found `{text}`"),
        };
        let span = self.span(found);
        let help = did_you_mean_help(found.text, known.iter().copied());
        self.diags.push(Diagnostic::new(code, message, span, "").help_if(help));
    }

    fn line(&mut self, number: u32, mut words: Words<'a>) -> Option<Line> {
        let time = words.next();
        let Some(when) = parse_time(time.text) else {
            let expected = "a time in seconds, such as 1700000000.25 or +1.5";
            self.expected(codes::CONTROL_TIME, expected, time, &[]);
            return None;
        };
        self.change((Some(number), when), words)
    }

    /// Reads the rest of a line behind its time.
    fn change(&mut self, (line, when): (Option<u32>, When), mut words: Words<'a>) -> Option<Line> {
        let verb = words.next();
        let verbs = ["set", "add-rule", "remove-rule", "backend"];
        if !verbs.contains(&verb.text) {
            self.unknown_verb(verb, &verbs);
            return None;
        }
        let target = self.target(words.next())?;
        let place = self.span(words.rest());
        let change = match verb.text {
            "set" => self.set(&target, words.rest())?,
            "add-rule" => self.add_rule(&target, words)?,
            "remove-rule" => self.remove_rule(&target, words)?,
            _ => self.backend(&target, words)?,
        };
        let Target { node, param, .. } = target;
        Some(Line { scheduled: Scheduled { when, node, param, change, line }, place })
    }

    fn unknown_verb(&mut self, verb: Piece<'_>, verbs: &[&str]) {
        let quoted: Vec<String> = verbs.iter().map(|verb| format!("`{verb}`")).collect();
        let (last, others) = quoted.split_last().map_or(("", &[][..]), |(l, o)| (l.as_str(), o));
        let expected = format!("{} or {last}", others.join(", "));
        self.expected(codes::CONTROL_LINE, &expected, verb, verbs);
    }

    /// Reads `FUNCTION.PARAM`.
    fn target(&mut self, word: Piece<'a>) -> Option<Target<'a>> {
        let Some((function, param)) = word.text.split_once('.') else {
            self.expected(codes::CONTROL_LINE, "FUNCTION.PARAM", word, &[]);
            return None;
        };
        let param_at = Piece { text: param, at: word.at + function.len() + 1 };
        let nodes = &self.chain.nodes;
        let Some(at) = nodes.iter().position(|node| node.name == function) else {
            let names = nodes.iter().map(|node| node.name.as_str());
            let help = did_you_mean_help(function, names);
            let message = format!("the chain `{}` has no function `{function}`", self.chain.name);
            let span = self.span(Piece { text: function, at: word.at });
            let code = codes::CONTROL_UNKNOWN_FUNCTION;
            self.diags.push(Diagnostic::new(code, message, span, "unknown").help_if(help));
            return None;
        };
        let params = &nodes[at].model.params;
        let Some(number) = params.iter().position(|decl| !decl.is_written() && decl.name == param)
        else {
            let names = nodes[at].model.own_params().map(|decl| decl.name.as_str());
            let names: Vec<&str> = names.collect();
            let message = format!("`{function}` has no parameter `{param}`");
            let span = self.span(param_at);
            self.diags.push(
                Diagnostic::new(codes::CONTROL_UNKNOWN_PARAMETER, message, span, "unknown")
                    .note(format!("its parameters are {}", names.join(", ")))
                    .help_if(did_you_mean_help(param, names.iter().copied())),
            );
            return None;
        };
        Some(Target {
            node: u16::try_from(at).ok()?,
            param: ParamId(u32::try_from(number).ok()?),
            decl: &params[number],
            place: word,
        })
    }

    /// Whether the change applies to this kind of parameter. If not, that is reported.
    fn is_kind(&mut self, target: &Target<'_>, is: bool, verb: &str, kind: &str) -> bool {
        if !is {
            let message = format!(
                "`{verb}` is for parameters of type `{kind}`, which `{}` is not",
                target.place.text
            );
            let span = self.span(target.place);
            self.diags.push(
                Diagnostic::new(codes::CONTROL_KIND, message, span, "not of this type")
                    .help(format!("`set {} VALUE` gives it a new value", target.place.text)),
            );
        }
        is
    }

    fn set(&mut self, target: &Target<'_>, value: Piece<'_>) -> Option<Change> {
        let new = self.value(&target.decl.ty, value)?;
        let model = &self.chain.nodes[usize::from(target.node)].model;
        if let Some(wrong) = unfit(model, &target.decl.name, &new, self.span(value)) {
            self.diags.push(wrong);
            return None;
        }
        Some(Change::Set(new))
    }

    /// Reads a value in the notation of the language.
    fn value(&mut self, ty: &ParamTy, value: Piece<'_>) -> Option<ParamValue> {
        if value.text.is_empty() {
            self.expected(codes::CONTROL_LINE, "a value", value, &[]);
            return None;
        }
        let (expr, found) = parse_expr(value.text, self.file, offset(value.at));
        self.diags.extend(found);
        param_value(ty, &expr, self.env, self.diags)
    }

    fn number(&mut self, word: Piece<'_>) -> Option<usize> {
        let digits = !word.text.is_empty() && word.text.bytes().all(|b| b.is_ascii_digit());
        let number = word.text.parse().ok().filter(|_| digits);
        if number.is_none() {
            self.expected(codes::CONTROL_VALUE, "the number of a rule, from 0", word, &[]);
        }
        number
    }

    /// Reports anything that follows.
    fn end(&mut self, words: &Words<'_>) -> Option<()> {
        if words.is_done() {
            return Some(());
        }
        self.expected(codes::CONTROL_LINE, "the end of the line", words.rest(), &[]);
        None
    }

    fn add_rule(&mut self, target: &Target<'_>, mut words: Words<'_>) -> Option<Change> {
        if !self.is_kind(target, target.decl.ty == ParamTy::Rules, "add-rule", "rules") {
            return None;
        }
        let mut at = None;
        if words.rest.split_whitespace().next() == Some("at") {
            words.next();
            at = Some(self.number(words.next())?);
        }
        let rule = words.rest();
        match parse_rule(rule.text) {
            Ok(rule) => Some(Change::AddRule(at, rule)),
            Err(errors) => {
                for error in errors {
                    let column = (error.column as usize).saturating_sub(1);
                    let skip: usize = rule.text.chars().take(column).map(char::len_utf8).sum();
                    let rest = &rule.text[skip..];
                    let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
                    let place = Piece { text: &rest[..length], at: rule.at + skip };
                    let message = format!("expected {}, found {}", error.expected, error.found);
                    self.report(codes::CONTROL_VALUE, message, place, "");
                }
                None
            }
        }
    }

    fn remove_rule(&mut self, target: &Target<'_>, mut words: Words<'_>) -> Option<Change> {
        if !self.is_kind(target, target.decl.ty == ParamTy::Rules, "remove-rule", "rules") {
            return None;
        }
        let number = self.number(words.next())?;
        self.end(&words)?;
        Some(Change::RemoveRule(number))
    }

    fn backend(&mut self, target: &Target<'_>, mut words: Words<'_>) -> Option<Change> {
        let ParamTy::Backends(columns) = &target.decl.ty else {
            self.is_kind(target, false, "backend", "backends");
            return None;
        };
        let what = words.next();
        let known = ["up", "down", "add", "remove"];
        if !known.contains(&what.text) {
            self.unknown_verb(what, &known);
            return None;
        }
        let wanted = if what.text == "add" { columns.len() } else { 1 };
        let mut values = Vec::with_capacity(wanted);
        for (name, ty) in columns.iter().take(wanted) {
            values.push(self.column(name, *ty, words.next())?);
        }
        if !words.is_done() {
            let values = if wanted == 1 { "value" } else { "values" };
            let message = format!("`{}` takes {wanted} {values}, found more", what.text);
            let rest = words.rest();
            self.report(codes::CONTROL_VALUE, message, rest, "too many");
            return None;
        }
        let name = values.first().copied().unwrap_or_default();
        Some(match what.text {
            "up" => Change::BackendUp(name, true),
            "down" => Change::BackendUp(name, false),
            "add" => Change::AddBackend(values),
            _ => Change::RemoveBackend(name),
        })
    }

    fn column(&mut self, name: &str, ty: Ty, word: Piece<'_>) -> Option<Word> {
        if word.text.is_empty() {
            let what =
                if name.is_empty() { "a value".into() } else { format!("a value for `{name}`") };
            self.expected(codes::CONTROL_VALUE, &what, word, &[]);
            return None;
        }
        match self.value(&ParamTy::Scalar(ty), word)? {
            ParamValue::Scalar(value) => Some(value),
            _ => None,
        }
    }
}

/// Reads `SECONDS[.FRACTION]`. The time counts from the epoch, or with a leading `+` from the first
/// packet.
fn parse_time(text: &str) -> Option<When> {
    let (relative, digits) = match text.strip_prefix('+') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (seconds, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let nanos: u64 = format!("{fraction:0<9}").parse().ok()?;
    let seconds: u64 = seconds.parse().ok()?;
    let time = seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?;
    Some(if relative { When::AfterFirst(time) } else { When::At(time) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        assert_eq!(parse_time("+1.5"), Some(When::AfterFirst(1_500_000_000)));
        assert_eq!(parse_time("1700000000.000000001"), Some(When::At(1_700_000_000_000_000_001)));
        assert_eq!(parse_time("0"), Some(When::At(0)));
    }

    #[test]
    fn times_in_other_forms_are_refused() {
        for text in ["", "+", "-1", "1.", ".5", "1e3", "1s", "+-1", "1.0000000001", "1_0"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
        assert_eq!(parse_time("18446744074"), None, "beyond 64 bits of nanoseconds");
    }

    #[test]
    fn comments_end_lines_but_not_strings() {
        assert_eq!(without_comment("+1 set a.b 1 # then"), "+1 set a.b 1 ");
        assert_eq!(without_comment("# all"), "");
        assert_eq!(
            without_comment(r##"+1 set a.b "x # \" # y" # z"##),
            r##"+1 set a.b "x # \" # y" "##
        );
        assert_eq!(without_comment("a#b"), "a#b");
    }

    #[test]
    fn words_keep_their_places() {
        let mut words = Words::new("  ab  cd\n", 10);
        let first = words.next();
        assert_eq!((first.text, first.at), ("ab", 12));
        assert_eq!((words.rest().text, words.rest().at), ("cd", 16));
        words.next();
        assert!(words.is_done());
    }
}
