//! Bindings of native functions to flow records (SpeedyBox §IV, §V). State functions and the
//! conditions of guards run for each packet that takes a record.

use crate::host::{Functions, State};
use crate::mutants::RecordMutant;
use crate::obstacle::NoRecording;
use braid_ir::chain::Chain;
use braid_ir::engine::Outputs;
use braid_ir::residual::HeaderMask;
use braid_native::bridge as native;
use braid_native::{Output, StateFunction};
use braid_packet::rewrite::{Outline, Rewrite, WIDE, Window};
use braid_packet::{Layout, Packet};

/// A change of headers: a masked rewrite, its new bytes, and the amounts that it adds to checksums.
#[derive(Clone, Debug)]
pub(crate) struct HeaderChange {
    pub(crate) rewrite: Rewrite,
    pub(crate) bytes: Window<WIDE>,
    pub(crate) sums: [u16; 2],
}

/// The work of a native function for each packet of a flow.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) node: u16,
    pub(crate) shard: u16,
    pub(crate) backward: bool,
    /// The number by which the function knows the flow.
    pub(crate) flow: u64,
    pub(crate) functions: Box<[StateFunction]>,
    /// Whether the function checks conditions after its state functions.
    pub(crate) has_guards: bool,
    pub(crate) reads_payload: bool,
    /// The header change that is applied before this function runs: all changes since the last
    /// function that reads headers. `None` if there is nothing to apply.
    pub(crate) before: Option<Box<HeaderChange>>,
}

/// The work of native functions for each packet that takes a record.
#[derive(Debug)]
pub(crate) struct Bindings {
    /// The header shape of the record's packets, as far as programs read headers.
    pub(crate) shape: HeaderMask,
    /// In the order of the packets' path.
    pub(crate) all: Box<[Binding]>,
}

impl Bindings {
    /// The header changes that are applied before functions that read headers.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &HeaderChange> {
        self.all.iter().filter_map(|one| one.before.as_deref())
    }

    /// Whether a packet can take the record now. The packet must have the headers, no function may
    /// have due work, and no function may need a payload that the capture has cut.
    pub(crate) fn are_ready(&self, functions: &impl Functions, layout: &Layout, time: u64) -> bool {
        let ignores = functions.state().dependents().has_mutant(RecordMutant::NativeDueIgnored);
        let is_ready = |one: &Binding| {
            let function = functions.native(one.node, one.shard);
            function.is_some_and(|function| ignores || !function.is_due(time))
                && !(one.reads_payload && layout.payload_truncated())
        };
        self.shape.fits(layout.presence()) && self.all.iter().all(is_ready)
    }

    /// Runs the functions for a packet that takes the record. Afterwards the packet has the headers
    /// that the last function read.
    pub(crate) fn run(
        &self,
        functions: &mut impl Functions,
        packet: &mut Packet,
        (layout, outline): (&Layout, Outline),
        time: u64,
        out: &mut dyn Outputs,
    ) {
        packet.time_ns = time;
        for one in &self.all {
            let Some((function, state)) = functions.native_mut(one.node, one.shard) else {
                continue;
            };
            if one.functions.is_empty() && !one.has_guards {
                if !state.dependents().has_mutant(RecordMutant::NativeUnseen) {
                    function.sees(one.flow, time);
                }
                continue;
            }
            if let Some(HeaderChange { rewrite, bytes, sums }) = one.before.as_deref() {
                layout.rewrite_wide((packet.data_mut(), outline), rewrite, bytes, *sums);
            }
            (packet.backward, packet.held) = (one.backward, false);
            function.run_state(one.flow, &one.functions, packet, time);
            end_changed(state, (one.node, one.shard), function);
            if function.has_outputs() {
                let outputs = function.take_outputs();
                publish(functions.chain(), one.node, outputs, out);
            }
        }
    }

    /// The first function that keeps a packet from taking the record now, and the reason.
    pub(crate) fn unready(
        &self,
        functions: &impl Functions,
        layout: &Layout,
        time: u64,
    ) -> Option<(u16, NoRecording)> {
        self.all.iter().find_map(|one| {
            let function = functions.native(one.node, one.shard)?;
            let is_cut = one.reads_payload && layout.payload_truncated();
            match (function.is_due(time), is_cut) {
                (true, _) => Some((one.node, NoRecording::Due)),
                (_, true) => Some((one.node, NoRecording::Cut)),
                _ => None,
            }
        })
    }
}

/// Publishes what a native function has published. No function takes it: flows with such events
/// have no records.
#[expect(clippy::indexing_slicing, reason = "bindings name functions of the chain")]
fn publish(chain: &Chain, node: u16, outputs: Vec<Output>, out: &mut dyn Outputs) {
    let model = &chain.nodes[usize::from(node)].model;
    let events = outputs.into_iter().filter_map(|output| native::event(node, model, output));
    events.for_each(|(event, _)| out.event(event));
}

/// The width of a record (0: narrow, 1: wide) and its place among the records of that width.
pub(crate) fn place(record: u32) -> (usize, usize) {
    ((record >> 31) as usize, (record & u32::MAX >> 1) as usize)
}

/// Ends the records that depend on a recording that this function instance has changed.
#[inline]
pub fn end_changed(
    state: &mut State,
    (node, shard): (u16, u16),
    function: &mut braid_native::Instance,
) {
    if function.has_changed() {
        for flow in function.take_changed() {
            let (records, tables) = state.parts();
            records.change_elsewhere(tables, (node, shard), flow);
        }
    }
}
