"""Phones behind a base station that speaks GTP-U, and a server behind the mobile core.

phone1 (10.45.0.1), phone2 (10.45.0.2) - station (192.0.2.2) - ran0 [braid] net0 - server"""

import signal

from live import SERVER, Braid, World, expect
from peer import BODY

STATION, OTHER, CORE = "192.0.2.2", "192.0.2.9", "192.0.2.1"
# The address of a phone, the number of its tunnel at the station, and at the core.
PHONES = {"phone1": ("10.45.0.1", "55", "1001"), "phone2": ("10.45.0.2", "66", "1002")}
# What a tunnel leaves of 1500 bytes, with the container of 5G.
MTU = 1456


def core(braid, engine):
    """Each phone has a connection by its own tunnel, and others get no packet into it."""
    with World(*PHONES, "station", "braid", "server") as world:
        dress(world)
        run = Braid(world, braid, engine, "core.braid", "ran=af_packet:ran0", "net=af_packet:net0")
        came = world.background("server", "watch", "eth0", program="forge.py")
        answer = world.peer("station", "echo", STATION, CORE, program="station.py")
        expect(answer, "answered 4711")
        for name, (address, _, _) in PHONES.items():
            use(world, name, address)
        forge(world)
        came.send_signal(signal.SIGTERM)
        came = came.communicate(timeout=5)[0].splitlines()
        # From port 7000 comes only the datagram that was in the right tunnel.
        marked = [line.split(" ", 1)[1] for line in came if " 7000 7" in line]
        expect(marked, [f"udp 10.45.0.2 {SERVER} 7000 7"])
        report = run.stop()
        expect(report["lost"], {})
        drops = {drop["reason"]: drop["count"] for drop in report["drops"]}
        expect(drops, {"unknown tunnel": 2, "foreign station": 1, "foreign address": 1,
                       "unknown address": 1})
        return report["packets_in"]


def dress(world):
    world.pair("braid", "ran0", "station", "eth0")
    world.pair("braid", "net0", "server", "eth0")
    for address in (STATION, OTHER):
        world.ip("station", "addr", "add", f"{address}/24", "dev", "eth0")
    world.ip("server", "addr", "add", f"{SERVER}/24", "dev", "eth0")
    world.ip("server", "route", "add", "10.45.0.0/16", "via", "198.51.100.1")
    world.serve("server", SERVER)
    # The second phone's tunnel is one of 5G.
    sessions = [f"{name}:{here}:{there}" for name, (_, here, there) in PHONES.items()]
    world.background("station", "serve", STATION, CORE, sessions[0], sessions[1] + "+",
                     program="station.py")
    for name, (address, _, _) in PHONES.items():
        world.ip("station", "link", "set", name, "netns", world.names[name])
        world.ip(name, "link", "set", name, "mtu", str(MTU), "up")
        world.ip(name, "addr", "add", f"{address}/32", "dev", name)
        world.ip(name, "route", "add", "default", "dev", name)
        world.serve(name, address)


def use(world, name, address):
    for size in (56, MTU - 28, 3000):
        assert world.answers(name, SERVER, "-s", str(size)), size
        assert world.answers("server", address, "-s", str(size)), size
    expect(world.peer(name, "udp", SERVER), f"hello from {address}")
    expect(world.peer(name, "download", SERVER), f"same {address}")
    expect(world.peer(name, "upload", SERVER), "same")
    words = ["curl", "-sS", "--max-time", "10", "-o", "/dev/null", "-w", "%{size_download}"]
    expect(world.run("server", *words, f"http://{address}:8000/"), str(len(BODY)))


def forge(world):
    """Packets in tunnels of nobody or of others, or from others' addresses, and a right one."""
    for own, tunnel, source in ((STATION, "1003", "10.45.0.3"), (STATION, "1000", "10.45.0.1"),
                                (OTHER, "1001", "10.45.0.1"), (STATION, "1001", "10.45.0.2"),
                                (STATION, "1002", "10.45.0.2")):
        world.peer("station", "inject", own, CORE, tunnel, source, SERVER, program="station.py")
    assert not world.answers("server", "10.45.0.3", wait=0.5)
    # By now, all that was sent has arrived.
    assert world.answers("phone1", SERVER)
