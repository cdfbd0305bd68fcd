#![no_main]
//! Fragments of any datagrams come to the function that puts them together: few identifications,
//! so that they meet, and sometimes frames of any bytes. What it sends must be a whole packet, and
//! an instance must be able to go on from the memory of another one.

use braid_native::{Checks, Config, Instance, Output, Reference, Value};
use braid_packet::checksum::rfc1071;
use braid_packet::{Link, Packet};
use libfuzzer_sys::fuzz_target;

fn instance() -> Instance {
    braid_fragments::register();
    let config: Config = vec![
        ("memory".to_owned(), Value::scalar(20_000)),
        ("timeout".to_owned(), Value::scalar(1_000_000)),
    ];
    let reference = Reference {
        library: braid_fragments::SET.into(),
        function: "defragment".into(),
        checks: Checks { records: false, observe: false },
        isolated: None,
    };
    Instance::new(&reference, "it", config).expect("an instance")
}

/// A fragment of IPv4, or of IPv6, with its place in units of 8 bytes.
fn fragment(is_v6: bool, id: u8, (place, has_more): (u8, bool), part: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    if is_v6 {
        let word = u16::from(place) << 3 | u16::from(has_more);
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((part.len() as u16 + 8).to_be_bytes());
        frame.extend([44, 64]);
        frame.extend([1; 32]);
        frame.extend([17, 0]);
        frame.extend(word.to_be_bytes());
        frame.extend([0, 0, 0, id]);
    } else {
        let mut ip = vec![0x45, 0];
        ip.extend((part.len() as u16 + 20).to_be_bytes());
        ip.extend([0, id]);
        ip.extend((u16::from(place) | u16::from(has_more) << 13).to_be_bytes());
        ip.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = rfc1071(&ip).to_be_bytes();
        ip[10..12].copy_from_slice(&sum);
        frame.extend([8, 0]);
        frame.extend(ip);
    }
    frame.extend(part);
    frame
}

fuzz_target!(|data: &[u8]| {
    let (mut function, mut now, mut data) = (instance(), 1_000, data);
    while let Some((&[what, place, len], rest)) = data.split_first_chunk::<3>() {
        let (part, rest) = rest.split_at(usize::from(len).min(rest.len()));
        data = rest;
        if what & 0xf0 == 0xf0 {
            let memory = function.save().expect("its memory");
            function = instance();
            function.restore(&memory).expect("the memory of the last one");
            continue;
        }
        now += u64::from(what >> 6) * 100_000;
        let id = what & 3;
        let frame = match what & 0x30 {
            0x30 => part.to_vec(),
            kind => fragment(kind == 0x20, id, (place & 0x3f, place & 0x40 == 0), part),
        };
        let link = if what & 0x34 == 0x34 { Link::RawIp } else { Link::Ethernet };
        let mut packet = Packet::new(link, now, frame);
        packet.backward = what & 8 != 0;
        let _ = function.packet(&mut packet, now);
        for output in function.take_outputs() {
            let Output::Packet(sent) = output else { continue };
            let whole = Packet::new(link, now, &sent.bytes);
            let layout = whole.parse();
            assert!(!layout.is_fragment() && !layout.payload_truncated(), "{:?}", sent.bytes);
        }
    }
    function.advance(now + 2_000_000_000);
    assert!(function.report().iter().all(|entry| entry.table != "waiting"));
    assert_eq!(function.problems(), []);
});
