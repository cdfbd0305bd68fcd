//! A connection that a server serves: its endpoint, and the server.

use crate::cookies;
use crate::outgoing::{MOST_OUTGOING, Openers, Outgoings};
use crate::own::Own;
use crate::server::{End, Server, Socket};
use braid_connections::wire::{Ends, Frame, TooLong};
use braid_connections::{Connection, First, Opening, Peer, Secret, Side, answer, settings};
use braid_endpoint::{Endpoint, Failure, Settings, Status, refusal};
use braid_native::{Dump, Flow, Host, Keeps};
use braid_tcp::{Flags, Reader, State, Stored as _, put_bytes};
use std::ffi::CStr;
use std::sync::Arc;

/// How long the bytes of a client are thrown away when the server has closed, and the client has
/// acknowledged all that was written (ns).
const LINGER: u64 = 10_000_000_000;
/// The most connections that are half open before SYNs get cookies, unless it is configured.
const HALF_OPEN: u128 = 1_024;

/// The names of the counters that all servers have.
const COUNTERS: [&str; 5] = ["refused", "cookies", "begun by cookies", "failed", "reset"];

/// What has been counted, by its place among the names.
#[derive(Clone, Copy)]
enum Count {
    Refused,
    Cookies,
    BegunByCookies,
    Failed,
    Reset,
}

/// What all connections of a server share.
#[derive(Debug)]
pub struct Shared<S> {
    server: S,
    /// Each connection that is half open has a part of it.
    half_open: Arc<()>,
    most_half_open: usize,
    /// Until when acknowledgements of cookies count (ns).
    cookies_until: u64,
    openers: Openers,
    /// Connections that belong to no client.
    own: Own,
    /// How connections to other hosts begin, if an instance goes on with those of another one.
    opening: (Settings, Secret),
    counts: [u64; COUNTERS.len()],
}

impl<S> Shared<S> {
    fn count(&mut self, what: Count) {
        if let Some(count) = self.counts.get_mut(what as usize) {
            *count += 1;
        }
    }
}

/// A connection that a server serves.
#[derive(Debug)]
pub struct Served<S> {
    /// From the client to the server.
    ends: Ends,
    client_is_left: bool,
    flow: Flow,
    client: Peer,
    outgoing: Outgoings,
    /// While it is half open.
    half_open: Option<Arc<()>>,
    /// From the time when it is established until the server has closed it.
    server: Option<S>,
    /// Whether it was ever established.
    is_accepted: bool,
    /// When the server has closed it, or later, when all was not yet acknowledged (ns).
    closed_at: Option<u64>,
}

impl<S: Server> Served<S> {
    fn new(
        frame: &Frame<'_>,
        opening: &Opening<'_>,
        endpoint: Endpoint,
        openers: &Openers,
    ) -> Self {
        let settings = (opening.settings, opening.secret.clone());
        Self {
            outgoing: Outgoings::new(opening.flow, settings, openers, MOST_OUTGOING),
            ends: frame.ends,
            client_is_left: opening.client_is_left,
            flow: opening.flow,
            client: Peer::answering(endpoint, frame),
            half_open: None,
            server: None,
            is_accepted: false,
            closed_at: None,
        }
    }

    /// Lets the server do what can be done now.
    fn serve(&mut self, now: u64, shared: &mut Shared<S::Shared>) {
        let Status { is_established, failure, is_over, .. } = self.client.endpoint.status();
        if is_established || is_over {
            self.half_open = None;
        }
        if is_established && !self.is_accepted && failure.is_none() {
            self.is_accepted = true;
            self.server = Some(S::accept(self.flow, &mut shared.server));
            shared.own.meet(self.client.incoming_link(), self.client_is_left);
        }
        if let Some(server) = &mut self.server {
            let mut end = End::No;
            self.outgoing.leave_by(&self.client);
            let mut socket = Socket {
                endpoint: &mut self.client.endpoint,
                ends: self.ends,
                now,
                end: &mut end,
                outgoing: &mut self.outgoing,
            };
            server.ready(&mut socket, &mut shared.server);
            match end {
                End::No if failure.is_none() => {}
                End::No => {
                    shared.count(Count::Failed);
                    self.server = None;
                }
                End::Closed => {
                    self.server = None;
                    self.closed_at = Some(now);
                }
                End::Reset => {
                    shared.count(Count::Reset);
                    self.server = None;
                    self.client.endpoint.abort();
                }
            }
        }
        if self.server.is_none() {
            self.outgoing.end();
        }
        self.linger(now);
    }

    /// Throws bytes of the client away when the server has closed.
    fn linger(&mut self, now: u64) {
        let Some(closed_at) = self.closed_at else { return };
        let endpoint = &mut self.client.endpoint;
        let (first, second) = endpoint.readable();
        let count = first.len() + second.len();
        endpoint.consume(count);
        let Status { state, is_all_acknowledged, is_over, .. } = endpoint.status();
        if is_over || state == State::TimeWait {
            self.closed_at = None;
        } else if !is_all_acknowledged {
            self.closed_at = Some(now);
        } else if now >= closed_at.saturating_add(LINGER) {
            self.closed_at = None;
            endpoint.abort();
        }
    }
}

impl<S: Server> Connection for Served<S> {
    const ABOUT: &CStr = S::ABOUT;
    const KEEPS: Keeps = S::KEEPS;
    const IS_END: bool = true;
    const OPENS: bool = S::CONNECTS;
    type Shared = Shared<S::Shared>;

    fn shared(host: &Host<'_>) -> Result<Self::Shared, String> {
        let most = host.config("half_open").unwrap_or(HALF_OPEN);
        let most = u64::try_from(most).map_err(|_| "`half_open` is too large")?;
        let most = usize::try_from(host.share(most)).unwrap_or(usize::MAX);
        let opening = (settings(host)?, Secret::new(host.config("seed").ok()));
        let openers = Openers::default();
        Ok(Shared {
            server: S::shared(host)?,
            half_open: Arc::new(()),
            most_half_open: most,
            cookies_until: 0,
            own: Own::new(host, opening.clone(), &openers),
            openers,
            opening,
            counts: [0; COUNTERS.len()],
        })
    }

    fn counters() -> impl Iterator<Item = &'static str> {
        COUNTERS.into_iter().chain(S::COUNTERS.iter().copied())
    }

    fn counts(shared: &mut Self::Shared) -> impl Iterator<Item = &mut u64> {
        shared.counts.iter_mut().chain(S::counts(&mut shared.server))
    }

    fn first(frame: &Frame<'_>, opening: &Opening<'_>, shared: &mut Self::Shared) -> First<Self> {
        let Opening { settings, secret, now, .. } = opening;
        let refuse =
            |frame: &Frame<'_>| refusal(&frame.segment).map(|segment| answer(frame, &segment));
        if !opening.begins {
            let is_in_time = *now < shared.cookies_until && !frame.segment.flags.has(Flags::RST);
            let endpoint = is_in_time.then(|| cookies::accept(frame, (secret, settings), *now));
            return match endpoint.flatten() {
                Some(endpoint) => {
                    shared.count(Count::BegunByCookies);
                    First::Begin(Self::new(frame, opening, endpoint, &shared.openers))
                }
                None => First::Answer(refuse(frame)),
            };
        }
        if !S::listens(frame.ends.to, &mut shared.server) {
            shared.count(Count::Refused);
            return First::Answer(refuse(frame));
        }
        // One part is that of `shared`.
        if Arc::strong_count(&shared.half_open) > shared.most_half_open {
            shared.count(Count::Cookies);
            shared.cookies_until = now.saturating_add(cookies::LIFE);
            let segment = cookies::answer(frame, (secret, settings), *now);
            return First::Answer(Some(answer(frame, &segment)));
        }
        let isn = secret.isn(frame.ends, *now);
        let endpoint = Endpoint::accept(settings, &frame.segment, isn, *now);
        let half_open = Some(Arc::clone(&shared.half_open));
        First::Begin(Self { half_open, ..Self::new(frame, opening, endpoint, &shared.openers) })
    }

    fn opener(shared: &Self::Shared, ends: Ends) -> Option<Flow> {
        shared.openers.find(ends)
    }

    fn is_own(shared: &Self::Shared, ends: Ends) -> bool {
        shared.own.has(ends)
    }

    fn own_segment(frame: &Frame<'_>, now: u64, shared: &mut Self::Shared) {
        shared.own.segment(frame, now);
    }

    fn own_deadline(shared: &Self::Shared) -> Option<u64> {
        shared.own.due()
    }

    fn run_own(
        (now, most): (u64, usize),
        shared: &mut Self::Shared,
        out: &mut dyn FnMut(bool, &[u8]),
    ) -> usize {
        let deadline = S::tend(&mut shared.own, now, &mut shared.server);
        shared.own.send((now, most), deadline, out)
    }

    fn dump(shared: &Self::Shared, into: &mut Dump<'_>) {
        S::dump(&shared.server, into);
    }

    fn ends(&self) -> Ends {
        self.ends
    }

    fn client_is_left(&self) -> bool {
        self.client_is_left
    }

    fn segment(&mut self, frame: &Frame<'_>, now: u64) {
        match frame.ends == self.ends {
            true => self.client.segment(frame, now),
            false => {
                self.outgoing.segment(frame, now);
            }
        }
    }

    fn too_long(&mut self, message: &TooLong) -> bool {
        match message.ends == self.ends.reversed() {
            true => self.client.endpoint.too_long(message.seq, message.most),
            false => self.outgoing.too_long(message),
        }
    }

    fn run(
        &mut self,
        (now, most): (u64, usize),
        shared: &mut Self::Shared,
        out: &mut dyn FnMut(Side, &[u8]),
    ) -> usize {
        self.serve(now, shared);
        let ends = self.ends.reversed();
        let sent = self.client.send(ends, (now, most), &mut |frame| out(Side::Client, frame));
        let left = (now, most - sent);
        let sent = sent + self.outgoing.send(left, &mut |frame| out(Side::Server, frame));
        if self.server.is_some() && self.client.endpoint.status().failure == Some(Failure::TimedOut)
        {
            // The server learns of what has happened while the endpoint was sending.
            self.serve(now, shared);
        }
        sent
    }

    fn deadline(&self) -> Option<u64> {
        let server = self.server.as_ref().and_then(S::deadline);
        let linger = self.closed_at.map(|at| at.saturating_add(LINGER));
        let peers = [self.client.endpoint.deadline(), self.outgoing.deadline()];
        peers.into_iter().chain([server, linger]).flatten().min()
    }

    fn is_over(&self) -> bool {
        let is_over = self.client.endpoint.status().is_over;
        is_over && self.server.is_none() && self.outgoing.is_empty()
    }

    fn waits(&self) -> bool {
        let Status { state, is_over, .. } = self.client.endpoint.status();
        is_over || state == State::TimeWait
    }

    fn may_begin_anew(&self, frame: &Frame<'_>) -> bool {
        let is_over = self.client.endpoint.status().is_over;
        frame.ends == self.ends && (is_over || self.client.endpoint.makes_way_for(&frame.segment))
    }

    fn memory(&self) -> usize {
        let server = self.server.as_ref().map_or(0, |server| size_of::<S>() + server.memory());
        self.client.endpoint.memory() + self.outgoing.memory() + server
    }

    fn abort(&mut self) {
        self.server = None;
        self.client.endpoint.abort();
        self.outgoing.end();
    }

    fn put(&mut self, _shared: &Self::Shared, out: &mut Vec<u8>) {
        self.ends.put(out);
        for flag in [self.client_is_left, self.half_open.is_some(), self.is_accepted] {
            flag.put(out);
        }
        self.closed_at.put(out);
        self.client.put(out);
        self.outgoing.put(out);
        self.server.is_some().put(out);
        if let Some(server) = &mut self.server {
            let mut bytes = Vec::new();
            server.put(&mut bytes);
            put_bytes(&bytes, out);
        }
    }

    fn read(from: &mut Reader<'_>, flow: Flow, shared: &mut Self::Shared) -> Option<Self> {
        let ends = Ends::read(from)?;
        let client_is_left = bool::get(from)?;
        let half_open = bool::get(from)?.then(|| Arc::clone(&shared.half_open));
        let is_accepted = bool::get(from)?;
        let closed_at = Option::get(from)?;
        let client = Peer::read(from)?;
        let mut outgoing =
            Outgoings::new(flow, shared.opening.clone(), &shared.openers, MOST_OUTGOING);
        outgoing.read(from)?;
        let server = match bool::get(from)? {
            true => {
                let mut bytes = Reader(from.bytes()?);
                let server = S::read(&mut bytes, flow, &mut shared.server);
                Some(server.filter(|_| bytes.is_at_end())?)
            }
            false => None,
        };
        Some(Self {
            ends,
            client_is_left,
            flow,
            client,
            outgoing,
            half_open,
            server,
            is_accepted,
            closed_at,
        })
    }

    fn put_shared(shared: &Self::Shared, out: &mut Vec<u8>) {
        shared.cookies_until.put(out);
        shared.own.put(out);
        S::put_shared(&shared.server, out);
    }

    fn read_shared(from: &mut Reader<'_>, shared: &mut Self::Shared) -> Option<()> {
        shared.cookies_until = u64::get(from)?;
        shared.own.read(from)?;
        S::read_shared(from, &mut shared.server)
    }

    fn watches(shared: &Self::Shared) -> bool {
        S::watches(&shared.server)
    }

    fn woken(shared: &mut Self::Shared, now: u64) -> Vec<Flow> {
        S::woken(&mut shared.server, now)
    }
}
