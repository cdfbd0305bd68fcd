//! The data that the workers of a run share. Workers lock it only for rare work: events, copies of
//! packets in files, and interfaces with addresses of their own.

use super::clock::Clock;
use crate::ctl::Listeners;
use crate::hosts::Hosts;
use crate::outcome::RefusedChange;
use crate::outputs::Sinks;
use braid_ir::chain::Chain;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The data that the workers of a run share.
pub(super) struct Shared<'a> {
    pub(super) clock: Clock,
    /// Whether copies of the packets that leave are written to files.
    pub(super) copies: bool,
    /// Whether events are written to a file.
    events: bool,
    record: Mutex<Record<'a>>,
    hosts: Mutex<Option<Hosts>>,
    has_hosts: AtomicBool,
    /// The time of the first packet of all (ns): 0 before it.
    begun_ns: AtomicU64,
    /// The frames read by all workers.
    packets: AtomicU64,
    /// The workers that read from devices.
    reading: AtomicUsize,
    /// Whether all workers must end.
    is_over: AtomicBool,
    /// The changes of the control file that could not be applied.
    refused: Mutex<Vec<RefusedChange>>,
}

/// The outputs of a run: files and clients.
pub(super) struct Record<'a> {
    pub(super) sinks: Sinks<'a>,
    /// The clients that follow events.
    pub(super) listeners: Listeners,
}

/// A worker that reads from devices. All workers end with the first one.
pub(super) struct Reading<'a>(Arc<Shared<'a>>);

impl<'a> Shared<'a> {
    /// For this number of workers, before the first packet.
    pub(super) fn new(chain: &Chain, sinks: Sinks<'a>, clock: Clock, workers: usize) -> Self {
        let hosts = Hosts::new(chain);
        Self {
            clock,
            copies: !sinks.outputs.is_empty(),
            events: sinks.events.is_some(),
            record: Mutex::new(Record { sinks, listeners: Listeners::default() }),
            has_hosts: AtomicBool::new(hosts.is_some()),
            hosts: Mutex::new(hosts),
            begun_ns: AtomicU64::new(0),
            packets: AtomicU64::new(0),
            reading: AtomicUsize::new(workers),
            is_over: AtomicBool::new(false),
            refused: Mutex::default(),
        }
    }

    /// Changes the record. Ends the run if an output could not be written.
    pub(super) fn record(&self, write: impl FnOnce(&mut Record<'a>)) {
        let mut record = lock(&self.record);
        write(&mut record);
        if record.sinks.has_failed() {
            self.end();
        }
    }

    /// Writes the buffered events, so that readers of the file see them.
    pub(super) fn flush_events(&self) {
        if self.events {
            self.record(|record| record.sinks.flush_events());
        }
    }

    /// The interfaces with addresses of their own, if there are any.
    pub(super) fn hosts(&self) -> Option<MutexGuard<'_, Option<Hosts>>> {
        self.has_hosts.load(Ordering::Relaxed).then(|| lock(&self.hosts))
    }

    /// Switches to the interfaces of another chain. Interfaces with the same declaration keep their
    /// knowledge.
    pub(super) fn replace_hosts(&self, chain: &Chain) {
        let mut hosts = lock(&self.hosts);
        *hosts = Hosts::replace(hosts.take(), chain);
        self.has_hosts.store(hosts.is_some(), Ordering::Relaxed);
    }

    /// The time at which the timers of all workers start, once there was a packet. `now` says that
    /// a worker has packets at this time (ns).
    pub(super) fn begun_ns(&self, now: Option<u64>) -> Option<u64> {
        let begun = self.begun_ns.load(Ordering::Relaxed);
        let Some(now) = now.filter(|_| begun == 0) else { return (begun > 0).then_some(begun) };
        let set = self.begun_ns.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        Some(set.map_or_else(|begun| begun, |_| now))
    }

    /// Notes changes that could not be applied. Takes them.
    pub(super) fn note_refused(&self, changes: &mut Vec<RefusedChange>) {
        if !changes.is_empty() {
            lock(&self.refused).append(changes);
        }
    }

    /// The changes that could not be applied so far, except for the first ones.
    pub(super) fn refused(&self, except: usize) -> Vec<RefusedChange> {
        lock(&self.refused).iter().skip(except).cloned().collect()
    }

    /// Counts frames that a worker has read. Returns the number of frames that all workers have
    /// read.
    pub(super) fn count(&self, packets: u64) -> u64 {
        self.packets.fetch_add(packets, Ordering::Relaxed) + packets
    }

    /// Tells all workers to end.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether all workers must end.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Whether a worker still reads, and may pass packets on.
    pub(super) fn is_read(&self) -> bool {
        self.reading.load(Ordering::Acquire) > 0
    }
}

impl<'a> Reading<'a> {
    /// A worker begins to read.
    pub(super) fn begin(shared: &Arc<Shared<'a>>) -> Self {
        Self(Arc::clone(shared))
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.end();
        self.0.reading.fetch_sub(1, Ordering::Release);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A worker that panics ends the run.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
