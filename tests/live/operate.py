"""Operates Braid between real peers in network namespaces: `operate.py BRAID [SECONDS]`.

client (10.0.0.2) - lan0 [braid] wan0 - server (203.0.113.10: iperf3; .11, .12: nginx)

The client reaches the servers by one service address, 198.51.100.10, through a firewall, a monitor,
Maglev and NAPT. While it does, the chain is loaded again, links flap, and requests arrive at the
control socket. No connection may break."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from live import HERE, World, expect, sh

SERVICE, BACKENDS = "198.51.100.10", ("203.0.113.11", "203.0.113.12")
# A host that is no backend.
OTHER = "203.0.113.10"
# What flaps and full queues may cost. All other losses are defects.
EXCUSED = {"send_refused", "send_queue_full", "no_neighbour"}


class Site(World):
    """The hosts, with their programs, and Braid between them."""

    def __init__(self, braid, kind="af_packet", offload=True):
        super().__init__("client", "braid", "server")
        self.command, self.kind, self.offload = braid, kind, offload
        self.folder = Path(tempfile.mkdtemp(prefix="braid-site-"))
        self.socket = self.folder / "ctl"

    def __enter__(self):
        super().__enter__()
        for file in ("site.braid", "site.rules"):
            shutil.copy(HERE / file, self.folder)
        self.pair("braid", "lan0", "client", "eth0")
        self.pair("braid", "wan0", "server", "eth0")
        if not self.offload:
            for name in ("client", "server"):
                self.run(name, "ethtool", "-K", "eth0", "gso", "off", "tso", "off", "tx", "off")
        self.ip("client", "addr", "add", "10.0.0.2/24", "dev", "eth0")
        self.ip("client", "route", "add", "default", "via", "10.0.0.1")
        for address in (OTHER, *BACKENDS):
            self.ip("server", "addr", "add", f"{address}/24", "dev", "eth0")
        self.serve_pages()
        self.start("server", "iperf3", "-s", "-B", OTHER)
        self.background("server", "echo", *BACKENDS)
        return self

    def __exit__(self, *why):
        super().__exit__(*why)
        shutil.rmtree(self.folder)

    def serve_pages(self):
        """nginx on all backends, with a page of 100 kB."""
        (self.folder / "page").write_bytes(b"x" * 100_000)
        (self.folder / "nginx.conf").write_text(f"""
            daemon off; user root; worker_processes 1; pid {self.folder}/pid;
            error_log {self.folder}/error.log;
            events {{ worker_connections 1024; }}
            http {{ access_log off; server {{
              {"".join(f"listen {address}:80; " for address in BACKENDS)}
              location / {{ root {self.folder}; }}
            }} }}""")
        self.start("server", "nginx", "-c", str(self.folder / "nginx.conf"))

    def braid(self, *more):
        """Starts Braid. Returns its process."""
        devices = ("--if", f"lan={self.kind}:lan0", "--if", f"wan={self.kind}:wan0")
        process = self.start(
            "braid", self.command, "run", str(self.folder / "site.braid"), *devices,
            "--ctl", str(self.socket), "--json", *more, stderr=open(self.folder / "err", "a"))
        for _ in range(200):
            if self.socket.exists() and process.poll() is None:
                return process
            time.sleep(0.02)
        raise OSError((self.folder / "err").read_text())

    def ctl(self, *words):
        return sh(self.command, "ctl", str(self.socket), *words)

    def report(self, process):
        """Ends Braid. Returns its report, which must excuse every loss."""
        self.ctl("stop")
        out, _ = process.communicate(timeout=30)
        expect(process.returncode, 0, (self.folder / "err").read_text())
        report = json.loads(out)
        assert set(report["lost"]) <= EXCUSED, report["lost"]
        return report


def iperf(site, *more):
    """Megabits a second from the client to the server."""
    words = ("iperf3", "-c", OTHER, "-J", "--connect-timeout", "5000", *more)
    report = json.loads(site.run("client", *words))
    end = report["end"]
    return (end.get("sum_received") or end["sum"])["bits_per_second"] / 1e6


def wrk(site, seconds):
    """Requests a second, and the errors that wrk counted."""
    text = site.run("client", "wrk", "-t1", "-c16", f"-d{seconds}s", f"http://{SERVICE}/page")
    errors = re.findall(r"^\s+(Socket errors.*|Non-2xx.*)$", text, re.MULTILINE)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1]), errors


def peers(command, kind, offload):
    """What hosts do every day works through the chain."""
    with Site(command, kind, offload) as site:
        braid = site.braid()
        page = site.run("client", "curl", "-sS", "--max-time", "10", f"http://{SERVICE}/page")
        expect(len(page), 100_000)
        assert " 0% packet loss" in site.run("client", "ping", "-c3", "-i0.2", OTHER)
        tcp, back = iperf(site, "-t1"), iperf(site, "-t1", "-R")
        udp = iperf(site, "-t1", "-u", "-b20M")
        assert tcp > 5 and back > 5 and udp > 15, (tcp, back, udp)
        rate, errors = wrk(site, 2)
        expect(errors, [])
        site.report(braid)
        print(f"peers: {kind}, offload {'on' if offload else 'off'}: TCP {tcp:.0f} and "
              f"{back:.0f} Mbit/s, UDP {udp:.0f} Mbit/s, {rate:.0f} pages/s")


def operate(command, seconds):
    """Nothing that an operator does, and no link that flaps, breaks a connection."""
    with Site(command) as site:
        braid = site.braid("--state-dir", str(site.folder / "state"), "--state-every", "3s")
        beats = site.background("client", "beat", SERVICE, str(seconds + 2))
        load = site.start("client", "wrk", "-t1", "-c8", f"-d{seconds}s", "--timeout", "10s",
                          f"http://{SERVICE}/page")
        text = (site.folder / "site.braid").read_text()
        changed = text.replace("<-> count <->", "<-> count <-> again <->")
        changed = changed.replace("  nat =", "  again = monitor();\n  nat =")
        start, reloads, flaps, requests, memory, pauses = time.monotonic(), 0, 0, 0, [], []
        while (now := time.monotonic() - start) < seconds:
            if now > 5 * (reloads + 1):
                reloads += 1
                (site.folder / "site.braid").write_text(changed if reloads % 2 else text)
                answer = site.ctl("reload")
                pauses.append(float(re.search(r"packets waited ([\d.]+) ms", answer)[1]))
                assert "lost" not in answer or "again" in answer, answer
            if now > 7 * (flaps + 1):
                flaps += 1
                device = ("lan0", "wan0")[flaps % 2]
                for state in ("down", "up"):
                    site.ip("braid", "link", "set", device, state)
                    time.sleep(0.1)
            for words in (("status",), ("counters",), ("state", "nat"), ("--json", "status")):
                site.ctl(*words)
                requests += 1
            status = Path(f"/proc/{braid_pid(braid)}/status").read_text()
            memory.append(int(re.search(r"VmRSS:\s+(\d+)", status)[1]))
            time.sleep(0.2)
        pages = re.search(r"(\d+) requests in", load.communicate(timeout=30)[0])
        beaten = beats.communicate(timeout=30)[0].split()
        expect(beaten[0], "whole", "the long connection")
        report = site.report(braid)
        half = memory[len(memory) // 2:]
        assert max(half) < 1.1 * half[0] + 4096, f"memory grows: {memory}"
        print(f"operate: {seconds} s, {report['packets_in']} packets, {reloads} reloads "
              f"(pauses up to {max(pauses, default=0):.1f} ms), {flaps} flaps, {requests} requests, "
              f"{pages[1]} pages; the long connection stood still for {beaten[1]} s at most; "
              f"{half[-1] >> 10} MiB; lost {report['lost']}")


def killed(command):
    """After SIGKILL, a run goes on from the state that was saved last."""
    with Site(command) as site:
        keep = ("--state-dir", str(site.folder / "state"), "--state-every", "1s")
        braid = site.braid(*keep)
        beats = site.background("client", "beat", SERVICE, "8")
        time.sleep(3)
        os.kill(braid_pid(braid), 9)
        braid.wait()
        site.socket.unlink()
        braid = site.braid(*keep)
        beaten = beats.communicate(timeout=30)[0].split()
        expect(beaten[0], "whole", "the connection from before")
        site.report(braid)
        print(f"killed: the connection stood still for {beaten[1]} s")


def braid_pid(process):
    """The process of Braid. `ip netns exec` becomes the command that it runs."""
    return process.pid


def main(command, seconds="20"):
    command = os.path.abspath(command)
    for kind, offload in (("af_packet", True), ("af_packet", False), ("xdp", False)):
        peers(command, kind, offload)
    killed(command)
    operate(command, int(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
