//! The reader: a thread that reads the inputs, finds where packets enter, and fills loads.

use crate::load::Load;
use crate::merge::{Input, Merge, Unreadable};
use crate::split::Splitter;
use braid_packet::frame::FRAME;
use braid_packet::{BURST, Packet, Pool};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// The number of loads between the reader, the engine and the writer.
pub(crate) const LOADS: usize = 16;

/// The ingress of a packet whose interface the engine's thread finds.
pub(crate) const UNKNOWN: u16 = u16::MAX;

/// The end of the inputs.
pub(crate) struct End {
    /// The warnings of the inputs, or why one cannot be read any further.
    pub(crate) read: Result<Vec<String>, Unreadable>,
    pub(crate) progress: (u64, u64),
}

/// The reader's thread. It ends with the inputs, or some time after this value.
pub(crate) struct Reader {
    loads: Receiver<Result<Load, End>>,
    /// Takes back loads.
    used: SyncSender<Load>,
    thread: JoinHandle<()>,
}

impl Reader {
    /// Starts to read. Without a splitter, packets of shared inputs have the ingress [`UNKNOWN`].
    pub(crate) fn start(inputs: Vec<Input>, splitter: Option<Splitter>) -> Self {
        let (send, loads) = sync_channel(LOADS + 1);
        let (used, again) = sync_channel(LOADS);
        for _ in 0..LOADS {
            // There is room for all loads.
            let _ = used.try_send(Load::new());
        }
        let thread = std::thread::spawn(move || read(inputs, splitter, &send, &again));
        Self { loads, used, thread }
    }

    /// A way back for loads.
    pub(crate) fn used(&self) -> SyncSender<Load> {
        self.used.clone()
    }

    /// The next load, or the end.
    ///
    /// # Panics
    /// With the panic of the reader's thread.
    pub(crate) fn next(&mut self) -> Result<Load, End> {
        match self.loads.recv() {
            Ok(next) => next,
            Err(_) => {
                while !self.thread.is_finished() {
                    std::thread::yield_now();
                }
                panic!("the reader has failed");
            }
        }
    }
}

fn read(
    inputs: Vec<Input>,
    splitter: Option<Splitter>,
    send: &SyncSender<Result<Load, End>>,
    again: &Receiver<Load>,
) {
    // Frames come from the allocator if there is no memory for a pool.
    let frames = u32::try_from(LOADS * BURST).unwrap_or(0);
    let mut pool = Pool::new(frames, FRAME).or_else(|| Pool::new(0, FRAME));
    let Some(pool) = &mut pool else { return };
    let mut merge = Merge::new(inputs, pool);
    while let Ok(mut load) = again.recv() {
        load.burst.recycle(pool);
        (load.read, load.no_interface) = (0, 0);
        load.progress = merge.progress();
        let read = fill(&mut merge, splitter.as_ref(), pool, &mut load);
        if load.read > 0 && send.send(Ok(load)).is_err() {
            return;
        }
        if let Some(read) = read {
            let end = End { read: read.map(|()| merge.warnings()), progress: merge.progress() };
            // If nobody receives the end, the run has ended already.
            let _ = send.send(Err(end));
            return;
        }
    }
}

/// Reads packets until the load has a whole burst. Returns the end, if it is reached.
fn fill(
    merge: &mut Merge,
    splitter: Option<&Splitter>,
    pool: &mut Pool,
    load: &mut Load,
) -> Option<Result<(), Unreadable>> {
    while load.read < BURST as u64 {
        let (interface, mut packet) = match merge.next(pool) {
            Ok(Some(next)) => next,
            Ok(None) => return Some(Ok(())),
            Err(unreadable) => return Some(Err(unreadable)),
        };
        load.read += 1;
        packet.ingress = interface.unwrap_or(UNKNOWN);
        load.burst.push(packet);
        if let (UNKNOWN, Some(splitter)) = (interface.unwrap_or(UNKNOWN), splitter) {
            split(splitter, load, pool);
        }
    }
    None
}

/// Finds where the last packet enters. A packet that enters nowhere is lost.
fn split(splitter: &Splitter, load: &mut Load, pool: &mut Pool) {
    let Some((packet, layout)) = load.burst.last() else { return };
    match splitter.ingress(packet, layout) {
        Some(ingress) => packet.ingress = ingress,
        None => {
            load.no_interface += 1;
            let lost = load.burst.pop().map(Packet::into_frame);
            lost.into_iter().for_each(|frame| pool.put(frame));
        }
    }
}
