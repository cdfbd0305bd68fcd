//! The packet of an instance's call, and the operations of the call on it.

use crate::host::{Refused, State};
use crate::record::Payload;
use braid_ir::model::TagDecl;
use braid_ir::native::Profile;
use braid_packet::{Access, Field, FlowKey, Header, Layout, Packet};

/// The packet of a call.
pub(crate) struct Subject {
    pub(crate) packet: Packet,
    layout: Layout,
    /// The packet before its first direct change, if changes are checked.
    entered: Option<Packet>,
    /// The key of its flow as it entered, once it was needed.
    key: Option<Option<FlowKey>>,
    /// Its flow, once the function asked for it.
    flow: Option<u64>,
    /// How the call may use the payload.
    payload: Payload,
}

type Done<T> = Result<T, Refused>;

impl Subject {
    pub(crate) fn new(packet: Packet, payload: Payload) -> Self {
        let layout = packet.parse();
        Self { packet, layout, entered: None, key: None, flow: None, payload }
    }

    /// The same for a packet whose flow is already determined.
    pub(crate) fn of_flow(packet: Packet, payload: Payload, flow: u64) -> Self {
        Self { flow: Some(flow), ..Self::new(packet, payload) }
    }

    /// The flow of the packet as it entered.
    pub(crate) fn flow(&mut self, state: &mut State) -> u64 {
        if let Some(flow) = self.flow {
            return flow;
        }
        if state.is_observed() {
            state.observed.reads.extend(FlowKey::FIELDS);
        }
        let flow = self.key().map_or(0, |key| state.flow(key));
        // Where there is no room, the function may make some.
        self.flow = Some(flow).filter(|flow| *flow != 0);
        flow
    }

    /// The key of the flow as the packet entered. This must be called before the packet changes.
    fn key(&mut self) -> Option<FlowKey> {
        *self.key.get_or_insert_with(|| self.packet.flow_key(&self.layout))
    }

    /// Prepares for a direct change of the packet's bytes.
    fn by_hand(&mut self, state: &State) {
        self.key();
        if self.entered.is_none() && (state.declared.is_some() || state.is_observed()) {
            self.entered = Some(self.packet.clone());
        }
    }

    fn field(state: &mut State, number: i32) -> Done<Field> {
        let at = usize::try_from(number).ok();
        let info = at.and_then(|at| braid_packet::FIELDS.get(at));
        info.map(|info| info.field)
            .ok_or_else(|| state.misuse(format!("asks for field {number}, which does not exist")))
    }

    pub(crate) fn get(&self, state: &mut State, number: i32) -> Done<u128> {
        let field = Self::field(state, number)?;
        state.allowed(|p| p.may_read(field), || format!("reads {}", field.info().name))?;
        if state.is_observed() {
            state.observed.reads.insert(field);
        }
        self.packet.get(&self.layout, field).ok_or(Refused::Absent)
    }

    pub(crate) fn set(&mut self, state: &mut State, number: i32, value: u128) -> Done<()> {
        let field = Self::field(state, number)?;
        let info = field.info();
        if info.access == Access::Ro {
            return Err(state.misuse(format!("assigns {}, which is read-only", info.name)));
        }
        if value >> (info.width - 1) > 1 {
            let (name, width) = (info.name, info.width);
            return Err(state.misuse(format!("assigns {value} to {name}, which has {width} bits")));
        }
        self.headers_allowed(state)?;
        state.allowed(|p| p.may_write(field), || format!("writes {}", info.name))?;
        if state.is_observed() {
            state.observed.writes.insert(field);
        }
        self.key();
        if !self.packet.set(&self.layout, field, value) {
            return Err(Refused::Absent);
        }
        self.layout = self.packet.parse();
        Ok(())
    }

    pub(crate) fn has(&self, state: &mut State, header: Option<Header>) -> Done<bool> {
        match header {
            Some(header) => Ok(self.layout.has(header)),
            None => Err(state.misuse("asks for a header that does not exist".to_owned())),
        }
    }

    /// The tag with this number.
    fn tag_decl(state: &mut State, number: i32) -> Done<TagDecl> {
        let at = usize::try_from(number).ok();
        let decl = at.and_then(|at| state.tags.get(at)).cloned();
        decl.ok_or_else(|| state.misuse(format!("uses tag {number}, which it does not declare")))
    }

    /// A tag's value. A tag that no function has set is 0.
    pub(crate) fn tag(&self, state: &mut State, number: i32) -> Done<u128> {
        let TagDecl { name, ty } = Self::tag_decl(state, number)?;
        // Another function may have set a tag of the same name with a wider type.
        Ok(self.packet.tags.value(&name) & ty.max())
    }

    pub(crate) fn set_tag(&mut self, state: &mut State, number: i32, value: u128) -> Done<()> {
        if self.payload != Payload::Write {
            return Err(state.misuse("a state function sets a tag".to_owned()));
        }
        let TagDecl { name, ty } = Self::tag_decl(state, number)?;
        if value > ty.max() {
            let wrong = format!("sets the tag {name} to {value}; it has {} bits", ty.width);
            return Err(state.misuse(wrong));
        }
        self.packet.tags.set(&name, value);
        Ok(())
    }

    /// Whether the call may send a packet of this length.
    pub(crate) fn may_send(&self, state: &mut State, length: usize) -> Done<()> {
        if self.payload != Payload::Write {
            return Err(state.misuse("a state function sends a packet".to_owned()));
        }
        state.may_send(length)
    }

    /// The captured bytes: all of them, or only those before a payload that may not be read.
    pub(crate) fn bytes(&self, state: &mut State) -> Done<&[u8]> {
        state.allowed(|p| p.reads_bytes, || "reads the packet's bytes".to_owned())?;
        state.observed.reads_bytes = true;
        let end = self.end(Payload::Read);
        Ok(self.packet.data().get(..end).unwrap_or_default())
    }

    /// The captured bytes, to be changed. The changes are checked when the call is over.
    pub(crate) fn change_bytes(&mut self, state: &mut State) -> Done<&mut [u8]> {
        let may = |p: &Profile| p.writes_bytes || p.writes_payload || !p.writes.is_empty();
        self.headers_allowed(state)?;
        state.allowed(may, || "writes the packet's bytes".to_owned())?;
        state.observed.reads_bytes = true;
        state.observed.writes_bytes = true;
        self.by_hand(state);
        let end = self.end(Payload::Write);
        Ok(self.packet.data_mut().get_mut(..end).unwrap_or_default())
    }

    /// The end of the bytes that a call may use if it uses the payload like this.
    fn end(&self, wanted: Payload) -> usize {
        let all = self.packet.data().len();
        if wanted <= self.payload { all } else { self.layout.payload_offset().min(all) }
    }

    /// Whether a state function may use the payload like this.
    fn payload_allowed(&self, state: &mut State, wanted: Payload) -> Done<()> {
        if wanted <= self.payload {
            return Ok(());
        }
        let does = if wanted == Payload::Write { "writes" } else { "reads" };
        let said = if self.payload == Payload::Read { "reads" } else { "ignores" };
        Err(state.misuse(format!("a state function {does} the payload that it says it {said}")))
    }

    /// Whether headers may be changed. A state function may not change them, unless it writes the
    /// payload: header actions are for that.
    fn headers_allowed(&self, state: &mut State) -> Done<()> {
        match self.payload {
            Payload::Write => Ok(()),
            _ => Err(state.misuse("a state function changes the packet's headers".to_owned())),
        }
    }

    pub(crate) fn payload(&self, state: &mut State) -> Done<&[u8]> {
        state.allowed(|p| p.reads_payload, || "reads the payload".to_owned())?;
        state.observed.reads_payload = true;
        self.payload_allowed(state, Payload::Read)?;
        if self.layout.payload_truncated() {
            return Err(Refused::Absent);
        }
        Ok(self.packet.payload(&self.layout))
    }

    pub(crate) fn change_payload(&mut self, state: &mut State) -> Done<&mut [u8]> {
        state.allowed(|p| p.writes_payload, || "writes the payload".to_owned())?;
        state.observed.reads_payload = true;
        state.observed.writes_payload = true;
        self.payload_allowed(state, Payload::Write)?;
        if self.layout.payload_truncated() {
            return Err(Refused::Absent);
        }
        self.key();
        let (start, len) = (self.layout.payload_offset(), self.packet.payload(&self.layout).len());
        Ok(self.packet.data_mut().get_mut(start..start + len).unwrap_or_default())
    }

    pub(crate) fn insert(&mut self, state: &mut State, at: usize, bytes: &[u8]) -> Done<()> {
        self.headers_allowed(state)?;
        state.allowed(|p| p.adds, || "adds headers".to_owned())?;
        state.observed.adds = true;
        self.key();
        if !self.packet.insert(at, bytes) {
            return Err(Refused::Absent);
        }
        self.layout = self.packet.parse();
        Ok(())
    }

    pub(crate) fn remove(&mut self, state: &mut State, at: usize, len: usize) -> Done<()> {
        self.headers_allowed(state)?;
        state.allowed(|p| p.removes, || "removes headers".to_owned())?;
        state.observed.removes = true;
        self.key();
        if !self.packet.remove(at, len) {
            return Err(Refused::Absent);
        }
        self.layout = self.packet.parse();
        Ok(())
    }

    /// Ends the call: finds and checks the direct changes.
    pub(crate) fn finish(self, state: &mut State) -> Packet {
        if let Some(entered) = self.entered.as_ref().filter(|entered| {
            // Positions are not comparable if bytes were inserted or removed.
            entered.data().len() == self.packet.data().len()
        }) {
            written(state, entered, &self.packet);
        }
        self.packet
    }
}

/// Whether another field, which reports the change, has the same place.
fn is_other_name(field: Field) -> bool {
    use Field::{InetTtl, IpDscp, IpEcn, TcpDport, TcpSport, UdpDport, UdpSport};
    matches!(field, InetTtl | IpDscp | IpEcn | TcpDport | TcpSport | UdpDport | UdpSport)
}

/// Finds the fields that were changed directly.
fn written(state: &mut State, before: &Packet, after: &Packet) {
    let (old, new) = (before.parse(), after.parse());
    for info in braid_packet::FIELDS.iter().filter(|info| info.access == Access::Rw) {
        if is_other_name(info.field) {
            continue;
        }
        let same = before.get(&old, info.field) == after.get(&new, info.field);
        if !same {
            let may =
                state.allowed(|p| p.may_write(info.field), || format!("writes {}", info.name));
            if may.is_ok() {
                state.observed.writes.insert(info.field);
            }
        }
    }
    if before.payload(&old) != after.payload(&new) {
        let may = state.allowed(|p| p.writes_payload, || "writes the payload".to_owned());
        state.observed.writes_payload |= may.is_ok();
    }
}
