//! Bindings of native functions to flow records (SpeedyBox §IV, §V): state functions and the
//! conditions of guards run for each packet that takes a record.

use crate::host::{Functions, State};
use crate::mutants::RecordMutant;
use braid_ir::engine::Outputs;
use braid_ir::residual::HeaderMask;
use braid_native::StateFunction;
use braid_native::bridge as native;
use braid_packet::blend::{Blend, Outline, WIDE, Window};
use braid_packet::{Layout, Packet};

/// Why a function cannot be asked, or run, for a packet.
pub(crate) const DUE: &str = "has something to do first";
pub(crate) const CUT: &str = "wants a payload that the capture cut";

/// A change of headers.
#[derive(Clone, Debug)]
pub(crate) struct HeaderChange {
    pub(crate) blend: Blend,
    pub(crate) bytes: Window<WIDE>,
    pub(crate) sums: [u16; 2],
}

/// What a native function does for each packet of a flow.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) node: u16,
    pub(crate) shard: u16,
    pub(crate) backward: bool,
    /// The flow, as the function knows it.
    pub(crate) flow: u64,
    pub(crate) functions: Box<[StateFunction]>,
    /// Whether it looks at conditions afterwards.
    pub(crate) has_guards: bool,
    pub(crate) reads_payload: bool,
    /// What happens to the packet's headers before, since the last one whose functions see them.
    pub(crate) before: Option<Box<HeaderChange>>,
}

/// What native functions do for each packet that takes a record.
#[derive(Debug)]
pub(crate) struct Bindings {
    /// Headers that its packets have, as far as programs look at them.
    pub(crate) shape: HeaderMask,
    /// In the order of the packets' path.
    pub(crate) all: Box<[Binding]>,
}

impl Bindings {
    /// What happens to headers before functions see them.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &HeaderChange> {
        self.all.iter().filter_map(|one| one.before.as_deref())
    }

    /// Whether a packet that comes now can take the record: it has the headers, and nothing is due before it.
    pub(crate) fn are_ready(&self, functions: &impl Functions, layout: &Layout, time: u64) -> bool {
        let ignores = functions.state().dependents().has_mutant(RecordMutant::NativeDueIgnored);
        let is_ready = |one: &Binding| {
            let function = functions.native(one.node, one.shard);
            function.is_some_and(|function| ignores || !function.is_due(time))
                && !(one.reads_payload && layout.payload_truncated())
        };
        self.shape.fits(layout.presence()) && self.all.iter().all(is_ready)
    }

    /// Runs the functions for a packet that takes the record. Its headers are then as they were for
    /// the last one that saw them.
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
            if let Some(HeaderChange { blend, bytes, sums }) = one.before.as_deref() {
                packet.blend_wide((layout, outline), blend, bytes, *sums);
            }
            (packet.backward, packet.held) = (one.backward, false);
            function.run_state(one.flow, &one.functions, packet, time);
            end_changed(state, (one.node, one.shard), function);
            if function.has_logs() {
                for log in function.take_logs() {
                    out.event(native::event(one.node, log));
                }
            }
        }
    }

    /// The function, if there is one, for which a packet cannot take the record now, and why.
    pub(crate) fn unready(
        &self,
        functions: &impl Functions,
        layout: &Layout,
        time: u64,
    ) -> Option<(u16, &'static str)> {
        self.all.iter().find_map(|one| {
            let function = functions.native(one.node, one.shard)?;
            let is_cut = one.reads_payload && layout.payload_truncated();
            match (function.is_due(time), is_cut) {
                (true, _) => Some((one.node, DUE)),
                (_, true) => Some((one.node, CUT)),
                _ => None,
            }
        })
    }
}

/// Whether a record is a wide one, and where it is among those of its kind.
pub(crate) fn place(record: u32) -> (usize, usize) {
    ((record >> 31) as usize, (record & u32::MAX >> 1) as usize)
}

/// Ends the records that depend on recordings that the function's instance has changed.
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
