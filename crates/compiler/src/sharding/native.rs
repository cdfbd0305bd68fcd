//! The programs that stand for a native function in the analysis. They follow from what the
//! function says of itself: what it keeps from packet to packet, which fields it writes, and
//! whether it sends packets. Each program may run or not, as the programs for the events of a
//! stream function do.

use braid_ir::graph::sends_to;
use braid_ir::model::{
    Block, BlockId, Dest, Key, Kind, Model, NewPacket, NewPayload, Op, Program, Shape, StateId,
    StreamField, Target, Term, Ty, ValueId,
};
use braid_ir::native::{Keeps, Native, Profile};
use braid_packet::{Field, Header};

/// Why the analysis cannot follow a native function. `None` if it can.
pub(super) fn unknown(native: &Native) -> Option<&'static str> {
    let Profile { writes_payload, writes_bytes, adds, removes, .. } = native.may();
    match native.keeps {
        Keeps::Anything => Some("is native code that does not say what it keeps"),
        _ if writes_payload || writes_bytes || adds || removes => {
            Some("is native code that may change other bytes than fields")
        }
        Keeps::Nothing | Keeps::Flows | Keeps::Biflows if native.sends > 0 => {
            Some("is native code that sends packets and does not keep connections")
        }
        _ => None,
    }
}

/// The programs of a function. `kept` is the table that stands for what it keeps; `None` forgets
/// it.
pub(super) fn programs(model: &Model, native: &Native, kept: Option<StateId>) -> Vec<Program> {
    let mut found: Vec<Program> = native.may().writes.iter().map(writes).collect();
    let keys: &[(&[(Header, bool)], Key)] = match native.keeps {
        Keeps::Anything | Keeps::Nothing => &[],
        Keeps::Flows | Keeps::Biflows => {
            &[(&[(Header::Inet, true), (Header::Quoted, false)], Key::Entry)]
        }
        Keeps::Connections => {
            &[(&[(Header::L4, true)], Key::Entry), (&[(Header::QuotedL4, true)], Key::Quoted)]
        }
    };
    if let Some(kept) = kept {
        let keep =
            |(headers, key): &(&[_], Key)| when(headers, |values| keep(kept, key.clone(), values));
        found.extend(keys.iter().map(keep));
    }
    let dests: Vec<Dest> = sends_to(model).collect();
    if !dests.is_empty() {
        found.extend(SHAPES.map(|(shape, ip, l4)| {
            when(&[(ip, true), (l4, true)], |values| {
                dests.iter().flat_map(|to| send(shape, *to, values)).collect()
            })
        }));
    }
    found
}

/// The packets of connections, with their headers.
const SHAPES: [(Shape, Header, Header); 4] = [
    (Shape::Tcp4, Header::Ip4, Header::Tcp),
    (Shape::Tcp6, Header::Ip6, Header::Tcp),
    (Shape::Udp4, Header::Ip4, Header::Udp),
    (Shape::Udp6, Header::Ip6, Header::Udp),
];

/// A program that runs these operations for packets that have these headers, or do not have them.
fn when(headers: &[(Header, bool)], ops: impl FnOnce(&mut Vec<Ty>) -> Vec<Op>) -> Program {
    let mut values = Vec::new();
    let to = |block: usize| Target {
        block: BlockId(u32::try_from(block).unwrap_or(u32::MAX)),
        args: Vec::new(),
    };
    let mut blocks: Vec<Block> = Vec::new();
    for (at, (header, is_there)) in headers.iter().enumerate() {
        let cond = value(Ty::of(Kind::Bool), &mut values);
        let ops = vec![Op::Has { out: cond, header: *header }];
        let (next, end) = (to(at + 1), to(headers.len() + 1));
        let (yes, no) = if *is_there { (next, end) } else { (end, next) };
        let term = Term::Branch { cond, yes, no };
        blocks.push(Block { params: Vec::new(), ops, term });
    }
    for ops in [ops(&mut values), Vec::new()] {
        blocks.push(Block { params: Vec::new(), ops, term: Term::Return });
    }
    Program { blocks, values }
}

fn value(ty: Ty, values: &mut Vec<Ty>) -> ValueId {
    values.push(ty);
    ValueId(u32::try_from(values.len() - 1).unwrap_or(u32::MAX))
}

/// An unknown value. As in stream functions, numbers of streams are unknown.
fn unknown_value(out: ValueId) -> Op {
    Op::LoadStream { out, field: StreamField::Len }
}

/// Writes a field. The value is unknown.
fn writes(field: Field) -> Program {
    when(&[(field.info().header, true)], |values| {
        let a = value(Ty::uint(field.info().width), values);
        vec![unknown_value(a), Op::Store { field, a }]
    })
}

/// Changes what the function keeps for the packet.
fn keep(state: StateId, key: Key, values: &mut Vec<Ty>) -> Vec<Op> {
    let [ok, bit] = [(); 2].map(|()| value(Ty::of(Kind::Bool), values));
    vec![unknown_value(bit), Op::StateSet { ok, state, key, values: vec![bit] }]
}

/// Sends a packet of the same connection: in its direction if it goes on, in the opposite direction
/// if it goes back, and in any direction to another port.
fn send(shape: Shape, to: Dest, values: &mut Vec<Ty>) -> Vec<Op> {
    let ports = [Field::L4Sport, Field::L4Dport];
    let [source, destination] = ports.map(|_| value(Ty::uint(16), values));
    let mut ops: Vec<Op> = [source, destination]
        .into_iter()
        .zip(ports)
        .map(|(out, field)| Op::Load { out, field })
        .collect();
    let ways: &[bool] = match to {
        Dest::Onward => &[false],
        Dest::Back => &[true],
        Dest::Port(_) => &[false, true],
    };
    ops.extend(ways.iter().map(|exchanged| {
        let ends = if *exchanged { [destination, source] } else { [source, destination] };
        let fields = ports.into_iter().zip(ends).collect();
        let payload = NewPayload::Same;
        let new = NewPacket { shape, exchanged: *exchanged, fields, options: Vec::new(), payload };
        Op::Create { new: Box::new(new), port: to }
    }));
    ops
}
