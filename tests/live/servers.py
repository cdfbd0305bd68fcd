"""Clients of real hosts whose TCP connections end in Braid: a server of files in Braid itself, and
unchanged servers of others (lighttpd, python's http.server) that take their connections from Braid."""

import hashlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from live import Braid, World, also_with_losses, expect, go_on, sh, stopped, until

ADDRESS = "10.7.0.2"
PAGES, LIGHTTPD, PYTHON = 80, 81, 82
IMAGE, TEXT = os.urandom(3_000_000), b"A short text.\n"


def servers(braid, engine):
    """Files arrive whole from all servers, and uploads do, with losses and with two workers, too.
    Connections outlast a reload, and end with the process that serves them."""
    if shutil.which("lighttpd") is None:
        print("live: servers: left out: lighttpd is not installed")
        return 0
    packets = also_with_losses(scene, braid, engine)
    return packets + scene(braid, engine, (), workers=2)


def scene(braid, engine, faults, workers=1):
    with World("client", "braid", "server") as world, tempfile.TemporaryDirectory() as folder:
        site = Site(world, braid, Path(folder))
        world.wire("10.7.0.1", ADDRESS)
        # Its connections pass Braid.
        world.serve("server", ADDRESS)
        run = Braid(world, braid, engine, str(site.folder / "site.braid"), "in=af_packet:lan0",
                    "out=af_packet:wan0", more=("--workers", str(workers), *faults))
        expect(world.peer("client", "download", ADDRESS), "same 10.7.0.1")
        expect(site.curl(LIGHTTPD, "image.bin").returncode, 7, "nobody listens yet")
        lighttpd, python = site.lighttpd(), site.python()
        for port in (PAGES, LIGHTTPD, PYTHON):
            site.answers(port)
            expect(site.get(port, "image.bin"), IMAGE)
            expect(site.get(port, "sub/index.html"), TEXT)
        for port in (PAGES, LIGHTTPD):
            kept_alive(site, port)
            crowd(site, port)
        upload(site)
        reloaded(site, run)
        mortal(site, run, lighttpd)
        python.terminate()
        shares = [worker["packets"] for worker in run.status()["workers"]]
        report = run.stop()
        assert not site.socket.exists(), "the run removes its socket"
        if not faults:
            expect(report["lost"], {})
            expect(report["drops"], [])
            assert len(shares) == workers and min(shares) > sum(shares) / workers / 8, shares
        return report["packets_in"]


class Site:
    """Files, the servers that give them, and a client that asks for them."""

    def __init__(self, world, braid, folder):
        self.world, self.folder, self.socket = world, folder, folder / "run" / "sock"
        self.socket.parent.mkdir()
        self.files = folder / "files"
        (self.files / "sub").mkdir(parents=True)
        (self.files / "image.bin").write_bytes(IMAGE)
        (self.files / "sub" / "index.html").write_bytes(TEXT)
        upload = self.files / "upload.py"
        upload.write_text("import hashlib, os, sys\n"
                          "got = hashlib.sha256(sys.stdin.buffer.read()).hexdigest()\n"
                          "print('Content-Type: text/plain\\n\\n' + got, os.environ['REMOTE_ADDR'])\n")
        (folder / "site.braid").write_text(f"""
            native nf pages(addresses: set<addr>, ports: set<port>, folder: string) from "server";
            native nf sockets(addresses: set<addr>, ports: set<port>, path: string) from "server";

            chain site {{
              path in <-> files <-> others <-> out;
              files = pages(addresses: {{ {ADDRESS} }}, ports: {{ {PAGES} }}, folder: "{self.files}");
              others = sockets(addresses: {{ {ADDRESS} }}, ports: {{ {LIGHTTPD}, {PYTHON} }},
                               path: "{self.socket}");
            }}""")
        (folder / "lighttpd.conf").write_text(f"""
            server.document-root = "{self.files}"
            server.bind = "{ADDRESS}"
            server.port = {LIGHTTPD}
            server.upload-dirs = ( "{folder}" )
            server.modules = ( "mod_cgi" )
            cgi.assign = ( ".py" => "{sys.executable}" )
            index-file.names = ( "index.html" )""")
        self.preload = Path(braid).parent / "libbraid_preload.so"
        assert self.preload.exists(), "build it: cargo build -p braid-preload"

    def preloaded(self, *words):
        """Starts a server that takes its connections from Braid."""
        return self.world.start("server", "env", f"LD_PRELOAD={self.preload}",
                                f"BRAID_SOCKET={self.socket}", f"BRAID_PORTS={LIGHTTPD},{PYTHON}",
                                *words)

    def lighttpd(self):
        return self.preloaded("lighttpd", "-D", "-f", str(self.folder / "lighttpd.conf"))

    def python(self):
        # Its log is thrown away.
        return self.preloaded("sh", "-c", f"exec {sys.executable} -m http.server --bind {ADDRESS} "
                              f"--directory {self.files} {PYTHON} > /dev/null 2>&1")

    def curl(self, port, *paths, more=()):
        urls = [f"http://{ADDRESS}:{port}/{path}" for path in paths]
        return self.world.call("client", "curl", "-sS", "--max-time", "60", *more, *urls)

    def answers(self, port):
        """Waits until the server at a port has begun to listen."""
        until(lambda: self.curl(port, "sub/", more=("-o", "/dev/null")).returncode == 0,
              f"port {port} answers", limit=60)

    def get(self, port, path):
        body = self.folder / "body"
        done = self.curl(port, path, more=("-f", "-o", str(body)))
        expect(done.returncode, 0, f"{port} {done.stderr}")
        return body.read_bytes()


def kept_alive(site, port):
    """One connection serves several requests."""
    more = ("-o", "/dev/null", "-o", "/dev/null", "-o", "/dev/null", "-w", "%{num_connects} ")
    expect(site.curl(port, "sub/", "image.bin", "sub/", more=more).stdout, "1 0 0 ")


def crowd(site, port):
    """Many connections at once, and then one for each request."""
    for more in ((), ("-H", "Connection: close")):
        text = site.world.run("client", "wrk", "-t1", "-c100", "-d1s", "--timeout", "30s", *more,
                              f"http://{ADDRESS}:{port}/sub/index.html")
        asked = int(re.search(r"(\d+) requests in", text)[1])
        assert asked > 0 and "Non-2xx" not in text, text
        assert not re.search(r"Socket errors: connect [1-9]", text), text


def upload(site):
    """The server gets what a client sends, and knows the client's address."""
    done = site.curl(LIGHTTPD, "upload.py", more=("--data-binary", f"@{site.files}/image.bin"))
    expect(done.stdout.strip(), f"{hashlib.sha256(IMAGE).hexdigest()} 10.7.0.1", done.stderr)


def slow(site, *ports):
    """Clients that have begun to read a file, and have stopped, with the files that they write."""
    files = {site.folder / f"slow-{port}": (f"http://{ADDRESS}:{port}/image.bin",)
             for port in ports}
    return stopped(site.world, files), list(files)


def reloaded(site, run):
    """A reload keeps connections, also in the middle of a response."""
    downloads, files = slow(site, PAGES, LIGHTTPD)
    run.reload()
    expect(site.get(LIGHTTPD, "image.bin"), IMAGE, "new connections go on, too")
    expect(go_on(downloads), [0, 0])
    for file in files:
        expect(file.read_bytes() == IMAGE, True, str(file))


def mortal(site, run, lighttpd):
    """The connections of a process that dies end, and a new process serves the next ones."""
    downloads, (file,) = slow(site, LIGHTTPD)
    lighttpd.send_signal(signal.SIGKILL)
    lighttpd.wait()
    assert go_on(downloads) != [0] and file.read_bytes() != IMAGE
    expect(site.curl(LIGHTTPD, "sub/").returncode, 7, "nobody listens any more")
    expect(counter(run, "processes died"), 1)
    site.lighttpd()
    site.answers(LIGHTTPD)
    expect(site.get(LIGHTTPD, "image.bin"), IMAGE)


def counter(run, name):
    """The value of a counter of the function that hands connections over."""
    listing = json.loads(sh(run.command, "ctl", run.socket, "state", "others", "--table", "counters",
                            "--json"))
    return sum(value for of, value in counters(listing) if of == name)


def counters(value):
    """The counters in a listing of state, whatever is around them."""
    if isinstance(value, list):
        for one in value:
            yield from counters(one)
    elif isinstance(value, dict) and value.get("table") == "counters":
        yield from value["value"].items()
    elif isinstance(value, dict):
        for one in value.values():
            yield from counters(one)
