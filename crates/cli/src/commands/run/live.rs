//! `braid run --if`: live interfaces.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use braid_io::{Device, Faults, Faulty, Share, Steer, pool_for};
use braid_ir::chain::{Chain, Control};
use braid_ir::snapshot::Snapshot;
use braid_lang::diag::did_you_mean_help;
use braid_lang::duration_unit_ns;
use braid_runtime::live::{Attached, Done, Filter, Flags, Live, Operator, Ports, Traced};
use braid_runtime::{Engines, RefusedChange, Summary, steering_program};
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;

use super::kept::Kept;
use crate::answer::Failure;
use crate::commands::{flows, trace};
use crate::engines;
use crate::filter::filter;
use crate::load::{self, Choice};
use crate::native;
use crate::output::{tell, warn};
use crate::summary::{summary, warn_refused};

/// Parses a duration in the notation of the language (`90 s`, `500ms`), also with a decimal point.
/// A number without a unit is in seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration such as 90s, 1.5s, 10m, 500ms");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ns = match unit.trim_start() {
        "" => duration_unit_ns("s"),
        "m" => duration_unit_ns("min"),
        unit => duration_unit_ns(unit),
    };
    let unit_ns = unit_ns.ok_or_else(wrong)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u128 = whole.parse().map_err(|_| wrong())?;
    let decimals = u32::try_from(fraction.len()).ok().filter(|count| (1..=9).contains(count));
    let scale = 10_u128.pow(decimals.ok_or_else(wrong)?);
    let fraction: u128 = fraction.parse().map_err(|_| wrong())?;
    let all_ns = whole.saturating_mul(unit_ns).saturating_add(fraction * unit_ns / scale);
    Ok(Duration::from_nanos(u64::try_from(all_ns).unwrap_or(u64::MAX)))
}

/// Parses a duration longer than 0.
pub fn period(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("a period must be longer than 0".to_owned()),
        period => Ok(period),
    }
}

/// The devices of a run.
pub struct Devices {
    /// For each worker.
    pub ports: Vec<Ports>,
    /// Their names on the command line.
    pub kinds: Vec<Device>,
}

/// Opens the devices that `--if` names, with injected faults: for each worker.
pub fn open(texts: &[String], faults: Option<Faults>, chain: &Chain) -> Result<Devices, Failure> {
    let named = texts.iter().map(|text| named(text, chain)).collect::<Result<Vec<_>, _>>()?;
    for (at, (interface, device)) in named.iter().enumerate() {
        let name = &chain.interfaces[usize::from(*interface)].name;
        let before = &named[..at];
        if before.iter().any(|(other, _)| other == interface) {
            return Err(Failure::usage(format!("interface `{name}` is given two devices")));
        }
        if device.is_exclusive() && before.iter().any(|(_, other)| other == device) {
            return Err(Failure::usage(format!("{device} is given to two interfaces")));
        }
    }
    let devices: Vec<Device> = named.iter().map(|(_, device)| device.clone()).collect();
    let shares: Vec<_> = named.iter().map(|(interface, _)| shares(chain, *interface)).collect();
    let worker = |worker: usize| {
        let pool = pool_for(devices.iter().zip(shares.iter().map(|shares| &shares[worker])));
        let mut pool = pool.map_err(|why| Failure::input(why.to_string()))?;
        let mut attached = Vec::new();
        for ((interface, device), shares) in named.iter().zip(&shares) {
            let name = device.to_string();
            let port = device.open(&mut pool, shares[worker].clone());
            let port = port.map_err(|why| Failure::input(format!("{name}: {why}")))?;
            let port = match faults {
                Some(faults) => Box::new(Faulty::new(port, faults)),
                None => port,
            };
            attached.push(Attached { interface: *interface, name, port });
        }
        Ok(Ports { pool, attached })
    };
    let ports = (0..usize::from(chain.workers.max(1))).map(worker);
    Ok(Devices { ports: ports.collect::<Result<_, Failure>>()?, kinds: devices })
}

/// The captures that the devices of `--if` read.
pub fn captures(texts: &[String], chain: &Chain) -> Result<Vec<PathBuf>, Failure> {
    let devices = texts.iter().map(|text| named(text, chain));
    let capture = |device| match device {
        Device::Memory(capture) => capture,
        Device::Replay(capture, _) => Some(capture),
        _ => None,
    };
    devices.filter_map(|found| found.map(|(_, device)| capture(device)).transpose()).collect()
}

/// The shares that the workers of a chain have of the device at an interface.
fn shares(chain: &Chain, interface: u16) -> Vec<Share> {
    let workers = chain.workers.max(1);
    let steering = chain.steering.clone();
    let program = steering_program(&steering, interface, workers);
    let steer: Steer =
        Arc::new(move |packet| steering.worker(packet, &packet.parse(), interface, workers).into());
    Share::all(workers.into(), &steer, program)
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

/// What a live run asks of this program.
pub struct Surroundings<'a> {
    pub file: &'a Path,
    pub choice: &'a Choice,
    pub engine: &'a str,
    pub check_native: bool,
    pub control: Option<&'a Path>,
    pub kept: Option<&'a mut Kept>,
}

impl Operator for Surroundings<'_> {
    fn changes(&mut self, text: &str, chain: &Chain) -> Result<Vec<Control>, String> {
        load::change(text, chain, self.file).map(|change| vec![change])
    }

    fn flows(
        &mut self,
        chain: &Chain,
        page: Box<dyn Any + Send>,
        contains: Option<&str>,
        as_text: bool,
    ) -> (Value, Option<usize>) {
        match page.downcast_ref() {
            Some(page) => flows::page(chain, page, contains, as_text),
            // No other engine has records.
            None => (Value::Null, None),
        }
    }

    fn present(&mut self, chain: &Chain, so_far: &Summary) -> String {
        summary(chain, so_far)
    }

    fn filter(&mut self, text: &str) -> Result<Filter, String> {
        filter(text)
    }

    fn traced(&mut self, number: u64, traced: Traced, as_text: bool) -> Result<Value, String> {
        trace::traced(number, traced, as_text)
    }

    fn refused(&mut self, changes: &[RefusedChange]) {
        warn_refused(self.control, changes);
    }

    fn tell(&mut self, text: &str) {
        tell(text);
    }

    fn load(&mut self) -> Result<(Chain, Engines), String> {
        let loaded = || {
            let mut chain = load::program(self.file)?.chain(self.choice)?;
            if self.check_native {
                native::check_records(&mut chain);
            }
            native::open_sockets(&chain).map_err(Failure::input)?;
            let engines = engines::live(self.engine, &chain)?;
            Ok((chain, engines))
        };
        loaded().map_err(|failure: Failure| failure.text)
    }

    fn save(&mut self, snapshot: &Snapshot) {
        if let Some(Err(why)) = self.kept.as_mut().map(|kept| kept.save(snapshot)) {
            warn(why);
        }
    }
}

/// Runs until a signal or a limit. A second Ctrl-C ends the process at once.
pub fn drive(
    mut run: Live<'_>,
    surroundings: &mut Surroundings<'_>,
    ports: Vec<Ports>,
    is_endless: bool,
) -> Result<Done, Failure> {
    let [stop, show, reload] = [
        signal_flag(&[SIGINT, SIGTERM], true)?,
        signal_flag(&[SIGUSR1], false)?,
        signal_flag(&[SIGHUP], false)?,
    ];
    let named = |Attached { name, port, .. }: &Attached| match port.facts() {
        Some(facts) => format!("{name} ({facts})"),
        None => name.clone(),
    };
    let devices = ports.first().map_or(&[][..], |ports| &ports.attached);
    let names: Vec<String> = devices.iter().map(named).collect();
    let workers = match ports.len() {
        1 => String::new(),
        count => format!(" with {count} workers"),
    };
    let end = if is_endless { "; Ctrl-C ends it" } else { "" };
    tell(format!("braid: running on {}{workers}{end}\n", names.join(" and ")));
    for ports in ports {
        run = run.ports(ports);
    }
    let done = run.run(surroundings, Flags { stop: &stop, show: &show, reload: &reload });
    done.map_err(|why| Failure::input(format!("the workers cannot start: {why}")))
}

/// A flag that each of these signals sets. SIGHUP stays ignored where it was ignored before, as
/// `nohup` does. With `ends`, the second signal ends the process.
pub fn signal_flag(signals: &[i32], ends: bool) -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    // Others may set the flag, too. This one only signals set.
    let was_caught = Arc::new(AtomicBool::new(false));
    let register = |signal: i32| -> io::Result<()> {
        if ends {
            // The conditional shutdown is registered first, so it acts first, and sees the flag
            // only from the second signal on.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&was_caught))?;
            flag::register(signal, Arc::clone(&was_caught))?;
        }
        flag::register(signal, Arc::clone(&flag))?;
        Ok(())
    };
    let mut signals = signals.iter().filter(|signal| **signal != SIGHUP || !is_ignored(SIGHUP));
    signals
        .try_for_each(|signal| register(*signal))
        .map_err(|why| Failure::input(format!("signals cannot be caught: {why}")))?;
    Ok(flag)
}

/// Whether this process ignores a signal. If the kernel does not tell, the signal counts as not
/// ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
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
        for wrong in ["", "s", "-1s", "5 days", "1 h 3", ".5s", "1.s", "1.2.3s", "1.5 KB"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_may_have_a_decimal_point_and_every_unit_of_the_language() {
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(duration("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5 min"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("20 ns"), Ok(Duration::from_nanos(20)));
        assert_eq!(duration("1d"), Ok(Duration::from_secs(86_400)));
    }

    /// Runs in a process of its own, because signals are for the whole process.
    #[test]
    #[ignore = "sends its process a signal"]
    fn child_that_is_hung_up() {
        // Under `nohup`, the signal is ignored, and must stay so.
        let is_ignored = is_ignored(SIGHUP);
        let stop = signal_flag(&[SIGHUP], true).unwrap();
        signal_hook::low_level::raise(SIGHUP).unwrap();
        assert_eq!(stop.load(std::sync::atomic::Ordering::Relaxed), !is_ignored);
    }

    #[test]
    fn hangup_sets_a_flag() {
        let child = "commands::run::live::tests::child_that_is_hung_up";
        let test = std::env::current_exe().unwrap();
        let args = ["--ignored", "--exact", child, "--nocapture"];
        let ended = std::process::Command::new(test).args(args).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
        assert!(String::from_utf8_lossy(&ended.stdout).contains("1 passed"), "{ended:?}");
    }
}
