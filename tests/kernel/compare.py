#!/usr/bin/python3
"""Compares functions of the library with the Linux kernel's: the same packets through both.

    compare.py BRAID [--seed N] [--flows N] [--require]

A network namespace with nftables, conntrack and forwarding is the peer. Router and firewall must
give the same bytes and verdicts; NAPT the same up to a one-to-one mapping of public ports. Where
namespaces cannot be made the comparison says so and passes, unless --require is given.
"""

import argparse
import os
import struct
import subprocess
import sys
import tempfile

import scenarios
from frames import View, addr, checksum, icmp_error, readdress, reverse
from namespaces import HOST_LAN, HOST_WAN, ROUTER_LAN, ROUTER_WAN, Router, mac

PUBLIC = scenarios.PUBLIC

ROUTES = "10.0.0.0/8 0\n192.0.2.0/24 1\n198.51.100.0/24 1\n203.0.113.0/24 1\n"
HEAD = f"""
chain compared {{
  interface lan {{ behind 10.0.0.0/8 }}
  interface wan;
  route = router(
    table: routes("compared.routes"),
    hops: [
      {{ mac: {ROUTER_LAN}, neighbour: {HOST_LAN}, left: true }},
      {{ mac: {ROUTER_WAN}, neighbour: {HOST_WAN}, left: false }},
    ],
    left: 10.0.0.1,
    right: 203.0.113.1,
  );
"""
CHAINS = {
    "router": HEAD + "path lan <-> route <-> wan; malformed pass; }",
    "napt": HEAD + "nat = napt(public: 203.0.113.1); path lan <-> route <-> nat <-> wan; }",
    "firewall": HEAD + 'fw = stateful_firewall(ok: rules("compared.rules")); path lan <-> fw <-> route <-> wan; }',
}
RULES = """pass proto tcp to 0.0.0.0/0 port 80
pass proto tcp to 192.0.2.0/24 port 443
pass proto udp to 0.0.0.0/0 port 53
pass proto icmp to 192.0.2.0/24
default drop
"""
NFT = {
    "router": "",
    "napt": """
table ip compared {
  chain input { type filter hook input priority 0; iifname "wan0" drop; }
  chain forward { type filter hook forward priority 0; ct state invalid drop; iifname "wan0" ct state new drop; }
  chain source { type nat hook postrouting priority 100; oifname "wan0" meta l4proto { tcp, udp, icmp } snat to 203.0.113.1:1024-65535; }
}""",
    "firewall": """
table ip compared {
  chain forward {
    type filter hook forward priority 0; policy drop;
    ct state established,related accept
    iifname "lan0" tcp dport 80 tcp flags & (fin|syn|rst|ack) == syn ct state new accept
    iifname "lan0" ip daddr 192.0.2.0/24 tcp dport 443 tcp flags & (fin|syn|rst|ack) == syn ct state new accept
    iifname "lan0" udp dport 53 ct state new accept
    iifname "lan0" ip daddr 192.0.2.0/24 icmp type echo-request ct state new accept
  }
}""",
}
# Sequence numbers are not what is compared; connections are not picked up in mid-stream.
CONNTRACK = ("net.netfilter.nf_conntrack_tcp_be_liberal=1", "net.netfilter.nf_conntrack_tcp_loose=0")


class Follower:
    """Replies as hosts behind a translation would send them: to what their request left with."""

    def __init__(self):
        self.left_with = {}

    def arriving(self, packet):
        view = View(packet)
        if view.quoted is not None:
            original = self.left_with.get(view.quoted.flow())
            if original is None:
                return packet
            inner = readdress_quote(packet[view.head + 8 :], original)
            outer_dst = original[1]
            src = original[3] if view.src == view.quoted.dst else view.src
            return icmp_error(src, outer_dst, view.body[0], view.body[1], inner)
        left = self.left_with.get(reverse(view.flow()))
        return readdress(packet, reverse(left)) if left else packet

    def passed(self, packet, out):
        if View(packet).quoted is None:
            self.left_with[View(packet).flow()] = View(out).flow()


def readdress_quote(quote, flow):
    """A quoted packet (perhaps cut short) with another flow; its transport checksum is not kept."""
    view = View(quote)
    proto, src, sport, dst, dport = flow
    head = bytearray(quote[: view.head])
    head[12:16], head[16:20] = src, dst
    head[10:12] = b"\0\0"
    head[10:12] = struct.pack("!H", checksum(bytes(head)))
    body = bytearray(view.body)
    if proto in (6, 17):
        body[:4] = struct.pack("!HH", sport, dport)
    elif body[0] in (0, 8):
        body[4:6] = struct.pack("!H", sport)
    return bytes(head) + bytes(body)


def pcap(path, packets):
    """Writes (index, packet) as Ethernet frames; the index is the time in milliseconds."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for index, frame in packets:
            file.write(struct.pack("<IIII", 1 + index // 1000, index % 1000 * 1000, len(frame), len(frame)) + frame)


def read_pcap(path):
    """(index, frame) of a capture that braid wrote for one of `pcap`'s."""
    with open(path, "rb") as file:
        data = file.read()
    unit = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1000000}[struct.unpack("<I", data[:4])[0]]
    at, found = 24, []
    while at < len(data):
        seconds, fraction, captured, _ = struct.unpack("<IIII", data[at : at + 16])
        found.append(((seconds - 1) * 1000 + fraction // unit, data[at + 16 : at + 16 + captured]))
        at += 16 + captured
    return found


def through_kernel(name, packets):
    """For each packet what came out: a list of (side, frame)."""
    router = Router(NFT[name], () if name == "router" else CONNTRACK)
    follower = Follower()
    results = []
    try:
        for side, packet in packets:
            sent = follower.arriving(packet) if name == "napt" else packet
            out = router.exchange(side, sent)
            if out is None:
                raise OSError("the router namespace stopped answering")
            for where, frame in out:
                if where != side:
                    follower.passed(packet, frame[14:])
            results.append(out)
    finally:
        router.close()
    return results


def through_braid(braid, name, packets, folder):
    chain = os.path.join(folder, "compared.braid")
    with open(chain, "w") as file:
        file.write(CHAINS[name])
    with open(os.path.join(folder, "compared.routes"), "w") as file:
        file.write(ROUTES)
    with open(os.path.join(folder, "compared.rules"), "w") as file:
        file.write(RULES)
    words = [braid, "run", chain]
    for side, router, host in (("lan", ROUTER_LAN, HOST_LAN), ("wan", ROUTER_WAN, HOST_WAN)):
        head = mac(router) + mac(host) + b"\x08\x00"
        pcap(os.path.join(folder, f"{side}.in.pcap"),
             [(i, head + packet) for i, (where, packet) in enumerate(packets) if where == side])
        words += ["--in", f"{side}={folder}/{side}.in.pcap", "--out", f"{side}={folder}/{side}.out.pcap"]
    if name == "napt":
        words.append("--follow")
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"braid failed: {done.stdout}{done.stderr}")
    results = [[] for _ in packets]
    for side in ("lan", "wan"):
        for index, frame in read_pcap(f"{folder}/{side}.out.pcap"):
            results[index].append((side, frame))
    return results


class Ports:
    """A one-to-one mapping between public ports, per remote end."""

    def __init__(self):
        self.there, self.back = {}, {}

    def same(self, remote, kernel, braid):
        a, b = (remote, kernel), (remote, braid)
        return self.there.setdefault(a, b) == b and self.back.setdefault(b, a) == a


def neutral(frame, ports_of):
    """The frame with what may differ blanked: public ports (given to `ports_of`), checksums that
    cover them, and the identification of packets that the router itself makes."""
    packet = frame[14:]
    view = View(packet)
    out = bytearray(frame)
    at = 14 + view.head

    def blank(start, length):
        out[start : start + length] = b"\0" * length

    if view.quoted is None and view.src == PUBLIC and not view.later_fragment and view.proto in (1, 6, 17):
        ports_of.append(((view.proto, view.dst, view.dport if view.proto != 1 else 0), view.sport))
        blank(at if view.proto != 1 else at + 4, 2)
        blank(at + {1: 2, 6: 16, 17: 6}[view.proto], 2)
    if view.quoted is not None:
        blank(at + 2, 2)
        quoted = view.quoted
        inner = at + 8 + quoted.head
        if quoted.dst == PUBLIC:
            ports_of.append(((quoted.proto, quoted.src, quoted.sport if quoted.proto != 1 else 0), quoted.dport))
            blank(inner + 2 if quoted.proto != 1 else inner + 4, 2)
        # Transport checksums in quotes were not kept when the packet was made.
        if quoted.proto in (1, 6, 17) and len(quoted.body) >= {1: 4, 6: 18, 17: 8}[quoted.proto]:
            blank(inner + {1: 2, 6: 16, 17: 6}[quoted.proto], 2)
        if view.src in (addr("10.0.0.1"), PUBLIC):
            blank(14 + 4, 2)
            blank(14 + 10, 2)
    return bytes(out)


def differs(kernel, braid, ports):
    """Why the outcomes of one packet differ, or None."""
    if [side for side, _ in kernel] != [side for side, _ in braid]:
        return "other verdict"
    for (_, k), (_, b) in zip(kernel, braid):
        kernel_ports, braid_ports = [], []
        sound = View(k[14:]).valid(), View(b[14:]).valid()
        if sound[0] != sound[1]:
            return "a checksum is wrong"
        k, b = neutral(k, kernel_ports), neutral(b, braid_ports)
        if k != b:
            at = next((i for i, (x, y) in enumerate(zip(k, b)) if x != y), min(len(k), len(b)))
            return f"other bytes, from byte {at} of the frame on"
        for (remote, p), (other, q) in zip(kernel_ports, braid_ports):
            if remote != other or not ports.same(remote, p, q):
                return f"public ports are not mapped one to one ({p} and {q})"
    return None


def show(outcome):
    return ", ".join(f"{side} {frame.hex()}" for side, frame in outcome) or "dropped"


def compare(braid, name, packets):
    kernel = through_kernel(name, packets)
    with tempfile.TemporaryDirectory() as folder:
        ours = through_braid(braid, name, packets, folder)
    ports, found = Ports(), 0
    for index, (k, b) in enumerate(zip(kernel, ours)):
        why = differs(k, b, ports)
        if why:
            found += 1
            if found <= 5:
                side, packet = packets[index]
                print(f"  packet {index} from {side}, {packet.hex()}: {why}\n    kernel: {show(k)}\n    braid:  {show(b)}")
    passed = sum(bool(k) for k in kernel)
    print(f"{name}: {len(packets)} packets, {passed} answered or passed by the kernel, {found} differ")
    return found, passed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("braid")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flows", type=int, default=150)
    parser.add_argument("--only", choices=list(CHAINS))
    parser.add_argument("--require", action="store_true")
    args = parser.parse_args()
    made = {
        "router": scenarios.routed(scenarios.seeded(args.seed), 4 * args.flows),
        "napt": scenarios.translated(scenarios.seeded(args.seed), args.flows),
        "firewall": scenarios.filtered(scenarios.seeded(args.seed), args.flows),
    }
    failed = skipped = 0
    for name, packets in made.items():
        if args.only not in (None, name):
            continue
        try:
            found, passed = compare(args.braid, name, packets)
        except OSError as error:
            print(f"{name}: NOT COMPARED with the kernel: {error}")
            skipped += 1
            continue
        failed += found > 0 or passed == 0 or passed == len(packets)
    print(f"{len(made) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed or (skipped and args.require) else 0)


if __name__ == "__main__":
    main()
