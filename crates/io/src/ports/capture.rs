//! A port whose frames come from a capture: to try a chain at its speed without a network, or with
//! a capture's own timing. What is sent by it goes nowhere.

use super::Share;
use crate::capture::CaptureReader;
use crate::port::{OpenError, Port, Unreceived, Unsent};
use crate::source::PacketSource;
use braid_packet::{BURST, Frame, Link, Pool};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// The most bytes that are loaded.
const MOST: usize = 1 << 30;

/// The frames of a capture, in memory.
struct Stored {
    bytes: Vec<u8>,
    frames: Vec<At>,
    /// Packets that are not in the capture as a whole.
    cut: u64,
}

/// A frame of a capture.
struct At {
    start: usize,
    length: usize,
    /// The time since the first packet.
    time: Duration,
}

impl Stored {
    /// The frames of a capture that go to a port with this share.
    fn load(path: &Path, share: &Share) -> Result<Self, OpenError> {
        let mut reader = CaptureReader::open(path).map_err(Box::new)?;
        let mut stored = Self { bytes: Vec::new(), frames: Vec::new(), cut: 0 };
        let mut first_ns = None;
        while let Some(packet) = reader.next_packet().map_err(Box::new)? {
            if packet.link != Link::Ethernet {
                return Err(OpenError::NoFrames);
            }
            let first_ns = *first_ns.get_or_insert(packet.time_ns);
            if packet.wire_len as usize > packet.data().len() {
                stored.cut += 1;
            } else if share.takes(&packet) {
                let bytes = packet.data();
                if stored.bytes.len() + bytes.len() > MOST {
                    return Err(OpenError::TooMuch(MOST >> 20));
                }
                let time = Duration::from_nanos(packet.time_ns.saturating_sub(first_ns));
                stored.frames.push(At { start: stored.bytes.len(), length: bytes.len(), time });
                stored.bytes.extend(bytes);
            }
        }
        Ok(stored)
    }

    fn frame(&self, at: &At) -> &[u8] {
        self.bytes.get(at.start..at.start + at.length).unwrap_or_default()
    }

    fn notes(&self) -> Vec<String> {
        let text = format!("{} packets that the capture has only in part were left out", self.cut);
        Vec::from_iter((self.cut > 0).then_some(text))
    }
}

/// Adds a copy of a frame to `frames`.
fn give(bytes: &[u8], pool: &mut Pool, frames: &mut Vec<Frame>, lost: &mut dyn FnMut(Unreceived)) {
    let Some(mut frame) = pool.take() else { return lost(Unreceived::NoMemory) };
    if frame.push(bytes) {
        frames.push(frame);
    } else {
        pool.put(frame);
        frames.push(Frame::of(bytes));
    }
}

/// Gives the frames of a capture again and again, as fast as they are read. Without a capture,
/// nothing arrives.
pub struct MemoryPort {
    stored: Stored,
    next: usize,
    /// Always ready if there are frames.
    ready: OwnedFd,
}

impl MemoryPort {
    /// Loads a capture, or the part of it that a share gets.
    ///
    /// # Errors
    /// The capture cannot be read, has no Ethernet frames, or is too large.
    pub fn open(path: Option<&Path>, share: &Share) -> Result<Self, OpenError> {
        let none = Stored { bytes: Vec::new(), frames: Vec::new(), cut: 0 };
        let stored = path.map_or(Ok(none), |path| Stored::load(path, share))?;
        let count = u32::from(!stored.frames.is_empty());
        let ready = eventfd(count, EventfdFlags::CLOEXEC).map_err(io::Error::from)?;
        Ok(Self { stored, next: 0, ready })
    }
}

impl Port for MemoryPort {
    fn receive(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(Unreceived),
    ) -> io::Result<usize> {
        let Self { stored, next, .. } = self;
        let count = stored.frames.len().min(BURST);
        for _ in 0..count {
            if let Some(at) = stored.frames.get(*next) {
                give(stored.frame(at), pool, frames, lost);
            }
            *next = if *next + 1 < stored.frames.len() { *next + 1 } else { 0 };
        }
        Ok(count)
    }

    fn send(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>, _: &mut dyn FnMut(usize, Unsent)) {
        frames.drain(..).for_each(|frame| pool.put(frame));
    }

    fn overrun(&mut self) -> u64 {
        0
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    fn notes(&self) -> Vec<String> {
        self.stored.notes()
    }
}

/// Gives the frames of a capture once, at the times that they had from the first one on.
pub struct ReplayPort {
    stored: Stored,
    next: usize,
    /// The factor by which time passes faster than in the capture.
    speed: f64,
    /// The time of the first packet: when the port was read first.
    start: Option<Instant>,
    timer: OwnedFd,
}

impl ReplayPort {
    /// Loads a capture, or the part of it that a share gets. With a speed of 2, its time passes
    /// twice as fast.
    ///
    /// # Errors
    /// The capture cannot be read, has no Ethernet frames, or is too large.
    pub fn open(path: &Path, speed: f64, share: &Share) -> Result<Self, OpenError> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(io::Error::from)?;
        Ok(Self { stored: Stored::load(path, share)?, next: 0, speed, start: None, timer })
    }

    /// Lets the timer be ready when the next frame is due.
    fn sleep(&self, left: Duration) -> io::Result<()> {
        // A time of 0 would stop the timer.
        let left = left.max(Duration::from_nanos(1));
        let value = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

impl Port for ReplayPort {
    fn receive(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(Unreceived),
    ) -> io::Result<usize> {
        let passed = self.start.get_or_insert_with(Instant::now).elapsed();
        let mut count = 0;
        while let Some(at) = self.stored.frames.get(self.next) {
            let due = at.time.div_f64(self.speed);
            if due > passed {
                self.sleep(due - passed)?;
                break;
            }
            if count == BURST {
                break;
            }
            give(self.stored.frame(at), pool, frames, lost);
            (self.next, count) = (self.next + 1, count + 1);
        }
        Ok(count)
    }

    fn send(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>, _: &mut dyn FnMut(usize, Unsent)) {
        frames.drain(..).for_each(|frame| pool.put(frame));
    }

    fn overrun(&mut self) -> u64 {
        0
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    fn notes(&self) -> Vec<String> {
        self.stored.notes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{CaptureWriter, Precision};
    use crate::ports::Steer;
    use crate::source::PacketSink;
    use braid_packet::Packet;
    use braid_packet::frame::FRAME;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::sync::Arc;

    /// A capture of packets at these times (ms). The first byte of each is its number.
    fn capture(times: &[u64]) -> tempfile::TempPath {
        let path = tempfile::Builder::new().suffix(".pcap").tempfile().unwrap().into_temp_path();
        let mut writer = CaptureWriter::create(&path, Precision::Nano).unwrap();
        for (number, ms) in (0..).zip(times) {
            let packet = Packet::new(Link::Ethernet, 1_000_000 * ms, [number; 60]);
            writer.write_packet(&packet).unwrap();
        }
        writer.finish().unwrap();
        path
    }

    fn read(port: &mut dyn Port, pool: &mut Pool) -> Vec<u8> {
        let mut frames = Vec::new();
        port.receive(pool, &mut frames, &mut |why| panic!("{why:?}")).unwrap();
        let numbers = frames.iter().map(|frame| frame.bytes()[0]).collect();
        port.send(pool, &mut frames, &mut |_, why| panic!("{why:?}"));
        numbers
    }

    fn is_ready(port: &dyn Port) -> bool {
        let mut wait = [PollFd::from_borrowed_fd(port.descriptor(), PollFlags::IN)];
        poll(&mut wait, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
    }

    #[test]
    fn memory_port_gives_its_frames_again_and_again() {
        let (path, mut pool) = (capture(&[5, 6, 7]), Pool::new(8, FRAME).unwrap());
        let mut port = MemoryPort::open(Some(&path), &Share::default()).unwrap();
        assert!(is_ready(&port));
        assert_eq!(read(&mut port, &mut pool), [0, 1, 2]);
        assert_eq!(read(&mut port, &mut pool), [0, 1, 2]);
        let mut silent = MemoryPort::open(None, &Share::default()).unwrap();
        assert!(!is_ready(&silent));
        assert_eq!(read(&mut silent, &mut pool), []);
    }

    #[test]
    fn each_share_of_a_memory_port_has_its_own_frames() {
        let (path, mut pool) = (capture(&[0; 10]), Pool::new(8, FRAME).unwrap());
        let steer: Steer = Arc::new(|packet| u32::from(packet.data()[0] % 3 == 0));
        let shares = Share::all(2, &steer, None);
        let mut read = |share| {
            let mut port = MemoryPort::open(Some(&path), share).unwrap();
            super::tests::read(&mut port, &mut pool)
        };
        assert_eq!(read(&shares[0]), [1, 2, 4, 5, 7, 8]);
        assert_eq!(read(&shares[1]), [0, 3, 6, 9]);
    }

    #[test]
    fn replay_port_gives_frames_at_their_times() {
        let (path, mut pool) = (capture(&[1000, 1000, 1200, 1300]), Pool::new(8, FRAME).unwrap());
        let mut port = ReplayPort::open(&path, 2.0, &Share::default()).unwrap();
        let start = Instant::now();
        let mut seen = Vec::new();
        while seen.len() < 4 && start.elapsed() < Duration::from_secs(10) {
            let numbers = read(&mut port, &mut pool);
            let ms = start.elapsed().as_millis();
            seen.extend(numbers.into_iter().map(|number| (number, ms)));
            let mut wait = [PollFd::from_borrowed_fd(port.descriptor(), PollFlags::IN)];
            let second = Timespec { tv_sec: 1, tv_nsec: 0 };
            if seen.len() < 4 {
                assert_eq!(poll(&mut wait, Some(&second)).unwrap(), 1, "{seen:?}");
            }
        }
        assert!(seen.iter().map(|(number, _)| *number).eq(0..4), "{seen:?}");
        let due = [0, 0, 100, 150];
        assert!(seen.iter().zip(due).all(|((_, ms), due)| *ms >= due), "{seen:?}");
        assert_eq!(read(&mut port, &mut pool), []);
    }
}
