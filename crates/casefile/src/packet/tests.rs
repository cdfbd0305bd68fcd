//! Compares the text form with handmade bytes, in both directions.

use braid_externs::rng::Rng;

use super::{Frame, LinkKind, describe, icmp, packet, parse, tcp, udp};

fn bytes(text: &str) -> Vec<u8> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    (0..digits.len() / 2)
        .map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).expect("hexadecimal"))
        .collect()
}

#[test]
fn udp_text_gives_the_bytes_of_the_rfcs() {
    let frame = udp("10.0.0.1:1234 > 8.8.8.8:53").payload(b"hi").frame();
    // IPv4 sum by hand: 4500+001e=451e, +4011=852f, +0a00=8f2f, +0001=8f30, +0808=9738, +0808=9f40.
    // Its complement is 60bf.
    // UDP sum: 0a00+0001+0808+0808+0011+000a = 1a2c; 04d2+0035+000a = 0511; 6869. The total 87a6
    // gives 7859.
    let want = bytes(
        "020000000002 020000000001 0800 \
         4500001e 00000000 401160bf 0a000001 08080808 \
         04d2 0035 000a 7859 6869",
    );
    assert_eq!(frame, Frame { link: LinkKind::Ethernet, data: want, wire_len: 44 });
}

#[test]
fn vlan_tag_stands_between_addresses_and_type() {
    let frame = packet(
        "eth 02:00:00:00:00:0a > 02:00:00:00:00:0b / vlan 7 pcp=5 dei / ip 1.2.3.4 > 5.6.7.8",
    );
    let data = frame.frame().data;
    assert_eq!(data[..18], bytes("02000000000b 02000000000a 8100 b007 0800"));
}

#[test]
fn ipv6_extension_headers_chain_to_the_transport() {
    let data = packet("rawip / udp [::1]:1 > [::2]:2 ext=hop mf ipid=9").frame().data;
    // The fixed header announces hop-by-hop (0), that announces fragment (44), and that announces
    // UDP (17).
    assert_eq!((data[6], data[40], data[48]), (0, 44, 17));
    assert_eq!(data[48..56], bytes("1100 0001 00000009"));
}

#[test]
fn fragments_share_the_identification_and_cover_the_payload() {
    let pieces = udp("10.0.0.1:1 > 10.0.0.2:2 ipid=5").payload(&[7; 20]).fragments(16);
    let heads: Vec<_> = pieces.iter().map(|piece| piece.frame().data[18..22].to_vec()).collect();
    assert_eq!(heads, [bytes("00052000"), bytes("00050002")]);
    let lengths: Vec<_> = pieces.iter().map(|piece| piece.frame().data.len()).collect();
    assert_eq!(lengths, [14 + 20 + 16, 14 + 20 + 12]);
}

#[test]
fn overrides_stay_as_they_were_written() {
    let data =
        udp("10.0.0.1:1 > 10.0.0.2:2 nosum udplen=3 ihl=4 iplen=99 ipsum=0x1234").frame().data;
    assert_eq!((data[14], &data[16..18], &data[24..26]), (0x44, &[0, 99][..], &[0x12, 0x34][..]));
    assert_eq!(data[38..42], [0, 3, 0, 0]);
}

#[test]
fn errors_name_what_was_found() {
    for (text, found) in [
        ("udp 10.0.0.1:1 > ::2:2", "different versions"),
        ("udp 10.0.0.300:1 > 10.0.0.2:2", "10.0.0.300"),
        ("udp 10.0.0.1:70000 > 10.0.0.2:2", "70000"),
        ("tcp 1.1.1.1:1 > 2.2.2.2:2 colour=red", "colour"),
        ("udp 1.1.1.1:1 > 2.2.2.2:2 \"open", "closing quote"),
        ("", "nothing"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(found), "{text}: {error}");
    }
}

#[test]
fn text_of_a_described_frame_gives_the_frame_again() {
    for text in [
        "udp 10.0.0.1:1234 > 8.8.8.8:53 \"query\"",
        "udp 10.0.0.1:1234 > 8.8.8.8:53 nosum ttl=3 \"a\\x00\\\"b\"",
        "tcp 10.0.0.1:1234 > 8.8.8.8:80 SA seq=7 ack=9 win=1000 mss=1460 sackok ts=1,2 nop wscale=7",
        "tcp [2001:db8::1]:1 > [2001:db8::2]:2 FPU urg=3 flow=77 ttl=9 bytes=40",
        "eth 02:00:00:00:00:03 > ff:ff:ff:ff:ff:ff / arp request 10.0.0.1 > 10.0.0.2",
        "vlan 5 tpid=0x88a8 / vlan 6 pcp=1 / udp 1.1.1.1:1 > 2.2.2.2:2 pad=10",
        "icmp 10.0.0.1 > 8.8.8.8 echo-request id=7 seq=1 \"data\"",
        "icmp 9.9.9.9 > 10.0.0.1 unreachable code=4 rest=1400 cut=28 / udp 10.0.0.1:1 > 8.8.8.8:53",
        "icmp6 2001:db8::1 > 2001:db8::2 type=2 rest=1280 / udp [2001:db8::2]:1 > [2001:db8::3]:2 \"quoted\"",
        "ip 1.1.1.1 > 2.2.2.2 ipid=8 mf frag=3 proto=17 \"rest of it\"",
        "rawip / ip 1.1.1.1 > 2.2.2.2 / gre key=5 / udp 3.3.3.3:1 > 4.4.4.4:2",
        "mpls 100 / mpls 200 tc=3 ttl=9 / ip 1.1.1.1 > 2.2.2.2 proto=99 \"text\"",
        "udp 1.1.1.1:1 > 2.2.2.2:2 sum=0x1111 ipsum=0x2222 \"wrong\"",
        "tcp 1.1.1.1:1 > 2.2.2.2:2 S iplen=30 off=3",
        "ip fe80::1 > ff02::1 ext=0:050200000000 proto=59",
        "hex=00112233",
        "tcp 10.0.0.1:1 > 10.0.0.2:2 A \"some longer text\" snap=60",
    ] {
        let frame = packet(text).frame();
        let described = describe(&frame).to_string();
        assert_eq!(packet(&described).frame(), frame, "{text}\n{described}");
        assert_eq!(packet(&packet(text).to_string()), packet(text), "{text}");
    }
}

#[test]
fn described_text_leaves_out_what_is_usual() {
    for text in [
        "udp 10.0.0.1:1234 > 8.8.8.8:53 \"query\"",
        "tcp 10.0.0.1:1234 > 8.8.8.8:80 SA seq=7 ack=9 mss=1460",
        "icmp 9.9.9.9 > 10.0.0.1 time-exceeded / udp 10.0.0.1:1 > 8.8.8.8:53 ttl=1 \"all\"",
        "vlan 5 / arp reply 10.0.0.1 > 10.0.0.2",
    ] {
        let spec = packet(text);
        let shown = describe(&spec.frame()).to_string();
        assert_eq!(shown, spec.to_string());
        assert!(shown.len() <= text.len(), "{shown}");
    }
}

#[test]
fn arbitrary_bytes_survive_the_text_form() {
    let mut rng = Rng::new(1);
    let mut next = || rng.next_u64().to_le_bytes()[0];
    let start = tcp("10.0.0.1:1 > 10.0.0.2:2 S mss=5").payload(b"xyz").frame().data;
    let error = icmp("1.1.1.1 > 2.2.2.2 unreachable / udp 2.2.2.2:1 > 3.3.3.3:2").frame().data;
    for round in 0..braid_cases::cases(4000) {
        let mut data = if round % 2 == 0 { start.clone() } else { error.clone() };
        for _ in 0..1 + round % 4 {
            let at = usize::from(next()) % data.len();
            data[at] = next();
        }
        data.truncate(data.len() - usize::from(next()) % 8);
        let wire_len = u32::try_from(data.len()).expect("short") + u32::from(next()) % 3;
        let frame = Frame { link: LinkKind::Ethernet, data, wire_len };
        let text = describe(&frame).to_string();
        assert_eq!(packet(&text).frame(), frame, "{text}");
    }
}

#[test]
fn packets_of_hostile_texts_stay_small() {
    let many = format!("udp 10.0.0.1:1 > 8.8.8.8:53 {}", "bytes=65535 ".repeat(1000));
    for text in [
        many.as_str(),
        "udp 1.1.1.1:1 > 2.2.2.2:2 bytes=65536",
        "udp 1.1.1.1:1 > 2.2.2.2:2 pad=65536",
    ] {
        assert!(parse(text).is_err(), "{text:.60}");
    }
}
