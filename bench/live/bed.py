"""The bed of the live bench: who is joined to whom, on which cores, and what a trial measures.

    generator (core 0) - gen0 ~ lan0 [device under test, core 1] wan0 ~ gen1 - receiver (core 0)

The kernel's work of receiving on lan0 and wan0 is done by threads of its own (threaded NAPI), which
are pinned to the cores of the device under test. So it counts there, for every subject alike, and
its time is known to the nanosecond whatever else the machine does."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent.parent / "tests" / "live"
sys.path.insert(0, str(TESTS))

from live import World, sh  # noqa: E402

SERVICE, PORT = "198.51.100.10", 5000
# The lengths of frames without their check sequence, which take turns.
SIZES = {
    "64": "60",
    # Seven of 64 bytes, four of 594, one of 1518.
    "imix": "60,590,60,60,590,60,1514,60,590,60,60,590",
    "1500": "1514",
}


def cores(workers):
    """The cores of the device under test. The generator has core 0 for itself where it can."""
    count = os.cpu_count() or 1
    return list(range(1, workers + 1)) if workers < count else list(range(count))


def pin(thread, on):
    """Puts a thread of the kernel on cores, with the priority that this program has."""
    subprocess.run(["taskset", "-pc", ",".join(map(str, on)), str(thread)], capture_output=True)
    os.setpriority(os.PRIO_PROCESS, thread, os.nice(0))


def receive_by_threads(world, on):
    """Gives receiving on lan0 and wan0 to threads of the kernel on these cores. Returns them. The
    devices must have NAPI by now: by an XDP program, or by GRO."""
    before = napi_threads()
    for device in ("lan0", "wan0"):
        write(world, "dut", f"/sys/class/net/{device}/threaded", 1)
    found = napi_threads() - before
    for thread in found:
        pin(thread, on)
    return found


def napi_threads():
    """All such threads of the machine. Their names do not tell their namespace."""
    return {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()
            and name_of(entry).startswith(("napi/lan0-", "napi/wan0-"))}


def receive_on(world, name, device, on):
    """Where a device has no NAPI, its packets are work for this core."""
    write(world, name, f"/sys/class/net/{device}/queues/rx-0/rps_cpus", f"{1 << on:x}")


def write(world, name, path, value):
    world.run(name, "sh", "-c", f"echo {value} > {path}")


class Bed(World):
    """The generator's namespace, the one of the device under test, and the wires between them."""

    def __init__(self, load):
        super().__init__("gen", "dut")
        self.load, self.receivers = load, set()

    def __enter__(self):
        super().__enter__()
        ends = (("lan0", "gen0", "10.0.0.2"), ("wan0", "gen1", "203.0.113.254"))
        for device, end, address in ends:
            self.pair("dut", device, "gen", end)
            self.ip("gen", "addr", "add", f"{address}/24", "dev", end)
            receive_on(self, "gen", end, 0)
        # Otherwise frames would bypass the NAPI of a device without an XDP program.
        self.run("gen", "ethtool", "-K", "gen0", "tso", "off")
        # The kernel behind the receiver has no use for the packets.
        self.run("gen", "nft", "add table netdev t; add chain netdev t c "
                 "{ type filter hook ingress device gen1 priority 0; }; "
                 "add rule netdev t c ip protocol udp drop")
        return self

    def with_napi(self):
        """Gives the devices NAPI where no XDP program does."""
        for device in ("lan0", "wan0"):
            self.run("dut", "ethtool", "-K", device, "gro", "on")

    def receive(self, on):
        self.receivers = receive_by_threads(self, on)

    def mac(self, device):
        return self.run("dut", "cat", f"/sys/class/net/{device}/address").strip()

    def counted(self, name, device, what):
        return int(self.run(name, "cat", f"/sys/class/net/{device}/statistics/{what}"))

    def trial(self, subject, rate, seconds, sizes, flows=1000):
        """Sends at a rate (0: as fast as the generator can). Returns what became of the packets,
        and the time that the device under test spent."""
        before = self.clocks(subject)
        sent = self.counted("gen", "gen0", "tx_packets")
        received = self.counted("gen", "gen1", "rx_packets")
        report = json.loads(self.run(
            "gen", "taskset", "-c", "0", self.load, "--from", "gen0", "--to", "gen1",
            "--mac", self.mac("lan0"), "--target", f"{SERVICE}:{PORT}", "--sizes", sizes,
            "--flows", str(flows), "--rate", str(int(rate)), "--for", str(seconds)))
        after = self.clocks(subject)
        report["device_sent"] = self.counted("gen", "gen0", "tx_packets") - sent
        report["device_received"] = self.counted("gen", "gen1", "rx_packets") - received
        count = max(report["received"], 1)
        spent = {key: after[key] - before[key] for key in after}
        system = spent.pop("system") / max(spent.pop("ticks"), 1)
        report["cpu_ns"] = {key: round(time / count) for key, time in spent.items()}
        report["cpu_ns"]["system"] = round(report["cpu_ns"]["process"] * system)
        report["rate"] = int(rate)
        return report

    def idle(self, subject, seconds):
        """The part of a core that the subject's process uses without packets, in per cent."""
        if not subject.process:
            return None
        # The last packets, and what the kernel sends by itself, are long past.
        time.sleep(0.5)
        before = self.clocks(subject)["process"]
        time.sleep(seconds)
        return round((self.clocks(subject)["process"] - before) / seconds / 1e7, 2)

    def clocks(self, subject):
        """The time (ns) that was spent so far on the kernel's receiving and on the process. The
        kernel also counts ticks of the process, and which of them fell into system calls."""
        receive = sum(ran(f"/proc/{thread}") for thread in self.receivers)
        process, user, system = 0, 0, 0
        if subject.process:
            folder = Path(f"/proc/{subject.process.pid}")
            process = sum(ran(task) for task in (folder / "task").iterdir())
            # Fields 14 and 15, after the name in brackets: ticks in user and system mode.
            user, system = map(int, (folder / "stat").read_text().rpartition(")")[2].split()[11:13])
        return {"receive": receive, "process": process, "ticks": user + system, "system": system}


def name_of(entry):
    try:
        return (entry / "comm").read_text()
    except OSError:
        return ""


def ran(task):
    """The time (ns) that a thread has spent on a processor."""
    try:
        return int(Path(f"{task}/schedstat").read_text().split()[0])
    except OSError:
        return 0


def facts(braid):
    """What readers need to know of the machine."""
    def first(path, key):
        lines = (line.split(":", 1) for line in Path(path).read_text().splitlines() if ":" in line)
        return next((value.strip() for name, value in lines if name.strip() == key), "")

    def git(*words):
        done = subprocess.run(["git", *words], capture_output=True, text=True, cwd=HERE)
        return done.stdout.strip()

    return {
        "kernel": os.uname().release,
        "processor": first("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory": first("/proc/meminfo", "MemTotal"),
        "load_average": Path("/proc/loadavg").read_text().split()[0],
        "commit": git("describe", "--always", "--dirty= and changes", "--abbrev=12"),
        "braid": sh(braid, "--version").strip(),
        "pinning": "generator and receiver on core 0, device under test on core 1; "
                   "with more workers than free cores, the device under test on all cores",
    }
