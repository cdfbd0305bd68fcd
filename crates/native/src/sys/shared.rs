//! Memory that two processes share: a few words for calls, and a place for a packet's bytes. The
//! process at the other end may write anything there at any time, so each word is read once, and
//! bytes are copied before anyone looks at them.

use super::abi::RawWide;
use braid_ir::text::MOST_TAGS;
use memmap2::MmapRaw;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::thread::futex;
use rustix::time::Timespec;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

/// The place of the bytes.
const BYTES: usize = 4096;
/// The most bytes of a packet that fit.
pub(crate) const MOST: usize = 256 * 1024;

/// How often each end looks for the other one before it sleeps: for some ten microseconds.
pub(crate) const SPINS: u32 = 500;

/// How long a caller sleeps at most before it looks again.
const LOOK: Duration = Duration::from_millis(10);

/// The number of words of a call.
pub(crate) const WORDS: usize = 8;

/// The words at the start of the memory.
#[repr(C)]
struct Words {
    /// Odd while a call runs. Both ends wait for it to change.
    turn: AtomicU32,
    /// 0 while the process at work lives, then how it ended, plus 1.
    end: AtomicU32,
    /// Whether each end sleeps until the turn changes.
    caller_sleeps: AtomicU32,
    worker_sleeps: AtomicU32,
    /// What a call asks, then its answer.
    call: [AtomicU64; WORDS],
    /// The packet's tags, each in two words.
    tags: [AtomicU64; 2 * MOST_TAGS],
}

impl Words {
    fn sleeps(&self, side: Side) -> &AtomicU32 {
        match side {
            Side::Caller => &self.caller_sleeps,
            Side::Worker => &self.worker_sleeps,
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
pub(crate) enum Waited {
    /// The turn has changed.
    Turn,
    /// The process at work has ended, with this status.
    Ended(u32),
    /// The time is over.
    Late,
}

/// The memory.
pub(crate) struct Shared {
    map: MmapRaw,
}

impl Shared {
    /// New memory, and the file by which another process maps it. Nobody can change its length.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let file = memfd_create("braid-isolated", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, (BYTES + MOST) as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Self::of(&file)?, file))
    }

    /// The memory behind a file from [`Self::new`] of another process.
    pub(crate) fn of(file: &OwnedFd) -> io::Result<Self> {
        let map = MmapRaw::map_raw(file)?;
        match map.len() == BYTES + MOST {
            true => Ok(Self { map }),
            false => Err(io::Error::other("the shared memory has another length")),
        }
    }

    fn words(&self) -> &Words {
        // SAFETY: the mapping is page-aligned, longer than the words, and lives as long as `self`.
        // Its file cannot shrink. Words are atomic, so other processes may write them.
        unsafe { &*self.map.as_ptr().cast::<Words>() }
    }

    /// The present turn.
    pub(crate) fn turn(&self) -> u32 {
        self.words().turn.load(Ordering::Acquire)
    }

    /// A word of the call.
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.words().call.get(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Writes the words of a call.
    pub(crate) fn set(&self, words: [u64; WORDS]) {
        for (word, value) in self.words().call.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Writes the values of a packet's tags.
    pub(crate) fn set_tags(&self, values: impl Iterator<Item = u128>) {
        for (pair, value) in self.words().tags.chunks_exact(2).zip(values) {
            let halves = RawWide::of(value);
            for (word, half) in pair.iter().zip([halves.low, halves.high]) {
                word.store(half, Ordering::Relaxed);
            }
        }
    }

    /// The values of a packet's tags.
    pub(crate) fn tags(&self) -> impl Iterator<Item = u128> {
        self.words().tags.chunks_exact(2).map(|pair| {
            let mut halves = pair.iter().map(|word| word.load(Ordering::Relaxed));
            let mut half = || halves.next().unwrap_or(0);
            RawWide { low: half(), high: half() }.value()
        })
    }

    /// Copies a packet's bytes into the memory. Returns whether they fit.
    pub(crate) fn put(&self, bytes: &[u8]) -> bool {
        if bytes.len() > MOST {
            return false;
        }
        // SAFETY: the mapping has room for `MOST` bytes from `BYTES` on, and no reference to them
        // exists.
        unsafe {
            let place = self.map.as_mut_ptr().add(BYTES);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
        }
        true
    }

    /// Copies a packet's bytes out of the memory. At most [`MOST`] of them.
    pub(crate) fn get(&self, length: usize, into: &mut Vec<u8>) {
        let length = length.min(MOST);
        into.clear();
        into.reserve(length);
        // SAFETY: the mapping has `MOST` bytes from `BYTES` on, and the vector has room. Another
        // process may write meanwhile: then the copy has some mixture of bytes, as any packet may.
        unsafe {
            let place = self.map.as_ptr().add(BYTES);
            std::ptr::copy_nonoverlapping(place, into.as_mut_ptr(), length);
            into.set_len(length);
        }
    }

    /// Changes the turn, which was this one, and wakes the other end if it sleeps.
    pub(crate) fn pass(&self, turn: u32, by: Side) {
        let words = self.words();
        words.turn.store(turn.wrapping_add(1), Ordering::Release);
        // Orders the turn before the question, as the fence in `wait` orders the answer before the
        // last look.
        fence(Ordering::SeqCst);
        let other = words.sleeps(match by {
            Side::Caller => Side::Worker,
            Side::Worker => Side::Caller,
        });
        if other.load(Ordering::Relaxed) != 0 {
            // A failure would mean that nobody waits.
            let _ = futex::wake(&words.turn, futex::Flags::empty(), u32::MAX);
        }
    }

    /// Waits until the turn is another one. Looks `spins` times before it sleeps.
    pub(crate) fn wait(
        &self,
        turn: u32,
        side: Side,
        spins: u32,
        patience: Option<Duration>,
    ) -> Waited {
        let words = self.words();
        let look = || {
            if words.turn.load(Ordering::Acquire) != turn {
                return Some(Waited::Turn);
            }
            let end = words.end.load(Ordering::Acquire).checked_sub(1);
            end.filter(|_| side == Side::Caller).map(Waited::Ended)
        };
        for _ in 0..spins {
            if let Some(found) = look() {
                return found;
            }
            std::hint::spin_loop();
        }
        let until = patience.map(|patience| Instant::now() + patience);
        let sleeps = words.sleeps(side);
        loop {
            sleeps.store(1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let found = look().or_else(|| {
                let left = until.map(|until| until.saturating_duration_since(Instant::now()));
                if left == Some(Duration::ZERO) {
                    return Some(Waited::Late);
                }
                // The end of the process changes another word, so its wake may come too early.
                let left = left.map(|left| left.min(LOOK));
                let left = left.and_then(|left| Timespec::try_from(left).ok());
                // It ends early by signals and wakes; then the loop looks again.
                let _ = futex::wait(&words.turn, futex::Flags::empty(), turn, left.as_ref());
                None
            });
            if let Some(found) = found {
                sleeps.store(0, Ordering::Relaxed);
                return found;
            }
        }
    }

    /// Says that the process at work has ended.
    pub(crate) fn end(&self, status: u32) {
        let words = self.words();
        words.end.store(status.saturating_add(1), Ordering::Release);
        let _ = futex::wake(&words.turn, futex::Flags::empty(), u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Shared, Side, WORDS, Waited};
    use std::time::Duration;

    #[test]
    fn calls_and_bytes_pass_between_two_mappings() {
        let (caller, file) = Shared::new().unwrap();
        let worker = Shared::of(&file).unwrap();
        let at_work = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            for turn in (0..2_000).step_by(2) {
                // Sleeps at once every other time, so that wakes are needed.
                let spins = if turn % 4 == 0 { 0 } else { 1_000 };
                assert_eq!(worker.wait(turn, Side::Worker, spins, None), Waited::Turn);
                worker.get(usize::try_from(worker.word(0)).unwrap(), &mut bytes);
                bytes.reverse();
                worker.put(&bytes);
                worker.pass(turn + 1, Side::Worker);
            }
        });
        for turn in (0..2_000_u32).step_by(2) {
            let bytes: Vec<u8> = turn.to_le_bytes().to_vec();
            caller.put(&bytes);
            let mut words = [0; WORDS];
            words[0] = 4;
            caller.set(words);
            caller.pass(turn, Side::Caller);
            let patience = Some(Duration::from_secs(10));
            let spins = if turn % 6 == 0 { 0 } else { 1_000 };
            assert_eq!(caller.wait(turn + 1, Side::Caller, spins, patience), Waited::Turn);
            let mut back = Vec::new();
            caller.get(4, &mut back);
            assert_eq!(back, turn.to_be_bytes());
        }
        at_work.join().unwrap();
    }

    #[test]
    fn caller_learns_that_the_other_end_is_late_or_gone() {
        let (caller, file) = Shared::new().unwrap();
        let short = Some(Duration::from_millis(5));
        assert_eq!(caller.wait(0, Side::Caller, 0, short), Waited::Late);
        Shared::of(&file).unwrap().end(11);
        assert_eq!(caller.wait(0, Side::Caller, 0, short), Waited::Ended(11));
    }

    #[test]
    fn tags_pass_between_two_mappings() {
        let (caller, file) = Shared::new().unwrap();
        caller.set_tags([1, u128::MAX, 1 << 64].into_iter());
        let found: Vec<u128> = Shared::of(&file).unwrap().tags().take(4).collect();
        assert_eq!(found, [1, u128::MAX, 1 << 64, 0]);
    }

    #[test]
    fn only_bytes_that_fit_are_taken() {
        let (memory, _) = Shared::new().unwrap();
        assert!(memory.put(&[7; MOST]) && !memory.put(&[7; MOST + 1]));
        let mut bytes = Vec::new();
        memory.get(usize::MAX, &mut bytes);
        assert_eq!(bytes, [7; MOST]);
    }

    #[test]
    fn the_other_end_cannot_cut_the_memory() {
        let (_, file) = Shared::new().unwrap();
        assert!(rustix::fs::ftruncate(&file, 0).is_err());
    }
}
