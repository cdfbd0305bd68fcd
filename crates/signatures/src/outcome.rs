//! What an inspection finds, and what it could not see.

use crate::flow::Flow;
use crate::limits::MAX_DONE;
use crate::set::Signatures;

/// A rule holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alert {
    /// The rule's number in its set.
    pub rule: u32,
    /// Whether the client has sent the bytes.
    pub from_client: bool,
}

/// What inspections have not seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Directions whose bytes behind missing ones are not inspected.
    pub gaps: u64,
    /// Directions whose bytes behind the depth are not inspected.
    pub depths: u64,
    /// Directions and messages whose inspection would have taken too long.
    pub exhausted: u64,
    /// Directions whose HTTP ended at a malformed message.
    pub malformed: u64,
    /// Alerts that were left out, because their connection had too many of different rules.
    pub left_out: u64,
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

/// What an inspection needs beside the bytes.
pub struct Context<'a> {
    pub set: &'a Signatures,
    /// From the sender of the bytes.
    pub flow: Flow,
    pub done: &'a mut Done,
    pub counts: &'a mut Counts,
    pub alerts: &'a mut Vec<Alert>,
}
