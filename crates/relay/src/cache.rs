//! Responses that a proxy keeps and gives again (RFC 9111, as a shared cache). It keeps those whose
//! server says for how long they stay fresh, and asks the server anew for all others.

use braid_http::{Head, Line};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A second (ns).
const SECOND: u64 = 1_000_000_000;
/// The least part of the cache that a response may take.
const PARTS: usize = 8;
/// What an entry takes beside its bytes, about (bytes).
const ENTRY: usize = 256;
/// Fields that concern one connection, or that a kept response gets anew (RFC 9110 §7.6.1).
const NOT_KEPT: [&str; 11] = [
    "age",
    "connection",
    "content-length",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "warning",
];

/// What a response answers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// The address and port of the server.
    server: (IpAddr, u16),
    host: Vec<u8>,
    target: String,
    /// Whether the client takes gzip.
    takes_gzip: bool,
}

impl Key {
    /// Of a request with this head.
    pub fn of(head: &Head<'_>, server: (IpAddr, u16), takes_gzip: bool) -> Option<Self> {
        let Line::Request { target, .. } = head.line else { return None };
        let target = target.to_owned();
        Some(Self { server, host: head.host().unwrap_or_default(), target, takes_gzip })
    }
}

/// A response that is kept.
#[derive(Debug)]
pub struct Entry {
    /// The lines of its fields.
    fields: Vec<u8>,
    etag: Option<Vec<u8>>,
    body: Vec<u8>,
    /// When it came, how old it was then (s), and until when it is fresh.
    came: u64,
    age: u64,
    fresh_until: u64,
    /// Its place in the order of use.
    used: u64,
}

/// The responses that are kept.
#[derive(Debug)]
pub struct Cache {
    /// The most bytes, and how many there are.
    most: usize,
    bytes: usize,
    entries: HashMap<Arc<Key>, Entry>,
    /// The last used ones come last.
    order: BTreeMap<u64, Arc<Key>>,
    uses: u64,
    /// The bytes of responses that are on their way.
    on_the_way: Arc<AtomicUsize>,
}

impl Cache {
    /// A cache of at most this many bytes. With 0, it keeps nothing.
    pub fn new(most: usize) -> Self {
        let (entries, order) = (HashMap::new(), BTreeMap::new());
        Self { most, bytes: 0, entries, order, uses: 0, on_the_way: Arc::default() }
    }

    /// Whether it keeps anything.
    pub fn is_on(&self) -> bool {
        self.most > 0
    }

    /// A fresh response.
    pub fn get(&mut self, key: &Key, now: u64) -> Option<&Entry> {
        if self.entries.get(key)?.fresh_until <= now {
            self.remove(key);
            return None;
        }
        self.uses += 1;
        let entry = self.entries.get_mut(key)?;
        let of = self.order.remove(&entry.used)?;
        entry.used = self.uses;
        self.order.insert(self.uses, of);
        Some(entry)
    }

    fn remove(&mut self, key: &Key) {
        if let Some((key, entry)) = self.entries.remove_entry(key) {
            self.bytes -= size(&key, &entry);
            self.order.remove(&entry.used);
        }
    }

    /// Something may have changed what a request asks for.
    pub fn forget(&mut self, mut key: Key) {
        for takes_gzip in [false, true] {
            key.takes_gzip = takes_gzip;
            self.remove(&key);
        }
    }

    fn insert(&mut self, key: Key, mut entry: Entry) {
        self.remove(&key);
        self.uses += 1;
        entry.used = self.uses;
        let key = Arc::new(key);
        self.bytes += size(&key, &entry);
        self.order.insert(self.uses, key.clone());
        self.entries.insert(key, entry);
        while self.bytes > self.most
            && let Some(oldest) = self.order.first_entry()
        {
            let oldest = oldest.get().clone();
            self.remove(&oldest);
        }
    }

    /// Begins to keep a response with this head, if it may be kept. `given` is the head that the
    /// client gets.
    pub fn begin(&self, key: Key, head: &Head<'_>, given: &[u8], now: u64) -> Option<Coming> {
        let seconds = lifetime(head)?;
        let age = number(head.values("age").next().unwrap_or_default()).unwrap_or(0);
        let fresh = seconds.checked_sub(age).filter(|seconds| *seconds > 0)?;
        let given = Head::parse(given, false).ok()?;
        let coding = given.joined("content-encoding");
        // Other clients with the same key must understand it.
        if coding.is_some_and(|coding| *coding != b"gzip"[..] || !key.takes_gzip) {
            return None;
        }
        let of_connection = of_connection(&given);
        let is_kept = |name: &str| {
            let listed = of_connection.iter().any(|one| name.as_bytes().eq_ignore_ascii_case(one));
            !listed && !NOT_KEPT.iter().any(|other| name.eq_ignore_ascii_case(other))
        };
        let kept = given.fields().filter(|(name, _)| is_kept(name));
        let fields = kept.flat_map(|(name, value)| [name.as_bytes(), b": ", value, b"\r\n"]);
        let fields = fields.collect::<Vec<_>>().concat();
        let etag = given.values("etag").next().map(<[u8]>::to_vec);
        let fresh_until = now.saturating_add(fresh.saturating_mul(SECOND));
        let entry = Entry { fields, etag, body: Vec::new(), came: now, age, fresh_until, used: 0 };
        let on_the_way = Share { bytes: 0, of: self.on_the_way.clone() };
        Some(Coming { key, entry, on_the_way })
    }

    /// More of a response has come. Returns false if it is too long to be kept.
    pub fn extend(&self, coming: &mut Coming, bytes: &[u8]) -> bool {
        let len = coming.entry.body.len() + bytes.len();
        let others = self.on_the_way.load(Ordering::Relaxed);
        let fits = len <= self.most / PARTS && others + bytes.len() <= self.most;
        if fits {
            coming.on_the_way.add(bytes.len());
            coming.entry.body.extend(bytes);
        }
        fits
    }

    /// A response is complete.
    pub fn end(&mut self, coming: Coming) {
        let Coming { key, entry, .. } = coming;
        self.insert(key, entry);
    }
}

fn size(key: &Key, entry: &Entry) -> usize {
    let of_key = key.host.len() + key.target.len();
    ENTRY + of_key + entry.fields.len() + entry.body.len()
}

/// A response that is on its way.
#[derive(Debug)]
pub struct Coming {
    key: Key,
    entry: Entry,
    on_the_way: Share,
}

/// The bytes of a response, in the sum of all that are on their way.
#[derive(Debug)]
struct Share {
    bytes: usize,
    of: Arc<AtomicUsize>,
}

impl Share {
    fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.of.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Entry {
    /// The response for a request with this head.
    pub fn answer(&self, head: &Head<'_>, now: u64, closes: bool) -> Vec<u8> {
        let age = self.age + now.saturating_sub(self.came) / SECOND;
        let close = if closes { "Connection: close\r\n" } else { "" };
        let asked = head.joined("if-none-match").unwrap_or_default();
        let is_known = self.etag.as_deref().is_some_and(|etag| matches(&asked, etag));
        let (line, body): (&[u8], &[u8]) = match is_known {
            true => (b"HTTP/1.1 304 Not Modified\r\n", b""),
            false => (b"HTTP/1.1 200 OK\r\n", &self.body),
        };
        let length = match is_known {
            true => String::new(),
            false => format!("Content-Length: {}\r\n", body.len()),
        };
        let last = format!("{length}Age: {age}\r\n{close}\r\n");
        [line, &self.fields, last.as_bytes(), body].concat()
    }
}

/// Whether a list of entity tags has this one (RFC 9110 §13.1.2, weak comparison).
fn matches(list: &[u8], etag: &[u8]) -> bool {
    let strong = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
    let tags = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    tags.into_iter().any(|tag| tag == b"*" || !tag.is_empty() && strong(tag) == strong(etag))
}

/// Whether a response to the request may be kept (RFC 9111 §3).
pub fn may_be_kept(head: &Head<'_>) -> bool {
    let (line, _) = head.first_line();
    let is_get = matches!(head.line, Line::Request { method: "GET", .. });
    let others = ["authorization", "range", "content-length", "transfer-encoding", "upgrade"];
    let has_other = others.iter().any(|name| head.values(name).next().is_some());
    let is_refused = directives(head).any(|(name, _)| name == b"no-store");
    is_get && line.ends_with(b" HTTP/1.1") && !has_other && !is_refused
}

/// Whether the request may be answered by a response that is kept (RFC 9111 §4). Conditions but
/// If-None-Match are for the server.
pub fn may_be_answered(head: &Head<'_>) -> bool {
    let conditions = ["if-match", "if-modified-since", "if-unmodified-since", "if-range", "pragma"];
    let has_condition = conditions.iter().any(|name| head.values(name).next().is_some());
    let wants_more = directives(head).any(|(name, _)| name != b"only-if-cached");
    may_be_kept(head) && !has_condition && !wants_more
}

/// Whether the request may change what is kept (RFC 9111 §4.4).
pub fn is_unsafe(head: &Head<'_>) -> bool {
    !matches!(head.line, Line::Request { method: "GET" | "HEAD" | "OPTIONS" | "TRACE", .. })
}

/// For how many seconds a response is fresh, if it may be kept (RFC 9111 §3, §4.2.1).
fn lifetime(head: &Head<'_>) -> Option<u64> {
    let has = |name: &str| head.values(name).next().is_some();
    let is_whole = matches!(head.line, Line::Response { code: 200, .. });
    let vary = head.joined("vary").unwrap_or_default();
    let mut vary = vary.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let varies = !vary.all(|name| name.is_empty() || name.eq_ignore_ascii_case(b"accept-encoding"));
    let refusals: [&[u8]; 3] = [b"no-store", b"no-cache", b"private"];
    let is_refused = directives(head).any(|(name, _)| refusals.contains(&name.as_slice()));
    if !is_whole || varies || is_refused || has("set-cookie") || has("trailer") {
        return None;
    }
    let value = |wanted: &[u8]| {
        let mut found = directives(head).filter(|(name, _)| name == wanted);
        found.next().and_then(|(_, value)| number(&value))
    };
    value(b"s-maxage").or_else(|| value(b"max-age"))
}

/// The tokens of the field Connection, in lower case: other fields of this connection alone, and
/// `close`.
pub fn of_connection(head: &Head<'_>) -> Vec<Vec<u8>> {
    let tokens = head.joined("connection").unwrap_or_default().to_ascii_lowercase();
    tokens.split(|byte| *byte == b',').map(|token| token.trim_ascii().to_vec()).collect()
}

/// The directives of Cache-Control: their names in lower case, and their values.
pub fn directives(head: &Head<'_>) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    let all = head.joined("cache-control").unwrap_or_default().into_owned();
    let parts = all.split(|byte| *byte == b',').map(|part| {
        let mut halves = part.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
        let name = halves.next().unwrap_or_default().to_ascii_lowercase();
        (name, halves.next().unwrap_or_default().to_vec())
    });
    parts.filter(|(name, _)| !name.is_empty()).collect::<Vec<_>>().into_iter()
}

/// A number of seconds, maybe in quotation marks.
fn number(value: &[u8]) -> Option<u64> {
    let value = value.strip_prefix(b"\"").and_then(|v| v.strip_suffix(b"\"")).unwrap_or(value);
    let digits =
        std::str::from_utf8(value).ok().filter(|v| v.bytes().all(|b| b.is_ascii_digit()))?;
    digits.parse().ok()
}
