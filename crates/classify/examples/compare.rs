//! Compares families of decision structures on rule sets: time to build, memory, time of a lookup.
//!
//! `compare [FILE[:RULES]]... [KIND:RULES]...`: files in ClassBench's format (their first rules),
//! or generated sets (access, firewall, chain, six, nested, tangled, same, ports). The traffic
//! matches every rule equally often, in random order; in the last column it is random. Each time is
//! a sum over pieces of the traffic. The fastest pass of each piece counts.

use braid_classify::{Family, RuleTable, sample};
use braid_ir::rules::RulePacket;
use braid_ir::value::RuleSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

const FAMILIES: [(&str, Option<Family>); 8] = [
    ("automatic", None),
    ("linear", Some(Family::Linear)),
    ("table", Some(Family::Table)),
    ("split 64", Some(Family::Split(64))),
    ("split 8", Some(Family::Split(8))),
    ("tree", Some(Family::Tree)),
    ("bits", Some(Family::Bits)),
    ("tuples", Some(Family::Tuples)),
];

/// Packets of one pass.
const PACKETS: usize = 1 << 16;

/// Number of passes. The fastest pass of each piece counts: on a busy machine the other passes
/// measure other work as well.
const PASSES: usize = 25;

/// Packets of a piece.
const PIECE: usize = 1 << 11;

/// No pass begins after this time, and one piece that takes this long ends the measurement.
const PATIENCE: Duration = Duration::from_millis(400);

fn main() {
    println!(
        "{:<28} {:>7} {:<12} {:>9} {:>9} {:>8} {:>8}",
        "set", "rules", "family", "build ms", "KiB", "even ns", "random"
    );
    for argument in std::env::args().skip(1) {
        match load(&argument) {
            Ok(set) => compare(argument.rsplit('/').next().unwrap_or(&argument), &set),
            Err(why) => eprintln!("{argument}: {why}"),
        }
    }
}

fn load(argument: &str) -> Result<RuleSet, String> {
    let (name, count) = argument.rsplit_once(':').unwrap_or((argument, "1000000000"));
    let count: usize = count.parse().map_err(|_| "not a number of rules")?;
    if let Some((_, kind)) = sample::KINDS.iter().find(|kind| kind.0 == name) {
        return Ok(sample::rules(*kind, count, 1));
    }
    let text = std::fs::read_to_string(name).map_err(|error| error.to_string())?;
    let mut set = sample::parse(&text).map_err(|line| format!("line {line}"))?;
    set.rules.truncate(count);
    Ok(set)
}

fn compare(name: &str, set: &RuleSet) {
    let even = sample::packets(set, PACKETS, 2);
    let random = sample::random_packets(PACKETS, 3);
    let truth: Vec<_> = even.iter().take(300).map(|packet| set.decide(packet)).collect();
    for (family_name, family) in FAMILIES {
        let start = Instant::now();
        let table = match family {
            None => Some(RuleTable::new(set)),
            Some(family) => RuleTable::of_family(set, family),
        };
        let built = start.elapsed().as_secs_f64() * 1e3;
        let Some(table) = table else {
            println!("{name:<28} {:>7} {family_name:<12} {built:>9.1}  too large", set.rules.len());
            continue;
        };
        for (packet, truth) in even.iter().zip(&truth) {
            assert_eq!(table.lookup(packet), *truth, "{packet:?}");
        }
        let label = match family {
            None => format!("= {:?}", table.families()[usize::from(name.starts_with("six"))]),
            Some(_) => family_name.to_owned(),
        };
        if family.is_none() {
            changes(name, set, table.clone(), &even);
        }
        println!(
            "{name:<28} {:>7} {label:<12} {built:>9.1} {:>9} {:>8.1} {:>8.1}",
            set.rules.len(),
            table.memory() / 1024,
            one_by_one(&table, &even),
            one_by_one(&table, &random),
        );
    }
}

/// Measures changes, and lookups while 32 added and 32 removed rules are pending.
fn changes(name: &str, set: &RuleSet, mut table: RuleTable, packets: &[RulePacket]) {
    let time = |change: &mut dyn FnMut()| {
        let start = Instant::now();
        change();
        start.elapsed().as_secs_f64() * 1e6
    };
    let places = (0..32).map(|n| n * set.rules.len() / 40);
    let added: Vec<f64> = places
        .clone()
        .map(|at| time(&mut || table.insert(at, set.rules[at / 2].clone())))
        .collect();
    let removed: Vec<f64> =
        places.map(|at| time(&mut || assert!(table.remove(at + 5).is_some()))).collect();
    let pending = one_by_one(&table, packets);
    let settled = time(&mut || table.settle());
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        (times[times.len() / 2], times[times.len() - 1])
    };
    let ((add, add_most), (remove, remove_most)) = (median(added), median(removed));
    println!(
        "{name:<28} insert {add:.0} us (most {add_most:.0}), remove {remove:.0} us (most {remove_most:.0}), \
         lookup with 64 changes pending {pending:.1} ns, settle {:.1} ms",
        settled / 1e3
    );
}

/// Nanoseconds per packet.
fn one_by_one(table: &RuleTable, packets: &[RulePacket]) -> f64 {
    measure(packets, |packets| {
        let mut sum = 0_u64;
        for packet in packets {
            let (pass, rule) = table.lookup(packet);
            sum += u64::from(rule) + u64::from(pass);
        }
        black_box(sum);
    })
}

/// The sum over the pieces of each piece's fastest time.
fn measure(packets: &[RulePacket], mut pass: impl FnMut(&[RulePacket])) -> f64 {
    let mut best = vec![f64::INFINITY; packets.len().div_ceil(PIECE)];
    let start = Instant::now();
    let mut passes = 0;
    while passes < PASSES && (passes == 0 || start.elapsed() < PATIENCE) {
        for (packets, best) in packets.chunks(PIECE).zip(&mut best) {
            let start = Instant::now();
            pass(packets);
            *best = best.min(start.elapsed().as_secs_f64());
            if passes == 0 && start.elapsed() > PATIENCE {
                return *best * 1e9 / packets.len() as f64;
            }
        }
        passes += 1;
    }
    best.iter().sum::<f64>() * 1e9 / packets.len() as f64
}
