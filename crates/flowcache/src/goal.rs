//! The destination of a path's packets and of their copies.

use crate::counted::Counted;
use crate::host::Programs;
use crate::path::{Path, Subpath};
use braid_ir::engine::Outputs;
use braid_ir::graph::{Graph, port};
use braid_ir::residual::{End, Exit, Fate};
use braid_ir::walk::{At, Reached, onward};
use braid_packet::Packet;

/// The destination of a path's packets and of their copies.
#[derive(Debug)]
pub(crate) struct Goal {
    pub(crate) reached: Reached,
    /// Interfaces by which copies leave, in order.
    pub(crate) copies: Vec<u16>,
    /// The interface by which the packet leaves, if no program's counter counts it there.
    pub(crate) leaves: Option<u16>,
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

    /// The goal of a path. `at` is the place of the packets after the last subpath. `None` unless
    /// all copies leave by interfaces, and the packets leave by an interface or end.
    #[expect(clippy::indexing_slicing, reason = "a subpath names a block of its program")]
    pub(crate) fn of<P: Programs>(
        path: &Path,
        at: Option<At>,
        (programs, graph): (&P, &Graph),
    ) -> Option<Self> {
        let copies = Vec::new();
        let Some(Subpath::Program(through)) = path.subpaths.last() else {
            return match at? {
                At::End(reached) => Some(Self { reached, copies, leaves: None }),
                At::Leaves(interface) => {
                    let (reached, leaves) = (Reached::Interface(interface), Some(interface));
                    Some(Self { reached, copies, leaves })
                }
                At::Point(_) | At::Unlinked => None,
            };
        };
        let (program, block) = (through.program as usize, through.block as usize);
        let backward = programs.end(program, block).backward;
        let leaves = |node, dest| match onward(graph.next(node, port(dest, backward))) {
            At::Leaves(interface) => Some(interface),
            _ => None,
        };
        let copies = path.effects.copies.iter().map(|(node, dest)| leaves(*node, *dest));
        let mut copies: Vec<u16> = copies.collect::<Option<_>>()?;
        if let End::Exit(Exit { fate: Fate::Output { node, ports }, .. }) =
            &programs.residual(program)?.blocks[block].end
        {
            let (last, others) = ports.split_last()?;
            let others = others.iter().map(|dest| leaves(*node, *dest));
            copies.extend(others.collect::<Option<Vec<u16>>>()?);
            let interface = leaves(*node, *last)?;
            let reached = Reached::Interface(interface);
            return Some(Self { reached, copies, leaves: Some(interface) });
        }
        match at? {
            At::End(reached) => Some(Self { reached, copies, leaves: None }),
            _ => None,
        }
    }
}
