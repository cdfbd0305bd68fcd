//! The messages between neighbours on a link: ARP (RFC 826), neighbour discovery (RFC 4861), and
//! echoes. Reads them with all checks that need no state, and builds them.

use braid_packet::build::{NewPayload, Shape, build_fresh, build_new};
use braid_packet::checksum::verify;
use braid_packet::{Field, Frame, Header, Layout, Link, Packet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A MAC address.
pub(crate) type Mac = [u8; 6];

/// The MAC address of all hosts.
pub(super) const BROADCAST: Mac = [0xff; 6];

/// The IPv6 address of all hosts of a link.
const ALL_HOSTS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Flags of a neighbour advertisement.
const ROUTER: u32 = 1 << 31;
const SOLICITED: u32 = 1 << 30;
const OVERRIDE: u32 = 1 << 29;

const SOLICITATION: u128 = 135;
const ADVERTISEMENT: u128 = 136;

/// Options of neighbour discovery: the link address of the source, and of the target.
const SOURCE: u8 = 1;
const TARGET: u8 = 2;

/// A message of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// Who has this address? The asker's own address is missing while it tests whether it may take
    /// the address for itself. Its MAC address may be missing, too.
    Asks { target: IpAddr, asker: Option<IpAddr>, mac: Option<Mac> },
    /// I have this address. An answer goes to one host only. A message without the override flag
    /// yields to earlier messages.
    Has { address: IpAddr, mac: Option<Mac>, is_answer: bool, overrides: bool },
}

/// The MAC address with this number.
pub(super) fn mac_of(number: u128) -> Mac {
    let [.., a, b, c, d, e, f] = number.to_be_bytes();
    [a, b, c, d, e, f]
}

/// A MAC address as a number.
pub(super) fn mac_number(mac: Mac) -> u128 {
    mac.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Whether a MAC address is that of one host.
pub(super) fn is_host(mac: Mac) -> bool {
    mac[0] & 1 == 0 && mac != [0; 6]
}

/// Whether an IP address is that of one host.
pub(super) fn is_host_address(address: IpAddr) -> bool {
    let is_reserved =
        matches!(address, IpAddr::V4(a) if a.octets()[0] == 0 || a.octets()[0] >= 224);
    !is_reserved && !address.is_multicast() && !address.is_unspecified() && !address.is_loopback()
}

/// The MAC address to which packets to a multicast or broadcast address go.
pub(super) fn group(address: IpAddr) -> Option<Mac> {
    match address {
        IpAddr::V4(address) if address.is_broadcast() => Some(BROADCAST),
        IpAddr::V4(address) if address.is_multicast() => {
            let [_, b, c, d] = address.octets();
            Some([0x01, 0x00, 0x5e, b & 0x7f, c, d])
        }
        IpAddr::V6(address) if address.is_multicast() => {
            let [.., a, b, c, d] = address.octets();
            Some([0x33, 0x33, a, b, c, d])
        }
        _ => None,
    }
}

/// The multicast address at which a host listens for questions about its address.
pub(super) fn solicited(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    let low = u16::from_be_bytes([b, c]);
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), low)
}

/// Reads an ARP message. `None` if it is malformed or impossible.
pub(super) fn read_arp(packet: &Packet) -> Option<Said> {
    let layout = packet.parse();
    let get = |field| packet.get(&layout, field);
    let ip = |field| Some(IpAddr::V4(u32::try_from(get(field)?).ok()?.into()));
    let mac = mac_of(get(Field::ArpSha)?);
    let (sender, target) = (ip(Field::ArpSpa)?, ip(Field::ArpTpa)?);
    if !is_host(mac) || !(sender.is_unspecified() || is_host_address(sender)) {
        return None;
    }
    let asker = Some(sender).filter(|sender| !sender.is_unspecified());
    match (get(Field::ArpOp)?, asker) {
        // A host that asks for its own address announces it.
        (1, Some(address)) if address == target => {
            Some(Said::Has { address, mac: Some(mac), is_answer: false, overrides: true })
        }
        (1, asker) => Some(Said::Asks { target, asker, mac: Some(mac) }),
        (2, Some(address)) => {
            let is_answer = is_host(mac_of(get(Field::EthDst)?));
            Some(Said::Has { address, mac: Some(mac), is_answer, overrides: true })
        }
        _ => None,
    }
}

/// Reads a message of neighbour discovery (RFC 4861 7.1). The outer `None`: the packet is no such
/// message. The inner `None`: the message is malformed or impossible.
pub(super) fn read_ndp(packet: &Packet, layout: &Layout) -> Option<Option<Said>> {
    let kind = packet.get(layout, Field::Icmp6Type);
    matches!(kind, Some(SOLICITATION | ADVERTISEMENT)).then(|| read_ndp_of(packet, layout))
}

fn read_ndp_of(packet: &Packet, layout: &Layout) -> Option<Said> {
    let get = |field| packet.get(layout, field);
    let is_sound = get(Field::Ip6Ttl)? == 255
        && get(Field::Icmp6Code)? == 0
        && verify(packet, layout).transport == Some(true);
    let (target, options) = packet.payload(layout).split_first_chunk::<16>()?;
    let target = Ipv6Addr::from(*target);
    let (source, to) = (Ipv6Addr::from(get(Field::Ip6Src)?), Ipv6Addr::from(get(Field::Ip6Dst)?));
    if !is_sound || !is_host_address(target.into()) {
        return None;
    }
    if get(Field::Icmp6Type)? == ADVERTISEMENT {
        let flags = u32::try_from(get(Field::Icmp6Rest)?).ok()?;
        let is_answer = flags & SOLICITED != 0;
        if is_answer && to.is_multicast() {
            return None;
        }
        let mac = option(options, TARGET)?;
        let overrides = flags & OVERRIDE != 0;
        return Some(Said::Has { address: target.into(), mac, is_answer, overrides });
    }
    let mac = option(options, SOURCE)?;
    if source.is_unspecified() {
        let is_sound = to == solicited(target) && mac.is_none();
        return is_sound.then_some(Said::Asks { target: target.into(), asker: None, mac });
    }
    let is_host = is_host_address(source.into());
    is_host.then(|| Said::Asks { target: target.into(), asker: Some(source.into()), mac })
}

/// The MAC address in an option. The outer `None`: the options are malformed.
fn option(mut options: &[u8], wanted: u8) -> Option<Option<Mac>> {
    let mut found = None;
    while let Some(&kind) = options.first() {
        let words = usize::from(*options.get(1)?);
        let (whole, behind) = options.split_at_checked(8 * words)?;
        if whole.is_empty() {
            return None;
        }
        if kind == wanted && found.is_none() {
            let mac = *whole.get(2..)?.first_chunk::<6>()?;
            found = Some(Some(mac).filter(|mac| is_host(*mac))?);
        }
        options = behind;
    }
    Some(found)
}

/// The address and MAC address that a message announces or asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Host {
    pub(super) mac: Mac,
    pub(super) address: IpAddr,
}

/// Asks who has an address. The message goes to all hosts, or to the host with a MAC address.
/// `from` is the asker's address; without it, the asker tests whether another host has the wanted
/// address.
pub(super) fn question(mac: Mac, from: Option<IpAddr>, wanted: IpAddr, to: Option<Mac>) -> Frame {
    match wanted {
        IpAddr::V4(wanted) => {
            let from = from.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
            let target = Host { mac: [0; 6], address: wanted.into() };
            arp(1, to.unwrap_or(BROADCAST), Host { mac, address: from }, target)
        }
        IpAddr::V6(wanted) => {
            let source = match from {
                Some(IpAddr::V6(from)) => from,
                _ => Ipv6Addr::UNSPECIFIED,
            };
            let options = if source.is_unspecified() { Vec::new() } else { link(SOURCE, mac) };
            let (ip, to) = match to {
                Some(to) => (wanted, to),
                None => (solicited(wanted), group(solicited(wanted).into()).unwrap_or(BROADCAST)),
            };
            ndp(SOLICITATION, 0, (mac, source), (to, ip), wanted, &options)
        }
    }
}

/// Tells the asker that a host has an address. If there is no asker, or the asker has no address,
/// the message goes to all hosts.
pub(super) fn statement(host: Host, to: Option<(Mac, Option<IpAddr>)>) -> Frame {
    let Host { mac, address } = host;
    match address {
        IpAddr::V4(_) => match to {
            Some((to, asker)) => {
                let asker = asker.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
                arp(2, to, host, Host { mac: to, address: asker })
            }
            None => arp(1, BROADCAST, host, Host { mac: [0; 6], address }),
        },
        IpAddr::V6(address) => {
            let (to, flags) = match to {
                Some((to, Some(IpAddr::V6(asker)))) => ((to, asker), SOLICITED),
                _ => ((group(ALL_HOSTS.into()).unwrap_or(BROADCAST), ALL_HOSTS), 0),
            };
            let flags = ROUTER | OVERRIDE | flags;
            ndp(ADVERTISEMENT, flags, (mac, address), to, address, &link(TARGET, mac))
        }
    }
}

fn arp(operation: u128, to: Mac, sender: Host, target: Host) -> Frame {
    let ip = |host: Host| match host.address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(_) => 0,
    };
    let fields = [
        (Field::EthDst, mac_number(to)),
        (Field::EthSrc, mac_number(sender.mac)),
        (Field::ArpOp, operation),
        (Field::ArpSha, mac_number(sender.mac)),
        (Field::ArpSpa, ip(sender)),
        (Field::ArpTha, mac_number(target.mac)),
        (Field::ArpTpa, ip(target)),
    ];
    fresh(Shape::Arp, &fields, &[])
}

fn ndp(
    kind: u128,
    flags: u32,
    (mac, source): (Mac, Ipv6Addr),
    (to, ip): (Mac, Ipv6Addr),
    target: Ipv6Addr,
    options: &[u8],
) -> Frame {
    let fields = [
        (Field::EthDst, mac_number(to)),
        (Field::EthSrc, mac_number(mac)),
        (Field::Ip6Src, source.to_bits()),
        (Field::Ip6Dst, ip.to_bits()),
        (Field::Ip6Ttl, 255),
        (Field::Icmp6Type, kind),
        (Field::Icmp6Rest, flags.into()),
    ];
    fresh(Shape::Icmp6, &fields, &[&target.octets(), options].concat())
}

/// An option with a MAC address.
fn link(kind: u8, mac: Mac) -> Vec<u8> {
    [&[kind, 1], &mac[..]].concat()
}

fn fresh(shape: Shape, fields: &[(Field, u128)], payload: &[u8]) -> Frame {
    build_fresh(Link::Ethernet, 0, shape, fields, payload)
        .map_or_else(Frame::empty, Packet::into_frame)
}

/// The answer to an echo request. `None` if the packet is no echo request, or only a fragment of
/// one.
pub(super) fn echo_reply(request: &Packet, layout: &Layout) -> Option<Packet> {
    let get = |field| request.get(layout, field);
    if layout.is_fragment() || !verify(request, layout).all_right() {
        return None;
    }
    let (shape, kind, rest) = if get(Field::IcmpType) == Some(8) {
        (Shape::Icmp, Field::IcmpType, Field::IcmpRest)
    } else if get(Field::Icmp6Type) == Some(128) {
        (Shape::Icmp6, Field::Icmp6Type, Field::Icmp6Rest)
    } else {
        return None;
    };
    let answer = if shape == Shape::Icmp { 0 } else { 129 };
    let fields = [(kind, answer), (rest, get(rest)?)];
    build_new(request, shape, true, &fields, NewPayload::Same)
}

/// Whether a packet is an echo request.
pub(super) fn is_echo_request(packet: &Packet, layout: &Layout) -> bool {
    let is = |header, field, kind| layout.has(header) && packet.get(layout, field) == Some(kind);
    is(Header::Icmp, Field::IcmpType, 8) || is(Header::Icmp6, Field::Icmp6Type, 128)
}
