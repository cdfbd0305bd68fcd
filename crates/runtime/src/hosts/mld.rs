//! Memberships in multicast groups, by MLDv2 (RFC 3810): switches deliver questions about an IPv6
//! address only to ports whose hosts have joined the address's group.

use super::messages::{Mac, group, solicited};
use super::too_long::ETHERNET;
use braid_packet::Frame;
use braid_packet::checksum::rfc1071;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

/// The group of all routers that know MLDv2, to which reports go.
const ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);

/// The group of all hosts. Each host is a member without a report.
const HOSTS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// A hop-by-hop header in front of ICMPv6. It tells routers to look at the packet although it is
/// not addressed to them.
const ROUTER_ALERT: [u8; 8] = [58, 0, 5, 2, 0, 0, 1, 0];

const QUERY: u8 = 130;
const REPORT: u8 = 143;

/// Types of records: the interface is a member of a group, or has become a member.
const IS_EXCLUDE: u8 = 2;
const TO_EXCLUDE: u8 = 4;

/// The offsets of an IPv6 header's fields, and of the headers behind it.
const NEXT: usize = ETHERNET + 6;
const SOURCE: usize = ETHERNET + 8;
const DESTINATION: usize = ETHERNET + 24;
const ICMP: usize = ETHERNET + 48;

/// The most groups of a report: it fits in the least MTU of IPv6.
const MOST_GROUPS: usize = 60;

/// A query for members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Query {
    /// The group; `None`: all groups.
    pub(super) group: Option<Ipv6Addr>,
    /// The time within which members answer.
    pub(super) within_ns: u64,
}

/// The time at which an interface answers queries for members.
#[derive(Debug, Default)]
pub(super) struct Members {
    due_ns: Option<u64>,
}

impl Members {
    /// Records a query. The interface answers later, so that not all members answer at once.
    pub(super) fn hear(
        &mut self,
        query: Query,
        groups: &BTreeSet<Ipv6Addr>,
        mac: Mac,
        now_ns: u64,
    ) {
        if query.group.is_none_or(|group| groups.contains(&group)) {
            let answer_ns = now_ns.saturating_add(query.within_ns / 256 * u64::from(mac[5]));
            self.due_ns = Some(self.due_ns.map_or(answer_ns, |due_ns| due_ns.min(answer_ns)));
        }
    }

    /// Whether the interface answers now.
    pub(super) fn answers(&mut self, now_ns: u64) -> bool {
        self.due_ns.take_if(|due_ns| now_ns >= *due_ns).is_some()
    }
}

/// The groups to which neighbour solicitations for these addresses go, if they are IPv6 addresses.
pub(super) fn groups(addresses: &[IpAddr]) -> BTreeSet<Ipv6Addr> {
    let addresses = addresses.iter().filter_map(|address| match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(*address),
    });
    addresses.map(solicited).collect()
}

/// The address from which an interface with these addresses reports.
pub(super) fn link_local(own: impl Iterator<Item = IpAddr>) -> Option<Ipv6Addr> {
    own.filter_map(|own| match own {
        IpAddr::V6(address) if address.is_unicast_link_local() => Some(address),
        _ => None,
    })
    .next()
}

/// Whether a frame may hold a query. This test is cheap.
pub(super) fn may_be_query(frame: &[u8]) -> bool {
    frame.get(NEXT) == Some(&0) && frame.get(ICMP) == Some(&QUERY)
}

/// Reads a query (RFC 3810 5.1 and 6.2). The outer `None`: the frame holds no query. The inner
/// `None`: the query is malformed, or comes from another link.
pub(super) fn read(frame: &[u8]) -> Option<Option<Query>> {
    may_be_query(frame).then(|| read_query(frame))
}

fn read_query(frame: &[u8]) -> Option<Query> {
    let address = |at: usize| Some(Ipv6Addr::from(*frame.get(at..)?.first_chunk::<16>()?));
    let (source, to) = (address(SOURCE)?, address(DESTINATION)?);
    let length = usize::from(u16::from_be_bytes(*frame.get(ETHERNET + 4..)?.first_chunk::<2>()?));
    let message = frame.get(ICMP..ETHERNET + 40 + length)?;
    let is_next = frame.get(ICMP - 8..ICMP - 6) == Some(&[58, 0]);
    let hops = *frame.get(ETHERNET + 7)?;
    if !is_next || hops != 1 || !source.is_unicast_link_local() || message.len() < 24 {
        return None;
    }
    if checksum(source, to, message) != 0 {
        return None;
    }
    let code = u16::from_be_bytes(*message.get(4..)?.first_chunk::<2>()?);
    let group = Ipv6Addr::from(*message.get(8..)?.first_chunk::<16>()?);
    let is_all = group.is_unspecified();
    (is_all || group.is_multicast()).then(|| Query {
        group: Some(group).filter(|_| !is_all),
        within_ns: u64::from(milliseconds(code)) * 1_000_000,
    })
}

/// The time of a response code (RFC 3810 5.1.3).
fn milliseconds(code: u16) -> u32 {
    match code {
        0..0x8000 => code.into(),
        _ => (u32::from(code & 0x0fff) | 0x1000) << ((code >> 12 & 7) + 3),
    }
}

/// The reports of memberships: an answer to a query, or an announcement.
pub(super) fn reports(
    mac: Mac,
    from: Option<Ipv6Addr>,
    groups: &BTreeSet<Ipv6Addr>,
    is_answer: bool,
) -> Vec<Frame> {
    let kind = if is_answer { IS_EXCLUDE } else { TO_EXCLUDE };
    let groups: Vec<_> = groups.iter().filter(|group| **group != HOSTS).collect();
    groups.chunks(MOST_GROUPS).map(|groups| report(mac, from, groups, kind)).collect()
}

fn report(mac: Mac, from: Option<Ipv6Addr>, groups: &[&Ipv6Addr], kind: u8) -> Frame {
    let source = from.unwrap_or(Ipv6Addr::UNSPECIFIED);
    let number = |value: usize| u16::try_from(value).unwrap_or(u16::MAX).to_be_bytes();
    let mut message = vec![REPORT, 0, 0, 0, 0, 0];
    message.extend(number(groups.len()));
    for group in groups {
        message.extend([kind, 0, 0, 0]);
        message.extend(group.octets());
    }
    let sum = checksum(source, ROUTERS, &message);
    #[expect(clippy::indexing_slicing, reason = "the message starts with eight bytes")]
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = Vec::with_capacity(ICMP + message.len());
    frame.extend(group(ROUTERS.into()).unwrap_or_default());
    frame.extend(mac);
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    frame.extend(number(ROUTER_ALERT.len() + message.len()));
    // A hop-by-hop header follows, and no router passes the packet on.
    frame.extend([0, 1]);
    frame.extend(source.octets());
    frame.extend(ROUTERS.octets());
    frame.extend(ROUTER_ALERT);
    frame.extend(message);
    Frame::of(&frame)
}

/// The checksum of an ICMPv6 message with its pseudo header: 0 if the message has the right one.
fn checksum(source: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> u16 {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
    let pseudo = [&source.octets()[..], &to.octets(), &length, &[0, 0, 0, 58], message].concat();
    rfc1071(&pseudo)
}
