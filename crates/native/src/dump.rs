//! The state that an instance shows.

use crate::host::State;
use braid_ir::native::COUNTERS;
use braid_packet::FlowKey;
use serde::{Deserialize, Serialize};

/// The meaning of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// A plain number.
    Uint,
    /// An IPv4 address.
    Ip4,
    /// An IPv6 address.
    Ip6,
    /// A transport port.
    Port,
}

/// An entry of the function's state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The table's name.
    pub table: String,
    /// The parts of the key.
    pub key: Vec<(Kind, u128)>,
    /// Values with their names.
    pub values: Vec<(String, Kind, u128)>,
    /// When it was created (ns).
    pub created_ns: u64,
    /// When a packet last found it (ns).
    pub last_seen_ns: u64,
    /// When it ends if no packet finds it before (ns); `None` if it never ends.
    pub expires_ns: Option<u64>,
}

/// The flows (each with the size of its record) and the counters.
pub(crate) fn of_host(state: &State) -> Vec<Entry> {
    let flows = state.flows.iter().map(|(number, flow)| {
        let recorded = state.recorded.get(&number);
        let count = |count: usize| count as u128;
        let values = [
            ("actions", recorded.map_or(0, |record| count(record.headers.len()))),
            ("functions", recorded.map_or(0, |record| count(record.state.len()))),
            ("guards", recorded.map_or(0, |record| count(record.guards.len()))),
        ];
        Entry {
            table: "flows".to_owned(),
            key: key(&flow.key),
            values: values.map(|(name, value)| (name.to_owned(), Kind::Uint, value)).to_vec(),
            created_ns: flow.created_ns,
            last_seen_ns: flow.last_seen_ns,
            expires_ns: state.flows.expires(flow),
        }
    });
    let counters = state.counters.iter().map(|(name, count)| Entry {
        table: COUNTERS.to_owned(),
        key: Vec::new(),
        values: vec![(name.clone(), Kind::Uint, u128::from(*count))],
        created_ns: 0,
        last_seen_ns: 0,
        expires_ns: None,
    });
    flows.chain(counters).collect()
}

fn key(key: &FlowKey) -> Vec<(Kind, u128)> {
    let addr = if key.version == 4 { Kind::Ip4 } else { Kind::Ip6 };
    vec![
        (Kind::Uint, key.version.into()),
        (addr, key.src),
        (addr, key.dst),
        (Kind::Uint, key.proto.into()),
        (Kind::Port, key.sport.into()),
        (Kind::Port, key.dport.into()),
    ]
}
