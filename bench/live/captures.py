"""Workers on packets in memory: how much faster a capture goes through the chain of four functions
with several workers than with one."""

import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import chains
from bed import PORT, SERVICE
from subjects import Absent

FLOWS = 1000


def measure(command, workers, packets, passes):
    """Packets a second by number of workers, on all cores, without the time of the start. The
    numbers of workers take turns, and the best pass of each counts."""
    folder = Path(tempfile.mkdtemp(prefix="braid-capture-"))
    try:
        for file, text in chains.braid(4).items():
            (folder / file).write_text(text)
        for name, count in (("few", FLOWS), ("all", packets)):
            (folder / f"{name}.pcap").write_bytes(pcap(count))
        best = {}
        for _ in range(passes):
            for count in workers:
                start, whole = (timed(command, folder, name, count) for name in ("few", "all"))
                rate = (packets - FLOWS) / max(whole - start, 1e-3)
                best[str(count)] = max(best.get(str(count), 0), round(rate))
        return best
    finally:
        shutil.rmtree(folder)


def timed(command, folder, name, workers):
    words = [command, "run", str(folder / "bench.braid"), "--json", "--workers", str(workers),
             "--in", f"lan={folder}/{name}.pcap"]
    start = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise Absent(f"--workers {workers}: {done.stderr.strip()}")
    return time.monotonic() - start


def pcap(count):
    """UDP packets of 64 bytes, whose flows take turns, 100 ns apart."""
    frames = [frame(flow) for flow in range(FLOWS)]
    # A capture with times in nanoseconds.
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)]
    for number in range(count):
        time_ns = number * 100 % 1_000_000_000
        parts += (struct.pack("<IIII", 1, time_ns, 60, 60), frames[number % FLOWS])
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
