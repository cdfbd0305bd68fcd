//! A function's use of packets, from its model: the headers and fields that it consults, its
//! changes of VLAN tags, and its live values.

use super::cells::needs;
use braid_ir::model::{Area, Granularity, Haystack, Key, Model, Op, Program, ValueId};
use braid_packet::{Field, FlowKey, Header, options};
use std::collections::BTreeSet;

/// How functions change VLAN tags.
#[derive(Clone, Copy, Default)]
pub(super) struct TagChanges {
    /// Whether some function adds tags.
    pub(super) pushes: bool,
    /// Whether some function removes tags.
    pub(super) pops: bool,
}

/// How a function changes VLAN tags.
pub(super) fn tag_changes(model: &Model) -> TagChanges {
    let mut found = TagChanges::default();
    for op in model.packet.blocks.iter().flat_map(|block| &block.ops) {
        found.pushes |= matches!(op, Op::PushVlan { .. });
        found.pops |= *op == Op::PopVlan;
    }
    found
}

/// The headers whose presence a function's packet program may depend on, as bits.
pub(super) fn consulted(model: &Model) -> u128 {
    let mut bits = 0;
    let mut add = |header: Header| {
        bits |= header.closure();
    };
    for op in model.packet.blocks.iter().flat_map(|block| &block.ops) {
        match op {
            Op::Has { header, .. } => add(*header),
            Op::Load { field, .. } | Op::LoadEntry { field, .. } | Op::Store { field, .. } => {
                add(field.info().header);
                needs(*field).into_iter().for_each(&mut add);
            }
            Op::LoadBytes { area: Area::TcpOption(_), .. }
            | Op::LoadString { area: Area::TcpOption(_), .. } => add(Header::Tcp),
            Op::LoadBytes { area: Area::IpOption(_), .. }
            | Op::LoadString { area: Area::IpOption(_), .. } => add(Header::Ip4),
            Op::LoadBytes { area: Area::Ip6Extension(_), .. }
            | Op::LoadString { area: Area::Ip6Extension(_), .. } => add(Header::Ip6),
            Op::StoreBytes { area: Area::TcpOption(_), .. } => {
                options::NAMED.into_iter().for_each(&mut add);
            }
            op if op.changes_payload() => {
                [Header::Tcp, Header::Udp, Header::Quoted].into_iter().for_each(&mut add);
                Header::behind_ports().for_each(&mut add);
            }
            Op::PushVlan { .. } | Op::PopVlan => add(Header::Vlan2),
            Op::PushOption { option, .. } | Op::PopOption { option } => add(*option),
            Op::HasRoom { .. } => add(Header::Tcp),
            Op::Rules { .. } => {
                [Header::Tcp, Header::Icmp, Header::Icmp6, Header::L4]
                    .into_iter()
                    .for_each(&mut add);
            }
            Op::Patterns { .. }
            | Op::FindPatterns { of: Haystack::Payload | Haystack::Part(..), .. }
            | Op::LoadBytes { .. }
            | Op::LoadString { .. }
            | Op::Extern { .. } => {
                Header::behind_ports().for_each(&mut add);
            }
            _ => {}
        }
    }
    for field in entry_fields(model) {
        add(field.info().header);
        needs(field).into_iter().for_each(&mut add);
    }
    let behind_icmp = Field::IcmpType.decided_bits() | Field::Icmp6Type.decided_bits();
    if bits & behind_icmp != 0 {
        bits |= Header::Quoted.bit();
    }
    bits
}

/// The fields that a function reads as they were when the packet entered it.
pub(super) fn entry_fields(model: &Model) -> BTreeSet<Field> {
    let mut found = BTreeSet::new();
    for op in model.packet.blocks.iter().flat_map(|block| &block.ops) {
        if let Op::LoadEntry { field, .. } = op {
            found.insert(*field);
        }
        if let Some((state, key)) = op.entry() {
            found.extend(key_fields(&model.state[state.index()].granularity, key));
        }
    }
    found
}

/// The fields of an implicit key. An explicit key has none.
pub(super) fn key_fields<'a>(granularity: &'a Granularity, key: &Key) -> &'a [Field] {
    match (key, granularity) {
        (Key::Explicit(_), _) | (_, Granularity::Global | Granularity::Key(_)) => &[],
        (_, Granularity::Fields(fields)) => fields,
        (Key::Entry | Key::Reversed(false), _) => &FlowKey::FIELDS,
        (Key::Quoted | Key::Reversed(true), _) => &FlowKey::QUOTED_FIELDS,
    }
}

/// For each block, the values that it or a later block uses and that are defined before the block
/// or are its parameters.
pub(super) fn live(program: &Program) -> Vec<BTreeSet<ValueId>> {
    let mut live: Vec<BTreeSet<ValueId>> = vec![BTreeSet::new(); program.blocks.len()];
    for (number, block) in program.blocks.iter().enumerate().rev() {
        let mut here: BTreeSet<ValueId> = block.term.uses().into_iter().collect();
        for target in block.term.targets() {
            let there = &program.blocks[target.block.index()];
            let passed = live[target.block.index()].iter();
            here.extend(passed.filter(|value| !there.params.contains(value)));
            here.extend(&target.args);
        }
        for op in block.ops.iter().rev() {
            op.visit_outs(&mut |value| {
                here.remove(value);
            });
            op.visit_uses(&mut |value| {
                here.insert(*value);
            });
        }
        live[number] = here;
    }
    live
}
