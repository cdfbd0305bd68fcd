//! What events of other functions want of the flows that they name: that the function resets them,
//! leaves them out, or takes their events again.
//!
//! An order waits for the next packet of its flow that the function gets. So it does not matter
//! whether the function shares its stack with others, which may have had that packet before.

use crate::function::Function;
use crate::keys::{get_key, put_key};
use crate::program::End;
use braid_ir::model::ReasonId;
use braid_packet::{FlowKey, proto};
use braid_tcp::{Reader, Stored};
use foldhash::fast::RandomState;
use hashlink::LinkedHashMap;

/// The most orders of a function. Beyond that, the oldest is forgotten.
pub const MAX_ORDERS: usize = 65_536;
/// An order for a flow that the function does not know holds for flows that begin within this time
/// (nanoseconds).
pub const BEGINS_NS: u64 = 60_000_000_000;

/// An order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Order {
    end: End,
    /// When it was given.
    given_ns: u64,
}

/// The orders of a function, by the keys of their flows for both directions, the oldest first.
#[derive(Debug, Default)]
pub struct Orders {
    all: LinkedHashMap<FlowKey, Order, RandomState>,
    /// Orders that were forgotten.
    pub forgotten: u64,
}

impl Orders {
    /// Adds an order for a flow. It takes the place of an earlier one, except of a reset.
    pub fn add(&mut self, flow: FlowKey, end: End, now: u64) {
        if ![proto::TCP, proto::UDP].contains(&flow.proto) || ![4, 6].contains(&flow.version) {
            return;
        }
        let flow = flow.bidirectional();
        let before = self.all.remove(&flow).map(|order| order.end);
        let end = before.filter(|end| matches!(end, End::Reset(_))).unwrap_or(end);
        if self.all.len() >= MAX_ORDERS {
            self.all.pop_front();
            self.forgotten += 1;
        }
        self.all.insert(flow, Order { end, given_ns: now });
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether there is an order to take a flow's events again.
    pub fn resumes(&self, flow: FlowKey) -> bool {
        let order = || self.all.get(&flow.bidirectional());
        !self.all.is_empty() && order().is_some_and(|order| order.end == End::Resume)
    }

    /// Takes the order for a flow. `knows`: whether the function knows the flow, so that it is the
    /// one that was meant. Otherwise, the flow must begin soon after the order was given.
    pub fn take(
        &mut self,
        flow: FlowKey,
        now: u64,
        knows: impl FnOnce(FlowKey) -> bool,
    ) -> Option<End> {
        if self.all.is_empty() {
            return None;
        }
        let Order { end, given_ns } = self.all.remove(&flow.bidirectional())?;
        (now.saturating_sub(given_ns) <= BEGINS_NS || knows(flow)).then_some(end)
    }

    /// Takes away the order for a flow.
    pub fn remove(&mut self, flow: FlowKey) {
        self.take(flow, 0, |_| true);
    }

    /// Writes the orders.
    pub fn put(&self, out: &mut Vec<u8>) {
        (self.all.len() as u64).put(out);
        for (flow, Order { end, given_ns }) in &self.all {
            flow.proto.put(out);
            put_key(*flow, out);
            given_ns.put(out);
            let (word, reason) = match end {
                End::Forward | End::Resume => (0_u8, 0),
                End::Bypass => (1, 0),
                End::Reset(ReasonId(reason)) => (2, *reason),
            };
            word.put(out);
            reason.put(out);
        }
    }

    /// Reads orders. `reasons`: the names of reasons as they were written.
    pub fn get(from: &mut Reader<'_>, function: &Function, reasons: &[String]) -> Option<Self> {
        let mut orders = Self::default();
        for _ in 0..from.len_of_list()? {
            let proto = u8::get(from)?;
            let flow = get_key(proto, from)?;
            let (given_ns, word, reason) = (u64::get(from)?, u8::get(from)?, u32::get(from)?);
            let end = match word {
                0 => End::Resume,
                1 => End::Bypass,
                2 => {
                    let name = reasons.get(usize::try_from(reason).ok()?)?;
                    // As for connections: a function without this reason leaves the flow out.
                    function.reason(name).map_or(End::Bypass, End::Reset)
                }
                _ => return None,
            };
            let is_whole = [proto::TCP, proto::UDP].contains(&proto)
                && flow == flow.bidirectional()
                && orders.all.insert(flow, Order { end, given_ns }).is_none();
            if !is_whole || orders.all.len() > MAX_ORDERS {
                return None;
            }
        }
        Some(orders)
    }
}

#[cfg(test)]
mod tests {
    use super::{BEGINS_NS, End, FlowKey, Function, MAX_ORDERS, Orders, Reader, ReasonId, proto};
    use braid_ir::model::Model;

    fn flow(client: usize) -> FlowKey {
        let (version, proto) = (4, proto::TCP);
        FlowKey { version, src: client as u128, dst: 1 << 31, proto, sport: 1, dport: 2 }
    }

    fn has(orders: &Orders, flow: FlowKey) -> bool {
        orders.all.contains_key(&flow.bidirectional())
    }

    #[test]
    fn a_reset_is_not_taken_back_and_holds_in_both_directions() {
        let mut orders = Orders::default();
        orders.add(flow(1), End::Bypass, 0);
        orders.add(flow(1).reversed(), End::Resume, 1);
        assert_eq!(orders.take(flow(1), 1, |_| true), Some(End::Resume));
        orders.add(flow(1), End::Reset(ReasonId(3)), 2);
        orders.add(flow(1), End::Bypass, 3);
        assert!(!has(&orders, FlowKey { proto: proto::UDP, ..flow(1) }));
        assert_eq!(orders.take(flow(1).reversed(), 4, |_| true), Some(End::Reset(ReasonId(3))));
        assert!(!has(&orders, flow(1)));
    }

    #[test]
    fn flows_that_begin_later_are_not_meant() {
        for (given, now, is_known, is_meant) in [
            (5, 5 + BEGINS_NS, false, true),
            (5, 6 + BEGINS_NS, false, false),
            (5, 6 + BEGINS_NS, true, true),
            // Time goes back.
            (5, 0, false, true),
        ] {
            let mut orders = Orders::default();
            orders.add(flow(1), End::Bypass, given);
            let found = orders.take(flow(1), now, |_| is_known);
            assert_eq!(found, is_meant.then_some(End::Bypass), "{given}, {now}");
            assert!(!has(&orders, flow(1)));
        }
    }

    #[test]
    fn the_oldest_order_is_forgotten_and_counted() {
        let mut orders = Orders::default();
        (0..=MAX_ORDERS).for_each(|client| orders.add(flow(client), End::Bypass, 0));
        assert!(!has(&orders, flow(0)) && has(&orders, flow(1)) && has(&orders, flow(MAX_ORDERS)));
        assert_eq!((orders.all.len(), orders.forgotten), (MAX_ORDERS, 1));
        orders.add(flow(1), End::Resume, 0);
        assert_eq!(orders.forgotten, 1, "it takes the place of another one");
        for other in [FlowKey { version: 5, ..flow(0) }, FlowKey { proto: 47, ..flow(0) }] {
            orders.add(other, End::Bypass, 0);
            assert!(!has(&orders, other));
        }
    }

    #[test]
    fn orders_are_read_as_they_were_written() {
        let mut model = Model::new("f");
        model.reasons = vec!["new".to_owned(), "old".to_owned()];
        let function = Function::of(&model);
        let mut orders = Orders::default();
        for (client, end) in
            [End::Resume, End::Bypass, End::Reset(ReasonId(0))].into_iter().enumerate()
        {
            orders.add(flow(client), end, client as u64);
        }
        let mut bytes = Vec::new();
        orders.put(&mut bytes);
        let get = |bytes: &[u8], reasons: &[&str]| {
            let reasons: Vec<String> = reasons.iter().map(|reason| (*reason).to_owned()).collect();
            Orders::get(&mut Reader(bytes), &function, &reasons)
        };
        let ends = |orders: &Orders| orders.all.values().map(|one| one.end).collect::<Vec<_>>();
        let read = get(&bytes, &["old"]).expect("whole");
        assert_eq!(ends(&read), [End::Resume, End::Bypass, End::Reset(ReasonId(1))]);
        assert_eq!(ends(&get(&bytes, &["gone"]).expect("whole"))[2], End::Bypass);
        assert!(get(&bytes, &[]).is_none(), "a reason without a name");
        for len in 0..bytes.len() {
            assert!(get(&bytes[..len], &["old"]).is_none(), "{len} bytes");
        }
    }
}
