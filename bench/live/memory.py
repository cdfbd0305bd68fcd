"""Workers on packets in memory: how much faster the chain of four functions takes them with several
workers than with one."""

import json
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import chains
from bed import PORT, SERVICE
from subjects import Absent

FLOWS = 1000


def measure(command, workers, seconds, passes):
    """Packets a second by number of workers, on all cores. Numbers of workers take turns, and the
    best pass of each counts."""
    folder = Path(tempfile.mkdtemp(prefix="braid-memory-"))
    try:
        for file, text in chains.braid(4, hosts=False).items():
            (folder / file).write_text(text)
        (folder / "flows.pcap").write_bytes(pcap())
        best = {}
        for _ in range(passes):
            for count in workers:
                rate = run(command, folder, count, seconds)
                best[str(count)] = max(best.get(str(count), 0), rate)
        return best
    finally:
        shutil.rmtree(folder)


def run(command, folder, workers, seconds):
    """Packets a second that leave the chain."""
    words = [command, "run", str(folder / "bench.braid"), "--json", "--workers", str(workers),
             "--for", f"{seconds}s", "--if", f"lan=memory:{folder}/flows.pcap", "wan=memory"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise Absent(f"--workers {workers}: {done.stderr.strip()}")
    return round(sum(json.loads(done.stdout)["packets_out"].values()) / seconds)


def pcap():
    """A UDP packet of 64 bytes of each flow."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    for flow in range(FLOWS):
        parts += (struct.pack("<IIII", 1, flow, 60, 60), frame(flow))
    return b"".join(parts)


def frame(flow):
    address = bytes([10, 0, 0, 100 + flow % 100])
    target = bytes(map(int, SERVICE.split(".")))
    udp = struct.pack("!HHHH", 1024 + flow // 100, PORT, 26, 0) + bytes(18)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 46, 0, 0x4000, 64, 17, 0) + address + target
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    return b"\x02" * 12 + b"\x08\0" + head[:10] + struct.pack("!H", total) + head[12:] + udp
