//! Helpers of the tests: folders with captures, all packets of a generator, and properties of every
//! packet.

use braid_io::{CaptureWriter, MemorySink, PacketSink, Precision};
use braid_packet::{Field, FlowKey, Link, Packet, Shape, build_fresh, checksum};
use braid_traffic::{Error, Summary, Traffic, write};
use std::path::PathBuf;

/// A temporary folder for one test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    pub fn capture(&self, name: &str, packets: &[Packet]) -> PathBuf {
        let mut writer = CaptureWriter::create(&self.path(name), Precision::Nano).unwrap();
        for packet in packets {
            writer.write_packet(packet).unwrap();
        }
        writer.finish().unwrap();
        self.path(name)
    }
}

/// All packets, and their summary.
pub fn all(traffic: &mut dyn Traffic) -> Result<(Vec<Packet>, Summary), Error> {
    let mut sink = MemorySink::default();
    let summary = write(traffic, &mut sink, &mut |_| {})?;
    assert_eq!(summary.packets, sink.packets.len() as u64);
    let bytes: u64 = sink.packets.iter().map(|packet| u64::from(packet.wire_len)).sum();
    assert_eq!(summary.bytes, bytes);
    Ok((sink.packets, summary))
}

pub fn key(packet: &Packet) -> FlowKey {
    packet.flow_key(&packet.parse()).expect("an IP packet")
}

/// Checks that packets are in order of time, well-formed and have correct checksums, for this
/// repository's parser and for etherparse.
#[track_caller]
pub fn sound(packets: &[Packet]) {
    assert!(packets.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns), "times go back");
    for packet in packets {
        let layout = packet.parse();
        assert_eq!(layout.malformed(), None);
        let validity = checksum::verify(packet, &layout);
        assert!(validity.all_right() && validity.transport.is_some(), "{validity:?} {packet:?}");
        independent(packet);
    }
}

#[track_caller]
fn independent(packet: &Packet) {
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    let sliced = SlicedPacket::from_ethernet(packet.data()).expect("etherparse takes it");
    let (Some(NetSlice::Ipv4(ip)), Some(transport)) = (&sliced.net, &sliced.transport) else {
        return;
    };
    let header = ip.header().to_header();
    assert_eq!(header.calc_header_checksum(), header.header_checksum);
    match transport {
        TransportSlice::Tcp(tcp) => {
            let expected = tcp.to_header().calc_checksum_ipv4(&header, tcp.payload()).unwrap();
            assert_eq!(tcp.checksum(), expected);
        }
        TransportSlice::Udp(udp) => {
            let expected = udp.to_header().calc_checksum_ipv4(&header, udp.payload()).unwrap();
            assert_eq!(udp.checksum(), expected);
        }
        _ => {}
    }
}

/// A UDP packet between IPv4 (addresses below 2^32) or IPv6 hosts.
pub fn udp(time_ns: u64, src: (u128, u16), dst: (u128, u16), payload: &[u8]) -> Packet {
    let (shape, fields) = match src.0 >> 32 {
        0 => (Shape::Udp4, [Field::IpSrc, Field::IpDst]),
        _ => (Shape::Udp6, [Field::Ip6Src, Field::Ip6Dst]),
    };
    let assignments = [
        (fields[0], src.0),
        (fields[1], dst.0),
        (Field::UdpSport, u128::from(src.1)),
        (Field::UdpDport, u128::from(dst.1)),
    ];
    build_fresh(Link::Ethernet, time_ns, shape, &assignments, payload).unwrap()
}
