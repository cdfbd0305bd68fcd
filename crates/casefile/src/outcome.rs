//! The outcomes of a step: printed as text and compared with text.

use crate::convert::frame_of;
use crate::packet::{Frame, describe, parse};
use crate::stimulus::Output;
use crate::times::{parse_time, show_time};
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, Event, EventValue, StateEntry};
use braid_ir::model::Kind;
use braid_ir::show::show_all;

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A packet left.
    Packet {
        /// The number (from 1) of the capture's packet that caused it.
        number: Option<usize>,
        /// The packet's own time, if it differs from the step's time.
        at: Option<u64>,
        /// The interface.
        interface: String,
        /// The packet.
        frame: Frame,
    },
    /// Any other outcome, as text.
    Line(String),
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Packet { number, at, interface, frame } => {
                if let Some(number) = number {
                    write!(f, "#{number} ")?;
                }
                if let Some(at) = at {
                    write!(f, "at {} ", show_time(*at))?;
                }
                write!(f, "{interface}: {}", describe(frame))
            }
            Outcome::Line(line) => f.write_str(line),
        }
    }
}

impl Outcome {
    /// Whether a line of a case describes this outcome. Packets are compared as bytes, everything
    /// else as words.
    #[must_use]
    pub fn agrees(&self, expected: &str) -> bool {
        match self {
            Outcome::Packet { number, at, interface, frame } => {
                read_packet(expected).is_some_and(|(want_number, want_at, name, want)| {
                    (want_number, want_at) == (*number, *at) && name == *interface && want == *frame
                })
            }
            Outcome::Line(line) => line.split_whitespace().eq(expected.split_whitespace()),
        }
    }
}

/// Why a line that should describe a packet does not. `None`: it does, or it should not.
pub(crate) fn unreadable(text: &str) -> Option<String> {
    let rest = match text.strip_prefix('#') {
        Some(rest) => rest.split_once(' ')?.1,
        None => text,
    };
    let rest =
        rest.strip_prefix("at ").and_then(|rest| rest.split_once(' ')).map_or(rest, |at| at.1);
    let (interface, packet) = rest.split_once(": ")?;
    if interface.contains(char::is_whitespace) {
        return None;
    }
    parse(packet).err().map(|error| error.to_string())
}

/// Reads `[#3] [at 5s] lan: PACKET`.
pub(crate) fn read_packet(text: &str) -> Option<(Option<usize>, Option<u64>, &str, Frame)> {
    let (number, text) = match text.strip_prefix('#') {
        Some(rest) => {
            let (number, rest) = rest.split_once(' ')?;
            (Some(number.parse().ok()?), rest)
        }
        None => (None, text),
    };
    let (at, text) = match text.strip_prefix("at ") {
        Some(rest) => {
            let (time, rest) = rest.split_once(' ')?;
            (Some(parse_time(time)?), rest)
        }
        None => (None, text),
    };
    let (interface, packet) = text.split_once(": ")?;
    Some((number, at, interface, parse(packet).ok()?.frame()))
}

/// The outputs of a stimulus, in order.
pub(crate) fn outputs(
    chain: &Chain,
    outputs: &[Output],
    now: u64,
    number: Option<usize>,
) -> Vec<Outcome> {
    let mark = number.map_or_else(String::new, |number| format!("#{number} "));
    outputs
        .iter()
        .map(|output| match output {
            Output::Packet(interface, packet) => Outcome::Packet {
                number,
                at: (packet.time_ns != now).then_some(packet.time_ns),
                interface: chain
                    .interfaces
                    .get(usize::from(*interface))
                    .map_or_else(|| format!("interface {interface}"), |found| found.name.clone()),
                frame: frame_of(packet),
            },
            Output::Event(event) => Outcome::Line(format!("{mark}{}", event_line(chain, event))),
            Output::Refused(reason) => Outcome::Line(format!("{mark}refused {reason:?}")),
        })
        .collect()
}

fn node_name(chain: &Chain, node: u16) -> String {
    chain.nodes.get(usize::from(node)).map_or_else(|| format!("#{node}"), |node| node.name.clone())
}

fn row_label(chain: &Chain, node: u16, row: u32) -> String {
    let rows = chain.nodes.get(usize::from(node)).map(|node| &node.model.rows);
    rows.and_then(|rows| rows.get(row as usize))
        .map_or_else(|| format!("#{row}"), |row| row.label.clone())
}

fn event_line(chain: &Chain, event: &Event) -> String {
    let mut line = format!("event {} {}", node_name(chain, event.node), event.name);
    for (name, value) in &event.fields {
        line += &match value {
            EventValue::Scalar(kind, word) => format!(" {name}={}", kind.show(*word)),
            EventValue::Str(text) => format!(" {name}={text:?}"),
        };
    }
    line
}

/// The fates of packets that did not leave: the difference of two counter readings.
pub(crate) fn endings(
    chain: &Chain,
    before: &Counters,
    after: &Counters,
    number: Option<usize>,
) -> Vec<Outcome> {
    let mut lines = Vec::new();
    for (key @ (node, row, reason), count) in &after.drops {
        let times = count - before.drops.get(key).unwrap_or(&0);
        let (node, row) = (node_name(chain, *node), row_label(chain, *node, *row));
        add(&mut lines, &format!("drop {node} row {row} {reason:?}"), times);
    }
    for (reason, count) in &after.lost {
        let times = count - before.lost.get(reason).unwrap_or(&0);
        add(&mut lines, &format!("lost {reason:?}"), times);
    }
    add(&mut lines, "consumed", after.consumed - before.consumed);
    if after.held != before.held {
        lines.push(format!("held {}", after.held));
    }
    let mark = number.map_or_else(String::new, |number| format!("#{number} "));
    lines.into_iter().map(|line| Outcome::Line(format!("{mark}{line}"))).collect()
}

fn add(lines: &mut Vec<String>, line: &str, times: u64) {
    match times {
        0 => {}
        1 => lines.push(line.to_owned()),
        _ => lines.push(format!("{line} ×{times}")),
    }
}

/// A state entry: `nat.map[17, 10.0.0.1, 1234] = 1024 expires 120.1s`.
pub(crate) fn state_line(chain: &Chain, entry: &StateEntry) -> String {
    let mut line = format!("{}.{}", node_name(chain, entry.node), entry.table);
    if !entry.key.is_empty() {
        line += &format!("[{}]", show_all(&entry.key).join(", "));
    }
    line += " = ";
    let unnamed: Vec<_> = entry.slots.iter().map(|(_, kind, word)| (*kind, *word)).collect();
    line += &match &entry.slots[..] {
        [(name, kind, word)] if name.is_empty() => kind.show(*word),
        [(_, Kind::Length, _), ..] => show_all(&unnamed).concat(),
        slots => {
            let slots: Vec<_> = slots
                .iter()
                .map(|(name, kind, word)| format!("{name}: {}", kind.show(*word)))
                .collect();
            format!("{{ {} }}", slots.join(", "))
        }
    };
    if entry.shard != 0 {
        line += &format!(" shard {}", entry.shard);
    }
    if let Some(expires) = entry.expires_ns {
        line += &format!(" expires {}", show_time(expires));
    }
    line
}

/// All counters that are not 0.
pub(crate) fn counter_lines(chain: &Chain, counters: &Counters) -> Vec<String> {
    let mut lines = Vec::new();
    let mut plain = |name: &str, value: u64| {
        if value != 0 {
            lines.push(format!("{name} {value}"));
        }
    };
    plain("in", counters.packets_in);
    plain("created", counters.created);
    plain("copied", counters.copied);
    for (interface, count) in &counters.out {
        let name = chain.interfaces.get(usize::from(*interface)).map(|i| i.name.as_str());
        plain(&format!("out {}", name.unwrap_or("?")), *count);
    }
    plain("consumed", counters.consumed);
    plain("held", counters.held);
    for (reason, count) in &counters.lost {
        plain(&format!("lost {reason:?}"), *count);
    }
    for ((node, row, reason), count) in &counters.drops {
        let (node, row) = (node_name(chain, *node), row_label(chain, *node, *row));
        plain(&format!("drop {node} row {row} {reason:?}"), *count);
    }
    for (number, node) in (0_u16..).zip(&counters.nodes) {
        let name = node_name(chain, number);
        for (direction, traffic) in [("forward", node.forward), ("backward", node.backward)] {
            plain(&format!("{name} {direction} packets"), traffic.packets);
            plain(&format!("{name} {direction} bytes"), traffic.bytes);
        }
        for (row, traffic) in (0_u32..).zip(&node.rows) {
            let label = row_label(chain, number, row);
            plain(&format!("{name} row {label} packets"), traffic.packets);
        }
        table_lines(chain, number, node, &mut plain);
    }
    lines
}

fn table_lines(
    chain: &Chain,
    number: u16,
    node: &braid_ir::engine::NodeCounters,
    plain: &mut impl FnMut(&str, u64),
) {
    let name = node_name(chain, number);
    let Some(model) = chain.nodes.get(usize::from(number)).map(|node| &node.model) else { return };
    for (param, rules) in &node.rules {
        let param = model.params.get(*param as usize).map_or("?", |param| param.name.as_str());
        for (rule, count) in rules.iter().enumerate() {
            let rule =
                if rule + 1 == rules.len() { "default".to_owned() } else { rule.to_string() };
            plain(&format!("{name} {param} rule {rule} packets"), *count);
        }
    }
    for (table, decl) in node.tables.iter().zip(&model.state) {
        let name = format!("{name}.{}", decl.name);
        plain(&format!("{name} entries"), table.entries);
        plain(&format!("{name} created"), table.created);
        plain(&format!("{name} refused"), table.refused);
        plain(&format!("{name} evicted"), table.evicted);
        plain(&format!("{name} expired"), table.expired);
    }
    plain(&format!("{name} timers skipped"), node.timers_skipped);
    plain(&format!("{name} background faults"), node.background_faults);
}
