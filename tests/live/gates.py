"""A web server behind gates: a port that opens to knocks, and a proxy that answers SYNs.

client (10.0.0.2, 10.0.0.3) - internet [braid] servers - server (10.1.0.2)"""

import re
import signal
import sys
import tempfile
from pathlib import Path

from live import HERE, Braid, World, expect, until
from peer import BODY

CLIENT, STRANGER, SERVICE = "10.0.0.2", "10.0.0.3", "10.1.0.2"
SECRET = f"http://{SERVICE}:8022/"
# The largest windows, from which the kernel derives scales, and the scale that clients see instead
# of the server's.
CLIENT_WINDOW, SERVER_WINDOW, SCALE = 1 << 24, 1 << 26, "7"
FLOOD = 2000


def gates(braid, engine):
    """Knocks open a port, and floods do not reach the server, whose connections lack nothing."""
    with World("client", "braid", "server") as world, tempfile.TemporaryDirectory() as folder:
        dress(world, Path(folder))
        run = Braid(world, braid, engine, "gates.braid", "internet=af_packet:internet",
                    "servers=af_packet:servers")
        came = world.background("server", "watch", "eth0", program="forge.py")
        back = world.background("client", "watch", "eth0", program="forge.py")
        knocks(world)
        options(world)
        floods(world)
        came, back = (arrived(process) for process in (came, back))
        check_floods(came, back)
        report = run.stop()
        expect(report["lost"], {})
        drops = {(drop["function"], drop["reason"]): drop["count"] for drop in report["drops"]}
        # The forged ACKs; a slow machine may not take all of them.
        assert drops.pop(("proxy", "no connection")) > FLOOD / 2, drops
        assert drops.pop(("knock", "closed")) >= 4, drops
        expect(drops, {("knock", "knock"): 8})
        return report["packets_in"]


def dress(world, folder):
    for name, device, address, gateway, window in (
            ("client", "internet", CLIENT, "10.0.0.1", CLIENT_WINDOW),
            ("server", "servers", SERVICE, "10.1.0.1", SERVER_WINDOW)):
        world.pair("braid", device, name, "eth0")
        world.ip(name, "addr", "add", f"{address}/24", "dev", "eth0")
        world.ip(name, "route", "add", "default", "via", gateway)
        world.run(name, "sysctl", "-qw", f"net.ipv4.tcp_rmem=4096 131072 {window}")
    world.ip("client", "addr", "add", f"{STRANGER}/24", "dev", "eth0")
    (folder / "page").write_bytes(BODY)
    folder.chmod(0o755)
    world.nginx("server", folder, f"""
        server {{ listen 80; listen 8022; root {folder}; location / {{ try_files /page =404; }} }}
        """)
    world.serve("server", SERVICE)
    until(lambda: ":8022 " in world.run("server", "ss", "-Htln"), "nginx")


def knocks(world):
    """Only the right knocks open the port, and only to their sender."""
    closed(world, CLIENT)
    knock(world, "7001", "7003", "7002")
    closed(world, CLIENT)
    knock(world, "7001", "7002")
    closed(world, CLIENT)
    knock(world, "7001", "7002", "7003")
    closed(world, STRANGER)
    expect(curl(world, SECRET, "--interface", CLIENT), f"200 {len(BODY)}")


def knock(world, *ports):
    world.peer("client", "knock", CLIENT, SERVICE, *ports, program="forge.py")


def closed(world, address):
    words = ["curl", "-s", "-o", "/dev/null", "--interface", address, "--connect-timeout", "0.6",
             SECRET]
    # What curl says when the time is over.
    expect(world.call("client", *words).returncode, 28, f"from {address}")


def curl(world, url, *more):
    words = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{size_download}", "--max-time",
             "10", *more, url]
    return world.run("client", *words)


def options(world):
    """Both ends have SACK, time stamps and window scales, and transfers come whole."""
    slow = world.start("client", "curl", "-s", "-o", "/dev/null", "--limit-rate", "200K",
                       f"http://{SERVICE}/")
    of_client, own = options_of(world, "client", "dport = :80")
    of_server, other = options_of(world, "server", "sport = :80")
    # Each end has the scale that the other one has said, or that the proxy has said in its place.
    expect((of_client, of_server), (SCALE, own))
    assert other != SCALE, "the proxy has nothing to scale"
    slow.kill()
    expect(world.peer("client", "download", SERVICE), f"same {CLIENT}")
    expect(world.peer("client", "upload", SERVICE), "same")


def options_of(world, name, filter):
    """What a host says of its connection: the scales of the other end and its own."""
    said = until(lambda: re.search(r"\t(.*) wscale:(\d+),(\d+)", world.run(
        name, "ss", "-Htino", "state", "established", filter)), f"a connection of {name}")
    assert {"ts", "sack"} <= set(said[1].split()), (name, said[0])
    return said[2], said[3]


def floods(world):
    """While SYNs and ACKs of nobody arrive, a page comes."""
    for flags in ("02", "10"):
        flood = world.start("client", sys.executable, "-B", str(HERE / "forge.py"), "flood",
                            SERVICE, "80", str(FLOOD), flags)
        expect(curl(world, f"http://{SERVICE}/"), f"200 {len(BODY)}")
        expect(flood.wait(timeout=20), 0)
    # By now, all that was sent has arrived.
    expect(curl(world, f"http://{SERVICE}/"), f"200 {len(BODY)}")


def check_floods(came, back):
    """SYNs were answered, and none of them reached the server."""
    server = [line for line in came if " tcp " in line]
    strange = [line for line in server if f" tcp {CLIENT} {SERVICE} " not in line]
    assert not strange, strange[:5]
    # The port that knocks open, a page at a low rate, two transfers, three pages.
    opened = {line for line in server if line.endswith(" flags 02")}
    expect(len(opened), 7)
    answers = sum(f" tcp {SERVICE} 198.18." in line and line.endswith(" flags 12") for line in back)
    assert answers > FLOOD / 2, answers


def arrived(process):
    """What has come to a host's device."""
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=5)[0].splitlines()
