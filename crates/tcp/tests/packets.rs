//! Packets as they come from captures: options, IPv6, checksums, fragments, cut and damaged ones.

use braid_packet::{Field, Header, Link, Packet, Shape, build_fresh, options};
use braid_tcp::{
    Checksums, Counts, Flags, Gap, Monitor, Options, Place, Report, Segment, Sink, Why,
};

/// The bytes of all streams together, the gaps and the reports.
#[derive(Default)]
struct Told {
    bytes: Vec<u8>,
    gaps: Vec<Gap>,
    reports: Vec<Report>,
}

impl Sink for Told {
    fn data(&mut self, _place: &Place, _offset: u64, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    fn gap(&mut self, _place: &Place, gap: Gap) {
        self.gaps.push(gap);
    }

    fn closed(&mut self, report: &Report) {
        self.reports.push(*report);
    }
}

fn packet(shape: Shape, flags: u128, seq: u128, payload: &[u8]) -> Packet {
    let fields = [
        (Field::TcpSport, 1000),
        (Field::TcpDport, 80),
        (Field::TcpFlags, flags),
        (Field::TcpSeq, seq),
        (Field::TcpAck, 77),
        (Field::TcpWindow, 5000),
    ];
    build_fresh(Link::Ethernet, 9, shape, &fields, payload).expect("built")
}

fn watch(options: Options, packets: &[Packet]) -> (Counts, Told) {
    let (mut monitor, mut told) = (Monitor::new(options), Told::default());
    for packet in packets {
        monitor.packet(packet, &packet.parse(), &mut told);
    }
    monitor.finish(&mut told);
    (monitor.counts(), told)
}

#[test]
fn segment_has_the_facts_of_its_packet() {
    for (shape, version) in [(Shape::Tcp4, 4), (Shape::Tcp6, 6)] {
        let mut packet = packet(shape, 2, 0xffff_fffe, b"abc");
        for (option, values) in [
            (Header::TcpWscale, &[9][..]),
            (Header::TcpSackOk, &[]),
            (Header::TcpTs, &[0xdead_beef, 5]),
        ] {
            let layout = packet.parse();
            assert!(options::push(&mut packet, &layout, option, values), "{option:?}");
        }
        let layout = packet.parse();
        let segment = Segment::of(&packet, &layout).unwrap();
        assert_eq!(
            (segment.flow.version, segment.flow.sport, segment.flow.dport),
            (version, 1000, 80)
        );
        assert_eq!((segment.seq.0, segment.ack.0, segment.window), (0xffff_fffe, 77, 5000));
        assert_eq!(segment.first_byte().0, 0xffff_ffff);
        assert_eq!((segment.flags, segment.len, segment.payload), (Flags(2), 3, &b"abc"[..]));
        assert_eq!((segment.wscale, segment.sack_ok), (Some(9), true));
        assert_eq!((segment.timestamp, segment.time_ns), (Some(0xdead_beef), 9));
        let (_, told) = watch(Options::default(), &[packet]);
        assert!(told.reports[0].sides.forward.sack_permitted);
        assert_eq!(told.bytes, b"abc");
    }
}

#[test]
fn urgent_bytes_stay_in_the_stream() {
    let (urgent, ack) = (0x20, 0x10);
    let packets = [
        packet(Shape::Tcp4, ack, 1, b"ab"),
        packet(Shape::Tcp4, ack | urgent, 3, b"!"),
        packet(Shape::Tcp4, ack, 4, b"cd"),
    ];
    assert_eq!(watch(Options::default(), &packets).1.bytes, b"ab!cd");
}

#[test]
fn wrong_checksums_are_left_out_on_request() {
    let mut wrong = packet(Shape::Tcp6, 0x10, 3, b"X");
    let last = wrong.data().len() - 1;
    wrong.data_mut()[last] ^= 1;
    let packets = [packet(Shape::Tcp6, 0x10, 1, b"ab"), wrong, packet(Shape::Tcp6, 0x10, 4, b"cd")];
    let (counts, told) = watch(Options::default(), &packets);
    assert_eq!((told.bytes.as_slice(), counts.wrong_checksums), (&b"abYcd"[..], 0));
    let options = Options { checksums: Checksums::Verified, ..Options::default() };
    let (counts, told) = watch(options, &packets);
    assert_eq!((counts.wrong_checksums, counts.segments), (1, 2));
    assert_eq!(told.bytes, b"abcd");
    assert_eq!(told.gaps, [Gap { offset: 2, len: 1, why: Why::End }]);
}

#[test]
fn each_packet_is_counted_once() {
    let whole = packet(Shape::Tcp4, 0x10, 1, b"abcdef");
    let data = whole.data().to_vec();
    let wire = u32::try_from(data.len()).unwrap();
    let cut = |len: usize| Packet::snapped(Link::Ethernet, 9, &data[..len], wire);
    let mut fragment = data.clone();
    fragment[20] |= 0x20;
    let mut later = data.clone();
    later[21] = 9;
    let mut options = data.clone();
    options[46] = 0xf0;
    let new = |data: Vec<u8>| Packet::new(Link::Ethernet, 9, data);
    let udp = build_fresh(Link::Ethernet, 9, Shape::Udp4, &[], b"x").unwrap();
    let packets = [
        whole,
        cut(data.len() - 2),
        cut(data.len() - 10),
        new(fragment),
        new(later),
        new(options),
        udp,
        new(Vec::new()),
    ];
    let (counts, told) = watch(Options::default(), &packets);
    assert_eq!((counts.segments, counts.cut), (2, 1));
    assert_eq!((counts.fragments, counts.connections), (2, 1));
    // A header that is not captured, one that is too long for its packet, and an empty frame.
    assert_eq!((counts.malformed, counts.other), (3, 1));
    assert_eq!(told.bytes, b"abcdef");
}

#[test]
fn wrong_checksums_count_until_their_end_has_sent_a_right_one() {
    let wrong = |seq: u128, bytes: &[u8]| {
        let mut wrong = packet(Shape::Tcp4, 0x10, seq, bytes);
        let last = wrong.data().len() - 1;
        wrong.data_mut()[last] ^= 1;
        wrong
    };
    let options = Options { checksums: Checksums::Learned, ..Options::default() };
    // The lowest bit of the last byte of each wrong one has changed: b to c, and d to e.
    let all_wrong = [wrong(1, b"ab"), wrong(3, b"cd")];
    let (counts, told) = watch(options.clone(), &all_wrong);
    assert_eq!(told.bytes, b"acce");
    assert_eq!((counts.wrong_checksums, counts.unverified, counts.segments), (0, 2, 2));
    let right = packet(Shape::Tcp4, 0x10, 3, b"cd");
    let (counts, told) = watch(options.clone(), &[wrong(1, b"ab"), right, wrong(5, b"xy")]);
    assert_eq!(told.bytes, b"accd");
    assert_eq!((counts.wrong_checksums, counts.unverified, counts.segments), (1, 1, 2));
    // Behind the end, which may have come by a RST of somebody else, all count again.
    let reset = packet(Shape::Tcp4, 0x14, 3, b"");
    let mut syn = packet(Shape::Tcp4, 2, 900, b"");
    let last = syn.data().len() - 1;
    syn.data_mut()[last] ^= 1;
    let (counts, _) = watch(options, &[packet(Shape::Tcp4, 0x10, 1, b"ab"), reset, syn]);
    assert_eq!((counts.wrong_checksums, counts.unverified, counts.connections), (0, 1, 2));
}
