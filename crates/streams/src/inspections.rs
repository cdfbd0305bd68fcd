//! The inspections of a connection for the signatures of a function, and the programs that run for
//! their alerts.

use crate::missed::Missed;
use crate::program::{self, End, View};
use braid_ir::model::{ParamId, StreamEvent};
use braid_ir::value::ParamValue;
use braid_packet::FlowKey;
use braid_signatures::{Alert, Flow, Inspection, Kind, Rules, Signatures, Thresholds};

/// One inspection for each parameter with signatures.
#[derive(Clone, Debug, Default)]
pub struct Inspections(pub Vec<Inspection>);

/// How often the signatures of a function have held lately, one for each parameter.
#[derive(Debug, Default)]
pub struct Lately(pub Vec<Thresholds>);

impl Lately {
    /// The thresholds of a parameter, by its number among those of the function.
    fn of(&mut self, number: usize) -> Option<&mut Thresholds> {
        if self.0.len() <= number {
            self.0.resize_with(number + 1, Thresholds::default);
        }
        self.0.get_mut(number)
    }
}

/// What inspections, and the parsing of HTTP, need of their function and their stack.
pub struct Inspected<'a> {
    /// The parameters with signatures.
    pub of: &'a [ParamId],
    pub params: &'a [ParamValue],
    pub lately: &'a mut Lately,
    /// The time of the packet (nanoseconds since the epoch).
    pub now: u64,
    pub missed: &'a mut Missed,
    /// The number of changes of the function's parameters.
    pub changes: u64,
}

impl Inspected<'_> {
    /// Whether there are signatures about packets of a kind.
    pub fn has_packets(&self, kind: Kind) -> bool {
        let mut sets = self.of.iter().filter_map(|param| signatures(*param, self.params));
        sets.any(|set| set.has_packets(kind))
    }

    /// Inspects by the signatures of a parameter, by its number among those of the function, and
    /// runs a program for each alert until one of them gives up or resets the connection.
    pub fn by(
        &mut self,
        number: usize,
        inspect: impl FnOnce(&mut Rules<'_>),
        run: &mut dyn FnMut(&Signatures, Alert) -> End,
    ) -> End {
        let set = self.of.get(number).and_then(|param| signatures(*param, self.params));
        let (Some(set), Some(thresholds)) = (set, self.lately.of(number)) else {
            return End::Forward;
        };
        let mut alerts = Vec::new();
        let (now, counts) = (self.now, &mut self.missed.inspected);
        inspect(&mut Rules { set, thresholds, now, counts, alerts: &mut alerts });
        let mut ends = alerts.into_iter().map(|alert| run(set, alert));
        ends.find(|end| *end != End::Forward).unwrap_or(End::Forward)
    }
}

/// Runs a program of the function.
pub type Run<'a> = dyn FnMut(&View<'_>) -> End + 'a;

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
        for (number, inspection) in self.0.iter_mut().enumerate() {
            let from = (self::flow(flow), from_client);
            let inspect = |rules: &mut Rules<'_>| inspection.data(rules, from, (offset, bytes));
            let view = View { bytes, offset, ..View::of(StreamEvent::Alert, flow) };
            let end = inspected.by(number, inspect, &mut |set, alert| said(set, alert, view, run));
            if end != End::Forward {
                return end;
            }
        }
        End::Forward
    }

    /// Whether rules have set bits.
    pub fn has_bits(&self) -> bool {
        self.0.iter().any(Inspection::has_bits)
    }

    /// The connection is over. `flow` is from its client. The ends of programs do not matter any
    /// more.
    pub fn close(&mut self, flow: FlowKey, inspected: &mut Inspected<'_>, run: &mut Run<'_>) {
        for (number, inspection) in self.0.iter_mut().enumerate() {
            let inspect = |rules: &mut Rules<'_>| inspection.close(rules, self::flow(flow));
            inspected.by(number, inspect, &mut |set, alert| {
                let flow = if alert.from_client { flow } else { flow.reversed() };
                said(set, alert, View::of(StreamEvent::Alert, flow), run);
                End::Forward
            });
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
pub fn said(set: &Signatures, alert: Alert, view: View<'_>, run: &mut Run<'_>) -> End {
    let Some(signature) = set.get(alert.rule) else { return End::Forward };
    let alert = program::Alert {
        sid: signature.sid,
        rev: signature.rev,
        priority: signature.priority,
        from_client: alert.from_client,
        is_drop: signature.is_drop,
        message: &signature.message,
    };
    run(&View { alert: Some(alert), ..view })
}

/// The ends of a flow.
pub fn flow(flow: FlowKey) -> Flow {
    let FlowKey { version, src, dst, sport, dport, .. } = flow;
    Flow { version, src, dst, sport, dport }
}
