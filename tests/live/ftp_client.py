"""A client of FTP that says what its server answers."""

import ftplib
import json
import socket
import sys

SIZES = {"large": 3 << 20, "small": 100, "medium": 50_000, "none": 0}


class Client(ftplib.FTP):
    """Lets the server open the connections for data, at ports that it chooses itself."""

    kind = "port"

    def makeport(self):
        made = socket.create_server((self.sock.getsockname()[0], 0))
        made.settimeout(20)
        send = self.sendport if self.kind == "port" else self.sendeprt
        send(*made.getsockname())
        return made

    def fetch(self, name):
        got = bytearray()
        self.retrbinary(f"RETR {name}", got.extend)
        return len(got)


def login(server):
    client = Client(server, timeout=30)
    client.set_pasv(False)
    client.login()
    return client


def session(server, *commands):
    """Many transfers on one connection, these commands, and another transfer."""
    client = login(server)
    found = {}
    for turn in range(8):
        client.kind = ("port", "eprt")[turn % 2]
        found[f"sizes {turn}"] = [client.fetch(name) for name in SIZES]
    for command in commands:
        try:
            found[command] = client.sendcmd(command)
        except ftplib.error_perm as why:
            found[command] = str(why)
    found["at the end"] = client.fetch("small")
    client.quit()
    print(json.dumps(found, sort_keys=True))


def wait(server):
    """Says where it waits for data, and asks for them when it is told to."""
    client = login(server)
    with client.makeport() as made:
        print("ready", flush=True)
        sys.stdin.readline()
        client.sendcmd("RETR small")
        connection, _ = made.accept()
        got = b"".join(iter(lambda: connection.recv(4096), b""))
        connection.close()
        client.voidresp()
        print("same" if len(got) == SIZES["small"] else f"{len(got)} bytes")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
