#!/usr/bin/env python3
"""Measures FastClick with the chains, routes, rules and packets that `braid bench --export` writes.

    fastclick.py --click FOLDER [--core N] [--trials N] [--seconds S] [--compile] CASE...

FOLDER is where FastClick was installed (with DPDK and its flow elements): it holds bin/click and, for --compile,
bin/click-fastclassifier, which turns filters into C++ and needs FastClick's headers. CASE is a folder that `braid bench --export DIR`
made of one of the benches in CHAINS. Prints one JSON object a line, with the keys of `braid bench --json`; times are net of the source.

The configurations are the *.click files beside this script. One process, one pinned core, batches of 32.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
# Benches with their functions beside those in a row, and whether they have filters to be compiled.
CHAINS = {
    "routers": (0, False),
    "napts": (0, False),
    "isp": (2, True),
    "filters": (0, True),
    "header_actions": (0, True),
    "early_drop": (1, True),
    "nat_lb_monitor_filter": (3, True),
}
BATCH = 32
# A source needs packets for a while, however few flows there are.
MIN_PACKETS = 4096


def lines(path):
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def routes(case):
    """Routes for DirectIPLookup: `prefix port`, all by the one port of the leanest router."""
    found = [line.split()[0] + " 0" for line in lines(case / "routes1")] if (case / "routes1").exists() else []
    return ", ".join(found) or "0.0.0.0/0 0"


def ports(what, cell):
    low, high = (int(part) for part in cell.split(":"))
    if (low, high) == (0, 65535):
        return []
    if low == high:
        return [f"{what} port {low}"]
    found = [f"{what} port >= {low}"] if low > 0 else []
    return found + ([f"{what} port <= {high}"] if high < 65535 else [])


def rule(line, action):
    """A ClassBench line as a rule of IPFilter."""
    cells = re.match(r"@(\S+)\s+(\S+)\s+(\d+ : \d+)\s+(\d+ : \d+)\s+0x(\w+)/0x(\w+)\s+(?:0x(\w+)/0x(\w+))?", line)
    source, destination, sport, dport, proto, mask, value, wanted = cells.groups()
    terms = []
    if int(mask, 16):
        terms.append({6: "tcp", 17: "udp", 1: "icmp"}.get(int(proto, 16), f"ip proto {int(proto, 16)}"))
    for side, prefix in (("src", source), ("dst", destination)):
        if not prefix.endswith("/0"):
            address, length = prefix.split("/")
            terms.append(f"{side} host {address}" if length == "32" else f"{side} net {prefix}")
    terms += ports("src", sport.replace(" ", "")) + ports("dst", dport.replace(" ", ""))
    if int(proto, 16) == 6 and int(wanted or "0", 16):
        value, wanted = int(value, 16) >> 8, int(wanted, 16) >> 8
        for bit, name in ((0x01, "fin"), (0x02, "syn"), (0x04, "rst"), (0x08, "psh"), (0x10, "ack"), (0x20, "urg")):
            if wanted & bit:
                terms.append(f"tcp opt {name}" if value & bit else f"not tcp opt {name}")
    return f"{action} " + (" && ".join(terms) or "all")


def rules(path, action="allow", default="drop"):
    return ",\n  ".join([rule(line, action) for line in lines(path)] + [f"{default} all"])


def filters(name, n, case):
    """The filters of a row; of early_drop one more, which drops what matches."""
    if name not in ("filters", "header_actions", "early_drop"):
        return ""
    found = [f"f{i} :: IPFilter({rules(case / f'rules{i}')})" for i in range(1, n + 1)]
    if name == "early_drop":
        found.append(f"last :: IPFilter({rules(case / f'rules{n + 1}', 'drop', 'allow')})")
    return " -> ".join(found)


def packets(case, train, path):
    """The case's packets, each as often in a row as its trains are long, and enough of them."""
    data = (case / "packets.pcap").read_bytes()
    head, at, records = data[:24], 24, []
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        records.append(data[at : at + 16 + length])
        at += 16 + length
    rounds = -(-MIN_PACKETS // (len(records) * train))
    path.write_bytes(head + b"".join(record * train for record in records) * rounds)


def configuration(name, n, case, capture, args):
    text = (HERE / "router.click").read_text() if name in ("routers", "isp") else ""
    text += (HERE / f"{'filters' if name == 'header_actions' else name}.click").read_text()
    chain = re.search(r"@CHAIN (.*?)@ ->", text)
    if chain:
        one = chain.group(1)
        row = " -> ".join(one % (i + 1) if "%d" in one else one for i in range(n))
        text = text.replace(chain.group(0), row + " ->")
    # Marks say how many packets came out by then.
    script = "wait 2s" + f', print "mark" $(count.count), wait {args.seconds}s' * args.trials
    left = ', print "left" $(left.count)' if name == "early_drop" else ""
    script += f', print "mark" $(count.count){left}, stop'
    values = {
        "SOURCE": f"FromDump({capture}, STOP false) -> ReplayUnqueue(STOP -1, BURST {BATCH}) -> StoreData(0, \\<02>)",
        "SINK": "count :: Counter -> Discard",
        "ROUTES": routes(case),
        "FILTERS": filters(name, n, case),
        "FILTER": rules(case / "rules") if name == "isp" else "",
        "CAPACITY": "131072",
        "N": str(n),
    }
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text + f"\nScript({script});\n"


def environment(args):
    """Where generated code finds the tools of FastClick and the headers of DPDK."""
    flags = subprocess.run(["pkg-config", "--cflags-only-I", "libdpdk"], capture_output=True, text=True).stdout
    found = os.environ.get("CPATH", "").split(":") + [flag[2:] for flag in flags.split()]
    path = f"{args.click / 'bin'}:{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "CPATH": ":".join(filter(None, found))}


def run(text, folder, args, compiled):
    config = folder / "configuration.click"
    config.write_text(text)
    if compiled:
        fast = folder / "fast.click"
        command = [args.click / "bin/click-fastclassifier", "--user", "--quiet", "-o", fast, config]
        done = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout, env=environment(args))
        if done.returncode or not fast.stat().st_size:
            sys.exit(f"fastclick.py: the filter could not be compiled:\n{done.stderr[-2000:]}")
        config = fast
    command = ["taskset", "-c", str(args.core), args.click / "bin/click", "--dpdk", "--no-huge", "--no-pci", "-m", "1024"]
    command += ["--no-shconf", "--no-telemetry", "-l", str(args.core), "--", config]
    marks, said = [], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            said.append(line)
            if line.startswith("mark "):
                marks.append((processor_ns(process.pid), int(line.split()[1])))
    times = [(b[0] - a[0]) / (b[1] - a[1]) for a, b in zip(marks, marks[1:]) if b[1] > a[1]]
    if any(line.startswith("left ") and line.split()[1] != "0" for line in said):
        sys.exit("fastclick.py: packets came out that should have been dropped")
    if process.returncode or len(times) != args.trials:
        sys.exit(f"fastclick.py: no packets came out:\n{''.join(said)[-2000:]}")
    return times


def processor_ns(pid):
    """Time that a process has spent on processors: what others do there does not count."""
    tasks = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks)


def measure(case, args):
    name = case.name.split("-")[0]
    parts = dict(re.findall(r"-([a-z]+)(\d+)", case.name))
    n, train = int(parts.get("n", 1)), int(parts.get("trains", 1))
    if name not in CHAINS or "chain" in parts:
        sys.exit(f"fastclick.py: {case}: there is a configuration for the first chain of {', '.join(CHAINS)}")
    beside, filtering = CHAINS[name]
    compiled = args.compile and filtering
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        capture = folder / "packets.pcap"
        packets(case, train, capture)
        sources, totals = [], []
        for _ in range(args.processes):
            sources += run(configuration("source", 0, case, capture, args), folder, args, False)
            text = configuration(name, n, case, capture, args)
            totals += run(text, folder, args, compiled)
        source = statistics.median(sources)
        times = [ns - source for ns in totals]
    return {
        "bench": name,
        "chain": name,
        "engine": "fastclick_compiled" if compiled else "fastclick",
        "functions": n + beside,
        "rules": int(parts.get("rules", 0)),
        "routes": int(parts.get("routes", 0)),
        "flows": int(parts.get("flows", 0)),
        "train": train,
        "frame_bytes": int(parts.get("bytes", 60)),
        "runs": len(times),
        "ns_per_packet_median": round(statistics.median(times), 3),
        "ns_per_packet_min": round(min(times), 3),
        "ns_per_packet_max": round(max(times), 3),
        "source_ns": round(source, 3),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--click", type=pathlib.Path, required=True, help="where FastClick was installed")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--processes", type=int, default=5, help="of the chain, and as many of the source")
    parser.add_argument("--trials", type=int, default=3, help="of each process")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each trial")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds to compile a filter")
    parser.add_argument("--compile", action="store_true", help="compile filters by click-fastclassifier")
    parser.add_argument("cases", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    for case in args.cases:
        print(json.dumps(measure(case, args)), flush=True)


if __name__ == "__main__":
    main()
