//! Link types of capture files: the supported ones, and the names of the others.
//!
//! Numbers and names follow the tcpdump group's registry of LINKTYPE values.

use braid_packet::Link;

const ETHERNET: u32 = 1;
const RAW: u32 = 101;
const SLL: u32 = 113;
const SLL2: u32 = 276;

/// The link with this LINKTYPE number, if it is supported.
///
/// BSD systems wrote 12 and 14 for raw IP before it had its own number (101).
#[must_use]
pub fn link_of_number(number: u32) -> Option<Link> {
    match number {
        ETHERNET => Some(Link::Ethernet),
        12 | 14 | RAW | 228 | 229 => Some(Link::RawIp),
        SLL => Some(Link::Cooked),
        SLL2 => Some(Link::Cooked2),
        _ => None,
    }
}

/// The LINKTYPE number of a link in files that Braid writes.
#[must_use]
pub fn number_of_link(link: Link) -> u32 {
    match link {
        Link::Ethernet => ETHERNET,
        Link::RawIp => RAW,
        Link::Cooked => SLL,
        Link::Cooked2 => SLL2,
    }
}

/// The name of a LINKTYPE number; `unknown` for numbers that are not in the table.
#[must_use]
pub fn link_name(number: u32) -> &'static str {
    NAMES.iter().find(|(known, _)| *known == number).map_or("unknown", |(_, name)| name)
}

const NAMES: &[(u32, &str)] = &[
    (0, "BSD loopback"),
    (1, "Ethernet"),
    (2, "experimental Ethernet"),
    (3, "AX.25"),
    (6, "IEEE 802.5 Token Ring"),
    (7, "ARCNET, BSD"),
    (8, "SLIP"),
    (9, "PPP"),
    (10, "FDDI"),
    (11, "ATM RFC 1483, old number"),
    (12, "raw IP, old number"),
    (14, "raw IP, old number"),
    (50, "PPP in HDLC-like framing"),
    (51, "PPP over Ethernet"),
    (99, "Symantec Firewall"),
    (100, "ATM RFC 1483"),
    (101, "raw IP"),
    (104, "Cisco HDLC"),
    (105, "IEEE 802.11"),
    (106, "ATM classical IP"),
    (107, "Frame Relay"),
    (108, "OpenBSD loopback"),
    (113, "Linux cooked v1"),
    (114, "LocalTalk"),
    (117, "OpenBSD pflog"),
    (119, "Prism and IEEE 802.11"),
    (122, "IP over Fibre Channel"),
    (123, "SunATM"),
    (127, "radiotap and IEEE 802.11"),
    (129, "ARCNET, Linux"),
    (130, "Juniper MLPPP"),
    (131, "Juniper MLFR"),
    (132, "Juniper ES"),
    (133, "Juniper GGSN"),
    (134, "Juniper MFR"),
    (135, "Juniper ATM2"),
    (136, "Juniper services"),
    (137, "Juniper ATM1"),
    (138, "Apple IP over IEEE 1394"),
    (139, "SS7 MTP2 with pseudo-header"),
    (140, "SS7 MTP2"),
    (141, "SS7 MTP3"),
    (142, "SS7 SCCP"),
    (143, "DOCSIS"),
    (144, "IrDA, Linux"),
    (147, "user-defined 0"),
    (162, "user-defined 15"),
    (163, "AVS and IEEE 802.11"),
    (165, "BACnet MS/TP"),
    (166, "PPP with direction, pppd"),
    (169, "GPRS LLC"),
    (177, "LAPD, Linux"),
    (187, "Bluetooth HCI"),
    (189, "USB, Linux"),
    (192, "PPI"),
    (195, "IEEE 802.15.4"),
    (197, "ERF"),
    (201, "Bluetooth HCI with direction"),
    (204, "PPP with direction"),
    (205, "Cisco HDLC with direction"),
    (206, "Frame Relay with direction"),
    (209, "I2C, Linux"),
    (215, "IEEE 802.15.4 without PHY"),
    (220, "USB, Linux, padded"),
    (224, "Fibre Channel FC-2"),
    (226, "Solaris IPNET"),
    (227, "SocketCAN"),
    (228, "raw IPv4"),
    (229, "raw IPv6"),
    (230, "IEEE 802.15.4 without FCS"),
    (231, "D-Bus"),
    (235, "DVB-CI"),
    (237, "STANAG 5066"),
    (239, "netfilter log"),
    (240, "Hilscher netANALYZER"),
    (242, "IP over InfiniBand"),
    (243, "MPEG-2 transport stream"),
    (245, "NFC LLCP"),
    (247, "InfiniBand"),
    (248, "SCTP"),
    (249, "USBPcap"),
    (251, "Bluetooth LE link layer"),
    (252, "Wireshark exported PDU"),
    (253, "netlink"),
    (254, "Bluetooth monitor"),
    (258, "PKTAP"),
    (264, "ISO 14443"),
    (265, "RDS"),
    (271, "vsock monitor"),
    (272, "Nordic BLE sniffer"),
    (274, "DOCSIS with timing"),
    (276, "Linux cooked v2"),
    (279, "Elee protocol"),
    (283, "IEEE 802.15.4 TAP"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_is_written_with_a_number_that_reads_back() {
        for link in [Link::Ethernet, Link::RawIp, Link::Cooked, Link::Cooked2] {
            assert_eq!(link_of_number(number_of_link(link)), Some(link));
        }
    }

    #[test]
    fn names_are_in_ascending_order_without_duplicates() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
