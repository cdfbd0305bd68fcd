"""What hosts do every day, by their own tools: pages, transfers, names, and finding their path."""

import re
import subprocess
import time

from live import expect
from sites import OTHER, OTHER6, SERVICE, Site, iperf, wrk


def peers(command, kind, offload=True, workers=1):
    """Pages, transfers and names through the chain of four functions."""
    with Site(command, kind, offload, workers=workers) as site:
        braid = site.braid()
        use(site, SERVICE, OTHER)
        rates = measured(site, SERVICE, OTHER)
        site.report(braid)
        print(f"peers: {kind}, offload {'on' if offload else 'off'}, workers {workers}: {rates}")


def peers6(command, kind):
    """The same over IPv6, through the functions that carry it. NAPT does not: it drops IPv6. Maglev
    spreads IPv4 alone, and lets IPv6 pass."""
    with Site(command, kind, chain="site6") as site:
        braid = site.braid()
        use(site, f"[{OTHER6}]", OTHER6)
        rates = measured(site, f"[{OTHER6}]", OTHER6)
        report = site.report(braid)
        through = {one["name"]: one["forward"]["packets"] for one in report["functions"]}
        assert min(through.values()) > 1000, through
        print(f"peers: IPv6, {kind}: {rates}")


def use(site, service, host):
    page = site.run("client", "curl", "-g", "-sS", "--max-time", "10", f"http://{service}/page")
    expect(len(page), 100_000)
    assert " 0% packet loss" in site.run("client", "ping", "-c3", "-i0.2", host)
    # A question in one datagram, by TCP, and one whose answer makes the client ask again by TCP.
    for how in ((), ("+tcp",)):
        expect(dig(site, host, "service.test", "A", *how), SERVICE)
        expect(dig(site, host, "service.test", "AAAA", *how), OTHER6)
    long = dig(site, host, "long.test", "TXT", "+bufsize=512", "+dnssec")
    expect(len(long.splitlines()), 4, long)


def dig(site, host, *question):
    words = ("dig", "+short", "+time=2", "+tries=2", f"@{host}", *question)
    return site.run("client", *words).strip()


def measured(site, service, host):
    tcp, back = iperf(site, host, "-t1"), iperf(site, host, "-t1", "-R")
    udp = iperf(site, host, "-t1", "-u", "-b20M")
    assert tcp > 5 and back > 5 and udp > 15, (tcp, back, udp)
    rate, errors = wrk(site, service, 2)
    expect(errors, [])
    return (f"TCP {tcp:.0f} and {back:.0f} Mbit/s, UDP {udp:.0f} Mbit/s, {rate:.0f} pages/s")


def paths(command):
    """The tools that find the path and its MTU, where the wire behind Braid takes 1400 bytes."""
    with Site(command) as site:
        narrow(site)
        braid = site.braid()
        # No function of the chain is a router, so the server is the first hop.
        expect(hops(site, OTHER), [OTHER])
        find_mtu(site, OTHER, 28)
        site.report(braid, "too_long_answered")
    with Site(command, chain="site6") as site:
        narrow(site)
        braid = site.braid()
        expect(hops(site, OTHER6), [OTHER6])
        find_mtu(site, OTHER6, 48)
        site.report(braid, "too_long_answered")
    routers(command)
    print("paths: traceroute, tracepath and ping find the hops and the MTU, IPv4 and IPv6")


def changed_mtu(command, kind):
    """The first packet that is too long for a device is answered, right after its MTU has changed."""
    with Site(command, kind) as site:
        braid = site.braid()
        words = ("ping", "-M", "do", "-c1", "-W2", "-s", "1450", OTHER)
        for mtu, said in ((1500, "1 received"), (1400, "mtu ?[=:] ?1400"), (1500, "1 received")):
            site.ip("braid", "link", "set", "wan0", "mtu", str(mtu))
            time.sleep(0.02)
            site.ip("client", "route", "flush", "cache")
            done = subprocess.run(["ip", "netns", "exec", site.names["client"], *words],
                                  capture_output=True, text=True)
            assert re.search(said, done.stdout + done.stderr), (mtu, done)
        site.report(braid, "too_long_answered")
        print(f"changed MTU: {kind}, answered from the first packet on")


def routers(command):
    """Behind a router, it is the first hop. It says which hosts cannot be reached."""
    with Site(command, chain="hop") as site:
        narrow(site)
        braid = site.braid()
        for host, gateway, head in ((OTHER, "10.0.0.1", 28), (OTHER6, "fd00:1::1", 48)):
            expect(hops(site, host), [gateway, host])
            find_mtu(site, host, head)
        for host, gateway in (("203.0.113.77", "203.0.113.1"), ("fd00:2::77", "fd00:2::1")):
            text = site.run("client", "sh", "-c", f"ping -c 1 -W 6 {host} || true")
            assert f"From {gateway}" in text and "nreachable" in text, text
        site.report(braid, "too_long_answered", "no_neighbour")


def narrow(site):
    for name, device in (("braid", "wan0"), ("server", "eth0")):
        site.ip(name, "link", "set", device, "mtu", "1400")


def hops(site, host):
    """The hosts that traceroute finds, in order."""
    text = site.run("client", "traceroute", "-n", "-q1", "-w3", "-m4", host)
    return re.findall(r"^ *\d+  (\S+)", text, re.MULTILINE)


def find_mtu(site, host, head):
    """tracepath and ping learn that the path takes 1400 bytes. `head`: the length of headers."""
    site.ip("client", "route", "flush", "cache")
    text = site.run("client", "tracepath", "-n", "-p", "33434", "-m", "4", host)
    assert "pmtu 1400" in text and "reached" in text, text
    site.ip("client", "route", "flush", "cache")
    fits, too_long = str(1400 - head), str(1401 - head)
    whole = site.run("client", "ping", "-M", "do", "-c1", "-W3", "-s", fits, host)
    assert " 0% packet loss" in whole, whole
    # The first one is answered by an error; the kernel knows the MTU for the second.
    words = ["ip", "netns", "exec", site.names["client"], "ping", "-M", "do", "-c2", "-i0.2", "-W3",
             "-s", too_long, host]
    said = subprocess.run(words, capture_output=True, text=True)
    assert "100% packet loss" in said.stdout, said.stdout
    assert re.search(r"mtu ?[=:] ?1400", said.stdout + said.stderr), said
