//! Packets of a mix of flows in memory, in the order in which they are sent. None is sent twice, so
//! that new flows are really new.

use std::collections::HashMap;
use std::hash::Hash;

use braid_ir::chain::Chain;
use braid_packet::{BURST, FlowKey, Link, Packet};
use braid_traffic::churn::Churn;

use crate::answers::{Answers, readdress};
use crate::definition::{Case, Mix};
use crate::feed::Feed;
use crate::frames::START_NS;
use crate::inputs::SEED;
use crate::mix::Ends;
use crate::trace::MAX_PACKETS;

/// The least number of packets that each active flow sends before the measurement, so that the
/// flows of the start have records.
const LEAST_ROUNDS: u64 = 5;
/// The least number of packets before the measurement.
const BEFORE: u64 = 1 << 14;
/// Number of packets of the measurement.
pub const MEASURED: u64 = 1 << 18;
/// Number of packets that an active flow sends in a second: `PER_SECOND`, or fewer if all flows
/// together would send more than `ALL_PER_SECOND`, but at least three. Where entries time out after
/// a second, tables then hold few more entries than there are active flows.
const PER_SECOND: u64 = 50;
const ALL_PER_SECOND: u64 = 500_000;
const LEAST_PER_SECOND: u64 = 3;
/// Frames start at multiples of this number of bytes.
const LINE: usize = 64;

/// A packet of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    time_ns: u64,
    /// The line at which the frame starts.
    line: u32,
    length: u16,
    ingress: u16,
    /// The number of the flow among all flows, with the highest bit set for its first packet.
    flow: u32,
}

/// The bit of a flow's first packet.
const FIRST: u32 = 1 << 31;
/// Instead of a flow's number, for packets without a flow.
const NO_FLOW: u32 = FIRST - 1;

/// The number of a flow, which is new or known.
fn numbered<Flow: Hash + Eq>(numbers: &mut HashMap<Flow, u32>, flow: Flow) -> u32 {
    let next = u32::try_from(numbers.len()).unwrap_or(NO_FLOW).min(NO_FLOW);
    *numbers.entry(flow).or_insert(next)
}

/// Packets in order, with their flows and the interfaces at which they enter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sequence {
    bytes: Vec<u8>,
    places: Vec<Place>,
    before: u64,
    flows: u32,
    has_replies: bool,
    is_captured: bool,
}

impl Sequence {
    /// The packets of a mix for a case and its chain: by default [`MEASURED`], and those before
    /// them.
    ///
    /// # Errors
    /// Returns an error when the mix or the chain is wrong.
    pub fn new(
        mix: &Mix,
        case: &Case,
        chain: &Chain,
        payloads: &[String],
        measured: Option<u64>,
    ) -> Result<Self, String> {
        let measured = measured.unwrap_or(MEASURED);
        let each = ALL_PER_SECOND / case.flows.max(1);
        let each = each.clamp(LEAST_PER_SECOND, PER_SECOND);
        // After a second, as many entries time out as later.
        let before = (case.flows * (each + 1).max(LEAST_ROUNDS)).max(BEFORE.min(measured));
        let step_ns = (1_000_000_000 / (each * case.flows.max(1))).max(1);
        let ends = mix.part.iter().enumerate().map(|(number, part)| Ends::new(part, number));
        let ends: Vec<Ends> = ends.collect::<Result<_, _>>()?;
        let mut churn = Churn::new(mix.churn(case), SEED);
        let has_replies = mix.has_replies();
        let mut sequence = Self { before, has_replies, ..Self::default() };
        let mut answers = if has_replies { Some(Answers::new(chain)?) } else { None };
        let mut numbers: HashMap<(usize, u64), u32> = HashMap::new();
        // The next sequence numbers of each flow's client and server.
        let mut next: HashMap<(usize, u64), [u32; 2]> = HashMap::new();
        while sequence.packets() < before + measured
            && let Some(step) = churn.next_step()
        {
            let (mut headers, back) = ends[step.part].headers(&step);
            let flow = (step.part, step.flow);
            let ingress = u16::from(mix.part[step.part].from_right != back);
            let time_ns = START_NS + (sequence.packets() + 1) * step_ns;
            if let Some(answers) = &mut answers {
                if back {
                    // What the chain drops has no answer.
                    let Some(answer) = answers.to(&flow) else { continue };
                    headers = answer.with_flags(headers.flags);
                }
                let mut packet = Packet::new(Link::Ethernet, time_ns, headers.frame(60, &[]));
                packet.ingress = ingress;
                answers.pass(flow, back, packet);
                if step.nth + 1 == step.size {
                    answers.end(&flow);
                }
            }
            let length = case.frame_bytes as usize;
            let both = next.entry(flow).or_insert([1, 1]);
            let sides = if back { [1, 0] } else { [0, 1] };
            headers = headers.with_numbers(both[sides[0]], both[sides[1]]);
            let len = headers.payload_len(length) as u32 + u32::from(!headers.has_payload());
            both[sides[0]] = both[sides[0]].wrapping_add(len);
            if step.nth + 1 == step.size {
                next.remove(&flow);
            }
            let number = numbered(&mut numbers, flow);
            let first = if step.nth == 0 { FIRST } else { 0 };
            let frame = headers.frame(length, payloads);
            sequence.push(&frame, (time_ns, ingress), number | first);
        }
        sequence.flows = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        Ok(sequence)
    }

    /// The packets of a capture. Who sends the first packet of a conversation is at the chain's
    /// first interface, and its peer at the second one. Packets of the peer answer what has left
    /// the chain.
    ///
    /// # Errors
    /// Returns an error when the capture has no packets, or when the chain is wrong.
    pub fn captured(packets: &[Packet], chain: &Chain) -> Result<Self, String> {
        let mut answers = Answers::new(chain)?;
        let mut sequence = Self { has_replies: true, is_captured: true, ..Self::default() };
        let mut numbers: HashMap<FlowKey, u32> = HashMap::new();
        let mut clients: HashMap<FlowKey, FlowKey> = HashMap::new();
        for packet in packets.iter().take(MAX_PACKETS) {
            let mut packet = packet.clone();
            (packet.ingress, packet.backward, packet.held) = (0, false, false);
            let mut flow = NO_FLOW;
            if let Some(key) = packet.flow_key(&packet.parse()) {
                let both = key.bidirectional();
                let first = if clients.contains_key(&both) { 0 } else { FIRST };
                let back = *clients.entry(both).or_insert(key) != key;
                if let Some(answer) = answers.to(&both).filter(|_| back) {
                    readdress(&mut packet, answer);
                }
                packet.ingress = u16::from(back);
                answers.pass(both, back, packet.clone());
                flow = numbered(&mut numbers, both) | first;
            }
            sequence.push(packet.data(), (packet.time_ns, packet.ingress), flow);
        }
        if sequence.places.is_empty() {
            return Err("the capture has no packets".to_owned());
        }
        sequence.before = sequence.packets() / 5;
        sequence.flows = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        Ok(sequence)
    }

    fn push(&mut self, frame: &[u8], (time_ns, ingress): (u64, u16), flow: u32) {
        let line = (self.bytes.len() / LINE) as u32;
        self.bytes.extend(frame);
        self.bytes.resize(self.bytes.len().next_multiple_of(LINE), 0);
        let length = u16::try_from(frame.len()).unwrap_or(u16::MAX);
        self.places.push(Place { time_ns, line, length, ingress, flow });
    }

    /// Number of packets.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.places.len() as u64
    }

    /// Number of packets before the measurement.
    #[must_use]
    pub fn before(&self) -> u64 {
        self.before.min(self.packets())
    }

    /// The most trials into which the measured packets can be divided.
    #[must_use]
    pub fn most_trials(&self) -> usize {
        ((self.packets() - self.before()) as usize / (3 * BURST)).max(1)
    }

    /// Number of packets of a trial, if there are `trials` of them. In front of each, a quarter
    /// of a trial is sent, too.
    #[must_use]
    pub fn trial(&self, trials: usize) -> u64 {
        let (all, burst) = (self.packets() - self.before(), BURST as u64);
        let bursts = all / trials.max(1) as u64 / burst;
        // Both parts are whole bursts.
        (bursts * 4).div_ceil(5).saturating_sub(1).max(1) * burst
    }

    /// Number of flows.
    #[must_use]
    pub fn flows(&self) -> u32 {
        self.flows
    }

    /// Whether the packets come from a capture.
    #[must_use]
    pub fn is_captured(&self) -> bool {
        self.is_captured
    }

    /// Whether some packets answer what left the chain. The others of a selection of packets are
    /// then not the same as in the whole.
    #[must_use]
    pub fn has_replies(&self) -> bool {
        self.has_replies
    }

    /// Length of the longest frame in bytes.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.places.iter().map(|place| usize::from(place.length)).max().unwrap_or(0)
    }

    /// The number of each packet's flow.
    pub fn flow_numbers(&self) -> impl Iterator<Item = u32> {
        self.places.iter().map(|place| place.flow & !FIRST)
    }

    /// The share of the measured packets that begin a flow, from 0 to 1.
    #[must_use]
    pub fn new_share(&self) -> f64 {
        let measured = self.places.get(self.before() as usize..).unwrap_or_default();
        let first = measured.iter().filter(|place| place.flow & FIRST != 0).count();
        first as f64 / measured.len().max(1) as f64
    }

    /// The packets, for a capture.
    pub fn in_order(&self) -> impl Iterator<Item = Packet> {
        self.places.iter().map(|place| {
            let mut packet = Packet::new(Link::Ethernet, place.time_ns, self.frame(place));
            packet.ingress = place.ingress;
            packet
        })
    }

    /// A cursor that begins at the first packet.
    #[must_use]
    pub fn cursor(&self) -> Once<'_> {
        Once { sequence: self, at: 0 }
    }

    /// Adds the packet of this number to a burst.
    #[inline]
    pub fn add(&self, at: u64, feed: &mut Feed) {
        let Some(place) = self.places.get(at as usize) else { return };
        feed.add_at(place.ingress, place.time_ns, self.frame(place));
    }

    #[inline]
    fn frame(&self, place: &Place) -> &[u8] {
        let start = place.line as usize * LINE;
        &self.bytes[start..start + usize::from(place.length)]
    }
}

/// A position in a [`Sequence`].
#[derive(Clone, Debug)]
pub struct Once<'a> {
    sequence: &'a Sequence,
    at: u64,
}

impl Once<'_> {
    /// Adds the next packet to a burst, or nothing at the end.
    #[inline]
    pub fn add(&mut self, feed: &mut Feed) {
        self.sequence.add(self.at, feed);
        self.at += 1;
    }
}
