//! Changes of configuration: what parameters records rest on, and what becomes of those that rest on what has changed.
//!
//! A change ends no record: it marks classes. No packet fits a record of an outdated class any more, and the next
//! packet of its flow makes another one in its place.

use super::class::{Class, Classes, Way};
use super::guard::Guard;
use super::plan::VARIANTS;
use super::probe::Probe;
use super::{Fused, NONE};
use crate::Compiled;
use crate::act::Values;
use crate::walk::Walk;
use braid_ir::chain::{Change, Control};
use braid_ir::model::{Op, ParamId, SetRef};
use braid_ir::value::{Backend, ParamValue};
use braid_packet::{Layout, Packet};
use braid_state::{RecordBug, Store};
use std::ops::Range;

/// What records rest on beside state: a parameter, or a part of one. (Values that are compiled into programs are
/// not among them, nor are patterns, which records search for as they are when a packet comes.)
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Basis {
    /// The function.
    pub node: u16,
    /// The parameter.
    pub param: ParamId,
    /// Which part of it.
    pub part: Part,
}

/// A part of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// All of it.
    Whole,
    /// Which backends there are, and what their columns hold; not whether they are up.
    Members,
    /// The backend with this number: its columns, and whether it is up.
    Backend(u32),
}

/// What a change has changed.
pub(crate) struct Changed {
    node: u16,
    param: ParamId,
    what: What,
}

enum What {
    Whole,
    /// There is one more rule, with this number.
    RuleAdded(u32),
    /// The rule with this number is gone.
    RuleRemoved(u32),
    /// Backends have changed, by number; perhaps their columns, too, or there are others.
    Backends {
        which: Vec<u32>,
        members: bool,
    },
}

impl Changed {
    /// What has changed in a parameter, which had these backends before, if any.
    pub(crate) fn new(control: &Control, before: &[Backend], value: &ParamValue) -> Self {
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let what = match (&control.change, value) {
            // One behind all others comes before the default.
            (Change::AddRule(at, _), ParamValue::Rules(set)) => {
                What::RuleAdded(number(*at).min(number(set.rules.len()) - 1))
            }
            (Change::RemoveRule(at), _) => What::RuleRemoved(number(*at)),
            (_, ParamValue::Backends(all)) => backends(before, all),
            _ => What::Whole,
        };
        Self { node: control.node, param: control.param, what }
    }

    /// Whether this is, or is part of, what has changed.
    fn touches(&self, basis: &Basis) -> bool {
        let is_it = (self.node, self.param) == (basis.node, basis.param);
        is_it
            && match (&self.what, basis.part) {
                (What::Backends { which, .. }, Part::Backend(number)) => which.contains(&number),
                (What::Backends { members, .. }, Part::Members) => *members,
                (What::Backends { which, .. }, Part::Whole) => !which.is_empty(),
                _ => true,
            }
    }

    /// The number that a rule has now; `None` if it is gone, with what it has counted.
    fn moved(&self, rule: u32) -> Option<u32> {
        match self.what {
            What::RuleAdded(at) => Some(rule + u32::from(rule >= at)),
            What::RuleRemoved(at) if rule != at => Some(rule - u32::from(rule > at)),
            _ => None,
        }
    }
}

/// What differs between backends, which keep their numbers.
fn backends(before: &[Backend], now: &[Backend]) -> What {
    let most = before.len().max(now.len());
    let differ = |at: &usize| before.get(*at) != now.get(*at);
    let member = |one: Option<&Backend>| one.map(|one| (one.columns.clone(), one.is_removed()));
    What::Backends {
        which: (0..most).filter(differ).map(|at| at as u32).collect(),
        members: (0..most).any(|at| member(before.get(at)) != member(now.get(at))),
    }
}

impl Way {
    /// Rests on no backend by itself any more, but on all of them.
    pub(super) fn coarsen(&mut self) {
        for at in 0..self.bases.len() {
            if let Part::Backend(_) = self.bases[at].part {
                self.bases[at].part = Part::Whole;
            }
        }
        let all = std::mem::take(&mut self.bases);
        all.into_iter().for_each(|basis| self.rest_on(basis));
    }

    fn rest_on(&mut self, basis: Basis) {
        if !self.bases.contains(&basis) {
            self.bases.push(basis);
        }
    }
}

impl Class {
    /// No packet fits its records from now on.
    fn outdate(&mut self) {
        self.guards = Box::new([Guard::NEVER]);
    }
}

impl Classes {
    /// Marks those that rest on what has changed.
    fn outdate(&mut self, changed: &Changed, store: &mut Store) {
        let touched = |way: &Way| way.bases.iter().any(|basis| changed.touches(basis));
        let left_out = match store.has_bug(RecordBug::ClassNotOutdated) {
            true => self.ways.iter().rposition(touched),
            false => None,
        };
        for (at, (class, way)) in self.all.iter_mut().zip(&mut self.ways).enumerate() {
            if !touched(way) || left_out == Some(at) {
                continue;
            }
            if !store.is_class_outdated(at as u32) {
                self.numbers.remove(way);
                class.outdate();
                store.outdate_class(at as u32);
            }
            // What its records have counted, and perhaps nobody has asked for yet, belongs to the same rules.
            way.rules.retain_mut(|(node, param, rule)| {
                let moves = (*node, *param) == (changed.node, changed.param)
                    && !store.has_bug(RecordBug::RulesNotMoved);
                let moved = if moves { changed.moved(*rule) } else { Some(*rule) };
                moved.inspect(|moved| *rule = *moved).is_some()
            });
        }
    }
}

impl Probe<'_> {
    /// A parameter is asked for: the record rests on it.
    pub(super) fn rest_on(&mut self, node: u16, param: ParamId, part: Part) {
        self.notes.way.rest_on(Basis { node, param, part });
    }

    /// The same for what an operation asks for, whose operands hang on nothing more.
    #[inline]
    pub(super) fn rest_on_operands(&mut self, node: u16, values: &Values<'_>, op: &Op) {
        let (param, part) = match *op {
            Op::Route { param, .. } | Op::Extern { param: Some(param), .. } => (param, Part::Whole),
            Op::ListLen { param, .. } | Op::InSet { set: SetRef::List(param, _), .. } => {
                (param, Part::Members)
            }
            Op::ListGet { param, index, .. } | Op::BackendUp { param, index, .. } => {
                (param, Part::Backend(values.get(index) as u32))
            }
            _ => return,
        };
        let value = &self.functions.chain.nodes[usize::from(node)].params[param.index()];
        // With another list come other programs.
        if matches!(value, ParamValue::List(_)) {
            return;
        }
        let is_one = matches!(part, Part::Backend(_));
        if !(is_one && self.functions.store.has_bug(RecordBug::BackendIgnored)) {
            self.rest_on(node, param, part);
        }
    }
}

impl Fused {
    /// Turns to an outdated record of the flow of the packet at `at`, if there is one.
    pub(super) fn turn_to_outdated(&mut self, store: &Store, at: usize) -> bool {
        let first = self.flows[at].kind / VARIANTS * VARIANTS;
        (first..first + VARIANTS).any(|kind| {
            self.flows[at].kind = kind;
            let record = self.find(store, at);
            self.flows[at].record = record;
            record != NONE && store.is_class_outdated(store.record_class(record))
        })
    }
}

impl Compiled {
    /// A parameter has changed: records that rest on what is another one now are outdated.
    pub(crate) fn outdate_records(&mut self, changed: &Changed) {
        let store = &mut self.functions.store;
        if let Some(fused) = &mut self.fused
            && !store.has_bug(RecordBug::ControlIgnored)
        {
            fused.classes.outdate(changed, store);
        }
    }

    /// The first of these packets of the part has an outdated record, which ends: whether it has another one now. If
    /// not, the flow's next packet tries again.
    pub(super) fn renew_record(
        &mut self,
        packets: Range<usize>,
        packet: &Packet,
        layout: &Layout,
        walk: &mut Walk<'_>,
    ) -> bool {
        let at = packets.start;
        let Some(fused) = &mut self.fused else { return false };
        let flow = fused.flows[at];
        self.functions.store.end_record(flow.record);
        // No other packets than those of this flow have to be told.
        fused.ended += 1;
        let is_made = self.make_record(at, packet, layout, walk);
        let Some(fused) = &mut self.fused else { return false };
        let store = &self.functions.store;
        if is_made {
            fused.renewed += 1;
        } else {
            fused.misfits += 1;
            fused.flows[at].kind = flow.kind / VARIANTS * VARIANTS;
            let has_first = fused.find(store, at) != NONE;
            fused.filter.expect(if has_first { !flow.hash } else { flow.hash });
        }
        fused.find_again(store, packets, |hash| hash == flow.hash);
        is_made
    }
}
