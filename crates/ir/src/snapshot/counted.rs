//! Counters in snapshots: from an engine's counters, and back.

use super::data::{
    FunctionState, ParamState, QueueState, RowState, Snapshot, TableState, TimerState, Totals,
};
use super::schema;
use crate::chain::{Chain, Node};
use crate::counters::{Counters, NodeCounters};
use crate::text;
use crate::value::ParamValue;
use std::collections::BTreeMap;

/// The snapshot of a chain with its counters. The chain has the current values of parameters.
/// Tables have no entries, queues no packets, timers no times, and functions no shards yet.
#[must_use]
pub fn begin(chain: &Chain, counters: &Counters) -> Snapshot {
    let name = |number: u16| chain.interfaces.get(usize::from(number)).map(|one| one.name.clone());
    let out = counters.out.iter().filter_map(|(number, count)| Some((name(*number)?, *count)));
    let functions = (0..).zip(&chain.nodes);
    Snapshot {
        chain: chain.name.clone(),
        workers: chain.workers.max(1),
        steering: schema::steering(chain),
        now_ns: 0,
        started: false,
        totals: Totals {
            packets_in: counters.packets_in,
            created: counters.created,
            copied: counters.copied,
            consumed: counters.consumed,
            out: out.collect(),
            lost: counters.lost.clone(),
        },
        functions: functions.map(|(at, node)| function(node, at, counters)).collect(),
    }
}

fn function(node: &Node, at: u16, counters: &Counters) -> FunctionState {
    let model = &*node.model;
    let none = NodeCounters::default();
    let own = counters.nodes.get(usize::from(at)).unwrap_or(&none);
    let rows = (0..).zip(&model.rows).map(|(row, decl)| RowState {
        label: decl.label.clone(),
        text: decl.text.clone(),
        traffic: own.rows.get(row as usize).copied().unwrap_or_default(),
        drops: drops(counters, at, row),
    });
    let params = (0..).zip(model.params.iter().zip(&node.params));
    let params = params.map(|(number, (decl, value))| ParamState {
        name: decl.name.clone(),
        ty: decl.ty.clone(),
        // Keys are secret: they belong to the chain, not to its state.
        value: match value {
            ParamValue::Keys(_) => ParamValue::Keys(Default::default()),
            value => value.clone(),
        },
        configured: None,
        rule_counts: own.rules.get(&number).cloned().unwrap_or_default(),
    });
    let tables = model.state.iter().enumerate().map(|(number, decl)| TableState {
        name: decl.name.clone(),
        schema: text::state_schema(model, decl),
        lives_with: decl.lives_with.map(|with| with.0),
        counters: own.tables.get(number).copied().unwrap_or_default(),
        entries: Vec::new(),
    });
    let queues = model.queues.iter();
    let timers = model.timers.iter();
    FunctionState {
        name: node.name.clone(),
        model: model.name.clone(),
        native: model.native.as_ref().map(|native| native.reference.function.clone()),
        forward: own.forward,
        backward: own.backward,
        timers_skipped: own.timers_skipped,
        background_faults: own.background_faults,
        rows: rows.collect(),
        params: params.collect(),
        tables: tables.collect(),
        queues: queues
            .map(|queue| QueueState { name: queue.name.clone(), packets: Vec::new() })
            .collect(),
        timers: timers
            .map(|timer| TimerState { period: text::period(model, timer), next_ns: None })
            .collect(),
        shards: Vec::new(),
        stays: false,
    }
}

fn drops(counters: &Counters, at: u16, row: u32) -> BTreeMap<String, u64> {
    let of_row = counters.drops.range((at, row, String::new())..);
    let of_row = of_row.take_while(|((node, of, _), _)| (*node, *of) == (at, row));
    of_row.map(|((.., reason), count)| (reason.clone(), *count)).collect()
}

impl Snapshot {
    /// The counters of a chain whose functions, rows, tables and parameters are those of the
    /// snapshot, in the same order.
    #[must_use]
    pub fn counters(&self, chain: &Chain) -> Counters {
        let Totals { packets_in, created, copied, consumed, out, lost } = &self.totals;
        let number = |name: &str| chain.interfaces.iter().position(|one| one.name == name);
        let out = out
            .iter()
            .filter_map(|(name, count)| Some((u16::try_from(number(name)?).ok()?, *count)));
        let functions = (0..).zip(&self.functions);
        let drops = functions.flat_map(|(node, function)| {
            let rows = (0..).zip(&function.rows);
            rows.flat_map(move |(row, state)| {
                let drops = state.drops.iter();
                drops.map(move |(reason, count)| ((node, row, reason.clone()), *count))
            })
        });
        let queues = self.functions.iter().flat_map(|function| &function.queues);
        Counters {
            packets_in: *packets_in,
            created: *created,
            copied: *copied,
            out: out.collect(),
            consumed: *consumed,
            held: queues.map(|queue| queue.packets.len() as u64).sum(),
            lost: lost.clone(),
            drops: drops.collect(),
            nodes: self.functions.iter().map(FunctionState::counters).collect(),
        }
    }
}

impl FunctionState {
    fn counters(&self) -> NodeCounters {
        let rules = (0..).zip(&self.params).filter(|(_, param)| !param.rule_counts.is_empty());
        NodeCounters {
            forward: self.forward,
            backward: self.backward,
            rows: self.rows.iter().map(|row| row.traffic).collect(),
            rules: rules.map(|(number, param)| (number, param.rule_counts.clone())).collect(),
            tables: self.tables.iter().map(|table| table.counters).collect(),
            timers_skipped: self.timers_skipped,
            background_faults: self.background_faults,
        }
    }

    /// The parameters that are pools, in order.
    pub(super) fn pools(&self) -> impl Iterator<Item = &ParamState> {
        self.params.iter().filter(|param| schema::is_pool(&param.ty))
    }
}
