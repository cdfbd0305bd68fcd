//! Programs for events of connections, and when they are compiled.
//!
//! The programs depend on no parameter, so they live as long as the engine, and the instances of a
//! model share them.

use crate::options::Jit;
use braid_compiler::streams::{self, COMMON, EventProgram};
use braid_ir::chain::Chain;
use braid_ir::engine::Compilation;
use braid_ir::model::{Model, ReasonId, StreamEvent, Word};
use braid_ir::residual::{End, Exit, Fate};
use braid_jit::{Code, Count, Error, Resource, compile};
use braid_packet::{FlowKey, Layout, Link, Packet, proto};
use braid_streams::End as Answer;
use std::cell::Cell;
use std::sync::Arc;

/// The kinds of flows: two versions of IP, and two protocols.
const KINDS: usize = 4;

/// The programs of all models of a chain that take events.
pub(crate) struct EventPrograms {
    jit: Jit,
    /// By function: the number of its model.
    models: Vec<Option<usize>>,
    /// By model: its programs by [`place`]. `None`: not made yet, or running.
    programs: Vec<Vec<Option<Box<EventCode>>>>,
}

/// A program with its machine code, and what its runs need.
pub(crate) struct EventCode {
    pub(crate) program: EventProgram,
    /// The number of runs before the program is compiled.
    waits: u32,
    /// `None` before it is compiled.
    pub(crate) code: Option<Result<Code, Error>>,
    /// By block: the answer to the stack. `None` for a fault.
    pub(crate) answers: Vec<Option<Answer>>,
    pub(crate) counts: Vec<Cell<Count>>,
    pub(crate) inputs: Vec<Word>,
    /// The values of the steps that the host performs.
    pub(crate) words: Vec<Word>,
    /// Stands for the packet that an event does not have. Its length is the number of the bytes
    /// that have come.
    pub(crate) packet: Packet,
    pub(crate) layout: Layout,
}

/// The place of a program among those of its model.
fn place(event: StreamEvent, flow: FlowKey) -> Option<usize> {
    let protocol = [proto::TCP, proto::UDP].iter().position(|of| *of == flow.proto)?;
    Some(event as usize * KINDS + usize::from(flow.version == 6) + 2 * protocol)
}

impl EventPrograms {
    /// For the functions of a chain. With `ahead`, all programs are compiled now, so that no packet
    /// waits for the compiler.
    pub(crate) fn new(chain: &Chain, jit: Jit, ahead: bool) -> Self {
        let mut distinct: Vec<&Arc<Model>> = Vec::new();
        let mut models = Vec::new();
        for model in chain.nodes.iter().map(|node| &node.model) {
            let mut number = || {
                let known = distinct.iter().position(|one| *one == model);
                known.unwrap_or_else(|| {
                    distinct.push(model);
                    distinct.len() - 1
                })
            };
            models.push(model.is_stream().then(&mut number));
        }
        let none = || std::iter::repeat_with(|| None).take(StreamEvent::ALL.len() * KINDS);
        let programs = distinct.iter().map(|_| none().collect()).collect();
        let mut all = Self { jit, models, programs };
        if ahead && jit != Jit::Off {
            let all = all.programs.iter_mut().zip(distinct);
            all.for_each(|(programs, model)| compile_all(model, programs));
        }
        all
    }

    /// Takes out a function's program in machine code, for a run. `None` if the model interpreter
    /// has to run the model's program.
    pub(crate) fn take(
        &mut self,
        (node, model): (u16, &Model),
        event: StreamEvent,
        flow: FlowKey,
    ) -> Option<Box<EventCode>> {
        let Jit::After(waits) = self.jit else { return None };
        let slot = self.slot(node, event, flow)?;
        if slot.is_none() {
            *slot = EventCode::new(model, event, flow, waits).map(Box::new);
        }
        let code = slot.as_mut()?;
        match code.waits {
            0 => code.compile(),
            _ => code.waits -= 1,
        }
        slot.take_if(|code| matches!(code.code, Some(Ok(_))))
    }

    /// Puts a program back.
    pub(crate) fn put(
        &mut self,
        node: u16,
        (event, flow): (StreamEvent, FlowKey),
        code: Box<EventCode>,
    ) {
        if let Some(slot) = self.slot(node, event, flow) {
            *slot = Some(code);
        }
    }

    fn slot(
        &mut self,
        node: u16,
        event: StreamEvent,
        flow: FlowKey,
    ) -> Option<&mut Option<Box<EventCode>>> {
        let model = (*self.models.get(usize::from(node))?)?;
        self.programs.get_mut(model)?.get_mut(place(event, flow)?)
    }

    /// Adds the numbers of programs that are compiled, interpreted and refused.
    pub(crate) fn add_to(&self, compilation: &mut Compilation) {
        for code in self.programs.iter().flatten().flatten() {
            match &code.code {
                Some(Ok(_)) => compilation.compiled += 1,
                Some(Err(why)) => {
                    *compilation.refused.entry(why.to_string()).or_default() += 1;
                }
                None => compilation.interpreted += 1,
            }
        }
    }
}

/// Compiles all programs of a model for connections and, if it has any, for alerts of datagrams.
fn compile_all(model: &Model, programs: &mut [Option<Box<EventCode>>]) {
    let flow = |version, proto| FlowKey { version, src: 0, dst: 0, proto, sport: 0, dport: 0 };
    for (event, _) in &model.streams {
        for flow in [4, 6].into_iter().flat_map(|it| [flow(it, proto::TCP), flow(it, proto::UDP)]) {
            let occurs = flow.proto == proto::TCP || *event == StreamEvent::Alert;
            let code = occurs.then(|| EventCode::new(model, *event, flow, 0)).flatten();
            let slot = place(*event, flow).and_then(|place| programs.get_mut(place));
            if let (Some(mut code), Some(slot)) = (code, slot) {
                code.compile();
                *slot = Some(Box::new(code));
            }
        }
    }
}

impl EventCode {
    /// A program without machine code. `None` if only the model interpreter can run it.
    fn new(model: &Model, event: StreamEvent, flow: FlowKey, waits: u32) -> Option<Self> {
        let program = streams::program(model, event, flow)?;
        let residual = &program.residual;
        let answer = |end: &End| match end {
            End::Exit(Exit { fate: Fate::Output { .. }, .. }) => Some(Answer::Forward),
            End::Exit(Exit { fate: Fate::Drop { reason: ReasonId(reason), .. }, .. }) => {
                Some(Answer::Reset(ReasonId(*reason)))
            }
            End::Exit(Exit { fate: Fate::Consume { .. }, .. }) => Some(Answer::Bypass),
            _ => None,
        };
        let packet = Packet::new(Link::RawIp, 0, Vec::new());
        Some(Self {
            answers: residual.blocks.iter().map(|block| answer(&block.end)).collect(),
            counts: vec![Cell::default(); residual.counter_lists.len()],
            inputs: vec![0; COMMON + program.inputs.len()],
            words: vec![0; residual.values.len()],
            layout: packet.parse(),
            packet,
            waits,
            code: None,
            program,
        })
    }

    fn compile(&mut self) {
        let residual = &self.program.residual;
        self.code.get_or_insert_with(|| compile(residual, &mut |_, resource| number(resource)));
    }
}

/// The number of a resource in machine code: its number in the model.
fn number(resource: Resource) -> Option<u32> {
    match resource {
        Resource::Table(state) => Some(state.0),
        Resource::Rules(param)
        | Resource::Routes(param)
        | Resource::List(param)
        | Resource::Pool(param) => Some(param.0),
        Resource::Queue(queue) => Some(queue.0),
    }
}
