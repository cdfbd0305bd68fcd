//! DPDK's environment (EAL), which a process starts once, when it opens its first device.

use super::calls::{
    braid_dpdk_is_physical, braid_dpdk_messages, braid_dpdk_start, braid_dpdk_version,
};
use crate::port::OpenError;
use rustix::thread::sched_getaffinity;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::{fs, io};

/// The memory that DPDK may use where there are no huge pages, in MiB. The system provides only the
/// memory that is used.
const ORDINARY_MIB: u64 = 512;

/// The least amount of free huge pages with which DPDK uses them (bytes).
const ENOUGH_HUGE: u64 = 128 << 20;

/// The mode in which DPDK runs.
#[derive(Clone, Copy)]
pub(crate) struct Eal {
    /// Its memory is in huge pages.
    pub(crate) has_huge_pages: bool,
    /// Devices see physical addresses, so that no frame may lie in two pages.
    pub(crate) is_physical: bool,
}

impl Eal {
    /// Starts DPDK for these devices unless it runs. Drivers of network cards (PCI) take the
    /// devices that they are given at the first start, and no others.
    ///
    /// # Errors
    /// When DPDK cannot be started. It is not started again.
    pub(crate) fn start<'n>(devices: impl Iterator<Item = &'n str>) -> Result<Self, OpenError> {
        static STARTED: OnceLock<Result<Eal, String>> = OnceLock::new();
        STARTED.get_or_init(|| start(devices)).clone().map_err(OpenError::Dpdk)
    }
}

/// The release of DPDK, such as `DPDK 22.11.11`.
pub(crate) fn version() -> String {
    // SAFETY: the function returns a constant text that ends with a zero.
    let version = unsafe { CStr::from_ptr(braid_dpdk_version()) };
    version.to_string_lossy().into_owned()
}

fn start<'n>(devices: impl Iterator<Item = &'n str>) -> Result<Eal, String> {
    let has_huge_pages = free_huge() >= ENOUGH_HUGE;
    let mut words = vec!["braid".to_owned()];
    words.push("--no-telemetry".to_owned());
    // DPDK's own thread may run on all processors of this thread. By default, DPDK would pin it to
    // one processor.
    words.push(format!("--lcores=0@({})", processors()));
    // No files for other processes, so that several Braids run side by side.
    if has_huge_pages {
        // Few pieces of memory, because a vhost socket passes on at most eight.
        words.extend(["--in-memory", "--single-file-segments"].map(str::to_owned));
    } else {
        words.extend(["--no-huge", "--no-shconf", "-m"].map(str::to_owned));
        words.push(ORDINARY_MIB.to_string());
    }
    let cards: Vec<_> = devices.filter(|name| is_card(name)).collect();
    words.extend(cards.iter().map(|name| format!("--allow={name}")));
    if cards.is_empty() {
        words.push("--no-pci".to_owned());
    }
    let words = words.into_iter().filter_map(|word| CString::new(word).ok());
    // DPDK keeps the words.
    let mut words: Vec<_> = words.map(CString::into_raw).collect();
    let count = i32::try_from(words.len()).unwrap_or(0);
    // SAFETY: there are `count` words. Each ends with a zero, and none is ever freed. `OnceLock`
    // calls this function once.
    let started = unsafe { braid_dpdk_start(count, words.as_mut_ptr()) };
    if started != 0 {
        let pages = if has_huge_pages { "with" } else { "without" };
        return Err(format!("DPDK cannot be started {pages} huge pages: {}", why(started)));
    }
    // Messages without an error are for developers of drivers.
    messages();
    // SAFETY: DPDK runs.
    let is_physical = unsafe { braid_dpdk_is_physical() } != 0;
    Ok(Eal { has_huge_pages, is_physical })
}

/// Whether a device is named by a PCI address, such as `0000:03:00.0` or `03:00.0`.
fn is_card(name: &str) -> bool {
    let address = name.split(',').next().unwrap_or_default();
    let digits = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.');
    address.contains(':') && address.chars().all(digits)
}

/// The processors where this thread may run, as a list.
fn processors() -> String {
    let Ok(set) = sched_getaffinity(None) else { return "0".to_owned() };
    let found = (0..1024).filter(|processor| set.is_set(*processor));
    found.map(|processor| processor.to_string()).collect::<Vec<_>>().join(",")
}

/// The bytes of huge pages that are free.
fn free_huge() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let number = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    number("HugePages_Free:").saturating_mul(number("Hugepagesize:") << 10)
}

/// DPDK's messages since the last call.
pub(super) fn messages() -> String {
    let mut text = vec![0; 4096];
    // SAFETY: `text` has this length, and nothing else borrows it.
    let length = unsafe { braid_dpdk_messages(text.as_mut_ptr(), text.len()) };
    text.truncate(length);
    String::from_utf8_lossy(&text).into_owned()
}

/// An error in DPDK's own words: its first message, which is closest to the cause.
pub(super) fn why(error: i32) -> String {
    let messages = messages();
    let first = messages.lines().map(str::trim).find(|line| !line.is_empty());
    first.map_or_else(|| io::Error::from_raw_os_error(-error).to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::is_card;

    #[test]
    fn cards_are_told_from_virtual_devices() {
        assert!(["0000:03:00.0", "03:00.0", "0000:af:00.1,arg=1"].into_iter().all(is_card));
        assert!(!["net_null0", "net_pcap0,rx_pcap=a:b", "fade", ""].into_iter().any(is_card));
    }
}
