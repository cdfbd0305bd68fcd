//! The sinks of a live run's packets: devices, and files with copies.

use super::exchange::WORKER_QUEUE_FULL;
use super::numbers::renumber;
use super::shared::Shared;
use super::watch::Watch;
use crate::hosts::{Leaving as Way, NO_GATEWAY};
use crate::load::Load;
use braid_io::State;
use braid_ir::chain::Chain;
use braid_ir::engine::Counters;
use braid_packet::{Frame, Packet, Pool};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A device at an interface of the chain.
pub struct Attached {
    /// The interface, by number.
    pub interface: u16,
    /// The device's name in messages.
    pub name: String,
    /// The device.
    pub port: Box<dyn braid_io::Port>,
}

/// The reason for which packets that leave by an interface without a device are lost.
pub(super) const NO_DEVICE: &str = "no_device";

/// The packets that left the chain and were not sent, by interface and reason.
pub(super) type Unsent = BTreeMap<(u16, &'static str), u64>;

/// Sends the packets that leave the chain by a worker.
pub(super) struct Sink<'a> {
    pub(super) shared: Arc<Shared<'a>>,
    pub(super) devices: Vec<Attached>,
    pub(super) pool: Pool,
    /// The clients that watch packets.
    pub(super) watch: Watch,
    /// By device, the frames that leave by it.
    pub(super) queues: Vec<Vec<Frame>>,
    /// Copies of leaving packets, for the outputs: each with its device and its place in the
    /// device's queue.
    pub(super) copies: Vec<(usize, usize, Packet)>,
    /// The devices and places of frames that were not sent, with the reasons.
    failed: Vec<(usize, usize, &'static str)>,
    pub(super) unsent: Unsent,
    /// By device, the frames that the kernel has dropped because they arrived too fast.
    dropped: Vec<u64>,
}

impl<'a> Sink<'a> {
    /// A sink that has sent nothing yet.
    pub(super) fn new(shared: Arc<Shared<'a>>, devices: Vec<Attached>, pool: Pool) -> Self {
        Self {
            dropped: vec![0; devices.len()],
            queues: devices.iter().map(|_| Vec::new()).collect(),
            shared,
            devices,
            pool,
            watch: Watch::default(),
            copies: Vec::new(),
            failed: Vec::new(),
            unsent: Unsent::new(),
        }
    }

    /// The status of the devices, for a client of the control socket.
    pub(super) fn devices(&mut self, chain: &Chain) -> Vec<Value> {
        self.count_dropped();
        let device = |(device, dropped): (&mut Attached, &u64)| {
            let name = chain.interfaces.get(usize::from(device.interface));
            json!({
                "interface": name.map(|interface| interface.name.as_str()),
                "device": device.name,
                "state": match device.port.state() {
                    State::Up => "up",
                    State::Down => "down",
                    State::Missing => "missing",
                },
                "port": device.port.facts(),
                "dropped": dropped,
                "notes": device.port.notes(),
            })
        };
        self.devices.iter_mut().zip(&self.dropped).map(device).collect()
    }

    /// Adds the frames that the kernel has dropped to the counters. The kernel's own counters may
    /// be narrow.
    pub(super) fn count_dropped(&mut self) {
        let devices = self.devices.iter_mut().zip(&mut self.dropped);
        devices.for_each(|(device, dropped)| *dropped += device.port.overrun());
    }

    /// Sends all packets of a load that leave.
    pub(super) fn deliver(&mut self, chain: &Chain, load: &mut Load) {
        let is_copied = self.copies_leaving();
        let Self { shared, devices, queues, copies, unsent, .. } = self;
        if !load.events.is_empty() {
            shared.record(|record| {
                for event in load.events.drain(..) {
                    record.listeners.event(chain, &event);
                    record.sinks.event(chain, &event);
                }
            });
        }
        let place = |interface| devices.iter().position(|device| device.interface == interface);
        let mut guard = shared.hosts();
        let hosts = guard.as_deref_mut().and_then(Option::as_mut);
        if hosts.is_none() && !is_copied {
            // Packets that follow one another usually leave by the same interface.
            let mut last = None;
            load.deliver(|interface, packet| {
                let device = match last {
                    Some((of, device)) if of == interface => device,
                    _ => place(interface),
                };
                last = Some((interface, device));
                match device.and_then(|device| queues.get_mut(device)) {
                    Some(queue) => packet.give_frame(queue),
                    None => lose(unsent, interface, NO_DEVICE),
                }
            });
        } else {
            let mut hosts = hosts;
            load.deliver(|interface, packet| {
                let device = place(interface);
                let queue = device.and_then(|device| queues.get_mut(device));
                let Some((device, queue)) = device.zip(queue) else {
                    return lose(unsent, interface, NO_DEVICE);
                };
                match hosts.as_mut().map_or(Way::Sends, |hosts| hosts.leave(interface, packet)) {
                    Way::Sends => {}
                    Way::Waits => return,
                    Way::Lost(why) => return lose(unsent, interface, why),
                }
                if is_copied {
                    copies.push((device, queue.len(), packet.clone()));
                }
                packet.give_frame(queue);
            });
        }
        drop(guard);
        load.burst.recycle(&mut self.pool);
        self.send();
    }

    /// Whether somebody wants copies of the packets that leave.
    pub(super) fn copies_leaving(&self) -> bool {
        self.shared.copies || self.watch.leaves()
    }

    /// Sends the packets of all queues, and then the interfaces' own frames.
    pub(super) fn send(&mut self) {
        let mut unsent = std::mem::take(&mut self.unsent);
        self.send_queues(|interface, why| *unsent.entry((interface, why)).or_default() += 1);
        self.unsent = unsent;
        self.send_own();
    }

    /// The device at an interface, by its place.
    pub(super) fn device(&self, interface: u16) -> Option<usize> {
        self.devices.iter().position(|device| device.interface == interface)
    }

    /// Adds a packet to the queue of an interface. With `is_copied`, somebody wants its copy.
    pub(super) fn queue(&mut self, interface: u16, packet: Packet, is_copied: bool) {
        let device = self.device(interface);
        let queue = device.and_then(|device| self.queues.get_mut(device));
        let Some((device, queue)) = device.zip(queue) else { return };
        if is_copied {
            self.copies.push((device, queue.len(), packet.clone()));
        }
        queue.push(packet.into_frame());
    }

    /// Sends the frames of all queues. `lost` gets the interface of each frame that is not sent,
    /// and the reason.
    pub(super) fn send_queues(&mut self, mut lost: impl FnMut(u16, &'static str)) {
        let Self { devices, queues, pool, failed, .. } = self;
        let waiting = devices.iter_mut().zip(queues).enumerate();
        for (at, (Attached { interface, port, .. }, queue)) in waiting {
            if !queue.is_empty() {
                port.send(pool, queue, &mut |place, why| {
                    failed.push((at, place, why.reason()));
                    lost(*interface, why.reason());
                });
            }
        }
        let Self { shared, devices, copies, failed, watch, .. } = self;
        if !copies.is_empty() {
            shared.record(|record| {
                for (device, place, packet) in copies.drain(..) {
                    #[expect(clippy::indexing_slicing, reason = "`copies` has places of devices")]
                    let interface = devices[device].interface;
                    let failed = failed.iter().find(|one| (one.0, one.1) == (device, place));
                    let unsent = failed.map(|(_, _, why)| *why);
                    if unsent.is_none() {
                        record.sinks.packet(interface, &packet);
                    }
                    watch.left(interface, &packet, unsent);
                }
            });
        }
        failed.clear();
    }

    /// The numbers that the interfaces of this run have in another chain, by name.
    ///
    /// # Errors
    /// An interface with a device or an output that the other chain lacks.
    pub(super) fn interfaces_in(
        &self,
        chain: &Chain,
        other: &Chain,
    ) -> Result<BTreeMap<u16, u16>, String> {
        let number = |name: &str| other.interfaces.iter().position(|one| one.name == name);
        let named = (0..).zip(&chain.interfaces);
        let numbers: BTreeMap<u16, u16> = named
            .filter_map(|(old, one)| Some((old, u16::try_from(number(&one.name)?).ok()?)))
            .collect();
        let lacks = |interface| {
            let name = chain.interfaces.get(usize::from(interface));
            let name = name.map_or("", |interface| interface.name.as_str());
            move |user: &str| format!("it has no interface `{name}`, which {user} needs")
        };
        let is_gone = |interface: u16| !numbers.contains_key(&interface);
        if let Some(device) = self.devices.iter().find(|device| is_gone(device.interface)) {
            return Err(lacks(device.interface)(&device.name));
        }
        let mut refused = None;
        self.shared.record(|record| {
            let outputs = record.sinks.outputs.iter();
            let mut named = outputs.filter_map(|output| Some((output.interface?, &output.name)));
            refused = named.find(|(at, _)| is_gone(*at)).map(|(at, name)| lacks(at)(name));
        });
        refused.map_or(Ok(numbers), Err)
    }

    /// Takes the numbers that interfaces have in another chain ([`Self::interfaces_in`]).
    pub(super) fn renumber(&mut self, numbers: &BTreeMap<u16, u16>, chain: &Chain) {
        self.devices.iter_mut().for_each(|device| renumber(&mut device.interface, numbers));
        self.watch.renumber(chain);
        // The engine counts the packets that left by interfaces that are gone.
        let unsent = std::mem::take(&mut self.unsent).into_iter();
        self.unsent = unsent
            .filter_map(|((interface, why), count)| Some(((*numbers.get(&interface)?, why), count)))
            .collect();
    }

    /// Warnings about the devices, for the end of the run.
    pub(super) fn warnings(&mut self) -> Vec<String> {
        self.count_dropped();
        let mut found = Vec::new();
        for (Attached { name, port, .. }, dropped) in self.devices.iter_mut().zip(&self.dropped) {
            found.extend(port.notes().iter().map(|note| format!("{name}: {note}")));
            if *dropped > 0 {
                found.push(format!(
                    "{name}: the kernel dropped {dropped} frames that arrived too fast"
                ));
            }
        }
        found
    }
}

/// Counts a packet that left and is not sent.
#[cold]
fn lose(unsent: &mut Unsent, interface: u16, why: &'static str) {
    *unsent.entry((interface, why)).or_default() += 1;
}

/// Counts packets that were not sent as lost instead of out.
pub(super) fn settle(counters: &mut Counters, unsent: &Unsent) {
    for ((interface, reason), count) in unsent {
        if let Some(out) = counters.out.get_mut(interface) {
            *out = out.saturating_sub(*count);
        }
        *counters.lost.entry((*reason).into()).or_default() += count;
    }
    counters.out.retain(|_, count| *count > 0);
}

/// Warnings about lost packets, for the end of the run.
pub(super) fn remedies(counters: &Counters) -> Vec<String> {
    let remedies = [
        (
            "received_offload",
            "were merged by the kernel or a network card and could not be split; run \
             `ethtool -K DEVICE gro off gso off tso off` at the device that they come from",
        ),
        (
            "send_too_long",
            "were longer than the device allows; give both sides one MTU, or the interface an \
             address, so that their senders get ICMP errors",
        ),
        (NO_GATEWAY, "left by an interface for another link; give it a gateway"),
        (NO_DEVICE, "left by an interface without a device; give it one with --if"),
        (WORKER_QUEUE_FULL, "arrived faster than their worker could process them"),
    ];
    let found = remedies.iter().filter_map(|(reason, remedy)| {
        counters.lost.get(*reason).map(|count| format!("{count} packets {remedy}"))
    });
    found.collect()
}
