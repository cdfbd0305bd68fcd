//! VLAN tags. A tag that one function adds and a later one removes is never written to the packet's
//! bytes. A tag that is removed and added again is rewritten in place (SNF: redundant pushes and
//! pops).
//!
//! While a tag change waits, the abstract state already has the change, but the bytes and their
//! layout do not. Only the fields of the tags are affected: as long as the packet has at most two
//! tags, one more or less neither hides nor reveals a header after the tags. Where the packet may
//! have more tags, changes are made immediately.

use super::build::{Edge, Way};
use super::cells::Cell;
use super::draft::{Draft, Flow};
use super::fields::load_cell;
use super::headers::{EVERY, bit};
use super::values::field_ty;
use super::visit::Visit;
use super::waiting::{LEN, Popped, Pushed, TAGS, is_tag};
use super::write::{change_tags, flush, settle};
use braid_ir::engine::Fault;
use braid_ir::model::{CmpOp, Op, ValueId, Word};
use braid_packet::{Field, Header};

/// The TPID of added tags.
const TPID: Word = 0x8100;
/// The fields of the outermost tag that models can assign. `INNER` has the same fields of the
/// second tag.
const OUTER: [Field; 3] = [Field::VlanId, Field::VlanPcp, Field::VlanDei];
const INNER: [Field; 3] = [Field::Vlan2Id, Field::Vlan2Pcp, Field::Vlan2Dei];

/// Forgets the EtherType and the payload length. One tag more or less may decide whether the parser
/// recognises the headers after the tags.
fn forget_behind(way: &mut Way) {
    way.state.reload([Field::EthType, Field::PktPayloadLen]);
}

/// Adds an outermost tag.
pub(super) fn push_vlan(
    draft: &mut Draft,
    visit: &Visit<'_>,
    way: &mut Way,
    id: ValueId,
) -> Result<Flow, Header> {
    if !way.state.headers.has(Header::Eth)? {
        return Ok(draft.fault(visit, way, Fault::Truncated));
    }
    let tagged = way.state.headers.has(Header::Vlan)?;
    let twice = way.state.headers.has(Header::Vlan2)?;
    let id = way.value(id);
    let id = draft.values.resize(field_ty(Field::VlanId), id);
    if let Some(popped) = &way.state.waiting.popped {
        let ty = field_ty(Field::VlanTpid);
        let (was, usual) = (popped.tpid, draft.values.constant(ty, TPID));
        let cond = draft.values.cmp(CmpOp::Eq, was, usual);
        match way.state.facts.only(&draft.values, cond) {
            None => return Ok(Flow::Splits(cond)),
            Some(0) => {}
            Some(_) => {
                undo_pop(draft, way, id);
                return Ok(Flow::Next);
            }
        }
        settle(draft, way);
    }
    let known = !tagged || OUTER.iter().all(|field| draft.bound(&way.state, *field).is_some());
    if twice || !known || !visit.tag_changes.pops {
        push_now(draft, way, id, tagged, twice);
        return Ok(Flow::Next);
    }
    let before = match tagged {
        true => way.state.before(&[&[Field::VlanTpid], INNER.as_slice()].concat()),
        false => way.state.before(&TAGS),
    };
    if tagged {
        move_cells(draft, way, OUTER, INNER);
    }
    way.state.waiting.pushed.push(Pushed { site: draft.values.site, tagged, before });
    tag_added(draft, way, id, tagged);
    Ok(Flow::Next)
}

/// Adds a tag to the packet's bytes immediately.
fn push_now(draft: &mut Draft, way: &mut Way, id: ValueId, tagged: bool, twice: bool) {
    settle(draft, way);
    if twice {
        // With one more tag, the parser may no longer recognise the headers of assigned fields.
        flush(draft, way);
    } else {
        flush_tags(draft, way);
    }
    let moved = tagged.then(|| OUTER.map(|field| load_cell(draft, way, field)));
    let site = draft.values.site;
    change_tags(draft, way, site, Op::PushVlan { id });
    if twice {
        // If the packet now has too many tags, the parser recognises nothing after them.
        let headers = &mut way.state.headers;
        let tags = [Header::Pkt, Header::Eth, Header::Vlan, Header::Vlan2];
        let tags = tags.iter().fold(0, |bits, header| bits | bit(*header));
        headers.asked |= headers.known().0;
        headers.doubt(!tags);
        forget_behind(way);
    }
    if let Some(values) = moved {
        for (field, value) in INNER.into_iter().zip(values) {
            way.state.cells.insert(field, Cell::Value(value, false));
        }
    }
    tag_added(draft, way, id, tagged);
}

/// Updates the state for an added tag.
fn tag_added(draft: &mut Draft, way: &mut Way, id: ValueId, tagged: bool) {
    way.state.headers.set(if tagged { Header::Vlan2 } else { Header::Vlan }, true);
    for (field, word) in [(Field::VlanDei, 0), (Field::VlanPcp, 0), (Field::VlanTpid, TPID)] {
        let value = draft.values.constant(field_ty(field), word);
        way.state.cells.insert(field, Cell::Value(value, false));
    }
    way.state.cells.insert(Field::VlanId, Cell::Value(id, false));
    lengthen(draft, way, LEN);
}

/// Cancels a waiting removal: the tag stays and gets new content.
fn undo_pop(draft: &mut Draft, way: &mut Way, id: ValueId) {
    let Some(popped) = way.state.waiting.popped.take() else { return };
    way.state.headers.set(Header::Vlan, true);
    way.state.restore(popped.before);
    let mut zero = |field| draft.values.constant(field_ty(field), 0);
    let (dei, pcp) = (zero(Field::VlanDei), zero(Field::VlanPcp));
    for (field, value) in [(Field::VlanId, id), (Field::VlanDei, dei), (Field::VlanPcp, pcp)] {
        way.state.cells.insert(field, Cell::Value(value, true));
    }
    draft.stats.cancelled += 1;
    lengthen(draft, way, LEN);
}

/// Removes the outermost tag.
pub(super) fn pop_vlan(
    draft: &mut Draft,
    visit: &Visit<'_>,
    way: &mut Way,
) -> Result<Flow, Header> {
    if !way.state.headers.has(Header::Vlan)? {
        return Ok(draft.fault(visit, way, Fault::Truncated));
    }
    let twice = way.state.headers.has(Header::Vlan2)?;
    if let Some(pushed) = way.state.waiting.pushed.pop() {
        undo_push(draft, way, pushed);
        return Ok(Flow::Next);
    }
    let tpid = draft.bound(&way.state, Field::VlanTpid);
    match tpid.filter(|_| !twice && visit.tag_changes.pushes) {
        Some(tpid) => {
            let before = way.state.before(&TAGS);
            let popped = Popped { site: draft.values.site, tpid, before };
            way.state.waiting.popped = Some(popped);
            way.state.headers.set(Header::Vlan, false);
            way.state.reload(TAGS[..4].iter().copied());
            lengthen(draft, way, -LEN);
        }
        None => pop_now(draft, way, twice),
    }
    Ok(Flow::Next)
}

/// Cancels a waiting addition.
fn undo_push(draft: &mut Draft, way: &mut Way, pushed: Pushed) {
    if pushed.tagged {
        move_cells(draft, way, INNER, OUTER);
    }
    let gone = if pushed.tagged { Header::Vlan2 } else { Header::Vlan };
    way.state.headers.set(gone, false);
    way.state.restore(pushed.before);
    draft.stats.cancelled += 1;
    lengthen(draft, way, -LEN);
}

/// Removes a tag from the packet's bytes immediately.
fn pop_now(draft: &mut Draft, way: &mut Way, twice: bool) {
    if twice {
        flush_tags(draft, way);
    }
    let moved = twice.then(|| INNER.map(|field| load_cell(draft, way, field)));
    let site = draft.values.site;
    change_tags(draft, way, site, Op::PopVlan);
    way.state.reload([Field::VlanTpid]);
    let headers = &mut way.state.headers;
    if let Some(values) = moved {
        // If there was a third tag, it is the second one now. Headers that too many tags had hidden
        // may appear.
        let mut open = bit(Header::Vlan2);
        let announced = |header: &Header| !header.announced_by(Field::EthType).is_empty();
        let behind = super::headers::all().filter(announced).map(Header::group);
        let named: Vec<_> = behind.map(|header| headers.has(header)).collect();
        if !named.contains(&Ok(true)) {
            let (present, ..) = headers.known();
            headers.asked = EVERY;
            open |= EVERY & !present;
        }
        headers.forget(open);
        forget_behind(way);
        for (field, value) in OUTER.into_iter().zip(values) {
            way.state.cells.insert(field, Cell::Value(value, false));
        }
        way.state.reload(INNER);
    } else {
        headers.set(Header::Vlan, false);
        way.state.reload(OUTER);
    }
    lengthen(draft, way, -LEN);
}

/// Moves the cells of one tag to the fields of another tag.
fn move_cells(draft: &mut Draft, way: &mut Way, from: [Field; 3], to: [Field; 3]) {
    for (from, to) in from.into_iter().zip(to) {
        let cell = match way.state.cells.get(&from) {
            Some(cell) => *cell,
            None => Cell::Value(draft.values.init(from), false),
        };
        way.state.cells.insert(to, cell);
    }
}

/// Prepares the bytes for a tag change: if a field of a tag is assigned but not written, writes all
/// assigned fields.
fn flush_tags(draft: &mut Draft, way: &mut Way) {
    let cells = way.state.cells.iter();
    let mut tags = cells.filter(|(field, _)| is_tag(**field));
    if tags.any(|(_, cell)| matches!(cell, Cell::Value(_, true))) {
        flush(draft, way);
    }
}

/// Adds a number of bytes to the field `pkt.len`.
fn lengthen(draft: &mut Draft, way: &mut Way, bytes: i32) {
    let before = match way.state.cells.get(&Field::PktLen) {
        Some(Cell::Value(value, _)) => *value,
        _ => draft.values.init(Field::PktLen),
    };
    let by = Word::from(bytes.unsigned_abs());
    let by = if bytes < 0 { by.wrapping_neg() } else { by };
    let value = draft.values.plus(field_ty(Field::PktLen), before, by);
    way.state.cells.insert(Field::PktLen, Cell::Value(value, false));
}

/// Makes the waiting tag changes of paths that differ in them. The caller does this where no later
/// function changes tags, so that nothing else keeps these paths apart.
pub(super) fn settle_unlike(draft: &mut Draft, edges: &mut Vec<Edge>) {
    let outlines = edges.iter().map(|edge| edge.state.waiting.outline());
    let mut outlines: Vec<_> = outlines.collect();
    outlines.dedup();
    if outlines.len() < 2 {
        return;
    }
    for edge in std::mem::take(edges) {
        let mut way = draft.blocks.open(edge);
        settle(draft, &mut way);
        edges.push(way.edge());
    }
}
