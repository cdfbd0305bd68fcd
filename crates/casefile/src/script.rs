//! Reads and writes `case.txt`: steps in the first column, outcomes indented below them.

use crate::packet::{Spec, parse};
use crate::times::parse_time;

/// A `case.txt`.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Comments and empty lines before the first step.
    pub head: Vec<String>,
    /// Steps in order.
    pub steps: Vec<Step>,
}

/// A step and its expected outcomes.
#[derive(Clone, Debug)]
pub struct Step {
    /// Line in the file, from 1.
    pub line: usize,
    /// The written text.
    pub text: String,
    /// Its action.
    pub kind: StepKind,
    /// The written outcomes, without indentation.
    pub expected: Vec<String>,
    /// Comments and empty lines behind the outcomes.
    pub tail: Vec<String>,
}

/// The action of a step.
#[derive(Clone, Debug)]
pub enum StepKind {
    /// A packet enters at an interface.
    Packet {
        /// The time (ns).
        time_ns: u64,
        /// The interface.
        interface: String,
        /// The packet.
        packet: Box<Spec>,
    },
    /// The packets of a capture enter.
    Capture {
        /// The interface. `None`: the addresses of each packet select the interface.
        interface: Option<String>,
        /// The file, relative to the case's folder.
        file: String,
        /// Whether replies are rewritten to match the translated request.
        followed: bool,
        /// Whether outcomes are not listed.
        quietly: bool,
    },
    /// Everything that is due by this time runs.
    Advance {
        /// The time (ns).
        time_ns: u64,
    },
    /// A change from a control file.
    Control {
        /// The time (ns).
        time_ns: u64,
        /// The rest of the line, behind its time.
        line: String,
    },
    /// Lists the state of one function or of all functions.
    State(Option<String>),
    /// Lists counters.
    Counters,
}

/// Why a `case.txt` cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// Line, from 1.
    pub line: usize,
    /// The mistake.
    pub message: String,
}

impl Script {
    /// Reads a `case.txt`.
    ///
    /// # Errors
    /// The first line that is not a step, outcome or comment.
    pub fn read(text: &str) -> Result<Self, Mistake> {
        let mut script = Self::default();
        let mut now = 0;
        for (number, line) in text.lines().enumerate() {
            let line_number = number + 1;
            let mistake = |message| Mistake { line: line_number, message };
            if line.trim().is_empty() || line.starts_with('#') {
                let place = script.steps.last_mut().map_or(&mut script.head, |step| &mut step.tail);
                place.push(line.trim_end().to_owned());
            } else if line.starts_with([' ', '\t']) {
                let Some(step) = script.steps.last_mut() else {
                    return Err(mistake("an outcome stands in front of the first step".to_owned()));
                };
                // When outcomes are rewritten, a comment between them moves behind them.
                step.expected.push(line.trim().to_owned());
            } else {
                let kind = step(line, &mut now).map_err(mistake)?;
                let (expected, tail) = (Vec::new(), Vec::new());
                let text = line.trim_end().to_owned();
                script.steps.push(Step { line: line_number, text, kind, expected, tail });
            }
        }
        if script.steps.is_empty() {
            return Err(Mistake { line: 1, message: "there is no step".to_owned() });
        }
        Ok(script)
    }
}

impl std::fmt::Display for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in &self.head {
            writeln!(f, "{line}")?;
        }
        for step in &self.steps {
            writeln!(f, "{}", step.text)?;
            for line in &step.expected {
                writeln!(f, "    {line}")?;
            }
            for line in &step.tail {
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}

/// Reads a step. `now` is the time of the previous step.
fn step(line: &str, now: &mut u64) -> Result<StepKind, String> {
    let (first, rest) = split(line);
    match (first, rest) {
        ("state", "") => return Ok(StepKind::State(None)),
        ("state", function) => return Ok(StepKind::State(Some(function.to_owned()))),
        ("counters", "") => return Ok(StepKind::Counters),
        ("capture", rest) => return capture(None, rest),
        _ => {}
    }
    if let (Some(interface), ("capture", file)) = (first.strip_suffix(':'), split(rest)) {
        return match file {
            "" => Err(format!("expected `{interface}: capture FILE`, found `{rest}`")),
            _ => capture(Some(interface.to_owned()), file),
        };
    }
    let time_ns = match first.strip_prefix('+') {
        Some(later) => parse_time(later).and_then(|ns| now.checked_add(ns)),
        None => parse_time(first),
    };
    let Some(time_ns) = time_ns else {
        if let Some(interface) = first.strip_suffix(':') {
            return Err(format!(
                "a packet has a time in front of its interface: write `0s {interface}: {rest}`, or \
                 `+1ms {interface}: …` for 1 ms after the step before"
            ));
        }
        return Err(format!("expected a time such as 0s, 1.5s or +20ms, found `{first}`"));
    };
    *now = time_ns;
    let (word, rest) = split(rest);
    match word.strip_suffix(':') {
        Some(interface) => {
            let packet = parse(rest).map_err(|error| error.to_string())?;
            let interface = interface.to_owned();
            Ok(StepKind::Packet { time_ns, interface, packet: Box::new(packet) })
        }
        None if word == "advance" && rest.is_empty() => Ok(StepKind::Advance { time_ns }),
        None if word.is_empty() => Err("expected `INTERFACE: PACKET` or `advance`".to_owned()),
        None => Ok(StepKind::Control { time_ns, line: format!("{word} {rest}") }),
    }
}

/// Reads the words behind `capture`.
fn capture(interface: Option<String>, rest: &str) -> Result<StepKind, String> {
    let words: Vec<_> = rest.split_whitespace().collect();
    let (file, followed, quietly) = match words[..] {
        [file] => (file, false, false),
        [file, "quietly"] => (file, false, true),
        [file, "followed"] if interface.is_none() => (file, true, false),
        [file, "followed", "quietly"] if interface.is_none() => (file, true, true),
        _ => return Err(format!("expected `capture FILE`, found `capture {rest}`")),
    };
    Ok(StepKind::Capture { interface, file: file.to_owned(), followed, quietly })
}

/// Splits off the first word.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_prints_as_it_was_read() {
        let text = "# what\n\n0s lan: udp 1.1.1.1:1 > 2.2.2.2:2\n    wan: x\n\n# more\n+5ms advance\nstate nat\n";
        let script = Script::read(text).expect("a script");
        assert_eq!(script.to_string(), text);
        assert_eq!(script.steps[0].expected, ["wan: x"]);
        assert!(matches!(script.steps[1].kind, StepKind::Advance { time_ns: 5_000_000 }));
    }

    #[test]
    fn captures_enter_at_an_interface_or_by_their_addresses() {
        let text = "lan: capture a.pcap\ncapture b.pcap followed quietly\n";
        let script = Script::read(text).expect("a script");
        assert!(matches!(&script.steps[0].kind,
            StepKind::Capture { interface: Some(lan), followed: false, quietly: false, .. }
            if lan == "lan"));
        assert!(matches!(&script.steps[1].kind,
            StepKind::Capture { interface: None, file, followed: true, quietly: true }
            if file == "b.pcap"));
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, line, what) in [
            ("    wan: x\n", 1, "first step"),
            ("# a\n\nsoon advance\n", 3, "expected a time"),
            ("0s lan: upd 1.1.1.1:1 > 2.2.2.2:2\n", 1, "no layer"),
            ("lan: capture\n", 1, "capture FILE"),
            ("lan: udp 1.1.1.1:1 > 2.2.2.2:2\n", 1, "write `0s lan: udp 1.1.1.1:1 > 2.2.2.2:2`"),
            ("lan: capture a.pcap followed\n", 1, "capture FILE"),
            ("capture a.pcap loudly\n", 1, "capture FILE"),
            ("# only\n", 1, "no step"),
        ] {
            let mistake = Script::read(text).expect_err(text);
            assert_eq!(mistake.line, line);
            assert!(mistake.message.contains(what), "{}", mistake.message);
        }
    }
}
