//! A request that is being answered, or a TLS connection that is being carried.

use super::heads::{Onward, is_last};
use super::servers::Servers;
use braid_http::{Head, Line};
use braid_tcp::{Reader, Stored as _, put_bytes};

/// How many servers may fail before the client learns of it.
const MOST_FAILURES: u8 = 3;

/// A request that is being answered, or a TLS connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchange {
    pub group: usize,
    /// The server that is asked.
    pub server: usize,
    /// The tokens of servers in the cookie that the client has shown.
    shown: Vec<u64>,
    /// How many servers have failed.
    pub failures: u8,
    /// The head, as long as another server can be asked: nothing else has been sent, and nothing
    /// has come.
    pub head: Option<Vec<u8>>,
    /// What waits to be sent to the server.
    pub to_server: Vec<u8>,
    /// Whether the server has taken the connection.
    pub is_connected: bool,
    /// Whether the request is complete.
    pub is_asked: bool,
    /// Whether the response has begun, and whether what has begun is an interim response.
    pub is_answering: bool,
    pub is_interim: bool,
    /// Whether a response has no body, whatever its head says.
    is_head: bool,
    /// Whether the connection goes over to another protocol if the server agrees.
    upgrades: bool,
    /// Whether it has gone over, or the server of a TLS connection has sent something.
    pub is_tunnel: bool,
    /// Whether it is a TLS connection.
    pub is_tls: bool,
    /// Whether the client's connection ends behind the response, and whether the server's does.
    pub closes: bool,
    pub server_closes: bool,
    /// Whether the response lasts until the server's connection ends.
    pub until_end: bool,
}

impl Exchange {
    /// For a request with this head.
    ///
    /// # Errors
    /// The status of the response, if no server may get the request.
    pub fn of(head: &Head<'_>, servers: &mut Servers, now: u64) -> Result<Self, &'static str> {
        if head.is_ambiguous() {
            return Err("400 Bad Request");
        }
        let group = servers.group(head.bytes);
        let method = match head.line {
            Line::Request { method: "CONNECT", .. } => return Err("405 Method Not Allowed"),
            Line::Request { method, .. } => method,
            Line::Response { .. } => "",
        };
        let shown = servers.cookies().shown(head);
        let server = servers.choose(group, &shown, None, now).ok_or("502 Bad Gateway")?;
        let upgrades = head.connection_has(b"upgrade");
        let cookies = servers.cookies();
        let onward = Onward { cookies, keeps_all: upgrades, closes: false, cookie: None };
        let bytes = onward.write(head);
        let (is_head, closes) = (method == "HEAD", is_last(head));
        Ok(Self { shown, is_head, upgrades, closes, ..Self::new(group, server, bytes) })
    }

    /// For a TLS connection that has begun with these bytes. `None` if there is no such group.
    pub fn of_tls(hello: Vec<u8>, group: usize, servers: &mut Servers, now: u64) -> Option<Self> {
        let server = servers.choose(group, &[], None, now)?;
        Some(Self { is_tls: true, is_asked: true, ..Self::new(group, server, hello) })
    }

    /// For a server that gets these bytes first.
    fn new(group: usize, server: usize, bytes: Vec<u8>) -> Self {
        Self {
            group,
            server,
            shown: Vec::new(),
            failures: 0,
            to_server: bytes.clone(),
            head: Some(bytes),
            is_connected: false,
            is_asked: false,
            is_answering: false,
            is_interim: false,
            is_head: false,
            upgrades: false,
            is_tunnel: false,
            is_tls: false,
            closes: false,
            server_closes: false,
            until_end: false,
        }
    }

    /// The server of a TLS connection has sent its first bytes.
    pub fn begin_tunnel(&mut self) {
        self.head = None;
        (self.is_answering, self.is_tunnel) = (true, true);
    }

    /// The head of a response has come. Returns the one for the client.
    pub fn answer(&mut self, head: &Head<'_>, servers: &Servers) -> Vec<u8> {
        let code = match head.line {
            Line::Response { code, .. } => code,
            Line::Request { .. } => 0,
        };
        self.is_interim = (100..=199).contains(&code) && code != 101;
        if self.is_interim {
            return head.bytes.to_vec();
        }
        self.is_answering = true;
        self.is_tunnel = self.upgrades && code == 101;
        let cookies = servers.cookies();
        let cookie = cookies.cookie(self.server, servers.of_group(self.group), &self.shown);
        if self.is_tunnel {
            return Onward { cookies, keeps_all: true, closes: false, cookie }.write(head);
        }
        let has_length = head.is_chunked() || !matches!(head.content_length(), Ok(None));
        let has_body = !self.is_head && !matches!(code, 204 | 304);
        self.until_end = has_body && !has_length;
        self.server_closes = is_last(head) || self.until_end;
        self.closes |= self.until_end;
        Onward { cookies, keeps_all: false, closes: self.closes, cookie }.write(head)
    }

    /// Asks another server of the group, if the request can be sent again. Returns whether there is
    /// one.
    pub fn ask_again(&mut self, servers: &mut Servers, now: u64) -> bool {
        self.failures += 1;
        let next = servers.choose(self.group, &self.shown, Some(self.server), now);
        let next = next.filter(|_| self.failures < MOST_FAILURES);
        let (Some(server), Some(head)) = (next, &self.head) else { return false };
        (self.server, self.is_connected) = (server, false);
        self.to_server = head.clone();
        true
    }

    /// The memory that it takes besides its own size (bytes).
    pub fn memory(&self) -> usize {
        self.head.as_ref().map_or(0, Vec::capacity) + self.to_server.capacity()
    }

    /// Writes it.
    pub fn put(&self, out: &mut Vec<u8>) {
        (self.group as u64).put(out);
        (self.server as u64).put(out);
        (self.shown.len() as u64).put(out);
        self.shown.iter().for_each(|token| token.put(out));
        self.failures.put(out);
        self.head.is_some().put(out);
        put_bytes(self.head.as_deref().unwrap_or_default(), out);
        put_bytes(&self.to_server, out);
        let Self { is_connected, is_asked, is_answering, is_interim, is_head, upgrades, .. } = self;
        let Self { is_tunnel, is_tls, closes, server_closes, until_end, .. } = self;
        for flag in [is_connected, is_asked, is_answering, is_interim, is_head, upgrades]
            .into_iter()
            .chain([is_tunnel, is_tls, closes, server_closes, until_end])
        {
            flag.put(out);
        }
    }

    /// Reads what [`Self::put`] has written. `None` if the bytes are damaged.
    pub fn read(from: &mut Reader<'_>) -> Option<Self> {
        let (group, server) = (u64::get(from)?, u64::get(from)?);
        let shown = (0..from.len_of_list()?).map(|_| u64::get(from));
        let shown = shown.collect::<Option<_>>()?;
        let (failures, has_head) = (u8::get(from)?, bool::get(from)?);
        let (head, to_server) = (from.bytes()?.to_vec(), from.bytes()?.to_vec());
        Some(Self {
            group: usize::try_from(group).ok()?,
            server: usize::try_from(server).ok()?,
            shown,
            failures,
            head: has_head.then_some(head),
            to_server,
            is_connected: bool::get(from)?,
            is_asked: bool::get(from)?,
            is_answering: bool::get(from)?,
            is_interim: bool::get(from)?,
            is_head: bool::get(from)?,
            upgrades: bool::get(from)?,
            is_tunnel: bool::get(from)?,
            is_tls: bool::get(from)?,
            closes: bool::get(from)?,
            server_closes: bool::get(from)?,
            until_end: bool::get(from)?,
        })
    }
}
