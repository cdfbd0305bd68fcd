//! An endpoint with the headers of its frames.

use crate::wire::{self, Ends, Frame, MOST_LINK};
use braid_endpoint::Endpoint;
use braid_tcp::{Reader, Stored as _, put_bytes};

/// The usual size of a frame (bytes).
const FRAME: usize = 1_600;

/// An endpoint, and the headers of its frames.
#[derive(Debug)]
pub struct Peer {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The link header of frames to the host at the other end.
    link: Vec<u8>,
    /// The identification of the next IPv4 packet.
    number: u16,
}

impl Peer {
    /// An endpoint whose frames have this link header.
    #[must_use]
    pub fn new(endpoint: Endpoint, link: Vec<u8>) -> Self {
        Self { endpoint, link, number: 0 }
    }

    /// An endpoint whose frames answer this one.
    #[must_use]
    pub fn answering(endpoint: Endpoint, frame: &Frame<'_>) -> Self {
        let mut link = Vec::new();
        wire::turn(frame.link, &mut link);
        Self::new(endpoint, link)
    }

    /// The link header with which the host at the other end sends its frames here.
    #[must_use]
    pub fn incoming_link(&self) -> Vec<u8> {
        let mut link = Vec::new();
        wire::turn(&self.link, &mut link);
        link
    }

    /// A segment has come from the host at the other end.
    pub fn segment(&mut self, frame: &Frame<'_>, now: u64) {
        wire::turn(frame.link, &mut self.link);
        self.endpoint.segment(&frame.segment, now);
    }

    /// Gives the frames that the endpoint sends now, at most `most`. Their sender and receiver are
    /// `ends`. Returns how many they are.
    pub fn send(
        &mut self,
        ends: Ends,
        (now, most): (u64, usize),
        out: &mut dyn FnMut(&[u8]),
    ) -> usize {
        let Self { endpoint, link, number } = self;
        let mut frame = Vec::with_capacity(FRAME);
        endpoint.send(now, most, &mut |segment| {
            wire::write(link, ends, *number, &segment, &mut frame);
            *number = number.wrapping_add(1);
            out(&frame);
        })
    }

    /// Writes it.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut endpoint = Vec::new();
        self.endpoint.put(&mut endpoint);
        put_bytes(&endpoint, out);
        put_bytes(&self.link, out);
        self.number.put(out);
    }

    /// Reads what [`Self::put`] has written. `None` if the bytes are damaged.
    pub fn read(from: &mut Reader<'_>) -> Option<Self> {
        let mut endpoint = Reader(from.bytes()?);
        let endpoint = Endpoint::get(&mut endpoint).filter(|_| endpoint.is_at_end())?;
        let link = from.bytes().filter(|link| link.len() <= MOST_LINK)?.to_vec();
        Some(Self { endpoint, link, number: u16::get(from)? })
    }
}
