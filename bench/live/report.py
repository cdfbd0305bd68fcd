"""The report of the live bench: what it must hold, what was promised, and the tables."""

HOLDS = {True: "yes", False: "no", None: "not measured"}


def named(case):
    """A case's name for readers."""
    name = case["subject"]
    name += f", {case['length']} functions" if case["length"] else ""
    return name + (f", {case['workers']} workers" if case["workers"] > 1 else "")


def find(results, subject, size="64", length=4, workers=1):
    for case in results["cases"]:
        key = (case["subject"], case["size"], case["length"], case["workers"])
        if key == (subject, size, length, workers):
            return case
    return None


def check(results, given):
    """Whether everything was measured or is absent by name, and every account adds up."""
    missing = {known["peer"] for known in results["absent"]}
    for subject in ("nftables", "nftables_threads", "braid_af_packet", "braid_xdp"):
        for size in given.sizes:
            for length in given.lengths if size == "64" else [4]:
                assert find(results, subject, size, length), f"{subject} {size} {length} is missing"
    for subject in ("generator", "kernel_forwarding", "testpmd_af_packet", "xdp_bench",
                    "fastclick"):
        assert subject in missing or find(results, subject, length=0), f"{subject} is not named"
    for case in results["cases"]:
        for trial in case["trials"]:
            check_trial(case, trial)
    balanced = {found["balancer"] for found in results["balancers"]}
    for name in ("haproxy", "nftables", "braid_af_packet", "braid_xdp", "haproxy_l7",
                 "braid_l7_af_packet", "braid_l7_xdp"):
        assert name in balanced or f"{name} as a load balancer" in missing, f"{name} is not named"
    proxied = {found["proxy"] for found in results["proxies"]}
    for name in ("nginx_gzip", "haproxy_gzip", "braid_gzip_af_packet", "braid_gzip_xdp",
                 "nginx_kept", "braid_kept_af_packet", "braid_kept_xdp"):
        assert name in proxied or f"{name} as a proxy" in missing, f"{name} is not named"
    for found in results["proxies"]:
        assert found["connections_per_s"] > 0 and found["requests_per_s"] > 0, found
    for found in results["balancers"]:
        assert found["connections_per_s"] > 0 and found["mbit_per_s"] > 0, found
        assert found["requests_per_s"] > 0, found


def check_trial(case, trial):
    """The generator counts packets by their numbers, the kernel by its devices."""
    where = f"{named(case)}: {trial}"
    assert trial["sent"] == trial["received"] + trial["lost"], where
    assert trial["duplicates"] == 0 and trial["wrong_checksums"] == 0, where
    # A device also sends some packets of the kernel, such as ARP.
    assert 0 <= trial["device_sent"] - trial["sent"] < 50, where
    arrived = trial["received"] + trial["foreign"] + trial["receiver_overrun"]
    assert 0 <= trial["device_received"] - arrived < 50, where
    if case["length"] >= 2 and trial["received"]:
        assert trial["sources"] == ["203.0.113.1"], where


def promises(results):
    """What users were promised, what was found, and whether it holds (None: not measured)."""
    names = ("braid_af_packet", "braid_xdp", "nftables_threads")
    af, xdp, threads = (find(results, name) for name in names)
    nft, best = peer(results, "64", 4), max((af, xdp), key=rate)
    calm = min((find(results, "nftables"), threads), key=p99)
    memory = results["memory"]
    return [
        promise("64 bytes, four functions, one core: twice nftables with the same rules",
                best["loss_free_pps"], nft["loss_free_pps"], 2,
                f"loss-free rate of {best['subject']}; by processor time a packet in the flood, "
                f"{cpu(threads)} ns for nftables and {cpu(best)} ns, "
                f"{cpu(threads) / max(cpu(best), 1):.2f}" + limited(best)),
        promise("AF_XDP three times AF_PACKET, where the driver allows",
                xdp["loss_free_pps"], af["loss_free_pps"], 3, veth(xdp, af)),
        promise("two workers 1.8 times one, on packets in memory",
                memory.get("2"), memory.get("1"), 1.8,
                f"on all {results['machine']['cores']} cores"),
        promise("p99 at half load not above the kernel's", p99(calm), p99(best), 1,
                f"{best['subject']} {us(p99(best))} µs, nftables {us(p99(calm))} µs, each at half "
                "of its own loss-free rate; at half of nftables' rate "
                f"{us(p99(best, 'half_of_nftables'))} µs"),
        promise("an idle run uses at most 1 % of a core", 1,
                max(af["idle_percent"], xdp["idle_percent"], 0.01), 1,
                f"{af['idle_percent']} % with AF_PACKET, {xdp['idle_percent']} % with AF_XDP"),
    ]


def peer(results, size, length):
    """nftables in the way that loses no packets at the higher rate."""
    found = (find(results, name, size, length) for name in ("nftables", "nftables_threads"))
    return max((case for case in found if case), key=rate, default=None)


def rate(case):
    return case["loss_free_pps"]


def promise(text, found, base, factor, how):
    ratio = round(found / base, 2) if base and found is not None else None
    return {"promise": text, "ratio": ratio, "at_least": factor,
            "holds": None if ratio is None else ratio >= factor, "how": how}


def limited(case):
    return "; the generator is the limit" if case["limit"] == "generator" else ""


def veth(xdp, af):
    """What limits AF_XDP on veth devices, by where the time goes."""
    def parts(case):
        spent = case["cpu_ns"]["flood"]
        return (f"{spent['receive']} ns in the kernel's receiving, "
                f"{spent['system']} in system calls, {spent['process'] - spent['system']} in Braid")
    facts = next((note for note in xdp["notes"] if "running on" in note), "")
    return f"{facts}: a packet takes {parts(xdp)}; AF_PACKET {parts(af)}" + limited(xdp)


def cpu(case, part="flood"):
    return case["cpu_ns"][part]["receive"] + case["cpu_ns"][part]["process"]


def p99(case, part="50"):
    return (case["latency"].get(part) or {}).get("p99")


def us(ns):
    return "–" if ns is None else f"{ns / 1000:.0f}"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def markdown(results):
    parts = ["# Braid and its peers, live", table(["machine", ""], results["machine"].items())]
    settings = results["settings"]
    parts.append(f"Trials of {settings['seconds']:g} s with {settings['flows']} flows; a rate is "
                 f"loss-free if a trial loses at most {settings['loss']:.2%} of its packets.")
    parts += ["## Packets", packets(results), "## Latency", latencies(results)]
    parts += ["## What runs of Braid said", said(results)]
    parts += ["## Load balancers", table(
        ["balancer", "connections/s", "median us", "requests/s", "median us", "99 % us",
         "us of its core", "Mbit/s", "errors"],
        [[found["balancer"], found["connections_per_s"], found["connection_us"],
          found["requests_per_s"], found["request_us"], found["request_p99_us"],
          found["core_us_per_request"], found["mbit_per_s"],
          " ".join(found["errors"]) or "none"] for found in results["balancers"]])]
    parts += ["## Proxies", table(
        ["proxy", "requests/s", "median us", "99 % us", "us of its core", "connections/s",
         "median us", "errors"],
        [[found["proxy"], found["requests_per_s"], found["request_us"], found["request_p99_us"],
          found["core_us_per_request"], found["connections_per_s"], found["connection_us"],
          " ".join(found["errors"]) or "none"] for found in results["proxies"]])]
    if results["testpmd_null"]:
        parts.append(f"DPDK's testpmd moves {results['testpmd_null']['pps'] / 1e6:.1f} million "
                     "packets/s between devices that exist only in memory.")
    parts += ["## Workers", table(
        ["workers", "packets in memory/s"], results["memory"].items())]
    parts += ["## Promises", table(
        ["promise", "found", "holds", "how"],
        [[p["promise"], p["ratio"], HOLDS[p["holds"]], p["how"]]
         for p in results["promises"]])]
    parts += ["## Absent", table(["peer", "why"], [a.values() for a in results["absent"]])]
    return "\n\n".join(parts) + "\n"


def said(results):
    rows = [[case["size"], named(case), "; ".join(case["notes"]), case["end"]["lost"] or "nothing",
             "; ".join(case["end"]["warnings"]) or "none"]
            for case in results["cases"] if case["end"]]
    return table(["bytes", "run", "said", "lost", "warnings"], rows)


def packets(results):
    rows = []
    for case in results["cases"]:
        nft = peer(results, case["size"], case["length"])
        ratio = f"{rate(case) / rate(nft):.2f}" if nft and rate(nft) else ""
        spent = ["polls"] * 2 if case["polls"] else [cpu(case) or "–", cpu(case, "90") or "–"]
        idle = case["idle_percent"]
        rows.append([case["size"], named(case), round(case["loss_free_pps"] / 1000),
                     case["loss_free_mbit"], case["limit"], round(case["flood_pps"] / 1000),
                     round(case["offered_pps"] / 1000), ratio, *spent,
                     "–" if idle is None else idle])
    return table(["bytes", "subject", "loss-free k/s", "Mbit/s", "limit", "flood k/s",
                  "offered k/s", "of nftables", "CPU ns/packet in the flood", "at 90 %",
                  "% of a core when idle"], rows)


def latencies(results):
    def cells(found):
        return "–" if not found else " / ".join(us(found[key]) for key in ("p50", "p99", "p999"))
    rows = [[case["size"], named(case)] +
            [cells(case["latency"].get(part)) for part in ("low", "50", "90", "half_of_nftables")]
            for case in results["cases"]]
    return table(["bytes", "subject, p50 / p99 / p99.9 in µs", "at 1,000/s", "at 50 %", "at 90 %",
                  "at 50 % of nftables"], rows)
