//! Several ports to one device, one for each worker.

use crate::sys::Redirect;
#[cfg(feature = "dpdk")]
use crate::{port::OpenError, sys::dpdk};
use braid_packet::Packet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Gives a packet that arrives at a device the number of a port.
pub type Steer = Arc<dyn Fn(&Packet) -> u32 + Send + Sync>;

/// One of several ports to a device, which share the frames that arrive there. The default is the
/// only port.
#[derive(Clone, Default)]
pub struct Share {
    /// Its number, the number of ports, and what steers packets to them; `None` for the only port.
    one: Option<(u32, u32, Steer)>,
    common: Arc<Mutex<Common>>,
}

/// What the ports of a device agree about. Each of them may open the device again at any time.
#[derive(Default)]
struct Common {
    /// The number of their fan-out group.
    group: Option<u16>,
    redirect: Weak<Redirect>,
    #[cfg(feature = "dpdk")]
    device: Weak<dpdk::Device>,
}

impl Share {
    /// The shares of this number of ports. Devices that can choose the port for a packet ask `steer`.
    #[must_use]
    pub fn all(count: u32, steer: &Steer) -> Vec<Self> {
        let common = Arc::default();
        let one = |number| (count > 1).then(|| (number, count, Arc::clone(steer)));
        (0..count).map(|number| Self { one: one(number), common: Arc::clone(&common) }).collect()
    }

    /// Whether this is the only port.
    pub(crate) fn is_whole(&self) -> bool {
        self.one.is_none()
    }

    /// The number of ports.
    pub(crate) fn count(&self) -> u32 {
        self.one.as_ref().map_or(1, |(_, of, _)| *of)
    }

    /// Whether a packet goes to this port, where the ports can choose.
    pub(crate) fn takes(&self, packet: &Packet) -> bool {
        self.one.as_ref().is_none_or(|(number, _, steer)| steer(packet) == *number)
    }

    /// The port's part of a number of queues.
    pub(crate) fn queues(&self, count: u32) -> Range<u32> {
        let (number, of) = self.one.as_ref().map_or((0, 1), |(number, of, _)| (*number, *of));
        let bound = |number: u32| {
            let bound = u64::from(count) * u64::from(number) / u64::from(of);
            u32::try_from(bound).unwrap_or(count)
        };
        bound(number)..bound(number + 1)
    }

    /// Joins the ports' fan-out group. `join` gets the group's number, if there is one, and returns
    /// it.
    pub(crate) fn join<E>(
        &self,
        join: impl FnOnce(Option<u16>) -> Result<u16, E>,
    ) -> Result<(), E> {
        let mut common = self.common.lock().unwrap_or_else(PoisonError::into_inner);
        common.group = Some(join(common.group)?);
        Ok(())
    }

    /// The XDP program of the ports, which lives as long as one of them. `attach` attaches it.
    pub(crate) fn redirect<E>(
        &self,
        attach: impl FnOnce() -> Result<Redirect, E>,
    ) -> Result<Arc<Redirect>, E> {
        let mut common = self.common.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(redirect) = common.redirect.upgrade() {
            return Ok(redirect);
        }
        let redirect = Arc::new(attach()?);
        common.redirect = Arc::downgrade(&redirect);
        Ok(redirect)
    }

    /// The device of the ports by DPDK, which lives as long as one of them. `open` opens it.
    #[cfg(feature = "dpdk")]
    pub(crate) fn device(&self, open: dpdk::Open<'_>) -> Result<Arc<dpdk::Device>, OpenError> {
        let mut common = self.common.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = common.device.upgrade() {
            return Ok(device);
        }
        let device = Arc::new(open()?);
        common.device = Arc::downgrade(&device);
        Ok(device)
    }
}

#[cfg(test)]
mod tests {
    use super::{Share, Steer};
    use std::sync::Arc;

    #[test]
    fn queues_are_divided_evenly() {
        let steer: Steer = Arc::new(|_| 0);
        let queues = |ports, count| -> Vec<_> {
            Share::all(ports, &steer).iter().map(|share| share.queues(count)).collect()
        };
        assert_eq!(queues(2, 4), [0..2, 2..4]);
        assert_eq!(queues(3, 4), [0..1, 1..2, 2..4]);
        assert_eq!(queues(2, 1), [0..0, 0..1]);
        assert_eq!(Share::default().queues(7), 0..7);
    }
}
