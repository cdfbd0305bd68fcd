//! A port that outlasts the failures of its device.

use crate::port::{Ethernet, OpenError, Port, State, Unreceived, Unsent};
use braid_packet::{Frame, Pool};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

/// The time between two checks of the device, and between two attempts to open it.
const PERIOD: Duration = Duration::from_millis(100);

/// How long a device may be busy when it is opened for the first time.
const RELEASE: Duration = Duration::from_millis(500);

/// The numbers of failures of a device.
#[derive(Clone, Copy, Default)]
struct Outages {
    /// The times that the link went down.
    down: u64,
    /// The times that the device was removed.
    missing: u64,
    /// The times that the device was opened again.
    reopened: u64,
}

/// Opens a device.
type Open = Box<dyn FnMut(&mut Pool) -> Result<Box<dyn Port>, OpenError> + Send>;

/// A port whose device may go down, be removed, and be made again. During a failure, nothing is
/// received, and frames to send are refused. When the device is back, the port opens it.
pub struct Lasting {
    open: Open,
    /// `None` while the device is missing.
    inner: Option<Box<dyn Port>>,
    state: State,
    outages: Outages,
    /// Frames that earlier ports of the device have dropped.
    overrun: u64,
    /// The time of the last check of the device, or of the last attempt to open it.
    asked: Instant,
    /// Whether there was an error since then.
    is_doubtful: bool,
    /// A descriptor to wait for while the device is missing. It is never ready.
    never: OwnedFd,
}

impl Lasting {
    /// Opens a device for the first time. Waits for a busy device, but not for long: the kernel
    /// gives a device free some time after the program that used it has ended.
    ///
    /// # Errors
    /// When the device cannot be opened. Later failures are not errors of this port.
    pub fn open(
        pool: &mut Pool,
        mut open: impl FnMut(&mut Pool) -> Result<Box<dyn Port>, OpenError> + Send + 'static,
    ) -> Result<Self, OpenError> {
        let end = Instant::now() + RELEASE;
        let mut inner = loop {
            match open(pool) {
                Err(OpenError::Busy) if Instant::now() < end => thread::sleep(RELEASE / 50),
                opened => break opened?,
            }
        };
        Ok(Self {
            state: inner.state(),
            inner: Some(inner),
            open: Box::new(open),
            outages: Outages::default(),
            overrun: 0,
            asked: Instant::now(),
            is_doubtful: false,
            never: eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?,
        })
    }

    /// Asks for the device's state if it is time, and opens the device if it is back.
    #[cold]
    fn look(&mut self, pool: &mut Pool) {
        let now = Instant::now();
        if !self.is_doubtful && now.duration_since(self.asked) < PERIOD {
            return;
        }
        (self.asked, self.is_doubtful) = (now, false);
        if self.inner.is_none()
            && let Ok(inner) = (self.open)(pool)
        {
            self.inner = Some(inner);
            self.outages.reopened += 1;
        }
        self.ask();
    }

    /// Asks for the device's state, and counts its failures.
    fn ask(&mut self) {
        let state = self.inner.as_mut().map_or(State::Missing, |inner| inner.state());
        match (self.state, state) {
            (State::Up, State::Down) => self.outages.down += 1,
            (State::Up | State::Down, State::Missing) => self.outages.missing += 1,
            _ => {}
        }
        if state == State::Missing
            && let Some(mut inner) = self.inner.take()
        {
            self.overrun += inner.overrun();
        }
        self.state = state;
    }
}

impl Port for Lasting {
    fn receive(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(Unreceived),
    ) -> io::Result<usize> {
        let received = match &mut self.inner {
            Some(inner) => inner.receive(pool, frames, lost),
            None => Ok(0),
        };
        match received {
            Ok(0) => {}
            Ok(count) => return Ok(count),
            Err(_) => self.is_doubtful = true,
        }
        self.look(pool);
        Ok(0)
    }

    fn send(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(usize, Unsent),
    ) {
        let Some(inner) = &mut self.inner else {
            (0..frames.len()).for_each(|place| lost(place, Unsent::Refused));
            frames.drain(..).for_each(|frame| pool.put(frame));
            return;
        };
        let mut is_refused = false;
        inner.send(pool, frames, &mut |place, why| {
            is_refused |= why == Unsent::Refused;
            lost(place, why);
        });
        // If all frames are refused, the device is checked in each period.
        self.is_doubtful |= is_refused && self.state == State::Up;
    }

    fn overrun(&mut self) -> u64 {
        let now = self.inner.as_mut().map_or(0, |inner| inner.overrun());
        std::mem::take(&mut self.overrun) + now
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.inner.as_ref().map_or(self.never.as_fd(), |inner| inner.descriptor())
    }

    fn state(&mut self) -> State {
        self.ask();
        self.state
    }

    fn facts(&self) -> Option<String> {
        self.inner.as_ref()?.facts()
    }

    fn ethernet(&self) -> Option<Ethernet> {
        self.inner.as_ref()?.ethernet()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.inner.as_ref().map_or_else(Vec::new, |inner| inner.notes());
        let Outages { down, missing, reopened } = self.outages;
        let mut note = |count, what: &str| {
            if count > 0 {
                notes.push(format!("{what} {count} {}", if count == 1 { "time" } else { "times" }));
            }
        };
        note(down, "the link went down");
        note(missing, "the device was removed");
        note(reopened, "the device was opened again");
        notes
    }
}
