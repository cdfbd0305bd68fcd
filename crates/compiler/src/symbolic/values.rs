//! The values of a residual program under construction. A pure value depends only on its operands,
//! the entering packet and the configuration. It exists once, however many uses it has, and gets
//! its place at the end.

use braid_ir::model::{BinOp, CmpOp, Kind, ParamId, Ty, ValueId, Word};
use braid_ir::residual::{RuleFields, Site};
use braid_ir::show::{field_kind, max_of};
use braid_ir::value::IntervalSet;
use braid_packet::Field;
use std::collections::{BTreeSet, HashMap};

/// How a value is defined.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Def {
    /// As a block's parameter.
    Param,
    /// As a result of a step.
    Step,
    /// As the second result of the pure value with this number.
    Second(ValueId),
    /// As a pure value.
    Pure(Pure),
}

/// A pure value. A lookup belongs to a function.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Pure {
    Const(Word),
    /// A field of the packet as it entered the program.
    Init(Field),
    Bin(BinOp, ValueId, ValueId),
    Cmp(CmpOp, ValueId, ValueId),
    Not(ValueId),
    Resize(ValueId),
    /// The same bits with another kind.
    Retype(ValueId, Kind),
    Clamp(ValueId),
    Select(ValueId, ValueId, ValueId),
    /// Membership in a constant set, by its number.
    InSet(ValueId, usize),
    /// Membership in a column of backends.
    InColumn(ValueId, u16, ParamId, u32),
    /// The number of backends.
    Len(u16, ParamId),
    Route(u16, ParamId, ValueId),
    Classify(u16, ParamId, Option<Box<RuleFields>>),
}

impl Pure {
    /// Visits the operands.
    pub(super) fn visit_operands(&self, each: &mut dyn FnMut(ValueId)) {
        match self {
            Pure::Const(_) | Pure::Init(_) | Pure::Len(..) => {}
            Pure::Bin(_, a, b) | Pure::Cmp(_, a, b) => {
                each(*a);
                each(*b);
            }
            Pure::Not(a)
            | Pure::Resize(a)
            | Pure::Retype(a, _)
            | Pure::Clamp(a)
            | Pure::InSet(a, _)
            | Pure::InColumn(a, ..)
            | Pure::Route(_, _, a) => each(*a),
            Pure::Select(a, b, c) => {
                each(*a);
                each(*b);
                each(*c);
            }
            Pure::Classify(_, _, packet) => {
                if let Some(packet) = packet {
                    packet.visit_values(&mut |value| each(*value));
                }
            }
        }
    }
}

/// All values by number, with their types and definitions.
pub(super) struct Values {
    defs: Vec<Def>,
    types: Vec<Ty>,
    sites: Vec<Site>,
    index: HashMap<(Pure, u16), ValueId>,
    sets: Vec<IntervalSet>,
    /// The place in the chain that new values come from.
    pub(super) site: Site,
}

impl Values {
    pub(super) fn new(site: Site) -> Self {
        let (defs, types, sites) = (Vec::new(), Vec::new(), Vec::new());
        Self { defs, types, sites, index: HashMap::new(), sets: Vec::new(), site }
    }

    pub(super) fn len(&self) -> usize {
        self.defs.len()
    }

    pub(super) fn def(&self, value: ValueId) -> &Def {
        &self.defs[value.index()]
    }

    pub(super) fn types(&self) -> &[Ty] {
        &self.types
    }

    pub(super) fn ty(&self, value: ValueId) -> Ty {
        self.types[value.index()]
    }

    pub(super) fn site(&self, value: ValueId) -> Site {
        self.sites[value.index()]
    }

    pub(super) fn set(&self, number: usize) -> &IntervalSet {
        &self.sets[number]
    }

    /// A value that is not pure.
    pub(super) fn fresh(&mut self, ty: Ty, def: Def) -> ValueId {
        let id = ValueId(u32::try_from(self.defs.len()).unwrap_or(u32::MAX));
        self.defs.push(def);
        self.types.push(ty);
        self.sites.push(self.site);
        id
    }

    pub(super) fn pure(&mut self, ty: Ty, pure: Pure) -> ValueId {
        if let Some(found) = self.index.get(&(pure.clone(), ty.width)) {
            return *found;
        }
        let id = self.fresh(ty, Def::Pure(pure.clone()));
        self.index.insert((pure, ty.width), id);
        id
    }

    /// A pure value with two results.
    pub(super) fn pair(&mut self, first: Ty, second: Ty, pure: Pure) -> (ValueId, ValueId) {
        let before = self.len();
        let id = self.pure(first, pure);
        if self.len() > before {
            let other = self.fresh(second, Def::Second(id));
            return (id, other);
        }
        (id, ValueId(id.0 + 1))
    }

    pub(super) fn constant(&mut self, ty: Ty, value: Word) -> ValueId {
        self.pure(ty, Pure::Const(value & ty.max()))
    }

    pub(super) fn truth(&mut self, value: bool) -> ValueId {
        self.constant(Ty::of(Kind::Bool), Word::from(value))
    }

    /// A field of the packet as it entered the program.
    pub(super) fn init(&mut self, field: Field) -> ValueId {
        self.pure(field_ty(field), Pure::Init(field))
    }

    /// The number, if the value is a constant.
    pub(super) fn known(&self, value: ValueId) -> Option<Word> {
        match self.def(value) {
            Def::Pure(Pure::Const(word)) => Some(*word),
            _ => None,
        }
    }

    /// Whether a value depends on the entering packet and constants alone.
    pub(super) fn is_of_packet(&self, value: ValueId) -> bool {
        self.consists_of(value, |_| true)
    }

    /// Whether a value and all that it is computed from are pure values of these kinds.
    pub(super) fn consists_of(&self, value: ValueId, is_one: impl Fn(&Pure) -> bool) -> bool {
        // Values share operands, so each is looked at once.
        let (mut seen, mut next) = (BTreeSet::from([value]), vec![value]);
        while let Some(value) = next.pop() {
            match self.def(value) {
                Def::Pure(pure) if is_one(pure) => pure.visit_operands(&mut |operand| {
                    if seen.insert(operand) {
                        next.push(operand);
                    }
                }),
                _ => return false,
            }
        }
        true
    }

    /// The number of a constant set. A new set gets a new number.
    pub(super) fn intern(&mut self, set: &IntervalSet) -> usize {
        if let Some(found) = self.sets.iter().position(|other| other == set) {
            return found;
        }
        self.sets.push(set.clone());
        self.sets.len() - 1
    }

    pub(super) fn not(&mut self, ty: Ty, a: ValueId) -> ValueId {
        match self.def(a) {
            Def::Pure(Pure::Const(word)) => {
                let word = !*word;
                self.constant(ty, word)
            }
            Def::Pure(Pure::Not(inner)) => *inner,
            _ => self.pure(ty, Pure::Not(a)),
        }
    }

    pub(super) fn resize(&mut self, ty: Ty, a: ValueId) -> ValueId {
        if self.ty(a).width == ty.width {
            return a;
        }
        match self.def(a).clone() {
            Def::Pure(Pure::Const(word)) => self.constant(ty, word),
            Def::Pure(Pure::Resize(inner)) => {
                let (first, middle) = (self.ty(inner).width, self.ty(a).width);
                let keeps = first <= middle || ty.width <= middle;
                if keeps { self.resize(ty, inner) } else { self.pure(ty, Pure::Resize(a)) }
            }
            _ => self.pure(ty, Pure::Resize(a)),
        }
    }

    pub(super) fn clamp(&mut self, ty: Ty, a: ValueId) -> ValueId {
        let width = self.ty(a).width;
        match self.known(a) {
            Some(word) => self.constant(ty, word.min(ty.max())),
            None if width <= ty.width => self.resize(ty, a),
            None => self.pure(ty, Pure::Clamp(a)),
        }
    }

    pub(super) fn select(&mut self, cond: ValueId, a: ValueId, b: ValueId) -> ValueId {
        match self.known(cond) {
            Some(0) => b,
            Some(_) => a,
            None if a == b => a,
            None => {
                let ty = self.ty(a);
                self.pure(ty, Pure::Select(cond, a, b))
            }
        }
    }

    /// The same bits as a value of another kind.
    pub(super) fn retype(&mut self, kind: Kind, a: ValueId) -> ValueId {
        let ty = self.ty(a);
        if ty.kind == kind {
            return a;
        }
        self.pure(Ty { kind, ..ty }, Pure::Retype(a, kind))
    }

    /// Bits of a value, starting at a given bit. The type gives their number.
    pub(super) fn extract(&mut self, ty: Ty, a: ValueId, shift: u16) -> ValueId {
        if shift == 0 {
            return self.resize(ty, a);
        }
        let wide = self.ty(a);
        let count = self.constant(wide, Word::from(shift));
        let moved = self.bin(BinOp::Shr, wide, a, count);
        self.resize(ty, moved)
    }

    /// A 32-bit value from its halves.
    pub(super) fn join(&mut self, ty: Ty, upper: ValueId, lower: ValueId) -> ValueId {
        let lower = self.resize(ty, lower);
        self.insert(lower, upper, 16)
    }

    /// A value with some of its bits replaced.
    pub(super) fn insert(&mut self, old: ValueId, part: ValueId, shift: u16) -> ValueId {
        let (wide, narrow) = (self.ty(old), self.ty(part).width);
        if shift == 0 && narrow >= wide.width {
            return self.resize(wide, part);
        }
        let hole = wide.max() & !(max_of(narrow) << shift);
        let hole = self.constant(wide, hole);
        let rest = self.bin(BinOp::And, wide, old, hole);
        let part = self.resize(wide, part);
        let count = self.constant(wide, Word::from(shift));
        let part = self.bin(BinOp::Shl, wide, part, count);
        self.bin(BinOp::Or, wide, rest, part)
    }
}

/// The type of a field's values.
pub(super) fn field_ty(field: Field) -> Ty {
    let width = field.info().width;
    let ty = Ty { width, kind: field_kind(field) };
    if ty.is_valid() { ty } else { Ty::uint(width) }
}
