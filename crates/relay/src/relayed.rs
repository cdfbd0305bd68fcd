//! A connection through a proxy: an endpoint for each side, and the application between them.

use crate::application::{Application, At, Queues};
use crate::queue::MOST;
use braid_connections::wire::{Ends, Frame, TooLong};
use braid_connections::{Connection, First, Opening, Peer, Side};
use braid_endpoint::{Endpoint, Failure, Status};
use braid_native::{Flow, Host, Keeps};
use braid_tcp::{Reader, State, Stored as _, put_bytes};
use std::ffi::CStr;
use std::iter::once;

/// A connection through a proxy.
#[derive(Debug)]
pub struct Relayed<A> {
    /// From the client to the server.
    ends: Ends,
    /// Whether the client is on the left.
    client_is_left: bool,
    client: Peer,
    server: Peer,
    /// Whether the application knows that the client sends no more bytes, and that the server does
    /// not.
    client_has_ended: bool,
    server_has_ended: bool,
    /// Whether the connection to the server has begun.
    has_server: bool,
    queues: Queues,
    application: A,
}

/// What all connections of a proxy share.
#[derive(Debug)]
pub struct Shared<S> {
    application: S,
    /// The connections that servers have refused or not answered, since the last count.
    refused: u64,
}

impl<A: Application> Relayed<A> {
    /// A client's first SYN has come. The SYN to the server leaves next; the client gets its answer
    /// when the server has answered. If the application is lazy, it gets its answer at once.
    fn new(frame: &Frame<'_>, opening: &Opening<'_>, shared: &A::Shared) -> Self {
        let Opening { settings, secret, client_is_left, now, .. } = *opening;
        let to_client = secret.isn(frame.ends, now);
        let mut client = Endpoint::accept(&settings, &frame.segment, to_client, now);
        client.defer();
        let to_server = secret.isn(frame.ends.reversed(), now);
        let server = Endpoint::connect(&settings, to_server, now);
        Self {
            ends: frame.ends,
            client_is_left,
            client: Peer::answering(client, frame),
            server: Peer::new(server, frame.link.to_vec()),
            client_has_ended: false,
            server_has_ended: false,
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
        let (peer, has_ended) = match side {
            Side::Client => (client, &mut self.client_has_ended),
            Side::Server => (server, &mut self.server_has_ended),
        };
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
        let ends = (has_peer_closed || was_spared) && !*has_ended;
        if ends {
            *has_ended = true;
            application.end(side, queues, shared);
        }
        ends
    }

    /// Writes what the application has given for a side. Returns whether there was anything and
    /// room for it.
    fn write_to(&mut self, side: Side) -> bool {
        let has_ended = match side.other() {
            Side::Client => self.client_has_ended,
            Side::Server => self.server_has_ended,
        };
        let has_ended = has_ended || self.application.has_ended();
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

    /// Gives the frames that the endpoints send now.
    fn send(&mut self, (now, most): (u64, usize), out: &mut dyn FnMut(Side, &[u8])) -> usize {
        if self.server.endpoint.status().is_established || !self.has_server {
            self.client.endpoint.proceed();
        }
        let mut left = most;
        for side in [Side::Server, Side::Client] {
            if side == Side::Server && !self.has_server {
                continue;
            }
            let ends = if side == Side::Server { self.ends } else { self.ends.reversed() };
            left -= self.peer(side).send(ends, (now, left), &mut |frame| out(side, frame));
        }
        most - left
    }

    /// Whether the server has refused the connection or has not answered.
    fn was_refused(&self) -> bool {
        let Status { is_established, failure, .. } = self.server.endpoint.status();
        !is_established && matches!(failure, Some(Failure::Refused | Failure::TimedOut))
    }
}

impl<A: Application> Connection for Relayed<A> {
    const ABOUT: &CStr = A::ABOUT;
    const KEEPS: Keeps = A::KEEPS;
    type Shared = Shared<A::Shared>;

    fn shared(host: &Host<'_>) -> Result<Self::Shared, String> {
        Ok(Shared { application: A::shared(host)?, refused: 0 })
    }

    fn counters() -> impl Iterator<Item = &'static str> {
        once("refused").chain(A::COUNTERS.iter().copied())
    }

    fn counts(shared: &mut Self::Shared) -> impl Iterator<Item = &mut u64> {
        once(&mut shared.refused).chain(A::counts(&mut shared.application))
    }

    /// Connections that began before the proxy are left alone.
    fn first(frame: &Frame<'_>, opening: &Opening<'_>, shared: &mut Self::Shared) -> First<Self> {
        match opening.begins {
            true => First::Begin(Self::new(frame, opening, &shared.application)),
            false => First::Pass,
        }
    }

    fn ends(&self) -> Ends {
        self.ends
    }

    fn client_is_left(&self) -> bool {
        self.client_is_left
    }

    fn segment(&mut self, frame: &Frame<'_>, now: u64) {
        let Some(from) = self.sender(frame.ends) else { return };
        self.peer(from).segment(frame, now);
    }

    fn too_long(&mut self, message: &TooLong) -> bool {
        // Segments with the server's ends leave by the client's side.
        let Some(from) = self.sender(message.ends) else { return false };
        self.peer(from.other()).endpoint.too_long(message.seq, message.most)
    }

    fn run(
        &mut self,
        (now, most): (u64, usize),
        shared: &mut Self::Shared,
        out: &mut dyn FnMut(Side, &[u8]),
    ) -> usize {
        let mut left = most;
        loop {
            self.carry(now, &mut shared.application);
            let sent = self.send((now, left), out);
            left -= sent;
            if left == 0 || sent == 0 && self.failed().is_none() {
                return most - left;
            }
        }
    }

    fn deadline(&self) -> Option<u64> {
        let peers = [&self.client, &self.server];
        peers.iter().filter_map(|peer| peer.endpoint.deadline()).min()
    }

    fn is_over(&self) -> bool {
        self.client.endpoint.status().is_over && self.server.endpoint.status().is_over
    }

    fn waits(&self) -> bool {
        [&self.client, &self.server].iter().all(|peer| {
            let Status { state, is_over, .. } = peer.endpoint.status();
            is_over || state == State::TimeWait
        })
    }

    fn may_begin_anew(&self, frame: &Frame<'_>) -> bool {
        let peer = match self.sender(frame.ends) {
            Some(Side::Client) => &self.client,
            Some(Side::Server) => &self.server,
            None => return false,
        };
        let makes_way = peer.endpoint.makes_way_for(&frame.segment);
        self.waits() && (makes_way || peer.endpoint.status().is_over)
    }

    fn end(&self, shared: &mut Self::Shared) {
        shared.refused += u64::from(self.was_refused());
    }

    fn memory(&self) -> usize {
        let Queues { to_client, to_server } = &self.queues;
        let endpoints = self.client.endpoint.memory() + self.server.endpoint.memory();
        endpoints + to_client.memory() + to_server.memory() + self.application.memory()
    }

    fn abort(&mut self) {
        self.client.endpoint.abort();
        self.server.endpoint.abort();
    }

    fn put(&mut self, _shared: &Self::Shared, out: &mut Vec<u8>) {
        self.ends.put(out);
        for flag in
            [self.client_is_left, self.has_server, self.client_has_ended, self.server_has_ended]
        {
            flag.put(out);
        }
        let mut application = Vec::new();
        self.application.put(&mut self.queues, &mut application);
        self.client.put(out);
        self.server.put(out);
        put_bytes(self.queues.to_client.waiting(), out);
        put_bytes(self.queues.to_server.waiting(), out);
        put_bytes(&application, out);
    }

    fn read(from: &mut Reader<'_>, _flow: Flow, shared: &mut Self::Shared) -> Option<Self> {
        let ends = Ends::read(from)?;
        let (client_is_left, has_server) = (bool::get(from)?, bool::get(from)?);
        let (client_has_ended, server_has_ended) = (bool::get(from)?, bool::get(from)?);
        let (client, server) = (Peer::read(from)?, Peer::read(from)?);
        let mut queues = Queues::default();
        queues.to_client.extend(from.bytes()?);
        queues.to_server.extend(from.bytes()?);
        let mut rest = from.bytes()?;
        let application = A::read(&mut rest, &shared.application).filter(|_| rest.is_empty())?;
        Some(Self {
            ends,
            client_is_left,
            client,
            server,
            client_has_ended,
            server_has_ended,
            has_server,
            queues,
            application,
        })
    }
}
