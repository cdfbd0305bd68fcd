//! The neighbours of an interface: their MAC addresses, and the packets that wait for these.
//!
//! The interface asks for a neighbour when the first packet to it leaves, three times at most, at
//! growing intervals. The neighbour counts as confirmed for a time after its answer. The next
//! packet after this time goes to the same MAC address, and the interface asks again, by a unicast
//! message.

use super::messages::Mac;
use braid_packet::Packet;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// The most neighbours of an interface.
pub(super) const MOST: usize = 4096;
/// The most packets that wait for a neighbour.
pub(super) const MOST_FOR_ONE: usize = 16;
/// The most packets that wait for the neighbours of an interface.
pub(super) const MOST_WAITING: usize = 512;

/// The time for which an answer holds.
pub(super) const CONFIRMED_NS: u64 = 30_000_000_000;
/// The times after the questions to a neighbour at which it counts as silent.
pub(super) const INTERVALS_NS: [u64; 3] = [500_000_000, 1_000_000_000, 2_000_000_000];
/// The time for which packets to a silent neighbour are lost before it is asked again.
pub(super) const SILENT_NS: u64 = 5_000_000_000;

/// The state of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It has answered. The answer is valid until this time.
    Confirmed { until_ns: u64 },
    /// Its MAC address is known, but perhaps not up to date.
    Heard,
    /// It was asked this many times, and will be asked again at this time.
    Asked { times: usize, next_ns: u64 },
    /// It has not answered. It is not asked again before this time.
    Silent { until_ns: u64 },
}

/// A neighbour.
#[derive(Debug)]
pub(super) struct Neighbour {
    pub(super) address: IpAddr,
    pub(super) mac: Option<Mac>,
    pub(super) state: State,
    /// The time of the last packet to it; 0: none.
    used_ns: u64,
    waiting: VecDeque<Packet>,
}

/// How a packet gets to a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// At this MAC address.
    Known(Mac),
    /// At this MAC address, but the neighbour must be asked again.
    Doubtful(Mac),
    /// The neighbour must be asked.
    Unknown,
    /// The neighbour has been asked.
    Asked,
    /// The neighbour has not answered.
    Silent,
}

/// The neighbours of an interface.
#[derive(Debug, Default)]
pub(super) struct Table {
    places: HashMap<IpAddr, usize>,
    neighbours: Vec<Neighbour>,
    /// The neighbour that was looked up last, with its place.
    recent: Option<(IpAddr, usize)>,
    waiting: usize,
    /// Whether a neighbour may be in [`State::Asked`].
    is_asking: bool,
}

impl Table {
    pub(super) fn neighbours(&self) -> &[Neighbour] {
        &self.neighbours
    }

    fn place(&mut self, address: IpAddr) -> Option<usize> {
        if let Some((recent, place)) = self.recent
            && recent == address
        {
            return Some(place);
        }
        let place = *self.places.get(&address)?;
        self.recent = Some((address, place));
        Some(place)
    }

    /// The way in which a packet reaches a neighbour now.
    pub(super) fn way(&mut self, address: IpAddr, now_ns: u64) -> Way {
        let place = self.place(address);
        let Some(neighbour) = place.and_then(|place| self.neighbours.get_mut(place)) else {
            return Way::Unknown;
        };
        neighbour.used_ns = now_ns;
        match (neighbour.mac, neighbour.state) {
            (Some(mac), State::Confirmed { until_ns }) if now_ns < until_ns => Way::Known(mac),
            (Some(mac), State::Asked { .. }) => Way::Known(mac),
            (Some(mac), _) => Way::Doubtful(mac),
            (None, State::Asked { .. }) => Way::Asked,
            (None, State::Silent { until_ns }) if now_ns < until_ns => Way::Silent,
            (None, _) => Way::Unknown,
        }
    }

    /// Records that a neighbour is asked now. Returns the number of packets that are lost because
    /// an older neighbour is removed.
    #[expect(clippy::indexing_slicing, reason = "`place_for` gives a place of a neighbour")]
    pub(super) fn ask(&mut self, address: IpAddr, now_ns: u64) -> usize {
        let (place, lost) = self.place_for(address, now_ns);
        let next_ns = now_ns.saturating_add(INTERVALS_NS[0]);
        self.neighbours[place].state = State::Asked { times: 1, next_ns };
        self.is_asking = true;
        lost
    }

    /// Makes a packet wait for a neighbour that was asked. Returns the number of packets that are
    /// lost because too many wait.
    pub(super) fn wait(&mut self, address: IpAddr, packet: Packet) -> usize {
        let is_full = self.waiting >= MOST_WAITING;
        let place = self.place(address);
        let Some(neighbour) = place.and_then(|place| self.neighbours.get_mut(place)) else {
            return 1;
        };
        let waiting = &mut neighbour.waiting;
        if waiting.len() >= MOST_FOR_ONE || is_full && !waiting.is_empty() {
            // Old packets are less useful to their receivers than new ones.
            waiting.pop_front();
            waiting.push_back(packet);
            return 1;
        }
        if is_full {
            return 1;
        }
        waiting.push_back(packet);
        self.waiting += 1;
        0
    }

    /// Records a neighbour's MAC address. `is_new` says whether to add a neighbour that is not
    /// known yet. Returns the packets that waited for it, and the number of packets that are lost
    /// because an older neighbour is removed.
    #[expect(clippy::indexing_slicing, reason = "`place_for` gives a place of a neighbour")]
    pub(super) fn learn(
        &mut self,
        address: IpAddr,
        mac: Mac,
        state: State,
        is_new: bool,
    ) -> (VecDeque<Packet>, usize) {
        if !is_new && !self.places.contains_key(&address) {
            return (VecDeque::new(), 0);
        }
        let (place, lost) = self.place_for(address, 0);
        let neighbour = &mut self.neighbours[place];
        let is_same = neighbour.mac == Some(mac);
        neighbour.mac = Some(mac);
        // Messages of other hosts about a known MAC address neither confirm it nor make it
        // doubtful.
        let is_known = is_same && !matches!(neighbour.state, State::Silent { .. });
        if state != State::Heard || !is_known {
            neighbour.state = state;
        }
        let waited = std::mem::take(&mut neighbour.waiting);
        self.waiting -= waited.len();
        (waited, lost)
    }

    /// Whether a neighbour is known, with which MAC address, and how.
    pub(super) fn known(&self, address: IpAddr) -> Option<(Option<Mac>, State)> {
        let neighbour = self.neighbours.get(*self.places.get(&address)?)?;
        Some((neighbour.mac, neighbour.state))
    }

    /// The place of a neighbour, which is added if it is not known. If there is no room, the
    /// neighbour that was unused for the longest time is removed; neighbours without a MAC address
    /// are removed first.
    fn place_for(&mut self, address: IpAddr, used_ns: u64) -> (usize, usize) {
        if let Some(place) = self.place(address) {
            return (place, 0);
        }
        let mut lost = 0;
        if self.neighbours.len() >= MOST {
            let rank = |(_, one): &(usize, &Neighbour)| (one.mac.is_some(), one.used_ns);
            let oldest = self.neighbours.iter().enumerate().min_by_key(rank);
            if let Some((oldest, _)) = oldest {
                lost = self.forget(oldest);
            }
        }
        let place = self.neighbours.len();
        let state = State::Silent { until_ns: 0 };
        let waiting = VecDeque::new();
        self.neighbours.push(Neighbour { address, mac: None, state, used_ns, waiting });
        self.places.insert(address, place);
        (place, lost)
    }

    /// Removes a neighbour. Returns the number of packets that waited for it.
    fn forget(&mut self, place: usize) -> usize {
        let gone = self.neighbours.swap_remove(place);
        self.places.remove(&gone.address);
        if let Some(moved) = self.neighbours.get(place) {
            self.places.insert(moved.address, place);
        }
        self.recent = None;
        self.waiting -= gone.waiting.len();
        gone.waiting.len()
    }

    /// Visits neighbours that must be asked again. `ask` gets a neighbour's address and, if this is
    /// known, its MAC address, and returns whether it was asked. Returns the packets that are lost
    /// because their neighbour has not answered.
    #[expect(
        clippy::indexing_slicing,
        reason = "after the last interval, `times` starts again at 0"
    )]
    pub(super) fn advance(
        &mut self,
        now_ns: u64,
        mut ask: impl FnMut(IpAddr, Option<Mac>) -> bool,
    ) -> Vec<Packet> {
        let mut lost = Vec::new();
        if !std::mem::take(&mut self.is_asking) {
            return lost;
        }
        for neighbour in &mut self.neighbours {
            let State::Asked { times, next_ns } = &mut neighbour.state else { continue };
            if now_ns < *next_ns {
                self.is_asking = true;
                continue;
            }
            if *times == INTERVALS_NS.len() && neighbour.mac.is_none() {
                self.waiting -= neighbour.waiting.len();
                lost.extend(neighbour.waiting.drain(..));
                let until_ns = now_ns.saturating_add(SILENT_NS);
                neighbour.state = State::Silent { until_ns };
                continue;
            }
            if *times == INTERVALS_NS.len() {
                // It may have another MAC address by now.
                (*times, neighbour.mac) = (0, None);
            }
            if ask(neighbour.address, neighbour.mac) {
                *next_ns = now_ns.saturating_add(INTERVALS_NS[*times]);
                *times += 1;
            }
            self.is_asking = true;
        }
        lost
    }

    /// The number of packets that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Removes all packets that wait. Returns their number.
    pub(super) fn clear_waiting(&mut self) -> usize {
        self.neighbours.iter_mut().for_each(|neighbour| neighbour.waiting.clear());
        std::mem::take(&mut self.waiting)
    }
}

impl State {
    /// The state of a neighbour that has answered now.
    pub(super) fn confirmed(now_ns: u64) -> Self {
        State::Confirmed { until_ns: now_ns.saturating_add(CONFIRMED_NS) }
    }

    /// The state's name.
    pub(super) fn name(self, now_ns: u64) -> &'static str {
        match self {
            State::Confirmed { until_ns } if now_ns < until_ns => "confirmed",
            State::Confirmed { .. } | State::Heard => "doubtful",
            State::Asked { .. } => "asked",
            State::Silent { .. } => "silent",
        }
    }
}
