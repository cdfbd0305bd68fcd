//! Gives the steps of a case to an engine, and collects what happens.

use std::path::Path;

use braid_io::{CaptureReader, PacketSource as _};
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{Counters, Engine};
use braid_packet::Packet;
use braid_runtime::follow::Follow;
use braid_runtime::split::Splitter;

use crate::convert::packet_of;
use crate::outcome::{Outcome, counter_lines, endings, outputs, state_line};
use crate::script::{Mistake, Script, StepKind};
use crate::stimulus::{Output, Stimulus, step};

/// Reads a line of a control file without its time, for this time (ns).
pub type Change<'a> = dyn Fn(u64, &str) -> Result<Control, String> + 'a;

/// A case that was played.
#[derive(Debug)]
pub struct Played {
    /// The outcomes of each step.
    pub outcomes: Vec<Vec<Outcome>>,
    /// The stimuli, for other engines to repeat.
    pub stimuli: Vec<Stimulus>,
    /// The counters at the end.
    pub counters: Counters,
}

/// Plays a case on an engine that runs the chain and has seen no packets. Files are beside the
/// case's own, in `folder`.
///
/// # Errors
/// The first step that cannot be played, or after which packets are not accounted for.
pub fn play(
    folder: &Path,
    script: &Script,
    chain: &Chain,
    engine: &mut dyn Engine,
    change: &Change<'_>,
) -> Result<Played, Mistake> {
    let counters = engine.counters();
    let mut player =
        Player { folder, chain, engine, change, counters, follow: None, stimuli: Vec::new() };
    let mut all = Vec::new();
    for step in &script.steps {
        let wrong = |message| Mistake { line: step.line, message };
        all.push(player.step(&step.kind).map_err(wrong)?);
        if !player.counters.balanced() {
            let counters = &player.counters;
            return Err(wrong(format!("packets are not accounted for: {counters:?}")));
        }
    }
    Ok(Played { outcomes: all, stimuli: player.stimuli, counters: player.counters })
}

struct Player<'a> {
    folder: &'a Path,
    chain: &'a Chain,
    engine: &'a mut dyn Engine,
    change: &'a Change<'a>,
    counters: Counters,
    /// The state of following a capture, while that runs.
    follow: Option<Follow>,
    /// The stimuli so far.
    stimuli: Vec<Stimulus>,
}

impl Player<'_> {
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
                let control = (self.change)(*time_ns, line)?;
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
        let packets = read_capture(&self.folder.join(file))?;
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
        let mut given = step(self.engine, stimulus);
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

/// The most packets of a capture in a case: all of them and their outcomes are in memory.
const MOST_PACKETS: usize = 1 << 20;

fn read_capture(path: &Path) -> Result<Vec<Packet>, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let mut reader = CaptureReader::open(path).map_err(|why| wrong(&why))?;
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().map_err(|why| wrong(&why))? {
        if packets.len() == MOST_PACKETS {
            return Err(wrong(&format!(
                "a case takes at most {MOST_PACKETS} packets of a capture"
            )));
        }
        packets.push(packet);
    }
    match reader.warning() {
        Some(warning) => Err(wrong(&warning)),
        None => Ok(packets),
    }
}
