//! Measures how long a parse takes: `cargo test --release -p braid-packet -- --ignored --nocapture
//! speed`.

use crate::samples::*;
use braid_packet::{Layout, Link};
use std::hint::black_box;
use std::time::Instant;

/// Number of packets. They fit into the first-level cache.
const PACKETS: usize = 64;
/// Rounds per sample. Samples are short, so some are not interrupted even on a busy machine.
const ROUNDS: usize = 32;
const SAMPLES: usize = 5_000;

#[test]
#[ignore = "prints times"]
fn speed_of_parsing() {
    let options = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let shapes = [
        ("udp", eth(0x0800, &ip4(17, &udp(1, 2, &[0; 18])))),
        ("tcp", eth(0x0800, &ip4(6, &tcp(&[], &[0; 6])))),
        ("udp6", eth(0x86dd, &ip6(17, &udp(1, 2, &[0; 18])))),
        ("tcp6", eth(0x86dd, &ip6(6, &tcp(&[], &[0; 6])))),
        ("tcp with timestamps", eth(0x0800, &ip4(6, &tcp(&options, &[0; 6])))),
        ("vlan udp", eth(0x8100, &tag(1, 0x0800, &ip4(17, &udp(1, 2, &[0; 18]))))),
    ];
    for (name, data) in shapes {
        let packets: Vec<Vec<u8>> = vec![data; PACKETS];
        let mut best = f64::MAX;
        for _ in 0..SAMPLES {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                for packet in &packets {
                    black_box(&Layout::parse(Link::Ethernet, packet, packet.len() as u32));
                }
            }
            let each = start.elapsed().as_secs_f64() * 1e9 / (ROUNDS * PACKETS) as f64;
            best = best.min(each);
        }
        println!("{name}: {best:.1} ns");
    }
}
