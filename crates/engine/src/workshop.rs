//! The workshop: a thread of its own that makes programs and machine code, so that no packet waits
//! for the compiler. Until a program is there, the models are interpreted.
//!
//! The workshop has a copy of the chain's configuration. When the configuration changes, the
//! workshop skips earlier orders, and the engine discards their results. The queues are bounded:
//! the numbers of orders and results have limits, and only the last value of each parameter waits.

use crate::address_groups::{Combination, Combinations};
use crate::instance;
use crate::machine_code::{MachineCode, list, number};
use crate::options::Jit;
use crate::prefetch::is_large;
use crate::program::Program;
use crate::programs;
use braid_classify::Lpm;
use braid_compiler::synth;
use braid_ir::chain::Chain;
use braid_ir::graph::Graph;
use braid_ir::model::{ParamId, Word};
use braid_ir::residual::{Extent, Residual};
use braid_ir::value::ParamValue;
use braid_jit::{AddressGroups, Error, Resource, Resources, compile_with};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::mem::take;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// The largest number of programs on order. Further programs are ordered when these have arrived.
const ON_ORDER: usize = 64;

/// The largest number of waiting orders, and of waiting results.
const WAITING: usize = 256;

/// An order from the engine.
enum Order {
    /// A program.
    Program(programs::Order),
    /// The machine code of the program with this number.
    Code(usize, Arc<Residual>),
}

/// The changes of the configuration that the workshop does not know yet.
#[derive(Default)]
struct Changes {
    /// The number of the configuration after them.
    configuration: u64,
    /// The last value of each changed parameter.
    values: BTreeMap<(u16, ParamId), ParamValue>,
}

/// A result of the workshop.
pub(crate) enum Made {
    /// A program.
    Program(programs::Order, Box<Program>),
    /// The machine code of the program with this number.
    /// `None`: the order was of an earlier configuration.
    Code(usize, Option<NewCode>),
}

/// Machine code, or the reason why there is none, with the data that it needs.
pub(crate) struct NewCode {
    pub(crate) code: Result<Box<MachineCode>, Error>,
    /// New combinations of route tables, which the code may search.
    pub(crate) groups: Vec<Combination>,
    /// Whether programs prefetch rule lookups.
    pub(crate) prefetches: bool,
}

/// The engine's side of the workshop.
pub(crate) struct Workshop {
    /// Orders, each with the number of its configuration.
    orders: SyncSender<(u64, Order)>,
    made: Receiver<(u64, Made)>,
    changes: Arc<Mutex<Changes>>,
    /// The number of the current configuration.
    configuration: u64,
    /// The programs on order.
    ordered: Vec<programs::Order>,
    thread: JoinHandle<()>,
}

impl Workshop {
    /// Opens the workshop for a chain. It closes when the engine ends.
    pub(crate) fn open(chain: &Chain, graph: &Graph, extent: Extent, jit: Jit) -> Self {
        let (orders, waiting) = sync_channel(WAITING);
        let (give, made) = sync_channel(WAITING);
        let changes = Arc::<Mutex<Changes>>::default();
        let maker = Maker {
            chain: chain.clone(),
            graph: graph.clone(),
            extent,
            jit,
            routes: BTreeMap::new(),
            groups: Combinations::default(),
            given: 0,
            prefetches: false,
            changes: Arc::clone(&changes),
            configuration: 0,
        };
        let thread = thread::spawn(move || maker.work(&waiting, &give));
        Self { orders, made, changes, configuration: 0, ordered: Vec::new(), thread }
    }

    /// Orders a program, if there is room. Otherwise a later packet orders it.
    pub(crate) fn order_program(&mut self, order: programs::Order) {
        if self.ordered.len() < ON_ORDER
            && !self.ordered.contains(&order)
            && self.order(Order::Program(order))
        {
            self.ordered.push(order);
        }
    }

    /// Orders the machine code of the program with this number. Returns whether there is room.
    pub(crate) fn order_code(&self, number: usize, program: &Arc<Residual>) -> bool {
        self.order(Order::Code(number, Arc::clone(program)))
    }

    /// Tells the workshop a parameter's new value.
    pub(crate) fn change(&mut self, node: u16, param: ParamId, value: &ParamValue) {
        self.configuration += 1;
        self.ordered.clear();
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.configuration = self.configuration;
        changes.values.insert((node, param), value.clone());
    }

    /// The next result of the workshop, and whether it belongs to the current configuration.
    pub(crate) fn next(&mut self) -> Option<(Made, bool)> {
        let (configuration, made) = self.made.try_recv().ok()?;
        let is_current = configuration == self.configuration;
        if let (Made::Program(made, _), true) = (&made, is_current) {
            self.ordered.retain(|order| order != made);
        }
        Some((made, is_current))
    }

    /// Whether the thread has ended because of a bug.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Places an order. Returns whether there is room. If the thread has ended because of a bug,
    /// the models stay interpreted.
    fn order(&self, order: Order) -> bool {
        self.orders.try_send((self.configuration, order)).is_ok()
    }
}

/// The workshop's own side: everything that programs and machine code are made from.
struct Maker {
    chain: Chain,
    graph: Graph,
    extent: Extent,
    jit: Jit,
    /// The search structures of route tables.
    routes: BTreeMap<(u16, ParamId), Lpm>,
    groups: Combinations,
    /// The number of combinations that the engine has.
    given: usize,
    prefetches: bool,
    changes: Arc<Mutex<Changes>>,
    configuration: u64,
}

impl Maker {
    fn work(mut self, orders: &Receiver<(u64, Order)>, give: &SyncSender<(u64, Made)>) {
        for (configuration, order) in orders {
            self.take_changes();
            let is_current = configuration == self.configuration;
            let made = match order {
                Order::Program(order) if is_current => self.program(order),
                Order::Program(..) => continue,
                Order::Code(number, program) if is_current => self.code(number, &program),
                // The engine waits for an answer, and then orders again.
                Order::Code(number, _) => Made::Code(number, None),
            };
            if give.send((configuration, made)).is_err() {
                // The engine has ended.
                return;
            }
        }
    }

    /// Takes over the changes of the configuration.
    fn take_changes(&mut self) {
        let changes = Arc::clone(&self.changes);
        let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.configuration == self.configuration {
            return;
        }
        self.configuration = changes.configuration;
        for ((node, param), value) in take(&mut changes.values) {
            let node = self.chain.nodes.get_mut(usize::from(node));
            if let Some(old) = node.and_then(|node| node.params.get_mut(param.index())) {
                *old = value;
            }
        }
        self.routes.clear();
        self.groups.clear();
        self.given = 0;
    }

    fn program(&self, order: programs::Order) -> Made {
        let programs::Order { point, presence, up_to } = order;
        let (extent, jit) = match up_to {
            None => (self.extent, self.jit),
            Some(node) => (Extent::UpTo(node), Jit::Off),
        };
        let residual = synth::residual(&self.chain, &self.graph, point, presence, extent);
        Made::Program(order, Box::new(Program::new(residual, &self.graph, jit)))
    }

    fn code(&mut self, number: usize, program: &Residual) -> Made {
        let code = compile_with(program, self);
        let groups = self.groups.hand_over(self.given);
        self.given = self.groups.len();
        let code = code.map(|code| Box::new(MachineCode::new(code, program)));
        Made::Code(number, Some(NewCode { code, groups, prefetches: self.prefetches }))
    }
}

impl Resources for Maker {
    fn number(&mut self, node: u16, resource: Resource) -> Option<u32> {
        let tables = |node: u16| {
            let before = self.chain.nodes.iter().take(usize::from(node));
            before.map(|node| node.model.state.len()).sum()
        };
        number(tables, node, resource)
    }

    fn address_groups(&mut self, tables: &[(u16, ParamId)], wide: bool) -> Option<AddressGroups> {
        for (node, param) in tables {
            let value = self.chain.nodes.get(usize::from(*node))?.params.get(param.index())?;
            if let Entry::Vacant(new) = self.routes.entry((*node, *param)) {
                new.insert(instance::routes(value)?);
            }
        }
        self.groups.of(|table| self.routes.get(table), tables, wide)
    }

    fn prefetches_rules(&mut self, node: u16, param: ParamId) -> bool {
        let is_large = is_large(&self.chain, node, param);
        self.prefetches |= is_large;
        is_large
    }

    fn list(&self, node: u16, param: ParamId) -> Option<&[Vec<Word>]> {
        list(&self.chain, node, param)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_ir::residual::Point;

    /// A workshop whose thread has ended.
    fn idle() -> (Workshop, Receiver<(u64, Order)>) {
        let (orders, waiting) = sync_channel(WAITING);
        let (_, made) = sync_channel(1);
        let (changes, thread) = (Arc::default(), thread::spawn(|| ()));
        (Workshop { orders, made, changes, configuration: 0, ordered: Vec::new(), thread }, waiting)
    }

    #[test]
    fn only_the_last_value_of_a_parameter_waits() {
        let (mut workshop, _waiting) = idle();
        for value in 0..1000 {
            workshop.change(0, ParamId(2), &ParamValue::Scalar(value));
        }
        let changes = workshop.changes.lock().expect("no thread has panicked");
        assert_eq!(changes.configuration, 1000);
        assert_eq!(changes.values, BTreeMap::from([((0, ParamId(2)), ParamValue::Scalar(999))]));
    }

    #[test]
    fn orders_beyond_the_limit_are_refused() {
        let (mut workshop, waiting) = idle();
        let point = Point { node: 0, backward: false, held: false };
        let order = |presence| programs::Order { point, presence, up_to: None };
        for presence in 0..1000 {
            workshop.order_program(order(presence));
            workshop.change(0, ParamId(0), &ParamValue::Scalar(presence));
        }
        assert_eq!(waiting.try_iter().count(), WAITING);
        workshop.order_program(order(7));
        assert_eq!(waiting.try_iter().count(), 1);
    }

    #[test]
    fn end_of_the_thread_is_seen() {
        let (workshop, _waiting) = idle();
        while !workshop.has_ended() {
            thread::yield_now();
        }
        let (hold, held) = sync_channel::<()>(0);
        let thread = thread::spawn(move || held.recv().unwrap_or(()));
        let workshop = Workshop { thread, ..workshop };
        assert!(!workshop.has_ended());
        drop(hold);
    }
}
