//! The workers of a chain, each with its engine on a thread of its own.
//!
//! The driver's thread gives each packet of a load to its worker. Each worker gets a share of each
//! part of each load, in order, so that all workers have the same clock and make changes of
//! configuration at the same place. Another thread takes the shares back, puts the loads together
//! again, and writes the packets that leave.

use crate::load::Load;
use crate::loads::Loads;
use crate::outcome::{RefusedChange, RunError};
use crate::outputs::{Sinks, Unwritten};
use crate::queue::{Receiver, Sender, queue};
use crate::reading::{ENOUGH, LOADS};
use crate::script::Script;
use crate::sharded::Sharded;
use crate::share::{Divided, Share};
use crate::steer::Steerer;
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{Counters, Engine};
use braid_packet::Burst;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// A request to a worker.
enum Work {
    Share(Share),
    Counters(mpsc::Sender<Counters>),
}

/// A load whose packets are with the workers.
struct Away {
    load: Load,
    divided: Divided,
    /// The parts of the load, with changes of configuration or a leap of time between them: memory
    /// for the shares of each.
    parts: Vec<Vec<Share>>,
}

/// Runs workers beside `drive`, which feeds loads to them. Returns the result of `drive`, and the
/// outputs that could not be written. The flag that `drive` gets says that further loads have no
/// effect.
pub(crate) fn run<T>(
    workers: &mut Sharded,
    control: &mut Script,
    (chain, mut sinks): (&Chain, Sinks<'_>),
    used: &Sender<Load>,
    drive: impl FnOnce(&mut dyn Loads, &AtomicBool) -> Result<T, RunError>,
) -> (Result<T, RunError>, Vec<Unwritten>) {
    let Sharded { steerer, engines, .. } = workers;
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (send, away) = queue::<Away>(LOADS, ENOUGH);
        let (spare, again) = queue(LOADS, ENOUGH);
        let (mut inboxes, mut done) = (Vec::new(), Vec::new());
        for engine in engines.iter_mut() {
            let (inbox, work) = queue(LOADS, ENOUGH);
            let (outbox, shares) = queue(LOADS, ENOUGH);
            scope.spawn(move || worker(engine.as_mut(), &work, &outbox));
            inboxes.push(inbox);
            done.push(shares);
        }
        let writer = scope.spawn({
            let has_ended = &has_ended;
            move || {
                let mut refused = Vec::new();
                while let Some(mut one) = away.next() {
                    for (change, why) in collect(&mut one, &done) {
                        refused.push(RefusedChange::new(chain, &change, why));
                    }
                    sinks.write_load(chain, &mut one.load);
                    if sinks.has_failed() {
                        has_ended.store(true, Ordering::Relaxed);
                    }
                    // The reader and the driver may have ended.
                    used.send(one.load, false);
                    spare.send((one.divided, one.parts), false);
                }
                sinks.finish();
                (refused, sinks.failed)
            }
        });
        let owners = Vec::new();
        let mut team =
            Team { chain, steerer, control: &mut *control, inboxes, send, again, owners };
        let driven = drive(&mut team, &has_ended);
        drop(team);
        let (refused, unwritten) = writer.join().unwrap_or_else(|panic| resume_unwind(panic));
        control.refused.extend(refused);
        (driven, unwritten)
    })
}

/// Runs a worker until there is no more work for it.
fn worker(engine: &mut dyn Engine, work: &Receiver<Work>, outbox: &Sender<Share>) {
    while let Some(work) = work.next() {
        match work {
            Work::Share(mut share) => {
                share.run(engine);
                outbox.send(share, false);
            }
            // The driver waits for the counters.
            Work::Counters(reply) => drop(reply.send(engine.counters())),
        }
    }
}

/// Waits for the shares of a load, and puts the load together. Returns the changes that were
/// refused, with the reasons.
fn collect(away: &mut Away, done: &[Receiver<Share>]) -> Vec<(Arc<Control>, String)> {
    let Away { load, divided, parts } = away;
    let mut refused = Vec::new();
    for shares in parts {
        shares.extend(done.iter().map_while(Receiver::next));
        let (burst, mut out) = load.parts();
        divided.unite(shares, burst, &mut out);
        // All workers have the same configuration, so all refuse a change, or none does.
        if let Some(Share { refused: found, changes, .. }) = shares.first_mut() {
            let all = found.drain(..);
            refused
                .extend(all.filter_map(|(at, why)| Some((changes.get(at)?.clone(), why.into()))));
        }
    }
    refused
}

/// The driver's side of the workers.
struct Team<'a> {
    chain: &'a Chain,
    steerer: &'a mut Steerer,
    control: &'a mut Script,
    inboxes: Vec<Sender<Work>>,
    send: Sender<Away>,
    /// Memory that loads before have used.
    again: Receiver<(Divided, Vec<Vec<Share>>)>,
    /// The worker of each packet of a load.
    owners: Vec<u16>,
}

impl Loads for Team<'_> {
    fn load(&mut self, mut load: Load) {
        let (mut divided, parts) = self.again.next_while(|| false).unwrap_or_default();
        let mut memory = parts.into_iter();
        divided.reset();
        let mut burst = std::mem::take(&mut load.burst);
        let mut cuts = self.steer(&mut burst).into_iter().peekable();
        let (mut parts, mut shares, mut from) = (Vec::new(), Vec::new(), 0);
        let owners = std::mem::take(&mut self.owners);
        for (at, (packet, owner)) in burst.drain().zip(&owners).enumerate() {
            let changes = cuts.next_if(|(cut, _)| *cut == at).map(|(_, changes)| changes);
            if at == 0 || changes.is_some() {
                if at > 0 {
                    parts.push(self.finish(&divided, shares, from));
                }
                from = at;
                shares = memory.next().unwrap_or_default();
                shares.resize_with(self.inboxes.len(), Share::default);
                for share in &mut shares {
                    share.reset();
                    share.changes.extend(changes.iter().flatten().cloned());
                }
            }
            divided.push(&mut shares, *owner, packet);
        }
        if !shares.is_empty() {
            parts.push(self.finish(&divided, shares, from));
        }
        (load.burst, self.owners) = (burst, owners);
        self.send.send(Away { load, divided, parts }, false);
    }

    fn counters(&mut self) -> Counters {
        let ask = |inbox: &Sender<Work>| {
            let (reply, counters) = mpsc::channel();
            inbox.send(Work::Counters(reply), true);
            counters.recv().unwrap_or_default()
        };
        Counters::united(self.inboxes.iter().map(ask).collect(), self.chain)
    }
}

impl Team<'_> {
    /// Finds the worker of each packet. Returns the places where the load must be cut, with the
    /// changes of configuration that must be made there.
    fn steer(&mut self, burst: &mut Burst) -> Vec<(usize, Vec<Arc<Control>>)> {
        let mut cuts = Vec::new();
        self.owners.clear();
        let (packets, layouts, _) = burst.parts();
        for (at, (packet, layout)) in packets.iter_mut().zip(layouts).enumerate() {
            if self.control.is_due(packet.time_ns) {
                let changes = self.control.take(packet.time_ns);
                // Workers refuse no change that steering depends on: the values of a control
                // file's lines have the right types.
                changes.iter().for_each(|change| self.steerer.change(change));
                cuts.push((at, changes.into_iter().map(Arc::new).collect()));
            }
            self.owners.push(self.steerer.steer(packet, layout));
            if self.steerer.cuts(packet.time_ns) && cuts.last().is_none_or(|(cut, _)| *cut < at) {
                cuts.push((at, Vec::new()));
            }
        }
        cuts
    }

    /// Sends the shares of a part to the workers. Returns the empty list.
    fn finish(&mut self, divided: &Divided, mut shares: Vec<Share>, from: usize) -> Vec<Share> {
        let begins = self.steerer.begins();
        divided.finish(&mut shares, from, begins);
        for (inbox, share) in self.inboxes.iter().zip(shares.drain(..)) {
            inbox.send(Work::Share(share), false);
        }
        shares
    }
}
