//! Derives the action profile of a model: one pass over the operations that can run.

use super::data::{Profile, StateUse};
use super::faults::{self, Sound};
use super::runs::Runs;
use braid_externs::signature::Touch;
use braid_ir::graph::sends_to;
use braid_ir::model::{
    Area, BinOp, Dest, Granularity, Inner, Key, Model, NewPacket, NewPayload, Op, ParamId, Program,
    Shape, StateId, StreamEvent, TagId, Term,
};
use braid_ir::native::{Native, Profile as Declared};
use braid_ir::rules;
use braid_packet::field::LENGTHS;
use braid_packet::{Access, FIELDS, Field, FlowKey, HEADERS, Header, options};

/// The action profile of a model.
#[must_use]
pub fn derive(model: &Model) -> Profile {
    profile(model, None)
}

/// The action profile of a model for packets of one direction only.
#[must_use]
pub fn derive_direction(model: &Model, backward: bool) -> Profile {
    profile(model, Some(backward))
}

fn profile(model: &Model, backward: Option<bool>) -> Profile {
    let profile = Profile::default();
    let mut walk = Walk { model, profile, on_time: false, backward, sound: Sound::default() };
    walk.profile.function.clone_from(&model.name);
    walk.profile.state = model.state.iter().map(state_use).collect();
    walk.program(&model.packet);
    for (_, program) in &model.streams {
        walk.program(program);
    }
    for (event, program) in &model.handlers {
        let event = model.events.get(event.index());
        walk.profile.takes.extend(event.map(|event| event.name.clone()));
        walk.program(program);
    }
    walk.on_time = true;
    for program in model.expire.iter().map(|(_, program)| program) {
        walk.program(program);
    }
    for timer in &model.timers {
        walk.program(&timer.body);
    }
    walk.profile.acts_on_time |= !model.expire.is_empty() || !model.timers.is_empty();
    walk.profile
}

/// The profile of a native function, either declared by the function or observed.
#[must_use]
pub fn of_native(name: &str, origin: &'static str, seen: &Declared) -> Profile {
    let function = name.to_owned();
    let mut profile = Profile { function, origin: Some(origin), ..Profile::default() };
    does(&mut profile, seen);
    profile
}

/// Adds the actions that a native function declares, or that were observed in a run.
fn does(profile: &mut Profile, seen: &Declared) {
    profile.reads.extend(seen.reads.iter());
    let writable = seen.writes.iter().filter(|field| field.info().access == Access::Rw);
    profile.writes.extend(writable);
    profile.reads_payload |= seen.reads_payload;
    profile.writes_payload |= seen.writes_payload;
    if seen.reads_bytes {
        profile.reads.extend(FIELDS.iter().map(|info| info.field));
        profile.reads_payload = true;
    }
    // The declaration does not name the headers, so the profile has all.
    let headers = HEADERS.iter().map(|(header, _)| *header);
    let headers: Vec<_> = headers.filter(|header| *header != Header::Pkt).collect();
    if seen.adds {
        profile.adds.extend(&headers);
    }
    if seen.removes {
        profile.removes.extend(&headers);
    }
}

fn state_use(state: &braid_ir::model::StateDecl) -> StateUse {
    StateUse {
        name: state.name.clone(),
        per: per(&state.granularity),
        reads: false,
        writes: false,
        renews: false,
        on_time: false,
    }
}

/// A granularity in the notation of its declaration.
fn per(granularity: &Granularity) -> String {
    let list = |parts: Vec<String>| format!("({})", parts.join(", "));
    match granularity {
        Granularity::Global => "global".into(),
        Granularity::Flow => "flow".into(),
        Granularity::Biflow => "biflow".into(),
        Granularity::Fields(fields) => {
            list(fields.iter().map(|field| field.info().name.into()).collect())
        }
        Granularity::Key(types) => list(types.iter().map(ToString::to_string).collect()),
    }
}

/// How an operation uses a state table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Used {
    Find,
    Write,
    Count,
}

struct Walk<'m> {
    model: &'m Model,
    profile: Profile,
    /// Whether the current program is a timer or an expiry handler.
    on_time: bool,
    /// The direction of packets, if it is known.
    backward: Option<bool>,
    /// The operations of the current program that cannot fault, although their kind can.
    sound: Sound,
}

impl Walk<'_> {
    fn program(&mut self, program: &Program) {
        let runs = Runs::of(program, self.backward.filter(|_| !self.on_time));
        self.sound = faults::sound(self.model, program, &runs);
        for (number, block) in runs.blocks(program) {
            for (at, op) in block.ops.iter().enumerate() {
                self.op(op, (number, at));
            }
            self.term(&block.term);
        }
    }

    fn op(&mut self, op: &Op, place: (usize, usize)) {
        match op {
            Op::Load { field, .. } | Op::LoadEntry { field, .. } => self.read(&[*field]),
            Op::Store { field, .. } => {
                self.profile.writes.insert(*field);
            }
            Op::Has { header, .. } => self.test(*header),
            Op::LoadTag { tag, .. } => {
                let name = self.tag(*tag);
                self.profile.reads_tags.insert(name);
            }
            Op::StoreTag { tag, .. } => {
                let name = self.tag(*tag);
                self.profile.writes_tags.insert(name);
            }
            Op::PushVlan { .. } => {
                self.profile.adds.insert(Header::Vlan);
            }
            Op::PopVlan => {
                self.profile.removes.insert(Header::Vlan);
            }
            Op::HasRoom { .. }
            | Op::PushOption { .. }
            | Op::PopOption { .. }
            | Op::StoreBytes { area: Area::TcpOption(_), .. } => self.option_op(op),
            Op::LoadBytes { area, .. } | Op::LoadString { area, .. } => self.read_area(op, *area),
            Op::Native { .. } => self.native(),
            Op::Stream { .. } => self.stream(),
            Op::Rules { .. } => self.read(&rules::FIELDS),
            Op::Patterns { .. } => self.read_payload(),
            Op::FindPatterns { of, .. } if of.is_payload() => self.read_payload(),
            Op::SetOption { value, .. } => self.set_option(value.is_some()),
            op if op.changes_payload() => self.write_payload(op),
            Op::Encapsulate { inner, parts, .. } => self.tunnel(*inner, parts, &[]),
            Op::Decapsulate { inner, last, .. } => self.tunnel(*inner, &[], &[*last]),
            Op::Translate { to, .. } => {
                self.tunnel(Inner::Packet, &[to.header()], &[to.other().header()]);
            }
            Op::Extern { name, .. } => self.call(name),
            Op::ListGet { .. } | Op::BackendUp { .. } => {
                self.profile.faults.insert("index");
            }
            Op::Bin { op: BinOp::Div | BinOp::Rem, .. } => {
                if !self.sound.contains(&place) {
                    self.profile.faults.insert("division");
                }
            }
            Op::Take { pool, .. } | Op::TakeThis { pool, .. } | Op::Release { pool, .. } => {
                let name = self.param(*pool);
                self.profile.pools.insert(name);
            }
            Op::Emit { event, .. } => {
                let event = self.model.events.get(event.index());
                self.profile.events.extend(event.map(|event| event.name.clone()));
            }
            Op::Mirror { port } => {
                self.profile.copies = true;
                self.profile.copies_bytes = true;
                self.output(*port);
            }
            Op::Create { new, port } => {
                self.create(new);
                self.output(*port);
            }
            _ => self.state_op(op, place),
        }
    }

    fn test(&mut self, header: Header) {
        self.profile.tests.insert(header);
    }

    fn read_payload(&mut self) {
        self.profile.reads_payload = true;
        self.profile.faults.insert("truncated");
    }

    /// Adds what reading bytes of an area does.
    fn read_area(&mut self, op: &Op, area: Area) {
        match area {
            Area::Payload => self.read_payload(),
            Area::TcpOption(_) => self.option_op(op),
            Area::IpOption(_) => self.test(Header::Ip4),
            Area::Ip6Extension(_) => self.test(Header::Ip6),
        }
    }

    /// Adds what a write to the payload does. Another length of the payload changes other fields.
    fn write_payload(&mut self, op: &Op) {
        self.profile.writes_payload = true;
        self.profile.tests.extend([Header::L4, Header::Quoted]);
        self.read(&[Field::PktLaterFragment]);
        self.profile.faults.insert("truncated");
        if !matches!(op, Op::StoreBytes { .. }) {
            self.profile.reads_payload = true;
            self.profile.writes.extend(LENGTHS);
            self.read(&[Field::PktLen, Field::PktPayloadLen]);
        }
    }

    /// Adds what a change of outer headers does. Every field that depends on the packet's bytes may
    /// change, apart from those of a link header that stays.
    fn tunnel(&mut self, inner: Inner, adds: &[Header], removes: &[Header]) {
        use Field::{PktBackward, PktHeld, PktIngress, PktTime};
        let stays = |field: &Field| {
            let is_link = Header::LINK.contains(&field.info().header) && *field != Field::EthType;
            let is_of_run = matches!(field, PktTime | PktIngress | PktBackward | PktHeld);
            is_of_run || is_link && inner == Inner::Packet
        };
        self.profile.adds.extend(adds);
        self.profile.removes.extend(removes);
        self.profile.faults.insert("truncated");
        self.profile.reads_payload = true;
        self.profile.writes_payload = true;
        let all = FIELDS.iter().map(|info| info.field);
        self.profile.writes.extend(all.filter(|field| !stays(field)));
        self.read(&[Field::PktLen, Field::PktPayloadLen]);
    }

    /// Adds what an operation on TCP options does.
    fn option_op(&mut self, op: &Op) {
        let fields = options::NAMED.iter().flat_map(|option| option.info().fields);
        let fields = fields.map(|info| info.field);
        match op {
            // The option may be one of those with fields.
            Op::LoadBytes { .. } | Op::LoadString { .. } => {
                self.profile.tests.extend(options::NAMED);
                self.profile.reads.extend(fields);
            }
            Op::StoreBytes { .. } => {
                self.profile.tests.extend(options::NAMED);
                self.profile.writes.extend(fields);
            }
            Op::HasRoom { option, .. } => {
                self.profile.tests.extend([Header::Tcp, *option]);
                self.read(&[Field::PktLen]);
            }
            Op::PushOption { option, .. } => {
                self.profile.adds.insert(*option);
                self.profile.faults.insert("truncated");
            }
            Op::PopOption { option } => {
                self.profile.removes.insert(*option);
            }
            _ => {}
        }
    }

    /// Adds what a TCP option of any kind does that is added or removed. No part of a packet stands
    /// for its bytes, so they count as payload.
    fn set_option(&mut self, adds: bool) {
        self.profile.writes_payload = true;
        self.profile.tests.insert(Header::Tcp);
        if adds {
            self.read(&[Field::PktLen]);
            self.profile.writes.extend(LENGTHS);
        }
    }

    /// The profile that a native function declares. A function without a declaration may do
    /// everything.
    fn native(&mut self) {
        let may = self.model.native.as_ref().map_or(Declared::ANYTHING, Native::may);
        does(&mut self.profile, &may);
        let declares = self.model.native.as_ref().is_some_and(|native| native.profile.is_some());
        self.profile.origin = Some(if declares { "declared" } else { "assumed" });
        self.profile.faults.insert("native");
        self.profile.events.insert("LOG".to_owned());
        self.profile.events.extend(self.model.events.iter().map(|event| event.name.clone()));
        for dest in sends_to(self.model) {
            self.output(dest);
            self.profile.creates.insert("bytes");
            self.profile.copies_bytes = true;
        }
        let tags = || self.model.tags.iter().map(|tag| tag.name.clone());
        self.profile.reads_tags.extend(tags());
        self.profile.writes_tags.extend(tags());
        self.profile.acts_on_time = true;
        let (name, per) = ("native".to_owned(), "flow".to_owned());
        let used = StateUse { name, per, reads: true, writes: true, renews: true, on_time: true };
        self.profile.state.push(used);
    }

    /// The function's TCP stack reads all of TCP, and keeps what it knows of each connection.
    /// Alerts may be about other headers of packets, and events about flows of UDP.
    fn stream(&mut self) {
        let has_alerts = self.model.stream(StreamEvent::Alert).is_some();
        let stacks_all = self.model.stacks_all();
        if has_alerts {
            self.read(&[Field::InetTtl, Field::IpTos, Field::IpId]);
            self.read(&[Field::IpDf, Field::IpMf, Field::IpFrag, Field::IpHlen]);
        }
        let is_read = |header: Header| match header {
            Header::Tcp => true,
            Header::Udp => stacks_all,
            Header::Icmp | Header::IcmpEcho => has_alerts,
            Header::Icmp6 | Header::Icmp6Echo => has_alerts,
            header => options::NAMED.contains(&header),
        };
        let fields = FIELDS.iter().filter(|info| is_read(info.header)).map(|info| info.field);
        self.profile.reads.extend(fields);
        self.profile.tests.extend(options::NAMED);
        self.profile.reads_payload = true;
        self.read(&FlowKey::FIELDS);
        self.read(&[Field::PktLen, Field::PktPayloadLen, Field::PktTime]);
        let (name, per) = ("stream".to_owned(), "biflow".to_owned());
        let used = StateUse { name, per, reads: true, writes: true, renews: true, on_time: false };
        self.profile.state.push(used);
    }

    fn state_op(&mut self, op: &Op, place: (usize, usize)) {
        match op {
            Op::StateExists { state, key, .. } => self.state(*state, Some(key), Used::Find),
            Op::StateGet { state, key, .. } => {
                self.may_miss(*state, place);
                self.state(*state, Some(key), Used::Find);
            }
            Op::StateSet { state, key, .. } | Op::StateDelete { state, key } => {
                self.state(*state, Some(key), Used::Write);
            }
            Op::StatePut { state, key, .. } => {
                self.may_miss(*state, place);
                self.state(*state, Some(key), Used::Write);
            }
            Op::StateLen { state, .. } => self.state(*state, None, Used::Count),
            _ => {}
        }
    }

    /// Adds the fault of reading a missing entry, if the table has no default.
    fn may_miss(&mut self, state: StateId, place: (usize, usize)) {
        let decl = self.model.state.get(state.index());
        let needed = decl.is_some_and(|decl| decl.default.is_none());
        if needed && !self.sound.contains(&place) {
            self.profile.faults.insert("no_entry");
        }
    }

    fn state(&mut self, state: StateId, key: Option<&Key>, access: Used) {
        let at = state.index();
        let Some(decl) = self.model.state.get(at) else { return };
        match key {
            Some(Key::Entry | Key::Reversed(false)) => match &decl.granularity {
                Granularity::Flow | Granularity::Biflow => self.read(&FlowKey::FIELDS),
                Granularity::Fields(fields) => self.read(fields),
                Granularity::Global | Granularity::Key(_) => {}
            },
            Some(Key::Quoted | Key::Reversed(true)) => self.read(&FlowKey::QUOTED_FIELDS),
            Some(Key::Explicit(_)) | None => {}
        }
        let expires = decl.idle.is_some() || decl.lives_with.is_some();
        let on_time = self.on_time;
        let Some(usage) = self.profile.state.get_mut(at) else { return };
        if on_time {
            usage.on_time = true;
            return;
        }
        usage.reads |= access != Used::Write;
        usage.writes |= access == Used::Write;
        usage.renews |= access == Used::Find && expires;
    }

    fn create(&mut self, new: &NewPacket) {
        self.profile.creates.insert(shape_name(new.shape));
        // A new packet gets the addresses and the tags of the link header.
        let copied = FIELDS.iter().filter(|info| Header::LINK.contains(&info.header));
        let copied = copied.map(|info| info.field).filter(|field| *field != Field::EthType);
        self.read(&copied.collect::<Vec<_>>());
        match new.shape {
            Shape::Icmp | Shape::Tcp4 | Shape::Udp4 => self.read(&[Field::IpSrc, Field::IpDst]),
            Shape::Icmp6 | Shape::Tcp6 | Shape::Udp6 => self.read(&[Field::Ip6Src, Field::Ip6Dst]),
            Shape::Arp => {}
        }
        match new.payload {
            NewPayload::Empty => {}
            NewPayload::Same => self.profile.reads_payload = true,
            // All bytes from the IP header on may become part of the new packet.
            NewPayload::Quote(_) => {
                self.profile.reads_payload = true;
                self.profile.copies_bytes = true;
                self.read(&rules::FIELDS);
            }
        }
    }

    fn term(&mut self, term: &Term) {
        match term {
            Term::Output { ports, .. } => {
                self.profile.copies |= ports.len() > 1;
                self.profile.copies_bytes |= ports.len() > 1;
                for port in ports {
                    self.output(*port);
                }
            }
            Term::Drop { reason, .. } | Term::Reset { reason, .. } => {
                let reason = self.model.reasons.get(reason.index());
                self.profile.drops.extend(reason.cloned());
            }
            Term::Consume { .. } => self.profile.consumes = true,
            Term::Hold { queue, .. } => {
                let queue = self.model.queues.get(queue.index());
                self.profile.holds.extend(queue.map(|queue| queue.name.clone()));
            }
            Term::Resubmit { .. } => {
                self.profile.resubmits = true;
                self.profile.faults.insert("resubmit");
            }
            Term::Jump(_)
            | Term::Branch { .. }
            | Term::Bypass { .. }
            | Term::Resume { .. }
            | Term::Return => {}
        }
    }

    fn output(&mut self, dest: Dest) {
        let name = match dest {
            Dest::Onward => "onward".into(),
            Dest::Back => "back".into(),
            Dest::Port(port) => {
                self.model.ports.get(port.index()).cloned().unwrap_or_else(|| port.to_string())
            }
        };
        self.profile.outputs.insert(name);
    }

    fn call(&mut self, name: &str) {
        self.profile.externs.insert(name.into());
        let Some(operator) = braid_externs::lookup(name) else { return };
        let declared = operator.signature.profile;
        if declared.payload != Touch::No {
            self.profile.reads_payload = true;
            self.profile.writes_payload |= declared.payload == Touch::Writes;
            self.profile.faults.insert("truncated");
        }
        if declared.state != Touch::No {
            self.profile.stateful_externs.insert(name.into());
        }
    }

    fn read(&mut self, fields: &[Field]) {
        self.profile.reads.extend(fields);
    }

    fn tag(&self, at: TagId) -> String {
        self.model.tags.get(at.index()).map_or_else(String::new, |tag| tag.name.clone())
    }

    fn param(&self, at: ParamId) -> String {
        self.model.params.get(at.index()).map_or_else(String::new, |param| param.name.clone())
    }
}

fn shape_name(shape: Shape) -> &'static str {
    match shape {
        Shape::Icmp => "icmp",
        Shape::Icmp6 => "icmp6",
        Shape::Tcp4 => "tcp",
        Shape::Tcp6 => "tcp6",
        Shape::Udp4 => "udp",
        Shape::Udp6 => "udp6",
        Shape::Arp => "arp",
    }
}
