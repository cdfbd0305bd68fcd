//! Maglev: spreads the flows to one address over backends by consistent hashing (Eisenbud et al.,
//! NSDI 2016, §3.4). It keeps the backend of each flow: a flow moves only when its backend fails.

use crate::saved::{bytes_of, narrow, rows_of};
use braid_externs::Backends;
use braid_externs::maglev::Table;
use braid_externs::ops::hash::of_args;
use braid_native::{
    Action, Flow, Full, Function, Host, Info, PacketRef, Payload, ProfileInfo, Verdict,
};
use braid_packet::Field;
use std::collections::BTreeMap;

/// Backends: the address of each, and whether it is up.
struct Servers(Vec<(u128, bool)>);

impl Backends for Servers {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn name(&self, index: usize) -> u128 {
        self.0.get(index).map_or(0, |one| one.0)
    }

    fn is_up(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|one| one.1)
    }
}

/// The data for a flow.
#[derive(Clone, Copy, Default)]
pub struct Kept {
    hash: u32,
    chosen: Option<usize>,
}

/// The function.
pub struct Maglev {
    vip: u128,
    servers: Servers,
    table: Table,
    // Recording.
    /// The backend of each flow that has a record.
    recorded: BTreeMap<Flow, (Kept, usize)>,
    // End of recording.
}

static PROFILE: ProfileInfo = ProfileInfo::new(
    c"inet.version inet.src inet.dst inet.proto inet.sport inet.dport",
    c"ip.src ip.dst",
    1,
);
/// Stands for no server where servers are saved by their IPv4 addresses.
const NO_SERVER: u128 = u128::MAX;
const NO_BACKEND: Verdict = Verdict::Drop(0);

/// The parts of a flow's key, each with its width.
const KEY: [(Field, u16); 6] = [
    (Field::InetVersion, 8),
    (Field::InetSrc, 128),
    (Field::InetDst, 128),
    (Field::InetProto, 8),
    (Field::InetSport, 16),
    (Field::InetDport, 16),
];

impl Maglev {
    /// The backend of a flow now.
    fn target(&self, kept: Kept) -> Option<usize> {
        let chosen = kept.chosen.filter(|chosen| self.servers.is_up(*chosen));
        chosen.or_else(|| self.table.lookup(kept.hash.into()).map(|at| at as usize))
    }

    /// Processes a packet to the address that stands for all backends.
    fn forward(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
        let args = KEY.map(|(field, width)| (packet.get(field).unwrap_or(0), width));
        let Some(kept) = packet.kept() else { return NO_BACKEND };
        kept.hash = of_args(&args);
        let before = *kept;
        let Some(target) = self.target(before) else { return NO_BACKEND };
        if let Some(kept) = packet.kept() {
            kept.chosen = Some(target);
        }
        // Recording.
        self.record(packet, target);
        // End of recording.
        let _ = packet.set(Field::IpDst, self.servers.name(target));
        Verdict::Forward
    }
}

fn servers(host: &Host<'_>) -> Result<Servers, String> {
    let rows = host.config_rows::<2>("servers");
    if rows.is_empty() {
        return Err("it needs at least one backend".to_owned());
    }
    Ok(Servers(rows.into_iter().map(|[addr, up]| (addr, up == 1)).collect()))
}

impl Function for Maglev {
    const INFO: Info = Info {
        full: Full::EvictOldest,
        idle_ns: 300_000_000_000,
        reasons: c"no backend is up",
        profile: Some(&PROFILE),
        ..Info::new(c"spreads flows over backends by consistent hashing")
    };
    type Flow = Kept;

    fn new(host: &mut Host<'_>) -> Result<Self, String> {
        let servers = servers(host)?;
        let table = Table::new(&servers);
        Ok(Self { vip: host.config("vip")?, servers, table, recorded: BTreeMap::new() })
    }

    fn packet(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
        let backward = packet.get(Field::PktBackward) == Some(1);
        if !backward && packet.get(Field::IpDst) == Some(self.vip) {
            return self.forward(packet);
        }
        let src = packet.get(Field::IpSrc);
        if backward && self.servers.0.iter().any(|(addr, _)| src == Some(*addr)) {
            let _ = packet.set(Field::IpSrc, self.vip);
        }
        Verdict::Forward
    }

    fn change(&mut self, parameter: &str, host: &mut Host<'_>) -> Result<(), String> {
        if parameter != "servers" {
            return Err(format!("`{parameter}` cannot be changed while it runs"));
        }
        self.servers = servers(host)?;
        self.table = Table::new(&self.servers);
        // Recording.
        for flow in self.recorded.keys() {
            let _ = host.notify(*flow);
        }
        // End of recording.
        Ok(())
    }

    fn save(&mut self, host: &mut Host<'_>) -> Option<Vec<u8>> {
        let mut words = Vec::new();
        for flow in host.flows() {
            let Some(kept) = host.flow::<Self>(flow).copied() else { continue };
            // A server is saved by its address: its place in the list may change.
            let server = kept.chosen.map_or(NO_SERVER, |at| self.servers.name(at));
            words.extend([flow.0.into(), kept.hash.into(), server]);
        }
        Some(bytes_of(words))
    }

    fn restore(&mut self, bytes: &[u8], host: &mut Host<'_>) -> Result<(), String> {
        for [flow, hash, server] in rows_of(bytes)? {
            let hash = narrow(hash)?;
            let chosen = self.servers.0.iter().position(|(addr, _)| *addr == server);
            if let Some(kept) = host.flow::<Self>(Flow(narrow(flow)?)) {
                *kept = Kept { hash, chosen };
            }
        }
        Ok(())
    }

    // Recording.
    fn flow_end(&mut self, flow: Flow, _kept: Kept, _host: &mut Host<'_>) {
        self.recorded.remove(&flow);
    }

    fn state_function(&mut self, _number: u32, packet: &mut PacketRef<'_, Self>) {
        let Some(kept) = packet.kept().copied() else { return };
        let target = self.target(kept);
        if let Some(kept) = packet.kept() {
            kept.chosen = target;
        }
    }

    fn condition(&mut self, _number: u32, flow: Flow, _host: &mut Host<'_>) -> bool {
        let recorded = self.recorded.get(&flow);
        recorded.is_some_and(|(kept, target)| self.target(*kept) != Some(*target))
    }
    // End of recording.
}

// Recording.
impl Maglev {
    /// Records that the flow's packets go to the same backend as this one. When backends change,
    /// the record ends and the next packet makes a new one.
    fn record(&mut self, packet: &mut PacketRef<'_, Self>, target: usize) {
        let (flow, kept) = (packet.flow(), packet.kept().copied());
        let Some((flow, kept)) = flow.zip(kept) else { return };
        if self.recorded.get(&flow).is_some_and(|(_, before)| *before == target) {
            return;
        }
        self.recorded.insert(flow, (kept, target));
        let (addr, host) = (self.servers.name(target), packet.host());
        let _ = host.add_header_action(flow, Action::Modify(Field::IpDst, addr));
        let _ = host.add_state_function::<Self>(flow, 0, Payload::Ignore);
        let _ = host.register_guard::<Self>(flow, 0, None, false);
    }
}
// End of recording.
