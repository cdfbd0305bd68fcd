//! Builds packets in tests: `udp("10.0.0.1:1234 > 8.8.8.8:53").ttl(3).payload(b"query")`.
//!
//! A wrong text is a mistake in the test, so these functions panic with the reason.

use super::layers::{Layer, Spec};
use super::parse::parse;

/// Any packet, from its whole text.
///
/// # Panics
/// When the text does not describe a packet.
#[must_use]
pub fn packet(text: &str) -> Spec {
    match parse(text) {
        Ok(spec) => spec,
        Err(error) => panic!("`{text}`: {error}"),
    }
}

/// `udp("10.0.0.1:1234 > 8.8.8.8:53")`. Attributes may follow.
#[must_use]
pub fn udp(text: &str) -> Spec {
    packet(&format!("udp {text}"))
}

/// `tcp("10.0.0.1:1234 > 8.8.8.8:80 S seq=7")`
#[must_use]
pub fn tcp(text: &str) -> Spec {
    packet(&format!("tcp {text}"))
}

/// `icmp("10.0.0.1 > 8.8.8.8 echo-request id=1 seq=2")`. With IPv6 addresses it is ICMPv6.
#[must_use]
pub fn icmp(text: &str) -> Spec {
    packet(&format!("icmp {text}"))
}

/// `ip("10.0.0.1 > 8.8.8.8 proto=47")`
#[must_use]
pub fn ip(text: &str) -> Spec {
    packet(&format!("ip {text}"))
}

/// `arp("request 10.0.0.1 > 10.0.0.2")`
#[must_use]
pub fn arp(text: &str) -> Spec {
    packet(&format!("arp {text}"))
}

/// `eth("02:00:00:00:00:0a > 02:00:00:00:00:0b type=0x88cc")`
#[must_use]
pub fn eth(text: &str) -> Spec {
    packet(&format!("eth {text}"))
}

/// A packet without a link header: `raw_ip("udp 10.0.0.1:1 > 10.0.0.2:2")`
#[must_use]
pub fn raw_ip(text: &str) -> Spec {
    packet(&format!("rawip / {text}"))
}

impl Spec {
    /// Adds a payload.
    #[must_use]
    pub fn payload(mut self, bytes: &[u8]) -> Self {
        self.layers.push(Layer::Payload(bytes.to_vec()));
        self
    }

    /// Adds a VLAN tag outside of the frame's tags.
    #[must_use]
    pub fn vlan(mut self, id: u16) -> Self {
        let tag = super::Vlan { tpid: 0x8100, id, pcp: 0, dei: false, ethertype: None };
        let at = usize::from(matches!(self.layers.first(), Some(Layer::Eth(_))));
        self.layers.insert(at, Layer::Vlan(tag));
        self
    }

    /// Sets the time to live of the outermost IP header.
    #[must_use]
    pub fn ttl(mut self, ttl: u8) -> Self {
        if let Some(Layer::Ip(ip)) =
            self.layers.iter_mut().find(|layer| matches!(layer, Layer::Ip(_)))
        {
            ip.ttl = ttl;
        }
        self
    }

    /// Keeps only the first bytes, like a capture with this snap length.
    #[must_use]
    pub fn snapped(mut self, snap: usize) -> Self {
        self.snap = Some(snap);
        self
    }

    /// The fragments that a router makes of this packet. The IPv4 payload is cut into pieces of at
    /// most `size` bytes (a multiple of 8).
    ///
    /// # Panics
    /// When the packet has no IPv4 header.
    #[must_use]
    pub fn fragments(&self, size: usize) -> Vec<Spec> {
        let at = self.layers.iter().position(|layer| matches!(layer, Layer::Ip(_)));
        let Some((at, Layer::Ip(ip))) = at.map(|at| (at, &self.layers[at])) else {
            panic!("`{self}` has no IP header to fragment behind");
        };
        let frame = Spec { layers: self.layers.clone(), ..Spec::default() }.frame();
        let header = Spec { layers: self.layers[..=at].to_vec(), ..Spec::default() }.frame();
        let body = &frame.data[header.data.len()..];
        let proto = ip.proto.unwrap_or_else(|| self.proto_behind(at));
        let pieces = body.chunks(size.next_multiple_of(8)).enumerate();
        let count = body.len().div_ceil(size.next_multiple_of(8));
        pieces
            .map(|(i, piece)| {
                let mut layers = self.layers[..=at].to_vec();
                if let Some(Layer::Ip(ip)) = layers.get_mut(at) {
                    ip.proto = Some(proto);
                    ip.frag = u16::try_from(i * size.next_multiple_of(8) / 8).unwrap_or(0x1fff);
                    ip.mf = i + 1 < count;
                }
                layers.push(Layer::Payload(piece.to_vec()));
                Spec { layers, ..Spec::default() }
            })
            .collect()
    }

    fn proto_behind(&self, at: usize) -> u8 {
        match self.layers.get(at + 1) {
            Some(Layer::Tcp(_)) => 6,
            Some(Layer::Udp(_)) => 17,
            Some(Layer::Icmp(icmp)) if icmp.v6 => 58,
            Some(Layer::Icmp(_)) => 1,
            _ => 253,
        }
    }
}
