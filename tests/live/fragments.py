"""Datagrams of real hosts that come in fragments, with functions behind that need whole packets."""

import json

from live import Braid, World, expect, sh

CLIENT, SERVER = ("10.8.0.1", "fd08::1"), ("10.8.0.2", "fd08::2")


def fragments(braid, engine):
    """Long datagrams pass both ways, also if their fragments come in any order and twice."""
    disorder = ("--faults", "reorder=20%,duplicate=5%")
    return sum(scene(braid, engine, more) for more in ((), disorder))


def scene(braid, engine, disorder):
    with World("client", "braid", "server", ip6=True) as world:
        for name, device, addresses in (("client", "lan0", CLIENT), ("server", "wan0", SERVER)):
            world.pair("braid", device, name, "eth0")
            world.ip(name, "addr", "add", f"{addresses[0]}/24", "dev", "eth0")
            world.ip(name, "addr", "add", f"{addresses[1]}/64", "dev", "eth0", "nodad")
        for address in SERVER:
            world.serve("server", address)
        run = Braid(world, braid, engine, "fragments.braid", "in=af_packet:lan0",
                    "out=af_packet:wan0", more=disorder)
        for client, server in zip(CLIENT, SERVER):
            # The shortest datagram of two fragments, and the longest one with an echo of this kind.
            for size in ("1473", "5000", "60000"):
                text = world.run("client", "ping", "-c2", "-i0.1", "-W5", "-s", size, server)
                assert " 0% packet loss" in text, text
                expect(world.peer("client", "long", server, size), f"{size} bytes from {client}")
        # A firewall sees the ports of all fragments.
        expect(world.peer("client", "long", SERVER[0], "5000", "9", "1"), "nothing")
        if not disorder:
            there = world.background("server", "hear", SERVER[0], "4000", program="pieces.py")
            world.peer("client", "overlap", CLIENT[0], SERVER[0], program="pieces.py")
            expect(there.stdout.readline().strip(), "only whole")
        state = [json.loads(line) for line in
                 sh(braid, "ctl", run.socket, "state", "whole").splitlines() if line[0] == "{"]
        report = run.stop()
        counts = {name: count for entry in state if entry["table"] == "counters"
                  for name, count in entry["value"].items()}
        # Three sizes, two pings and an echo each, both families.
        assert counts["put together"] >= 3 * 3 * 2, counts
        wrong = {} if disorder else {"fragments do not fit together"}
        expect({drop["reason"] for drop in report["drops"]}, {"closed", *wrong})
        expect(report["lost"], {})
        return report["packets_in"]
