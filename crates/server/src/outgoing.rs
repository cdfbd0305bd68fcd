//! Connections that a server opens to other hosts, for a client.

use crate::events::{Events, next_bytes};
use braid_connections::wire::{Ends, Frame, TooLong};
use braid_connections::{Peer, Secret};
use braid_endpoint::{Endpoint, Settings, Status};
use braid_native::Flow;
use braid_tcp::{Reader, Stored as _};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The most connections that a server may have opened for a client at a time.
pub const MOST_OUTGOING: usize = 16;

/// Which client's connection has opened another one, by the ends of the segments that come in it.
#[derive(Clone, Debug, Default)]
pub struct Openers(Arc<Mutex<HashMap<Ends, Flow>>>);

impl Openers {
    /// The connection that has opened the one with these ends.
    pub fn find(&self, ends: Ends) -> Option<Flow> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&ends).copied()
    }

    /// Enters a connection.
    fn enter(&self, ends: Ends, flow: Flow) -> Opened {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(ends, flow);
        Opened { openers: self.clone(), ends }
    }
}

/// An entry of [`Openers`], which goes with it.
#[derive(Debug)]
struct Opened {
    openers: Openers,
    ends: Ends,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.openers.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.ends);
    }
}

/// A connection that a server has opened.
#[derive(Debug)]
pub struct Outgoing {
    /// From the client to the host.
    ends: Ends,
    peer: Peer,
    /// Whether the server needs it no more.
    is_closed: bool,
    _opened: Opened,
}

impl Outgoing {
    /// Whether the host has taken the connection.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.peer.endpoint.status().is_established
    }

    /// What can be done now.
    #[must_use]
    pub fn events(&self) -> Events {
        Events::of(&self.peer.endpoint)
    }

    /// The next bytes of the host; others may follow behind them.
    #[must_use]
    pub fn readable(&self) -> &[u8] {
        next_bytes(&self.peer.endpoint)
    }

    /// The first `count` readable bytes have been read.
    pub fn consume(&mut self, count: usize) {
        self.peer.endpoint.consume(count);
    }

    /// How many bytes can be written now.
    #[must_use]
    pub fn room(&self) -> usize {
        self.peer.endpoint.room()
    }

    /// Writes bytes, as far as there is room. Returns their number.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        self.peer.endpoint.write(bytes)
    }

    /// Ends the direction to the host: a FIN follows what was written.
    pub fn shut_down(&mut self) {
        self.peer.endpoint.close();
    }

    /// The server needs the connection no more, and nothing is on its way. It ends with a FIN.
    pub fn close(&mut self) {
        self.peer.endpoint.close();
        self.is_closed = true;
    }

    /// The server needs the connection no more. Unless the host has ended it, it gets a RST. Then
    /// the same ports may be used again at once.
    pub fn reset(&mut self) {
        if self.events().is_at_end {
            return self.close();
        }
        self.peer.endpoint.abort();
        self.is_closed = true;
    }

    /// Whether it is of no use any more, and has nothing left to send.
    fn is_over(&self) -> bool {
        let Status { is_over, .. } = self.peer.endpoint.status();
        self.is_closed && is_over
    }
}

/// The connections that a server has opened for a client.
#[derive(Debug)]
pub struct Outgoings {
    all: Vec<Outgoing>,
    flow: Flow,
    settings: Settings,
    secret: Secret,
    openers: Openers,
    /// The most connections at a time.
    most: usize,
    /// The link header of first frames.
    link: Vec<u8>,
}

impl Outgoings {
    /// None yet, and later at most `most`, for a client's connection with this number.
    pub fn new(
        flow: Flow,
        (settings, secret): (Settings, Secret),
        openers: &Openers,
        most: usize,
    ) -> Self {
        let openers = openers.clone();
        Self { all: Vec::new(), flow, settings, secret, openers, most, link: Vec::new() }
    }

    /// Frames to other hosts begin with the link header that the client's frames have.
    pub fn leave_by(&mut self, client: &Peer) {
        self.link = client.incoming_link();
    }

    /// Frames to other hosts begin with this link header.
    pub fn leave_with(&mut self, link: Vec<u8>) {
        self.link = link;
    }

    /// As [`crate::Socket::connect`].
    pub fn open(&mut self, ends: Ends, now: u64) -> Option<&mut Outgoing> {
        self.all.retain(|one| !one.is_over());
        let is_taken = self.openers.find(ends.reversed()).is_some();
        if is_taken || self.all.len() >= self.most {
            return None;
        }
        let isn = self.secret.isn(ends, now);
        let endpoint = Endpoint::connect(&self.settings, isn, now);
        let peer = Peer::new(endpoint, self.link.clone());
        let _opened = self.openers.enter(ends.reversed(), self.flow);
        self.all.push(Outgoing { ends, peer, is_closed: false, _opened });
        self.all.last_mut()
    }

    /// As [`crate::Socket::outgoing`].
    pub fn find(&mut self, to: (IpAddr, u16)) -> Option<&mut Outgoing> {
        self.all.iter_mut().find(|one| one.ends.to == to && !one.is_closed)
    }

    /// Ends the connections to places that are not to be kept.
    pub fn retain(&mut self, keeps: impl Fn((IpAddr, u16)) -> bool) {
        let all = self.all.iter_mut().filter(|one| !one.is_closed && !keeps(one.ends.to));
        all.for_each(Outgoing::reset);
    }

    /// The places to which there are connections.
    pub fn places(&self) -> impl Iterator<Item = (IpAddr, u16)> {
        self.all.iter().map(|one| one.ends.to)
    }

    /// A segment has come. Returns whether it belongs to one of them.
    pub fn segment(&mut self, frame: &Frame<'_>, now: u64) -> bool {
        let ends = frame.ends.reversed();
        let one = self.all.iter_mut().find(|one| one.ends == ends);
        one.map(|one| one.peer.segment(frame, now)).is_some()
    }

    /// A segment was too long for a link. Whether that was believed.
    pub fn too_long(&mut self, message: &TooLong) -> bool {
        let one = self.all.iter_mut().find(|one| one.ends == message.ends);
        one.is_some_and(|one| one.peer.endpoint.too_long(message.seq, message.most))
    }

    /// Gives the frames that leave now, at most `most`. Returns how many they are.
    pub fn send(&mut self, (now, most): (u64, usize), out: &mut dyn FnMut(&[u8])) -> usize {
        let mut left = most;
        for one in &mut self.all {
            left -= one.peer.send(one.ends, (now, left), out);
        }
        self.all.retain(|one| !one.is_over());
        most - left
    }

    /// When something is to be sent although no segment has come.
    pub fn deadline(&self) -> Option<u64> {
        self.all.iter().filter_map(|one| one.peer.endpoint.deadline()).min()
    }

    /// The server is done.
    pub fn end(&mut self) {
        self.all.iter_mut().filter(|one| !one.is_closed).for_each(Outgoing::reset);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The memory that they take (bytes).
    pub fn memory(&self) -> usize {
        let memory = |one: &Outgoing| size_of::<Outgoing>() + one.peer.endpoint.memory();
        self.all.iter().map(memory).sum()
    }

    /// Writes them.
    pub fn put(&self, out: &mut Vec<u8>) {
        (self.all.len() as u64).put(out);
        for one in &self.all {
            one.ends.put(out);
            one.is_closed.put(out);
            one.peer.put(out);
        }
    }

    /// Reads what [`Self::put`] has written. `None` if the bytes are damaged.
    pub fn read(&mut self, from: &mut Reader<'_>) -> Option<()> {
        for _ in 0..u64::get(from)? {
            let (ends, is_closed) = (Ends::read(from)?, bool::get(from)?);
            let (peer, flow) = (Peer::read(from)?, self.flow);
            let _opened = self.openers.enter(ends.reversed(), flow);
            self.all.push(Outgoing { ends, peer, is_closed, _opened });
        }
        Some(())
    }
}
