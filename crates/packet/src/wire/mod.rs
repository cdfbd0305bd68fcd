//! One module for each protocol, with its headers' declarations, offsets, checks and tests.

pub(crate) mod arp;
pub(crate) mod attributes;
pub(crate) mod cooked;
pub(crate) mod ethernet;
pub(crate) mod geneve;
pub(crate) mod gre;
pub(crate) mod icmp;
pub(crate) mod inet;
pub(crate) mod ipsec;
pub(crate) mod ipv4;
pub(crate) mod ipv6;
pub(crate) mod mpls;
pub(crate) mod pppoe;
pub(crate) mod quoted;
pub(crate) mod tcp;
pub(crate) mod udp;
pub(crate) mod vlan;
pub(crate) mod vxlan;

/// EtherTypes that code outside the declarations names.
#[allow(missing_docs, reason = "the names are those of the standards")]
pub mod ether_type {
    /// The largest number in place of an EtherType that is a length (802.3).
    pub const MOST_LENGTH: u16 = 1500;
    pub const IPV4: u16 = 0x0800;
    pub const ARP: u16 = 0x0806;
    /// A tag of IEEE 802.1Q. Tags that functions add have this type.
    pub const VLAN: u16 = 0x8100;
    pub const IPV6: u16 = 0x86dd;
    /// A unicast MPLS label stack.
    pub const MPLS: u16 = 0x8847;
    /// A bridged frame (RFC 7637 §3.2, RFC 8926 §3.4).
    pub const BRIDGED: u16 = 0x6558;
    /// An outer tag of IEEE 802.1ad.
    pub const QINQ: u16 = 0x88a8;
    /// All types of tags. The last one was in use before 802.1ad.
    pub const TAGS: [u16; 3] = [VLAN, QINQ, 0x9100];
}

/// The IP protocol numbers that are recognised.
#[allow(missing_docs, reason = "the names are those of the standards")]
pub mod proto {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ICMP: u8 = 1;
    pub const IGMP: u8 = 2;
    pub const IP4: u8 = 4;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const DCCP: u8 = 33;
    pub const IP6: u8 = 41;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const GRE: u8 = 47;
    pub const ESP: u8 = 50;
    pub const AH: u8 = 51;
    pub const ICMP6: u8 = 58;
    pub const DESTINATION: u8 = 60;
    pub const MOBILITY: u8 = 135;
    pub const UDP_LITE: u8 = 136;
    pub const MPLS: u8 = 137;
    pub const HIP: u8 = 139;
    pub const SHIM6: u8 = 140;
    /// The extension headers of IPv6 that hold the next header and their own length in words of 8
    /// bytes, not counting the first word.
    pub const EXTENSIONS: [u8; 6] = [HOP_BY_HOP, ROUTING, DESTINATION, MOBILITY, HIP, SHIM6];
}
