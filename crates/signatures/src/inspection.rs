//! The inspection of a connection.

use crate::flow::Flow;
use crate::flowbits::Bits;
use crate::messages::Messages;
use crate::outcome::{Context, Done, Rules};
use crate::packet::Packet;
use crate::rule::Stage;
use crate::set::Signatures;
use crate::stream::Direction;

/// What an inspection keeps of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inspection {
    pub(crate) client: Direction,
    pub(crate) server: Direction,
    pub(crate) http: Messages,
    pub(crate) done: Done,
    pub(crate) bits: Bits,
    /// The offsets of the next bytes of the client and of the server.
    pub(crate) next: [u64; 2],
}

impl Default for Inspection {
    fn default() -> Self {
        Self {
            client: Direction::new(true),
            server: Direction::new(false),
            http: Messages::default(),
            done: Done::default(),
            bits: Bits::default(),
            next: [0; 2],
        }
    }
}

impl Inspection {
    /// The next bytes of an end have come, from this offset on. `flow` is from their sender. An
    /// offset behind the last byte says that bytes are missing.
    pub fn data(
        &mut self,
        rules: &mut Rules<'_>,
        (flow, from_client): (Flow, bool),
        (offset, bytes): (u64, &[u8]),
    ) {
        let Self { client, server, http, done, bits, next } = self;
        let set = rules.set;
        let context = &mut Context { rules, flow, done, bits, before: *next };
        let direction = if from_client { client } else { server };
        let [of_client, of_server] = next;
        let next = if from_client { of_client } else { of_server };
        if offset != *next && !(direction.is_over && http.is_over(from_client)) {
            context.rules.counts.gaps += 1;
            direction.finish(context);
            http.finish(from_client, context);
        }
        *next = offset.saturating_add(bytes.len() as u64);
        // Rules that come later do not see these bytes, nor the ones behind them.
        match set.streams().is_empty() {
            true => direction.leave(),
            false => direction.data(bytes, context),
        }
        match has_messages(set) {
            true => http.data(from_client, bytes, context),
            false => http.leave(from_client),
        }
    }

    /// A segment of the connection has come. Rules about packets see it, before the other rules
    /// see its bytes.
    pub fn packet(&mut self, rules: &mut Rules<'_>, packet: &Packet<'_>) {
        let Self { done, bits, next, .. } = self;
        packet.inspect(&mut Context { rules, flow: packet.flow, done, bits, before: *next });
    }

    /// Whether rules have set bits.
    #[must_use]
    pub fn has_bits(&self) -> bool {
        !self.bits.is_empty()
    }

    /// The connection is over. `flow` is from its client.
    pub fn close(&mut self, rules: &mut Rules<'_>, flow: Flow) {
        let Self { client, server, http, done, bits, next } = self;
        for (from_client, direction) in [(true, client), (false, server)] {
            let flow = if from_client { flow } else { flow.reversed() };
            let context = &mut Context { rules, flow, done, bits, before: *next };
            direction.finish(context);
            http.finish(from_client, context);
        }
    }

    /// The rules have changed. Bytes that are kept count for the new ones.
    pub fn changed(&mut self) {
        self.client.select_anew();
        self.server.select_anew();
    }

    /// Its memory beside its own size (bytes).
    #[must_use]
    pub fn memory(&self) -> usize {
        let done = 8 * self.done.0.capacity();
        self.client.memory() + self.server.memory() + self.http.memory() + done + self.bits.memory()
    }
}

fn has_messages(set: &Signatures) -> bool {
    [Stage::Head, Stage::Body].iter().any(|stage| !set.messages(*stage).0.is_empty())
}

#[cfg(test)]
mod tests {
    use super::Inspection;
    use crate::limits::STREAM_WORK;
    use crate::{Counts, Flow, Rules, Thresholds, load};

    #[test]
    fn each_name_of_a_bit_costs_work() {
        let set = load("alert tcp any any -> any any (flowbits:isset,a|b|c; sid:1;)").set;
        let flow = Flow { version: 4, src: 1, dst: 2, sport: 3, dport: 4 };
        let (thresholds, counts, alerts) =
            (&mut Thresholds::default(), &mut Counts::default(), &mut Vec::new());
        let rules = &mut Rules { set: &set, thresholds, now: 0, counts, alerts };
        let mut inspection = Inspection::default();
        for segments in 1..5 {
            inspection.data(rules, (flow, true), (segments - 1, b"x"));
            assert_eq!(inspection.client.work.0, STREAM_WORK - 3 * segments);
        }
    }
}
