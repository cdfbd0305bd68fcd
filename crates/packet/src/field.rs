//! The field table: every header and header field that models can name, with width and access.
//!
//! A field's value is an unsigned integer in host order of at most 128 bits.

/// A header (or part of a packet) whose presence a model can test with `has`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum Header {
    /// Attributes of the packet itself: always present.
    Pkt,
    /// Ethernet II or 802.3 header.
    Eth,
    /// Outermost 802.1Q or 802.1ad tag.
    Vlan,
    /// Second VLAN tag (QinQ).
    Vlan2,
    /// ARP for IPv4 over Ethernet.
    Arp,
    /// Topmost MPLS label stack entry.
    Mpls,
    /// Outermost IPv4 header.
    Ip4,
    /// Outermost IPv6 header.
    Ip6,
    /// Either of IPv4 and IPv6 (the outermost network header).
    Inet,
    /// TCP (never in a fragment other than the first).
    Tcp,
    /// TCP maximum segment size option.
    TcpMss,
    /// TCP window scale option.
    TcpWscale,
    /// TCP SACK-permitted option.
    TcpSackOk,
    /// TCP timestamps option.
    TcpTs,
    /// UDP (never in a fragment other than the first).
    Udp,
    /// Either of TCP and UDP.
    L4,
    /// ICMP for IPv4.
    Icmp,
    /// ICMP echo request or reply (has identifier and sequence number).
    IcmpEcho,
    /// ICMPv6.
    Icmp6,
    /// ICMPv6 echo request or reply.
    Icmp6Echo,
    /// GRE.
    Gre,
    /// GRE with the key present.
    GreKey,
    /// VXLAN (UDP port 4789).
    Vxlan,
    /// IPsec authentication header.
    Ah,
    /// IPsec encapsulating security payload.
    Esp,
    /// The IP packet quoted in an ICMP or ICMPv6 error: its IP header is whole.
    Quoted,
    /// A quoted IPv4 packet.
    Quoted4,
    /// A quoted IPv6 packet.
    Quoted6,
    /// TCP or UDP ports of the quoted packet.
    QuotedL4,
    /// Identifier of a quoted ICMP echo.
    QuotedEcho,
}

macro_rules! fields {
    ($($variant:ident $name:literal $header:ident $width:literal $access:ident $doc:literal;)*) => {
        /// A header field or packet attribute.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Field { $(#[doc = $doc] $variant,)* }

        /// All fields, in declaration order (`FIELDS[field as usize].field == field`).
        pub const FIELDS: &[FieldInfo] = &[$(FieldInfo {
            field: Field::$variant, name: $name, header: Header::$header,
            width: $width, access: Access::$access, doc: $doc,
        },)*];
    };
}

/// Whether models may assign a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Read and written.
    Rw,
    /// Read only: a structural field, a checksum (kept valid by the runtime) or an attribute.
    Ro,
}

/// What the field table says of a field.
#[derive(Clone, Copy, Debug)]
pub struct FieldInfo {
    /// The field.
    pub field: Field,
    /// Its name in the language, such as `ip.src`.
    pub name: &'static str,
    /// The header that must be present.
    pub header: Header,
    /// Width in bits.
    pub width: u16,
    /// Read-write or read-only.
    pub access: Access,
    /// One line on its meaning.
    pub doc: &'static str,
}

fields! {
    PktLen        "pkt.len"         Pkt 32 Ro "Length on the wire in bytes, link header included, FCS excluded; also for snapped packets.";
    PktPayloadLen "pkt.payload_len" Pkt 32 Ro "Bytes behind the last recognised header, on the wire, link padding excluded.";
    PktTime       "pkt.time"        Pkt 64 Ro "Time of processing in nanoseconds since the epoch; never goes back.";
    PktIngress    "pkt.ingress"     Pkt 16 Ro "Number of the interface where the packet entered the chain.";
    PktBackward   "pkt.backward"    Pkt 1 Ro "1 when the packet goes backward (right to left) through this function.";
    PktFragment   "pkt.fragment"    Pkt 1 Ro "1 for any IP fragment, the first included.";
    PktLaterFragment "pkt.later_fragment" Pkt 1 Ro "1 for IP fragments other than the first, which carry no transport header.";
    PktHeld       "pkt.held"        Pkt 1 Ro "1 when the packet comes back from a queue in which this function held it.";
    PktTruncated  "pkt.truncated"   Pkt 1 Ro "1 when fewer bytes were captured than were on the wire.";
    EthDst   "eth.dst"  Eth 48 Rw "Destination MAC address.";
    EthSrc   "eth.src"  Eth 48 Rw "Source MAC address.";
    EthType  "eth.type" Eth 16 Ro "EtherType behind all VLAN tags.";
    VlanId   "vlan.id"  Vlan 12 Rw "VLAN identifier of the outermost tag.";
    VlanPcp  "vlan.pcp" Vlan 3 Rw "Priority code point of the outermost tag.";
    VlanDei  "vlan.dei" Vlan 1 Rw "Drop eligible indicator of the outermost tag.";
    VlanTpid "vlan.tpid" Vlan 16 Ro "Tag protocol identifier of the outermost tag.";
    Vlan2Id  "vlan2.id" Vlan2 12 Rw "VLAN identifier of the second tag.";
    Vlan2Pcp "vlan2.pcp" Vlan2 3 Rw "Priority code point of the second tag.";
    Vlan2Dei "vlan2.dei" Vlan2 1 Rw "Drop eligible indicator of the second tag.";
    ArpOp  "arp.op"  Arp 16 Rw "Operation: 1 request, 2 reply.";
    ArpSha "arp.sha" Arp 48 Rw "Sender hardware address.";
    ArpSpa "arp.spa" Arp 32 Rw "Sender protocol address.";
    ArpTha "arp.tha" Arp 48 Rw "Target hardware address.";
    ArpTpa "arp.tpa" Arp 32 Rw "Target protocol address.";
    MplsLabel "mpls.label" Mpls 20 Rw "Label of the topmost entry.";
    MplsTc    "mpls.tc"    Mpls 3 Rw "Traffic class of the topmost entry.";
    MplsBos   "mpls.bos"   Mpls 1 Ro "1 when the topmost entry is the last one.";
    MplsTtl   "mpls.ttl"   Mpls 8 Rw "Time to live of the topmost entry.";
    IpSrc   "ip.src"   Ip4 32 Rw "IPv4 source address.";
    IpDst   "ip.dst"   Ip4 32 Rw "IPv4 destination address.";
    IpProto "ip.proto" Ip4 8 Ro "IPv4 protocol.";
    IpTtl   "ip.ttl"   Ip4 8 Rw "IPv4 time to live.";
    IpTos   "ip.tos"   Ip4 8 Rw "IPv4 type of service byte.";
    IpDscp  "ip.dscp"  Ip4 6 Rw "IPv4 differentiated services code point.";
    IpEcn   "ip.ecn"   Ip4 2 Rw "IPv4 explicit congestion notification bits.";
    IpId    "ip.id"    Ip4 16 Rw "IPv4 identification.";
    IpDf    "ip.df"    Ip4 1 Rw "IPv4 don't fragment flag.";
    IpMf    "ip.mf"    Ip4 1 Ro "IPv4 more fragments flag.";
    IpFrag  "ip.frag"  Ip4 13 Ro "IPv4 fragment offset in units of 8 bytes.";
    IpLen   "ip.len"   Ip4 16 Ro "IPv4 total length in bytes.";
    IpHlen  "ip.hlen"  Ip4 8 Ro "IPv4 header length in bytes, options included.";
    IpChecksum "ip.checksum" Ip4 16 Ro "IPv4 header checksum.";
    Ip6Src    "ip6.src"    Ip6 128 Rw "IPv6 source address.";
    Ip6Dst    "ip6.dst"    Ip6 128 Rw "IPv6 destination address.";
    Ip6Next   "ip6.next"   Ip6 8 Ro "Next header field of the fixed IPv6 header.";
    Ip6Proto  "ip6.proto"  Ip6 8 Ro "Protocol behind the IPv6 extension headers.";
    Ip6Ttl    "ip6.ttl"    Ip6 8 Rw "IPv6 hop limit.";
    Ip6Tc     "ip6.tc"     Ip6 8 Rw "IPv6 traffic class.";
    Ip6Flow   "ip6.flow"   Ip6 20 Rw "IPv6 flow label.";
    Ip6Len    "ip6.len"    Ip6 16 Ro "IPv6 payload length in bytes.";
    InetVersion "inet.version" Inet 8 Ro "4 or 6.";
    InetSrc     "inet.src"   Inet 128 Ro "Source address; IPv4 addresses in the low 32 bits.";
    InetDst     "inet.dst"   Inet 128 Ro "Destination address; IPv4 addresses in the low 32 bits.";
    InetProto   "inet.proto" Inet 8 Ro "Upper-layer protocol, behind IPv6 extension headers.";
    InetTtl     "inet.ttl"   Inet 8 Rw "Time to live or hop limit.";
    InetSport   "inet.sport" Inet 16 Ro "TCP or UDP source port; the identifier for ICMP echo; else 0.";
    InetDport   "inet.dport" Inet 16 Ro "TCP or UDP destination port; the identifier for ICMP echo; else 0.";
    L4Sport    "l4.sport"    L4 16 Rw "TCP or UDP source port.";
    L4Dport    "l4.dport"    L4 16 Rw "TCP or UDP destination port.";
    L4Checksum "l4.checksum" L4 16 Ro "TCP or UDP checksum.";
    TcpSport  "tcp.sport"  Tcp 16 Rw "TCP source port.";
    TcpDport  "tcp.dport"  Tcp 16 Rw "TCP destination port.";
    TcpSeq    "tcp.seq"    Tcp 32 Rw "Sequence number.";
    TcpAck    "tcp.ack"    Tcp 32 Rw "Acknowledgement number.";
    TcpFlags  "tcp.flags"  Tcp 8 Rw "Flags: CWR ECE URG ACK PSH RST SYN FIN, from bit 7 down.";
    TcpWindow "tcp.window" Tcp 16 Rw "Window, not scaled.";
    TcpUrgent "tcp.urgent" Tcp 16 Rw "Urgent pointer.";
    TcpHlen   "tcp.hlen"   Tcp 8 Ro "TCP header length in bytes, options included.";
    TcpMss    "tcp.mss"    TcpMss 16 Rw "Maximum segment size option.";
    TcpWscale "tcp.wscale" TcpWscale 8 Rw "Window scale option.";
    TcpTsVal  "tcp.ts_val" TcpTs 32 Rw "Timestamp value.";
    TcpTsEcr  "tcp.ts_ecr" TcpTs 32 Rw "Timestamp echo reply.";
    UdpSport  "udp.sport"  Udp 16 Rw "UDP source port.";
    UdpDport  "udp.dport"  Udp 16 Rw "UDP destination port.";
    UdpLen    "udp.len"    Udp 16 Ro "UDP length in bytes.";
    IcmpType  "icmp.type"  Icmp 8 Rw "ICMP type.";
    IcmpCode  "icmp.code"  Icmp 8 Rw "ICMP code.";
    IcmpId    "icmp.id"    IcmpEcho 16 Rw "Identifier of an ICMP echo.";
    IcmpSeq   "icmp.seq"   IcmpEcho 16 Rw "Sequence number of an ICMP echo.";
    IcmpRest  "icmp.rest"  Icmp 32 Rw "Bytes 4 to 7 of the ICMP header (unused, MTU, gateway).";
    Icmp6Type "icmp6.type" Icmp6 8 Rw "ICMPv6 type.";
    Icmp6Code "icmp6.code" Icmp6 8 Rw "ICMPv6 code.";
    Icmp6Id   "icmp6.id"   Icmp6Echo 16 Rw "Identifier of an ICMPv6 echo.";
    Icmp6Seq  "icmp6.seq"  Icmp6Echo 16 Rw "Sequence number of an ICMPv6 echo.";
    Icmp6Rest "icmp6.rest" Icmp6 32 Rw "Bytes 4 to 7 of the ICMPv6 header.";
    GreProto  "gre.proto"  Gre 16 Ro "EtherType of the GRE payload.";
    GreKey    "gre.key"    GreKey 32 Rw "GRE key.";
    VxlanVni  "vxlan.vni"  Vxlan 24 Rw "VXLAN network identifier.";
    AhSpi     "ah.spi"     Ah 32 Ro "Security parameters index of AH.";
    AhSeq     "ah.seq"     Ah 32 Ro "Sequence number of AH.";
    EspSpi    "esp.spi"    Esp 32 Ro "Security parameters index of ESP.";
    EspSeq    "esp.seq"    Esp 32 Ro "Sequence number of ESP.";
    QuotedIpSrc  "quoted.ip.src"   Quoted4 32 Rw "Source address of the quoted IPv4 packet.";
    QuotedIpDst  "quoted.ip.dst"   Quoted4 32 Rw "Destination address of the quoted IPv4 packet.";
    QuotedIp6Src "quoted.ip6.src"  Quoted6 128 Rw "Source address of the quoted IPv6 packet.";
    QuotedIp6Dst "quoted.ip6.dst"  Quoted6 128 Rw "Destination address of the quoted IPv6 packet.";
    QuotedProto  "quoted.proto"    Quoted 8 Ro "Upper-layer protocol of the quoted packet.";
    QuotedSport  "quoted.l4.sport" QuotedL4 16 Rw "Source port of the quoted packet.";
    QuotedDport  "quoted.l4.dport" QuotedL4 16 Rw "Destination port of the quoted packet.";
    QuotedId     "quoted.icmp.id"  QuotedEcho 16 Rw "Identifier of the quoted ICMP echo.";
    QuotedInetVersion "quoted.inet.version" Quoted 8 Ro "IP version of the quoted packet: 4 or 6.";
    QuotedInetSrc   "quoted.inet.src"   Quoted 128 Ro "Source address of the quoted packet; IPv4 in the low 32 bits.";
    QuotedInetDst   "quoted.inet.dst"   Quoted 128 Ro "Destination address of the quoted packet; IPv4 in the low 32 bits.";
    QuotedInetSport "quoted.inet.sport" Quoted 16 Ro "As inet.sport, of the quoted packet.";
    QuotedInetDport "quoted.inet.dport" Quoted 16 Ro "As inet.dport, of the quoted packet.";
}

impl Field {
    /// The field table's entry.
    #[must_use]
    pub fn info(self) -> &'static FieldInfo {
        &FIELDS[self as usize]
    }

    /// The field with this name in the language, if any.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Field> {
        FIELDS.iter().find(|info| info.name == name).map(|info| info.field)
    }
}

/// Names of headers for `has`, in the language.
pub const HEADERS: &[(Header, &str)] = &[
    (Header::Pkt, "pkt"),
    (Header::Eth, "eth"),
    (Header::Vlan, "vlan"),
    (Header::Vlan2, "vlan2"),
    (Header::Arp, "arp"),
    (Header::Mpls, "mpls"),
    (Header::Ip4, "ip"),
    (Header::Ip6, "ip6"),
    (Header::Inet, "inet"),
    (Header::Tcp, "tcp"),
    (Header::TcpMss, "tcp.mss"),
    (Header::TcpWscale, "tcp.wscale"),
    (Header::TcpSackOk, "tcp.sack_ok"),
    (Header::TcpTs, "tcp.ts"),
    (Header::Udp, "udp"),
    (Header::L4, "l4"),
    (Header::Icmp, "icmp"),
    (Header::IcmpEcho, "icmp.echo"),
    (Header::Icmp6, "icmp6"),
    (Header::Icmp6Echo, "icmp6.echo"),
    (Header::Gre, "gre"),
    (Header::GreKey, "gre.key"),
    (Header::Vxlan, "vxlan"),
    (Header::Ah, "ah"),
    (Header::Esp, "esp"),
    (Header::Quoted, "quoted"),
    (Header::Quoted4, "quoted.ip"),
    (Header::Quoted6, "quoted.ip6"),
    (Header::QuotedL4, "quoted.l4"),
    (Header::QuotedEcho, "quoted.icmp"),
];

impl Header {
    /// The header's name in the language.
    #[must_use]
    pub fn name(self) -> &'static str {
        HEADERS[self as usize].1
    }

    /// The header with this name in the language, if any.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Header> {
        HEADERS.iter().find(|(_, n)| *n == name).map(|(h, _)| *h)
    }

    /// Headers that are present whenever this one is (the transitive closure, itself left out).
    #[must_use]
    pub fn implies(self) -> &'static [Header] {
        use Header::*;
        match self {
            Pkt | Eth | Mpls | Inet => &[],
            Vlan | Arp => &[Eth],
            Vlan2 => &[Vlan, Eth],
            Ip4 | Ip6 | L4 | Gre | Ah | Esp | Quoted => &[Inet],
            Tcp | Udp => &[L4, Inet],
            TcpMss | TcpWscale | TcpSackOk | TcpTs => &[Tcp, L4, Inet],
            Icmp => &[Ip4, Inet],
            IcmpEcho => &[Icmp, Ip4, Inet],
            Icmp6 => &[Ip6, Inet],
            Icmp6Echo => &[Icmp6, Ip6, Inet],
            GreKey => &[Gre, Inet],
            Vxlan => &[Udp, L4, Inet],
            Quoted4 => &[Quoted, Icmp, Ip4, Inet],
            Quoted6 => &[Quoted, Icmp6, Ip6, Inet],
            QuotedL4 | QuotedEcho => &[Quoted, Inet],
        }
    }
}
