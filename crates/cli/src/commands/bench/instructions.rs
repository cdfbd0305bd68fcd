//! Instructions per packet on machines whose processor counts none for programs: callgrind, a tool
//! of valgrind, runs the measured packets of an engine and counts.

use std::process::Command as Process;

use braid_bench::measure::COUNTED;
use braid_bench::report::Row;
use braid_bench::subject::Kind;

use crate::answer::Failure;
use crate::output::warn;

/// The number of packets that are counted. Callgrind takes about fifty times as long as the bench.
pub const PACKETS: u64 = 20_000;
/// The most active flows of a case that is counted, because all of them send packets before.
const MOST_FLOWS: u64 = 50_000;

/// Adds the instructions per packet to the rows of a case, without those of the source. Does
/// nothing for rows that have them, and for cases with too many flows. `same_case` gives a process
/// the arguments for the case.
pub fn add(rows: &mut [Row], same_case: &dyn Fn(&mut Process)) -> Result<(), Failure> {
    let is_missing = |row: &Row| row.instructions_per_packet.is_none();
    if !rows.iter().any(is_missing) {
        return Ok(());
    }
    if rows.iter().any(|row| row.flows > MOST_FLOWS) {
        warn("too many flows for callgrind: no instructions are counted");
        return Ok(());
    }
    let source = count(None, same_case)?;
    for row in rows.iter_mut().filter(|row| is_missing(row)) {
        let Ok(kind) = row.engine.parse::<Kind>() else { continue };
        let counted = count(Some(kind), same_case)?;
        row.instructions_per_packet = Some((counted - source).max(0.0));
    }
    Ok(())
}

/// The instructions per packet of one engine, or of the source alone.
fn count(kind: Option<Kind>, same_case: &dyn Fn(&mut Process)) -> Result<f64, Failure> {
    let myself = std::env::current_exe().map_err(Failure::input)?;
    let mut process = Process::new("valgrind");
    process.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"]);
    process.arg(format!("--toggle-collect=*{COUNTED}*"));
    process.arg(myself);
    same_case(&mut process);
    process.arg("--count");
    if let Some(kind) = kind {
        process.args(["--engine", kind.name()]);
    }
    let done = process.output().map_err(|why| {
        Failure::usage(format!("--callgrind: valgrind does not run: {why}; is it installed?"))
    })?;
    let (out, notes) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let packets = out.trim().parse::<f64>().ok().filter(|packets| *packets > 0.0);
    let total = collected(&notes).zip(packets).filter(|_| done.status.success());
    let why = || Failure::input(format!("--callgrind: no count\n{}", notes.trim_end()));
    total.map(|(total, packets)| total / packets).ok_or_else(why)
}

/// The number of instructions in callgrind's notes.
fn collected(notes: &str) -> Option<f64> {
    let line = notes.lines().find_map(|line| line.split_once("Collected :"))?;
    line.1.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_is_read_from_the_notes_of_callgrind() {
        let notes = "==1== Callgrind\n==1== \n==1== Events    : Ir\n==1== Collected : 123456\n";
        assert_eq!(collected(notes), Some(123_456.0));
        assert_eq!(collected("==1== Collected : \n"), None);
        assert_eq!(collected(""), None);
    }
}
