"""Two network namespaces: a router under test between `lan` and `wan`, and the hosts at both ends."""

import ctypes
import os
import select
import socket
import struct
import subprocess

from frames import View, addr, echo

LIBC = ctypes.CDLL(None, use_errno=True)
ROUTER_LAN, HOST_LAN = "02:00:00:00:00:01", "02:00:00:00:01:01"
ROUTER_WAN, HOST_WAN = "02:00:00:00:00:02", "02:00:00:00:02:01"
SENTINEL = 0x5E5E


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def sh(*words, stdin=None):
    done = subprocess.run(words, input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class Router:
    """The kernel as a router. Packets go in and come out as IPv4 packets, by side."""

    def __init__(self, rules, sysctls=()):
        self.name = f"braid-router-{os.getpid()}"
        self.hosts = f"braid-hosts-{os.getpid()}"
        self.sequence = 0
        # Everything runs on one processor, so that packets are handled in the order they are sent.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        try:
            self.build(rules, sysctls)
        except OSError:
            self.close()
            raise

    def build(self, rules, sysctls):
        for ns in (self.name, self.hosts):
            sh("ip", "netns", "add", ns)
            for key in ("all", "default"):
                sh("ip", "netns", "exec", ns, "sysctl", "-qw", f"net.ipv6.conf.{key}.disable_ipv6=1")
        for side, router, host in (("lan", ROUTER_LAN, HOST_LAN), ("wan", ROUTER_WAN, HOST_WAN)):
            sh("ip", "link", "add", f"{side}0", "netns", self.name, "address", router,
               "type", "veth", "peer", "name", f"{side}1", "netns", self.hosts, "address", host)
            sh("ip", "-n", self.name, "link", "set", f"{side}0", "up")
            sh("ip", "-n", self.hosts, "link", "set", f"{side}1", "up")
        sh("ip", "-n", self.name, "link", "set", "lo", "up")
        sh("ip", "-n", self.name, "addr", "add", "10.0.0.1/24", "dev", "lan0")
        sh("ip", "-n", self.name, "addr", "add", "203.0.113.1/24", "dev", "wan0")
        for device, gateway, neighbour in (("lan0", "10.0.0.2", HOST_LAN), ("wan0", "203.0.113.2", HOST_WAN)):
            sh("ip", "-n", self.name, "neigh", "add", gateway, "lladdr", neighbour, "dev", device)
        sh("ip", "-n", self.name, "route", "add", "10.0.0.0/8", "via", "10.0.0.2")
        sh("ip", "-n", self.name, "route", "add", "192.0.2.0/24", "via", "203.0.113.2")
        sh("ip", "-n", self.name, "route", "add", "198.51.100.0/24", "via", "203.0.113.2")
        settings = ["net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0",
                    "net.ipv4.conf.lan0.rp_filter=0", "net.ipv4.conf.wan0.rp_filter=0",
                    "net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf.lan0.send_redirects=0",
                    "net.ipv4.conf.wan0.send_redirects=0",
                    "net.ipv4.icmp_ratelimit=0", "net.ipv4.icmp_msgs_per_sec=1000000",
                    "net.ipv4.icmp_msgs_burst=1000000", *sysctls]
        if rules:
            sh("ip", "netns", "exec", self.name, "nft", "-f", "-", stdin=rules)
        for setting in settings:
            sh("ip", "netns", "exec", self.name, "sysctl", "-qw", setting)
        self.sockets = {side: self.open(f"{side}1") for side in ("lan", "wan")}
        self.settle()

    def open(self, device):
        """A packet socket in the hosts' namespace; the process itself stays in its own."""
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{self.hosts}", os.O_RDONLY)
        try:
            if LIBC.setns(there, 0) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            made.bind((device, 0))
        finally:
            LIBC.setns(home, 0)
            os.close(home)
            os.close(there)
        made.setblocking(False)
        return made

    def settle(self):
        """Waits until links are up: until the router answers."""
        for _ in range(50):
            if self.exchange("lan", None, patience=0.1) is not None:
                return
        raise OSError("the router namespace does not answer")

    def send(self, side, packet):
        router, host = (ROUTER_LAN, HOST_LAN) if side == "lan" else (ROUTER_WAN, HOST_WAN)
        self.sockets[side].send(mac(router) + mac(host) + b"\x08\x00" + packet)

    def exchange(self, side, packet, patience=2.0):
        """Sends a packet and returns what came out for it, as (side, frame): everything up to the
        answer to an echo request of our own that is sent behind it. None without an answer."""
        if packet is not None:
            self.send(side, packet)
        self.sequence = (self.sequence + 1) & 0xFFFF
        self.send("lan", echo(addr("10.0.0.2"), addr("10.0.0.1"), 8, SENTINEL, self.sequence))
        seen = []
        while True:
            ready, _, _ = select.select(list(self.sockets.values()), [], [], patience)
            if not ready:
                return None
            # The answer comes from `lan`: read `wan` first, so that nothing is left behind it.
            answered = False
            for name in ("wan", "lan"):
                while True:
                    try:
                        frame, source = self.sockets[name].recvfrom(65536)
                    except BlockingIOError:
                        break
                    if source[2] == socket.PACKET_OUTGOING or frame[12:14] != b"\x08\x00":
                        continue
                    view = View(frame[14:])
                    if view.proto == 1 and view.body[0] == 0 and view.sport == SENTINEL:
                        answered |= struct.unpack("!H", view.body[6:8])[0] == self.sequence
                    else:
                        seen.append((name, frame))
            if answered:
                return seen

    def close(self):
        for made in getattr(self, "sockets", {}).values():
            made.close()
        for ns in (self.name, self.hosts):
            subprocess.run(["ip", "netns", "del", ns], capture_output=True)
