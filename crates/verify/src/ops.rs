//! Operations on packets and state, as terms. Both sides share the meaning of an operation. They
//! differ in how the operations are combined.

use braid_externs::signature::Touch as Use;
use braid_ir::chain::Chain;
use braid_ir::engine::Fault;
use braid_ir::model::{Area, Dest, EventArg, Haystack, Model, NewPacket, Op, ParamId, Ty, ValueId};
use braid_ir::residual::Counter;
use braid_ir::subscriptions::Subscriptions;
use braid_packet::{Field, Header};

use crate::packet::{Kind, Packet};
use crate::term::{Sort, Term, Terms};
use crate::values::{Faults, Values};
use crate::world::{Touch, World};

/// The state of a run: the packet and the tables.
#[derive(Clone, PartialEq)]
pub(crate) struct State {
    pub(crate) packet: Packet,
    /// The packet as it was when it was last parsed.
    pub(crate) parsed: Packet,
    pub(crate) world: World,
}

impl State {
    /// Chooses one of several states: the first whose condition holds, otherwise the last.
    pub(crate) fn choose(terms: &mut Terms, chain: &Chain, from: &[(Term, &State)]) -> State {
        let packets: Vec<_> = from.iter().map(|(cond, state)| (*cond, &state.packet)).collect();
        let parsed: Vec<_> = from.iter().map(|(cond, state)| (*cond, &state.parsed)).collect();
        let worlds: Vec<_> = from.iter().map(|(cond, state)| (*cond, &state.world)).collect();
        State {
            packet: Packet::choose(terms, &packets),
            parsed: Packet::choose(terms, &parsed),
            world: World::choose(terms, chain, &worlds),
        }
    }
}

/// The fields that rules match, as terms.
pub(crate) struct RuleTerms {
    pub(crate) version: Term,
    pub(crate) src: Term,
    pub(crate) dst: Term,
    pub(crate) proto: Term,
    /// Whether there are ports, the source port, and the destination port.
    pub(crate) ports: (Term, Term, Term),
    pub(crate) flags: (Term, Term),
    pub(crate) icmp: (Term, Term, Term),
}

/// A run of a program.
pub(crate) struct Run<'a> {
    pub(crate) terms: &'a mut Terms,
    pub(crate) chain: &'a Chain,
    pub(crate) subscriptions: &'a Subscriptions,
    pub(crate) kind: &'a Kind,
    /// The function that the operations belong to.
    pub(crate) node: u16,
    pub(crate) types: &'a [Ty],
    pub(crate) values: Vec<Option<Term>>,
    /// The condition under which the program reaches this point.
    pub(crate) guard: Term,
    pub(crate) state: State,
    /// The packet as it entered the function. `Some` for the function's own program.
    pub(crate) entry: Option<Packet>,
    pub(crate) touches: &'a mut Vec<Touch>,
}

impl<'a> Run<'a> {
    pub(crate) fn model(&self) -> &'a Model {
        &self.chain.nodes[usize::from(self.node)].model
    }

    /// A value.
    pub(crate) fn value(&self, id: ValueId) -> Result<Term, String> {
        let value = self.values.get(id.index()).copied().flatten();
        value.ok_or_else(|| format!("{id} is used where it has no value"))
    }

    pub(crate) fn all(&self, ids: &[ValueId]) -> Result<Vec<Term>, String> {
        ids.iter().map(|id| self.value(*id)).collect()
    }

    /// Defines a value with its declared width.
    pub(crate) fn define(&mut self, id: ValueId, value: Term) -> Result<(), String> {
        let width = self.types.get(id.index()).ok_or_else(|| format!("{id} has no type"))?.width;
        let value = match self.terms.sort(value) {
            Sort::Bool => self.terms.bit(value),
            Sort::Bits(_) => value,
            Sort::Token => return Err(format!("{id} is no number")),
        };
        self.values[id.index()] = Some(self.terms.resize(value, width));
        Ok(())
    }

    pub(crate) fn width(&self, id: ValueId) -> u16 {
        self.types.get(id.index()).map_or(1, |ty| ty.width)
    }

    /// The packet as last parsed. A function's own program always sees the current packet.
    fn parsed(&self) -> Packet {
        if self.entry.is_some() { self.state.packet.clone() } else { self.state.parsed.clone() }
    }

    /// Applies an operation. Returns its possible faults.
    pub(crate) fn op(&mut self, op: &Op) -> Result<Faults, String> {
        let values =
            Values { chain: self.chain, node: self.node, types: self.types, values: &self.values };
        if let Some((out, value, faults)) = values.value_op(self.terms, op)? {
            self.define(out, value)?;
            return Ok(faults);
        }
        match op {
            Op::Has { .. }
            | Op::Load { .. }
            | Op::LoadEntry { .. }
            | Op::Store { .. }
            | Op::LoadTag { .. }
            | Op::StoreTag { .. }
            | Op::PushVlan { .. }
            | Op::PopVlan
            | Op::Count { .. } => self.packet_op(op),
            Op::HasRoom { .. }
            | Op::PushOption { .. }
            | Op::PopOption { .. }
            | Op::SetOption { .. } => {
                Err("a function adds or removes TCP options, which this check does not cover"
                    .to_owned())
            }
            Op::StoreBytes { .. } | Op::ReplaceBytes { .. } => {
                Err("a function writes bytes without a name, which this check does not cover"
                    .to_owned())
            }
            Op::Encrypt { .. } | Op::Decrypt { .. } => {
                Err("a function encrypts or decrypts the payload, which this check does not cover"
                    .to_owned())
            }
            Op::Encapsulate { .. } | Op::Decapsulate { .. } => {
                Err("a function adds or removes outer headers, which this check does not cover"
                    .to_owned())
            }
            Op::Translate { .. } => {
                Err("a function translates between versions of IP, which this check does not cover"
                    .to_owned())
            }
            Op::Mirror { .. } | Op::Create { .. } | Op::Emit { .. } => self.send_op(op),
            Op::Rules { .. }
            | Op::Route { .. }
            | Op::Patterns { .. }
            | Op::FindPatterns { .. }
            | Op::InStrings { .. }
            | Op::LoadBytes { .. }
            | Op::LoadString { .. }
            | Op::Extern { .. } => self.lookup_op(op),
            Op::Take { .. } | Op::TakeThis { .. } | Op::Release { .. } => self.pool_op(op),
            _ => self.state_op(op),
        }
    }

    fn packet_op(&mut self, op: &Op) -> Result<Faults, String> {
        match op {
            Op::Has { out, header } => {
                let parsed = self.parsed();
                let there = self.kind.has(self.terms, &parsed, *header);
                self.define(*out, there)?;
            }
            Op::Load { out, field } => {
                let value = self.load(*field);
                self.define(*out, value)?;
            }
            Op::LoadEntry { out, field } => {
                let entry = self.entry.clone().ok_or("a residual program reads an entry field")?;
                let value = entry.get(self.terms, self.kind, &entry, *field);
                self.define(*out, value)?;
            }
            Op::Store { field, a } => {
                let value = self.value(*a)?;
                self.write(*field, value);
            }
            Op::LoadTag { out, tag } => {
                let name = self.tag_name(tag.index())?;
                let value = self.state.packet.tag(self.terms, &name);
                self.define(*out, value)?;
            }
            Op::StoreTag { tag, a } => {
                let (name, value) = (self.tag_name(tag.index())?, self.value(*a)?);
                let value = self.terms.resize(value, 128);
                self.state.packet.tags.insert(name, value);
            }
            Op::PushVlan { id } => {
                let id = self.value(*id)?;
                self.state.packet.push_vlan(self.terms, id);
            }
            Op::PopVlan => self.state.packet.pop_vlan(self.terms),
            Op::Count { row } => {
                let grown = self.state.packet.grown;
                let counter = (self.node, Counter::Row(*row));
                self.state.world.count(self.terms, self.chain, counter, grown);
            }
            _ => {}
        }
        Ok(Faults::new())
    }

    fn tag_name(&self, tag: usize) -> Result<String, String> {
        let tag = self.model().tags.get(tag).ok_or("there is no such tag")?;
        Ok(tag.name.clone())
    }

    /// The current value of a field.
    pub(crate) fn load(&mut self, field: Field) -> Term {
        let parsed = self.parsed();
        self.state.packet.get(self.terms, self.kind, &parsed, field)
    }

    /// Assigns a field.
    pub(crate) fn write(&mut self, field: Field, value: Term) {
        let parsed = self.parsed();
        self.state.packet.set(self.terms, self.kind, &parsed, field, value);
    }

    fn send_op(&mut self, op: &Op) -> Result<Faults, String> {
        let mut faults = Faults::new();
        match op {
            Op::Emit { event, .. } if self.subscriptions.stays_outside(self.node, *event) => {
                return Err("handlers of an event are not part of the program, which this check does not cover".into());
            }
            Op::Emit { event, args } => {
                let mut name = format!("emit {}.{event}", self.node);
                let mut values = vec![self.state.world.events];
                for arg in args {
                    match arg {
                        EventArg::Value(id) => {
                            values.push(self.value(*id)?);
                            let kind = self.types.get(id.index()).map(|ty| ty.kind);
                            name += &format!(" {kind:?}");
                        }
                        EventArg::Bytes(ids) => {
                            for id in ids {
                                values.push(self.value(*id)?);
                            }
                            name += &format!(" bytes {}", ids.len());
                        }
                        other => name += &format!(" {other:?}"),
                    }
                }
                self.state.world.events = self.terms.apply(name, &values, Sort::Token);
            }
            Op::Mirror { port } => {
                let image = self.state.packet.image(self.terms);
                let name = format!("mirror {} to {port:?}", self.node);
                self.send(name, vec![image]);
            }
            Op::Create { new, port } => {
                let mut values = vec![self.state.packet.image(self.terms)];
                let options = new.options.iter().flat_map(|(_, values)| values);
                for id in new.fields.iter().map(|(_, id)| id).chain(options) {
                    values.push(self.value(*id)?);
                }
                let name = self.answer_name(new, *port);
                let fails = self.terms.apply(format!("{name} is cut"), &values, Sort::Bool);
                faults.push((fails, Fault::Truncated));
                self.send(name, values);
            }
            _ => {}
        }
        Ok(faults)
    }

    fn answer_name(&self, new: &NewPacket, dest: Dest) -> String {
        let fields: Vec<_> = new.fields.iter().map(|(field, _)| field.info().name).collect();
        let options: Vec<_> = new.options.iter().map(|(option, _)| option.name()).collect();
        let (node, shape, payload) = (self.node, new.shape, new.payload);
        let (fields, options) = (fields.join(" "), options.join(" "));
        let exchanged = if new.exchanged { " exchanged" } else { "" };
        format!("create {node} {shape:?} {payload:?} ({fields}) ({options}){exchanged} to {dest:?}")
    }

    fn send(&mut self, name: String, mut args: Vec<Term>) {
        args.push(self.state.world.sent);
        self.state.world.sent = self.terms.apply(name, &args, Sort::Token);
        self.state.world.sends = self.terms.bool(true);
    }

    fn lookup_op(&mut self, op: &Op) -> Result<Faults, String> {
        match op {
            Op::Rules { pass, rule, param } => {
                let fields = self.rule_terms();
                let parsed = self.parsed();
                let inet = self.kind.has(self.terms, &parsed, Header::Inet);
                let (passes, number) = self.classify(*param, inet, &fields);
                self.define(*pass, passes)?;
                self.define(*rule, number)?;
                self.count_rule(*param, inet, number);
            }
            Op::Route { found, hop, param, addr } => {
                let addr = self.value(*addr)?;
                let name = format!("{}.{param}", self.node);
                let there = self.terms.apply(format!("route {name}"), &[addr], Sort::Bool);
                let to = self.terms.apply(format!("next hop {name}"), &[addr], Sort::Bits(32));
                let none = self.terms.bits(32, 0);
                let to = self.terms.ite(there, to, none);
                self.define(*found, there)?;
                self.define(*hop, to)?;
            }
            Op::Patterns { found, number, param } => {
                let payload = self.payload();
                let name = format!("{}.{param}", self.node);
                let there = self.terms.apply(format!("pattern {name}"), &[payload], Sort::Bool);
                let which =
                    self.terms.apply(format!("lowest pattern {name}"), &[payload], Sort::Bits(32));
                let none = self.terms.bits(32, 0);
                let which = self.terms.ite(there, which, none);
                self.define(*found, there)?;
                self.define(*number, which)?;
                return Ok(vec![(self.cut(), Fault::Truncated)]);
            }
            Op::FindPatterns { outs: [found, number, start, end], param, of } => {
                let (place, searched) = self.searched(of)?;
                let name = format!("{}.{param}{place}", self.node);
                let there = self.terms.apply(format!("pattern {name}"), &searched, Sort::Bool);
                self.define(*found, there)?;
                let none = self.terms.bits(32, 0);
                let parts = [("lowest", *number), ("start of", *start), ("end of", *end)];
                for (part, out) in parts {
                    let of = format!("{part} pattern {name}");
                    let value = self.terms.apply(of, &searched, Sort::Bits(32));
                    let value = self.terms.ite(there, value, none);
                    self.define(out, value)?;
                }
                if of.is_payload() {
                    return Ok(vec![(self.cut(), Fault::Truncated)]);
                }
            }
            Op::InStrings { out, param, len, words } => {
                let parts: Vec<ValueId> = [*len].into_iter().chain(words.iter().copied()).collect();
                let parts = self.all(&parts)?;
                let of = format!("strings {}.{param} {}", self.node, words.len());
                let is_in = self.terms.apply(of, &parts, Sort::Bool);
                self.define(*out, is_in)?;
            }
            Op::LoadBytes { found, out, area: Area::Payload, offset } => {
                return self.load_payload(*found, *out, *offset);
            }
            Op::LoadBytes { .. } | Op::LoadString { .. } => {
                let why = "a function reads a string, or a TCP option by its kind; this check covers neither";
                return Err(why.to_owned());
            }
            Op::Extern { outs, name, param, args } => return self.call(outs, name, *param, args),
            _ => {}
        }
        Ok(Faults::new())
    }

    /// What a search looks at: the kind of place, and the terms that decide its bytes.
    fn searched(&mut self, of: &Haystack) -> Result<(String, Vec<Term>), String> {
        Ok(match of {
            Haystack::Payload => (String::new(), vec![self.payload()]),
            Haystack::Part(first, last) => {
                let ends = self.all(&[*first, *last])?;
                (" in a part".to_owned(), [vec![self.payload()], ends].concat())
            }
            Haystack::Text(len, words) => {
                let parts: Vec<ValueId> = [*len].into_iter().chain(words.clone()).collect();
                (format!(" in a string of {} words", words.len()), self.all(&parts)?)
            }
        })
    }

    fn payload(&mut self) -> Term {
        let parsed = self.parsed();
        self.state.packet.payload(self.terms, self.kind, &parsed)
    }

    /// A number in the payload. Nothing is assumed about it but that it is the same for the same
    /// payload and offset.
    fn load_payload(
        &mut self,
        found: ValueId,
        out: ValueId,
        offset: ValueId,
    ) -> Result<Faults, String> {
        let width = self.width(out);
        let from = [self.payload(), self.value(offset)?];
        let there = self.terms.apply(format!("payload has {width} bits"), &from, Sort::Bool);
        let lacks = self.terms.apply(format!("payload lacks {width} bits"), &from, Sort::Bool);
        let sort = Sort::Bits(width);
        let number = self.terms.apply(format!("payload bits {width}"), &from, sort);
        let none = self.terms.bits(width, 0);
        let number = self.terms.ite(there, number, none);
        self.define(found, there)?;
        self.define(out, number)?;
        Ok(vec![(lacks, Fault::Truncated)])
    }

    /// Whether the capture lacks bytes of the payload.
    fn cut(&mut self) -> Term {
        self.terms.var("payload is cut", Sort::Bool)
    }

    fn call(
        &mut self,
        outs: &[ValueId],
        name: &str,
        param: Option<ParamId>,
        args: &[ValueId],
    ) -> Result<Faults, String> {
        let profile = braid_externs::lookup(name).map(|known| known.signature.profile);
        let profile = profile.ok_or_else(|| format!("there is no operator {name}"))?;
        let mut values = self.all(args)?;
        let mut faults = Faults::new();
        if profile.payload != Use::No {
            faults.push((self.cut(), Fault::Truncated));
            values.push(self.payload());
        }
        let place = match (param, profile.state) {
            (None, Use::No) => String::new(),
            (None, _) => format!(" {}", self.node),
            (Some(param), _) => format!(" {}.{param}", self.node),
        };
        if profile.state != Use::No {
            let keep = self.state.world.keep(self.terms, self.chain, self.node);
            values.push(keep.pools);
        }
        if profile.state == Use::Writes {
            let after = self.terms.apply(format!("{name}{place} after"), &values, Sort::Token);
            self.state.world.keep(self.terms, self.chain, self.node).pools = after;
        }
        for (number, out) in outs.iter().enumerate() {
            let sort = Sort::Bits(self.width(*out));
            let result = self.terms.apply(format!("{name}{place} {number}"), &values, sort);
            self.define(*out, result)?;
        }
        Ok(faults)
    }

    /// The fields that rules match, from the current packet.
    fn rule_terms(&mut self) -> RuleTerms {
        let parsed = self.parsed();
        let has = |run: &mut Self, header| run.kind.has(run.terms, &parsed, header);
        let (l4, tcp) = (has(self, Header::L4), has(self, Header::Tcp));
        let (icmp, icmp6) = (has(self, Header::Icmp), has(self, Header::Icmp6));
        let (kind4, code4) = (self.load(Field::IcmpType), self.load(Field::IcmpCode));
        let (kind6, code6) = (self.load(Field::Icmp6Type), self.load(Field::Icmp6Code));
        let kind = self.terms.ite(icmp6, kind6, kind4);
        let code = self.terms.ite(icmp6, code6, code4);
        RuleTerms {
            version: self.load(Field::InetVersion),
            src: self.load(Field::InetSrc),
            dst: self.load(Field::InetDst),
            proto: self.load(Field::InetProto),
            ports: (l4, self.load(Field::L4Sport), self.load(Field::L4Dport)),
            flags: (tcp, self.load(Field::TcpFlags)),
            icmp: (self.terms.or(&[icmp, icmp6]), kind, code),
        }
    }

    /// The result of a rule set for a packet. The packet need not be IP.
    pub(crate) fn classify(
        &mut self,
        param: ParamId,
        inet: Term,
        fields: &RuleTerms,
    ) -> (Term, Term) {
        let terms = &mut *self.terms;
        let (src, dst) = (terms.resize(fields.src, 128), terms.resize(fields.dst, 128));
        let mut args = vec![fields.version, src, dst, fields.proto];
        let parts = [
            (fields.ports.0, vec![fields.ports.1, fields.ports.2]),
            (fields.flags.0, vec![fields.flags.1]),
            (fields.icmp.0, vec![fields.icmp.1, fields.icmp.2]),
        ];
        for (there, values) in parts {
            args.push(there);
            for value in values {
                let none = terms.bits(terms.width(value), 0);
                args.push(terms.ite(there, value, none));
            }
        }
        let name = format!("{}.{param}", self.node);
        let pass = terms.apply(format!("rules pass {name}"), &args, Sort::Bool);
        let rule = terms.apply(format!("rule {name}"), &args, Sort::Bits(32));
        let none = terms.var(format!("number of rules {name}"), Sort::Bits(32));
        (terms.both(inet, pass), terms.ite(inet, rule, none))
    }

    /// Counts a rule if the packet is IP.
    pub(crate) fn count_rule(&mut self, param: ParamId, inet: Term, rule: Term) {
        let name = format!("count rule {}.{param}", self.node);
        let keep = self.state.world.keep(self.terms, self.chain, self.node);
        let before = keep.rules;
        let counted = self.terms.apply(name, &[before, rule], Sort::Token);
        let after = self.terms.ite(inet, counted, before);
        self.state.world.keep(self.terms, self.chain, self.node).rules = after;
    }

    fn pool_op(&mut self, op: &Op) -> Result<Faults, String> {
        let before = self.state.world.keep(self.terms, self.chain, self.node).pools;
        let (name, args) = match op {
            Op::Take { ok, out, pool } => {
                let name = format!("take {}.{pool}", self.node);
                let there = self.terms.apply(format!("{name} any"), &[before], Sort::Bool);
                let width = self.width(*out);
                let member =
                    self.terms.apply(format!("{name} which"), &[before], Sort::Bits(width));
                let none = self.terms.bits(width, 0);
                let member = self.terms.ite(there, member, none);
                self.define(*ok, there)?;
                self.define(*out, member)?;
                (name, vec![before])
            }
            Op::TakeThis { ok, pool, a } => {
                let name = format!("take this {}.{pool}", self.node);
                let args = vec![before, self.value(*a)?];
                let done = self.terms.apply(format!("{name} done"), &args, Sort::Bool);
                self.define(*ok, done)?;
                (name, args)
            }
            Op::Release { pool, a } => {
                (format!("release {}.{pool}", self.node), vec![before, self.value(*a)?])
            }
            _ => return Ok(Faults::new()),
        };
        let after = self.terms.apply(name, &args, Sort::Token);
        self.state.world.keep(self.terms, self.chain, self.node).pools = after;
        Ok(Faults::new())
    }
}
