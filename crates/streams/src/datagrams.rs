//! The flows of datagrams that a function inspects by signatures.
//!
//! A flow is known from its first datagram on, whose sender is the client, until none has come for
//! a time. Each function has flows of its own.

use crate::follower::Part;
use crate::function::Function;
use crate::inspections::{Inspected, Run};
use crate::keys::{get_key, put_key};
use crate::orders::Orders;
use crate::packets::OfFlow;
use crate::program::End;
use braid_ir::model::ReasonId;
use braid_packet::{FlowKey, Layout, Packet, proto};
use braid_signatures::{Datagrams, Kind};
use braid_tcp::{Reader, Stored, put_bytes};
use foldhash::fast::RandomState;
use hashlink::LinkedHashMap;

/// The most flows that a function knows. Beyond that, the one that was idle for longest is
/// forgotten.
pub const MAX_FLOWS: usize = 65_536;
/// The most memory of the flows of a function. Beyond that, likewise.
pub const MAX_MEMORY: usize = 64 << 20;
/// A flow without datagrams for this time is forgotten (nanoseconds).
pub const IDLE_NS: u64 = 300_000_000_000;

/// A flow.
#[derive(Debug)]
struct Flow {
    /// From the sender of the first datagram.
    client: FlowKey,
    /// When the last one came.
    last_ns: u64,
    /// Both ends have sent one.
    is_answered: bool,
    part: Part,
    /// One for each parameter with signatures.
    inspections: Vec<Datagrams>,
}

/// The flows of a function, by their keys for both directions, the one that was idle for longest
/// first.
#[derive(Debug, Default)]
pub struct Flows {
    all: LinkedHashMap<FlowKey, Flow, RandomState>,
    /// The memory of all flows (bytes).
    memory: usize,
    /// Flows that were forgotten although they were not idle.
    pub forgotten: u64,
    /// IP fragments that signatures do not see.
    pub fragments: u64,
    /// Packets whose last bytes the capture lacks.
    pub cut: u64,
}

impl Flows {
    /// A datagram has come. Obeys an order for its flow. Runs a program for each alert, until one
    /// of them gives up or resets the flow. Returns the reason for which the flow was reset, and
    /// whether that was just now.
    pub fn packet(
        &mut self,
        (packet, layout): (&Packet, &Layout),
        orders: &mut Orders,
        inspected: &mut Inspected<'_>,
        run: &mut Run<'_>,
    ) -> Option<(ReasonId, bool)> {
        let is_inspected = inspected.has_packets(Kind::Udp);
        let from = packet.flow_key(layout)?;
        let now = inspected.now;
        let ordered = orders.take(from, now, |from| self.knows(from, now));
        if !is_inspected && ordered.is_none() && self.all.is_empty() {
            return None;
        }
        let flow = self.flow(from, now, is_inspected || ordered.is_some())?;
        if let Part::Reset(reason) = flow.part {
            return Some((reason, false));
        }
        let memory = flow.memory();
        let ordered = ordered.unwrap_or(End::Forward);
        flow.ended(ordered);
        let end = match ordered {
            End::Reset(_) => ordered,
            _ if flow.part == Part::Left || !is_inspected => End::Forward,
            _ => flow.inspect((packet, layout, from), inspected, run),
        };
        let changed = flow.memory();
        self.memory = self.memory + changed - memory;
        while self.memory > MAX_MEMORY && self.all.len() > 1 {
            self.forget_oldest(now);
        }
        match end {
            End::Reset(reason) => Some((reason, true)),
            End::Forward | End::Bypass | End::Resume => None,
        }
    }

    /// Whether a flow is known.
    fn knows(&self, flow: FlowKey, now: u64) -> bool {
        self.all.get(&flow.bidirectional()).is_some_and(|flow| !flow.is_idle(now))
    }

    /// The flow of a datagram. If none is known and one may begin, it does.
    fn flow(&mut self, from: FlowKey, now: u64, begins: bool) -> Option<&mut Flow> {
        let key = from.bidirectional();
        if self.all.get(&key).is_some_and(|flow| flow.is_idle(now))
            && let Some(flow) = self.all.remove(&key)
        {
            self.memory -= flow.memory();
        }
        if !self.all.contains_key(&key) {
            if !begins {
                return None;
            }
            if self.all.len() >= MAX_FLOWS {
                self.forget_oldest(now);
            }
            let new = Flow::new(from);
            self.memory += new.memory();
            self.all.insert(key, new);
        }
        let flow = self.all.to_back(&key)?;
        flow.last_ns = flow.last_ns.max(now);
        flow.is_answered |= from != flow.client;
        Some(flow)
    }

    /// Forgets the flow that was idle for longest.
    fn forget_oldest(&mut self, now: u64) {
        if let Some((_, oldest)) = self.all.pop_front() {
            self.memory -= oldest.memory();
            self.forgotten += u64::from(!oldest.is_idle(now));
        }
    }

    /// Writes the flows.
    pub fn put(&self, out: &mut Vec<u8>) {
        (self.all.len() as u64).put(out);
        for flow in self.all.values() {
            put_key(flow.client, out);
            flow.last_ns.put(out);
            flow.is_answered.put(out);
            match flow.part {
                Part::Left => 1_u8.put(out),
                Part::Reset(ReasonId(reason)) => {
                    2_u8.put(out);
                    reason.put(out);
                }
                Part::New | Part::Follows | Part::Over => 0_u8.put(out),
            }
            (flow.inspections.len() as u64).put(out);
            flow.inspections.iter().for_each(|one| put_bytes(&one.to_bytes(), out));
        }
    }

    /// Reads flows. `reasons`: the names of reasons as they were written. `is_same`: the function
    /// has the same parameters with signatures.
    pub fn get(
        from: &mut Reader<'_>,
        function: &Function,
        reasons: &[String],
        is_same: bool,
    ) -> Option<Self> {
        let mut flows = Self::default();
        for _ in 0..from.len_of_list()? {
            let client = get_key(proto::UDP, from)?;
            let (last_ns, is_answered) = (u64::get(from)?, bool::get(from)?);
            let part = match u8::get(from)? {
                0 => Part::Follows,
                1 => Part::Left,
                2 => {
                    let name = reasons.get(usize::try_from(u32::get(from)?).ok()?)?;
                    function.reason(name).map_or(Part::Left, Part::Reset)
                }
                _ => return None,
            };
            let inspections =
                (0..from.len_of_list()?).map(|_| Datagrams::from_bytes(from.bytes()?));
            let mut inspections = inspections.collect::<Option<Vec<_>>>()?;
            if !is_same {
                inspections.clear();
            }
            let flow = Flow { client, last_ns, is_answered, part, inspections };
            flows.memory += flow.memory();
            let is_there = flows.all.insert(client.bidirectional(), flow).is_some();
            if is_there || flows.all.len() > MAX_FLOWS {
                return None;
            }
        }
        Some(flows)
    }
}

impl Flow {
    fn new(client: FlowKey) -> Self {
        let (part, inspections) = (Part::Follows, Vec::new());
        Self { client, last_ns: 0, is_answered: false, part, inspections }
    }

    fn is_idle(&self, now: u64) -> bool {
        now.saturating_sub(self.last_ns) > IDLE_NS
    }

    /// Its memory (bytes).
    fn memory(&self) -> usize {
        let inspections = self.inspections.iter().map(Datagrams::memory).sum::<usize>();
        let places = self.inspections.capacity() * size_of::<Datagrams>();
        size_of::<(FlowKey, Self)>() + places + inspections
    }

    /// Inspects a datagram.
    fn inspect(
        &mut self,
        (packet, layout, flow): (&Packet, &Layout, FlowKey),
        inspected: &mut Inspected<'_>,
        run: &mut Run<'_>,
    ) -> End {
        let (from_client, is_established) = (flow == self.client, self.is_answered);
        let of_flow = OfFlow { packet, layout, flow, from_client, is_established };
        let inspections = &mut self.inspections;
        inspections.resize_with(inspected.of.len(), Datagrams::default);
        let end = of_flow.inspect(inspected, run, &mut |at, rules, seen| {
            inspections.get_mut(at).into_iter().for_each(|one| one.packet(rules, seen));
        });
        self.ended(end);
        end
    }

    /// A program has ended, or an order was given.
    fn ended(&mut self, end: End) {
        match end {
            End::Forward => return,
            End::Bypass => self.part = Part::Left,
            End::Reset(reason) => self.part = Part::Reset(reason),
            End::Resume => return self.part = Part::Follows,
        }
        self.inspections = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::{FlowKey, Flows, IDLE_NS, MAX_FLOWS, Part, Reader, ReasonId};
    use crate::function::Function;
    use braid_ir::model::Model;
    use braid_packet::proto::UDP;

    fn from(client: usize) -> FlowKey {
        FlowKey { version: 4, src: client as u128, dst: 1 << 31, proto: UDP, sport: 1, dport: 2 }
    }

    #[test]
    fn flow_that_was_idle_for_longest_is_forgotten_and_counted() {
        let mut flows = Flows::default();
        for client in 0..MAX_FLOWS {
            flows.flow(from(client), 0, true).expect("a flow").part = Part::Left;
        }
        // The first one is not the oldest any more.
        assert_eq!(flows.flow(from(0).reversed(), 1, false).expect("known").part, Part::Left);
        assert!(flows.flow(from(MAX_FLOWS), 1, false).is_none(), "none may begin");
        assert_eq!(flows.forgotten, 0);
        assert_eq!(flows.flow(from(MAX_FLOWS), 1, true).expect("new").part, Part::Follows);
        assert_eq!((flows.all.len(), flows.forgotten), (MAX_FLOWS, 1));
        assert!(flows.flow(from(1), 1, false).is_none(), "forgotten");
        assert_eq!(flows.flow(from(0), 1, false).expect("known").part, Part::Left);
        // A flow that is idle is not missed.
        flows.flow(from(MAX_FLOWS + 1), IDLE_NS + 2, true).expect("new");
        assert_eq!(flows.forgotten, 1);
    }

    #[test]
    fn flows_end_when_they_are_idle_and_know_who_began() {
        let mut flows = Flows::default();
        let flow = flows.flow(from(1), 5, true).expect("new");
        assert!(!flow.is_answered && flow.client == from(1));
        let flow = flows.flow(from(1).reversed(), 5 + IDLE_NS, true).expect("known");
        assert!(flow.is_answered && flow.client == from(1));
        // Time goes back.
        assert!(flows.flow(from(1), 0, true).expect("known").is_answered);
        let flow = flows.flow(from(1).reversed(), 6 + 2 * IDLE_NS, true).expect("new");
        assert!(!flow.is_answered && flow.client == from(1).reversed());
    }

    #[test]
    fn flows_are_read_as_they_were_written() {
        let mut model = Model::new("f");
        model.reasons = vec!["new".to_owned(), "old".to_owned()];
        let function = Function::of(&model);
        let mut flows = Flows::default();
        for (client, part) in
            [Part::Follows, Part::Left, Part::Reset(ReasonId(0))].iter().enumerate()
        {
            flows.flow(from(client).reversed(), 7, true).expect("new").part = *part;
        }
        let mut bytes = Vec::new();
        flows.put(&mut bytes);
        let get = |bytes: &[u8], reasons: &[&str]| {
            let reasons: Vec<String> = reasons.iter().map(|reason| (*reason).to_owned()).collect();
            Flows::get(&mut Reader(bytes), &function, &reasons, true)
        };
        let parts = |flows: &Flows| flows.all.values().map(|flow| flow.part).collect::<Vec<_>>();
        let read = get(&bytes, &["old"]).expect("whole");
        assert_eq!(parts(&read), [Part::Follows, Part::Left, Part::Reset(ReasonId(1))]);
        assert_eq!(parts(&get(&bytes, &["gone"]).expect("whole"))[2], Part::Left);
        assert!(get(&bytes, &[]).is_none(), "a reason without a name");
        for len in 0..bytes.len() {
            assert!(get(&bytes[..len], &["old"]).is_none(), "{len} bytes");
        }
    }
}
