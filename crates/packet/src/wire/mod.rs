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

/// EtherTypes that the fast parser and new packets need.
pub(crate) mod ether_type {
    pub(crate) const IPV4: u16 = 0x0800;
    pub(crate) const ARP: u16 = 0x0806;
    pub(crate) const IPV6: u16 = 0x86dd;
}

/// The IP protocol numbers that are recognised.
pub(crate) mod proto {
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const ICMP: u8 = 1;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const FRAGMENT: u8 = 44;
    pub(crate) const GRE: u8 = 47;
    pub(crate) const ESP: u8 = 50;
    pub(crate) const AH: u8 = 51;
    pub(crate) const ICMP6: u8 = 58;
    pub(crate) const DESTINATION: u8 = 60;
    pub(crate) const MOBILITY: u8 = 135;
    pub(crate) const HIP: u8 = 139;
    pub(crate) const SHIM6: u8 = 140;
}
