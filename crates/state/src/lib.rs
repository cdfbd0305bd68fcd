//! State tables of compiled engines: entries with packed keys, groups of entries that live
//! together, deadlines, capacity and eviction, and pools. All compiled engines use this
//! implementation. It is for one thread and has no locks. A packet that finds or assigns an entry
//! allocates nothing.
//!
//! [`Store`] holds the state of a whole chain and implements `docs/ir.md`, "What engines do"
//! (expiry, capacity, lives with, workers). It runs no programs. When `expire` programs must run,
//! it returns the entries that ended. The engine then runs the programs before it continues.
//!
//! ```
//! use braid_state::{Created, Ended, New, Store};
//! # fn run_expire_program(_: braid_state::EndedEntry<'_>) {}
//! # let text = "model seen {
//! #     state seen: u8 per (ip.src) idle 1000 capacity 2 full evict_oldest tick 1
//! #     row \"fault\" packet { b0: consume at row0 } }";
//! # let chain = braid_state::example_chain(text);
//! let mut store = Store::new(&chain);
//! let table = store.table(0, braid_ir::model::StateId(0), 0);
//! let mut ended = Ended::default();
//!
//! // Before a packet: end the entries that are due by its time,
//! // up to the next timer or release of a held packet.
//! let now = 5;
//! if store.next_due() <= now {
//!     while let Some(_at) = store.expire(now, &mut ended) {
//!         ended.entries().for_each(run_expire_program);
//!     }
//! }
//! // A packet's program: finding an entry sets the time at which it was last seen.
//! let key = [0x0a00_0001];
//! match store.find_seen(table, &key, now) {
//!     Some(entry) => assert!(store.slots(table, entry).is_some()),
//!     None => {
//!         let new = New { key: &key, slots: &[7], partner: None, now, shard: 0, renews: true };
//!         let mut created = store.create(table, &new, &mut ended);
//!         while created == Created::Evicted {
//!             ended.entries().for_each(run_expire_program);
//!             created = store.create_after_eviction(table, &new, &mut ended);
//!         }
//!         assert!(matches!(created, Created::Entry(_)));
//!     }
//! }
//! assert_eq!((store.len(table), store.next_due()), (1, 1005));
//! ```
//!
//! # Layout
//! A table's key is packed into 64-bit words ([`KeyShape`]). Each slot takes one word, or two if it
//! is wider than 64 bits ([`SlotShape`]). An entry has a stable place in its table. Its [`Handle`]
//! consists of the place and a generation. An index of cache lines maps the keyed hash of a key
//! ([`HashKey`]) to the place, with an 8-bit tag for each entry. A lookup reads a line of the index
//! and the entry, and writes the time at which the group was last seen to the group's root. It
//! moves no deadline, because the queue of deadlines holds lower bounds.
//!
//! Some packets look up several entries ([`Store::begin`], [`Store::find_hinted`]). The store first
//! looks at the places where the last such packet found the later entries. If they are there, it
//! needs neither the hash nor the index.
//!
//! For batches, call [`Store::prefetch`] for the first key of each packet, then [`Store::fetch`]:
//! the cache misses of each pass overlap. This saves time if tables are larger than the caches
//! ([`Store::is_large`]), and costs time otherwise.
//!
//! # Memory
//! An entry with k words of key and s words of slots takes 8 (1 + k + s) bytes, and 8 more if it
//! lives with no other entry. The sum is rounded up to a power of two, and above 64 to a multiple
//! of 32. Further parts of an entry:
//!
//! - 32 bytes that lookups do not read: time and order of its creation, its shard, the next member
//!   of its group, whether it is in the queue of deadlines, and its place in the index;
//! - about 11 bytes in the index;
//! - about 5 bytes in the queue of deadlines, if it times out and lives with no other entry;
//! - 8 bytes if its table evicts;
//! - 64 bytes for hints, if programs find this entry first and others after it.
//!
//! A flow through a NAPT (two entries) takes about 155 bytes. A flow in a table per connection
//! takes about 112 bytes.
//!
//! Tables grow with their entries, not with their capacity: by 64 places at a time. The index grows
//! by a line for every six new entries. Arrays grow by doubling. An array of a megabyte or more
//! reserves address space for 64 MiB, and the system provides memory for the part in use. Larger
//! arrays double, without a copy if the allocator can remap pages. A new entry takes the place of
//! an ended one. Tables return no memory to the system.
//!
//! # Dependents
//! Flow records depend on entries (`braid_flowcache`). A store knows nothing about records. It
//! calls its [`Dependents`] before an entry changes. A store without dependents has no cost for
//! this.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod cold;
mod deadlines;
mod dependents;
mod earliest;
mod ended;
mod expiry;
mod handle;
mod hash;
mod hints;
mod index;
mod lives;
mod memory;
mod moving;
mod mutants;
mod order;
mod pool;
mod report;
mod shape;
mod site;
mod slots;
mod snapshot;
mod store;
mod table;
mod tables;

pub use dependents::Dependents;
pub use ended::{Ended, EndedEntry};
pub use handle::{Group, Handle, TableLocator, TableRef};
pub use hash::HashKey;
pub use index::{Absent, Index};
pub use memory::{lengthen, make_room, prefetch};
pub use moving::Room;
#[cfg(feature = "mutants")]
pub use mutants::MOVE_MUTANTS;
pub use mutants::MoveMutant;
pub use pool::Pool;
pub use report::{describe, report};
pub use shape::{KeyShape, SlotShape, slot_at};
pub use snapshot::entries;
pub use store::{Created, Store};
pub use tables::{New, Tables};

/// Parses the text of a model into a chain of one function without links, for examples and tests.
///
/// # Panics
/// Panics when the text is not a model, or parameters lack defaults.
#[doc(hidden)]
#[must_use]
pub fn example_chain(text: &str) -> braid_ir::chain::Chain {
    use braid_ir::chain::{Chain, Malformed, Node};
    use braid_ir::steering::Steering;
    let model = std::sync::Arc::new(braid_ir::text::parse(text).expect("a model"));
    let params = model.params.iter().map(|param| param.default.clone().expect("a default"));
    let params = params.collect();
    Chain {
        name: "example".into(),
        interfaces: Vec::new(),
        nodes: vec![Node { name: "f".into(), model, params }],
        links: Vec::new(),
        priorities: Vec::new(),
        policy: Vec::new(),
        malformed: Malformed::Drop,
        seed: 1,
        workers: 1,
        steering: Steering::by_connection(),
        only: None,
        by_rules: false,
    }
}
