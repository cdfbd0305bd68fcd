//! Packets, one by one.

use crate::flow::Flow;
use crate::headers::{Kind, Number};
use crate::limits::PACKET_WORK;
use crate::outcome::Context;
use crate::rule::{Buffer, Rule};
use crate::set::OfKind;
use crate::whole;
use crate::work::Work;
use braid_intervals::IntervalSet;
use std::cell::Cell;

/// A packet as rules about packets see it.
pub struct Packet<'a> {
    /// Its kind.
    pub kind: Kind,
    /// From its sender.
    pub flow: Flow,
    /// Whether its sender is the client of its flow. True without a flow.
    pub from_client: bool,
    /// Whether both ends have agreed on the connection, or have sent datagrams.
    pub is_established: bool,
    /// What it carries, as far as it was captured: of TCP and UDP behind their header, of ICMP
    /// behind its first 8 bytes, and of others behind the headers of IP. Nothing of fragments.
    pub bytes: &'a [u8],
    /// The numbers in its headers. `None` without the header.
    pub number: &'a dyn Fn(Number) -> Option<u32>,
}

impl Packet<'_> {
    /// Whether its headers are as a rule asks. `number` gives the numbers in its headers.
    fn has(&self, rule: &Rule, number: &dyn Fn(Number) -> Option<u32>) -> bool {
        let is_asked = rule.is_established.is_none_or(|wanted| wanted == self.is_established);
        let holds = |(of, values): &(Number, IntervalSet)| {
            number(*of).is_some_and(|value| values.contains(value.into()))
        };
        let protocols = rule.of_packets.protocols;
        let is_of_protocol = || {
            let protocol = number(Number::Protocol);
            protocols.is_empty() || protocols.iter().any(|one| protocol == Some((*one).into()))
        };
        // Most packets fail the numbers, which are cheaper than the lists of addresses.
        is_asked
            && rule.of_packets.numbers.iter().all(holds)
            && (self.kind != Kind::Fragment || is_of_protocol())
            && rule.applies(&self.flow, self.from_client)
    }

    /// Evaluates the rules about such packets that may hold. They alert if they do.
    pub(crate) fn inspect(&self, context: &mut Context<'_, '_>) {
        let set = context.rules.set;
        let seen = [(Buffer::Raw, self.bytes.into())];
        // Many rules ask for the same number, one rule after the other.
        let last = Cell::new(None);
        let number = |of| match last.get() {
            Some((known, value)) if known == of => value,
            _ => {
                let value = (self.number)(of);
                last.set(Some((of, value)));
                value
            }
        };
        let has = |rule: &Rule| self.has(rule, &number);
        let OfKind { contents, groups } = set.packets(self.kind);
        let mut selected = Vec::new();
        groups.select(&self.flow, &number, &mut selected);
        let (rules, of) = ((selected, contents), (self.from_client, &has as &_));
        whole::evaluate(rules, &seen, of, Work(PACKET_WORK), context);
    }
}
