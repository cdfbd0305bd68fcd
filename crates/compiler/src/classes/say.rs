//! Describes values and steps of programs in words.

use crate::symbolic::facts::allowed;
use crate::symbolic::range::{one, shifted};
use braid_ir::chain::Chain;
use braid_ir::model::{
    Area, BinOp, CmpOp, Dest, Granularity, Haystack, Key, Op, ParamId, ParamTy, SetRef, StateId,
    Ty, ValueId,
};
use braid_ir::residual::{End, Fate, Residual, Step, What};
use braid_ir::show::field_kind;
use braid_ir::value::IntervalSet;
use braid_packet::{Field, tunnel};

/// The largest depth to which values are spelled out.
const DEEPEST: u32 = 7;

/// The largest number of intervals of a set that are spelled out.
const MOST_INTERVALS: usize = 6;

/// Describes values of a program.
pub(super) struct Speaker<'a> {
    chain: &'a Chain,
    program: &'a Residual,
    /// For each value, the step that defines it and the value's position among that step's results.
    defined: Vec<Option<(&'a Step, usize)>>,
}

/// The arguments that block parameters have on a path.
pub(super) type Bound = std::collections::BTreeMap<ValueId, ValueId>;

/// A test of a value against constants, with the values that pass it.
pub(super) struct Test {
    /// Identifies the value. Equal values have equal subjects.
    pub(super) subject: String,
    /// The value in words.
    pub(super) text: String,
    /// Its type.
    pub(super) ty: Ty,
    /// The values that pass the test.
    pub(super) set: IntervalSet,
}

impl<'a> Speaker<'a> {
    pub(super) fn new(chain: &'a Chain, program: &'a Residual) -> Self {
        let mut defined = vec![None; program.values.len()];
        for step in program.blocks.iter().flat_map(|block| &block.steps) {
            for (place, value) in step.what.outs().into_iter().enumerate() {
                defined[value.index()] = Some((step, place));
            }
        }
        Self { chain, program, defined }
    }

    /// A description for the path that binds these block parameters.
    pub(super) fn on<'b>(&'b self, bound: &'b Bound) -> OnWay<'b> {
        OnWay { speaker: self, bound }
    }
}

/// Describes values on a path.
#[derive(Clone, Copy)]
pub(super) struct OnWay<'a> {
    speaker: &'a Speaker<'a>,
    bound: &'a Bound,
}

impl OnWay<'_> {
    /// The argument that a parameter has on this path. Any other value stands for itself.
    pub(super) fn resolve(&self, value: ValueId) -> ValueId {
        let mut at = value;
        // Each iteration leads to a value of an earlier block, so the loop ends.
        while let Some(next) = self.bound.get(&at) {
            at = *next;
        }
        at
    }

    fn defined(&self, value: ValueId) -> Option<(&Step, usize)> {
        self.speaker.defined[self.resolve(value).index()]
    }

    fn constant(&self, value: ValueId) -> Option<u128> {
        match self.defined(value) {
            Some((Step { what: What::Op(Op::Const { value, .. }), .. }, _)) => Some(*value),
            _ => None,
        }
    }

    /// A condition in words.
    pub(super) fn condition(&self, cond: ValueId) -> String {
        self.value(cond, 0)
    }

    /// A condition as a test of one value against constants. A condition of another form becomes a
    /// test of itself.
    pub(super) fn test(&self, cond: ValueId) -> Test {
        let cond = self.resolve(cond);
        if let Some((Step { what: What::Op(op), .. }, _)) = self.defined(cond) {
            match op {
                Op::Cmp { op, a, b, .. } => {
                    if let Some(constant) = self.constant(*b) {
                        return self.against(*a, self.allowed(*op, constant, *a));
                    }
                    if let Some(constant) = self.constant(*a) {
                        return self.against(*b, self.allowed(op.swapped(), constant, *b));
                    }
                }
                Op::InSet { a, set: SetRef::Const(set), .. } => {
                    return self.against(*a, set.clone());
                }
                _ => {}
            }
        }
        self.against(cond, IntervalSet::new([(1, 1)]))
    }

    /// The values that satisfy a comparison with a constant.
    fn allowed(&self, op: CmpOp, constant: u128, value: ValueId) -> IntervalSet {
        allowed(op, &one(constant), self.ty(value).width, true)
    }

    fn against(&self, value: ValueId, set: IntervalSet) -> Test {
        let ty = self.ty(value);
        if let Some((Step { what: What::Op(Op::Bin { op, a, b, .. }), .. }, _)) =
            self.defined(value)
            && let Some(less) = self.constant(*b)
            && matches!(op, BinOp::SubWrap | BinOp::SubSat)
        {
            return self.against(*a, before_less(&set, less, *op, ty));
        }
        Test { subject: self.identity(value, 0), text: self.value(value, 0), ty, set }
    }

    /// A name that is the same for equal values: an expression of the values that it is computed
    /// from, or else the value's number.
    fn identity(&self, value: ValueId, depth: u32) -> String {
        let value = self.resolve(value);
        let Some((Step { what: What::Op(op), .. }, _)) = self.defined(value) else {
            return value.to_string();
        };
        let name = |value: &ValueId| self.identity(*value, depth + 1);
        match op {
            _ if depth > DEEPEST => value.to_string(),
            Op::Const { value, .. } => value.to_string(),
            Op::Bin { op, a, b, .. } => format!("({} {} {})", name(a), sign(*op), name(b)),
            Op::Cmp { op, a, b, .. } => format!("({} {op:?} {})", name(a), name(b)),
            Op::Not { a, .. } => format!("(not {})", name(a)),
            Op::Resize { a, .. } => format!("({}:{})", name(a), self.ty(value)),
            _ => value.to_string(),
        }
    }

    /// Describes the effect of a step in words. `None` if the step is not worth listing.
    pub(super) fn effect(&self, step: &Step) -> Option<String> {
        if !is_effect(&step.what) {
            return None;
        }
        let node = step.site.node;
        Some(match &step.what {
            What::Write(fields) => {
                let each = fields.iter().map(|(field, value)| {
                    format!("{} = {}", field.info().name, self.shown(*value, *field))
                });
                each.collect::<Vec<_>>().join(", ")
            }
            What::Op(op) => self.operation(node, op),
            _ => return None,
        })
    }

    fn operation(&self, node: u16, op: &Op) -> String {
        let name = self.node(node);
        match op {
            Op::StateSet { state, key, values, .. } => {
                format!("{} = {}", self.entry(node, *state, key, 0), self.list(values, 0))
            }
            Op::StatePut { state, key, slot, value, .. } => {
                let decl = &self.speaker.chain.nodes[usize::from(node)].model.state[state.index()];
                let slot = decl.slots.get(*slot as usize).map_or("", |(name, _)| name.as_str());
                let entry = self.entry(node, *state, key, 0);
                format!("{entry}.{slot} = {}", self.value(*value, 0))
            }
            Op::StateDelete { state, key } => {
                format!("delete {}", self.entry(node, *state, key, 0))
            }
            Op::Take { pool, .. } | Op::TakeThis { pool, .. } => {
                format!("take from {}", self.param(node, *pool))
            }
            Op::Release { pool, a } => {
                format!("release {} to {}", self.value(*a, 0), self.param(node, *pool))
            }
            Op::Emit { event, .. } => {
                let model = &self.speaker.chain.nodes[usize::from(node)].model;
                format!("{name}: event {}", model.events[event.index()].name)
            }
            Op::Mirror { .. } => format!("{name}: send a copy"),
            Op::Create { .. } => format!("{name}: send a new packet"),
            Op::StoreTag { .. } => format!("{name}: set a tag"),
            Op::PushVlan { id } => format!("push vlan {}", self.value(*id, 0)),
            Op::PopVlan => "pop vlan".to_owned(),
            Op::PushOption { option, values } => {
                let values: Vec<_> = values.iter().map(|value| self.value(*value, 0)).collect();
                format!("push {}({})", option.info().name, values.join(", "))
            }
            Op::PopOption { option } => format!("pop {}", option.info().name),
            _ => String::new(),
        }
    }

    fn entry(&self, node: u16, state: StateId, key: &Key, depth: u32) -> String {
        match key {
            Key::Explicit(parts) => self.keyed(node, state, parts, depth),
            _ => self.table(node, state),
        }
    }

    /// An entry of a table by its key. For connections, the text leaves out the order of the two
    /// ends.
    fn keyed(&self, node: u16, state: StateId, parts: &[ValueId], depth: u32) -> String {
        let table = self.table(node, state);
        let decl = &self.speaker.chain.nodes[usize::from(node)].model.state[state.index()];
        match decl.granularity {
            Granularity::Global => table,
            Granularity::Biflow => format!("{table}[biflow]"),
            _ => format!("{table}[{}]", self.list(parts, depth)),
        }
    }

    fn list(&self, values: &[ValueId], depth: u32) -> String {
        values.iter().map(|value| self.value(*value, depth + 1)).collect::<Vec<_>>().join(", ")
    }

    fn ty(&self, value: ValueId) -> Ty {
        self.speaker.program.values[value.index()]
    }

    /// A value in its field's notation, if it is a constant.
    fn shown(&self, value: ValueId, field: Field) -> String {
        match self.constant(value) {
            Some(constant) => field_kind(field).show(constant),
            None => self.value(value, 0),
        }
    }

    /// A value in words.
    fn value(&self, value: ValueId, depth: u32) -> String {
        let value = self.resolve(value);
        let Some((step, place)) = self.defined(value) else { return "…".to_owned() };
        if depth > DEEPEST {
            return "…".to_owned();
        }
        let node = step.site.node;
        match &step.what {
            What::Op(op) => self.op(node, value, op, place, depth),
            What::Classify { param, .. } if place == 0 => {
                format!("packet in {}", self.param(node, *param))
            }
            What::Classify { param, .. } => format!("rule of {}", self.param(node, *param)),
            What::Find { state, key, .. } => {
                let word = if place == 0 { "exists " } else { "" };
                format!("{word}{}", self.keyed(node, *state, key, depth))
            }
            What::Read { state, entry, .. } => {
                let decl = &self.speaker.chain.nodes[usize::from(node)].model.state[state.index()];
                let entry = self.value(*entry, depth);
                match decl.slots.get(place).map(|(name, _)| name.as_str()) {
                    Some("") | None => entry,
                    Some(slot) => format!("{entry}.{slot}"),
                }
            }
            _ => "…".to_owned(),
        }
    }

    fn op(&self, node: u16, value: ValueId, op: &Op, place: usize, depth: u32) -> String {
        let say = |value: &ValueId| self.value(*value, depth + 1);
        match op {
            Op::Const { value: word, .. } => self.ty(value).kind.show(*word),
            Op::Param { param, .. } => self.param(node, *param),
            Op::Load { field, .. } | Op::LoadEntry { field, .. } => field.info().name.to_owned(),
            Op::Bin { op, a, b, .. } => format!("({} {} {})", say(a), sign(*op), say(b)),
            Op::Cmp { op, a, b, .. } => self.compared(*op, *a, *b, depth),
            Op::Not { a, .. } => format!("not {}", say(a)),
            Op::Resize { a, .. } | Op::Clamp { a, .. } => self.value(*a, depth),
            Op::Select { cond, a, b, .. } => {
                format!("(if {} then {} else {})", say(cond), say(a), say(b))
            }
            Op::InSet { a, set, .. } => format!("{} in {}", say(a), self.set(node, *a, set)),
            Op::Has { header, .. } => format!("has {}", header.name()),
            Op::ListLen { param, .. } => format!("len({})", self.param(node, *param)),
            Op::ListGet { param, index, column, .. } => {
                format!(
                    "{}[{}]{}",
                    self.param(node, *param),
                    say(index),
                    self.column(node, *param, *column)
                )
            }
            Op::BackendUp { param, index, .. } => {
                format!("up({}[{}])", self.param(node, *param), say(index))
            }
            Op::Route { param, addr, .. } => {
                let word = if place == 0 { "in" } else { "by" };
                format!("{} {word} {}", say(addr), self.param(node, *param))
            }
            Op::Patterns { param, .. } => format!("payload matches {}", self.param(node, *param)),
            Op::FindPatterns { param, of, .. } => {
                let of = match of {
                    Haystack::Payload => "payload".to_owned(),
                    Haystack::Part(first, last) => {
                        format!("payload[{}..{}]", say(first), say(last))
                    }
                    Haystack::Text(_, words) => format!("string({})", self.list(words, depth)),
                };
                let what = ["", "number of ", "start of ", "end of "].get(place).unwrap_or(&"");
                format!("{what}{of} matches {}", self.param(node, *param))
            }
            Op::InStrings { param, words, .. } => {
                format!("string({}) in {}", self.list(words, depth), self.param(node, *param))
            }
            Op::LoadBytes { .. } | Op::LoadString { .. } => self.bytes_op(op, place, depth),
            op if op.changes_payload() || op.rewraps() => self.bytes_op(op, place, depth),
            Op::Extern { name, args, .. } => format!("{name}({})", self.list(args, depth)),
            Op::StateLen { state, .. } => format!("entries of {}", self.table(node, *state)),
            Op::StateSet { state, .. } | Op::StatePut { state, .. } => {
                format!("{} takes it", self.table(node, *state))
            }
            Op::Take { pool, .. } | Op::TakeThis { pool, .. } if place == 0 => {
                format!("{} has one", self.param(node, *pool))
            }
            Op::Take { pool, .. } => format!("one of {}", self.param(node, *pool)),
            Op::LoadTag { tag, .. } => {
                self.speaker.chain.nodes[usize::from(node)].model.tags[tag.index()].name.clone()
            }
            _ => "…".to_owned(),
        }
    }

    /// An operation on bytes that are no fields, or on outer headers.
    fn bytes_op(&self, op: &Op, place: usize, depth: u32) -> String {
        let say = |value: &ValueId| self.value(*value, depth + 1);
        match op {
            Op::LoadBytes { out, area, offset, .. } => {
                let bytes = self.ty(*out).width / 8;
                let what = format!("{bytes} bytes at {} + {}", area_name(*area), say(offset));
                if place == 0 { format!("has {what}") } else { what }
            }
            Op::LoadString { area, offset, len, .. } => {
                let what = format!("{} bytes at {} + {}", say(len), area_name(*area), say(offset));
                if place == 0 { format!("has {what}") } else { what }
            }
            Op::StoreBytes { a, area, offset, .. } => {
                let bytes = self.ty(*a).width / 8;
                format!("{bytes} bytes fit at {} + {}", area_name(*area), say(offset))
            }
            Op::ReplaceBytes { offset, old, new, .. } => {
                format!("{} bytes of the payload at {} become {}", say(old), say(offset), say(new))
            }
            Op::SetOption { kind, value: Some(_), .. } => format!("tcp.option({kind}) fits"),
            Op::SetOption { kind, value: None, .. } => format!("has tcp.option({kind})"),
            Op::Encapsulate { parts, .. } => format!("{} fit", tunnel::names(parts)),
            Op::Decapsulate { last, .. } => format!("{} can be removed", last.name()),
            Op::Translate { to, .. } => {
                format!("{} can replace {}", to.header().name(), to.other().header().name())
            }
            Op::Encrypt { offset, .. } => format!("the payload from {} is encrypted", say(offset)),
            Op::Decrypt { offset, .. } => format!("the payload from {} is decrypted", say(offset)),
            _ => String::new(),
        }
    }

    fn compared(&self, op: CmpOp, a: ValueId, b: ValueId, depth: u32) -> String {
        let sign = match op {
            CmpOp::Eq => "==",
            CmpOp::Ne => "!=",
            CmpOp::Lt => "<",
            CmpOp::Le => "<=",
            CmpOp::Gt => ">",
            CmpOp::Ge => ">=",
        };
        format!("{} {sign} {}", self.value(a, depth + 1), self.value(b, depth + 1))
    }

    fn set(&self, node: u16, member: ValueId, set: &SetRef) -> String {
        match set {
            SetRef::Const(members) => set_text(self.ty(member), members),
            SetRef::Param(param) | SetRef::List(param, _) => self.param(node, *param),
        }
    }

    fn node(&self, node: u16) -> &str {
        &self.speaker.chain.nodes[usize::from(node)].name
    }

    fn param(&self, node: u16, param: ParamId) -> String {
        let decl = &self.speaker.chain.nodes[usize::from(node)].model.params[param.index()];
        format!("{}.{}", self.node(node), decl.name)
    }

    fn column(&self, node: u16, param: ParamId, column: u32) -> String {
        let decl = &self.speaker.chain.nodes[usize::from(node)].model.params[param.index()];
        let (ParamTy::List(columns) | ParamTy::Backends(columns)) = &decl.ty else {
            return String::new();
        };
        match columns.get(column as usize).map(|(name, _)| name.as_str()) {
            Some("") | None => String::new(),
            Some(name) => format!(".{name}"),
        }
    }

    fn table(&self, node: u16, state: StateId) -> String {
        let decl = &self.speaker.chain.nodes[usize::from(node)].model.state[state.index()];
        format!("{}.{}", self.node(node), decl.name)
    }
}

/// The values for which `op` (a subtraction) of the constant `less` gives a member of the set.
fn before_less(set: &IntervalSet, less: u128, op: BinOp, ty: Ty) -> IntervalSet {
    if op == BinOp::SubWrap {
        return shifted(set, less, ty.width);
    }
    let up = set.intervals().iter().filter_map(|(low, high)| {
        Some((low.checked_add(less)?, high.saturating_add(less).min(ty.max())))
    });
    let floor = (set.contains(0) && less > 0).then(|| (0, less - 1));
    IntervalSet::new(up.chain(floor))
}

/// A set in words.
pub(super) fn set_text(ty: Ty, set: &IntervalSet) -> String {
    let show = |value: u128| ty.kind.show(value);
    let part = |(low, high): &(u128, u128)| match low == high {
        true => show(*low),
        false => format!("{}..{}", show(*low), show(*high)),
    };
    let mut parts: Vec<String> = set.intervals().iter().take(MOST_INTERVALS).map(part).collect();
    if set.intervals().len() > MOST_INTERVALS {
        parts.push(format!("… {} ranges in all", set.intervals().len()));
    }
    format!("{{ {} }}", parts.join(", "))
}

fn sign(op: BinOp) -> &'static str {
    match op {
        BinOp::AddSat | BinOp::AddWrap => "+",
        BinOp::SubSat | BinOp::SubWrap => "-",
        BinOp::MulSat | BinOp::MulWrap => "*",
        BinOp::Div => "/",
        BinOp::Rem => "%",
        BinOp::And => "&",
        BinOp::Or => "|",
        BinOp::Xor => "^",
        BinOp::Shl => "<<",
        BinOp::Shr => ">>",
        BinOp::Min => "min",
        BinOp::Max => "max",
    }
}

/// Describes in words what happens to the packet at the end of a block.
pub(super) fn end_text(chain: &Chain, end: &End) -> String {
    let name = |node: u16| chain.nodes[usize::from(node)].name.as_str();
    let exit = match end {
        End::Exit(exit) => exit,
        End::Hold { node, .. } => return format!("{} holds it", name(*node)),
        End::Jump(_) | End::Branch { .. } => return String::new(),
    };
    match &exit.fate {
        Fate::Leave { interface } => {
            format!("leaves by {}", chain.interfaces[usize::from(*interface)].name)
        }
        Fate::Go(point) => {
            let way = if point.backward { "backward" } else { "forward" };
            format!("goes on {way} through {}", name(point.node))
        }
        Fate::Output { node, ports } => {
            let ports: Vec<_> = ports.iter().map(|port| self::port(chain, *node, *port)).collect();
            format!("leaves {} by {}", name(*node), ports.join(", "))
        }
        Fate::Drop { node, row, reason } => {
            let model = &chain.nodes[usize::from(*node)].model;
            let label = model.rows.get(row.index()).map_or("?", |row| row.label.as_str());
            let reason = model.reasons.get(reason.index()).map_or("?", String::as_str);
            format!("{} drops it at row {label}: {reason}", name(*node))
        }
        Fate::Fault { node, fault } => format!("{} fails: {}", name(*node), fault.reason()),
        Fate::Consume { node } => format!("{} takes it", name(*node)),
        Fate::Resubmit { node } => format!("{} runs anew", name(*node)),
    }
}

fn port(chain: &Chain, node: u16, dest: Dest) -> String {
    match dest {
        Dest::Onward => "the far side".to_owned(),
        Dest::Back => "the near side".to_owned(),
        Dest::Port(port) => {
            let ports = &chain.nodes[usize::from(node)].model.ports;
            ports.get(port.index()).cloned().unwrap_or_default()
        }
    }
}

/// Whether a path lists a step among its effects.
fn is_effect(what: &What) -> bool {
    match what {
        What::Write(_) => true,
        What::Op(op) => matches!(
            op,
            Op::StateSet { .. }
                | Op::StatePut { .. }
                | Op::StateDelete { .. }
                | Op::Take { .. }
                | Op::TakeThis { .. }
                | Op::Release { .. }
                | Op::Emit { .. }
                | Op::Mirror { .. }
                | Op::Create { .. }
                | Op::StoreTag { .. }
                | Op::PushVlan { .. }
                | Op::PopVlan
                | Op::PushOption { .. }
                | Op::PopOption { .. }
        ),
        _ => false,
    }
}

/// An area's name in the language.
fn area_name(area: Area) -> String {
    match area {
        Area::Payload => "payload".to_owned(),
        Area::TcpOption(kind) => format!("tcp.option({kind})"),
        Area::IpOption(kind) => format!("ip.option({kind})"),
        Area::Ip6Extension(kind) => format!("ip6.extension({kind})"),
    }
}
