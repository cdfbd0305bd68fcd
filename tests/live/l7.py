"""Clients of a service whose first request chooses the server, also where packets are lost, repeated
and swapped on the way."""

import re
import tempfile
from pathlib import Path

from live import Braid, World, also_with_losses, expect

ADDRESS = "198.51.100.10"
# The server at .12 is down.
PAGES, IMAGES, DOWN = "203.0.113.11", "203.0.113.13", "203.0.113.12"


def l7(braid, engine):
    """Each request gets its page from the right server, and large pages come whole."""
    return also_with_losses(scene, braid, engine)


def scene(braid, engine, faults):
    with World("client", "braid", "server") as world, tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        world.pair("braid", "lan0", "client", "eth0")
        world.pair("braid", "wan0", "server", "eth0")
        world.ip("client", "addr", "add", "10.0.0.2/24", "dev", "eth0")
        world.ip("client", "route", "add", "default", "via", "10.0.0.1")
        for address in (PAGES, IMAGES, DOWN):
            world.ip("server", "addr", "add", f"{address}/24", "dev", "eth0")
        world.ip("server", "route", "add", "10.0.0.0/24", "via", "203.0.113.1")
        nginx(world, folder)
        run = Braid(world, braid, engine, "l7.braid", "lan=af_packet:lan0",
                    "wan=af_packet:wan0", more=faults)

        def get(path, *more):
            return world.run("client", "curl", "-sS", "--max-time", "20", *more,
                             f"http://{ADDRESS}{path}")

        for _ in range(8):
            expect(get("/name"), "pages")
            expect(get("/img/name"), "images")
        expect(get("/name", "-H", "Host: img.example"), "images")
        # A head of several segments.
        expect(get("/name", "-H", f"Cookie: {'x' * 5000}"), "pages")
        for path, letter in (("/large", "p"), ("/img/large", "i")):
            assert get(path) == letter * 2_000_000, path
        # The connection stays where it is.
        both = world.run("client", "curl", "-sS", "--max-time", "20", f"http://{ADDRESS}/name",
                         f"http://{ADDRESS}/img/name")
        expect(both, "pagesnothing here")
        for close in ((), ("-H", "Connection: close")):
            text = world.run("client", "wrk", "-t1", "-c20", "-d1s", "--timeout", "10s", *close,
                             f"http://{ADDRESS}/img/name")
            asked = int(re.search(r"(\d+) requests in", text)[1])
            assert asked > (20 if faults else 200) and "errors" not in text, text
        report = run.stop()
        if not faults:
            expect(report["lost"], {})
        assert {one["reason"] for one in report["drops"]} <= {"no answer", "no connection"}, report
        return report["packets_in"]


def nginx(world, folder):
    """Serves pages at one address and images at another."""
    for name, letter, path in (("pages", "p", "."), ("images", "i", "img")):
        there = folder / name / path
        there.mkdir(parents=True)
        (there / "name").write_text(name)
        (there / "large").write_text(letter * 2_000_000)
    (folder / "images" / "name").write_text("images")
    (folder / "nothing").write_text("nothing here")
    servers = "".join(f"""
        server {{ listen {address}; root {folder}/{name}; error_page 404 =200 /nothing;
                 location = /nothing {{ root {folder}; }} }}"""
                      for address, name in ((f"{PAGES}:80", "pages"), (f"{IMAGES}:8080", "images")))
    world.nginx("server", folder, servers)
