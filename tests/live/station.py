"""A base station with a TUN device for each of its phones, and what others say in GTP-U.

Written from 3GPP TS 29.281 and TS 38.415, and from nothing of Braid's."""

import fcntl
import os
import select
import socket
import struct
import sys

PORT = 2152
ECHO_REQUEST, ECHO_RESPONSE, PACKET = 1, 2, 255
# Flags of the first byte: version 1 and GTP, then extension, sequence number, N-PDU number.
VERSION, EXTENSION, SEQUENCE, NPDU = 0x30, 4, 2, 1
# The next extension header: the container of a 5G session. It is for 4 bytes; the QoS flow is 9.
SESSION, CONTAINER = 0x85, bytes([1, 0x10, 9, 0])
RECOVERY = 14
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000


def message(kind, tunnel, data, flags=0, number=0, extension=0):
    """A message, with the four bytes behind the header if a flag asks for them."""
    options = struct.pack("!HBB", number, 0, extension) if flags else b""
    return struct.pack("!BBHI", VERSION | flags, kind, len(options + data), tunnel) + options + data


def parsed(data):
    """Kind, tunnel, sequence number and content of a message, which must be whole."""
    first, kind, length, tunnel = struct.unpack("!BBHI", data[:8])
    assert first & 0xF8 == VERSION and len(data) == 8 + length, data[:16].hex()
    if first & (EXTENSION | SEQUENCE | NPDU):
        number, _, extension = struct.unpack("!HBB", data[8:12])
        assert not (first & EXTENSION and extension), "an extension to the station"
        return kind, tunnel, number, data[12:]
    return kind, tunnel, None, data[8:]


def tun(name):
    file = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return file


def serve(own, core, *sessions):
    """Carries packets between the core and devices, until killed. A session is
    `DEVICE:TUNNEL_HERE:TUNNEL_THERE`, and a `+` behind it sends the containers of 5G."""
    outer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    outer.bind((own, PORT))
    up, down = {}, {}
    for session in sessions:
        device, here, there = session.rstrip("+").split(":")
        file = tun(device)
        up[file], down[int(here, 16)] = (int(there, 16), session.endswith("+")), file
    print("ready", flush=True)
    while True:
        for file in select.select([outer, *up], [], [])[0]:
            if file is outer:
                kind, tunnel, _, data = parsed(outer.recv(65536))
                assert kind == PACKET, kind
                os.write(down[tunnel], data)
                continue
            there, is_5g = up[file]
            packet = os.read(file, 65536)
            # What the kernel says by IPv6 of its own accord stays here.
            if packet[0] >> 4 == 4:
                more = (EXTENSION, 0, SESSION) if is_5g else ()
                data = CONTAINER + packet if is_5g else packet
                outer.sendto(message(PACKET, there, data, *more), (core, PORT))


def echo(own, core, number="4711"):
    """Asks whether the core is there, with a sequence number. Prints what it answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind((own, 0))
        made.settimeout(3)
        made.sendto(message(ECHO_REQUEST, 0, b"", SEQUENCE, int(number)), (core, PORT))
        data, sender = made.recvfrom(2048)
        kind, tunnel, found, content = parsed(data)
        assert (kind, tunnel, sender) == (ECHO_RESPONSE, 0, (core, PORT)), (kind, tunnel, sender)
        # An information element of one byte, the restart counter, which is 0 in GTP-U.
        assert content == bytes([RECOVERY, 0]), content
        print("answered", found)


def inject(own, core, tunnel, source, target):
    """Puts a datagram for port 7 into a tunnel."""
    from forge import udp
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind((own, 0))
        packet = udp(source, target, 7000, 7, b"it is me")
        made.sendto(message(PACKET, int(tunnel, 16), packet), (core, PORT))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
