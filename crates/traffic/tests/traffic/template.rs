//! Expansion of templates: rates, gaps, addresses, limits.

use crate::common::{Folder, all, key, sound, udp};
use braid_packet::Packet;
use braid_traffic::template::{Options, Template};
use braid_traffic::{Arrivals, Error, START_NS};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const CLIENT: (u128, u16) = (0x1500_0002, 4000);
const SERVER: (u128, u16) = (0x1600_000c, 53);
const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// Two requests in a row, then a reply, with gaps of 1 ms and 5 ms.
fn conversation() -> Vec<Packet> {
    vec![
        udp(S, CLIENT, SERVER, b"one"),
        udp(S + MS, CLIENT, SERVER, b"two"),
        udp(S + 6 * MS, SERVER, CLIENT, b"three"),
    ]
}

/// A folder with `dns.pcap` and a template file with these entries and further keys.
fn folder(entries: &str, more: &str) -> Folder {
    let folder = Folder::new();
    folder.capture("dns.pcap", &conversation());
    let text = format!(
        "- duration: 10\n  generator:\n    distribution: seq\n    clients_start: 16.0.0.1\n    \
         clients_end: 16.0.0.100\n    servers_start: 48.0.0.1\n    servers_end: 48.0.0.7\n{more}  \
         cap_info:\n{entries}"
    );
    folder.write("t.yaml", &text);
    folder
}

fn entry(cps: &str, more: &str) -> String {
    format!("    - {{name: dns.pcap, cps: {cps}, ipg: 10000, rtt: 20000, w: 1{more}}}\n")
}

fn expand(folder: &Folder, options: &Options) -> Result<Vec<Packet>, Error> {
    let (mut traffic, warnings) = Template::open(&folder.path("t.yaml"), options)?;
    assert_eq!(warnings, [""; 0]);
    Ok(all(&mut traffic)?.0)
}

/// The packets of each connection in order, by the client's address and port.
fn connections(packets: &[Packet]) -> BTreeMap<(u128, u16), Vec<&Packet>> {
    let mut connections: BTreeMap<_, Vec<&Packet>> = BTreeMap::new();
    for packet in packets {
        let key = key(packet);
        let client = if key.dport == 53 { (key.src, key.sport) } else { (key.dst, key.dport) };
        connections.entry(client).or_default().push(packet);
    }
    connections
}

#[test]
fn regular_arrivals_make_exactly_the_rate() {
    let folder = folder(&entry("40", ""), "");
    let options = Options { arrivals: Arrivals::Regular, ..Options::default() };
    let packets = expand(&folder, &options).unwrap();
    sound(&packets);
    // 40 a second for 10 s, of 3 packets each.
    assert_eq!(packets.len(), 1_200);
    let connections = connections(&packets);
    assert_eq!(connections.len(), 400);
    let mut starts: Vec<u64> = connections.values().map(|packets| packets[0].time_ns).collect();
    starts.sort_unstable();
    assert!(starts[0] >= START_NS && starts[399] < START_NS + 10 * S);
    assert!(starts.windows(2).all(|pair| (pair[1] - pair[0]).abs_diff(25 * MS) <= 1));
}

#[test]
fn poisson_arrivals_come_close_to_the_rate() {
    let folder = folder(&entry("1000", ""), "");
    let packets = expand(&folder, &Options::default()).unwrap();
    sound(&packets);
    let count = connections(&packets).len();
    // 10,000, with a standard deviation of 100.
    assert!((9_500..10_500).contains(&count), "{count}");
    assert_eq!(packets.len(), 3 * count);
}

#[test]
fn scale_and_seconds_multiply() {
    let folder = folder(&entry("40", ""), "");
    let regular = Options { arrivals: Arrivals::Regular, ..Options::default() };
    let scaled = Options { scale: 2.5, duration_ns: Some(2 * S), ..regular };
    assert_eq!(expand(&folder, &scaled).unwrap().len(), 3 * 100 * 2);
}

#[test]
fn templates_share_time_by_their_rates() {
    let entries = entry("30", "") + &entry("10", ", one_app_server: true, server_addr: 48.9.9.9");
    let options = Options { arrivals: Arrivals::Regular, ..Options::default() };
    let packets = expand(&folder(&entries, ""), &options).unwrap();
    let to_one = |packet: &&Packet| key(packet).dst == 0x3009_0909;
    assert_eq!(packets.iter().filter(to_one).count(), 2 * 100);
    assert_eq!(packets.len(), 3 * 400);
}

#[test]
fn same_seed_gives_the_same_packets_and_another_one_others() {
    let folder = folder(&entry("50", ""), "");
    let with = |seed| expand(&folder, &Options { seed, ..Options::default() }).unwrap();
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[test]
fn gaps_are_ipg_within_a_direction_and_rtt_at_a_turn() {
    let folder = folder(&entry("1", ""), "");
    let options = Options { packets: Some(3), arrivals: Arrivals::Regular, ..Options::default() };
    let packets = expand(&folder, &options).unwrap();
    let gaps: Vec<u64> = packets.windows(2).map(|pair| pair[1].time_ns - pair[0].time_ns).collect();
    assert_eq!(gaps, [10 * MS, 20 * MS]);
    let data: Vec<&[u8]> = packets.iter().map(|packet| packet.payload(&packet.parse())).collect();
    assert_eq!(data, [&b"one"[..], b"two", b"three"]);
}

#[test]
fn gaps_of_the_capture_are_kept_or_raised() {
    let options = Options { packets: Some(3), arrivals: Arrivals::Regular, ..Options::default() };
    let gaps = |more: &str| {
        let packets = expand(&folder(&entry("1", ""), more), &options).unwrap();
        packets.windows(2).map(|pair| pair[1].time_ns - pair[0].time_ns).collect::<Vec<_>>()
    };
    assert_eq!(gaps("  cap_ipg: true\n"), [MS, 5 * MS]);
    let raised = "  cap_ipg: true\n  cap_ipg_min: 2000\n  cap_override_ipg: 3000\n";
    assert_eq!(gaps(raised), [3 * MS, 5 * MS]);
}

#[test]
fn connections_have_addresses_in_turn_and_ports_of_their_own() {
    let folder = folder(&entry("100", ""), "");
    let options = Options { arrivals: Arrivals::Regular, ..Options::default() };
    let packets = expand(&folder, &options).unwrap();
    let connections = connections(&packets);
    // 1,000 connections of 100 clients: ten ports each, from 10,000 on.
    assert_eq!(connections.len(), 1_000);
    for ((client, port), packets) in &connections {
        assert!((0x1000_0001..=0x1000_0064).contains(client));
        assert!((10_000..10_010).contains(port), "{port}");
        let keys: Vec<_> = packets.iter().map(|packet| key(packet)).collect();
        assert_eq!((keys[0], keys[1], keys[2]), (keys[0], keys[0], keys[0].reversed()));
        assert!((0x3000_0001..=0x3000_0007).contains(&keys[0].dst));
    }
}

#[test]
fn connections_of_a_burst_share_client_and_server() {
    let folder = folder(&entry("10", "").replace("w: 1", "w: 3"), "");
    let options = Options { packets: Some(60), arrivals: Arrivals::Regular, ..Options::default() };
    let packets = expand(&folder, &options).unwrap();
    let firsts: Vec<_> =
        packets.iter().filter(|p| p.payload(&p.parse()) == b"one").map(key).collect();
    assert!(firsts.len() >= 12);
    for (number, burst) in firsts.chunks(3).enumerate() {
        assert!(burst.iter().all(|key| (key.src, key.dst) == (burst[0].src, burst[0].dst)));
        let ports: BTreeSet<u16> = burst.iter().map(|key| key.sport).collect();
        assert_eq!(ports.len(), burst.len());
        assert_eq!(burst[0].src, 0x1000_0001 + number as u128);
    }
}

#[test]
fn limit_makes_connections_use_old_flows_again() {
    let folder = folder(&entry("40", ", limit: 7"), "");
    let options = Options { arrivals: Arrivals::Regular, ..Options::default() };
    let (mut traffic, _) = Template::open(&folder.path("t.yaml"), &options).unwrap();
    let (packets, summary) = all(&mut traffic).unwrap();
    assert_eq!((packets.len(), summary.flows), (1_200, Some(7)));
    let keys: BTreeSet<_> = packets.iter().map(|packet| key(packet).bidirectional()).collect();
    assert_eq!(keys.len(), 7);
}

#[test]
fn ipv6_addresses_end_in_those_of_ipv4() {
    let prefix = 0x2001_0db8_u128 << 96;
    let (client, server) = ((prefix | 7, 1000), (prefix | 9, 53));
    let packets = [udp(0, client, server, b"?"), udp(1, server, client, b"!")];
    let made = |more: &str| {
        let folder = folder(&entry("1", ""), more);
        folder.capture("dns.pcap", &packets);
        let options =
            Options { packets: Some(2), arrivals: Arrivals::Regular, ..Options::default() };
        let packets = expand(&folder, &options).unwrap();
        sound(&packets);
        (key(&packets[0]).src, key(&packets[0]).dst, key(&packets[1]).dst)
    };
    let (client, server) = (0x1000_0001, 0x3000_0001);
    assert_eq!(made(""), (prefix | client, prefix | server, prefix | client));
    let upper = 0xfe80_0001_0002_0003_0004_0005_u128 << 32;
    let more = "  src_ipv6: [0xfe80, 1, 2, 3, 4, 5]\n";
    assert_eq!(made(more), (upper | client, prefix | server, upper | client));
}

#[test]
fn too_many_open_connections_are_refused() {
    let folder = folder(&entry("1e6", "").replace("10000", "1e9"), "");
    let error = expand(&folder, &Options::default()).unwrap_err();
    assert!(matches!(error, Error::Crowded { limit: 262_144, after: 0 }), "{error}");
}

#[test]
fn missing_captures_are_all_named_and_may_be_left_out() {
    let entries = entry("1", "")
        + &entry("1", "").replace("dns", "a/b")
        + &entry("1", "").replace("dns", "c");
    let folder = folder(&entries, "");
    let error = expand(&folder, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("`a/b.pcap`") && error.contains("`c.pcap`"), "{error}");
    assert!(error.ends_with("; --skip-missing leaves them out"), "{error}");
    let options = Options { skip_missing: true, ..Options::default() };
    let (_, warnings) = Template::open(&folder.path("t.yaml"), &options).unwrap();
    assert_eq!(warnings.len(), 2);
    assert!(warnings[0].starts_with("left out: no capture `a/b.pcap` in "), "{warnings:?}");
}

#[test]
fn options_that_make_no_traffic_are_refused() {
    let folder = folder(&entry("0", ""), "");
    let error = |options: &Options| expand(&folder, options).unwrap_err().to_string();
    assert!(error(&Options::default()).contains("every `cps` is 0"));
    for scale in [0.0, -1.0, f64::NAN, 1e7] {
        assert!(error(&Options { scale, ..Options::default() }).contains("scale"), "{scale}");
    }
}

#[test]
fn rates_beyond_the_most_are_refused() {
    let folder = folder(&entry("1e9", ""), "");
    let error = expand(&folder, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("at most 1e8"), "{error}");
}

#[test]
fn time_past_the_end_of_pcap_is_refused() {
    let folder = folder(&entry("0.000001", ""), "");
    let options = Options { packets: Some(10_000), ..Options::default() };
    assert!(matches!(expand(&folder, &options), Err(Error::End)));
}

#[test]
fn captures_that_are_no_conversations_are_refused() {
    let folder = folder(&entry("1", ""), "");
    let error = |packets: &[Packet]| {
        folder.capture("dns.pcap", packets);
        expand(&folder, &Options::default()).unwrap_err().to_string()
    };
    assert!(error(&[]).contains("dns.pcap: has no IP packet"));
    assert!(error(&[udp(0, CLIENT, CLIENT, b"")]).contains("clients and servers"));
    folder.write("dns.pcap", "no capture");
    let error = expand(&folder, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("dns.pcap: not a capture"), "{error}");
}

#[test]
fn template_files_of_the_corpus_expand() {
    let Some(data) = std::env::var_os("BRAID_DATA") else {
        println!("skipped: BRAID_DATA is not set");
        return;
    };
    let folder = Path::new(&data).join("pcaps/trex_templates");
    let (mut files, mut expanded) = (0, 0);
    for entry in std::fs::read_dir(&folder).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|ending| ending != "yaml") {
            continue;
        }
        files += 1;
        let options = Options { skip_missing: true, packets: Some(2_000), ..Options::default() };
        match Template::open(&path, &options) {
            Ok((mut traffic, _)) => {
                let (packets, summary) = all(&mut traffic).unwrap();
                assert!(summary.packets > 0, "{}", path.display());
                assert!(packets.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns));
                assert!(packets.iter().all(|packet| packet.parse().malformed().is_none()));
                expanded += 1;
            }
            Err(Error::Missing(_)) => {}
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
    println!("{files} template files, {expanded} expanded");
    assert!(files > 0 && expanded >= files - 1, "{expanded} of {files}");
}
