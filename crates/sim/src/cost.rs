//! Costs: of functions, and of moving packets between threads.

use serde::Serialize;
use std::iter::Sum;
use std::ops::Add;

/// The time of a function, a stage or a chain.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Cost {
    /// The time of a call, whatever its number of packets (ns).
    pub call_ns: f64,
    /// The time of each packet of the call (ns).
    pub packet_ns: f64,
}

/// Calls that were measured together.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Calls {
    /// Their number.
    pub calls: f64,
    /// The packets of all of them.
    pub packets: f64,
    /// Their time (ns).
    pub nanos: f64,
}

impl Cost {
    /// A cost of each packet alone (ns).
    #[must_use]
    pub const fn of_packet(packet_ns: f64) -> Self {
        Self { call_ns: 0.0, packet_ns }
    }

    /// The cost that explains calls with few packets and calls with many. If it cannot tell calls
    /// from packets, the packets have all of it.
    #[must_use]
    pub fn between(few: Calls, many: Calls) -> Self {
        let each =
            |calls: Calls| [calls.calls, calls.nanos].map(|sum| sum / calls.packets.max(1.0));
        let ([few_calls, few_ns], [many_calls, many_ns]) = (each(few), each(many));
        let difference = few_calls - many_calls;
        if difference < 0.1 {
            return Self::of_packet(many_ns);
        }
        let call_ns = ((few_ns - many_ns) / difference).clamp(0.0, many_ns / many_calls);
        Self { call_ns, packet_ns: many_ns - call_ns * many_calls }
    }

    /// The cost that explains the time of a call with one packet and of a call with 8 (ns).
    #[must_use]
    pub fn line(one_ns: f64, eight_ns: f64) -> Self {
        let packet_ns = ((eight_ns - one_ns) / 7.0).max(0.0);
        Self { call_ns: (one_ns - packet_ns).max(0.0), packet_ns }
    }

    /// The time of a call with some packets (ns). A share of a packet counts as such.
    #[must_use]
    pub fn call(self, packets: f64) -> f64 {
        self.call_ns + self.packet_ns * packets
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { call_ns: self.call_ns + other.call_ns, packet_ns: self.packet_ns + other.packet_ns }
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// What the engine `parallel` costs on a machine besides the work of the functions. A bundle is a
/// group of up to 8 packets.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Overheads {
    /// The hub's work for a burst (ns).
    pub burst_ns: f64,
    /// The hub's work for a bundle (ns).
    pub bundle_ns: f64,
    /// The hub's work for a packet (ns).
    pub packet_ns: f64,
    /// The time until another thread sees a bundle on its ring (ns).
    pub hop_ns: f64,
    /// What a thread does more for a bundle that another thread had (ns).
    pub taken_ns: f64,
    /// What a thread does more for a packet that another thread had (ns).
    pub moved_ns: f64,
    /// Copying and merging a bundle (ns).
    pub copy_ns: f64,
    /// Copying and merging the headers of a packet (ns).
    pub copied_ns: f64,
    /// What a copy of a whole packet takes more, for each byte of the packet (ns).
    pub byte_ns: f64,
    /// Merging a written part of a packet (ns).
    pub write_ns: f64,
    /// The time after which a thread that finds no work sleeps (ns).
    pub sleeps_after_ns: f64,
    /// The time until a thread that sleeps goes on (ns).
    pub wake_ns: f64,
    /// What waking a thread takes the one that wakes it (ns).
    pub unpark_ns: f64,
}
