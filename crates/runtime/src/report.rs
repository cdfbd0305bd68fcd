//! A run's counters as JSON, with names instead of numbers. Scripts rely on this format.

use crate::follow::FollowCounters;
use crate::json::{function, object};
use crate::outcome::{RefusedChange, Summary};
use braid_ir::chain::{Chain, Node};
use braid_ir::engine::{Counters, NodeCounters, TableCounters, Traffic};
use braid_ir::model::{RowDecl, StateDecl};
use serde_json::Value;

/// The report has these keys, sorted: `packets_in`, `created`, `copied`, `packets_out` (by
/// interface), `drops` (a list of `function`, `row`, `reason`, `count`), `lost` (by reason),
/// `held`, `consumed`, `functions` (a list, see [`functions`]), `refused_changes` (a list of
/// `line`, `time_ns`, `function`, `parameter`, `reason`), `warnings`, and `follow` if the user
/// asked for following.
#[must_use]
pub fn report(chain: &Chain, summary: &Summary) -> Value {
    let Counters { packets_in, created, copied, consumed, held, .. } = summary.counters;
    let lost = &summary.counters.lost;
    let mut members = vec![
        ("packets_in", Value::from(packets_in)),
        ("created", Value::from(created)),
        ("copied", Value::from(copied)),
        ("packets_out", packets_out(chain, &summary.counters)),
        ("drops", drops(chain, &summary.counters)),
        ("lost", object(lost.iter().map(|(reason, count)| (reason, Value::from(*count))))),
        ("held", Value::from(held)),
        ("consumed", Value::from(consumed)),
        ("functions", functions(chain, &summary.counters)),
        ("refused_changes", summary.refused.iter().map(refused).collect()),
        ("warnings", Value::from(summary.warnings.clone())),
    ];
    if let Some(FollowCounters { flows, rewritten, full }) = summary.follow {
        let counts = [("flows", flows), ("rewritten", rewritten), ("full", full)];
        members.push(("follow", object(counts.map(|(name, count)| (name, Value::from(count))))));
    }
    object(members)
}

fn refused(change: &RefusedChange) -> Value {
    let RefusedChange { line, time_ns, function, parameter, reason } = change;
    object([
        ("line", line.map_or(Value::Null, Value::from)),
        ("time_ns", Value::from(*time_ns)),
        ("function", Value::from(function.as_str())),
        ("parameter", Value::from(parameter.as_str())),
        ("reason", Value::from(reason.as_str())),
    ])
}

fn packets_out(chain: &Chain, counters: &Counters) -> Value {
    let count = |number| counters.out.get(&number).copied().unwrap_or(0);
    let interfaces = (0..).zip(&chain.interfaces);
    object(interfaces.map(|(number, i)| (i.name.as_str(), Value::from(count(number)))))
}

fn drops(chain: &Chain, counters: &Counters) -> Value {
    let drop = |((node, row, reason), count): (&(u16, u32, String), &u64)| {
        object([
            ("function", function(chain, *node)),
            ("row", row_label(chain, *node, *row)),
            ("reason", Value::from(reason.as_str())),
            ("count", Value::from(*count)),
        ])
    };
    counters.drops.iter().map(drop).collect()
}

fn row_label(chain: &Chain, node: u16, row: u32) -> Value {
    let node = chain.nodes.get(usize::from(node));
    let row = node.and_then(|node| node.model.rows.get(row as usize));
    row.map_or(Value::Null, |row| Value::from(row.label.as_str()))
}

/// The counters of each function, in the order of declaration. The keys are `name`, `model`,
/// `forward` and `backward` (`packets`, `bytes`), `rows` (`row`, `text`, `line`, `packets`,
/// `bytes`), `tables` (`table`, `entries`, `created`, `refused`, `evicted`, `expired`), `rules` (by
/// parameter: `default` and `hits`), `timers_skipped` and `background_faults`. `hits` is a list of
/// `rule` (from 0) and `packets` that omits rules without packets.
#[must_use]
pub fn functions(chain: &Chain, counters: &Counters) -> Value {
    let nodes = chain.nodes.iter().zip(&counters.nodes);
    nodes.map(|(node, counters)| one_function(node, counters)).collect()
}

fn one_function(node: &Node, counters: &NodeCounters) -> Value {
    object([
        ("name", Value::from(node.name.as_str())),
        ("model", Value::from(node.model.name.as_str())),
        ("forward", traffic(counters.forward, [])),
        ("backward", traffic(counters.backward, [])),
        ("rows", rows(node, counters)),
        ("tables", tables(node, counters)),
        ("rules", rules(node, counters)),
        ("timers_skipped", Value::from(counters.timers_skipped)),
        ("background_faults", Value::from(counters.background_faults)),
    ])
}

fn traffic<const N: usize>(counted: Traffic, more: [(&str, Value); N]) -> Value {
    let Traffic { packets, bytes } = counted;
    let own = [("packets", Value::from(packets)), ("bytes", Value::from(bytes))];
    object(own.into_iter().chain(more))
}

fn rows(node: &Node, counters: &NodeCounters) -> Value {
    let rows = node.model.rows.iter().zip(&counters.rows);
    let row = |(row, counted): (&RowDecl, &Traffic)| {
        let label = ("row", Value::from(row.label.as_str()));
        let text = ("text", Value::from(row.text.as_str()));
        traffic(*counted, [label, text, ("line", Value::from(row.line))])
    };
    rows.map(row).collect()
}

fn tables(node: &Node, counters: &NodeCounters) -> Value {
    let tables = node.model.state.iter().zip(&counters.tables);
    let table = |(table, counted): (&StateDecl, &TableCounters)| {
        let TableCounters { entries, created, refused, evicted, expired } = *counted;
        object([
            ("table", Value::from(table.name.as_str())),
            ("entries", Value::from(entries)),
            ("created", Value::from(created)),
            ("refused", Value::from(refused)),
            ("evicted", Value::from(evicted)),
            ("expired", Value::from(expired)),
        ])
    };
    tables.map(table).collect()
}

fn rules(node: &Node, counters: &NodeCounters) -> Value {
    let by_parameter = counters.rules.iter().filter_map(|(param, counts)| {
        let name = node.model.params.get(*param as usize)?.name.as_str();
        let (default, counts) = counts.split_last()?;
        let counted = (0_u64..).zip(counts).filter(|(_, count)| **count > 0);
        let hits = counted.map(|(rule, count)| {
            object([("rule", Value::from(rule)), ("packets", Value::from(*count))])
        });
        let members = [("default", Value::from(*default)), ("hits", hits.collect())];
        Some((name, object(members)))
    });
    object(by_parameter)
}
