//! Frames with work left undone, built by hand and checked by an independent sum.

use super::*;
use braid_packet::tunnel::{self, Inner};
use braid_packet::{Header, Link, Packet, checksum};

/// The header in front of a frame.
fn header(flags: u8, kind: u8, segment: u16, start: u16, place: u16) -> Offload {
    let mut bytes = [flags, kind, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes[4..6].copy_from_slice(&segment.to_ne_bytes());
    bytes[6..8].copy_from_slice(&start.to_ne_bytes());
    bytes[8..10].copy_from_slice(&place.to_ne_bytes());
    Offload::parse(bytes)
}

/// The frames that a frame stands for.
fn finish(offload: Offload, frame: &[u8]) -> Result<Vec<Vec<u8>>, Unreceived> {
    let mut frames = Vec::new();
    offload.finish(frame, None, &mut Pool::new(512, 2048).unwrap(), &mut frames)?;
    Ok(frames.iter().map(|frame| frame.bytes().to_vec()).collect())
}

/// An IPv4 frame of this protocol with these bytes after the IP header.
fn ip4(protocol: u8, behind: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + behind.len()).unwrap();
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(length.to_be_bytes());
    frame.extend([0x12, 0x34, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1]);
    frame.extend(behind);
    frame
}

/// A TCP header with these flags and sequence number 1000, and a payload that counts up.
fn tcp_segment(flags: u8, payload: usize) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 0, 80, 0, 0, 0x03, 0xe8, 0, 0, 0, 1, 0x50, flags];
    bytes.extend([0x10, 0, 0, 0, 0, 0]);
    bytes.extend((0..payload).map(|at| u8::try_from(at % 251).unwrap()));
    bytes
}

/// Whether the bytes under the checksum, with the pseudo header, sum to all ones.
fn verified(frame: &[u8], protocol: u8) -> bool {
    let transport = &frame[34..];
    let mut bytes = frame[26..34].to_vec();
    bytes.extend([0, protocol]);
    bytes.extend(u16::try_from(transport.len()).unwrap().to_be_bytes());
    bytes.extend(transport);
    if bytes.len() % 2 == 1 {
        bytes.push(0);
    }
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) * 256 + u32::from(pair[1]));
    words.fold(0, |sum, word| (sum + word) % 0xffff) == 0
}

/// Writes the sum of the pseudo header to the place of the checksum, like a sender that leaves the
/// rest to the card.
fn partial(frame: &mut [u8], protocol: u8, at: usize) {
    let length = u32::try_from(frame.len() - 34).unwrap();
    let pseudo = Sum16::default().with_word(length + u32::from(protocol)).with(&frame[26..34]);
    frame[at..at + 2].copy_from_slice(&pseudo.folded().to_be_bytes());
}

#[test]
fn partial_checksum_is_completed() {
    let mut frame = ip4(6, &tcp_segment(0x18, 5));
    partial(&mut frame, 6, 50);
    assert!(!verified(&frame, 6));
    let done = finish(header(NEEDS_CHECKSUM, 0, 0, 34, 16), &frame).unwrap();
    assert!(done.len() == 1 && verified(&done[0], 6), "{done:?}");
}

#[test]
fn checksum_of_udp_is_never_0() {
    // Ports 0 and 0, length 8, and two bytes that bring the sum to all ones.
    let mut frame = ip4(17, &[0, 0, 0, 0, 0, 10, 0, 0, 0, 0]);
    partial(&mut frame, 17, 40);
    let rest = 0xffff - Sum16::default().with(&frame[34..]).folded();
    frame[42..44].copy_from_slice(&rest.to_be_bytes());
    let done = finish(header(NEEDS_CHECKSUM, 0, 0, 34, 6), &frame).unwrap();
    assert_eq!(done[0][40..42], [0xff, 0xff]);
    assert!(verified(&done[0], 17));
}

#[test]
fn partial_checksum_is_recognised() {
    for payload in 0..100 {
        let mut tcp = ip4(6, &tcp_segment(0x18, payload));
        partial(&mut tcp, 6, 50);
        complete(&mut tcp);
        assert!(verified(&tcp, 6), "{payload}");
        let right = tcp.clone();
        complete(&mut tcp);
        assert_eq!(tcp, right);
        // Neither partial nor right: it stays wrong.
        tcp[50] ^= 0x55;
        let wrong = tcp.clone();
        complete(&mut tcp);
        assert_eq!(tcp, wrong);
    }
}

#[test]
fn partial_checksum_is_recognised_behind_a_vlan_tag_in_ipv6_and_not_in_fragments() {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 5, 0x86, 0xdd];
    frame.extend([0x60, 0, 0, 0, 0, 11, 17, 64]);
    frame.extend((0..32).map(|byte| byte * 7));
    frame.extend([0, 9, 0, 9, 0, 11, 0, 0, 1, 2, 3]);
    let pseudo = Sum16::default().with_word(11 + 17).with(&frame[26..58]);
    frame[64..66].copy_from_slice(&pseudo.folded().to_be_bytes());
    // Padding of the link is not part of the sum.
    frame.extend([9, 9, 9]);
    let before = frame.clone();
    assert_eq!(complete(&mut frame), Some(()));
    assert_ne!(frame, before);
    assert_eq!(pseudo.with(&frame[58..69]).folded(), 0xffff);

    let mut fragment = ip4(17, &[0, 9, 0, 9, 0, 10, 0, 0, 1, 2]);
    fragment[20] = 0x20;
    partial(&mut fragment, 17, 40);
    assert_eq!(complete(&mut fragment), None);
    for cut in 0..before.len() {
        let _ = complete(&mut before[..cut].to_vec());
    }
}

#[test]
fn right_checksum_that_looks_partial_stays() {
    // The payload makes the checksum equal to the sum of the pseudo header.
    let mut frame = ip4(17, &[0, 9, 0, 9, 0, 10, 0, 0, 0, 0]);
    partial(&mut frame, 17, 40);
    let field = u16::from_be_bytes([frame[40], frame[41]]);
    let others = Sum16::default().with_word(field.into()).with(&frame[34..]).folded();
    frame[42..44].copy_from_slice(&(0xffff - others).to_be_bytes());
    assert!(verified(&frame, 17));
    let before = frame.clone();
    complete(&mut frame);
    assert_eq!(frame, before);
}

#[test]
fn frame_without_anything_left_to_do_is_unchanged() {
    let frame = ip4(6, &tcp_segment(0x18, 5));
    assert_eq!(finish(header(0, 0, 0, 0, 0), &frame), Ok(vec![frame]));
}

#[test]
fn tcp_segments_are_taken_apart() {
    let whole = ip4(6, &tcp_segment(CWR | 0x10 | PSH | FIN, 2500));
    let done = finish(header(NEEDS_CHECKSUM, TCP4 | ECN, 1000, 34, 16), &whole).unwrap();
    let lengths: Vec<usize> = done.iter().map(Vec::len).collect();
    assert_eq!(lengths, [1054, 1054, 554]);
    let payload: Vec<u8> = done.iter().flat_map(|segment| segment[54..].to_vec()).collect();
    assert_eq!(payload, whole[54..]);
    let flags: Vec<u8> = done.iter().map(|segment| segment[47]).collect();
    assert_eq!(flags, [CWR | 0x10, 0x10, 0x10 | PSH | FIN]);
    for (at, segment) in done.iter().enumerate() {
        let number = u16::try_from(at).unwrap();
        assert_eq!(segment[38..42], (1000 + 1000 * u32::from(number)).to_be_bytes());
        assert_eq!(segment[18..20], (0x1234 + number).to_be_bytes(), "identification");
        let total = u16::try_from(segment.len() - 14).unwrap();
        assert_eq!(segment[16..18], total.to_be_bytes());
        assert!(verified(segment, 6));
        assert_eq!(Sum16::default().with(&segment[14..34]).folded(), 0xffff, "IP header checksum");
    }
}

#[test]
fn udp_segments_are_taken_apart() {
    let mut datagram = vec![0, 53, 0, 53, 0, 0, 0, 0];
    datagram.extend([7; 25]);
    let done = finish(header(NEEDS_CHECKSUM, UDP, 10, 34, 6), &ip4(17, &datagram)).unwrap();
    let lengths: Vec<[u8; 2]> = done.iter().map(|frame| [frame[38], frame[39]]).collect();
    assert_eq!(lengths, [[0, 18], [0, 18], [0, 13]]);
    assert!(done.iter().all(|frame| verified(frame, 17)));
}

#[test]
fn segments_behind_vlan_tags_and_of_ipv6_are_taken_apart() {
    let mut frame = vec![0; 12];
    frame.extend([0x81, 0, 0, 5, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 6, 64]);
    frame.extend([0xfd; 32]);
    frame.extend(tcp_segment(0x10, 30));
    let done = finish(header(NEEDS_CHECKSUM, TCP6, 20, 58, 16), &frame).unwrap();
    let payload_lengths: Vec<[u8; 2]> = done.iter().map(|frame| [frame[22], frame[23]]).collect();
    assert_eq!(payload_lengths, [[0, 40], [0, 30]]);
    for segment in &done {
        let transport = &segment[58..];
        let length = u32::try_from(transport.len()).unwrap();
        let pseudo = Sum16::default().with_word(length + 6).with(&segment[26..58]);
        assert_eq!(pseudo.with(transport).folded(), 0xffff);
    }
}

/// A frame of three TCP segments in a tunnel, and the start of its TCP header. `front` is what
/// stands between the Ethernet header and the inner packet.
fn tunnelled(front: &[u8]) -> (Vec<u8>, usize) {
    let inner = ip4(6, &tcp_segment(0x18, 250));
    let is_frame = front.ends_with(b"frame");
    let front = front.strip_suffix(b"frame").unwrap_or(front);
    let kind = if front[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    let inner = if is_frame { &inner[..] } else { &inner[14..] };
    let frame = [&[2; 12][..], &kind, front, inner].concat();
    (frame, 14 + front.len() + if is_frame { 34 } else { 20 })
}

#[test]
fn segments_in_tunnels_are_taken_apart() {
    let ip4 = |protocol| [&[0x45, 0, 0, 0, 0, 9, 0, 0, 64, protocol], &[0; 10][..]].concat();
    let ip6 = |next| [&[0x60, 0, 0, 0, 0, 0, next, 64], &[0x20; 32][..]].concat();
    let udp = |port: u16, sum| [&[0xc0, 1], &port.to_be_bytes()[..], &[0, 0, sum, sum]].concat();
    let (vxlan, geneve) = ([8, 0, 0, 0, 0, 0, 7, 0], [0, 0, 8, 0, 0, 0, 7, 0]);
    let options = [&[2, 0, 8, 0, 0, 0, 7, 0][..], &[1; 8]].concat();
    let fronts = [
        (ip4(4), Header::Ip4),
        (ip6(4), Header::Ip6),
        ([ip6(43), vec![4, 0, 4, 0, 0, 0, 0, 0]].concat(), Header::Ip6),
        ([ip4(47), vec![0, 0, 8, 0]].concat(), Header::Gre),
        ([ip6(47), vec![0x20, 0, 8, 0, 0, 0, 0, 7]].concat(), Header::Gre),
        ([ip4(17), udp(4789, 0), vxlan.to_vec(), b"frame".to_vec()].concat(), Header::Vxlan),
        ([ip6(17), udp(4789, 1), vxlan.to_vec(), b"frame".to_vec()].concat(), Header::Vxlan),
        ([ip6(17), udp(6081, 1), geneve.to_vec()].concat(), Header::Geneve),
        ([ip4(17), udp(6081, 1), options].concat(), Header::Geneve),
    ];
    for (front, last) in fronts {
        let (frame, start) = tunnelled(&front);
        let offload = header(1, 1, 100, u16::try_from(start).unwrap(), 16);
        let frames = finish(offload, &frame).unwrap();
        assert_eq!(frames.len(), 3, "{last:?}");
        for (number, frame) in frames.iter().enumerate() {
            let mut packet = Packet::new(Link::Ethernet, 0, frame);
            let layout = packet.parse();
            assert!(checksum::verify(&packet, &layout).all_right(), "{last:?} {number}");
            let inner = if front.ends_with(b"frame") { Inner::Frame } else { Inner::Packet };
            assert_eq!(tunnel::decapsulate(&mut packet, &layout, (inner, last), 0, None), Ok(true));
            let layout = packet.parse();
            assert_eq!(checksum::verify(&packet, &layout).transport, Some(true), "{last:?}");
            assert_eq!(layout.payload_len(), [100, 100, 50][number]);
            let seq = packet.get(&layout, braid_packet::Field::TcpSeq);
            assert_eq!(seq, Some(1000 + 100 * number as u128));
        }
    }
    // A GRE checksum would need more work. These are lost, and counted.
    let (frame, start) = tunnelled(&[ip4(47), vec![0x80, 0, 8, 0, 0, 0, 0, 0]].concat());
    let offload = header(1, 1, 100, u16::try_from(start).unwrap(), 16);
    assert_eq!(finish(offload, &frame), Err(Unreceived::Offload));
}

#[test]
fn nonsense_is_lost_and_never_panics() {
    let frame = ip4(6, &tcp_segment(0x10, 30));
    for offload in [
        header(NEEDS_CHECKSUM, 0, 0, 60_000, 16),
        header(NEEDS_CHECKSUM, 0, 0, 34, 60_000),
        header(NEEDS_CHECKSUM, 3, 10, 34, 6),
        header(NEEDS_CHECKSUM, TCP4, 0, 34, 16),
        header(NEEDS_CHECKSUM, TCP4, 10, 5, 16),
        header(NEEDS_CHECKSUM, TCP4, 10, 65_535, 16),
        header(NEEDS_CHECKSUM, TCP6, 10, 70, 16),
    ] {
        assert_eq!(finish(offload, &frame), Err(Unreceived::Offload), "{offload:?}");
    }
    for length in 0..frame.len() {
        let cut = frame[..length].to_vec();
        let _ = finish(header(NEEDS_CHECKSUM, TCP4, 10, 34, 16), &cut);
        let _ = finish(header(NEEDS_CHECKSUM, UDP, 10, 34, 6), &cut);
    }
}

#[test]
fn vlan_tag_goes_behind_the_addresses() {
    let mut frame = Frame::of(&ip4(17, &[]));
    put_vlan(&mut frame, 0x8100, 0x2005);
    assert_eq!(frame.bytes()[10..18], [0, 2, 0x81, 0, 0x20, 5, 8, 0]);
    let mut short = Frame::of(&[1, 2, 3]);
    put_vlan(&mut short, 0x8100, 5);
    assert_eq!(short.bytes(), [1, 2, 3]);
}
