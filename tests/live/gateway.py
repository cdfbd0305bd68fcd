"""The gateway at the other end of an ESP tunnel, as scapy builds it: `gateway.py esp|udp OWN PEER KEYS
OUT IN`, with a file of keys and the security parameters indices of both directions.

The packets of a TUN device go into the tunnel, and what comes out of it goes to the device. With
`udp`, the tunnel is in UDP, and sequence numbers have 64 bits. They begin shortly before the upper
half changes."""

import fcntl
import os
import select
import socket
import struct
import sys

from scapy.layers.inet import IP, UDP
from scapy.layers.ipsec import ESP, SecurityAssociation

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
PORT = 4500
# The number of bytes of the AES key, if another key follows.
AES = {"aes-128-cbc-hmac-sha-256-128": 16, "aes-256-cbc-hmac-sha-256-128": 32}


def association(spi, keys, own, peer, in_udp):
    cipher, key = keys[spi]
    if cipher in AES:
        words = {"crypt_algo": "AES-CBC", "crypt_key": key[:AES[cipher]],
                 "auth_algo": "SHA2-256-128", "auth_key": key[AES[cipher]:]}
    else:
        words = {"crypt_algo": "AES-GCM", "crypt_key": key}
    udp = UDP(sport=PORT, dport=PORT) if in_udp else None
    return SecurityAssociation(ESP, spi=int(spi, 0), tunnel_header=IP(src=own, dst=peer), nat_t_header=udp,
                               esn_en=in_udp, **words)


class Numbers:
    """Sequence numbers of 64 bits. The lower 32 are sent."""

    def __init__(self, highest):
        self.highest = highest

    def next(self):
        self.highest += 1
        if self.highest & 0xFFFFFFFF == 0:
            # For scapy, 0 is no number.
            self.highest += 1
        return self.highest & 0xFFFFFFFF, self.highest >> 32

    def heard(self, low):
        """The upper half that belongs to a lower half that has arrived (RFC 4303, appendix A)."""
        start = max(self.highest - 63, 0)
        number = start + (low - start & 0xFFFFFFFF)
        self.highest = max(self.highest, number)
        return number >> 32


def main(kind, own, peer, file, outward, inward):
    in_udp = kind == "udp"
    with open(file) as lines:
        keys = {spi: (cipher, bytes.fromhex(key)) for spi, cipher, key in map(str.split, lines)}
    outward = association(outward, keys, own, peer, in_udp)
    inward = association(inward, keys, peer, own, in_udp)
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"vpn0", IFF_TUN | IFF_NO_PI))
    if in_udp:
        wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        wire.bind((own, PORT))
    else:
        wire = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ESP)
        wire.bind((own, 0))
    sent, received = Numbers(0xFFFFFFFF - 50 if in_udp else 0), Numbers(0)
    print("ready", flush=True)
    while True:
        for ready in select.select([device, wire], [], [])[0]:
            if ready == device:
                low, high = sent.next()
                packet = outward.encrypt(IP(os.read(device, 65536)), seq_num=low, esn=high)
                wire.sendto(bytes(packet[ESP]), (peer, PORT if in_udp else 0))
            else:
                # A raw socket gives the IP header, too.
                data = wire.recv(65536)
                packet = IP(src=peer, dst=own, proto=50) / ESP(data) if in_udp else IP(data)
                high = received.heard(packet[ESP].seq)
                os.write(device, bytes(inward.decrypt(packet, esn=high)))


if __name__ == "__main__":
    main(*sys.argv[1:])
