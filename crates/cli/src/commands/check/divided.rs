//! How chains are divided over workers, as text and JSON.

use std::fmt::Write;

use braid_compiler::sharding::{Sharding, TableSharding, Verdict};

/// The sharding of a chain as text.
pub fn describe(found: &Sharding, workers: u16) -> String {
    let mut out = format!("\nchain {}, {workers} workers\n", found.chain);
    let verdict = match found.verdict {
        Verdict::Stateless => "no state: any worker may take any packet",
        Verdict::Split => "divided: workers share nothing",
        Verdict::OneWorker => "one worker only",
    };
    let _ = writeln!(out, "  {verdict}");
    for why in &found.why_not {
        let _ = writeln!(out, "    {why}");
    }
    if !found.entries.is_empty() {
        out.push_str("  steering\n");
    }
    for rule in &found.entries {
        let _ = writeln!(out, "    {}: {}", rule.interface, rule.by);
    }
    if found.errors_follow && !found.entries.is_empty() {
        out.push_str("    ICMP errors: as an answer to the packet that they quote\n");
    }
    if !found.tables.is_empty() {
        out.push_str("  tables\n");
    }
    found.tables.iter().for_each(|one| table(one, &mut out));
    for pool in &found.pools {
        let _ = writeln!(out, "  pool {}.{}: {}", pool.function, pool.pool, pool.rule);
    }
    for assumed in &found.assumes {
        let _ = writeln!(out, "  assumed: {assumed}");
    }
    out
}

fn table(one: &TableSharding, out: &mut String) {
    let line = one.line.map_or(String::new(), |line| format!(" (line {line} of {})", one.model));
    let placement = one.placement.word();
    let _ = writeln!(out, "    {}.{}: {placement}: {}", one.function, one.table, one.reason);
    for exception in &one.exceptions {
        let _ = writeln!(out, "      except: {exception}{line}");
    }
}
