//! Flow records: the fast path of packets whose flow is known (SpeedyBox, made automatic).
#![forbid(unsafe_code)]

mod absences;
mod basis;
mod batch;
mod batches;
mod bindings;
mod bound;
mod cache;
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
mod field_names;
mod filter;
mod findings;
mod flow_table;
mod follow;
mod fuel;
mod goal;
mod guard;
mod headers;
mod host;
mod key;
mod listing;
mod mutants;
mod native_calls;
mod observer;
mod path;
mod publish;
mod records;
mod sample;
mod segments;
mod slab;
mod slow_path;
mod specialiser;
mod state;
mod tags;
mod template;
mod template_counts;

pub use basis::{Basis, Changed, Part};
pub use batch::BATCH;
pub use batches::Payload;
pub use bindings::end_changed;
pub use cache::{FlowCache, Flows};
pub use counted::Counted;
pub use effects::Splice;
pub use entry_use::{Bound, Change, Update};
pub use explain::{PacketPath, Taken, foresee};
pub use field_names::{FlowField, FlowGuard};
pub use flow_table::{FlowEnd, FlowNative, FlowPart, FlowRecord, FlowTable, FlowTag, FlowTemplate};
pub use host::{BlockEnd, Functions, Host, Programs, State};
pub use listing::{Dependency, Missing};
#[cfg(feature = "planted-bugs")]
pub use mutants::RECORD_MUTANTS;
#[doc(hidden)]
pub use mutants::RecordMutant;
pub use records::{RecordCounters, Records};
