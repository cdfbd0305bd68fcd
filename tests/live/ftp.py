"""Files move by FTP between curl and vsftpd, one of them behind a NAT that has to change what they say
to each other.

inside (10.0.0.2) - lan0 [braid] wan0 - hop (203.0.113.254) - outside (198.51.100.2)"""

import hashlib
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from live import HERE, SERVER, Braid, World, also_with_losses, expect, until

INSIDE, PUBLIC = "10.0.0.2", "203.0.113.1"
NAMES = ("inside", "braid", "hop", "outside")
SIZES = {"large": 3 << 20, "small": 100, "medium": 50_000, "none": 0}
# How curl lets the data come.
EPSV, EPRT, PORT = (), ("-P", "-"), ("-P", "-", "--disable-eprt")
PASV = ("--disable-epsv", "--no-ftp-skip-pasv-ip")
# The kernel's NAT with its helper.
RULES = f"""
table ip site {{
  ct helper ftp {{ type "ftp" protocol tcp; }}
  chain find {{ type filter hook prerouting priority 0; tcp dport 21 ct helper set "ftp"; }}
  chain pass {{
    type filter hook forward priority 0; policy drop;
    iifname "lan0" accept; ct state established,related accept;
  }}
  chain hide {{ type nat hook postrouting priority 100; oifname "wan0" snat to {PUBLIC}; }}
}}
"""


def ftp(braid, engine):
    """A client behind NAPT: the server opens connections to it. The same happens through the kernel."""
    expected = {}
    packets = also_with_losses(lambda *words: napt(*words, expected), braid, engine)
    by_kernel(expected)
    return packets + also_with_losses(server_inside, braid, engine)


def napt(braid, engine, more, expected):
    with World(*NAMES) as world, tempfile.TemporaryDirectory() as folder:
        dress(world)
        run = start(world, braid, engine, "ftp.braid", more)
        serve(world, "outside", SERVER, Path(folder))
        found = transfers(world, Path(folder))
        expect(found, expected or found, more)
        expected.update(found)
        # The kernel's helper drops these, and the client waits in vain.
        answers = session(world, "PORT 10,0,0,2,19", "EPRT |1|10.0.0.2|", "PORT 1,2,3")
        expect([text[:3] for name, text in answers.items() if "RT " in name], ["500"] * 3, answers)
        stranger(world, run)
        report = run.stop()
        reasons = {drop["reason"] for drop in report["drops"]}
        assert "not expected" in reasons, report["drops"]
        if not more:
            expect(reasons, {"not expected"})
            expect(report["lost"], {})
        return report["packets_in"]


def by_kernel(expected):
    with World(*NAMES) as world, tempfile.TemporaryDirectory() as folder:
        dress(world)
        for device, address in (("lan0", "10.0.0.1"), ("wan0", PUBLIC)):
            world.ip("braid", "addr", "add", f"{address}/24", "dev", device)
        world.ip("braid", "route", "add", "default", "via", "203.0.113.254")
        world.run("braid", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        rules = Path(folder) / "rules"
        rules.write_text(RULES)
        loaded = world.call("braid", "nft", "-f", str(rules))
        if loaded.returncode == 0:
            serve(world, "outside", SERVER, Path(folder))
            expect(transfers(world, Path(folder)), expected, "by the kernel, instead of by Braid")
        else:
            print(f"live: not compared with the kernel's helper: {loaded.stderr.strip()}")


def server_inside(braid, engine, more):
    """A server behind static NAT: clients connect to it."""
    with World(*NAMES) as world, tempfile.TemporaryDirectory() as folder:
        dress(world)
        run = start(world, braid, engine, "ftp_server.braid", more)
        serve(world, "inside", INSIDE, Path(folder))
        for mode in (PASV, EPSV, PORT):
            move(world, "outside", PUBLIC, Path(folder), mode)
        report = run.stop()
        if not more:
            expect({drop["reason"] for drop in report["drops"]}, set())
            expect(report["lost"], {})
        return report["packets_in"]


def dress(world):
    world.pair("braid", "lan0", "inside", "eth0")
    world.pair("braid", "wan0", "hop", "wan1")
    world.pair("hop", "srv0", "outside", "eth0")
    for name, device, address in (("inside", "eth0", INSIDE), ("hop", "wan1", "203.0.113.254"),
                                  ("hop", "srv0", "198.51.100.1"), ("outside", "eth0", SERVER)):
        world.ip(name, "addr", "add", f"{address}/24", "dev", device)
    world.ip("inside", "route", "add", "default", "via", "10.0.0.1")
    world.ip("outside", "route", "add", "default", "via", "198.51.100.1")
    world.run("hop", "sysctl", "-qw", "net.ipv4.ip_forward=1")


def start(world, braid, engine, chain, more):
    return Braid(world, braid, engine, chain, "lan=af_packet:lan0", "wan=af_packet:wan0", more=more)


def serve(world, name, address, folder):
    there = folder / "ftp"
    (there / "in").mkdir(parents=True)
    (there / "in").chmod(0o777)
    folder.chmod(0o755)
    (folder / "empty").mkdir()
    for file, size in SIZES.items():
        (there / file).write_bytes(random.Random(size).randbytes(size))
    (folder / "vsftpd.conf").write_text("\n".join([
        "background=NO", "listen=YES", f"listen_address={address}", "anonymous_enable=YES",
        f"anon_root={there}", "anon_upload_enable=YES", "write_enable=YES", "anon_umask=022",
        "no_anon_password=YES", f"secure_chroot_dir={folder}/empty",
        "connect_from_port_20=YES", "seccomp_sandbox=NO", "xferlog_enable=NO", ""]))
    world.start(name, "vsftpd", str(folder / "vsftpd.conf"))
    until(lambda: f"{address}:21" in world.run(name, "ss", "-ltnH"), "vsftpd serves")


def move(world, name, address, folder, mode):
    """Gets all files over one control connection, and sends one back."""
    got = folder / "got"
    got.mkdir(exist_ok=True)
    curl = ("curl", "-sSf", "--max-time", "60", *mode)
    words = [word for file in SIZES for word in ("-o", str(got / file), f"ftp://{address}/{file}")]
    world.run(name, *curl, *words)
    for file, size in SIZES.items():
        # curl writes no file for no bytes.
        expect(digest(got / file) if size else None, digest(folder / "ftp" / file) if size else None,
               (mode, file))
    world.run(name, *curl, "-T", str(got / "large"), f"ftp://{address}/in/back")
    expect(digest(folder / "ftp" / "in" / "back"), digest(got / "large"), mode)
    for file in (*got.iterdir(), folder / "ftp" / "in" / "back"):
        file.unlink()


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def transfers(world, folder):
    """Moves files in all modes, and returns what the server answers to the client's commands."""
    for mode in (EPSV, EPRT, PORT):
        move(world, "inside", SERVER, folder, mode)
    return session(world, "PORT 10,0,0,99,19,137", "EPRT |1|10.0.0.99|5001|", "NOOP")


def session(world, *commands):
    """What the server answers to these commands of a client, between transfers."""
    return json.loads(world.peer("inside", "session", SERVER, *commands, program="ftp_client.py"))


def stranger(world, run):
    """While a port waits for the server, another host does not come in by it."""
    client = world.start("inside", sys.executable, "-B", str(HERE / "ftp_client.py"), "wait", SERVER,
                         stdin=subprocess.PIPE)
    expect(client.stdout.readline().strip(), "ready")
    waiting = [entry for entry in run.state("nat", "expected") if entry["value"]["waits"]]
    expect(len(waiting), 1, waiting)
    expect(world.peer("hop", "connect", PUBLIC, str(waiting[0]["key"][0])), "timed out")
    out, _ = client.communicate("go\n", timeout=20)
    expect(out.strip(), "same")
