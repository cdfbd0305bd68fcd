//! TLS connections, which go to a server by its name in their first message. Nothing is decrypted.

use super::hello::{HANDSHAKE, Hello, MOST};
use crate::server::Socket;
use braid_tcp::{Reader, Stored as _, put_bytes};

/// Reasons for the end of a connection that its client learns (RFC 8446 §6.2).
pub const DECODE_ERROR: u8 = 50;
pub const INTERNAL_ERROR: u8 = 80;
pub const UNRECOGNIZED_NAME: u8 = 112;

/// How far the beginning of a client's connection is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// No byte has come.
    Nothing,
    /// It is one of TLS, and these are its first bytes.
    Hello(Vec<u8>),
    /// It is one of HTTP, or a TLS connection whose first message is whole.
    Known,
}

/// What the first bytes of a client's connection tell.
pub enum First {
    /// Nothing has come, or the beginning is known.
    Nothing,
    /// There are some bytes of TLS.
    Some,
    /// These bytes have the whole first message, with the server's name.
    Whole(Vec<u8>, Vec<u8>),
    /// It begins like TLS, and is malformed.
    Wrong,
}

/// The record of a fatal alert.
pub fn alert(reason: u8) -> [u8; 7] {
    [21, 3, 3, 0, 2, 2, reason]
}

impl Start {
    /// Takes bytes of the first message of TLS. If it takes no TLS, or if the first byte is another
    /// one, the connection is left to HTTP.
    pub fn take(&mut self, socket: &mut Socket<'_>, takes_tls: bool) -> First {
        let bytes = socket.readable();
        match (&*self, bytes.first()) {
            (Self::Nothing, Some(first)) if takes_tls && *first == HANDSHAKE => {
                *self = Self::Hello(Vec::new());
            }
            (Self::Nothing, Some(_)) => *self = Self::Known,
            _ => {}
        }
        let Self::Hello(hello) = self else { return First::Nothing };
        let count = bytes.len().min(MOST - hello.len().min(MOST));
        hello.extend(bytes.iter().take(count));
        socket.consume(count);
        let first = match Hello::read(hello) {
            Hello::Part if count == 0 => return First::Nothing,
            Hello::Part => return First::Some,
            Hello::Whole(name) => First::Whole(std::mem::take(hello), name),
            Hello::Wrong => First::Wrong,
        };
        *self = Self::Known;
        first
    }

    /// The memory that it takes besides its own size (bytes).
    pub fn memory(&self) -> usize {
        if let Self::Hello(bytes) = self { bytes.capacity() } else { 0 }
    }

    /// Writes it.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nothing => 0_u8.put(out),
            Self::Known => 1_u8.put(out),
            Self::Hello(bytes) => {
                2_u8.put(out);
                put_bytes(bytes, out);
            }
        }
    }

    /// Reads what [`Self::put`] has written. `None` if the bytes are damaged.
    pub fn read(from: &mut Reader<'_>) -> Option<Self> {
        match u8::get(from)? {
            0 => Some(Self::Nothing),
            1 => Some(Self::Known),
            2 => Some(Self::Hello(from.bytes().filter(|bytes| bytes.len() <= MOST)?.to_vec())),
            _ => None,
        }
    }
}
