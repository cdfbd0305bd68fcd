"""Files, pages and transfers through stream functions, between the servers and the clients that
others have written."""

import hashlib
import os
import random
import re
import subprocess
import time

from live import expect
from stream_hosts import ADDRESS, CLIENT, Hosts, count, drops, quiet

SIZE = int(os.environ.get("SIZE", "1000")) << 20
# What `deep` of `six.braid` looks for.
NEEDLE = b"a needle in a gigabyte"
URL = f"http://{ADDRESS}"


def make(path, size):
    """A file without a period, with the needle near its end. Returns its hash."""
    draw, found = random.Random(3), hashlib.sha256()
    with path.open("wb") as file:
        for at in range(0, size, 1 << 20):
            part = draw.randbytes(min(1 << 20, size - at))
            if at + (1 << 20) >= size:
                part = part[:1000] + NEEDLE + part[1000 + len(NEEDLE):]
            file.write(part)
            found.update(part)
    return found.hexdigest()


def digest(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def transfers(braid, engine):
    """A large file comes whole in both directions, also where the hosts lose one packet of a hundred.
    The function that searches all of it finds the needle in each transfer. The log has the bytes of
    each file, and of the heads of HTTP."""
    with Hosts(braid, engine) as hosts:
        pages = hosts.folder / "pages"
        pages.mkdir(mode=0o777)
        expected = make(pages / "large", SIZE)
        hosts.nginx("server", hosts.folder, f"""
            server {{ listen {ADDRESS}:80; root {pages}; client_max_body_size 0;
                     client_body_temp_path {hosts.folder}/body; dav_methods PUT; }}""")
        hosts.begin("six")
        rates = []
        for name in ("", "with losses "):
            if name:
                hosts.lose()
            for way in ("down", "up"):
                started = time.monotonic()
                move(hosts, way, pages, expected)
                rate = SIZE / 1e6 / (time.monotonic() - started)
                rates.append(f"{way} {name}{rate:.0f} MB/s")
        lost = [lost_packets(hosts, name) for name in ("client", "server")]
        assert min(lost) > SIZE / 1448 / 400, f"packets lost on purpose: {lost}"
        report, events, memory = hosts.finish()
        ended = [one["fields"] for one in events if one["event"] == "CONNECTION_END"]
        expect(len(ended), 4)
        for one, way in zip(ended, ("down", "up", "down", "up")):
            assert SIZE < one[way] < SIZE + 1000, one
        expect(count(events)["deep", "STREAM_ALERT"], 4)
        expect(drops(report), set())
        quiet(report, "inspects only the first bytes of long streams")
        return f"{', '.join(rates)}; {report['packets_in']} packets, {memory} MiB"


def move(hosts, way, pages, expected):
    """Moves the file to a new place."""
    curl = ("curl", "-sSf", "--max-time", "300")
    there = hosts.folder / "there" if way == "down" else pages / "uploaded"
    there.unlink(missing_ok=True)
    if way == "down":
        hosts.run("client", *curl, "-o", str(there), f"{URL}/large")
    else:
        hosts.run("client", *curl, "-T", str(pages / "large"), f"{URL}/uploaded")
    expect(digest(there), expected, way)


def lost_packets(hosts, name):
    """The packets that a host has lost on purpose."""
    return int(re.search(r"packets (\d+)", hosts.run(name, "nft", "list", "ruleset"))[1])


def servers(braid, engine):
    """nginx and lighttpd answer h2load, wrk and curl. `pages` alerts for each request of HTTP/1.1,
    and the log has each connection of h2load."""
    with Hosts(braid, engine) as hosts:
        folder = hosts.folder
        (folder / "page").write_bytes(random.Random(9).randbytes(10_000))
        hosts.nginx("server", folder, f"""
            server {{ listen {ADDRESS}:80; root {folder}; }}
            server {{ listen {ADDRESS}:82 http2; root {folder}; }}""")
        (folder / "lighttpd.conf").write_text(f"""
            server.document-root = "{folder}"
            server.bind = "{ADDRESS}"
            server.port = 81
            server.max-keep-alive-requests = 1000000""")
        hosts.start("server", "lighttpd", "-D", "-f", str(folder / "lighttpd.conf"),
                    stderr=subprocess.DEVNULL)
        hosts.begin("six")
        asked, connections = 0, {}
        for port in (80, 81):
            page = f"{URL}:{port}/page"
            hosts.run("client", "curl", "-sSf", "--retry", "5", "--retry-connrefused", "--max-time",
                      "20", "-o", str(folder / "got"), page)
            expect(digest(folder / "got"), digest(folder / "page"))
            h2load(hosts, page, 2000, 50, "--h1")
            asked += 2001
            connections[port] = 51
        # HTTP/2 without TLS, which signatures about HTTP do not see.
        for port, number in ((82, 20), (81, 20)):
            h2load(hosts, f"{URL}:{port}/page", 2000, number)
            connections[port] = connections.get(port, 0) + number
        found = [hosts.wrk(f"{URL}:{port}/page", close) for port in (80, 81)
                 for close in ((), ("-H", "Connection: close"))]
        report, events, memory = hosts.finish()
        kinds = count(events)
        assert kinds["pages", "IDS_ALERT"] >= asked + sum(found), (kinds, asked, found)
        ports = [one["fields"]["sport"] for one in events if one["event"] == "CONNECTION_OPEN"]
        expect(ports.count(82), connections[82])
        assert ports.count(81) >= connections[81] and ports.count(80) >= connections[80], connections
        expect(drops(report), set())
        return f"{report['packets_in']} packets, {memory} MiB; wrk {found} requests"


def h2load(hosts, page, number, connections, *more):
    """`number` requests on `connections` connections. All are answered."""
    text = hosts.run("client", "h2load", "-n", str(number), "-c", str(connections), "-T", "30", *more,
                     page)
    good = f"{number} total, {number} started, {number} done, {number} succeeded, 0 failed"
    assert good in text and f"status codes: {number} 2xx" in text, text


def ftp(braid, engine):
    """Files go both ways by FTP, where the client opens the connections for data and where the server
    does. A file with a signature is reset."""
    with Hosts(braid, engine) as hosts:
        there = hosts.folder / "ftp"
        (there / "in").mkdir(parents=True)
        (there / "in").chmod(0o777)
        expected = make(there / "large", 20 << 20)
        (there / "bad").write_bytes(random.Random(1).randbytes(5000) + b"cmd.exe" + bytes(5000))
        (hosts.folder / "empty").mkdir()
        (hosts.folder / "vsftpd.conf").write_text("\n".join([
            "background=NO", "listen=YES", f"listen_address={ADDRESS}", "anonymous_enable=YES",
            f"anon_root={there}", "anon_upload_enable=YES", "write_enable=YES", "anon_umask=022",
            "no_anon_password=YES", f"secure_chroot_dir={hosts.folder}/empty",
            "connect_from_port_20=YES", "seccomp_sandbox=NO", "xferlog_enable=NO", ""]))
        hosts.start("server", "vsftpd", str(hosts.folder / "vsftpd.conf"))
        hosts.begin("six")
        got, url = hosts.folder / "got", f"ftp://{ADDRESS}"
        curl = ("curl", "-sSf", "--retry", "5", "--retry-connrefused", "--max-time", "60")
        for number, how in enumerate(((), ("-P", CLIENT), ("-P", CLIENT, "--disable-eprt"))):
            hosts.run("client", *curl, *how, "-o", str(got), f"{url}/large")
            expect(digest(got), expected, how)
            hosts.run("client", *curl, *how, "-T", str(got), f"{url}/in/{number}")
            expect(digest(there / "in" / str(number)), expected, how)
        try:
            hosts.run("client", *curl[:2], "--max-time", "20", "-o", str(got), f"{url}/bad")
            raise AssertionError("the file with a signature came through")
        except OSError as why:
            assert "curl" in str(why), why
        report, events, memory = hosts.finish()
        kinds = count(events)
        expect(kinds["block", "STREAM_ALERT"], 1)
        expect(kinds["deep", "STREAM_ALERT"], 6)
        expect(drops(report), {"signature"})
        quiet(report, "inspects only the first bytes of long streams")
        return f"{report['packets_in']} packets, {memory} MiB"
