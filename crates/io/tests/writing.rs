//! Written files read back the same, byte for byte if the format allows it.

mod build;

use braid_io::{
    CaptureReader, CaptureWriter, Format, PacketSink, PacketSource, Precision, read_all,
};
use braid_packet::{Link, Packet};
use build::*;
use proptest::prelude::*;
use std::path::Path;

fn written(path: &Path, precision: Precision, packets: &[Packet]) -> Vec<u8> {
    let mut writer = CaptureWriter::create(path, precision).unwrap();
    for packet in packets {
        writer.write_packet(packet).unwrap();
    }
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn packet(link: Link, time_ns: u64, data: &[u8], wire: u32) -> Packet {
    Packet::snapped(link, time_ns, data, wire)
}

#[test]
fn pcap_is_written_as_the_format_says() {
    let dir = temporary();
    let packets = [packet(Link::Cooked, 5_000_001_999, b"ab", 99)];
    let mut expected = Little.pcap(MICRO, 4, 113);
    expected[16..20].copy_from_slice(&262_144_u32.to_le_bytes());
    expected.extend(Little.record((5, 1), 2, 99, b"ab"));
    assert_eq!(written(&dir.path().join("a.pcap"), Precision::Micro, &packets), expected);

    let mut expected = Little.pcap(NANO, 4, 113);
    expected[16..20].copy_from_slice(&262_144_u32.to_le_bytes());
    expected.extend(Little.record((5, 1_999), 2, 99, b"ab"));
    assert_eq!(written(&dir.path().join("b.cap"), Precision::Nano, &packets), expected);
}

#[test]
fn pcapng_is_written_as_the_format_says() {
    let dir = temporary();
    let packets = [
        packet(Link::Ethernet, 5_000_001_999, b"ab", 99),
        packet(Link::RawIp, 6, b"", 0),
        packet(Link::Ethernet, 7, b"abcd", 4),
    ];
    let resolution = [Little.option(9, &[9])];
    let expected = [
        Little.section(),
        Little.interface(1, 262_144, &resolution),
        Little.enhanced(0, 5_000_001_999, 99, b"ab"),
        Little.interface(101, 262_144, &resolution),
        Little.enhanced(1, 6, 0, b""),
        Little.enhanced(0, 7, 4, b"abcd"),
    ]
    .concat();
    assert_eq!(written(&dir.path().join("a.PCAPNG"), Precision::Micro, &packets), expected);
}

#[test]
fn mixed_link_types_in_pcap_are_refused_with_the_remedy() {
    let dir = temporary();
    let path = dir.path().join("a.pcap");
    let mut writer = CaptureWriter::create(&path, Precision::Micro).unwrap();
    writer.write_packet(&packet(Link::Ethernet, 0, b"a", 1)).unwrap();
    let error = writer.write_packet(&packet(Link::Cooked, 0, b"b", 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a pcap file holds one link type, and this one began with Ethernet and now gets Linux \
         cooked v1; give the output a name that ends in .pcapng"
    );
    writer.finish().unwrap();
    assert_eq!(read_all(&std::fs::read(&path).unwrap()).0.len(), 1);
}

#[test]
fn zstd_output_is_refused_with_the_remedy() {
    let error = CaptureWriter::create(Path::new("/nowhere/a.pcap.zst"), Precision::Micro);
    let message = error.err().unwrap().to_string();
    assert!(message.starts_with("zstd is not written; give the output a name that ends in .gz"));
}

#[test]
fn output_without_packets_is_a_valid_capture() {
    let dir = temporary();
    for name in ["a.pcap", "a.pcapng", "a.pcap.gz", "a.pcapng.gz"] {
        let (packets, warning, error) =
            read_all(&written(&dir.path().join(name), Precision::Micro, &[]));
        assert!(packets.is_empty() && warning.is_none() && error.is_none(), "{name}: {error:?}");
    }
}

#[test]
fn names_that_end_in_gz_are_compressed() {
    let dir = temporary();
    let packets = [packet(Link::Ethernet, 1_000, b"ab", 99)];
    for name in ["a.pcap.gz", "a.pcapng.gz"] {
        let path = dir.path().join(name);
        let file = written(&path, Precision::Micro, &packets);
        assert_eq!(file[..2], [0x1f, 0x8b], "{name}");
        assert_eq!(read_all(&file).0, packets, "{name}");
    }
}

#[test]
fn precision_of_an_input_is_known_when_it_is_opened() {
    let dir = temporary();
    let path = dir.path().join("a");
    for (file, nanoseconds) in
        [(Little.pcap(MICRO, 4, 1), false), (Big.pcap(NANO, 4, 1), true), (Big.section(), true)]
    {
        std::fs::write(&path, file).unwrap();
        assert_eq!(CaptureReader::open(&path).unwrap().nanoseconds(), nanoseconds);
    }
}

#[test]
fn progress_reaches_the_file_length() {
    let dir = temporary();
    let path = dir.path().join("a.pcap.gz");
    let file = gzip(&small_pcap());
    std::fs::write(&path, &file).unwrap();
    let mut reader = CaptureReader::open(&path).unwrap();
    while reader.next_packet().unwrap().is_some() {}
    let progress = reader.progress().unwrap();
    assert_eq!((progress.read, progress.total), (file.len() as u64, file.len() as u64));
}

fn any_packet(links: Vec<Link>) -> impl Strategy<Value = Packet> {
    // pcap holds seconds in 32 bits.
    let time = 0..(u64::from(u32::MAX) * 1_000_000_000);
    let data = proptest::collection::vec(any::<u8>(), 0..200);
    (proptest::sample::select(links), time, data, 0..2_000_u32).prop_map(
        |(link, time, data, more)| {
            let wire = data.len() as u32 + more;
            Packet::snapped(link, time, data, wire)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(64)))]

    #[test]
    fn pcap_reads_back(
        packets in proptest::collection::vec(any_packet(vec![Link::RawIp]), 1..20),
    ) {
        let dir = temporary();
        let nano = written(&dir.path().join("n.pcap"), Precision::Nano, &packets);
        prop_assert_eq!(&read_all(&nano).0, &packets);
        let micro = written(&dir.path().join("m.pcap"), Precision::Micro, &packets);
        let mut rounded = packets;
        for packet in &mut rounded {
            packet.time_ns -= packet.time_ns % 1_000;
        }
        prop_assert_eq!(&read_all(&micro).0, &rounded);
    }

    #[test]
    fn pcapng_reads_back(
        packets in proptest::collection::vec(
            any_packet(vec![Link::RawIp, Link::Ethernet, Link::Cooked, Link::Cooked2]), 0..20),
    ) {
        let dir = temporary();
        let file = written(&dir.path().join("a.pcapng"), Precision::Micro, &packets);
        prop_assert_eq!(&read_all(&file).0, &packets);
    }
}

#[test]
fn streams_can_be_written_to() {
    let mut writer = CaptureWriter::new(std::io::sink(), Format::PcapNg, true);
    writer.write_packet(&packet(Link::Ethernet, 0, b"a", 1)).unwrap();
    writer.finish().unwrap();
    assert!(writer.write_packet(&packet(Link::Ethernet, 0, b"a", 1)).is_err());
}
