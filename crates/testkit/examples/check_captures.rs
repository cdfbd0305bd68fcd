//! Runs every capture below a folder through every function of the library, on the reference
//! engine: `scripts/check-captures.sh DIR`. Fails when a run panics or when packets are not all
//! accounted for.
//!
//! A packet enters at the first interface of the function's chain if the smaller of its two ends
//! sent it, otherwise at the last. So each flow has both directions.

use braid_io::{CaptureReader, PacketSource};
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, Event, Outputs};
use braid_packet::Packet;
use braid_testkit::harness::{self, Form};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// The packets of one file that are in memory at a time. Each function runs over such a part.
const PART: usize = 20_000;

/// Counts events.
#[derive(Default)]
struct Count {
    events: u64,
}

impl Outputs for Count {
    fn packet(&mut self, _interface: u16, _packet: Packet) {}

    fn event(&mut self, _event: Event) {
        self.events += 1;
    }
}

/// Outcomes of many runs.
#[derive(Default)]
struct Totals {
    packets: u64,
    out: u64,
    created: u64,
    dropped: u64,
    lost: u64,
    events: u64,
    wrong: Vec<String>,
}

fn main() -> ExitCode {
    let Some(root) = std::env::args().nth(1) else {
        eprintln!("usage: check_captures DIR");
        return ExitCode::from(2);
    };
    let mut files = Vec::new();
    captures(Path::new(&root), &mut files);
    files.sort();
    let functions: Vec<(&str, Chain)> = match braid_nfs::all()
        .iter()
        .map(|nf| Ok((nf.name, chain_of(nf.name)?)))
        .collect::<Result<_, String>>()
    {
        Ok(functions) => functions,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(3);
        }
    };
    println!(
        "{:>7} {:>9} {:>9} {:>8} {:>9} {:>7} {:>7} {:>6}  file",
        "packets", "runs' in", "out", "created", "dropped", "lost", "events", "ms"
    );
    let (mut all, mut unread) = (Totals::default(), 0);
    let started = Instant::now();
    for file in &files {
        let begun = Instant::now();
        let mut one = Totals::default();
        let read = check(file, &functions, &mut one);
        let name = file.strip_prefix(&root).unwrap_or(file).display();
        let runs = one.packets * functions.len() as u64;
        println!(
            "{:>7} {:>9} {:>9} {:>8} {:>9} {:>7} {:>7} {:>6}  {name}{}",
            one.packets,
            runs,
            one.out,
            one.created,
            one.dropped,
            one.lost,
            one.events,
            begun.elapsed().as_millis(),
            read.as_ref().err().map(|why| format!(" ({why})")).unwrap_or_default(),
        );
        unread += u64::from(read.is_err());
        for wrong in &one.wrong {
            println!("  WRONG: {wrong}");
        }
        all.add(one);
    }
    println!(
        "{} files ({unread} not read to their end, with the reason above), {} packets, {} functions: out {}, created {}, \
         dropped {}, lost {}, events {}, {:.1} s",
        files.len(),
        all.packets,
        functions.len(),
        all.out,
        all.created,
        all.dropped,
        all.lost,
        all.events,
        started.elapsed().as_secs_f64(),
    );
    println!(
        "{} passed, {} failed",
        files.len() * functions.len() - all.wrong.len(),
        all.wrong.len()
    );
    if all.wrong.is_empty() && !files.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The capture files of a folder and of its subfolders.
fn captures(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.trim_end_matches(".gz");
        if path.is_dir() {
            captures(&path, found);
        } else if [".pcap", ".pcapng", ".cap", ".dmp", ".trace"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            found.push(path);
        }
    }
}

/// The chain that the cases of a function use.
fn chain_of(function: &str) -> Result<Chain, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../nfs")
        .join(function)
        .join("cases/chain.braid");
    harness::compile_file(&path, Form::AsWritten)
}

/// Runs a capture through all functions, part by part.
fn check(file: &Path, functions: &[(&str, Chain)], totals: &mut Totals) -> Result<(), String> {
    let mut reader = CaptureReader::open(file).map_err(|error| error.to_string())?;
    let mut engines: Vec<_> =
        functions.iter().map(|(_, chain)| harness::reference(chain)).collect();
    let mut counts: Vec<Count> = functions.iter().map(|_| Count::default()).collect();
    let mut broken = vec![false; functions.len()];
    let mut end = Ok(());
    loop {
        let mut part = Vec::new();
        while part.len() < PART && end.is_ok() {
            match reader.next_packet() {
                Ok(Some(packet)) => part.push(packet),
                Ok(None) => break,
                Err(error) => end = Err(error.to_string()),
            }
        }
        if part.is_empty() {
            break;
        }
        totals.packets += part.len() as u64;
        for (at, (name, chain)) in functions.iter().enumerate() {
            let last = (chain.interfaces.len() - 1) as u16;
            let run = || {
                for packet in &part {
                    let ingress = if sent_by_the_smaller(packet) { 0 } else { last };
                    engines[at].packet(ingress, packet.clone(), &mut counts[at]);
                }
            };
            if !broken[at] && catch_unwind(AssertUnwindSafe(run)).is_err() {
                broken[at] = true;
                totals.wrong.push(format!("{name}: panicked"));
            }
        }
    }
    for (at, (name, _)) in functions.iter().enumerate().filter(|&(at, _)| !broken[at]) {
        totals.count(name, &engines[at].counters(), counts[at].events);
    }
    end
}

fn sent_by_the_smaller(packet: &Packet) -> bool {
    let layout = packet.parse();
    packet.flow_key(&layout).is_none_or(|key| (key.src, key.sport) <= (key.dst, key.dport))
}

impl Totals {
    fn count(&mut self, function: &str, counters: &Counters, events: u64) {
        self.out += counters.out.values().sum::<u64>();
        self.created += counters.created;
        self.dropped += counters.drops.values().sum::<u64>();
        self.lost += counters.lost.values().sum::<u64>();
        self.events += events;
        if !counters.balanced() {
            self.wrong.push(format!("{function}: packets don't add up: {counters:?}"));
        }
    }

    fn add(&mut self, other: Totals) {
        self.packets += other.packets;
        self.out += other.out;
        self.created += other.created;
        self.dropped += other.dropped;
        self.lost += other.lost;
        self.events += other.events;
        self.wrong.extend(other.wrong);
    }
}
