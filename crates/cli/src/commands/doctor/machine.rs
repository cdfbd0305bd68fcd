//! The machine: kernel, privileges, limits, memory.

use std::fs;
use std::io;
use std::thread;

use braid_io::Filter;
use braid_ir::steering::Steering;
use braid_runtime::steering_program;

use super::finding::Finding;

/// The oldest kernel that live runs are made for.
const KERNEL: (u32, u32) = (5, 15);

/// Capabilities with their numbers, and what needs them.
const CAPABILITIES: [(u32, &str, &str); 3] = [
    (13, "cap_net_raw", "af_packet and xdp"),
    (12, "cap_net_admin", "xdp and tap"),
    (39, "cap_bpf", "xdp, and af_packet with several workers"),
];
/// Locks memory without a limit.
const IPC_LOCK: u32 = 14;
/// Includes CAP_BPF.
const SYS_ADMIN: u32 = 21;

/// The memory that AF_XDP sockets of a device with a few queues need.
const LOCKED: u64 = 64 << 20;

/// The size of the queue of a packet socket.
const QUEUE: u64 = 8 << 20;

pub(super) fn findings() -> Vec<Finding> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let has = capabilities(&read("/proc/self/status"));
    vec![
        kernel(&read("/proc/sys/kernel/osrelease")),
        privileges(has),
        af_xdp(braid_io::has_xdp()),
        steering(steers().as_ref().err()),
        jit(&read("/proc/sys/net/core/bpf_jit_enable")),
        locked_memory(&read("/proc/self/limits"), has),
        queue(&read("/proc/sys/net/core/rmem_max"), has),
        tap(fs::exists("/dev/net/tun").unwrap_or(false)),
        huge_pages(&read("/proc/meminfo")),
        dpdk(braid_io::dpdk_version()),
        processors(thread::available_parallelism().map_or(1, usize::from)),
    ]
}

fn kernel(release: &str) -> Finding {
    let release = release.trim();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().ok());
    let version = (numbers.next().flatten(), numbers.next().flatten());
    match version {
        (Some(major), Some(minor)) if (major, minor) >= KERNEL => Finding::ok("kernel", release),
        (Some(_), Some(_)) => Finding::problem(
            "kernel",
            format!("Linux {release} lacks parts of AF_XDP"),
            "use Linux 5.15 or newer; af_packet and tap need 4.20",
        ),
        _ => Finding::problem("kernel", "not Linux, or /proc is missing", "mount /proc"),
    }
}

/// The effective capabilities, as a set of bits.
fn capabilities(status: &str) -> u64 {
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

fn has_capability(set: u64, number: u32) -> bool {
    set >> number & 1 == 1
}

fn privileges(set: u64) -> Finding {
    let lacks = |number| {
        let is_included = number == 39 && has_capability(set, SYS_ADMIN);
        !has_capability(set, number) && !is_included
    };
    let missing: Vec<_> = CAPABILITIES.iter().filter(|(number, ..)| lacks(*number)).collect();
    if missing.is_empty() {
        return Finding::ok("privileges", "all that live runs need");
    }
    let texts = missing.iter().map(|(_, name, needs)| format!("{name} ({needs})"));
    // `setcap` takes away what it does not name.
    let names = CAPABILITIES.map(|(_, name, _)| name);
    Finding::problem(
        "privileges",
        format!("this process lacks {}", texts.collect::<Vec<_>>().join(", ")),
        format!("run as root, or once `sudo setcap {}+ep $(command -v braid)`", names.join(",")),
    )
}

fn af_xdp(has: Option<bool>) -> Finding {
    match has {
        Some(true) => Finding::ok("af_xdp", "the kernel has it"),
        Some(false) => Finding::problem(
            "af_xdp",
            "the kernel has no AF_XDP sockets",
            "use a kernel with CONFIG_XDP_SOCKETS=y, or af_packet",
        ),
        None => Finding::note("af_xdp", "unknown without cap_net_raw", None),
    }
}

/// Loads a program that gives packets to workers.
fn steers() -> io::Result<()> {
    let program = steering_program(&Steering::by_connection(), 0, 2).unwrap_or_default();
    Filter::load(&program).map(drop)
}

fn steering(refused: Option<&io::Error>) -> Finding {
    let Some(why) = refused else {
        return Finding::ok("steering", "with several workers, af_packet gives each its packets");
    };
    Finding::note(
        "steering",
        format!(
            "no BPF program can be loaded ({why}): several workers of af_packet pass packets on to \
             each other"
        ),
        "run as root, or once `sudo setcap cap_net_raw,cap_bpf+ep $(command -v braid)`; a container \
         needs the capability BPF, and a seccomp profile with the system call bpf"
            .to_owned(),
    )
}

fn jit(setting: &str) -> Finding {
    match setting.trim() {
        "1" | "2" => Finding::ok("bpf jit", "on"),
        // Without privileges, the setting cannot be read.
        "" => Finding::note("bpf jit", "unknown", None),
        _ => Finding::note(
            "bpf jit",
            "off: BPF programs are interpreted",
            "sudo sysctl net.core.bpf_jit_enable=1".to_owned(),
        ),
    }
}

fn locked_memory(limits: &str, set: u64) -> Finding {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    let soft = line.and_then(|line| line.split_whitespace().next()).unwrap_or("unlimited");
    let bytes = soft.parse::<u64>().unwrap_or(u64::MAX);
    if has_capability(set, IPC_LOCK) {
        Finding::ok("memlock", "no limit for this process (cap_ipc_lock)")
    } else if bytes >= LOCKED {
        Finding::ok("memlock", format!("{soft} bytes"))
    } else {
        Finding::problem(
            "memlock",
            format!("{} KiB of locked memory are too few for xdp", bytes >> 10),
            "`ulimit -l unlimited` in the shell that starts braid, or give it cap_ipc_lock",
        )
    }
}

fn queue(most: &str, set: u64) -> Finding {
    let bytes = most.trim().parse::<u64>().unwrap_or(u64::MAX);
    if has_capability(set, 12) || bytes >= QUEUE {
        return Finding::ok("rmem_max", "large enough for long frames");
    }
    Finding::note(
        "rmem_max",
        format!("{} KiB: segments in one frame may be lost under load", bytes >> 10),
        format!("sudo sysctl net.core.rmem_max={QUEUE}"),
    )
}

fn tap(exists: bool) -> Finding {
    if exists {
        Finding::ok("tap", "/dev/net/tun exists")
    } else {
        Finding::note(
            "tap",
            "/dev/net/tun is missing: no TAP devices",
            "sudo modprobe tun".to_owned(),
        )
    }
}

fn huge_pages(meminfo: &str) -> Finding {
    let number = |key: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    let (total, free) = (number("HugePages_Total:"), number("HugePages_Free:"));
    let kib = number("Hugepagesize:");
    if total > 0 {
        return Finding::ok("huge pages", format!("{free} of {total} free, {kib} KiB each"));
    }
    Finding::note(
        "huge pages",
        "none; live runs work without huge pages, with more TLB misses",
        "sudo sysctl vm.nr_hugepages=128".to_owned(),
    )
}

fn dpdk(version: Option<String>) -> Finding {
    match version {
        Some(version) => Finding::ok("dpdk", format!("built in: {version}")),
        None => Finding::note("dpdk", "not built in", braid_io::HOW_TO_GET_DPDK.to_owned()),
    }
}

fn processors(count: usize) -> Finding {
    match count {
        1 => Finding::note("processors", "1: Braid shares it with the kernel", None),
        count => Finding::ok("processors", count.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Health::{Note, Ok, Problem};
    use super::*;

    #[test]
    fn kernels_from_5_15_on_are_new_enough() {
        for (release, health) in [
            ("5.15.0-91-generic\n", Ok),
            ("6.1.0", Ok),
            ("5.14.21", Problem),
            ("4.19", Problem),
            ("", Problem),
        ] {
            assert_eq!(kernel(release).health, health, "{release}");
        }
    }

    #[test]
    fn missing_capabilities_are_named_with_their_remedy() {
        assert_eq!(privileges(u64::MAX).health, Ok);
        assert_eq!(capabilities("Name:\tx\nCapEff:\t0000000000002000\n"), 1 << 13);
        let found = privileges(1 << 13);
        assert_eq!(
            found.text,
            "this process lacks cap_net_admin (xdp and tap), cap_bpf (xdp, and af_packet with \
             several workers)"
        );
        assert!(found.remedy.unwrap().contains("setcap cap_net_raw,cap_net_admin,cap_bpf+ep"));
        // CAP_SYS_ADMIN includes CAP_BPF.
        assert_eq!(privileges(1 << 12 | 1 << 13 | 1 << 21).health, Ok);
    }

    #[test]
    fn small_limits_are_found() {
        let limits =
            |soft| format!("Max cpu time  1 1 s\nMax locked memory  {soft}  8388608  bytes\n");
        assert_eq!(locked_memory(&limits("8388608"), 0).health, Problem);
        assert_eq!(locked_memory(&limits("8388608"), 1 << 14).health, Ok);
        assert_eq!(locked_memory(&limits("unlimited"), 0).health, Ok);
        assert_eq!(locked_memory(&limits("67108864"), 0).health, Ok);
        assert_eq!(queue("212992\n", 0).health, Note);
        assert_eq!(queue("212992\n", 1 << 12).health, Ok);
    }

    #[test]
    fn huge_pages_are_counted() {
        let some = "HugePages_Total:   8\nHugePages_Free:    5\nHugepagesize:    2048 kB\n";
        assert_eq!(huge_pages(some).text, "5 of 8 free, 2048 KiB each");
        assert_eq!(huge_pages("MemTotal: 1 kB\n").health, Note);
    }

    #[test]
    fn what_is_missing_has_a_remedy() {
        let refused = io::Error::from_raw_os_error(1);
        for found in [
            af_xdp(Some(false)),
            steering(Some(&refused)),
            jit("0\n"),
            tap(false),
            dpdk(None),
            kernel("4.1"),
        ] {
            assert!(found.health != Ok && found.remedy.is_some(), "{found:?}");
        }
    }
}
