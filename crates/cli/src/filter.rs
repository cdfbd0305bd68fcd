//! Conditions on packets that users type, such as `ip.src in 10.0.0.0/8 and has tcp`, in the
//! notation of the language.

use braid_ir::chain::Malformed;
use braid_lang::diag::{Diagnostics, Style, render};
use braid_lang::source::{SourceMap, Span};
use braid_lang::{Compiled, Loader, compile};
use braid_runtime::live::Filter;

use crate::engines;

/// A condition names no files.
struct NoFiles;

impl Loader for NoFiles {
    fn read(&self, _: &str, _: &str) -> Result<Vec<u8>, String> {
        Err("a filter reads no files".to_owned())
    }
}

/// The part of the chain of a filter that stands before the condition.
const BEFORE: &str = "nf filter() { match {\n";

/// What is wrong with a condition. The user has written only the condition, so the places are
/// places in its text, and what follows it is its end.
fn wrong(text: &str, found: Diagnostics) -> String {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut sources = SourceMap::new();
    let file = sources.add("filter", text);
    let mut own = Diagnostics::new();
    for mut one in found {
        for (span, label) in &mut one.labels {
            let place = |at: u32| at.saturating_sub(BEFORE.len() as u32).min(length);
            *span = Span { file, start: place(span.start), end: place(span.end) };
            *label = label.replace("`=>`", "the end");
        }
        one.message = one.message.replace("`=>`", "the end of the condition");
        own.push(one);
    }
    render(&own, &sources, Style::default())
}

/// Reads a condition.
pub fn filter(text: &str) -> Result<Filter, String> {
    let foreign = |c: char| matches!(c, '{' | '}' | ';' | '\n' | '\r') || c.is_control();
    if text.contains(foreign) || text.contains("=>") || text.contains("//") {
        return Err(format!(
            "`{text}` is not a condition such as `ip.src in 10.0.0.0/8 and has tcp`"
        ));
    }
    let whole = format!(
        "{BEFORE}{text}\n=> output; else => drop \"other\"; }} }}\n\
         chain filter {{ interface a; interface b; path a -> filter() -> b; }}\n"
    );
    let Compiled { unit, diagnostics, .. } = compile(("filter", &whole), &[], &NoFiles);
    let mut chain = match unit {
        Some(unit) if !diagnostics.has_errors() => unit.chains.into_iter().next(),
        _ => return Err(wrong(text, diagnostics)),
    }
    .ok_or("the filter has no chain")?;
    chain.malformed = Malformed::Pass;
    let engine = engines::reference(&chain).map_err(|failure| failure.text)?;
    Ok(Filter::new(Box::new(engine)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_the_condition_and_nothing_around_it() {
        for (text, said) in [
            ("", "expected an expression, found the end of the condition"),
            ("has", "expected a header, found the end of the condition"),
            ("(has tcp", "expected `)`, found the end of the condition"),
            ("has tcp tcp", "expected the end of the condition, found `tcp`"),
            ("has tcp and ip.scr == 1", "filter:1:13"),
            ("ip.src", "expected a condition, found ip4"),
        ] {
            let why = filter(text).err().unwrap_or_default();
            assert!(why.contains(said), "{text}: {why}");
            let around = ["=>", "else", "nf filter", "output", "filter:2", "filter:3"];
            assert!(around.iter().all(|word| !why.contains(word)), "{text}: {why}");
        }
    }

    #[test]
    fn only_conditions_are_filters() {
        for text in ["has tcp", "ip.src in 10.0.0.0/8 and udp.dport == 53", "pkt.len > 100 B"] {
            assert!(filter(text).is_ok(), "{text}: {:?}", filter(text).err());
        }
        for text in [
            "",
            "has",
            "ip.scr == 1",
            "has tcp => output; has udp",
            "true => output; } } chain x {",
            "has tcp // and more",
            "packet in rules(\"/etc/passwd\")",
        ] {
            assert!(filter(text).is_err(), "{text}");
        }
    }
}
