//! State and events as JSON lines with sorted keys. Addresses are written as text. Times,
//! durations, sizes and all other numbers are written as numbers, or as decimal text beyond 64
//! bits.

use crate::listing::{sums, united};
use braid_ir::chain::Chain;
use braid_ir::engine::{Event, EventValue, StateEntry};
use braid_ir::model::{Kind, Word};
use braid_ir::show::{groups, string};
use serde_json::Value;
use std::collections::BTreeMap;

/// Creates an object with sorted keys (whatever features of the library other crates enable).
pub(crate) fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Value)>) -> Value {
    let sorted: BTreeMap<String, Value> =
        members.into_iter().map(|(key, value)| (key.into(), value)).collect();
    Value::Object(sorted.into_iter().collect())
}

/// Formats a scalar.
#[must_use]
pub fn scalar(kind: Kind, value: Word) -> Value {
    match kind {
        Kind::Bool => Value::Bool(value != 0),
        Kind::Ip4 | Kind::Ip6 | Kind::Addr | Kind::Mac | Kind::Bytes => {
            Value::String(kind.show(value))
        }
        Kind::Uint
        | Kind::Port
        | Kind::Duration
        | Kind::Time
        | Kind::Size
        | Kind::Bitrate
        | Kind::Length => {
            u64::try_from(value).map_or_else(|_| Value::String(value.to_string()), Value::from)
        }
    }
}

/// Formats a scalar or a string.
fn group(values: &[(Kind, Word)]) -> Value {
    match (string(values), values) {
        (Some(text), _) => Value::String(text),
        (None, [(kind, word), ..]) => scalar(*kind, *word),
        (None, []) => Value::Null,
    }
}

/// The name of a function that is given by its number.
pub(crate) fn function(chain: &Chain, node: u16) -> Value {
    chain.nodes.get(usize::from(node)).map_or(Value::Null, |node| Value::from(node.name.as_str()))
}

/// A state entry. The keys are `created_ns`, `expires_ns` (null if it never expires), `function`,
/// `key` (a list, empty for global state), `last_seen_ns`, `table`, `value` (an object for
/// records), and `shard` in chains with several workers (null if the entry is a sum over them).
#[must_use]
pub fn state_entry(chain: &Chain, entry: &StateEntry) -> Value {
    let unnamed: Vec<_> = entry.slots.iter().map(|(_, kind, word)| (*kind, *word)).collect();
    let value = match &entry.slots[..] {
        [(name, kind, word)] if name.is_empty() => scalar(*kind, *word),
        [(_, Kind::Length, _), ..] => group(&unnamed),
        slots => object(slots.iter().map(|(name, kind, word)| (name, scalar(*kind, *word)))),
    };
    let mut members = vec![
        ("created_ns", Value::from(entry.created_ns)),
        ("expires_ns", entry.expires_ns.map_or(Value::Null, Value::from)),
        ("function", function(chain, entry.node)),
        ("key", groups(&entry.key).map(group).collect()),
        ("last_seen_ns", Value::from(entry.last_seen_ns)),
        ("table", Value::from(entry.table.as_str())),
        ("value", value),
    ];
    if chain.workers > 1 {
        let is_sum = sums(chain, entry).is_some();
        members.push(("shard", if is_sum { Value::Null } else { Value::from(entry.shard) }));
    }
    object(members)
}

/// An event. The keys are `event` (its type), `extends` (types, nearest first), `fields` (an
/// object), `function`, `time_ns`.
#[must_use]
pub fn event(chain: &Chain, event: &Event) -> Value {
    let field = |(name, value): &(String, EventValue)| {
        let value = match value {
            EventValue::Scalar(kind, word) => scalar(*kind, *word),
            EventValue::Str(text) => Value::from(text.as_str()),
        };
        (name.clone(), value)
    };
    object([
        ("event", Value::from(event.name.as_str())),
        ("extends", Value::from(event.ancestors.clone())),
        ("fields", object(event.fields.iter().map(field))),
        ("function", function(chain, event.node)),
        ("time_ns", Value::from(event.time_ns)),
    ])
}

/// Formats state entries, one line each. In tables whose function only counts, the entries of all
/// workers for one key become one.
pub fn state_lines(chain: &Chain, entries: Vec<StateEntry>) -> impl Iterator<Item = String> {
    united(chain, entries).into_iter().map(|entry| state_entry(chain, &entry).to_string())
}
