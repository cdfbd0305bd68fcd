//! Changes of configuration.

use super::instance::Instance;
use super::native;
use super::schedule::Expiries;
use super::streams;
use super::table::EntryRef;
use braid_externs::Backend as _;
use braid_ir::chain::{Change, Control};
use braid_ir::model::{ParamId, ParamTy, Setting, StateId, Word};
use braid_ir::value::{Backend, Health, MAX_MEMBERS, MAX_RULES, ParamValue, Rule};

/// Applies a change now.
pub(super) fn change(
    nodes: &mut [Instance],
    expiries: &mut Expiries,
    control: &Control,
) -> Result<(), String> {
    let instance = nodes
        .get_mut(usize::from(control.node))
        .ok_or_else(|| format!("no function number {}", control.node))?;
    let is_native = instance.model.native.is_some();
    let before = is_native.then(|| (instance.params.clone(), instance.counters.rules.clone()));
    instance.change(control.param, &control.change)?;
    streams::tell(instance, control.param);
    if let Some((params, rules)) = before
        && let Err(why) = native::tell(instance, control.param)
    {
        (instance.params, instance.counters.rules) = (params, rules);
        return Err(why);
    }
    if matches!(control.change, Change::Set(_)) {
        reschedule(instance, control.node, expiries);
    }
    Ok(())
}

/// Computes deadlines again, because time-outs and ticks may have changed.
pub(super) fn reschedule(instance: &Instance, node: u16, expiries: &mut Expiries) {
    expiries.forget(node);
    for (shard, part) in instance.shards.iter().enumerate() {
        for (state, table) in (0..).map(StateId).zip(&part.tables) {
            for (id, _) in table.iter().filter(|(_, entry)| entry.lives_with.is_none()) {
                expiries.schedule(instance, node, shard, EntryRef { state, id });
            }
        }
    }
}

impl Instance {
    fn change(&mut self, param: ParamId, change: &Change) -> Result<(), String> {
        let model = self.model.clone();
        let decl = model.params.get(param.index()).ok_or("no such parameter")?;
        let name = decl.name.clone();
        let value = &mut self.params[param.index()];
        match (change, value) {
            (Change::Set(new), _) => return self.set(param, new),
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
                self.rule_counts(param).insert(at, 0);
            }
            (Change::RemoveRule(at), ParamValue::Rules(set)) => {
                if *at >= set.rules.len() {
                    return Err(format!("{name} has no rule {at}: it has {}", set.counted()));
                }
                let _: Rule = set.rules.remove(*at);
                self.rule_counts(param).remove(*at);
            }
            (Change::BackendUp(first, up), ParamValue::Backends(all)) => {
                member(all, &name, *first)?.health = if *up { Health::Up } else { Health::Down };
            }
            (Change::AddBackend(columns), ParamValue::Backends(all)) => {
                let new = Backend::up(columns.clone());
                ParamValue::Backends(vec![new.clone()]).check(&decl.ty)?;
                if member(all, &name, new.name()).is_ok() {
                    return Err(format!(
                        "{name} already has a backend with this value in its first column"
                    ));
                }
                admit(all, &name, new)?;
            }
            (Change::RemoveBackend(first), ParamValue::Backends(all)) => {
                member(all, &name, *first)?.health = Health::Removed;
            }
            _ => return Err(format!("{name} is not of a type that can change like this")),
        }
        Ok(())
    }

    /// Sets a new value. Counts of rules start from 0 again. Pool members that are taken stay
    /// taken. Backends keep their numbers.
    fn set(&mut self, param: ParamId, value: &ParamValue) -> Result<(), String> {
        let model = self.model.clone();
        let decl = &model.params[param.index()];
        value.check(&decl.ty).map_err(|why| format!("{}: {why}", decl.name))?;
        let is_period = model.timers.iter().any(|timer| timer.period == Setting::Param(param));
        if is_period && *value == ParamValue::Scalar(0) {
            return Err(format!("{} is a timer's period, which cannot be 0", decl.name));
        }
        match (&mut self.params[param.index()], value) {
            (ParamValue::Backends(all), ParamValue::Backends(new)) => {
                *all = replaced(all, &decl.name, new)?;
            }
            (old, new) => *old = new.clone(),
        }
        if let ParamValue::Rules(set) = value {
            *self.rule_counts(param) = vec![0; set.rules.len() + 1];
        }
        if let ParamTy::Pool(..) = decl.ty {
            let quotas: Vec<Vec<(Word, Word)>> = self.pool_quotas(param);
            for (shard, quota) in self.shards.iter_mut().zip(quotas) {
                if let Some(pool) = shard.pools.get_mut(&param) {
                    pool.set_members(&quota);
                }
            }
        }
        Ok(())
    }

    fn rule_counts(&mut self, param: ParamId) -> &mut Vec<u64> {
        self.counters.rules.entry(param.0).or_default()
    }
}

/// The backend with this value in its first column. A removed backend does not count.
fn member<'a>(all: &'a mut [Backend], param: &str, first: Word) -> Result<&'a mut Backend, String> {
    all.iter_mut()
        .find(|one| !one.is_removed() && one.name() == first)
        .ok_or_else(|| format!("{param} has no backend with this value in its first column"))
}

/// Adds a backend. A backend that was removed gets its old number again, and any other backend the
/// next number.
fn admit(all: &mut Vec<Backend>, param: &str, new: Backend) -> Result<(), String> {
    let is_old = |one: &Backend| one.is_removed() && one.name() == new.name();
    match all.iter().position(is_old) {
        Some(old) => all[old] = new,
        None if all.len() < MAX_MEMBERS => all.push(new),
        None => {
            return Err(format!(
                "{param} has had {MAX_MEMBERS} backends, which is the limit: removed ones keep \
                 their numbers"
            ));
        }
    }
    Ok(())
}

/// New backends in place of all. A backend that stays keeps its number.
fn replaced(all: &[Backend], param: &str, new: &[Backend]) -> Result<Vec<Backend>, String> {
    let mut all = all.to_vec();
    for old in &mut all {
        old.health = Health::Removed;
    }
    for one in new {
        admit(&mut all, param, one.clone())?;
    }
    Ok(all)
}
