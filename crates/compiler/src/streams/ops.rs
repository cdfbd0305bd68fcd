//! The operations of programs for events.

use super::{BIFLOW, FLOW, Faulty, Input, Lowering, Open, exit};
use braid_ir::engine::Fault;
use braid_ir::model::{
    BlockId, Granularity, Key, Kind, Op, RowId, Setting, StateId, Target, Ty, ValueId,
};
use braid_ir::residual::{Counter, CounterListId, End, Fate, ListedCounter, What};
use braid_packet::{Field, FlowKey};

/// The most slots of a table whose entries a program reads. Machine code reads a limited number of
/// words.
const MOST_SLOTS: usize = 32;

const BOOL: Ty = Ty { width: 1, kind: Kind::Bool };
const HANDLE: Ty = Ty { width: 64, kind: Kind::Uint };

impl Lowering<'_> {
    /// Adds an operation. `None` if only an interpreter has it.
    pub(super) fn op(&mut self, open: &mut Open, op: &Op) -> Option<Result<(), Faulty>> {
        match op {
            Op::Param { out, param } => self.input(open, *out, Input::Param(*param)),
            Op::LoadStream { out, field } => self.input(open, *out, Input::Number(*field)),
            Op::StreamMatch { found, number, param, text } => {
                self.input(open, *found, Input::Found(*param, *text));
                self.input(open, *number, Input::Which(*param, *text));
            }
            Op::Has { out, header } => {
                let value = self.constant(open, BOOL, self.flow.has(*header).into());
                self.bind(*out, value);
            }
            Op::Load { out, field } | Op::LoadEntry { out, field } => match field {
                Field::PktTime => self.same(open, &Op::Load { out: *out, field: *field }),
                field => match self.field(open, *field, self.ty(*out)) {
                    Ok(value) => self.bind(*out, value),
                    Err(fault) => return Some(Err(fault)),
                },
            },
            Op::StateExists { state, key, .. }
            | Op::StateGet { state, key, .. }
            | Op::StateSet { state, key, .. }
            | Op::StatePut { state, key, .. }
            | Op::StateDelete { state, key } => match self.key(open, *state, key) {
                Ok(key) => self.state(open, op, *state, key)?,
                Err(fault) => return Some(Err(fault)),
            },
            Op::Count { row } => {
                let counters = self.row(*row);
                open.push(What::Count(counters));
            }
            op if is_kept(op) => self.same(open, op),
            _ => return None,
        }
        Some(Ok(()))
    }

    /// Adds an operation as it is, on the values of the new program.
    fn same(&mut self, open: &mut Open, op: &Op) {
        let mut op = op.clone();
        op.visit_uses_mut(&mut |value| *value = self.of(*value));
        op.visit_outs_mut(&mut |value| *value = self.define(*value));
        open.push(What::Op(op));
    }

    /// The counter list of a row.
    fn row(&mut self, row: RowId) -> CounterListId {
        let list = vec![ListedCounter { node: 0, counter: Counter::Row(row), length: 0 }];
        let at = self.counters.iter().position(|one| *one == list).unwrap_or_else(|| {
            self.counters.push(list);
            self.counters.len() - 1
        });
        CounterListId(u32::try_from(at).unwrap_or(u32::MAX))
    }

    /// A field of all packets of the flow, as a value of a type. A fault if they have no such
    /// field.
    fn field(&mut self, open: &mut Open, field: Field, ty: Ty) -> Result<ValueId, Faulty> {
        // A flow of the same kind, which has the number of the input in place of each end.
        let numbered = FlowKey { src: 0, dst: 1, sport: 2, dport: 3, ..self.flow };
        let value = numbered.get(field).ok_or(Faulty(Fault::Truncated))?;
        if let Field::InetVersion | Field::InetProto = field {
            return Ok(self.constant(open, ty, value));
        }
        let number = u32::try_from(value).unwrap_or(u32::MAX);
        Ok(self.end_of_flow(open, FLOW + number, ty))
    }

    /// An input with an end of the flow, as a value of a type.
    fn end_of_flow(&mut self, open: &mut Open, number: u32, ty: Ty) -> ValueId {
        let is_short = self.flow.version == 4 && ty.width == 128;
        let out = self.fresh(if is_short { Ty::uint(32) } else { ty });
        open.push(What::Op(Op::LoadEvent { out, field: number }));
        if !is_short {
            return out;
        }
        let wide = self.fresh(ty);
        open.push(What::Op(Op::Resize { out: wide, a: out }));
        wide
    }

    /// The parts of a key.
    fn key(&mut self, open: &mut Open, state: StateId, key: &Key) -> Result<Vec<ValueId>, Faulty> {
        if let Key::Explicit(parts) = key {
            return Ok(parts.iter().map(|part| self.of(*part)).collect());
        }
        let decl = self.model.state.get(state.index());
        match decl.map(|decl| &decl.granularity) {
            None | Some(Granularity::Global | Granularity::Key(_)) => Ok(Vec::new()),
            Some(Granularity::Fields(fields)) => {
                let part = |field: &Field| self.field(open, *field, Ty::uint(field.info().width));
                fields.iter().map(part).collect()
            }
            Some(Granularity::Flow) => Ok(self.flow_key(open, FLOW)),
            Some(Granularity::Biflow) => Ok(self.flow_key(open, BIFLOW)),
        }
    }

    /// The key of the flow with the ends that begin at an input.
    fn flow_key(&mut self, open: &mut Open, ends: u32) -> Vec<ValueId> {
        let FlowKey { version, proto, .. } = self.flow;
        let [of_version, src, dst, of_proto, sport, dport] = FlowKey::WIDTHS.map(Ty::uint);
        vec![
            self.constant(open, of_version, version.into()),
            self.end_of_flow(open, ends, src),
            self.end_of_flow(open, ends + 1, dst),
            self.constant(open, of_proto, proto.into()),
            self.end_of_flow(open, ends + 2, sport),
            self.end_of_flow(open, ends + 3, dport),
        ]
    }

    /// Adds an operation on a table. `None` if machine code cannot read its entries.
    fn state(&mut self, open: &mut Open, op: &Op, state: StateId, key: Vec<ValueId>) -> Option<()> {
        match op {
            Op::StateExists { out, .. } => {
                let (found, entry) = (self.define(*out), self.fresh(HANDLE));
                open.push(What::Find { found, entry, state, key });
            }
            Op::StateGet { outs, .. } => self.get(open, state, key, outs)?,
            op => {
                let mut op = op.clone();
                if let Some((_, old)) = op.entry_mut() {
                    // The parts of the new key are values of the new program already.
                    *old = Key::Explicit(Vec::new());
                }
                op.visit_uses_mut(&mut |value| *value = self.of(*value));
                op.visit_outs_mut(&mut |value| *value = self.define(*value));
                if let Some((_, new)) = op.entry_mut() {
                    *new = Key::Explicit(key);
                }
                open.push(What::Op(op));
            }
        }
        Some(())
    }

    /// Reads the slots of an entry, or their defaults. Without defaults, a missing entry is a
    /// fault.
    fn get(
        &mut self,
        open: &mut Open,
        state: StateId,
        key: Vec<ValueId>,
        outs: &[ValueId],
    ) -> Option<()> {
        if outs.len() > MOST_SLOTS {
            return None;
        }
        let (found, entry) = (self.fresh(BOOL), self.fresh(HANDLE));
        open.push(What::Find { found, entry, state, key });
        let default = self.model.state.get(state.index())?.default.as_ref();
        let read = |lowering: &mut Self, open: &mut Open| {
            let slots: Vec<_> = outs.iter().map(|out| lowering.define(*out)).collect();
            open.push(What::Read { outs: slots.clone(), state, entry });
            slots
        };
        let Some(default) = default else {
            self.leave_unless(open, found, Fault::NoEntry);
            read(self, open);
            return Some(());
        };
        // Without an entry, the slots that are read have no meaning.
        let slots = read(self, open);
        for ((out, slot), default) in outs.iter().zip(slots).zip(default) {
            let default = self.setting(open, self.ty(*out), *default);
            let value = self.fresh(self.ty(*out));
            open.push(What::Op(Op::Select { out: value, cond: found, a: slot, b: default }));
            self.bind(*out, value);
        }
        Some(())
    }

    /// A setting, as a value of a type.
    fn setting(&mut self, open: &mut Open, ty: Ty, setting: Setting) -> ValueId {
        match setting {
            Setting::Const(value) => self.constant(open, ty, value),
            Setting::Param(param) => {
                let (field, out) = (self.number(Input::Param(param)), self.fresh(ty));
                open.push(What::Op(Op::LoadEvent { out, field }));
                out
            }
        }
    }

    /// Ends the block: the program goes on in a new one, or ends with a fault if a condition does
    /// not hold.
    fn leave_unless(&mut self, open: &mut Open, cond: ValueId, fault: Fault) {
        let behind = self.next();
        let to = |number: u32| Target { block: BlockId(behind + number), args: Vec::new() };
        let end = End::Branch { cond, yes: to(2), no: to(1) };
        self.close(std::mem::take(open), end, false);
        self.close(Open::default(), exit(Fate::Fault { node: 0, fault }), false);
    }
}

/// Whether the new program has an operation as the model's program does.
fn is_kept(op: &Op) -> bool {
    let is_other = matches!(
        op,
        Op::InSet { .. }
            | Op::InStrings { .. }
            | Op::FindPatterns { .. }
            | Op::ListLen { .. }
            | Op::ListGet { .. }
            | Op::BackendUp { .. }
            | Op::Route { .. }
            | Op::Extern { .. }
            | Op::StateLen { .. }
            | Op::Take { .. }
            | Op::TakeThis { .. }
            | Op::Release { .. }
            | Op::Emit { .. }
    );
    op.is_arithmetic() || is_other
}
