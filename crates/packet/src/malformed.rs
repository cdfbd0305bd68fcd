//! Why a packet is malformed: its headers contradict themselves. A capture's cut is not a reason.

macro_rules! reasons {
    ($($variant:ident $name:literal $doc:literal;)*) => {
        /// A reason why a packet is malformed. Headers before the malformed one are still
        /// recognised. The malformed one and the headers behind it are absent.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Malformed { $(#[doc = $doc] $variant,)* }

        impl Malformed {
            /// All reasons, in order of declaration.
            pub const ALL: &'static [Malformed] = &[$(Malformed::$variant,)*];

            /// The reason's stable name, as in counters and reports.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Malformed::$variant => $name,)* }
            }

            /// One sentence on the contradiction.
            #[must_use]
            pub fn doc(self) -> &'static str {
                match self { $(Malformed::$variant => $doc,)* }
            }
        }
    };
}

reasons! {
    EthShort "eth_short" "Fewer than 14 bytes on the wire for an Ethernet header.";
    EthLength "eth_length" "An 802.3 length beyond the bytes on the wire.";
    VlanShort "vlan_short" "A VLAN tag that ends beyond the bytes on the wire.";
    VlanDepth "vlan_depth" "More than 8 VLAN tags.";
    CookedShort "cooked_short" "Fewer bytes on the wire than a Linux cooked header has.";
    ArpShort "arp_short" "An ARP message shorter than its header and addresses.";
    MplsShort "mpls_short" "An MPLS label stack that ends beyond the bytes on the wire.";
    MplsDepth "mpls_depth" "More than 16 MPLS label stack entries.";
    IpShort "ip_short" "Fewer bytes on the wire than an IPv4 or IPv6 header has.";
    IpVersion "ip_version" "An IP version that is not the one announced by the layer below.";
    IpHeaderLength "ip_header_length" "An IPv4 header length below 20 or beyond the bytes on the wire.";
    IpTotalLength "ip_total_length" "An IPv4 total length below the header's or beyond the bytes on the wire.";
    IpOptions "ip_options" "An IPv4 option that runs over the end of the header.";
    Ip6PayloadLength "ip6_payload_length" "An IPv6 payload length beyond the bytes on the wire.";
    Ip6ExtensionLength "ip6_extension_length" "An IPv6 extension header beyond the end of the packet.";
    Ip6ExtensionDepth "ip6_extension_depth" "More than 16 IPv6 extension headers.";
    AhLength "ah_length" "An authentication header below 12 bytes or beyond the end of the packet.";
    EspShort "esp_short" "Fewer than 8 bytes of ESP.";
    TcpShort "tcp_short" "Fewer than 20 bytes of TCP.";
    TcpHeaderLength "tcp_header_length" "A TCP header length below 20 or beyond the end of the packet.";
    TcpOptions "tcp_options" "A TCP option that runs over the end of the header.";
    UdpShort "udp_short" "Fewer than 8 bytes of UDP.";
    UdpLength "udp_length" "A UDP length below 8 or, in a packet that is no fragment, beyond its end.";
    IcmpShort "icmp_short" "Fewer than 8 bytes of ICMP.";
    Icmp6Short "icmp6_short" "Fewer than 8 bytes of ICMPv6.";
    GreShort "gre_short" "A GRE header that ends beyond the end of the packet.";
    HeaderLength "header_length" "Another header that ends beyond the bytes on the wire, or whose length does.";
}

#[cfg(test)]
mod tests {
    use super::Malformed;

    #[test]
    fn reason_names_are_unique_words() {
        let mut names: Vec<_> = Malformed::ALL.iter().map(|r| r.name()).collect();
        assert!(
            names.iter().all(|n| n.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == '6'))
        );
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Malformed::ALL.len());
    }
}
