//! Synthetic flows: counts, lives, sizes, order, limits.

use crate::common::{all, key, sound};
use braid_packet::{Field, FlowKey, Packet};
use braid_traffic::flows::{Flows, Options, Protocol};
use braid_traffic::{Arrivals, START_NS};
use proptest::prelude::*;
use std::collections::HashMap;

const FIN: u128 = 1;
const SYN: u128 = 2;
const ACK: u128 = 16;

fn made(options: Options) -> Vec<Packet> {
    let (packets, summary) = all(&mut Flows::new(options.clone()).unwrap()).unwrap();
    assert_eq!((summary.packets, summary.flows), (options.packets, Some(options.flows)));
    sound(&packets);
    packets
}

/// Packets of each flow in order.
fn by_flow(packets: &[Packet]) -> HashMap<FlowKey, Vec<&Packet>> {
    let mut flows: HashMap<_, Vec<&Packet>> = HashMap::new();
    for packet in packets {
        flows.entry(key(packet).bidirectional()).or_default().push(packet);
    }
    flows
}

fn get(packet: &Packet, field: Field) -> u128 {
    packet.get(&packet.parse(), field).unwrap()
}

#[test]
fn flows_and_packets_are_as_many_as_asked_for() {
    let packets = made(Options::new(100, 1_000));
    let flows = by_flow(&packets);
    assert_eq!(flows.len(), 100);
    assert!(flows.values().all(|packets| packets.len() == 10));
}

#[test]
fn same_seed_gives_the_same_packets_and_another_one_others() {
    let with = |seed| made(Options { seed, ..Options::new(50, 500) });
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[test]
fn times_are_the_rate() {
    let packets = made(Options { rate: 1_000, ..Options::new(10, 1_001) });
    let (first, last) = (packets[0].time_ns, packets[1_000].time_ns);
    assert!((START_NS..START_NS + 1_000_000).contains(&first));
    // 1,000 gaps of 1 ms. Rounding makes a difference of at most one.
    assert!((last - first).abs_diff(1_000_000_000) <= 1);
    let options = Options { arrivals: Arrivals::Poisson, rate: 1_000, ..Options::new(10, 10_000) };
    let packets = made(options);
    // 10 s, with a standard deviation of 0.1 s.
    let span = packets[9_999].time_ns - packets[0].time_ns;
    assert!(span.abs_diff(10_000_000_000) < 500_000_000, "{span}");
}

#[test]
fn connections_with_replies_are_opened_used_and_closed() {
    let options = Options {
        protocol: Protocol::Tcp,
        replies_ppm: 400_000,
        size: "64..600".parse().unwrap(),
        ..Options::new(20, 520)
    };
    for packets in by_flow(&made(options)).values() {
        // 26 packets: 3 to open, 20 with data (8 of them replies), 3 to close.
        let client = key(packets[0]).src;
        let flags: Vec<u128> = packets.iter().map(|p| get(p, Field::TcpFlags)).collect();
        assert_eq!(flags[..3], [SYN, SYN | ACK, ACK]);
        assert_eq!(flags[23..], [FIN | ACK, FIN | ACK, ACK]);
        let back = packets[3..23].iter().filter(|packet| key(packet).src != client).count();
        assert_eq!(back, 8);
        sequence_numbers_fit(packets);
    }
}

/// Checks that each side's data starts where its previous data ended, and that each side
/// acknowledges all data of the other.
fn sequence_numbers_fit(packets: &[&Packet]) {
    let mut next: HashMap<u128, u32> = HashMap::new();
    for packet in packets {
        let (key, layout) = (key(packet), packet.parse());
        let seq = get(packet, Field::TcpSeq) as u32;
        let flags = get(packet, Field::TcpFlags);
        if let Some(expected) = next.get(&key.src) {
            assert_eq!(seq, *expected);
        }
        if flags & ACK != 0 {
            assert_eq!(get(packet, Field::TcpAck) as u32, next[&key.dst]);
        }
        let len = layout.payload_len() as u32 + u32::from(flags & (SYN | FIN) != 0);
        next.insert(key.src, seq.wrapping_add(len));
    }
}

#[test]
fn one_way_connections_go_from_syn_to_fin() {
    let packets = made(Options { protocol: Protocol::Tcp, ..Options::new(10, 100) });
    for packets in by_flow(&packets).values() {
        let flags: Vec<u128> = packets.iter().map(|p| get(p, Field::TcpFlags)).collect();
        assert_eq!((flags[0], flags[9]), (SYN, FIN | ACK));
        assert!(flags[1..9].iter().all(|flags| flags & (SYN | FIN) == 0));
        assert!(packets.iter().all(|packet| key(packet) == key(packets[0])));
    }
}

#[test]
fn heavy_tail_gives_the_largest_hundredth_a_quarter_of_the_packets() {
    let packets = made(Options { tail: Some(1.2), ..Options::new(1_000, 100_000) });
    let mut sizes: Vec<usize> = by_flow(&packets).values().map(Vec::len).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let top: usize = sizes[..10].iter().sum();
    // Weights are r^(-5/6). By Euler and Maclaurin the first ten sum to 6 (10^(1/6) - 1) + (1 +
    // 0.15)/2 + 0.07 = 3.45, and all to 6 (1000^(1/6) - 1) + 1/2 + 0.07 = 13.54. The first ten
    // flows get a share of 0.2548 of the 99,000 packets after each flow's first one, and 10 more:
    // 25,230.
    assert!((25_000..25_500).contains(&top), "{top}");
    assert!(sizes[500] < 60, "half of the flows are small: {}", sizes[500]);
}

#[test]
fn trains_keep_packets_of_a_flow_together() {
    let packets = made(Options { train: 5, ..Options::new(40, 1_000) });
    for train in packets.chunks(5) {
        let first = key(&train[0]).bidirectional();
        assert!(train.iter().all(|packet| key(packet).bidirectional() == first));
    }
    let runs = |packets: &[Packet]| {
        let differ =
            |pair: &[Packet]| key(&pair[0]).bidirectional() != key(&pair[1]).bidirectional();
        packets.windows(2).filter(|pair| differ(pair)).count() + 1
    };
    // 200 trains. A few follow a train of the same flow.
    assert!((150..=200).contains(&runs(&packets)));
    assert!(runs(&made(Options::new(40, 1_000))) > 800);
}

#[test]
fn flows_are_open_from_the_start_to_the_end() {
    let packets = made(Options::new(50, 5_000));
    let flows = by_flow(&packets);
    let (first, last) = (packets[0].time_ns, packets[4_999].time_ns);
    for packets in flows.values() {
        // 100 packets each, evenly spread: the first comes within about a hundredth of the run.
        assert!(packets[0].time_ns - first < (last - first) / 50);
        assert!(last - packets[99].time_ns < (last - first) / 50);
    }
}

#[test]
fn frames_are_as_long_as_asked_for() {
    let lens = |size: &str, protocol| -> Vec<u32> {
        let options =
            Options { size: size.parse().unwrap(), protocol, ..Options::new(100, 10_000) };
        made(options).iter().map(|packet| packet.wire_len).collect()
    };
    assert!(lens("60", Protocol::Mix).iter().all(|len| *len == 60));
    assert!(lens("9014", Protocol::Udp).iter().all(|len| *len == 9014));
    let ranged = lens("64..1500", Protocol::Udp);
    assert!(ranged.iter().all(|len| (64..=1500).contains(len)));
    let mean = ranged.iter().map(|len| u64::from(*len)).sum::<u64>() as f64 / 10_000.0;
    // 782, with a standard deviation of 4.1.
    assert!((mean - 782.0).abs() < 21.0, "{mean}");
    let mix = lens("imix", Protocol::Udp);
    assert!(mix.iter().all(|len| matches!(len, 60 | 590 | 1514)));
}

#[test]
fn ipv6_flows_lie_in_their_prefixes() {
    let (from, to) = Options::prefixes(true);
    let packets = made(Options { from, to, ..Options::new(100, 400) });
    for packet in &packets {
        let key = key(packet);
        assert_eq!(key.version, 6);
        assert!(from.contains(key.src) && to.contains(key.dst));
    }
}

#[test]
fn flows_use_the_prefixes_and_ports_asked_for() {
    let options = Options {
        from: "192.0.2.0/29".parse().unwrap(),
        to: "203.0.113.9/32".parse().unwrap(),
        ports: "22,8000-8001".parse().unwrap(),
        ..Options::new(600, 600)
    };
    let keys: Vec<FlowKey> = made(options).iter().map(key).collect();
    let mut hosts: Vec<u128> = keys.iter().map(|key| key.src & 0xff).collect();
    hosts.sort_unstable();
    hosts.dedup();
    assert_eq!(hosts, [1, 2, 3, 4, 5, 6]);
    assert!(keys.iter().all(|key| key.dst == 0xcb00_7109));
    for port in [22, 8000, 8001] {
        // 200 each, with a standard deviation of 12.
        let count = keys.iter().filter(|key| key.dport == port).count();
        assert!((140..260).contains(&count), "{port}: {count}");
    }
}

#[test]
fn options_beyond_their_limits_are_refused() {
    let base = || Options::new(10, 100);
    for (options, expected) in [
        (Options { flows: 0, ..base() }, "--flows must be at least 1"),
        (Options { flows: 4_194_305, ..base() }, "--flows: 4194305 is more than the most, 4194304"),
        (Options { packets: 0, ..base() }, "--packets must be at least 1"),
        (Options { packets: 1 << 32, ..base() }, "--packets: 4294967296 is more than the most"),
        (Options { packets: 9, ..base() }, "10 flows need at least as many packets"),
        (Options { rate: 0, ..base() }, "--rate must be at least 1"),
        (Options { rate: 1_000_000_001, ..base() }, "--rate: 1000000001 is more than the most"),
        (Options { train: 0, ..base() }, "--trains must be at least 1"),
        (Options { tail: Some(0.0), ..base() }, "--tail must be from 0.01"),
        (Options { tail: Some(f64::NAN), ..base() }, "--tail must be from 0.01"),
        (Options { replies_ppm: 1_000_001, ..base() }, "--replies must be from 0 to 1"),
    ] {
        let error = Flows::new(options).err().unwrap().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(48)))]

    #[test]
    fn any_options_within_limits_make_sound_traffic(
        (flows, packets) in (1_u64..60).prop_flat_map(|flows| (Just(flows), flows..600)),
        tail in proptest::option::of(0.01_f64..100.0),
        train in 1_u32..20,
        replies_ppm in 0_u32..=1_000_000,
        sizes in (60_u16..2_000, 0_u16..2_000),
        v6 in any::<bool>(),
        rate in 1_u64..1_000_000_000,
        seed in any::<u64>(),
    ) {
        let (from, to) = Options::prefixes(v6);
        let size = format!("{}..{}", sizes.0, sizes.0 + sizes.1).parse().unwrap();
        let base = Options::new(flows, packets);
        let options = Options { tail, train, replies_ppm, size, from, to, rate, seed, ..base };
        let made = made(options);
        prop_assert_eq!(by_flow(&made).len() as u64, flows);
        for packets in by_flow(&made).values().filter(|packets| key(packets[0]).proto == 6) {
            sequence_numbers_fit(packets);
        }
    }
}
