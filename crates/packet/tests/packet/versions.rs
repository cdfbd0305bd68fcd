//! A packet takes parts of another version of itself.

use braid_packet::{Field, Link, Packet, Shape, build_fresh};

fn packet() -> Packet {
    let fields = [(Field::IpSrc, 0x0a00_0001), (Field::UdpSport, 1000), (Field::UdpDport, 53)];
    build_fresh(Link::Ethernet, 0, Shape::Udp4, &fields, b"payload").unwrap()
}

#[test]
fn fields_and_checksums_are_taken_and_nothing_else() {
    let own = packet();
    let mut other = own.clone();
    other.set(&own.parse(), Field::UdpSport, 4242);
    let right = other.clone();
    other.data_mut().iter_mut().take(12).for_each(|byte| *byte = 0xee);
    other.set(&own.parse(), Field::IpTtl, 3);
    let mut taken = own.clone();
    taken.take_fields(other.data(), &[Field::UdpSport]);
    assert_eq!(taken.get(&own.parse(), Field::UdpSport), Some(4242));
    assert_eq!(taken.get(&own.parse(), Field::IpTtl), own.get(&own.parse(), Field::IpTtl));
    assert_eq!(taken.data()[..12], own.data()[..12]);
    // The checksum of the IP header is the other version's, for its TTL.
    assert_ne!(taken.data(), right.data());
    assert_eq!(taken.data()[24..26], other.data()[24..26]);
    // Bytes that are missing change nothing.
    let mut same = own.clone();
    same.take_fields(&other.data()[..20], &[Field::UdpSport]);
    assert_eq!(same.data(), own.data());
}

#[test]
fn bits_beside_a_field_stay() {
    let own = packet();
    let mut other = own.clone();
    other.data_mut()[15] = 0xff;
    let mut taken = own.clone();
    taken.take_fields(other.data(), &[Field::IpDscp]);
    assert_eq!(taken.data()[15], 0xfc);
}

#[test]
fn length_on_the_wire_follows_the_bytes() {
    let whole = packet();
    let mut cut = Packet::snapped(Link::Ethernet, 0, &whole.data()[..40], 1_000);
    cut.take_bytes(&[7; 44]);
    assert_eq!((cut.data().len(), cut.wire_len), (44, 1_004));
    cut.take_bytes(&[7; 30]);
    assert_eq!((cut.data().len(), cut.wire_len), (30, 990));
    cut.take_bytes(&[8; 30]);
    assert_eq!((cut.data(), cut.wire_len), (&[8; 30][..], 990));
}
