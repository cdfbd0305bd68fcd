#![no_main]
//! Parses packets, reads and writes every field, changes VLAN tags, reads flow keys, builds new
//! packets, and translates packets to the other version of IP.

use braid_packet::checksum::verify;
use braid_packet::translate::{Addresses, Version, translate};
use braid_packet::{Access, FIELDS, HEADERS, Link, Packet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [link, extra, pick, value, data @ ..] = bytes else { return };
    let links = [Link::Ethernet, Link::RawIp, Link::Cooked, Link::Cooked2];
    let wire_len = u32::try_from(data.len()).unwrap_or(0) + u32::from(*extra % 64);
    let packet = Packet::snapped(links[usize::from(*link) % 4], 0, data.to_vec(), wire_len);
    let layout = packet.parse();
    for (header, _) in HEADERS {
        for implied in header.implies() {
            assert!(!layout.has(*header) || layout.has(*implied), "{header:?} implies {implied:?}");
        }
    }
    for info in FIELDS {
        let read = packet.get(&layout, info.field);
        assert_eq!(read.is_some(), layout.has(info.header), "{}", info.name);
        if let Some(read) = read {
            assert!(info.width == 128 || read >> info.width == 0, "{} is too wide", info.name);
        }
    }
    let info = &FIELDS[usize::from(*pick) % FIELDS.len()];
    let mut written = packet.clone();
    let wanted = u128::from(*value) * 0x0101_0101_0101_0101_0101_0101_0101_0101;
    let wanted = if info.width == 128 { wanted } else { wanted & ((1 << info.width) - 1) };
    if info.access == Access::Rw && layout.has(info.header) {
        assert!(written.set(&layout, info.field, wanted), "{}", info.name);
        assert_eq!(written.get(&layout, info.field), Some(wanted), "{}", info.name);
        assert_eq!(written.data().len(), packet.data().len());
    }
    let _ = (packet.flow_key(&layout), packet.quoted_flow_key(&layout), packet.payload(&layout));
    let mut tagged = packet.clone();
    if tagged.push_vlan(7) {
        assert!(tagged.pop_vlan());
        assert_eq!(tagged.data(), packet.data());
    }
    let _ = packet.to_string();
    for to in [Version::Ip4, Version::Ip6] {
        let addresses = Addresses { own: [1, 2], quoted: Some([3, 4]) };
        let mut other = packet.clone();
        match translate(&mut other, &layout, to, addresses) {
            Ok(true) => {
                let now = other.parse();
                assert!(now.has(to.header()), "{other}");
                assert!(now.malformed().is_none() || layout.malformed().is_some(), "{other}");
                assert_ne!(verify(&other, &now).ip, Some(false));
                // A checksum that was right is right.
                let was = verify(&packet, &layout).transport;
                let is = verify(&other, &now).transport;
                assert!(is != Some(false) || was == Some(false), "{other}");
            }
            Ok(false) | Err(_) => assert_eq!(other, packet),
        }
    }
});
