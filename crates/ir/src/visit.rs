//! The programs of a function, the values that an operation defines and uses, and the targets of a
//! block, for passes over programs.

use crate::model::{
    Area, BinOp, EventArg, Haystack, Key, Model, Op, ParamDecl, Program, StateId, Target, Term,
    ValueId,
};

/// The weight of a lookup in a rule set, of an operator or of a native function. That of a lookup
/// in a table is 1.
pub const HEAVY: u32 = 4;

impl Model {
    /// The programs that no event of the chain starts.
    pub fn own_programs(&self) -> impl Iterator<Item = &Program> {
        let expire = self.expire.iter().map(|(_, program)| program);
        let timers = self.timers.iter().map(|timer| &timer.body);
        let streams = self.streams.iter().map(|(_, program)| program);
        std::iter::once(&self.packet).chain(expire).chain(timers).chain(streams)
    }

    /// The most that a packet looks up in the function: 1 for a table, [`HEAVY`] for each rule set
    /// and each call of an operator.
    #[must_use]
    pub fn weight(&self) -> u32 {
        let ops = self.packet.blocks.iter().flat_map(|block| &block.ops);
        let heavy = ops.filter(|op| matches!(op, Op::Rules { .. } | Op::Extern { .. })).count();
        let weight = self.state.len() + HEAVY as usize * heavy;
        u32::try_from(weight).unwrap_or(u32::MAX)
    }

    /// The parameters that the function declares, which chains give values.
    pub fn own_params(&self) -> impl Iterator<Item = &ParamDecl> {
        self.params.iter().filter(|param| !param.is_written())
    }

    /// All programs.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.own_programs().chain(self.handlers.iter().map(|(_, program)| program))
    }
}

impl ParamDecl {
    /// Whether the parameter holds a value that is written in the function's program. Its name has
    /// a dot, so no program and no chain can name it.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.name.contains('.')
    }
}

/// Visitors of an operation's values, by shared or by exclusive reference.
macro_rules! visitors {
    ($outs:ident, $uses:ident, $($reference:tt)+) => {
        impl Op {
            /// Visits the values that the operation defines, in the order of the text form.
            pub fn $outs(self: $($reference)+ Self, each: &mut dyn FnMut($($reference)+ ValueId)) {
                match self {
                    Op::Const { out, .. }
                    | Op::Param { out, .. }
                    | Op::ListLen { out, .. }
                    | Op::ListGet { out, .. }
                    | Op::BackendUp { out, .. }
                    | Op::Bin { out, .. }
                    | Op::Cmp { out, .. }
                    | Op::Not { out, .. }
                    | Op::Resize { out, .. }
                    | Op::Clamp { out, .. }
                    | Op::Select { out, .. }
                    | Op::InSet { out, .. }
                    | Op::InStrings { out, .. }
                    | Op::Has { out, .. }
                    | Op::HasRoom { out, .. }
                    | Op::Load { out, .. }
                    | Op::LoadEntry { out, .. }
                    | Op::LoadTag { out, .. }
                    | Op::Native { out }
                    | Op::LoadStream { out, .. }
                    | Op::LoadEvent { out, .. }
                    | Op::StateExists { out, .. }
                    | Op::StateLen { out, .. }
                    | Op::StateSet { ok: out, .. }
                    | Op::StatePut { ok: out, .. }
                    | Op::StoreBytes { ok: out, .. }
                    | Op::ReplaceBytes { ok: out, .. }
                    | Op::SetOption { ok: out, .. }
                    | Op::Encapsulate { ok: out, .. }
                    | Op::Decapsulate { ok: out, .. }
                    | Op::Translate { ok: out, .. }
                    | Op::Encrypt { ok: out, .. }
                    | Op::Decrypt { ok: out, .. }
                    | Op::TakeThis { ok: out, .. } => each(out),
                    Op::Rules { pass: a, rule: b, .. }
                    | Op::Route { found: a, hop: b, .. }
                    | Op::Patterns { found: a, number: b, .. }
                    | Op::StreamMatch { found: a, number: b, .. }
                    | Op::LoadBytes { found: a, out: b, .. }
                    | Op::Take { ok: a, out: b, .. } => {
                        each(a);
                        each(b);
                    }
                    Op::FindPatterns { outs, .. } => outs.into_iter().for_each(each),
                    Op::Stream { verdict: a, is_new: b, seq: c, ack: d } => {
                        each(a);
                        each(b);
                        each(c);
                        each(d);
                    }
                    Op::LoadString { found, outs, .. } => {
                        each(found);
                        outs.into_iter().for_each(each);
                    }
                    Op::Extern { outs, .. }
                    | Op::StateGet { outs, .. }
                    | Op::Expiring { outs }
                    | Op::ExpiringKey { outs } => outs.into_iter().for_each(each),
                    Op::Store { .. }
                    | Op::StoreTag { .. }
                    | Op::PushVlan { .. }
                    | Op::PopVlan
                    | Op::PushOption { .. }
                    | Op::PopOption { .. }
                    | Op::StateDelete { .. }
                    | Op::Release { .. }
                    | Op::Emit { .. }
                    | Op::Count { .. }
                    | Op::Mirror { .. }
                    | Op::Create { .. } => {}
                }
            }

            /// Visits the values that the operation uses, in the order of the text form.
            pub fn $uses(self: $($reference)+ Self, each: &mut dyn FnMut($($reference)+ ValueId)) {
                match self {
                    Op::ListGet { index: a, .. }
                    | Op::BackendUp { index: a, .. }
                    | Op::Not { a, .. }
                    | Op::Resize { a, .. }
                    | Op::Clamp { a, .. }
                    | Op::InSet { a, .. }
                    | Op::Store { a, .. }
                    | Op::StoreTag { a, .. }
                    | Op::TakeThis { a, .. }
                    | Op::Release { a, .. }
                    | Op::PushVlan { id: a }
                    | Op::Route { addr: a, .. }
                    | Op::LoadBytes { offset: a, .. } => each(a),
                    Op::Bin { a, b, .. }
                    | Op::Cmp { a, b, .. }
                    | Op::LoadString { offset: a, len: b, .. }
                    | Op::FindPatterns { of: Haystack::Part(a, b), .. }
                    | Op::StoreBytes { offset: a, a: b, .. } => {
                        each(a);
                        each(b);
                    }
                    Op::SetOption { value: Some((len, words)), .. }
                    | Op::FindPatterns { of: Haystack::Text(len, words), .. } => {
                        each(len);
                        words.into_iter().for_each(each);
                    }
                    Op::ReplaceBytes { offset, old, new, words, .. } => {
                        each(offset);
                        each(old);
                        each(new);
                        words.into_iter().for_each(each);
                    }
                    Op::InStrings { len, words, .. } => {
                        each(len);
                        words.into_iter().for_each(each);
                    }
                    Op::Select { cond, a, b, .. } => {
                        each(cond);
                        each(a);
                        each(b);
                    }
                    Op::Extern { args: values, .. }
                    | Op::PushOption { values, .. } => values.into_iter().for_each(each),
                    Op::Encapsulate { words, seal, .. } => {
                        words.into_iter().for_each(&mut *each);
                        if let Some((association, number)) = seal {
                            visitors!(@association association, each, $($reference)+);
                            each(number);
                        }
                    }
                    Op::Translate { own, quoted, .. } => {
                        own.into_iter().for_each(&mut *each);
                        quoted.into_iter().flatten().for_each(each);
                    }
                    Op::Decapsulate { offset, association, .. } => {
                        each(offset);
                        if let Some(association) = association {
                            visitors!(@association association, each, $($reference)+);
                        }
                    }
                    Op::Encrypt { key, number, offset, .. } => {
                        each(offset);
                        each(visitors!(@number key, $($reference)+));
                        each(number);
                    }
                    Op::Decrypt { key, offset, .. } => {
                        each(offset);
                        each(visitors!(@number key, $($reference)+));
                    }
                    Op::StateExists { key, .. }
                    | Op::StateGet { key, .. }
                    | Op::StateDelete { key, .. } => visitors!(@key key, each),
                    Op::StateSet { key, values, .. } => {
                        visitors!(@key key, each);
                        values.into_iter().for_each(each);
                    }
                    Op::StatePut { key, value, .. } => {
                        visitors!(@key key, each);
                        each(value);
                    }
                    Op::Emit { args, .. } => {
                        for arg in args {
                            match arg {
                                EventArg::Value(value) => each(value),
                                EventArg::Bytes(values) => {
                                    values.into_iter().for_each(&mut *each);
                                }
                                EventArg::Str(_) | EventArg::Param(_) => {}
                            }
                        }
                    }
                    Op::Create { new, .. } => {
                        for field in visitors!(@fields new, $($reference)+) {
                            each(visitors!(@second field, $($reference)+));
                        }
                        for option in visitors!(@options new, $($reference)+) {
                            visitors!(@second option, $($reference)+).into_iter().for_each(&mut *each);
                        }
                    }
                    Op::Const { .. }
                    | Op::Param { .. }
                    | Op::ListLen { .. }
                    | Op::Has { .. }
                    | Op::Load { .. }
                    | Op::LoadEntry { .. }
                    | Op::LoadTag { .. }
                    | Op::PopVlan
                    | Op::Native { .. }
                    | Op::Stream { .. }
                    | Op::LoadStream { .. }
                    | Op::LoadEvent { .. }
                    | Op::StreamMatch { .. }
                    | Op::Rules { .. }
                    | Op::Patterns { .. }
                    | Op::FindPatterns { of: Haystack::Payload, .. }
                    | Op::StateLen { .. }
                    | Op::Expiring { .. }
                    | Op::ExpiringKey { .. }
                    | Op::Take { .. }
                    | Op::Count { .. }
                    | Op::HasRoom { .. }
                    | Op::PopOption { .. }
                    | Op::SetOption { value: None, .. }
                    | Op::Mirror { .. } => {}
                }
            }
        }
    };
    (@key $key:ident, $each:ident) => {
        if let Key::Explicit(values) = $key {
            for value in values {
                $each(value);
            }
        }
    };
    (@fields $new:ident, $($reference:tt)+) => { $($reference)+ $new.fields };
    (@options $new:ident, $($reference:tt)+) => { $($reference)+ $new.options };
    (@number $key:ident, $($reference:tt)+) => { $($reference)+ $key.number };
    (@second $field:ident, $($reference:tt)+) => { $($reference)+ $field.1 };
    (@association $of:ident, $each:ident, $($reference:tt)+) => {
        $each($($reference)+ $of.key.number);
        if let Some(high) = $($reference)+ $of.high {
            $each(high);
        }
    };
}
visitors!(visit_outs, visit_uses, &);
visitors!(visit_outs_mut, visit_uses_mut, &mut);

impl Op {
    /// Whether the operation computes its result from values alone. Only divisions can fault.
    #[must_use]
    pub fn is_arithmetic(&self) -> bool {
        matches!(
            self,
            Op::Const { .. }
                | Op::Bin { .. }
                | Op::Cmp { .. }
                | Op::Not { .. }
                | Op::Resize { .. }
                | Op::Clamp { .. }
                | Op::Select { .. }
        )
    }

    /// Whether the operation divides, so that it can fault.
    #[must_use]
    pub fn divides(&self) -> bool {
        matches!(self, Op::Bin { op: BinOp::Div | BinOp::Rem, .. })
    }

    /// Whether the operation itself changes bytes of the packet. Native code may change all of it.
    #[must_use]
    pub fn changes_bytes(&self) -> bool {
        matches!(
            self,
            Op::Store { .. }
                | Op::StoreBytes { .. }
                | Op::ReplaceBytes { .. }
                | Op::SetOption { .. }
                | Op::Encapsulate { .. }
                | Op::Decapsulate { .. }
                | Op::Translate { .. }
                | Op::Encrypt { .. }
                | Op::Decrypt { .. }
                | Op::PushVlan { .. }
                | Op::PopVlan
                | Op::PushOption { .. }
                | Op::PopOption { .. }
        )
    }

    /// Whether the operation adds, removes or translates outer headers. Behind it, only the parser
    /// knows which headers the packet has.
    #[must_use]
    pub fn rewraps(&self) -> bool {
        matches!(self, Op::Encapsulate { .. } | Op::Decapsulate { .. } | Op::Translate { .. })
    }

    /// Whether the operation itself changes bytes of the payload, or of an option without a name.
    #[must_use]
    pub fn changes_payload(&self) -> bool {
        matches!(
            self,
            Op::StoreBytes { .. }
                | Op::ReplaceBytes { .. }
                | Op::SetOption { .. }
                | Op::Encrypt { .. }
                | Op::Decrypt { .. }
        )
    }

    /// Whether no flow record contains the operation, or only at its end: the operation changes
    /// outer headers, or it reads or writes payload bytes, which differ between the packets of a
    /// flow.
    #[must_use]
    pub fn is_beyond_records(&self) -> bool {
        let reads = matches!(
            self,
            Op::LoadBytes { area: Area::Payload, .. }
                | Op::LoadString { area: Area::Payload, .. }
                | Op::FindPatterns { of: Haystack::Part(..), .. }
        );
        reads || self.changes_payload() || self.rewraps()
    }

    /// The table and the key of the entry that the operation uses, if it uses one.
    #[must_use]
    pub fn entry(&self) -> Option<(StateId, &Key)> {
        match self {
            Op::StateExists { state, key, .. }
            | Op::StateGet { state, key, .. }
            | Op::StateSet { state, key, .. }
            | Op::StatePut { state, key, .. }
            | Op::StateDelete { state, key } => Some((*state, key)),
            _ => None,
        }
    }

    /// As [`Self::entry`], with a key to be changed.
    pub fn entry_mut(&mut self) -> Option<(StateId, &mut Key)> {
        match self {
            Op::StateExists { state, key, .. }
            | Op::StateGet { state, key, .. }
            | Op::StateSet { state, key, .. }
            | Op::StatePut { state, key, .. }
            | Op::StateDelete { state, key } => Some((*state, key)),
            _ => None,
        }
    }

    /// The values that the operation defines, in the order of [`Op::visit_outs`].
    #[must_use]
    pub fn outs(&self) -> Vec<ValueId> {
        let mut found = Vec::new();
        self.visit_outs(&mut |value| found.push(*value));
        found
    }

    /// The values that the operation uses, in the order of [`Op::visit_uses`].
    #[must_use]
    pub fn uses(&self) -> Vec<ValueId> {
        let mut found = Vec::new();
        self.visit_uses(&mut |value| found.push(*value));
        found
    }
}

impl Term {
    /// The blocks that may come next.
    #[must_use]
    pub fn targets(&self) -> Vec<&Target> {
        match self {
            Term::Jump(target) | Term::Hold { full: target, .. } => vec![target],
            Term::Branch { yes, no, .. } => vec![yes, no],
            Term::Output { .. }
            | Term::Drop { .. }
            | Term::Consume { .. }
            | Term::Resubmit { .. }
            | Term::Reset { .. }
            | Term::Bypass { .. }
            | Term::Resume { .. }
            | Term::Return => Vec::new(),
        }
    }

    /// As [`Self::targets`], to be changed.
    pub fn targets_mut(&mut self) -> Vec<&mut Target> {
        match self {
            Term::Jump(target) | Term::Hold { full: target, .. } => vec![target],
            Term::Branch { yes, no, .. } => vec![yes, no],
            Term::Output { .. }
            | Term::Drop { .. }
            | Term::Consume { .. }
            | Term::Resubmit { .. }
            | Term::Reset { .. }
            | Term::Bypass { .. }
            | Term::Resume { .. }
            | Term::Return => Vec::new(),
        }
    }

    /// Whether it decides about a connection.
    #[must_use]
    pub fn steers(&self) -> bool {
        matches!(self, Term::Reset { .. } | Term::Bypass { .. } | Term::Resume { .. })
    }

    /// The values that the terminator uses, except the values that it passes to a block.
    #[must_use]
    pub fn uses(&self) -> Vec<ValueId> {
        match self {
            Term::Branch { cond, .. } => vec![*cond],
            Term::Hold { delay, .. } => vec![*delay],
            _ => Vec::new(),
        }
    }
}
