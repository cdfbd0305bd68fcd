#!/usr/bin/python3
"""Measures Braid against what a user would take instead, between network namespaces, in one run.

docs/performance.md, "Live, against peers", says how to read the results."""

import argparse
import json
import sys
from pathlib import Path

import balancers
import chains
import memory
import proxies
import report
from bed import SIZES, Bed, facts
from measure import Case, Wire
from subjects import Absent, Braid, FastClick, Kernel, Subject, Testpmd, Xdp, testpmd_null


class Nothing(Subject):
    """No device under test: the generator alone."""

    def start(self, bed):
        pass


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("braid", help="the command")
    parser.add_argument("load", help="the generator: braid-load")
    parser.add_argument("--json", type=Path, help="where to write the results as JSON")
    parser.add_argument("--markdown", type=Path, help="where to write the tables")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each trial")
    parser.add_argument("--steps", type=int, default=7, help="of a bisection")
    parser.add_argument("--loss", type=float, default=0.0, help="the part that a trial may lose")
    parser.add_argument("--flows", type=int, default=1000)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--lengths", nargs="+", type=int, choices=chains.LENGTHS,
                        default=chains.LENGTHS,
                        help="of chains, with packets of 64 bytes; with others, the chain of four")
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--smoke", action="store_true", help="a few seconds, to see that it works")
    found = parser.parse_args()
    if found.smoke:
        found.seconds, found.steps, found.sizes, found.lengths = 0.1, 1, ["64"], [4]
    return found


def subjects(given, size):
    """The devices under test for packets of a size. A chain comes first in nftables."""
    lengths = given.lengths if size == "64" else [4]
    yield Nothing("generator")
    yield Kernel("kernel_forwarding")
    yield Testpmd("testpmd_af_packet")
    yield Xdp("xdp_bench")
    yield FastClick("fastclick")
    for length in lengths:
        yield Kernel("nftables", length, threads=False)
        yield Kernel("nftables_threads", length)
        for kind in ("af_packet", "xdp"):
            for workers in given.workers[:1] if given.smoke else given.workers:
                yield Braid(given.braid, kind, length, workers)


def measure_packets(given, results):
    for size in given.sizes:
        peers = {}
        for subject in subjects(given, size):
            make = Wire if isinstance(subject, Nothing) else Bed
            with make(given.load) as bed:
                try:
                    subject.start(bed)
                    case = Case(bed, subject, size, given).measure(peers.get(subject.length))
                    case["end"] = subject.stop(bed)
                except Absent as why:
                    subject.stop(bed)
                    absent(results, subject, str(why))
                    continue
            if subject.name.startswith("nftables"):
                peers[subject.length] = max(case["loss_free_pps"], peers.get(subject.length, 0))
            results["cases"].append(case)
            say(f"{size} B, {report.named(case)}: {case['loss_free_pps'] / 1000:.0f} k/s without "
                f"loss, {case['flood_pps'] / 1000:.0f} k/s at most")


def absent(results, subject, why):
    name = subject if isinstance(subject, str) else subject.name
    workers = getattr(subject, "workers", 1)
    name += f", {workers} workers" if workers > 1 else ""
    if name not in (known["peer"] for known in results["absent"]):
        results["absent"].append({"peer": name, "reason": why})
        say(f"absent: {name}: {why}")


def measure_others(given, results):
    seconds = 1 if given.smoke else 5
    for key, role, names, measure in (
            ("balancers", "load balancer", balancers.BALANCERS, balancers.measure),
            ("proxies", "proxy", proxies.PROXIES, proxies.measure)):
        for name in names:
            try:
                found = measure(name, given.braid, seconds)
            except Absent as why:
                absent(results, f"{name} as a {role}", str(why))
                continue
            results[key].append(found)
            say("{}: {connections_per_s} connections/s, {requests_per_s} requests/s of "
                "{request_us} us".format(name, **found))
    try:
        results["testpmd_null"] = testpmd_null(2)
    except Absent as why:
        absent(results, "testpmd_net_null", str(why))
    seconds, passes = (1, 1) if given.smoke else (5, 3)
    try:
        results["memory"] = memory.measure(given.braid, given.workers, seconds, passes)
    except Absent as why:
        absent(results, "workers on packets in memory", str(why))


def say(text):
    print(f"bench-live: {text}", file=sys.stderr, flush=True)


def main():
    given = options()
    settings = {key: getattr(given, key) for key in ("seconds", "steps", "loss", "flows", "smoke")}
    results = {"machine": facts(given.braid), "settings": settings, "cases": [], "balancers": [],
               "proxies": [], "absent": [], "memory": {}, "testpmd_null": None}
    measure_packets(given, results)
    measure_others(given, results)
    results["promises"] = report.promises(results)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n")
    text = report.markdown(results)
    if given.markdown:
        given.markdown.write_text(text)
    print(text)
    report.check(results, given)


if __name__ == "__main__":
    main()
