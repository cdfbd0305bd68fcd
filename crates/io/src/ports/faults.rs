//! A port with injected faults, to test how chains and hosts cope with them.

use crate::port::{Ethernet, Port, State, Unreceived, Unsent};
use braid_externs::Rng;
use braid_packet::{Frame, Pool};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Certainty, in parts per million.
const CERTAIN: u32 = 1_000_000;

/// Faults with their chances for each frame, in parts per million, in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Faults {
    /// The frame is lost.
    pub loss: u32,
    /// The frame comes twice.
    pub duplicate: u32,
    /// The frame comes behind the next one.
    pub reorder: u32,
    /// A bit of the frame is wrong.
    pub corrupt: u32,
    /// The end of the frame is missing.
    pub truncate: u32,
    /// The frame comes later, by `time`.
    pub delay: u32,
    /// Nothing comes for `time` from this frame on.
    pub stall: u32,
    /// The length of a delay and of a stall. A frame that is moved behind the next one waits for it
    /// no longer than this.
    pub time: Duration,
    /// With the same seed, the same frames have the same faults.
    pub seed: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            loss: 0,
            duplicate: 0,
            reorder: 0,
            corrupt: 0,
            truncate: 0,
            delay: 0,
            stall: 0,
            time: Duration::from_millis(20),
            seed: 1,
        }
    }
}

impl FromStr for Faults {
    type Err = String;

    /// Reads a list such as `loss=1%,delay=0.5%,time=20ms,seed=7`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut faults = Self::default();
        for part in text.split(',') {
            let wrong = || {
                format!(
                    "`{part}`: expected loss, duplicate, reorder, corrupt, truncate, delay or \
                     stall with a chance (loss=1%), time=20ms, or seed=7"
                )
            };
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            let chance = || chance(value).ok_or_else(wrong);
            match name.trim() {
                "loss" => faults.loss = chance()?,
                "duplicate" => faults.duplicate = chance()?,
                "reorder" => faults.reorder = chance()?,
                "corrupt" => faults.corrupt = chance()?,
                "truncate" => faults.truncate = chance()?,
                "delay" => faults.delay = chance()?,
                "stall" => faults.stall = chance()?,
                "time" => {
                    let ms = value.strip_suffix("ms").and_then(|ms| ms.trim().parse().ok());
                    faults.time = Duration::from_millis(ms.ok_or_else(wrong)?);
                }
                "seed" => faults.seed = value.parse().map_err(|_| wrong())?,
                _ => return Err(wrong()),
            }
        }
        Ok(faults)
    }
}

/// Reads `1%` or `0.25%`, in parts per million.
fn chance(text: &str) -> Option<u32> {
    let (whole, fraction) = {
        let number = text.strip_suffix('%')?;
        number.split_once('.').unwrap_or((number, ""))
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 4 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let parts: u32 = format!("{whole}{fraction:0<4}").parse().ok()?;
    (parts <= CERTAIN).then_some(parts)
}

/// The numbers of frames with each fault.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Injected {
    /// Frames that were lost.
    loss: u64,
    /// Frames that came twice.
    duplicate: u64,
    /// Frames that came behind the next one.
    reorder: u64,
    /// Frames with a wrong bit.
    corrupt: u64,
    /// Frames without their end.
    truncate: u64,
    /// Frames that came later.
    delay: u64,
    /// Times that nothing came.
    stall: u64,
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { loss, duplicate, reorder, corrupt, truncate, delay, stall } = self;
        write!(
            f,
            "loss {loss}, duplicate {duplicate}, reorder {reorder}, corrupt {corrupt}, truncate \
             {truncate}, delay {delay}, stall {stall}"
        )
    }
}

/// One direction.
struct Wire {
    faults: Faults,
    injected: Injected,
    random: Rng,
    /// Frames on their way, by the time when they arrive, and by their order.
    frames: BTreeMap<(Instant, u64), Frame>,
    /// The number of frames that were put.
    order: u64,
    /// A frame that comes behind the next one, and its time.
    behind: Option<(Instant, Frame)>,
    stalled_until: Option<Instant>,
}

impl Wire {
    fn new(faults: Faults, seed: u64) -> Self {
        Self {
            faults,
            injected: Injected::default(),
            random: Rng::new(seed),
            frames: BTreeMap::new(),
            order: 0,
            behind: None,
            stalled_until: None,
        }
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(1).max(1);
        usize::try_from(self.random.next_u64() % end).unwrap_or(0)
    }

    fn happens(&mut self, chance: u32) -> bool {
        self.random.next_u64() % u64::from(CERTAIN) < u64::from(chance)
    }

    /// A frame enters. All chances are drawn for each frame, so that the faults of one frame do
    /// not change those of the next one.
    fn put(&mut self, mut frame: Frame, now: Instant) {
        let Faults { loss, duplicate, reorder, corrupt, truncate, delay, stall, time, .. } =
            self.faults;
        let [loss, duplicate, reorder, corrupt, truncate, delay, stall] =
            [loss, duplicate, reorder, corrupt, truncate, delay, stall]
                .map(|chance| self.happens(chance));
        let (bit, end) = (self.below(frame.len() * 8), self.below(frame.len()));
        if stall {
            self.injected.stall += 1;
            self.stalled_until = Some(now + time);
        }
        if loss {
            self.injected.loss += 1;
            return;
        }
        if corrupt && let Some(byte) = frame.bytes_mut().get_mut(bit / 8) {
            self.injected.corrupt += 1;
            *byte ^= 1 << (bit % 8);
        }
        if truncate {
            self.injected.truncate += 1;
            frame.truncate(end);
        }
        if reorder && self.behind.is_none() {
            self.injected.reorder += 1;
            self.behind = Some((now + time, frame));
            return;
        }
        if duplicate {
            self.injected.duplicate += 1;
            self.arrive(frame.clone(), now);
        }
        self.injected.delay += u64::from(delay);
        self.arrive(frame, if delay { now + time } else { now });
        if let Some((_, frame)) = self.behind.take() {
            self.arrive(frame, now);
        }
    }

    fn arrive(&mut self, frame: Frame, at: Instant) {
        self.order += 1;
        self.frames.insert((at, self.order), frame);
    }

    /// Whether nothing passes now.
    fn is_stalled(&mut self, now: Instant) -> bool {
        self.stalled_until = self.stalled_until.filter(|end| *end > now);
        self.stalled_until.is_some()
    }

    /// The next frame that leaves.
    fn take(&mut self, now: Instant) -> Option<Frame> {
        if self.is_stalled(now) {
            return None;
        }
        if let Some((_, frame)) = self.behind.take_if(|(time, _)| *time <= now) {
            self.arrive(frame, now);
        }
        let first = self.frames.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

/// A port with injected faults.
pub struct Faulty {
    inner: Box<dyn Port>,
    arriving: Wire,
    leaving: Wire,
    due: Vec<Frame>,
}

impl Faulty {
    /// Injects faults into the frames of a port.
    #[must_use]
    pub fn new(inner: Box<dyn Port>, faults: Faults) -> Self {
        let arriving = Wire::new(faults, faults.seed);
        // The other half of the generator's numbers.
        let leaving = Wire::new(faults, faults.seed.wrapping_add(1 << 63));
        Self { inner, arriving, leaving, due: Vec::new() }
    }

    /// Sends the frames whose time has come. If a frame is refused now, it was already accepted
    /// earlier, so it is lost like other frames on this wire.
    fn send_due(&mut self, pool: &mut Pool, now: Instant) {
        while let Some(frame) = self.leaving.take(now) {
            self.due.push(frame);
        }
        if !self.due.is_empty() {
            self.inner.send(pool, &mut self.due, &mut |_, _| {});
        }
    }
}

impl Port for Faulty {
    fn receive(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(Unreceived),
    ) -> io::Result<usize> {
        let now = Instant::now();
        self.send_due(pool, now);
        let mut found = Vec::new();
        let mut count = self.inner.receive(pool, &mut found, lost)?;
        found.into_iter().for_each(|frame| self.arriving.put(frame, now));
        while let Some(frame) = self.arriving.take(now) {
            frames.push(frame);
            count = count.max(1);
        }
        Ok(count)
    }

    fn send(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(usize, Unsent),
    ) {
        let now = Instant::now();
        for (place, frame) in frames.drain(..).enumerate() {
            if self.leaving.is_stalled(now) {
                pool.put(frame);
                lost(place, Unsent::QueueFull);
            } else {
                self.leaving.put(frame, now);
            }
        }
        self.send_due(pool, now);
    }

    fn overrun(&mut self) -> u64 {
        self.inner.overrun()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.inner.descriptor()
    }

    fn state(&mut self) -> State {
        self.inner.state()
    }

    fn facts(&self) -> Option<String> {
        self.inner.facts()
    }

    fn ethernet(&self) -> Option<Ethernet> {
        self.inner.ethernet()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.inner.notes();
        for (direction, wire) in [("arriving", &self.arriving), ("leaving", &self.leaving)] {
            notes.push(format!("injected into {direction} frames: {}", wire.injected));
        }
        notes
    }
}

#[cfg(test)]
mod tests;
