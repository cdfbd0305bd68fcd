//! IPFilter: drops what its rules do not let pass, scanned one after the other. What is not IP passes.

use crate::rules::Rules;
use braid_native::{Action, Flow, Function, Host, Info, PacketRef, ProfileInfo, Verdict};
use braid_packet::{Field, Header};

/// The function.
pub struct IpFilter {
    rules: Rules,
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
        ..Info::new(c"drops what its rules do not let pass")
    };
    /// Whether the flow is recorded.
    type Flow = bool;

    fn new(host: &mut Host<'_>) -> Result<Self, String> {
        Ok(Self { rules: Rules::new(host, "filter")? })
    }

    fn packet(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
        let pass = !packet.has(Header::Inet) || self.rules.pass(packet);
        // Recording.
        if let Some(flow) = self.to_be_recorded(packet) {
            let action = if pass { Action::Forward } else { Action::Drop(0) };
            let _ = packet.host().add_header_action(flow, action);
        }
        // End of recording.
        if pass { Verdict::Forward } else { Verdict::Drop(0) }
    }

    fn change(&mut self, _parameter: &str, host: &mut Host<'_>) -> Result<(), String> {
        self.rules = Rules::new(host, "filter")?;
        Ok(())
    }
}

// Recording.
impl IpFilter {
    /// A flow all of whose packets get the same answer: one with ports, so that no fragment has its key.
    fn to_be_recorded(&self, packet: &mut PacketRef<'_, Self>) -> Option<Flow> {
        let port = |field| packet.get(field).is_some_and(|port| port != 0);
        if !self.rules.is_by_flow() || !port(Field::L4Sport) || !port(Field::L4Dport) {
            return None;
        }
        let flow = packet.flow()?;
        (!std::mem::replace(packet.kept()?, true)).then_some(flow)
    }
}
// End of recording.
