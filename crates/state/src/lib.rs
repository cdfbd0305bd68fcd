//! State tables of compiled engines: entries found by packed keys, groups that live together,
//! deadlines, capacity and eviction, pools. One implementation for all compiled engines, for one
//! thread, without locks; a packet that finds or assigns an entry allocates nothing.
//!
//! [`Store`] holds the state of a whole chain and does exactly what `docs/ir.md` says under "What
//! engines do" (expiry, capacity, lives with, workers). It runs no programs: where `expire` programs
//! have to run, it hands the entries that ended to the engine, which runs them before it goes on.
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
//! // Before a packet: what is due by its time, up to the next timer or release of a held packet.
//! let now = 5;
//! if store.next_due() <= now {
//!     while let Some(_at) = store.expire(now, &mut ended) {
//!         ended.entries().for_each(run_expire_program);
//!     }
//! }
//! // A packet's program: an entry that is found is last seen now.
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
//! A table's key is packed into 64-bit words ([`KeyShape`]), its slots take one word each, two when
//! they are wider than 64 bits ([`SlotShape`]). An entry has a stable place in its table (its
//! [`Handle`] is that and a generation); an index of cache lines with an 8-bit tag for each entry
//! leads from the keyed hash of a key ([`HashKey`]) to the place. Finding reads a line of the index
//! and the entry, and stores when its group was last seen in the group's root: nothing else moves,
//! since the queue of deadlines holds lower bounds, in slots of time.
//!
//! A packet for which several entries are looked up ([`Store::begin`], [`Store::find_hinted`]) finds all
//! but the first one where it found them last time, without hashing, and without the index.
//!
//! For batches, [`Store::prefetch`] for all first keys, then [`Store::fetch`]: the misses of a pass wait
//! together. That pays once tables are larger than the caches ([`Store::is_large`]), and costs where
//! they are not.
//!
//! # Memory
//! An entry of k words of key and s words of slots takes 8 (1 + k + s) bytes, 8 more if it lives with
//! no other, rounded up to a power of two, above 64 to a multiple of 32; 16 for what finding does not
//! need, 8 more in functions in which entries live with others; about 8 in the index; 4 if it has a
//! deadline, 8 if its table evicts, 2 if it has shards. A flow through a NAPT (two entries) takes about
//! 135 bytes, one in a table per connection about 93.
//! Entries that runs find first, and others behind, take 64 more.
//! Tables grow with their entries, whatever their capacity: the index by a line for every eight new
//! ones; arrays by doubling. Those of a megabyte and more have address space for 64 MiB, of which the system
//! gives what is used, and then double without being copied where the allocator can remap pages. What ended
//! leaves its place to the next one; memory is not given back.
//!
//! # Dependents
//! Flow records depend on entries (`braid_flowcache`). A store knows nothing of them: it tells its
//! [`Dependents`] before an entry changes, and a store without dependents pays nothing.
#![forbid(unsafe_code)]

mod deadlines;
mod dependents;
mod ended;
mod handle;
mod hash;
mod hints;
mod index;
mod memory;
mod pool;
mod report;
mod shape;
mod store;
mod table;
mod tables;

pub use dependents::Dependents;
pub use ended::{Ended, EndedEntry};
pub use handle::{Group, Handle, TableLocator, TableRef};
pub use hash::HashKey;
pub use index::Index;
pub use memory::{lengthen, make_room};
pub use pool::Pool;
pub use report::describe;
pub use shape::{KeyShape, SlotShape};
pub use store::{Created, Store};
pub use tables::{New, Tables};

/// A chain of one function without links, from the text of its model: for the examples and tests.
///
/// # Panics
/// When the text is not a model, or parameters lack defaults.
#[doc(hidden)]
#[must_use]
pub fn example_chain(text: &str) -> braid_ir::chain::Chain {
    use braid_ir::chain::{Chain, Malformed, Node};
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
    }
}
