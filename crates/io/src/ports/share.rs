//! Several ports to one device, one for each worker.

use crate::bpf::Instruction;
use crate::port::OpenError;
#[cfg(feature = "dpdk")]
use crate::sys::dpdk;
use crate::sys::{Filter, Redirect};
use braid_packet::Packet;
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Chooses the port for a packet that arrives at a device.
pub type Steer = Arc<dyn Fn(&Packet) -> u32 + Send + Sync>;

/// One of several ports to a device, which share the frames that arrive there. The default is the
/// only port.
#[derive(Clone, Default)]
pub struct Share {
    /// Its number, the number of ports, and the function that steers packets to them; `None` for
    /// the only port.
    one: Option<(u32, u32, Steer)>,
    common: Arc<Mutex<Common>>,
}

/// The data that the ports of a device share. Each port may open the device again at any time.
#[derive(Default)]
struct Common {
    /// The number of their fan-out group.
    group: Option<u16>,
    /// The ports in the group.
    members: BTreeSet<u32>,
    chooser: Chooser,
    redirect: Weak<Redirect>,
    #[cfg(feature = "dpdk")]
    device: Weak<dpdk::Device>,
}

/// The method that chooses the port for a frame of a fan-out group.
#[derive(Default)]
enum Chooser {
    /// The kernel's hash of the flow.
    #[default]
    Hash,
    /// A program that is not loaded yet.
    Unloaded(Vec<Instruction>),
    /// A program.
    Program(Filter),
    /// The kernel's hash, because the program could not be loaded for this reason.
    Refused(io::Error),
}

impl Share {
    /// The shares of this number of ports. Ports that can choose packets call `steer`. Where the
    /// kernel gives frames to ports, it runs `program` instead: a socket program whose result is
    /// the number of a port. The program is loaded when the first port is opened. If there is no
    /// program, or it cannot be loaded, the kernel gives frames to ports by a hash of the flow.
    #[must_use]
    pub fn all(count: u32, steer: &Steer, program: Option<Vec<Instruction>>) -> Vec<Self> {
        let chooser = program.map_or(Chooser::Hash, Chooser::Unloaded);
        let common = Arc::new(Mutex::new(Common { chooser, ..Common::default() }));
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

    /// The turn to open the device and to join the ports' fan-out group: ports join in the order of
    /// their numbers, after all have left the group of a device that was removed. `None` for the
    /// only port.
    ///
    /// # Errors
    /// It is not the port's turn.
    pub(crate) fn turn(&self) -> io::Result<Option<Turn<'_>>> {
        let Some((number, ..)) = self.one else { return Ok(None) };
        let common = lock(&self.common);
        if !common.members.iter().copied().eq(0..number) {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "other ports come first"));
        }
        Ok(Some(Turn { number, share: self, common }))
    }

    /// The XDP program of the ports to the device with this number, which lives as long as one of
    /// them. A port may still hold the program of an earlier device with this name.
    pub(crate) fn redirect(&self, device: u32) -> Result<Arc<Redirect>, OpenError> {
        let mut common = lock(&self.common);
        if let Some(redirect) = common.redirect.upgrade().filter(|one| one.device() == device) {
            return Ok(redirect);
        }
        let redirect = Arc::new(Redirect::attach(device)?);
        common.redirect = Arc::downgrade(&redirect);
        Ok(redirect)
    }

    /// The device of the ports by DPDK, which lives as long as one of them. `open` opens it.
    #[cfg(feature = "dpdk")]
    pub(crate) fn device(&self, open: dpdk::Open<'_>) -> Result<Arc<dpdk::Device>, OpenError> {
        let mut common = lock(&self.common);
        if let Some(device) = common.device.upgrade() {
            return Ok(device);
        }
        let device = Arc::new(open()?);
        common.device = Arc::downgrade(&device);
        Ok(device)
    }
}

fn lock(common: &Mutex<Common>) -> MutexGuard<'_, Common> {
    common.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The turn of a port to join the fan-out group.
pub(crate) struct Turn<'s> {
    number: u32,
    share: &'s Share,
    common: MutexGuard<'s, Common>,
}

impl Turn<'_> {
    /// Joins the group. `join` gets the group's number, if there is one, and the program that
    /// chooses ports. It returns the group's number.
    pub(crate) fn join(
        mut self,
        join: impl FnOnce(Option<u16>, Option<&Filter>) -> io::Result<u16>,
    ) -> io::Result<Member> {
        let common = &mut *self.common;
        if let Chooser::Unloaded(program) = &common.chooser {
            common.chooser = Filter::load(program).map_or_else(Chooser::Refused, Chooser::Program);
        }
        let program = match &common.chooser {
            Chooser::Program(program) => Some(program),
            _ => None,
        };
        common.group = Some(join(common.group, program)?);
        common.members.insert(self.number);
        Ok(Member { number: self.number, common: Arc::clone(&self.share.common) })
    }
}

/// A port's membership in the fan-out group.
pub(crate) struct Member {
    number: u32,
    common: Arc<Mutex<Common>>,
}

impl Member {
    /// The way in which frames are given to the ports, in words.
    pub(crate) fn steering(&self) -> String {
        match &lock(&self.common).chooser {
            Chooser::Program(_) => "a BPF program steers".to_owned(),
            Chooser::Refused(why) if why.kind() == io::ErrorKind::PermissionDenied => {
                "the kernel's hash steers: BPF is not permitted, see `braid doctor`".to_owned()
            }
            Chooser::Refused(why) => format!("the kernel's hash steers: BPF fails, {why}"),
            Chooser::Hash | Chooser::Unloaded(_) => "the kernel's hash steers".to_owned(),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        lock(&self.common).members.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::{Member, Share, Steer};
    use std::io;
    use std::sync::Arc;

    #[test]
    fn queues_are_divided_evenly() {
        let steer: Steer = Arc::new(|_| 0);
        let queues = |ports, count| -> Vec<_> {
            Share::all(ports, &steer, None).iter().map(|share| share.queues(count)).collect()
        };
        assert_eq!(queues(2, 4), [0..2, 2..4]);
        assert_eq!(queues(3, 4), [0..1, 1..2, 2..4]);
        assert_eq!(queues(2, 1), [0..0, 0..1]);
        assert_eq!(Share::default().queues(7), 0..7);
    }

    #[test]
    fn ports_join_in_their_order_when_all_have_left() {
        let steer: Steer = Arc::new(|_| 0);
        let shares = Share::all(3, &steer, None);
        let join = |port: usize| -> io::Result<Member> {
            shares[port].turn()?.unwrap().join(|group, program| {
                assert_eq!((group.is_none(), program.is_none()), (port == 0, true));
                Ok(7)
            })
        };
        assert!(join(1).is_err());
        let [first, second] = [0, 1].map(|port| join(port).unwrap());
        drop(first);
        // The group of a device that was removed still has a member.
        assert!(shares[0].turn().is_err() && join(2).is_err());
        drop(second);
        assert!(shares[0].turn().unwrap().is_some());
        assert!(Share::default().turn().unwrap().is_none());
    }
}
