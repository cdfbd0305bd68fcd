//! Traffic classes as text.

use super::data::{Classes, Program};
use super::paths::Path;
use std::fmt::Write as _;

/// The traffic classes of a chain as text.
#[must_use]
pub fn text(classes: &Classes) -> String {
    let mut out = format!("chain {}: {}\n", classes.chain, classes.functions.join(", "));
    for entry in &classes.entries {
        let _ = write!(out, "\nfrom {}: ", entry.interface);
        match entry.programs.len() {
            0 => match &entry.native {
                Some(name) => {
                    let _ = writeln!(
                        out,
                        "packets come to {name} first, and no program is made for them"
                    );
                }
                None => out.push_str("packets that enter go nowhere through functions\n"),
            },
            1 => out.push_str("one program\n"),
            many => {
                let _ =
                    writeln!(out, "{many} programs, one for each shape of headers that matters");
            }
        }
        if let Some(name) = &entry.stream {
            let _ = writeln!(out, "\n  TCP packets go to the TCP stack of {name} first.");
        }
        for (number, program) in entry.programs.iter().enumerate() {
            describe(&mut out, number + 1, program);
        }
    }
    out
}

fn describe(out: &mut String, number: usize, program: &Program) {
    let _ = writeln!(out, "\n  {number}. {}", shape(program));
    let _ = writeln!(
        out,
        "     {} through {}; {} visited at most; {}",
        many_text(&program.classes, "path"),
        many_text(&program.blocks.to_string(), "block"),
        many_text(&program.visits.to_string(), "function"),
        many_text(&program.shapes.to_string(), "possible set of headers")
    );
    let _ = writeln!(out, "     on the longest path, apart and put together:");
    let (before, after) = (program.before.named(), program.after.named());
    for ((name, before), (_, after)) in before.into_iter().zip(after) {
        if before + after > 0 {
            let _ = writeln!(out, "       {name:<17} {before:>5} {after:>5}");
        }
    }
    let (before, after) = (program.before.total(), program.after.total());
    let _ = writeln!(out, "       {:<17} {before:>5} {after:>5}", "in all");
    let saved = program.saved;
    let _ = writeln!(
        out,
        "     saved: {} conditions decided already, {} lookups reused, {} fields written only once, {} not at all, {} VLAN tags left as they are",
        saved.decided, saved.reused, saved.overwritten, saved.unwritten, saved.cancelled
    );
    for (number, path) in program.paths.iter().enumerate() {
        say_path(out, number + 1, path);
    }
    if program.paths.len().to_string() != program.classes && !program.paths.is_empty() {
        let _ = writeln!(
            out,
            "     … {} in the graph (--paths shows more)",
            many_text(&program.classes, "path")
        );
    }
    if let Some(text) = &program.text {
        out.push_str("     program:\n");
        for line in text.lines() {
            let _ = writeln!(out, "       {line}");
        }
    }
}

fn many_text(count: &str, thing: &str) -> String {
    let many = match thing {
        "possible set of headers" => "possible sets of headers".to_owned(),
        _ => format!("{thing}s"),
    };
    if count == "1" { format!("one {thing}") } else { format!("{count} {many}") }
}

fn shape(program: &Program) -> String {
    let mut parts: Vec<String> = Vec::new();
    if !program.present.is_empty() {
        parts.push(format!("with {}", program.present.join(", ")));
    }
    if !program.absent.is_empty() {
        parts.push(format!("without {}", program.absent.join(", ")));
    }
    if parts.is_empty() { "any headers".to_owned() } else { parts.join("; ") }
}

fn say_path(out: &mut String, number: usize, path: &Path) {
    let _ = writeln!(out, "     class {number}: {}", path.end);
    for condition in &path.conditions {
        let _ = writeln!(out, "       if   {condition}");
    }
    for effect in &path.effects {
        let _ = writeln!(out, "       then {effect}");
    }
}
