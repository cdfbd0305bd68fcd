"""Load balancers between real clients and servers: connections a second, and bytes a second.

    wrk (core 0) - lan0 [balancer, core 1] wan0 - nginx (core 0)
"""

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import chains
from bed import World, cores, receive_by_threads, receive_on
from subjects import Absent, end, need

ADDRESS = "198.51.100.10"


class Hosts(World):
    """A client and a server with two addresses, and the balancer's namespace between them."""

    def __init__(self):
        super().__init__("client", "dut", "server")
        self.folder = Path(tempfile.mkdtemp(prefix="braid-balance-"))

    def __enter__(self):
        super().__enter__()
        self.pair("dut", "lan0", "client", "eth0")
        self.pair("dut", "wan0", "server", "eth0")
        for device in ("lan0", "wan0"):
            receive_on(self, "dut", device, cores(1)[0])
        for name in ("client", "server"):
            receive_on(self, name, "eth0", 0)
        self.ip("client", "addr", "add", "10.0.0.2/24", "dev", "eth0")
        self.ip("client", "route", "add", "default", "via", "10.0.0.1")
        for address in ("203.0.113.254", *chains.BACKENDS):
            self.ip("server", "addr", "add", f"{address}/24", "dev", "eth0")
        # Many short connections need many ports.
        self.run("client", "sysctl", "-qw", "net.ipv4.ip_local_port_range=1024 65535",
                 "net.ipv4.tcp_tw_reuse=1")
        (self.folder / "small").write_bytes(b"x" * 100)
        (self.folder / "large").write_bytes(b"x" * 1_000_000)
        (self.folder / "nginx.conf").write_text(f"""
            daemon off; master_process off; user root; pid {self.folder}/pid;
            error_log {self.folder}/error.log; events {{ worker_connections 1024; }}
            http {{ access_log off; keepalive_requests 1000000; server {{
              {"".join(f"listen {address}:80; " for address in chains.BACKENDS)}
              location / {{ root {self.folder}; }} }} }}""")
        self.start("server", "taskset", "-c", "0", "nginx", "-c", str(self.folder / "nginx.conf"))
        return self

    def __exit__(self, *why):
        super().__exit__(*why)
        shutil.rmtree(self.folder, ignore_errors=True)

    def route(self):
        """The kernel of the balancer's namespace is the hosts' neighbour."""
        self.ip("dut", "addr", "add", "10.0.0.1/24", "dev", "lan0")
        self.ip("dut", "addr", "add", "203.0.113.1/24", "dev", "wan0")
        self.run("dut", "sysctl", "-qw", "net.ipv4.ip_forward=1")

    def wrk(self, page, seconds, *more):
        """Requests a second, megabits a second, and the errors that wrk counted."""
        words = ("wrk", "-t1", "-c16", f"-d{seconds}s", "--timeout", "10s", *more)
        text = self.run("client", "taskset", "-c", "0", *words, f"http://{ADDRESS}/{page}")
        errors = re.findall(r"^\s+(Socket errors.*|Non-2xx.*)$", text, re.MULTILINE)
        found = re.search(r"(\d+) requests in [^,]*, ([\d.]+)([KMG]?)B read", text)
        read = float(found[2]) * 1024 ** " KMG".index(found[3] or " ")
        return int(found[1]) / seconds, 8 * read / seconds / 1e6, errors


def haproxy(hosts, _):
    need("haproxy", "haproxy")
    hosts.route()
    hosts.ip("dut", "addr", "add", f"{ADDRESS}/32", "dev", "lo")
    servers = "\n".join(f"  server s{at} {host}:80" for at, host in enumerate(chains.BACKENDS))
    (hosts.folder / "haproxy.cfg").write_text(f"""
global
  maxconn 1000
  nbthread 1
defaults
  mode tcp
  timeout connect 5s
  timeout client 10s
  timeout server 10s
listen balance
  bind {ADDRESS}:80
  balance roundrobin
{servers}
""")
    words = ("haproxy", "-db", "-f", str(hosts.folder / "haproxy.cfg"))
    return hosts.start("dut", "taskset", "-c", str(cores(1)[0]), *words, stderr=subprocess.STDOUT)


def nftables(hosts, _):
    hosts.route()
    hosts.run("dut", "nft", chains.nft_balanced())


def braid(kind):
    def start(hosts, command):
        for file, text in chains.balanced().items():
            (hosts.folder / file).write_text(text)
        if kind == "xdp":
            # An XDP program would get segments that travel as one frame.
            for name in ("client", "server"):
                hosts.run(name, "ethtool", "-K", "eth0", "gso", "off", "tso", "off", "tx", "off")
        words = ["taskset", "-c", str(cores(1)[0]), command, "run",
                 str(hosts.folder / "balance.braid"), "--json"]
        for end in ("lan", "wan"):
            words += ["--if", f"{end}={kind}:{end}0"]
        process = hosts.start("dut", *words, stderr=subprocess.PIPE)
        process.stderr.readline()
        if kind == "xdp":
            receive_by_threads(hosts, cores(1))
        return process
    return start


BALANCERS = {"haproxy": haproxy, "nftables": nftables,
             "braid_af_packet": braid("af_packet"), "braid_xdp": braid("xdp")}


def measure(name, command, seconds):
    """Connections and megabits a second through a balancer."""
    with Hosts() as hosts:
        process = BALANCERS[name](hosts, command)
        ready(hosts)
        rate, _, errors = hosts.wrk("small", seconds, "-H", "Connection: close")
        _, mbit, more = hosts.wrk("large", seconds)
        end(process)
        return {"balancer": name, "connections_per_s": round(rate), "mbit_per_s": round(mbit),
                "errors": errors + more}


def ready(hosts):
    """Waits until a page comes through."""
    for _ in range(50):
        try:
            return hosts.run("client", "curl", "-sS", "--max-time", "1", f"http://{ADDRESS}/small")
        except OSError as why:
            last = why
            time.sleep(0.1)
    raise Absent(f"no page comes through it: {last}")

