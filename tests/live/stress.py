"""Stream functions between real hosts for longer: `stress.py BRAID [SCENE…]`. Without a scene, all of
them run, each on the engines `synth` and `fused`. CONNECTIONS: the connections at once (10000), SIZE:
the megabytes of a transfer (1000)."""

import os
import sys
import time

from live import expect
from stream_files import ftp, servers, transfers
from stream_hosts import ADDRESS, CLIENT, Hosts, Service, agree, count, drops, quiet, right, tables

CONNECTIONS = os.environ.get("CONNECTIONS", "10000")
SERVICE, INSIDE = "198.51.100.10", "10.0.0.2"
# MiB. A stack may use 256 MiB. The rest is the program, the tables of six functions, and what the
# allocator loses.
MOST_MEMORY = 512


def crowd(braid, engine):
    """Ten thousand connections at once. Each of them gets its answers. The log agrees with the
    client on every one of them, and nothing else happens."""
    with Hosts(braid, engine) as hosts:
        hosts.background("server", "serve", "p", ADDRESS, "5800")
        hosts.begin("six")
        ports = hosts.ask("meet", ADDRESS, "5800", CONNECTIONS, "p/")
        report, events, memory = hosts.finish()
        expect(len(ports), int(CONNECTIONS))
        agree(events, "log", CLIENT, {5800}, ports)
        expect(dict(count(events)), {("log", "CONNECTION_OPEN"): len(ports),
                                     ("log", "CONNECTION_END"): len(ports)})
        expect(tables(report, "log")["log"]["created"], len(ports))
        expect(drops(report), set())
        quiet(report)
        return f"{report['packets_in']} packets, {memory} MiB"


def balanced(braid, engine):
    """The same through the load balancer: the logs on both of its sides agree with the client."""
    with Service(braid, engine) as hosts:
        hosts.begin("balanced")
        # The first ones find the servers' MAC addresses.
        ports = hosts.ask("meet", SERVICE, "80", "20", "p/", "i/img/")
        ports |= hosts.ask("meet", SERVICE, "80", CONNECTIONS, "p/", "i/img/")
        report, events, memory = hosts.finish()
        agree(events, "front", INSIDE, {80}, ports)
        agree(events, "back", INSIDE, {80, 8080}, ports)
        expect(tables(report, "balance")["open"]["created"], len(ports))
        quiet(report)
        return f"{report['packets_in']} packets, {memory} MiB"


def floods(braid, engine):
    """Connections go on, and get right bytes, while others flood: SYNs, requests that never end,
    receivers that do not read, segments of one byte, and bytes that wait for others until the stack
    has no more memory. What it gives up is counted, and its memory is bounded."""
    with Hosts(braid, engine) as hosts:
        hosts.background("server", "serve", "p", ADDRESS, "5800")
        hosts.pages()
        hosts.begin("six")
        before, after = str(hosts.folder / "before"), str(hosts.folder / "after")
        go_on = hosts.background("client", "steady", ADDRESS, "5800", "20", "p/", after)
        waiting = [hosts.background("client", "halves", ADDRESS, "5800", "alert", "-me", before)
                   for _ in range(3)]
        idle = hosts.background("client", "halves", ADDRESS, "5800", "one-half", "the-other", after)
        expect(hosts.peer("client", "flood", ADDRESS, "5800", "200000"), "200000 sent")
        expect(hosts.peer("client", "loris", ADDRESS, "500", "10"), "500 answered")
        ports = stalled(hosts, 40) | tiny(hosts, 30)
        # What came before these floods still counts.
        ports |= finished(waiting, before)
        swamp(hosts)
        ports |= finished([go_on], after)
        # The bytes of a connection that was given up are right, too.
        finished([idle], after)
        # New connections are searched.
        expect(hosts.peer("client", "signed", ADDRESS, "5800", "cmd.exe"), "reset")
        report, events, memory = hosts.finish()
        agree(events, "log", CLIENT, {5800}, ports)
        kinds = count(events)
        expect((kinds["alert", "STREAM_ALERT"], kinds["block", "STREAM_ALERT"]), (3, 1))
        expect(drops(report), {"signature"})
        found = "; ".join(one for one in report["warnings"] if "`log`" in one)
        for problem in ("has no memory for connections", "has no memory for bytes that wait"):
            assert problem in found, report["warnings"]
        assert memory < MOST_MEMORY, f"{memory} MiB"
        return f"{report['packets_in']} packets, {memory} MiB; {found}"


def floods_balanced(braid, engine):
    """A flood of SYNs and other segments takes no memory of the load balancer, and connections go
    on."""
    with Service(braid, engine) as hosts:
        hosts.begin("balanced")
        after = str(hosts.folder / "after")
        go_on = hosts.background("client", "steady", SERVICE, "80", "20", "p/", after)
        expect(hosts.peer("client", "flood", SERVICE, "80", "200000"), "200000 sent")
        ports = tiny(hosts, 30, SERVICE, "80") | stalled(hosts, 20, SERVICE, "80")
        ports |= finished([go_on], after)
        report, events, memory = hosts.finish()
        agree(events, "front", INSIDE, {80}, ports)
        agree(events, "back", INSIDE, {80, 8080}, ports)
        made = {name: table["created"] for name, table in tables(report, "balance").items()}
        expect(made["open"], len(ports), made)
        assert "no connection" in drops(report), report["drops"]
        assert memory < MOST_MEMORY, f"{memory} MiB"
        return f"{report['packets_in']} packets, {memory} MiB"


def finished(running, file):
    """Makes the file that these clients wait for. Returns their connections."""
    open(file, "w").close()
    ports = {}
    for one in running:
        ports |= right(one.communicate(timeout=60)[0])
    return ports


def stalled(hosts, number, address=ADDRESS, port="5800"):
    """Receivers that do not read, until their windows are zero."""
    windows = ("netstat", "TcpExt", "TCPToZeroWindowAdv")
    before = [hosts.counter(name, *windows) for name in ("client", "server")]
    ports = hosts.ask("stalled", address, port, str(number))
    after = [hosts.counter(name, *windows) for name in ("client", "server")]
    closed = [b - a for a, b in zip(before, after)]
    assert min(closed) >= number, f"windows that became zero: {closed}"
    return ports


def tiny(hosts, number, address=ADDRESS, port="5800"):
    """Segments of one byte each."""
    before = hosts.counter("client", "snmp", "Tcp", "OutSegs")
    ports = hosts.ask("tiny", address, port, str(number))
    sent = hosts.counter("client", "snmp", "Tcp", "OutSegs") - before
    assert sent > 1800 * number, f"{sent} segments"
    return ports


def swamp(hosts):
    """Segments between two ends that no host has. They wait for bytes that never come: many in one
    connection, and much in 6,000 connections."""
    for what, first, number in (("pieces", "1000", "1"), ("waiting", "2000", "6000")):
        for name, step in (("client", "opened"), ("server", "answered"), ("client", what)):
            hosts.peer(name, "forge", "eth0", step, first, number)


def main(braid, *names):
    scenes = (crowd, balanced, transfers, servers, ftp, floods, floods_balanced)
    unknown = set(names) - {scene.__name__ for scene in scenes}
    expect(unknown, set(), "scenes")
    for scene in scenes:
        for engine in ("synth", "fused"):
            if names and scene.__name__ not in names:
                continue
            started = time.monotonic()
            said = scene(os.path.abspath(braid), engine)
            print(f"{scene.__name__} by {engine}: {said}, {time.monotonic() - started:.0f} s",
                  flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
