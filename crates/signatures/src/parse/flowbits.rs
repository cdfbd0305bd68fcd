//! `flowbits`.

use super::fault::Fault;
use crate::flowbits::{Ask, BitsOfRule, Write};
use crate::limits::{MAX_BIT_NAME, MAX_TESTS};
use std::sync::Arc;

/// `flowbits:noalert`, or what is done with a bit and its name. Questions may name several bits.
pub fn read(value: &str, bits: &mut BitsOfRule, is_silent: &mut bool) -> Result<(), Fault> {
    let (what, names) = value.split_once(',').unwrap_or((value, ""));
    let (what, names) = (what.trim(), names.trim());
    let write = match what {
        "noalert" if names.is_empty() => {
            *is_silent = true;
            return Ok(());
        }
        "isset" | "isnotset" => {
            let names = names.split('|').map(name).collect::<Result<_, _>>()?;
            bits.asks.push(Ask { is_set: what == "isset", names });
            return bounded(bits);
        }
        "set" => Write::Set,
        "unset" => Write::Unset,
        "toggle" => Write::Toggle,
        _ => {
            let why = "set, unset, toggle, isset or isnotset with a name, or noalert";
            return Err(Fault::wrong("flowbits", why));
        }
    };
    bits.writes.push((write, name(names)?));
    bounded(bits)
}

fn bounded(bits: &BitsOfRule) -> Result<(), Fault> {
    match bits.names() > MAX_TESTS {
        true => {
            let why = format!("a rule names at most {MAX_TESTS} bits");
            Err(Fault::wrong("flowbits", why))
        }
        false => Ok(()),
    }
}

fn name(text: &str) -> Result<Arc<str>, Fault> {
    let name = text.trim();
    match name.is_empty() || name.contains([',', '|']) || name.contains(char::is_whitespace) {
        true => Err(Fault::wrong("flowbits", format!("`{name}` is no name"))),
        false if name.len() > MAX_BIT_NAME => {
            Err(Fault::wrong("flowbits", format!("a name has at most {MAX_BIT_NAME} bytes")))
        }
        false => Ok(name.into()),
    }
}
