"""The programs at both ends of long runs (`stress.py`); each command prints what it found, or fails.

A client asks by a line, `GET PATH UP DOWN AT`, with UP bytes behind it. The server answers with its
own letter, and DOWN bytes of content from the offset AT on."""

import asyncio
import json
import random
import resource
import socket
import struct
import sys
import time
from pathlib import Path

# Content has no period that a lost or repeated segment could fit.
CONTENT = random.Random(11).randbytes(16 << 20)
LONGEST = 8 << 20


def content(at, length):
    return CONTENT[at:at + length]


def many_sockets():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def serve(letter, address, port):
    """Answers on any number of connections, until killed. After `/late`, the server reads on three
    seconds later. To a wrong content it answers with nothing, and ends the connection."""
    many_sockets()

    async def answer(reader, writer):
        try:
            while line := await reader.readline():
                _, path, up, down, at = line.split()
                if path == b"/late":
                    await asyncio.sleep(3)
                if await reader.readexactly(int(up)) != content(int(at), int(up)):
                    break
                writer.write(letter.encode() + content(int(at), int(down)))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        writer.close()

    async def serve_all():
        server = await asyncio.start_server(answer, address, int(port), backlog=4096)
        print("ready", flush=True)
        await server.serve_forever()

    asyncio.run(serve_all())


class Talk:
    """A connection, with the bytes of both directions so far."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.up, self.down = reader, writer, 0, 0
        self.port = writer.get_extra_info("sockname")[1]
        self.is_right = True

    @classmethod
    async def begin(cls, address, port, receive=None):
        made = socket.socket()
        if receive:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, (address, int(port)))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(*await asyncio.open_connection(sock=made))

    def ask(self, path, up, down, at):
        """The bytes of a question."""
        said = f"GET {path} {up} {down} {at}\n".encode() + content(at, up)
        self.up += len(said)
        return said

    async def hear(self, letter, down, at):
        heard = await self.reader.readexactly(1 + down)
        self.down += len(heard)
        self.is_right &= heard == letter.encode() + content(at, down)

    async def exchange(self, letter, path, up, down, at):
        self.writer.write(self.ask(path, up, down, at))
        await self.writer.drain()
        await self.hear(letter, down, at)

    async def close(self):
        self.writer.close()
        await self.writer.wait_closed()


async def end(talks):
    """Closes the connections. Prints by the client's port what went up and down, and the number of
    connections with a wrong answer."""
    for one in talks:
        await one.close()
    ports = {one.port: [one.up, one.down] for one in talks}
    print(json.dumps({"wrong": sum(not one.is_right for one in talks), "ports": ports}), flush=True)


def meet(address, port, number, *groups):
    """Opens `number` connections, and uses each of them twice when all are open. A group is a letter
    and a path, such as `p/`: the server that is asked, and by which path. Groups take turns."""
    many_sockets()

    async def limited(limit, what):
        async with limit:
            return await what

    async def all_of_them():
        limit, draw = asyncio.Semaphore(300), random.Random(5)
        begun = (limited(limit, Talk.begin(address, port)) for _ in range(int(number)))
        talks = await asyncio.gather(*begun)
        for most in (300, 5000):
            asked = []
            for at, talk in enumerate(talks):
                group = groups[at % len(groups)]
                sizes = draw.randrange(most), draw.randrange(most), draw.randrange(1 << 20)
                asked.append(limited(limit, talk.exchange(group[0], group[1:], *sizes)))
            await asyncio.gather(*asked)
        await end(talks)

    asyncio.run(asyncio.wait_for(all_of_them(), 400))


def steady(address, port, number, group, until):
    """`number` connections ask again and again, until a file exists."""
    async def go_on(talk, draw):
        while not Path(until).exists():
            sizes = draw.randrange(3000), draw.randrange(3000), draw.randrange(1 << 20)
            await talk.exchange(group[0], group[1:], *sizes)
            await asyncio.sleep(0.05)

    async def all_of_them():
        talks = [await Talk.begin(address, port) for _ in range(int(number))]
        print("ready", flush=True)
        await asyncio.gather(*(go_on(talk, random.Random(at)) for at, talk in enumerate(talks)))
        await end(talks)

    asyncio.run(all_of_them())


def halves(address, port, first, rest, until):
    """A question by a path that ends when a file exists."""
    async def both():
        talk = await Talk.begin(address, port)
        said = talk.ask(f"/{first}{rest}", 0, 10, 0)
        cut = said.index(rest.encode())
        talk.writer.write(said[:cut])
        print("ready", flush=True)
        while not Path(until).exists():
            await asyncio.sleep(0.05)
        talk.writer.write(said[cut:])
        await talk.hear("p", 10, 0)
        await end([talk])

    asyncio.run(both())


def signed(address, port, what):
    """Asks by a path that a function resets."""
    async def one():
        talk = await Talk.begin(address, port)
        try:
            await talk.exchange("p", f"/{what}", 0, 10, 0)
            print("answered")
        except (ConnectionError, asyncio.IncompleteReadError):
            print("reset")

    asyncio.run(one())


def loris(address, number, seconds):
    """`number` requests that send a byte every 0.2 s. Prints how many are answered at last."""
    many_sockets()

    async def one():
        reader, writer = await asyncio.open_connection(address, 80)
        writer.write(b"GET /page HTTP/1.0\r\nX-Slow: ")
        for _ in range(int(float(seconds) * 5)):
            writer.write(b"x")
            await asyncio.sleep(0.2)
        writer.write(b"\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer.split()[1] == b"200"

    async def all_of_them():
        print(sum(await asyncio.gather(*(one() for _ in range(int(number))))), "answered")

    asyncio.run(all_of_them())


def stalled(address, port, number):
    """`number` connections whose receivers do not read for a time: first the clients, then the
    server."""
    many_sockets()

    async def one(at):
        talk = await Talk.begin(address, port, receive=8192)
        talk.writer.write(talk.ask("/", 0, LONGEST, at))
        await asyncio.sleep(3)
        await talk.hear("p", LONGEST, at)
        await talk.exchange("p", "/late", LONGEST, 10, at)
        return talk

    async def all_of_them():
        await end(await asyncio.gather(*(one(at) for at in range(int(number)))))

    asyncio.run(all_of_them())


def tiny(address, port, number):
    """`number` connections that send each byte in a segment of its own."""
    async def one(at):
        talk = await Talk.begin(address, port)
        for byte in talk.ask("/", 2000, 2000, at):
            talk.writer.write(bytes([byte]))
            await asyncio.sleep(0.002)
        await talk.hear("p", 2000, at)
        return talk

    async def all_of_them():
        await end(await asyncio.gather(*(one(at) for at in range(int(number)))))

    asyncio.run(all_of_them())


def checksum(data):
    """Of an even number of bytes."""
    total = int.from_bytes(data, "big") % 0xFFFF
    return total ^ 0xFFFF


def packet(ends, ports, numbers, flags, payload=b"", options=b""):
    """A TCP packet between forged ends."""
    here, there = (socket.inet_aton(end) for end in ends)
    head = (5 + len(options) // 4) << 12 | flags
    length = 20 + len(options) + len(payload)
    tcp = struct.pack("!HHIIHHHH", *ports, *numbers, head, 65535, 0, 0) + options + payload
    total = checksum(here + there + struct.pack("!HH", 6, length) + tcp + bytes(length % 2))
    tcp = tcp[:16] + struct.pack("!H", total) + tcp[18:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + length, 0, 0, 64, 6, 0, here, there)
    return ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + tcp


def paced(sends):
    """Sends what it is given, some 25,000 packets a second at most. Prints how many that were."""
    number = 0
    for number, (send, *what) in enumerate(sends, 1):
        send(*what)
        if number % 50 == 0:
            time.sleep(0.002)
    print(number, "sent")


def flood(address, port, number):
    """SYNs, and other segments of no connection, from `number` forged ends."""
    draw = random.Random(7)
    made = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)

    def sends():
        for at in range(int(number)):
            here = f"172.{draw.randrange(16, 32)}.{draw.randrange(256)}.{draw.randrange(256)}"
            flags, ack = (0x02, 0) if at % 4 else (0x10, draw.randrange(1 << 32))
            ports, numbers = (draw.randrange(1024, 65536), int(port)), (draw.randrange(1 << 32), ack)
            yield made.sendto, packet((here, address), ports, numbers, flags), (address, 0)

    paced(sends())


# The ends of `forge`, which no host has.
FORGED = ("10.7.0.77", "10.7.0.66")
SYN, SYN_ACK, ACK = 0x02, 0x12, 0x10
# The option that makes windows 128 times as large.
SCALE = b"\x01\x03\x03\x07"


def forge(device, what, first, number):
    """Segments of `number` connections between two ends that no host has, from this port on: `opened`
    by one of them, `answered` by the other one, and then `waiting` segments of long payloads, or
    `pieces` of one byte. Bytes in front of these never come."""
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    made.bind((device, 0))
    here, there = (bytes.fromhex(mac) for mac in ("020000000077", "020000000066"))
    # A segment takes about a byte of what a receiver without a scale takes: 65,535 in all.
    length, gap, most = (1448, 0, 44) if what == "waiting" else (1, 1, 20_000)

    def packets(port):
        if what == "opened":
            yield packet(FORGED, (port, 80), (1000, 0), SYN, options=SCALE)
        elif what == "answered":
            yield packet(FORGED[::-1], (80, port), (2000, 1001), SYN_ACK, options=SCALE)
        else:
            yield packet(FORGED, (port, 80), (1001, 2001), ACK)
            for at in range(most):
                seq = 1002 + at * (length + gap)
                yield packet(FORGED, (port, 80), (seq, 2001), ACK, content(at, length))

    macs = here + there if what == "answered" else there + here
    paced((made.send, macs + b"\x08\0" + one) for at in range(int(number))
          for one in packets(int(first) + at))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
