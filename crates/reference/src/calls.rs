//! Operations that look values up, call an extern, use a pool, publish an event or send a packet.

use super::run::{Emission, Role, Run};
use braid_externs::{CallCtx, MAX_RESULTS, Pool, Rng};
use braid_ir::engine::{Event, EventValue, Fault};
use braid_ir::model::{Dest, EventArg, EventId, Model, NewPacket, Op, ParamId, Program, Word};
use braid_ir::show::max_of;
use braid_ir::value::ParamValue;
use braid_packet::{Packet, build_new};

impl Run<'_> {
    pub(super) fn lookup_op(&mut self, program: &Program, op: &Op) -> Result<(), Fault> {
        match op {
            Op::Rules { pass, rule, param } => {
                let (passes, number) = self.rules(*param);
                self.define(*pass, Word::from(passes));
                self.define(*rule, Word::from(number));
            }
            Op::Route { found, hop, param, addr } => {
                let width = program.values[addr.index()].width;
                let hop_number = self.route(*param, width, self.value(*addr));
                self.define(*found, Word::from(hop_number.is_some()));
                self.define(*hop, Word::from(hop_number.unwrap_or(0)));
            }
            Op::Patterns { found, number, param } => {
                let first = self.patterns(*param)?;
                self.define(*found, Word::from(first.is_some()));
                self.define(*number, Word::from(first.unwrap_or(0)));
            }
            Op::Extern { outs, name, param, args } => {
                let args: Vec<_> = args
                    .iter()
                    .map(|arg| (self.value(*arg), program.values[arg.index()].width))
                    .collect();
                let results = self.call(name, *param, &args)?;
                for (out, result) in outs.iter().zip(results) {
                    self.define(*out, result & max_of(program.values[out.index()].width));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the packet passes a rule set, and the number of the rule that decides. Also counts
    /// the rule.
    fn rules(&mut self, param: ParamId) -> (bool, u32) {
        let ParamValue::Rules(set) = &self.env.instance.params[param.index()] else {
            return (false, 0);
        };
        let none = u32::try_from(set.rules.len()).unwrap_or(u32::MAX);
        let packet = match &self.role {
            Role::Packet(state) => state.for_rules(),
            Role::Timer | Role::Expire(..) => None,
        };
        let Some(packet) = packet else { return (false, none) };
        let (pass, number) = set.decide(&packet);
        let counts = self.env.instance.counters.rules.get_mut(&param.0);
        if let Some(count) = counts.and_then(|counts| counts.get_mut(number as usize)) {
            *count += 1;
        }
        (pass, number)
    }

    fn route(&self, param: ParamId, width: u16, addr: Word) -> Option<u32> {
        let ParamValue::Routes(table) = &self.env.instance.params[param.index()] else {
            return None;
        };
        match width {
            32 => table.lookup4(u32::try_from(addr).ok()?),
            _ => table.lookup6(addr),
        }
    }

    fn patterns(&self, param: ParamId) -> Result<Option<u32>, Fault> {
        let payload = self.payload()?;
        Ok(match &self.env.instance.params[param.index()] {
            ParamValue::Patterns(set) => set.lowest_match(payload),
            _ => None,
        })
    }

    fn payload(&self) -> Result<&[u8], Fault> {
        match &self.role {
            Role::Packet(state) => state.payload().ok_or(Fault::Truncated),
            Role::Timer | Role::Expire(..) => Ok(&[]),
        }
    }

    fn call(
        &mut self,
        name: &str,
        param: Option<ParamId>,
        args: &[(Word, u16)],
    ) -> Result<[Word; MAX_RESULTS], Fault> {
        let Some(operator) = braid_externs::lookup(name) else { return Ok([0; MAX_RESULTS]) };
        let payload: &[u8] = match &self.role {
            Role::Packet(state) if operator.signature.reads_payload() => {
                state.payload().ok_or(Fault::Truncated)?
            }
            _ => &[],
        };
        let instance = &mut *self.env.instance;
        let list = param.and_then(|param| match &instance.params[param.index()] {
            ParamValue::Backends(all) => Some(all),
            _ => None,
        });
        let shard = &mut instance.shards[self.env.shard];
        Ok(operator.call(&mut CallCtx {
            args,
            payload,
            backends: list.map(|all| all as &dyn braid_externs::Backends),
            rng: &mut shard.rng,
            cache: shard.caches.entry(param).or_default(),
        }))
    }

    pub(super) fn pool_op(&mut self, op: &Op) -> Result<(), Fault> {
        match op {
            Op::Take { ok, out, pool } => {
                let member = self.with_pool(*pool, None, Pool::take);
                self.define(*ok, Word::from(member.is_some()));
                self.define(*out, member.unwrap_or(0));
            }
            Op::TakeThis { ok, pool, a } => {
                let value = self.value(*a);
                let done = self.with_pool(*pool, false, |pool, _| pool.take_this(value));
                self.define(*ok, Word::from(done));
            }
            Op::Release { pool, a } => {
                let value = self.value(*a);
                self.with_pool(*pool, false, |pool, _| pool.release(value));
            }
            _ => {}
        }
        Ok(())
    }

    fn with_pool<T>(
        &mut self,
        pool: ParamId,
        none: T,
        act: impl FnOnce(&mut Pool, &mut Rng) -> T,
    ) -> T {
        let shard = &mut self.env.instance.shards[self.env.shard];
        match shard.pools.get_mut(&pool) {
            Some(members) => act(members, &mut shard.rng),
            None => none,
        }
    }

    pub(super) fn emit(
        &mut self,
        model: &Model,
        program: &Program,
        event: EventId,
        args: &[EventArg],
    ) {
        let decl = &model.events[event.index()];
        let value = |arg: &EventArg| match arg {
            EventArg::Value(id) => {
                EventValue::Scalar(program.values[id.index()].kind, self.value(*id))
            }
            EventArg::Str(text) => EventValue::Str(text.clone()),
            EventArg::Param(param) => match &self.env.instance.params[param.index()] {
                ParamValue::Str(text) => EventValue::Str(text.clone()),
                _ => EventValue::Str(String::new()),
            },
        };
        let names = decl.fields.iter().map(|(name, _)| name.clone());
        let event = Event {
            time_ns: self.env.now,
            node: self.env.node,
            name: decl.name.clone(),
            ancestors: decl.ancestors.clone(),
            fields: names.zip(args.iter().map(value)).collect(),
        };
        self.env.out.event(event);
    }

    pub(super) fn mirror(&mut self, dest: Dest) -> Result<(), Fault> {
        if let Role::Packet(state) = &self.role {
            self.emit_packet(dest, state.now.clone(), false);
        }
        Ok(())
    }

    pub(super) fn create_packet(&mut self, new: &NewPacket, dest: Dest) -> Result<(), Fault> {
        let fields: Vec<_> = new.fields.iter().map(|(f, id)| (*f, self.value(*id))).collect();
        let Role::Packet(state) = &self.role else { return Ok(()) };
        let back = dest == Dest::Back;
        let built = build_new(&state.now, new.shape, back, &fields, new.payload);
        self.emit_packet(dest, built.ok_or(Fault::Truncated)?, true);
        Ok(())
    }

    fn emit_packet(&mut self, dest: Dest, packet: Packet, created: bool) {
        self.env.observer.send(self.env.node, dest, &packet, created);
        self.emissions.push(Emission { dest, packet, created });
    }
}
