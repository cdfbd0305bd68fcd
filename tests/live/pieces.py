"""Sends UDP datagrams in fragments that share bytes, and one in fragments that do not; hears which
datagrams come. Each command prints what it found."""

import socket
import struct
import sys

PORT, MORE = 4000, 0x2000


def overlap(source, target):
    """Four datagrams: the last one alone is whole."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as made:
        def send(number, byte, start, end, more=MORE):
            # Without a checksum of UDP. The kernel fills in that of IP.
            data = struct.pack("!HHHH", PORT, PORT, 256, 0) + bytes([byte]) * 248
            head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + end - start, number,
                               start // 8 | more, 64, socket.IPPROTO_UDP, 0,
                               socket.inet_aton(source), socket.inet_aton(target))
            made.sendto(head + data[start:end], (target, 0))

        # The same piece with other bytes, a piece that begins in another one, and a second end.
        for number, other in ((1, (64, 128)), (2, (32, 96)), (3, (192, 240, 0))):
            send(number, 1, 0, 64)
            send(number, 9, *other)
            send(number, 1, 64, 128)
            send(number, 1, 128, 256, 0)
        send(4, 4, 128, 256, 0)
        send(4, 4, 0, 128)


def hear(address, port):
    """The first datagram that comes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind((address, int(port)))
        here.settimeout(5)
        print("ready", flush=True)
        data = here.recv(65536)
        print("only whole" if data == bytes([4]) * 248 else f"heard {data[:8]}", flush=True)


{"overlap": overlap, "hear": hear}[sys.argv[1]](*sys.argv[2:])
