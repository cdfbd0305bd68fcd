//! Compares all engines on pairs of fresh seeds for some time: `soak SECONDS [FIRST_SEED [KIND]]`.
//! With a kind (`limits`, `library` or `random`), it leaves out the seeds of other kinds. A pair
//! with a difference is stored as a file, which a test runs again. The program is built without
//! mutants, like the programs of users.
#![forbid(unsafe_code)]

use braid_testkit::generate::program::Kind;
use braid_testkit::pairs::{Pair, folder};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

/// One of this number of pairs runs as machine code from the first packets on.
const MACHINE_CODE_EVERY: u64 = 6;
/// The number of pairs with a difference after which a run stops.
const ENOUGH: u32 = 5;
/// The time between two progress lines.
const PROGRESS: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let number = |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok());
    let Some(seconds) = number(args.next()) else {
        eprintln!("soak: expected a number of seconds, and perhaps the first seed and a kind");
        return ExitCode::from(2);
    };
    let first = number(args.next()).unwrap_or_else(fresh);
    let kind = match args.next().map(|name| (kind(&name), name)) {
        None => None,
        Some((Some(kind), _)) => Some(kind),
        Some((None, name)) => {
            eprintln!("soak: expected limits, library or random, not {name}");
            return ExitCode::from(2);
        }
    };
    println!("soak: {seconds} s from seed {first} on");
    let (start, mut told) = (Instant::now(), Instant::now());
    let (mut seed, mut pairs, mut found) = (first, 0_u64, 0);
    while start.elapsed().as_secs() < seconds && found < ENOUGH {
        if kind.is_none_or(|kind| kind == Kind::of(seed)) {
            found += u32::from(!is_equal(seed));
            pairs += 1;
        }
        seed = seed.wrapping_add(1);
        if told.elapsed() > PROGRESS {
            told = Instant::now();
            let took = start.elapsed().as_secs();
            println!("soak: {pairs} pairs, {found} differ, {took} s");
        }
    }
    let took = start.elapsed().as_secs();
    println!("soak: {pairs} pairs from seed {first} on, {found} differ, {took} s");
    ExitCode::from(u8::from(found > 0))
}

/// The kind of chain of this name.
fn kind(name: &str) -> Option<Kind> {
    match name {
        "limits" => Some(Kind::Limits),
        "library" => Some(Kind::Library),
        "random" => Some(Kind::Random),
        _ => None,
    }
}

/// A seed that no earlier run used.
fn fresh() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos() & 0x0fff_ffff_ffff_ffff).unwrap_or(0)
}

/// Runs the pair of a seed. A difference is printed and stored.
fn is_equal(seed: u64) -> bool {
    let pair = match Pair::draw(seed) {
        Ok(pair) => pair,
        Err(error) => {
            println!("{error}");
            return false;
        }
    };
    let Some(found) = pair.check(pair.engines(seed.is_multiple_of(MACHINE_CODE_EVERY))) else {
        return true;
    };
    println!("{found}");
    match found.keep(&folder()) {
        Ok(path) => println!("soak: kept as {}", path.display()),
        Err(error) => println!("soak: cannot be kept: {error}"),
    }
    false
}
