//! Random models: every part of a model in every form of the text form. They may fail to verify.

mod outer;

use braid_externs::Rng;
use braid_externs::patterns::{Matcher, Pattern, PatternSet};
use braid_ir::model::*;
use braid_ir::routes::RouteTable;
use braid_ir::show::max_of;
use braid_ir::strings::StringSet;
use braid_ir::value::{Backend, Health, IntervalSet, ParamValue, Rule, RuleAddrs, RuleSet};
use braid_packet::{FIELDS, Field, HEADERS, Header};

/// Makes models from a seed.
pub struct Maker {
    rng: Rng,
    model: Model,
    types: Vec<Ty>,
}

/// A random model.
pub fn model(seed: u64) -> Model {
    let mut maker = Maker { rng: Rng::new(seed), model: Model::new(""), types: vec![] };
    maker.fill();
    maker.model
}

impl Maker {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.rng.below(bound as u128)).unwrap()
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 1
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn word(&mut self) -> Word {
        let bits = u32::try_from(self.below(129)).unwrap();
        let high = u128::from(self.rng.next_u64()) << 64;
        (high | u128::from(self.rng.next_u64())).checked_shr(128 - bits).unwrap_or(0)
    }

    fn up_to(&mut self, width: u16) -> Word {
        self.word() & max_of(width)
    }

    /// A name that no other part of its kind has. Some names are not words, or look like numbers.
    fn name(&mut self, index: usize) -> String {
        let name = self.pick(&["a", "state0", "b.c", "", "é\"\\\n", "true", "param1", "drop", "7"]);
        format!("{name}{}", ["", "_"][usize::from(index > 0)]) + &"x".repeat(index)
    }

    fn ty(&mut self) -> Ty {
        let kind = self.pick(&[
            Kind::Uint,
            Kind::Bool,
            Kind::Ip4,
            Kind::Ip6,
            Kind::Addr,
            Kind::Mac,
            Kind::Port,
            Kind::Duration,
            Kind::Time,
            Kind::Size,
            Kind::Bitrate,
        ]);
        match kind.width() {
            Some(_) => Ty::of(kind),
            None => Ty::uint(u16::try_from(1 + self.below(128)).unwrap()),
        }
    }

    fn columns(&mut self) -> Vec<(String, Ty)> {
        if self.coin() {
            return vec![(String::new(), self.ty())];
        }
        (0..1 + self.below(3)).map(|index| (self.name(index) + "c", self.ty())).collect()
    }

    fn fill(&mut self) {
        self.model.name = self.name(0);
        for index in 0..self.below(2) {
            let port = self.name(index) + "p";
            self.model.ports.push(port);
        }
        for index in 0..1 + self.below(9) {
            let param = self.param(index);
            self.model.params.push(param);
        }
        let states = 1 + self.below(3);
        for index in 0..states {
            let state = self.state(index, states);
            self.model.state.push(state);
        }
        let (name, capacity) = (self.name(0), self.setting(32));
        self.model.queues.push(QueueDecl { name, capacity });
        let event = self.event();
        self.model.events.push(event);
        let (name, ty) = (self.name(0), self.ty());
        self.model.tags.push(TagDecl { name, ty });
        for index in 0..1 + self.below(3) {
            let (label, text, line) = (self.name(index), self.name(0), self.below(3));
            let line = u32::try_from(line).unwrap();
            self.model.rows.push(RowDecl { label, text, line });
        }
        for index in 0..1 + self.below(2) {
            let reason = self.name(index);
            self.model.reasons.push(reason);
        }
        self.model.packet = self.program();
        if self.coin() {
            let program = self.program();
            self.model.expire.push((StateId(0), program));
        }
        if self.coin() {
            let (period, body) = (self.setting(64), self.program());
            self.model.timers.push(Timer { period, body });
        }
        for event in StreamEvent::ALL {
            if self.coin() {
                let program = self.program();
                self.model.streams.push((event, program));
            }
        }
        if self.coin() {
            let program = self.program();
            self.model.handlers.push((EventId(0), program));
        }
    }

    fn setting(&mut self, width: u16) -> Setting {
        match self.coin() {
            true => Setting::Param(self.param_id()),
            false => Setting::Const(self.up_to(width)),
        }
    }

    fn param(&mut self, index: usize) -> ParamDecl {
        let ty = match self.below(13) {
            0 => ParamTy::Scalar(self.ty()),
            1 => ParamTy::List(self.columns()),
            2 => ParamTy::Set(self.ty()),
            3 => ParamTy::Rules,
            4 => ParamTy::Routes,
            5 => ParamTy::Patterns,
            6 => {
                let order = self.pick(&[PoolOrder::Lowest, PoolOrder::Fifo, PoolOrder::Random]);
                ParamTy::Pool(self.ty(), order)
            }
            7 => ParamTy::Backends(self.columns()),
            8 => ParamTy::Strings(self.pick(&[16, 240])),
            9 => ParamTy::Hosts,
            10 => ParamTy::Keys,
            11 => ParamTy::Signatures,
            _ => ParamTy::Str,
        };
        let default = if self.coin() { Some(self.value(&ty)) } else { None };
        ParamDecl { name: self.name(index), ty, default }
    }

    fn row(&mut self, columns: &[(String, Ty)]) -> Vec<Word> {
        columns.iter().map(|(_, ty)| self.up_to(ty.width)).collect()
    }

    fn value(&mut self, ty: &ParamTy) -> ParamValue {
        let count = self.below(3);
        match ty {
            ParamTy::Scalar(ty) => ParamValue::Scalar(self.up_to(ty.width)),
            ParamTy::List(columns) => {
                ParamValue::List((0..count).map(|_| self.row(columns)).collect())
            }
            ParamTy::Set(ty) => ParamValue::Set(self.set(ty.width)),
            ParamTy::Pool(ty, _) => ParamValue::Pool(self.set(ty.width)),
            ParamTy::Rules => {
                let rules = (0..count).map(|_| self.rule()).collect();
                ParamValue::Rules(RuleSet { rules, default_pass: self.coin() })
            }
            ParamTy::Routes => {
                let mut table = RouteTable::default();
                for hop in 0..4 {
                    // Tables do not keep host bits, so none are set.
                    let (len4, len6) = (self.below(33), self.below(129));
                    let v4 = (self.up_to(32) as u32) & !(u64::from(u32::MAX) >> len4) as u32;
                    let v6 = self.word() & !u128::MAX.checked_shr(len6 as u32).unwrap_or(0);
                    table.insert4(v4, len4 as u8, hop);
                    table.insert6(v6, len6 as u8, hop);
                }
                ParamValue::Routes(table)
            }
            ParamTy::Patterns => {
                let literal = Matcher::Literal { bytes: vec![0, b'"', 0xff], nocase: self.coin() };
                let regex = Matcher::Regex { source: "a\\d\"+".to_owned(), nocase: self.coin() };
                let all = [literal, regex].map(|matcher| Pattern { number: 7, matcher });
                ParamValue::Patterns(PatternSet::new(all[..count].to_vec()).unwrap())
            }
            ParamTy::Backends(columns) => {
                let mut one = || Backend {
                    columns: self.row(columns),
                    health: [Health::Up, Health::Down, Health::Removed][self.below(3)],
                };
                ParamValue::Backends((0..count).map(|_| one()).collect())
            }
            ParamTy::Str => ParamValue::Str(self.name(0)),
            ParamTy::Strings(_) => {
                let all = [b"".to_vec(), b"a\"\x00\xff".to_vec(), b"*.b".to_vec(), vec![b'z'; 16]];
                ParamValue::Strings(StringSet::exact(all[..count].to_vec()).unwrap())
            }
            // The text hides keys, so it is read back without any.
            ParamTy::Keys => ParamValue::Keys(braid_crypto::Keys::default()),
            ParamTy::Signatures => {
                let line = r#"alert tcp any any -> any 80 (msg:"é \""; content:"|00|"; sid:1;)"#;
                ParamValue::Signatures(braid_signatures::load(["", line][count % 2]).set)
            }
            ParamTy::Hosts => {
                let all: [&[u8]; 4] = [b"*.example.org", b"A.example", b"*.b", b"c_1-2"];
                ParamValue::Strings(StringSet::hosts(all[..count].to_vec()).unwrap())
            }
        }
    }

    fn set(&mut self, width: u16) -> IntervalSet {
        let count = self.below(3);
        IntervalSet::new((0..count).map(|_| (self.up_to(width), self.up_to(width))))
    }

    fn rule(&mut self) -> Rule {
        let addrs = match self.below(3) {
            0 => None,
            1 => {
                let mut addr = || self.up_to(32) as u32;
                Some(RuleAddrs::V4 { src: (addr(), addr()), dst: (addr(), addr()) })
            }
            _ => Some(RuleAddrs::V6 { src: (self.word(), 9), dst: (0, self.word()) }),
        };
        let mut rule = Rule { addrs, ..Rule::any(self.coin()) };
        if self.coin() {
            rule.proto = (self.up_to(8) as u8, 255);
            rule.sport = (1, self.up_to(16) as u16);
            rule.tcp_flags = (2, self.up_to(8) as u8);
            rule.line = 3;
        } else {
            rule.dport = (0, self.up_to(16) as u16);
            rule.icmp = (self.up_to(16) as u16, 0xff00);
        }
        rule
    }

    fn state(&mut self, index: usize, states: usize) -> StateDecl {
        let granularity = match self.below(5) {
            0 => Granularity::Global,
            1 => Granularity::Flow,
            2 => Granularity::Biflow,
            3 => Granularity::Fields((0..1 + self.below(3)).map(|_| self.field()).collect()),
            _ => Granularity::Key((0..1 + self.below(3)).map(|_| self.ty()).collect()),
        };
        let slots = self.columns();
        let default = match self.coin() {
            true => Some(slots.iter().map(|(_, ty)| self.setting(ty.width)).collect()),
            false => None,
        };
        let partner = StateId(u32::try_from(self.below(states)).unwrap());
        StateDecl {
            name: self.name(index),
            granularity,
            slots,
            default,
            capacity: self.setting(32),
            when_full: self.pick(&[WhenFull::Refuse, WhenFull::EvictOldest]),
            idle: self.coin().then(|| self.setting(64)),
            hard: self.coin().then(|| self.setting(64)),
            tick: self.setting(64),
            lives_with: self.coin().then_some(partner),
            sharded: self.coin(),
            portions: self.coin().then(|| self.param_id()).into_iter().collect(),
            sums: self
                .coin()
                .then(|| self.pick(&[Sum::Add, Sum::First, Sum::Last]))
                .into_iter()
                .collect(),
        }
    }

    fn event(&mut self) -> EventDecl {
        let ancestors = (0..self.below(3))
            .map(|index| Ancestor { name: self.name(index), fields: self.below(3) })
            .collect();
        let mut fields = Vec::new();
        for index in 0..self.below(3) {
            let ty = if self.coin() { EventTy::Str } else { EventTy::Scalar(self.ty()) };
            fields.push((self.name(index), ty));
        }
        EventDecl { name: self.name(0), ancestors, fields }
    }

    fn field(&mut self) -> Field {
        let index = self.below(FIELDS.len());
        FIELDS[index].field
    }

    fn param_id(&mut self) -> ParamId {
        ParamId(u32::try_from(self.below(self.model.params.len())).unwrap())
    }

    fn state_id(&mut self) -> StateId {
        StateId(u32::try_from(self.below(self.model.state.len())).unwrap())
    }

    fn row_id(&mut self) -> RowId {
        RowId(u32::try_from(self.below(self.model.rows.len())).unwrap())
    }

    fn dest(&mut self) -> Dest {
        let port = PortId(u32::try_from(self.below(self.model.ports.len())).unwrap());
        self.pick(&[Dest::Onward, Dest::Back, Dest::Port(port)])
    }

    fn program(&mut self) -> Program {
        self.types = vec![Ty::uint(8)];
        let count = 1 + self.below(4);
        let mut blocks = Vec::new();
        for _ in 0..count {
            let params = (0..self.below(3)).map(|_| self.out()).collect();
            let ops = (0..self.below(12)).map(|_| self.op()).collect();
            blocks.push(Block { params, ops, term: self.term(count) });
        }
        // At least one value has no definition.
        self.out();
        Program { blocks, values: std::mem::take(&mut self.types) }
    }

    fn out(&mut self) -> ValueId {
        let ty = self.ty();
        self.types.push(ty);
        ValueId(u32::try_from(self.types.len() - 1).unwrap())
    }

    fn outs(&mut self) -> Vec<ValueId> {
        (0..self.below(4)).map(|_| self.out()).collect()
    }

    fn value_id(&mut self) -> ValueId {
        ValueId(u32::try_from(self.below(self.types.len())).unwrap())
    }

    fn values(&mut self) -> Vec<ValueId> {
        (0..self.below(4)).map(|_| self.value_id()).collect()
    }

    fn key(&mut self) -> Key {
        match self.below(5) {
            0 => Key::Entry,
            1 => Key::Quoted,
            2 => Key::Reversed(false),
            3 => Key::Reversed(true),
            _ => Key::Explicit(self.values()),
        }
    }

    fn op(&mut self) -> Op {
        match self.below(4) {
            0 => self.value_op(),
            1 => self.packet_op(),
            2 => self.param_op(),
            _ => self.state_op(),
        }
    }

    fn value_op(&mut self) -> Op {
        use BinOp::*;
        let (out, a, b) = (self.out(), self.value_id(), self.value_id());
        let ops = [
            AddSat, SubSat, MulSat, AddWrap, SubWrap, MulWrap, Div, Rem, And, Or, Xor, Shl, Shr,
            Min, Max,
        ];
        match self.below(8) {
            0 => {
                let width = self.types[out.index()].width;
                Op::Const { out, value: self.up_to(width) }
            }
            1 => Op::Bin { out, op: self.pick(&ops), a, b },
            2 => {
                let ops = [CmpOp::Eq, CmpOp::Ne, CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge];
                Op::Cmp { out, op: self.pick(&ops), a, b }
            }
            3 => Op::Not { out, a },
            4 => Op::Resize { out, a },
            5 => Op::Clamp { out, a },
            6 => Op::Select { out, cond: self.value_id(), a, b },
            _ => Op::InSet {
                out,
                a,
                set: match self.below(3) {
                    0 => SetRef::Const(self.set(128)),
                    1 => SetRef::Param(self.param_id()),
                    _ => SetRef::List(self.param_id(), 3),
                },
            },
        }
    }

    fn packet_op(&mut self) -> Op {
        let a = self.value_id();
        match self.below(24) {
            0 => Op::Has { out: self.out(), header: self.header() },
            1 => Op::Load { out: self.out(), field: self.field() },
            2 => Op::LoadEntry { out: self.out(), field: self.field() },
            3 => Op::Store { field: self.field(), a },
            4 => Op::LoadTag { out: self.out(), tag: TagId(0) },
            5 => Op::StoreTag { tag: TagId(0), a },
            6 => Op::PushVlan { id: a },
            7 => Op::PopVlan,
            12 => Op::HasRoom { out: self.out(), option: self.option() },
            13 => Op::PushOption { option: self.option(), values: vec![a; self.below(3)] },
            15 => {
                let (found, out) = (self.out(), self.out());
                Op::LoadBytes { found, out, area: self.area(), offset: a }
            }
            17 => {
                let outs = (0..1 + self.below(3)).map(|_| self.out()).collect();
                Op::LoadString { found: self.out(), outs, area: self.area(), offset: a, len: a }
            }
            18 => {
                let words = vec![a; self.below(3)];
                Op::ReplaceBytes { ok: self.out(), offset: a, old: a, new: a, words }
            }
            kind @ 19..=23 => self.outer_op(kind, a),
            16 => {
                let area = self.pick(&[Area::Payload, Area::TcpOption(5)]);
                Op::StoreBytes { ok: self.out(), area, offset: a, a }
            }
            14 if self.coin() => Op::PopOption { option: self.option() },
            14 => Op::SetOption { ok: self.out(), kind: 5, value: Some((a, vec![a])) },
            8 => Op::Count { row: self.row_id() },
            9 => Op::Mirror { port: self.dest() },
            10 => {
                let arg = |maker: &mut Self| match maker.below(4) {
                    0 => EventArg::Value(maker.value_id()),
                    1 => EventArg::Str(maker.name(0)),
                    2 => EventArg::Bytes((0..maker.below(3)).map(|_| maker.value_id()).collect()),
                    _ => EventArg::Param(maker.param_id()),
                };
                Op::Emit {
                    event: EventId(0),
                    args: (0..self.below(3)).map(|_| arg(self)).collect(),
                }
            }
            _ => {
                use {NewPayload::*, Shape::*};
                let shape = self.pick(&[Icmp, Icmp6, Tcp4, Tcp6, Udp4, Udp6, Arp]);
                let fields = (0..self.below(3)).map(|_| (self.field(), a)).collect();
                let options = (0..self.below(3)).map(|_| (self.option(), vec![a])).collect();
                let (payload, exchanged) = (self.pick(&[Empty, Quote(28), Same]), self.coin());
                let new = Box::new(NewPacket { shape, exchanged, fields, options, payload });
                Op::Create { new, port: self.dest() }
            }
        }
    }

    fn area(&mut self) -> Area {
        match self.below(4) {
            0 => Area::Payload,
            2 => Area::IpOption(148),
            3 => Area::Ip6Extension(43),
            kind => Area::TcpOption(u8::try_from(4 + kind).unwrap_or(5)),
        }
    }

    fn header(&mut self) -> Header {
        HEADERS[self.below(HEADERS.len())].0
    }

    fn inner(&mut self) -> Inner {
        self.pick(&[Inner::Frame, Inner::Packet])
    }

    fn option(&mut self) -> Header {
        use Header::{TcpMss, TcpSackOk, TcpTs, TcpWscale};
        self.pick(&[TcpMss, TcpWscale, TcpSackOk, TcpTs])
    }

    fn haystack(&mut self, a: ValueId) -> Haystack {
        let all = [Haystack::Payload, Haystack::Part(a, a), Haystack::Text(a, vec![a; 2])];
        all[self.below(3)].clone()
    }

    fn param_op(&mut self) -> Op {
        let (param, a) = (self.param_id(), self.value_id());
        match self.below(17) {
            0 => Op::Param { out: self.out(), param },
            1 => Op::ListLen { out: self.out(), param },
            2 => Op::ListGet { out: self.out(), param, index: a, column: 2 },
            3 => Op::BackendUp { out: self.out(), param, index: a },
            4 => Op::Rules { pass: self.out(), rule: self.out(), param },
            5 => Op::Route { found: self.out(), hop: self.out(), param, addr: a },
            6 => Op::Patterns { found: self.out(), number: self.out(), param },
            10 => {
                let (outs, of) = ([(); 4].map(|()| self.out()), self.haystack(a));
                Op::FindPatterns { outs, param, of }
            }
            11 => Op::InStrings { out: self.out(), param, len: a, words: vec![a; self.below(3)] },
            7 => {
                let name = self.pick(&["hash", "no word"]).to_owned();
                let param = self.coin().then_some(param);
                Op::Extern { outs: self.outs(), name, param, args: self.values() }
            }
            8 => Op::Take { ok: self.out(), out: self.out(), pool: param },
            12 => {
                let text = self.coin().then(|| self.pick(&StreamText::OF_REQUEST));
                Op::StreamMatch { found: self.out(), number: self.out(), param, text }
            }
            13 => {
                let field = self.pick(&StreamField::all().collect::<Vec<_>>());
                Op::LoadStream { out: self.out(), field }
            }
            14 => Op::Stream {
                verdict: self.out(),
                is_new: self.out(),
                seq: self.out(),
                ack: self.out(),
            },
            15 => Op::LoadEvent { out: self.out(), field: 1 },
            9 => Op::TakeThis { ok: self.out(), pool: param, a },
            _ => Op::Release { pool: param, a },
        }
    }

    fn state_op(&mut self) -> Op {
        let (state, key) = (self.state_id(), self.key());
        match self.below(8) {
            0 => Op::StateExists { out: self.out(), state, key },
            1 => Op::StateGet { outs: self.outs(), state, key },
            2 => Op::StateSet { ok: self.out(), state, key, values: self.values() },
            3 => {
                let value = self.value_id();
                Op::StatePut { ok: self.out(), state, key, slot: 4, value }
            }
            4 => Op::StateDelete { state, key },
            5 => Op::StateLen { out: self.out(), state },
            6 => Op::Expiring { outs: self.outs() },
            _ => Op::ExpiringKey { outs: self.outs() },
        }
    }

    fn target(&mut self, blocks: usize) -> Target {
        let block = BlockId(u32::try_from(self.below(blocks)).unwrap());
        Target { block, args: self.values() }
    }

    fn term(&mut self, blocks: usize) -> Term {
        let row = self.row_id();
        match self.below(11) {
            0 => Term::Jump(self.target(blocks)),
            1 => {
                let (yes, no) = (self.target(blocks), self.target(blocks));
                Term::Branch { cond: self.value_id(), yes, no }
            }
            2 => Term::Output { ports: (0..1 + self.below(3)).map(|_| self.dest()).collect(), row },
            3 => Term::Drop { reason: self.reason(), row },
            4 => Term::Consume { row },
            5 => {
                let (delay, full) = (self.value_id(), self.target(blocks));
                Term::Hold { queue: QueueId(0), delay, row, full }
            }
            6 => Term::Resubmit { row },
            7 => Term::Reset { reason: self.reason(), row },
            8 => Term::Bypass { row },
            9 => Term::Resume { row },
            _ => Term::Return,
        }
    }
    fn reason(&mut self) -> ReasonId {
        ReasonId(u32::try_from(self.below(self.model.reasons.len())).unwrap())
    }
}
