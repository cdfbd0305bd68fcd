//! Compares two engines on the same chain and stimuli, and shrinks a failing sequence.

use crate::convert::frame_of;
use crate::packet::describe;
use crate::record::{Detail, Output, Stimulus, Trace, record};
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, Engine};
use braid_packet::Packet;
use std::fmt::Write as _;

/// The first difference of two runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Its kind.
    pub kind: MismatchKind,
    /// The number of the stimulus, if the difference appears at one.
    pub step: Option<usize>,
    /// The left and the right side as text.
    pub text: String,
}

/// The kinds of differences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MismatchKind {
    /// One engine panicked.
    Panic,
    /// Only one engine let a packet leave, or the outputs are of different kinds.
    Outputs,
    /// Packets left by different interfaces.
    Interface,
    /// Packets differ in their bytes or in their length on the wire.
    Bytes,
    /// Packets differ in their time or tags.
    Attributes,
    /// Events differ.
    Events,
    /// The engines refused different changes of configuration.
    Refusals,
    /// Drops differ.
    Drops,
    /// Losses differ.
    Lost,
    /// Other counters differ.
    Counters,
    /// State differs.
    State,
}

/// The first difference of two runs, if any.
#[must_use]
pub fn difference(left: &Trace, right: &Trace) -> Option<Mismatch> {
    let steps = left.outputs.iter().zip(&right.outputs).enumerate();
    for (step, (a, b)) in steps {
        if let Some((kind, text)) = outputs(a, b) {
            return Some(Mismatch { kind, step: Some(step), text });
        }
    }
    if left.panic != right.panic {
        let step = Some(left.outputs.len().min(right.outputs.len()));
        let text = format!("{:?}\n{:?}", left.panic, right.panic);
        return Some(Mismatch { kind: MismatchKind::Panic, step, text });
    }
    for (step, (a, b)) in left.counters.iter().zip(&right.counters).enumerate() {
        if let Some((kind, text)) = counters(a, b) {
            let step = (left.counters.len() == left.outputs.len()).then_some(step);
            return Some(Mismatch { kind, step, text });
        }
    }
    state(left, right)
}

fn outputs(left: &[Output], right: &[Output]) -> Option<(MismatchKind, String)> {
    let (a, b) = (0..left.len().max(right.len()))
        .map(|at| (left.get(at), right.get(at)))
        .find(|(a, b)| !same(*a, *b))?;
    let events = |all: &[Output]| all.iter().filter(|o| matches!(o, Output::Event(_))).count();
    let kind = match (a, b) {
        (Some(Output::Packet(i, a)), Some(Output::Packet(j, b))) => {
            if (a.data(), a.wire_len, a.link) != (b.data(), b.wire_len, b.link) {
                MismatchKind::Bytes
            } else if i != j {
                MismatchKind::Interface
            } else {
                MismatchKind::Attributes
            }
        }
        (Some(Output::Event(_)), Some(Output::Event(_))) => MismatchKind::Events,
        (Some(Output::Refused(_)), _) | (_, Some(Output::Refused(_))) => MismatchKind::Refusals,
        _ if events(left) != events(right) => MismatchKind::Events,
        _ => MismatchKind::Outputs,
    };
    Some((kind, format!("{}\n{}", show_output(a), show_output(b))))
}

/// Whether outputs are equal as seen from outside. The direction of a packet that left, and whether
/// it was held, no longer matter.
fn same(a: Option<&Output>, b: Option<&Output>) -> bool {
    match (a, b) {
        (Some(Output::Packet(i, a)), Some(Output::Packet(j, b))) => {
            let seen = |p: &Packet| (p.link, p.time_ns, p.wire_len, p.ingress);
            i == j && seen(a) == seen(b) && same_tags(a, b) && a.data() == b.data()
        }
        (a, b) => a == b,
    }
}

/// Whether packets have the same tags. A tag that a packet lacks is 0.
fn same_tags(a: &Packet, b: &Packet) -> bool {
    let value = |packet: &Packet, name| packet.tags.get(name).copied().unwrap_or(0);
    let mut names = a.tags.keys().chain(b.tags.keys());
    names.all(|name| value(a, name) == value(b, name))
}

fn show_output(output: Option<&Output>) -> String {
    match output {
        None => "nothing".to_owned(),
        Some(Output::Packet(interface, packet)) => {
            let mut text = format!("interface {interface}: {}", describe(&frame_of(packet)));
            let _ = write!(text, " (time {}, tags {:?})", packet.time_ns, packet.tags);
            text
        }
        Some(other) => format!("{other:?}"),
    }
}

fn counters(left: &Counters, right: &Counters) -> Option<(MismatchKind, String)> {
    if left == right {
        return None;
    }
    if left.drops != right.drops {
        let text = format!("drops {:?}\ndrops {:?}", left.drops, right.drops);
        return Some((MismatchKind::Drops, text));
    }
    if left.lost != right.lost {
        let text = format!("lost {:?}\nlost {:?}", left.lost, right.lost);
        return Some((MismatchKind::Lost, text));
    }
    let mut nodes = left.nodes.iter().zip(&right.nodes).enumerate();
    let text = match nodes.find(|(_, (a, b))| a != b) {
        Some((node, (a, b))) => format!("function {node}: {a:?}\nfunction {node}: {b:?}"),
        None => format!("{left:?}\n{right:?}"),
    };
    Some((MismatchKind::Counters, text))
}

fn state(left: &Trace, right: &Trace) -> Option<Mismatch> {
    let at = (0..left.state.len().max(right.state.len()))
        .find(|&at| left.state.get(at) != right.state.get(at))?;
    let text = format!("{:?}\n{:?}", left.state.get(at), right.state.get(at));
    Some(Mismatch { kind: MismatchKind::State, step: None, text })
}

/// Makes an engine for a chain.
pub type Make<'a> = &'a dyn Fn(&Chain) -> Box<dyn Engine>;

/// Two engines that differ, with a sequence of stimuli that cannot be shortened.
#[derive(Clone, Debug)]
pub struct Report {
    /// Their difference on this sequence.
    pub mismatch: Mismatch,
    /// The sequence.
    pub stimuli: Vec<Stimulus>,
    /// Names of the chain's interfaces.
    interfaces: Vec<String>,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "engines differ in {:?} at {:?}:", self.mismatch.kind, self.mismatch.step)?;
        writeln!(f, "{}", self.mismatch.text)?;
        writeln!(f, "on these steps of a case.txt:")?;
        for stimulus in &self.stimuli {
            match stimulus {
                Stimulus::Packet(interface, packet) => {
                    let name = self.interfaces.get(usize::from(*interface));
                    let name = name.map_or("?", String::as_str);
                    let text = describe(&frame_of(packet));
                    writeln!(f, "{}ns {name}: {text}", packet.time_ns)?;
                }
                Stimulus::Advance(time_ns) => writeln!(f, "{time_ns}ns advance")?,
                Stimulus::Control(control) => writeln!(f, "{control:?}")?,
            }
        }
        Ok(())
    }
}

/// Compares two engines.
///
/// # Errors
/// The difference, on a smallest sequence: no single stimulus can be removed from it.
pub fn compare(
    chain: &Chain,
    left: Make<'_>,
    right: Make<'_>,
    stimuli: &[Stimulus],
) -> Result<(), Box<Report>> {
    let wrong = |stimuli: &[Stimulus], expected: &Trace| {
        difference(expected, &record(right(chain).as_mut(), stimuli, Detail::End))
    };
    let expected = record(left(chain).as_mut(), stimuli, Detail::End);
    check(chain, left, &wrong, stimuli, &expected)
}

/// Checks the result of a run on stimuli. Returns the difference from the expected result.
pub type Wrong<'a> = &'a dyn Fn(&[Stimulus], &Trace) -> Option<Mismatch>;

/// Checks a run against `expected`, which is the result of `left` on these stimuli (with counters
/// at the end).
///
/// # Errors
/// When they differ, as for [`compare`].
pub fn check(
    chain: &Chain,
    left: Make<'_>,
    wrong: Wrong<'_>,
    stimuli: &[Stimulus],
    expected: &Trace,
) -> Result<(), Box<Report>> {
    let Some(first) = wrong(stimuli, expected) else { return Ok(()) };
    let again =
        |stimuli: &[Stimulus]| wrong(stimuli, &record(left(chain).as_mut(), stimuli, Detail::End));
    let (stimuli, mismatch) = shrink(stimuli, first, &again);
    let interfaces = chain.interfaces.iter().map(|interface| interface.name.clone()).collect();
    Err(Box::new(Report { mismatch, stimuli, interfaces }))
}

/// Removes smaller and smaller pieces as long as `fails` still returns a finding.
pub fn shrink<T: Clone, R>(
    items: &[T],
    finding: R,
    fails: &dyn Fn(&[T]) -> Option<R>,
) -> (Vec<T>, R) {
    let (mut items, mut finding) = (items.to_vec(), finding);
    let mut size = items.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut changed = false;
        while at < items.len() {
            let mut fewer = items.clone();
            fewer.drain(at..(at + size).min(items.len()));
            match fails(&fewer) {
                Some(found) => (items, finding, changed) = (fewer, found, true),
                None => at += size,
            }
        }
        match (size, changed) {
            (1, false) => return (items, finding),
            (1, true) => {}
            _ => size = size.div_ceil(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrink_keeps_only_what_is_needed() {
        let items: Vec<u32> = (0..100).collect();
        let fails = |some: &[u32]| (some.contains(&17) && some.contains(&83)).then_some(());
        assert_eq!(shrink(&items, (), &fails).0, [17, 83]);
    }
}
