"""Runs Braid between real hosts in network namespaces: `live.py BRAID [ENGINE…] [SCENE…]`.

client (10.0.0.2) - lan0 [braid] wan0 - hop (203.0.113.254) - server (198.51.100.2)

In `home`, `routed`, `nat64`, `sides` and most scenes with a file of their own, Braid is a host on
its links. In the other scenes, it stands where a wire would be. There, hosts behind NAPT know each
other's MAC addresses beforehand (NAPT is for IPv4, and drops ARP)."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
CLIENT, HOP = "02:00:00:00:01:01", "02:00:00:00:02:01"
SERVER = "198.51.100.2"


def sh(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class World:
    """Namespaces of our own, named by our process id, which go when we are done."""

    # The programs of the hosts.
    program = "peer.py"

    def __init__(self, *names, ip6=False):
        self.ip6 = ip6
        self.names = {name: f"braid-{name}-{os.getpid()}" for name in names}
        self.running = []

    def __enter__(self):
        try:
            for name, ns in self.names.items():
                sh("ip", "netns", "add", ns)
                for key in ("all", "default"):
                    off = 0 if self.ip6 and name != "braid" else 1
                    self.run(name, "sysctl", "-qw", f"net.ipv6.conf.{key}.disable_ipv6={off}")
                self.ip(name, "link", "set", "lo", "up")
        except OSError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.running:
            process.kill()
            process.wait()
        for ns in self.names.values():
            subprocess.run(["ip", "netns", "del", ns], capture_output=True)

    def run(self, name, *words):
        return sh("ip", "netns", "exec", self.names[name], *words)

    def ip(self, name, *words):
        return sh("ip", "-n", self.names[name], *words)

    def pair(self, a, device_a, b, device_b, mac_b=None, queues=1):
        """Joins two namespaces by a wire, whose devices have `queues` queues."""
        peer = ["address", mac_b] if mac_b else []
        count = ("numrxqueues", str(queues), "numtxqueues", str(queues))
        sh("ip", "link", "add", device_a, "netns", self.names[a], *count, "type", "veth",
           "peer", "name", device_b, "netns", self.names[b], *count, *peer)
        self.ip(a, "link", "set", device_a, "up")
        self.ip(b, "link", "set", device_b, "up")

    def wire(self, client, server):
        """Puts Braid's namespace between a client and a server with these addresses, in one net."""
        for name, device, address in (("client", "lan0", client), ("server", "wan0", server)):
            self.pair("braid", device, name, "eth0")
            self.ip(name, "addr", "add", f"{address}/24", "dev", "eth0")

    def start(self, name, *words, **options):
        words = ["ip", "netns", "exec", self.names[name], *words]
        process = subprocess.Popen(words, text=True, stdout=subprocess.PIPE, **options)
        self.running.append(process)
        return process

    def peer(self, name, *words, program=None):
        program = str(HERE / (program or self.program))
        return self.run(name, sys.executable, "-B", program, *words).strip()

    def call(self, name, *words):
        """What a program says and how it ends, if it fails, too."""
        words = ["ip", "netns", "exec", self.names[name], *words]
        return subprocess.run(words, capture_output=True, text=True)

    def answers(self, name, address, *more, wait=2):
        """Whether a host's ping is answered within some seconds."""
        words = ["ping", "-c1", f"-W{wait}", *more, address]
        return self.call(name, *words).returncode == 0

    def background(self, name, *words, program=None):
        program = str(HERE / (program or self.program))
        process = self.start(name, sys.executable, "-B", program, *words)
        expect(process.stdout.readline().strip(), "ready")
        return process

    def serve(self, name, address):
        self.background(name, "serve", address)

    def nginx(self, name, folder, servers):
        """Starts nginx with these servers, in its language. Its files are in the folder."""
        (folder / "nginx.conf").write_text(f"""
            daemon off; master_process off; user root; pid {folder}/pid;
            error_log {folder}/error.log; events {{ worker_connections 1024; }}
            http {{ access_log off; keepalive_requests 1000000; {servers} }}""")
        self.start(name, "nginx", "-c", str(folder / "nginx.conf"))

    def certificate(self, name, folder, host):
        """Makes a key and a certificate for a host, in the folder, as nginx's language names them."""
        self.run(name, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", f"/CN={host}",
                 "-addext", f"subjectAltName=DNS:{host}", "-keyout", str(folder / "key"),
                 "-out", str(folder / "certificate"))
        return f"ssl_certificate {folder}/certificate; ssl_certificate_key {folder}/key;"


class Braid:
    """The command on devices of a namespace, with what it reports at the end."""

    def __init__(self, world, braid, engine, chain, *devices, more=(), limit="120s"):
        self.command, self.socket = braid, f"/tmp/braid-live-{os.getpid()}.sock"
        words = [braid, "run", str(HERE / chain), "--engine", engine, "--json", "--for", limit,
                 "--ctl", self.socket, *more]
        for device in devices:
            words += ["--if", device]
        self.process = world.start("braid", *words, stderr=subprocess.PIPE)
        said = ""
        for line in iter(self.process.stderr.readline, ""):
            if "running on" in line:
                return
            said += line
        raise OSError(said)

    def status(self):
        return json.loads(sh(self.command, "ctl", self.socket, "status", "--json"))

    def reload(self):
        """Loads the chain's file again. Returns what moves, what is new and what is lost."""
        return json.loads(sh(self.command, "ctl", self.socket, "reload", "--json"))

    def state(self, function, table):
        """The entries of a function's table."""
        words = sh(self.command, "ctl", self.socket, "state", function, "--table", table)
        return [json.loads(line) for line in words.splitlines() if line.startswith("{")]

    def most_memory(self):
        """The most memory that was in use at a time (KB)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0])

    def stop(self, patience=20):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=patience)
        expect(self.process.returncode, 0, err)
        return json.loads(out)


def also_with_losses(scene, braid, engine):
    """Runs a scene, and again with frames that are lost, repeated and swapped on the way. Returns the
    number of packets."""
    faults = ("--faults", "loss=1%,duplicate=1%,reorder=2%")
    return sum(scene(braid, engine, more) for more in ((), faults))


def until(condition, what, limit=10):
    """Waits until something holds, and returns it."""
    end = time.monotonic() + limit
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit} s: {what}")
        time.sleep(0.05)
    return found


def stopped(world, downloads):
    """Starts downloads of the client (files by the words for curl), and stops each of them in its
    middle. `go_on` lets them go on. Returns the processes."""
    # The client has room for a small part only, however long it does not read.
    world.run("client", "sysctl", "-qw", "net.ipv4.tcp_rmem=4096 16384 16384")
    processes = []
    for file, words in downloads.items():
        file.unlink(missing_ok=True)
        processes.append(world.start("client", "curl", "-sS", "--no-buffer", "--max-time", "120",
                                     "--limit-rate", "200K", "-o", str(file), *words))
    until(lambda: all(file.exists() and file.stat().st_size for file in downloads),
          "downloads begin", limit=60)
    for one in processes:
        one.send_signal(signal.SIGSTOP)
    world.run("client", "sysctl", "-qw", "net.ipv4.tcp_rmem=4096 131072 6291456")
    assert [one.poll() for one in processes] == [None] * len(processes), "they ended too soon"
    return processes


def go_on(processes):
    """Lets stopped processes go on. Returns how they end."""
    for one in processes:
        one.send_signal(signal.SIGCONT)
    return [one.wait() for one in processes]


def expect(found, expected, more=""):
    if found != expected:
        raise AssertionError(f"{found!r} instead of {expected!r} {more}")


def nat(braid, engine, kind="af_packet"):
    """A client behind NAPT: everything that it does reaches the server, from the public address."""
    with World("client", "braid", "hop", "server") as world:
        world.pair("braid", "lan0", "client", "eth0", CLIENT)
        world.pair("braid", "wan0", "hop", "wan1", HOP)
        world.pair("hop", "srv0", "server", "eth0")
        world.ip("client", "addr", "add", "10.0.0.2/24", "dev", "eth0")
        world.ip("client", "neigh", "add", "10.0.0.1", "lladdr", HOP, "dev", "eth0")
        world.ip("client", "route", "add", "default", "via", "10.0.0.1")
        world.ip("hop", "addr", "add", "203.0.113.254/24", "dev", "wan1")
        world.ip("hop", "neigh", "add", "203.0.113.1", "lladdr", CLIENT, "dev", "wan1")
        world.ip("hop", "addr", "add", "198.51.100.1/24", "dev", "srv0")
        world.run("hop", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        world.ip("server", "addr", "add", f"{SERVER}/24", "dev", "eth0")
        world.ip("server", "route", "add", "default", "via", "198.51.100.1")
        world.serve("server", SERVER)
        run = Braid(world, braid, engine, "nat.braid", f"lan={kind}:lan0", f"wan={kind}:wan0")
        expect(world.peer("client", "ping", SERVER), "answered")
        expect(world.peer("client", "download", SERVER), "same 203.0.113.1")
        expect(world.peer("client", "upload", SERVER), "same")
        expect(world.peer("client", "udp", SERVER), "hello from 203.0.113.1")
        expect(world.peer("client", "refused", SERVER), "refused")
        # 11: time exceeded.
        expect(world.peer("client", "hop", SERVER), "type 11 from 203.0.113.254")
        expect(world.peer("server", "connect", "203.0.113.1"), "timed out")
        # Nothing arrives any more, and still the mappings end.
        time.sleep(3.5)
        report = run.stop()
        expect(report["lost"], {})
        # A slow machine may drop frames, which TCP sends again.
        expect([w for w in report["warnings"] if "arrived too fast" not in w], [])
        tables = {t["table"]: t for t in report["functions"][1]["tables"]}
        expect(tables["map"]["entries"], 0, tables)
        assert tables["map"]["expired"] == tables["map"]["created"] >= 5, tables
        reasons = {drop["reason"] for drop in report["drops"]}
        assert "no mapping" in reasons, report["drops"]
        assert report["packets_in"] > 4000, "6 MB are more than 4000 packets of 1500 bytes"
        return report["packets_in"]


def wire(braid, engine, kind="af_packet"):
    """VLAN tags stay, and frames that a device does not take are lost by name."""
    with World("client", "braid", "server") as world:
        world.wire("10.6.0.1", "10.6.0.2")
        world.serve("server", "10.6.0.2")
        run = Braid(world, braid, engine, "wire.braid", f"in={kind}:lan0", f"out={kind}:wan0")
        expect(world.peer("client", "ping", "10.6.0.2"), "answered")
        expect(world.peer("client", "download", "10.6.0.2"), "same 10.6.0.1")
        there = world.background("server", "receive_tagged", "eth0")
        world.peer("client", "send_tagged", "eth0")
        expect(there.stdout.readline().strip(), "tag 8100 6005")
        world.ip("braid", "link", "set", "wan0", "mtu", "1400")
        # Braid asks for the MTU ten times a second where the kernel does not check it.
        time.sleep(0.3)
        expect(world.peer("client", "ping", "10.6.0.2", "1450"), "no answer", "past the MTU")
        report = run.stop()
        expect(report["lost"], {"send_too_long": 1})
        assert any("longer than the device allows" in w for w in report["warnings"]), report
        return report["packets_in"]


def home(braid, engine, kind="af_packet"):
    """The same on plain links: no host has a fixed neighbour, and the path has a smaller MTU."""
    with World("client", "braid", "hop", "server") as world:
        world.pair("braid", "lan0", "client", "eth0")
        world.pair("braid", "wan0", "hop", "wan1")
        world.pair("hop", "srv0", "server", "eth0")
        world.ip("client", "addr", "add", "10.0.0.2/24", "dev", "eth0")
        world.ip("client", "route", "add", "default", "via", "10.0.0.1")
        world.ip("hop", "addr", "add", "203.0.113.254/24", "dev", "wan1")
        world.ip("hop", "addr", "add", "198.51.100.1/24", "dev", "srv0")
        world.run("hop", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        world.ip("server", "addr", "add", f"{SERVER}/24", "dev", "eth0")
        world.ip("server", "route", "add", "default", "via", "198.51.100.1")
        world.serve("server", SERVER)
        for name, device in (("braid", "wan0"), ("hop", "wan1")):
            world.ip(name, "link", "set", device, "mtu", "1400")
        run = Braid(world, braid, engine, "home.braid", f"lan={kind}:lan0", f"wan={kind}:wan0")
        expect(world.peer("client", "ping", "10.0.0.1"), "answered", "by the interface")
        expect(world.peer("hop", "ping", "203.0.113.1"), "answered", "by the interface")
        expect(world.peer("client", "ping", SERVER), "answered")
        expect(world.peer("client", "udp", SERVER), "hello from 203.0.113.1")
        expect(world.peer("client", "refused", SERVER), "refused")
        expect(world.peer("client", "hop", SERVER), "type 11 from 203.0.113.254")
        # The error comes back through NAPT, which translates what it quotes.
        expect(world.peer("client", "discover", SERVER), "1400")
        expect(world.peer("client", "download", SERVER), "same 203.0.113.1")
        expect(world.peer("client", "upload", SERVER), "same")
        expect(neighbour(world, "client", "10.0.0.1"), mac(world, "lan0"))
        expect(neighbour(world, "hop", "203.0.113.1"), mac(world, "wan0"))
        hosts = run.status()["hosts"]
        expect(hosts["wan"]["mtu"], 1400)
        found = {n["address"]: n["state"] for n in hosts["wan"]["neighbours"]}
        expect(found, {"203.0.113.254": "confirmed"})
        assert hosts["lan"]["answered"]["echo"] == 1 and hosts["lan"]["answered"]["arp"] >= 1, hosts
        report = run.stop()
        assert set(report["lost"]) == {"too_long_answered"}, report["lost"]
        return report["packets_in"]


def routed(braid, engine, kind="af_packet"):
    """A router between plain links, for IPv4 and IPv6."""
    with World("client", "braid", "server", ip6=True) as world:
        world.pair("braid", "lan0", "client", "eth0")
        world.pair("braid", "wan0", "server", "eth0")
        for name, side in (("client", 1), ("server", 2)):
            world.ip(name, "addr", "add", f"10.{side}.0.2/24", "dev", "eth0")
            world.ip(name, "addr", "add", f"fd00:{side}::2/64", "dev", "eth0", "nodad")
            world.ip(name, "route", "add", "default", "via", f"10.{side}.0.1")
            world.ip(name, "route", "add", "default", "via", f"fd00:{side}::1")
        for name, device in (("braid", "wan0"), ("server", "eth0")):
            world.ip(name, "link", "set", device, "mtu", "1400")
        for address in ("10.2.0.2", "fd00:2::2"):
            world.serve("server", address)
        run = Braid(world, braid, engine, "routed.braid", f"lan={kind}:lan0", f"wan={kind}:wan0")
        expect(world.peer("client", "ping", "fd00:1::1"), "answered", "by the interface")
        for server, client in (("10.2.0.2", "10.1.0.2"), ("fd00:2::2", "fd00:1::2")):
            expect(world.peer("client", "ping", server), "answered")
            expect(world.peer("client", "udp", server), f"hello from {client}")
            expect(world.peer("client", "discover", server), "1400", server)
            expect(world.peer("client", "download", server), f"same {client}")
            expect(world.peer("client", "upload", server), "same")
        world.ip("client", "route", "flush", "cache")
        expect(world.peer("client", "fragments", "10.2.0.2"), "same")
        for name, side, device in (("client", 1, "lan0"), ("server", 2, "wan0")):
            for address in (f"10.{side}.0.1", f"fd00:{side}::1"):
                expect(neighbour(world, name, address), mac(world, device), address)
        report = run.stop()
        assert set(report["lost"]) == {"too_long_answered"}, report["lost"]
        return report["packets_in"]


def neighbour(world, name, address):
    """The MAC address at which a host reaches another one."""
    words = world.ip(name, "neigh", "show", "to", address).split()
    return words[words.index("lladdr") + 1] if "lladdr" in words else " ".join(words)


def mac(world, device):
    return world.run("braid", "cat", f"/sys/class/net/{device}/address").strip()


def home_xdp(braid, engine):
    """The same by AF_XDP."""
    return home(braid, engine, "xdp")


def nat_xdp(braid, engine):
    """The same by AF_XDP: checksums that the hosts leave to a card are completed."""
    return nat(braid, engine, "xdp")


def wire_xdp(braid, engine):
    """The same by AF_XDP."""
    return wire(braid, engine, "xdp")


def flap(braid, engine):
    """A connection survives a link that goes down and comes back, and a device made again."""
    with World("client", "braid", "server") as world:
        world.wire("10.8.0.1", "10.8.0.2")
        run = Braid(world, braid, engine, "wire.braid", "in=af_packet:lan0", "out=xdp:wan0")
        expect(world.peer("client", "ping", "10.8.0.2"), "answered")
        for state in ("down", "up"):
            world.ip("braid", "link", "set", "lan0", state)
            world.ip("braid", "link", "set", "wan0", state)
            time.sleep(0.3)
        expect(answered_soon(world, "10.8.0.2"), "answered", "after the link came back")
        world.ip("braid", "link", "del", "wan0")
        time.sleep(0.3)
        world.pair("braid", "wan0", "server", "eth0")
        world.ip("server", "addr", "add", "10.8.0.2/24", "dev", "eth0")
        # The server's address of the link layer is another one.
        world.ip("client", "neigh", "flush", "dev", "eth0")
        expect(answered_soon(world, "10.8.0.2"), "answered", "after the device was made again")
        report = run.stop()
        warnings = "\n".join(report["warnings"])
        for note in ("xdp:wan0: the device was removed 1 time", "the device was opened again"):
            assert note in warnings, warnings
        return report["packets_in"]


def answered_soon(world, address):
    """The answer to a ping, of several until the first one is answered."""
    for _ in range(5):
        found = world.peer("client", "ping", address)
        if found == "answered":
            break
    return found


def tap(braid, engine):
    """The same between two TAP devices, which Braid makes."""
    with World("client", "braid", "server") as world:
        run = Braid(world, braid, engine, "wire.braid", "in=tap:t0", "out=tap:t1")
        for name, device, address in (("client", "t0", "10.7.0.1"), ("server", "t1", "10.7.0.2")):
            world.ip("braid", "link", "set", device, "netns", world.names[name])
            world.ip(name, "link", "set", device, "up")
            world.ip(name, "addr", "add", f"{address}/24", "dev", device)
        world.serve("server", "10.7.0.2")
        expect(world.peer("client", "ping", "10.7.0.2"), "answered")
        expect(world.peer("client", "upload", "10.7.0.2"), "same")
        report = run.stop()
        expect(report["lost"], {})
        return report["packets_in"]


def tunnel(braid, engine):
    """IPv4 and IPv6 in tunnels whose other end is the kernel (segment routing without a header)."""
    with World("client", "braid", "hop", "server", ip6=True) as world:
        world.pair("braid", "lan0", "client", "eth0", CLIENT)
        world.pair("braid", "wan0", "hop", "wan1", HOP)
        world.pair("hop", "srv0", "server", "eth0")
        for name, device, side, host in (("client", "eth0", 1, 2), ("hop", "srv0", 2, 1),
                                         ("server", "eth0", 2, 2)):
            world.ip(name, "addr", "add", f"10.{side}.0.{host}/24", "dev", device)
            world.ip(name, "addr", "add", f"fd00:{side}::{host}/64", "dev", device, "nodad")
        for near in ("10.1.0.1", "fd00:1::1"):
            world.ip("client", "neigh", "add", near, "lladdr", HOP, "dev", "eth0")
            world.ip("client", "route", "add", "default", "via", near)
        for near in ("10.2.0.1", "fd00:2::1"):
            world.ip("server", "route", "add", "default", "via", near)
        world.ip("hop", "addr", "add", "fd00:9::2/64", "dev", "wan1", "nodad")
        world.ip("hop", "neigh", "add", "fd00:9::1", "lladdr", CLIENT, "dev", "wan1")
        on = ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1",
              "net.ipv6.conf.all.seg6_enabled=1", "net.ipv6.conf.wan1.seg6_enabled=1"]
        world.run("hop", "sysctl", "-qw", *on)
        for kind, near in (("4", "10.2.0.2"), ("6", "fd00:2::2")):
            world.ip("hop", "-6", "route", "add", f"fd00:9::{kind}/128", "encap", "seg6local",
                     "action", f"End.DX{kind}", f"nh{kind}", near, "dev", "srv0")
        for family, side in (("-4", "10.1.0.0/24"), ("-6", "fd00:1::/64")):
            world.ip("hop", family, "route", "add", side, "encap", "seg6", "mode", "encap.red",
                     "segs", "fd00:9::1", "dev", "wan1")
        # The tunnel takes 40 bytes of 1500.
        world.ip("client", "link", "set", "eth0", "mtu", "1460")
        world.ip("server", "link", "set", "eth0", "mtu", "1460")
        for address in ("10.2.0.2", "fd00:2::2"):
            world.serve("server", address)
        run = Braid(world, braid, engine, "tunnel.braid", "lan=af_packet:lan0", "wan=af_packet:wan0")
        for server, client in (("10.2.0.2", "10.1.0.2"), ("fd00:2::2", "fd00:1::2")):
            expect(world.peer("client", "ping", server), "answered")
            expect(world.peer("client", "udp", server), f"hello from {client}")
            expect(world.peer("client", "download", server), f"same {client}")
            expect(world.peer("client", "upload", server), "same")
        report = run.stop()
        expect(report["lost"], {})
        return report["packets_in"]


def main(braid, *words):
    """Runs the scenes that are named, or all, by the engines that are named, or by all."""
    from balance import balance
    from core import core
    from dhcp import dhcp
    from fragments import fragments
    from ftp import ftp
    from gates import gates
    from guards import guards
    from kept import kept
    from l7 import l7  # which uses this file, as the others do
    from nat64 import nat64
    from relays import relays
    from segment import segment
    from servers import servers
    from sides import sides
    from streams import streams
    from vpn import vpn
    tunnels = (tunnel,) if Path("/proc/sys/net/ipv6/conf/lo/seg6_enabled").exists() else ()
    scenes = (home, routed, nat, nat64, sides, wire, tap, streams, l7, dhcp, segment, core, guards,
              gates, vpn, ftp, *tunnels)
    # What native functions do, and how frames come, does not depend on the engine.
    native, ports = (relays, servers, balance, kept, fragments), (nat_xdp, wire_xdp, home_xdp, flap)
    named = [scene for scene in (*scenes, *native, *ports) if scene.__name__ in words]
    engines = [word for word in words if word not in {scene.__name__ for scene in named}]
    for engine in engines or ["reference", "sequential", "synth", "fused"]:
        for scene in named or (*scenes, *((*native, *ports) if engine == "fused" else ())):
            started = time.monotonic()
            packets = scene(os.path.abspath(braid), engine)
            print(f"live: {scene.__name__} by {engine}: {packets} packets, "
                  f"{time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
