//! Bundles: packets in sequence that take the same route. They are the unit that moves between
//! threads.

use crate::share::What;
use braid_ir::engine::{Event, Outputs};
use braid_ir::service_graph::Extent;
use braid_ir::service_graph::stages::Meta;
use braid_packet::frame::SPREAD_FRAME;
use braid_packet::{Burst, Packet, Pool, Reached};
use smallvec::SmallVec;

/// The place where a bundle goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// A stage, by number.
    Stage(usize),
    /// A merger of the bundle's route, by number.
    Merger(usize),
    /// The end of the route.
    End,
}

/// Packets in sequence that take the same route, in one version. What most bundles need lies in the
/// bundle itself: each further cache line would cost a thread some 60 ns.
pub(super) struct Bundle {
    /// The metadata of the first packet.
    pub(super) meta: Meta,
    /// The number of the burst, and the place of the last packet that the bundle had at first.
    pub(super) burst_number: u64,
    pub(super) last: u16,
    /// The stages that have seen that last packet, a bit each.
    pub(super) seen: u64,
    /// For each stage of the route, the number of bundles that it gets before this one.
    pub(super) turns: SmallVec<[u64; 8]>,
    /// The packets that are still on the way.
    pub(super) burst: Burst,
    /// The place of each of these packets in the whole burst. Packets that are missing are nil.
    pub(super) places: SmallVec<[u16; 16]>,
    /// The packets that are not on the way any more.
    pub(super) ended: Vec<(u16, Reached, Packet)>,
    /// The packets that leave the chain behind the next merger: the place of each, and its
    /// interface.
    pub(super) exits: Vec<(u16, u16)>,
    /// What functions have sent and published.
    pub(super) outs: Vec<Out>,
    /// Where the bundle goes.
    pub(super) target: Target,
    /// The thread that has made it, if it is a copy: 0 is the hub, and others are stages.
    pub(super) maker: usize,
}

/// What moves between threads. The bundle stays where it is.
pub(super) type Handle = Box<Bundle>;

/// A packet or an event that left by itself.
pub(super) struct Out {
    /// The first place of the whole burst for which it can be due.
    pub(super) after: u16,
    /// The packet that it comes from, unless it was due before.
    pub(super) own: Option<u16>,
    /// Whether it was due before that packet.
    pub(super) is_due: bool,
    /// The place of its stage in the route.
    pub(super) order: usize,
    pub(super) what: What,
}

impl Bundle {
    /// A bundle remembers for this many stages whether they have seen its last packet.
    pub(super) const STAGES: usize = u64::BITS as usize;

    pub(super) fn new() -> Self {
        Self {
            meta: Meta::default(),
            burst_number: 0,
            last: 0,
            seen: 0,
            turns: SmallVec::new(),
            burst: Burst::new(),
            places: SmallVec::new(),
            ended: Vec::new(),
            exits: Vec::new(),
            outs: Vec::new(),
            target: Target::End,
            maker: 0,
        }
    }

    /// Removes everything except the burst.
    pub(super) fn clear(&mut self) {
        self.turns.clear();
        self.places.clear();
        self.ended.clear();
        self.exits.clear();
        self.outs.clear();
    }

    /// Takes the packets that leave the chain out of the packets that go on.
    pub(super) fn let_out(&mut self) {
        if self.exits.is_empty() {
            return;
        }
        let places = std::mem::take(&mut self.places);
        let packets: Vec<Packet> = self.burst.drain().collect();
        for (place, packet) in places.into_iter().zip(packets) {
            match self.exits.iter().find(|(of, _)| *of == place) {
                Some((_, interface)) => {
                    self.ended.push((place, Reached::Interface(*interface), packet));
                }
                None => {
                    self.burst.push(packet);
                    self.places.push(place);
                }
            }
        }
        self.exits.clear();
    }
}

/// Makes copies of bundles, in memory that is taken when it is needed first.
pub(super) struct Copier {
    maker: usize,
    pool: Option<Pool>,
    spare: Vec<Handle>,
}

/// The number of frames of a copier. Further copies have memory of their own.
const FRAMES: u32 = 256;

impl Copier {
    pub(super) fn new(maker: usize) -> Self {
        Self { maker, pool: None, spare: Vec::new() }
    }

    /// Takes a copy back that is used no more.
    pub(super) fn take_back(&mut self, bundle: Handle) {
        self.spare.push(bundle);
    }

    /// A copy of a bundle in another version.
    pub(super) fn copy(&mut self, from: &mut Bundle, version: u32, extent: Extent) -> Handle {
        let mut copy = self.spare.pop().unwrap_or_else(|| Box::new(Bundle::new()));
        if self.pool.is_none() {
            self.pool = Pool::new(FRAMES, SPREAD_FRAME);
        }
        copy.clear();
        match &mut self.pool {
            Some(pool) => copy.burst.recycle(pool),
            None => copy.burst.clear(),
        }
        let (packets, layouts) = from.burst.parsed();
        for (packet, layout) in packets.iter().zip(layouts) {
            let bytes = match extent {
                Extent::Full => packet.data(),
                Extent::Headers => {
                    packet.data().get(..layout.payload_offset()).unwrap_or(packet.data())
                }
            };
            let Packet { link, time_ns, wire_len, .. } = *packet;
            match &mut self.pool {
                Some(pool) => copy.burst.add(link, time_ns, bytes, wire_len, pool),
                None => copy.burst.push(Packet::snapped(link, time_ns, bytes, wire_len)),
            }
            if let Some(last) = copy.burst.last_mut() {
                last.ingress = packet.ingress;
                last.tags.clone_from(&packet.tags);
            }
        }
        copy.places.clone_from(&from.places);
        copy.turns.clone_from(&from.turns);
        (copy.burst_number, copy.last, copy.seen) = (from.burst_number, from.last, from.seen);
        copy.meta = from.meta.of_version(version);
        copy.maker = self.maker;
        copy
    }
}

/// Collects what an engine sends and publishes.
pub(super) struct Gathered<'a> {
    pub(super) places: &'a [u16],
    /// The first place of the whole burst that no packet before has had.
    pub(super) after: u16,
    pub(super) order: usize,
    pub(super) is_due: bool,
    /// The place in the bundle of the first packet that the engine sees.
    pub(super) first: usize,
    pub(super) at: usize,
    pub(super) outs: &'a mut Vec<Out>,
}

impl Gathered<'_> {
    fn push(&mut self, what: What) {
        let before = self.at.checked_sub(1).and_then(|before| self.places.get(before));
        let after = before.map_or(self.after, |place| place + 1);
        let own = self.places.get(self.at).copied();
        let Self { order, is_due, .. } = *self;
        self.outs.push(Out { after, own, is_due, order, what });
    }
}

impl Outputs for Gathered<'_> {
    fn at(&mut self, place: usize) {
        self.at = self.first + place;
    }

    fn packet(&mut self, interface: u16, packet: Packet) {
        self.push(What::Packet(interface, packet));
    }

    fn event(&mut self, event: Event) {
        self.push(What::Event(event));
    }
}
