//! The solver: an external program that reads SMT-LIB 2 from a pipe.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::smt::{Said, name};
use crate::term::{Term, Terms};

/// The programs that are searched for, in this order.
const KNOWN: &[(&str, &[&str])] =
    &[("z3", &["-in", "-smt2"]), ("cvc5", &["--incremental", "--produce-models", "--lang=smt2"])];

/// Advice when no solver is found.
const REMEDY: &str =
    "install z3 (Debian and Ubuntu: apt-get install z3) or cvc5, or name one with --solver";

/// The text that the solver echoes after each answer to mark its end.
const MARK: &str = "braid-end";

/// How much longer than the solver's own time-out an answer is awaited.
const GRACE: Duration = Duration::from_secs(2);

/// The part of the time limit after which a question in the coarse form is given up. The exact form
/// has all of it.
const COARSE_PART: u32 = 10;

/// A solver program and the time limit of a question.
#[derive(Clone, Debug)]
pub struct Solver {
    program: PathBuf,
    args: Vec<String>,
    timeout: Duration,
}

/// A solver's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It can never hold.
    Never,
    /// It can hold.
    Possible,
    /// The solver does not know, for this reason.
    Unknown(String),
}

impl Solver {
    /// The named solver, or the first known one on the search path, with a time limit for each
    /// question.
    ///
    /// # Errors
    /// When no solver is found. The message tells how to get one.
    pub fn find(named: Option<&Path>, timeout: Duration) -> Result<Self, String> {
        let known = |program: &Path| {
            let stem = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            KNOWN.iter().find(|(name, _)| stem.starts_with(name))
        };
        let candidates = match named {
            Some(program) => {
                let args = known(program).map_or(&[][..], |(_, args)| args);
                vec![(program.to_owned(), args)]
            }
            None => KNOWN.iter().map(|(name, args)| (PathBuf::from(name), *args)).collect(),
        };
        for (program, args) in &candidates {
            let args = args.iter().map(|arg| (*arg).to_owned()).collect();
            let solver = Self { program: program.clone(), args, timeout };
            if solver.session(false).is_ok() {
                return Ok(solver);
            }
        }
        let tried: Vec<_> =
            candidates.iter().map(|(program, _)| program.display().to_string()).collect();
        Err(format!("no solver can be started (tried {}): {REMEDY}", tried.join(", ")))
    }

    /// The program's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.program.display().to_string()
    }

    /// Starts the program. In the coarse form, its answer `Possible` may be wrong.
    pub(crate) fn session(&self, coarse: bool) -> Result<Session, String> {
        let mut child = Command::new(&self.program)
            .args(&self.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|why| format!("{}: {why}", self.program.display()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the solver has no pipe".to_owned());
        };
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let timeout = if coarse { self.timeout / COARSE_PART } else { self.timeout };
        let said = Said::nothing(coarse);
        let mut session = Session { child, input, lines, timeout, said, asked: 0, dead: None };
        session.start()?;
        Ok(session)
    }
}

/// A running solver that answers one question after the other.
pub(crate) struct Session {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    timeout: Duration,
    said: Said,
    /// Number of questions asked.
    asked: usize,
    dead: Option<String>,
}

impl Session {
    fn start(&mut self) -> Result<(), String> {
        let limit = self.timeout.as_millis();
        let is_z3 = "(set-option :print-success false)\n(set-option :produce-models true)\n";
        self.send(is_z3)?;
        let version = self.ask("(get-info :name)\n", GRACE * 2)?;
        let option = if version.iter().any(|line| line.to_lowercase().contains("z3")) {
            format!("(set-option :timeout {limit})\n")
        } else {
            format!("(set-option :tlimit-per {limit})\n")
        };
        self.send(&option)?;
        self.send("(set-logic QF_UFBV)\n(declare-sort Token 0)\n")
    }

    fn send(&mut self, text: &str) -> Result<(), String> {
        self.input
            .write_all(text.as_bytes())
            .and_then(|()| self.input.flush())
            .map_err(|why| format!("the solver ended: {why}"))
    }

    /// Sends text and reads the complete answer.
    fn ask(&mut self, text: &str, limit: Duration) -> Result<Vec<String>, String> {
        if let Some(why) = &self.dead {
            return Err(why.clone());
        }
        let result = self.exchange(text, limit);
        if let Err(why) = &result {
            self.dead = Some(why.clone());
        }
        result
    }

    fn exchange(&mut self, text: &str, limit: Duration) -> Result<Vec<String>, String> {
        self.send(text)?;
        self.send(&format!("(echo \"{MARK}\")\n"))?;
        let until = Instant::now() + limit;
        let mut found = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.trim_matches('"') == MARK => return Ok(found),
                Ok(line) => found.push(line),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("no answer after {} s", limit.as_secs()));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("the solver ended: {}", found.join(" ")));
                }
            }
        }
    }

    /// Adds a fact for all questions.
    pub(crate) fn assume(&mut self, terms: &Terms, fact: Term) -> Result<(), String> {
        if self.dead.is_some() {
            // A dead solver gets no more text.
            return Ok(());
        }
        let mut text = String::new();
        self.said.define(terms, fact, &mut text);
        text += &format!("(assert {})\n", name(terms, fact));
        self.send(&text)
    }

    /// Whether a condition can hold. If so, also asks for `values`.
    pub(crate) fn check(
        &mut self,
        terms: &Terms,
        question: Term,
        values: &[Term],
    ) -> (Answer, Vec<u128>) {
        if let Some(known) = terms.decided(question)
            && (!known || values.is_empty())
        {
            return (if known { Answer::Possible } else { Answer::Never }, Vec::new());
        }
        match self.try_check(terms, question, values) {
            Ok(found) => found,
            Err(why) => (Answer::Unknown(why), Vec::new()),
        }
    }

    /// Asks under an assumption, and takes the assumption back by a fact. With `push` and `pop`
    /// the solver would forget all that it has worked out about the question's terms, and most
    /// questions of a program share most terms.
    fn try_check(
        &mut self,
        terms: &Terms,
        question: Term,
        values: &[Term],
    ) -> Result<(Answer, Vec<u128>), String> {
        let mut text = String::new();
        for term in values.iter().chain([&question]) {
            self.said.define(terms, *term, &mut text);
        }
        self.asked += 1;
        let here = format!("question{}", self.asked);
        text += &format!(
            "(declare-fun {here} () Bool)\n(assert (=> {here} {}))\n(check-sat-assuming ({here}))\n",
            name(terms, question)
        );
        let lines = self.ask(&text, self.timeout + GRACE)?;
        let answer = match lines.last().map(String::as_str) {
            Some("unsat") if lines.len() == 1 => Answer::Never,
            Some("sat") if lines.len() == 1 => Answer::Possible,
            Some("unknown" | "timeout") => Answer::Unknown("the solver gave up in time".to_owned()),
            _ => Answer::Unknown(format!("the solver says: {}", lines.join(" "))),
        };
        let mut found = Vec::new();
        if answer == Answer::Possible && !values.is_empty() {
            let names: Vec<_> = values.iter().map(|term| name(terms, *term)).collect();
            let lines = self.ask(&format!("(get-value ({}))\n", names.join(" ")), GRACE * 2)?;
            found = numbers(&lines.join(" "));
        }
        self.send(&format!("(assert (not {here}))\n"))?;
        Ok((answer, found))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The solver may still be running. If it has already ended, that is no error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The values in an answer to `get-value`: the last word of each innermost pair.
fn numbers(text: &str) -> Vec<u128> {
    let mut found = Vec::new();
    let (mut depth, mut last) = (0_usize, String::new());
    let mut word = String::new();
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' | ' ' | '\n' => {
                if !word.is_empty() {
                    last = std::mem::take(&mut word);
                }
                if character == ')' {
                    if depth == 2 {
                        found.push(number(&last));
                    }
                    depth = depth.saturating_sub(1);
                }
            }
            other => word.push(other),
        }
    }
    found
}

fn number(word: &str) -> u128 {
    let parse = |digits: &str, radix| u128::from_str_radix(digits, radix).unwrap_or(0);
    match word {
        "true" => 1,
        "false" => 0,
        _ => match (word.strip_prefix("#x"), word.strip_prefix("#b")) {
            (Some(digits), _) => parse(digits, 16),
            (_, Some(digits)) => parse(digits, 2),
            _ => 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_order() {
        let text = "((t1 #x0a) (f2 true) ((f 3) #b101) (x false))";
        assert_eq!(numbers(text), [10, 1, 5, 0]);
    }

    #[test]
    fn missing_solver_is_named_with_a_remedy() {
        let none = Path::new("/nonexistent/solver");
        let why = Solver::find(Some(none), Duration::from_secs(1)).unwrap_err();
        assert!(why.contains("/nonexistent/solver") && why.contains("apt-get install z3"), "{why}");
    }
}
