//! Actions: turns an action profile into the list of actions that NFP's algorithm examines (the
//! paper's action table, §4.3). Some kinds of actions are not in the paper.

use crate::profile::Profile;
use braid_ir::service_graph::Part;
use braid_packet::Header;
use serde::Serialize;
use std::fmt;

/// The kinds of actions: rows and columns of the dependency table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Reads a part of the packet.
    Read,
    /// Writes a part of the packet.
    Write,
    /// Adds or removes a header.
    AddRemove,
    /// May end the packet's path: drops it, by a row or a fault, or absorbs it.
    Drop,
    /// May send the packet to a port other than `onward`.
    Steer,
    /// May send further packets: mirrors, created packets, copies for several ports.
    Emit,
    /// May hold the packet back.
    Hold,
    /// Publishes events that other functions take, or takes such events.
    Events,
    /// Counts the packets that it sees, in counters and in state. Every function of Braid does
    /// this.
    Count,
}

/// All kinds. The paper's four kinds come first.
pub const KINDS: [Kind; 9] = [
    Kind::Read,
    Kind::Write,
    Kind::AddRemove,
    Kind::Drop,
    Kind::Steer,
    Kind::Emit,
    Kind::Hold,
    Kind::Events,
    Kind::Count,
];

/// An action that a function may perform on a packet.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Reads a part.
    Read(Part),
    /// Writes a part.
    Write(Part),
    /// Adds a header.
    Add(#[serde(serialize_with = "name")] Header),
    /// Removes a header.
    Remove(#[serde(serialize_with = "name")] Header),
    /// Ends the packet's path.
    Drop,
    /// Sends the packet to a port other than `onward`.
    Steer,
    /// Sends further packets.
    Emit,
    /// Holds the packet back.
    Hold,
    /// Publishes events that other functions take, or takes such events. Functions that events
    /// relate have the same number.
    Events(u16),
    /// Counts the packet.
    Count,
}

fn name<S: serde::Serializer>(header: &Header, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(header.name())
}

impl Action {
    /// The action's row and column in the dependency table.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Action::Read(_) => Kind::Read,
            Action::Write(_) => Kind::Write,
            Action::Add(_) | Action::Remove(_) => Kind::AddRemove,
            Action::Drop => Kind::Drop,
            Action::Steer => Kind::Steer,
            Action::Emit => Kind::Emit,
            Action::Hold => Kind::Hold,
            Action::Events(_) => Kind::Events,
            Action::Count => Kind::Count,
        }
    }

    /// The part that the action reads or writes.
    #[must_use]
    pub fn part(&self) -> Option<&Part> {
        match self {
            Action::Read(part) | Action::Write(part) => Some(part),
            _ => None,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Read(part) => write!(f, "reads {part}"),
            Action::Write(part) => write!(f, "writes {part}"),
            Action::Add(header) => write!(f, "adds {}", header.name()),
            Action::Remove(header) => write!(f, "removes {}", header.name()),
            Action::Drop => f.write_str("may drop packets"),
            Action::Steer => f.write_str("may send packets elsewhere than onward"),
            Action::Emit => f.write_str("may send further packets"),
            Action::Hold => f.write_str("may hold packets back"),
            Action::Events(_) => f.write_str("publishes or takes events"),
            Action::Count => f.write_str("keeps account of the packets that it sees"),
        }
    }
}

/// The actions of a profile. `steers` says whether packets may leave to a port other than `onward`,
/// which depends on the direction. The fault `truncated` is left out: see [`needs_whole_payload`].
#[must_use]
pub fn actions(profile: &Profile, steers: bool) -> Vec<Action> {
    let mut found: Vec<Action> = Vec::new();
    found.extend(profile.reads.iter().map(|field| Action::Read(Part::Field(*field))));
    found.extend(profile.tests.iter().map(|header| Action::Read(Part::Presence(*header))));
    found.extend(profile.reads_tags.iter().map(|tag| Action::Read(Part::Tag(tag.clone()))));
    let reads_more = [(profile.reads_payload, Part::Payload), (profile.copies_bytes, Part::Whole)];
    found.extend(reads_more.into_iter().filter(|(holds, _)| *holds).map(|(_, p)| Action::Read(p)));
    found.extend(profile.writes.iter().map(|field| Action::Write(Part::Field(*field))));
    found.extend(profile.writes_tags.iter().map(|tag| Action::Write(Part::Tag(tag.clone()))));
    found.extend(profile.writes_payload.then_some(Action::Write(Part::Payload)));
    found.extend(profile.adds.iter().map(|header| Action::Add(*header)));
    found.extend(profile.removes.iter().map(|header| Action::Remove(*header)));
    let faults = profile.faults.iter().any(|fault| *fault != "truncated");
    let drops = faults || !profile.drops.is_empty() || profile.consumes;
    found.extend(drops.then_some(Action::Drop));
    found.extend(steers.then_some(Action::Steer));
    let emits = profile.copies || !profile.creates.is_empty();
    found.extend(emits.then_some(Action::Emit));
    found.extend((!profile.holds.is_empty()).then_some(Action::Hold));
    found.push(Action::Count);
    found
}

/// Whether the function faults on a packet whose payload the capture has cut. Such a packet is
/// known on arrival and takes the chain in sequence, so the graph need not consider the fault.
#[must_use]
pub fn needs_whole_payload(profile: &Profile) -> bool {
    profile.faults.contains("truncated")
}
