//! Merges the writes of branches under `Priority` to the same packet.

use super::run::Write;
use braid_ir::model::Area;
use braid_packet::edits::{Edit, edits};
use braid_packet::{Field, Packet, bytes, options, replace};

/// What native code wrote, found by comparing the packet with the packet as it arrived.
pub(super) fn native_writes(before: &Packet, after: &Packet) -> Vec<Write> {
    let write = |edit| match edit {
        Edit::Tag(name, value) => Write::Tag(name.to_string(), value),
        Edit::PushVlan => Write::PushVlan(0),
        Edit::PopVlan => Write::PopVlan,
        Edit::Field(field, value) => Write::Field(field, value),
        Edit::Payload(at, len, value) => Write::Bytes((Area::Payload, at), len, value),
        Edit::Rest(rest) => Write::Rest(rest),
        Edit::Whole(packet) => Write::Whole(packet),
    };
    edits(before, after).into_iter().map(write).collect()
}

/// Merges the writes of branches. Winners come first in the list. Where two branches wrote the same
/// bits, the winner's bits stay. The winner's added and removed headers decide the layout. Fields
/// of the others are written where they still exist.
pub(super) fn merge(packet: &mut Packet, writes: &[&[Write]]) {
    // The branch whose header changes apply: the first one that made any.
    let shaper = writes.iter().position(|log| log.iter().any(Write::changes_headers));
    for (place, log) in writes.iter().enumerate().rev() {
        if Some(place) == shaper && place == 0 {
            log.iter().for_each(|write| replay(packet, write));
        } else {
            let counts = |write: &Write| Some(place) == shaper || !matches!(write, Write::Whole(_));
            let aimed = (0..log.len()).filter_map(|at| at_arrival(log, at));
            aimed.filter(counts).for_each(|write| replay(packet, &write));
        }
    }
    // A winner that changed no header wrote to the headers that arrived. So a loser's header
    // changes come after the winner's writes, together with the loser's writes to the tags that it
    // added.
    if let Some(shaper) = shaper.filter(|place| *place > 0) {
        let log = writes[shaper];
        let own = (0..log.len()).filter(|at| at_arrival(log, *at).is_none());
        own.for_each(|at| replay(packet, &log[at]));
    }
}

impl Write {
    fn changes_headers(&self) -> bool {
        matches!(self, Write::PushVlan(_) | Write::PopVlan | Write::Whole(_))
    }
}

/// A write of a log as a write to the packet that arrived. `None`: a header change, or a write to
/// what it moved or added.
fn at_arrival(log: &[Write], at: usize) -> Option<Write> {
    let is_tag = |write: &Write| matches!(write, Write::PushVlan(_) | Write::PopVlan);
    let Write::Field(field, value) = log[at] else {
        let moved = matches!(log[at], Write::Rest(_)) && log[..at].iter().any(is_tag);
        return (!is_tag(&log[at]) && !moved).then(|| log[at].clone());
    };
    let Some((nth, names)) = vlan_names(field) else { return Some(log[at].clone()) };
    // The tags that the log has already added in front, and the arriving tags that it has removed.
    let (mut added, mut removed) = (0_usize, 0);
    for write in &log[..at] {
        match write {
            Write::PushVlan(_) => added += 1,
            Write::PopVlan if added > 0 => added -= 1,
            Write::PopVlan => removed += 1,
            _ => {}
        }
    }
    let field = *names.get(nth.checked_sub(added)? + removed)?;
    Some(Write::Field(field, value))
}

/// For a field of a VLAN tag: the number of the tag, counted from the outermost, and the names of
/// the field in the first and the second tag.
fn vlan_names(field: Field) -> Option<(usize, [Field; 2])> {
    use Field::{Vlan2Dei, Vlan2Id, Vlan2Pcp, VlanDei, VlanId, VlanPcp};
    let names = [[VlanId, Vlan2Id], [VlanDei, Vlan2Dei], [VlanPcp, Vlan2Pcp]];
    names.into_iter().find_map(|names| {
        let nth = names.iter().position(|name| *name == field)?;
        Some((nth, names))
    })
}

fn replay(packet: &mut Packet, write: &Write) {
    match write {
        Write::Field(field, value) => {
            let layout = packet.parse();
            packet.set(&layout, *field, *value);
        }
        Write::Tag(name, value) => {
            packet.tags.insert(name.as_str().into(), *value);
        }
        Write::PushVlan(id) => {
            packet.push_vlan(*id);
        }
        Write::PopVlan => {
            packet.pop_vlan();
        }
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
