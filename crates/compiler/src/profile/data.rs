//! An action profile as data.

use braid_packet::{Field, Header};
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;

/// The actions of a function on packets and state.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Profile {
    /// The function's name.
    pub function: String,
    /// The origin of a native function's profile: `declared` by the function, `observed` in a run,
    /// or `assumed`, which means that it may do everything. A model's profile is derived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<&'static str>,
    /// Fields that it reads: in conditions and values, and as implicit keys.
    #[serde(serialize_with = "field_names")]
    pub reads: BTreeSet<Field>,
    /// Fields that it assigns, without the checksums and lengths that follow.
    #[serde(serialize_with = "field_names")]
    pub writes: BTreeSet<Field>,
    /// Headers whose presence it tests.
    #[serde(serialize_with = "header_names")]
    pub tests: BTreeSet<Header>,
    /// Headers that it adds.
    #[serde(serialize_with = "header_names")]
    pub adds: BTreeSet<Header>,
    /// Headers that it removes.
    #[serde(serialize_with = "header_names")]
    pub removes: BTreeSet<Header>,
    /// Whether it reads bytes behind the headers.
    pub reads_payload: bool,
    /// Whether it changes bytes behind the headers.
    pub writes_payload: bool,
    /// Tags that it reads.
    pub reads_tags: BTreeSet<String>,
    /// Tags that it sets.
    pub writes_tags: BTreeSet<String>,
    /// The reasons for which its rows drop packets.
    pub drops: BTreeSet<String>,
    /// Faults that may drop a packet: `index`, `division`, `no_entry`, `resubmit`, `truncated`.
    pub faults: BTreeSet<&'static str>,
    /// Ports that packets leave by: `onward`, `back`, or a port's name.
    pub outputs: BTreeSet<String>,
    /// Shapes of the packets that it builds: `tcp`, `icmp6`, …; `bytes` for those of native code.
    pub creates: BTreeSet<&'static str>,
    /// Whether it makes copies: mirrors, or several outputs.
    pub copies: bool,
    /// Whether bytes of the packet are copied into other packets: mirrors, several outputs, quotes.
    pub copies_bytes: bool,
    /// Whether it absorbs packets.
    pub consumes: bool,
    /// Queues that hold its packets.
    pub holds: BTreeSet<String>,
    /// Whether a packet may run through it more than once.
    pub resubmits: bool,
    /// Its state, in declaration order.
    pub state: Vec<StateUse>,
    /// Pools that it takes members from or returns them to.
    pub pools: BTreeSet<String>,
    /// Events that it publishes.
    pub events: BTreeSet<String>,
    /// Events of other functions that it takes.
    pub takes: BTreeSet<String>,
    /// Externs that it calls.
    pub externs: BTreeSet<String>,
    /// Externs that read or change the state of their instance: the health of backends, the random
    /// generator.
    pub stateful_externs: BTreeSet<String>,
    /// Whether it acts without a packet: timers, expiry handlers.
    pub acts_on_time: bool,
}

/// How a function uses a state table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StateUse {
    /// The table's name.
    pub name: String,
    /// Its granularity: `global`, `flow`, `biflow`, `(ip.src, l4.sport)`.
    pub per: String,
    /// Whether packets read it, or test whether it has an entry.
    pub reads: bool,
    /// Whether packets assign or delete entries.
    pub writes: bool,
    /// Whether finding an entry moves its deadline, which makes the read a write, too.
    pub renews: bool,
    /// Whether timers or expiry handlers read or write it.
    pub on_time: bool,
}

/// The use of a column of NFP Table 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Not used.
    None,
    /// Read only.
    Read,
    /// Written only.
    Write,
    /// Read and written.
    ReadWrite,
}

impl Use {
    pub(super) fn of(reads: bool, writes: bool) -> Self {
        match (reads, writes) {
            (false, false) => Use::None,
            (true, false) => Use::Read,
            (false, true) => Use::Write,
            (true, true) => Use::ReadWrite,
        }
    }

    /// As in NFP Table 2: nothing, `R`, `W`, `R/W`.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Use::None => "",
            Use::Read => "R",
            Use::Write => "W",
            Use::ReadWrite => "R/W",
        }
    }
}

/// The address and port columns of NFP Table 2, with the fields that belong to each.
pub const COLUMNS: &[(&str, &[Field])] = &[
    ("SIP", &[Field::IpSrc, Field::Ip6Src, Field::InetSrc]),
    ("DIP", &[Field::IpDst, Field::Ip6Dst, Field::InetDst]),
    ("SPORT", &[Field::L4Sport, Field::TcpSport, Field::UdpSport, Field::InetSport]),
    ("DPORT", &[Field::L4Dport, Field::TcpDport, Field::UdpDport, Field::InetDport]),
];

impl Profile {
    /// The use of these fields taken together.
    #[must_use]
    pub fn uses(&self, fields: &[Field]) -> Use {
        let any = |set: &BTreeSet<Field>| fields.iter().any(|field| set.contains(field));
        Use::of(any(&self.reads), any(&self.writes))
    }

    /// The use of the payload.
    #[must_use]
    pub fn payload(&self) -> Use {
        Use::of(self.reads_payload, self.writes_payload)
    }

    /// Whether it changes the header stack.
    #[must_use]
    pub fn adds_or_removes(&self) -> bool {
        !self.adds.is_empty() || !self.removes.is_empty()
    }
}

fn field_names<S: Serializer>(fields: &BTreeSet<Field>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(fields.iter().map(|field| field.info().name))
}

fn header_names<S: Serializer>(
    headers: &BTreeSet<Header>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(headers.iter().map(|header| header.name()))
}
