//! Control changes: changes of parameters while a chain runs.
#![expect(
    clippy::indexing_slicing,
    reason = "`change_value` refuses changes of functions and parameters that do not exist"
)]

use crate::compiled::Compiled;
use crate::instance::{Instance, Rules, quotas, routes};
use crate::report;
use braid_classify::Lpm;
use braid_externs::Backend as _;
use braid_flowcache::Changed;
use braid_ir::chain::{Chain, Change, Control};
use braid_ir::engine::Prepared;
use braid_ir::model::{Model, Op, ParamDecl, ParamId, SetRef, Setting, Word};
use braid_ir::value::{Backend, Health, MAX_MEMBERS, MAX_RULES, ParamValue};
use std::any::Any;
use std::cell::Cell;

impl Compiled {
    /// Applies a change now. Afterwards the change holds the values that it has replaced.
    pub(crate) fn change(&mut self, change: &mut Prepared) -> Result<(), String> {
        let control = &change.control;
        let config = self.executor.functions.chain.nodes.get(usize::from(control.node));
        let native = config.filter(|config| config.model.native.is_some());
        let Some(before) = native.map(|config| config.params.clone()) else {
            return self.change_value(change);
        };
        let node = usize::from(control.node);
        self.change_value(change)?;
        let control = &change.control;
        if let Err(why) = self.executor.functions.tell_natives(control) {
            let mut made = Structures::of(&before[control.param.index()]);
            self.executor.functions.chain.nodes[node].params = before;
            self.take_value(control.node, control.param, &mut made);
            return Err(why);
        }
        Ok(())
    }

    fn change_value(&mut self, change: &mut Prepared) -> Result<(), String> {
        let Prepared { control, made } = change;
        let node = usize::from(control.node);
        let functions = &mut self.executor.functions;
        let Some(config) = functions.chain.nodes.get(node) else {
            return Err(format!("no function number {}", control.node));
        };
        let model = config.model.clone();
        let param = control.param;
        let decl = model.params.get(param.index()).ok_or("no such parameter")?;
        let is_set = matches!(control.change, Change::Set(_));
        if !is_set {
            functions.keep_configured(control.node, param);
        }
        let (instance, config) = (&mut functions.instances[node], &mut functions.chain.nodes[node]);
        let value = &mut config.params[param.index()];
        let changed = match (&mut control.change, &mut *value) {
            (Change::Set(new), _) => {
                set(&model, decl, param, value, new)?;
                let changed = changed_by_set(control, value);
                if let Change::Set(old) = &mut control.change {
                    let first = functions.configured.entry((control.node, param));
                    first.or_insert_with(|| std::mem::replace(old, ParamValue::Scalar(0)));
                }
                changed
            }
            (_, ParamValue::Backends(all)) => adjust_backends(decl, all, control)?,
            (change, _) => {
                adjust_rules(&decl.name, value, change, instance.rules[param.index()].as_mut())?;
                Changed::new(control, value)
            }
        };
        if is_set {
            let made = made.as_mut().and_then(|made| made.downcast_mut::<Structures>());
            let mut own = None;
            let made = made.unwrap_or_else(|| own.insert(Structures::of(value)));
            self.take_value(control.node, param, made);
        }
        self.executor.functions.stacks.changed(control.node, param);
        if let Some(cache) = &mut self.cache {
            cache.outdate(changed, &mut self.executor.functions);
        }
        Ok(())
    }

    /// Brings the function's structures up to date with a parameter's new value.
    fn take_value(&mut self, node: u16, param: ParamId, made: &mut Structures) {
        let functions = &mut self.executor.functions;
        let steers = functions.chain.steers();
        let Chain { nodes, steering, .. } = &mut functions.chain;
        let params = &nodes[usize::from(node)].params;
        let value = &params[param.index()];
        steering.change(node, param, value);
        let instance = &mut functions.instances[usize::from(node)];
        instance.take_value(param, value, made);
        // Capacities and time-outs may have changed.
        functions.store.change(node, params);
        let is_routes = matches!(value, ParamValue::Routes(_));
        if is_routes {
            functions.address_groups.clear();
            let programs = &mut self.executor.programs.set.all;
            programs.iter_mut().for_each(|program| program.stage.routes_changed());
        }
        // A new pool may change the workers of packets.
        let steers = steers && matches!(value, ParamValue::Pool(_));
        let is_compiled_in = is_compiled_in(&instance.model, param, value);
        if steers || is_compiled_in {
            report::forget_programs(&mut self.executor, self.cache.as_deref_mut());
        }
        if is_routes || is_compiled_in {
            self.executor.tell_workshop(node, param);
        }
    }
}

impl Instance {
    /// Brings the instance's structures up to date with a parameter's new value. Afterwards `made`
    /// holds the old ones.
    pub(crate) fn take_value(&mut self, param: ParamId, value: &ParamValue, made: &mut Structures) {
        std::mem::swap(&mut self.rules[param.index()], &mut made.rules);
        std::mem::swap(&mut self.routes[param.index()], &mut made.routes);
        if let ParamValue::Pool(_) = value {
            let quotas = quotas(value, self.shard_count());
            for (shard, quota) in self.shards.iter_mut().zip(quotas) {
                if let Some(pool) = &mut shard.pools[param.index()] {
                    pool.set_members(&quota);
                }
            }
        }
    }
}

/// Whether programs contain a parameter's value as a constant. Capacities and times are not
/// constants: the engine reads them when it needs them.
fn is_compiled_in(model: &Model, param: ParamId, value: &ParamValue) -> bool {
    if !matches!(value, ParamValue::Scalar(_) | ParamValue::Set(_) | ParamValue::List(_)) {
        return false;
    }
    let handlers = model.handlers.iter().map(|(_, program)| program);
    let programs = handlers.chain([&model.packet]);
    let mut ops = programs.flat_map(|program| &program.blocks).flat_map(|block| &block.ops);
    let mut slots = model.state.iter().flat_map(|decl| &decl.default).flatten();
    slots.any(|slot| *slot == Setting::Param(param))
        || ops.any(|op| match *op {
            Op::Param { param: one, .. }
            | Op::ListLen { param: one, .. }
            | Op::ListGet { param: one, .. }
            | Op::InSet { set: SetRef::Param(one) | SetRef::List(one, _), .. } => one == param,
            _ => false,
        })
}

/// The search structures of a parameter's value.
pub(crate) struct Structures {
    rules: Option<Rules>,
    routes: Option<Lpm>,
}

impl Structures {
    pub(crate) fn of(value: &ParamValue) -> Self {
        Self { rules: Rules::new(value), routes: routes(value) }
    }
}

/// Makes the search structures of a change's value.
pub(crate) fn prepare(control: Control) -> Prepared {
    let made: Option<Box<dyn Any + Send>> = match &control.change {
        Change::Set(value) => Some(Box::new(Structures::of(value))),
        _ => None,
    };
    Prepared { control, made }
}

/// Assigns a new value, and gives back the old one. Backends keep their numbers.
fn set(
    model: &Model,
    decl: &ParamDecl,
    param: ParamId,
    value: &mut ParamValue,
    new: &mut ParamValue,
) -> Result<(), String> {
    new.check(&decl.ty).map_err(|why| format!("{}: {why}", decl.name))?;
    let is_period = model.timers.iter().any(|timer| timer.period == Setting::Param(param));
    if is_period && *new == ParamValue::Scalar(0) {
        return Err(format!("{} is a timer's period, which cannot be 0", decl.name));
    }
    if let (ParamValue::Backends(all), ParamValue::Backends(new)) = (&*value, &mut *new) {
        let mut merged = all.clone();
        merged.iter_mut().for_each(|old| old.health = Health::Removed);
        for one in std::mem::take(new) {
            admit(&mut merged, &decl.name, one)?;
        }
        *new = merged;
    }
    std::mem::swap(value, new);
    Ok(())
}

/// The parts of a parameter that a new value has changed. The control change holds the old value.
fn changed_by_set(control: &Control, now: &ParamValue) -> Changed {
    match (&control.change, now) {
        (Change::Set(ParamValue::Backends(before)), ParamValue::Backends(now)) => {
            Changed::backends(control, before, now)
        }
        _ => Changed::new(control, now),
    }
}

/// Adds or removes a rule.
fn adjust_rules(
    name: &str,
    value: &mut ParamValue,
    change: &Change,
    rules: Option<&mut Rules>,
) -> Result<(), String> {
    match (change, value) {
        (Change::AddRule(at, rule), ParamValue::Rules(set)) => {
            if set.rules.len() >= MAX_RULES {
                return Err(format!("{name} has {MAX_RULES} rules, which is the limit"));
            }
            let count = set.rules.len();
            let at = at.unwrap_or(count);
            if at > count {
                let count = set.counted();
                return Err(format!("{name} has no place {at} for a rule: it has {count}"));
            }
            set.rules.insert(at, rule.clone());
            if let Some(rules) = rules {
                rules.table.insert(at, rule.clone());
                rules.flags |= rule.tcp_flags.1;
                rules.counts.insert(at, Cell::default());
            }
        }
        (Change::RemoveRule(at), ParamValue::Rules(set)) => {
            if *at >= set.rules.len() {
                return Err(format!("{name} has no rule {at}: it has {}", set.counted()));
            }
            set.rules.remove(*at);
            if let Some(rules) = rules {
                rules.table.remove(*at);
                rules.counts.remove(*at);
            }
        }
        _ => return Err(cannot(name)),
    }
    Ok(())
}

/// Changes, adds or removes one backend.
fn adjust_backends(
    decl: &ParamDecl,
    all: &mut Vec<Backend>,
    control: &Control,
) -> Result<Changed, String> {
    let name = &decl.name;
    let (at, before) = match &control.change {
        Change::BackendUp(first, up) => {
            let health = if *up { Health::Up } else { Health::Down };
            change_health(all, name, *first, health)?
        }
        Change::RemoveBackend(first) => change_health(all, name, *first, Health::Removed)?,
        Change::AddBackend(columns) => {
            let new = Backend::up(columns.clone());
            ParamValue::Backends(vec![new.clone()]).check(&decl.ty)?;
            if member(all, name, new.name()).is_ok() {
                return Err(format!(
                    "{name} already has a backend with this value in its first column"
                ));
            }
            admit(all, name, new)?
        }
        _ => return Err(cannot(name)),
    };
    Ok(Changed::backend(control, at, before.as_ref(), &all[at]))
}

fn cannot(name: &str) -> String {
    format!("{name} is not of a type that can change like this")
}

/// Changes the health of the backend whose first column has this value. Returns the backend's
/// number and its earlier content.
fn change_health(
    all: &mut [Backend],
    param: &str,
    first: Word,
    health: Health,
) -> Result<(usize, Option<Backend>), String> {
    let at = member(all, param, first)?;
    let before = all[at].clone();
    all[at].health = health;
    Ok((at, Some(before)))
}

/// The number of the backend whose first column has this value, unless it was removed.
fn member(all: &[Backend], param: &str, first: Word) -> Result<usize, String> {
    let found = all.iter().position(|one| !one.is_removed() && one.name() == first);
    found.ok_or_else(|| format!("{param} has no backend with this value in its first column"))
}

/// Adds a backend. A removed backend that comes back gets its old number. Any other gets the next
/// number. Returns the number, and the removed backend if there was one.
fn admit(
    all: &mut Vec<Backend>,
    param: &str,
    new: Backend,
) -> Result<(usize, Option<Backend>), String> {
    if let Some(at) = all.iter().position(|one| one.is_removed() && one.name() == new.name()) {
        return Ok((at, Some(std::mem::replace(&mut all[at], new))));
    }
    if all.len() >= MAX_MEMBERS {
        return Err(format!(
            "{param} has had {MAX_MEMBERS} backends, which is the limit: removed ones keep their \
             numbers"
        ));
    }
    all.push(new);
    Ok((all.len() - 1, None))
}
