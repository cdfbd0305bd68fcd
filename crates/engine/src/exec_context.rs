//! The execution context of a function: its instance, tables, time and outputs.
#![expect(
    clippy::indexing_slicing,
    reason = "the chain and its models number the functions and state tables"
)]

use crate::address_groups::Combinations;
use crate::event_programs::EventPrograms;
use crate::instance::Instance;
use crate::mutants::Mutants;
use crate::options::Hashing;
use crate::prefetch::Prefetch;
use crate::scratch::{Scratch, Touched};
use crate::stacks::Stacks;
use crate::work::Role;
use braid_flowcache::{Records, State};
use braid_ir::chain::Chain;
use braid_ir::engine::Outputs;
use braid_ir::model::{Model, ParamId, QueueId, StateId, ValueId};
use braid_ir::subscriptions::Subscriptions;
use braid_ir::value::ParamValue;
use braid_ir::values::Values;
use braid_state::{Handle, HashKey, Store, TableLocator, TableRef};
use std::collections::BTreeMap;

/// The execution context of a function in one shard.
pub(crate) struct ExecContext<'a> {
    /// The function's position in the chain.
    pub(crate) node: u16,
    /// The worker that runs the program. Timers and expiry programs run on the worker of their
    /// shard.
    pub(crate) worker: u16,
    /// The shard of the function's state that the worker uses.
    pub(crate) shard: u16,
    /// The time (ns).
    pub(crate) now: u64,
    pub(crate) model: &'a Model,
    /// The current values of the function's parameters.
    pub(crate) params: &'a [ParamValue],
    pub(crate) instance: &'a mut Instance,
    /// The chain's state.
    pub(crate) store: &'a mut State,
    /// The function's state tables.
    pub(crate) locators: &'a [TableLocator],
    pub(crate) touched: &'a mut Touched,
    pub(crate) scratch: &'a mut Scratch,
    /// The TCP stacks of stream functions.
    pub(crate) stacks: &'a mut Stacks,
    /// The programs for events of connections.
    pub(crate) event_programs: &'a mut EventPrograms,
    /// Which functions take events.
    pub(crate) subscriptions: &'a Subscriptions,
    /// Where events and packets go.
    pub(crate) out: &'a mut dyn Outputs,
    /// The reason why the program runs.
    pub(crate) role: Role,
}

/// The number of workers whose tables are listed in `Functions::tables`. Tables of further workers
/// are computed from their locators.
const NEAR_WORKERS: u16 = 64;

/// A worker's table.
#[derive(Clone, Copy)]
pub(crate) struct NearTable {
    pub(crate) table: TableRef,
    /// Whether entries of other tables live with the entries of this table.
    pub(crate) is_partner: bool,
    /// The table with whose entries the entries of this table live.
    pub(crate) partner: Option<TableRef>,
    /// The shard of the table's function that the worker uses.
    pub(crate) shard: u16,
}

/// All functions of a chain, with their state.
pub(crate) struct Functions {
    /// The chain, with the current values of parameters.
    pub(crate) chain: Chain,
    /// The values that the chain gave parameters which have changed since.
    pub(crate) configured: BTreeMap<(u16, ParamId), ParamValue>,
    /// The instances of all functions, in chain order.
    pub(crate) instances: Vec<Instance>,
    pub(crate) store: State,
    /// The state tables of each worker, function by function.
    pub(crate) locators: Vec<TableLocator>,
    /// The tables of the first [`NEAR_WORKERS`] workers: by worker, and then in the order of
    /// `locators`.
    pub(crate) tables: Vec<NearTable>,
    /// For each element of `locators`: the function, and the table's number in the function.
    pub(crate) owners: Vec<(u16, StateId)>,
    pub(crate) touched: Touched,
    pub(crate) scratch: Scratch,
    /// The TCP stacks of stream functions.
    pub(crate) stacks: Stacks,
    /// The programs for events of connections.
    pub(crate) event_programs: EventPrograms,
    /// Which functions take events.
    pub(crate) subscriptions: Subscriptions,
    pub(crate) mutants: Mutants,
    /// The address groups that machine code uses.
    pub(crate) address_groups: Combinations,
    /// The rule lookups made for the packets of a batch before they run.
    pub(crate) prefetch: Prefetch,
    /// The current time (ns): the latest time of any packet or change so far.
    pub(crate) now: u64,
}

impl Functions {
    /// Creates all functions of a chain, before its first packet.
    ///
    /// # Errors
    /// The chain's subscriptions are inconsistent.
    pub(crate) fn new(
        chain: Chain,
        hash: Hashing,
        event_programs: EventPrograms,
    ) -> Result<Self, String> {
        let subscriptions = Subscriptions::new(&chain)?;
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
        let workers = chain.workers.clamp(1, NEAR_WORKERS);
        let (address_groups, scratch) = (Combinations::default(), Scratch::default());
        let (prefetch, stacks) = (Prefetch::default(), Stacks::new(&chain));
        let mut functions = Self {
            chain,
            configured: BTreeMap::new(),
            instances,
            store,
            locators,
            tables: Vec::new(),
            owners,
            touched,
            scratch,
            stacks,
            event_programs,
            subscriptions,
            mutants: Mutants::default(),
            address_groups,
            prefetch,
            now: 0,
        };
        let (all, count) = (&functions, functions.locators.len());
        let near = (0..workers)
            .flat_map(|worker| (0..count).map(move |number| all.near_table(number, worker)));
        functions.tables = near.collect();
        Ok(functions)
    }

    /// A worker's table, by its number in `locators`.
    #[cold]
    pub(crate) fn near_table(&self, number: usize, worker: u16) -> NearTable {
        let locator = self.locators[number];
        let table = locator.table(worker);
        let (node, _) = self.owners[number];
        NearTable {
            table,
            is_partner: locator.is_partner(),
            partner: self.store.partner(table),
            shard: self.instances[usize::from(node)].shard(worker),
        }
    }

    /// The execution context of a function in a shard.
    #[inline(always)]
    pub(crate) fn context<'a>(
        &'a mut self,
        node: u16,
        shard: u16,
        role: Role,
        out: &'a mut dyn Outputs,
    ) -> ExecContext<'a> {
        let config = &self.chain.nodes[usize::from(node)];
        let instance = &mut self.instances[usize::from(node)];
        ExecContext {
            node,
            worker: shard,
            shard,
            now: self.now,
            model: &config.model,
            params: &config.params,
            locators: &self.locators[instance.first_locator..][..config.model.state.len()],
            instance,
            store: &mut self.store,
            touched: &mut self.touched,
            scratch: &mut self.scratch,
            stacks: &mut self.stacks,
            event_programs: &mut self.event_programs,
            subscriptions: &self.subscriptions,
            out,
            role,
        }
    }

    /// The table of a function that a worker's programs use.
    pub(crate) fn table(&self, node: u16, state: StateId, worker: u16) -> TableRef {
        let instance = &self.instances[usize::from(node)];
        self.locators[instance.first_locator + state.index()].table(worker)
    }

    /// Packs a key and returns it with its entry. The lookup does not renew the entry.
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

    pub(crate) fn queue_has_room(&self, node: u16, queue: QueueId, worker: u16) -> bool {
        let params = &self.chain.nodes[usize::from(node)].params;
        let instance = &self.instances[usize::from(node)];
        instance.queue_has_room(params, queue, instance.shard(worker))
    }

    /// The execution context of a function for a packet of a worker.
    pub(crate) fn context_of<'a>(
        &'a mut self,
        node: u16,
        worker: u16,
        out: &'a mut dyn Outputs,
    ) -> ExecContext<'a> {
        let shard = self.instances[usize::from(node)].shard(worker);
        // `..` in a literal would copy the whole context.
        let mut context = self.context(node, shard, Role::Packet, out);
        context.worker = worker;
        context
    }
}
