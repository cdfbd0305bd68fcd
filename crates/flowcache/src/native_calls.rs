//! Native functions in a specialisation (SpeedyBox §IV, §V): what a function has recorded of a flow
//! becomes a part of the flow's record, as if the function had run. Header actions go into what is
//! written. When what was recorded changes, the record ends.

use crate::absences::kept_elsewhere;
use crate::bindings::{Binding, CUT, DUE};
use crate::effects::Splice;
use crate::guard::Guard;
use crate::host::Functions;
use crate::key::{LENGTH, bits};
use crate::path::{Native, Segment};
use crate::specialiser::Specialiser;
use braid_ir::graph::{Graph, port};
use braid_ir::model::{Dest, PortId};
use braid_ir::residual::{HeaderMask, Point};
use braid_ir::walk::{At, GONE, onward};
use braid_native::{HeaderAction, Payload, Recorded, Verdict};
use braid_packet::{Field, MOST};

impl<F: Functions> Specialiser<'_, F> {
    /// Asks a native function what it has recorded of the packet's flow, and does that: what becomes of the packet.
    pub(crate) fn ask(&mut self, point: Point) -> Result<Verdict, &'static str> {
        let Point { node, backward, .. } = point;
        if self.findings.path.natives().any(|one| one.node == node) {
            return Err("has the packet twice");
        }
        self.findings.lookups += 1;
        let shard = self.functions.shard(node, self.worker);
        let (flow, record) = self.recorded(node, shard)?;
        if !record.is_for_side(backward) {
            return Err("has recorded what it does with packets from the other side");
        }
        let payload = record.payload();
        if payload == Payload::Write {
            return Err("writes the payload");
        }
        if payload != Payload::Ignore && self.layout.payload_truncated() {
            return Err(CUT);
        }
        let before = if record.state.is_empty() { None } else { Some(self.change()) };
        let before = match before {
            Some(None) => return Err("sees checksums that the capture lacks"),
            Some(Some(change)) => (!change.blend.is_nothing()).then(|| Box::new(change)),
            None => None,
        };
        let verdict = self.apply(node, &record)?;
        let (table, key) = kept_elsewhere(node, shard, flow);
        self.findings.absent.push(table, &key);
        let writes = record.headers.iter().filter_map(|action| match action {
            HeaderAction::Modify(field, _) => Some(*field),
            _ => None,
        });
        self.findings.path.segments.push(Segment::Native(Native {
            node,
            backward,
            before: before.as_ref().map(|change| Box::new(change.blend)),
            state: record.state.iter().map(|function| function.payload).collect(),
            guards: record.guards.len(),
            writes: writes.collect(),
            drops: if let Verdict::Drop(reason) = verdict { Some(reason) } else { None },
            longer: self.findings.path.effects.longer(),
        }));
        self.findings.bindings.push(Binding {
            node,
            shard,
            backward,
            flow,
            has_guards: !record.guards.is_empty(),
            functions: record.state.into(),
            reads_payload: payload != Payload::Ignore,
            before,
        });
        Ok(verdict)
    }

    /// What an instance has recorded of the packet's flow, with the flow.
    fn recorded(&self, node: u16, shard: u16) -> Result<(u64, Recorded), &'static str> {
        let function = self.functions.native(node, shard);
        let function = function.ok_or("is not there")?;
        if function.is_checked() {
            return Err("is checked, and so runs on each packet");
        }
        if function.is_due(self.now) {
            return Err(DUE);
        }
        if self.packet.get(self.layout, Field::PktFragment) != Some(0) {
            return Err("gets a fragment");
        }
        let key = self.packet.flow_key(self.layout).ok_or("gets a packet of no flow")?;
        let recorded = function.recorded(&key);
        let (flow, record) = recorded.ok_or("has recorded nothing of the packet's flow")?;
        Ok((flow, record.clone()))
    }

    /// Does header actions.
    fn apply(&mut self, node: u16, record: &Recorded) -> Result<Verdict, &'static str> {
        const NEVER: &str = "has recorded what it does not declare";
        let native = self.functions.chain().nodes[usize::from(node)].model.native.as_ref();
        let may = native.ok_or("is not there")?.may();
        let all = HeaderMask { care: u128::MAX, present: self.layout.presence() };
        let mut verdict = Verdict::Forward;
        for action in &record.headers {
            match action {
                HeaderAction::Forward => {}
                HeaderAction::Drop(_) if !may.drops => return Err(NEVER),
                HeaderAction::Drop(_) if !self.findings.path.effects.splices.is_empty() => {
                    return Err("drops packets whose length it has changed");
                }
                HeaderAction::Drop(reason) => return Ok(Verdict::Drop(*reason)),
                HeaderAction::Output(_) if !may.redirects => return Err(NEVER),
                HeaderAction::Output(port) => verdict = Verdict::Port(*port),
                HeaderAction::Modify(field, _) if !may.may_write(*field) => return Err(NEVER),
                HeaderAction::Modify(..) if !self.findings.path.effects.splices.is_empty() => {
                    return Err("changes headers that it has moved");
                }
                HeaderAction::Modify(field, value) => {
                    let bits = bits(all, self.outline, *field);
                    let assigned = bits.and_then(|bits| self.assign_bits(*field, bits, *value));
                    assigned.ok_or("has recorded a change that hangs on more than the key")?;
                }
                HeaderAction::Encap { at, bytes } if may.adds => {
                    self.splice(Splice::In { at: *at, bytes: bytes.as_slice().into() })?;
                }
                HeaderAction::Decap { at, len } if may.removes => {
                    self.splice(Splice::Out { at: *at, len: *len })?;
                }
                HeaderAction::Encap { .. } | HeaderAction::Decap { .. } => return Err(NEVER),
            }
        }
        Ok(verdict)
    }

    /// Bytes are put in or taken out. All packets of the flow have those in front, and the same room.
    fn splice(&mut self, splice: Splice) -> Result<(), &'static str> {
        let splices = &self.findings.path.effects.splices;
        let sum = |put_in: usize, one: &Splice| put_in + one.change().2;
        let (at, less, more) = splice.change();
        let put_in = splices.iter().fold(more, sum);
        let there =
            self.outline.l4().saturating_add_signed(self.findings.path.effects.longer() as isize);
        if at.checked_add(less).is_none_or(|end| end > there) {
            return Err("puts in or takes out bytes behind the headers");
        }
        let most = MOST.saturating_sub(u32::try_from(put_in).unwrap_or(u32::MAX));
        self.findings.guards.add(Guard { number: LENGTH, least: 0, most });
        self.findings.path.effects.splices.push(splice);
        Ok(())
    }

    /// Where a packet is of which a native function has decided this.
    pub(crate) fn decided(&mut self, point: Point, verdict: Verdict, graph: &Graph) -> At {
        self.hops += 1;
        let to = |dest| onward(graph.next(point.node, port(dest, point.backward)));
        match verdict {
            Verdict::Forward => to(Dest::Onward),
            Verdict::Port(number) => to(Dest::Port(PortId(number + 2))),
            Verdict::Back => to(Dest::Back),
            Verdict::Drop(_) | Verdict::Consume => GONE,
        }
    }
}
