//! The messages with which Braid hands connections to servers in other processes.
//!
//! A server connects to Braid's Unix socket, of the type SEQPACKET, once for each port at which it
//! listens, and says so with a [`Listens`]. Then Braid sends a message for each connection: its
//! addresses as [`Ends`], and with them a descriptor (SCM_RIGHTS), one end of a pair of stream
//! sockets that carry the connection's bytes. Numbers are in network order.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

use std::net::{IpAddr, SocketAddr};

/// The first bytes of a [`Listens`], with the version of the messages.
const MAGIC: [u8; 6] = *b"BRAID1";
/// The bytes of an address and a port.
const ADDRESS: usize = 19;
/// The bytes of a [`Listens`].
pub const LISTENS: usize = MAGIC.len() + ADDRESS;
/// The bytes of [`Ends`].
pub const ENDS: usize = 2 * ADDRESS;

/// A server listens at an address and port. Unspecified addresses stand for all of their version,
/// and `::` for those of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listens(pub SocketAddr);

/// The addresses and ports of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// The client's.
    pub peer: SocketAddr,
    /// The server's.
    pub local: SocketAddr,
}

impl Listens {
    /// The message.
    #[must_use]
    pub fn bytes(self) -> [u8; LISTENS] {
        let mut bytes = [0; LISTENS];
        let (magic, address) = bytes.split_at_mut(MAGIC.len());
        magic.copy_from_slice(&MAGIC);
        address.copy_from_slice(&address_bytes(self.0));
        bytes
    }

    /// The server's word in a message. `None` if it is another message.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        Some(Self(address_of(bytes.strip_prefix(&MAGIC)?)?))
    }

    /// Whether a connection to this address and port is for the server.
    #[must_use]
    pub fn takes(self, at: SocketAddr) -> bool {
        let own = self.0.ip();
        let is_same_version = own.is_ipv6() || at.is_ipv4();
        let is_own = own == at.ip() || own.is_unspecified() && is_same_version;
        self.0.port() == at.port() && is_own
    }
}

impl Ends {
    /// The message.
    #[must_use]
    pub fn bytes(self) -> [u8; ENDS] {
        let mut bytes = [0; ENDS];
        let (peer, local) = bytes.split_at_mut(ADDRESS);
        peer.copy_from_slice(&address_bytes(self.peer));
        local.copy_from_slice(&address_bytes(self.local));
        bytes
    }

    /// The ends in a message. `None` if it is another message.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let (peer, local) = bytes.split_at_checked(ADDRESS)?;
        Some(Self { peer: address_of(peer)?, local: address_of(local)? })
    }
}

/// The version, the port, and the address; an address of IPv4 ends with zeros.
fn address_bytes(address: SocketAddr) -> [u8; ADDRESS] {
    let mut bytes = [0; ADDRESS];
    let (head, body) = bytes.split_at_mut(3);
    let [high, low] = address.port().to_be_bytes();
    let version = if address.is_ipv4() { 4 } else { 6 };
    head.copy_from_slice(&[version, high, low]);
    match address.ip() {
        IpAddr::V4(address) => body.iter_mut().zip(address.octets()).for_each(|(to, of)| *to = of),
        IpAddr::V6(address) => body.copy_from_slice(&address.octets()),
    }
    bytes
}

fn address_of(bytes: &[u8]) -> Option<SocketAddr> {
    let (&[version, high, low], body) = bytes.split_first_chunk()?;
    let body: [u8; 16] = body.try_into().ok()?;
    let [a, b, c, d, ..] = body;
    let address = match version {
        4 => IpAddr::from([a, b, c, d]),
        6 => IpAddr::from(body),
        _ => return None,
    };
    Some(SocketAddr::new(address, u16::from_be_bytes([high, low])))
}

#[cfg(test)]
mod tests {
    use super::{Ends, Listens};
    use std::net::SocketAddr;

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn messages_are_read_as_they_are_written() {
        for (one, other) in [("10.0.0.1:80", "192.0.2.7:40000"), ("[2001:db8::1]:1", "[::]:65535")]
        {
            let listens = Listens(at(one));
            assert_eq!(Listens::of(&listens.bytes()), Some(listens));
            let ends = Ends { peer: at(one), local: at(other) };
            assert_eq!(Ends::of(&ends.bytes()), Some(ends));
        }
    }

    #[test]
    fn other_messages_are_refused() {
        let whole = Listens(at("10.0.0.1:80")).bytes();
        let mut other = whole;
        other[5] = b'2';
        for wrong in [&whole[1..], &whole[..whole.len() - 1], &other, &[], b"GET / HTTP/1.1\r\n"] {
            assert_eq!(Listens::of(wrong), None, "{wrong:?}");
        }
        assert_eq!(Ends::of(&[5; super::ENDS]), None);
    }

    #[test]
    fn unspecified_addresses_take_all_of_their_version() {
        let takes = |own, to| Listens(at(own)).takes(at(to));
        assert!(takes("0.0.0.0:80", "10.0.0.1:80") && takes("10.0.0.1:80", "10.0.0.1:80"));
        assert!(takes("[::]:80", "[2001:db8::1]:80") && takes("[::]:80", "10.0.0.1:80"));
        assert!(!takes("0.0.0.0:80", "[2001:db8::1]:80") && !takes("0.0.0.0:81", "10.0.0.1:80"));
        assert!(!takes("10.0.0.2:80", "10.0.0.1:80"));
    }
}
