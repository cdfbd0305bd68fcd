//! The parts of the compiled engines.

use crate::event_programs::EventPrograms;
use crate::exec_context::Functions;
use crate::executor::Executor;
#[cfg(feature = "mutants")]
use crate::mutants::DeliveryMutant;
use crate::options::Options;
use crate::programs::Programs;
use crate::workshop::Workshop;
#[cfg(feature = "mutants")]
use braid_flowcache::RecordMutant;
use braid_flowcache::{FlowCache, FlowTable, Flows, LEAST_IN_PART};
use braid_ir::chain::{Chain, Node};
use braid_ir::graph::Graph;
use braid_ir::model::Setting;
use braid_ir::residual::Extent;
use braid_ir::value::ParamValue;
use braid_ir::verify::verify;
#[cfg(feature = "mutants")]
use braid_state::MoveMutant;

/// A chain that runs by residual programs.
pub struct Compiled {
    pub(crate) executor: Executor,
    /// The flow cache, if the engine makes flow records.
    pub(crate) cache: Option<Box<FlowCache>>,
}

impl Compiled {
    /// Creates an engine for a chain, before its first packet.
    ///
    /// # Errors
    /// Returns an error when a model does not verify, a parameter's value does not have its type, a
    /// timer's period is 0, or links, priorities or subscriptions are inconsistent. (Chains from
    /// the language have none of these faults.)
    pub fn new(chain: Chain, extent: Extent, options: Options) -> Result<Self, String> {
        for node in &chain.nodes {
            check(node).map_err(|why| format!("{}: {why}", node.name))?;
        }
        let graph = Graph::new(&chain)?;
        let extent = match extent {
            Extent::Chain if options.records > 0 && options.eager => Extent::Stretch(0),
            // A packet uses about half of the tables of the functions on its path.
            Extent::Chain if options.records > 0 => Extent::Stretch(2 * LEAST_IN_PART),
            extent => extent,
        };
        let programs = Programs::new(&chain, &graph, extent, options.jit);
        let workshop =
            options.workshop.then(|| Workshop::open(&chain, &graph, extent, options.jit));
        let event_programs = EventPrograms::new(&chain, options.jit, options.workshop);
        let mut functions = Functions::new(chain, options.hash, event_programs)?;
        functions.load(options.records > 0)?;
        let (records, tables) = functions.store.parts();
        records.allow(tables, options.records);
        let cache = (options.records > 0)
            .then(|| Box::new(FlowCache::new(&functions.chain, options.records, options.eager)));
        Ok(Self { executor: Executor::new(functions, graph, programs, workshop), cache })
    }

    /// As [`Compiled::new`], with a mutant of the synthesis.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    #[cfg(feature = "mutants")]
    pub fn with_mutant(
        chain: Chain,
        extent: Extent,
        options: Options,
        bug: braid_compiler::synth::SynthMutant,
    ) -> Result<Self, String> {
        let mut engine = Self::new(chain, extent, options)?;
        engine.executor.programs.bug = Some(bug);
        Ok(engine)
    }

    /// As [`Compiled::new`], with a mutant of the flow records.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    #[cfg(feature = "mutants")]
    pub fn with_record_mutant(
        chain: Chain,
        extent: Extent,
        options: Options,
        mutant: RecordMutant,
    ) -> Result<Self, String> {
        let mut engine = Self::new(chain, extent, options)?;
        engine.executor.functions.store.parts().0.use_mutant(mutant);
        Ok(engine)
    }

    /// As [`Compiled::new`], with a mutant of the delivery of events.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    #[cfg(feature = "mutants")]
    pub fn with_delivery_mutant(
        chain: Chain,
        extent: Extent,
        options: Options,
        mutant: DeliveryMutant,
    ) -> Result<Self, String> {
        let mut engine = Self::new(chain, extent, options)?;
        engine.executor.functions.mutants.active = Some(mutant);
        Ok(engine)
    }

    /// As [`Compiled::new`], with a mutant of moving state.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    #[cfg(feature = "mutants")]
    pub fn with_move_mutant(
        chain: Chain,
        extent: Extent,
        options: Options,
        mutant: MoveMutant,
    ) -> Result<Self, String> {
        let mut engine = Self::new(chain, extent, options)?;
        engine.executor.functions.store.parts().1.use_mutant(mutant);
        Ok(engine)
    }

    /// The numbers of packets and records so far. `None` if the engine makes no flow records.
    #[must_use]
    pub fn flows(&self) -> Option<Flows> {
        let Executor { functions, chain_counters, packets_before, .. } = &self.executor;
        Some(self.cache.as_ref()?.flows(chain_counters.packets_in - packets_before, functions))
    }

    /// From now on, each flow record keeps the total of its packets, even when its counters are
    /// read and reset.
    pub fn keep_flow_totals(&mut self) {
        self.executor.functions.store.parts().0.keep_totals();
    }

    /// All flow records. `None` if the engine makes no flow records.
    #[must_use]
    pub fn flow_table(&self) -> Option<FlowTable> {
        let (cache, flows) = (self.cache.as_ref()?, self.flows()?);
        let Executor { programs, functions, .. } = &self.executor;
        Some(FlowTable::new(cache, flows, (&programs.set, functions)))
    }

    /// A page of flow records ([`FlowTable::page`]). `None` if the engine makes no flow records.
    pub(crate) fn flow_records(&self, from: usize, most: usize) -> Option<FlowTable> {
        let (cache, flows) = (self.cache.as_ref()?, self.flows()?);
        let Executor { programs, functions, .. } = &self.executor;
        Some(FlowTable::page(cache, flows, (&programs.set, functions), (from, most)))
    }
}

/// Checks that a function can run: its model verifies and its values fit.
#[expect(clippy::indexing_slicing, reason = "a verified model names only its own parameters")]
fn check(node: &Node) -> Result<(), String> {
    let model = &node.model;
    verify(model).map_err(|errors| {
        let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
        format!("its model does not verify: {}", all.join("; "))
    })?;
    if node.params.len() != model.params.len() {
        return Err(format!("{} values for {} parameters", node.params.len(), model.params.len()));
    }
    for (decl, value) in model.params.iter().zip(&node.params) {
        value.check(&decl.ty).map_err(|why| format!("{}: {why}", decl.name))?;
    }
    let period = |setting: Setting| match setting {
        Setting::Const(value) => value,
        Setting::Param(param) => match node.params[param.index()] {
            ParamValue::Scalar(value) => value,
            _ => 0,
        },
    };
    if model.timers.iter().any(|timer| period(timer.period) == 0) {
        return Err("a timer's period is 0".to_owned());
    }
    Ok(())
}
