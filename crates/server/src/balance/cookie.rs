//! Cookies with which a client stays at its server.
//!
//! A cookie has a token for each server that it names: a keyed hash of the server's address and
//! port. So it tells neither, and stays the same wherever the server is in the list. A client that
//! goes to several groups has a server in each of them, all in one cookie.

use crate::own::Place;
use braid_connections::Secret;
use braid_http::Head;
use braid_native::Host;
use braid_tcp::{Reader, Stored as _};
use std::ops::Range;

/// The most tokens of a cookie. Further ones are left out.
const MOST_TOKENS: usize = 16;
/// The most bytes of a cookie's name.
const MOST_NAME: usize = 64;

/// The cookies of a balancer.
#[derive(Debug)]
pub struct Cookies {
    /// The name. Without it, there are none.
    name: Option<String>,
    /// The key of tokens. It outlives the process in state files, so that cookies do.
    key: u128,
    /// The tokens by server.
    tokens: Vec<u64>,
}

impl Cookies {
    /// The configured ones, for these servers.
    pub fn new(host: &Host<'_>, places: &[Place]) -> Result<Self, String> {
        let name = host.config_text("cookie", 0).filter(|name| !name.is_empty());
        let name = name.map(|name| match String::from_utf8(name) {
            Ok(name) if is_name(&name) => Ok(name),
            _ => Err("`cookie` is no name: up to 64 letters, digits, `-` and `_`"),
        });
        let name = name.transpose()?;
        let secret = Secret::new(host.config("seed").ok());
        let [high, low] = ["high", "low"].map(|half| secret.hash(("cookie", half)));
        let key = u128::from(high) << 64 | u128::from(low) | 1;
        let mut it = Self { name, key, tokens: Vec::new() };
        it.name_servers(places);
        Ok(it)
    }

    /// Gives each server its token.
    fn name_servers(&mut self, places: &[Place]) {
        let secret = Secret::new(Some(self.key));
        self.tokens = places.iter().map(|place| secret.hash(place)).collect();
    }

    /// The tokens that a request shows, the first ones of them.
    pub fn shown(&self, head: &Head<'_>) -> Vec<u64> {
        let Some(name) = &self.name else { return Vec::new() };
        let pairs = head.values("cookie").flat_map(pairs);
        let values = pairs.filter_map(|pair| value_of(pair, name));
        let tokens = values.flat_map(|value| value.split(|byte| *byte == b'.'));
        tokens.filter_map(token).take(MOST_TOKENS).collect()
    }

    /// The server of these that one of the tokens names, if it may be chosen.
    pub fn server(
        &self,
        shown: &[u64],
        mut servers: Range<usize>,
        may_be: impl Fn(&usize) -> bool,
    ) -> Option<usize> {
        let is_named = |server: usize| {
            self.tokens.get(server).is_some_and(|token| shown.contains(token)) && may_be(&server)
        };
        if shown.is_empty() { None } else { servers.find(|server| is_named(*server)) }
    }

    /// The cookie for a client whose request a server of these has answered. `None` if the client
    /// has shown it already. Its servers of other groups stay.
    pub fn cookie(&self, server: usize, group: Range<usize>, shown: &[u64]) -> Option<String> {
        let name = self.name.as_ref()?;
        let own = self.tokens.get(server).filter(|own| !shown.contains(own))?;
        let of_group = self.tokens.get(group).unwrap_or_default();
        let stays = |token: &&u64| self.tokens.contains(token) && !of_group.contains(token);
        let all = [own].into_iter().chain(shown.iter().filter(stays)).take(MOST_TOKENS);
        let all: Vec<String> = all.map(|token| format!("{token:016x}")).collect();
        Some(format!("{name}={}; Path=/; HttpOnly", all.join(".")))
    }

    /// What is left of the value of a field `Cookie` for a server. `None` if nothing is left.
    pub fn without_own(&self, value: &[u8]) -> Option<Vec<u8>> {
        let Some(name) = &self.name else { return Some(value.to_vec()) };
        if pairs(value).all(|pair| value_of(pair, name).is_none()) {
            return Some(value.to_vec());
        }
        let left: Vec<_> = pairs(value).filter(|pair| value_of(pair, name).is_none()).collect();
        (!left.is_empty()).then(|| left.join(&b"; "[..]))
    }

    /// Whether a server sets a cookie of the same name with this value of a field `Set-Cookie`.
    pub fn is_own(&self, value: &[u8]) -> bool {
        let pair = pairs(value).next().unwrap_or_default();
        self.name.as_ref().is_some_and(|name| value_of(pair, name).is_some())
    }

    /// Writes what another instance needs.
    pub fn put(&self, out: &mut Vec<u8>) {
        self.key.put(out);
    }

    /// Reads what [`Self::put`] has written. `None` if the bytes are damaged.
    pub fn read(&mut self, from: &mut Reader<'_>, places: &[Place]) -> Option<()> {
        self.key = u128::get(from).filter(|key| *key > 0)?;
        self.name_servers(places);
        Some(())
    }
}

/// Whether a cookie may have this name. These names need no quotes anywhere.
fn is_name(name: &str) -> bool {
    let is_right = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    name.len() <= MOST_NAME && name.bytes().all(is_right)
}

/// The pairs of names and values in a field (RFC 6265 §4.2.1).
fn pairs(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let all = value.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    all.filter(|pair| !pair.is_empty())
}

/// The value in a pair with this name.
fn value_of<'a>(pair: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let (own, rest) = pair.split_at_checked(name.len())?;
    let rest = rest.trim_ascii_start();
    (own == name.as_bytes()).then(|| rest.strip_prefix(b"="))?.map(<[u8]>::trim_ascii)
}

/// The token that these bytes are: 16 digits.
fn token(bytes: &[u8]) -> Option<u64> {
    let is_token = bytes.len() == 16 && bytes.iter().all(u8::is_ascii_hexdigit);
    u64::from_str_radix(std::str::from_utf8(bytes).ok().filter(|_| is_token)?, 16).ok()
}
