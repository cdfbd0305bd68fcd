"""Requests of real clients that a balancer gives to several servers (nginx)."""

import os
import re
import tempfile
from pathlib import Path

from live import HERE, Braid, World, also_with_losses, expect, go_on, stopped, until

ADDRESS = "10.7.0.254"
SERVERS = ("10.8.0.1", "10.8.0.2", "10.8.0.3")
IMAGE = os.urandom(1_000_000)


def balance(braid, engine):
    """Each request of a connection goes to its server, also if one fails, and in a reload."""
    return also_with_losses(scene, braid, engine)


def scene(braid, engine, faults):
    with World("client", "braid", "server") as world, tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        world.pair("braid", "lan0", "client", "eth0")
        world.pair("braid", "wan0", "server", "eth0")
        world.ip("client", "addr", "add", "10.7.0.1/24", "dev", "eth0")
        for address in SERVERS:
            world.ip("server", "addr", "add", f"{address}/24", "dev", "eth0")
        world.ip("server", "route", "add", "default", "via", "10.8.0.254")
        servers = {address: start(world, folder / address, address) for address in SERVERS}
        run = Braid(world, braid, engine, str(HERE / "balance.braid"), "lan=af_packet:lan0",
                    "wan=af_packet:wan0", more=faults)

        def curl(*paths, more=()):
            urls = [f"http://{ADDRESS}/{path}" for path in paths]
            words = ("-sS", "--max-time", "60", "-w", " %{num_connects}\n", *more, *urls)
            return world.run("client", "curl", *words).splitlines()

        # One connection, five requests, three servers.
        one, two, three = SERVERS
        expect(curl("a", "pictures/b", "c", "pictures/d", "e"),
               [f"{one} /a 1", f"{three} /pictures/b 0", f"{two} /c 0", f"{three} /pictures/d 0",
                f"{one} /e 0"])
        expect(curl("a", more=("-H", "Host: Pictures.Example")), [f"{three} /a 1"])
        for path in ("image.png", "pictures/image.png"):
            body = folder / "body"
            curl(path, more=("-f", "-o", str(body)))
            expect(body.read_bytes() == IMAGE, True, path)
        (folder / "upload").write_bytes(IMAGE)
        expect(curl("length", more=("--data-binary", f"@{folder}/upload"))[0].split()[1:],
               ["/length", str(len(IMAGE)), "1"])
        reloaded(world, run, folder)
        wrk(world)
        # A server that does not run is replaced, and asked again when it does.
        servers[two].kill()
        servers[two].wait()
        for at in range(4):
            expect(curl(str(at)), [f"{one} /{at} 1"])
        wrk(world)
        start(world, folder / two, two)
        until(lambda: curl("again") == [f"{two} /again 1"], "the server is asked again", limit=30)
        report = run.stop()
        if not faults:
            expect(report["lost"], {})
            expect(report["drops"], [])
        return report["packets_in"]


def start(world, folder, address):
    """Starts a server that says its address and the path. Returns its process."""
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    for file in (folder / "image.png", folder / "pictures" / "image.png"):
        file.write_bytes(IMAGE)
    world.nginx("server", folder, f"""
        client_body_temp_path {folder}/bodies; client_max_body_size 10m;
        server {{
            listen {address}:8080; root {folder};
            location / {{ return 200 "{address} $uri"; }}
            location = /length {{ return 200 "{address} $uri $content_length"; }}
            location ~ png$ {{ }}
        }}""")
    server = world.running[-1]
    asks = ("curl", "-s", "-o", "/dev/null", f"http://{address}:8080/")
    until(lambda: world.call("server", *asks).returncode == 0, f"{address} listens", limit=30)
    return server


def reloaded(world, run, folder):
    """A reload keeps connections, also in the middle of a response."""
    file = folder / "slow"
    downloads = stopped(world, {file: (f"http://{ADDRESS}/pictures/image.png",)})
    run.reload()
    expect(go_on(downloads), [0])
    expect(file.read_bytes() == IMAGE, True)


def wrk(world):
    """Many connections at once, which all get right responses."""
    for close in ((), ("-H", "Connection: close")):
        text = world.run("client", "wrk", "-t1", "-c20", "-d1s", "--timeout", "30s", *close,
                         f"http://{ADDRESS}/x")
        asked = int(re.search(r"(\d+) requests in", text)[1])
        assert asked > 5 and "Non-2xx" not in text and "errors" not in text, text
