//! `braid run --if`: live interfaces.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use braid_io::{Device, Precision};
use braid_ir::chain::Chain;
use braid_lang::diag::did_you_mean_help;
use braid_runtime::Summary;
use braid_runtime::live::{Limits, Live, Port};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::{Args, create, failure};
use crate::answer::Failure;
use crate::captures::{self, Named};
use crate::output::tell;

/// Units of durations on the command line, in nanoseconds.
const UNITS: [(&str, u64); 6] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("min", 60_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("s", 1_000_000_000),
];

/// A duration such as `90s`, `10m`, `500ms`; a number alone is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let unit = UNITS.iter().find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, *ns)));
    let (number, unit_ns) = unit.unwrap_or((text, 1_000_000_000));
    let number: u64 = number
        .trim_end()
        .parse()
        .map_err(|_| format!("`{text}` is no duration such as 90s, 10m, 500ms"))?;
    Ok(Duration::from_nanos(number.saturating_mul(unit_ns)))
}

/// Opens the devices that `--if` names.
pub fn open(texts: &[String], chain: &Chain) -> Result<Vec<Port>, Failure> {
    let named = texts.iter().map(|text| named(text, chain)).collect::<Result<Vec<_>, _>>()?;
    for (at, (interface, device)) in named.iter().enumerate() {
        let name = &chain.interfaces[usize::from(*interface)].name;
        let before = &named[..at];
        if before.iter().any(|(other, _)| other == interface) {
            return Err(Failure::usage(format!("interface `{name}` is given two devices")));
        }
        if before.iter().any(|(_, other)| other == device) {
            return Err(Failure::usage(format!("{device} is given to two interfaces")));
        }
    }
    named
        .into_iter()
        .map(|(interface, device)| {
            let name = device.to_string();
            let device = device.open().map_err(|why| Failure::input(format!("{name}: {why}")))?;
            Ok(Port { interface, name, device })
        })
        .collect()
}

/// `IF=KIND:DEVICE`
fn named(text: &str, chain: &Chain) -> Result<(u16, Device), Failure> {
    let names = || chain.interfaces.iter().map(|interface| interface.name.as_str());
    let (name, device) = text.split_once('=').ok_or_else(|| {
        Failure::usage(format!(
            "--if `{text}`: expected IF=KIND:DEVICE, such as lan=af_packet:eth0"
        ))
    })?;
    let interface = (0..).zip(names()).find(|(_, known)| *known == name).map(|(number, _)| number);
    let interface = interface.ok_or_else(|| {
        let help = did_you_mean_help(name, names()).unwrap_or_else(|| {
            format!("its interfaces are {}", names().collect::<Vec<_>>().join(", "))
        });
        Failure::usage(format!("the chain `{}` has no interface `{name}`; {help}", chain.name))
    })?;
    let device = device.parse().map_err(|why| Failure::usage(format!("--if {why}")))?;
    Ok((interface, device))
}

/// Runs until Ctrl-C or a limit. A second Ctrl-C ends the process at once.
pub fn drive(
    args: &Args,
    mut run: Live<'_>,
    ports: Vec<Port>,
    outputs: Vec<Named>,
) -> Result<Summary, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The first registered acts first: it finds the flag only from the second signal on.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .map_err(|why| Failure::input(format!("signals cannot be caught: {why}")))?;
    }
    for Named { interface, path } in outputs {
        let sink = captures::create(&path, Precision::Nano)?;
        run = run.output(path.display().to_string(), interface, sink);
    }
    if let Some(path) = &args.events_out {
        run = run.events(create(path)?);
    }
    let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
    let end = if args.time.is_some() || args.packets.is_some() { "" } else { "; Ctrl-C ends it" };
    tell(format!("braid: running on {}{end}\n", names.join(" and ")));
    for port in ports {
        run = run.port(port);
    }
    let limits = Limits { time: args.time, packets: args.packets };
    run.limits(limits).run(&stop).map_err(|error| failure(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_or_are_seconds() {
        for (text, ms) in [("90s", 90_000), ("500ms", 500), ("2m", 120_000), ("2min", 120_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        assert_eq!(duration("3us"), Ok(Duration::from_micros(3)));
        for wrong in ["", "s", "1.5s", "-1s", "5 days", "1 h 3"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
