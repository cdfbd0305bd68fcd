//! Runs the cases of this repository on the reference engine. `docs/testing.md` describes the form.

use crate::harness::{self, Form};
use braid_casefile::{Difference, Mistake, Played, Script, differences, find, play};
use braid_ir::chain::{Chain, Node};
use braid_ir::engine::NodeCounters;
use std::io;
use std::path::Path;

pub use crate::record::Stimulus;
pub use braid_casefile::Case;

/// All cases by name: the cases of the library's functions and of the testkit.
///
/// # Errors
/// When a folder cannot be listed, or a case has no chain.
pub fn list(crates: &Path) -> io::Result<Vec<Case>> {
    let mut cases = find(&crates.join("testkit/cases"))?;
    cases.extend(find(&crates.join("nfs"))?);
    for case in &mut cases {
        let name = case.folder.strip_prefix(crates).unwrap_or(&case.folder);
        case.name = name.display().to_string();
        if case.chain.is_none() {
            return Err(io::Error::other(format!("{}: there is no chain.braid", case.name)));
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

/// Runs a case three times: as written, a second time, and with its functions printed anew. With
/// `bless`, first rewrites outcomes that differ.
///
/// # Errors
/// All places that differ.
pub fn check(case: &Case, bless: bool) -> Result<(), Vec<String>> {
    let fail = |wrong: Mistake| vec![at(case, wrong)];
    let text = text(case).map_err(fail)?;
    let mut script = Script::read(&text).map_err(fail)?;
    let (_, first) = run(case, &script, Form::AsWritten).map_err(fail)?;
    if bless {
        script.bless(&first.outcomes);
        let new = script.to_string();
        if new != text {
            std::fs::write(case.script(), new).map_err(|error| fail(nowhere(error)))?;
        }
    }
    differ(case, &differences(&script, &first.outcomes), "")?;
    for (form, what) in [(Form::AsWritten, "a second run"), (Form::Formatted, "formatted models")] {
        let (_, again) = run(case, &script, form).map_err(fail)?;
        if again.outcomes != first.outcomes {
            differ(case, &differences(&script, &again.outcomes), what)?;
            return Err(vec![format!("{}: {what} differs", case.name)]);
        }
    }
    Ok(())
}

fn differ(case: &Case, found: &[Difference], what: &str) -> Result<(), Vec<String>> {
    let what = if what.is_empty() { String::new() } else { format!("{what} differs: ") };
    let show = |found: &Difference| format!("{}/case.txt:{}: {what}{found}", case.name, found.line);
    if found.is_empty() { Ok(()) } else { Err(found.iter().map(show).collect()) }
}

/// The rows of functions that the packets of a case take: function, label of the row, number of
/// packets. Rows that no packet takes are included with 0.
///
/// # Errors
/// When the case cannot be run, as for [`check`].
pub fn rows(case: &Case) -> Result<Vec<(String, String, u64)>, String> {
    let (chain, played) = played(case)?;
    let nodes = chain.nodes.iter().zip(&played.counters.nodes);
    let of_node = |(node, counters): (&Node, &NodeCounters)| {
        let model = &node.model;
        let rows = model.rows.iter().zip(&counters.rows);
        rows.map(|(row, traffic)| (model.name.clone(), row.label.clone(), traffic.packets))
            .collect::<Vec<_>>()
    };
    Ok(nodes.flat_map(of_node).collect())
}

/// The chain and the stimuli of a case, for other engines to repeat.
///
/// # Errors
/// When the case cannot be run, as for [`check`].
pub fn replay(case: &Case) -> Result<(Chain, Vec<Stimulus>), String> {
    let (chain, played) = played(case)?;
    Ok((chain, played.stimuli))
}

/// A case as the reference engine runs it.
fn played(case: &Case) -> Result<(Chain, Played), String> {
    let script = text(case).and_then(|text| Script::read(&text));
    let played = script.and_then(|script| run(case, &script, Form::AsWritten));
    played.map_err(|wrong| at(case, wrong))
}

fn at(case: &Case, wrong: Mistake) -> String {
    format!("{}/case.txt:{}: {}", case.name, wrong.line, wrong.message)
}

fn nowhere(message: impl ToString) -> Mistake {
    Mistake { line: 0, message: message.to_string() }
}

fn text(case: &Case) -> Result<String, Mistake> {
    std::fs::read_to_string(case.script()).map_err(nowhere)
}

fn run(case: &Case, script: &Script, form: Form) -> Result<(Chain, Played), Mistake> {
    let file = case.chain.as_deref().ok_or_else(|| nowhere("there is no chain.braid"))?;
    let chain = harness::compile_file(file, form).map_err(nowhere)?;
    let change = |time: u64, line: &str| harness::control(&chain, time, line, &case.folder);
    let mut engine = harness::reference(&chain);
    let played = play(&case.folder, script, &chain, engine.as_mut(), &change)?;
    Ok((chain, played))
}
