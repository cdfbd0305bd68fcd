//! Merges the writes of branches under `Priority` to the same packet.

use crate::model_interpreter::Write;
use braid_ir::model::Area;
use braid_packet::edits::{Edit, edits};
use braid_packet::{Field, Packet, bytes, options, replace};

/// What native code wrote to a packet, as a log of writes.
pub(crate) fn native_writes(before: &Packet, after: &Packet) -> Vec<Write> {
    let write = |edit| match edit {
        Edit::Tag(name, value) => Write::Tag(name, value),
        Edit::PushVlan => Write::PushVlan(0),
        Edit::PopVlan => Write::PopVlan,
        Edit::Field(field, value) => Write::Field(field, value),
        Edit::Payload(at, len, value) => Write::Bytes((Area::Payload, at), len, value),
        Edit::Rest(rest) => Write::Rest(rest),
        Edit::Whole(packet) => Write::Whole(packet),
    };
    edits(before, after).into_iter().map(write).collect()
}

/// Merges the writes of branches under `Priority`. `logs` has the writes of each branch, highest
/// priority first. Where two branches wrote the same bits, the branch with the higher priority
/// wins. The first branch in `logs` that adds or removes headers determines the headers of the
/// result. Fields that other branches wrote are written where they still exist.
#[expect(clippy::indexing_slicing, reason = "`shaper` is a place in `logs`")]
pub(crate) fn merge(packet: &mut Packet, logs: &[&[Write]]) {
    let shaper = logs.iter().position(|log| log.iter().any(Write::changes_headers));
    // First come the writes to the packet as it arrived, lowest priority first. Header changes and
    // writes to the added headers follow.
    for (place, log) in logs.iter().enumerate().rev() {
        if (place, shaper) == (0, Some(0)) {
            log.iter().for_each(|write| write.apply(packet));
        } else {
            let mut arrived = Arrived::default().sort(log);
            if Some(place) != shaper {
                arrived.retain(|write| !matches!(write, Some(Write::Whole(_))));
            }
            arrived.iter().flatten().for_each(|write| write.apply(packet));
        }
    }
    // Functions with higher priority that changed no header wrote to the headers that arrived. So
    // the header changes of the function with lower priority come after those writes.
    if let Some(shaper) = shaper.filter(|place| *place > 0) {
        let log = logs[shaper];
        let arrived = Arrived::default().sort(log);
        let own = log.iter().zip(arrived).filter(|(_, arrived)| arrived.is_none());
        own.for_each(|(write, _)| write.apply(packet));
    }
}

impl Write {
    fn changes_headers(&self) -> bool {
        matches!(self, Write::PushVlan(_) | Write::PopVlan | Write::Whole(_))
    }

    fn apply(&self, packet: &mut Packet) {
        match self {
            Write::Field(field, value) => {
                let layout = packet.parse();
                packet.set(&layout, *field, *value);
            }
            Write::Tag(name, value) => drop(packet.tags.insert(name.clone(), *value)),
            Write::PushVlan(id) => drop(packet.push_vlan(*id)),
            Write::PopVlan => drop(packet.pop_vlan()),
            Write::Option(option, values) => {
                let layout = packet.parse();
                options::change(packet, &layout, *option, values.as_deref());
            }
            Write::Bytes(place, len, value) => {
                let layout = packet.parse();
                let _ = bytes::store(packet, &layout, *place, *len, *value);
            }
            Write::Replace(place, (new, words)) => {
                let layout = packet.parse();
                let _ = replace::replace(packet, &layout, *place, (*new, words));
            }
            Write::AnyOption(kind, value) => {
                let layout = packet.parse();
                options::set(packet, &layout, *kind, value.as_deref());
            }
            Write::Tunnel(change) => {
                let layout = packet.parse();
                let _ = change.apply(packet, &layout);
            }
            Write::Crypt(change) => {
                let layout = packet.parse();
                let _ = change.apply(packet, &layout);
            }
            Write::Rest(rest) => rest.apply(packet),
            Write::Whole(whole) => packet.become_like(whole),
        }
    }
}

/// The positions of the arriving packet's VLAN tags, while the writes of a log are read.
#[derive(Default)]
struct Arrived {
    /// Tags that the log has added before the arriving tags.
    added: usize,
    /// Arriving tags that the log has removed.
    removed: usize,
    /// Whether the log has added or removed tags.
    is_moved: bool,
}

impl Arrived {
    /// Translates each write into a write to the packet as it arrived. `None` for changes of
    /// headers and for writes to tags that the log has added.
    fn sort(mut self, log: &[Write]) -> Vec<Option<Write>> {
        log.iter().map(|write| self.next(write)).collect()
    }

    fn next(&mut self, write: &Write) -> Option<Write> {
        self.is_moved |= matches!(write, Write::PushVlan(_) | Write::PopVlan);
        match write {
            Write::PushVlan(_) => self.added += 1,
            Write::PopVlan if self.added > 0 => self.added -= 1,
            Write::PopVlan => self.removed += 1,
            Write::Tag(..)
            | Write::Bytes(..)
            | Write::Replace(..)
            | Write::AnyOption(..)
            | Write::Tunnel(..)
            | Write::Crypt(..)
            | Write::Whole(_)
            | Write::Option(..) => {
                return Some(write.clone());
            }
            // Its bytes have moved with the tags.
            Write::Rest(_) if self.is_moved => {}
            Write::Rest(_) => return Some(write.clone()),
            Write::Field(field, value) => {
                let Some((nth, names)) = tag_field(*field) else { return Some(write.clone()) };
                let nth = nth.checked_sub(self.added)? + self.removed;
                return Some(Write::Field(*names.get(nth)?, *value));
            }
        }
        None
    }
}

/// For a field of a VLAN tag: the position of the tag (0 is the outermost), and the fields with the
/// same meaning in the first and the second tag.
fn tag_field(field: Field) -> Option<(usize, [Field; 2])> {
    use Field::{Vlan2Dei, Vlan2Id, Vlan2Pcp, VlanDei, VlanId, VlanPcp};
    let names = [[VlanId, Vlan2Id], [VlanPcp, Vlan2Pcp], [VlanDei, Vlan2Dei]];
    let nth = |names: [Field; 2]| names.iter().position(|name| *name == field);
    names.into_iter().find_map(|names| Some((nth(names)?, names)))
}
