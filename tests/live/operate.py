"""Operates Braid between real peers in network namespaces: `operate.py BRAID [SECONDS]`, or for
longer, on devices of one kind and at a low rate: `operate.py BRAID soak KIND WORKERS SECONDS`.

The client reaches the servers by one service address, 198.51.100.10, through a firewall, a monitor,
Maglev and NAPT (`sites.py`). While it does, the chain is loaded again, links flap, and requests
arrive at the control socket. No connection may break."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from everyday import changed_mtu, paths, peers, peers6
from kernel import same_pass
from live import expect
from sites import SERVICE, Site


def operate(command, seconds, workers, kind="af_packet", rate=0):
    """Nothing that an operator does, and no link that flaps, breaks a connection. `rate`: the bytes
    a second of each connection but the long one; 0: as many as there can be."""
    with Site(command, kind, kind != "xdp", workers=workers, rate=rate) as site:
        braid = site.braid("--state-dir", str(site.folder / "state"), "--state-every", "3s")
        beats = site.background("client", "beat", SERVICE, str(seconds + 2))
        load = site.start("client", "wrk", "-t1", "-c8", f"-d{seconds}s", "--timeout", "10s",
                          f"http://{SERVICE}/page")
        text = (site.folder / "site.braid").read_text()
        changed = text.replace("<-> count <->", "<-> count <-> again <->")
        changed = changed.replace("  nat =", "  again = monitor();\n  nat =")
        start, reloads, flaps, requests, memory, pauses = time.monotonic(), 0, 0, 0, [], []
        while (now := time.monotonic() - start) < seconds:
            if now > 5 * (reloads + 1):
                reloads += 1
                (site.folder / "site.braid").write_text(changed if reloads % 2 else text)
                answer = site.ctl("reload")
                pauses.append(float(re.search(r"packets waited ([\d.]+) ms", answer)[1]))
                check_plan(answer, reloads % 2 == 1)
            if now > 7 * (flaps + 1):
                flaps += 1
                site.flap(("lan0", "wan0")[flaps % 2])
            for words in (("status",), ("counters",), ("state", "nat"), ("--json", "status")):
                site.ctl(*words)
                requests += 1
            status = Path(f"/proc/{braid_pid(braid)}/status").read_text()
            memory.append(int(re.search(r"VmRSS:\s+(\d+)", status)[1]))
            time.sleep(1 if rate else 0.2)
        loaded = load.communicate(timeout=30)[0]
        pages = re.search(r"(\d+) requests in", loaded)
        broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+)", loaded)
        assert broken is None or set(broken.groups()) == {"0"}, loaded
        beaten = beats.communicate(timeout=30)[0].split()
        expect(beaten[0], "whole", "the long connection")
        report = site.report(braid)
        half = memory[len(memory) // 2:]
        assert max(half) < 1.1 * half[0] + 4096, f"memory grows: {memory}"
        drops = {f"{one['function']}: {one['reason']}": one["count"] for one in report["drops"]}
        print(f"operate: {kind}, workers {workers}, {seconds} s, {report['packets_in']} packets, "
              f"{reloads} reloads (pauses up to {max(pauses, default=0):.1f} ms), {flaps} flaps, "
              f"{requests} requests, {pages[1]} pages; the long connection stood still for "
              f"{beaten[1]} s at most; {half[0] >> 10} MiB at half time, {half[-1] >> 10} MiB at the "
              f"end; lost {report['lost']}, dropped {drops}", flush=True)


def check_plan(answer, is_new):
    """A reload keeps all that the chain goes on to have, and names what is new and what is lost."""
    # The functions of the new chain in order, then the lost ones.
    new = ["`fw` moves", "`count` moves", "`lb` moves", "`again` is new", "`nat` moves"]
    old = ["`fw` moves", "`count` moves", "`lb` moves", "`nat` moves",
           "`again` is lost: the chain has no function of this name"]
    expect(re.findall(r"^`.*$", answer, re.MULTILINE), new if is_new else old)
    parts = re.findall(r"^  .*$", answer, re.MULTILINE)
    moved = [part for part in parts if re.fullmatch(r"  table `\w+` \(\d+ entries\) moves", part)]
    expect(parts, moved, "tables that do not move")
    assert {"`stats`", "`chosen`", "`map`", "`back`"} <= {part.split()[1] for part in parts}, answer


def killed(command):
    """After SIGKILL, a run goes on from the state that was saved last."""
    with Site(command) as site:
        keep = ("--state-dir", str(site.folder / "state"), "--state-every", "1s")
        braid = site.braid(*keep)
        beats = site.background("client", "beat", SERVICE, "8")
        time.sleep(3)
        os.kill(braid_pid(braid), 9)
        braid.wait()
        site.socket.unlink()
        braid = site.braid(*keep)
        beaten = beats.communicate(timeout=30)[0].split()
        expect(beaten[0], "whole", "the connection from before")
        site.report(braid)
        print(f"killed: the connection stood still for {beaten[1]} s")


def braid_pid(process):
    """The process of Braid. `ip netns exec` becomes the command that it runs."""
    return process.pid


def has_dpdk(command):
    """Whether the command was built with DPDK."""
    said = subprocess.run([command, "doctor", "--json"], capture_output=True, text=True).stdout
    findings = {one["subject"]: one["health"] for one in json.loads(said)["machine"]}
    return findings.get("dpdk") == "ok"


def main(command, seconds="20", *soak):
    command = os.path.abspath(command)
    if seconds == "soak":
        kind, workers, seconds = soak
        return operate(command, int(seconds), int(workers), kind, rate=250_000)
    for kind, offload in (("af_packet", True), ("af_packet", False), ("xdp", False)):
        peers(command, kind, offload)
    for kind in ("af_packet", "xdp", "tap"):
        peers(command, kind, offload=kind != "xdp", workers=2)
    if has_dpdk(command):
        peers(command, "dpdk", offload=False)
    for kind in ("af_packet", "xdp"):
        peers6(command, kind)
    paths(command)
    for kind in ("af_packet", "xdp", "tap"):
        changed_mtu(command, kind)
    same_pass(command)
    killed(command)
    for workers in (1, 2):
        operate(command, int(seconds) // 2, workers)


if __name__ == "__main__":
    main(*sys.argv[1:])
