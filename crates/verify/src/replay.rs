//! Runs a refutation's packet on engines to confirm the difference.
//!
//! Only packets fill tables. If the packet makes no difference in an empty chain, it is run again
//! after other packets made from it: itself, its reply, and replies to packets that leave the chain
//! for it. These may leave the entries that the packet needs. Entries that only other packets leave
//! are not found. The solver computes no checksums. So the packet is run with right checksums, and
//! with 0xffff, the form of zero that no function writes.

use std::collections::BTreeMap;

use braid_ir::chain::Chain;
use braid_ir::engine::{Engine, Event, Outputs, StateEntry, Traffic};
use braid_packet::{Field, Packet};

/// The most packets that are run before the packet.
const MOST_BEFORE: usize = 2;
/// The most packets and interfaces that are tried before the packet.
const MOST_TRIED: usize = 12;

/// Makes engines in their initial state. `false` selects the engine that runs the chain function by
/// function, and `true` the engine with combined programs. `None` when there is no such engine for
/// this chain.
pub type Engines<'a> = dyn FnMut(bool) -> Option<Box<dyn Engine>> + 'a;

/// A packet, and the number of the interface where it enters.
pub type Entering = (u16, Packet);

/// A run in which the chain and its program differ.
#[derive(Clone, PartialEq, Debug)]
pub struct Replay {
    /// Packets that run before, to fill tables.
    pub before: Vec<Entering>,
    /// The packet that makes the difference.
    pub entering: Entering,
    /// Results of the chain, run function by function, that the program lacks. One for each line.
    pub chain: Vec<String>,
    /// Results of the program that the chain lacks.
    pub program: Vec<String>,
}

/// Runs a packet on both engines, at every interface. `None` when nothing differs.
pub fn replay(chain: &Chain, packet: &Packet, engines: &mut Engines<'_>) -> Option<Replay> {
    let interfaces = 0..u16::try_from(chain.interfaces.len()).unwrap_or(u16::MAX);
    let mut entering: Vec<Entering> = interfaces.map(|number| (number, packet.clone())).collect();
    let mut odd = entering.clone();
    odd.iter_mut().for_each(|(_, packet)| braid_packet::checksum::fill_not_canonical(packet));
    entering.extend(odd);
    let mut before: Vec<Vec<Entering>> = vec![Vec::new()];
    for _ in 0..=MOST_BEFORE {
        for before in &before {
            for last in &entering {
                if let Some(found) = differ(chain, before, last, engines) {
                    return Some(found);
                }
            }
        }
        let others = others(chain, &entering, engines)?;
        before = before
            .iter()
            .flat_map(|before| {
                others.iter().map(|other| [before.as_slice(), std::slice::from_ref(other)].concat())
            })
            .collect();
    }
    None
}

/// Packets that may leave the required entries in tables.
fn others(
    chain: &Chain,
    entering: &[Entering],
    engines: &mut Engines<'_>,
) -> Option<Vec<Entering>> {
    let mut found: Vec<Entering> = entering.to_vec();
    for one in entering {
        let mut seen = Seen::default();
        engines(false)?.packet(one.0, one.1.clone(), &mut seen);
        let replies = seen.packets.iter().map(|(interface, packet)| (*interface, reply(packet)));
        found.extend(replies);
        let reply = reply(&one.1);
        found.extend((0..).zip(&chain.interfaces).map(|(number, _)| (number, reply.clone())));
    }
    let mut kept: Vec<Entering> = Vec::new();
    for one in found {
        if !kept.contains(&one) && kept.len() < MOST_TRIED {
            kept.push(one);
        }
    }
    Some(kept)
}

/// The packet with its addresses and ports exchanged.
fn reply(packet: &Packet) -> Packet {
    let mut reply = packet.clone();
    let layout = reply.parse();
    for (one, other) in [
        (Field::EthSrc, Field::EthDst),
        (Field::IpSrc, Field::IpDst),
        (Field::Ip6Src, Field::Ip6Dst),
        (Field::TcpSport, Field::TcpDport),
        (Field::UdpSport, Field::UdpDport),
    ] {
        if let (Some(a), Some(b)) = (packet.get(&layout, one), packet.get(&layout, other)) {
            reply.set(&layout, one, b);
            reply.set(&layout, other, a);
        }
    }
    reply
}

/// The differences after the last packet.
fn differ(
    chain: &Chain,
    before: &[Entering],
    last: &Entering,
    engines: &mut Engines<'_>,
) -> Option<Replay> {
    let mut run = |together: bool| {
        let mut engine = engines(together)?;
        let mut seen = Seen::default();
        for (interface, packet) in before.iter().chain([last]) {
            let mut packet = packet.clone();
            packet.ingress = *interface;
            engine.packet(*interface, packet, &mut seen);
        }
        Some(lines(chain, engine.as_ref(), &seen))
    };
    let (chain, program) = (run(false)?, run(true)?);
    if chain == program {
        return None;
    }
    let mut replay = Replay {
        before: before.to_vec(),
        entering: last.clone(),
        chain: only(&chain, &program),
        program: only(&program, &chain),
    };
    if replay.chain.is_empty() && replay.program.is_empty() {
        // The results are the same, but in another order.
        (replay.chain, replay.program) = (chain, program);
    }
    Some(replay)
}

/// The lines that the other list lacks.
fn only(lines: &[String], others: &[String]) -> Vec<String> {
    let mut left: BTreeMap<&String, usize> = BTreeMap::new();
    for line in others {
        *left.entry(line).or_default() += 1;
    }
    let mut only = lines.to_vec();
    only.retain(|line| match left.get_mut(line) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
    only
}

/// The output of an engine.
#[derive(Default)]
struct Seen {
    packets: Vec<Entering>,
    /// Packets and events, in order.
    order: Vec<Given>,
}

enum Given {
    Packet(usize),
    Event(Event),
}

impl Outputs for Seen {
    fn packet(&mut self, interface: u16, packet: Packet) {
        self.order.push(Given::Packet(self.packets.len()));
        self.packets.push((interface, packet));
    }

    fn event(&mut self, event: Event) {
        self.order.push(Given::Event(event));
    }
}

/// All results of a run, one for each line.
fn lines(chain: &Chain, engine: &dyn Engine, seen: &Seen) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for given in &seen.order {
        lines.push(match given {
            Given::Packet(number) => packet_text(chain, &seen.packets[*number]),
            Given::Event(event) => format!("event {} {:?}", event.name, event.fields),
        });
    }
    let name = |node: u16| &chain.nodes[usize::from(node)].name;
    let counters = engine.counters();
    let counted = |what: String, traffic: &Traffic| {
        format!("{what}: {} packets, {} bytes", traffic.packets, traffic.bytes)
    };
    for ((number, node), declared) in (0..).zip(&counters.nodes).zip(&chain.nodes) {
        let name = name(number);
        lines.push(counted(format!("{name} forward"), &node.forward));
        lines.push(counted(format!("{name} backward"), &node.backward));
        for (row, traffic) in node.rows.iter().enumerate() {
            lines.push(counted(format!("{name} row {row}"), traffic));
        }
        for (table, counters) in declared.model.state.iter().zip(&node.tables) {
            lines.push(format!("{name}.{}: {counters:?}", table.name));
        }
        lines.push(format!("{name} rules: {:?}", node.rules));
        lines.push(format!("{name} timers skipped: {}", node.timers_skipped));
        lines.push(format!("{name} background faults: {}", node.background_faults));
    }
    for ((node, row, reason), count) in &counters.drops {
        lines.push(format!("{} row {row}: {count} dropped as {reason}", name(*node)));
    }
    for (interface, count) in &counters.out {
        let interface = &chain.interfaces[usize::from(*interface)].name;
        lines.push(format!("{interface}: {count} packets left"));
    }
    for (what, count) in [
        ("entered", counters.packets_in),
        ("built", counters.created),
        ("copied", counters.copied),
        ("consumed", counters.consumed),
        ("held", counters.held),
    ] {
        lines.push(format!("{what} in all: {count}"));
    }
    lines.push(format!("lost: {:?}", counters.lost));
    lines.extend(engine.state().iter().map(|entry| entry_text(name(entry.node), entry)));
    lines
}

fn entry_text(function: &str, entry: &StateEntry) -> String {
    let key: Vec<String> = entry.key.iter().map(|(_, word)| format!("{word:#x}")).collect();
    let slots: Vec<String> =
        entry.slots.iter().map(|(name, _, word)| format!("{name}={word:#x}")).collect();
    format!(
        "entry {function}.{}[{}] {} (shard {}, from {}, seen {}, until {:?})",
        entry.table,
        key.join(" "),
        slots.join(" "),
        entry.shard,
        entry.created_ns,
        entry.last_seen_ns,
        entry.expires_ns
    )
}

/// A packet at an interface, as readable text.
fn packet_text(chain: &Chain, (interface, packet): &Entering) -> String {
    let bytes: Vec<String> = packet.data().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("packet at {}: {}", chain.interfaces[usize::from(*interface)].name, bytes.join(" "))
}

/// A line without most of the zeros at the end of a packet.
fn short(line: &str) -> String {
    let rest = line.trim_end_matches(" 00");
    match (line.len() - rest.len()) / 3 {
        0..=8 => line.to_owned(),
        zeros => format!("{rest} (and {zeros} times 00)"),
    }
}

impl Replay {
    /// The packets of the run and the differences, as lines indented by two spaces.
    #[must_use]
    pub fn text(&self, chain: &Chain) -> String {
        let mut text = String::new();
        for one in &self.before {
            text += &format!("  before  {}\n", short(&packet_text(chain, one)));
        }
        text += &format!("  enters  {}\n", short(&packet_text(chain, &self.entering)));
        for (title, lines) in
            [("function by function", &self.chain), ("put together", &self.program)]
        {
            text += &format!("  only {title}:\n");
            for line in lines {
                text += &format!("    {}\n", short(line));
            }
        }
        text
    }
}
