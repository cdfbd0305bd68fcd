"""Two hosts with a chain of stream functions between them, and what its log says of connections.

client (10.7.0.1) - lan0 [braid] wan0 - server (10.7.0.2)"""

import collections
import ipaddress
import json
import re
import tempfile
import time
from pathlib import Path

from live import HERE, Braid, World, expect

CLIENT, ADDRESS = "10.7.0.1", "10.7.0.2"
# Drops 1 % of the packets that a host gets.
LOSS = """table ip loss {
  chain input {
    type filter hook input priority 0
    numgen random mod 100 < 1 counter drop
  }
}"""


class Hosts(World):
    """The hosts, their folder, and the command between them."""

    program = "crowd.py"

    def __init__(self, braid, engine):
        super().__init__("client", "braid", "server")
        self.command, self.engine = braid, engine

    def __enter__(self):
        super().__enter__()
        self.temporary = tempfile.TemporaryDirectory(prefix="braid-stress-")
        self.folder = Path(self.temporary.name)
        # Programs that give up their privileges read and write here, too.
        self.folder.chmod(0o755)
        self.pair("braid", "lan0", "client", "eth0")
        self.pair("braid", "wan0", "server", "eth0")
        self.dress()
        return self

    def __exit__(self, *why):
        super().__exit__(*why)
        self.temporary.cleanup()

    def dress(self):
        self.ip("client", "addr", "add", f"{CLIENT}/24", "dev", "eth0")
        self.ip("server", "addr", "add", f"{ADDRESS}/24", "dev", "eth0")
        # So that forged ends get answers, which nobody takes.
        self.ip("server", "route", "add", "172.16.0.0/12", "via", CLIENT)

    def pages(self):
        """Serves `/page` by nginx on port 80."""
        (self.folder / "page").write_text("a page\n" * 700)
        self.nginx("server", self.folder, f"server {{ listen {ADDRESS}:80; root {self.folder}; }}")

    def wrk(self, page, more=()):
        """The pages that 20 connections get in two seconds."""
        text = self.run("client", "wrk", "-t1", "-c20", "-d2s", "--timeout", "20s", *more, page)
        assert "errors" not in text and "Non-2xx" not in text, text
        return int(re.search(r"(\d+) requests in", text)[1])

    def lose(self):
        """From now on, both hosts lose packets."""
        (self.folder / "loss.nft").write_text(LOSS)
        for name in ("client", "server"):
            self.run(name, "nft", "-f", str(self.folder / "loss.nft"))

    def begin(self, chain, *devices):
        devices = devices or ("in=af_packet:lan0", "out=af_packet:wan0")
        self.braid = Braid(self, self.command, self.engine, f"{chain}.braid", *devices, limit="900s",
                           more=("--events-out", str(self.folder / "events")))

    def finish(self):
        """Ends the run when no connection of the client is open. Returns the report, the events, and
        the most memory that the command has had (MiB)."""
        deadline = time.monotonic() + 60
        while open_ones := self.open_ones():
            assert time.monotonic() < deadline, open_ones
            time.sleep(0.1)
        memory = self.braid.most_memory() >> 10
        report = self.braid.stop(120)
        lines = (self.folder / "events").read_text().splitlines()
        expect(report["lost"], {})
        return report, [json.loads(line) for line in lines], memory

    def open_ones(self):
        """The connections of both hosts, but not connections that only wait for late packets."""
        states = ("established", "syn-sent", "syn-recv", "fin-wait-1", "fin-wait-2", "close-wait",
                  "last-ack", "closing")
        words = [word for state in states for word in ("state", state)]
        found = [self.run(name, "ss", "-Htn", *words).splitlines() for name in ("client", "server")]
        return [line for lines in found for line in lines]

    def counter(self, name, file, group, key):
        """A counter of a host's TCP, such as OutSegs of the group Tcp in the file snmp."""
        lines = self.run(name, "cat", f"/proc/net/{file}").splitlines()
        names, values = (line.split()[1:] for line in lines if line.startswith(f"{group}:"))
        return int(values[names.index(key)])

    def ask(self, *words):
        """Runs a client, all of whose answers must be right. Returns its connections."""
        return right(self.peer("client", *words))


class Service(Hosts):
    """A client of a service whose first request chooses the server, and three servers. One of them
    is down."""

    def dress(self):
        self.ip("client", "addr", "add", "10.0.0.2/24", "dev", "eth0")
        self.ip("client", "route", "add", "default", "via", "10.0.0.1")
        for address in ("203.0.113.11", "203.0.113.12", "203.0.113.13"):
            self.ip("server", "addr", "add", f"{address}/24", "dev", "eth0")
        self.ip("server", "route", "add", "default", "via", "203.0.113.1")
        self.background("server", "serve", "p", "203.0.113.11", "80")
        self.background("server", "serve", "i", "203.0.113.13", "8080")

    def begin(self, chain):
        super().begin(chain, "lan=af_packet:lan0", "wan=af_packet:wan0")


def right(text):
    said = json.loads(text)
    expect(said["wrong"], 0)
    return {int(port): tuple(amounts) for port, amounts in said["ports"].items()}


def count(events):
    """The number of events by function and kind."""
    return collections.Counter((one["function"], one["event"]) for one in events)


def agree(events, function, client, servers, ports):
    """A log has seen each of these connections, from a client to some server's ports, open once and
    end once, with the same bytes up and down."""
    address = int(ipaddress.ip_address(client))
    opened, ended = collections.Counter(), collections.defaultdict(list)
    for one in events:
        fields = one["fields"]
        if one["function"] != function or fields["client"] != address:
            continue
        if fields["sport"] not in servers:
            continue
        if one["event"] == "CONNECTION_OPEN":
            opened[fields["cport"]] += 1
        else:
            ended[fields["cport"]].append((fields["up"], fields["down"]))
    wrong = {port: (amounts, opened[port], ended[port]) for port, amounts in ports.items()
             if opened[port] != 1 or ended[port] != [amounts]}
    assert not wrong, (len(wrong), len(ports), list(wrong.items())[:5])


def tables(report, function):
    """The tables of a function, by name."""
    of_it = next(one for one in report["functions"] if one["name"] == function)
    return {one["table"]: one for one in of_it["tables"]}


def drops(report):
    return {one["reason"] for one in report["drops"]}


def quiet(report, *known):
    """No function has a problem but these. A slow machine may lose frames before Braid, which TCP
    sends again."""
    known = ("arrived too fast", *known)
    expect([one for one in report["warnings"] if not any(what in one for what in known)], [])
