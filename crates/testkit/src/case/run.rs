//! Runs a case and compares its outcomes with the expected ones.

use super::listing::Case;
use super::outcome::{Outcome, counter_lines, endings, outputs, state_line};
use super::script::{Script, Step, StepKind};
use crate::convert::packet_of;
use crate::harness::{self, Form};
use crate::record::{Output, Stimulus, step};
use braid_ir::chain::{Chain, Node};
use braid_ir::engine::{Counters, Engine, NodeCounters};
use braid_runtime::follow::Follow;
use braid_runtime::split::Splitter;

/// A place where a case fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// File and line.
    pub place: String,
    /// The expected and the actual outcome.
    pub message: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Runs a case three times: as written, a second time, and with its functions printed anew. With
/// `bless`, first rewrites outcomes that differ.
///
/// # Errors
/// All places that differ.
pub fn check(case: &Case, bless: bool) -> Result<(), Vec<Difference>> {
    let path = case.folder.join("case.txt");
    let fail = |line: usize, message: String| {
        vec![Difference { place: format!("{}/case.txt:{line}", case.name), message }]
    };
    let text = std::fs::read_to_string(&path).map_err(|error| fail(0, error.to_string()))?;
    let mut script = Script::read(&text).map_err(|wrong| fail(wrong.line, wrong.message))?;
    let first = run(case, &script, Form::AsWritten).map_err(|wrong| fail(wrong.0, wrong.1))?;
    if bless {
        for (step, outcomes) in script.steps.iter_mut().zip(&first) {
            if !holds(step, outcomes) {
                step.expected = outcomes.iter().map(ToString::to_string).collect();
            }
        }
        let new = script.to_string();
        if new != text {
            std::fs::write(&path, new).map_err(|error| fail(0, error.to_string()))?;
        }
    }
    let differences: Vec<_> = script
        .steps
        .iter()
        .zip(&first)
        .filter(|(step, outcomes)| !holds(step, outcomes))
        .flat_map(|(step, outcomes)| fail(step.line, show(step, outcomes)))
        .collect();
    if !differences.is_empty() {
        return Err(differences);
    }
    for (form, what) in [(Form::AsWritten, "a second run"), (Form::Formatted, "formatted models")] {
        let again = run(case, &script, form).map_err(|wrong| fail(wrong.0, wrong.1))?;
        if let Some(at) = (0..first.len()).find(|&at| again[at] != first[at]) {
            let outcomes = show(&script.steps[at], &again[at]);
            return Err(fail(script.steps[at].line, format!("{what} differs: {outcomes}")));
        }
    }
    Ok(())
}

/// The rows of functions that the packets of a case take: function, label of the row, number of
/// packets. Rows that no packet takes are included with 0.
///
/// # Errors
/// When the case cannot be run, as for [`check`].
pub fn rows(case: &Case) -> Result<Vec<(String, String, u64)>, Difference> {
    let (chain, _, counters) = played(case)?;
    let nodes = chain.nodes.iter().zip(&counters.nodes);
    let of_node = |(node, counters): (&Node, &NodeCounters)| {
        let model = &node.model;
        let rows = model.rows.iter().zip(&counters.rows);
        rows.map(|(row, traffic)| (model.name.clone(), row.label.clone(), traffic.packets))
            .collect::<Vec<_>>()
    };
    Ok(nodes.flat_map(of_node).collect())
}

/// The chain and the stimuli of a case, for other engines to repeat.
///
/// # Errors
/// When the case cannot be run, as for [`check`].
pub fn replay(case: &Case) -> Result<(Chain, Vec<Stimulus>), Difference> {
    let (chain, stimuli, _) = played(case)?;
    Ok((chain, stimuli))
}

/// A case as the reference engine runs it: chain, stimuli, counters at the end.
fn played(case: &Case) -> Result<(Chain, Vec<Stimulus>, Counters), Difference> {
    let path = case.folder.join("case.txt");
    let wrong = |(line, message): (usize, String)| Difference {
        place: format!("{}/case.txt:{line}", case.name),
        message,
    };
    let text = std::fs::read_to_string(&path).map_err(|error| wrong((0, error.to_string())))?;
    let script = Script::read(&text).map_err(|mistake| wrong((mistake.line, mistake.message)))?;
    let chain = harness::compile_file(&case.chain, Form::AsWritten);
    let chain = chain.map_err(|error| wrong((0, error)))?;
    let mut runner = Runner::new(case, &chain);
    for step in &script.steps {
        runner.step(&step.kind).map_err(|message| wrong((step.line, message)))?;
    }
    let (stimuli, counters) = (runner.stimuli, runner.counters);
    Ok((chain, stimuli, counters))
}

fn holds(step: &Step, outcomes: &[Outcome]) -> bool {
    step.expected.len() == outcomes.len()
        && outcomes.iter().zip(&step.expected).all(|(outcome, line)| outcome.agrees(line))
}

fn show(step: &Step, outcomes: &[Outcome]) -> String {
    let mut text = format!("{}\n  expected:\n", step.text);
    for line in &step.expected {
        text += &format!("    {line}\n");
    }
    text += "  happened:\n";
    for outcome in outcomes {
        text += &format!("    {outcome}\n");
    }
    text
}

/// The outcomes of each step. Otherwise the line and the error of the case.
fn run(case: &Case, script: &Script, form: Form) -> Result<Vec<Vec<Outcome>>, (usize, String)> {
    let chain = harness::compile_file(&case.chain, form).map_err(|error| (0, error))?;
    let mut runner = Runner::new(case, &chain);
    let mut all = Vec::new();
    for step in &script.steps {
        all.push(runner.step(&step.kind).map_err(|message| (step.line, message))?);
        if !runner.counters.balanced() {
            let counters = &runner.counters;
            return Err((step.line, format!("packets are not accounted for: {counters:?}")));
        }
    }
    Ok(all)
}

struct Runner<'a> {
    case: &'a Case,
    chain: &'a Chain,
    engine: Box<dyn Engine>,
    counters: Counters,
    /// The state of following a capture, while that runs.
    follow: Option<Follow>,
    /// The stimuli so far.
    stimuli: Vec<Stimulus>,
}

impl<'a> Runner<'a> {
    fn new(case: &'a Case, chain: &'a Chain) -> Self {
        let engine = harness::reference(chain);
        let counters = engine.counters();
        Self { case, chain, engine, counters, follow: None, stimuli: Vec::new() }
    }

    fn step(&mut self, kind: &StepKind) -> Result<Vec<Outcome>, String> {
        match kind {
            StepKind::Packet { time_ns, interface, packet } => {
                let ingress = self.interface(interface)?;
                let packet = packet_of(&packet.frame(), *time_ns);
                Ok(self.apply(&Stimulus::Packet(ingress, packet), *time_ns, None))
            }
            StepKind::Capture { interface, file, followed, quietly } => {
                let all = self.capture(interface.as_deref(), file, *followed)?;
                Ok(if *quietly { Vec::new() } else { all })
            }
            StepKind::Advance { time_ns } => {
                Ok(self.apply(&Stimulus::Advance(*time_ns), *time_ns, None))
            }
            StepKind::Control { time_ns, line } => {
                let control = harness::control(self.chain, *time_ns, line, &self.case.folder)?;
                Ok(self.apply(&Stimulus::Control(control), *time_ns, None))
            }
            StepKind::State(function) => self.state(function.as_deref()),
            StepKind::Counters => {
                let lines = counter_lines(self.chain, &self.engine.counters());
                Ok(lines.into_iter().map(Outcome::Line).collect())
            }
        }
    }

    fn capture(
        &mut self,
        interface: Option<&str>,
        file: &str,
        followed: bool,
    ) -> Result<Vec<Outcome>, String> {
        let interface = interface.map(|name| self.interface(name)).transpose()?;
        let splitter = Splitter::new(self.chain);
        self.follow = followed.then(Follow::default);
        let packets = harness::read_capture(&self.case.folder.join(file))?;
        let mut all = Vec::new();
        for (number, mut packet) in (1..).zip(packets) {
            let layout = packet.parse();
            let reply = self.follow.as_mut().and_then(|follow| follow.reply(&mut packet, &layout));
            let told = || splitter.ingress(&packet, &layout);
            let Some(ingress) = interface.or(reply).or_else(told) else {
                return Err(format!("packet {number} of {file} belongs to no interface"));
            };
            if let (Some(follow), None) = (&mut self.follow, reply) {
                follow.enter(&mut packet, &layout, ingress);
            }
            let now = packet.time_ns;
            all.extend(self.apply(&Stimulus::Packet(ingress, packet), now, Some(number)));
        }
        self.follow = None;
        Ok(all)
    }

    fn apply(&mut self, stimulus: &Stimulus, now: u64, number: Option<usize>) -> Vec<Outcome> {
        let mut given = step(self.engine.as_mut(), stimulus);
        self.stimuli.push(stimulus.clone());
        for output in &mut given {
            if let (Some(follow), Output::Packet(interface, packet)) = (&mut self.follow, output) {
                follow.leave(packet, *interface);
            }
        }
        let after = self.engine.counters();
        let mut all = outputs(self.chain, &given, now, number);
        all.extend(endings(self.chain, &self.counters, &after, number));
        self.counters = after;
        all
    }

    fn interface(&self, name: &str) -> Result<u16, String> {
        let at = self.chain.interfaces.iter().position(|interface| interface.name == name);
        at.and_then(|at| u16::try_from(at).ok()).ok_or_else(|| {
            let names: Vec<_> = self.chain.interfaces.iter().map(|i| i.name.as_str()).collect();
            format!("there is no interface `{name}`; the chain has {}", names.join(", "))
        })
    }

    fn state(&self, function: Option<&str>) -> Result<Vec<Outcome>, String> {
        let is = |node: u16, name: &str| {
            self.chain.nodes.get(usize::from(node)).is_some_and(|node| node.name == name)
        };
        if let Some(name) = function
            && !self.chain.nodes.iter().any(|node| node.name == name)
        {
            return Err(format!("there is no function `{name}` in the chain"));
        }
        let entries = self.engine.state();
        let wanted =
            entries.iter().filter(|entry| function.is_none_or(|name| is(entry.node, name)));
        Ok(wanted.map(|entry| Outcome::Line(state_line(self.chain, entry))).collect())
    }
}
