//! Follows flows through the chain, so that a capture taken at one point exercises both directions
//! of NATs and load balancers.
//!
//! The replies in these captures answer the requests as they were captured, not as they left the
//! chain. Following remembers the addresses, the ports and the interface with which each request
//! left. It rewrites a later captured packet of the other direction so that it answers the request
//! as it left, and the packet enters by that interface. ICMP errors are rewritten by the packet
//! that they quote. The later fragments of a rewritten IPv4 packet are rewritten like the first
//! fragment.
//!
//! The first translated packet of a flow makes its direction the direction of requests. Packets of
//! the other direction are replies, and following does not remember how they left. Flows that are
//! not translated need no memory and enter as captured.
//!
//! A packet carries a mark through the chain that functions do not see, and following remembers the
//! captured 5-tuple of each mark. So following recognises the packet when it leaves, even if it was
//! held on the way, and does not mistake packets that functions built for it. If several packets
//! leave for one packet, the last one counts, because copies leave first.

use crate::keys::{Ends, KeySet, Keyed, Keys};
use braid_packet::{Field, FlowKey, Header, Layout, Packet};
use std::collections::{HashMap, VecDeque};

/// The most flows to remember. Translated flows beyond it enter as captured, and are counted.
pub const FLOW_LIMIT: usize = 1 << 20;

/// The most fragmented packets whose later fragments are awaited. The oldest is forgotten first.
pub const FRAGMENT_LIMIT: usize = 1 << 12;

/// The most packets whose captured 5-tuples are remembered. A packet that is held while this many
/// others enter is not recognised when it leaves.
const MARKS: usize = 1 << 16;

/// The counters of following.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FollowCounters {
    /// Translated flows that are remembered.
    pub flows: u64,
    /// Packets that were rewritten before they entered.
    pub rewritten: u64,
    /// Packets of translated flows that were not remembered because of [`FLOW_LIMIT`].
    pub full: u64,
}

/// Remembers how captured requests left the chain.
#[derive(Debug)]
pub struct Follow {
    ends: Ends,
    flows: Keys<Left>,
    flow_limit: usize,
    /// The keys that packets had in the capture, for flows that have not left yet.
    pending: KeySet,
    // The map of the standard library, because its hash is keyed and the keys come from packets.
    fragments: HashMap<FragmentKey, Left>,
    /// Fragment keys in the order of arrival.
    awaited: VecDeque<FragmentKey>,
    /// The packets that entered, by mark. Only the latest [`MARKS`] packets are remembered.
    entered: Vec<Entered>,
    /// The mark of the latest packet.
    mark: u32,
    counters: FollowCounters,
}

/// A captured packet that entered.
#[derive(Clone, Copy, Debug)]
struct Entered {
    mark: u32,
    key: Keyed,
    interface: u16,
}

/// The keys of a captured packet: its own, and that of the packet that it quotes.
pub(crate) struct Captured {
    own: Option<Keyed>,
    quoted: Option<Keyed>,
    /// Whether the packet is an ICMP error.
    is_error: bool,
}

/// The 5-tuple with which a request left, and its interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Left {
    key: FlowKey,
    interface: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct FragmentKey {
    src: u128,
    dst: u128,
    proto: u8,
    id: u128,
}

impl Default for Follow {
    fn default() -> Self {
        Self::with_limit(FLOW_LIMIT)
    }
}

impl Follow {
    /// Sets the most flows to remember.
    #[must_use]
    pub fn with_limit(flow_limit: usize) -> Self {
        Self {
            ends: Ends::default(),
            flows: Keys::default(),
            flow_limit,
            pending: KeySet::default(),
            fragments: HashMap::new(),
            awaited: VecDeque::new(),
            entered: Vec::new(),
            mark: 0,
            counters: FollowCounters::default(),
        }
    }

    /// The counters of following.
    #[must_use]
    pub fn counters(&self) -> FollowCounters {
        FollowCounters { flows: self.flows.len() as u64, ..self.counters }
    }

    /// The keys of a captured packet.
    pub(crate) fn look(&self, packet: &Packet, layout: &Layout) -> Captured {
        let keyed = |key: FlowKey| Keyed::new(key, &self.ends);
        let is_error = layout.has(Header::Quoted);
        let quoted = packet.quoted_flow_key(layout);
        Captured { own: packet.flow_key(layout).map(keyed), quoted: quoted.map(keyed), is_error }
    }

    /// Whether [`Self::reply`] depends on packets that have entered and may still be in the chain.
    pub(crate) fn waits(&self, captured: &Captured) -> bool {
        let asked = captured.quoted.or_else(|| captured.own.map(Keyed::reversed));
        asked.is_some_and(|asked| self.pending.contains(&asked))
    }

    /// Records that all packets that have entered have left, have ended, or are held. With
    /// `forgets`, none is held.
    pub(crate) fn settle(&mut self, forgets: bool) {
        self.pending.clear();
        if forgets {
            self.mark = 0;
        }
    }

    /// Rewrites a captured packet if it is a reply, and returns the interface by which the request
    /// left.
    pub fn reply(&mut self, packet: &mut Packet, layout: &Layout) -> Option<u16> {
        let captured = self.look(packet, layout);
        self.reply_of(&captured, packet, layout)
    }

    /// As [`Self::reply`], for a packet with these keys.
    pub(crate) fn reply_of(
        &mut self,
        captured: &Captured,
        packet: &mut Packet,
        layout: &Layout,
    ) -> Option<u16> {
        let left = match (captured.quoted, captured.own) {
            (Some(quoted), Some(own)) => self.rewrite_error(packet, layout, (quoted, own.key)),
            (None, Some(own)) => self.rewrite_reply(packet, layout, own),
            (_, None) => None,
        }?;
        self.counters.rewritten += 1;
        Some(left.interface)
    }

    fn rewrite_error(
        &self,
        packet: &mut Packet,
        layout: &Layout,
        (quoted, outer): (Keyed, FlowKey),
    ) -> Option<Left> {
        let left = *self.flows.get(&quoted)?;
        let quoted = quoted.key;
        // An error goes to the sender of the quoted packet. The destination itself may send the
        // error.
        let mut to = outer;
        to.dst = if outer.dst == quoted.src { left.key.src } else { outer.dst };
        to.src = if outer.src == quoted.dst { left.key.dst } else { outer.src };
        rewrite(packet, layout, &QUOTED, quoted, left.key);
        rewrite(packet, layout, &OUTER, outer, to);
        Some(left)
    }

    fn rewrite_reply(&mut self, packet: &mut Packet, layout: &Layout, own: Keyed) -> Option<Left> {
        let fragment = fragment_key(packet, layout, own.key);
        let left = match (layout.is_later_fragment(), fragment) {
            (true, Some(fragment)) => *self.fragments.get(&fragment)?,
            _ => *self.flows.get(&own.reversed())?,
        };
        if let (false, Some(fragment)) = (layout.is_later_fragment(), fragment) {
            self.await_fragments(fragment, left);
        }
        rewrite(packet, layout, &OUTER, own.key, left.key.reversed());
        Some(left)
    }

    fn await_fragments(&mut self, fragment: FragmentKey, left: Left) {
        if self.fragments.insert(fragment, left).is_some() {
            return;
        }
        self.awaited.push_back(fragment);
        if self.awaited.len() > FRAGMENT_LIMIT
            && let Some(oldest) = self.awaited.pop_front()
        {
            self.fragments.remove(&oldest);
        }
    }

    /// Marks a captured packet that enters, so that it is recognised when it leaves.
    pub fn enter(&mut self, packet: &mut Packet, layout: &Layout, interface: u16) {
        let captured = self.look(packet, layout);
        self.mark(&captured, packet, interface);
    }

    /// As [`Self::enter`], for a packet with these keys. [`Self::waits`] takes the packet into
    /// account.
    pub(crate) fn enter_as(&mut self, captured: &Captured, packet: &mut Packet, interface: u16) {
        if let Some(own) = captured.own {
            self.pending.insert(own);
        }
        self.mark(captured, packet, interface);
    }

    fn mark(&mut self, captured: &Captured, packet: &mut Packet, interface: u16) {
        let Some(key) = captured.own.filter(|_| !captured.is_error) else { return };
        self.mark = self.mark.wrapping_add(1).max(1);
        packet.mark = self.mark;
        let entered = Entered { mark: self.mark, key, interface };
        match self.entered.get_mut(place(self.mark)) {
            Some(place) => *place = entered,
            None => self.entered.push(entered),
        }
    }

    /// Remembers how a marked packet leaves, and removes its marks.
    pub fn leave(&mut self, packet: &mut Packet, interface: u16) {
        let mark = std::mem::take(&mut packet.mark);
        let entered = self.entered.get(place(mark)).filter(|entered| entered.mark == mark);
        let Some(&Entered { key: captured, interface: from, .. }) = entered else { return };
        // A packet that returns to its origin is an answer, not a translation.
        if from == interface {
            return;
        }
        // A key of another version or protocol cannot be written into a reply.
        let old = captured.key;
        let writable =
            |key: &FlowKey| (key.version, key.proto) == (old.version, old.proto) && *key != old;
        match packet.flow_key(&packet.parse()).filter(writable) {
            Some(key) => self.remember(captured, Left { key, interface }),
            None => drop(self.flows.remove(&captured)),
        }
    }

    fn remember(&mut self, captured: Keyed, left: Left) {
        if self.flows.len() >= self.flow_limit && !self.flows.contains_key(&captured) {
            self.counters.full += 1;
        } else {
            self.flows.insert(captured, left);
        }
    }
}

/// The place of a mark in [`Follow::entered`]. Marks begin with 1, and no packet has the mark 0.
fn place(mark: u32) -> usize {
    mark.wrapping_sub(1) as usize % MARKS
}

/// The key that all fragments of one IPv4 packet share; `None` if the packet is not fragmented. (No
/// field contains the identification of IPv6 fragments, so their later fragments enter as
/// captured.)
fn fragment_key(packet: &Packet, layout: &Layout, key: FlowKey) -> Option<FragmentKey> {
    if !layout.is_fragment() {
        return None;
    }
    let id = packet.get(layout, Field::IpId)?;
    Some(FragmentKey { src: key.src, dst: key.dst, proto: key.proto, id })
}

/// The writable fields of a flow key.
struct KeyFields {
    v4: (Field, Field),
    v6: (Field, Field),
    ports: (Header, Field, Field),
    echo: [(Header, Field); 2],
}

const OUTER: KeyFields = KeyFields {
    v4: (Field::IpSrc, Field::IpDst),
    v6: (Field::Ip6Src, Field::Ip6Dst),
    ports: (Header::L4, Field::L4Sport, Field::L4Dport),
    echo: [(Header::IcmpEcho, Field::IcmpId), (Header::Icmp6Echo, Field::Icmp6Id)],
};

const QUOTED: KeyFields = KeyFields {
    v4: (Field::QuotedIpSrc, Field::QuotedIpDst),
    v6: (Field::QuotedIp6Src, Field::QuotedIp6Dst),
    ports: (Header::QuotedL4, Field::QuotedSport, Field::QuotedDport),
    echo: [(Header::QuotedEcho, Field::QuotedId); 2],
};

/// Writes the fields in which two keys of one version and protocol differ.
fn rewrite(packet: &mut Packet, layout: &Layout, fields: &KeyFields, from: FlowKey, to: FlowKey) {
    let (src, dst) = if from.version == 4 { fields.v4 } else { fields.v6 };
    let mut write = |field, from: u128, to: u128| {
        if from != to {
            packet.set(layout, field, to);
        }
    };
    write(src, from.src, to.src);
    write(dst, from.dst, to.dst);
    let (ports, sport, dport) = fields.ports;
    if layout.has(ports) {
        write(sport, from.sport.into(), to.sport.into());
        write(dport, from.dport.into(), to.dport.into());
    } else if let Some((_, id)) = fields.echo.iter().find(|(header, _)| layout.has(*header)) {
        write(*id, from.sport.into(), to.sport.into());
    }
}
