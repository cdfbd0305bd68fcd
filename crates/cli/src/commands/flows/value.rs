//! Flow records as JSON.

use std::sync::Arc;

use braid_engine::{
    Basis, Change as Sum, Dependency, FlowRecord, Missing, OuterHeaders, Part, Splice, Update,
};
use braid_ir::model::{Kind, ParamId, Word};
use braid_packet::Field;
use braid_runtime::json::scalar;
use serde_json::{Map, Value, json};

use super::bits::Condition;
use super::described::{
    Described, Listing, PathEnd, PathPart, Shown, VlanTag, payload_word, pushes, shape,
};
use super::fields::{self, Named, named};
use crate::commands::names::Names;

/// Formats the flow table.
pub fn value(table: &Listing<'_>, shown: Shown) -> Value {
    let names = table.names;
    let (flows, records) = (table.flows, table.flows.records);
    let templates: Vec<Value> =
        table.templates.iter().map(|template| names.template_value(template)).collect();
    let mut value = json!({
        "chain": names.0.name,
        "hits": flows.hits,
        "guard_failures": flows.guard_failures,
        "misses": flows.misses,
        "rest_hits": flows.rest_hits,
        "part_hits": flows.part_hits,
        "now": records.made - records.ended,
        "made": records.made,
        "by_scripts": flows.scripted,
        "renewed": flows.renewed,
        "ended": records.ended,
        "refused": records.refused,
        "contended": records.contended,
        "templates": templates,
    });
    if let Shown::Records(most) = shown {
        let records = table.records.iter().take(most);
        value["records"] = records.map(|record| names.record_value(table, record)).collect();
        value["left_out"] = json!(table.records.len() - most);
    }
    value
}

/// Formats fields as an object, by name.
fn object(all: impl IntoIterator<Item = Named>) -> Value {
    let members = all.into_iter().map(|(field, value)| (field, Value::from(value)));
    Value::Object(members.collect::<Map<_, _>>())
}

fn key(parts: &[(Kind, Word)]) -> Value {
    parts.iter().map(|(kind, value)| scalar(*kind, *value)).collect()
}

fn direction(backward: bool) -> &'static str {
    if backward { "backward" } else { "forward" }
}

impl Names<'_> {
    fn template_value(self, described: &Described<'_>) -> Value {
        let Described { template, .. } = *described;
        let (path, effects) = (&template.path, &template.path.effects);
        let rule = |(node, param, rule): &(u16, ParamId, u32)| json!({ "function": self.name(*node), "rules": self.param(*node, *param), "rule": rule });
        let part = |part: &PathPart<'_>| {
            let rows = part.rows.iter().map(|row| {
                let (label, text) = self.row(part.node, *row);
                json!({ "row": label, "text": text })
            });
            let native = part.native.as_ref().map(|native| {
                let state = native.state.iter().map(|payload| payload_word(*payload));
                json!({ "state": state.collect::<Value>(), "guards": native.guards })
            });
            json!({
                "function": self.name(part.node),
                "model": self.model(part.node),
                "direction": direction(part.backward),
                "rows": rows.collect::<Value>(),
                "payload": part.state.map(payload_word),
                "events": part.events,
                "native": native,
            })
        };
        let guard = |one: &Condition| {
            json!({
                "text": one.to_string(),
                "field": one.field,
                "mask": one.mask,
                "least": one.least,
                "most": one.most,
            })
        };
        let tag = |(name, value): &(Arc<str>, Word)| json!({ "tag": &**name, "value": value.to_string() });
        let splice = |splice: &Splice| match splice {
            Splice::In { at, bytes } => json!({ "at": at, "in": bytes }),
            Splice::Out { at, len } => json!({ "at": at, "out": len }),
        };
        let push = |tag: VlanTag| json!({ "tpid": tag.tpid, "id": tag.id, "pcp": tag.pcp, "dei": tag.dei });
        let adds = path.rewrites().flat_map(|rewrite| rewrite.adds.iter());
        let sums = [0, 1].map(|at| path.rewrites().any(|rewrite| rewrite.sums[at]));
        json!({
            "template": template.number,
            "program": template.program,
            "enters": self.name(template.point.node),
            "direction": direction(template.point.backward),
            "shape": shape(template),
            "functions": described.parts.iter().map(part).collect::<Value>(),
            "batches": described.batches.iter().map(|group| self.names(group)).collect::<Value>(),
            "rules": path.rules.iter().map(rule).collect::<Value>(),
            "link": object(fields::link(path)),
            "guards": described.conditions.iter().map(guard).collect::<Value>(),
            "depends_on": path.bases.iter().map(|basis| self.basis(*basis)).collect::<Value>(),
            "outdated": template.is_outdated,
            "writes": described.writes.iter().map(|(field, _)| field.info().name).collect::<Value>(),
            "adds": adds.map(|add| add.field.info().name).collect::<Value>(),
            "unwraps": path.lost_headers(),
            "pops": effects.vlans.lost,
            "pushes": pushes(template).map(push).collect::<Value>(),
            "tags": effects.tags.iter().map(tag).collect::<Value>(),
            "splices": effects.splices.iter().map(splice).collect::<Value>(),
            "outer": effects.outer.iter().map(OuterHeaders::names).collect::<Value>(),
            "ttl": path.ttl(),
            "checksums": { "ip": sums[0], "transport": sums[1] },
            "copies": template.copies.iter().map(|copy| self.interface(*copy)).collect::<Value>(),
            "end": self.end_value(&described.end),
            "records": template.records,
            "packets": template.packets,
            "bytes": template.bytes,
        })
    }

    fn basis(self, Basis { node, param, part }: Basis) -> Value {
        let (function, name) = (self.name(node), self.param(node, param));
        match part {
            Part::Whole => json!({ "function": function, "param": name, "part": "all" }),
            Part::Members => json!({ "function": function, "param": name, "part": "members" }),
            Part::Backend(number) => {
                json!({ "function": function, "param": name, "part": "backend", "backend": number })
            }
        }
    }

    fn names(self, nodes: &[u16]) -> Value {
        nodes.iter().map(|node| self.name(*node)).collect()
    }

    fn end_value(self, end: &PathEnd<'_>) -> Value {
        match end {
            PathEnd::Leave(interface) => {
                json!({ "what": "leave", "interface": self.interface(*interface) })
            }
            PathEnd::Drop(node, row, reason) => json!({
                "what": "drop",
                "function": self.name(*node),
                "row": self.row(*node, *row).0,
                "reason": reason,
            }),
            PathEnd::Consume(node) => json!({ "what": "consume", "function": self.name(*node) }),
            PathEnd::Onward(node) => json!({ "what": "onward", "function": self.name(*node) }),
        }
    }

    pub fn record_value(self, table: &Listing<'_>, record: &FlowRecord) -> Value {
        let add =
            |(field, amount): &(Field, u32)| (field.info().name.to_owned(), amount.to_string());
        let absent = |one: &Missing| json!({ "function": self.name(one.node), "table": one.table, "key": key(&one.key) });
        json!({
            "template": record.template,
            "key": object(table.key(record)),
            "writes": object(table.assigned(record).map(named)),
            "adds": object(record.adds.iter().map(add)),
            "checksums": { "ip": record.sums[0], "transport": record.sums[1] },
            "packets": record.packets,
            "bytes": record.bytes,
            "last_taken_ns": record.seen_ns,
            "depends_on": record.depends_on.iter().map(|one| self.resting(one)).collect::<Value>(),
            "absent": record.absent.iter().map(absent).collect::<Value>(),
        })
    }

    fn resting(self, one: &Dependency) -> Value {
        let entry = &one.entry;
        let slots = entry.slots.iter().enumerate();
        let read = slots.filter(|(slot, _)| one.reads >> (*slot).min(63) & 1 == 1);
        let read = read.map(|(_, (name, kind, value))| (name.clone(), scalar(*kind, *value)));
        let change = |Update { slot, change }: &Update| {
            let name = self.slot(entry.node, &entry.table, *slot);
            match change {
                Sum::Time => json!({ "slot": name, "change": "time" }),
                Sum::Add { packets, bytes, wraps } => {
                    let bound = one.bounds.iter().find(|bound| bound.slot == *slot);
                    json!({
                        "slot": name, "change": "add", "for_packet": packets, "for_byte": bytes,
                        "wraps": wraps,
                        "least": bound.map(|bound| bound.least.to_string()),
                        "most": bound.map(|bound| bound.most.to_string()),
                    })
                }
            }
        };
        json!({
            "function": self.name(entry.node),
            "table": entry.table,
            "key": key(&entry.key),
            "reads": Value::Object(read.collect::<Map<_, _>>()),
            "changes": one.updates.iter().map(change).collect::<Value>(),
        })
    }
}
