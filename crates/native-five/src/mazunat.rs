//! MazuNAT: hosts on the left share one public IPv4 address, for TCP and UDP (ICMP is left out, as
//! in the paper). Source ports come from a range; the lowest free port is taken first.

use crate::expiring::Expiring;
use crate::saved::{bytes_of, narrow, rows_of};
use braid_native::{
    Action, Dump, Flow, Function, Host, Info, Kind, PacketRef, Payload, ProfileInfo, Verdict,
};
use braid_packet::{Field, Header};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A host's address and port, and their public counterparts.
struct Mapping {
    proto: u128,
    inside: (u128, u128),
    port: u128,
    // Recording.
    /// Flows whose records depend on the mapping.
    recorded: BTreeSet<Flow>,
    // End of recording.
}

/// The function.
pub struct MazuNat {
    public: u128,
    most: usize,
    /// Free ports: intervals, the last port by the first.
    free: BTreeMap<u128, u128>,
    mappings: Expiring<Mapping>,
    /// Numbers of mappings by the host's (protocol, address, port).
    map: HashMap<(u128, u128, u128), u64>,
    /// Numbers of mappings by (protocol, public port).
    back: HashMap<(u128, u128), u64>,
    /// Whether a timer is set for the next mapping that may end.
    armed: bool,
}

static PROFILE: ProfileInfo = ProfileInfo::new(
    c"inet.version inet.src inet.dst inet.proto inet.sport inet.dport",
    c"ip.src ip.dst l4.sport l4.dport",
    1 | 8,
);

const NOT_IPV4: Verdict = Verdict::Drop(0);
const FRAGMENT: Verdict = Verdict::Drop(1);
const NOT_TRANSLATED: Verdict = Verdict::Drop(2);
const NO_MAPPING: Verdict = Verdict::Drop(3);
const PORTS: Verdict = Verdict::Drop(4);
const MAPPINGS: Verdict = Verdict::Drop(5);

/// The fields of the packet as it entered.
struct Came {
    proto: u128,
    src: (u128, u128),
    dst: (u128, u128),
}

impl MazuNat {
    fn take_port(&mut self) -> Option<u128> {
        let (first, last) = self.free.pop_first()?;
        if first < last {
            self.free.insert(first + 1, last);
        }
        Some(first)
    }

    /// Takes a port that a mapping of an earlier instance has.
    fn take_this(&mut self, port: u128) -> Result<(), String> {
        let free = self.free.range(..=port).next_back().map(|(first, last)| (*first, *last));
        let Some((first, last)) = free.filter(|(_, last)| port <= *last) else {
            return Err(format!("port {port} of a mapping is not among its ports"));
        };
        self.free.remove(&first);
        if first < port {
            self.free.insert(first, port - 1);
        }
        if port < last {
            self.free.insert(port + 1, last);
        }
        Ok(())
    }

    fn give_back(&mut self, port: u128) {
        let (mut first, mut last) = (port, port);
        if let Some(end) = self.free.remove(&(port + 1)) {
            last = end;
        }
        let before = self.free.range(..port).next_back().map(|(from, to)| (*from, *to));
        if let Some((from, _)) = before.filter(|(_, to)| to + 1 == port) {
            first = from;
        }
        self.free.insert(first, last);
    }

    /// Ends mappings that were idle for too long and frees their ports.
    fn expire(&mut self, host: &mut Host<'_>) {
        while let Some(mapping) = self.mappings.ended(host.now()) {
            self.map.remove(&(mapping.proto, mapping.inside.0, mapping.inside.1));
            self.back.remove(&(mapping.proto, mapping.port));
            self.give_back(mapping.port);
            // Recording.
            for flow in &mapping.recorded {
                let _ = host.forget(*flow);
            }
            // End of recording.
        }
        self.armed = false;
        self.arm(host);
    }

    fn arm(&mut self, host: &mut Host<'_>) {
        if let Some(deadline) = self.mappings.next_deadline().filter(|_| !self.armed) {
            let wait = deadline.saturating_sub(host.now()).max(1);
            self.armed = host.after::<Self>(wait, 0).is_ok();
        }
    }

    /// The mapping of a host's port, created if it does not exist.
    fn outside(&mut self, came: &Came, now: u64) -> Result<u64, Verdict> {
        let key = (came.proto, came.src.0, came.src.1);
        if let Some(number) = self.map.get(&key) {
            return Ok(*number);
        }
        let port = self.take_port().ok_or(PORTS)?;
        if self.mappings.len() >= self.most {
            self.give_back(port);
            return Err(MAPPINGS);
        }
        let recorded = BTreeSet::new();
        let mapping = Mapping { proto: came.proto, inside: came.src, port, recorded };
        let number = self.mappings.insert(mapping, now);
        self.map.insert(key, number);
        self.back.insert((came.proto, port), number);
        Ok(number)
    }

    /// Processes a packet from a host: its source address and port become public.
    fn forward(&mut self, packet: &mut PacketRef<'_, Self>, came: &Came) -> Verdict {
        let now = packet.host().now();
        let to_public = came.dst.0 == self.public;
        if to_public && !self.back.contains_key(&(came.proto, came.dst.1)) {
            return NO_MAPPING;
        }
        let number = match self.outside(came, now) {
            Ok(number) => number,
            Err(verdict) => return verdict,
        };
        let Some(port) = self.mappings.find(number, now).map(|mapping| mapping.port) else {
            return NO_MAPPING;
        };
        let _ = packet.set(Field::IpSrc, self.public);
        let _ = packet.set(Field::L4Sport, port);
        let to = self.back.get(&(came.proto, came.dst.1)).copied().filter(|_| to_public);
        if let Some(inside) = to.and_then(|to| self.mappings.find(to, now)).map(|m| m.inside) {
            let _ = packet.set(Field::IpDst, inside.0);
            let _ = packet.set(Field::L4Dport, inside.1);
            return Verdict::Back;
        }
        // Recording.
        let changes = [(Field::IpSrc, self.public), (Field::L4Sport, port)];
        self.record(packet, number, changes);
        // End of recording.
        Verdict::Forward
    }

    /// Processes a packet from outside to a public port: it goes to the host of the port's mapping.
    fn backward(&mut self, packet: &mut PacketRef<'_, Self>, came: &Came) -> Verdict {
        let now = packet.host().now();
        let number = self.back.get(&(came.proto, came.dst.1)).copied();
        let number = number.filter(|_| came.dst.0 == self.public);
        let found =
            number.and_then(|number| Some((number, self.mappings.find(number, now)?.inside)));
        let Some((number, inside)) = found else { return NO_MAPPING };
        let _ = packet.set(Field::IpDst, inside.0);
        let _ = packet.set(Field::L4Dport, inside.1);
        // Recording.
        let changes = [(Field::IpDst, inside.0), (Field::L4Dport, inside.1)];
        self.record(packet, number, changes);
        // End of recording.
        Verdict::Forward
    }
}

impl Function for MazuNat {
    const INFO: Info = Info {
        idle_ns: 120_000_000_000,
        reasons: c"not ipv4\nfragment\nprotocol not translated\nno mapping\nports exhausted\n\
                   mappings exhausted",
        profile: Some(&PROFILE),
        ..Info::new(c"shares one public address among hosts on the left")
    };
    /// The mapping that the flow's record depends on.
    type Flow = Option<u64>;

    fn new(host: &mut Host<'_>) -> Result<Self, String> {
        let idle = host.config("idle").unwrap_or(120_000_000_000);
        let ports = host.config_rows::<2>("ports");
        if ports.is_empty() {
            return Err("it needs ports to give away".to_owned());
        }
        let most = host.config("mappings").unwrap_or(61_440);
        Ok(Self {
            public: host.config("public")?,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            free: ports.into_iter().map(|[first, last]| (first, last)).collect(),
            mappings: Expiring::new(u64::try_from(idle).unwrap_or(u64::MAX)),
            map: HashMap::new(),
            back: HashMap::new(),
            armed: false,
        })
    }

    fn packet(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
        if !packet.has(Header::Ip4) {
            return NOT_IPV4;
        }
        if packet.get(Field::PktLaterFragment) == Some(1) {
            return FRAGMENT;
        }
        let backward = packet.get(Field::PktBackward) == Some(1);
        let number = |field| packet.get(field).unwrap_or(0);
        let came = Came {
            proto: number(Field::InetProto),
            src: (number(Field::IpSrc), number(Field::InetSport)),
            dst: (number(Field::IpDst), number(Field::InetDport)),
        };
        if !packet.has(Header::L4) {
            let lost = backward || came.dst.0 == self.public;
            return if lost { NO_MAPPING } else { NOT_TRANSLATED };
        }
        let verdict =
            if backward { self.backward(packet, &came) } else { self.forward(packet, &came) };
        self.arm(packet.host());
        verdict
    }

    fn timer(&mut self, _number: u32, host: &mut Host<'_>) {
        self.expire(host);
    }

    // Recording.
    fn flow_end(&mut self, flow: Flow, kept: Option<u64>, _host: &mut Host<'_>) {
        if let Some(mapping) = kept.and_then(|number| self.mappings.peek(number)) {
            mapping.recorded.remove(&flow);
        }
    }
    // End of recording.

    fn save(&mut self, _host: &mut Host<'_>) -> Option<Vec<u8>> {
        let row = |(number, mapping, seen): (u64, &Mapping, u64)| {
            let Mapping { proto, inside, port, .. } = mapping;
            [number.into(), seen.into(), *proto, inside.0, inside.1, *port]
        };
        let all = self.mappings.all().flat_map(row);
        Some(bytes_of([self.mappings.next().into(); 6].into_iter().chain(all)))
    }

    fn restore(&mut self, bytes: &[u8], host: &mut Host<'_>) -> Result<(), String> {
        let mut rows = rows_of::<6>(bytes)?.into_iter();
        let next = rows.next().map_or(0, |[next, ..]| next);
        for [number, seen, proto, addr, from, port] in rows {
            let (number, inside) = (narrow(number)?, (addr, from));
            self.take_this(port)?;
            let recorded = BTreeSet::new();
            let mapping = Mapping { proto, inside, port, recorded };
            self.mappings.put_back(number, mapping, narrow(seen)?);
            self.map.insert((proto, addr, from), number);
            self.back.insert((proto, port), number);
        }
        self.mappings.go_on(narrow(next)?);
        self.arm(host);
        Ok(())
    }

    fn dump(&self, into: &mut Dump<'_>) {
        for mapping in self.mappings.iter() {
            let (addr, port) = mapping.inside;
            let key = [(Kind::Uint, mapping.proto), (Kind::Ip4, addr), (Kind::Port, port)];
            into.entry(c"map", &key, &[(c"", Kind::Port, mapping.port)]);
        }
    }

    // Recording.
    fn state_function(&mut self, _number: u32, packet: &mut PacketRef<'_, Self>) {
        let now = packet.host().now();
        let number = packet.kept().and_then(|kept| *kept);
        let _found = number.and_then(|number| self.mappings.find(number, now));
        self.arm(packet.host());
    }
    // End of recording.
}

// Recording.
impl MazuNat {
    /// Records that packets of the flow change like this one, as long as the mapping exists.
    fn record(
        &mut self,
        packet: &mut PacketRef<'_, Self>,
        number: u64,
        changes: [(Field, u128); 2],
    ) {
        let Some(flow) = packet.flow() else { return };
        let Some(mapping) = self.mappings.peek(number) else { return };
        if !mapping.recorded.insert(flow) {
            return;
        }
        if let Some(kept) = packet.kept() {
            *kept = Some(number);
        }
        for (field, value) in changes {
            let _ = packet.host().add_header_action(flow, Action::Modify(field, value));
        }
        let _ = packet.host().add_state_function::<Self>(flow, 0, Payload::Ignore);
    }
}
// End of recording.
