//! Changes of configuration.

use super::Reference;
use super::instance::Instance;
use super::table::EntryRef;
use crate::chain::{Change, Control};
use crate::model::{ParamId, ParamTy, Setting, StateId, Word};
use crate::value::{Backend, ParamValue, Rule};

impl Reference {
    /// Applies a change now.
    pub(super) fn change(&mut self, control: &Control) -> Result<(), String> {
        let instance = self
            .nodes
            .get_mut(usize::from(control.node))
            .ok_or_else(|| format!("no function number {}", control.node))?;
        instance.change(control.param, &control.change)?;
        if matches!(control.change, Change::Set(_)) {
            self.reschedule(control.node);
        }
        Ok(())
    }

    /// Time-outs and ticks may have changed: deadlines follow from the new values at once.
    fn reschedule(&mut self, node: u16) {
        self.expiries.forget(node);
        let instance = &self.nodes[usize::from(node)];
        for (shard, part) in instance.shards.iter().enumerate() {
            for (state, table) in (0..).map(StateId).zip(&part.tables) {
                for (id, _) in table.iter().filter(|(_, entry)| entry.lives_with.is_none()) {
                    self.expiries.schedule(instance, node, shard, EntryRef { state, id });
                }
            }
        }
    }
}

impl Instance {
    fn change(&mut self, param: ParamId, change: &Change) -> Result<(), String> {
        let decl = self.model.params.get(param.index()).ok_or("no such parameter")?;
        let name = decl.name.clone();
        let value = &mut self.params[param.index()];
        match (change, value) {
            (Change::Set(new), _) => return self.set(param, new),
            (Change::AddRule(at, rule), ParamValue::Rules(set)) => {
                let at = (*at).min(set.rules.len());
                set.rules.insert(at, rule.clone());
                self.rule_counts(param).insert(at, 0);
            }
            (Change::RemoveRule(at), ParamValue::Rules(set)) => {
                if *at >= set.rules.len() {
                    return Err(format!("{name} has no rule {at}: it has {}", set.rules.len()));
                }
                let _: Rule = set.rules.remove(*at);
                self.rule_counts(param).remove(*at);
            }
            (Change::BackendUp(first, up), ParamValue::Backends(all)) => {
                let backend = all.iter_mut().find(|one| one.columns.first() == Some(first));
                backend.ok_or_else(|| no_backend(&name))?.up = *up;
            }
            (Change::AddBackend(columns), ParamValue::Backends(all)) => {
                let mut new = all.clone();
                new.push(Backend { columns: columns.clone(), up: true });
                ParamValue::Backends(new.clone()).check(&self.model.params[param.index()].ty)?;
                *all = new;
            }
            (Change::RemoveBackend(first), ParamValue::Backends(all)) => {
                let place = all.iter().position(|one| one.columns.first() == Some(first));
                all.remove(place.ok_or_else(|| no_backend(&name))?);
            }
            _ => return Err(format!("{name} is not of a type that can change like this")),
        }
        Ok(())
    }

    /// A new value. Rules count from 0 again; pool members that are taken stay taken.
    fn set(&mut self, param: ParamId, value: &ParamValue) -> Result<(), String> {
        let model = self.model.clone();
        let decl = &model.params[param.index()];
        value.check(&decl.ty).map_err(|why| format!("{}: {why}", decl.name))?;
        let is_period = model.timers.iter().any(|timer| timer.period == Setting::Param(param));
        if is_period && *value == ParamValue::Scalar(0) {
            return Err(format!("{} is a timer's period, which cannot be 0", decl.name));
        }
        self.params[param.index()] = value.clone();
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

fn no_backend(name: &str) -> String {
    format!("{name} has no backend with this value in its first column")
}
