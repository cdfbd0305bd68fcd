#![no_main]
//! Segments of a client and of a server come to the split proxies or to the server of pages, mostly
//! with numbers that fit, and with options and HTTP of any kind, and so do ICMP errors about
//! segments of the proxies. What they send must be right segments, and an instance must be able to
//! go on from the memory of another one.

use braid_native::{Checks, Config, Instance, Output, Reference, Value, Verdict};
use braid_packet::{Field, Header, Link, Packet, Shape, build_fresh, checksum};
use libfuzzer_sys::fuzz_target;

const MS: u64 = 1_000_000;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// What one end knows of the proxy's numbers: its own next one, and the proxy's.
#[derive(Clone, Copy, Default)]
struct Numbers {
    own: u32,
    proxy: u32,
}

fn instance(function: &str, config: &Config) -> Instance {
    braid_relay::register();
    braid_server::register();
    let set = if function == "pages" { braid_server::SET } else { braid_relay::SET };
    let reference = Reference {
        library: set.into(),
        function: function.into(),
        checks: Checks { records: false, observe: false },
        isolated: None,
    };
    Instance::new(&reference, "it", config.clone()).expect("an instance")
}

/// Notes the numbers of the segments that leave, which must be right ones.
fn leave(proxy: &mut Instance, is_from_left: bool, ends: &mut [Numbers; 2]) {
    for output in proxy.take_outputs() {
        let Output::Packet(sent) = output else { continue };
        let packet = Packet::new(Link::Ethernet, 0, &sent.bytes);
        let layout = packet.parse();
        assert!(layout.has(Header::Tcp) && layout.malformed().is_none());
        assert!(checksum::verify(&packet, &layout).all_right());
        let get = |field| packet.get(&layout, field).unwrap_or(0) as u32;
        let to_left = (sent.to == Verdict::Back) == (sent.from_timer || is_from_left);
        let end = &mut ends[usize::from(!to_left)];
        let flags = get(Field::TcpFlags) as u8;
        let taken =
            layout.payload_len() as u32 + u32::from(flags & SYN != 0) + u32::from(flags & 1);
        let next = get(Field::TcpSeq).wrapping_add(taken);
        if flags & (RST | SYN) != 0 || next.wrapping_sub(end.proxy) < 1 << 31 {
            end.proxy = next;
        }
        if flags & ACK != 0 {
            end.own = get(Field::TcpAck);
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, mut data)) = data.split_first() else { return };
    let ports = Value { rows: vec![vec![80, 80]], texts: Vec::new() };
    let mut config = vec![("ports".to_owned(), ports)];
    if kind & 2 != 0 {
        config.push(("cache".to_owned(), Value::scalar(100_000)));
    }
    let function = match kind & 9 {
        0 => "tcp",
        1 => "http",
        _ => "pages",
    };
    if function == "pages" {
        // The addresses of `build_fresh` are zeros. With some inputs, all SYNs get cookies.
        let all = Value { rows: vec![vec![0, u128::MAX]], texts: Vec::new() };
        config.push(("addresses".to_owned(), all));
        config.push((
            "folder".to_owned(),
            Value::text(concat!(env!("CARGO_MANIFEST_DIR"), "/targets")),
        ));
        config.push(("half_open".to_owned(), Value::scalar((kind >> 4).into())));
    }
    let shape = if kind & 4 == 0 { Shape::Tcp4 } else { Shape::Tcp6 };
    let mut proxy = instance(function, &config);
    let (mut ends, mut now) = ([Numbers::default(); 2], 1_000_000 * MS);
    while let Some((&[what, flags, seq, ack, len], rest)) = data.split_first_chunk::<5>() {
        data = rest;
        match what {
            0..=15 => now += u64::from(flags) * MS << (what & 7),
            16..=31 => {
                let memory = proxy.save().expect("its memory");
                let mut next = instance(function, &config);
                next.restore(&memory).expect("the memory of the last one");
                proxy = next;
            }
            _ => {}
        }
        proxy.advance(now);
        leave(&mut proxy, true, &mut ends);
        if what < 32 {
            continue;
        }
        let from_client = what & 1 == 0;
        // Most flags are those of data.
        let flags = if what & 2 == 0 { ACK } else { flags };
        let Numbers { own, proxy: known } = ends[usize::from(!from_client)];
        let off =
            |by: u8| (by as i8 as i32 as u32).wrapping_mul(if what & 4 == 0 { 0 } else { 97 });
        let len = usize::from(len) << (what >> 3 & 3);
        let (payload, rest) = data.split_at(len.min(data.len()));
        data = rest;
        let (sport, dport) = if from_client { (4_000, 80) } else { (80, 4_000) };
        let window = if what & 64 == 0 { 0xffff } else { u128::from(seq) };
        let fields = [
            (Field::TcpSport, sport),
            (Field::TcpDport, dport),
            (Field::TcpSeq, own.wrapping_add(off(seq)).into()),
            (Field::TcpAck, known.wrapping_add(off(ack)).into()),
            (Field::TcpFlags, flags.into()),
            (Field::TcpWindow, window),
        ];
        let Some(mut packet) = build_fresh(Link::Ethernet, now, shape, &fields, payload) else {
            continue;
        };
        if what & 0xf8 == 32 {
            // A segment of the proxy to this end was too long for a link.
            let mtu = u128::from(seq) * 8;
            let (of_error, about) = match shape {
                Shape::Tcp4 => (
                    Shape::Icmp,
                    vec![(Field::IcmpType, 3), (Field::IcmpCode, 4), (Field::IcmpRest, mtu)],
                ),
                _ => (Shape::Icmp6, vec![(Field::Icmp6Type, 2), (Field::Icmp6Rest, mtu)]),
            };
            let fields = [
                (Field::TcpSport, dport),
                (Field::TcpDport, sport),
                (Field::TcpSeq, known.wrapping_sub(1).wrapping_sub(off(seq)).into()),
            ];
            let quoted = build_fresh(Link::Ethernet, now, shape, &fields, payload);
            let quoted = quoted.map_or_else(Vec::new, |packet| packet.data()[14..].to_vec());
            let quoted = &quoted[..quoted.len().min(28 + usize::from(ack))];
            if let Some(error) = build_fresh(Link::Ethernet, now, of_error, &about, quoted) {
                packet = error;
            }
        } else if what & 128 != 0 && payload.len() >= 4 {
            // Some bytes of the payload become options.
            let at = packet.parse().l4() + 12;
            if let Some(offset) = packet.data().get(at).copied() {
                let words = 1 + seq % (payload.len() as u8 / 4).clamp(1, 10);
                let mut bytes = packet.data().to_vec();
                bytes[at] = offset + (words << 4);
                packet = Packet::new(Link::Ethernet, now, bytes);
                checksum::fill(&mut packet);
            }
        }
        packet.backward = !from_client;
        let _ = proxy.packet(&mut packet, now);
        leave(&mut proxy, from_client, &mut ends);
    }
    now += 600_000 * MS;
    proxy.advance(now);
    assert_eq!(proxy.problems(), []);
});
