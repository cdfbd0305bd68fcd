//! IPFilter: drops packets that its rules do not pass. The rules are tried in order. Packets that
//! are not IP pass.

use crate::rules::Rules;
use braid_native::{Action, Flow, Function, Host, Info, Keeps, PacketRef, ProfileInfo, Verdict};
use braid_packet::{Field, Header};
use std::collections::HashSet;

/// The function.
pub struct IpFilter {
    rules: Rules,
    // Recording.
    /// The number of the rule set, and the flows that have a record made from it.
    generation: u64,
    recorded: HashSet<Flow>,
    // End of recording.
}

static PROFILE: ProfileInfo = ProfileInfo::new(
    c"inet.version inet.src inet.dst inet.proto inet.sport inet.dport tcp.flags icmp.type icmp.code \
      icmp6.type icmp6.code",
    c"",
    1,
);

impl Function for IpFilter {
    const INFO: Info = Info {
        idle_ns: 60_000_000_000,
        reasons: c"filtered",
        profile: Some(&PROFILE),
        keeps: Keeps::Nothing,
        ..Info::new(c"drops what its rules do not let pass")
    };
    /// The number of the rule set from which the flow's last record was made.
    type Flow = u64;

    fn new(host: &mut Host<'_>) -> Result<Self, String> {
        let rules = Rules::new(host, "filter")?;
        Ok(Self { rules, generation: 1, recorded: HashSet::new() })
    }

    // It has no memory but its records, which come again.
    fn save(&mut self, _host: &mut Host<'_>) -> Option<Vec<u8>> {
        Some(Vec::new())
    }

    fn restore(&mut self, _bytes: &[u8], _host: &mut Host<'_>) -> Result<(), String> {
        Ok(())
    }

    fn packet(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
        let pass = !packet.has(Header::Inet) || self.rules.pass(packet);
        // Recording.
        if let Some(flow) = self.unrecorded(packet) {
            let action = if pass { Action::Forward } else { Action::Drop(0) };
            let _ = packet.host().add_header_action(flow, action);
        }
        // End of recording.
        if pass { Verdict::Forward } else { Verdict::Drop(0) }
    }

    fn change(&mut self, _parameter: &str, host: &mut Host<'_>) -> Result<(), String> {
        self.rules = Rules::new(host, "filter")?;
        // Recording.
        self.generation += 1;
        for flow in self.recorded.drain() {
            let _ = host.forget(flow);
        }
        // End of recording.
        Ok(())
    }

    // Recording.
    fn flow_end(&mut self, flow: Flow, _kept: u64, _host: &mut Host<'_>) {
        self.recorded.remove(&flow);
    }
    // End of recording.
}

// Recording.
impl IpFilter {
    /// The flow of a packet, if it has no current record and all its packets get the same answer.
    /// It must have ports, so that no fragment has its key.
    fn unrecorded(&mut self, packet: &mut PacketRef<'_, Self>) -> Option<Flow> {
        let port = |field| packet.get(field).is_some_and(|port| port != 0);
        if !self.rules.is_by_flow() || !port(Field::L4Sport) || !port(Field::L4Dport) {
            return None;
        }
        let flow = packet.flow()?;
        let before = std::mem::replace(packet.kept()?, self.generation);
        (before != self.generation && self.recorded.insert(flow)).then_some(flow)
    }
}
// End of recording.
