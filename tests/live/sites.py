"""A client and a server in network namespaces, with Braid, or the kernel, between them.

client (10.0.0.2, fd00:1::2) - lan0 [braid] wan0 - server

The server has iperf3 and names at 203.0.113.10, pages at .11 and .12, and all at fd00:2::10."""

import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from live import HERE, World, expect, sh

SERVICE, BACKENDS = "198.51.100.10", ("203.0.113.11", "203.0.113.12")
# A host that is no backend.
OTHER, OTHER6 = "203.0.113.10", "fd00:2::10"
# The addresses of the gateways in between.
INSIDE, OUTSIDE = "10.0.0.1", "203.0.113.1"
CLIENT, CLIENT6 = "10.0.0.2", "fd00:1::2"
# What flaps and full queues may cost: TCP sends more until a queue is full. All other losses are
# defects.
EXCUSED = {"send_refused", "send_queue_full", "worker_queue_full"}


class Site(World):
    """The hosts with their programs, and a chain of this folder between them."""

    def __init__(self, braid, kind="af_packet", offload=True, chain="site", workers=1, rate=0):
        super().__init__("client", "braid", "server", ip6=True)
        # The bytes a second that each connection to the pages gets; 0: no limit.
        self.workers, self.rate = workers, rate
        self.command, self.kind, self.offload, self.chain = braid, kind, offload, chain
        self.folder = Path(tempfile.mkdtemp(prefix="braid-site-"))
        self.socket = self.folder / "ctl"
        # Of a TAP device, the client gets the other end.
        self.device = "lan0" if kind == "tap" else "eth0"

    def __enter__(self):
        super().__enter__()
        for file in HERE.iterdir():
            if file.suffix in (".braid", ".rules", ".routes"):
                shutil.copy(file, self.folder)
        if self.kind != "tap":
            self.pair("braid", "lan0", "client", "eth0", queues=self.workers)
            self.dress_client()
        self.pair("braid", "wan0", "server", "eth0", queues=self.workers)
        if not self.offload:
            for name in ("client", "server"):
                self.run(name, "ethtool", "-K", "eth0", "gso", "off", "tso", "off", "tx", "off")
        for address in (OTHER, *BACKENDS):
            self.ip("server", "addr", "add", f"{address}/24", "dev", "eth0")
        self.ip("server", "addr", "add", f"{OTHER6}/64", "dev", "eth0", "nodad")
        for route in (("10.0.0.0/24", "via", OUTSIDE), ("fd00:1::/64", "via", "fd00:2::1")):
            self.ip("server", "route", "add", *route)
        # Errors in a row go to the same host.
        self.run("server", "sysctl", "-qw", "net.ipv4.icmp_ratelimit=0",
                 "net.ipv6.icmp.ratelimit=0")
        self.serve_pages()
        self.serve_names()
        self.start("server", "iperf3", "-s")
        self.background("server", "echo", *BACKENDS)
        return self

    def __exit__(self, *why):
        super().__exit__(*why)
        shutil.rmtree(self.folder)

    def dress_client(self):
        self.ip("client", "link", "set", self.device, "up")
        self.ip("client", "addr", "add", f"{CLIENT}/24", "dev", self.device)
        self.ip("client", "addr", "add", f"{CLIENT6}/64", "dev", self.device, "nodad")
        self.ip("client", "route", "add", "default", "via", INSIDE)
        self.ip("client", "route", "add", "default", "via", "fd00:1::1")

    def serve_pages(self):
        """nginx on all backends, with a page of 100 kB."""
        (self.folder / "page").write_bytes(b"x" * 100_000)
        listens = "".join(f"listen {address}:80; " for address in (*BACKENDS, f"[{OTHER6}]"))
        self.nginx("server", self.folder, f"""
            server {{ {listens} location / {{ root {self.folder}; limit_rate {self.rate}; }} }}""")

    def serve_names(self):
        """dnsmasq, with one name, and one whose answer is too long for a datagram of 512 bytes."""
        long = [word for at in range(4) for word in ("--txt-record", f"long.test,{at}{'x' * 200}")]
        self.start("server", "dnsmasq", "-k", "-C", "/dev/null", "--no-resolv", "--no-hosts",
                   "--user=root", f"--pid-file={self.folder}/dns.pid",
                   f"--host-record=service.test,{SERVICE},{OTHER6}", *long)

    def braid(self, *more):
        """Starts Braid. Returns its process."""
        devices = ("--if", f"lan={self.port('lan0')}", "--if", f"wan={self.port('wan0')}")
        process = self.start(
            "braid", self.command, "run", str(self.folder / f"{self.chain}.braid"), *devices,
            "--ctl", str(self.socket), "--json", "--workers", str(self.workers), *more,
            stderr=open(self.folder / "err", "a"))
        for _ in range(1000):
            if self.socket.exists() and process.poll() is None:
                break
            time.sleep(0.02)
        else:
            raise OSError((self.folder / "err").read_text())
        if self.kind == "tap":
            self.ip("braid", "link", "set", "lan0", "netns", self.names["client"])
            self.dress_client()
        return process

    def port(self, device):
        """A device of this kind, as `--if` names it. A TAP device is on the client's side alone."""
        if self.kind == "dpdk":
            return f"dpdk:net_af_packet_{device},iface={device}"
        return f"{'af_packet' if self.kind == 'tap' and device == 'wan0' else self.kind}:{device}"

    def flap(self, device):
        """A link goes down, and comes up again."""
        is_tap = self.kind == "tap" and device == "lan0"
        for state in ("down", "up"):
            self.ip("client" if is_tap else "braid", "link", "set", device, state)
            time.sleep(0.1)
        if is_tap:
            # The kernel forgets the routes by a device of its own that goes down.
            self.ip("client", "route", "add", "default", "via", INSIDE)

    def kernel(self):
        """Lets the kernel forward, by the rules of `site.nft`."""
        self.run("braid", "sysctl", "-qw", "net.ipv4.ip_forward=1",
                 "net.ipv6.conf.all.disable_ipv6=0", "net.ipv6.conf.lan0.disable_ipv6=0",
                 "net.ipv6.conf.wan0.disable_ipv6=0", "net.ipv6.conf.all.forwarding=1")
        for device, address in (("lan0", f"{INSIDE}/24"), ("lan0", "fd00:1::1/64"),
                                ("wan0", f"{OUTSIDE}/24"), ("wan0", "fd00:2::1/64")):
            nodad = ["nodad"] if ":" in address else []
            self.ip("braid", "addr", "add", address, "dev", device, *nodad)
        self.run("braid", "nft", "-f", str(HERE / "site.nft"))

    def ctl(self, *words):
        return sh(self.command, "ctl", str(self.socket), *words)

    def report(self, process, *also):
        """Ends Braid. Returns its report, which must excuse every loss."""
        self.ctl("stop")
        out, _ = process.communicate(timeout=30)
        expect(process.returncode, 0, (self.folder / "err").read_text())
        report = json.loads(out)
        assert set(report["lost"]) <= EXCUSED | set(also), report["lost"]
        return report


def iperf(site, host, *more):
    """Megabits a second from the client to the server."""
    words = ("iperf3", "-c", host, "-J", "--connect-timeout", "5000", *more)
    for _ in range(2):
        report = json.loads(site.run("client", *words))
        end = report["end"]
        if found := end.get("sum_received") or end.get("sum"):
            return found["bits_per_second"] / 1e6
        # On a busy machine, the two ends sometimes miss each other at the start.
        print(f"iperf3 measured nothing: {report.get('error', end)}")
    raise AssertionError(f"iperf3 measures nothing: {words}")


def wrk(site, host, seconds):
    """Requests a second, and the errors that wrk counted."""
    text = site.run("client", "wrk", "-t1", "-c16", f"-d{seconds}s", f"http://{host}/page")
    errors = re.findall(r"^\s+(Socket errors.*|Non-2xx.*)$", text, re.MULTILINE)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1]), errors
