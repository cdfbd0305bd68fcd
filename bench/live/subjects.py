"""What is measured: programs that forward packets from lan0 to wan0."""

import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import chains
from bed import cores, receive_on


class Absent(Exception):
    """A peer that is not there, or does not run here, with the reason."""


class Subject:
    """A device under test. `start` makes a bed's namespace one, `stop` ends its process."""

    process = None
    # A program that asks for packets all the time: its time a packet says nothing.
    polls = False

    def __init__(self, name, length=0, workers=1):
        self.name, self.length, self.workers = name, length, workers
        self.notes = []

    def start(self, bed):
        raise NotImplementedError

    def stop(self, bed):
        """What the program reports at its end."""
        return None


class Kernel(Subject):
    """The kernel forwards, by nftables where the chain has a length. It receives by threads, or as
    it does by default: by soft interrupts, whose time is nobody's."""

    def __init__(self, name, length=0, threads=True):
        super().__init__(name, length)
        self.threads = threads

    def start(self, bed):
        for device, address in (("lan0", "10.0.0.1"), ("wan0", "203.0.113.1")):
            bed.ip("dut", "addr", "add", f"{address}/24", "dev", device)
        bed.ip("dut", "route", "add", "default", "via", "203.0.113.254")
        bed.run("dut", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        # Neighbours that the kernel looks for find the generator's host.
        for backend in chains.BACKENDS:
            bed.ip("gen", "addr", "add", f"{backend}/24", "dev", "gen1")
        if self.length:
            bed.run("dut", "nft", chains.nft(self.length))
            bed.run("dut", "sysctl", "-qw", "net.netfilter.nf_conntrack_acct=1")
        if self.threads:
            bed.with_napi()
            bed.receive(cores(1))
        for device in () if self.threads else ("lan0", "wan0"):
            receive_on(bed, "dut", device, cores(1)[0])


class Braid(Subject):
    """`braid run` on both devices by one kind of port."""

    def __init__(self, command, kind, length, workers):
        super().__init__(f"braid_{kind}", length, workers)
        self.command, self.kind = command, kind
        self.folder = Path(tempfile.mkdtemp(prefix="braid-bench-"))

    def start(self, bed):
        for backend in chains.BACKENDS:
            bed.ip("gen", "addr", "add", f"{backend}/24", "dev", "gen1")
        for file, text in chains.braid(self.length).items():
            (self.folder / file).write_text(text)
        if self.kind != "xdp":
            bed.with_napi()
        on = cores(self.workers)
        words = ["taskset", "-c", ",".join(map(str, on)), self.command, "run",
                 str(self.folder / "bench.braid"), "--json"]
        if self.workers > 1:
            words += ["--workers", str(self.workers)]
        for end in ("lan", "wan"):
            words += ["--if", f"{end}={self.kind}:{end}0"]
        self.process = bed.start("dut", *words, stderr=subprocess.PIPE)
        said = ""
        for line in self.process.stderr:
            said += line
            if "running on" in line:
                break
        else:
            self.process = None
            raise Absent((said.strip() or "it ended without a word").splitlines()[0])
        self.notes = [line.removeprefix("braid: ").removesuffix("; Ctrl-C ends it")
                      for line in said.strip().splitlines()]
        bed.receive(on)

    def stop(self, bed):
        shutil.rmtree(self.folder, ignore_errors=True)
        if not self.process:
            return None
        self.process.send_signal(2)
        out, err = self.process.communicate(timeout=30)
        if self.process.returncode != 0:
            raise AssertionError(f"braid ended with {self.process.returncode}: {err}")
        report = json.loads(out)
        keys = ("packets_in", "packets_out", "drops", "lost", "warnings")
        return {key: report[key] for key in keys}


class Testpmd(Subject):
    """DPDK's forwarder, which writes MAC addresses and does nothing else."""

    polls = True

    def start(self, bed):
        need("dpdk-testpmd", "dpdk-dev")
        if len(cores(1)) != 1:
            raise Absent("it needs a core of its own")
        bed.with_napi()
        bed.receive(cores(1))
        ports = [word for at, device in enumerate(("lan0", "wan0"))
                 for word in ("--vdev", f"net_af_packet{at},iface={device}")]
        self.process = bed.start("dut", *testpmd(ports, 600), stderr=subprocess.STDOUT)
        pause(self.process, 2)

    def stop(self, bed):
        end(self.process)


def testpmd(ports, period):
    """DPDK's forwarder on these ports, which prints its counters every `period` seconds. Without
    them, it would wait for a key and end."""
    eal = ["--lcores", "0@1,1@1", "--no-huge", "-m", "256", "--no-pci", "--file-prefix", "braid"]
    own = ["--forward-mode=mac", "--auto-start", "--stats-period", str(period),
           "--total-num-mbufs=16384"]
    return ["dpdk-testpmd", *eal, *ports, "--", *own]


class Xdp(Subject):
    """An XDP program that sends each frame on to the other device (xdp-tools)."""

    def start(self, bed):
        need("xdp-bench", "xdp-tools")
        # Frames of XDP programs reach a veth device only if it has NAPI.
        bed.run("gen", "ethtool", "-K", "gen1", "gro", "on")
        bed.run("dut", "ethtool", "-K", "wan0", "gro", "on")
        self.process = bed.start("dut", "xdp-bench", "redirect", "lan0", "wan0",
                                 stderr=subprocess.STDOUT)
        pause(self.process, 1)
        bed.receive(cores(1))

    def stop(self, bed):
        end(self.process)


class FastClick(Subject):
    """FastClick as a wire between the devices."""

    polls = True

    def start(self, bed):
        need("click", "FastClick, which no distribution has (bench/peers/README.md)")
        bed.with_napi()
        wire = "FromDevice(lan0, PROMISC true) -> Queue -> ToDevice(wan0); " \
               "FromDevice(wan0, PROMISC true) -> Queue -> ToDevice(lan0)"
        self.process = bed.start("dut", "taskset", "-c", "1", "click", "-e", wire,
                                 stderr=subprocess.STDOUT)
        pause(self.process, 2)
        bed.receive(cores(1))

    def stop(self, bed):
        end(self.process)


def need(command, package):
    if not shutil.which(command):
        raise Absent(f"{command} is not installed ({package})")


def pause(process, seconds):
    """Waits for a program that does not say when it is ready. It is absent if it ends."""
    time.sleep(seconds)
    if process.poll() is not None:
        lines = [line.strip() for line in process.stdout.read().splitlines() if line.strip()]
        raise Absent("it does not run here: " + (lines[-1] if lines else "it says nothing"))


def end(process):
    """Interrupts a program, and kills it if it does not end."""
    if process and process.poll() is None:
        process.send_signal(2)
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def testpmd_null(seconds):
    """Packets a second that DPDK's forwarder moves between two devices that exist in memory."""
    need("dpdk-testpmd", "dpdk-dev")
    ports = ["--vdev", "net_null0", "--vdev", "net_null1"]
    words = ["timeout", "-s", "INT", str(2 + seconds), *testpmd(ports, 1)]
    out = subprocess.run(words, capture_output=True, text=True).stdout
    lines = [line.split() for line in out.splitlines()]
    rates = [int(words[1]) for words in lines if words[:1] == ["Tx-pps:"]]
    if not rates:
        raise Absent("it does not run here: " + (out.strip() or "it says nothing").splitlines()[-1])
    # Two ports a second; the first second is not whole.
    return {"pps": sum(rates[-2:])}
