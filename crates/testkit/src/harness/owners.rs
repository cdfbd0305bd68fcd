//! Searches for entries that packets of several workers use.

use crate::record::{Stimulus, step};
use braid_compiler::sharding::{Placement, Sharding};
use braid_ir::chain::Chain;
use braid_ir::engine::{Event, Outputs};
use braid_ir::model::{StateId, Word};
use braid_ir::steering::Steering;
use braid_packet::Packet;
use braid_reference::Reference;
use braid_reference::trace::{Observer, StateAccess, StateWhat};
use std::collections::{BTreeMap, HashMap};

/// Keeps the worker of each entry, and what another worker does with it.
struct Owners<'a> {
    worker: u16,
    /// The tables whose entries belong to one worker, and whether lookups may miss them.
    local: &'a BTreeMap<(u16, StateId), bool>,
    entries: HashMap<(u16, StateId, Vec<Word>), u16>,
    conflict: Option<String>,
}

impl Observer for Owners<'_> {
    fn state(&mut self, node: u16, access: &StateAccess<'_>) {
        let Some(may_miss) = self.local.get(&(node, access.state)) else { return };
        let entry = (node, access.state, access.key.to_vec());
        let owner = self.entries.get(&entry).copied();
        let reads = matches!(access.what, StateWhat::Exists(_) | StateWhat::Get(..));
        if owner.is_some_and(|owner| owner != self.worker)
            && !matches!(access.what, StateWhat::Ended)
            && !(reads && *may_miss)
        {
            let text = format!("worker {}: {:?} {entry:?} of {owner:?}", self.worker, access.what);
            self.conflict.get_or_insert(text);
        }
        match access.what {
            StateWhat::Created(_) => {
                self.entries.insert(entry, self.worker);
            }
            StateWhat::Deleted | StateWhat::Ended => {
                self.entries.remove(&entry);
            }
            _ => {}
        }
    }
}

/// Forgets what leaves.
struct Nothing;

impl Outputs for Nothing {
    fn packet(&mut self, _: u16, _: Packet) {}
    fn event(&mut self, _: Event) {}
}

/// An entry of a table with the placement *local* that packets of two workers use. The steering and
/// the number of workers decide the worker of each packet. The chain may have one worker in the
/// run.
///
/// # Panics
/// When the chain has no engine.
#[must_use]
pub fn conflict(
    chain: &Chain,
    found: &Sharding,
    (steering, workers): (&Steering, u16),
    stimuli: &[Stimulus],
) -> Option<String> {
    let tables = (0..).zip(&chain.nodes).flat_map(|(node, of)| {
        (0..of.model.state.len()).map(move |at| (node, StateId(u32::try_from(at).expect("few"))))
    });
    let tables = tables.zip(&found.tables);
    let local = tables.filter(|(_, table)| table.placement == Placement::Local);
    let local = local.map(|(at, table)| (at, !table.exceptions.is_empty())).collect();
    let mut engine = Reference::new(chain.clone()).expect("an engine");
    let mut owners = Owners { worker: 0, local: &local, entries: HashMap::new(), conflict: None };
    for stimulus in stimuli {
        match stimulus {
            Stimulus::Packet(interface, packet) => {
                let layout = packet.parse();
                owners.worker = steering.worker(packet, &layout, *interface, workers);
                engine.trace(*interface, packet.clone(), &mut Nothing, &mut owners);
            }
            other => drop(step(&mut engine, other)),
        }
    }
    owners.conflict
}
