//! The exchange of packets between workers. A device gives a packet to any worker. That worker
//! steers the packet, and passes it on if it belongs to another one.

use super::numbers::renumber;
use crate::steer::Steerer;
use braid_ir::chain::Control;
use braid_packet::{BURST, Burst, Layout, Packet, Pool};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// The largest number of packets that wait for a worker. The largest rings of network cards hold as
/// many. Further bursts are lost.
const WAITING: usize = 4096;

/// The reason for which packets are lost while too many wait for their worker.
pub(super) const WORKER_QUEUE_FULL: &str = "worker_queue_full";

/// A worker's exchange with the others.
pub(super) struct Exchange {
    own: u16,
    steerer: Steerer,
    /// The number of chains that ran here before this one.
    generation: u64,
    inbox: Receiver<Mail>,
    /// The packets that were in the inbox when the chain was replaced.
    kept: VecDeque<Vec<Packet>>,
    /// By worker, this one included.
    doors: Vec<Door>,
    /// The worker of each packet of a burst.
    owners: Vec<u16>,
    /// By worker: packets for it.
    away: Vec<Vec<Packet>>,
    /// The number of packets for other workers that this one has read.
    passed_on: u64,
}

/// Packets for a worker.
struct Mail {
    /// The generation of the chain whose interfaces the packets name.
    generation: u64,
    packets: Vec<Packet>,
}

/// The sending side of a worker's inbox.
#[derive(Clone)]
struct Door {
    inbox: SyncSender<Mail>,
    /// The number of packets in the inbox.
    waiting: Arc<AtomicUsize>,
    bell: Arc<Bell>,
}

/// Wakes a worker that waits for its devices.
struct Bell {
    event: OwnedFd,
    is_asleep: AtomicBool,
}

impl Exchange {
    /// The exchanges of these workers, by worker.
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub(super) fn between(workers: usize, steerer: &Steerer) -> io::Result<Vec<Self>> {
        let (mut doors, mut inboxes) = (Vec::new(), Vec::new());
        for _ in 0..workers {
            let (send, inbox) = sync_channel(WAITING);
            let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let bell = Arc::new(Bell { event, is_asleep: AtomicBool::new(false) });
            doors.push(Door { inbox: send, waiting: Arc::default(), bell });
            inboxes.push(inbox);
        }
        let one = |(own, inbox)| Self {
            own,
            steerer: steerer.clone(),
            generation: 0,
            inbox,
            kept: VecDeque::new(),
            owners: Vec::with_capacity(BURST),
            away: doors.iter().map(|_| Vec::new()).collect(),
            doors: doors.clone(),
            passed_on: 0,
        };
        Ok((0..).zip(inboxes).map(one).collect())
    }

    /// Passes packets of a burst on to the workers that they belong to. Returns the number of
    /// packets that were lost because too many packets wait for their worker.
    pub(super) fn pass_on(&mut self, burst: &mut Burst, pool: &mut Pool) -> u64 {
        let Self { own, steerer, generation, doors, owners, away, passed_on, .. } = self;
        owners.clear();
        // All packets are steered before one moves: a short loop, whose steps overlap.
        let (packets, layouts) = burst.parsed();
        steerer.steer_each(packets, layouts, |owner| owners.push(owner));
        if owners.iter().all(|owner| owner == own) {
            return 0;
        }
        let mut owners = owners.iter();
        let other = |_: &mut Packet, _: &Layout| owners.next().filter(|owner| *owner != own);
        burst.remove(other, |owner, packet| {
            *passed_on += 1;
            #[expect(clippy::indexing_slicing, reason = "`away` has a place for each worker")]
            away[usize::from(*owner)].push(packet);
        });
        let mut lost = 0;
        for (door, packets) in doors.iter().zip(away).filter(|(_, packets)| !packets.is_empty()) {
            let mail = Mail { generation: *generation, packets: std::mem::take(packets) };
            if let Err(Mail { packets, .. }) = door.send(mail) {
                lost += packets.len() as u64;
                packets.into_iter().for_each(|packet| pool.put(packet.into_frame()));
            }
        }
        lost
    }

    /// This worker's door.
    #[expect(clippy::indexing_slicing, reason = "`doors` has a door for each worker")]
    fn door(&self) -> &Door {
        &self.doors[usize::from(self.own)]
    }

    /// This worker's number.
    pub(super) fn own(&self) -> u16 {
        self.own
    }

    /// The number of packets for other workers that this one has read, lost ones included.
    pub(super) fn passed_on(&self) -> u64 {
        self.passed_on
    }

    /// The number of other workers.
    pub(super) fn others(&self) -> usize {
        self.doors.len() - 1
    }

    /// Packets that another worker has passed on.
    pub(super) fn receive(&mut self) -> Option<Vec<Packet>> {
        let kept = self.kept.pop_front();
        let packets = kept.or_else(|| Some(self.inbox.try_recv().ok()?.packets))?;
        self.door().waiting.fetch_sub(packets.len(), Ordering::Relaxed);
        Some(packets)
    }

    /// From now on, until [`Self::wake`], other workers ring the bell when they send packets. The
    /// caller must look for packets once more before it waits.
    pub(super) fn doze(&self) {
        let bell = &self.door().bell;
        bell.is_asleep.store(true, Ordering::Relaxed);
        // A sender either sees that the worker is asleep, or the worker sees its packets.
        fence(Ordering::SeqCst);
    }

    /// The descriptor that the worker waits for besides its devices.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.door().bell.event.as_fd()
    }

    /// Ends the time in which other workers ring the bell.
    pub(super) fn wake(&self) {
        let bell = &self.door().bell;
        bell.is_asleep.store(false, Ordering::Relaxed);
        // Usually nobody has rung. If a worker is about to ring, the next wait ends at once.
        let _ = rustix::io::read(&bell.event, &mut [0; 8]);
    }

    /// Takes over a change of configuration that was made.
    pub(super) fn changed(&mut self, control: &Control) {
        self.steerer.change(control);
    }

    /// Steers the packets of another chain from now on. `numbers` has the number of each interface
    /// there. All workers wait during this call, or already run the other chain.
    pub(super) fn replace(&mut self, steerer: Steerer, numbers: &BTreeMap<u16, u16>) {
        self.steerer = steerer;
        self.kept.iter_mut().flatten().for_each(|packet| renumber(&mut packet.ingress, numbers));
        for Mail { generation, mut packets } in self.inbox.try_iter() {
            if generation == self.generation {
                packets.iter_mut().for_each(|packet| renumber(&mut packet.ingress, numbers));
            }
            self.kept.push_back(packets);
        }
        self.generation += 1;
    }
}

impl Door {
    /// Sends packets to the worker. Gives them back if too many wait for it.
    fn send(&self, mail: Mail) -> Result<(), Mail> {
        let count = mail.packets.len();
        if self.waiting.fetch_add(count, Ordering::Relaxed) + count > WAITING {
            self.waiting.fetch_sub(count, Ordering::Relaxed);
            return Err(mail);
        }
        self.inbox.try_send(mail).map_err(|why| {
            self.waiting.fetch_sub(count, Ordering::Relaxed);
            let (TrySendError::Full(mail) | TrySendError::Disconnected(mail)) = why;
            mail
        })?;
        self.bell.ring();
        Ok(())
    }
}

impl Bell {
    fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.is_asleep.load(Ordering::Relaxed) && self.is_asleep.swap(false, Ordering::Relaxed) {
            // A full counter has woken the worker before.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }
}
