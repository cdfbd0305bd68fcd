"""Hosts with DHCP clients (udhcpc) and DHCP servers (dnsmasq, udhcpd), at a switch with guards.

alice - port1 [braid] uplink - office (10.3.0.1)
mallory - port2 [braid]"""

import json
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from live import Braid, World, expect, neighbour, until

OFFICE = "10.3.0.1"
MACS = {"alice": "02:00:00:00:03:01", "mallory": "02:00:00:00:03:02", "office": "02:00:00:00:03:03"}
# The address that mallory gives itself, and the one as whose server it poses.
STATIC, ROGUE = "10.3.0.77", "10.66.0.66"
# How long the short leases last (s).
SHORT = 4
CURL = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "1",
        f"http://{OFFICE}:8000/")
# What udhcpc does with a lease; it writes what happened to a file.
SCRIPT = """#!/bin/sh
case $1 in
    deconfig) ip addr flush dev $interface ;;
    bound | renew) ip addr replace $ip/24 dev $interface ;;
esac
echo "$1 $ip $serverid $lease" >> {0}
"""


def dhcp(braid, engine):
    """Hosts reach others by addresses that the office has leased to them, for as long as it has."""
    with World(*MACS, "braid") as world, tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        events = folder / "events"
        dress(world, folder)
        run = Braid(world, braid, engine, "dhcp.braid", "first=af_packet:port1",
                    "second=af_packet:port2", "uplink=af_packet:uplink",
                    more=("--events-out", str(events)))
        came = world.background("office", "watch", "eth0", program="forge.py")
        rogue = server_of_mallory(world, folder)
        server, address = server_of_office(world, folder)
        impostor(world, address)
        for process in (rogue, server):
            process.kill()
            process.wait()
        own = short_leases(world, folder)
        came.send_signal(signal.SIGTERM)
        check_arrived(came.communicate(timeout=5)[0], own)
        report = run.stop()
        expect(report["lost"], {})
        check_drops(report["drops"])
        check_events(events, address)
        return report["packets_in"]


def dress(world, folder):
    for (name, mac), device in zip(MACS.items(), ("port1", "port2", "uplink")):
        world.pair("braid", device, name, "eth0", mac)
        script = folder / f"{name}.sh"
        script.write_text(SCRIPT.format(folder / name))
        script.chmod(0o755)
    world.ip("office", "addr", "add", f"{OFFICE}/24", "dev", "eth0")
    world.serve("office", OFFICE)


def server_of_mallory(world, folder):
    """A rogue server offers addresses, and they do not arrive."""
    world.ip("mallory", "addr", "add", f"{ROGUE}/24", "dev", "eth0")
    rogue = dnsmasq(world, folder, "mallory", "10.66.0.100,10.66.0.120,10m")
    assert not lease(world, folder, "alice", tries=2), noted(folder, "alice")
    log = (folder / "mallory.log").read_text()
    assert "DHCPOFFER(eth0) 10.66.0.1" in log, log
    return rogue


def server_of_office(world, folder):
    """The office's server gives an address, while the rogue offers others, and all goes by it."""
    server = dnsmasq(world, folder, "office", "10.3.0.100,10.3.0.120,10m")
    # It asks by ARP first whether somebody has the address (RFC 5227).
    assert lease(world, folder, "alice", "-a100"), noted(folder, "alice")
    kind, address, *more = noted(folder, "alice")[-1].split()
    expect([kind, *more], ["bound", OFFICE, "600"])
    assert address.startswith("10.3.0.1"), address
    assert world.answers("alice", OFFICE)
    expect(world.peer("alice", "download", OFFICE), f"same {address}")
    expect(world.peer("alice", "upload", OFFICE), "same")
    expect(world.call("alice", *CURL).stdout, "200")
    return server, address


def impostor(world, address):
    """Mallory gets nothing through by addresses not leased to it, with and without ARP."""
    world.ip("mallory", "addr", "add", f"{STATIC}/24", "dev", "eth0")
    assert not world.answers("mallory", OFFICE, wait=0.5)
    mac = MACS["office"]
    world.ip("mallory", "neigh", "replace", OFFICE, "lladdr", mac, "dev", "eth0")
    assert not world.answers("mallory", OFFICE, wait=0.5)
    expect(world.call("mallory", *CURL).stdout, "000")
    for words in (("say", "eth0", mac, address, OFFICE),
                  ("claim", "eth0", OFFICE, MACS["alice"], address),
                  ("claim", "eth0", address, mac, OFFICE)):
        world.peer("mallory", *words, program="forge.py")
    assert world.answers("alice", OFFICE)
    expect(neighbour(world, "alice", OFFICE), mac)
    expect(neighbour(world, "office", address), MACS["alice"])
    world.ip("mallory", "addr", "flush", "dev", "eth0")
    world.ip("mallory", "neigh", "flush", "all", "nud", "all")


def short_leases(world, folder):
    """A host that renews its lease goes on, and one that does not loses its access, though it keeps
    its address. Returns mallory's address."""
    (folder / "conf").write_text(
        f"start 10.3.0.200\nend 10.3.0.220\ninterface eth0\noption lease {SHORT}\nmin_lease 1\n"
        f"lease_file {folder}/leases\npidfile {folder}/pid\n")
    (folder / "leases").touch()
    world.start("office", "busybox", "udhcpd", "-f", "-a", "50", str(folder / "conf"),
                stderr=subprocess.DEVNULL)
    listens(world, "office")
    alice = client(world, folder, "alice")
    until(lambda: noted(folder, "alice")[-1].startswith("bound 10.3.0.2"), "a short lease")
    began = time.monotonic()
    assert lease(world, folder, "mallory"), noted(folder, "mallory")
    own = noted(folder, "mallory")[-1].split()[1]
    assert world.answers("mallory", OFFICE)
    while world.answers("mallory", OFFICE, wait=0.5):
        renew(alice, folder)
        time.sleep(0.2)
        assert time.monotonic() < began + SHORT + 6, "the lease goes on"
    assert time.monotonic() > began + SHORT, "the lease has ended early"
    assert own in world.ip("mallory", "addr", "show", "dev", "eth0")
    renew(alice, folder)
    assert world.answers("alice", OFFICE)
    give_back(world, folder, alice)
    return own


def renew(process, folder):
    before = len(noted(folder, "alice"))
    process.send_signal(signal.SIGUSR1)
    until(lambda: noted(folder, "alice")[before:], "an answer to a client that renews")
    assert noted(folder, "alice")[-1].startswith("renew"), noted(folder, "alice")


def give_back(world, folder, process):
    """A lease that its host gives back ends at once."""
    address = noted(folder, "alice")[-1].split()[1]
    process.send_signal(signal.SIGUSR2)
    until(lambda: noted(folder, "alice")[-1].startswith("deconfig"), "the lease's end")
    world.ip("alice", "addr", "add", f"{address}/24", "dev", "eth0")
    assert not world.answers("alice", OFFICE, wait=0.5)


def dnsmasq(world, folder, name, pool):
    """A DHCP server with a pool of addresses."""
    process = world.start(
        name, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root",
        "--interface=eth0", "--no-ping", "--dhcp-authoritative", f"--dhcp-range={pool}",
        f"--dhcp-leasefile={folder}/{name}.leases", f"--log-facility={folder}/{name}.log",
        f"--pid-file={folder}/{name}.pid")
    listens(world, name)
    return process


def listens(world, name):
    until(lambda: ":67 " in world.run(name, "ss", "-Hulpn"), "a DHCP server")


def client(world, folder, name, *more, tries=5):
    return world.start(name, "busybox", "udhcpc", "-f", "-n", "-t", str(tries), "-T", "1", "-i",
                       "eth0", "-s", str(folder / f"{name}.sh"), *more, stderr=subprocess.DEVNULL)


def lease(world, folder, name, *more, tries=5):
    """Whether a host gets a lease. It does not renew it."""
    return client(world, folder, name, "-q", *more, tries=tries).wait(timeout=20) == 0


def noted(folder, name):
    """What happened to a client, a line each."""
    return (folder / name).read_text().splitlines()


def check_arrived(lines, own):
    """All that came from mallory was DHCP, or by the address that was leased to it."""
    mine = [line for line in lines.splitlines() if line.startswith(MACS["mallory"])]
    asked = [line for line in mine if " 0.0.0.0 255.255.255.255 68 67" in line]
    strange = [line for line in mine if line not in asked and f" {own}" not in line]
    assert asked and not strange, (asked, strange)


def check_drops(drops):
    found = {(drop["function"], drop["reason"]) for drop in drops}
    forged = {("guard2", "server message"), ("guard2", "forged ARP"), ("guard2", "forged source")}
    # Alice, without a lease.
    late = {("guard1", "forged ARP"), ("guard1", "forged source")}
    assert forged <= found <= forged | late, found


def check_events(file, address):
    """Each forgery and the leases were published, with the addresses in them."""
    found = {}
    for line in file.read_text().splitlines():
        event = json.loads(line)
        found.setdefault(event["event"], []).append(event["fields"])
    assert found["FORGED_SERVER"][0]["yours"].startswith("10.66.0.1"), found["FORGED_SERVER"]
    assert {"mac": MACS["alice"], "addr": address, "seconds": 600} in found["LEASE"], found["LEASE"]
    for kind in ("FORGED_ARP", "FORGED_SOURCE"):
        forged = {fields["addr"] for fields in found[kind] if fields["mac"] == MACS["mallory"]}
        other = OFFICE if kind == "FORGED_ARP" else address
        assert {STATIC, other, address} <= forged, (kind, forged)
