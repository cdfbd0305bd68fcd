//! Repetition of a capture: times, addresses, and the bytes that don't change.

use crate::common::{Folder, all, key, sound, udp};
use braid_packet::{Field, Link, NewPayload, Packet, Shape, build_fresh, build_new};
use braid_traffic::Error;
use braid_traffic::repeat::{Options, Repeat};

const A: (u128, u16) = (0x0a00_0001, 1000);
const B: (u128, u16) = (0xc0a8_0002, 53);

fn repeat(packets: &[Packet], options: Options) -> Result<Vec<Packet>, Error> {
    let folder = Folder::new();
    let path = folder.capture("in.pcap", packets);
    Ok(all(&mut Repeat::open(&path, options)?)?.0)
}

fn exchange() -> Vec<Packet> {
    vec![udp(5_000, A, B, b"?"), udp(6_000, B, A, b"!"), udp(9_000, A, B, b"?")]
}

#[test]
fn repetitions_follow_each_other_with_a_gap() {
    let times = |options| -> Vec<u64> {
        repeat(&exchange(), options).unwrap().iter().map(|packet| packet.time_ns).collect()
    };
    let options = Options { times: 2, gap_ns: Some(500), ..Options::default() };
    // The capture takes 4,000 ns.
    assert_eq!(times(options.clone()), [5_000, 6_000, 9_000, 9_500, 10_500, 13_500]);
    let later = Options { start_ns: Some(1_000_000), ..options.clone() };
    assert_eq!(times(later)[..4], [1_000_000, 1_001_000, 1_004_000, 1_004_500]);
    // The mean of the two gaps is 2,000 ns.
    assert_eq!(times(Options { gap_ns: None, ..options })[3], 11_000);
}

#[test]
fn first_repetition_is_the_capture_itself() {
    let options = Options { times: 3, ..Options::default() };
    assert_eq!(repeat(&exchange(), options).unwrap()[..3], exchange());
}

#[test]
fn addresses_of_both_directions_change_alike() {
    let packets = repeat(&exchange(), Options { times: 3, ..Options::default() }).unwrap();
    sound(&packets);
    for (repetition, packets) in (0..).zip(packets.chunks(3)) {
        let keys: Vec<_> = packets.iter().map(key).collect();
        assert_eq!((keys[0].src, keys[0].dst), (A.0 + repetition, B.0 + repetition));
        assert_eq!((keys[1], keys[2]), (keys[0].reversed(), keys[0]));
    }
}

#[test]
fn prefixes_say_what_changes_and_the_host_part_goes_round() {
    let shift = vec!["10.0.0.0/30".parse().unwrap()];
    let options = Options { times: 4, shift, step: 3, ..Options::default() };
    let packets = repeat(&exchange(), options).unwrap();
    let sources: Vec<u128> = packets.chunks(3).map(|packets| key(&packets[0]).src).collect();
    // Host parts 1, 4 = 0, 7 = 3, 10 = 2 of four.
    assert_eq!(sources, [0x0a00_0001, 0x0a00_0000, 0x0a00_0003, 0x0a00_0002]);
    assert!(packets.chunks(3).all(|packets| key(&packets[0]).dst == B.0));
}

#[test]
fn addresses_that_are_not_unicast_stay() {
    for host in [0x0000_0000, 0x7f00_0001, 0xe000_0001, 0xffff_ffff] {
        let packets = [udp(0, A, (host, 1), b"")];
        let packets = repeat(&packets, Options { times: 2, ..Options::default() }).unwrap();
        assert_eq!((key(&packets[1]).src, key(&packets[1]).dst), (A.0 + 1, host));
    }
    let unicast = 0x2001_0db8_u128 << 96;
    for host in [0xfe80_u128 << 112 | 1, 0xff02 << 112 | 1, 1] {
        let packets = [udp(0, (unicast, 1), (host, 1), b"")];
        let packets = repeat(&packets, Options { times: 2, ..Options::default() }).unwrap();
        assert_eq!((key(&packets[1]).src, key(&packets[1]).dst), (unicast + 1, host));
    }
}

#[test]
fn arp_and_quoted_addresses_change_too() {
    let fields = [(Field::ArpOp, 1), (Field::ArpSpa, A.0), (Field::ArpTpa, A.0 + 8)];
    let arp = build_fresh(Link::Ethernet, 0, Shape::Arp, &fields, &[]).unwrap();
    let request = udp(1, A, B, b"data");
    let kind = [(Field::IcmpType, 3)];
    let error = build_new(&request, Shape::Icmp, true, &kind, NewPayload::Quote(28)).unwrap();
    let packets = repeat(&[arp, error], Options { times: 2, ..Options::default() }).unwrap();
    let get = |packet: &Packet, field| packet.get(&packet.parse(), field);
    assert_eq!(get(&packets[2], Field::ArpSpa), Some(A.0 + 1));
    assert_eq!(get(&packets[2], Field::ArpTpa), Some(A.0 + 9));
    assert_eq!(get(&packets[3], Field::IpDst), Some(A.0 + 1));
    assert_eq!(get(&packets[3], Field::QuotedIpSrc), Some(A.0 + 1));
    assert_eq!(get(&packets[3], Field::QuotedIpDst), Some(B.0 + 1));
    let validity = braid_packet::checksum::verify(&packets[3], &packets[3].parse());
    assert_eq!((validity.ip, validity.transport), (Some(true), Some(true)));
}

#[test]
fn order_of_a_capture_is_kept_even_if_its_times_go_back() {
    let packets = [udp(9_000, A, B, b"1"), udp(5_000, A, B, b"2")];
    let options = Options { times: 2, gap_ns: Some(1_000), ..Options::default() };
    let packets = repeat(&packets, options).unwrap();
    let times: Vec<u64> = packets.iter().map(|packet| packet.time_ns).collect();
    assert_eq!(times, [9_000, 5_000, 14_000, 10_000]);
}

#[test]
fn flows_are_those_of_the_capture_times_the_repetitions() {
    let folder = Folder::new();
    let mut packets = exchange();
    packets.push(udp(10_000, (A.0, 2000), B, b""));
    let path = folder.capture("in.pcap", &packets);
    let flows = |step| {
        let options = Options { times: 5, step, ..Options::default() };
        all(&mut Repeat::open(&path, options).unwrap()).unwrap().1.flows
    };
    assert_eq!((flows(1), flows(0)), (Some(10), Some(2)));
}

#[test]
fn repetitions_past_the_end_of_pcap_are_refused() {
    for times in [u64::MAX, 1 << 60] {
        let refused = repeat(&exchange(), Options { times, ..Options::default() });
        assert!(matches!(refused, Err(Error::End)));
    }
    let gap = Options { times: 2, gap_ns: Some(u64::MAX), ..Options::default() };
    assert!(matches!(repeat(&exchange(), gap), Err(Error::End)));
}

#[test]
fn captures_without_packets_are_refused() {
    let error = repeat(&[], Options::default()).unwrap_err().to_string();
    assert!(error.ends_with("in.pcap: has no packets to repeat"), "{error}");
}

#[test]
fn cut_off_capture_gives_its_whole_packets_and_a_warning() {
    let folder = Folder::new();
    let path = folder.capture("in.pcap", &exchange());
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let mut traffic = Repeat::open(&path, Options { times: 2, ..Options::default() }).unwrap();
    assert!(traffic.warning().unwrap().contains("in.pcap: the file is cut off"));
    assert_eq!(all(&mut traffic).unwrap().1.packets, 4);
}
