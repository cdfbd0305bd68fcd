//! The reader: a thread that reads the inputs, finds where packets enter, and fills loads.

use crate::load::Load;
use crate::merge::{Input, Merge, UNKNOWN, Unreadable};
use crate::split::Splitter;
use braid_packet::frame::FRAME;
use braid_packet::{BURST, Packet, Pool};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Loads that go from thread to thread together. Waking a thread costs as much as hundreds of
/// packets.
pub(crate) type Loads = Vec<Load>;

/// How many loads go together.
const TOGETHER: usize = 8;
/// How many times as many there are, for the reader, the engine and the writer.
pub(crate) const GROUPS: usize = 4;

/// The end of the inputs.
pub(crate) struct End {
    /// The warnings of the inputs, or why one cannot be read any further.
    pub(crate) read: Result<Vec<String>, Unreadable>,
    pub(crate) progress: (u64, u64),
}

/// The reader's thread. It ends with the inputs, or some time after this value.
pub(crate) struct Reader {
    loads: Receiver<Result<Loads, End>>,
    /// Takes back loads.
    used: SyncSender<Loads>,
    thread: JoinHandle<()>,
}

impl Reader {
    /// Starts to read. Without a splitter, packets of shared inputs have the ingress [`UNKNOWN`].
    pub(crate) fn start(inputs: Vec<Input>, splitter: Option<Splitter>) -> Self {
        let (send, loads) = sync_channel(GROUPS + 1);
        let (used, again) = sync_channel(GROUPS);
        for _ in 0..GROUPS {
            // There is room for all groups.
            let _ = used.try_send((0..TOGETHER).map(|_| Load::new()).collect());
        }
        let thread = std::thread::spawn(move || read(inputs, splitter, &send, &again));
        Self { loads, used, thread }
    }

    /// A way back for loads.
    pub(crate) fn used(&self) -> SyncSender<Loads> {
        self.used.clone()
    }

    /// The next loads, or the end. The last loads may be empty.
    ///
    /// # Panics
    /// With the panic of the reader's thread.
    pub(crate) fn next(&mut self) -> Result<Loads, End> {
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
    send: &SyncSender<Result<Loads, End>>,
    again: &Receiver<Loads>,
) {
    // Frames come from the allocator if there is no memory for a pool.
    let frames = u32::try_from(GROUPS * TOGETHER * BURST).unwrap_or(0);
    let mut pool = Pool::new(frames, FRAME).or_else(|| Pool::new(0, FRAME));
    let Some(pool) = &mut pool else { return };
    let mut merge = Merge::new(inputs, pool);
    while let Ok(mut loads) = again.recv() {
        let end = fill_all(&mut merge, splitter.as_ref(), pool, &mut loads);
        if send.send(Ok(loads)).is_err() {
            return;
        }
        if let Some(read) = end {
            let end = End { read: read.map(|()| merge.warnings()), progress: merge.progress() };
            // If nobody receives the end, the run has ended already.
            let _ = send.send(Err(end));
            return;
        }
    }
}

/// Fills loads up to one that does not become full. So packets of a slow input do not wait for
/// others. Returns the end, if it is reached.
fn fill_all(
    merge: &mut Merge,
    splitter: Option<&Splitter>,
    pool: &mut Pool,
    loads: &mut Loads,
) -> Option<Result<(), Unreadable>> {
    let (mut end, mut is_full) = (None, true);
    for load in loads {
        load.reset(pool);
        load.progress = merge.progress();
        if is_full {
            end = fill(merge, splitter, pool, load);
            is_full = end.is_none() && load.read == BURST as u64;
        }
    }
    end
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
