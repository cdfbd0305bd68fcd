//! Pairs: a generated chain with traffic. Engines must process it as the reference engine does. A
//! pair on which an engine differs is stored as a file, and run again from there.

use crate::generate::program::{Program, any};
use crate::generate::traffic::recorded;
use crate::harness::{self, Engine, Form, USERS};
use crate::record::{Detail, Stimulus, Trace, record};
use braid_ir::chain::Chain;
use braid_packet::{Link, Packet};
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

/// Number of stimuli of each pair.
const STIMULI: usize = 150;

/// A chain with traffic.
pub struct Pair {
    seed: u64,
    program: Program,
    chain: Chain,
    stimuli: Vec<Stimulus>,
    expected: Trace,
}

/// A finding about a pair: the stimuli that show it, if they have a text form.
pub struct Found {
    seed: u64,
    program: Program,
    report: String,
    stimuli: Vec<Stimulus>,
}

impl Pair {
    /// The pair of a seed.
    ///
    /// # Errors
    /// The diagnostics of a chain that does not compile.
    pub fn draw(seed: u64) -> Result<Self, String> {
        Self::of(seed, any(seed))
    }

    fn of(seed: u64, program: Program) -> Result<Self, String> {
        let chain = harness::compile(&program.source, &program.files, Form::AsWritten)
            .map_err(|errors| format!("seed {seed}\n{program}\n{errors}"))?;
        let (stimuli, expected) = recorded(&chain, seed, STIMULI);
        Ok(Self { seed, program, chain, stimuli, expected })
    }

    /// The engines that a seed chooses, one of them with the options of users. With
    /// `machine_code`, they run machine code.
    #[must_use]
    pub fn engines(&self, machine_code: bool) -> Vec<Engine> {
        let users = usize::try_from(self.seed / 7).unwrap_or(0) % USERS.len();
        let mut engines = Engine::drawn(self.seed, machine_code);
        engines.push(USERS[users]);
        engines
    }

    /// Runs engines on the pair. Returns the first difference.
    #[must_use]
    pub fn check(&self, engines: impl IntoIterator<Item = Engine>) -> Option<Found> {
        engines.into_iter().find_map(|engine| {
            let report = engine.compare(&self.chain, &self.stimuli, &self.expected).err()?;
            let text = format!("reference and {engine}: {report}");
            Some(Found { stimuli: report.stimuli, ..self.as_found(&text) })
        })
    }

    /// The whole pair in the form of a finding.
    #[must_use]
    pub fn as_found(&self, report: &str) -> Found {
        let Self { seed, program, stimuli, .. } = self;
        let (report, stimuli) = (report.to_owned(), stimuli.clone());
        Found { seed: *seed, program: program.clone(), report, stimuli }
    }

    /// Reads a stored pair.
    ///
    /// # Errors
    /// Why the pair cannot be read.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let (mut seed, mut program, mut steps) = (0, Program::default(), None);
        for section in text.split("\n=== ").skip(1) {
            let (title, body) = section.split_once('\n').unwrap_or((section, ""));
            match title.split_once(' ') {
                Some(("seed", number)) => {
                    seed = number.parse().map_err(|_| format!("{number}: no seed"))?
                }
                Some(("file", name)) => {
                    drop(program.files.insert(name.to_owned(), body.to_owned()))
                }
                _ if title == "chain" => program.source = body.to_owned(),
                _ if title == "steps" => steps = Some(body.to_owned()),
                _ => return Err(format!("unknown section: {title}")),
            }
        }
        let mut pair = Self::of(seed, program)?;
        if let Some(steps) = steps {
            let lines = steps.lines().filter(|line| !line.is_empty());
            let stimuli: Option<Vec<_>> = lines.map(read_step).collect();
            pair.stimuli = stimuli.ok_or("a step cannot be read")?;
            pair.expected =
                record(harness::reference(&pair.chain).as_mut(), &pair.stimuli, Detail::End);
        }
        Ok(pair)
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}\n{}", self.seed, self.report, self.program)
    }
}

impl Found {
    /// Stores the finding as a file in a folder. Returns the path.
    ///
    /// # Errors
    /// Why the file cannot be written.
    pub fn keep(&self, folder: &Path) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(format!("seed-{}.txt", self.seed));
        std::fs::write(&path, self.text())?;
        Ok(path)
    }

    /// The finding in the form of its file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text: String = self.report.lines().map(|line| format!("# {line}\n")).collect();
        let _ = write!(text, "\n=== seed {}\n=== chain\n{}", self.seed, self.program.source);
        for (name, file) in &self.program.files {
            let _ = write!(text, "\n=== file {name}\n{file}");
        }
        // Changes of configuration have no text form. Pairs with changes make their traffic from
        // the seed again.
        let steps: Option<Vec<String>> = self.stimuli.iter().map(step_text).collect();
        if let Some(steps) = steps {
            let _ = write!(text, "\n=== steps\n{}\n", steps.join("\n"));
        }
        text
    }
}

const LINKS: [Link; 4] = [Link::Ethernet, Link::RawIp, Link::Cooked, Link::Cooked2];

fn step_text(stimulus: &Stimulus) -> Option<String> {
    match stimulus {
        Stimulus::Packet(interface, packet) => {
            let link = LINKS.iter().position(|link| *link == packet.link)?;
            let bytes: String = packet.data().iter().map(|byte| format!("{byte:02x}")).collect();
            let Packet { time_ns, wire_len, .. } = packet;
            Some(format!("packet {interface} {time_ns} {link} {wire_len} x{bytes}"))
        }
        Stimulus::Advance(time_ns) => Some(format!("advance {time_ns}")),
        Stimulus::Control(_) => None,
    }
}

fn read_step(line: &str) -> Option<Stimulus> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["packet", interface, time_ns, link, wire_len, bytes] => {
            let digits = bytes.strip_prefix('x')?.as_bytes();
            let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
            let data: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
            let link = *LINKS.get(link.parse::<usize>().ok()?)?;
            let packet =
                Packet::snapped(link, time_ns.parse().ok()?, data?, wire_len.parse().ok()?);
            Some(Stimulus::Packet(interface.parse().ok()?, packet))
        }
        ["advance", time_ns] => Some(Stimulus::Advance(time_ns.parse().ok()?)),
        _ => None,
    }
}

/// The folder of pairs with differences, until these are fixed.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("found")
}
