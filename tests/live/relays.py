"""TCP connections of real hosts that end in split proxies, also where packets are lost, repeated and
swapped on the way."""

import gzip
import os
import re
import tempfile
from pathlib import Path

from live import Braid, World, also_with_losses, expect, go_on, stopped

ADDRESS = "10.7.0.2"
TEXT = "".join(f"Line {at * at} of a long text.\n" for at in range(20_000)).encode()


def relays(braid, engine):
    """Transfers stay whole in both directions, and texts are compressed for those who take it."""
    packets = also_with_losses(scene, braid, engine) + narrow(braid, engine)
    return packets + scene(braid, engine, (), workers=2)


def narrow(braid, engine):
    """A router behind the proxy has a link for short packets only."""
    with World("client", "braid", "router", "server") as world:
        world.pair("braid", "lan0", "client", "eth0")
        world.pair("braid", "wan0", "router", "eth0")
        world.pair("router", "eth1", "server", "eth0")
        for name, device, address in (("client", "eth0", "10.7.0.1"), ("router", "eth0", "10.7.0.3"),
                                      ("router", "eth1", "10.7.1.1"), ("server", "eth0", "10.7.1.2")):
            world.ip(name, "addr", "add", f"{address}/24", "dev", device)
        world.ip("router", "link", "set", "eth1", "mtu", "1300")
        world.run("router", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        world.ip("client", "route", "add", "10.7.1.0/24", "via", "10.7.0.3")
        # The server does not tell of the link, but keeps to it.
        world.ip("server", "route", "add", "10.7.0.0/24", "via", "10.7.1.1", "mtu", "1300", "advmss",
                 "1460")
        world.serve("server", "10.7.1.2")
        run = Braid(world, braid, engine, "relays.braid", "in=af_packet:lan0", "out=af_packet:wan0")
        expect(world.peer("client", "upload", "10.7.1.2"), "same")
        expect(world.peer("client", "download", "10.7.1.2"), "same 10.7.0.1")
        report = run.stop()
        expect(report["lost"], {})
        return report["packets_in"]


def scene(braid, engine, faults, workers=1):
    with World("client", "braid", "server") as world, tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        world.wire("10.7.0.1", ADDRESS)
        world.serve("server", ADDRESS)
        image = os.urandom(1_000_000)
        (folder / "text.html").write_bytes(TEXT)
        (folder / "image.png").write_bytes(image)
        world.nginx("server", folder, f"""
            types {{ text/html html; image/png png; }}
            server {{ listen {ADDRESS}:80; root {folder}; }}""")
        run = Braid(world, braid, engine, "relays.braid", "in=af_packet:lan0",
                    "out=af_packet:wan0", more=("--workers", str(workers), *faults))
        expect(world.peer("client", "download", ADDRESS), "same 10.7.0.1")
        expect(world.peer("client", "upload", ADDRESS), "same")
        expect(world.call("client", "curl", "-sS", "--max-time", "20",
                          f"http://{ADDRESS}:81/").returncode, 7, "curl: could not connect")

        def get(path, *more):
            """The head and the body of a response."""
            world.run("client", "curl", "-sS", "--max-time", "30", "-D", str(folder / "head"),
                      "-o", str(folder / "body"), *more, f"http://{ADDRESS}/{path}")
            return (folder / "head").read_text().lower(), (folder / "body").read_bytes()

        takes = ("-H", "Accept-Encoding: gzip")
        head, body = get("text.html", *takes)
        assert "content-encoding: gzip" in head and len(body) < len(TEXT) / 3, (head, len(body))
        assert gzip.decompress(body) == TEXT
        assert get("text.html", "--compressed")[1] == TEXT
        for path, whole, more in (("text.html", TEXT, ()), ("image.png", image, takes)):
            head, body = get(path, *more)
            assert body == whole and "content-encoding" not in head, (path, head)
        reloaded(world, run, folder, image)
        for close in ((), ("-H", "Connection: close")):
            text = world.run("client", "wrk", "-t1", "-c20", "-d1s", "--timeout", "10s", *takes,
                             *close, f"http://{ADDRESS}/text.html")
            asked = int(re.search(r"(\d+) requests in", text)[1])
            assert asked > 5 and "errors" not in text, text
        shares = [worker["packets"] for worker in run.status()["workers"]]
        report = run.stop()
        if not faults:
            expect(report["lost"], {})
            expect(report["drops"], [])
            # Each connection has a worker, and there are many connections.
            assert len(shares) == workers and min(shares) > sum(shares) / workers / 4, shares
        return report["packets_in"]


def reloaded(world, run, folder, image):
    """A reload keeps connections, also in the middle of a compressed response."""
    page, picture = folder / "slow-page", folder / "slow-picture"
    downloads = stopped(world, {
        page: ("--compressed", "--limit-rate", "40K", f"http://{ADDRESS}/text.html"),
        picture: (f"http://{ADDRESS}/image.png",)})
    run.reload()
    expect(go_on(downloads), [0, 0])
    assert page.read_bytes() == TEXT and picture.read_bytes() == image
