"""The same attempts to connect through the chain of four functions and through the kernel, with the
same rules in nftables: the same ones pass, and the rules name exactly these."""

import json
import sys

from live import HERE, expect
from sites import CLIENT, CLIENT6, OTHER, OTHER6, OUTSIDE, SERVICE, Site

# The ports tried, on both sides of the limits of rules. dnsmasq has 53, and nginx has 80.
TCP = (22, 52, 53, 79, 81, 4999, 5000, 5999, 6000)
UDP = (7, 52, 53, 54, 4999, 5000, 5999, 6000, 33433, 33434, 33534, 33535)


def from_inside(host):
    """Attempts of the client, and whether the rules let them pass."""
    tcp = {f"tcp {host} {port}": port == 53 or 5000 <= port <= 5999 for port in TCP}
    udp = {f"udp {host} {port}": port == 53 or 5000 <= port <= 5999 or 33434 <= port <= 33534
           for port in UDP}
    return {**tcp, **udp, f"ping {host} 0": True}


def from_outside(*hosts):
    """Attempts of the server. None may pass."""
    return {f"{kind} {host} {port}": False for host in hosts
            for kind, port in (("tcp", 53), ("tcp", 5000), ("udp", 5000), ("ping", 0))}


# The gateway itself answers this one.
GATEWAY = f"ping {OUTSIDE} 0"
ATTEMPTS = {
    "site": ({**from_inside(OTHER), f"tcp {SERVICE} 80": True, f"tcp {SERVICE} 22": False},
             {**from_outside(OUTSIDE, CLIENT), GATEWAY: True}),
    # From outside, IPv6 has no address translation in its way.
    "site6": (from_inside(OTHER6), from_outside(CLIENT6)),
}


def same_pass(command):
    for chain, (inside, outside) in ATTEMPTS.items():
        by_braid, by_kernel = attempt(command, chain, True), attempt(command, chain, False)
        expect(by_braid, by_kernel, "by Braid, instead of by nftables")
        expect(by_braid, {**inside, **outside}, "by Braid and nftables, instead of by the rules")
        passed = sum(by_braid.values())
        print(f"kernel: of {len(by_braid)} attempts by {chain}, the same {passed} pass by nftables")


def attempt(command, chain, is_braid):
    """Which attempts pass."""
    inside, outside = ATTEMPTS[chain]
    with Site(command, chain=chain) as site:
        for name, taken in (("client", ()), ("server", (53,))):
            tcp, udp = (",".join(str(port) for port in ports if port not in taken)
                        for ports in (TCP, UDP))
            site.background(name, "answer", tcp, udp)
        braid = site.braid() if is_braid else site.kernel()
        tries = [site.start(name, sys.executable, "-B", str(HERE / "peer.py"), "attempt", *attempts)
                 for name, attempts in (("client", inside), ("server", outside))]
        found = {}
        for process in tries:
            found |= json.loads(process.communicate(timeout=30)[0])
        if is_braid:
            site.report(braid)
        return found
