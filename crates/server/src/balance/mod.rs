//! A load balancer for HTTP/1: each request of a client's connection goes to a server of its own
//! (Microboxes, Liu et al., SIGCOMM 2018, §5, "L7 load balancer"). TLS connections go to a server
//! by its name.

mod checks;
mod cookie;
mod exchange;
mod heads;
mod hello;
mod servers;
mod tls;

use crate::events::Events;
use crate::outgoing::{MOST_OUTGOING, Outgoing};
use crate::own::Own;
use crate::server::{Server, Socket};
use braid_http::{Http, Part};
use braid_native::{Dump, Flow, Host, Keeps};
use braid_tcp::{Reader, Stored as _, put_bytes};
use checks::Counted;
use exchange::Exchange;
#[cfg(test)]
pub use hello::{Hello, MOST as MOST_HELLO};
use servers::Servers;
use std::ffi::CStr;
use tls::{DECODE_ERROR, First, INTERNAL_ERROR, Start, UNRECOGNIZED_NAME, alert};

/// As much waits for an end at most, besides what its endpoint has (bytes).
const MOST: usize = 64 << 10;

/// How long a server waits whose old connection has not ended yet (ns).
const RETRY: u64 = 1_000_000;
/// How long nothing may happen, unless it is configured (ns).
const PATIENCE: u128 = 60_000_000_000;

/// The names of the counters.
const COUNTERS: [&str; 9] = [
    "requests",
    "asked again",
    "not answered",
    "refused requests",
    "checks",
    "failed checks",
    "servers down",
    "servers up",
    "TLS connections",
];

/// What is counted, by its place among the names.
#[derive(Clone, Copy)]
enum Count {
    Requests,
    /// Requests that went to another server because one had failed.
    Again,
    /// Requests whose client got an error because servers had failed.
    Failed,
    /// Requests that are malformed, or for a tunnel.
    Refused,
    /// Checks, and the ones that have failed.
    Checks,
    FailedChecks,
    /// Servers that went down by checks, and that came up again.
    Down,
    Up,
    /// TLS connections whose first message was whole.
    Tls,
}

/// A client's connection.
#[derive(Debug)]
pub struct Balance {
    start: Start,
    http: Http,
    exchange: Option<Exchange>,
    /// What waits to be sent to the client.
    to_client: Vec<u8>,
    /// Whether the connection ends behind that.
    closes: bool,
    /// The servers to which there are connections.
    used: Vec<usize>,
    /// Whether a response was cut: the client gets a RST.
    is_broken: bool,
    /// When a server is to be asked whose old connection has not ended yet (ns).
    retry_at: Option<u64>,
    /// When the client or the server is given up, unless something happens (ns).
    until: Option<u64>,
}

/// What all connections share.
#[derive(Debug)]
pub struct Shared {
    servers: Servers,
    patience: u64,
    counts: [u64; COUNTERS.len()],
}

impl Shared {
    fn count(&mut self, what: Count) {
        self.add(what, 1);
    }

    fn add(&mut self, what: Count, more: u64) {
        if let Some(count) = self.counts.get_mut(what as usize) {
            *count += more;
        }
    }

    /// The connection to a server, if there is one.
    fn connection<'s>(
        &self,
        server: usize,
        socket: &'s mut Socket<'_>,
    ) -> Option<&'s mut Outgoing> {
        socket.outgoing(self.servers.place(server)?)
    }
}

impl Balance {
    fn with(http: Http) -> Self {
        let (exchange, to_client, used) = (None, Vec::new(), Vec::new());
        let (closes, is_broken, retry_at, until) = (false, false, None, None);
        let start = Start::Nothing;
        Self { start, http, exchange, to_client, closes, used, is_broken, retry_at, until }
    }

    /// The client gets an error, and its connection ends. So does that to a server in use.
    fn refuse(&mut self, status: &str, socket: &mut Socket<'_>, shared: &Shared) {
        let (server, is_tls) = self.exchange.as_ref().map(|one| (one.server, one.is_tls)).unzip();
        if let Some(server) = server.and_then(|server| shared.connection(server, socket)) {
            server.reset();
        }
        if is_tls == Some(true) {
            self.to_client.extend(alert(INTERNAL_ERROR));
        } else {
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            self.to_client.extend(head.as_bytes());
        }
        (self.exchange, self.closes) = (None, true);
    }

    /// Writes what waits for the client, as far as there is room. Returns the number of bytes.
    fn write(&mut self, socket: &mut Socket<'_>) -> usize {
        let count = socket.write(&self.to_client);
        self.to_client.drain(..count);
        count
    }

    /// Takes the next part of the client's requests. Returns whether there was one.
    fn read_request(&mut self, socket: &mut Socket<'_>, shared: &mut Shared) -> bool {
        let Self { http, exchange, .. } = self;
        // One request is answered at a time, and its body waits until a server has taken it.
        let reads = match exchange {
            Some(one) if one.is_asked => return false,
            Some(one) => one.is_connected && one.to_server.len() < MOST,
            None => true,
        };
        let bytes = if reads { socket.readable() } else { &[] };
        let (len, mut rest) = (bytes.len(), bytes);
        let part = http.next(true, &mut rest);
        let is_part = part.is_some();
        let mut refused = None;
        match (part, exchange) {
            (Some(Part::Head(head)), exchange) => {
                shared.count(Count::Requests);
                match Exchange::of(&head, &mut shared.servers, socket.now()) {
                    Ok(one) => *exchange = Some(one),
                    Err(status) => refused = Some(status),
                }
            }
            (Some(Part::Body(bytes, _)), Some(one)) => {
                one.head = None;
                one.to_server.extend(bytes);
            }
            (Some(Part::End), Some(one)) => one.is_asked = true,
            (None, _) => {}
            _ => refused = Some("400 Bad Request"),
        }
        let taken = len - rest.len();
        if !is_part && len > 0 && http.is_over(true) {
            refused = Some("400 Bad Request");
        }
        socket.consume(taken);
        if let Some(status) = refused {
            shared.count(Count::Refused);
            self.refuse(status, socket, shared);
        }
        is_part || taken > 0
    }

    /// Takes bytes of the first message of TLS. Returns whether there were any.
    fn read_hello(&mut self, socket: &mut Socket<'_>, shared: &mut Shared) -> bool {
        let servers = &mut shared.servers;
        let refused = match self.start.take(socket, servers.takes_tls()) {
            First::Nothing => return false,
            First::Some => return true,
            First::Wrong => Some(DECODE_ERROR),
            First::Whole(hello, name) => {
                let group = servers.tls_group(&name);
                self.exchange =
                    group.and_then(|group| Exchange::of_tls(hello, group, servers, socket.now()));
                shared.count(Count::Tls);
                self.exchange.is_none().then_some(UNRECOGNIZED_NAME)
            }
        };
        if let Some(reason) = refused {
            shared.count(Count::Refused);
            self.to_client.extend(alert(reason));
            self.closes = true;
        }
        true
    }

    /// Begins to carry bytes both ways when the first ones of a TLS server have come. Returns
    /// whether they have: now no other server can be asked any more.
    fn hear_server(&mut self, socket: &mut Socket<'_>, shared: &Shared) -> bool {
        let Some(one) = &mut self.exchange else { return false };
        let server = shared.connection(one.server, socket);
        let has_answered = server.is_some_and(|server| server.events().is_readable);
        if has_answered {
            one.begin_tunnel();
        }
        has_answered
    }

    /// Connects to the server, and sends it what waits. Returns whether anything was sent.
    fn ask(&mut self, socket: &mut Socket<'_>, shared: &mut Shared) -> bool {
        let Some(one) = &mut self.exchange else { return false };
        let now = socket.now();
        let Some(place) = shared.servers.place(one.server) else { return false };
        if socket.outgoing(place).is_none() {
            if self.used.len() >= MOST_OUTGOING
                && let Some(oldest) = shared.connection(self.used.remove(0), socket)
            {
                oldest.reset();
            }
            if socket.connect(place).is_none() {
                // An old connection between the same ports, or one too many, has not ended yet.
                self.retry_at = Some(now.saturating_add(RETRY));
                return false;
            }
            if !self.used.contains(&one.server) {
                self.used.push(one.server);
            }
        }
        let Some(server) = socket.outgoing(place) else { return false };
        let Events { has_failed, is_at_end, .. } = server.events();
        if (has_failed || is_at_end) && !one.is_answering {
            // A server may end a connection just when it gets another request.
            if !one.is_connected || has_failed {
                shared.servers.failed(one.server, now);
            }
            server.reset();
            let is_asked = one.ask_again(&mut shared.servers, now);
            shared.count(if is_asked { Count::Again } else { Count::Failed });
            if !is_asked {
                self.refuse("502 Bad Gateway", socket, shared);
            }
            return true;
        }
        let was_connected = std::mem::replace(&mut one.is_connected, server.is_established());
        let count = server.write(&one.to_server);
        one.to_server.drain(..count);
        count > 0 || one.is_connected != was_connected
    }

    /// Takes the next part of the server's response. Returns whether there was one.
    fn read_response(&mut self, socket: &mut Socket<'_>, shared: &mut Shared) -> bool {
        let Self { http, exchange, to_client, is_broken, .. } = self;
        let Some(one) = exchange.as_mut().filter(|_| to_client.len() < MOST) else { return false };
        let Some(server) = shared.connection(one.server, socket) else { return false };
        let Events { is_at_end, has_failed, .. } = server.events();
        let bytes = server.readable();
        let (len, mut rest) = (bytes.len(), bytes);
        let part = http.next(false, &mut rest);
        let is_part = part.is_some();
        let (mut is_over, mut is_malformed) = (false, false);
        match part {
            Some(Part::Head(head)) => to_client.extend(one.answer(&head, &shared.servers)),
            Some(Part::Body(bytes, _)) => to_client.extend(bytes),
            Some(Part::End) if one.is_interim => one.is_interim = false,
            Some(Part::End) => is_over = true,
            Some(Part::Malformed | Part::Crowded) => is_malformed = true,
            None if one.is_answering && (is_at_end || has_failed) && len == rest.len() => {
                // The end of the connection is the end of the response, or cuts it.
                is_over = one.until_end && !has_failed;
                *is_broken = !is_over;
            }
            None => is_malformed = http.is_over(false) && len > 0 && !one.is_tunnel,
        }
        let taken = len - rest.len();
        server.consume(taken);
        if taken > 0 {
            // No other server can be asked any more.
            one.head = None;
        }
        if is_over {
            if one.server_closes || !one.is_asked {
                server.reset();
            }
            self.closes = one.closes || !one.is_asked;
            self.exchange = None;
        } else if is_malformed && one.is_answering {
            self.is_broken = true;
        } else if is_malformed {
            shared.count(Count::Failed);
            self.refuse("502 Bad Gateway", socket, shared);
        }
        is_part || taken > 0
    }

    /// Carries bytes of another protocol both ways. Returns whether there were any.
    fn carry(&mut self, socket: &mut Socket<'_>, shared: &Shared) -> bool {
        let Some(one) = &mut self.exchange else { return false };
        let mut moved = 0;
        if one.to_server.len() < MOST {
            let bytes = socket.readable();
            one.to_server.extend(bytes);
            let count = bytes.len();
            socket.consume(count);
            moved += count;
        }
        let client_has_ended = socket.events().is_at_end;
        let Some(server) = shared.connection(one.server, socket) else {
            self.is_broken = true;
            return false;
        };
        let count = server.write(&one.to_server);
        one.to_server.drain(..count);
        if self.to_client.len() < MOST {
            let bytes = server.readable();
            self.to_client.extend(bytes);
            let count = bytes.len();
            server.consume(count);
            moved += count;
        }
        let Events { is_at_end, has_failed, .. } = server.events();
        if client_has_ended && one.to_server.is_empty() {
            server.shut_down();
        }
        self.is_broken = has_failed;
        if is_at_end && self.to_client.is_empty() {
            socket.shut_down();
            self.closes = client_has_ended && one.to_server.is_empty();
        }
        moved + count > 0
    }

    /// Gives up who has done nothing for too long: a client, or a server that is to answer.
    fn be_patient(&mut self, is_busy: bool, socket: &mut Socket<'_>, shared: &mut Shared) {
        let now = socket.now();
        let is_over = self.until.is_some_and(|until| until <= now) && !is_busy;
        if is_busy || self.until.is_none() || is_over {
            self.until = Some(now.saturating_add(shared.patience));
        }
        match &self.exchange {
            _ if !is_over => {}
            None => self.closes = true,
            Some(one) if one.is_tunnel => {}
            Some(one) if one.is_answering || !one.is_asked => self.is_broken = true,
            Some(one) => {
                shared.servers.failed(one.server, now);
                shared.count(Count::Failed);
                self.refuse("504 Gateway Timeout", socket, shared);
            }
        }
    }

    /// Closes all connections to servers. One of them may be answering.
    fn leave_servers(&mut self, socket: &mut Socket<'_>, shared: &Shared) {
        for server in self.used.drain(..) {
            let answers = self.exchange.as_ref().is_some_and(|one| one.server == server);
            match shared.connection(server, socket) {
                Some(server) if answers => server.reset(),
                Some(server) => server.close(),
                None => {}
            }
        }
    }

    /// Closes connections to servers that these have ended. None of them is being used.
    fn close_ended(&mut self, socket: &mut Socket<'_>, shared: &Shared) {
        self.used.retain(|server| {
            let Some(server) = shared.connection(*server, socket) else { return false };
            let Events { is_readable, is_at_end, has_failed, .. } = server.events();
            // Nobody has asked for what it says.
            let is_useless = is_readable || is_at_end || has_failed;
            if is_useless {
                server.reset();
            }
            !is_useless
        });
    }
}

impl Server for Balance {
    const ABOUT: &CStr = c"gives each HTTP request to a server that it asks for";
    const COUNTERS: &[&str] = &COUNTERS;
    const KEEPS: Keeps = Keeps::Anything;
    const CONNECTS: bool = true;
    type Shared = Shared;

    fn shared(host: &Host<'_>) -> Result<Shared, String> {
        let patience = host.config("patience").unwrap_or(PATIENCE);
        let patience = u64::try_from(patience).map_err(|_| "`patience` is too large")?;
        Ok(Shared { servers: Servers::new(host)?, patience, counts: [0; COUNTERS.len()] })
    }

    fn counts(shared: &mut Shared) -> &mut [u64] {
        &mut shared.counts
    }

    fn tend(own: &mut Own, now: u64, shared: &mut Shared) -> Option<u64> {
        let due = shared.servers.checks.tend(own, now);
        let Counted { checks, failed, went_down, came_up } = shared.servers.checks.counted();
        shared.add(Count::Checks, checks);
        shared.add(Count::FailedChecks, failed);
        shared.add(Count::Down, went_down);
        shared.add(Count::Up, came_up);
        due
    }

    fn dump(shared: &Shared, into: &mut Dump<'_>) {
        shared.servers.checks.dump(into);
    }

    fn put_shared(shared: &Shared, out: &mut Vec<u8>) {
        shared.servers.put(out);
    }

    fn read_shared(from: &mut Reader<'_>, shared: &mut Shared) -> Option<()> {
        shared.servers.read(from)
    }

    fn accept(_flow: Flow, _shared: &mut Shared) -> Self {
        Self::with(Http::default())
    }

    fn ready(&mut self, socket: &mut Socket<'_>, shared: &mut Shared) {
        self.retry_at = None;
        if socket.events().has_failed {
            return self.leave_servers(socket, shared);
        }
        let mut is_busy = false;
        loop {
            let count = self.write(socket);
            is_busy |= count > 0;
            if self.closes {
                break;
            }
            let kind = self.exchange.as_ref().map(|one| (one.is_tunnel, one.is_tls));
            let moved = match kind {
                Some((true, _)) => self.carry(socket, shared),
                Some((_, true)) => {
                    let is_asked = self.ask(socket, shared);
                    self.hear_server(socket, shared) || is_asked
                }
                _ if self.read_hello(socket, shared) => true,
                _ if self.start != Start::Known => false,
                _ => {
                    let is_read = self.read_request(socket, shared);
                    let is_asked = self.ask(socket, shared);
                    self.read_response(socket, shared) || is_read || is_asked
                }
            };
            is_busy |= moved;
            if !moved && count == 0 || self.is_broken {
                break;
            }
        }
        self.be_patient(is_busy, socket, shared);
        self.write(socket);
        if self.exchange.is_none() {
            self.close_ended(socket, shared);
        }
        if socket.events().is_at_end {
            match &self.exchange {
                None => self.closes = true,
                // The rest of the request does not come.
                Some(one) => self.is_broken |= !one.is_asked,
            }
        }
        if self.is_broken {
            socket.reset();
            self.leave_servers(socket, shared);
        } else if self.closes && self.to_client.is_empty() {
            socket.close();
            self.leave_servers(socket, shared);
        }
    }

    fn deadline(&self) -> Option<u64> {
        self.retry_at.into_iter().chain(self.until).min()
    }

    fn memory(&self) -> usize {
        let exchange = self.exchange.as_ref().map_or(0, Exchange::memory);
        self.start.memory() + self.http.memory() + self.to_client.capacity() + exchange
    }

    fn put(&mut self, out: &mut Vec<u8>) {
        self.start.put(out);
        let mut http = Vec::new();
        self.http.put(&mut http);
        put_bytes(&http, out);
        put_bytes(&self.to_client, out);
        self.closes.put(out);
        self.is_broken.put(out);
        self.until.put(out);
        (self.used.len() as u64).put(out);
        self.used.iter().for_each(|server| (*server as u64).put(out));
        self.exchange.is_some().put(out);
        if let Some(exchange) = &self.exchange {
            exchange.put(out);
        }
    }

    fn read(from: &mut Reader<'_>, _flow: Flow, _shared: &mut Shared) -> Option<Self> {
        let start = Start::read(from)?;
        let mut http = from.bytes()?;
        let mut it = Self::with(Http::read(&mut http).filter(|_| http.is_empty())?);
        it.start = start;
        it.to_client = from.bytes()?.to_vec();
        (it.closes, it.is_broken) = (bool::get(from)?, bool::get(from)?);
        it.until = Option::get(from)?;
        for _ in 0..u64::get(from)? {
            it.used.push(usize::try_from(u64::get(from)?).ok()?);
        }
        it.exchange = if bool::get(from)? { Some(Exchange::read(from)?) } else { None };
        Some(it)
    }
}
