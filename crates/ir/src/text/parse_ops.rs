//! Parses programs: blocks, operations, terminators.

use super::names::{BIN_OPS, CMP_OPS, INNERS, SHAPES, TERMS, by_name, resolve};
use super::parse_value::{field, searched, set, stream_field, ty, version};
use super::scan::{Result, Scan};
use crate::model::{
    Association, Block, BlockId, Dest, EventArg, EventId, Inner, Key, KeyRef, Model, NewPacket,
    NewPayload, Op, ParamId, PortId, Program, QueueId, ReasonId, RowId, SetRef, StateId, TagId,
    Target, Term, Ty, ValueId,
};
use braid_packet::Header;

/// The maximum number of values of a program in text form.
const MAX_VALUES: u32 = 1 << 20;

/// Reads a program in braces.
pub(super) fn program(scan: &mut Scan<'_>, model: &Model) -> Result<Program> {
    let mut types = Vec::new();
    let mut parser = Parser { scan, model, types: &mut types };
    parser.scan.expect("{")?;
    if parser.scan.eat_word("unused") {
        parser.typed()?;
        while parser.scan.eat(",") {
            parser.typed()?;
        }
    }
    let mut blocks = Vec::new();
    while !parser.scan.eat("}") {
        blocks.push(parser.block(blocks.len())?);
    }
    let mut values = Vec::with_capacity(parser.types.len());
    for (number, ty) in parser.types.iter().enumerate() {
        match ty {
            Some(ty) => values.push(*ty),
            None => return parser.scan.error(format!("v{number} is defined nowhere")),
        }
    }
    Ok(Program { blocks, values })
}

/// Reads parts of a program of one model.
pub(crate) struct Parser<'p, 'a> {
    pub(crate) scan: &'p mut Scan<'a>,
    pub(crate) model: &'p Model,
    /// The type of each value that is defined so far.
    pub(crate) types: &'p mut Vec<Option<Ty>>,
}

/// Reads `v3:ip4`, and records the type.
pub(crate) fn typed(scan: &mut Scan<'_>, types: &mut Vec<Option<Ty>>) -> Result<ValueId> {
    let number = scan.id("v")?;
    if number >= MAX_VALUES {
        return scan.wrong("too many values");
    }
    scan.expect(":")?;
    let ty = ty(scan)?;
    let index = ValueId(number).index();
    if types.len() <= index {
        types.resize(index + 1, None);
    }
    match types.get_mut(index).and_then(|known| known.replace(ty)) {
        Some(other) if other != ty => scan.wrong(format!("v{number} has another type elsewhere")),
        _ => Ok(ValueId(number)),
    }
}

impl Parser<'_, '_> {
    fn typed(&mut self) -> Result<ValueId> {
        typed(self.scan, self.types)
    }

    pub(super) fn value(&mut self) -> Result<ValueId> {
        self.scan.id("v").map(ValueId)
    }

    fn block(&mut self, number: usize) -> Result<Block> {
        self.scan.expect_word(&format!("b{number}"))?;
        let mut params = Vec::new();
        if self.scan.eat("(") {
            params.push(self.typed()?);
            while self.scan.eat(",") {
                params.push(self.typed()?);
            }
            self.scan.expect(")")?;
        }
        self.scan.expect(":")?;
        let mut ops = Vec::new();
        loop {
            if let Some(term) = self.term()? {
                return Ok(Block { params, ops, term });
            }
            let outs = self.outs()?;
            ops.push(self.op(outs)?);
        }
    }

    fn part<'n>(
        &mut self,
        what: &str,
        prefix: &str,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<u32> {
        let word = self.scan.word()?;
        match resolve(prefix, names, word) {
            Some(index) => Ok(index),
            None => self.scan.wrong(format!("no {what} `{word}`")),
        }
    }

    pub(crate) fn param(&mut self) -> Result<ParamId> {
        let names = self.model.params.iter().map(|decl| &*decl.name);
        self.part("parameter", "param", names).map(ParamId)
    }

    pub(crate) fn state(&mut self) -> Result<StateId> {
        let names = self.model.state.iter().map(|decl| &*decl.name);
        self.part("state", "state", names).map(StateId)
    }

    fn tag(&mut self) -> Result<TagId> {
        let names = self.model.tags.iter().map(|decl| &*decl.name);
        self.part("tag", "tag", names).map(TagId)
    }

    fn event(&mut self) -> Result<EventId> {
        let names = self.model.events.iter().map(|decl| &*decl.name);
        self.part("event", "event", names).map(EventId)
    }

    pub(crate) fn queue(&mut self) -> Result<QueueId> {
        let names = self.model.queues.iter().map(|decl| &*decl.name);
        self.part("queue", "queue", names).map(QueueId)
    }

    pub(crate) fn row(&mut self) -> Result<RowId> {
        self.scan.expect_word("at")?;
        self.scan.id("row").map(RowId)
    }

    pub(crate) fn reason(&mut self) -> Result<ReasonId> {
        if !self.scan.sees("\"") {
            return self.scan.id("reason").map(ReasonId);
        }
        let text = self.scan.string()?;
        let place = (0..).zip(&self.model.reasons).find(|(_, reason)| **reason == text);
        match place {
            Some((index, _)) => Ok(ReasonId(index)),
            None => self.scan.wrong(format!("no reason {text:?}")),
        }
    }

    fn target(&mut self) -> Result<Target> {
        let block = self.scan.id("b").map(BlockId)?;
        let args = if self.scan.eat("(") { self.values(")")? } else { Vec::new() };
        Ok(Target { block, args })
    }

    /// Values separated by commas, up to and including a closing punctuation mark.
    pub(super) fn values(&mut self, close: &str) -> Result<Vec<ValueId>> {
        self.scan.items(close, |scan| scan.id("v").map(ValueId))
    }

    pub(super) fn comma_value(&mut self) -> Result<ValueId> {
        self.scan.expect(",")?;
        self.value()
    }

    pub(crate) fn dest(&mut self) -> Result<Dest> {
        match self.scan.word()? {
            "onward" => Ok(Dest::Onward),
            "back" => Ok(Dest::Back),
            "port" => {
                let names = self.model.ports.iter().map(|name| &**name);
                self.part("port", "port", names).map(|port| Dest::Port(PortId(port)))
            }
            _ => self.scan.wrong("expected `onward`, `back` or `port`"),
        }
    }

    /// `map[entry]`
    fn entry(&mut self) -> Result<(StateId, Key)> {
        let state = self.state()?;
        self.scan.expect("[")?;
        let key = match self.scan.peek_word() {
            "entry" => Key::Entry,
            "quoted" => Key::Quoted,
            "reverse" => Key::Reversed(false),
            _ => return Ok((state, Key::Explicit(self.values("]")?))),
        };
        self.scan.word()?;
        let reversed = key == Key::Quoted && self.scan.eat_word("reverse");
        self.scan.expect("]")?;
        Ok((state, if reversed { Key::Reversed(true) } else { key }))
    }

    /// Reads a terminator, if one comes next.
    fn term(&mut self) -> Result<Option<Term>> {
        let word = self.scan.peek_word();
        if !TERMS.contains(&word) {
            return Ok(None);
        }
        self.scan.expect_word(word)?;
        Ok(Some(match word {
            "jump" => Term::Jump(self.target()?),
            "branch" => {
                let cond = self.value()?;
                self.scan.expect(",")?;
                let yes = self.target()?;
                self.scan.expect(",")?;
                Term::Branch { cond, yes, no: self.target()? }
            }
            "output" => {
                let mut ports = vec![self.dest()?];
                while self.scan.eat(",") {
                    ports.push(self.dest()?);
                }
                Term::Output { ports, row: self.row()? }
            }
            "drop" => Term::Drop { reason: self.reason()?, row: self.row()? },
            "consume" => Term::Consume { row: self.row()? },
            "hold" => {
                let queue = self.queue()?;
                self.scan.expect_word("for")?;
                let delay = self.value()?;
                let row = self.row()?;
                self.scan.expect_word("else")?;
                Term::Hold { queue, delay, row, full: self.target()? }
            }
            "resubmit" => Term::Resubmit { row: self.row()? },
            "reset" => Term::Reset { reason: self.reason()?, row: self.row()? },
            "bypass" => Term::Bypass { row: self.row()? },
            "resume" => Term::Resume { row: self.row()? },
            _ => Term::Return,
        }))
    }

    /// Reads the results of an operation, up to and including the `=`. The list is empty for an
    /// operation without results.
    pub(crate) fn outs(&mut self) -> Result<Vec<ValueId>> {
        let mut outs = Vec::new();
        if super::names::numbered("v", self.scan.peek_word()).is_some() {
            outs.push(self.typed()?);
            while self.scan.eat(",") {
                outs.push(self.typed()?);
            }
            self.scan.expect("=")?;
        }
        Ok(outs)
    }

    /// Reads the operation that has these results.
    pub(crate) fn op(&mut self, outs: Vec<ValueId>) -> Result<Op> {
        let name = self.scan.word()?;
        if let Some(op) = self.effect(name)? {
            return if outs.is_empty() { Ok(op) } else { self.scan.error("it defines no value") };
        }
        if let Some(op) = self.many(name, &outs)? {
            return Ok(op);
        }
        match outs.as_slice() {
            [out] => self.one(name, *out),
            [a, b] => self.two(name, *a, *b),
            _ => self.scan.wrong(format!("no operation `{name}` has {} results", outs.len())),
        }
    }

    /// Operations with any number of results.
    fn many(&mut self, name: &str, outs: &[ValueId]) -> Result<Option<Op>> {
        let outs = outs.to_vec();
        Ok(Some(match name {
            "extern" => {
                let name = self.scan.name()?;
                let mut param = None;
                if self.scan.eat("[") {
                    param = Some(self.param()?);
                    self.scan.expect("]")?;
                }
                self.scan.expect("(")?;
                Op::Extern { outs, name, param, args: self.values(")")? }
            }
            "get" => {
                let (state, key) = self.entry()?;
                Op::StateGet { outs, state, key }
            }
            "string_payload" | "string_option" | "string_ip_option" | "string_extension" => {
                let area = self.area(name)?;
                let Some((found, outs)) = outs.split_first() else {
                    return self.scan.wrong("a string has at least one result");
                };
                let (offset, len) = (self.value()?, self.comma_value()?);
                Op::LoadString { found: *found, outs: outs.to_vec(), area, offset, len }
            }
            "find_patterns" => {
                let Ok(outs) = <[ValueId; 4]>::try_from(outs) else {
                    return self.scan.wrong("`find_patterns` has four results");
                };
                Op::FindPatterns { outs, param: self.param()?, of: self.haystack()? }
            }
            "stream" => {
                let [verdict, is_new, seq, ack] = *outs else {
                    return self.scan.wrong("`stream` has four results");
                };
                Op::Stream { verdict, is_new, seq, ack }
            }
            "expiring" => Op::Expiring { outs },
            "expiring_key" => Op::ExpiringKey { outs },
            _ => return Ok(None),
        }))
    }

    /// Operations without results.
    fn effect(&mut self, name: &str) -> Result<Option<Op>> {
        Ok(Some(match name {
            "store" => Op::Store { field: field(self.scan)?, a: self.comma_value()? },
            "store_tag" => Op::StoreTag { tag: self.tag()?, a: self.comma_value()? },
            "push_vlan" => Op::PushVlan { id: self.value()? },
            "pop_vlan" => Op::PopVlan,
            "push_option" => {
                let (option, values) = self.option()?;
                Op::PushOption { option, values }
            }
            "pop_option" => Op::PopOption { option: header(self.scan)? },
            "delete" => {
                let (state, key) = self.entry()?;
                Op::StateDelete { state, key }
            }
            "release" => Op::Release { pool: self.param()?, a: self.comma_value()? },
            "emit" => self.emit()?,
            "count" => Op::Count { row: self.scan.id("row").map(RowId)? },
            "mirror" => Op::Mirror { port: self.dest()? },
            "create" => self.create()?,
            _ => return Ok(None),
        }))
    }

    fn emit(&mut self) -> Result<Op> {
        let event = self.event()?;
        self.scan.expect("(")?;
        let model = self.model;
        let args = self.scan.items(")", |scan| {
            if scan.sees("\"") {
                return scan.string().map(EventArg::Str);
            }
            if scan.eat_word("bytes") {
                scan.expect("(")?;
                let values = scan.items(")", |scan| scan.id("v").map(ValueId))?;
                return Ok(EventArg::Bytes(values));
            }
            if !scan.eat_word("param") {
                return scan.id("v").map(|value| EventArg::Value(ValueId(value)));
            }
            let word = scan.word()?;
            match resolve("param", model.params.iter().map(|decl| &*decl.name), word) {
                Some(param) => Ok(EventArg::Param(ParamId(param))),
                None => scan.wrong(format!("no parameter `{word}`")),
            }
        })?;
        Ok(Op::Emit { event, args })
    }

    fn create(&mut self) -> Result<Op> {
        let word = self.scan.word()?;
        let Some(shape) = by_name(SHAPES, word) else {
            return self.scan.wrong(format!("no shape `{word}`"));
        };
        self.scan.expect("{")?;
        let fields = self.scan.items("}", |scan| {
            let field = field(scan)?;
            scan.expect("=")?;
            Ok((field, ValueId(scan.id("v")?)))
        })?;
        let mut options = Vec::new();
        while self.scan.eat_word("push_option") {
            options.push(self.option()?);
        }
        self.scan.expect_word("payload")?;
        let payload = match self.scan.word()? {
            "empty" => NewPayload::Empty,
            "quote" => NewPayload::Quote(self.scan.number()?),
            "same" => NewPayload::Same,
            _ => return self.scan.wrong("expected `empty`, `quote` or `same`"),
        };
        let exchanged = self.scan.eat_word("exchanged");
        self.scan.expect_word("to")?;
        let new = Box::new(NewPacket { shape, exchanged, fields, options, payload });
        Ok(Op::Create { new, port: self.dest()? })
    }

    /// Operations with one result.
    fn one(&mut self, name: &str, out: ValueId) -> Result<Op> {
        if let Some(op) = by_name(BIN_OPS, name) {
            return Ok(Op::Bin { out, op, a: self.value()?, b: self.comma_value()? });
        }
        if let Some(op) = by_name(CMP_OPS, name) {
            return Ok(Op::Cmp { out, op, a: self.value()?, b: self.comma_value()? });
        }
        Ok(match name {
            "const" => Op::Const { out, value: self.scan.literal()? },
            "param" => Op::Param { out, param: self.param()? },
            "len" => Op::ListLen { out, param: self.param()? },
            "member" => {
                let (param, index) = (self.param()?, self.comma_value()?);
                self.scan.expect(",")?;
                Op::ListGet { out, param, index, column: self.scan.number()? }
            }
            "up" => Op::BackendUp { out, param: self.param()?, index: self.comma_value()? },
            "not" => Op::Not { out, a: self.value()? },
            "resize" => Op::Resize { out, a: self.value()? },
            "clamp" => Op::Clamp { out, a: self.value()? },
            "select" => {
                let (cond, a) = (self.value()?, self.comma_value()?);
                Op::Select { out, cond, a, b: self.comma_value()? }
            }
            "in" => self.in_set(out)?,
            "has" => Op::Has { out, header: header(self.scan)? },
            "has_room" => Op::HasRoom { out, option: header(self.scan)? },
            "load" => Op::Load { out, field: field(self.scan)? },
            "load_entry" => Op::LoadEntry { out, field: field(self.scan)? },
            "native" => Op::Native { out },
            "load_event" => Op::LoadEvent { out, field: self.scan.number()? },
            "load_stream" => Op::LoadStream { out, field: stream_field(self.scan)? },
            "load_tag" => Op::LoadTag { out, tag: self.tag()? },
            "store_payload" | "store_option" => {
                let area = self.area(name)?;
                let (offset, a) = (self.value()?, self.comma_value()?);
                Op::StoreBytes { ok: out, area, offset, a }
            }
            "replace_payload" => {
                let (offset, old) = (self.value()?, self.comma_value()?);
                let new = self.comma_value()?;
                self.scan.expect(",")?;
                self.scan.expect("(")?;
                Op::ReplaceBytes { ok: out, offset, old, new, words: self.values(")")? }
            }
            "set_option" => {
                Op::SetOption { ok: out, kind: self.scan.number()?, value: self.option_value()? }
            }
            "encapsulate" | "decapsulate" | "translate" | "encrypt" | "decrypt" => {
                self.outer(name, out)?
            }
            "in_strings" => {
                let (param, len) = (self.param()?, self.comma_value()?);
                self.scan.expect(",")?;
                self.scan.expect("(")?;
                Op::InStrings { out, param, len, words: self.values(")")? }
            }
            "take_this" => Op::TakeThis { ok: out, pool: self.param()?, a: self.comma_value()? },
            _ => return self.one_of_state(name, out),
        })
    }

    /// State operations with one result.
    fn one_of_state(&mut self, name: &str, out: ValueId) -> Result<Op> {
        Ok(match name {
            "exists" => {
                let (state, key) = self.entry()?;
                Op::StateExists { out, state, key }
            }
            "set" => {
                let (state, key) = self.entry()?;
                self.scan.expect(",")?;
                self.scan.expect("(")?;
                Op::StateSet { ok: out, state, key, values: self.values(")")? }
            }
            "put" => {
                let (state, key) = self.entry()?;
                self.scan.expect(",")?;
                let slot = self.scan.number()?;
                Op::StatePut { ok: out, state, key, slot, value: self.comma_value()? }
            }
            "entries" => Op::StateLen { out, state: self.state()? },
            _ => return self.scan.wrong(format!("`{name}` is no operation with one result")),
        })
    }

    /// Operations with two results.
    fn two(&mut self, name: &str, a: ValueId, b: ValueId) -> Result<Op> {
        Ok(match name {
            "rules" => Op::Rules { pass: a, rule: b, param: self.param()? },
            "route" => {
                Op::Route { found: a, hop: b, param: self.param()?, addr: self.comma_value()? }
            }
            "patterns" => Op::Patterns { found: a, number: b, param: self.param()? },
            "stream_match" => {
                let (param, text) = (self.param()?, searched(self.scan)?);
                Op::StreamMatch { found: a, number: b, param, text }
            }
            "load_payload" | "load_option" | "load_ip_option" | "load_extension" => {
                let area = self.area(name)?;
                Op::LoadBytes { found: a, out: b, area, offset: self.value()? }
            }
            "take" => Op::Take { ok: a, out: b, pool: self.param()? },
            _ => return self.scan.wrong(format!("`{name}` is no operation with two results")),
        })
    }

    fn in_set(&mut self, out: ValueId) -> Result<Op> {
        let a = self.value()?;
        self.scan.expect(",")?;
        let set = if self.scan.eat_word("set") {
            SetRef::Param(self.param()?)
        } else if self.scan.eat_word("list") {
            let param = self.param()?;
            self.scan.expect(",")?;
            SetRef::List(param, self.scan.number()?)
        } else {
            SetRef::Const(set(self.scan)?)
        };
        Ok(Op::InSet { out, a, set })
    }

    /// Operations on outer headers, `encrypt` and `decrypt`.
    fn outer(&mut self, name: &str, ok: ValueId) -> Result<Op> {
        Ok(match name {
            "encapsulate" => {
                let inner = self.inner()?;
                self.scan.expect("(")?;
                let parts = self.scan.items(")", header)?;
                self.scan.expect(",")?;
                let len = self.scan.number()?;
                self.scan.expect(",")?;
                self.scan.expect("(")?;
                let words = self.values(")")?;
                let of = self.association()?;
                let seal = of.map(|of| Ok((of, self.comma_value()?))).transpose()?;
                Op::Encapsulate { ok, inner, parts, len, words, seal }
            }
            "decapsulate" => {
                let (inner, last) = (self.inner()?, header(self.scan)?);
                let offset = self.comma_value()?;
                Op::Decapsulate { ok, inner, last, offset, association: self.association()? }
            }
            "translate" => {
                let to = version(self.scan)?;
                self.scan.expect("(")?;
                match self.values(")")?[..] {
                    [a, b] => Op::Translate { ok, to, own: [a, b], quoted: None },
                    [a, b, c, d] => Op::Translate { ok, to, own: [a, b], quoted: Some([c, d]) },
                    _ => return self.scan.wrong("a translation takes two or four addresses"),
                }
            }
            "encrypt" => {
                let (offset, key) = (self.value()?, self.cipher_key()?);
                Op::Encrypt { ok, key, number: self.comma_value()?, offset }
            }
            _ => {
                let offset = self.value()?;
                Op::Decrypt { ok, key: self.cipher_key()?, offset }
            }
        })
    }

    /// `, key PARAM[VALUE]` or `, key PARAM[VALUE] high VALUE`, or nothing.
    fn association(&mut self) -> Result<Option<Association>> {
        if !self.scan.sees(",") {
            return Ok(None);
        }
        let key = self.cipher_key()?;
        let high = if self.scan.eat_word("high") { Some(self.value()?) } else { None };
        Ok(Some(Association { key, high }))
    }

    /// `, key PARAM[VALUE]`
    fn cipher_key(&mut self) -> Result<KeyRef> {
        self.scan.expect(",")?;
        self.scan.expect_word("key")?;
        let keys = self.param()?;
        self.scan.expect("[")?;
        let number = self.value()?;
        self.scan.expect("]")?;
        Ok(KeyRef { keys, number })
    }

    fn inner(&mut self) -> Result<Inner> {
        let name = self.scan.word()?;
        match by_name(INNERS, name) {
            Some(inner) => Ok(inner),
            None => self.scan.wrong(format!("a tunnel carries a frame or a packet, not `{name}`")),
        }
    }
}

pub(super) fn header(scan: &mut Scan<'_>) -> Result<Header> {
    let name = scan.dotted()?;
    match Header::by_name(name) {
        Some(header) => Ok(header),
        None => scan.wrong(format!("no header `{name}`")),
    }
}
