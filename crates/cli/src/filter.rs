//! Conditions on packets that users type, such as `ip.src in 10.0.0.0/8 and has tcp`, in the
//! notation of the language.

use braid_ir::chain::Malformed;
use braid_lang::diag::{Style, render};
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

/// Reads a condition.
pub fn filter(text: &str) -> Result<Filter, String> {
    let foreign = |c: char| matches!(c, '{' | '}' | ';' | '\n' | '\r') || c.is_control();
    if text.contains(foreign) || text.contains("=>") || text.contains("//") {
        return Err(format!(
            "`{text}` is not a condition such as `ip.src in 10.0.0.0/8 and has tcp`"
        ));
    }
    let text = format!(
        "nf filter() {{ match {{\n{text}\n=> output; else => drop \"other\"; }} }}\n\
         chain filter {{ interface a; interface b; path a -> filter() -> b; }}\n"
    );
    let Compiled { unit, diagnostics, sources, .. } = compile(("filter", &text), &[], &NoFiles);
    let mut chain = match unit {
        Some(unit) if !diagnostics.has_errors() => unit.chains.into_iter().next(),
        _ => return Err(render(&diagnostics, &sources, Style::default())),
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
