//! Asks the kernel about devices by netlink: XDP features, an attached XDP program, addresses.

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
    socket_with,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;

/// The protocol of links and addresses, with the number 0.
const ROUTE: Option<Protocol> = None;

/// `NLM_F_REQUEST`
const REQUEST: u16 = 1;
/// `NLM_F_DUMP`
const ALL: u16 = 0x300;
// Kinds of messages that end an answer.
const ERROR: u16 = 2;
const DONE: u16 = 3;
// Requests about links and addresses.
const GET_LINK: u16 = 18;
const GET_ADDRESS: u16 = 22;
/// The family of generic netlink that knows the numbers of families, and its command.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
/// The command of the family `netdev` that describes a device.
const GET_DEVICE: u8 = 1;
// Attributes.
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const DEVICE_INDEX: u16 = 1;
const XDP_FEATURES: u16 = 3;
const LINK_XDP: u16 = 43;
const XDP_ATTACHED: u16 = 2;
const ADDRESS: u16 = 1;
const LOCAL_ADDRESS: u16 = 2;
/// The bits of an attribute's kind that are flags.
const KIND_FLAGS: u16 = 0xc000;
// Features.
const REDIRECT: u64 = 1 << 1;
const ZERO_COPY: u64 = 1 << 3;

/// The length of the header of a message.
const HEADER: usize = 16;
/// The lengths of the structures that follow it: in generic netlink, in messages about links, in
/// messages about addresses.
const GENERIC: usize = 4;
const LINK: usize = 16;
const ADDRESSES: usize = 8;

/// A driver's support for XDP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct XdpSupport {
    /// The driver runs XDP programs that hand frames to sockets.
    pub native: bool,
    /// The device reads and writes packet memory by itself.
    pub zero_copy: bool,
}

/// The XDP support of the driver of the device with this number. `None` if the kernel does not
/// report it (before 6.3).
pub(crate) fn xdp_support(index: u32) -> Option<XdpSupport> {
    let socket = open(Some(netlink::GENERIC))?;
    let ask = |family, command, attribute: Vec<u8>| {
        let body = [vec![command, 1, 0, 0], attribute].concat();
        ask(&socket, family, REQUEST, &body)?.pop()
    };
    let answer = ask(CONTROL, GET_FAMILY, attribute(FAMILY_NAME, b"netdev\0"))?;
    let family = u16::from_ne_bytes(*find(answer.get(GENERIC..)?, FAMILY_ID)?.first_chunk()?);
    let answer = ask(family, GET_DEVICE, attribute(DEVICE_INDEX, &index.to_ne_bytes()))?;
    let features = find(answer.get(GENERIC..)?, XDP_FEATURES)?;
    let features = u64::from_ne_bytes(*features.first_chunk()?);
    Some(XdpSupport { native: features & REDIRECT != 0, zero_copy: features & ZERO_COPY != 0 })
}

/// Whether an XDP program is attached to the device with this number.
pub(crate) fn has_xdp_program(index: u32) -> Option<bool> {
    let mut body = [0; LINK];
    body.get_mut(4..8)?.copy_from_slice(&index.to_ne_bytes());
    let answer = ask(&open(ROUTE)?, GET_LINK, REQUEST, &body)?.pop()?;
    let xdp = find(answer.get(LINK..)?, LINK_XDP)?;
    Some(*find(xdp, XDP_ATTACHED)?.first()? != 0)
}

/// The IP addresses of the device with this number.
pub(crate) fn addresses(index: u32) -> Option<Vec<IpAddr>> {
    let answers = ask(&open(ROUTE)?, GET_ADDRESS, REQUEST | ALL, &[0; ADDRESSES])?;
    Some(answers.iter().filter_map(|answer| address(answer, index)).collect())
}

/// The address in an answer, if it is one of this device.
fn address(answer: &[u8], index: u32) -> Option<IpAddr> {
    let (head, attributes) = answer.split_first_chunk::<ADDRESSES>()?;
    if u32::from_ne_bytes(*head.last_chunk()?) != index {
        return None;
    }
    // On a point-to-point link, the other attribute is the address of the other host.
    let bytes = find(attributes, LOCAL_ADDRESS).or_else(|| find(attributes, ADDRESS))?;
    let four = <[u8; 4]>::try_from(bytes).map(|bytes| Ipv4Addr::from(bytes).into());
    four.ok().or_else(|| Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()))
}

fn open(protocol: Option<Protocol>) -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol).ok()
}

/// Sends a request. Returns the bodies of the messages of the answer.
fn ask(socket: &OwnedFd, kind: u16, flags: u16, body: &[u8]) -> Option<Vec<Vec<u8>>> {
    send(socket, &message(kind, flags, body)?, SendFlags::empty()).ok()?;
    let (mut buffer, mut bodies) = (vec![0; 1 << 16], Vec::new());
    loop {
        // The kernel answers within the calls.
        let (length, _) = recv(socket, &mut buffer[..], RecvFlags::DONTWAIT).ok()?;
        let is_over = read(buffer.get(..length)?, &mut bodies)?;
        if is_over || flags & ALL == 0 {
            return Some(bodies);
        }
    }
}

fn message(kind: u16, flags: u16, body: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = u32::try_from(HEADER + body.len()).ok()?.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // A sequence number, and the sender's port, which the kernel fills in.
    bytes.extend([0; 8]);
    bytes.extend(body);
    Some(bytes)
}

/// Appends the bodies of messages. Returns whether they end an answer, or `None` for an error.
fn read(mut bytes: &[u8], bodies: &mut Vec<Vec<u8>>) -> Option<bool> {
    while !bytes.is_empty() {
        let length = usize::try_from(u32::from_ne_bytes(*bytes.first_chunk()?)).ok()?;
        let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
        match kind {
            DONE => return Some(true),
            ERROR => return None,
            _ => bodies.push(bytes.get(HEADER..length)?.to_vec()),
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(false)
}

/// An attribute with a value.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The value of the first attribute of this kind.
fn find(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(*attributes.first_chunk()?));
        let kind = u16::from_ne_bytes(*attributes.get(2..)?.first_chunk()?);
        let value = attributes.get(4..length)?;
        if kind & !KIND_FLAGS == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_is_found_behind_others() {
        let all = [attribute(9, b"abcde"), attribute(3 | 0x8000, b"x")].concat();
        assert_eq!(find(&all, 9), Some(&b"abcde"[..]));
        assert_eq!(find(&all, 3), Some(&b"x"[..]));
        assert_eq!(find(&all, 4), None);
        assert_eq!(find(&all[..6], 9), None);
    }

    #[test]
    fn address_belongs_to_its_device() {
        let mut answer = vec![2, 24, 0, 0];
        answer.extend(7_u32.to_ne_bytes());
        answer.extend(attribute(ADDRESS, &[10, 0, 0, 2]));
        answer.extend(attribute(LOCAL_ADDRESS, &[10, 0, 0, 1]));
        assert_eq!(address(&answer, 7), Some([10, 0, 0, 1].into()));
        assert_eq!(address(&answer, 8), None);
    }

    #[test]
    fn nonsense_never_panics() {
        for length in 0..64 {
            for byte in [0, 1, 4, 20, 255] {
                let bytes = vec![byte; length];
                let _ = (find(&bytes, 3), address(&bytes, 3), read(&bytes, &mut Vec::new()));
            }
        }
    }
}
