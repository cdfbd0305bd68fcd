//! A worker's side of interfaces with addresses of their own (see [`crate::hosts`]): it gives them
//! frames and the time, and sends what they want to send.

use super::sink::{Attached, Sink};
use super::worker::Worker;
use crate::hosts::Hosts;
use braid_io::State;
use braid_ir::chain::{Chain, Control, Interface};
use braid_packet::{BURST, Frame};
use serde_json::Value;

impl Worker<'_> {
    /// Lets the interfaces with addresses of their own do what is due. Their ICMP errors about
    /// packets that left enter the chain where these left it. Returns whether there were errors.
    pub(super) fn attend(&mut self) -> bool {
        let Self { chain, sink, clock, load, engine, .. } = self;
        let Some(hosts) = &mut sink.hosts else { return false };
        let now = clock.now_ns();
        if hosts.advance(now) {
            for Attached { interface, port, .. } in &mut sink.devices {
                let is_up = port.state() == State::Up;
                hosts.device(*interface, port.ethernet(), is_up);
            }
        }
        let mut errors = std::mem::take(&mut hosts.out().errors);
        sink.send_waited();
        let any = !errors.is_empty();
        while !errors.is_empty() {
            let (burst, mut out) = load.parts();
            let most = errors.len().min(BURST);
            for mut error in errors.drain(..most) {
                error.time_ns = now;
                burst.push(error);
            }
            engine.burst(burst, &mut out);
            sink.deliver(chain, load);
        }
        any
    }
}

impl Sink<'_> {
    /// Takes the frames that are for an interface itself from the frames that it has received.
    /// Returns their number.
    pub(super) fn hear(&mut self, interface: u16, frames: &mut Vec<Frame>) -> u64 {
        let Some(hosts) = &mut self.hosts else { return 0 };
        let heard = hosts.receive(interface, frames);
        self.send_waited();
        heard
    }

    /// Takes over a change of configuration that was made.
    pub(super) fn changed(&mut self, control: &Control) {
        self.hosts.iter_mut().for_each(|hosts| hosts.change(control));
    }

    /// Sends the packets that have waited for the MAC addresses of their next hops, and the frames
    /// of the interfaces' own.
    pub(super) fn send_waited(&mut self) {
        let is_copied = self.copies_leaving();
        let Self { hosts, devices, queues, copies, unsent, .. } = self;
        let Some(out) = hosts.as_mut().map(Hosts::out).filter(|out| !out.is_empty()) else {
            return;
        };
        queues.resize_with(devices.len(), Vec::new);
        for (interface, why) in out.lost.drain(..) {
            *unsent.entry((interface, why)).or_default() += 1;
        }
        for (interface, packet) in out.waited.drain(..) {
            let device = devices.iter().position(|device| device.interface == interface);
            let Some(device) = device else { continue };
            if is_copied {
                copies.push((device, queues[device].len(), packet.clone()));
            }
            queues[device].push(packet.into_frame());
        }
        self.send();
    }

    /// Sends the frames of the interfaces' own, which nobody accounts for as packets.
    pub(super) fn send_own(&mut self) {
        let Self { hosts: Some(hosts), devices, pool, .. } = self else { return };
        let mut own = std::mem::take(&mut hosts.out().own);
        if own.is_empty() {
            return;
        }
        for Attached { interface, port, .. } in devices {
            let is_here = |(at, _): &mut (u16, Frame)| *at == *interface;
            let mut frames: Vec<Frame> =
                own.extract_if(.., is_here).map(|(_, frame)| frame).collect();
            if !frames.is_empty() {
                port.send(pool, &mut frames, &mut |_, _| hosts.note_unsent(*interface));
            }
        }
    }

    /// Loses the packets that still wait for the MAC addresses of their next hops.
    pub(super) fn end_hosts(&mut self) {
        self.hosts.iter_mut().for_each(Hosts::end);
        self.send_waited();
    }

    /// Loses the packets that wait at interfaces which another chain has not, or otherwise.
    pub(super) fn end_hosts_not_in(&mut self, chain: &Chain) {
        self.hosts.iter_mut().for_each(|hosts| hosts.end_not_in(chain));
        self.send_waited();
    }

    /// Takes the interfaces of another chain. Interfaces that are the same know what they knew.
    pub(super) fn replace_hosts(&mut self, chain: &Chain) {
        self.hosts = Hosts::replace(self.hosts.take(), chain);
    }

    /// How the interfaces with addresses of their own are, by name.
    pub(super) fn hosts_status(&self, chain: &Chain) -> Value {
        let interfaces = (0..).zip(&chain.interfaces);
        let one = |(number, interface): (u16, &Interface)| {
            Some((interface.name.clone(), self.hosts.as_ref()?.status(number)?))
        };
        Value::Object(interfaces.filter_map(one).collect())
    }
}
