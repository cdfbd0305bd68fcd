"""Networks with the same addresses behind one NAPT, and servers at a third side of a firewall.

home (10.0.0.2) - home0 [braid] wan0 - hop (203.0.113.254) - server (198.51.100.2)
guest (10.0.0.2) - guest0 [braid] dmz0 - page (192.0.2.10)"""

import subprocess

from live import SERVER, Braid, World, expect
from peer import BODY

PUBLIC, PAGE = "203.0.113.1", "192.0.2.10"


def sides(braid, engine):
    """Hosts with one address reach the world and the servers at once, and the world only pages."""
    with World("home", "guest", "page", "braid", "hop", "server") as world:
        dress(world)
        world.serve("server", SERVER)
        world.serve("page", PAGE)
        kinds = [f"{name}=af_packet:{name}0" for name in ("home", "dmz", "wan")]
        run = Braid(world, braid, engine, "sides.braid", "guests=af_packet:guest0", *kinds)
        for host in ("home", "guest"):
            for there in (SERVER, PAGE):
                expect(world.peer(host, "ping", there), "answered", host)
                expect(world.peer(host, "udp", there), f"hello from {PUBLIC}", host)
                expect(world.peer(host, "download", there), f"same {PUBLIC}", host)
                expect(world.peer(host, "upload", there), "same", host)
        one_port(world)
        # The world reaches pages, and nothing else.
        expect(world.peer("server", "download", PAGE), f"same {SERVER}")
        for name, there in (("server", PAGE), ("page", SERVER), ("page", PUBLIC)):
            assert "100% packet loss" in ping(world, name, there), (name, there)
        report = run.stop()
        expect(report["lost"], {})
        drops = {(drop["function"], drop["reason"]) for drop in report["drops"]}
        expect(drops, {("wall", "closed"), ("wall", "not asked for")})
        came = {node["name"]: node["forward"]["packets"] for node in report["functions"]}
        assert came["zone.second"] > 1000 and came["wall.dmz"] > 1000, came
        return report["packets_in"]


def dress(world):
    for name, device in (("home", "home0"), ("guest", "guest0"), ("page", "dmz0"),
                         ("hop", "wan0")):
        world.pair("braid", device, name, "eth0")
    world.pair("hop", "srv0", "server", "eth0")
    hosts = {"home": ("10.0.0.2", "10.0.0.1"), "guest": ("10.0.0.2", "10.0.0.254"),
             "page": (PAGE, "192.0.2.1"), "server": (SERVER, "198.51.100.1")}
    for name, (address, gateway) in hosts.items():
        world.ip(name, "addr", "add", f"{address}/24", "dev", "eth0")
        world.ip(name, "route", "add", "default", "via", gateway)
    for device, address in (("eth0", "203.0.113.254"), ("srv0", "198.51.100.1")):
        world.ip("hop", "addr", "add", f"{address}/24", "dev", device)
    world.ip("hop", "route", "add", "192.0.2.0/24", "via", PUBLIC)
    world.run("hop", "sysctl", "-qw", "net.ipv4.ip_forward=1")


def one_port(world):
    """Both hosts download from the same port at the same time."""
    words = ["curl", "-sS", "--max-time", "20", "--local-port", "40000", "--limit-rate", "2M",
             f"http://{SERVER}:8000/"]
    both = [subprocess.Popen(["ip", "netns", "exec", world.names[host], *words],
                             stdout=subprocess.PIPE) for host in ("home", "guest")]
    for process in both:
        page, _ = process.communicate()
        assert page == BODY, len(page)


def ping(world, name, address):
    """What ping says of one echo request, whether it is answered or not."""
    words = ["ip", "netns", "exec", world.names[name], "ping", "-c1", "-W1", address]
    return subprocess.run(words, capture_output=True, text=True).stdout
