//! A residual program as terms: its paths, each with the condition under which packets take it.

use braid_ir::chain::Chain;
use braid_ir::model::{Op, Target};
use braid_ir::residual::{CounterListId, End, Exit, Fate, Residual, RuleFields, Step, What};
use braid_ir::subscriptions::Subscriptions;
use braid_packet::Field;

use crate::ends::{Goal, Path};
use crate::join::{Arrival, merge, queue_has_room};
use crate::ops::{RuleTerms, Run, State};
use crate::packet::Kind;
use crate::term::{BitOp, Node, Sort, Term, Terms};
use crate::values::Faults;
use crate::world::Touch;

/// A residual program as terms.
#[derive(Default)]
pub(crate) struct Program {
    pub(crate) paths: Vec<Path>,
    pub(crate) touches: Vec<Touch>,
    /// Conditions that must never hold, each with its meaning.
    pub(crate) never: Vec<(Term, String)>,
}

/// Translates a program into terms.
struct Reader<'a> {
    chain: &'a Chain,
    residual: &'a Residual,
    arrivals: Vec<Vec<Arrival>>,
    found: Program,
}

/// Translates a program into terms, starting from a state.
pub(crate) fn read(
    terms: &mut Terms,
    (chain, subscriptions): (&Chain, &Subscriptions),
    kind: &Kind,
    residual: &Residual,
    state: State,
) -> Result<Program, String> {
    let mut reader = Reader {
        chain,
        residual,
        arrivals: residual.blocks.iter().map(|_| Vec::new()).collect(),
        found: Program::default(),
    };
    let always = terms.bool(true);
    let first = reader.arrivals.first_mut().ok_or("a program without blocks")?;
    first.push(Arrival { guard: always, state, args: Vec::new() });
    let mut values = vec![None; residual.values.len()];
    let mut touches = Vec::new();
    for (place, block) in residual.blocks.iter().enumerate() {
        let come = std::mem::take(&mut reader.arrivals[place]);
        let Some((guard, state, args)) = merge(terms, chain, come) else { continue };
        let mut run = Run {
            terms,
            chain,
            subscriptions,
            kind,
            node: residual.point.node,
            types: &residual.values,
            values: std::mem::take(&mut values),
            guard,
            state,
            entry: None,
            touches: &mut touches,
        };
        for (param, arg) in block.params.iter().zip(args) {
            run.define(*param, arg)?;
        }
        for step in &block.steps {
            reader.step(&mut run, step)?;
        }
        reader.end(&mut run, &block.end, place)?;
        values = run.values;
    }
    reader.found.touches = touches;
    Ok(reader.found)
}

impl Reader<'_> {
    fn step(&mut self, run: &mut Run<'_>, step: &Step) -> Result<(), String> {
        run.node = step.site.node;
        if usize::from(run.node) >= self.chain.nodes.len() {
            return Err(format!("a step of function {}, which there is not", run.node));
        }
        self.check_layout(run, &step.what);
        let before = run.state.clone();
        let faults = self.what(run, &step.what)?;
        for (when, fault) in faults {
            let fails = run.terms.both(run.guard, when);
            let holds = run.terms.not(when);
            run.guard = run.terms.both(run.guard, holds);
            match step.fault {
                Some(counters) => {
                    let mut state = before.clone();
                    self.count(run, &mut state, counters)?;
                    let goal = Goal::Fate(Fate::Fault { node: step.site.node, fault });
                    self.path(run, fails, state, goal);
                }
                None => {
                    let text = format!("a step faults ({}) and has no counters", fault.reason());
                    self.found.never.push((fails, text));
                }
            }
        }
        Ok(())
    }

    /// Checks a step that accesses the packet's bytes: the layout must be current and the header
    /// present.
    fn check_layout(&mut self, run: &mut Run<'_>, what: &What) {
        let fields: Vec<Field> = match what {
            What::Op(Op::Load { field, .. }) => vec![*field],
            What::Write(fields) => fields.iter().map(|(field, _)| *field).collect(),
            _ => return,
        };
        for field in fields {
            let fits = run.terms.eq(run.state.parsed.grown, run.state.packet.grown);
            let there = run.kind.has(run.terms, &run.state.parsed, field.info().header);
            let good = run.terms.both(fits, there);
            let bad = run.terms.not(good);
            let bad = run.terms.both(run.guard, bad);
            let text = format!("a step touches {} where it may not be", field.info().name);
            self.found.never.push((bad, text));
        }
    }

    fn what(&mut self, run: &mut Run<'_>, what: &What) -> Result<Faults, String> {
        match what {
            What::Op(op) => return run.op(op),
            What::Enter => {
                run.state.world.keep(run.terms, self.chain, run.node);
                if let Some(keep) = run.state.world.keeps.get_mut(&run.node) {
                    keep.forget(run.terms);
                }
            }
            What::Classify { pass, rule, param, packet } => {
                let inet = run.terms.bool(packet.is_some());
                let fields = rule_terms(run, packet.as_deref())?;
                let (passes, number) = run.classify(*param, inet, &fields);
                run.define(*pass, passes)?;
                run.define(*rule, number)?;
            }
            What::CountRule { param, rule } => {
                let (always, rule) = (run.terms.bool(true), run.value(*rule)?);
                run.count_rule(*param, always, rule);
            }
            What::Find { found, entry, state, key } => {
                let (table, parts) = (run.table(*state)?, run.all(key)?);
                let key = table.key(run.terms, &parts);
                let content = run.content(*state);
                let there = run.find_key(*state, key)?;
                let name = handle_name(run.node, state.0);
                let handle = run.terms.apply(name, &[content, key], Sort::Bits(64));
                run.define(*found, there)?;
                run.define(*entry, handle)?;
            }
            What::Read { outs, state, entry } => {
                let handle = run.value(*entry)?;
                let slots = self.read_entry(run, state.0, handle)?;
                for (out, slot) in outs.iter().zip(slots) {
                    run.define(*out, slot)?;
                }
            }
            What::Write(fields) => {
                for (field, id) in fields {
                    let value = run.value(*id)?;
                    run.write(*field, value);
                }
            }
            What::Parse => run.state.parsed = run.state.packet.clone(),
            What::Count(counters) => {
                let mut state = run.state.clone();
                self.count(run, &mut state, *counters)?;
                run.state = state;
            }
        }
        Ok(Faults::new())
    }

    /// The slots of the entry of a handle. The entry must exist, and nothing may have been assigned
    /// or removed since the lookup.
    fn read_entry(
        &mut self,
        run: &mut Run<'_>,
        state: u32,
        handle: Term,
    ) -> Result<Vec<Term>, String> {
        match run.terms.node(handle).clone() {
            Node::Ite(cond, a, b) => {
                let guard = run.guard;
                let not = run.terms.not(cond);
                run.guard = run.terms.both(guard, cond);
                let a = self.read_entry(run, state, a)?;
                run.guard = run.terms.both(guard, not);
                let b = self.read_entry(run, state, b)?;
                run.guard = guard;
                Ok(a.iter().zip(b).map(|(a, b)| run.terms.ite(cond, *a, b)).collect())
            }
            Node::Apply(function, args)
                if run.terms.function(function).name == handle_name(run.node, state) =>
            {
                let table = run.table(braid_ir::model::StateId(state))?;
                let now = run.content(braid_ir::model::StateId(state));
                let there = table.exists(run.terms, args[0], args[1]);
                let same = run.terms.eq(now, args[0]);
                let good = run.terms.both(there, same);
                let bad = run.terms.not(good);
                let bad = run.terms.both(run.guard, bad);
                self.found
                    .never
                    .push((bad, "a handle that is not good any more is read".to_owned()));
                Ok(table.slots(run.terms, args[0], args[1]))
            }
            // If no lookup can succeed, there is no handle, and a constant stands for it.
            _ if run.terms.constant(handle).is_some() => {
                self.found
                    .never
                    .push((run.guard, "a handle that was never found is read".to_owned()));
                let table = run.table(braid_ir::model::StateId(state))?;
                let (now, none) = (
                    run.content(braid_ir::model::StateId(state)),
                    run.terms.var("no key", Sort::Token),
                );
                Ok(table.slots(run.terms, now, none))
            }
            _ => Err("a handle that no lookup gave".to_owned()),
        }
    }

    fn count(
        &self,
        run: &mut Run<'_>,
        state: &mut State,
        counters: CounterListId,
    ) -> Result<(), String> {
        let counters =
            usize::try_from(counters.0).ok().and_then(|at| self.residual.counter_lists.get(at));
        for one in counters.ok_or("there is no such counters")? {
            if usize::from(one.node) >= self.chain.nodes.len() {
                return Err("a counters of a function that there is not".to_owned());
            }
            let length = run.terms.bits(16, i128::from(one.length).cast_unsigned());
            let grown = run.terms.op(BitOp::Add, state.packet.grown, length);
            state.world.count(run.terms, self.chain, (one.node, one.counter), grown);
        }
        Ok(())
    }

    fn path(&mut self, run: &mut Run<'_>, guard: Term, state: State, goal: Goal) {
        if run.terms.decided(guard) == Some(false) {
            return;
        }
        let visits = state.world.visits(run.terms);
        self.found.paths.push(Path { guard, state, goal, visits });
    }

    fn end(&mut self, run: &mut Run<'_>, end: &End, place: usize) -> Result<(), String> {
        match end {
            End::Jump(target) => self.go(run, run.guard, target, place),
            End::Branch { cond, yes, no } => {
                let cond = run.value(*cond)?;
                let cond = run.terms.truth(cond);
                let not = run.terms.not(cond);
                let (on, off) = (run.terms.both(run.guard, cond), run.terms.both(run.guard, not));
                self.go(run, on, yes, place)?;
                self.go(run, off, no, place)
            }
            End::Exit(Exit { counters, fate }) => {
                let mut state = run.state.clone();
                self.count(run, &mut state, *counters)?;
                let guard = run.guard;
                self.path(run, guard, state, Goal::Fate(fate.clone()));
                Ok(())
            }
            End::Hold { node, queue, delay, counters, full } => {
                let room = queue_has_room(run.terms, *node, *queue);
                let not = run.terms.not(room);
                let waits = run.terms.both(run.guard, room);
                let goes = run.terms.both(run.guard, not);
                let mut state = run.state.clone();
                self.count(run, &mut state, *counters)?;
                let delay = run.value(*delay)?;
                let goal = Goal::Hold { node: *node, queue: *queue, delay };
                self.path(run, waits, state, goal);
                self.go(run, goes, full, place)
            }
        }
    }

    fn go(
        &mut self,
        run: &mut Run<'_>,
        guard: Term,
        target: &Target,
        from: usize,
    ) -> Result<(), String> {
        if run.terms.decided(guard) == Some(false) {
            return Ok(());
        }
        let to = target.block.index();
        if to <= from || to >= self.arrivals.len() {
            return Err(format!("a jump from block {from} to block {to}"));
        }
        let args = run.all(&target.args)?;
        self.arrivals[to].push(Arrival { guard, state: run.state.clone(), args });
        Ok(())
    }
}

fn handle_name(node: u16, state: u32) -> String {
    format!("handle {node}.{state}")
}

fn rule_terms(run: &mut Run<'_>, fields: Option<&RuleFields>) -> Result<RuleTerms, String> {
    let no = run.terms.bool(false);
    let zero = |run: &mut Run<'_>, width| run.terms.bits(width, 0);
    let there = |run: &mut Run<'_>, is: bool| run.terms.bool(is);
    let Some(fields) = fields else {
        let (z8, z16, z128) = (zero(run, 8), zero(run, 16), zero(run, 128));
        return Ok(RuleTerms {
            version: z8,
            src: z128,
            dst: z128,
            proto: z8,
            ports: (no, z16, z16),
            flags: (no, z8),
            icmp: (no, z8, z8),
        });
    };
    let (z8, z16) = (zero(run, 8), zero(run, 16));
    Ok(RuleTerms {
        version: run.terms.bits(8, u128::from(fields.version)),
        src: run.value(fields.src)?,
        dst: run.value(fields.dst)?,
        proto: run.value(fields.proto)?,
        ports: match fields.ports {
            Some((src, dst)) => (there(run, true), run.value(src)?, run.value(dst)?),
            None => (no, z16, z16),
        },
        flags: match fields.tcp_flags {
            Some(flags) => (there(run, true), run.value(flags)?),
            None => (no, z8),
        },
        icmp: match fields.icmp {
            Some((kind, code)) => (there(run, true), run.value(kind)?, run.value(code)?),
            None => (no, z8, z8),
        },
    })
}
