//! Stages (NFP §5): the functions of a chain, divided among threads, and the ways of packets
//! through them.

use super::{Node, Part, Tables};
use crate::chain::Chain;
use serde::Serialize;

/// The first character of the names of tags that log writes. The language has no such names.
pub const LOG: char = '\u{1}';

/// A chain that is divided into stages.
#[derive(Clone, Debug, Default)]
pub struct Stages {
    /// The stages, in the order of the chain.
    pub stages: Vec<Stage>,
    /// The ways of packets through the stages. A route's number is its place in this list.
    pub routes: Vec<Route>,
    /// What happens to packets that enter by each interface.
    pub entries: Vec<Entry>,
    /// Functions that are one stage although they could be several, and why.
    pub together: Vec<Together>,
}

/// Functions that one thread runs, with the tables that they need.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The functions, by number.
    pub functions: Vec<u16>,
    /// The chain that the stage's engine runs. It has all functions of the whole chain, by the same
    /// numbers, but only those of the stage do anything. A packet that goes on to another stage
    /// leaves by the interface behind the last one of the whole chain.
    pub chain: Chain,
    /// The parts of packets whose writes its chain logs, each in the tag [`Log::name`].
    pub logged: Vec<Part>,
    /// Whether due work must run separately, in front of each packet: it publishes events, and so
    /// do other stages.
    pub is_apart: bool,
}

/// The way of packets through stages.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Route {
    /// The stages, in the order of the path. A function's number in the graph is a place in this
    /// list.
    pub stages: Vec<usize>,
    /// The graph of the stages.
    pub root: Node,
    /// The tables of the graph.
    pub tables: Tables,
}

/// What happens to packets that enter by an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// They are lost, because no link leads onward.
    Unlinked,
    /// They leave by this interface.
    Leaves(u16),
    /// They take a route.
    Routes {
        /// The route of most packets, which follows the graph.
        graph: usize,
        /// The route of packets that the capture has cut, of malformed packets and of fragments: in
        /// them, a checksum may be where the graph expects the payload, and functions may fault.
        sequence: usize,
    },
}

/// Functions that form one stage.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Together {
    /// The functions, by number. Without any, all functions of the chain.
    pub functions: Vec<u16>,
    /// The reason.
    pub why: Why,
}

/// The reason why functions are one stage.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The engine gives packets their workers.
    Workers,
    /// The function may hold packets.
    Holds(u16),
    /// Packets may come back to a function.
    Circle,
    /// A packet may cause more visits than the hop limit allows.
    Hops,
    /// The function sends packets to the others, besides the packet itself or instead of it.
    Sends(u16),
    /// `Priority` relates them, or they are between such functions.
    Priority,
    /// One takes events of another.
    Handlers,
    /// They publish events at times of their own, and the events need one order.
    Events,
    /// Other functions of the stage are on both sides of them.
    Between,
    /// A merger could not put together what they do side by side.
    Merge,
    /// There are fewer threads.
    Threads,
    /// The analysis refuses the chain.
    Unfit(String),
}

/// The tag that logs a stage's writes to a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Log;

impl Log {
    /// The name of the tag.
    #[must_use]
    pub fn name(stage: usize, part: &Part) -> String {
        format!("{LOG}{stage} {part}")
    }
}

/// A packet's metadata (NFP §5.1): the number of its route (the paper's match identifier, 20 bits),
/// the number of the packet (40 bits), and the version (4 bits).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Meta(u64);

impl Meta {
    /// The number of routes that fit.
    pub const ROUTES: usize = 1 << 20;
    /// The number of versions that fit. Version 0 is none.
    pub const VERSIONS: u32 = 1 << 4;

    /// The metadata of a packet. Numbers that do not fit lose their highest bits.
    #[must_use]
    pub const fn new(route: u32, packet: u64, version: u8) -> Self {
        let route = (route as u64 & ((1 << 20) - 1)) << 44;
        let packet = (packet & ((1 << 40) - 1)) << 4;
        Meta(route | packet | (version as u64 & 15))
    }

    /// The number of the route.
    #[must_use]
    pub const fn route(self) -> usize {
        (self.0 >> 44) as usize
    }

    /// The number of the packet. It begins again after 2^40 packets.
    #[must_use]
    pub const fn packet(self) -> u64 {
        (self.0 >> 4) & ((1 << 40) - 1)
    }

    /// The version.
    #[must_use]
    pub const fn version(self) -> u32 {
        (self.0 & 15) as u32
    }

    /// The same packet in another version.
    #[must_use]
    pub const fn of_version(self, version: u32) -> Self {
        Meta(self.0 & !15 | version as u64 & 15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_holds_numbers_up_to_their_limits() {
        let most = Meta::new((1 << 20) - 1, (1 << 40) - 1, 15);
        assert_eq!(
            (most.route(), most.packet(), most.version()),
            ((1 << 20) - 1, (1 << 40) - 1, 15)
        );
        let one = Meta::new(3, 1 << 40, 2).of_version(7);
        assert_eq!((one.route(), one.packet(), one.version()), (3, 0, 7));
    }
}
