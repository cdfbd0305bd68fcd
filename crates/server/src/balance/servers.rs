//! The servers of a balancer, in groups, and the rules that choose a group.

use super::checks::Checks;
use super::cookie::Cookies;
use crate::own::{Place, address};
use braid_externs::patterns::{Matcher, Pattern, PatternSet};
use braid_native::Host;
use braid_tcp::Reader;
use std::ops::Range;

/// How long a server that has failed gets no requests, if its group has another one (ns).
const PAUSE: u64 = 2_000_000_000;

/// The servers, their groups, and the rules.
#[derive(Debug)]
pub struct Servers {
    places: Vec<Place>,
    cookies: Cookies,
    pub checks: Checks,
    /// By server: until when it gets no requests (ns).
    down_until: Vec<u64>,
    groups: Vec<Group>,
    rules: PatternSet,
    /// The rules for the names of TLS connections. Without them, there are none.
    tls_rules: Option<PatternSet>,
}

/// A group of servers.
#[derive(Debug)]
struct Group {
    /// Its first server, and how many it has.
    first: usize,
    count: usize,
    /// How many servers have been chosen so far.
    turn: usize,
}

impl Group {
    fn servers(&self) -> Range<usize> {
        self.first..self.first + self.count
    }
}

impl Servers {
    /// The configured ones.
    pub fn new(host: &Host<'_>) -> Result<Self, String> {
        let places = host.config_rows::<2>("servers").into_iter();
        let places = places.map(|[at, port]| (address(at), u16::try_from(port).unwrap_or(0)));
        let places: Vec<_> = places.collect();
        if places.is_empty() {
            let why = "it needs a parameter `servers`: a list of addresses and ports";
            return Err(why.to_owned());
        }
        let mut groups = Vec::new();
        for (number, [first, count]) in host.config_rows::<2>("groups").into_iter().enumerate() {
            let [first, count] = [first, count].map(|of| usize::try_from(of).unwrap_or(usize::MAX));
            let is_right = first.checked_add(count).is_some_and(|end| end <= places.len());
            if !is_right || count == 0 {
                return Err(format!("group {number} has no servers, or more than there are"));
            }
            groups.push(Group { first, count, turn: 0 });
        }
        if groups.is_empty() {
            groups.push(Group { first: 0, count: places.len(), turn: 0 });
        }
        let tls_rules = match host.config_rows::<3>("tls_rules").is_empty() {
            true => None,
            false => Some(rules(host, "tls_rules", groups.len())?),
        };
        let rules = rules(host, "rules", groups.len())?;
        let cookies = Cookies::new(host, &places)?;
        let is_in_group_of = |rules, server| {
            let mut numbers = host.config_rows::<3>(rules).into_iter().map(|[number, ..]| number);
            numbers.any(|number| {
                let group = usize::try_from(number).ok().and_then(|number| groups.get(number));
                group.is_some_and(|group| group.servers().contains(&server))
            })
        };
        let has_http =
            |server| is_in_group_of("rules", server) || !is_in_group_of("tls_rules", server);
        let checks = Checks::new(host, &places, has_http)?;
        let down_until = vec![0; places.len()];
        Ok(Self { down_until, places, cookies, checks, groups, rules, tls_rules })
    }

    /// The address and port of a server.
    pub fn place(&self, server: usize) -> Option<Place> {
        self.places.get(server).copied()
    }

    /// The cookies that name servers.
    pub fn cookies(&self) -> &Cookies {
        &self.cookies
    }

    /// The servers of a group.
    pub fn of_group(&self, group: usize) -> Range<usize> {
        self.groups.get(group).map_or(0..0, Group::servers)
    }

    /// The group for a request with this head: the lowest number of a rule that matches, and
    /// otherwise 0.
    pub fn group(&self, head: &[u8]) -> usize {
        let found = self.rules.lowest_match(head).and_then(|found| usize::try_from(found).ok());
        found.unwrap_or(0)
    }

    /// Whether it takes TLS connections.
    pub fn takes_tls(&self) -> bool {
        self.tls_rules.is_some()
    }

    /// The group for a TLS connection to the server with this name: the lowest number of a rule
    /// that matches.
    pub fn tls_group(&self, name: &[u8]) -> Option<usize> {
        let found = self.tls_rules.as_ref()?.lowest_match(name)?;
        usize::try_from(found).ok()
    }

    /// The server of a group that one of the tokens of a cookie names, unless it is down. Otherwise
    /// the next one in turn. One that has just failed is chosen only if all have that are up by
    /// checks, and one that is down by checks only if all are. `failed` is the one that has failed
    /// with this very request: any other one comes first.
    pub fn choose(
        &mut self,
        group: usize,
        shown: &[u64],
        failed: Option<usize>,
        now: u64,
    ) -> Option<usize> {
        let of_group = self.of_group(group);
        let is_up = |server: &usize| self.checks.is_up(*server);
        let is_well = |server: &usize| {
            is_up(server) && self.down_until.get(*server).is_some_and(|until| *until <= now)
        };
        if let Some(server) = self.cookies.server(shown, of_group, is_well) {
            return Some(server);
        }
        let Group { first, count, turn } = self.groups.get(group)?;
        let mut all = (0..*count).map(|ahead| first + (turn % count + ahead) % count);
        let server = all
            .clone()
            .find(is_well)
            .or_else(|| all.clone().find(|server| is_up(server) && Some(*server) != failed));
        let server = server.or_else(|| all.next())?;
        let next = server - first + 1;
        self.groups.get_mut(group)?.turn = next;
        Some(server)
    }

    /// A server has refused a connection, has not answered, or has ended without a response.
    pub fn failed(&mut self, server: usize, now: u64) {
        if let Some(until) = self.down_until.get_mut(server) {
            *until = now.saturating_add(PAUSE);
        }
    }

    /// Writes what another instance needs.
    pub fn put(&self, out: &mut Vec<u8>) {
        self.cookies.put(out);
        self.checks.put(out);
    }

    /// Reads what [`Self::put`] has written. `None` if the bytes are damaged.
    pub fn read(&mut self, from: &mut Reader<'_>) -> Option<()> {
        self.cookies.read(from, &self.places)?;
        self.checks.read(from)
    }
}

/// The rules, whose numbers are those of groups.
fn rules(host: &Host<'_>, name: &str, groups: usize) -> Result<PatternSet, String> {
    let rows = host.config_rows::<3>(name).into_iter().enumerate();
    let patterns = rows.map(|(row, [number, is_regex, nocase])| {
        let text = host.config_text(name, row).unwrap_or_default();
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        if usize::try_from(number).is_ok_and(|number| number >= groups) {
            return Err(format!(
                "row {row} of `{name}` is for group {number}, which does not exist"
            ));
        }
        let nocase = nocase == 1;
        let matcher = match is_regex {
            1 => Matcher::Regex { source: String::from_utf8_lossy(&text).into_owned(), nocase },
            _ => Matcher::Literal { bytes: text, nocase },
        };
        Ok(Pattern { number, matcher })
    });
    let patterns = patterns.collect::<Result<_, _>>()?;
    PatternSet::new(patterns).map_err(|errors| match errors.first() {
        Some(error) => format!("`{name}`: {error}"),
        None => format!("`{name}` cannot be used"),
    })
}
