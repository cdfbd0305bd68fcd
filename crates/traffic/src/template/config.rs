//! The contents of a template file, checked.

use crate::yaml::{self, At, Map};

/// The most templates in a file.
const MAX_ENTRIES: usize = 4096;
/// The most clients. Each has a counter of its ports.
const MAX_CLIENTS: u64 = 1 << 20;
/// The most connections whose addresses are kept to be used again.
const MAX_LIMITED: usize = 1 << 20;
/// Longest gap between packets, in microseconds: a day.
const MAX_GAP_US: f64 = 86_400e6;
/// Longest duration in seconds: ten years.
const MAX_SECONDS: f64 = 3.2e8;

/// A template file.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The time for which connections begin.
    pub duration_ns: Option<u64>,
    /// Client addresses.
    pub clients: Range,
    /// Server addresses.
    pub servers: Range,
    /// Whether addresses are drawn at random. Otherwise they are used one after another.
    pub random: bool,
    /// The upper 96 bits of client and server addresses in IPv6 packets, if the file gives them.
    pub upper6: [Option<u128>; 2],
    /// If present, gaps are taken from the captures.
    pub own_gaps: Option<OwnGaps>,
    /// Templates.
    pub entries: Vec<Entry>,
}

/// A range of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The first address.
    pub first: u32,
    /// The number of addresses.
    pub count: u64,
}

/// How to change the gaps of captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnGaps {
    /// Gaps below this are changed.
    pub least_ns: u64,
    /// The gap that takes their place.
    pub instead_ns: u64,
}

/// One template.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The capture's name in the file.
    pub name: String,
    /// Connections a second.
    pub cps: f64,
    /// The time from a packet to the next one in the same direction.
    pub gap_ns: u64,
    /// The time from a packet to the next one in the other direction.
    pub turn_ns: u64,
    /// The number of connections in a row with the same client and server.
    pub burst: u32,
    /// After this many connections, the addresses and ports of the first ones are used again.
    pub limit: Option<usize>,
    /// The server of all connections, if there is only one.
    pub server: Option<u32>,
}

/// The known keys. Keys that are not read have no effect on a capture.
const ROOT: &[&str] = &[
    "duration",
    "generator",
    "cap_ipg",
    "cap_ipg_min",
    "cap_override_ipg",
    "cap_info",
    "src_ipv6",
    "dst_ipv6",
    "mac",
    "vlan",
    "tw",
    "wlength",
];
const GENERATOR: &[&str] = &[
    "distribution",
    "clients_start",
    "clients_end",
    "servers_start",
    "servers_end",
    "clients_per_gb",
    "min_clients",
    "dual_port_mask",
    "tcp_aging",
    "udp_aging",
];
const ENTRY: &[&str] =
    &["name", "cps", "ipg", "rtt", "w", "limit", "one_app_server", "server_addr", "plugin_id"];

impl Config {
    /// Reads a template file and adds warnings about unknown keys.
    pub fn parse(text: &str, warnings: &mut Vec<String>) -> Result<Self, String> {
        let tree = yaml::parse(text)?;
        let mut root = At::root(&tree, "the file");
        if root.is_list() {
            let mut items = root.list(1)?;
            root = items.pop().ok_or_else(|| root.wrong("expected one item, found none"))?;
        }
        let map = root.map()?.top();
        warnings.extend(map.unknown(ROOT));
        let generator = map.need("generator")?.map()?;
        warnings.extend(generator.unknown(GENERATOR));
        let own_gaps = own_gaps(&map)?;
        let mut entries = Vec::new();
        for item in map.need("cap_info")?.list(MAX_ENTRIES)? {
            let entry = item.map()?;
            warnings.extend(entry.unknown(ENTRY));
            entries.push(Entry::read(&entry, own_gaps.is_some())?);
        }
        if entries.is_empty() {
            return Err(map.need("cap_info")?.wrong("names no capture"));
        }
        if entries.iter().filter_map(|entry| entry.limit).sum::<usize>() > MAX_LIMITED {
            let what = format!("all `limit`s together may be at most {MAX_LIMITED}");
            return Err(map.need("cap_info")?.wrong(what));
        }
        let duration = map.optional("duration", |at| at.number(MAX_SECONDS))?;
        Ok(Config {
            duration_ns: duration.map(|seconds| (seconds * 1e9) as u64),
            clients: range(&generator, "clients_start", "clients_end", MAX_CLIENTS)?,
            servers: range(&generator, "servers_start", "servers_end", 1 << 32)?,
            random: generator.optional("distribution", distribution)?.unwrap_or(false),
            upper6: [map.optional("src_ipv6", upper6)?, map.optional("dst_ipv6", upper6)?],
            own_gaps,
            entries,
        })
    }
}

impl Entry {
    fn read(map: &Map<'_>, own_gaps: bool) -> Result<Self, String> {
        let gap = |key| match map.optional(key, micros)? {
            None if !own_gaps => map.need(key).and_then(|at| micros(&at)),
            gap => Ok(gap.unwrap_or(0)),
        };
        let limit = map.optional("limit", |at| at.whole(1, MAX_LIMITED as u64))?;
        let one_server = map.optional("one_app_server", At::flag)?.unwrap_or(false);
        let server = map.optional("server_addr", At::address)?;
        if one_server && server.is_none() {
            map.need("server_addr")?;
        }
        Ok(Entry {
            name: map.need("name")?.text()?.to_owned(),
            cps: map.need("cps")?.number(1e9)?,
            gap_ns: gap("ipg")?,
            turn_ns: gap("rtt")?,
            burst: map.optional("w", |at| at.whole(1, 1_000_000))?.unwrap_or(1) as u32,
            limit: limit.map(|limit| limit as usize),
            server: server.filter(|_| one_server),
        })
    }
}

fn micros(at: &At<'_>) -> Result<u64, String> {
    Ok((at.number(MAX_GAP_US)? * 1e3) as u64)
}

fn own_gaps(map: &Map<'_>) -> Result<Option<OwnGaps>, String> {
    let own = map.optional("cap_ipg", At::flag)?.unwrap_or(false);
    let least_ns = map.optional("cap_ipg_min", micros)?.unwrap_or(0);
    let instead_ns = map.optional("cap_override_ipg", micros)?.unwrap_or(least_ns);
    Ok(own.then_some(OwnGaps { least_ns, instead_ns }))
}

fn range(map: &Map<'_>, first: &str, last: &str, most: u64) -> Result<Range, String> {
    let start = map.need(first)?.address()?;
    let end = map.need(last)?;
    match end.address()?.checked_sub(start) {
        None => Err(end.wrong(format!("lies before {first}"))),
        Some(count) if u64::from(count) >= most => {
            Err(end.wrong(format!("more than {most} addresses from {first} on")))
        }
        Some(count) => Ok(Range { first: start, count: u64::from(count) + 1 }),
    }
}

fn distribution(at: &At<'_>) -> Result<bool, String> {
    match at.text()? {
        "seq" => Ok(false),
        "random" => Ok(true),
        _ => Err(at.wrong("expected seq (one address after the other) or random")),
    }
}

/// Six words of 16 bits.
fn upper6(at: &At<'_>) -> Result<u128, String> {
    let words = at.list(6)?;
    if words.len() != 6 {
        return Err(at.wrong("expected the upper six words of an IPv6 address"));
    }
    words.iter().try_fold(0, |upper, word| Ok(upper << 16 | u128::from(word.whole(0, 0xffff)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
- duration: 0.5
  generator:
    distribution: \"seq\"
    clients_start: \"16.0.0.1\"
    clients_end: 16.0.0.255
    servers_start: 48.0.0.1
    servers_end: 48.0.255.255
  cap_info:
    - name: cap2/dns.pcap
      cps: 10.5
      ipg: 10000
      rtt: 20000
      w: 2
";

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, &mut Vec::new())
    }

    #[test]
    fn file_is_read() {
        let config = parse(GOOD).unwrap();
        assert_eq!(config.duration_ns, Some(500_000_000));
        assert_eq!(config.clients, Range { first: 0x1000_0001, count: 255 });
        assert_eq!(config.servers, Range { first: 0x3000_0001, count: 65_535 });
        assert!(!config.random && config.own_gaps.is_none());
        let entry = Entry {
            name: "cap2/dns.pcap".to_owned(),
            cps: 10.5,
            gap_ns: 10_000_000,
            turn_ns: 20_000_000,
            burst: 2,
            limit: None,
            server: None,
        };
        assert_eq!(config.entries, [entry]);
    }

    #[test]
    fn gaps_of_captures_need_no_gaps_in_the_file() {
        let text = GOOD.replace("      ipg: 10000\n      rtt: 20000\n", "");
        assert_eq!(parse(&text).unwrap_err(), "line 9: cap_info[0].ipg is missing");
        let own = format!("{text}  cap_ipg: true\n  cap_ipg_min: 30\n  cap_override_ipg: 200\n");
        let gaps = OwnGaps { least_ns: 30_000, instead_ns: 200_000 };
        assert_eq!(parse(&own).unwrap().own_gaps, Some(gaps));
    }

    #[test]
    fn unknown_keys_are_warnings_and_known_ones_without_effect_are_not() {
        let text =
            GOOD.replace("      w: 2\n", "      w: 2\n      weight: 3\n      plugin_id: 1\n");
        let mut warnings = Vec::new();
        Config::parse(&format!("{text}  colour: red\n  mac: [0, 1]\n"), &mut warnings).unwrap();
        let expected = [
            "line 16: colour is not known; it has no effect",
            "line 14: cap_info[0].weight is not known; it has no effect",
        ];
        assert_eq!(warnings, expected);
    }

    #[test]
    fn wrong_values_are_errors_with_line_and_path() {
        for (from, to, expected) in [
            ("cps: 10.5", "cps: many", "line 10: cap_info[0].cps: expected a number, found `many`"),
            ("cps: 10.5", "cps: [1]", "line 10: cap_info[0].cps: expected a number, found a list"),
            ("cps: 10.5", "cps: 1e10", "cap_info[0].cps: expected a number from 0 to 1000000000"),
            ("cps: 10.5", "cps: -1", "cap_info[0].cps: expected a number from 0 to 1000000000"),
            ("cps: 10.5", "cps: .nan", "cap_info[0].cps: expected a number, found `.nan`"),
            ("w: 2", "w: 0", "cap_info[0].w: expected a whole number from 1 to 1000000, found `0`"),
            ("w: 2", "w: 2.5", "cap_info[0].w: expected a whole number"),
            (
                "w: 2",
                "limit: 99999999999999999999999",
                "cap_info[0].limit: expected a whole number",
            ),
            ("w: 2", "one_app_server: true", "cap_info[0].server_addr is missing"),
            ("w: 2", "one_app_server: 1", "cap_info[0].one_app_server: expected true or false"),
            ("16.0.0.255", "16.0.0.0", "line 5: generator.clients_end: lies before clients_start"),
            ("16.0.0.255", "17.0.0.0", "more than 1048576 addresses from clients_start on"),
            ("48.0.0.1", "48.0.0", "generator.servers_start: expected an IPv4 address"),
            ("\"seq\"", "normal", "generator.distribution: expected seq"),
            ("duration: 0.5", "duration: 1e300", "duration: expected a number from 0 to 320000000"),
            ("name: cap2/dns.pcap", "name:", "cap_info[0].name: expected a text, found nothing"),
            ("- duration", "- cap_ipg: yes\n  duration", "cap_ipg: expected true or false"),
            ("- duration", "- src_ipv6: [1]\n  duration", "src_ipv6: expected the upper six words"),
        ] {
            let error = parse(&GOOD.replace(from, to)).unwrap_err();
            assert!(error.contains(expected), "{to}: {error}");
        }
    }

    #[test]
    fn files_of_another_shape_are_errors() {
        for (text, expected) in [
            ("[]", "line 1: the file: expected one item, found none"),
            ("[1, 2]", "line 1: the file: 2 items; at most 1 are read"),
            ("12", "line 1: the file: expected a mapping, found `12`"),
            ("a: 1", "line 1: generator is missing"),
            ("generator: 1", "line 1: generator: expected a mapping, found `1`"),
            ("generator: {}", "line 1: cap_info is missing"),
            ("{generator: {}, cap_info: []}", "line 1: cap_info: names no capture"),
        ] {
            assert_eq!(parse(text).unwrap_err(), expected, "{text}");
        }
    }
}
