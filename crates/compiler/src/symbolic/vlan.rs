//! VLAN tags. A tag that one function adds and a later one removes is never written to the packet's
//! bytes. A tag that is removed and added again is rewritten in place (SNF: redundant pushes and
//! pops).
//!
//! While a tag change waits, the abstract state already has the change, but the bytes and their
//! layout do not. Only the fields of the tags are affected: as long as the packet has at most two
//! tags, one more or less neither hides nor reveals a header after the tags. Where the packet may
//! have more tags, changes are made immediately.

use super::build::{Edge, Path};
use super::cells::Cell;
use super::draft::{Draft, Flow};
use super::fields::load_cell;
use super::headers::EVERY;
use super::values::field_ty;
use super::visit::Visit;
use super::waiting::{LEN, Popped, Pushed, TAGS, is_tag};
use super::write::{change_tags, flush, settle};
use braid_ir::engine::Fault;
use braid_ir::model::{CmpOp, Op, ValueId, Word};
use braid_packet::{Field, Header, ether_type};

/// The TPID of added tags.
const TPID: Word = ether_type::VLAN as Word;
/// The fields of the outermost tag that models can assign. `INNER` has the same fields of the
/// second tag.
const OUTER: [Field; 3] = [Field::VlanId, Field::VlanPcp, Field::VlanDei];
const INNER: [Field; 3] = [Field::Vlan2Id, Field::Vlan2Pcp, Field::Vlan2Dei];

/// Forgets the EtherType and the payload length. One tag more or less may decide whether the parser
/// recognises the headers after the tags.
fn forget_behind(path: &mut Path) {
    path.state.reload([Field::EthType, Field::PktPayloadLen]);
}

/// Adds an outermost tag.
pub(super) fn push_vlan(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
    id: ValueId,
) -> Result<Flow, Header> {
    if !path.state.headers.has(Header::Eth)? {
        return Ok(draft.fault(visit, path, Fault::Truncated));
    }
    let tagged = path.state.headers.has(Header::Vlan)?;
    let twice = path.state.headers.has(Header::Vlan2)?;
    let id = path.value(id);
    let id = draft.values.resize(field_ty(Field::VlanId), id);
    if let Some(popped) = &path.state.waiting.popped {
        let ty = field_ty(Field::VlanTpid);
        let (was, usual) = (popped.tpid, draft.values.constant(ty, TPID));
        let cond = draft.values.cmp(CmpOp::Eq, was, usual);
        match path.state.facts.only(&draft.values, cond) {
            None => return Ok(Flow::Splits(cond)),
            Some(0) => {}
            Some(_) => {
                undo_pop(draft, path, id);
                return Ok(Flow::Next);
            }
        }
        settle(draft, path);
    }
    let known = !tagged || OUTER.iter().all(|field| draft.bound(&path.state, *field).is_some());
    if twice || !known || !visit.tag_changes.pops {
        push_now(draft, path, id, tagged, twice);
        return Ok(Flow::Next);
    }
    know_length(draft, path);
    let before = match tagged {
        true => path.state.before(&[&[Field::VlanTpid], INNER.as_slice()].concat()),
        false => path.state.before(&TAGS),
    };
    if tagged {
        move_cells(draft, path, OUTER, INNER);
    }
    path.state.waiting.pushed.push(Pushed { site: draft.values.site, tagged, before });
    tag_added(draft, path, id, tagged);
    Ok(Flow::Next)
}

/// Adds a tag to the packet's bytes immediately.
fn push_now(draft: &mut Draft, path: &mut Path, id: ValueId, tagged: bool, twice: bool) {
    settle(draft, path);
    if twice {
        // With one more tag, the parser may no longer recognise the headers of assigned fields.
        flush(draft, path);
    } else {
        flush_tags(draft, path);
    }
    let moved = tagged.then(|| OUTER.map(|field| load_cell(draft, path, field)));
    let site = draft.values.site;
    change_tags(draft, path, site, Op::PushVlan { id });
    if twice {
        // If the packet now has too many tags, the parser recognises nothing after them.
        let headers = &mut path.state.headers;
        let tags = Header::Pkt.bit() | Header::bits(Header::LINK);
        headers.asked |= headers.known().0;
        headers.doubt(!tags);
        forget_behind(path);
    }
    if let Some(values) = moved {
        for (field, value) in INNER.into_iter().zip(values) {
            path.state.cells.insert(field, Cell::Value(value, false));
        }
    }
    tag_added(draft, path, id, tagged);
}

/// Updates the state for an added tag.
fn tag_added(draft: &mut Draft, path: &mut Path, id: ValueId, tagged: bool) {
    path.state.headers.set(if tagged { Header::Vlan2 } else { Header::Vlan }, true);
    for (field, word) in [(Field::VlanDei, 0), (Field::VlanPcp, 0), (Field::VlanTpid, TPID)] {
        let value = draft.values.constant(field_ty(field), word);
        path.state.cells.insert(field, Cell::Value(value, false));
    }
    path.state.cells.insert(Field::VlanId, Cell::Value(id, false));
    lengthen(draft, path, LEN);
}

/// Cancels a waiting removal: the tag stays and gets new content.
fn undo_pop(draft: &mut Draft, path: &mut Path, id: ValueId) {
    let Some(popped) = path.state.waiting.popped.take() else { return };
    path.state.headers.set(Header::Vlan, true);
    path.state.restore(popped.before);
    let mut zero = |field| draft.values.constant(field_ty(field), 0);
    let (dei, pcp) = (zero(Field::VlanDei), zero(Field::VlanPcp));
    for (field, value) in [(Field::VlanId, id), (Field::VlanDei, dei), (Field::VlanPcp, pcp)] {
        path.state.cells.insert(field, Cell::Value(value, true));
    }
    draft.stats.cancelled += 1;
    lengthen(draft, path, LEN);
}

/// Removes the outermost tag.
pub(super) fn pop_vlan(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
) -> Result<Flow, Header> {
    if !path.state.headers.has(Header::Vlan)? {
        return Ok(draft.fault(visit, path, Fault::Truncated));
    }
    let twice = path.state.headers.has(Header::Vlan2)?;
    if let Some(pushed) = path.state.waiting.pushed.pop() {
        undo_push(draft, path, pushed);
        return Ok(Flow::Next);
    }
    let tpid = draft.bound(&path.state, Field::VlanTpid);
    match tpid.filter(|_| !twice && visit.tag_changes.pushes) {
        Some(tpid) => {
            know_length(draft, path);
            let before = path.state.before(&TAGS);
            let popped = Popped { site: draft.values.site, tpid, before };
            path.state.waiting.popped = Some(popped);
            path.state.headers.set(Header::Vlan, false);
            path.state.reload(TAGS[..4].iter().copied());
            lengthen(draft, path, -LEN);
        }
        None => pop_now(draft, path, twice),
    }
    Ok(Flow::Next)
}

/// Cancels a waiting addition.
fn undo_push(draft: &mut Draft, path: &mut Path, pushed: Pushed) {
    if pushed.tagged {
        move_cells(draft, path, INNER, OUTER);
    }
    let gone = if pushed.tagged { Header::Vlan2 } else { Header::Vlan };
    path.state.headers.set(gone, false);
    path.state.restore(pushed.before);
    draft.stats.cancelled += 1;
    lengthen(draft, path, -LEN);
}

/// Removes a tag from the packet's bytes immediately.
fn pop_now(draft: &mut Draft, path: &mut Path, twice: bool) {
    if twice {
        flush_tags(draft, path);
    }
    let moved = twice.then(|| INNER.map(|field| load_cell(draft, path, field)));
    let site = draft.values.site;
    change_tags(draft, path, site, Op::PopVlan);
    path.state.reload([Field::VlanTpid]);
    let headers = &mut path.state.headers;
    if let Some(values) = moved {
        // If there was a third tag, it is the second one now. Headers that too many tags had hidden
        // may appear.
        let mut open = Header::Vlan2.bit();
        let announced = |header: &Header| !header.announced_by(Field::EthType).is_empty();
        let behind = super::headers::all().filter(announced).map(Header::group);
        let named: Vec<_> = behind.map(|header| headers.has(header)).collect();
        if !named.contains(&Ok(true)) {
            let (present, ..) = headers.known();
            headers.asked = EVERY;
            open |= EVERY & !present;
        }
        headers.forget(open);
        forget_behind(path);
        for (field, value) in OUTER.into_iter().zip(values) {
            path.state.cells.insert(field, Cell::Value(value, false));
        }
        path.state.reload(INNER);
    } else {
        headers.set(Header::Vlan, false);
        path.state.reload(OUTER);
    }
    lengthen(draft, path, -LEN);
}

/// Moves the cells of one tag to the fields of another tag.
fn move_cells(draft: &mut Draft, path: &mut Path, from: [Field; 3], to: [Field; 3]) {
    for (from, to) in from.into_iter().zip(to) {
        let cell = match path.state.cells.get(&from) {
            Some(cell) => *cell,
            None => Cell::Value(draft.values.init(from), false),
        };
        path.state.cells.insert(to, cell);
    }
}

/// Prepares the bytes for a tag change: if a field of a tag is assigned but not written, writes all
/// assigned fields.
fn flush_tags(draft: &mut Draft, path: &mut Path) {
    let cells = path.state.cells.iter();
    let mut tags = cells.filter(|(field, _)| is_tag(**field));
    if tags.any(|(_, cell)| matches!(cell, Cell::Value(_, true))) {
        flush(draft, path);
    }
}

/// Prepares the field `pkt.len` for a tag change that waits: the bytes will not have its length.
fn know_length(draft: &mut Draft, path: &mut Path) {
    if let Some(Cell::Reload) = path.state.cells.get(&Field::PktLen) {
        load_cell(draft, path, Field::PktLen);
    }
}

/// Adds a number of bytes to the field `pkt.len`. If it is loaded from the bytes, the bytes have
/// the tag change.
fn lengthen(draft: &mut Draft, path: &mut Path, bytes: i32) {
    let before = match path.state.cells.get(&Field::PktLen) {
        Some(Cell::Value(value, _)) => *value,
        Some(Cell::Reload) => return,
        None => draft.values.init(Field::PktLen),
    };
    let by = Word::from(bytes.unsigned_abs());
    let by = if bytes < 0 { by.wrapping_neg() } else { by };
    let value = draft.values.plus(field_ty(Field::PktLen), before, by);
    path.state.cells.insert(Field::PktLen, Cell::Value(value, false));
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
        let mut path = draft.blocks.open(edge);
        settle(draft, &mut path);
        edges.push(path.edge());
    }
}
