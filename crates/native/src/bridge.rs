//! Native functions in chains: a model whose packet program calls the function and does what its
//! verdict says. The model of a stream function has such programs for events of connections.

use crate::{
    Config, Decision, Description, Entry, Failed, Instance, Log, News, Output, Part, Publication,
    Sent, Value, Verdict,
};
use braid_externs::patterns::Matcher;
use braid_ir::chain::Node;
use braid_ir::engine::{Content, Event, EventValue, Fault, StateEntry};
use braid_ir::model::{
    Block, BlockId, CmpOp, Dest, EventId, Kind, LEFT, Model, Op, ParamDecl, PortId, Program, RIGHT,
    ROOT_EVENT, ReasonId, RowDecl, RowId, StreamEvent, Target, Term, Ty, ValueId, Word,
};
use braid_ir::native::{Native, OnFailure, Profile, Reference};
use braid_ir::snapshot::{FunctionState, ImportError};
use braid_ir::value::{Health, ParamValue, RuleAddrs, RuleSet};
use braid_packet::{FlowKey, Link, Packet};

/// The number of a verdict. The order is: onward, back, consumed, ports, drops.
fn outcome(verdict: Verdict, model: &Model) -> u32 {
    let ports = u32::try_from(model.ports.len().saturating_sub(2)).unwrap_or(0);
    match verdict {
        Verdict::Forward => 0,
        Verdict::Back => 1,
        Verdict::Consume => 2,
        Verdict::Port(port) => port.saturating_add(3),
        Verdict::Drop(reason) => reason.saturating_add(ports).saturating_add(3),
    }
}

/// The row that counts everything the function decides.
pub const BODY: RowId = RowId(0);
/// The row that counts packets that go on because the function's process has failed.
const BYPASSED: RowId = RowId(1);
/// The number for these packets.
const BYPASS: u32 = u32::MAX;

/// The model of a native function. That of a stream function still lacks its packet program, which
/// all stream functions have, and its last row.
#[must_use]
pub fn model(
    name: &str,
    params: Vec<ParamDecl>,
    reference: Reference,
    definition: &Description,
) -> Model {
    let row = |label: &str| RowDecl { label: label.into(), text: String::new(), line: 0 };
    let own = definition.ports.iter().cloned();
    // It does nothing to packets beyond what its packet program does.
    let nothing = definition.is_stream.then(Profile::default);
    let profile = nothing.or(definition.profile);
    let mut model = Model {
        name: name.to_owned(),
        ports: ["left".to_owned(), "right".to_owned()].into_iter().chain(own).collect(),
        params,
        state: Vec::new(),
        queues: Vec::new(),
        events: definition.declared.events.clone(),
        tags: definition.declared.tags.clone(),
        rows: vec![row("body")],
        reasons: definition.reasons.clone(),
        packet: Program::default(),
        expire: Vec::new(),
        timers: Vec::new(),
        streams: Vec::new(),
        handlers: Vec::new(),
        native: Some(Native {
            reference,
            profile,
            sends: definition.sends,
            keeps: definition.keeps,
        }),
    };
    if is_bypassed(&model) {
        model.rows.push(row("bypassed"));
    }
    if definition.is_stream {
        model.streams = EVENTS.map(|event| (event, program(decisions(&model, event)))).to_vec();
        return model;
    }
    model.rows.push(row("fault"));
    let may = model.native.as_ref().map_or(Profile::ANYTHING, Native::may);
    model.packet = program(ends(&model, may));
    model
}

/// The events that a stream function takes.
const EVENTS: [StreamEvent; 4] =
    [StreamEvent::Open, StreamEvent::Client, StreamEvent::Server, StreamEvent::Close];

/// Whether packets go on when the function's process has failed.
fn is_bypassed(model: &Model) -> bool {
    let isolated = model.native.as_ref().and_then(|native| native.reference.isolated);
    isolated == Some(OnFailure::Bypass)
}

/// A program that calls the function, then compares its answer with each possible one.
fn program(ends: Vec<(u32, Term)>) -> Program {
    let answer = ValueId(0);
    let mut program = Program { blocks: Vec::new(), values: vec![Ty::uint(32)] };
    let count = ends.len();
    // First the blocks with the comparisons, then the blocks in which the packet ends.
    let block = |at: usize| BlockId(u32::try_from(at).unwrap_or(u32::MAX));
    let to = |at: usize| Target { block: block(at), args: Vec::new() };
    for (at, (number, _)) in ends.iter().enumerate() {
        let mut ops = Vec::new();
        if at == 0 {
            ops.push(Op::Native { out: answer });
        }
        let term = if at + 1 == count {
            Term::Jump(to(count + at))
        } else {
            let first = u32::try_from(program.values.len()).unwrap_or(u32::MAX);
            let (known, same) = (ValueId(first), ValueId(first + 1));
            program.values.extend([Ty::uint(32), Ty::of(Kind::Bool)]);
            ops.push(Op::Const { out: known, value: Word::from(*number) });
            ops.push(Op::Cmp { out: same, op: CmpOp::Eq, a: answer, b: known });
            Term::Branch { cond: same, yes: to(count + at), no: to(at + 1) }
        };
        program.blocks.push(Block { params: Vec::new(), ops, term });
    }
    let last = ends.into_iter().map(|(number, term)| {
        let row = if number == BYPASS { BYPASSED } else { BODY };
        Block { params: Vec::new(), ops: vec![Op::Count { row }], term }
    });
    program.blocks.extend(last);
    program
}

/// The possible ends of a packet, each with the number of its answer.
fn ends(model: &Model, may: Profile) -> Vec<(u32, Term)> {
    let output = |dest| Term::Output { ports: vec![dest], row: BODY };
    let number = |verdict| outcome(verdict, model);
    let mut ends = vec![(number(Verdict::Forward), output(Dest::Onward))];
    if may.redirects {
        ends.push((number(Verdict::Back), output(Dest::Back)));
        ends.push((number(Verdict::Consume), Term::Consume { row: BODY }));
        let ports = u32::try_from(model.ports.len()).unwrap_or(2);
        for port in 2..ports {
            ends.push((number(Verdict::Port(port - 2)), output(Dest::Port(PortId(port)))));
        }
    }
    if may.drops {
        let reasons = u32::try_from(model.reasons.len()).unwrap_or(0);
        for reason in 0..reasons {
            let term = Term::Drop { reason: ReasonId(reason), row: BODY };
            ends.push((number(Verdict::Drop(reason)), term));
        }
    }
    if is_bypassed(model) {
        ends.push((BYPASS, Term::Output { ports: vec![Dest::Onward], row: BYPASSED }));
    }
    ends
}

/// The number of a decision. The order is: forward, bypass, resets.
fn number(decision: Decision) -> u32 {
    match decision {
        Decision::Forward => 0,
        Decision::Bypass => 1,
        Decision::Reset(reason) => reason.saturating_add(2),
    }
}

/// The possible ends of a program for an event, each with the number of its answer.
fn decisions(model: &Model, event: StreamEvent) -> Vec<(u32, Term)> {
    let mut ends = vec![(number(Decision::Forward), Term::Return)];
    if event != StreamEvent::Close {
        ends.push((number(Decision::Bypass), Term::Bypass { row: BODY }));
        let reasons = u32::try_from(model.reasons.len()).unwrap_or(0);
        ends.extend((0..reasons).map(|reason| {
            let term = Term::Reset { reason: ReasonId(reason), row: BODY };
            (number(Decision::Reset(reason)), term)
        }));
    }
    if is_bypassed(model) {
        ends.push((BYPASS, Term::Return));
    }
    ends
}

/// Instances of a node's function, one for each shard: `None` for the shards of other workers than
/// `only`. Empty if the node's model is not native.
///
/// # Errors
/// The reason why an instance cannot be made.
pub fn instances(
    node: &Node,
    shards: u16,
    only: Option<u16>,
) -> Result<Vec<Option<Instance>>, String> {
    if node.model.native.is_none() {
        return Ok(Vec::new());
    }
    let instance = |part| {
        Instance::of(&node.model, &node.name, config(&node.model, &node.params), part)
            .map_err(|why| format!("{}: {why}", node.name))
    };
    let is_own = |number: &u16| shards == 1 || only.is_none_or(|only| only == *number);
    let made = (0..shards)
        .map(|number| is_own(&number).then(|| instance(Part { number, of: shards })).transpose());
    made.collect()
}

/// Runs an instance for a packet and returns the number of its answer.
///
/// # Errors
/// The function failed, or gave an answer that its profile does not allow.
pub fn run(
    instance: &mut Instance,
    model: &Model,
    packet: &mut Packet,
    now: u64,
) -> Result<Word, Fault> {
    let verdict = match instance.packet(packet, now) {
        Ok(verdict) => verdict,
        Err(Failed::Drop) => return Err(Fault::Native),
        Err(Failed::Bypass) => return Ok(Word::from(BYPASS)),
    };
    let may = model.native.as_ref().map_or(Profile::ANYTHING, Native::may);
    let allowed = match verdict {
        Verdict::Forward => true,
        Verdict::Drop(_) => may.drops,
        Verdict::Back | Verdict::Consume | Verdict::Port(_) => may.redirects,
    };
    if allowed { Ok(Word::from(outcome(verdict, model))) } else { Err(Fault::Native) }
}

/// Runs an instance of a stream function for an event of a connection, with the place of the first
/// byte that has come and the bytes. Returns the number of its answer.
///
/// # Errors
/// The function failed, or takes no such event.
pub fn connection(
    instance: &mut Instance,
    (event, flow): (StreamEvent, FlowKey),
    bytes: (u64, &[u8]),
    now: u64,
) -> Result<Word, Fault> {
    let news = News::of(event, flow, bytes).ok_or(Fault::Native)?;
    match instance.connection(news, now) {
        Ok(decision) => Ok(Word::from(number(decision))),
        Err(Failed::Drop) => Err(Fault::Native),
        Err(Failed::Bypass) => Ok(Word::from(BYPASS)),
    }
}

/// Tells the instances of a function that a parameter has changed. If one refuses, the instances
/// before it get their previous value back.
///
/// # Errors
/// The reason for the refusal.
pub fn change<'a>(
    instances: impl Iterator<Item = &'a mut Instance>,
    name: &str,
    value: &Value,
) -> Result<(), String> {
    let mut done: Vec<(&mut Instance, Value)> = Vec::new();
    for instance in instances {
        let before = instance.value(name).cloned().unwrap_or_default();
        if let Err(why) = instance.change(name, value.clone()) {
            for (instance, before) in done {
                instance.change(name, before)?;
            }
            return Err(why);
        }
        done.push((instance, before));
    }
    Ok(())
}

/// Lets the new instances of a function, one for each shard, go on from a snapshot: with the values
/// that parameters got while the chain ran, and with the memory of earlier instances.
///
/// # Errors
/// An instance refuses a value or its memory.
pub fn resume<'a>(
    instances: impl Iterator<Item = Option<&'a mut Instance>>,
    state: &FunctionState,
) -> Result<(), ImportError> {
    let refused = |why| ImportError::Refused { function: state.name.clone(), why };
    for (instance, shard) in instances.zip(&state.shards) {
        let Some(instance) = instance else { continue };
        for param in state.params.iter().filter(|param| param.configured.is_some()) {
            instance.change(&param.name, value(&param.value)).map_err(refused)?;
        }
        if let Some(memory) = &shard.memory {
            instance.restore(memory).map_err(refused)?;
        }
    }
    Ok(())
}

/// What handlers get of an event: the number of its type, and its fields, in which texts are 0.
pub type Taken = (EventId, Vec<Word>);

/// The event of an output, and what handlers get of it if the function declares its type. `None`
/// for a packet.
#[must_use]
#[expect(clippy::indexing_slicing, reason = "instances check the numbers of event types")]
pub fn event(node: u16, model: &Model, output: Output) -> Option<(Event, Option<Taken>)> {
    let Publication { time_ns, event, values } = match output {
        Output::Log(log) => return Some((message(node, log), None)),
        Output::Event(published) => published,
        Output::Packet(_) => return None,
    };
    let words = values.iter().map(|value| match value {
        Content::Word(word) => *word,
        Content::Str(_) => 0,
    });
    let taken = (EventId(event), words.collect());
    let decl = &model.events[event as usize];
    Some((Event::new(decl, (time_ns, node), values.into_iter()), Some(taken)))
}

/// The packets that a function has sent for a packet, or that its timers have sent before it, and
/// where they go.
pub fn packets(outputs: &[Output], current: &Packet) -> impl Iterator<Item = (Dest, Packet)> {
    outputs.iter().filter_map(|output| {
        let Output::Packet(sent) = output else { return None };
        let link = if sent.from_timer { Link::Ethernet } else { current.link };
        let mut packet = Packet::new(link, current.time_ns, &sent.bytes);
        packet.ingress = current.ingress;
        Some((dest(sent), packet))
    })
}

/// The packets that timers have sent while the function has no packet, and where they go.
#[must_use]
pub fn packets_of_timers(outputs: &[Output], now: u64) -> Vec<(Dest, Packet)> {
    packets(outputs, &Packet::new(Link::Ethernet, now, [])).collect()
}

/// Where a packet goes that a function has sent. Timers have no direction.
fn dest(sent: &Sent) -> Dest {
    match (sent.to, sent.from_timer) {
        (Verdict::Back, true) => Dest::Port(LEFT),
        (Verdict::Back, false) => Dest::Back,
        // Left and right come before the function's own ports.
        (Verdict::Port(port), _) => Dest::Port(PortId(port.saturating_add(2))),
        (_, true) => Dest::Port(RIGHT),
        (_, false) => Dest::Onward,
    }
}

/// The event for a message of a function.
fn message(node: u16, log: Log) -> Event {
    let text = |name: &str, text| (name.to_owned(), EventValue::Str(text));
    Event {
        time_ns: log.time_ns,
        node,
        name: "LOG".to_owned(),
        ancestors: vec![ROOT_EVENT.to_owned()],
        fields: vec![text("level", log.level), text("text", log.text)],
    }
}

/// The state entries of the function's instance for a worker.
pub fn report(node: u16, shard: u16, instance: &Instance) -> impl Iterator<Item = StateEntry> {
    instance.report().into_iter().map(move |entry| state_entry(node, shard, entry))
}

fn state_entry(node: u16, shard: u16, entry: Entry) -> StateEntry {
    StateEntry {
        node,
        table: entry.table,
        shard,
        key: entry.key.into_iter().map(|(of, value)| (kind(of), value)).collect(),
        slots: entry.values.into_iter().map(|(name, of, v)| (name, kind(of), v)).collect(),
        created_ns: entry.created_ns,
        last_seen_ns: entry.last_seen_ns,
        expires_ns: entry.expires_ns,
    }
}

fn kind(kind: crate::Kind) -> Kind {
    match kind {
        crate::Kind::Uint => Kind::Uint,
        crate::Kind::Ip4 => Kind::Ip4,
        crate::Kind::Ip6 => Kind::Ip6,
        crate::Kind::Port => Kind::Port,
    }
}

/// The parameters of a node, in the form for its function.
#[must_use]
pub fn config(model: &Model, params: &[ParamValue]) -> Config {
    let all = model.params.iter().zip(params);
    all.map(|(decl, param)| (decl.name.clone(), value(param))).collect()
}

/// A parameter's value, in the form for native functions. [`Value`] describes the form of each
/// kind.
#[must_use]
pub fn value(param: &ParamValue) -> Value {
    let rows = |rows: Vec<Vec<Word>>| Value { rows, texts: Vec::new() };
    match param {
        ParamValue::Scalar(value) => Value::scalar(*value),
        ParamValue::Str(text) => Value::text(text),
        ParamValue::List(all) => rows(all.clone()),
        ParamValue::Set(set) | ParamValue::Pool(set) => {
            rows(set.intervals().iter().map(|(lo, hi)| vec![*lo, *hi]).collect())
        }
        ParamValue::Backends(all) => {
            let up = |health| Word::from(health == Health::Up);
            let row = |one: &braid_ir::value::Backend| {
                one.columns.iter().copied().chain([up(one.health)]).collect()
            };
            rows(all.iter().map(row).collect())
        }
        ParamValue::Rules(set) => rows(rules(set)),
        ParamValue::Routes(table) => {
            let v4 = table.iter4().map(|(addr, len, hop)| [4, addr.into(), len.into(), hop.into()]);
            let v6 = table.iter6().map(|(addr, len, hop)| [6, addr, len.into(), hop.into()]);
            rows(v4.chain(v6).map(|row| row.to_vec()).collect())
        }
        ParamValue::Strings(set) => Value { rows: Vec::new(), texts: set.entries() },
        ParamValue::Signatures(set) => {
            let texts = set.lines().iter().map(|line| line.clone().into_bytes()).collect();
            Value { rows: Vec::new(), texts }
        }
        // The keys themselves stay secret.
        ParamValue::Keys(keys) => rows(keys.numbers().map(|number| vec![number.into()]).collect()),
        ParamValue::Patterns(set) => {
            let parts = set.patterns().iter().map(|pattern| {
                let (regex, nocase, text) = match &pattern.matcher {
                    Matcher::Literal { bytes, nocase } => (0, *nocase, bytes.clone()),
                    Matcher::Regex { source, nocase } => (1, *nocase, source.clone().into_bytes()),
                };
                (vec![pattern.number.into(), regex, Word::from(nocase)], text)
            });
            let (rows, texts) = parts.unzip();
            Value { rows, texts }
        }
    }
}

/// The rows of a rule set. Columns: IP version (0: either), source from, to, destination from, to,
/// protocol, its mask, source ports from, to, destination ports from, to, TCP flags, their mask,
/// ICMP type and code, their mask, whether the rule passes.
fn rules(set: &RuleSet) -> Vec<Vec<Word>> {
    let row = |rule: &braid_ir::value::Rule| {
        let addrs = match rule.addrs {
            None => [0, 0, Word::MAX, 0, Word::MAX],
            Some(RuleAddrs::V4 { src, dst }) => {
                [4, src.0.into(), src.1.into(), dst.0.into(), dst.1.into()]
            }
            Some(RuleAddrs::V6 { src, dst }) => [6, src.0, src.1, dst.0, dst.1],
        };
        let rest = [
            rule.proto.0.into(),
            rule.proto.1.into(),
            rule.sport.0.into(),
            rule.sport.1.into(),
            rule.dport.0.into(),
            rule.dport.1.into(),
            rule.tcp_flags.0.into(),
            rule.tcp_flags.1.into(),
            rule.icmp.0.into(),
            rule.icmp.1.into(),
            Word::from(rule.pass),
        ];
        addrs.into_iter().chain(rest).collect()
    };
    let default = vec![Word::from(set.default_pass)];
    set.rules.iter().map(row).chain([default]).collect()
}
