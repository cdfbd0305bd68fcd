//! The executor: runs a chain's programs for packets, timers and ended state entries.

use crate::ahead::Firsts;
use crate::chain_counters::ChainCounters;
use crate::exec_context::Functions;
use crate::held::Waiting;
use crate::machine_code::Stage;
use crate::programs::{Order, ProgramSet, Programs};
use crate::work::Emission;
use crate::workshop::{Made, NewCode, Workshop};
use braid_flowcache::{Cut, Host};
use braid_ir::engine::{Compilation, Outputs};
use braid_ir::graph::Graph;
use braid_ir::model::ParamId;
use braid_ir::residual::Point;
use std::collections::HashSet;

/// The executor of a chain: its functions with their state, its programs, and the work that is due
/// later.
pub(crate) struct Executor {
    pub(crate) functions: Functions,
    pub(crate) graph: Graph,
    /// Whether a packet has entered yet.
    pub(crate) started: bool,
    /// The time before which no timer fires and no held packet is released (ns).
    pub(crate) wake: u64,
    pub(crate) waiting: Waiting,
    /// The number of the next held packet.
    pub(crate) ids: u64,
    pub(crate) chain_counters: ChainCounters,
    /// The packets in `chain_counters` that entered before this engine went on from a snapshot.
    pub(crate) packets_before: u64,
    pub(crate) programs: Programs,
    /// The thread that makes programs, if packets do not wait for them.
    pub(crate) workshop: Option<Workshop>,
    /// The packets that the running program has sent.
    pub(crate) emissions: Vec<Emission>,
    /// What isolated functions run ahead.
    pub(crate) firsts: Firsts,
}

impl Executor {
    /// The executor of a chain before its first packet.
    pub(crate) fn new(
        functions: Functions,
        graph: Graph,
        programs: Programs,
        workshop: Option<Workshop>,
    ) -> Self {
        Self {
            graph,
            started: false,
            wake: u64::MAX,
            waiting: Waiting::default(),
            ids: 0,
            chain_counters: ChainCounters::new(&functions.chain),
            packets_before: 0,
            programs,
            workshop,
            emissions: Vec::new(),
            firsts: Firsts::new(&functions.chain),
            functions,
        }
    }

    /// The parts that the flow cache uses.
    #[inline(always)]
    pub(crate) fn host<'a>(
        &'a mut self,
        out: &'a mut dyn Outputs,
    ) -> Host<'a, ProgramSet, Functions> {
        let Programs { set, words, .. } = &mut self.programs;
        Host {
            programs: set,
            functions: &mut self.functions,
            graph: &self.graph,
            wake: self.wake,
            words,
            out,
        }
    }
    /// The program at a point for packets with these headers, if there is one. Makes it, or orders
    /// it from the workshop.
    pub(crate) fn find_program(&mut self, point: Point, presence: u128) -> Option<usize> {
        let Self { programs, functions, graph, workshop, .. } = self;
        let Some(workshop) = workshop else {
            return programs.find(point, presence, &functions.chain, graph);
        };
        let known = programs.set.points.known(point, presence);
        if known.is_none() && programs.has_room(point) && !graph.goes_to_stack(point.node, presence)
        {
            workshop.order_program(Order { point, presence, up_to: None });
        }
        known
    }

    /// Makes a program that flow records want, or orders it from the workshop. Returns false if
    /// there is no room for it.
    pub(crate) fn make_cut(&mut self, cut: Cut) -> bool {
        let Self { programs, functions, graph, workshop, .. } = self;
        if !programs.lacks_cut(cut) {
            return programs.set.cuts.contains_key(&cut);
        }
        match workshop {
            None => programs.make_cut(cut, &functions.chain, graph),
            Some(workshop) => workshop.order_program(cut.into()),
        }
        true
    }

    /// Takes the programs and the machine code that the workshop has made.
    pub(crate) fn take_programs(&mut self) {
        let Self { programs, functions, workshop, .. } = self;
        while let Some((made, is_current)) = workshop.as_mut().and_then(Workshop::next) {
            match made {
                Made::Program(_, _) if !is_current => {}
                Made::Program(Order { point, presence, up_to: None }, program) => {
                    let is_new = programs.set.points.known(point, presence).is_none();
                    if is_new && programs.has_room(point) {
                        programs.add(*program);
                    }
                }
                Made::Program(Order { point, presence, up_to: Some(node) }, program) => {
                    let cut = Cut { point, present: presence, node };
                    if programs.lacks_cut(cut) {
                        programs.add_cut(cut, *program);
                    }
                }
                Made::Code(number, made) => {
                    let program = programs.set.all.get_mut(number);
                    let stage = program.map(|program| &mut program.stage);
                    let stage = stage.filter(|stage| matches!(stage, Stage::Ordered));
                    let next = match made.filter(|_| is_current) {
                        None => Stage::Waiting(0),
                        Some(NewCode { code, groups, prefetches }) => {
                            functions.address_groups.take_over(groups);
                            functions.prefetch.is_used |= prefetches;
                            code.map_or_else(Stage::Refused, Stage::Compiled)
                        }
                    };
                    if let Some(stage) = stage {
                        *stage = next;
                    }
                }
            }
        }
    }

    /// The numbers of programs that are compiled, interpreted and refused.
    pub(crate) fn compilation(&self) -> Compilation {
        let has_ended = self.workshop.as_ref().is_some_and(Workshop::has_ended);
        let mut compilation = Compilation { has_ended, ..Compilation::default() };
        self.functions.event_programs.add_to(&mut compilation);
        let ProgramSet { all, cuts, .. } = &self.programs.set;
        let cuts: HashSet<usize> = cuts.values().copied().collect();
        let runs = all.iter().enumerate().filter(|(number, _)| !cuts.contains(number));
        for (_, program) in runs {
            match &program.stage {
                Stage::Compiled(_) => compilation.compiled += 1,
                Stage::Refused(why) => {
                    *compilation.refused.entry(why.to_string()).or_default() += 1;
                }
                _ => compilation.interpreted += 1,
            }
        }
        compilation
    }

    /// Tells the workshop, if there is one, the new value of a parameter on which programs or
    /// machine code depend.
    #[expect(clippy::indexing_slicing, reason = "the caller names a parameter of the chain")]
    pub(crate) fn tell_workshop(&mut self, node: u16, param: ParamId) {
        let Self { workshop, functions, .. } = self;
        if let Some(workshop) = workshop {
            // The workshop numbers the address groups of the new configuration from 0.
            functions.address_groups.clear();
            let value = &functions.chain.nodes[usize::from(node)].params[param.index()];
            workshop.change(node, param, value);
        }
    }

    /// Tells the workshop all values that have changed since it was opened.
    #[expect(clippy::indexing_slicing, reason = "the chain has the configured parameters")]
    pub(crate) fn tell_workshop_all(&mut self) {
        let Functions { configured, chain, .. } = &self.functions;
        let differs = configured.iter().filter(|((node, param), value)| {
            chain.nodes[usize::from(*node)].params[param.index()] != **value
        });
        let changed: Vec<_> = differs.map(|(place, _)| *place).collect();
        changed.into_iter().for_each(|(node, param)| self.tell_workshop(node, param));
    }
}
