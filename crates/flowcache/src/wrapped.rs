//! Packets between the function that puts them into a tunnel and the function that takes them out of
//! it. A record needs neither of the two steps. The functions between them find the outer headers,
//! which are the same for all packets of the record.

use crate::effects::{OuterHeaders, Stored};
use crate::headers::{Headers, is_link};
use crate::host::Functions;
use crate::recording::Source;
use crate::specialiser::Specialiser;
use crate::value_dependency::ValueDependency;
use braid_ir::model::{Op, ValueId, Word};
use braid_ir::residual::HeaderMask;
use braid_ir::values::Values;
use braid_packet::tunnel::{Inner, added_len, decapsulate};
use braid_packet::{Bits, Field, Header, Layout, Packet};
use std::ops::Range;

/// A packet with outer headers around it.
pub(crate) struct Wrapped {
    packet: Packet,
    pub(crate) layout: Layout,
    /// Where the outer headers begin.
    start: usize,
    outer: OuterHeaders,
}

impl Wrapped {
    /// The packet of a path in its outer headers, which the parser must recognise as a whole in
    /// front of the payload.
    fn new(headers: &Headers<'_>, outer: &OuterHeaders) -> Option<Self> {
        let known: usize = outer.parts.iter().filter_map(|part| added_len(*part)).sum();
        let has_ip = outer.parts.iter().any(|part| matches!(part, Header::Ip4 | Header::Ip6));
        if known != outer.envelope.len() || !has_ip {
            return None;
        }
        let inside = &*headers.packet;
        let mut packet = inside.clone();
        if !outer.envelope.add(&mut packet, &inside.parse(), |_| ()) {
            return None;
        }
        let layout = packet.parse();
        let start = match outer.envelope.inner() {
            Inner::Frame => 0,
            Inner::Packet => layout.ip(),
        };
        let is_whole = layout.malformed().is_none()
            && !layout.is_encapsulated()
            && layout.payload_offset() <= start + known;
        let wrapped = Self { packet, layout, start, outer: outer.clone() };
        // The port tells the parser what follows.
        let dport = wrapped.place(Field::UdpDport);
        (is_whole && dport.is_none_or(|dport| !wrapped.is_stored(&dport))).then_some(wrapped)
    }

    /// The place of a field in the outer headers.
    fn place(&self, field: Field) -> Option<Range<usize>> {
        self.outer.envelope.place(self.start, &self.layout, field)
    }

    /// Whether records differ in some of these bytes.
    fn is_stored(&self, range: &Range<usize>) -> bool {
        let overlaps = |one: &Stored| one.at < range.end && range.start < one.at + one.from.len;
        self.outer.stored.iter().any(overlaps)
    }

    /// Whether a field belongs to the outer headers. The link header may be in front of them.
    pub(crate) fn has(&self, field: Field) -> bool {
        self.outer.envelope.inner() == Inner::Frame || field == Field::EthType || !is_link(field)
    }

    /// Whether a field of the outer headers is the same for all packets.
    fn is_same(&self, field: Field) -> bool {
        match field {
            Field::InetVersion | Field::IpHlen | Field::PktFragment | Field::PktLaterFragment => {
                true
            }
            _ => self.place(field).is_some_and(|place| !self.is_stored(&place)),
        }
    }

    /// Assigns a field of the outer headers. `None` if this changes which headers there are.
    fn set(&mut self, field: Field, value: Word) -> Option<()> {
        self.place(field)?;
        let done = self.packet.set(&self.layout, field, value);
        let layout = self.packet.parse();
        let is_same = layout.presence() == self.layout.presence() && layout.malformed().is_none();
        (done && is_same).then_some(())
    }

    /// Whether a function removes these outer headers if it removes everything up to `offset` bytes
    /// behind the header `last`. `inside` is the packet without them.
    fn ends(&self, inside: &Packet, outer: (Inner, Header), offset: Word) -> bool {
        let mut packet = self.packet.clone();
        let done = decapsulate(&mut packet, &self.layout, outer, offset, None) == Ok(true);
        let is_same = packet.data().get(self.start..) == inside.data().get(self.start..);
        done && is_same && packet.wire_len == inside.wire_len
    }
}

/// Fields that have nothing to do with headers.
const OF_WALK: [Field; 4] = [Field::PktLen, Field::PktTime, Field::PktBackward, Field::PktHeld];

/// How far a specialisation follows packets into tunnels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tunnels {
    /// It follows them, and has not met any.
    Open,
    /// It follows them, and has met one.
    Met,
    /// The path ends where a tunnel begins.
    Closed,
}

impl<F: Functions> Specialiser<'_, F> {
    /// Whether a path that begins with a program goes on behind it: into a tunnel, or behind one.
    pub(crate) fn goes_through_tunnel(&self) -> bool {
        let begins = || match &self.findings.path.effects.outer[..] {
            [outer] => Wrapped::new(&self.headers, outer).is_some(),
            _ => false,
        };
        !self.has_effects_of_programs()
            && match self.tunnels {
                Tunnels::Open => begins(),
                Tunnels::Met => true,
                Tunnels::Closed => false,
            }
    }

    /// Takes note that a program is only for packets with some of these headers. `None` if the key
    /// does not tell whether a packet has them.
    pub(crate) fn care_for(&mut self, headers: u128) -> Option<()> {
        let is_known = self.covered.is_none() || self.tunnels != Tunnels::Met;
        if !is_known && headers & !self.findings.care != 0 {
            return None;
        }
        self.findings.care |= headers;
        Some(())
    }

    /// Takes a packet with outer headers into the next function. `None` if the path must end in
    /// front of it.
    pub(crate) fn enter_tunnel(&mut self) -> Option<()> {
        let outer = match &self.findings.path.effects.outer[..] {
            [] => return Some(()),
            [outer] if self.tunnels != Tunnels::Closed => outer,
            _ => return None,
        };
        if self.headers.wrapped.is_none() {
            self.headers.wrapped = Some(Box::new(Wrapped::new(&self.headers, outer)?));
            self.headers.covered = self.covered;
            self.headers.parse();
            self.tunnels = Tunnels::Met;
        }
        Some(())
    }

    /// Executes an operation on a packet that is in a tunnel. `None` if it has nothing to do with
    /// the outer headers. The inner `None` stands for an operation that no record can contain.
    pub(crate) fn in_tunnel(&mut self, values: &mut Values<'_>, op: &Op) -> Option<Option<()>> {
        let wrapped = self.headers.wrapped.as_ref()?;
        Some(match op {
            Op::Load { out, field } if !OF_WALK.contains(field) && wrapped.has(*field) => {
                let value = wrapped.packet.get(&wrapped.layout, *field);
                let dependency = match wrapped.is_same(*field) {
                    true => ValueDependency::Fixed,
                    // Perhaps nothing on this path uses the value.
                    false => ValueDependency::Packet,
                };
                value.map(|value| self.know_outer(values, *out, (value, dependency)))
            }
            Op::Has { out, header } => {
                let has = wrapped.layout.has(*header);
                self.findings.know(values, *out, has.into());
                Some(())
            }
            Op::Decapsulate { ok, inner, last, offset, association: None } => self
                .leave_tunnel(values, (*inner, *last), *offset)
                .map(|()| self.findings.know(values, *ok, 1)),
            // All flows in the tunnel share such an entry. Only some records may count in it.
            Op::StateSet { .. } | Op::StatePut { .. } | Op::StateDelete { .. } => None,
            Op::PushVlan { .. } | Op::PopVlan => None,
            op if op.rewraps() => None,
            _ => return None,
        })
    }

    /// Records a value of the outer headers.
    fn know_outer(
        &mut self,
        values: &mut Values<'_>,
        id: ValueId,
        (value, dependency): (Word, ValueDependency),
    ) {
        let source = match dependency {
            ValueDependency::Fixed => Source::Constant,
            _ => Source::Unknown,
        };
        values.set(id, value);
        self.findings.set_dependency(id, dependency);
        self.findings.recording.set_source(id, source);
    }

    /// Assigns a field of the outer headers.
    pub(crate) fn write_outer(
        &mut self,
        values: &Values<'_>,
        field: Field,
        id: ValueId,
    ) -> Option<()> {
        self.findings.fix(values, id)?;
        self.findings.pin(values, id);
        self.headers.wrapped.as_mut()?.set(field, values.get(id))
    }

    /// Removes everything up to `offset` bytes behind a header. `None` if these are not exactly the
    /// outer headers.
    fn leave_tunnel(
        &mut self,
        values: &Values<'_>,
        outer: (Inner, Header),
        offset: ValueId,
    ) -> Option<()> {
        self.findings.fix(values, offset)?;
        self.findings.pin(values, offset);
        let wrapped = self.headers.wrapped.as_ref()?;
        if !wrapped.ends(&self.headers.packet, outer, values.get(offset)) {
            return None;
        }
        let stored: Vec<Bits> = wrapped.outer.stored.iter().map(|one| one.from).collect();
        self.findings.recording.forget_stored(&stored);
        self.findings.path.effects.outer.clear();
        let care = self.findings.care;
        let present = self.headers.layout.presence() & care;
        self.headers.unseal(HeaderMask { care, present }, &stored);
        Some(())
    }
}
