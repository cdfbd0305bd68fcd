//! Finds the boundaries of a chain's behaviour: every constant that its models compare with fields,
//! every edge of its sets, rules and prefixes, every time-out.

use super::readings::payload_for;
use braid_ir::chain::Chain;
use braid_ir::model::{
    BinOp, FIRST_IP6, Kind, Model, Op, Program, SetRef, Setting, Term, Ty, Word,
};
use braid_ir::value::{IntervalSet, ParamValue, Rule, RuleAddrs};
use braid_packet::{Field, Header};
use std::collections::{BTreeMap, BTreeSet};

/// The values that a chain depends on.
#[derive(Clone, Debug, Default)]
pub struct Boundaries {
    /// Values at and beside every edge, by the compared field.
    pub fields: BTreeMap<Field, BTreeSet<Word>>,
    /// IPv4 addresses at and beside edges, for any compared field.
    pub ip4: BTreeSet<u32>,
    /// IPv6 addresses at and beside edges.
    pub ip6: BTreeSet<u128>,
    /// Ports at and beside edges.
    pub ports: BTreeSet<u16>,
    /// Durations that trigger something (ns).
    pub durations: BTreeSet<u64>,
    /// Rules of all rule sets.
    pub rules: Vec<Rule>,
    /// Payloads that match patterns.
    pub payloads: Vec<Vec<u8>>,
    /// Headers that models test for.
    pub headers: BTreeSet<Header>,
}

impl Boundaries {
    /// The boundaries of a chain.
    #[must_use]
    pub fn of(chain: &Chain) -> Self {
        let mut found = Self::default();
        for interface in &chain.interfaces {
            found.add_set(Ty::of(Kind::Ip4), &interface.behind4);
            found.add_set(Ty::of(Kind::Ip6), &interface.behind6);
        }
        for node in &chain.nodes {
            for (decl, value) in node.model.params.iter().zip(&node.params) {
                found.add_param(&decl.ty, value);
            }
            for program in programs(&node.model) {
                Reader { found: &mut found, program, params: &node.params, known: Vec::new() }
                    .read();
            }
            for state in &node.model.state {
                for setting in [state.idle, state.hard, Some(state.tick)].into_iter().flatten() {
                    found.add_duration(setting_value(setting, &node.params));
                }
            }
            for timer in &node.model.timers {
                found.add_duration(setting_value(timer.period, &node.params));
            }
        }
        found.sort_into_pools();
        found
    }

    fn add_duration(&mut self, ns: Option<Word>) {
        // A longer step would only reach every other time-out as well.
        const DAY: u64 = 86_400_000_000_000;
        if let Some(ns) =
            ns.and_then(|ns| u64::try_from(ns).ok()).filter(|ns| (1..=DAY).contains(ns))
        {
            self.durations.insert(ns);
        }
    }

    fn add_param(&mut self, ty: &braid_ir::model::ParamTy, value: &ParamValue) {
        use braid_ir::model::ParamTy;
        match (ty, value) {
            (ParamTy::Scalar(ty), ParamValue::Scalar(value)) => self.add_value(*ty, *value),
            (ParamTy::List(columns), ParamValue::List(members)) => {
                for (column, (_, ty)) in columns.iter().enumerate() {
                    members.iter().for_each(|member| self.add_value(*ty, member[column]));
                }
            }
            (ParamTy::Backends(columns), ParamValue::Backends(members)) => {
                for (column, (_, ty)) in columns.iter().enumerate() {
                    members.iter().for_each(|member| self.add_value(*ty, member.columns[column]));
                }
            }
            (ParamTy::Set(ty), ParamValue::Set(set))
            | (ParamTy::Pool(ty, _), ParamValue::Pool(set)) => self.add_set(*ty, set),
            (ParamTy::Rules, ParamValue::Rules(set)) => {
                self.rules.extend(set.rules.iter().cloned());
                set.rules.iter().take(200).for_each(|rule| self.add_rule(rule));
            }
            (ParamTy::Routes, ParamValue::Routes(table)) => {
                for (addr, len, _) in table.iter4().take(200) {
                    let host = u32::MAX.checked_shr(len.into()).unwrap_or(0);
                    let low = addr & !host;
                    self.add_set(Ty::of(Kind::Ip4), &interval(low.into(), (low | host).into()));
                }
                for (addr, len, _) in table.iter6().take(200) {
                    let host = u128::MAX.checked_shr(len.into()).unwrap_or(0);
                    let low = addr & !host;
                    self.add_set(Ty::of(Kind::Ip6), &interval(low, low | host));
                }
            }
            (ParamTy::Patterns, ParamValue::Patterns(set)) => {
                self.payloads.extend(set.patterns().iter().take(100).map(payload_for));
            }
            (_, ParamValue::Strings(set)) => {
                for entry in set.entries().into_iter().take(100) {
                    // A name below the one of a host, and its letters in the other case.
                    let string = match entry.strip_prefix(b"*").filter(|_| set.is_of_hosts()) {
                        Some(name) => [b"x", name].concat(),
                        None => entry,
                    };
                    self.payloads.push(string.to_ascii_uppercase());
                    self.payloads.push(string);
                }
            }
            _ => {}
        }
    }

    fn add_value(&mut self, ty: Ty, value: Word) {
        self.add_set(ty, &interval(value, value));
    }

    fn add_set(&mut self, ty: Ty, set: &IntervalSet) {
        for &(low, high) in set.intervals().iter().take(200) {
            for value in around(low, high, ty.max()) {
                match ty.kind {
                    Kind::Ip4 => drop(u32::try_from(value).map(|value| self.ip4.insert(value))),
                    Kind::Addr if value < FIRST_IP6 => self.add_value(Ty::of(Kind::Ip4), value),
                    Kind::Ip6 | Kind::Addr => drop(self.ip6.insert(value)),
                    Kind::Port => drop(u16::try_from(value).map(|value| self.ports.insert(value))),
                    Kind::Duration => self.add_duration(Some(value)),
                    _ => {}
                }
            }
        }
    }

    fn add_rule(&mut self, rule: &Rule) {
        match rule.addrs {
            Some(RuleAddrs::V4 { src, dst }) => {
                for (low, high) in [src, dst] {
                    self.add_set(Ty::of(Kind::Ip4), &interval(low.into(), high.into()));
                }
            }
            Some(RuleAddrs::V6 { src, dst }) => {
                for (low, high) in [src, dst] {
                    self.add_set(Ty::of(Kind::Ip6), &interval(low, high));
                }
            }
            None => {}
        }
        for (low, high) in [rule.sport, rule.dport] {
            self.add_set(Ty::of(Kind::Port), &interval(low.into(), high.into()));
        }
    }

    /// Adds values of fields that are addresses or ports to the pools.
    fn sort_into_pools(&mut self) {
        for (field, values) in &self.fields {
            for &value in values {
                match field.info().width {
                    32 => drop(u32::try_from(value).map(|value| self.ip4.insert(value))),
                    // An IPv6 address that counts as IPv4 is there, too.
                    128 => {
                        self.ip6.insert(value);
                        self.ip4.extend(u32::try_from(value).ok());
                    }
                    16 => drop(u16::try_from(value).map(|value| self.ports.insert(value))),
                    _ => {}
                }
            }
        }
    }
}

fn interval(low: Word, high: Word) -> IntervalSet {
    IntervalSet::new([(low, high)])
}

/// The ends of an interval and their neighbours, and its middle.
fn around(low: Word, high: Word, max: Word) -> impl Iterator<Item = Word> {
    let inside = low + (high - low) / 2;
    [low.saturating_sub(1), low, inside, high, high.saturating_add(1).min(max)].into_iter()
}

fn programs(model: &Model) -> impl Iterator<Item = &Program> {
    let expire = model.expire.iter().map(|(_, program)| program);
    std::iter::once(&model.packet).chain(expire).chain(model.timers.iter().map(|timer| &timer.body))
}

fn setting_value(setting: Setting, params: &[ParamValue]) -> Option<Word> {
    match setting {
        Setting::Const(value) => Some(value),
        Setting::Param(param) => match params.get(param.0 as usize)? {
            ParamValue::Scalar(value) => Some(*value),
            _ => None,
        },
    }
}

/// The facts about a value of a program.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The fields that it is computed from.
    fields: BTreeSet<Field>,
    /// Its value, if that is the same for every packet.
    constant: Option<Word>,
    /// The bits of the field that matter.
    mask: Option<Word>,
}

/// Reads the comparisons of one program.
struct Reader<'a> {
    found: &'a mut Boundaries,
    program: &'a Program,
    params: &'a [ParamValue],
    known: Vec<Known>,
}

impl Reader<'_> {
    fn read(&mut self) {
        self.known = vec![Known::default(); self.program.values.len()];
        for block in &self.program.blocks {
            for op in &block.ops {
                self.op(op);
            }
            if let Term::Hold { delay, .. } = &block.term {
                let delay = self.known[delay.0 as usize].constant;
                self.found.add_duration(delay);
            }
        }
    }

    fn op(&mut self, op: &Op) {
        let mut known = Known::default();
        for value in op.uses() {
            known.fields.extend(&self.known[value.0 as usize].fields);
        }
        match op {
            Op::Const { value, .. } => known.constant = Some(*value),
            Op::Param { param, .. } => {
                known.constant = setting_value(Setting::Param(*param), self.params)
            }
            Op::Load { field, .. } | Op::LoadEntry { field, .. } => {
                known.fields.insert(*field);
            }
            Op::Has { header, .. } => {
                self.found.headers.insert(*header);
            }
            Op::Resize { a, .. } | Op::Clamp { a, .. } => {
                known.constant = self.known[a.0 as usize].constant;
                known.mask = self.known[a.0 as usize].mask;
            }
            Op::Bin { op: BinOp::And, a, b, .. } => {
                known.mask = self.constant(*a).or(self.constant(*b));
            }
            Op::Cmp { a, b, .. } => {
                self.compare(*a, *b);
                self.compare(*b, *a);
                known.fields.clear();
            }
            Op::InSet { a, set, .. } => {
                let fields = self.known[a.0 as usize].fields.clone();
                self.set(&fields, set);
                known.fields.clear();
            }
            _ => {}
        }
        for out in op.outs() {
            self.known[out.0 as usize] = known.clone();
        }
    }

    fn constant(&self, value: braid_ir::model::ValueId) -> Option<Word> {
        self.known[value.0 as usize].constant
    }

    fn compare(&mut self, a: braid_ir::model::ValueId, b: braid_ir::model::ValueId) {
        let Some(constant) = self.constant(b) else { return };
        let Known { fields, mask, .. } = self.known[a.0 as usize].clone();
        for field in fields {
            let max = max_of(field);
            let values = self.found.fields.entry(field).or_default();
            values.extend(around(constant.min(max), constant.min(max), max));
            if let Some(mask) = mask {
                values.extend([constant | (max & !mask), constant ^ (mask & mask.wrapping_neg())]);
            }
        }
    }

    fn set(&mut self, fields: &BTreeSet<Field>, set: &SetRef) {
        let intervals: Vec<(Word, Word)> = match set {
            SetRef::Const(set) => set.intervals().to_vec(),
            SetRef::Param(param) => match self.params.get(param.0 as usize) {
                Some(ParamValue::Set(set)) => set.intervals().to_vec(),
                _ => Vec::new(),
            },
            SetRef::List(param, column) => {
                let column = *column as usize;
                match self.params.get(param.0 as usize) {
                    Some(ParamValue::List(members)) => {
                        members.iter().map(|member| (member[column], member[column])).collect()
                    }
                    Some(ParamValue::Backends(members)) => members
                        .iter()
                        .map(|member| (member.columns[column], member.columns[column]))
                        .collect(),
                    _ => Vec::new(),
                }
            }
        };
        for &field in fields {
            let max = max_of(field);
            let values = self.found.fields.entry(field).or_default();
            for &(low, high) in intervals.iter().take(200) {
                values.extend(around(low.min(max), high.min(max), max));
            }
        }
    }
}

/// The largest value of a field.
fn max_of(field: Field) -> Word {
    Ty::uint(field.info().width).max()
}
