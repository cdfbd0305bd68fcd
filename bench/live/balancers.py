"""Load balancers between real clients and servers: connections, requests and bytes a second.

Some balance by address and port. The others, with `_l7` in their names, choose by the path of a
connection's first request, or of each request (HAProxy).

    wrk (core 0) - lan0 [balancer, core 1] wan0 - nginx (core 0)
"""

import os
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
        (self.folder / "img").mkdir()
        (self.folder / "img" / "small").write_bytes(b"x" * 100)
        (self.folder / "nginx.conf").write_text(f"""
            daemon off; master_process off; user root; pid {self.folder}/pid;
            error_log {self.folder}/error.log; events {{ worker_connections 1024; }}
            http {{ access_log off; keepalive_requests 1000000; server {{
              {"".join(f"listen {address}:80; " for address in chains.BACKENDS)}
              location / {{ root {self.folder}; }}
              location /kept/ {{ root {self.folder}; expires 1h; }} }} }}""")
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
        """Requests a second, megabits a second, percentiles of latencies in microseconds, and the
        errors that wrk counted."""
        words = ("wrk", "-t1", "-c16", f"-d{seconds}s", "--timeout", "10s", "--latency", *more)
        text = self.run("client", "taskset", "-c", "0", *words, f"http://{ADDRESS}/{page}")
        errors = re.findall(r"^\s+(Socket errors.*|Non-2xx.*)$", text, re.MULTILINE)
        found = re.search(r"(\d+) requests in [^,]*, ([\d.]+)([KMG]?)B read", text)
        read = float(found[2]) * 1024 ** " KMG".index(found[3] or " ")
        late = {int(share): round(float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit])
                for share, number, unit
                in re.findall(r"^\s+(\d+)%\s+([\d.]+)(us|ms|s)$", text, re.MULTILINE)}
        return int(found[1]) / seconds, 8 * read / seconds / 1e6, late, errors


def haproxy(hosts, _):
    servers = "\n".join(f"  server s{at} {host}:80" for at, host in enumerate(chains.BACKENDS))
    return start_haproxy(hosts, "tcp", f"""
listen balance
  bind {ADDRESS}:80
  balance roundrobin
{servers}
""")


def haproxy_l7(hosts, _):
    """Chooses the server for each request. Connections to servers are kept."""
    return haproxy_http(hosts, "")


def haproxy_http(hosts, more):
    """The same, with other settings."""
    others, images = chains.BACKENDS
    return start_haproxy(hosts, "http", f"""
  http-reuse always
{more}frontend balance
  bind {ADDRESS}:80
  use_backend images if {{ path_beg /img/ }}
  default_backend others
backend images
  server s0 {images}:80
backend others
  server s1 {others}:80
""")


def start_haproxy(hosts, mode, service):
    need("haproxy", "haproxy")
    hosts.route()
    hosts.ip("dut", "addr", "add", f"{ADDRESS}/32", "dev", "lo")
    (hosts.folder / "haproxy.cfg").write_text(f"""
global
  maxconn 1000
  nbthread 1
defaults
  mode {mode}
  timeout connect 5s
  timeout client 10s
  timeout server 10s
{service}""")
    words = ("haproxy", "-db", "-f", str(hosts.folder / "haproxy.cfg"))
    return hosts.start("dut", "taskset", "-c", str(cores(1)[0]), *words, stderr=subprocess.STDOUT)


def nftables(hosts, _):
    hosts.route()
    hosts.run("dut", "nft", chains.nft_balanced())


def braid(kind, files=chains.balanced):
    def start(hosts, command):
        for file, text in files().items():
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
             "braid_af_packet": braid("af_packet"), "braid_xdp": braid("xdp"),
             "haproxy_l7": haproxy_l7,
             "braid_l7_af_packet": braid("af_packet", chains.balanced_by_request),
             "braid_l7_xdp": braid("xdp", chains.balanced_by_request)}


def measure(name, command, seconds):
    """Connections, requests and megabits a second through a balancer. Requests come on connections
    that stay open."""
    with Hosts() as hosts:
        process = BALANCERS[name](hosts, command)
        ready(hosts)
        page = "img/small" if "_l7" in name else "small"
        rate, _, opening, errors = hosts.wrk(page, seconds, "-H", "Connection: close")
        before = busy_us(cores(1)[0])
        requests, _, late, more = hosts.wrk(page, seconds)
        # The balancer has its core to itself.
        spent = (busy_us(cores(1)[0]) - before) / (requests * seconds)
        _, mbit, _, most = hosts.wrk("large", seconds)
        end(process)
        return {"balancer": name, "connections_per_s": round(rate), "connection_us": opening[50],
                "requests_per_s": round(requests), "request_us": late[50], "request_p99_us": late[99],
                "core_us_per_request": round(spent, 1),
                "mbit_per_s": round(mbit), "errors": errors + more + most}


def busy_us(core):
    """For how long (us) a core has been busy, with the kernel's work of receiving."""
    line = next(line for line in Path("/proc/stat").read_text().splitlines()
                if line.startswith(f"cpu{core} "))
    user, nice, system, _, _, irq, softirq, *_ = map(int, line.split()[1:])
    return (user + nice + system + irq + softirq) * 1_000_000 // os.sysconf("SC_CLK_TCK")


def ready(hosts):
    """Waits until a page comes through."""
    for _ in range(50):
        try:
            return hosts.run("client", "curl", "-sS", "--max-time", "1", f"http://{ADDRESS}/small")
        except OSError as why:
            last = why
            time.sleep(0.1)
    raise Absent(f"no page comes through it: {last}")

