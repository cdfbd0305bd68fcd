//! Checks of servers: whether they answer a request of the balancer's own, or take its connection.

use crate::events::Events;
use crate::outgoing::Outgoing;
use crate::own::{Own, Place, address};
use braid_http::{Http, Line, Part};
use braid_native::{Dump, Host, Kind};
use braid_tcp::{Reader, Stored as _, put_bytes};
use std::net::{IpAddr, SocketAddr};

/// The time between checks, unless it is configured (ns).
const EVERY: u128 = 2_000_000_000;
/// The least time between checks (ns).
const LEAST_EVERY: u64 = 10_000_000;
/// How many checks must fail or succeed, unless it is configured.
const FALL: u128 = 3;
const RISE: u128 = 2;
/// The most bytes of the path.
const MOST_PATH: usize = 1_024;

/// The checks of all servers.
#[derive(Debug)]
pub struct Checks {
    /// What is asked for. Without it, there are no checks.
    path: Option<String>,
    /// The time between the checks of a server, and the most that a check takes (ns).
    every: u64,
    /// How many checks in a row must fail or succeed.
    fall: u64,
    rise: u64,
    /// One for each address and port, in the order of the servers.
    all: Vec<Check>,
    /// By server: its check.
    of_server: Vec<usize>,
    /// Whether there may be connections of an earlier instance that nobody needs.
    is_resumed: bool,
    counted: Counted,
}

/// What has been counted since the last call of [`Checks::counted`].
#[derive(Clone, Copy, Default, Debug)]
pub struct Counted {
    pub checks: u64,
    pub failed: u64,
    /// Servers that went down, and that came up again.
    pub went_down: u64,
    pub came_up: u64,
}

/// The checks of a server.
#[derive(Debug)]
struct Check {
    place: Place,
    /// Whether it is asked for the path. A server for TLS alone only has to take a connection.
    is_asked: bool,
    is_up: bool,
    /// How many results in a row speak against that.
    against: u64,
    /// When the next check begins, and the present one has failed (ns).
    next_at: Option<u64>,
    /// The response to the present one.
    running: Option<Http>,
    /// How many there were, and how many of them have failed.
    checks: u64,
    failed: u64,
}

impl Check {
    /// For a server that counts as up until its first check fails.
    fn new(place: Place, fall: u64) -> Self {
        Self {
            place,
            is_asked: false,
            is_up: true,
            against: fall - 1,
            next_at: None,
            running: None,
            checks: 0,
            failed: 0,
        }
    }
}

impl Checks {
    /// The configured ones, for these servers. `has_http` tells which of them get HTTP requests.
    pub fn new(
        host: &Host<'_>,
        places: &[Place],
        has_http: impl Fn(usize) -> bool,
    ) -> Result<Self, String> {
        let path = host.config_text("check", 0).filter(|path| !path.is_empty());
        let path = path.map(|path| match String::from_utf8(path) {
            Ok(path) if is_path(&path) => Ok(path),
            _ => Err("`check` is no path: it begins with `/`, and has no spaces"),
        });
        let number = |name, otherwise| {
            let number = host.config(name).unwrap_or(otherwise);
            u64::try_from(number).map_err(|_| format!("`{name}` is too large"))
        };
        let (every, fall, rise) =
            (number("check_every", EVERY)?, number("fall", FALL)?, number("rise", RISE)?);
        if fall == 0 || rise == 0 || every < LEAST_EVERY {
            return Err("`fall` and `rise` are at least 1, and `check_every` 10 ms".to_owned());
        }
        let path = path.transpose()?;
        let sources = host.config_rows::<2>("addresses");
        let has_source = |(to, _): &Place| {
            sources.iter().any(|[first, _]| address(*first).is_ipv4() == to.is_ipv4())
        };
        if path.is_some() && !places.iter().all(has_source) {
            let why = "checks come from the first of `addresses` of the server's IP version, and \
                       there is none";
            return Err(why.to_owned());
        }
        let (mut all, mut of_server) = (Vec::<Check>::new(), Vec::new());
        for (server, place) in places.iter().enumerate() {
            let known = all.iter().position(|one| one.place == *place);
            let at = known.unwrap_or(all.len());
            if known.is_none() {
                all.push(Check::new(*place, fall));
            }
            if let Some(check) = all.get_mut(at) {
                check.is_asked |= has_http(server);
            }
            of_server.push(at);
        }
        let (is_resumed, counted) = (false, Counted::default());
        Ok(Self { path, every, fall, rise, all, of_server, is_resumed, counted })
    }

    /// Whether a server is up, as far as checks say.
    pub fn is_up(&self, server: usize) -> bool {
        let check = self.of_server.get(server).and_then(|at| self.all.get(*at));
        self.path.is_none() || check.is_some_and(|check| check.is_up)
    }

    /// What has been counted since the last call.
    pub fn counted(&mut self) -> Counted {
        std::mem::take(&mut self.counted)
    }

    /// Goes on with the checks. Returns when there is something to do (ns).
    pub fn tend(&mut self, own: &mut Own, now: u64) -> Option<u64> {
        let Self { path, all, counted, .. } = self;
        let (every, limits) = (self.every, (self.fall, self.rise));
        let Some(path) = path else {
            own.retain(|_| false);
            return None;
        };
        if std::mem::take(&mut self.is_resumed) {
            own.retain(|to| all.iter().any(|one| one.place == to && one.running.is_some()));
        }
        if !own.is_ready() {
            return None;
        }
        let count = all.len() as u64;
        for (at, check) in (0..).zip(all) {
            // The servers take turns.
            let first_at = now.saturating_add(every / count * at);
            let next_at = *check.next_at.get_or_insert(first_at);
            let is_late = next_at <= now;
            if let Some(http) = &mut check.running {
                let mut connection = own.connection(check.place);
                let is_good = match &mut connection {
                    Some(connection) if check.is_asked => result(http, connection),
                    Some(connection) => is_taken(connection),
                    None => Some(false),
                };
                if let Some(is_good) = is_good.or(is_late.then_some(false)) {
                    connection.into_iter().for_each(Outgoing::reset);
                    check.running = None;
                    check.has_ended(is_good, limits, counted);
                }
            }
            if is_late {
                check.next_at = Some(now.saturating_add(every));
                if let Some(connection) = own.connect(check.place, now) {
                    if check.is_asked {
                        connection.write(request(path, check.place).as_bytes());
                    }
                    check.running = Some(Http::default());
                } else {
                    check.has_ended(false, limits, counted);
                }
            }
        }
        self.all.iter().filter_map(|check| check.next_at).min()
    }

    /// Shows the servers.
    pub fn dump(&self, into: &mut Dump<'_>) {
        for Check { place: (address, port), is_up, checks, failed, .. } in
            self.all.iter().filter(|_| self.path.is_some())
        {
            let address = match address {
                IpAddr::V4(address) => (Kind::Ip4, u128::from(u32::from(*address))),
                IpAddr::V6(address) => (Kind::Ip6, u128::from(*address)),
            };
            let key = [address, (Kind::Port, u128::from(*port))];
            let values = [
                (c"up", Kind::Uint, u128::from(*is_up)),
                (c"checks", Kind::Uint, u128::from(*checks)),
                (c"failed", Kind::Uint, u128::from(*failed)),
            ];
            into.entry(c"servers", &key, &values);
        }
    }

    /// Writes what another instance needs.
    pub fn put(&self, out: &mut Vec<u8>) {
        (self.all.len() as u64).put(out);
        for check in &self.all {
            let mut bytes = Vec::new();
            check.put(&mut bytes);
            put_bytes(&bytes, out);
        }
    }

    /// Reads what [`Self::put`] has written. `None` if the bytes are damaged.
    pub fn read(&mut self, from: &mut Reader<'_>) -> Option<()> {
        for _ in 0..from.len_of_list()? {
            let mut bytes = Reader(from.bytes()?);
            let mut check = Check::read(&mut bytes).filter(|_| bytes.is_at_end())?;
            if let Some(known) = self.all.iter_mut().find(|one| one.place == check.place) {
                let most = if check.is_up { self.fall } else { self.rise };
                check.against = check.against.min(most - 1);
                check.is_asked = known.is_asked;
                *known = check;
            }
        }
        self.is_resumed = true;
        Some(())
    }
}

impl Check {
    /// A check has succeeded or failed.
    fn has_ended(&mut self, is_good: bool, (fall, rise): (u64, u64), counted: &mut Counted) {
        self.checks += 1;
        counted.checks += 1;
        self.failed += u64::from(!is_good);
        counted.failed += u64::from(!is_good);
        if is_good == self.is_up {
            self.against = 0;
            return;
        }
        self.against += 1;
        if self.against < if self.is_up { fall } else { rise } {
            return;
        }
        (self.is_up, self.against) = (is_good, 0);
        counted.came_up += u64::from(is_good);
        counted.went_down += u64::from(!is_good);
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(SocketAddr::from(self.place).to_string().as_bytes(), out);
        self.is_up.put(out);
        self.against.put(out);
        self.next_at.put(out);
        self.checks.put(out);
        self.failed.put(out);
        self.running.is_some().put(out);
        if let Some(http) = &self.running {
            let mut bytes = Vec::new();
            http.put(&mut bytes);
            put_bytes(&bytes, out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let place: SocketAddr = std::str::from_utf8(from.bytes()?).ok()?.parse().ok()?;
        let (is_up, against, next_at) = (bool::get(from)?, u64::get(from)?, Option::get(from)?);
        let (checks, failed) = (u64::get(from)?, u64::get(from)?);
        let running = match bool::get(from)? {
            true => {
                let mut http = from.bytes()?;
                Some(Http::read(&mut http).filter(|_| http.is_empty())?)
            }
            false => None,
        };
        let place = (place.ip(), place.port());
        Some(Self { place, is_asked: false, is_up, against, next_at, running, checks, failed })
    }
}

/// The request of a check.
fn request(path: &str, place: Place) -> String {
    let host = SocketAddr::from(place);
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: braid\r\nConnection: close\r\n\r\n")
}

/// Whether a check without a request has succeeded, once the server has taken or refused the
/// connection.
fn is_taken(connection: &Outgoing) -> Option<bool> {
    let has_failed = connection.events().has_failed;
    (has_failed || connection.is_established()).then_some(!has_failed)
}

/// Whether a check has succeeded, once its response tells: 2xx or 3xx.
fn result(http: &mut Http, connection: &mut Outgoing) -> Option<bool> {
    loop {
        let bytes = connection.readable();
        let (len, mut rest) = (bytes.len(), bytes);
        let part = http.next(false, &mut rest);
        let code = match &part {
            Some(Part::Head(head)) => match head.line {
                Line::Response { code, .. } => Some(code),
                Line::Request { .. } => None,
            },
            _ => None,
        };
        // Interim responses come in front of the one that counts.
        let is_wrong = matches!(part, Some(Part::Malformed | Part::Crowded));
        let taken = len - rest.len();
        let is_moved = part.is_some() || taken > 0;
        connection.consume(taken);
        match code {
            Some(100..=199) if code != Some(101) => {}
            Some(code) => return Some((200..=399).contains(&code)),
            None if is_wrong || http.is_over(false) => return Some(false),
            None => {}
        }
        if !is_moved {
            let Events { is_at_end, has_failed, .. } = connection.events();
            return (is_at_end || has_failed).then_some(false);
        }
    }
}

/// Whether this is a path that may stand in a request.
fn is_path(path: &str) -> bool {
    path.starts_with('/') && path.len() <= MOST_PATH && path.bytes().all(|it| it.is_ascii_graphic())
}
