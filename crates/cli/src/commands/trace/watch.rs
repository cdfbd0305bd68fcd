//! Finds the packet in a run: marks it when it is read, and watches the engine when it enters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use braid_engine::{Compiled, PacketPath};
use braid_io::{PacketSource, Progress, ReadError, Warning};
use braid_ir::chain::Control;
use braid_ir::engine::{Counters, Engine, Event, Outputs, StateEntry};
use braid_ir::snapshot::{ImportError, Snapshot};
use braid_packet::{Burst, Packet};
use braid_reference::Reference;

use super::steps::{Recorder, Walk};

/// The driver can use this tag because no function can write a tag with this name.
const MARK: &str = "\0trace";

/// The packet to watch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The packet with the mark.
    Marked,
    /// The n-th packet that enters, from 1.
    Entering(u64),
}

/// A source that marks its n-th packet and ends once the walk is recorded.
pub struct Marking {
    source: Box<dyn PacketSource + Send>,
    mark: Option<u64>,
    done: Arc<AtomicBool>,
    seen: Arc<AtomicU64>,
}

impl Marking {
    pub fn new(
        source: Box<dyn PacketSource + Send>,
        mark: Option<u64>,
        done: Arc<AtomicBool>,
        seen: Arc<AtomicU64>,
    ) -> Self {
        Self { source, mark, done, seen }
    }
}

impl PacketSource for Marking {
    fn next_packet(&mut self) -> Result<Option<Packet>, ReadError> {
        // At most one packet after the marked one is read in advance.
        let seen = self.seen.load(Ordering::Relaxed);
        let past = self.mark.is_some_and(|mark| seen > mark);
        if self.done.load(Ordering::Relaxed) || past {
            return Ok(None);
        }
        let Some(mut packet) = self.source.next_packet()? else { return Ok(None) };
        self.seen.store(seen + 1, Ordering::Relaxed);
        if self.mark == Some(seen + 1) {
            packet.tags.insert(Arc::from(MARK), 1);
        }
        Ok(Some(packet))
    }

    fn warning(&self) -> Option<Warning> {
        self.source.warning()
    }

    fn progress(&self) -> Option<Progress> {
        self.source.progress()
    }
}

/// The reference engine, watched for one packet; later packets do not enter. The engine with flow
/// records may run beside it on the same packets.
pub struct Watched {
    engine: Reference,
    beside: Option<Compiled>,
    target: Target,
    entered: u64,
    done: Arc<AtomicBool>,
    walk: Option<Walk>,
    path: Option<PacketPath>,
}

/// Ignores outputs, because the reference engine has already sent them.
struct Nowhere;

impl Outputs for Nowhere {
    fn packet(&mut self, _: u16, _: Packet) {}

    fn event(&mut self, _: Event) {}
}

impl Watched {
    pub fn new(
        engine: Reference,
        beside: Option<Compiled>,
        target: Target,
        done: Arc<AtomicBool>,
    ) -> Self {
        Self { engine, beside, target, entered: 0, done, walk: None, path: None }
    }

    /// The walk, if the packet arrived, and its path through the engine with flow records.
    pub fn into_walk(self) -> Option<(Walk, Option<PacketPath>)> {
        Some((self.walk?, self.path))
    }
}

impl Watched {
    fn enter(&mut self, mut packet: Packet, out: &mut dyn Outputs) {
        if self.done.load(Ordering::Relaxed) {
            return;
        }
        let ingress = packet.ingress;
        self.entered += 1;
        let marked = packet.tags.remove(MARK).is_some();
        let is_target = match self.target {
            Target::Marked => marked,
            Target::Entering(number) => number == self.entered,
        };
        if !is_target {
            if let Some(beside) = &mut self.beside {
                beside.packet(ingress, packet.clone(), &mut Nowhere);
            }
            self.engine.packet(ingress, packet, out);
            return;
        }
        if let Some(beside) = &mut self.beside {
            self.path = beside.packet_by_path(ingress, packet.clone(), &mut Nowhere);
        }
        let mut recorder = Recorder::new(ingress, &packet);
        self.engine.trace(ingress, packet, out, &mut recorder);
        self.walk = Some(recorder.finish());
        self.done.store(true, Ordering::Relaxed);
    }
}

impl Engine for Watched {
    fn burst(&mut self, burst: &mut Burst, out: &mut dyn Outputs) {
        burst.take_each(|_, packet| self.enter(packet, out));
    }

    fn advance(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        if let Some(beside) = &mut self.beside {
            beside.advance(time_ns, &mut Nowhere);
        }
        self.engine.advance(time_ns, out);
    }

    fn begin(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        if let Some(beside) = &mut self.beside {
            beside.begin(time_ns, &mut Nowhere);
        }
        self.engine.begin(time_ns, out);
    }

    fn control(&mut self, control: &Control, out: &mut dyn Outputs) -> Result<(), String> {
        if self.done.load(Ordering::Relaxed) {
            return Ok(());
        }
        if let Some(beside) = &mut self.beside {
            beside.control(control, &mut Nowhere)?;
        }
        self.engine.control(control, out)
    }

    fn counters(&self) -> Counters {
        self.engine.counters()
    }

    fn state(&self) -> Vec<StateEntry> {
        self.engine.state()
    }

    fn export(&mut self) -> Snapshot {
        self.engine.export()
    }

    fn import(&mut self, snapshot: Snapshot) -> Result<(), ImportError> {
        if let Some(beside) = &mut self.beside {
            beside.import(snapshot.clone())?;
        }
        self.engine.import(snapshot)
    }
}
