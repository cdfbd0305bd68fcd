//! The traffic classes of a chain as data.

use super::count::Elements;
use super::paths::Path;
use crate::synth::Stats;
use braid_ir::residual::{End, Fate, Residual};
use serde::Serialize;

/// The amount of detail that is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Detail {
    /// The largest number of listed paths of each program.
    pub paths: usize,
    /// Whether the texts of the programs are shown.
    pub programs: bool,
}

/// The traffic classes of a chain.
#[derive(Clone, Debug, Serialize)]
pub struct Classes {
    /// The chain's name.
    pub chain: String,
    /// The names of its functions, in chain order.
    pub functions: Vec<String>,
    /// The packets of each interface.
    pub entries: Vec<Entry>,
}

/// Packets of an interface.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The interface.
    pub interface: String,
    /// The native function that packets reach first, if there is one. Then there are no programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
    /// The stream function that packets reach first, if there is one. Then no program is for TCP
    /// packets, because they go to the function's TCP stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// The programs for these packets. Programs with more function visits come first. Each packet
    /// belongs to one program.
    pub programs: Vec<Program>,
}

/// A program and its paths, which are traffic classes.
#[derive(Clone, Debug, Serialize)]
pub struct Program {
    /// The relevant headers that its packets have.
    pub present: Vec<&'static str>,
    /// The relevant headers that its packets lack.
    pub absent: Vec<&'static str>,
    /// The number of possible header sets that have this shape.
    pub shapes: usize,
    /// The largest number of functions that a packet visits.
    pub visits: u32,
    /// The number of blocks of the program.
    pub blocks: usize,
    /// The number of paths through the program's graph, as text because it may be very large. The
    /// paths that packets can take are the program's traffic classes.
    pub classes: String,
    /// The number of blocks where packets are dropped.
    pub drops: usize,
    /// The elements on the longest path when each function works alone.
    pub before: Elements,
    /// The elements on the longest path of the program.
    pub after: Elements,
    /// The work that synthesis saved, over all paths.
    pub saved: Stats,
    /// The first paths that packets can take. Paths with few conditions come first.
    pub paths: Vec<Path>,
    /// The program's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The program.
    #[serde(skip)]
    pub residual: Residual,
}

/// Whether packets are dropped at the end of a block.
pub(super) fn is_drop(end: &End) -> bool {
    matches!(end, End::Exit(exit) if matches!(exit.fate, Fate::Drop { .. }))
}
