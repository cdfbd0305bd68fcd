//! Flow records: the fast path of packets whose flow has a record (SpeedyBox, made automatic).
//!
//! If a packet's flow has a record, one lookup, one check and one rewrite replace the whole chain,
//! however many functions it has. Each packet takes one of three paths:
//! - **hit** (`fast_path.rs`): the packet passes the guards of its flow's record, and the record
//!   has the same effects as the chain;
//! - **guard failure** (`slow_path.rs`): a record exists, but the packet fails its guards, or the
//!   record is outdated, or something is due. The program runs;
//! - **miss** (`slow_path.rs`): no record exists. The program runs. The cache tries to make a
//!   record for the flow's fourth packet, or for a later one while records do not pay
//!   (`payback.rs`).
//!
//! Where a function changes a packet's outer headers, a packet that ran programs up to there may
//! take a record for the rest of its path.
//!
//! The specialiser (`specialiser.rs`) makes records. It runs the program without effect, and writes
//! down the program's actions and the entries, parameters and bits of the packet on which they
//! depend. Bits of the packet become guards (`guard.rs`). Records are [`braid_state::Dependents`]
//! of the entries (`observer.rs`): a record ends when an entry that it depends on changes.
//!
//! The crate sees the engine only through two traits, [`Programs`] and [`Functions`].
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod absences;
mod absent_option;
mod basis;
mod batch;
mod bindings;
mod bound;
mod cache;
mod computed;
mod counted;
mod counts;
mod dynamic;
mod dynamic_values;
mod effects;
mod entry_links;
mod entry_use;
mod explain;
mod extractors;
mod fast_path;
mod filter;
mod findings;
mod follow;
mod freeing;
mod fuel;
mod goal;
mod guard;
mod headers;
mod host;
mod key;
mod listing;
mod mutants;
mod native_calls;
mod new_record;
mod observer;
mod obstacle;
mod operations;
mod outer;
mod path;
mod payback;
mod peel;
mod prefix;
mod recording;
mod records;
mod registers;
mod sample;
mod script;
mod scripts;
mod settling;
mod slab;
mod slow_path;
mod specialiser;
mod state;
mod subpaths;
mod template;
mod template_counts;
mod tunnel_end;
mod uses;
mod value_dependency;
mod wrapped;

pub use basis::{Basis, Changed, Part};
pub use batch::BATCH;
pub use bindings::end_changed;
pub use cache::{FlowCache, Flows};
pub use counted::Counted;
pub use effects::{OuterHeaders, Publication, SideEffects, Splice};
pub use entry_use::{Bound, Change, Update};
pub use explain::{PacketPath, Reason, Taken, foresee};
pub use fast_path::Rest;
pub use findings::LEAST_IN_PART;
pub use goal::Onward;
pub use guard::{Guard, Number, WIRE};
pub use host::{BlockEnd, Cut, Functions, Host, Programs, State};
pub use key::SharedBytes;
pub use listing::{Dependency, FlowRecord, FlowTable, FlowTemplate, Missing};
#[cfg(feature = "mutants")]
pub use mutants::RECORD_MUTANTS;
#[doc(hidden)]
pub use mutants::RecordMutant;
pub use obstacle::{NoRecording, Obstacle, Stopped, Varying};
pub use path::{Native, Path, Subpath, Through};
pub use records::{RecordCounters, Records};
