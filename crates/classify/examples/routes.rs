//! Measures route tables.
//!
//! `routes [FILE]...`: files with one prefix a line; the next hops are generated (16 of them).
//! Without files: 10,000 and 1,000,000 random IPv4 prefixes. The traffic goes to random routes.
//! Each time is a sum over pieces of the traffic. The fastest pass of each piece counts: on a busy
//! machine the other passes measure other work as well.

use braid_classify::{Lpm, sample};
use braid_ir::routes::RouteTable;
use std::hint::black_box;
use std::net::IpAddr;
use std::time::Instant;

const ADDRESSES: usize = 1 << 17;
const PIECE: usize = 1 << 11;
const PASSES: usize = 15;

fn main() {
    println!(
        "{:<28} {:>8} {:>9} {:>9} {:>8} {:>10}",
        "table", "routes", "build ms", "KiB", "one ns", "change us"
    );
    let files: Vec<String> = std::env::args().skip(1).collect();
    for file in &files {
        match std::fs::read_to_string(file) {
            Ok(text) => routes(file.rsplit('/').next().unwrap_or(file), &read(&text)),
            Err(why) => eprintln!("{file}: {why}"),
        }
    }
    if files.is_empty() {
        routes("random IPv4", &random(10_000, 1));
        routes("random IPv4", &random(1_000_000, 2));
    }
}

fn read(text: &str) -> RouteTable {
    let mut table = RouteTable::default();
    for (line, hop) in text.lines().zip((0..16_u32).cycle()) {
        let Some((addr, len)) = line.split_once('/') else { continue };
        match (addr.parse(), len.trim().parse()) {
            (Ok(IpAddr::V4(addr)), Ok(len)) => table.insert4(addr.to_bits(), len, hop * 7 % 16),
            (Ok(IpAddr::V6(addr)), Ok(len)) => table.insert6(addr.to_bits(), len, hop * 7 % 16),
            _ => {}
        }
    }
    table
}

fn random(count: u32, seed: u64) -> RouteTable {
    let mut noise = sample::Noise::new(seed);
    let mut table = RouteTable::default();
    for hop in 0..count {
        let len = [24, 24, 24, 24, 22, 20, 18, 16, 32][noise.below(9) as usize];
        table.insert4(noise.draw() as u32, len, hop % 16);
    }
    table
}

fn routes(name: &str, routes: &RouteTable) {
    let mut noise = sample::Noise::new(9);
    let start = Instant::now();
    let mut table = Lpm::new(routes);
    let built = start.elapsed().as_secs_f64() * 1e3;
    let v4: Vec<_> = routes.iter4().map(|(addr, len, _)| (u128::from(addr), len)).collect();
    let v6: Vec<_> = routes.iter6().map(|(addr, len, _)| (addr, len)).collect();
    for (bits, prefixes) in [(32_u8, v4), (128, v6)].into_iter().filter(|(_, all)| !all.is_empty())
    {
        let mut pick = || {
            let (addr, len) = prefixes[noise.below(prefixes.len() as u64) as usize];
            let host = u128::MAX.checked_shr(128 - u32::from(bits - len)).unwrap_or(0);
            (addr | (u128::from(noise.draw()) << 64 | u128::from(noise.draw())) & host, len)
        };
        let addrs: Vec<u128> = (0..ADDRESSES).map(|_| pick().0).collect();
        let fours: Vec<u32> = addrs.iter().map(|addr| *addr as u32).collect();
        let four = bits == 32;
        let one = measure(ADDRESSES, |at| {
            let sum: u32 = if four {
                fours[at].iter().map(|addr| table.lookup4(*addr).unwrap_or(0)).sum()
            } else {
                addrs[at].iter().map(|addr| table.lookup6(*addr).unwrap_or(0)).sum()
            };
            black_box(sum);
        });
        let memory = table.memory() / 1024;
        let changes: Vec<_> = (0..2000).map(|_| pick()).collect();
        let start = Instant::now();
        for (addr, len) in &changes {
            if four {
                table.insert4(*addr as u32, *len, 77);
            } else {
                table.insert6(*addr, *len, 77);
            }
        }
        let change = start.elapsed().as_secs_f64() * 1e6 / changes.len() as f64;
        let name = format!("{name}, IPv{}", if four { 4 } else { 6 });
        println!(
            "{name:<28} {:>8} {built:>9.1} {memory:>9} {one:>8.1} {change:>10.1}",
            prefixes.len()
        );
    }
}

/// Nanoseconds per address.
fn measure(count: usize, mut pass: impl FnMut(std::ops::Range<usize>)) -> f64 {
    let mut best = vec![f64::INFINITY; count / PIECE];
    for _ in 0..PASSES {
        for (best, piece) in best.iter_mut().zip(0..) {
            let start = Instant::now();
            pass(piece * PIECE..(piece + 1) * PIECE);
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    best.iter().sum::<f64>() * 1e9 / count as f64
}
