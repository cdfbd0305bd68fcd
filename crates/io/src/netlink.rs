//! Asks the kernel's family `netdev` of generic netlink for the XDP features of a device.

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use std::os::fd::OwnedFd;

/// `NLM_F_REQUEST`
const REQUEST: u16 = 1;
/// The kind of an answer that is an error.
const ERROR: u16 = 2;
/// The family that knows the numbers of families, and its command.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
/// The command of the family `netdev` that describes a device.
const GET_DEVICE: u8 = 1;
// Attributes of the families.
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const DEVICE_INDEX: u16 = 1;
const XDP_FEATURES: u16 = 3;
// Features.
const REDIRECT: u64 = 1 << 1;
const ZERO_COPY: u64 = 1 << 3;

/// The length of the headers in front of attributes: netlink's and generic netlink's.
const HEADERS: usize = 20;

/// What a driver can do with XDP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct XdpSupport {
    /// The driver runs XDP programs that hand frames to sockets.
    pub native: bool,
    /// The device reads and writes packet memory by itself.
    pub zero_copy: bool,
}

/// What the driver of the device with this number can do. `None` if the kernel does not tell
/// (before 6.3).
pub(crate) fn xdp_support(index: u32) -> Option<XdpSupport> {
    let kind = Some(netlink::GENERIC);
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, kind).ok()?;
    let answer = ask(&socket, CONTROL, GET_FAMILY, FAMILY_NAME, b"netdev\0")?;
    let family = u16::from_ne_bytes(*attribute(&answer, FAMILY_ID)?.first_chunk()?);
    let answer = ask(&socket, family, GET_DEVICE, DEVICE_INDEX, &index.to_ne_bytes())?;
    let features = u64::from_ne_bytes(*attribute(&answer, XDP_FEATURES)?.first_chunk()?);
    Some(XdpSupport { native: features & REDIRECT != 0, zero_copy: features & ZERO_COPY != 0 })
}

/// Sends a request with one attribute, and returns the answer.
fn ask(socket: &OwnedFd, family: u16, command: u8, kind: u16, value: &[u8]) -> Option<Vec<u8>> {
    send(socket, &request(family, command, kind, value)?, SendFlags::empty()).ok()?;
    let mut answer = vec![0; 1 << 14];
    // The kernel answers within the call above.
    let (length, _) = recv(socket, &mut answer[..], RecvFlags::DONTWAIT).ok()?;
    answer.truncate(length);
    let kind = u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?);
    (kind != ERROR).then_some(answer)
}

fn request(family: u16, command: u8, kind: u16, value: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(4 + value.len()).ok()?;
    let whole = HEADERS + usize::from(length).next_multiple_of(4);
    let mut bytes = u32::try_from(whole).ok()?.to_ne_bytes().to_vec();
    bytes.extend(family.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    // A sequence number and the sender's port, which the kernel fills in, then the command.
    bytes.extend([0; 8]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(whole, 0);
    Some(bytes)
}

/// The value of an attribute of an answer.
fn attribute(answer: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut rest = answer.get(HEADERS..)?;
    loop {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        let kind = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?);
        let value = rest.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_is_found_behind_others() {
        let mut answer = vec![0; HEADERS];
        answer.extend(request(0, 0, 9, b"abcde").unwrap().split_off(HEADERS));
        answer.extend(request(0, 0, 3, b"x").unwrap().split_off(HEADERS));
        assert_eq!(attribute(&answer, 9), Some(&b"abcde"[..]));
        assert_eq!(attribute(&answer, 3), Some(&b"x"[..]));
        assert_eq!(attribute(&answer, 4), None);
        assert_eq!(attribute(&answer[..HEADERS + 6], 9), None);
    }

    #[test]
    fn nonsense_never_panics() {
        for length in 0..64 {
            for byte in [0, 1, 4, 255] {
                let _ = attribute(&vec![byte; length], 3);
            }
        }
    }
}
