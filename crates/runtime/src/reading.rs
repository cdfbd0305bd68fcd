//! The reader: a thread that reads the inputs, finds where packets enter, and fills loads.

use crate::load::Load;
use crate::merge::{Input, Merge, UNKNOWN, Unreadable};
use crate::queue::{Receiver, Sender, queue};
use crate::split::Splitter;
use braid_packet::frame::SPREAD_FRAME;
use braid_packet::{BURST, Packet, Pool};
use std::thread::JoinHandle;

/// The number of loads between the reader, the engine and the writer.
pub(crate) const LOADS: usize = 64;
/// How many loads wake a thread that waits for them.
pub(crate) const ENOUGH: usize = 24;

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
    used: Sender<Load>,
    thread: JoinHandle<()>,
}

impl Reader {
    /// Starts to read. Without a splitter, packets of shared inputs have the ingress [`UNKNOWN`].
    pub(crate) fn start(inputs: Vec<Input>, splitter: Option<Splitter>) -> Self {
        let (send, loads) = queue(LOADS + 1, ENOUGH);
        let (used, again) = queue(LOADS, ENOUGH);
        for _ in 0..LOADS {
            used.send(Load::new(), false);
        }
        let thread = std::thread::spawn(move || read(inputs, splitter, &send, &again));
        Self { loads, used, thread }
    }

    /// A way back for loads.
    pub(crate) fn used(&self) -> Sender<Load> {
        self.used.clone()
    }

    /// The next load, or the end. `None` if there is no load yet and `goes_on` has become false.
    ///
    /// # Panics
    /// If the reader's thread has failed.
    pub(crate) fn next_while(&self, goes_on: impl Fn() -> bool) -> Result<Option<Load>, End> {
        match self.loads.next_while(&goes_on) {
            Some(next) => next.map(Some),
            None if !goes_on() => Ok(None),
            None => {
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
    send: &Sender<Result<Load, End>>,
    again: &Receiver<Load>,
) {
    // Frames come from the allocator if there is no memory for a pool.
    let frames = u32::try_from(LOADS * BURST).unwrap_or(0);
    let mut pool = Pool::new(frames, SPREAD_FRAME).or_else(|| Pool::new(0, SPREAD_FRAME));
    let Some(pool) = &mut pool else { return };
    let mut merge = Merge::new(inputs, pool);
    while let Some(mut load) = again.next() {
        load.reset(pool);
        load.progress = merge.progress();
        let end = fill(&mut merge, splitter.as_ref(), pool, &mut load);
        // Packets of a slow input do not wait for others.
        let is_urgent = load.read < BURST as u64;
        if load.read > 0 && !send.send(Ok(load), is_urgent) {
            return;
        }
        if let Some(read) = end {
            let end = End { read: read.map(|()| merge.warnings()), progress: merge.progress() };
            // If nobody receives the end, the run has ended already.
            send.send(Err(end), true);
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
    let filled = merge.fill(&mut load.burst, pool);
    load.read = load.burst.packets().len() as u64;
    let is_unknown = |packet: &Packet| packet.ingress == UNKNOWN;
    if let Some(splitter) = splitter
        && load.burst.packets().iter().any(is_unknown)
    {
        let lost = load.burst.retain(|packet, layout| {
            if is_unknown(packet) {
                packet.ingress = splitter.ingress(packet, layout).unwrap_or(UNKNOWN);
            }
            !is_unknown(packet)
        });
        load.no_interface = lost.len() as u64;
        lost.into_iter().for_each(|packet| pool.put(packet.into_frame()));
    }
    match filled {
        Ok(true) => None,
        Ok(false) => Some(Ok(())),
        Err(unreadable) => Some(Err(unreadable)),
    }
}
