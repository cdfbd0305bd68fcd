"""ESP tunnels of `esp_gateway` to gateways that scapy makes: one with an address of its own, and one
behind a NAT of the kernel, which changes its mind about the port."""

import shutil
import tempfile
import time
from pathlib import Path

from live import HERE, Braid, World, expect

# Debian's, for which its package of scapy is.
PYTHON = "/usr/bin/python3"
OWN, DIRECT, BEHIND = "198.51.100.1", "203.0.113.2", "10.8.0.2"
# How many bytes are transferred: scapy takes a millisecond and more for each packet.
SIZE = "500000"
# By security parameters index: cipher and key. Those to Braid, those from there, of both gateways.
KEYS = {
    "0x1000": ("aes-128-cbc-hmac-sha-256-128", bytes(range(1, 49))),
    "0x2001": ("aes-256-cbc-hmac-sha-256-128", bytes(range(2, 66))),
    "0x1001": ("aes-128-gcm", bytes(range(3, 23))),
    "0x2002": ("aes-256-gcm", bytes(range(4, 40))),
}


def vpn(braid, engine):
    with World("client", "braid", "router", "direct", "behind") as world, \
            tempfile.TemporaryDirectory() as folder:
        wires(world)
        folder = chain(Path(folder))
        run = Braid(world, braid, engine, str(folder / "vpn.braid"), "lan=af_packet:lan0",
                    "wan=af_packet:wan0")
        keys = str(folder / "vpn.keys")
        for name, near, words in (
                ("direct", "10.2.0.1", ("esp", DIRECT, OWN, keys, "0x1000", "0x2001")),
                ("behind", "10.3.0.1", ("udp", BEHIND, OWN, keys, "0x1001", "0x2002"))):
            gateway(world, name, words, near)
            world.serve(name, near)
        # Nobody knows yet where the gateway behind the NAT is.
        expect(world.peer("client", "ping", "10.3.0.1"), "no answer")
        expect(world.peer("behind", "ping", "10.1.0.2"), "answered")
        for near in ("10.2.0.1", "10.3.0.1"):
            expect(world.peer("client", "ping", near), "answered")
            expect(world.peer("client", "udp", near), "hello from 10.1.0.2")
            expect(world.peer("client", "download", near, SIZE), "same 10.1.0.2")
            expect(world.peer("client", "upload", near, SIZE), "same")
        before = peer(run)
        # The NAT forgets the gateway, which then comes from another port.
        forget(world)
        expect(world.peer("behind", "ping", "10.1.0.2"), "answered")
        expect(world.peer("client", "udp", "10.3.0.1"), "hello from 10.1.0.2")
        after = peer(run)
        assert before["address"] == after["address"] == "198.51.100.9", (before, after)
        assert before["port"] != after["port"], (before, after)
        numbers = [entry["value"]["highest"] for entry in run.state("vpn", "received")]
        # The numbers of 64 bits have passed the point where their upper half changes.
        assert len(numbers) == 2 and max(numbers) > 1 << 32 > min(numbers) > 300, numbers
        report = run.stop()
        expect(report["lost"], {})
        reasons = {drop["reason"] for drop in report["drops"] if drop["function"] == "vpn"}
        expect(reasons, {"gateway not known yet"})
        return report["packets_in"]


def wires(world):
    """client - [braid] - router - direct, and behind the router's NAT - behind."""
    world.pair("braid", "lan0", "client", "eth0")
    world.pair("braid", "wan0", "router", "eth0")
    world.pair("router", "eth1", "direct", "eth0")
    world.pair("router", "eth2", "behind", "eth0")
    for name, device, address in (("client", "eth0", "10.1.0.2"), ("router", "eth0", "198.51.100.9"),
                                  ("router", "eth1", "203.0.113.1"), ("direct", "eth0", DIRECT),
                                  ("router", "eth2", "10.8.0.1"), ("behind", "eth0", BEHIND)):
        world.ip(name, "addr", "add", f"{address}/24", "dev", device)
    for name, near in (("client", "10.1.0.1"), ("direct", "203.0.113.1"), ("behind", "10.8.0.1")):
        world.ip(name, "route", "add", "default", "via", near)
    # What the tunnels add fits in 1500 bytes.
    world.ip("client", "link", "set", "eth0", "mtu", "1400")
    world.run("router", "sysctl", "-qw", "net.ipv4.ip_forward=1")
    world.run("router", "nft", "add table ip nat; add chain ip nat out { type nat hook postrouting "
              "priority 100; }; add rule ip nat out ip saddr 10.8.0.0/24 masquerade random")


def chain(folder):
    """A folder with the chain, its routes, and the keys of both tunnels."""
    for file in ("vpn.braid", "vpn.routes"):
        shutil.copy(HERE / file, folder)
    keys = folder / "vpn.keys"
    keys.touch(mode=0o600)
    keys.write_text("".join(f"{spi} {cipher} {key.hex()}\n"
                            for spi, (cipher, key) in KEYS.items()))
    return folder


def gateway(world, name, words, near):
    """Starts a gateway in a namespace, with this address in its own network."""
    process = world.start(name, PYTHON, "-B", str(HERE / "gateway.py"), *words)
    expect(process.stdout.readline().strip(), "ready")
    world.ip(name, "addr", "add", f"{near}/32", "dev", "vpn0")
    world.ip(name, "link", "set", "vpn0", "up", "mtu", "1400")
    world.ip(name, "route", "add", "10.1.0.0/24", "dev", "vpn0", "src", near)


def forget(world):
    """Lets the NAT's mapping of UDP end."""
    ends = [f"net.netfilter.nf_conntrack_udp_timeout{kind}=1" for kind in ("", "_stream")]
    world.run("router", "sysctl", "-qw", *ends)
    # It takes the new time from the next packet on.
    expect(world.peer("behind", "ping", "10.1.0.2"), "answered")
    time.sleep(3)


def peer(run):
    """Where Braid has heard the gateway behind the NAT."""
    return run.state("vpn", "peers")[0]["value"]
