//! Describes the machine for readers of results, and reads the memory use of this process.

use std::fs;

/// Facts about the machine, in the order in which they are shown.
#[must_use]
pub fn describe() -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut add = |name, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push((name, value));
        }
    };
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    add("processor", field(&cpu, "model name"));
    let cores = cpu.lines().filter(|line| line.starts_with("processor")).count();
    add("cores", (cores > 0).then(|| cores.to_string()));
    add("MHz", field(&cpu, "cpu MHz"));
    for (name, index) in [("L1 data cache", 0), ("L2 cache", 2), ("L3 cache", 3)] {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        add(name, line(&path));
    }
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    add("memory", field(&memory, "MemTotal"));
    add("kernel", line("/proc/sys/kernel/osrelease"));
    add("frequency governor", line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    add("load average at the start", line("/proc/loadavg"));
    add("braid", Some(format!("{} ({})", env!("CARGO_PKG_VERSION"), build())));
    facts
}

/// How this program was compiled. Times of unoptimised builds have no meaning.
#[must_use]
pub fn build() -> &'static str {
    if cfg!(debug_assertions) { "debug build: times are meaningless" } else { "release build" }
}

/// The resident memory of this process in bytes. `None` if the system does not report it.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    status("VmRSS")
}

/// The largest resident memory that this process has had so far, in bytes. `None` if the system
/// does not report it.
#[must_use]
pub fn peak_bytes() -> Option<u64> {
    status("VmHWM")
}

fn status(key: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let value = field(&text, key)?;
    value.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The value of the first line of the form `key : value`.
fn field(text: &str, key: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let mut found = lines.filter(|(name, _)| name.trim() == key);
    found.next().map(|(_, value)| value.trim().to_owned())
}

fn line(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "cpu MHz\t\t: 2600.0\nmodel name\t: A: B\nmodel\t: 2\n";
        assert_eq!(field(text, "model").unwrap(), "2");
        assert_eq!(field(text, "model name").unwrap(), "A: B");
        assert_eq!(field(text, "mod"), None);
    }

    #[test]
    fn peak_is_at_least_what_is_resident() {
        let (Some(peak), Some(now)) = (peak_bytes(), resident_bytes()) else { return };
        assert!(peak >= now / 2 && now > 100_000, "{peak} {now}");
    }
}
