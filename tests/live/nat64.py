"""A host that has only IPv6 reaches one that has only IPv4, by the tools that hosts use.

client (fd00:1::2) - lan0 [braid] wan0 - hop (203.0.113.254) - server (198.51.100.2)"""

import re
import subprocess

from everyday import hops
from live import SERVER, Braid, World, expect, mac, neighbour
from peer import BODY

HOP, PUBLIC = "203.0.113.254", "203.0.113.64"
# What the client calls the server, and how its tools write this and the hop.
THERE, SERVER6, HOP6 = f"64:ff9b::{SERVER}", "64:ff9b::c633:6402", "64:ff9b::cb00:71fe"


def nat64(braid, engine):
    """Pages, datagrams, errors and long packets, on paths that carry less than either end's link."""
    with World("client", "braid", "hop", "server", ip6=True) as world:
        dress(world)
        world.serve("server", SERVER)
        run = Braid(world, braid, engine, "nat64.braid", "lan=af_packet:lan0",
                    "wan=af_packet:wan0")
        expect(world.peer("client", "ping", "fd00:1::1"), "answered", "by the interface")
        expect(world.peer("hop", "ping", "203.0.113.1"), "answered", "by the interface")
        small_packets(world)
        long_answers(world)
        narrow(world)
        for name, address, device in (("client", "fd00:1::1", "lan0"), ("hop", PUBLIC, "wan0")):
            expect(neighbour(world, name, address), mac(world, device), address)
        hosts = run.status()["hosts"]
        found = {n["address"]: n["state"] for side in ("lan", "wan")
                 for n in hosts[side]["neighbours"] if not n["address"].startswith("fe80:")}
        expect(found, {"fd00:1::2": "confirmed", HOP: "confirmed"})
        report = run.stop()
        assert set(report["lost"]) == {"too_long_answered"}, report["lost"]
        # The datagram of ICMP in fragments, and what the client asks of its neighbours' groups.
        reasons = {drop["reason"] for drop in report["drops"]}
        assert reasons <= {"not translated", "not for ipv4"}, report["drops"]
        return report["packets_in"]


def dress(world):
    """Each host has addresses of one version alone."""
    world.pair("braid", "lan0", "client", "eth0")
    world.pair("braid", "wan0", "hop", "wan1")
    world.pair("hop", "srv0", "server", "eth0")
    for name in ("hop", "server"):
        for key in ("all", "default"):
            world.run(name, "sysctl", "-qw", f"net.ipv6.conf.{key}.disable_ipv6=1")
    world.ip("client", "addr", "add", "fd00:1::2/64", "dev", "eth0", "nodad")
    # The server may send segments that fill its link, as if the client's took 20 bytes more.
    world.ip("client", "route", "add", "64:ff9b::/96", "via", "fd00:1::1", "advmss", "1460")
    for device, address in (("wan1", HOP), ("srv0", "198.51.100.1")):
        world.ip("hop", "addr", "add", f"{address}/24", "dev", device)
    # Errors in a row go to the same host.
    world.run("hop", "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.icmp_ratelimit=0")
    world.ip("server", "addr", "add", f"{SERVER}/24", "dev", "eth0")
    world.ip("server", "route", "add", "default", "via", "198.51.100.1")


def small_packets(world):
    for size in (56, 1400):
        assert " 0% packet loss" in ping(world, "-s", str(size)), size
    expect(world.peer("client", "udp", THERE), f"hello from {PUBLIC}")
    expect(world.peer("client", "refused", THERE), "refused")
    assert f"From {HOP6} icmp_seq=1 Time exceeded" in ping(world, "-t", "1")
    expect(hops(world, THERE), [HOP6, SERVER6])
    # The sum of ICMPv6 covers the length of the whole message, which no fragment tells.
    assert "100% packet loss" in ping(world, "-s", "3000")


def long_answers(world):
    """The server's packets of 1500 bytes would have 1520 in IPv6. Braid says so to the server, and
    then they have less."""
    expect(learned(world), None)
    fetch(world)
    expect(learned(world), 1480)
    # Answers of UDP in fragments, whose IPv6 header is 8 bytes longer. The first one may be lost.
    for size in (1450, 3000):
        tries = [world.peer("client", "fragments", THERE, str(size)) for _ in range(3)]
        assert "same" in tries, tries
    expect(learned(world), 1472)


def narrow(world):
    """The link behind the hop carries 1300 bytes, which are 1320 in IPv6. The client finds out."""
    for name, device in (("hop", "srv0"), ("server", "eth0")):
        world.ip(name, "link", "set", device, "mtu", "1300")
    expect(world.peer("client", "discover", THERE), "1320")
    world.ip("client", "route", "flush", "cache")
    text = world.run("client", "tracepath", "-6", "-n", "-p", "33434", "-m", "4", THERE)
    assert "pmtu 1320" in text and SERVER6 in text and "reached" in text, text
    world.ip("client", "route", "flush", "cache")
    expect(world.peer("client", "upload", THERE), "same")
    fetch(world)
    for size in (1200, 1450, 3000):
        expect(world.peer("client", "fragments", THERE, str(size)), "same", size)


def fetch(world):
    """Downloads a page, by the peer and by curl."""
    expect(world.peer("client", "download", THERE), f"same {PUBLIC}")
    words = ["ip", "netns", "exec", world.names["client"], "curl", "-gsS", "--max-time", "10",
             f"http://[{THERE}]:8000/"]
    page = subprocess.run(words, capture_output=True)
    assert page.stdout == BODY, (len(page.stdout), page.stderr)


def ping(world, *more):
    """What ping says of one echo request, whether it is answered or not."""
    words = ["ip", "netns", "exec", world.names["client"], "ping", "-6", "-c1", "-W1", *more, THERE]
    return subprocess.run(words, capture_output=True, text=True).stdout


def learned(world):
    """The MTU of the way to the client that the server has learned from an error."""
    found = re.search(r"mtu (\d+)", world.ip("server", "route", "get", PUBLIC))
    return found and int(found[1])
