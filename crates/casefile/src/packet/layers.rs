//! The layers of a packet. An `Option` that is `None` takes the value that makes the packet valid.
//! `Some` writes the given value, even if that makes the packet invalid.

/// The default source address of frames.
pub const DEFAULT_SRC_MAC: u64 = 0x02_00_00_00_00_01;
/// The default destination address of frames.
pub const DEFAULT_DST_MAC: u64 = 0x02_00_00_00_00_02;

/// A packet: its layers from the outside in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spec {
    /// The layers, with the link layer first.
    pub layers: Vec<Layer>,
    /// Bytes behind the packet itself (link padding).
    pub trailer: Vec<u8>,
    /// Number of captured bytes, if the capture cut the packet.
    pub snap: Option<usize>,
    /// The link type, if the first layer does not determine it.
    pub raw_link: Option<LinkKind>,
}

/// A packet as bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The link type.
    pub link: LinkKind,
    /// Captured bytes.
    pub data: Vec<u8>,
    /// Bytes on the wire.
    pub wire_len: u32,
}

/// Link types.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinkKind {
    /// Ethernet.
    #[default]
    Ethernet,
    /// IP without a link header.
    RawIp,
    /// Linux cooked capture.
    Cooked,
    /// Linux cooked capture, version 2.
    Cooked2,
}

/// A layer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Layer {
    /// Ethernet.
    Eth(Eth),
    /// No link header.
    RawIp,
    /// A Linux cooked header, either version.
    Cooked(Cooked),
    /// A VLAN tag.
    Vlan(Vlan),
    /// An MPLS label stack entry: label, traffic class, time to live.
    Mpls(u32, u8, u8),
    /// ARP.
    Arp(Arp),
    /// IPv4 or IPv6.
    Ip(Ip),
    /// TCP.
    Tcp(Tcp),
    /// UDP.
    Udp(Udp),
    /// ICMP or ICMPv6. The layers behind it are the quoted packet.
    Icmp(Icmp),
    /// GRE: key, protocol.
    Gre(Option<u32>, Option<u16>),
    /// VXLAN: network identifier.
    Vxlan(u32),
    /// AH: security parameters index, sequence number.
    Ah(u32, u32),
    /// ESP: security parameters index, sequence number.
    Esp(u32, u32),
    /// Arbitrary bytes.
    Payload(Vec<u8>),
}

/// An Ethernet header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Eth {
    /// Source.
    pub src: u64,
    /// Destination.
    pub dst: u64,
    /// EtherType.
    pub ethertype: Option<u16>,
}

/// A Linux cooked header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cooked {
    /// Version 2.
    pub v2: bool,
    /// EtherType.
    pub ethertype: Option<u16>,
}

/// A VLAN tag.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vlan {
    /// Tag protocol identifier.
    pub tpid: u16,
    /// VLAN identifier.
    pub id: u16,
    /// Priority.
    pub pcp: u8,
    /// Drop eligible.
    pub dei: bool,
    /// EtherType behind the tag.
    pub ethertype: Option<u16>,
}

/// ARP for IPv4 over Ethernet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arp {
    /// Operation.
    pub op: u16,
    /// Sender hardware address. The default is the frame's source.
    pub sha: Option<u64>,
    /// Sender protocol address.
    pub spa: u32,
    /// Target hardware address. The default is 0 for a request, otherwise the frame's destination.
    pub tha: Option<u64>,
    /// Target protocol address.
    pub tpa: u32,
}

/// An IPv4 or IPv6 header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ip {
    /// IPv6.
    pub v6: bool,
    /// Source (IPv4 in the low 32 bits).
    pub src: u128,
    /// Destination.
    pub dst: u128,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Type of service or traffic class.
    pub tos: u8,
    /// IPv4 identification, or that of an IPv6 fragment header.
    pub id: u32,
    /// IPv4 don't fragment.
    pub df: bool,
    /// More fragments.
    pub mf: bool,
    /// Fragment offset in units of 8 bytes.
    pub frag: u16,
    /// IPv6 flow label.
    pub flow: u32,
    /// IPv4 options (a multiple of 4 bytes).
    pub options: Vec<u8>,
    /// IPv6 extension headers in order (a fragment header comes last).
    pub exts: Vec<Ext>,
    /// IPv6: writes a fragment header even if it fragments nothing.
    pub frag_header: bool,
    /// Protocol.
    pub proto: Option<u8>,
    /// Version.
    pub version: Option<u8>,
    /// Header length in units of 4 bytes.
    pub ihl: Option<u8>,
    /// Total length, or IPv6 payload length.
    pub len: Option<u16>,
    /// IPv4 header checksum.
    pub sum: Option<u16>,
}

/// An IPv6 extension header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ext {
    /// Its protocol number: 0 hop-by-hop, 43 routing, 60 destination options.
    pub number: u8,
    /// The bytes behind its two fixed bytes: 6 bytes, or 8·n more.
    pub body: Vec<u8>,
}

/// A TCP header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tcp {
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags.
    pub flags: u8,
    /// Window.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options. They are padded with end-of-options to a multiple of 4 bytes.
    pub options: Vec<TcpOption>,
    /// Data offset in units of 4 bytes.
    pub offset: Option<u8>,
    /// Checksum.
    pub sum: Option<u16>,
}

/// A TCP option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// No operation.
    Nop,
    /// Maximum segment size.
    Mss(u16),
    /// Window scale.
    Wscale(u8),
    /// SACK permitted.
    SackOk,
    /// Timestamps: value, echo reply.
    Ts(u32, u32),
    /// These bytes.
    Raw(Vec<u8>),
}

/// A UDP header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Udp {
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// Length.
    pub len: Option<u16>,
    /// Checksum.
    pub sum: Option<u16>,
}

/// An ICMP or ICMPv6 header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Icmp {
    /// ICMPv6.
    pub v6: bool,
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Bytes 4 to 7.
    pub rest: u32,
    /// Number of following bytes that are kept.
    pub cut: Option<usize>,
    /// Checksum.
    pub sum: Option<u16>,
}

impl Default for Eth {
    fn default() -> Self {
        Self { src: DEFAULT_SRC_MAC, dst: DEFAULT_DST_MAC, ethertype: None }
    }
}

impl Ip {
    /// A header with defaults: time to live 64, everything else 0 or the valid value.
    #[must_use]
    pub fn new(v6: bool, src: u128, dst: u128) -> Self {
        Self {
            v6,
            src,
            dst,
            ttl: 64,
            tos: 0,
            id: 0,
            df: false,
            mf: false,
            frag: 0,
            flow: 0,
            options: Vec::new(),
            exts: Vec::new(),
            frag_header: false,
            proto: None,
            version: None,
            ihl: None,
            len: None,
            sum: None,
        }
    }
}

impl Tcp {
    /// A header with flags ACK, window 65535 and everything else 0.
    #[must_use]
    pub fn new(sport: u16, dport: u16) -> Self {
        Self {
            sport,
            dport,
            seq: 0,
            ack: 0,
            flags: 0x10,
            window: 0xffff,
            urgent: 0,
            options: Vec::new(),
            offset: None,
            sum: None,
        }
    }
}
