"""Real clients (curl) that stay at a server of a balancer (nginx) by a cookie, servers that fail their
checks, and one that speaks TLS alone."""

import tempfile
from pathlib import Path

from live import HERE, Braid, World, also_with_losses, expect, until

ADDRESS = "10.7.0.254"
ONE, TWO, SECURE = SERVERS = ("10.8.0.1", "10.8.0.2", "10.8.0.3")


def kept(braid, engine):
    """Cookies keep clients at servers, checks keep them from sick ones, and names of TLS count."""
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
        start(world, folder)
        run = Braid(world, braid, engine, str(HERE / "kept.braid"), "lan=af_packet:lan0",
                    "wan=af_packet:wan0", more=faults)
        stays(world, folder)
        heeds_checks(world, folder)
        secure(world, folder)
        report = run.stop()
        if not faults:
            expect(report["lost"], {})
            expect(report["drops"], [])
        return report["packets_in"]


def start(world, folder):
    """Starts the servers. They say their address, and the cookies that they see. The first one is
    sick while there is a file `sick`."""
    certificate = world.certificate("server", folder, "shop.example")
    pages = "".join(f"""
        server {{
            listen {address}:8080;
            location / {{ return 200 "{address} $http_cookie"; }}
            location = /health {{ {sick} return 200 "well"; }}
        }}""" for address, sick in (
            (ONE, f"if (-f {folder}/sick) {{ return 503; }}"), (TWO, "")))
    world.nginx("server", folder, f"""{pages}
        server {{
            listen {SECURE}:8443 ssl;
            {certificate}
            location / {{ return 200 "{SECURE} $ssl_server_name"; }}
        }}""")
    until(lambda: world.call("server", "curl", "-s", f"http://{ONE}:8080/").returncode == 0,
          "nginx listens", limit=30)


def page(world, *more):
    """A page, by a connection of its own: the server, and the cookies that it has seen."""
    address, _, cookies = world.run(
        "client", "curl", "-sS", "--max-time", "60", *more, f"http://{ADDRESS}/").partition(" ")
    return address, cookies


def stays(world, folder):
    """Without a cookie, servers take turns. With it, a client stays, and the server does not see
    it."""
    expect({page(world)[0] for _ in range(2)}, {ONE, TWO})
    jar = ("-c", str(folder / "jar"), "-b", str(folder / "jar"))
    mine, _ = page(world, *jar)
    assert "STAY" in (folder / "jar").read_text()
    for _ in range(5):
        expect(page(world, *jar, "-H", "Cookie: theme=dark"), (mine, "theme=dark"))


def heeds_checks(world, folder):
    """A server that fails its checks gets no requests, also from clients that stay at it."""
    jar = ("-c", str(folder / "own"), "-b", str(folder / "own"))
    until(lambda: page(world, "-c", str(folder / "own"))[0] == ONE, "the first server answers")
    expect(page(world, *jar)[0], ONE)
    (folder / "sick").touch()
    until(lambda: page(world, "-b", str(folder / "own"))[0] == TWO, "the server is down", limit=30)
    expect([page(world)[0] for _ in range(4)], [TWO] * 4)
    # The client gets the cookie of the other server.
    expect([page(world, *jar)[0] for _ in range(2)], [TWO] * 2)
    (folder / "sick").unlink()
    until(lambda: {page(world)[0] for _ in range(2)} == {ONE, TWO}, "the server is up", limit=30)
    expect(page(world, *jar)[0], TWO)


def secure(world, folder):
    """The client sees the server's own certificate. A name without a rule gets an alert."""
    def curl(name):
        return world.call("client", "curl", "-sS", "--max-time", "60", "--cacert",
                          str(folder / "certificate"), "--resolve", f"{name}:443:{ADDRESS}",
                          f"https://{name}/")
    for _ in range(3):
        expect(curl("shop.example").stdout, f"{SECURE} shop.example")
    other = curl("other.example")
    assert other.returncode == 35 and "unrecognized name" in other.stderr, other
