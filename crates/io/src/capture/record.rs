//! Records of captures.

/// The most captured bytes of a packet, as in libpcap. A record with a larger length is damaged.
pub const MAX_PACKET: u32 = 262_144;
