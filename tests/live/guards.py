"""Subscribers whose names, web sites, segments and addresses functions look after.

clients (100.64.0.2 to .5) - access [braid] world - hop (203.0.113.254) - server (198.51.100.2)

The server has names (dnsmasq) and pages (nginx), and at the hop somebody forges answers."""

import json
import re
import subprocess
import tempfile
from pathlib import Path

from live import SERVER, Braid, World, expect, sh, until

CLIENTS = [f"100.64.0.{number}" for number in (2, 3, 4, 5)]
PUBLIC = ("192.0.2.10", "192.0.2.11")
FORGED = "198.18.66.66"
# The largest segment on a path of 1300 bytes, and without the time stamps of each segment.
MSS = 1260
PER_SEGMENT = MSS - 12
# Pages of each client, all at the same time.
PAGES = 6
BLOCKED = ("blocked.test", "BLOCKED.test", "blocked.test.", "www.ads.test", "a.b.ads.test")
OPEN = ("open.test", "ads.test", "blocked.test.open.test")


def guards(braid, engine):
    """Only true answers, open sites and segments that fit; ports tell who has asked for a page."""
    with World("clients", "braid", "hop", "server") as world, \
            tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        dress(world, folder)
        events = folder / "events"
        run = Braid(world, braid, engine, "guards.braid", "access=af_packet:access",
                    "world=af_packet:world", more=("--events-out", str(events)))
        forged = names(world)
        sites(world, folder)
        segments(world)
        seen = addresses(world, folder)
        until(lambda: not blocks(run, braid), "the end of all blocks")
        report = run.stop()
        expect(report["lost"], {})
        drops = {(drop["function"], drop["reason"]): drop["count"] for drop in report["drops"]}
        assert drops.pop(("sites", "blocked")) >= 2 * len(BLOCKED), drops
        # What belongs to connections that are given up may come when their mappings have ended.
        drops.pop(("nat", "no mapping"), None)
        expect(drops, {("names", "not asked for"): forged})
        check_events(events, seen, forged)
        return report["packets_in"]


def dress(world, folder):
    world.pair("braid", "access", "clients", "eth0")
    world.pair("braid", "world", "hop", "wan1")
    world.pair("hop", "srv0", "server", "eth0")
    for address in CLIENTS:
        world.ip("clients", "addr", "add", f"{address}/24", "dev", "eth0")
    world.ip("clients", "route", "add", "default", "via", "100.64.0.1")
    for device, address in (("wan1", "203.0.113.254"), ("srv0", "198.51.100.1")):
        world.ip("hop", "addr", "add", f"{address}/24", "dev", device)
    world.ip("hop", "route", "add", "192.0.2.0/24", "via", "203.0.113.1")
    world.run("hop", "sysctl", "-qw", "net.ipv4.ip_forward=1")
    world.ip("server", "addr", "add", f"{SERVER}/24", "dev", "eth0")
    world.ip("server", "route", "add", "default", "via", "198.51.100.1")
    # What dnsmasq has to ask another one for comes after what is forged at once.
    world.background("server", "resolve", "5353", SERVER, "0.3", program="forge.py")
    world.start("server", "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-hosts",
                "--no-resolv", "--user=root", f"--pid-file={folder}/dnsmasq.pid",
                "--server=127.0.0.1#5353")
    pages(world, folder)
    for port in (53, 80, 443):
        until(lambda: f":{port} " in world.run("server", "ss", "-Htuln"), f"port {port}")


def pages(world, folder):
    """A server with a log of who asked for what, over HTTP and TLS."""
    certificate = world.certificate("server", folder, "open.test")
    (folder / "page").write_bytes(bytes(1_000_000))
    folder.chmod(0o755)
    world.nginx("server", folder, f"""
        log_format who '$remote_addr $remote_port $scheme $request_uri $host $body_bytes_sent';
        server {{
            listen 80; listen 443 ssl;
            {certificate}
            access_log {folder}/log who;
            location / {{ root {folder}; try_files /page =404; }}
        }}""")


def names(world):
    """A client that believes all that it hears gets only what the server has said. Returns how many
    answers were forged."""
    spoofer = world.background("hop", "spoof", "wan1", SERVER, FORGED, program="forge.py")
    words = ("dig", "+short", "+time=2", "+tries=1", f"@{SERVER}", "dig.test")
    expect(world.run("clients", *words).strip(), SERVER)
    expect(world.run("clients", *words, "+tcp").strip(), SERVER)
    asked = ("open.test", "mail.test", "Www.Test")
    found = world.peer("clients", "ask", SERVER, *asked, program="forge.py")
    expect([json.loads(line) for line in found.splitlines()], [[SERVER]] * len(asked))
    spoofer.kill()
    # Four for each question that is not asked by TCP.
    forged = spoofer.stdout.read().count("forged")
    expect(forged, 4 * (len(asked) + 1))
    return forged


def sites(world, folder):
    """Blocked sites get no request, over HTTP and TLS, and others answer."""
    tries = [(scheme, name) for scheme in ("http", "https") for name in (*BLOCKED, *OPEN)]
    running = {one: curl(world, *one) for one in tries}
    for (scheme, name), process in running.items():
        got = process.communicate()[0]
        expect(got, "000 0" if name in BLOCKED else "200 1000000", f"{scheme}://{name}")
    until(lambda: len(logged(folder)) >= 2 * len(OPEN), "a line in the log for each page")
    expect({line[4] for line in logged(folder)}, set(OPEN))


def curl(world, scheme, name):
    # Key shares of this size leave the names in the first packet.
    words = ["ip", "netns", "exec", world.names["clients"], "curl", "-sk", "-o", "/dev/null", "-w",
             "%{http_code} %{size_download}", "--curves", "X25519:P-256", "--max-time", "2",
             "--resolve", f"*:80:{SERVER}", "--resolve", f"*:443:{SERVER}", f"{scheme}://{name}/"]
    return subprocess.Popen(words, text=True, stdout=subprocess.PIPE)


def segments(world):
    """Both ends of a connection have segments that fit the path."""
    process = world.start("clients", "curl", "-s", "-o", "/dev/null", "--limit-rate", "200K",
                          f"http://{SERVER}/")
    for name, filter in (("clients", "dport = :80"), ("server", "sport = :80")):
        said = until(lambda: re.search(r" mss:(\d+)", world.run(
            name, "ss", "-Htin", "state", "established", filter)), f"a connection of {name}")
        expect(int(said[1]), PER_SEGMENT, name)
    process.kill()


def addresses(world, folder):
    """All clients get pages at once. Returns the address and port that the server saw, with the
    client that it was."""
    running = []
    for address in CLIENTS:
        words = ["ip", "netns", "exec", world.names["clients"], "curl", "-sSZ",
                 "--no-progress-meter", "--max-time", "10", "--interface", address,
                 "-o", "/dev/null", f"http://{SERVER}/{address}/[1-{PAGES}]"]
        running.append(subprocess.Popen(words))
    expect([process.wait() for process in running], [0] * len(CLIENTS))
    lines = until(lambda: of_clients(folder), "all pages in the log")
    expect({line[5] for line in lines}, {"1000000"})
    return [(address, int(port), path.split("/")[1]) for address, port, _, path, *_ in lines]


def of_clients(folder):
    """The lines of the log for each page of each client, once all are there."""
    lines = [line for line in logged(folder) if line[3] != "/"]
    return lines if len(lines) == PAGES * len(CLIENTS) else []


def logged(folder):
    return [line.split() for line in (folder / "log").read_text().splitlines()]


def blocks(run, braid):
    """The blocks that clients have."""
    return sh(braid, "ctl", run.socket, "state", "nat", "--table", "block").splitlines()


def check_events(file, seen, forged):
    """The log of blocks names the client behind each address and port that the server saw."""
    events = {}
    for line in file.read_text().splitlines():
        event = json.loads(line)
        events.setdefault(event["event"], []).append(event["fields"])
    given, back = events["BLOCK_ASSIGNED"], events["BLOCK_RELEASED"]
    by_number = {block["number"]: block for block in given}
    expect({block["inside"] for block in by_number.values()}, set(CLIENTS))
    for address, port, client in seen:
        owners = [block["inside"] for block in by_number.values()
                  if block["public"] == address and block["first"] <= port <= block["last"]]
        expect(owners, [client], f"{address}:{port}")
    expect({address for address, _, _ in seen}, set(PUBLIC))
    expect(sorted(map(str, back)), sorted(map(str, given)))
    expect(len(events["UNASKED_ANSWER"]), forged)
    expect({event["host"] for event in events["SITE_BLOCKED"]}, set(BLOCKED))
