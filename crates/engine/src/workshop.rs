//! The workshop: a thread of its own that makes programs and machine code, so that no packet waits
//! for the compiler. Until a program is there, the models are interpreted.
//!
//! The workshop has a copy of the chain's configuration. What was ordered before the configuration
//! changed is not used.

use crate::address_groups::{Combination, Combinations};
use crate::instance;
use crate::machine_code::{MachineCode, list, number};
use crate::options::Jit;
use crate::prefetch::is_large;
use crate::program::Program;
use braid_classify::Lpm;
use braid_compiler::synth;
use braid_ir::chain::Chain;
use braid_ir::graph::Graph;
use braid_ir::model::{ParamId, Word};
use braid_ir::residual::{Extent, Point, Residual};
use braid_ir::value::ParamValue;
use braid_jit::{AddressGroups, Resource, Resources, compile_with};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// The largest number of programs on order. Further ones are ordered when these have come.
const ON_ORDER: usize = 64;

/// What the engine wants.
enum Order {
    /// The program at a point for packets with these headers.
    Program(Point, u128),
    /// The machine code of the program with this number.
    Code(usize, Arc<Residual>),
    /// A parameter of a function has another value.
    Value(u16, ParamId, ParamValue),
    /// Orders from now on are of the configuration with this number.
    Configuration(u64),
}

/// What the workshop has made.
pub(crate) enum Made {
    /// The program at a point for packets with these headers.
    Program(Point, u128, Box<Program>),
    /// The machine code of the program with this number.
    Code(usize, NewCode),
}

/// Machine code and what belongs to it.
pub(crate) struct NewCode {
    /// `None`: the program stays interpreted.
    pub(crate) code: Option<Box<MachineCode>>,
    /// New combinations of route tables, which the code may search.
    pub(crate) groups: Vec<Combination>,
    /// Whether programs prefetch rule lookups.
    pub(crate) prefetches: bool,
}

/// The engine's side of the workshop.
pub(crate) struct Workshop {
    orders: Sender<Order>,
    made: Receiver<(u64, Made)>,
    /// The number of the current configuration.
    configuration: u64,
    /// The programs on order.
    ordered: Vec<(Point, u128)>,
}

impl Workshop {
    /// Opens the workshop for a chain. It closes when the engine ends.
    pub(crate) fn open(chain: &Chain, graph: &Graph, extent: Extent, jit: Jit) -> Self {
        let (orders, waiting) = channel();
        let (give, made) = channel();
        let maker = Maker {
            chain: chain.clone(),
            graph: graph.clone(),
            extent,
            jit,
            routes: BTreeMap::new(),
            groups: Combinations::default(),
            given: 0,
            prefetches: false,
            configuration: 0,
        };
        thread::spawn(move || maker.work(&waiting, &give));
        Self { orders, made, configuration: 0, ordered: Vec::new() }
    }

    /// Orders the program at a point for packets with these headers.
    pub(crate) fn order_program(&mut self, point: Point, presence: u128) {
        let order = (point, presence);
        if self.ordered.len() < ON_ORDER && !self.ordered.contains(&order) {
            self.ordered.push(order);
            self.order(Order::Program(point, presence));
        }
    }

    /// Orders the machine code of the program with this number.
    pub(crate) fn order_code(&self, number: usize, program: &Arc<Residual>) {
        self.order(Order::Code(number, Arc::clone(program)));
    }

    /// Tells the workshop a parameter's new value.
    pub(crate) fn change(&mut self, node: u16, param: ParamId, value: &ParamValue) {
        self.order(Order::Value(node, param, value.clone()));
        self.configuration += 1;
        self.order(Order::Configuration(self.configuration));
        self.ordered.clear();
    }

    /// Something that the workshop has made, and whether it is of the current configuration.
    pub(crate) fn next(&mut self) -> Option<(Made, bool)> {
        let (configuration, made) = self.made.try_recv().ok()?;
        let is_current = configuration == self.configuration;
        if let (Made::Program(point, presence, _), true) = (&made, is_current) {
            self.ordered.retain(|order| *order != (*point, *presence));
        }
        Some((made, is_current))
    }

    fn order(&self, order: Order) {
        // If the thread has ended, by a defect, the models stay interpreted.
        let _ = self.orders.send(order);
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
    configuration: u64,
}

impl Maker {
    fn work(mut self, orders: &Receiver<Order>, give: &Sender<(u64, Made)>) {
        for order in orders {
            let made = match order {
                Order::Program(point, presence) => self.program(point, presence),
                Order::Code(number, program) => self.code(number, &program),
                Order::Value(node, param, value) => {
                    let params = self.chain.nodes.get_mut(usize::from(node));
                    let old = params.and_then(|node| node.params.get_mut(param.index()));
                    old.into_iter().for_each(|old| old.clone_from(&value));
                    continue;
                }
                Order::Configuration(configuration) => {
                    self.configuration = configuration;
                    self.routes.clear();
                    self.groups.clear();
                    self.given = 0;
                    continue;
                }
            };
            if give.send((self.configuration, made)).is_err() {
                // The engine has ended.
                return;
            }
        }
    }

    fn program(&self, point: Point, presence: u128) -> Made {
        let residual = synth::residual(&self.chain, &self.graph, point, presence, self.extent);
        let program = Program::new(residual, &self.graph, self.jit);
        Made::Program(point, presence, Box::new(program))
    }

    fn code(&mut self, number: usize, program: &Residual) -> Made {
        let code = compile_with(program, self).ok();
        let groups = self.groups.hand_over(self.given);
        self.given = self.groups.len();
        let code = code.map(|code| Box::new(MachineCode::new(code, program)));
        Made::Code(number, NewCode { code, groups, prefetches: self.prefetches })
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
