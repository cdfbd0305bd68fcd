//! An interface as a host on its link: it answers for its addresses, finds the MAC address of the
//! next hop of packets that leave, and handles packets that are too long.

use super::errors::{self, Why};
use super::limit::Limit;
use super::messages::{self, BROADCAST, Host, Mac, Said};
use super::mld;
use super::others::Others;
use super::out::{NEIGHBOUR_LIMIT, NO_GATEWAY, NO_NEIGHBOUR, Out, TOO_LONG, TOO_LONG_ANSWERED};
use super::status::{Counts, Told};
use super::table::{State, Table, Way};
use super::too_long::{self, ETHERNET};
use crate::owned::Owned;
use braid_io::Ethernet;
use braid_ir::chain::{self, OwnAddress, TooLong};
use braid_packet::{Field, Frame, Link as LinkType, Packet, ether_type, proto};
use std::collections::VecDeque;
use std::net::IpAddr;

/// EtherTypes.
const ARP: [u8; 2] = ether_type::ARP.to_be_bytes();
const IP4: [u8; 2] = ether_type::IPV4.to_be_bytes();
const IP6: [u8; 2] = ether_type::IPV6.to_be_bytes();

/// The most addresses of functions that an interface probes and announces at its start. It answers
/// for all addresses.
const MOST_CLAIMED: usize = 256;

/// The times between the steps of a start: after the question who else has the addresses, and
/// between two announcements (those of RFC 5227 are longer).
const STEPS_NS: [u64; 2] = [200_000_000, 2_000_000_000];

/// The least time between two announcements that defend an address (RFC 5227 2.4).
const DEFENCE_NS: u64 = 10_000_000_000;

/// The fate of a frame that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arriving {
    /// It enters the chain.
    Enters,
    /// It is for another host.
    Ends,
    /// It may be for the interface itself.
    IsHeard,
}

/// The fate of a packet that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leaving {
    /// It is sent.
    Sends,
    /// It waits for the MAC address of its next hop.
    Waits,
    /// It is lost for this reason.
    Lost(&'static str),
}

/// An interface on its link.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) number: u16,
    pub(super) declared: chain::Interface,
    mac: Mac,
    /// The MTU of the device, if it is known.
    mtu: Option<u32>,
    is_up: bool,
    has_ip4: bool,
    has_ip6: bool,
    neighbours: Table,
    others: Others,
    answers: Limit,
    questions: Limit,
    errors: Limit,
    /// The next step of the start, and its time.
    step: (usize, u64),
    defended_ns: u64,
    /// The identification of the last packet that got one when it was split.
    last_id: u16,
    members: mld::Members,
    counts: Counts,
}

impl Link {
    /// An interface with this number. `None` if it has nothing to do.
    pub(super) fn new(number: u16, declared: &chain::Interface) -> Option<Self> {
        let is_needed = !declared.addresses.is_empty() || declared.too_long == TooLong::Fragment;
        let has = |is_ip6| declared.addresses.iter().any(|own| own.address.is_ipv6() == is_ip6);
        let [high, low] = number.to_be_bytes();
        is_needed.then(|| Self {
            number,
            declared: declared.clone(),
            // For devices without a MAC address of their own.
            mac: declared.mac.unwrap_or([2, b'b', b'r', 0, high, low]),
            mtu: None,
            is_up: false,
            has_ip4: has(false),
            has_ip6: has(true),
            neighbours: Table::default(),
            others: Others::default(),
            answers: Limit::new(1000, 200),
            questions: Limit::new(500, 500),
            errors: Limit::new(100, 50),
            step: (0, u64::MAX),
            defended_ns: 0,
            last_id: 0,
            members: mld::Members::default(),
            counts: Counts::default(),
        })
    }

    /// Whether the interface has this declaration.
    pub(super) fn is_same(&self, declared: &chain::Interface) -> bool {
        self.declared == *declared
    }

    /// Whether the interface is a host, and not only the end of a wire.
    fn is_host(&self) -> bool {
        self.has_ip4 || self.has_ip6
    }

    /// Takes over the facts that the device reports; all others stay. The interface starts anew if
    /// its MAC address is new or the device has come up.
    pub(super) fn device(&mut self, told: Option<Ethernet>, is_up: bool, now_ns: u64) {
        let mac = self.declared.mac.or(told.map(|told| told.mac)).unwrap_or(self.mac);
        self.mtu = told.map(|told| told.mtu).or(self.mtu);
        let starts = is_up && !self.is_up || mac != self.mac;
        (self.mac, self.is_up) = (mac, is_up);
        if starts {
            self.start_anew(now_ns);
        }
    }

    /// Probes for other hosts with the same addresses, and announces the addresses to neighbours.
    pub(super) fn start_anew(&mut self, now_ns: u64) {
        if self.is_host() {
            self.step = (0, now_ns);
        }
    }

    fn own(&self, address: IpAddr) -> bool {
        self.declared.addresses.iter().any(|own| own.address == address)
    }

    /// Whether the interface answers for an address: its own one, or one of a function on its link
    /// that no other host has.
    fn answers_for(&self, address: IpAddr, owned: &Owned) -> bool {
        let is_on_link = || self.declared.addresses.iter().any(|own| own.is_on_link(address));
        self.own(address)
            || owned.has(address)
                && is_on_link()
                && !self.others.have(address)
                && !self.declared.gateways.contains(&address)
    }

    /// The fate of a frame that has arrived, from a quick look at its headers.
    pub(super) fn arrive(&mut self, frame: &[u8]) -> Arriving {
        let Some(header) = frame.first_chunk::<ETHERNET>() else { return Arriving::Enters };
        if !self.is_host() {
            return Arriving::Enters;
        }
        if header[0] & 1 == 0 && header[..6] != self.mac {
            self.counts.for_others += 1;
            return Arriving::Ends;
        }
        let is_heard = match [header[12], header[13]] {
            ARP => self.has_ip4,
            IP4 => frame.get(ETHERNET + 9) == Some(&proto::ICMP) && self.is_for_own(frame),
            IP6 if frame.get(ETHERNET + 6) == Some(&proto::ICMP6) => {
                let is_ndp = matches!(frame.get(ETHERNET + 40), Some(135 | 136));
                is_ndp && self.has_ip6 || self.is_for_own(frame)
            }
            IP6 => self.has_ip6 && mld::may_be_query(frame),
            _ => false,
        };
        if is_heard { Arriving::IsHeard } else { Arriving::Enters }
    }

    fn is_for_own(&self, frame: &[u8]) -> bool {
        destination(frame).is_some_and(|to| self.own(to))
    }

    /// Handles a frame for the interface itself. Returns the frame if it is for the chain after
    /// all.
    pub(super) fn hear(
        &mut self,
        frame: Frame,
        now_ns: u64,
        owned: &Owned,
        out: &mut Out,
    ) -> Option<Frame> {
        let is_arp = frame.bytes().get(12..ETHERNET) == Some(&ARP);
        if let Some(query) = mld::read(frame.bytes()) {
            match query {
                Some(query) => {
                    let groups = mld::groups(&self.claimed(owned));
                    self.members.hear(query, &groups, self.mac, now_ns);
                }
                None => self.counts.invalid += 1,
            }
            return None;
        }
        let packet = Packet::in_frame(LinkType::Ethernet, now_ns, frame, 0);
        if is_arp {
            self.heard(messages::read_arp(&packet), &packet, now_ns, owned, out);
            return None;
        }
        let layout = packet.parse();
        if let Some(said) = messages::read_ndp(&packet, &layout) {
            self.heard(said, &packet, now_ns, owned, out);
            return None;
        }
        if !messages::is_echo_request(&packet, &layout) || layout.is_fragment() {
            return Some(packet.into_frame());
        }
        match messages::echo_reply(&packet, &layout) {
            None => self.counts.invalid += 1,
            Some(_) if !self.answers.allows(now_ns) => self.counts.not_answered += 1,
            Some(answer) => {
                self.counts.answered_echo += 1;
                out.own.push((self.number, answer.into_frame()));
            }
        }
        None
    }

    /// Reports the multicast groups of the interface to switches and routers.
    fn report_groups(&self, is_answer: bool, owned: &Owned, out: &mut Out) {
        let own = self.declared.addresses.iter().map(|own| own.address);
        let groups = mld::groups(&self.claimed(owned));
        let reports = mld::reports(self.mac, mld::link_local(own), &groups, is_answer);
        out.own.extend(reports.into_iter().map(|report| (self.number, report)));
    }

    /// The addresses that the interface probes and announces at its start: its own ones, and those
    /// of functions.
    fn claimed(&self, owned: &Owned) -> Vec<IpAddr> {
        let own = self.declared.addresses.iter().map(|own| own.address);
        let of_functions = owned.first(MOST_CLAIMED);
        let all = own.chain(of_functions.into_iter().filter(|address| !self.own(*address)));
        all.filter(|address| self.answers_for(*address, owned)).collect()
    }

    /// Learns from a message of a neighbour, and answers it.
    fn heard(
        &mut self,
        said: Option<Said>,
        packet: &Packet,
        now_ns: u64,
        owned: &Owned,
        out: &mut Out,
    ) {
        let Some(said) = said else {
            self.counts.invalid += 1;
            return;
        };
        match said {
            Said::Asks { target, asker, mac } => {
                if let (Some(asker), Some(mac)) = (asker, mac)
                    && !self.is_taken(asker, mac, now_ns, owned, out)
                {
                    let is_for_us = self.answers_for(target, owned);
                    let is_new = is_for_us && self.declared.is_on_link(asker);
                    self.learn(asker, mac, State::Heard, is_new, out);
                }
                if self.answers_for(target, owned) {
                    let from = packet.get(&packet.parse(), Field::EthSrc).map(messages::mac_of);
                    self.answer(target, asker, mac.or(from), now_ns, out);
                }
            }
            Said::Has { address, mac, is_answer, overrides } => {
                let known = self.neighbours.known(address);
                let mac = mac.or(known.and_then(|(mac, _)| mac));
                let Some(mac) = mac else { return };
                if self.is_taken(address, mac, now_ns, owned, out) {
                    return;
                }
                let before = known.and_then(|(mac, _)| mac);
                if !overrides && before.is_some_and(|before| before != mac) {
                    return;
                }
                let was_asked = matches!(known, Some((_, State::Asked { .. })));
                let state =
                    if is_answer && was_asked { State::confirmed(now_ns) } else { State::Heard };
                self.learn(address, mac, state, false, out);
            }
        }
    }

    /// Whether a host that claims an address claims one of the interface or of a function.
    fn is_taken(
        &mut self,
        address: IpAddr,
        mac: Mac,
        now_ns: u64,
        owned: &Owned,
        out: &mut Out,
    ) -> bool {
        let is_own = self.own(address);
        if mac == self.mac || !is_own && !owned.has(address) {
            return false;
        }
        self.others.hear(address, mac, now_ns);
        if is_own && now_ns.saturating_sub(self.defended_ns) >= DEFENCE_NS {
            self.defended_ns = now_ns;
            let host = Host { mac: self.mac, address };
            out.own.push((self.number, messages::statement(host, None)));
        }
        is_own
    }

    fn learn(&mut self, address: IpAddr, mac: Mac, state: State, is_new: bool, out: &mut Out) {
        let (waited, lost) = self.neighbours.learn(address, mac, state, is_new);
        self.lose(lost, NEIGHBOUR_LIMIT, out);
        self.release(waited, mac, out);
    }

    /// Sends the packets that have waited for a MAC address.
    fn release(&mut self, waited: VecDeque<Packet>, mac: Mac, out: &mut Out) {
        for mut packet in waited {
            self.finish(&mut packet, Some(mac), out);
            out.waited.push((self.number, packet));
        }
    }

    fn lose(&self, packets: usize, reason: &'static str, out: &mut Out) {
        out.lost.extend((0..packets).map(|_| (self.number, reason)));
    }

    fn answer(
        &mut self,
        target: IpAddr,
        asker: Option<IpAddr>,
        mac: Option<Mac>,
        now_ns: u64,
        out: &mut Out,
    ) {
        let Some(mac) = mac.filter(|mac| messages::is_host(*mac)) else {
            self.counts.invalid += 1;
            return;
        };
        if !self.answers.allows(now_ns) {
            self.counts.not_answered += 1;
            return;
        }
        match target {
            IpAddr::V4(_) => self.counts.answered_arp += 1,
            IpAddr::V6(_) => self.counts.answered_ndp += 1,
        }
        let host = Host { mac: self.mac, address: target };
        out.own.push((self.number, messages::statement(host, Some((mac, asker)))));
    }

    /// Prepares a packet that leaves: it goes to the MAC address of its next hop, from the
    /// interface's own one. Never inlined, so that the loop over packets of other interfaces is
    /// short.
    #[inline(never)]
    pub(super) fn leave(&mut self, packet: &mut Packet, now_ns: u64, out: &mut Out) -> Leaving {
        let Some(to) = destination(packet.data()) else { return Leaving::Sends };
        if self.is_too_long(packet)
            && let Some(reason) = self.too_long(packet, to, now_ns, out)
        {
            return Leaving::Lost(reason);
        }
        let mac = if self.is_host() {
            match self.mac_of(to, packet, now_ns, out) {
                Ok(mac) => Some(mac),
                Err(leaving) => return leaving,
            }
        } else {
            None
        };
        self.finish(packet, mac, out);
        Leaving::Sends
    }

    /// The MAC address to which a packet goes, or the packet's fate if it cannot go now.
    fn mac_of(
        &mut self,
        to: IpAddr,
        packet: &mut Packet,
        now_ns: u64,
        out: &mut Out,
    ) -> Result<Mac, Leaving> {
        if let Some(mac) = messages::group(to) {
            return Ok(mac);
        }
        let Some(hop) = self.next_hop(to) else {
            self.tell_unreachable(packet, Why::NoNetwork, now_ns, out);
            return Err(Leaving::Lost(NO_GATEWAY));
        };
        match self.neighbours.way(hop, now_ns) {
            Way::Known(mac) => return Ok(mac),
            Way::Doubtful(mac) => {
                if self.questions.allows(now_ns) {
                    self.ask(hop, Some(mac), now_ns, out);
                }
                return Ok(mac);
            }
            Way::Silent => {
                self.tell_unreachable(packet, Why::NoHost, now_ns, out);
                return Err(Leaving::Lost(NO_NEIGHBOUR));
            }
            Way::Asked => {}
            Way::Unknown => {
                let own = &self.declared.addresses;
                if own.iter().any(|own| own.broadcast() == Some(hop)) {
                    return Ok(BROADCAST);
                }
                if self.own(hop) {
                    return Err(Leaving::Lost(NO_NEIGHBOUR));
                }
                if !self.questions.allows(now_ns) {
                    return Err(Leaving::Lost(NEIGHBOUR_LIMIT));
                }
                self.ask(hop, None, now_ns, out);
            }
        }
        let link = packet.link;
        let packet = std::mem::replace(packet, Packet::empty(link));
        let lost = self.neighbours.wait(hop, packet);
        self.lose(lost, NEIGHBOUR_LIMIT, out);
        Err(Leaving::Waits)
    }

    /// The neighbour that a packet to an address goes to.
    fn next_hop(&self, to: IpAddr) -> Option<IpAddr> {
        if self.declared.is_on_link(to) {
            return Some(to);
        }
        let is_same = |gateway: &&IpAddr| gateway.is_ipv6() == to.is_ipv6();
        self.declared.gateways.iter().find(is_same).copied()
    }

    /// Asks for a neighbour, by a unicast message if its MAC address is known.
    fn ask(&mut self, hop: IpAddr, mac: Option<Mac>, now_ns: u64, out: &mut Out) {
        let lost = self.neighbours.ask(hop, now_ns);
        self.lose(lost, NEIGHBOUR_LIMIT, out);
        self.counts.asked += 1;
        let from = asker(&self.declared.addresses, hop);
        out.own.push((self.number, messages::question(self.mac, from, hop, mac)));
    }

    fn is_too_long(&self, packet: &Packet) -> bool {
        let most = self.mtu.and_then(|mtu| usize::try_from(mtu).ok());
        most.is_some_and(|most| packet.data().len() > most + ETHERNET)
    }

    /// Handles a packet that is too long. Returns the reason for which it is lost, or `None` if it
    /// leaves in fragments.
    fn too_long(
        &mut self,
        packet: &Packet,
        to: IpAddr,
        now_ns: u64,
        out: &mut Out,
    ) -> Option<&'static str> {
        match self.declared.too_long {
            TooLong::Drop => return Some(TOO_LONG),
            TooLong::Fragment if too_long::may_fragment(packet) => return None,
            TooLong::Fragment | TooLong::Icmp => {}
        }
        let why = self.mtu.map(|mtu| Why::TooLong { mtu });
        if !why.is_some_and(|why| self.tell(packet, to, why, now_ns, out)) {
            return Some(TOO_LONG);
        }
        self.counts.told_too_long += 1;
        Some(TOO_LONG_ANSWERED)
    }

    /// Sends an ICMP error about a packet to its sender, if an error may be sent. Returns whether
    /// it was sent.
    fn tell(&mut self, packet: &Packet, to: IpAddr, why: Why, now_ns: u64, out: &mut Out) -> bool {
        let from = asker(&self.declared.addresses, to);
        let error = from.and_then(|own| errors::error(packet, (own, self.mac), why));
        let Some(mut error) = error.filter(|_| self.errors.allows(now_ns)) else { return false };
        error.ingress = self.number;
        out.errors.push(error);
        true
    }

    fn tell_unreachable(&mut self, packet: &Packet, why: Why, now_ns: u64, out: &mut Out) {
        let to = destination(packet.data());
        if to.is_some_and(|to| self.tell(packet, to, why, now_ns, out)) {
            self.counts.told_unreachable += 1;
        }
    }

    /// Writes the MAC addresses of a packet, and splits the packet into fragments if it is too
    /// long.
    fn finish(&mut self, packet: &mut Packet, mac: Option<Mac>, out: &mut Out) {
        if let (Some(mac), Some(bytes)) = (mac, packet.data_mut().first_chunk_mut::<12>()) {
            bytes[..6].copy_from_slice(&mac);
            bytes[6..].copy_from_slice(&self.mac);
        }
        if self.is_too_long(packet)
            && let Some(mtu) = self.mtu.and_then(|mtu| usize::try_from(mtu).ok())
        {
            let more = |later| out.fragments.push((self.number, later));
            too_long::fragment(packet, mtu, &mut self.last_id, more);
        }
    }

    /// Performs the due work: announcements, and questions to neighbours that have not answered.
    pub(super) fn advance(&mut self, now_ns: u64, owned: &Owned, out: &mut Out) {
        while now_ns >= self.step.1 {
            let (step, at_ns) = self.step;
            self.start(step, owned, out);
            let wait_ns = STEPS_NS.get(step).copied().unwrap_or(u64::MAX);
            self.step = (step + 1, at_ns.saturating_add(wait_ns));
        }
        for address in self.others.advance(now_ns) {
            if self.questions.allows(now_ns) {
                out.own.push((self.number, messages::question(self.mac, None, address, None)));
            }
        }
        if self.members.answers(now_ns) {
            self.report_groups(true, owned, out);
        }
        let Self { neighbours, questions, counts, declared, number, mac: own, .. } = self;
        let lost = neighbours.advance(now_ns, |address, mac| {
            let asks = questions.allows(now_ns);
            if asks {
                counts.asked += 1;
                let from = asker(&declared.addresses, address);
                out.own.push((*number, messages::question(*own, from, address, mac)));
            }
            asks
        });
        self.lose(lost.len(), NO_NEIGHBOUR, out);
        lost.iter().for_each(|packet| self.tell_unreachable(packet, Why::NoHost, now_ns, out));
    }

    /// Asks whether other hosts have the addresses of the interface and of functions (step 0). In
    /// later steps, announces the addresses to its neighbours, so that they learn a new MAC
    /// address.
    fn start(&mut self, step: usize, owned: &Owned, out: &mut Out) {
        if self.has_ip6 {
            self.report_groups(false, owned, out);
        }
        for address in self.claimed(owned) {
            let frame = match step {
                0 => messages::question(self.mac, None, address, None),
                _ => messages::statement(Host { mac: self.mac, address }, None),
            };
            out.own.push((self.number, frame));
        }
    }

    /// Records that a frame of the interface's own was not sent.
    pub(super) fn note_unsent(&mut self) {
        self.counts.unsent += 1;
    }

    /// The number of packets that wait.
    pub(super) fn waiting(&self) -> usize {
        self.neighbours.waiting()
    }

    /// Counts all packets that wait as lost.
    pub(super) fn end(&mut self, out: &mut Out) {
        let lost = self.neighbours.clear_waiting();
        self.lose(lost, NO_NEIGHBOUR, out);
    }

    /// The facts about the interface that are shown to users.
    pub(super) fn told(&self) -> Told<'_> {
        let Self { mac, mtu, declared, counts, others, neighbours, .. } = self;
        Told { mac: *mac, mtu: *mtu, declared, counts, others, neighbours }
    }
}

/// The address from which an interface asks for another one: one with the same prefix if possible.
fn asker(own: &[OwnAddress], wanted: IpAddr) -> Option<IpAddr> {
    let same = || own.iter().filter(|own| own.address.is_ipv6() == wanted.is_ipv6());
    let near = same().find(|own| own.is_on_link(wanted));
    // A link-local address has no meaning for hosts on other links.
    let is_local = |a: &OwnAddress| matches!(a.address, IpAddr::V6(a) if a.is_unicast_link_local());
    let found = near.or_else(|| same().find(|own| !is_local(own))).or_else(|| same().next());
    found.map(|own| own.address)
}

/// The destination of an IP packet without VLAN tags.
fn destination(frame: &[u8]) -> Option<IpAddr> {
    let at = |offset: usize| frame.get(ETHERNET + offset..);
    match *frame.get(12..ETHERNET)?.first_chunk::<2>()? {
        IP4 => Some(IpAddr::from(*at(16)?.first_chunk::<4>()?)),
        IP6 => Some(IpAddr::from(*at(24)?.first_chunk::<16>()?)),
        _ => None,
    }
}
