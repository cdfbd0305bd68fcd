//! IDS: searches payloads for signatures and reports the first one found. With `block`, packets
//! with a signature are dropped.

use crate::search::{Search, Signature};
use braid_native::{Action, Function, Host, Info, Keeps, PacketRef, Payload, ProfileInfo, Verdict};
use braid_packet::{Field, Header};

/// The function.
pub struct Ids {
    search: Search,
    block: bool,
    alerts: i32,
}

static PROFILE: ProfileInfo = ProfileInfo::new(
    c"payload inet.version inet.src inet.dst inet.proto inet.sport inet.dport",
    c"",
    1,
);
const SIGNATURE: u32 = 0;
const TRUNCATED: u32 = 1;

impl Ids {
    /// The reason for dropping a packet, if it is dropped.
    fn inspect(&self, packet: &mut PacketRef<'_, Self>) -> Option<u32> {
        if !packet.has(Header::Inet) {
            return None;
        }
        let Some(payload) = packet.payload() else { return Some(TRUNCATED) };
        let number = self.search.lowest(payload)?;
        let number_of = |field| packet.get(field).unwrap_or(0);
        let [src, dst] = [Field::InetSrc, Field::InetDst].map(|field| {
            let addr = number_of(field);
            match (packet.get(Field::InetVersion), u32::try_from(addr)) {
                (Some(4), Ok(addr)) => std::net::Ipv4Addr::from(addr).to_string(),
                _ => std::net::Ipv6Addr::from(addr).to_string(),
            }
        });
        let [proto, sport, dport] =
            [Field::InetProto, Field::InetSport, Field::InetDport].map(number_of);
        let text = format!(
            "signature {number}: protocol {proto}, {src} port {sport} to {dst} port {dport}"
        );
        let alerts = self.alerts;
        packet.host().log("alert", &text);
        packet.host().count(alerts, 1);
        self.block.then_some(SIGNATURE)
    }
}

impl Function for Ids {
    const INFO: Info = Info {
        idle_ns: 60_000_000_000,
        reasons: c"signature\ntruncated",
        profile: Some(&PROFILE),
        keeps: Keeps::Nothing,
        ..Info::new(c"looks for signatures in payloads")
    };
    /// Whether the flow has a record.
    type Flow = bool;

    fn new(host: &mut Host<'_>) -> Result<Self, String> {
        let rows = host.config_rows::<3>("signatures");
        if rows.is_empty() {
            return Err("it needs signatures: without any, everything would pass".to_owned());
        }
        let signature = |(at, [number, regex, nocase]): (usize, &[u128; 3])| Signature {
            number: u32::try_from(*number).unwrap_or(u32::MAX),
            regex: *regex == 1,
            nocase: *nocase == 1,
            text: host.config_text("signatures", at).unwrap_or_default(),
        };
        let signatures: Vec<_> = rows.iter().enumerate().map(signature).collect();
        let search = Search::new(&signatures)?;
        let block = host.config("block").unwrap_or(0) == 1;
        Ok(Self { search, block, alerts: host.counter("alerts") })
    }

    // It has no memory but its counter, which Braid keeps, and its records, which come again.
    fn save(&mut self, _host: &mut Host<'_>) -> Option<Vec<u8>> {
        Some(Vec::new())
    }

    fn restore(&mut self, _bytes: &[u8], _host: &mut Host<'_>) -> Result<(), String> {
        Ok(())
    }

    fn packet(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
        let dropped = self.inspect(packet);
        // Recording.
        // Drops depend on the payload. Therefore a flow is recorded only if none of its packets can
        // be dropped.
        if dropped.is_none() && !self.block {
            let new = packet.kept().is_some_and(|kept| !std::mem::replace(kept, true));
            if let Some(flow) = packet.flow().filter(|_| new) {
                let host = packet.host();
                let _ = host.add_header_action(flow, Action::Forward);
                let _ = host.add_state_function::<Self>(flow, 0, Payload::Read);
            }
        }
        // End of recording.
        dropped.map_or(Verdict::Forward, Verdict::Drop)
    }

    // Recording.
    fn state_function(&mut self, _number: u32, packet: &mut PacketRef<'_, Self>) {
        let _ = self.inspect(packet);
    }
    // End of recording.
}
