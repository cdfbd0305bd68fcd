//! Monitor: counts packets and bytes of each flow. Everything passes.

use crate::saved::{bytes_of, narrow, rows_of};
use braid_native::{
    Action, Dump, Flow, Function, Host, Info, Keeps, Kind, PacketRef, Payload, ProfileInfo, Verdict,
};
use braid_packet::Field;
use std::collections::{BTreeMap, BTreeSet};

/// The counts of a flow.
#[derive(Clone, Copy, Default)]
pub struct Stats {
    packets: u64,
    bytes: u64,
}

/// The function.
pub struct Monitor {
    /// Counts by flow number, which is the order in which flows began.
    stats: BTreeMap<Flow, Stats>,
    /// The flows from an earlier instance, which have no record yet.
    unrecorded: BTreeSet<Flow>,
}

static PROFILE: ProfileInfo =
    ProfileInfo::new(c"inet.version inet.src inet.dst inet.proto inet.sport inet.dport", c"", 0);

impl Monitor {
    fn is_unrecorded(&mut self, flow: Flow) -> bool {
        !self.stats.contains_key(&flow) || self.unrecorded.remove(&flow)
    }

    fn count(&mut self, packet: &mut PacketRef<'_, Self>) {
        let bytes = packet.get(Field::PktLen).and_then(|len| u64::try_from(len).ok());
        if let Some(flow) = packet.flow() {
            let stats = self.stats.entry(flow).or_default();
            stats.packets += 1;
            stats.bytes = stats.bytes.saturating_add(bytes.unwrap_or(0));
        }
    }
}

impl Function for Monitor {
    const INFO: Info = Info {
        idle_ns: 60_000_000_000,
        profile: Some(&PROFILE),
        keeps: Keeps::Flows,
        ..Info::new(c"counts packets and bytes of each flow")
    };
    type Flow = ();

    fn new(_host: &mut Host<'_>) -> Result<Self, String> {
        Ok(Self { stats: BTreeMap::new(), unrecorded: BTreeSet::new() })
    }

    fn packet(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
        // Recording.
        if let Some(flow) = packet.flow().filter(|flow| self.is_unrecorded(*flow)) {
            let host = packet.host();
            let _ = host.add_header_action(flow, Action::Forward);
            let _ = host.add_state_function::<Self>(flow, 0, Payload::Ignore);
        }
        // End of recording.
        self.count(packet);
        Verdict::Forward
    }

    // Recording.
    fn state_function(&mut self, _number: u32, packet: &mut PacketRef<'_, Self>) {
        self.count(packet);
    }
    // End of recording.

    fn flow_end(&mut self, flow: Flow, (): (), _host: &mut Host<'_>) {
        self.stats.remove(&flow);
        self.unrecorded.remove(&flow);
    }

    fn save(&mut self, _host: &mut Host<'_>) -> Option<Vec<u8>> {
        let words = self.stats.iter().flat_map(|(flow, one)| [flow.0, one.packets, one.bytes]);
        Some(bytes_of(words.map(u128::from)))
    }

    fn restore(&mut self, bytes: &[u8], _host: &mut Host<'_>) -> Result<(), String> {
        for [flow, packets, bytes] in rows_of(bytes)? {
            self.stats.insert(
                Flow(narrow(flow)?),
                Stats { packets: narrow(packets)?, bytes: narrow(bytes)? },
            );
        }
        self.unrecorded = self.stats.keys().copied().collect();
        Ok(())
    }

    fn dump(&self, into: &mut Dump<'_>) {
        for (flow, stats) in &self.stats {
            let key = [(Kind::Uint, u128::from(flow.0))];
            let packets = (c"packets", Kind::Uint, u128::from(stats.packets));
            into.entry(c"stats", &key, &[packets, (c"bytes", Kind::Uint, stats.bytes.into())]);
        }
    }
}
