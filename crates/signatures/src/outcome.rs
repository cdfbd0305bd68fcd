//! What an inspection finds, and what it needs beside the bytes.

use crate::counts::Counts;
use crate::flow::Flow;
use crate::flowbits::{Bits, Lengths};
use crate::limits::MAX_DONE;
use crate::rule::Rule;
use crate::set::Signatures;
use crate::threshold::Thresholds;

/// A rule holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alert {
    /// The rule's number in its set.
    pub rule: u32,
    /// Whether the client has sent the bytes.
    pub from_client: bool,
}

/// The rules about streams that have alerted, by key, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Done(pub Vec<u64>);

impl Done {
    pub fn has(&self, key: u64) -> bool {
        self.0.binary_search(&key).is_ok()
    }

    /// Adds a rule. False if it is there already, or if there is no room.
    pub fn add(&mut self, key: u64, counts: &mut Counts) -> bool {
        let Err(at) = self.0.binary_search(&key) else { return false };
        if self.0.len() >= MAX_DONE {
            counts.left_out += 1;
            return false;
        }
        self.0.insert(at, key);
        true
    }
}

/// The rules by which connections are inspected, and what is common to all connections.
pub struct Rules<'a> {
    /// The rules.
    pub set: &'a Signatures,
    /// How often rules have held lately.
    pub thresholds: &'a mut Thresholds,
    /// The time (nanoseconds since the epoch).
    pub now: u64,
    /// What inspections have not seen.
    pub counts: &'a mut Counts,
    /// What inspections have found.
    pub alerts: &'a mut Vec<Alert>,
}

/// What an inspection needs beside the bytes.
pub struct Context<'a, 'b> {
    pub rules: &'a mut Rules<'b>,
    /// From the sender of the bytes.
    pub flow: Flow,
    pub done: &'a mut Done,
    pub bits: &'a mut Bits,
    /// What had come before the bytes.
    pub before: Lengths,
}

impl Context<'_, '_> {
    /// A rule holds for a message, or for the first time for a stream. It alerts if its threshold
    /// lets it.
    pub fn alert(&mut self, number: u32, rule: &Rule, from_client: bool) {
        let Rules { thresholds, now, counts, alerts, .. } = &mut *self.rules;
        let alerts_now = rule.threshold.is_none_or(|threshold| {
            let rule = (rule.signature.key(), &threshold);
            thresholds.alerts(rule, &self.flow, *now, counts)
        });
        if alerts_now {
            alerts.push(Alert { rule: number, from_client });
        }
    }
}
