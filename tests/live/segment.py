"""An Ethernet segment whose other endpoints are the kernel's VXLAN devices.

client (10.5.0.1) - lan0 [braid] wan0 (192.0.2.1) - hop - near (192.0.2.2, in the tunnel 10.5.0.2)
                                                       - far (192.0.2.3, in the tunnel 10.5.0.3)"""

import signal

from live import Braid, World, expect
from peer import BODY

OWN = "192.0.2.1"
# For each host in the segment: its address there, and its endpoint's.
HOSTS = {"near": ("10.5.0.2", "192.0.2.2"), "far": ("10.5.0.3", "192.0.2.3")}
CLIENT = "10.5.0.1"
# What a tunnel leaves of 1500 bytes.
MTU = 1450


def segment(braid, engine):
    """Hosts of the segment reach each other by IPv4, IPv6 and tagged frames, as if by one wire."""
    with World("client", "near", "far", "hop", "braid", ip6=True) as world:
        dress(world)
        run = Braid(world, braid, engine, "segment.braid", "lan=af_packet:lan0",
                    "wan=af_packet:wan0")
        for address, _ in HOSTS.values():
            pings(world, "client", address)
        pings(world, "client", "fd00:5::2")
        pings(world, "far", CLIENT)
        # Each station's endpoint is known, so nothing of this goes to the other one.
        came = world.background("far", "watch", "eth0", program="forge.py")
        for one, other in (("client", "10.5.0.2"), ("near", CLIENT), ("client", "fd00:5::2")):
            fetch(world, one, other)
            expect(world.peer(one, "upload", other), "same")
        came.send_signal(signal.SIGTERM)
        strange = came.communicate(timeout=5)[0].count(f" udp {OWN} ")
        assert strange < 20, f"{strange} tunnels to the endpoint that has not got the station"
        stations_move(world)
        tags(world)
        stranger(world)
        report = run.stop()
        expect(report["lost"], {})
        # The other network, and what the hosts there say to groups beside their tunnels.
        expect({drop["reason"] for drop in report["drops"]}, {"no tunnel", "foreign endpoint"})
        return report["packets_in"]


def dress(world):
    world.pair("braid", "lan0", "client", "eth0")
    world.ip("client", "link", "set", "eth0", "mtu", str(MTU))
    world.ip("hop", "link", "add", "br0", "type", "bridge")
    world.ip("hop", "link", "set", "br0", "up")
    for name, device in (("braid", "wan0"), ("near", "eth0"), ("far", "eth0")):
        world.pair("hop", f"to-{name}", name, device)
        world.ip("hop", "link", "set", f"to-{name}", "master", "br0")
    station(world, "client", "eth0", 1)
    for number, (name, (_, endpoint)) in enumerate(HOSTS.items(), 2):
        world.ip(name, "addr", "add", f"{endpoint}/24", "dev", "eth0")
        vxlan(world, name, endpoint, 42)
        station(world, name, "vx42", number)


def vxlan(world, name, endpoint, number):
    """Makes a tunnel to Braid for one network."""
    device = f"vx{number}"
    world.ip(name, "link", "add", device, "type", "vxlan", "id", str(number), "dstport", "4789",
             "local", endpoint, "remote", OWN)
    world.ip(name, "link", "set", device, "mtu", str(MTU), "up")


def station(world, name, device, number):
    """Gives a host its addresses in the segment, and servers at them."""
    for address, more in ((f"10.5.0.{number}/24", ()), (f"fd00:5::{number}/64", ("nodad",))):
        world.ip(name, "addr", "add", address, "dev", device, *more)
        world.serve(name, address.partition("/")[0])


def pings(world, name, address):
    """Packets that are small, that fill the tunnel, and that take three fragments."""
    head = 48 if ":" in address else 28
    for size in (56, MTU - head, 3000):
        done = world.call(name, "ping", "-c2", "-i0.2", "-W2", "-s", str(size), address)
        assert " 0% packet loss" in done.stdout, (name, address, size, done)


def fetch(world, name, address):
    url = f"http://[{address}]:8000/" if ":" in address else f"http://{address}:8000/"
    words = ["curl", "-gsS", "--max-time", "10", "-o", "/dev/null", "-w",
             "%{http_code} %{size_download}", url]
    expect(world.run(name, *words), f"200 {len(BODY)}")


def stations_move(world):
    """A station that moves to another endpoint is found there, once it has sent something."""
    address = HOSTS["near"][0]
    mac = world.run("near", "cat", "/sys/class/net/vx42/address").strip()
    world.ip("near", "link", "set", "vx42", "down")
    world.ip("far", "link", "set", "vx42", "address", mac)
    world.ip("far", "addr", "add", f"{address}/24", "dev", "vx42")
    assert not world.answers("client", address, wait=0.5), "found before it has said a word"
    assert world.answers("far", CLIENT, "-I", address)
    assert world.answers("client", address)
    # Back again.
    world.ip("far", "link", "set", "vx42", "down")
    world.ip("near", "link", "set", "vx42", "up")
    assert world.answers("near", CLIENT)
    assert world.answers("client", address)


def stranger(world):
    """What comes from an endpoint that is no peer, or in another network, goes nowhere."""
    world.ip("hop", "addr", "add", "192.0.2.9/24", "dev", "br0")
    vxlan(world, "hop", "192.0.2.9", 42)
    world.ip("hop", "addr", "add", "10.5.0.9/24", "dev", "vx42")
    assert not world.answers("hop", CLIENT, wait=0.5)
    vxlan(world, "near", "192.0.2.2", 43)
    world.ip("near", "addr", "add", "10.5.1.2/24", "dev", "vx43")
    world.ip("client", "addr", "add", "10.5.1.1/24", "dev", "eth0")
    assert not world.answers("near", "10.5.1.1", wait=0.5)


def tags(world):
    """VLAN tags go through the tunnel, both ways."""
    for one, device, other, there in (("client", "eth0", "near", "vx42"),
                                      ("near", "vx42", "client", "eth0")):
        heard = world.background(other, "receive_tagged", there)
        world.peer(one, "send_tagged", device)
        expect(heard.stdout.readline().strip(), "tag 8100 6005")
