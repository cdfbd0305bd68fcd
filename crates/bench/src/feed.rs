//! The path of packets into and out of a measured engine: frames are copied into a pool's memory,
//! form bursts, and return to the pool. The memory ports of a run do the same.

use braid_packet::frame::SPREAD_FRAME;
use braid_packet::{BURST, Burst, Link, Packet, Pool};

/// A pool, and the burst that is being filled.
pub struct Feed {
    pool: Pool,
    burst: Burst,
}

impl Default for Feed {
    fn default() -> Self {
        Self::new()
    }
}

impl Feed {
    /// A pool with memory for one burst.
    ///
    /// # Panics
    /// When there is no memory for it (132 KB).
    #[must_use]
    pub fn new() -> Self {
        let pool = Pool::new(BURST as u32, SPREAD_FRAME).expect("memory for a burst");
        Self { pool, burst: Burst::new() }
    }

    /// Adds a packet that enters by interface 0.
    #[inline]
    pub fn add(&mut self, link: Link, time_ns: u64, data: &[u8], wire_len: u32) {
        self.burst.add(link, time_ns, data, wire_len, &mut self.pool);
    }

    /// Adds an Ethernet frame that enters by an interface.
    #[inline]
    pub fn add_at(&mut self, ingress: u16, time_ns: u64, data: &[u8]) {
        self.add(Link::Ethernet, time_ns, data, data.len() as u32);
        if let Some(packet) = self.burst.packets_mut().last_mut() {
            packet.ingress = ingress;
        }
    }

    /// Adds a copy of a packet, which enters by interface 0.
    pub fn add_copy(&mut self, packet: &Packet) {
        self.add(packet.link, packet.time_ns, packet.data(), packet.wire_len);
    }

    /// The packets.
    #[inline]
    pub fn burst(&mut self) -> &mut Burst {
        &mut self.burst
    }

    /// Removes the packets. Their frames return to the pool.
    #[inline]
    pub fn clear(&mut self) {
        self.burst.recycle(&mut self.pool);
    }
}
