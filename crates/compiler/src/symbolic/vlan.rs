//! VLAN tags. A tag that one function adds and a later one removes never reaches the packet's
//! bytes. A tag that is removed and added again is written in place (SNF: redundant pushes and
//! pops).
//!
//! While a tag change waits, the abstract state describes the packet with the change, but the bytes
//! and their layout are still without it. Only the fields of the tags themselves are affected: with
//! at most two tags, one tag more or less neither hides nor reveals a header behind the tags. Where
//! the packet may have more tags, changes are made at once.

use super::Synth;
use super::build::{Edge, Way};
use super::exec::Flow;
use super::headers::{EVERY, bit};
use super::state::{Cell, State};
use super::values::field_ty;
use super::visit::Visit;
use braid_ir::engine::Fault;
use braid_ir::model::{CmpOp, Op, ValueId, Word};
use braid_ir::residual::{Site, Step, What};
use braid_packet::{Field, Header};

/// The TPID of added tags.
const TPID: Word = 0x8100;
/// The length of a tag in bytes.
const LEN: i32 = 4;
/// The fields of the outermost tag that models may assign. `INNER` has the same fields of the
/// second tag.
const OUTER: [Field; 3] = [Field::VlanId, Field::VlanPcp, Field::VlanDei];
const INNER: [Field; 3] = [Field::Vlan2Id, Field::Vlan2Pcp, Field::Vlan2Dei];
/// All fields of tags.
const ALL: [Field; 7] = [
    Field::VlanTpid,
    Field::VlanId,
    Field::VlanPcp,
    Field::VlanDei,
    Field::Vlan2Id,
    Field::Vlan2Pcp,
    Field::Vlan2Dei,
];

/// The cells of tags before a change.
type Before = Vec<(Field, Option<Cell>)>;

/// Tag changes that the packet's bytes do not have yet.
#[derive(Clone, Default)]
pub(super) struct Waiting {
    /// The packet's only tag has been removed.
    popped: Option<Popped>,
    /// Tags that have been added, the outermost last.
    pushed: Vec<Pushed>,
}

/// The properties by which waiting changes are compared.
pub(super) type Outline = (Option<(ValueId, Before)>, Vec<(bool, Before)>);

#[derive(Clone)]
struct Popped {
    site: Site,
    tpid: ValueId,
    before: Before,
}

#[derive(Clone)]
struct Pushed {
    site: Site,
    /// Whether there is a tag beneath this one.
    tagged: bool,
    before: Before,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.popped.is_none() && self.pushed.is_empty()
    }

    /// The difference in bytes between the packet with its waiting changes and its actual bytes.
    pub(super) fn length(&self) -> i32 {
        let pushed = i32::try_from(self.pushed.len()).unwrap_or(0);
        LEN * (pushed - i32::from(self.popped.is_some()))
    }

    pub(super) fn outline(&self) -> Outline {
        let popped = self.popped.as_ref().map(|one| (one.tpid, one.before.clone()));
        (popped, self.pushed.iter().map(|one| (one.tagged, one.before.clone())).collect())
    }
}

/// Whether a field belongs to a VLAN tag.
pub(super) fn is_tag(field: Field) -> bool {
    ALL.contains(&field)
}

/// Forgets the Ethernet type and the payload length: one tag more or less may decide whether the
/// parser recognises the headers behind the tags.
fn forget_behind(way: &mut Way) {
    for field in [Field::EthType, Field::PktPayloadLen] {
        way.state.cells.insert(field, Cell::Reload);
    }
}

fn changes_tags(op: &Op) -> bool {
    matches!(op, Op::PushVlan { .. } | Op::PopVlan)
}

impl State {
    fn before(&self, fields: &[Field]) -> Before {
        fields.iter().map(|field| (*field, self.cells.get(field).copied())).collect()
    }

    fn restore(&mut self, before: Before) {
        for (field, cell) in before {
            match cell {
                Some(cell) => self.cells.insert(field, cell),
                None => self.cells.remove(&field),
            };
        }
    }

    fn forget_tags(&mut self, fields: &[Field]) {
        self.cells.extend(fields.iter().map(|field| (*field, Cell::Reload)));
    }
}

impl<'a> Synth<'a> {
    /// Adds an outermost tag.
    pub(super) fn push_vlan(
        &mut self,
        visit: &Visit<'a>,
        way: &mut Way,
        id: ValueId,
    ) -> Result<Flow, Header> {
        if !way.state.headers.has(Header::Eth)? {
            return Ok(self.fault(visit, way, Fault::Truncated));
        }
        let tagged = way.state.headers.has(Header::Vlan)?;
        let twice = way.state.headers.has(Header::Vlan2)?;
        let id = self.value(way, id);
        let id = self.values.resize(field_ty(Field::VlanId), id);
        if let Some(popped) = &way.state.waiting.popped {
            let ty = field_ty(Field::VlanTpid);
            let (was, usual) = (popped.tpid, self.values.constant(ty, TPID));
            let cond = self.values.cmp(CmpOp::Eq, was, usual);
            match way.state.facts.only(&self.values, cond) {
                None => return Ok(Flow::Splits(cond)),
                Some(0) => {}
                Some(_) => {
                    self.undo_pop(way, id);
                    return Ok(Flow::Next);
                }
            }
            self.settle(way);
        }
        let known = !tagged || OUTER.iter().all(|field| self.bound(&way.state, *field).is_some());
        if twice || !known || !self.may_undo(visit, |op| *op == Op::PopVlan) {
            self.push_now(way, id, tagged, twice);
            return Ok(Flow::Next);
        }
        let before = match tagged {
            true => way.state.before(&[&[Field::VlanTpid], INNER.as_slice()].concat()),
            false => way.state.before(&ALL),
        };
        if tagged {
            self.move_cells(way, OUTER, INNER);
        }
        way.state.waiting.pushed.push(Pushed { site: self.values.site, tagged, before });
        self.tag_added(way, id, tagged);
        Ok(Flow::Next)
    }

    /// Adds a tag to the packet's bytes.
    fn push_now(&mut self, way: &mut Way, id: ValueId, tagged: bool, twice: bool) {
        self.settle(way);
        if twice {
            // One more tag may put headers with assigned fields out of the parser's reach.
            self.flush(way);
        } else {
            self.flush_tags(way);
        }
        let moved = tagged.then(|| OUTER.map(|field| self.cell(way, field)));
        self.change_tags(way, self.values.site, Op::PushVlan { id });
        if twice {
            // The packet may now have too many tags. Then nothing behind them is recognised.
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
        self.tag_added(way, id, tagged);
    }

    /// Updates the state for an added tag.
    fn tag_added(&mut self, way: &mut Way, id: ValueId, tagged: bool) {
        way.state.headers.set(if tagged { Header::Vlan2 } else { Header::Vlan }, true);
        for (field, word) in [(Field::VlanDei, 0), (Field::VlanPcp, 0), (Field::VlanTpid, TPID)] {
            let value = self.values.constant(field_ty(field), word);
            way.state.cells.insert(field, Cell::Value(value, false));
        }
        way.state.cells.insert(Field::VlanId, Cell::Value(id, false));
        self.lengthen(way, LEN);
    }

    /// Cancels a removal: the removed tag stays and gets new content.
    fn undo_pop(&mut self, way: &mut Way, id: ValueId) {
        let Some(popped) = way.state.waiting.popped.take() else { return };
        way.state.headers.set(Header::Vlan, true);
        way.state.restore(popped.before);
        let zero = |synth: &mut Self, field| synth.values.constant(field_ty(field), 0);
        let (dei, pcp) = (zero(self, Field::VlanDei), zero(self, Field::VlanPcp));
        for (field, value) in [(Field::VlanId, id), (Field::VlanDei, dei), (Field::VlanPcp, pcp)] {
            way.state.cells.insert(field, Cell::Value(value, true));
        }
        self.stats.cancelled += 1;
        self.lengthen(way, LEN);
    }

    /// Removes the outermost tag.
    pub(super) fn pop_vlan(&mut self, visit: &Visit<'a>, way: &mut Way) -> Result<Flow, Header> {
        if !way.state.headers.has(Header::Vlan)? {
            return Ok(self.fault(visit, way, Fault::Truncated));
        }
        let twice = way.state.headers.has(Header::Vlan2)?;
        if let Some(pushed) = way.state.waiting.pushed.pop() {
            self.undo_push(way, pushed);
            return Ok(Flow::Next);
        }
        let tpid = self.bound(&way.state, Field::VlanTpid);
        let pushes = |op: &Op| matches!(op, Op::PushVlan { .. });
        match tpid.filter(|_| !twice && self.may_undo(visit, pushes)) {
            Some(tpid) => {
                let before = way.state.before(&ALL);
                let popped = Popped { site: self.values.site, tpid, before };
                way.state.waiting.popped = Some(popped);
                way.state.headers.set(Header::Vlan, false);
                way.state.forget_tags(&ALL[..4]);
                self.lengthen(way, -LEN);
            }
            None => self.pop_now(way, twice),
        }
        Ok(Flow::Next)
    }

    /// Cancels an addition: the added tag is removed again.
    fn undo_push(&mut self, way: &mut Way, pushed: Pushed) {
        if pushed.tagged {
            self.move_cells(way, INNER, OUTER);
        }
        let gone = if pushed.tagged { Header::Vlan2 } else { Header::Vlan };
        way.state.headers.set(gone, false);
        way.state.restore(pushed.before);
        self.stats.cancelled += 1;
        self.lengthen(way, -LEN);
    }

    /// Removes a tag from the packet's bytes.
    fn pop_now(&mut self, way: &mut Way, twice: bool) {
        if twice {
            self.flush_tags(way);
        }
        let moved = twice.then(|| INNER.map(|field| self.cell(way, field)));
        self.change_tags(way, self.values.site, Op::PopVlan);
        let headers = &mut way.state.headers;
        way.state.cells.insert(Field::VlanTpid, Cell::Reload);
        if let Some(values) = moved {
            // A third tag becomes the second. Headers that too many tags had hidden may appear.
            let mut open = bit(Header::Vlan2);
            let announced = |header: &Header| !header.announced_by(Field::EthType).is_empty();
            let is_ip = |header: Header| header.implies().contains(&Header::Inet);
            let either = |header| if is_ip(header) { Header::Inet } else { header };
            let behind = super::headers::all().filter(announced).map(either);
            let named: Vec<_> = behind.map(|header| headers.has(header)).collect();
            if !named.contains(&Ok(true)) {
                let (present, ..) = headers.known();
                headers.asked = EVERY;
                open |= (EVERY) & !present;
            }
            headers.forget(open);
            forget_behind(way);
            for (field, value) in OUTER.into_iter().zip(values) {
                way.state.cells.insert(field, Cell::Value(value, false));
            }
            way.state.forget_tags(&INNER);
        } else {
            headers.set(Header::Vlan, false);
            way.state.forget_tags(&OUTER);
        }
        self.lengthen(way, -LEN);
    }

    /// Moves the cells of one tag to the fields of another tag.
    fn move_cells(&mut self, way: &mut Way, from: [Field; 3], to: [Field; 3]) {
        for (from, to) in from.into_iter().zip(to) {
            let cell = match way.state.cells.get(&from) {
                Some(cell) => *cell,
                None => Cell::Value(self.values.init(from), false),
            };
            way.state.cells.insert(to, cell);
        }
    }

    /// Whether this function or a later one has an operation that may undo the change.
    fn may_undo(&self, visit: &Visit<'_>, does: impl Fn(&Op) -> bool) -> bool {
        self.does_later(visit.number, does)
    }

    fn does_later(&self, from: usize, does: impl Fn(&Op) -> bool) -> bool {
        self.order[from..].iter().any(|point| {
            let program = &self.chain.nodes[usize::from(point.node)].model.packet;
            program.blocks.iter().flat_map(|block| &block.ops).any(&does)
        })
    }

    /// Makes the waiting changes in the packet's bytes. Afterwards only assigned fields are still
    /// unwritten.
    pub(super) fn settle(&mut self, way: &mut Way) {
        if way.state.waiting.is_empty() {
            return;
        }
        let Waiting { popped, pushed } = std::mem::take(&mut way.state.waiting);
        if let Some(popped) = popped {
            self.change_tags(way, popped.site, Op::PopVlan);
        }
        let count = pushed.len();
        for (number, pushed) in pushed.into_iter().enumerate() {
            let field = if number + 1 == count { Field::VlanId } else { Field::Vlan2Id };
            if let Some(Cell::Value(id, dirty)) = way.state.cells.get_mut(&field) {
                *dirty = false;
                let id = *id;
                self.change_tags(way, pushed.site, Op::PushVlan { id });
            }
        }
    }

    fn change_tags(&mut self, way: &mut Way, site: Site, op: Op) {
        way.state.lengthen(if op == Op::PopVlan { -LEN } else { LEN });
        (way.state.moved, way.state.stale) = (true, true);
        way.state.written.extend(ALL);
        self.blocks.all[way.at].steps.push(Step { site, what: What::Op(op), fault: None });
    }

    /// Prepares the packet for a tag change: writes the assigned fields of tags and corrects
    /// offsets.
    fn flush_tags(&mut self, way: &mut Way) {
        let cells = way.state.cells.iter();
        let mut tags = cells.filter(|(field, _)| is_tag(**field));
        if tags.any(|(_, cell)| matches!(cell, Cell::Value(_, true))) {
            self.flush(way);
        }
    }

    /// Makes the packet longer by a number of bytes.
    fn lengthen(&mut self, way: &mut Way, bytes: i32) {
        let before = match way.state.cells.get(&Field::PktLen) {
            Some(Cell::Value(value, _)) => *value,
            _ => self.values.init(Field::PktLen),
        };
        let by = Word::from(bytes.unsigned_abs());
        let by = if bytes < 0 { by.wrapping_neg() } else { by };
        let value = self.values.plus(field_ty(Field::PktLen), before, by);
        way.state.cells.insert(Field::PktLen, Cell::Value(value, false));
    }

    /// Settles paths that have different waiting changes if no function from this one on changes
    /// tags. Then nothing keeps these paths apart any longer.
    pub(super) fn settle_unlike(&mut self, edges: &mut Vec<Edge>, number: usize) {
        let outlines = edges.iter().map(|edge| edge.state.waiting.outline());
        let mut outlines: Vec<_> = outlines.collect();
        outlines.dedup();
        if outlines.len() < 2 || self.does_later(number, changes_tags) {
            return;
        }
        for edge in std::mem::take(edges) {
            let mut way = self.blocks.open(edge);
            self.settle(&mut way);
            edges.push(way.edge());
        }
    }
}
