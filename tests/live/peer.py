"""The programs at both ends of the live test; each command prints what it found, or fails."""

import http.client
import http.server
import json
import socket
import struct
import sys
import threading
import time

IP_RECVERR = 11
# How a socket leaves DF set and forgets nothing of the path's MTU: level, mode, its value, MTU.
DISCOVER = {socket.AF_INET: (0, 10, 2, 14), socket.AF_INET6: (41, 23, 2, 24)}
SOL_PACKET, PACKET_AUXDATA = 263, 8
# An EtherType for experiments.
LOCAL = b"\x88\xb5"
# A question for the address of `service.test`, which a server of names answers.
QUESTION = bytes.fromhex("424201000001000000000000") + b"\x07service\x04test\0\0\1\0\1"
# What would be closed if nobody held it.
LISTENING = []
BODY = (bytes(at * 7 % 251 for at in range(251)) * 12_000)[:3_000_000]


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        size = self.path[1:]
        self.answer(BODY[:int(size)] if size.isdigit() else BODY)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(b"same" if body and body == BODY[:len(body)] else b"different")

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Peer", self.client_address[0])
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve(address):
    """HTTP on port 8000 and UDP echo on port 7, until killed."""
    echo = socket.socket(family(address), socket.SOCK_DGRAM)
    echo.bind((address, 7))

    def answer():
        while True:
            data, peer = echo.recvfrom(65536)
            echo.sendto(data + b" from " + peer[0].encode(), peer)

    threading.Thread(target=answer, daemon=True).start()
    # The server would ask for the address's name, which nobody here knows.
    socket.getfqdn = lambda name: name
    http.server.ThreadingHTTPServer.address_family = family(address)
    server = http.server.ThreadingHTTPServer((address, 8000), Handler)
    server.handle_error = lambda *_: None  # a connection that was reset
    print("ready", flush=True)
    server.serve_forever()


def download(address, size=len(BODY)):
    connection = http.client.HTTPConnection(address, 8000, timeout=20)
    connection.request("GET", f"/{size}")
    response = connection.getresponse()
    is_same = response.read() == BODY[:int(size)]
    print("same" if is_same else "different", response.headers["X-Peer"])


def upload(address, size=len(BODY)):
    connection = http.client.HTTPConnection(address, 8000, timeout=20)
    connection.request("POST", "/", BODY[:int(size)])
    print(connection.getresponse().read().decode())


def checksum(data):
    total = sum(int.from_bytes(data[at:at + 2], "big") for at in range(0, len(data), 2))
    while total > 0xFFFF:
        total = (total >> 16) + (total & 0xFFFF)
    return total ^ 0xFFFF


def ping(address, size="56"):
    print("answered" if try_ping(address, int(size)) else "no answer")


def try_ping(address, size):
    """An echo request with `size` bytes; whether the answer comes."""
    is_ip6 = family(address) == socket.AF_INET6
    proto = socket.IPPROTO_ICMPV6 if is_ip6 else socket.IPPROTO_ICMP
    # The kernel gives IPv6 packets without their headers, and computes the checksum of ICMPv6.
    request, reply, header = (128, 129, 0) if is_ip6 else (8, 0, 20)
    with socket.socket(family(address), socket.SOCK_RAW, proto) as made:
        made.settimeout(3)
        made.connect((address, 0))
        rest = struct.pack("!HH", 0x4242, 1) + bytes(size)
        total = checksum(bytes([request, 0, 0, 0]) + rest)
        made.send(struct.pack("!BBH", request, 0, total) + rest)
        try:
            while True:
                packet = made.recv(65536)[header:]
                if packet[0] == reply and packet[4:] == rest:
                    return True
        except TimeoutError:
            return False


def discover(address):
    """The path's MTU, which this host learns from an ICMP error."""
    level, mode, always, mtu = DISCOVER[family(address)]
    with socket.socket(family(address), socket.SOCK_DGRAM) as made:
        made.setsockopt(level, mode, always)
        made.connect((address, 7))
        made.settimeout(2)
        try:
            made.send(bytes(1450))
            made.recv(2048)
        except OSError:
            pass
        print(made.getsockopt(level, mtu))


def fragments(address, size="1450"):
    """Sends a datagram that may be fragmented and is too long for the path; whether it comes back
    whole."""
    level, mode, _, _ = DISCOVER[family(address)]
    sent = BODY[:int(size)]
    with socket.socket(family(address), socket.SOCK_DGRAM) as made:
        made.setsockopt(level, mode, 0)
        made.connect((address, 7))
        made.settimeout(3)
        made.send(sent)
        try:
            print("same" if made.recv(4096).startswith(sent) else "different")
        except TimeoutError:
            print("lost")


def udp(address):
    with socket.socket(family(address), socket.SOCK_DGRAM) as made:
        made.settimeout(5)
        made.connect((address, 7))
        made.send(b"hello")
        print(made.recv(2048).decode())


def long(address, size, port="7", wait="5"):
    """Whether a datagram of this many bytes comes back, and what the server calls its sender."""
    with socket.socket(family(address), socket.SOCK_DGRAM) as made:
        made.settimeout(int(wait))
        made.connect((address, int(port)))
        data = bytes(at % 251 for at in range(int(size)))
        made.send(data)
        try:
            back = made.recv(65536)
        except TimeoutError:
            return print("nothing")
        text = back[len(data):].decode(errors="replace")
        print(f"{size} bytes{text}" if back.startswith(data) else "other bytes")


def refused(address):
    """Sends to a port where nobody listens: the ICMP error must come back to this socket."""
    with socket.socket(family(address), socket.SOCK_DGRAM) as made:
        made.settimeout(5)
        made.connect((address, 9))
        made.send(b"anybody?")
        try:
            made.recv(2048)
        except ConnectionRefusedError:
            print("refused")


def hop(address):
    """The first router on the way, as traceroute finds it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 1)
        made.settimeout(5)
        made.connect((address, 33434))
        made.send(b"where?")
        try:
            made.recv(2048)
        except OSError:
            pass
        _, beside, _, _ = made.recvmsg(2048, 2048, socket.MSG_ERRQUEUE)
        # A `sock_extended_err`, and behind its 16 bytes the address of who sent the error.
        for _, _, data in beside:
            print("type", data[5], "from", socket.inet_ntoa(data[20:24]))


def echo(*addresses):
    """Sends back all that comes on connections to port 5700, until killed."""
    def answer(connection):
        while data := connection.recv(65536):
            connection.sendall(data)

    def accept(server):
        while True:
            connection, _ = server.accept()
            threading.Thread(target=answer, args=[connection], daemon=True).start()

    threads = [threading.Thread(target=accept, args=[socket.create_server((address, 5700))])
               for address in addresses]
    for thread in threads:
        thread.start()
    print("ready", flush=True)


def beat(address, seconds):
    """Says a number twenty times a second on one connection for `seconds`, and hears it.
    Prints whether all came back, and the longest time between two."""
    with socket.create_connection((address, 5700), timeout=20) as made:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print("ready", flush=True)
        end, last, longest, number = time.monotonic() + float(seconds), time.monotonic(), 0, 0
        while time.monotonic() < end:
            number += 1
            said, heard = number.to_bytes(8, "big"), b""
            made.sendall(said)
            while len(heard) < 8:
                more = made.recv(8 - len(heard))
                if not more:
                    return print("closed", number)
                heard += more
            if heard != said:
                return print("changed", number)
            now = time.monotonic()
            last, longest = now, max(longest, now - last)
            time.sleep(0.05)
        print("whole", round(longest, 2))


def answer(tcp, udp):
    """Listens on ports of all addresses, and sends datagrams back, until killed."""
    def reply(made):
        while True:
            data, peer = made.recvfrom(2048)
            made.sendto(data, peer)

    def bind(kind, port):
        made = socket.socket(socket.AF_INET6, kind)
        made.bind(("::", port))
        return made

    for port in filter(None, tcp.split(",")):
        LISTENING.append(bind(socket.SOCK_STREAM, int(port)))
        LISTENING[-1].listen()
    for port in filter(None, udp.split(",")):
        threading.Thread(target=reply, args=[bind(socket.SOCK_DGRAM, int(port))]).start()
    print("ready", flush=True)


def attempt(*attempts):
    """Attempts such as `tcp 192.0.2.1 80`, all at once. Prints which of them an answer comes to."""
    found = {}

    def run(text):
        kind, host, port = text.split()
        try:
            tries = {"tcp": try_tcp, "udp": try_udp, "ping": try_ping}
            found[text] = tries[kind](host, int(port))
        except OSError:
            found[text] = False

    threads = [threading.Thread(target=run, args=[text]) for text in attempts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(found))


def try_tcp(host, port):
    socket.create_connection((host, port), timeout=3).close()
    return True


def try_udp(host, port):
    with socket.socket(family(host), socket.SOCK_DGRAM) as made:
        made.settimeout(3)
        made.connect((host, port))
        made.send(QUESTION)
        return made.recv(2048)[:2] == QUESTION[:2]


def send_tagged(device):
    """A frame of a protocol of its own, in VLAN 5 with priority 3."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as made:
        made.bind((device, 0))
        made.send(b"\xff" * 6 + b"\x02\0\0\0\1\1" + b"\x81\0\x60\5" + LOCAL + b"tagged" * 10)


def receive_tagged(device):
    """Waits for that frame; the kernel takes the tag out and tells it beside the frame."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as made:
        made.bind((device, 0))
        made.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        made.settimeout(10)
        print("ready", flush=True)
        while True:
            frame, beside, _, _ = made.recvmsg(2048, 256)
            if frame[12:14] == LOCAL and frame[14:].startswith(b"tagged"):
                _, _, _, _, _, tci, tpid = struct.unpack("=IIIHHHH", beside[0][2][:20])
                return print(f"tag {tpid:04x} {tci:04x}", flush=True)


def pieces(address, request):
    """Sends a request byte by byte. Prints the status, or that the connection was reset."""
    host, _, port = address.partition(":")
    try:
        with socket.create_connection((host, int(port or 8000)), timeout=20) as made:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # Where a RST is lost, the next packet gets another one.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
                made.setsockopt(socket.IPPROTO_TCP, option, 1)
            for byte in request.encode():
                made.send(bytes([byte]))
                time.sleep(0.001)
            answer = b""
            while part := made.recv(65536):
                answer += part
            print(answer.split()[1].decode())
    except (ConnectionResetError, BrokenPipeError):
        print("reset")


def connect(address, port="80"):
    """Whether anybody answers a connection from outside."""
    with socket.socket() as made:
        made.settimeout(1.5)
        try:
            made.connect((address, int(port)))
            print("answered")
        except OSError as why:
            print("timed out" if isinstance(why, TimeoutError) else why)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
