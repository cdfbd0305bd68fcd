//! The reference engine: runs a chain function by function, like a row of separate boxes. Each
//! function parses the packet again. The engine defines what a chain does, so it is simple rather
//! than fast.
#![forbid(unsafe_code)]

mod arith;
mod branches;
mod calls;
mod control;
mod due;
mod engine;
mod instance;
mod merge;
mod native;
mod ops;
mod others;
mod packet;
mod report;
mod run;
mod schedule;
mod snapshot;
mod state;
mod streams;
mod subject;
mod table;
pub mod trace;
mod walk;

use crate::trace::{Between, Observer, Silent};
use braid_ir::chain::{Chain, Change, Control};
use braid_ir::engine::{Counters, Engine, Outputs, StateEntry, Watcher, malformed_loss};
use braid_ir::graph::Graph;
use braid_ir::model::Setting;
use braid_ir::snapshot::{ImportError, Snapshot};
use braid_ir::subscriptions::Subscriptions;
use braid_ir::value::ParamValue;
use braid_ir::verify::verify;
use braid_native::{Noted, Profile};
use braid_packet::{Burst, Packet};
pub use engine::Reference;
use engine::Walk;
use instance::Instance;
use schedule::{Expiries, Waiting};

impl Reference {
    /// An engine for a chain, before its first packet.
    ///
    /// # Errors
    /// A model does not verify, a parameter's value does not have its type, a timer's period is 0,
    /// or links, priorities or subscriptions are invalid. Chains from the language have none of
    /// these errors.
    pub fn new(chain: Chain) -> Result<Self, String> {
        for node in &chain.nodes {
            verify(&node.model).map_err(|errors| describe(&node.name, &errors))?;
            check_params(node)?;
        }
        let graph = Graph::new(&chain)?;
        let subscriptions = Subscriptions::new(&chain)?;
        let mut ids = 0;
        let workers = chain.workers.max(1);
        let nodes = (0..).zip(&chain.nodes);
        let nodes: Vec<_> = nodes
            .map(|(place, node)| Instance::new(node, place, chain.seed, workers, &mut ids))
            .collect();
        let mut engine = Self {
            graph,
            subscriptions,
            nodes,
            now: 0,
            started: false,
            expiries: Expiries::default(),
            waiting: Waiting::default(),
            ids,
            counters: Counters::default(),
            chain,
        };
        native::load(&mut engine.nodes, &engine.chain)?;
        Ok(engine)
    }

    /// As [`Engine::packet`], and reports each event of the packet's walk to `observer`.
    pub fn trace(
        &mut self,
        ingress: u16,
        mut packet: Packet,
        out: &mut dyn Outputs,
        observer: &mut dyn Observer,
    ) {
        self.advance_to(packet.time_ns, out, observer);
        self.start_timers();
        self.counters.packets_in += 1;
        packet.time_ns = self.now;
        packet.ingress = ingress;
        let worker = self.chain.worker(&packet, &packet.parse());
        let mut walk = Walk { hops: 0, worker, out, observer };
        match malformed_loss(&packet, self.chain.malformed) {
            Some(reason) => self.lose(reason, &mut walk),
            None => self.arrive(self.graph.entry(ingress), packet, &mut walk),
        }
    }
}

impl Engine for Reference {
    fn burst(&mut self, burst: &mut Burst, out: &mut dyn Outputs) {
        burst.take_each(|at, packet| {
            out.at(at);
            self.trace(packet.ingress, packet, out, &mut Silent);
        });
    }

    fn watched(
        &mut self,
        ingress: u16,
        packet: Packet,
        out: &mut dyn Outputs,
        watcher: &mut dyn Watcher,
    ) {
        self.advance_to(packet.time_ns, out, &mut Silent);
        self.trace(ingress, packet, out, &mut Between(watcher));
    }

    fn advance(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.pass_time(time_ns, out);
        self.advance_natives(out);
    }

    fn next_release(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|((at, ..), _)| *at)
    }

    fn pass_time(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.advance_to(time_ns, out, &mut Silent);
    }

    fn begin(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.advance_to(time_ns, out, &mut Silent);
        self.start_timers();
    }

    fn control(&mut self, control: &Control, out: &mut dyn Outputs) -> Result<(), String> {
        self.advance_to(control.time_ns, out, &mut Silent);
        control::change(&mut self.nodes, &mut self.expiries, control)?;
        if let Change::Set(value) = &control.change {
            self.chain.steering.change(control.node, control.param, value);
        }
        Ok(())
    }

    fn counters(&self) -> Counters {
        report::counters(&self.nodes, &self.counters)
    }

    fn state(&self) -> Vec<StateEntry> {
        report::state(&self.nodes)
    }

    fn export(&mut self) -> Snapshot {
        snapshot::export(self)
    }

    fn import(&mut self, snapshot: Snapshot) -> Result<(), ImportError> {
        snapshot::import(self, snapshot)
    }

    fn problems(&self) -> Vec<(u16, Noted)> {
        native::problems(&self.nodes)
    }

    fn observed(&self) -> Vec<(u16, Profile)> {
        native::profiles(&self.nodes)
    }
}

fn describe(name: &str, errors: &[braid_ir::verify::VerifyError]) -> String {
    let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
    format!("{name}: its model does not verify: {}", all.join("; "))
}

fn check_params(node: &braid_ir::chain::Node) -> Result<(), String> {
    let model = &node.model;
    if node.params.len() != model.params.len() {
        let (given, wanted) = (node.params.len(), model.params.len());
        return Err(format!("{}: {given} values for {wanted} parameters", node.name));
    }
    for (decl, value) in model.params.iter().zip(&node.params) {
        value.check(&decl.ty).map_err(|why| format!("{}.{}: {why}", node.name, decl.name))?;
    }
    let zero = |setting: Setting| match setting {
        Setting::Const(value) => value == 0,
        Setting::Param(param) => node.params[param.index()] == ParamValue::Scalar(0),
    };
    if model.timers.iter().any(|timer| zero(timer.period)) {
        return Err(format!("{}: a timer's period is 0", node.name));
    }
    Ok(())
}
