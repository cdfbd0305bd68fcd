"""Ethernet frames by hand: builds, reads and rewrites IPv4 with TCP, UDP and ICMP."""

import struct

PROTO = {"icmp": 1, "tcp": 6, "udp": 17}


def addr(text):
    return bytes(int(part) for part in text.split("."))


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def l4_checksum(src, dst, proto, segment):
    pseudo = b"" if proto == 1 else src + dst + struct.pack("!BBH", 0, proto, len(segment))
    value = checksum(pseudo + segment)
    return 0xFFFF if proto == 17 and value == 0 else value


CHECKSUM_AT = {1: 2, 6: 16, 17: 6}


def seal(src, dst, proto, segment):
    """The segment with its checksum."""
    at = CHECKSUM_AT[proto]
    if len(segment) < at + 2:
        return segment
    blank = segment[:at] + b"\0\0" + segment[at + 2 :]
    return blank[:at] + struct.pack("!H", l4_checksum(src, dst, proto, blank)) + blank[at + 2 :]


def ip4(src, dst, proto, body, ttl=64, ident=1, tos=0, df=True, frag=0, options=b""):
    flags = (0x4000 if df else 0) | frag
    words = 5 + len(options) // 4
    total = 4 * words + len(body)
    head = struct.pack("!BBHHHBBH", 0x40 | words, tos, total, ident, flags, ttl, proto, 0)
    head += src + dst + options
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body


def udp(src, sport, dst, dport, payload=b"", **ip):
    segment = struct.pack("!HHHH", sport, dport, 8 + len(payload), 0) + payload
    return ip4(src, dst, 17, seal(src, dst, 17, segment), **ip)


def tcp(src, sport, dst, dport, flags, seq=0, ack=0, payload=b"", **ip):
    segment = struct.pack("!HHIIBBHHH", sport, dport, seq, ack, 0x50, flags, 65535, 0, 0) + payload
    return ip4(src, dst, 6, seal(src, dst, 6, segment), **ip)


def echo(src, dst, kind, number, seq, payload=b"ping", **ip):
    message = struct.pack("!BBHHH", kind, 0, 0, number, seq) + payload
    return ip4(src, dst, 1, seal(src, dst, 1, message), **ip)


def icmp_error(src, dst, kind, code, quoted, **ip):
    message = struct.pack("!BBHI", kind, code, 0, 0) + quoted
    return ip4(src, dst, 1, seal(src, dst, 1, message), **ip)


class View:
    """An IPv4 packet taken apart: flow (proto, src, sport, dst, dport), and what it quotes."""

    def __init__(self, packet):
        self.packet = packet
        self.head = 4 * (packet[0] & 15)
        self.proto = packet[9]
        self.src, self.dst = packet[12:16], packet[16:20]
        self.body = packet[self.head :]
        self.later_fragment = struct.unpack("!H", packet[6:8])[0] & 0x1FFF != 0
        self.sport = self.dport = 0
        self.quoted = None
        if self.later_fragment:
            return
        if self.proto in (6, 17) and len(self.body) >= 4:
            self.sport, self.dport = struct.unpack("!HH", self.body[:4])
        elif self.proto == 1 and self.body[0] in (0, 8):
            self.sport = self.dport = struct.unpack("!H", self.body[4:6])[0]
        elif self.proto == 1 and self.body[0] in (3, 11, 12) and len(self.body) >= 28:
            self.quoted = View(self.body[8:])

    def flow(self):
        return (self.proto, self.src, self.sport, self.dst, self.dport)

    def valid(self):
        """Whether the checksums are right (a UDP packet may have none)."""
        if checksum(self.packet[: self.head]) != 0:
            return False
        if self.later_fragment or self.proto not in CHECKSUM_AT:
            return True
        if self.proto == 17 and self.body[6:8] == b"\0\0":
            return True
        return seal(self.src, self.dst, self.proto, self.body) == self.body


def reverse(flow):
    proto, src, sport, dst, dport = flow
    return (proto, dst, dport, src, sport)


def readdress(packet, flow):
    """The packet with the addresses and ports (or echo identifier) of `flow`, sealed."""
    view = View(packet)
    proto, src, sport, dst, dport = flow
    body = bytearray(view.body)
    if proto in (6, 17):
        body[:4] = struct.pack("!HH", sport, dport)
    elif body and body[0] in (0, 8):
        body[4:6] = struct.pack("!H", sport)
    head = bytearray(view.packet[: view.head])
    head[12:16], head[16:20] = src, dst
    head[10:12] = b"\0\0"
    head[10:12] = struct.pack("!H", checksum(bytes(head)))
    return bytes(head) + seal(src, dst, proto, bytes(body))
