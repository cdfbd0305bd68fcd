//! The flows of generated packets: from a definition's kinds of flows, or from the chain's own
//! rules.

use std::net::Ipv4Addr;

use braid_ir::chain::Chain;
use braid_ir::rules::{ANY_PORT, RulePacket};
use braid_ir::value::{ParamValue, Rule, RuleAddrs, RuleSet};
use braid_traffic::random::Random;

use crate::definition::{Case, Definition, Proto, Traffic};
use crate::frames::{FIRST_PORT, Headers, MIN_FRAMES};
use crate::inputs::{SEED, is_martian};

/// The number of packets that are drawn for a rule. If earlier rules decide all of them, the last
/// one is used.
const TRIES: u32 = 8;

/// The headers of the packets in order. No flow comes again before all other flows have come.
///
/// # Errors
/// Returns an error when the definition needs something that the chain does not have.
pub fn flows(definition: &Definition, case: &Case, chain: &Chain) -> Result<Vec<Headers>, String> {
    let mut random = Random::new(SEED, 3);
    let mut kinds = Vec::new();
    for traffic in &definition.traffic {
        let kind = Kind::new(traffic, case, chain)?;
        kinds.extend((0..traffic.share).map(|_| kind.clone()));
    }
    let mut made = vec![0; kinds.len()];
    let mut flows = Vec::new();
    for number in 0..case.flows {
        let at = (number % kinds.len() as u64) as usize;
        flows.push(kinds[at].flow(number, made[at], &mut random));
        made[at] += 1;
    }
    let turns = kinds.iter().map(|kind| kind.flags().len()).max().unwrap_or(1);
    let order = in_order(flows.len(), turns, &mut random);
    let packet = |(round, flow): (usize, usize)| {
        let mut headers: Headers = flows[flow];
        let flags = kinds[flow % kinds.len()].flags();
        // Flows begin with different flags of the list, so that all rounds are alike.
        let turn = (round + flow / kinds.len()) % flags.len().max(1);
        headers.flags = flags.get(turn).copied().unwrap_or(headers.flags);
        headers
    };
    Ok(order.into_iter().map(packet).collect())
}

/// The order of flows, as pairs of round and flow. Each round has all flows in a new random order.
/// There are as many rounds as a flow has different packets, and more if there are few flows.
fn in_order(flows: usize, turns: usize, random: &mut Random) -> Vec<(usize, usize)> {
    let mut order = Vec::new();
    let rounds = (MIN_FRAMES as usize).div_ceil(flows.max(1)).next_multiple_of(turns.max(1));
    for number in 0..rounds {
        let mut round: Vec<(usize, usize)> = (0..flows).map(|flow| (number, flow)).collect();
        for at in (1..flows).rev() {
            round.swap(at, random.below(at as u64 + 1) as usize);
        }
        order.extend(round);
    }
    order
}

/// Where the flows of a kind come from.
#[derive(Clone)]
enum Kind<'a> {
    Endpoints {
        proto: Proto,
        hosts: Hosts,
        sources: Option<u64>,
        to: To,
        ports: &'a [u16],
        flags: &'a [u8],
    },
    Rules(&'a RuleSet),
}

/// Source hosts: addresses spread over a prefix, each with several ports.
#[derive(Clone, Copy)]
struct Hosts {
    base: u32,
    apart: u64,
    count: u64,
}

#[derive(Clone)]
enum To {
    Prefix(u32, u32),
    Routes(Vec<(u32, u32)>),
}

impl<'a> Kind<'a> {
    fn new(traffic: &'a Traffic, case: &Case, chain: &'a Chain) -> Result<Self, String> {
        if let Some(path) = &traffic.rules {
            return rule_set(chain, path).map(Kind::Rules);
        }
        if traffic.dport.is_empty() {
            return Err("dport: an empty list makes no flow".to_owned());
        }
        let (base, length) = prefix(&traffic.from)?;
        if length > 30 {
            return Err(format!("from: {} has too few addresses", traffic.from));
        }
        let room = 1_u64 << (32 - length);
        let ports = traffic.dport.len() as u64;
        if traffic.sources.is_some_and(|sources| case.flows > sources.saturating_mul(ports)) {
            return Err(format!("sources: too few for {} flows to {ports} ports", case.flows));
        }
        let sources = case.flows.min(traffic.sources.unwrap_or(u64::MAX));
        let count = sources.div_ceil(8).clamp(1, room - 2);
        if sources > count * u64::from(u16::MAX - FIRST_PORT) {
            return Err(format!("from: {} has too few addresses", traffic.from));
        }
        let hosts = Hosts { base, apart: (room / (count + 1)).max(1), count };
        let to = if traffic.to == "routes" {
            To::Routes(routes(chain)?)
        } else {
            let (base, length) = prefix(&traffic.to)?;
            To::Prefix(base, length)
        };
        let (proto, sources, flags) = (traffic.proto, traffic.sources, &traffic.flags[..]);
        Ok(Kind::Endpoints { proto, hosts, sources, to, ports: &traffic.dport, flags })
    }

    /// TCP flags that a flow's packets take in turn. Empty if rules determine the flags.
    fn flags(&self) -> &'a [u8] {
        match self {
            Kind::Endpoints { flags, .. } => flags,
            Kind::Rules(_) => &[],
        }
    }

    /// The headers of a flow: number `number` among all flows, and number `nth` of this kind.
    fn flow(&self, number: u64, nth: u64, random: &mut Random) -> Headers {
        match self {
            Kind::Endpoints { proto, hosts, sources, to, ports, .. } => {
                let source = number % sources.unwrap_or(u64::MAX);
                let port = sources.map_or(nth, |sources| number / sources);
                Headers {
                    src: hosts.base | ((1 + source % hosts.count) * hosts.apart) as u32,
                    dst: to.address(nth, random),
                    proto: if *proto == Proto::Tcp { 6 } else { 17 },
                    sport: FIRST_PORT + (source / hosts.count) as u16,
                    dport: ports[(port % ports.len() as u64) as usize],
                    flags: 0x10,
                    numbers: (1, 1),
                    icmp: (8, 0),
                }
            }
            Kind::Rules(set) => by_rule(set, nth, random),
        }
    }
}

impl To {
    fn address(&self, nth: u64, random: &mut Random) -> u32 {
        let (base, length) = match self {
            To::Prefix(base, length) => (*base, *length),
            To::Routes(all) => all[(nth % all.len() as u64) as usize],
        };
        base | random.below(1 << (32 - length)) as u32
    }
}

pub(crate) fn prefix(text: &str) -> Result<(u32, u32), String> {
    let expected = || format!("expected an IPv4 prefix or address, found `{text}`");
    let (address, length) = text.split_once('/').unwrap_or((text, "32"));
    let address: Ipv4Addr = address.parse().map_err(|_| expected())?;
    let length: u32 = length.parse().map_err(|_| expected())?;
    let address = u32::from(address);
    let host_bits = u32::MAX.checked_shr(length).unwrap_or(0);
    if length > 32 || address & host_bits != 0 {
        return Err(expected());
    }
    Ok((address, length))
}

/// The IPv4 prefixes of a chain's first route table, without the default route.
fn routes(chain: &Chain) -> Result<Vec<(u32, u32)>, String> {
    let values = chain.nodes.iter().flat_map(|node| &node.params);
    let table = values.into_iter().find_map(|value| match value {
        ParamValue::Routes(table) => Some(table),
        _ => None,
    });
    let table = table.ok_or("to: the chain has no routes")?;
    let all: Vec<(u32, u32)> = table
        .iter4()
        .map(|(address, length, _)| (address, u32::from(length)))
        .filter(|(address, length)| *length > 0 && !is_martian(*address))
        .collect();
    if all.is_empty() {
        return Err("to: the chain has no IPv4 routes but a default one".to_owned());
    }
    Ok(all)
}

fn rule_set<'a>(chain: &'a Chain, path: &str) -> Result<&'a RuleSet, String> {
    let found = path.split_once('.').and_then(|(node, param)| {
        let node = chain.nodes.iter().find(|one| one.name == node)?;
        let at = node.model.params.iter().position(|one| one.name == param)?;
        match node.params.get(at)? {
            ParamValue::Rules(set) if !set.rules.is_empty() => Some(set),
            _ => None,
        }
    });
    found.ok_or_else(|| format!("rules: the chain has no rules at `{path}`"))
}

/// A packet that rule number `nth` (modulo the number of rules) decides, if a few draws find one.
/// Otherwise a packet that at least matches the rule.
fn by_rule(set: &RuleSet, nth: u64, random: &mut Random) -> Headers {
    let at = (nth % set.rules.len() as u64) as usize;
    let rule = &set.rules[at];
    let mut drawn = sample(rule, nth, random);
    for _ in 1..TRIES {
        let martian = is_martian(drawn.src) || is_martian(drawn.dst);
        if !martian && set.decide(&seen(&drawn)).1 as usize == at {
            break;
        }
        drawn = sample(rule, nth, random);
    }
    drawn
}

/// A random packet that matches a rule.
fn sample(rule: &Rule, nth: u64, random: &mut Random) -> Headers {
    let (src, dst) = match rule.addrs {
        Some(RuleAddrs::V4 { src, dst }) => (src, dst),
        _ => ((0x0a00_0000, 0x0aff_ffff), (0xc612_0000, 0xc613_ffff)),
    };
    let proto = match rule.proto {
        (value, 0xff) => value,
        // Any protocol: TCP and UDP in turn, because they have ports.
        _ => [6, 17][(nth % 2) as usize],
    };
    let (value, wanted) = rule.tcp_flags;
    // ACK is set unless the rule determines it, as in packets of an open connection.
    let flags = value & wanted | 0x10 & !wanted;
    let [kind, code] = rule.icmp.0.to_be_bytes();
    let icmp = if rule.icmp.1 == 0 { (8, 0) } else { (kind, code) };
    Headers {
        src: within(random, src),
        dst: within(random, dst),
        proto,
        sport: port(random, rule.sport),
        dport: port(random, rule.dport),
        flags,
        numbers: (1, 1),
        icmp,
    }
}

fn within(random: &mut Random, (low, high): (u32, u32)) -> u32 {
    low + random.below(u64::from(high - low) + 1) as u32
}

/// A random port of a range. If the rule allows any port, not a well-known one.
fn port(random: &mut Random, (low, high): (u16, u16)) -> u16 {
    let low = if (low, high) == ANY_PORT { FIRST_PORT } else { low };
    low + random.below(u64::from(high - low) + 1) as u16
}

/// The packet as rule sets see it.
fn seen(headers: &Headers) -> RulePacket {
    RulePacket {
        version: 4,
        src: headers.src.into(),
        dst: headers.dst.into(),
        proto: headers.proto,
        ports: matches!(headers.proto, 6 | 17).then_some((headers.sport, headers.dport)),
        tcp_flags: (headers.proto == 6).then_some(headers.flags),
        icmp: (headers.proto == 1).then_some(headers.icmp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read_and_host_bits_refused() {
        assert_eq!(prefix("10.0.0.0/8"), Ok((0x0a00_0000, 8)));
        assert_eq!(prefix("192.0.2.1"), Ok((0xc000_0201, 32)));
        assert_eq!(prefix("0.0.0.0/0"), Ok((0, 0)));
        for wrong in ["10.0.0.1/8", "10.0.0.0/33", "10.0.0/8", "::/0", ""] {
            assert!(prefix(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sample_of_a_rule_matches_it() {
        let addrs = RuleAddrs::V4 { src: (5, 5), dst: (0x0102_0300, 0x0102_03ff) };
        let exact =
            Rule { addrs: Some(addrs), proto: (6, 0xff), dport: (80, 90), ..Rule::any(true) };
        let rules = [
            exact.clone(),
            Rule { tcp_flags: (0x10, 0x10), ..exact.clone() },
            Rule { tcp_flags: (0, 0x12), ..exact.clone() },
            Rule { proto: (1, 0xff), dport: ANY_PORT, icmp: (0x0303, 0xffff), ..exact.clone() },
            Rule { proto: (0, 0), dport: ANY_PORT, ..exact },
            Rule::any(false),
        ];
        let mut random = Random::new(1, 1);
        for (nth, rule) in rules.iter().enumerate().cycle().take(300) {
            let drawn = sample(rule, nth as u64, &mut random);
            assert!(rule.matches(&seen(&drawn)), "{rule} {drawn:?}");
        }
    }

    #[test]
    fn rules_decide_equally_many_flows_even_below_wider_ones() {
        let hosts = |dport| Rule { proto: (17, 0xff), dport: (dport, dport), ..Rule::any(true) };
        // The last rule also matches packets that the first two rules decide.
        let rules = vec![hosts(1), hosts(2), Rule { proto: (17, 0xff), ..Rule::any(true) }];
        let set = RuleSet { rules, default_pass: false };
        let mut random = Random::new(1, 1);
        let mut decided = [0; 3];
        for nth in 0..30 {
            decided[set.decide(&seen(&by_rule(&set, nth, &mut random))).1 as usize] += 1;
        }
        assert_eq!(decided, [10, 10, 10]);
    }

    #[test]
    fn few_flows_come_several_times_and_no_flow_twice_in_a_round() {
        let order = in_order(300, 1, &mut Random::new(1, 1));
        assert_eq!(order.len(), 1200);
        for (number, round) in order.chunks(300).enumerate() {
            assert!(round.iter().all(|(of, _)| *of == number));
            let mut flows: Vec<usize> = round.iter().map(|(_, flow)| *flow).collect();
            assert!(!flows.is_sorted());
            flows.sort_unstable();
            assert_eq!(flows, (0..300).collect::<Vec<_>>());
        }
    }

    #[test]
    fn there_are_rounds_for_every_packet_that_flows_have_in_turn() {
        assert_eq!(in_order(5000, 8, &mut Random::new(1, 1)).len(), 8 * 5000);
        assert_eq!(in_order(1000, 8, &mut Random::new(1, 1)).len(), 8 * 1000);
        assert_eq!(in_order(100, 8, &mut Random::new(1, 1)).len(), 16 * 100);
    }
}
