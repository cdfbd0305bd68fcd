"""What is sent: packets as the hosts mean them, with addresses and ports before any translation."""

import random
import struct

from frames import addr, echo, icmp_error, ip4, tcp, udp

LAN = [addr(f"10.0.{i}.{j}") for i in (3, 4) for j in (10, 11, 12)]
WAN = [addr(f"192.0.2.{i}") for i in (1, 2)] + [addr(f"198.51.100.{i}") for i in (1, 7)]
PUBLIC = addr("203.0.113.1")
ROUTERS = {"lan": addr("10.0.9.9"), "wan": addr("198.51.100.254")}
FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32


class Talk:
    """A flow between a host on each side; `opener` is the side that speaks first."""

    def __init__(self, rng, proto, opener, used):
        self.proto = proto
        self.opener = opener
        self.sequence = 0
        # No two flows have the same ends (of a reused port the kernel thinks otherwise than an
        # endpoint-independent mapping does); but few source ports, so that hosts clash.
        while True:
            inside, outside = rng.choice(LAN), rng.choice(WAN)
            self.ends = (inside, outside) if opener == "lan" else (outside, inside)
            self.ports = (rng.choice(range(1024, 1064)), rng.choice([53, 80, 443, 23, 8080]))
            if proto == "icmp":
                self.ports = (self.ports[0], self.ports[0])
            key = (proto, frozenset([(self.ends[0], self.ports[0]), (self.ends[1], self.ports[1])]))
            if key not in used:
                used.add(key)
                return

    def packet(self, first, rng, flags=ACK, **ip):
        """A packet of the opener (`first`) or of the other end, with the side it comes from."""
        (a, b), (p, q) = self.ends, self.ports
        if not first:
            a, b, p, q = b, a, q, p
        side = self.opener if first else {"lan": "wan", "wan": "lan"}[self.opener]
        payload = rng.randbytes(rng.choice([0, 1, 7, 64, 500]))
        if self.proto == "udp":
            return side, udp(a, p, b, q, payload, **ip)
        if self.proto == "icmp":
            self.sequence += 1
            return side, echo(a, b, 8 if first else 0, self.ports[0], self.sequence, payload, **ip)
        return side, tcp(a, p, b, q, flags, rng.getrandbits(32), rng.getrandbits(32), payload, **ip)


TCP_LIVES = [
    [(True, SYN), (False, SYN | ACK), (True, ACK), (False, ACK), (True, ACK | PSH), (True, FIN | ACK),
     (False, ACK), (False, FIN | ACK), (True, ACK)],
    [(True, SYN), (True, SYN), (False, SYN | ACK), (True, ACK), (False, FIN | ACK), (True, ACK), (True, FIN | ACK)],
    [(True, SYN), (False, RST | ACK), (False, ACK)],
    [(True, SYN), (False, SYN | ACK), (True, ACK), (True, RST), (True, ACK), (False, ACK)],
    [(True, ACK), (False, ACK)],
    [(False, SYN | ACK), (True, ACK)],
    [(True, SYN | FIN), (True, 0), (True, FIN), (True, SYN | RST)],
    [(True, SYN), (True, ACK), (False, SYN | ACK), (False, ACK), (True, ACK), (False, ACK | URG)],
    [(True, SYN), (False, SYN | ACK), (True, FIN | ACK), (False, FIN | ACK), (True, ACK), (False, ACK)],
]


def life(rng, proto, opener, used, tcp_lives=TCP_LIVES):
    """The packets of one flow, in order."""
    talk = Talk(rng, proto, opener, used)
    if proto == "tcp":
        return [talk.packet(first, rng, flags) for first, flags in rng.choice(tcp_lives)]
    return [talk.packet(first, rng) for first in [True] + rng.choices([True, False], k=rng.randint(1, 6))]


def interleaved(rng, lives):
    """The packets of all flows, each flow's in order."""
    lives = [list(reversed(each)) for each in lives]
    while lives:
        each = rng.choice(lives[:24])
        yield each.pop()
        if not each:
            lives.remove(each)


def errors_about(rng, packets, share, astray=0.0):
    """Puts ICMP errors about earlier packets in between, sent by routers on the far side; the share
    `astray` of them to any host of the near side."""
    for side, packet in packets:
        yield side, packet
        if rng.random() < share:
            far = "wan" if side == "lan" else "lan"
            kind, code = rng.choice([(3, 1), (3, 3), (3, 4), (11, 0)])
            quoted = packet[: rng.choice([28, 48, len(packet)])]
            source = rng.choice([ROUTERS[far], packet[16:20]])
            to = rng.choice(LAN if side == "lan" else WAN) if rng.random() < astray else packet[12:16]
            yield far, icmp_error(source, to, kind, code, quoted)


def translated(rng, flows):
    """For NAPT: flows opened from inside, with errors about them. TCP keeps to its rules: NAPT
    does not track connections, the kernel does."""
    used = set()
    lives = [life(rng, rng.choice(["tcp", "udp", "icmp"]), "lan", used, TCP_LIVES[:2]) for _ in range(flows)]
    packets = []
    for side, packet in errors_about(rng, interleaved(rng, lives), 0.1):
        packets.append((side, packet))
        if rng.random() < 0.1:
            # Nobody asked for these.
            make = rng.choice([lambda: udp(WAN[0], 53, PUBLIC, 65000, b"?"),
                               lambda: tcp(WAN[1], 80, PUBLIC, 65001, SYN),
                               lambda: echo(WAN[2], PUBLIC, 0, 65002, 1),
                               lambda: icmp_error(WAN[3], PUBLIC, 3, 1, udp(PUBLIC, 65003, WAN[3], 53))])
            packets.append(("wan", make()))
    return packets


def filtered(rng, flows):
    """For the firewall: flows opened from both sides, and errors about them."""
    used = set()
    lives = [life(rng, rng.choice(["tcp", "tcp", "udp", "icmp"]), rng.choice(["lan", "lan", "wan"]), used)
             for _ in range(flows)]
    return list(errors_about(rng, interleaved(rng, lives), 0.2, astray=0.3))


def routed(rng, count):
    """For the router: all protocols, TTLs around the edge, options, fragments, no routes."""
    packets = []
    for _ in range(count):
        side = rng.choice(["lan", "wan"])
        here, there = (LAN, WAN) if side == "lan" else (WAN, LAN)
        src = rng.choice(here)
        dst = rng.choice(there + here[:1] + [addr("172.31.0.1"), addr("127.0.0.1"), addr("0.0.0.0")])
        if dst == addr("172.31.0.1"):
            # The kernel limits errors by the address they go to: one each.
            side, src = "lan", b"\x0a\x4d" + struct.pack("!H", len(packets))
        ip = {"ttl": rng.choice([0, 1, 2, 3, 64, 255]), "tos": rng.choice([0, 0x10, 0xB8]),
              "ident": rng.getrandbits(16), "df": rng.random() < 0.5}
        kind = rng.randrange(7)
        payload = rng.randbytes(rng.choice([0, 3, 40, 1400]))
        if kind == 0:
            packet = udp(src, 1000, dst, 2000, payload, **ip)
        elif kind == 1:
            packet = tcp(src, 1000, dst, 2000, rng.getrandbits(6), 1, 2, payload, **ip)
        elif kind == 2:
            packet = echo(src, dst, 8, 77, 1, payload, **ip)
        elif kind == 3:
            quoted = udp(dst, 5, src, 6)[:28]
            packet = icmp_error(src, dst, 3, 1, quoted, **ip)
        elif kind == 4:
            ip["df"] = False
            packet = ip4(src, dst, 17, payload[: len(payload) & ~7], frag=rng.choice([0x2000, 0x2001, 5]), **ip)
        elif kind == 5:
            packet = ip4(src, dst, rng.choice([47, 50, 89, 132, 200]), payload, **ip)
        else:
            packet = ip4(src, dst, 17, struct.pack("!HHHH", 1, 2, 8, 0), options=b"\x01\x01\x01\x00", **ip)
        packets.append((side, packet))
    return packets


def seeded(seed):
    return random.Random(seed)
