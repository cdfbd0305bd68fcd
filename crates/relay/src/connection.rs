//! A connection through a proxy: an endpoint for each side, and the application between them.

use crate::application::{Application, At, Queues, Side};
use crate::queue::MOST;
use crate::wire::{self, Ends, Frame, MOST_LINK, TooLong};
use braid_endpoint::{Endpoint, Failure, Settings, Status};
use braid_http::wire::{list, number, read_bool, read_list, read_number};
use braid_tcp::{Reader, State, Stored as _};
use std::net::IpAddr;

/// The usual size of a frame (bytes).
const FRAME: usize = 1_600;

/// What sends and receives on one side.
#[derive(Debug)]
struct Peer {
    endpoint: Endpoint,
    /// The link header of frames to this side.
    link: Vec<u8>,
    /// The identification of the next IPv4 packet.
    number: u16,
    /// Whether the application knows that this side sends no more bytes.
    has_ended: bool,
}

impl Peer {
    fn new(endpoint: Endpoint, link: Vec<u8>) -> Self {
        Self { endpoint, link, number: 0, has_ended: false }
    }
}

/// A connection through a proxy.
#[derive(Debug)]
pub struct Connection<A> {
    /// From the client to the server.
    ends: Ends,
    /// Whether the client is on the left.
    pub client_is_left: bool,
    client: Peer,
    server: Peer,
    /// Whether the connection to the server has begun.
    has_server: bool,
    queues: Queues,
    application: A,
}

/// How to begin connections.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    pub settings: Settings,
    /// The initial sequence numbers towards the client and towards the server.
    pub isns: [u32; 2],
    pub client_is_left: bool,
    pub now: u64,
}

impl<A: Application> Connection<A> {
    /// A client's first SYN has come. The SYN to the server leaves next; the client gets its answer
    /// when the server has answered. If the application is lazy, it gets its answer at once.
    pub fn new(frame: &Frame<'_>, opening: Opening, shared: &A::Shared) -> Self {
        let Opening { settings, isns: [to_client, to_server], client_is_left, now } = opening;
        let mut client = Endpoint::accept(&settings, &frame.segment, to_client, now);
        client.defer();
        let mut link = Vec::new();
        wire::turn(frame.link, &mut link);
        let server = Endpoint::connect(&settings, to_server, now);
        Self {
            ends: frame.ends,
            client_is_left,
            client: Peer::new(client, link),
            server: Peer::new(server, frame.link.to_vec()),
            has_server: !A::is_lazy(shared),
            queues: Queues::default(),
            application: A::new(shared),
        }
    }

    fn peer(&mut self, side: Side) -> &mut Peer {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// The side that has sent a segment with these ends. `None` if they are of another connection.
    fn sender(&self, ends: Ends) -> Option<Side> {
        match ends {
            ends if ends == self.ends => Some(Side::Client),
            ends if ends == self.ends.reversed() => Some(Side::Server),
            _ => None,
        }
    }

    /// A segment has come.
    pub fn segment(&mut self, frame: &Frame<'_>, now: u64) {
        let Some(from) = self.sender(frame.ends) else { return };
        let peer = self.peer(from);
        wire::turn(frame.link, &mut peer.link);
        peer.endpoint.segment(&frame.segment, now);
    }

    /// The ends, from the client to the server.
    pub fn ends(&self) -> Ends {
        self.ends
    }

    /// A segment was too long for a link. Whether that was believed: shorter ones leave then.
    pub fn too_long(&mut self, message: &TooLong) -> bool {
        // Segments with the server's ends leave by the client's side.
        let Some(from) = self.sender(message.ends) else { return false };
        self.peer(from.other()).endpoint.too_long(message.seq, message.most)
    }

    /// Carries bytes and ends from each side to the other, as far as there is room.
    fn carry(&mut self, now: u64, shared: &mut A::Shared) {
        loop {
            let moved = [Side::Client, Side::Server].map(|side| self.carry_from(side, now, shared));
            let written = [Side::Client, Side::Server].map(|side| self.write_to(side));
            if moved == [false; 2] && written == [false; 2] {
                break;
            }
        }
        if self.application.is_broken() {
            self.abort();
        }
        if let Some(side) = self.failed() {
            self.peer(side.other()).endpoint.abort();
        }
    }

    /// The side whose connection has failed while the other one goes on.
    fn failed(&self) -> Option<Side> {
        let [client, server] = [&self.client, &self.server].map(|peer| peer.endpoint.status());
        match (client.failure, server.failure) {
            (Some(_), None) if !server.is_over => Some(Side::Client),
            (None, Some(_)) if !client.is_over => Some(Side::Server),
            _ => None,
        }
    }

    /// Gives the application what a side has sent. Returns whether there was anything.
    fn carry_from(&mut self, side: Side, now: u64, shared: &mut A::Shared) -> bool {
        let Self { ends, client, server, has_server, queues, application, .. } = self;
        let peer = if side == Side::Client { client } else { server };
        if application.waits(side, queues) {
            return false;
        }
        let (bytes, _) = peer.endpoint.readable();
        if !bytes.is_empty() {
            let bytes = bytes.get(..MOST).unwrap_or(bytes);
            let at = At { now, server: ends.to };
            let taken = application.data(side, bytes, queues, at, shared);
            peer.endpoint.consume(taken);
            return true;
        }
        let Status { has_peer_closed, is_over, .. } = peer.endpoint.status();
        // A server that nobody needed says no more.
        let was_spared = side == Side::Server && !*has_server && is_over;
        let ends = (has_peer_closed || was_spared) && !peer.has_ended;
        if ends {
            peer.has_ended = true;
            application.end(side, queues, shared);
        }
        ends
    }

    /// Writes what the application has given for a side. Returns whether there was anything and
    /// room for it.
    fn write_to(&mut self, side: Side) -> bool {
        let has_ended = self.peer(side.other()).has_ended || self.application.has_ended();
        let Self { client, server, queues, has_server, .. } = self;
        let peer = if side == Side::Client { client } else { server };
        let queue = queues.to(side);
        *has_server |= side == Side::Server && !queue.waiting().is_empty();
        let count = peer.endpoint.write(queue.waiting());
        queue.take(count);
        if has_ended && queue.waiting().is_empty() {
            peer.endpoint.close();
        }
        count > 0
    }

    /// Does what is to be done now, and gives the frames for both sides, but at most `most`.
    /// Returns how many they are.
    pub fn run(
        &mut self,
        (now, most): (u64, usize),
        shared: &mut A::Shared,
        out: &mut dyn FnMut(Side, &[u8]),
    ) -> usize {
        let mut left = most;
        loop {
            self.carry(now, shared);
            let sent = self.send((now, left), out);
            left -= sent;
            if left == 0 || sent == 0 && self.failed().is_none() {
                return most - left;
            }
        }
    }

    /// Gives the frames that the endpoints send now.
    fn send(&mut self, (now, most): (u64, usize), out: &mut dyn FnMut(Side, &[u8])) -> usize {
        let mut frame = Vec::with_capacity(FRAME);
        if self.server.endpoint.status().is_established || !self.has_server {
            self.client.endpoint.proceed();
        }
        let mut left = most;
        for side in [Side::Server, Side::Client] {
            if side == Side::Server && !self.has_server {
                continue;
            }
            let ends = if side == Side::Server { self.ends } else { self.ends.reversed() };
            let Peer { endpoint, link, number, .. } = self.peer(side);
            left -= endpoint.send(now, left, &mut |segment| {
                wire::write(link, ends, *number, &segment, &mut frame);
                *number = number.wrapping_add(1);
                out(side, &frame);
            });
        }
        most - left
    }

    /// When [`Self::run`] has something to do although no segment has come.
    pub fn deadline(&self) -> Option<u64> {
        let peers = [&self.client, &self.server];
        peers.iter().filter_map(|peer| peer.endpoint.deadline()).min()
    }

    /// Whether both sides have ended, and nothing is left to send.
    pub fn is_over(&self) -> bool {
        self.client.endpoint.status().is_over && self.server.endpoint.status().is_over
    }

    /// Whether it only waits for late segments, on one side or on both.
    pub fn waits(&self) -> bool {
        [&self.client, &self.server].iter().all(|peer| {
            let Status { state, is_over, .. } = peer.endpoint.status();
            is_over || state == State::TimeWait
        })
    }

    /// Whether the client may begin a new connection with this SYN: the old one only waits.
    pub fn may_begin_anew(&self, frame: &Frame<'_>) -> bool {
        let peer = match self.sender(frame.ends) {
            Some(Side::Client) => &self.client,
            Some(Side::Server) => &self.server,
            None => return false,
        };
        let makes_way = peer.endpoint.makes_way_for(&frame.segment);
        self.waits() && (makes_way || peer.endpoint.status().is_over)
    }

    /// Whether the server has refused the connection or has not answered.
    pub fn was_refused(&self) -> bool {
        let Status { is_established, failure, .. } = self.server.endpoint.status();
        !is_established && matches!(failure, Some(Failure::Refused | Failure::TimedOut))
    }

    /// The memory that it takes (bytes).
    pub fn memory(&self) -> usize {
        let Queues { to_client, to_server } = &self.queues;
        let endpoints = self.client.endpoint.memory() + self.server.endpoint.memory();
        endpoints + to_client.memory() + to_server.memory() + self.application.memory()
    }

    /// Gives it up: each side gets a RST.
    pub fn abort(&mut self) {
        self.client.endpoint.abort();
        self.server.endpoint.abort();
    }

    /// Writes the connection.
    pub fn put(&mut self, out: &mut Vec<u8>) {
        for (address, port) in [self.ends.from, self.ends.to] {
            match address {
                IpAddr::V4(address) => list(&address.octets(), out),
                IpAddr::V6(address) => list(&address.octets(), out),
            }
            number(port.into(), out);
        }
        number(self.client_is_left.into(), out);
        number(self.has_server.into(), out);
        let mut application = Vec::new();
        self.application.put(&mut self.queues, &mut application);
        for peer in [&self.client, &self.server] {
            let mut endpoint = Vec::new();
            peer.endpoint.put(&mut endpoint);
            list(&endpoint, out);
            list(&peer.link, out);
            number(peer.number.into(), out);
            number(peer.has_ended.into(), out);
        }
        list(self.queues.to_client.waiting(), out);
        list(self.queues.to_server.waiting(), out);
        list(&application, out);
    }

    /// Reads what [`Self::put`] has written. `None` if the bytes are damaged.
    pub fn read(from: &mut &[u8], shared: &A::Shared) -> Option<Self> {
        let ends = Ends { from: read_end(from)?, to: read_end(from)? };
        let (client_is_left, has_server) = (read_bool(from)?, read_bool(from)?);
        let (client, server) = (read_peer(from)?, read_peer(from)?);
        let mut queues = Queues::default();
        queues.to_client.extend(read_list(from, usize::MAX)?);
        queues.to_server.extend(read_list(from, usize::MAX)?);
        let mut rest = read_list(from, usize::MAX)?;
        let application = A::read(&mut rest, shared).filter(|_| rest.is_empty())?;
        Some(Self { ends, client_is_left, client, server, has_server, queues, application })
    }
}

fn read_end(from: &mut &[u8]) -> Option<(IpAddr, u16)> {
    let address = read_list(from, 16)?;
    let v4 = || <[u8; 4]>::try_from(address).ok().map(IpAddr::from);
    let v6 = || <[u8; 16]>::try_from(address).ok().map(IpAddr::from);
    let address = v4().or_else(v6)?;
    Some((address, u16::try_from(read_number(from)?).ok()?))
}

fn read_peer(from: &mut &[u8]) -> Option<Peer> {
    let mut endpoint = Reader(read_list(from, usize::MAX)?);
    let endpoint = Endpoint::get(&mut endpoint).filter(|_| endpoint.is_at_end())?;
    let link = read_list(from, MOST_LINK)?.to_vec();
    let number = u16::try_from(read_number(from)?).ok()?;
    Some(Peer { endpoint, link, number, has_ended: read_bool(from)? })
}
