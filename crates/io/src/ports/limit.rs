//! The longest frame that a device sends, for ports whose drivers accept longer frames and drop
//! them silently, or send them.

use crate::offload::is_tagged;
use crate::port::Unsent;
use braid_packet::{Frame, Pool};
use std::io;
use std::time::{Duration, Instant};

/// The time between two questions for the MTU.
const PERIOD: Duration = Duration::from_millis(10);

/// The link header without a VLAN tag, which the MTU does not count.
const LINK: u32 = 14;

/// The longest frame that a device sends.
pub(super) struct Limit {
    /// Its length without a VLAN tag.
    longest: usize,
    /// When the device was asked for its MTU.
    asked: Instant,
}

impl Limit {
    /// The limit of a device with this MTU.
    pub(super) fn of(mtu: u32) -> Self {
        let longest = usize::try_from(mtu.saturating_add(LINK)).unwrap_or(usize::MAX);
        Self { longest, asked: Instant::now() }
    }

    /// Whether it is time to ask for the device's MTU again.
    pub(super) fn is_old(&self) -> bool {
        self.asked.elapsed() > PERIOD
    }

    /// Asks for the device's MTU, if it is time to do so again.
    pub(super) fn renew(&mut self, ask: impl FnOnce() -> io::Result<u32>) {
        if self.is_old()
            && let Ok(mtu) = ask()
        {
            *self = Self::of(mtu);
        }
    }

    /// The length of the longest frame without a VLAN tag (bytes).
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// A frame as the device can send it, in the pool: a copy if the frame is elsewhere.
    pub(super) fn prepare(&self, pool: &mut Pool, frame: Frame) -> Result<Frame, Unsent> {
        let tag = if is_tagged(frame.bytes()) { 4 } else { 0 };
        if frame.len() > self.longest + tag {
            pool.put(frame);
            return Err(Unsent::TooLong);
        }
        if pool.index(&frame).is_some() {
            return Ok(frame);
        }
        let mut copy = pool.take().ok_or(Unsent::QueueFull)?;
        if copy.push(frame.bytes()) {
            return Ok(copy);
        }
        pool.put(copy);
        Err(Unsent::TooLong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_packet::frame::FRAME;

    #[test]
    fn frame_is_as_long_as_the_mtu_allows_and_comes_into_the_pool() {
        let (limit, mut pool) = (Limit::of(1500), Pool::new(1, FRAME).unwrap());
        let frame = |length: usize, tag: [u8; 2]| {
            let mut bytes = vec![0; length];
            bytes[12..14].copy_from_slice(&tag);
            Frame::of(&bytes)
        };
        for (length, tag, fits) in [
            (1514, [8, 0], true),
            (1515, [8, 0], false),
            (1518, [0x81, 0], true),
            (1519, [0x81, 0], false),
        ] {
            let prepared = limit.prepare(&mut pool, frame(length, tag));
            assert_eq!(prepared.is_ok(), fits, "{length} {tag:?}");
            prepared.into_iter().for_each(|frame| {
                assert!(pool.index(&frame).is_some());
                pool.put(frame);
            });
        }
        let taken = pool.take();
        assert_eq!(limit.prepare(&mut pool, frame(60, [8, 0])).err(), Some(Unsent::QueueFull));
        drop(taken);
        // A frame that no frame of the pool can hold leaves the pool as it was.
        let mut pool = Pool::new(1, FRAME).unwrap();
        let long = Limit::of(9000).prepare(&mut pool, frame(9000, [8, 0]));
        assert_eq!(long.err(), Some(Unsent::TooLong));
        assert!(pool.take().is_some());
    }
}
