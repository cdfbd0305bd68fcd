"""TCP connections of real hosts through stream functions, also where packets are lost, repeated and
swapped on the way. (`stress.py` has many connections, large files and floods.)"""

import json
import re
import tempfile
from pathlib import Path

from live import Braid, World, also_with_losses, expect

ADDRESS = "10.7.0.2"


def streams(braid, engine):
    """Whole transfers stay whole, signatures are found wherever packets cut them, and nothing gets
    through a connection that was reset."""
    return also_with_losses(scene, braid, engine)


def scene(braid, engine, faults):
    with World("client", "braid", "server") as world, tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        world.wire("10.7.0.1", ADDRESS)
        world.serve("server", ADDRESS)
        nginx(world, folder)
        events = folder / "events"
        run = Braid(world, braid, engine, "streams.braid", "in=af_packet:lan0", "out=af_packet:wan0",
                    more=("--events-out", str(events), *faults))
        expect(world.peer("client", "download", ADDRESS), "same 10.7.0.1")
        expect(world.peer("client", "upload", ADDRESS), "same")
        expect(world.peer("client", "pieces", ADDRESS, "GET /nothing HTTP/1.0\r\n\r\n"), "200")
        for request in ("GET /cmd.exe HTTP/1.0\r\n\r\n", "GET /a?f=/ETC/shadow HTTP/1.0\r\n\r\n"):
            expect(world.peer("client", "pieces", ADDRESS, request), "reset")
        expect(world.peer("client", "pieces", ADDRESS, "GET /alert-me HTTP/1.0\r\n\r\n"), "200")
        # The server's bytes count, too.
        expect(world.peer("client", "pieces", f"{ADDRESS}:80", "GET /bad HTTP/1.0\r\n\r\n"), "reset")
        loaded = world.run("client", "wrk", "-t1", "-c20", "-d2s", "--timeout", "10s",
                           "-H", "Connection: close", f"http://{ADDRESS}/good")
        asked = int(re.search(r"(\d+) requests in", loaded)[1])
        report = run.stop()
        found = [json.loads(line) for line in events.read_text().splitlines()]
        count = {}
        for one in found:
            count[one["function"], one["event"]] = count.get((one["function"], one["event"]), 0) + 1
        assert count["block", "STREAM_ALERT"] == 3 and count["alert", "STREAM_ALERT"] == 1, count
        opened, ended = count["log", "CONNECTION_OPEN"], count["log", "CONNECTION_END"]
        assert opened >= asked + 7 and opened >= ended >= 0.9 * opened, (asked, count)
        expect({one["reason"] for one in report["drops"]}, {"signature"})
        return report["packets_in"]


def nginx(world, folder):
    """Serves `/good` and `/bad` on port 80."""
    (folder / "good").write_text("good" * 500)
    (folder / "bad").write_text("x" * 3000 + "run cmd.exe now" + "x" * 3000)
    world.nginx("server", folder, f"server {{ listen {ADDRESS}:80; root {folder}; }}")
