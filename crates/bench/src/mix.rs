//! Mixes of flows that come and go: the part of a definition that describes them, and the headers
//! of their packets.

use braid_traffic::churn::{self, Sizes, Step};
use braid_traffic::flows::life;
use braid_traffic::random::{hash, scale};
use braid_traffic::{Permutation, Prefix};
use serde::Deserialize;

use crate::frames::{FIRST_PORT, Headers};
use crate::inputs::SEED;
use crate::sweep::Case;

/// Number of source ports of a client.
const PORTS: u64 = u16::MAX as u64 - FIRST_PORT as u64 + 1;
/// The heaviest and the lightest tail.
const TAILS: std::ops::RangeInclusive<f64> = 0.01..=100.0;

/// Flows of several kinds.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// The name in reports.
    #[serde(default)]
    pub name: String,
    /// The kinds of flows.
    #[serde(default)]
    pub part: Vec<Part>,
}

/// A kind of flows in a mix.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The weight of this kind: its share of the packets, and of the flows that are active at a
    /// time.
    #[serde(default = "one")]
    pub share: u64,
    /// `udp` or `tcp`. TCP flows begin with SYN, and end with FIN or RST.
    #[serde(default)]
    pub proto: Proto,
    /// Client addresses: a prefix. No two flows have the same client address and port, as long as
    /// there are enough of them.
    #[serde(default = "from_default")]
    pub from: String,
    /// Server addresses: a prefix or an address.
    #[serde(default = "to_default")]
    pub to: String,
    /// Server ports. Each flow has one of them.
    #[serde(default = "dport_default")]
    pub dport: Vec<u16>,
    /// Whether clients are at the second interface of the chain instead of the first.
    #[serde(default)]
    pub from_right: bool,
    /// The share of a flow's packets that the server sends, from 0 to 1. They answer what left the
    /// chain.
    #[serde(default)]
    pub replies: f64,
    /// Quantiles of the number of packets of a flow: per cent of the flows, and how many packets
    /// they have at most. Without it, the case's `new_per_mille` determines the mean.
    #[serde(default)]
    pub packets: Vec<(f64, u32)>,
    /// Without `packets`: the tail index of a Pareto distribution. Without it, sizes are evenly
    /// distributed.
    pub tail: Option<f64>,
}

fn one() -> u64 {
    1
}
fn from_default() -> String {
    "10.0.0.0/8".to_owned()
}
fn to_default() -> String {
    "198.18.0.0/15".to_owned()
}
fn dport_default() -> Vec<u16> {
    vec![443]
}

/// The transport protocol of generated flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proto {
    /// UDP.
    #[default]
    Udp,
    /// TCP.
    Tcp,
}

/// An IPv4 prefix, or a single address.
fn prefix(text: &str) -> Result<Prefix, String> {
    let whole = if text.contains('/') { text.to_owned() } else { format!("{text}/32") };
    let found: Prefix = whole.parse()?;
    if found.is_v6() { Err(format!("expected an IPv4 prefix, found `{text}`")) } else { Ok(found) }
}

impl Mix {
    pub(crate) fn check(&self) -> Result<(), String> {
        let shares = self.part.iter().map(|part| part.share);
        if shares.fold(0, u64::saturating_add) == 0 {
            return Err("a [[mix]] needs a [[mix.part]] with a share above 0".to_owned());
        }
        self.part.iter().try_for_each(Part::check)
    }

    /// Whether servers answer.
    #[must_use]
    pub fn has_replies(&self) -> bool {
        self.part.iter().any(|part| part.replies > 0.0)
    }

    /// The kinds of flows for a case. Each kind has at least one active flow.
    pub(crate) fn churn(&self, case: &Case) -> Vec<churn::Part> {
        let all: u64 = self.part.iter().map(|part| part.share).sum();
        let active = |part: &Part| (case.flows * part.share / all.max(1)).max(1);
        let one = |part: &Part| churn::Part { active: active(part), sizes: part.sizes(case) };
        self.part.iter().map(one).collect()
    }
}

impl Part {
    fn check(&self) -> Result<(), String> {
        prefix(&self.from)?;
        prefix(&self.to)?;
        if self.dport.is_empty() {
            return Err("dport: an empty list makes no flow".to_owned());
        }
        if !(0.0..=1.0).contains(&self.replies) {
            return Err(format!("replies: {} is not between 0 and 1", self.replies));
        }
        if self.tail.is_some_and(|tail| !TAILS.contains(&tail)) {
            return Err(format!("tail: not between {} and {}", TAILS.start(), TAILS.end()));
        }
        let rises = self.packets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1);
        let most = churn::MOST_PACKETS;
        let is_right = |(share, packets): &(f64, u32)| *share > 0.0 && (1..=most).contains(packets);
        let ends = self.packets.last().is_none_or(|last| last.0 == 100.0);
        if !rises || !ends || !self.packets.iter().all(is_right) {
            return Err(format!(
                "packets: pairs of per cent and 1 to {most} packets that rise up to 100 %"
            ));
        }
        Ok(())
    }

    fn sizes(&self, case: &Case) -> Sizes {
        if !self.packets.is_empty() {
            let share = |(percent, packets): &(f64, u32)| (percent / 100.0, *packets);
            return Sizes::Quantiles(self.packets.iter().map(share).collect());
        }
        if case.new_per_mille == 0 {
            return Sizes::Endless;
        }
        let mean = 1000.0 / case.new_per_mille as f64;
        self.tail.map_or(Sizes::Even(mean), |index| Sizes::Pareto { mean, index })
    }
}

/// The two ends of a kind's flows.
pub(crate) struct Ends {
    proto: Proto,
    from: Prefix,
    /// The client addresses with ports in the order in which flows have them.
    clients: Permutation,
    room: u64,
    to: Prefix,
    dport: Vec<u16>,
    replies_ppm: u32,
    seed: u64,
}

impl Ends {
    /// The ends for the kind of this number.
    pub fn new(part: &Part, number: usize) -> Result<Self, String> {
        let from = prefix(&part.from)?;
        let (room, seed) = (from.hosts() * PORTS, hash(SEED, number as u64));
        Ok(Self {
            proto: part.proto,
            from,
            clients: Permutation::new(room, seed),
            room,
            to: prefix(&part.to)?,
            dport: part.dport.clone(),
            replies_ppm: (part.replies * 1e6) as u32,
            seed,
        })
    }

    /// The headers of a packet as the client sends it, and whether the server sends it instead.
    pub fn headers(&self, step: &Step) -> (Headers, bool) {
        let (proto, segment) = match self.proto {
            Proto::Tcp => (6, life::tcp(step.nth, step.size, self.replies_ppm)),
            Proto::Udp => (17, life::udp(step.nth, self.replies_ppm)),
        };
        let draw = hash(self.seed, step.flow);
        let client = self.clients.at(step.flow % self.room);
        let headers = Headers {
            src: self.from.host(client / PORTS) as u32,
            dst: self.to.host(scale(draw, self.to.hosts())) as u32,
            proto,
            sport: FIRST_PORT + (client % PORTS) as u16,
            dport: self.dport[scale(hash(draw, 1), self.dport.len() as u64) as usize],
            flags: segment.flags,
            numbers: (1, 1),
            icmp: (8, 0),
        };
        (headers, segment.back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Result<Part, String> {
        let part: Part = toml::from_str(text).map_err(|why| why.to_string())?;
        part.check().map(|()| part)
    }

    #[test]
    fn wrong_parts_are_refused_with_their_key() {
        assert!(part("packets = [[50, 1], [100, 20]]\nreplies = 0.5").is_ok());
        for (text, says) in [
            ("from = '10.0.0.1/8'", "10.0.0.1/8"),
            ("dport = []", "dport"),
            ("replies = 1.5", "replies"),
            ("tail = 0.0", "tail"),
            ("packets = [[50, 1]]", "100 %"),
            ("packets = [[60, 5], [50, 6], [100, 7]]", "rise"),
            ("packets = [[100, 0]]", "packets"),
        ] {
            let why = part(text).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
    }

    #[test]
    fn flows_have_clients_of_their_own_and_stay_with_their_server() {
        let part = part("proto = 'tcp'\nfrom = '10.0.0.0/30'\nreplies = 0.5").unwrap();
        let ends = Ends::new(&part, 0).unwrap();
        let step = |flow, nth| Step { part: 0, flow, nth, size: 8 };
        let mut clients = std::collections::HashSet::new();
        for flow in 0..10_000 {
            let (first, back) = ends.headers(&step(flow, 0));
            assert!(clients.insert((first.src, first.sport)) && !back && first.flags == 2);
            let (second, back) = ends.headers(&step(flow, 1));
            assert!(back && second.flags == 0x12);
            assert_eq!(Headers { flags: 2, ..second }, first);
        }
    }

    #[test]
    fn kinds_share_the_active_flows_of_a_case() {
        let mix: Mix =
            toml::from_str("[[part]]\nshare = 9\n[[part]]\npackets = [[100, 1]]").unwrap();
        let text = "summary = ''\nkind = 'once'\naxis = 'flows'\nfloor = 'flow'\nchain = ''\n[[mix]]\n[[mix.part]]\n[[sweep]]\nnew_per_mille = [250]";
        let definition = crate::definition::Definition::parse("x", text).unwrap();
        let parts = mix.churn(&definition.cases(false)[0]);
        assert_eq!(parts[0], churn::Part { active: 900, sizes: Sizes::Even(4.0) });
        assert_eq!(parts[1].active, 100);
        assert_eq!(parts[1].sizes, Sizes::Quantiles(vec![(1.0, 1)]));
    }
}
