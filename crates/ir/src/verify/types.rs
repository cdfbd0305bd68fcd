//! Checks each operation alone: the types of parameters, widths, numbers of values, and whether
//! this kind of program can have the operation.

use super::events;
use super::place::{Part, Place, Problem, VerifyError, Which};
use crate::model::{
    BinOp, BlockId, Dest, EventDecl, Granularity, Key, Model, NewPacket, Op, ParamId, ParamTy,
    Program, RowId, SetRef, StateDecl, StateId, StreamEvent, StreamText, TagId, Term, Ty, ValueId,
};
use braid_externs::signature::{ParamKind, Width};
use braid_packet::{Access, Field, FlowKey, Header, options};

pub(super) type Checked = Result<(), Problem>;

/// Checks one program whose structure is correct.
pub(super) struct OpCheck<'a> {
    pub(super) model: &'a Model,
    pub(super) which: Which,
    pub(super) program: &'a Program,
    pub(super) errors: &'a mut Vec<VerifyError>,
}

impl OpCheck<'_> {
    pub(super) fn check(&mut self) {
        for (id, block) in (0..).map(BlockId).zip(&self.program.blocks) {
            for (number, op) in block.ops.iter().enumerate() {
                let found = self.stands_here(op).and_then(|()| self.op(op));
                self.note(id, Part::Op(number), found);
            }
            let found = self.term(&block.term);
            self.note(id, Part::Term, found);
        }
    }

    fn note(&mut self, block: BlockId, part: Part, found: Checked) {
        if let Err(problem) = found {
            let place = Place::Block(self.which, block, part);
            self.errors.push(VerifyError { place, problem });
        }
    }

    /// Whether this kind of program can have the operation.
    fn stands_here(&self, op: &Op) -> Checked {
        let time = |field: &Field| *field == Field::PktTime;
        let of_packet = match op {
            Op::Load { field, .. } | Op::LoadEntry { field, .. } => !time(field),
            Op::FindPatterns { of, .. } => of.is_payload(),
            Op::Has { .. }
            | Op::Store { .. }
            | Op::LoadTag { .. }
            | Op::StoreTag { .. }
            | Op::PushVlan { .. }
            | Op::PopVlan
            | Op::HasRoom { .. }
            | Op::PushOption { .. }
            | Op::PopOption { .. }
            | Op::Native { .. }
            | Op::Stream { .. }
            | Op::Rules { .. }
            | Op::Patterns { .. }
            | Op::LoadBytes { .. }
            | Op::LoadString { .. }
            | Op::Count { .. }
            | Op::Mirror { .. }
            | Op::Create { .. } => true,
            Op::Extern { name, .. } => {
                braid_externs::lookup(name).is_some_and(|found| found.signature.reads_payload())
            }
            op => op.changes_payload() || op.rewraps(),
        };
        let of_expiry = matches!(op, Op::Expiring { .. } | Op::ExpiringKey { .. });
        if let Op::Native { .. } = op
            && self.model.native.is_none()
        {
            return Err(Problem::Missing("native function".to_owned()));
        }
        if matches!(op, Op::Stream { .. }) && !self.model.is_stream() {
            return Err(Problem::Missing("program for events of connections".to_owned()));
        }
        let of_stream = matches!(op, Op::LoadStream { .. } | Op::StreamMatch { .. });
        if of_stream && !matches!(self.which, Which::Stream(_)) {
            return Err(Problem::NotHere("a program that has no stream"));
        }
        match self.which {
            Which::Packet if self.model.is_native_on_packets() && !may_stand(op) => {
                Err(Problem::NotHere("the packet program of a native function"))
            }
            Which::Packet if self.model.is_stream() && matches!(op, Op::Native { .. }) => {
                Err(Problem::NotHere("the packet program of a stream function"))
            }
            Which::Packet if self.model.is_stream() && op.changes_bytes() => {
                Err(Problem::NotHere("the packet program of a stream function"))
            }
            Which::Packet if of_expiry => Err(Problem::NotHere("the packet program")),
            Which::Timer(_) if of_packet || of_expiry => Err(Problem::NotHere("a timer's program")),
            Which::Expire(_) if of_packet => Err(Problem::NotHere("an expiry program")),
            Which::Handler(_) if of_packet || of_expiry => Err(Problem::NotHere("a handler")),
            Which::Stream(_) => match op {
                Op::Load { field, .. } if !FlowKey::has_field(*field) && !time(field) => {
                    Err(Problem::NotOfFlow(*field))
                }
                Op::Load { .. } | Op::Has { .. } | Op::Count { .. } | Op::Native { .. } => Ok(()),
                _ if of_packet || of_expiry => Err(Problem::NotHere("a stream's program")),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn op(&self, op: &Op) -> Checked {
        match op {
            Op::Const { .. }
            | Op::Bin { .. }
            | Op::Cmp { .. }
            | Op::Not { .. }
            | Op::Resize { .. }
            | Op::Clamp { .. }
            | Op::Select { .. } => self.arithmetic(op),
            Op::Param { .. }
            | Op::ListLen { .. }
            | Op::ListGet { .. }
            | Op::BackendUp { .. }
            | Op::InSet { .. }
            | Op::Rules { .. }
            | Op::Route { .. }
            | Op::Patterns { .. }
            | Op::Take { .. }
            | Op::TakeThis { .. }
            | Op::Release { .. } => self.of_param(op),
            Op::FindPatterns { .. } | Op::InStrings { .. } => self.strings(op),
            Op::Stream { verdict, is_new, seq, ack } => {
                self.widths("results", &[*verdict, *is_new, *seq, *ack], &[32, 1, 32, 32])
            }
            Op::LoadEvent { out, field } => {
                events::field(self.model, self.program, self.which, (*out, *field))
            }
            Op::LoadStream { out, field } => self.width(*out, field.width()),
            Op::StreamMatch { found, number, param, text } => {
                let is_request = matches!(self.which, Which::Stream(StreamEvent::Request));
                if text.is_some_and(|text| text == StreamText::Message || !is_request) {
                    return Err(Problem::NotHere("a program that has no HTTP request"));
                }
                self.kind(*param, "patterns", |ty| *ty == ParamTy::Patterns)?;
                self.widths("results", &[*found, *number], &[1, 32])
            }
            Op::Extern { outs, name, param, args } => self.call(outs, name, *param, args),
            Op::StateExists { .. }
            | Op::StateGet { .. }
            | Op::StateSet { .. }
            | Op::StatePut { .. }
            | Op::StateDelete { .. }
            | Op::StateLen { .. }
            | Op::Expiring { .. }
            | Op::ExpiringKey { .. } => self.of_state(op),
            Op::Emit { event, args } => events::emit(self.model, self.program, *event, args),
            _ => self.of_packet(op),
        }
    }

    #[expect(clippy::indexing_slicing, reason = "`Structure` has checked the numbers of values")]
    pub(super) fn width_of(&self, value: ValueId) -> u16 {
        self.program.values[value.index()].width
    }

    pub(super) fn width(&self, value: ValueId, wanted: u16) -> Checked {
        let found = self.width_of(value);
        if found == wanted { Ok(()) } else { Err(Problem::Width { value, found, wanted }) }
    }

    pub(super) fn widths(&self, what: &'static str, values: &[ValueId], wanted: &[u16]) -> Checked {
        if values.len() != wanted.len() {
            let (found, wanted) = (values.len(), wanted.len());
            return Err(Problem::Count { what, found, wanted });
        }
        values.iter().zip(wanted).try_for_each(|(value, width)| self.width(*value, *width))
    }

    fn arithmetic(&self, op: &Op) -> Checked {
        match op {
            Op::Const { out, value } => {
                let width = self.width_of(*out);
                let fits = *value <= crate::show::max_of(width);
                if fits { Ok(()) } else { Err(Problem::TooWide { value: *value, width }) }
            }
            Op::Bin { out, a, b, .. } => {
                let width = self.width_of(*out);
                self.width(*a, width).and_then(|()| self.width(*b, width))
            }
            Op::Cmp { out, a, b, .. } => {
                self.width(*out, 1)?;
                self.width(*b, self.width_of(*a))
            }
            Op::Not { out, a } => self.width(*a, self.width_of(*out)),
            Op::Select { out, cond, a, b } => {
                self.width(*cond, 1)?;
                let width = self.width_of(*out);
                self.width(*a, width).and_then(|()| self.width(*b, width))
            }
            _ => Ok(()),
        }
    }

    fn param(&self, param: ParamId) -> Result<&ParamTy, Problem> {
        let decl = self.model.params.get(param.index());
        decl.map(|decl| &decl.ty).ok_or_else(|| Problem::Missing(param.to_string()))
    }

    /// The columns of a list, or of backends.
    fn columns(&self, param: ParamId) -> Result<&[(String, Ty)], Problem> {
        match self.param(param)? {
            ParamTy::List(columns) | ParamTy::Backends(columns) => Ok(columns),
            _ => Err(Problem::ParamKind { param, wanted: "a list or backends" }),
        }
    }

    fn column(&self, param: ParamId, column: u32) -> Result<Ty, Problem> {
        let columns = self.columns(param)?;
        let found = usize::try_from(column).ok().and_then(|column| columns.get(column));
        found.map(|(_, ty)| *ty).ok_or(Problem::Column { param, column })
    }

    fn pool(&self, param: ParamId) -> Result<u16, Problem> {
        match self.param(param)? {
            ParamTy::Pool(ty, _) => Ok(ty.width),
            _ => Err(Problem::ParamKind { param, wanted: "a pool" }),
        }
    }

    pub(super) fn kind(
        &self,
        param: ParamId,
        wanted: &'static str,
        is: fn(&ParamTy) -> bool,
    ) -> Checked {
        if is(self.param(param)?) { Ok(()) } else { Err(Problem::ParamKind { param, wanted }) }
    }

    fn of_param(&self, op: &Op) -> Checked {
        match op {
            Op::Param { out, param } => match self.param(*param)? {
                ParamTy::Scalar(ty) => self.width(*out, ty.width),
                _ => Err(Problem::ParamKind { param: *param, wanted: "a scalar" }),
            },
            Op::ListLen { out, param } => {
                self.columns(*param)?;
                self.width(*out, 32)
            }
            Op::ListGet { out, param, column, .. } => {
                self.width(*out, self.column(*param, *column)?.width)
            }
            Op::BackendUp { out, param, .. } => {
                self.kind(*param, "backends", |ty| matches!(ty, ParamTy::Backends(_)))?;
                self.width(*out, 1)
            }
            Op::InSet { out, a, set } => {
                self.width(*out, 1)?;
                self.in_set(*a, set)
            }
            Op::Rules { pass, rule, param } => {
                self.kind(*param, "a rule set", |ty| *ty == ParamTy::Rules)?;
                self.widths("results", &[*pass, *rule], &[1, 32])
            }
            Op::Route { found, hop, param, addr } => {
                self.kind(*param, "a route table", |ty| *ty == ParamTy::Routes)?;
                self.widths("results", &[*found, *hop], &[1, 32])?;
                let is_address = matches!(self.width_of(*addr), 32 | 128);
                if is_address { Ok(()) } else { Err(Problem::Address(*addr)) }
            }
            Op::Patterns { found, number, param } => {
                self.kind(*param, "patterns", |ty| *ty == ParamTy::Patterns)?;
                self.widths("results", &[*found, *number], &[1, 32])
            }
            Op::Take { ok, out, pool } => {
                self.widths("results", &[*ok, *out], &[1, self.pool(*pool)?])
            }
            Op::TakeThis { ok, pool, a } => {
                self.width(*ok, 1)?;
                self.width(*a, self.pool(*pool)?)
            }
            Op::Release { pool, a } => self.width(*a, self.pool(*pool)?),
            _ => Ok(()),
        }
    }

    fn in_set(&self, a: ValueId, set: &SetRef) -> Checked {
        match set {
            SetRef::Const(members) => {
                let (width, last) = (self.width_of(a), members.intervals().last());
                match last.map_or(0, |(_, hi)| *hi) {
                    value if value > crate::show::max_of(width) => {
                        Err(Problem::TooWide { value, width })
                    }
                    _ => Ok(()),
                }
            }
            SetRef::Param(param) => match self.param(*param)? {
                ParamTy::Set(ty) => self.width(a, ty.width),
                _ => Err(Problem::ParamKind { param: *param, wanted: "a set" }),
            },
            SetRef::List(param, column) => self.width(a, self.column(*param, *column)?.width),
        }
    }

    fn call(
        &self,
        outs: &[ValueId],
        name: &str,
        param: Option<ParamId>,
        args: &[ValueId],
    ) -> Checked {
        let missing = || Problem::Missing(format!("operator `{name}`"));
        let signature = &braid_externs::lookup(name).ok_or_else(missing)?.signature;
        match (signature.takes_param, param) {
            (None, None) => {}
            (Some(ParamKind::Backends), Some(param)) => {
                self.kind(param, "backends", |ty| matches!(ty, ParamTy::Backends(_)))?;
            }
            (wanted, found) => {
                let (found, wanted) = (usize::from(found.is_some()), usize::from(wanted.is_some()));
                return Err(Problem::Count { what: "parameters", found, wanted });
            }
        }
        if !signature.accepts(args.len()) {
            let (found, wanted) = (args.len(), signature.args.len());
            return Err(Problem::Count { what: "arguments", found, wanted });
        }
        for (number, arg) in args.iter().enumerate() {
            if let Some(Width::Bits(bits)) = signature.arg(number).map(|spec| spec.width) {
                self.width(*arg, bits)?;
            }
        }
        let results: Vec<u16> = signature.results.iter().map(|spec| spec.width()).collect();
        self.widths("results", outs, &results)
    }

    fn slots(&self, state: StateId) -> Result<Vec<u16>, Problem> {
        Ok(self.table(state)?.slots.iter().map(|(_, ty)| ty.width).collect())
    }

    fn table(&self, state: StateId) -> Result<&StateDecl, Problem> {
        let decl = self.model.state.get(state.index());
        decl.ok_or_else(|| Problem::Missing(state.to_string()))
    }

    /// Widths of the parts of a table's key.
    fn key_widths(&self, state: StateId) -> Result<Vec<u16>, Problem> {
        Ok(match &self.table(state)?.granularity {
            Granularity::Global => Vec::new(),
            Granularity::Flow | Granularity::Biflow => FlowKey::WIDTHS.to_vec(),
            Granularity::Fields(fields) => fields.iter().map(|field| field.info().width).collect(),
            Granularity::Key(types) => types.iter().map(|ty| ty.width).collect(),
        })
    }

    fn key(&self, state: StateId, key: &Key) -> Checked {
        let granularity = &self.table(state)?.granularity;
        let global = *granularity == Granularity::Global;
        let no = |why| Err(Problem::Key { state, why });
        match (key, granularity) {
            (Key::Explicit(_), Granularity::Global) => return no("global state has none"),
            (Key::Explicit(values), _) => {
                return self.widths("key parts", values, &self.key_widths(state)?);
            }
            (Key::Entry, Granularity::Key(_)) => return no("its key must be given"),
            (Key::Quoted, Granularity::Flow | Granularity::Biflow)
            | (Key::Reversed(_), Granularity::Flow)
            | (Key::Entry, _) => {}
            _ => return no("only flows are quoted or reversed"),
        }
        match self.which {
            Which::Packet | Which::Stream(_) => Ok(()),
            _ if global => Ok(()),
            _ => no("there is no packet to read it from"),
        }
    }

    fn of_state(&self, op: &Op) -> Checked {
        match op {
            Op::StateExists { out, state, key } => {
                self.slots(*state)?;
                self.key(*state, key)?;
                self.width(*out, 1)
            }
            Op::StateGet { outs, state, key } => {
                let slots = self.slots(*state)?;
                self.key(*state, key)?;
                self.widths("slots", outs, &slots)
            }
            Op::StateSet { ok, state, key, values } => {
                let slots = self.slots(*state)?;
                self.key(*state, key)?;
                self.width(*ok, 1)?;
                self.widths("slots", values, &slots)
            }
            Op::StatePut { ok, state, key, slot, value } => {
                let slots = self.slots(*state)?;
                self.key(*state, key)?;
                self.width(*ok, 1)?;
                let width = usize::try_from(*slot).ok().and_then(|slot| slots.get(slot).copied());
                self.width(*value, width.ok_or_else(|| Problem::Missing(format!("slot {slot}")))?)
            }
            Op::StateDelete { state, key } => {
                if self.table(*state)?.granularity == Granularity::Global {
                    return Err(Problem::Global("is never deleted"));
                }
                self.key(*state, key)
            }
            Op::StateLen { out, state } => {
                self.slots(*state)?;
                self.width(*out, 32)
            }
            Op::Expiring { outs } | Op::ExpiringKey { outs } => {
                let Which::Expire(state) = self.which else { return Ok(()) };
                let widths = match op {
                    Op::Expiring { .. } => self.slots(state)?,
                    _ => self.key_widths(state)?,
                };
                self.widths("results", outs, &widths)
            }
            _ => Ok(()),
        }
    }

    fn tag(&self, tag: TagId) -> Result<u16, Problem> {
        let decl = self.model.tags.get(tag.index());
        decl.map(|decl| decl.ty.width).ok_or_else(|| Problem::Missing(tag.to_string()))
    }

    fn row(&self, row: RowId) -> Checked {
        if row.index() < self.model.rows.len() { Ok(()) } else { Err(Problem::NoRow(row)) }
    }

    fn dest(&self, dest: Dest) -> Checked {
        match dest {
            Dest::Port(port) if port.index() >= self.model.ports.len() => {
                Err(Problem::Missing(port.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn of_packet(&self, op: &Op) -> Checked {
        match op {
            Op::Has { out, .. } => self.width(*out, 1),
            Op::Native { out } => self.width(*out, 32),
            Op::Load { out, field } | Op::LoadEntry { out, field } => {
                self.width(*out, field.info().width)
            }
            Op::Store { field, a } => {
                writable(*field)?;
                self.width(*a, field.info().width)
            }
            Op::LoadTag { out, tag } => self.width(*out, self.tag(*tag)?),
            Op::StoreTag { tag, a } => self.width(*a, self.tag(*tag)?),
            Op::PushVlan { id } => self.width(*id, Field::VlanId.info().width),
            Op::HasRoom { out, option } => {
                self.width(*out, 1)?;
                is_option(*option)
            }
            Op::PushOption { option, values } => self.option(*option, values),
            Op::PopOption { option } => is_option(*option),
            Op::LoadBytes { .. }
            | Op::LoadString { .. }
            | Op::StoreBytes { .. }
            | Op::ReplaceBytes { .. }
            | Op::SetOption { .. }
            | Op::Encapsulate { .. }
            | Op::Decapsulate { .. }
            | Op::Translate { .. }
            | Op::Encrypt { .. }
            | Op::Decrypt { .. } => self.of_bytes(op),
            Op::Count { row } => self.row(*row),
            Op::Mirror { port } => self.dest(*port),
            Op::Create { new, port } => {
                self.dest(*port)?;
                self.new_packet(new)
            }
            _ => Ok(()),
        }
    }

    fn new_packet(&self, new: &NewPacket) -> Checked {
        for (field, value) in &new.fields {
            writable(*field)?;
            if !new.shape.takes(field.info().header) {
                return Err(Problem::NotInShape(*field));
            }
            self.width(*value, field.info().width)?;
        }
        for (option, values) in &new.options {
            if !new.shape.headers().contains(&Header::Tcp) {
                return Err(Problem::NoOption(*option));
            }
            self.option(*option, values)?;
        }
        Ok(())
    }

    /// Checks a TCP option with its values.
    fn option(&self, option: Header, values: &[ValueId]) -> Checked {
        is_option(option)?;
        let widths = options::values(option);
        if widths.len() != values.len() {
            return Err(Problem::NoOption(option));
        }
        let mut all = values.iter().zip(widths);
        all.try_for_each(|(value, bytes)| self.width(*value, u16::try_from(8 * bytes).unwrap_or(0)))
    }

    fn term(&self, term: &Term) -> Checked {
        let here = match (self.which, term) {
            (_, Term::Jump(_) | Term::Branch { .. }) => true,
            (Which::Stream(StreamEvent::Close), Term::Reset { .. } | Term::Bypass { .. }) => false,
            (Which::Stream(_), Term::Reset { .. } | Term::Bypass { .. }) => true,
            (Which::Handler(event), end) if end.steers() => {
                let decl = self.model.events.get(event.index());
                decl.is_some_and(EventDecl::names_flow)
            }
            (Which::Packet, end) if end.steers() || *end == Term::Return => false,
            (Which::Packet, _) | (_, Term::Return) => true,
            _ => false,
        };
        if !here {
            return Err(Problem::NotHere(match self.which {
                Which::Packet => "the packet program",
                Which::Expire(_) => "an expiry program",
                Which::Timer(_) => "a timer's program",
                Which::Stream(_) => "a stream's program",
                Which::Handler(_) => "a handler",
            }));
        }
        match term {
            Term::Branch { cond, .. } => self.width(*cond, 1),
            Term::Output { ports, row } => {
                if ports.is_empty() {
                    return Err(Problem::NoPorts);
                }
                ports.iter().try_for_each(|port| self.dest(*port))?;
                self.row(*row)
            }
            Term::Drop { reason, row } | Term::Reset { reason, row } => {
                if reason.index() >= self.model.reasons.len() {
                    return Err(Problem::NoReason(*reason));
                }
                self.row(*row)
            }
            Term::Hold { queue, delay, row, .. } => {
                if queue.index() >= self.model.queues.len() {
                    return Err(Problem::Missing(queue.to_string()));
                }
                self.width(*delay, 64)?;
                self.row(*row)
            }
            Term::Consume { row }
            | Term::Resubmit { row }
            | Term::Bypass { row }
            | Term::Resume { row } => self.row(*row),
            Term::Jump(_) | Term::Return => Ok(()),
        }
    }
}

fn writable(field: Field) -> Checked {
    match field.info().access {
        Access::Rw => Ok(()),
        Access::Ro => Err(Problem::ReadOnly(field)),
    }
}

/// Whether a native function's packet program can have the operation. The native function may have
/// changed the packet, so the program must not use earlier knowledge about it.
fn may_stand(op: &Op) -> bool {
    matches!(
        op,
        Op::Native { .. }
            | Op::Count { .. }
            | Op::Const { .. }
            | Op::Cmp { .. }
            | Op::Bin { op: BinOp::And | BinOp::Or, .. }
    )
}

/// Checks that a header is a TCP option.
fn is_option(option: Header) -> Checked {
    options::growth(option).map(drop).ok_or(Problem::NoOption(option))
}
