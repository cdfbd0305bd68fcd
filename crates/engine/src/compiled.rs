//! The parts of the compiled engines.

use crate::chain_counters::ChainCounters;
use crate::exec_context::Functions;
use crate::held::Waiting;
use crate::options::Options;
use crate::programs::Programs;
use crate::work::Emission;
use braid_flowcache::FlowCache;
#[cfg(feature = "mutants")]
use braid_flowcache::RecordMutant;
use braid_ir::chain::{Chain, Node};
use braid_ir::graph::Graph;
use braid_ir::model::Setting;
use braid_ir::residual::Extent;
use braid_ir::value::ParamValue;
use braid_ir::verify::verify;
use braid_ir::walk::Reached;
use braid_packet::Layout;

/// A chain that runs by residual programs.
pub struct Compiled {
    pub(crate) functions: Functions,
    pub(crate) graph: Graph,
    pub(crate) workers: u16,
    /// Whether a packet has entered yet.
    pub(crate) started: bool,
    /// No timer fires and no held packet is released before this time.
    pub(crate) wake: u64,
    pub(crate) waiting: Waiting,
    /// The number of the next held packet.
    pub(crate) ids: u64,
    pub(crate) chain_counters: ChainCounters,
    pub(crate) programs: Programs,
    /// Memory for the layouts of a batch.
    pub(crate) layouts: Vec<Layout>,
    /// Memory for the ends of packets that enter one by one.
    pub(crate) reached: Vec<Reached>,
    /// The packets that the running program has sent.
    pub(crate) emissions: Vec<Emission>,
    /// The flow cache, if the engine makes flow records.
    pub(crate) cache: Option<Box<FlowCache>>,
}

impl Compiled {
    /// An engine for a chain, before its first packet.
    ///
    /// # Errors
    /// Returns an error when a model does not verify, a parameter's value does not have its type, a
    /// timer's period is 0, or links or priorities are inconsistent. (Chains from the language have
    /// none of these faults.)
    pub fn new(chain: Chain, extent: Extent, options: Options) -> Result<Self, String> {
        for node in &chain.nodes {
            check(node).map_err(|why| format!("{}: {why}", node.name))?;
        }
        let graph = Graph::new(&chain)?;
        let workers = chain.workers.max(1);
        let chain_counters = ChainCounters::new(&chain);
        let programs = Programs::new(&chain, &graph, extent, options.jit);
        let mut functions = Functions::new(chain, options.hash);
        functions.load(options.records > 0)?;
        let (records, tables) = functions.store.parts();
        records.allow(tables, options.records);
        let cache = (options.records > 0)
            .then(|| Box::new(FlowCache::new(&functions.chain, options.records, options.eager)));
        Ok(Self {
            functions,
            graph,
            workers,
            started: false,
            wake: u64::MAX,
            waiting: Waiting::default(),
            ids: 0,
            chain_counters,
            programs,
            layouts: Vec::new(),
            reached: Vec::new(),
            emissions: Vec::new(),
            cache,
        })
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
        engine.programs.bug = Some(bug);
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
        engine.functions.store.parts().0.plant(mutant);
        Ok(engine)
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
