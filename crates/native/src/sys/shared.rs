//! Memory that two processes share: places for calls, each with a few words and a packet's bytes.
//! The process at the other end may write anything there at any time, so each word is read once,
//! and bytes are copied before anyone looks at them.

use super::abi::RawWide;
use braid_ir::engine::AHEAD;
use braid_ir::text::MOST_TAGS;
use memmap2::MmapRaw;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::thread::futex;
use rustix::time::Timespec;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

/// The place of a call that runs alone, behind those of the calls that are handed over ahead.
pub(crate) const ALONE: usize = AHEAD;
/// The number of all places.
const PLACES: usize = AHEAD + 1;

/// Where the places' bytes begin.
const BYTES: usize = 20 * 1024;
/// The most bytes of a packet whose call is handed over ahead.
const FEW: usize = 2048;
/// From one of these places to the next: an odd number of cache lines, so that the first lines of
/// all places do not meet in a few sets of a cache.
const STRIDE: usize = FEW + 64;
/// The most bytes of a packet whose call runs alone.
const MOST: usize = 256 * 1024;
/// The length of the memory.
const LENGTH: usize = BYTES + AHEAD * STRIDE + MOST;

/// How often each end looks for the other one before it sleeps: for some ten microseconds.
pub(crate) const SPINS: u32 = 500;

/// How long a caller sleeps at most before it looks again.
const LOOK: Duration = Duration::from_millis(10);

/// The number of words of a call, and of an answer.
pub(crate) const WORDS: usize = 4;

/// Wakes an end that sleeps.
#[repr(C)]
struct Bell {
    /// How often it has rung. The end sleeps until this changes.
    rings: AtomicU32,
    /// Whether the end sleeps, or is about to.
    sleeps: AtomicU32,
}

/// What the caller writes, except that both ends write the turn, in turn.
#[repr(C, align(64))]
struct Asked {
    /// Odd while a call runs alone.
    turn: AtomicU32,
    /// The number of calls that were handed over ahead.
    given: AtomicU32,
    /// The worker's.
    bell: Bell,
}

/// What the worker writes.
#[repr(C, align(64))]
struct Answered {
    /// The number of answers to calls that were handed over ahead.
    done: AtomicU32,
    /// The caller's.
    bell: Bell,
    /// 0 while the process at work lives, then how it ended, plus 1.
    end: AtomicU32,
}

/// The words at the start of the memory.
#[repr(C)]
struct Words {
    asked: Asked,
    answered: Answered,
    /// By place: what a call asks, and its answer.
    calls: [[AtomicU64; WORDS]; PLACES],
    replies: [[AtomicU64; WORDS]; PLACES],
    /// By place: the packet's tags, each in two words.
    tags: [[AtomicU64; 2 * MOST_TAGS]; PLACES],
}

const _: () = assert!(size_of::<Words>() <= BYTES, "the words end before the bytes begin");

impl Words {
    fn bell(&self, of: Side) -> &Bell {
        match of {
            Side::Caller => &self.answered.bell,
            Side::Worker => &self.asked.bell,
        }
    }
}

/// One of the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The one that calls.
    Caller,
    /// The one that works.
    Worker,
}

/// Why a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waited<T> {
    /// What it waited for is there.
    Found(T),
    /// The process at work has ended, with this status.
    Ended(u32),
    /// The time is over.
    Late,
}

/// The memory.
pub(crate) struct Shared {
    map: MmapRaw,
}

/// The place of a call that is handed over ahead, by its number.
pub(crate) fn place(number: u32) -> usize {
    number as usize % AHEAD
}

/// Where the bytes of a place are, and how many fit.
fn bytes_of(place: usize) -> (usize, usize) {
    let place = place.min(ALONE);
    (BYTES + place * STRIDE, if place == ALONE { MOST } else { FEW })
}

impl Shared {
    /// New memory, and the file by which another process maps it. Nobody can change its length.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let file = memfd_create("braid-isolated", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, LENGTH as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Self::of(&file)?, file))
    }

    /// The memory behind a file from [`Self::new`] of another process.
    pub(crate) fn of(file: &OwnedFd) -> io::Result<Self> {
        let map = MmapRaw::map_raw(file)?;
        match map.len() == LENGTH {
            true => Ok(Self { map }),
            false => Err(io::Error::other("the shared memory has another length")),
        }
    }

    fn words(&self) -> &Words {
        // SAFETY: the mapping is page-aligned, longer than the words, and lives as long as `self`.
        // Its file cannot shrink. Words are atomic, so other processes may write them.
        unsafe { &*self.map.as_ptr().cast::<Words>() }
    }

    /// The present turn: odd while a call runs alone.
    pub(crate) fn turn(&self) -> u32 {
        self.words().asked.turn.load(Ordering::Acquire)
    }

    /// Passes the turn, which was this one, to the other end.
    pub(crate) fn pass(&self, turn: u32, by: Side) {
        self.words().asked.turn.store(turn.wrapping_add(1), Ordering::Release);
        self.ring(by);
    }

    /// The number of calls that were handed over ahead.
    pub(crate) fn given(&self) -> u32 {
        self.words().asked.given.load(Ordering::Acquire)
    }

    /// Hands calls over ahead, up to this number of them since the start. The worker learns it as
    /// soon as it looks. If it sleeps, [`Self::ring`] wakes it.
    pub(crate) fn give(&self, given: u32) {
        self.words().asked.given.store(given, Ordering::Release);
    }

    /// The number of answers to calls that were handed over ahead.
    pub(crate) fn done(&self) -> u32 {
        self.words().answered.done.load(Ordering::Acquire)
    }

    /// Answers calls that were handed over ahead, up to this number of them since the start.
    pub(crate) fn answer(&self, done: u32) {
        self.words().answered.done.store(done, Ordering::Release);
    }

    /// The words of the call in a place.
    pub(crate) fn call(&self, place: usize) -> [u64; WORDS] {
        load(self.words().calls.get(place))
    }

    pub(crate) fn set_call(&self, place: usize, words: [u64; WORDS]) {
        store(self.words().calls.get(place), words);
    }

    /// The words of the answer in a place.
    pub(crate) fn reply(&self, place: usize) -> [u64; WORDS] {
        load(self.words().replies.get(place))
    }

    pub(crate) fn set_reply(&self, place: usize, words: [u64; WORDS]) {
        store(self.words().replies.get(place), words);
    }

    /// Writes the values of a packet's tags.
    pub(crate) fn set_tags(&self, place: usize, values: impl Iterator<Item = u128>) {
        let words = self.words().tags.get(place).map_or(&[][..], |words| words);
        for (pair, value) in words.chunks_exact(2).zip(values) {
            let halves = RawWide::of(value);
            for (word, half) in pair.iter().zip([halves.low, halves.high]) {
                word.store(half, Ordering::Relaxed);
            }
        }
    }

    /// The values of a packet's tags.
    pub(crate) fn tags(&self, place: usize) -> impl Iterator<Item = u128> {
        let words = self.words().tags.get(place).map_or(&[][..], |words| words);
        words.chunks_exact(2).map(|pair| {
            let mut halves = pair.iter().map(|word| word.load(Ordering::Relaxed));
            let mut half = || halves.next().unwrap_or(0);
            RawWide { low: half(), high: half() }.value()
        })
    }

    /// Copies a packet's bytes into the memory. Returns whether they fit.
    pub(crate) fn put(&self, place: usize, bytes: &[u8]) -> bool {
        let (at, room) = bytes_of(place);
        if bytes.len() > room {
            return false;
        }
        // SAFETY: the mapping has `room` bytes from `at` on, and no reference to them exists.
        unsafe {
            let to = self.map.as_mut_ptr().add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        true
    }

    /// Copies the first bytes of a packet out of the memory: as many as there is room for, and at
    /// most as many as the place has. Returns their number.
    pub(crate) fn get(&self, place: usize, into: &mut [u8]) -> usize {
        let (at, room) = bytes_of(place);
        let length = into.len().min(room);
        // SAFETY: the mapping has `room` bytes from `at` on, and the slice has at least `length`.
        // Another process may write meanwhile: then the copy has some mixture of bytes, as any
        // packet may.
        unsafe {
            let from = self.map.as_ptr().add(at);
            std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), length);
        }
        length
    }

    /// As [`Self::get`], into an array that then has this many bytes, or as many as the place has.
    pub(crate) fn fetch(&self, place: usize, length: usize, into: &mut Vec<u8>) {
        into.resize(length.min(MOST), 0);
        let length = self.get(place, into);
        into.truncate(length);
    }

    /// Wakes the other end if it sleeps. What this end has written before is then there for it.
    pub(crate) fn ring(&self, by: Side) {
        // Orders what was written before the question, as the fence in `wait` orders the answer
        // before the last look.
        fence(Ordering::SeqCst);
        self.ring_soon(by);
    }

    /// As [`Self::ring`], but an end that goes to sleep at this moment may sleep until the next
    /// ring.
    pub(crate) fn ring_soon(&self, by: Side) {
        let bell = self.words().bell(match by {
            Side::Caller => Side::Worker,
            Side::Worker => Side::Caller,
        });
        if bell.sleeps.load(Ordering::Relaxed) != 0 {
            bell.rings.fetch_add(1, Ordering::Release);
            // A failure would mean that nobody waits.
            let _ = futex::wake(&bell.rings, futex::Flags::empty(), u32::MAX);
        }
    }

    /// Waits until `look` finds something. Looks `spins` times before it sleeps.
    pub(crate) fn wait<T>(
        &self,
        side: Side,
        spins: u32,
        patience: Option<Duration>,
        look: impl Fn() -> Option<T>,
    ) -> Waited<T> {
        let words = self.words();
        for _ in 0..spins {
            if let Some(found) = look() {
                return Waited::Found(found);
            }
            std::hint::spin_loop();
        }
        let until = patience.map(|patience| Instant::now() + patience);
        let bell = words.bell(side);
        bell.sleeps.store(1, Ordering::Relaxed);
        let waited = loop {
            let rings = bell.rings.load(Ordering::Acquire);
            fence(Ordering::SeqCst);
            // A process may have answered before it ended.
            let end = words.answered.end.load(Ordering::Acquire).checked_sub(1);
            if let Some(found) = look() {
                break Waited::Found(found);
            }
            if let Some(status) = end.filter(|_| side == Side::Caller) {
                break Waited::Ended(status);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                break Waited::Late;
            }
            let left = left.map(|left| left.min(LOOK));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            // It ends early by signals and wakes; then the loop looks again.
            let _ = futex::wait(&bell.rings, futex::Flags::empty(), rings, left.as_ref());
        };
        bell.sleeps.store(0, Ordering::Relaxed);
        waited
    }

    /// Says that the process at work has ended.
    pub(crate) fn end(&self, status: u32) {
        self.words().answered.end.store(status.saturating_add(1), Ordering::Release);
        self.ring(Side::Worker);
    }
}

fn load(from: Option<&[AtomicU64; WORDS]>) -> [u64; WORDS] {
    let Some([a, b, c, d]) = from else { return [0; WORDS] };
    let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
    [read(a), read(b), read(c), read(d)]
}

fn store(to: Option<&[AtomicU64; WORDS]>, words: [u64; WORDS]) {
    for (word, value) in to.into_iter().flatten().zip(words) {
        word.store(value, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{ALONE, FEW, MOST, Shared, Side, WORDS, Waited};
    use braid_ir::engine::AHEAD;
    use std::time::Duration;

    const PATIENCE: Option<Duration> = Some(Duration::from_secs(10));

    /// Waits until the turn is another one.
    fn wait(memory: &Shared, turn: u32, side: Side, spins: u32) {
        let look = || (memory.turn() != turn).then_some(());
        assert_eq!(memory.wait(side, spins, PATIENCE, look), Waited::Found(()));
    }

    #[test]
    fn calls_and_bytes_pass_between_two_mappings() {
        let (caller, file) = Shared::new().unwrap();
        let worker = Shared::of(&file).unwrap();
        let at_work = std::thread::spawn(move || {
            for turn in (0..2_000).step_by(2) {
                // Sleeps at once every other time, so that wakes are needed.
                wait(&worker, turn, Side::Worker, if turn % 4 == 0 { 0 } else { 1_000 });
                let mut bytes = vec![0; usize::try_from(worker.call(ALONE)[0]).unwrap()];
                worker.get(ALONE, &mut bytes);
                bytes.reverse();
                worker.put(ALONE, &bytes);
                worker.pass(turn + 1, Side::Worker);
            }
        });
        for turn in (0..2_000_u32).step_by(2) {
            caller.put(ALONE, &turn.to_le_bytes());
            caller.set_call(ALONE, [4, 0, 0, 0]);
            caller.pass(turn, Side::Caller);
            wait(&caller, turn + 1, Side::Caller, if turn % 6 == 0 { 0 } else { 1_000 });
            let mut back = [0; 4];
            caller.get(ALONE, &mut back);
            assert_eq!(back, turn.to_be_bytes());
        }
        at_work.join().unwrap();
    }

    #[test]
    fn caller_learns_that_the_other_end_is_late_or_gone() {
        let (caller, file) = Shared::new().unwrap();
        let short = Some(Duration::from_millis(5));
        let wait = || caller.wait(Side::Caller, 0, short, || (caller.done() > 0).then_some(()));
        assert_eq!(wait(), Waited::Late);
        let worker = Shared::of(&file).unwrap();
        worker.end(11);
        assert_eq!(wait(), Waited::Ended(11));
        // What it has answered before counts.
        worker.answer(1);
        assert_eq!(wait(), Waited::Found(()));
    }

    #[test]
    fn tags_pass_between_two_mappings() {
        let (caller, file) = Shared::new().unwrap();
        for place in [0, AHEAD - 1, ALONE] {
            caller.set_tags(place, [place as u128, u128::MAX, 1 << 64].into_iter());
        }
        let worker = Shared::of(&file).unwrap();
        for place in [0, AHEAD - 1, ALONE] {
            let found: Vec<u128> = worker.tags(place).take(4).collect();
            assert_eq!(found, [place as u128, u128::MAX, 1 << 64, 0]);
        }
        assert_eq!(worker.tags(ALONE + 1).count(), 0);
    }

    #[test]
    fn places_lie_apart_and_only_bytes_that_fit_are_taken() {
        let (memory, _) = Shared::new().unwrap();
        let rooms: Vec<usize> =
            (0..=ALONE).map(|at| if at == ALONE { MOST } else { FEW }).collect();
        let fill = |at: usize| u8::try_from(at).unwrap() + 1;
        for (at, room) in rooms.iter().enumerate() {
            assert!(memory.put(at, &vec![fill(at); *room]));
            assert!(!memory.put(at, &vec![0; room + 1]));
            memory.set_call(at, [at as u64; WORDS]);
            memory.set_reply(at, [at as u64 + 100; WORDS]);
            memory.set_tags(at, std::iter::repeat(at as u128));
        }
        for (at, room) in rooms.iter().enumerate() {
            let mut bytes = vec![0; room + 1];
            assert_eq!(memory.get(at, &mut bytes), *room);
            assert!(bytes[..*room].iter().all(|byte| *byte == fill(at)), "{at}");
            assert_eq!((memory.call(at), memory.reply(at)), ([at as u64; 4], [at as u64 + 100; 4]));
            assert!(memory.tags(at).all(|value| value == at as u128), "{at}");
        }
    }

    #[test]
    fn the_other_end_cannot_cut_the_memory() {
        let (_, file) = Shared::new().unwrap();
        assert!(rustix::fs::ftruncate(&file, 0).is_err());
    }
}
