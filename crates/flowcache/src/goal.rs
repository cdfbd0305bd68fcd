//! The destination of a path's packets and of their copies.

use crate::counted::Counted;
use crate::host::Programs;
use crate::path::{Path, Subpath};
use braid_ir::engine::Outputs;
use braid_ir::graph::{Graph, port};
use braid_ir::residual::{End, Exit, Fate, Point};
use braid_ir::walk::{At, Reached, onward};
use braid_packet::Packet;

/// The destination of a path's packets and of their copies.
#[derive(Debug)]
pub(crate) struct Goal {
    /// Where the packets end. Without meaning if they go on.
    pub(crate) reached: Reached,
    /// Interfaces by which copies leave, in order.
    pub(crate) copies: Vec<u16>,
    /// The interface by which the packet leaves, if no program's counter counts it there.
    pub(crate) leaves: Option<u16>,
    /// Where the packets go on, if the record contains only a part of their path.
    pub(crate) onward: Option<Onward>,
}

/// Where a packet goes on that has taken a record for a part of its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Onward {
    /// The point.
    pub point: Point,
    /// The number of functions that the packet has visited.
    pub hops: u32,
    /// Whether there may be another record from this point on. If not, the function at the point
    /// does what no record contains.
    pub looks: bool,
}

/// The end of a path in front of a function that does what no record contains.
#[derive(Clone, Copy)]
pub(crate) struct PathEnd {
    /// The function.
    pub(crate) node: u16,
    /// The program that covers the function behind others. The path follows the program that ends
    /// in front of the function instead.
    pub(crate) program: Option<u32>,
}

impl Goal {
    /// Sends copies of a packet, which has all of the record's changes, and counts the copies and
    /// the packet.
    pub(crate) fn send(&self, packet: &Packet, counted: &mut Counted, out: &mut dyn Outputs) {
        for interface in &self.copies {
            counted.copy(*interface);
            out.packet(*interface, packet.clone());
        }
        if let Some(interface) = self.leaves {
            counted.leave(interface);
        }
    }

    /// The goal of a path. `at` is the place of the packets after the last subpath, where they have
    /// visited `hops` functions; `looks` is as in [`Onward`]. `None` unless all copies leave by
    /// interfaces.
    #[expect(clippy::indexing_slicing, reason = "a subpath names a block of its program")]
    pub(crate) fn of<P: Programs>(
        path: &Path,
        (mut at, hops, looks): (Option<At>, u32, bool),
        (programs, graph): (&P, &Graph),
    ) -> Option<Self> {
        let mut copies = Vec::new();
        if let Some(Subpath::Program(through)) = path.subpaths.last() {
            let (program, block) = (through.program as usize, through.block as usize);
            let backward = programs.end(program, block).backward;
            let place = |node, dest| onward(graph.next(node, port(dest, backward)));
            let leaves = |node, dest| match place(node, dest) {
                At::Leaves(interface) => Some(interface),
                _ => None,
            };
            for (node, dest) in &path.effects.copies {
                copies.push(leaves(*node, *dest)?);
            }
            if let End::Exit(Exit { fate: Fate::Output { node, ports }, .. }) =
                &programs.residual(program)?.blocks[block].end
            {
                let (last, others) = ports.split_last()?;
                for dest in others {
                    copies.push(leaves(*node, *dest)?);
                }
                at = Some(place(*node, *last));
            }
        }
        let (reached, leaves, onward) = match at? {
            At::End(reached) => (reached, None, None),
            At::Leaves(interface) => (Reached::Interface(interface), Some(interface), None),
            At::Point(point) => (Reached::Ended, None, Some(Onward { point, hops, looks })),
            At::Unlinked => return None,
        };
        Some(Self { reached, copies, leaves, onward })
    }
}
