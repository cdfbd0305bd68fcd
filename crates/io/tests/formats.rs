//! The reader returns the original packets for every supported variant of capture files.

mod build;

use braid_io::{ReadError, read_all};
use braid_packet::{Link, Packet};
use build::*;

/// Time, captured bytes, length on the wire.
type Seen = (u64, Vec<u8>, u32);

fn seen(packets: &[Packet]) -> Vec<Seen> {
    packets.iter().map(|p| (p.time_ns, p.data().to_vec(), p.wire_len)).collect()
}

fn whole(file: &[u8]) -> Vec<Packet> {
    let (packets, warning, error) = read_all(file);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(warning, None);
    packets
}

fn refused(file: &[u8]) -> String {
    let (packets, _, error) = read_all(file);
    assert_eq!(packets.len(), 0);
    error.expect("an error").to_string()
}

fn small() -> Vec<Seen> {
    vec![
        (1_000_000_000, b"abcd".to_vec(), 4),
        (2_000_000_000, vec![], 60),
        (3_000_000_000, b"123456789".to_vec(), 9),
    ]
}

#[test]
fn pcap_in_both_byte_orders_and_precisions_gives_its_packets() {
    for order in BOTH {
        for (magic, unit) in [(MICRO, 1_000), (NANO, 1)] {
            let file = [
                order.pcap(magic, 4, ETHERNET),
                order.record((7, 123_456), 3, 1_500, b"xyz"),
                order.record((u32::MAX, 0), 1, 1, b"q"),
            ]
            .concat();
            let expected: Vec<Seen> = vec![
                (7_000_000_000 + 123_456 * unit, b"xyz".to_vec(), 1_500),
                (4_294_967_295_000_000_000, b"q".to_vec(), 1),
            ];
            assert_eq!(seen(&whole(&file)), expected, "{order:?} {magic:x}");
        }
    }
}

#[test]
fn pcap_of_old_versions_has_its_lengths_exchanged() {
    let file = [Little.pcap(MICRO, 2, ETHERNET), Little.record((1, 0), 100, 2, b"ab")].concat();
    assert_eq!(seen(&whole(&file)), [(1_000_000_000, b"ab".to_vec(), 100)]);
    let either = [
        Little.pcap(MICRO, 3, ETHERNET),
        Little.record((1, 0), 100, 2, b"ab"),
        Little.record((1, 0), 2, 100, b"ab"),
    ]
    .concat();
    let expected = (1_000_000_000, b"ab".to_vec(), 100);
    assert_eq!(seen(&whole(&either)), [expected.clone(), expected]);
}

#[test]
fn pcap_with_frame_check_sequences_leaves_them_out() {
    // Bit 26 says that there is a frame check sequence; bits 28 and up are its length in units of
    // 16 bits.
    let file = [
        Little.pcap(MICRO, 4, 0x2400_0001),
        Little.record((0, 0), 8, 8, b"dataFCS!"),
        Little.record((0, 0), 6, 8, b"dataFC"),
        Little.record((0, 0), 2, 8, b"da"),
        Little.record((0, 0), 2, 2, b"da"),
    ]
    .concat();
    let expected = [
        (0, b"data".to_vec(), 4),
        (0, b"data".to_vec(), 4),
        (0, b"da".to_vec(), 4),
        (0, b"".to_vec(), 0),
    ];
    assert_eq!(seen(&whole(&file)), expected);
}

#[test]
fn packet_captured_longer_than_said_keeps_its_bytes() {
    let file = [Little.pcap(MICRO, 4, ETHERNET), Little.record((0, 0), 4, 2, b"abcd")].concat();
    assert_eq!(seen(&whole(&file)), [(0, b"abcd".to_vec(), 4)]);
}

#[test]
fn pcapng_with_sections_of_both_byte_orders_gives_its_packets() {
    assert_eq!(seen(&whole(&small_pcapng())), small());
}

#[test]
fn pcapng_interfaces_have_their_own_links_resolutions_and_offsets() {
    for order in BOTH {
        let offset = order.option(14, &order.u64(1_000));
        let file = [
            order.section(),
            order.interface(1, 0, &[]),
            order.interface(101, 0, &[order.option(9, &[0x8a])]),
            order.interface(113, 0, &[order.option(9, &[3]), offset]),
            order.interface(276, 0, &[order.option(2, b"eth0"), order.option(9, &[9])]),
            order.enhanced(3, (1 << 32) + 5, 1, b"d"),
            order.enhanced(2, 250, 1, b"c"),
            // 1,536 ticks of 2^-10 s.
            order.enhanced(1, 1_536, 1, b"b"),
            order.enhanced(0, 2_000_001, 1, b"a"),
        ]
        .concat();
        let packets = whole(&file);
        let expected: Vec<Seen> = vec![
            (4_294_967_301, b"d".to_vec(), 1),
            (1_000_250_000_000, b"c".to_vec(), 1),
            (1_500_000_000, b"b".to_vec(), 1),
            (2_000_001_000, b"a".to_vec(), 1),
        ];
        assert_eq!(seen(&packets), expected, "{order:?}");
        let links: Vec<Link> = packets.iter().map(|packet| packet.link).collect();
        assert_eq!(links, [Link::Cooked2, Link::Cooked, Link::RawIp, Link::Ethernet]);
    }
}

#[test]
fn simple_packets_take_snap_length_and_the_time_before() {
    for order in BOTH {
        let file = [
            order.section(),
            order.interface(1, 5, &[]),
            order.simple(3, b"abc"),
            order.enhanced(0, 9, 2, b"xy"),
            order.simple(90, b"abcde"),
        ]
        .concat();
        let expected: Vec<Seen> = vec![
            (0, b"abc".to_vec(), 3),
            (9_000, b"xy".to_vec(), 2),
            (9_000, b"abcde".to_vec(), 90),
        ];
        assert_eq!(seen(&whole(&file)), expected, "{order:?}");
    }
}

#[test]
fn compressed_captures_are_told_by_their_first_bytes() {
    for file in [small_pcap(), small_pcapng()] {
        assert_eq!(seen(&whole(&file)), small());
        assert_eq!(seen(&whole(&gzip(&file))), small());
        assert_eq!(seen(&whole(&zstd(&file))), small());
    }
}

#[test]
fn compressed_captures_may_be_in_several_pieces() {
    let file = small_pcap();
    let (a, b) = file.split_at(37);
    assert_eq!(seen(&whole(&[gzip(a), gzip(b)].concat())), small());
    let skippable = [0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    assert_eq!(seen(&whole(&[skippable.to_vec(), zstd(a), zstd(b)].concat())), small());
}

#[test]
fn supported_link_types_are_read() {
    let links = [
        (1, Link::Ethernet),
        (12, Link::RawIp),
        (14, Link::RawIp),
        (101, Link::RawIp),
        (228, Link::RawIp),
        (229, Link::RawIp),
        (113, Link::Cooked),
        (276, Link::Cooked2),
    ];
    for (number, link) in links {
        let file = [Big.pcap(NANO, 4, number), Big.record((0, 0), 1, 1, b"x")].concat();
        assert_eq!(whole(&file)[0].link, link, "{number}");
    }
}

#[test]
fn other_link_types_are_refused_by_number_and_name() {
    let message = "link type 105 (IEEE 802.11) is not supported; supported are Ethernet, raw IP \
                   and Linux cooked captures";
    assert_eq!(refused(&Little.pcap(MICRO, 4, 105)), message);
    let packet = Little.enhanced(0, 0, 1, b"x");
    let file = [Little.section(), Little.interface(105, 0, &[]), packet].concat();
    assert_eq!(refused(&file), message);
    assert!(refused(&Little.pcap(MICRO, 4, 9_999)).starts_with("link type 9999 (unknown) is not"));
}

#[test]
fn interface_without_packets_may_have_any_link_type() {
    let file = [
        Little.section(),
        Little.interface(105, 0, &[]),
        Little.interface(1, 0, &[]),
        Little.enhanced(1, 0, 1, b"x"),
    ]
    .concat();
    assert_eq!(whole(&file).len(), 1);
}

#[test]
fn modified_and_foreign_formats_are_refused_by_name() {
    let remedy = "is not supported; convert it with `editcap -F pcap FILE NEW`";
    for order in BOTH {
        for (magic, name) in [
            (0xa1b2_cd34, "pcap as modified by A. Kuznetzov"),
            (0xa12b_3c4d, "pcap as modified by Navtel"),
            (0x1c00_01ab, "pcap as modified by Ixia (software)"),
            (0x1c00_01ac, "pcap as modified by Ixia (hardware)"),
        ] {
            assert_eq!(refused(&order.pcap(magic, 4, 1)), format!("{name} {remedy}"));
        }
    }
    assert_eq!(refused(b"snoop\0\0\0\0\0\0\x02"), format!("snoop {remedy}"));
    let bzip2 = "bzip2 is not supported; decompress the file first (`bunzip2 FILE`)";
    assert_eq!(refused(b"BZh91AY&SY"), bzip2);
    assert_eq!(refused(&gzip(b"BZh91AY&SY")), bzip2);
}

#[test]
fn what_is_no_capture_is_refused_with_its_first_bytes() {
    assert!(matches!(read_all(b"").2, Some(ReadError::Empty)));
    assert!(matches!(read_all(&gzip(b"")).2, Some(ReadError::Empty)));
    assert_eq!(
        refused(b"hello, world"),
        "not a capture: expected pcap or pcapng (plain, gzip or zstd), found a file that starts \
         with 68 65 6c 6c"
    );
    assert!(refused(b"hi").ends_with("found a file that starts with 68 69"));
}

#[test]
fn unknown_versions_are_refused() {
    let message = "damaged at byte 4: pcap version 2.5 is not supported; expected 2.4";
    assert_eq!(refused(&Little.pcap(MICRO, 5, 1)), message);
    let mut section = Little.section();
    section[12] = 2;
    let message = "damaged at byte 0: pcapng version 2.0 is not supported; expected 1.0";
    assert_eq!(refused(&section), message);
}
