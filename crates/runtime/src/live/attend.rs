//! A worker's side of interfaces with addresses of their own (see [`crate::hosts`]): it gives them
//! frames and the time, and sends their frames.

use super::shared::Shared;
use super::sink::{Attached, Sink};
use super::worker::Worker;
use crate::hosts::Hosts;
use braid_io::State;
use braid_ir::chain::{Chain, Control, Interface};
use braid_packet::{BURST, Frame, Packet};
use serde_json::Value;
use std::mem::take;

impl Worker<'_> {
    /// Runs the due work of the interfaces with addresses of their own. Their ICMP errors about
    /// packets that left enter the chain where the packets left it. Returns whether there were
    /// errors.
    pub(super) fn attend(&mut self, now: u64) -> bool {
        let Some(mut errors) = self.sink.attend(now) else { return false };
        let any = !errors.is_empty();
        while !errors.is_empty() {
            let most = errors.len().min(BURST);
            self.enter(errors.drain(..most));
        }
        any
    }
}

impl Sink<'_> {
    /// Runs the due work of the interfaces. Returns their ICMP errors; `None` if there are no such
    /// interfaces.
    fn attend(&mut self, now: u64) -> Option<Vec<Packet>> {
        let mut guard = self.shared.hosts();
        let hosts = guard.as_deref_mut().and_then(Option::as_mut)?;
        if hosts.advance(now) {
            for Attached { interface, port, .. } in &mut self.devices {
                let is_up = port.state() == State::Up;
                hosts.device(*interface, port.ethernet(), is_up);
            }
        }
        let errors = take(&mut hosts.out().errors);
        drop(guard);
        self.send_waited();
        Some(errors)
    }

    /// Takes the frames that are for an interface itself from the frames that it has received.
    /// Returns their number.
    pub(super) fn hear(&mut self, interface: u16, frames: &mut Vec<Frame>) -> u64 {
        let mut guard = self.shared.hosts();
        let hosts = guard.as_deref_mut().and_then(Option::as_mut);
        let Some(hosts) = hosts.filter(|_| !frames.is_empty()) else { return 0 };
        let heard = hosts.receive(interface, frames);
        drop(guard);
        self.send_waited();
        heard
    }

    /// Sends the packets that have waited for the MAC addresses of their next hops, and the
    /// interfaces' own frames.
    pub(super) fn send_waited(&mut self) {
        let mut guard = self.shared.hosts();
        let out = guard.as_deref_mut().and_then(Option::as_mut).map(Hosts::out);
        let Some(out) = out.filter(|out| !out.is_empty()) else { return };
        let (lost, waited) = (take(&mut out.lost), take(&mut out.waited));
        drop(guard);
        for (interface, why) in lost {
            *self.unsent.entry((interface, why)).or_default() += 1;
        }
        let is_copied = self.copies_leaving();
        for (interface, packet) in waited {
            self.queue(interface, packet, is_copied);
        }
        self.send();
    }

    /// Sends later fragments of packets, and the interfaces' own frames. They are not accounted for
    /// as packets.
    pub(super) fn send_own(&mut self) {
        let mut guard = self.shared.hosts();
        let Some(hosts) = guard.as_deref_mut().and_then(Option::as_mut) else { return };
        let (fragments, own) = (take(&mut hosts.out().fragments), take(&mut hosts.out().own));
        drop(guard);
        if fragments.is_empty() && own.is_empty() {
            return;
        }
        let is_copied = self.copies_leaving();
        for (interface, packet) in fragments {
            self.queue(interface, packet, is_copied);
        }
        for (interface, frame) in own {
            let device = self.device(interface);
            if let Some(queue) = device.and_then(|device| self.queues.get_mut(device)) {
                queue.push(frame);
            }
        }
        let mut unsent = Vec::new();
        self.send_queues(|interface, _| unsent.push(interface));
        if !unsent.is_empty() {
            self.shared.with_hosts(|hosts| unsent.iter().for_each(|at| hosts.note_unsent(*at)));
        }
    }

    /// Counts the packets as lost that still wait for the MAC addresses of their next hops.
    pub(super) fn end_hosts(&mut self) {
        self.shared.with_hosts(Hosts::end);
        self.send_waited();
    }

    /// Counts the packets as lost that wait at interfaces which another chain lacks or declares
    /// differently.
    pub(super) fn end_hosts_not_in(&mut self, chain: &Chain) {
        self.shared.with_hosts(|hosts| hosts.end_not_in(chain));
        self.send_waited();
    }
}

impl Shared<'_> {
    /// Calls `work` with the interfaces with addresses of their own, if there are any.
    fn with_hosts<T>(&self, work: impl FnOnce(&mut Hosts) -> T) -> Option<T> {
        self.hosts().as_deref_mut().and_then(Option::as_mut).map(work)
    }

    /// The number of packets that wait for the MAC addresses of their next hops.
    pub(super) fn waiting_for_hops(&self) -> u64 {
        self.with_hosts(|hosts| hosts.waiting() as u64).unwrap_or(0)
    }

    /// Takes over a change of configuration that was made.
    pub(super) fn changed(&self, control: &Control) {
        self.with_hosts(|hosts| hosts.change(control));
    }

    /// The status of the interfaces with addresses of their own, by name.
    pub(super) fn hosts_status(&self, chain: &Chain) -> Value {
        let all = self.with_hosts(|hosts| {
            let interfaces = (0..).zip(&chain.interfaces);
            let one = |(number, interface): (u16, &Interface)| {
                Some((interface.name.clone(), hosts.status(number)?))
            };
            interfaces.filter_map(one).collect()
        });
        Value::Object(all.unwrap_or_default())
    }

    /// Warnings of the interfaces with addresses of their own.
    pub(super) fn hosts_warnings(&self) -> Vec<String> {
        self.with_hosts(|hosts| hosts.warnings()).unwrap_or_default()
    }
}
