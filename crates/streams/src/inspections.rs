//! The inspections of a connection for the signatures of a function, and the programs that run for
//! their alerts.

use crate::function::Function;
use crate::program::{self, End, View};
use braid_ir::model::{ParamId, StreamEvent};
use braid_ir::value::ParamValue;
use braid_packet::FlowKey;
use braid_signatures::{Alert, Counts, Flow, Inspection, Signatures};

/// One inspection for each parameter with signatures.
#[derive(Clone, Debug, Default)]
pub struct Inspections(pub Vec<Inspection>);

/// What inspections need of their function and their stack.
pub struct Inspected<'a> {
    of: &'a [ParamId],
    params: &'a [ParamValue],
    counts: &'a mut Counts,
    /// The number of changes of the function's parameters.
    pub changes: u64,
}

impl<'a> Inspected<'a> {
    /// For a function with these parameters.
    pub fn by(function: &'a Function, params: &'a [ParamValue], counts: &'a mut Counts) -> Self {
        Self { of: &function.inspected, params, counts, changes: function.changes }
    }
}

/// Runs a program of the function.
type Run<'a> = dyn FnMut(StreamEvent, &View<'_>) -> End + 'a;

impl Inspections {
    /// The next bytes of an end have come, from this offset on. `flow` is from their sender. Runs a
    /// program for each alert, until one of them gives up or resets the connection.
    pub fn data(
        &mut self,
        (flow, from_client): (FlowKey, bool),
        (offset, bytes): (u64, &[u8]),
        inspected: &mut Inspected<'_>,
        run: &mut Run<'_>,
    ) -> End {
        self.0.resize(inspected.of.len(), Inspection::default());
        let mut alerts = Vec::new();
        for (param, inspection) in inspected.of.iter().zip(&mut self.0) {
            let Some(set) = signatures(*param, inspected.params) else { continue };
            let from = (of(flow), from_client);
            inspection.data(set, from, (offset, bytes), inspected.counts, &mut alerts);
            for alert in alerts.drain(..) {
                let view = View { len: bytes.len() as u64, offset, ..View::of(flow) };
                let end = said(set, alert, view, run);
                if end != End::Forward {
                    return end;
                }
            }
        }
        End::Forward
    }

    /// The connection is over. `flow` is from its client. The ends of programs do not matter any
    /// more.
    pub fn close(&mut self, flow: FlowKey, inspected: &mut Inspected<'_>, run: &mut Run<'_>) {
        let mut alerts = Vec::new();
        for (param, inspection) in inspected.of.iter().zip(&mut self.0) {
            let Some(set) = signatures(*param, inspected.params) else { continue };
            inspection.close(set, of(flow), inspected.counts, &mut alerts);
            for alert in alerts.drain(..) {
                let flow = if alert.from_client { flow } else { flow.reversed() };
                said(set, alert, View::of(flow), run);
            }
        }
        self.0 = Vec::new();
    }

    /// Signatures have changed.
    pub fn changed(&mut self) {
        self.0.iter_mut().for_each(Inspection::changed);
    }

    /// Their memory (bytes).
    pub fn memory(&self) -> usize {
        self.0.iter().map(|one| size_of::<Inspection>() + one.memory()).sum()
    }
}

fn signatures(param: ParamId, params: &[ParamValue]) -> Option<&Signatures> {
    match params.get(param.index()) {
        Some(ParamValue::Signatures(set)) => Some(set),
        _ => None,
    }
}

/// Runs the program for an alert.
fn said(set: &Signatures, alert: Alert, view: View<'_>, run: &mut Run<'_>) -> End {
    let Some(signature) = set.get(alert.rule) else { return End::Forward };
    let alert = program::Alert {
        sid: signature.sid,
        rev: signature.rev,
        priority: signature.priority,
        from_client: alert.from_client,
        is_drop: signature.is_drop,
        message: &signature.message,
    };
    run(StreamEvent::Alert, &View { alert: Some(alert), ..view })
}

fn of(flow: FlowKey) -> Flow {
    let FlowKey { version, src, dst, sport, dport, .. } = flow;
    Flow { version, src, dst, sport, dport }
}
