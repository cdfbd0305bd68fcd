//! The reader: reads the inputs, finds where packets enter, and fills loads. Inputs whose end is
//! known are read on the thread that takes the loads. An input of another kind, such as a pipe, may
//! keep its reader waiting, so a thread of its own reads it.

use crate::load::Load;
use crate::merge::{Input, Merge, UNKNOWN, Unreadable};
use crate::queue::{Receiver, Sender, queue};
use crate::split::{Splitter, source};
use braid_packet::frame::SPREAD_FRAME;
use braid_packet::{BURST, Layout, Packet, Pool};
use std::thread::JoinHandle;

/// The number of loads between the reader, the engine and the writer.
pub(crate) const LOADS: usize = 64;
/// The number of loads that wake a thread that waits for them.
pub(crate) const ENOUGH: usize = 24;

/// The end of the inputs.
pub(crate) struct End {
    /// The warnings of the inputs, or why one cannot be read any further.
    pub(crate) read: Result<Vec<String>, Unreadable>,
    pub(crate) progress: (u64, u64),
}

/// The reader of a run's inputs.
pub(crate) struct Reader {
    from: Origin,
    /// Takes back loads.
    used: Sender<Load>,
}

/// Where loads come from.
enum Origin {
    Here(Box<Reading>),
    /// The thread ends with the inputs, or some time after the reader.
    Thread(Receiver<Result<Load, End>>, JoinHandle<()>),
}

impl Reader {
    /// Starts to read. Without a splitter, packets of shared inputs have the ingress [`UNKNOWN`].
    /// If `loads` is 1, the caller gives a load back before it asks for the next one.
    pub(crate) fn start(inputs: Vec<Input>, splitter: Option<Splitter>, loads: usize) -> Self {
        let (used, again) = queue(LOADS, ENOUGH);
        let waits = inputs.iter().any(|input| input.source.progress().is_none());
        let loads = if waits { LOADS } else { loads };
        for _ in 0..loads {
            used.send(Load::new(), false);
        }
        let start = move || Reading::new(inputs, splitter, again);
        let from = if waits {
            let (send, loads) = queue(LOADS + 1, ENOUGH);
            Origin::Thread(loads, std::thread::spawn(move || start().send_all(&send)))
        } else {
            Origin::Here(Box::new(start()))
        };
        Self { from, used }
    }

    /// The channel through which loads come back.
    pub(crate) fn used(&self) -> Sender<Load> {
        self.used.clone()
    }

    /// The next load, or the end. `None` if there is no load yet and `goes_on` has become false.
    ///
    /// # Panics
    /// If the reader's thread has failed.
    pub(crate) fn next_while(&mut self, goes_on: impl Fn() -> bool) -> Result<Option<Load>, End> {
        let (loads, thread) = match &mut self.from {
            Origin::Here(reading) => return reading.next_while(goes_on),
            Origin::Thread(loads, thread) => (loads, thread),
        };
        match loads.next_while(&goes_on) {
            Some(next) => next.map(Some),
            None if !goes_on() => Ok(None),
            None => {
                while !thread.is_finished() {
                    std::thread::yield_now();
                }
                panic!("the reader has failed");
            }
        }
    }
}

/// Inputs that are being read.
struct Reading {
    merge: Merge,
    splitter: Option<Splitter>,
    pool: Pool,
    /// Gives loads to fill.
    again: Receiver<Load>,
    /// The end, once the last load has been filled.
    end: Option<End>,
}

impl Reading {
    fn new(inputs: Vec<Input>, splitter: Option<Splitter>, again: Receiver<Load>) -> Self {
        let frames = u32::try_from(LOADS * BURST).unwrap_or(0);
        // Frames come from the allocator if there is no memory for a pool.
        let pool = Pool::new(frames, SPREAD_FRAME).or_else(|| Pool::new(0, SPREAD_FRAME));
        let mut pool = pool.expect("memory for no frames");
        Self { merge: Merge::new(inputs, &mut pool), splitter, pool, again, end: None }
    }

    /// As [`Reader::next_while`].
    fn next_while(&mut self, goes_on: impl Fn() -> bool) -> Result<Option<Load>, End> {
        if let Some(end) = self.end.take() {
            return Err(end);
        }
        let Some(mut load) = self.again.next_while(goes_on) else { return Ok(None) };
        let Self { merge, splitter, pool, .. } = self;
        load.reset(pool);
        load.progress = merge.progress();
        if let Some(read) = fill(merge, splitter.as_ref(), pool, &mut load) {
            let read = read.map(|()| merge.warnings());
            let end = End { read, progress: merge.progress() };
            if load.read == 0 {
                return Err(end);
            }
            self.end = Some(end);
        }
        Ok(Some(load))
    }

    /// Sends all loads, and then the end. Ends early if the receiver has gone or gives no loads
    /// back.
    fn send_all(mut self, send: &Sender<Result<Load, End>>) {
        loop {
            let next = match self.next_while(|| true) {
                Ok(Some(load)) => Ok(load),
                Ok(None) => return,
                Err(end) => Err(end),
            };
            // Packets of a slow input do not wait for others.
            let is_urgent = next.as_ref().map_or(true, |load| load.read < BURST as u64);
            let is_end = next.is_err();
            if !send.send(next, is_urgent) || is_end {
                return;
            }
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
        let enters_nowhere = |packet: &mut Packet, layout: &Layout| {
            if is_unknown(packet) {
                packet.ingress = splitter.ingress(packet, layout).unwrap_or(UNKNOWN);
            }
            is_unknown(packet).then(|| source(packet, layout))
        };
        load.burst.remove(enters_nowhere, |source, packet| {
            if let Some(packet) = load.strays.note(packet, source) {
                pool.put(packet.into_frame());
            }
        });
    }
    match filled {
        Ok(true) => None,
        Ok(false) => Some(Ok(())),
        Err(unreadable) => Some(Err(unreadable)),
    }
}
