//! A port whose frames come from a capture, to run a chain at full speed without a network, or with
//! the capture's timing. Frames that are sent are dropped.

use super::Share;
use super::timer::Timer;
use crate::capture::CaptureReader;
use crate::port::{OpenError, Port, Unreceived, Unsent};
use crate::source::PacketSource;
use braid_packet::{BURST, Frame, Link, Pool};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// The most bytes that are loaded.
const MOST: usize = 1 << 30;

/// The frames of a capture, in memory.
#[derive(Default)]
struct Stored {
    bytes: Vec<u8>,
    frames: Vec<At>,
    /// The number of packets that the capture has cut short.
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
        let text = format!("{} packets that the capture has cut short were left out", self.cut);
        Vec::from_iter((self.cut > 0).then_some(text))
    }
}

/// Adds a copy of a frame to `frames`.
fn give(bytes: &[u8], pool: &mut Pool, frames: &mut Vec<Frame>, lost: &mut dyn FnMut(Unreceived)) {
    let Some(frame) = pool.take_to(frames) else { return lost(Unreceived::NoMemory) };
    if !frame.push(bytes) {
        pool.put(std::mem::replace(frame, Frame::of(bytes)));
    }
}

/// The times at which a port gives its frames.
enum Pace {
    /// Again and again, as fast as they are read.
    Endless,
    /// Once, at the times that they had from the first one on.
    Timed {
        /// The factor by which time passes faster than in the capture.
        speed: f64,
        /// The time of the first packet: when the port was read first.
        start: Option<Instant>,
    },
}

/// Gives the frames of a capture.
pub struct CapturePort {
    stored: Stored,
    next: usize,
    pace: Pace,
    /// Ready when a frame is due.
    due: Timer,
}

impl CapturePort {
    /// Loads a capture, or the part of it that a share gets, to give its frames again and again.
    /// Without a capture, nothing arrives.
    ///
    /// # Errors
    /// The capture cannot be read, has no Ethernet frames, or is too large.
    pub fn endless(path: Option<&Path>, share: &Share) -> Result<Self, OpenError> {
        let stored = path.map_or(Ok(Stored::default()), |path| Stored::load(path, share))?;
        Self::of(stored, Pace::Endless)
    }

    /// Loads a capture, or the part of it that a share gets, to give each frame once at its time.
    /// With a speed of 2, time passes twice as fast as in the capture.
    ///
    /// # Errors
    /// The capture cannot be read, has no Ethernet frames, or is too large.
    pub fn timed(path: &Path, speed: f64, share: &Share) -> Result<Self, OpenError> {
        Self::of(Stored::load(path, share)?, Pace::Timed { speed, start: None })
    }

    fn of(stored: Stored, pace: Pace) -> Result<Self, OpenError> {
        let due = Timer::new()?;
        if !stored.frames.is_empty() {
            due.set(Duration::ZERO)?;
        }
        Ok(Self { stored, next: 0, pace, due })
    }
}

impl Port for CapturePort {
    fn receive(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(Unreceived),
    ) -> io::Result<usize> {
        let Self { stored, next, pace, due } = self;
        let mut count = 0;
        while count < BURST.min(stored.frames.len()) {
            let Some(at) = stored.frames.get(*next) else {
                due.stop()?;
                break;
            };
            if let Pace::Timed { speed, start } = pace {
                let passed = start.get_or_insert_with(Instant::now).elapsed();
                let time = at.time.div_f64(*speed);
                if time > passed {
                    due.set(time - passed)?;
                    break;
                }
            }
            give(stored.frame(at), pool, frames, lost);
            (*next, count) = (*next + 1, count + 1);
            if matches!(pace, Pace::Endless) && *next == stored.frames.len() {
                *next = 0;
            }
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
        self.due.descriptor()
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
    use rustix::time::Timespec;
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
    fn endless_port_gives_its_frames_again_and_again() {
        let (path, mut pool) = (capture(&[5, 6, 7]), Pool::new(8, FRAME).unwrap());
        let mut port = CapturePort::endless(Some(&path), &Share::default()).unwrap();
        assert!(is_ready(&port));
        assert_eq!(read(&mut port, &mut pool), [0, 1, 2]);
        assert_eq!(read(&mut port, &mut pool), [0, 1, 2]);
        let mut silent = CapturePort::endless(None, &Share::default()).unwrap();
        assert!(!is_ready(&silent));
        assert_eq!(read(&mut silent, &mut pool), []);
    }

    #[test]
    fn each_share_of_a_port_has_its_own_frames() {
        let (path, mut pool) = (capture(&[0; 10]), Pool::new(8, FRAME).unwrap());
        let steer: Steer = Arc::new(|packet| u32::from(packet.data()[0] % 3 == 0));
        let shares = Share::all(2, &steer, None);
        let mut read = |share| {
            let mut port = CapturePort::endless(Some(&path), share).unwrap();
            super::tests::read(&mut port, &mut pool)
        };
        assert_eq!(read(&shares[0]), [1, 2, 4, 5, 7, 8]);
        assert_eq!(read(&shares[1]), [0, 3, 6, 9]);
    }

    #[test]
    fn timed_port_gives_frames_at_their_times() {
        let (path, mut pool) = (capture(&[1000, 1000, 1200, 1300]), Pool::new(8, FRAME).unwrap());
        let mut port = CapturePort::timed(&path, 2.0, &Share::default()).unwrap();
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
        assert!(!is_ready(&port), "nothing is left to wait for");
    }
}
