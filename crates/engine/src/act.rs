//! What a running program may touch, and what it sends.

use crate::ahead::Ahead;
use crate::classes::Known;
use crate::instance::Instance;
use crate::options::Hashing;
use crate::scratch::{Scratch, Touched};
use crate::work::Role;
use braid_flowcache::{Records, State};
use braid_ir::chain::Chain;
use braid_ir::engine::Outputs;
use braid_ir::model::{Model, QueueId, StateId, ValueId};
use braid_ir::value::ParamValue;
use braid_ir::values::Values;
use braid_state::{Handle, HashKey, Store, TableLocator, TableRef};

/// A function at work.
pub(crate) struct Act<'a> {
    /// The function.
    pub(crate) node: u16,
    /// The worker's shard of its state.
    pub(crate) shard: u16,
    /// The time.
    pub(crate) now: u64,
    pub(crate) model: &'a Model,
    /// Values of its parameters now.
    pub(crate) params: &'a [ParamValue],
    pub(crate) instance: &'a mut Instance,
    /// The chain's state.
    pub(crate) store: &'a mut State,
    /// Where its state tables are.
    pub(crate) locators: &'a [TableLocator],
    pub(crate) touched: &'a mut Touched,
    pub(crate) scratch: &'a mut Scratch,
    /// Where events go.
    pub(crate) out: &'a mut dyn Outputs,
    /// For what it works.
    pub(crate) role: Role,
}

/// Workers whose tables are found without computing where they are.
const NEAR_WORKERS: u16 = 64;

/// A worker's table.
#[derive(Clone, Copy)]
pub(crate) struct NearTable {
    pub(crate) table: TableRef,
    /// Whether entries of other tables live with this one's.
    pub(crate) is_partner: bool,
}

/// All functions of a chain, with what they have.
pub(crate) struct Functions {
    /// The chain; values of parameters are those of now.
    pub(crate) chain: Chain,
    /// In the order of their position.
    pub(crate) instances: Vec<Instance>,
    pub(crate) store: State,
    /// Where the state tables of each worker are: those of one function after those of the other.
    pub(crate) locators: Vec<TableLocator>,
    /// The same tables, by worker, then as in `locators`; for the first workers only.
    pub(crate) tables: Vec<NearTable>,
    /// Of each of those, the function and its own number.
    pub(crate) owners: Vec<(u16, StateId)>,
    pub(crate) touched: Touched,
    pub(crate) scratch: Scratch,
    /// What machine code knows of routes.
    pub(crate) classes: Known,
    /// What rule sets were asked ahead.
    pub(crate) ahead: Ahead,
    /// The time: the latest that any packet or change had.
    pub(crate) now: u64,
}

impl Functions {
    /// All functions of a chain, before its first packet.
    pub(crate) fn new(chain: Chain, hash: Hashing) -> Self {
        let store = Store::with_dependents(
            &chain,
            match hash {
                Hashing::Drawn => HashKey::random(),
                Hashing::Seeded(seed) => HashKey::seeded(seed),
                Hashing::Colliding => HashKey::colliding(),
            },
            Records::new,
        );
        let (mut locators, mut owners) = (Vec::new(), Vec::new());
        let mut instances = Vec::new();
        for (place, node) in (0..).zip(&chain.nodes) {
            let states = (0..).map(StateId).take(node.model.state.len());
            instances.push(Instance::new(&chain, place, locators.len()));
            locators.extend(states.clone().map(|state| store.locator(place, state)));
            owners.extend(states.map(|state| (place, state)));
        }
        let touched = Touched::new(store.tables().count());
        let workers = 0..chain.workers.clamp(1, NEAR_WORKERS);
        let tables = workers.flat_map(|worker| {
            let near = |locator: &TableLocator| NearTable {
                table: locator.table(worker),
                is_partner: locator.is_partner(),
            };
            locators.iter().map(near).collect::<Vec<_>>()
        });
        let tables = tables.collect();
        let (classes, scratch) = (Known::default(), Scratch::default());
        let ahead = Ahead::default();
        Self {
            chain,
            instances,
            store,
            locators,
            tables,
            owners,
            touched,
            scratch,
            classes,
            ahead,
            now: 0,
        }
    }

    /// A function at work in a shard.
    pub(crate) fn act<'a>(
        &'a mut self,
        node: u16,
        shard: u16,
        role: Role,
        out: &'a mut dyn Outputs,
    ) -> Act<'a> {
        let config = &self.chain.nodes[usize::from(node)];
        let instance = &mut self.instances[usize::from(node)];
        Act {
            node,
            shard,
            now: self.now,
            model: &config.model,
            params: &config.params,
            locators: &self.locators[instance.first_locator..][..config.model.state.len()],
            instance,
            store: &mut self.store,
            touched: &mut self.touched,
            scratch: &mut self.scratch,
            out,
            role,
        }
    }

    /// A function's table for what runs for a worker.
    pub(crate) fn table(&self, node: u16, state: StateId, worker: u16) -> TableRef {
        let instance = &self.instances[usize::from(node)];
        self.locators[instance.first_locator + state.index()].table(worker)
    }

    /// A packed key, and the entry that has it, which nobody finds thereby.
    pub(crate) fn peek(
        &mut self,
        table: TableRef,
        values: &Values<'_>,
        parts: &[ValueId],
    ) -> (&[u64], Option<Handle>) {
        let (store, key) = (&mut self.store, &mut self.scratch.key);
        let shape = store.key_shape(table);
        key.resize(shape.words(), 0);
        shape.pack_each(parts.iter().map(|part| values.get(*part)), key);
        (&*key, store.find(table, key))
    }

    pub(crate) fn queue_has_room(&self, node: u16, queue: QueueId) -> bool {
        let params = &self.chain.nodes[usize::from(node)].params;
        self.instances[usize::from(node)].queue_has_room(params, queue)
    }

    /// A function at work for a packet of a worker.
    pub(crate) fn act_on<'a>(
        &'a mut self,
        node: u16,
        worker: u16,
        out: &'a mut dyn Outputs,
    ) -> Act<'a> {
        let shard = self.instances[usize::from(node)].shard(worker);
        self.act(node, shard, Role::Packet, out)
    }
}
