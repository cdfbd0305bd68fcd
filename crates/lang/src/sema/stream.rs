//! Lowers stream functions (NFD's bytestream functions, Huang et al., INFOCOM 2018, §VI). A stream
//! function has programs for the events of TCP connections. Its packet program gives packets to the
//! function's TCP stack, and does what the stack says.

use braid_ir::model::{
    BinOp, BlockId, CmpOp, Dest, Model, NewPacket, NewPayload, Op, ParamTy, ReasonId, RowDecl,
    RowId, Shape, StreamEvent, Term, Timer, ValueId, Word,
};
use braid_packet::{Field, FlowKey, Header};

use super::env::Loader;
use super::facts::Facts;
use super::lower::{Lower, Mode};
use super::module::Module;
use super::types::{self, BOOL, U32};
use super::walk::{self, Visitor};
use super::{decl, flow, nf, unused};
use crate::ast::{Expr, ExprKind, Ident, Nf, NfItem, Path, Span, Stmt, StmtKind, joined};
use crate::diag::{Diagnostic, Diagnostics, codes, did_you_mean_help};
use crate::source::SourceMap;

/// The names that a stream function can read of its stream.
const STREAM: &[&str] = &["stream.data", "stream.len", "stream.offset"];
/// The words that end a path through a stream function.
const ENDS: &[&str] = &["forward", "bypass", "resume"];
/// The flag ACK, and both flags of a RST that answers a packet: RST and ACK.
const ACK: Word = 0x10;
const RST_ACK: Word = 0x14;

/// The model of a stream function. `None` after an error, which is then reported.
pub fn lower(
    nf: &Nf,
    module: &Module<'_>,
    sources: &SourceMap,
    loader: &dyn Loader,
    diags: &mut Diagnostics,
) -> Option<Model> {
    let mut found = Diagnostics::new();
    mixed(nf, &mut found);
    let damaged = module.is_damaged(nf.span);
    // The result of a packet operator has no type in a stream function.
    let model = match found.has_errors() {
        true => None,
        false => Some(programs(nf, module, sources, loader, &mut found)),
    };
    if !damaged {
        unused::check(nf, sources, &mut found);
    }
    let failed = damaged || found.has_errors();
    diags.extend(found);
    let model = model.filter(|_| !failed)?;
    debug_assert_eq!(braid_ir::verify::verify(&model), Ok(()), "{}", braid_ir::text::print(&model));
    Some(model)
}

/// Reports what belongs to packets.
fn mixed(nf: &Nf, found: &mut Diagnostics) {
    for item in &nf.items {
        match item {
            NfItem::Stmt(stmt) => {
                let message = "statements of a stream function stand in `on open|data|alert|request|response|close`";
                found.push(
                    Diagnostic::new(codes::MIXED_STREAM, message, stmt.span, "outside")
                        .help("write `on data { … }`, or `nf` for a packet function"),
                );
            }
            NfItem::Port(ports, _) => {
                for port in ports {
                    packet_only(&format!("the port `{}`", port.text), port.span, found);
                }
            }
            NfItem::Tag(name, _) => packet_only("`tag`", name.span, found),
            NfItem::Queue { name, .. } => packet_only("`queue`", name.span, found),
            NfItem::OnStream { body, .. }
            | NfItem::Every { body, .. }
            | NfItem::OnExpire { body, .. }
            | NfItem::OnEvent { body, .. } => walk::block(body, &mut Mixed { diags: found }),
            NfItem::Fn(def) => match &def.body {
                crate::ast::FnBody::Pure(_, body) => walk::expr(body, &mut Mixed { diags: found }),
                crate::ast::FnBody::Library(..) => {}
                crate::ast::FnBody::Action(body) => walk::block(body, &mut Mixed { diags: found }),
            },
            NfItem::Const(_) | NfItem::State(_) => {}
        }
    }
}

/// Lowers every block, and adds the packet program.
fn programs(
    nf: &Nf,
    module: &Module<'_>,
    sources: &SourceMap,
    loader: &dyn Loader,
    diags: &mut Diagnostics,
) -> Model {
    let mut lower = Lower::new(module, sources, diags, Model::new(&nf.name.text));
    lower.doubt = module.is_damaged(nf.span);
    lower.of_stream = true;
    decl::declare(&mut lower, nf, loader);
    for item in &nf.items {
        match item {
            NfItem::OnStream { what, from, body, .. } => {
                let Some(events) = events(&mut lower, what, from.as_ref()) else { continue };
                nf::begin(&mut lower, Mode::Stream(events[0]), of_event(events[0]));
                lower.block(body);
                lower.b.end(Term::Return);
                let program = nf::end_program(&mut lower);
                let programs = events.iter().map(|event| (*event, program.clone()));
                lower.model.streams.extend(programs);
            }
            NfItem::Every { period, body, .. } => {
                let period = decl::period(&mut lower, period);
                let body = nf::program(&mut lower, Mode::Timer, body);
                lower.model.timers.extend(period.map(|period| Timer { period, body }));
            }
            NfItem::OnExpire { state, body, .. } => nf::on_expire(&mut lower, state, body),
            NfItem::OnEvent { event, body, .. } => nf::on_event(&mut lower, event, body),
            _ => {}
        }
    }
    lower.model.streams.sort_by_key(|(event, _)| *event);
    packet_program(&mut lower);
    nf::finish(lower.model)
}

/// The facts at the start of a program for an event: the packets of a TCP flow have these headers.
/// An alert may be about any packet of IP instead.
fn of_event(event: StreamEvent) -> Facts {
    let mut facts = Facts::start();
    facts.learn(if event == StreamEvent::Alert { Header::Inet } else { Header::Tcp });
    facts
}

/// The events of `on WHAT [from SIDE]`. There is at least one.
fn events(
    lower: &mut Lower<'_>,
    what: &Ident,
    from: Option<&Ident>,
) -> Option<&'static [StreamEvent]> {
    use StreamEvent::{Alert, Client, Close, Open, Request, Response, Server};
    let found: &[StreamEvent] = match (what.text.as_str(), from.map(|side| side.text.as_str())) {
        ("open", _) => &[Open],
        ("close", _) => &[Close],
        ("alert", _) => &[Alert],
        ("request", _) => &[Request],
        ("response", _) => &[Response],
        (_, None) => &[Client, Server],
        (_, Some("client")) => &[Client],
        (_, Some("server")) => &[Server],
        (_, Some(_)) => {
            let span = from.map_or(what.span, |side| side.span);
            let message = "bytes come from `client` or from `server`";
            return lower.fail(Diagnostic::new(codes::MIXED_STREAM, message, span, "neither"));
        }
    };
    let mut params = lower.model.params.iter();
    if found == [Alert] && !params.any(|decl| decl.ty == ParamTy::Signatures) {
        let message = "`on alert` needs a parameter of the type signatures";
        let wrong = Diagnostic::new(codes::MIXED_STREAM, message, what.span, "no signatures");
        return lower.fail(wrong.help("add a parameter, such as `alerts: signatures`"));
    }
    if lower.model.streams.iter().any(|(event, _)| found.contains(event)) {
        let message = format!("`on {}` is there already", what.text);
        lower.say(Diagnostic::new(codes::DUPLICATE_NAME, message, what.span, "again"));
        return None;
    }
    Some(found)
}

/// Completes the model of a native stream function, whose programs for events call native code.
pub fn of_native(
    model: Model,
    module: &Module<'_>,
    sources: &SourceMap,
    diags: &mut Diagnostics,
) -> Model {
    let mut lower = Lower::new(module, sources, diags, model);
    lower.of_stream = true;
    packet_program(&mut lower);
    nf::finish(lower.model)
}

/// Builds the packet program: TCP packets go to the stack, and so do all packets of IP if there is
/// a program for alerts or if events steer the function. When a connection is reset, both ends get
/// a RST. Its later packets are dropped, and their senders get a RST again, because the first one
/// may have been lost. The packets of a flow of UDP are only dropped.
fn packet_program(lower: &mut Lower<'_>) {
    nf::begin(lower, Mode::Packet, Facts::start());
    let row = RowId(u32::try_from(lower.model.rows.len()).unwrap_or(u32::MAX));
    let label = "packets".to_owned();
    lower.model.rows.push(RowDecl { label, text: String::new(), line: 0 });
    lower.b.op(Op::Count { row });
    if lower.model.is_stream() {
        let (stack, onward) = (lower.b.block(), lower.b.block());
        let stacks_all = lower.model.stacks_all();
        let others = if stacks_all { lower.b.block() } else { onward };
        branch_on(lower, Header::Tcp, stack, others);
        if stacks_all {
            lower.b.start(others);
            branch_on(lower, Header::Inet, stack, onward);
        }
        lower.b.start(stack);
        let (verdict, is_new) = (lower.b.value(U32), lower.b.value(BOOL));
        let (seq, ack) = (lower.b.value(U32), lower.b.value(U32));
        lower.b.op(Op::Stream { verdict, is_new, seq, ack });
        if !lower.model.reasons.is_empty() {
            let (ended, stopped) = (lower.b.block(), lower.b.block());
            let goes_on = is(lower, verdict, 0);
            lower.b.branch(goes_on, onward, stopped);
            lower.b.start(stopped);
            if stacks_all {
                let tcp = lower.b.block();
                branch_on(lower, Header::Tcp, tcp, ended);
                lower.b.start(tcp);
            }
            let (both, again) = (lower.b.block(), lower.b.block());
            lower.b.branch(is_new, both, again);
            lower.b.start(both);
            resets(lower, ended, |lower, shape| {
                reset(lower, shape, Dest::Onward, (seq, ack));
                reset(lower, shape, Dest::Back, (ack, seq));
            });
            lower.b.start(again);
            reset_again(lower, ended);
            lower.b.start(ended);
            drops(lower, verdict, row);
        } else {
            lower.b.jump(onward, Vec::new());
        }
        lower.b.start(onward);
    }
    lower.b.end(Term::Output { ports: vec![Dest::Onward], row });
    lower.model.packet = nf::end_program(lower);
    counts_ends(&mut lower.model, row);
}

/// Packets of connections that handlers reset are dropped at the row of all packets.
fn counts_ends(model: &mut Model, packets: RowId) {
    for block in model.handlers.iter_mut().flat_map(|(_, program)| &mut program.blocks) {
        match &mut block.term {
            Term::Reset { row, .. } | Term::Bypass { row } | Term::Resume { row } => *row = packets,
            _ => {}
        }
    }
}

/// Branches on whether the packet has a header.
fn branch_on(lower: &mut Lower<'_>, header: Header, yes: BlockId, no: BlockId) {
    let has = lower.b.emit(BOOL, |out| Op::Has { out, header });
    lower.b.branch_on_header(has, header, yes, no);
}

/// Whether a value of 32 bits is this number.
fn is(lower: &mut Lower<'_>, value: ValueId, number: Word) -> ValueId {
    let number = lower.b.constant(U32, number);
    lower.b.emit(BOOL, |out| Op::Cmp { out, op: CmpOp::Eq, a: value, b: number })
}

/// Drops the packet for the reason that the verdict stands for.
fn drops(lower: &mut Lower<'_>, verdict: ValueId, row: RowId) {
    let count = u32::try_from(lower.model.reasons.len()).unwrap_or(u32::MAX);
    for reason in (0..count).map(ReasonId) {
        let next = lower.b.block();
        if reason.0 + 1 < count {
            let this = lower.b.block();
            let is_this = is(lower, verdict, Word::from(reason.0) + 1);
            lower.b.branch(is_this, this, next);
            lower.b.start(this);
        }
        lower.b.end(Term::Drop { reason, row });
        lower.b.start(next);
    }
}

/// Sends a RST to the sender of a packet, unless the packet is a RST itself, and goes on in `done`.
/// The packet's acknowledgement is the number that its sender waits for.
fn reset_again(lower: &mut Lower<'_>, done: BlockId) {
    let flags = lower.b.load(Field::TcpFlags);
    let ty = types::of_field(Field::TcpFlags);
    let mask = lower.b.constant(ty, RST_ACK);
    let set = lower.b.bin(ty, BinOp::And, flags, mask);
    let ack = lower.b.constant(ty, ACK);
    let is_plain = lower.b.emit(BOOL, |out| Op::Cmp { out, op: CmpOp::Eq, a: set, b: ack });
    let send = lower.b.block();
    lower.b.branch(is_plain, send, done);
    lower.b.start(send);
    let numbers = [Field::TcpAck, Field::TcpSeq].map(|field| lower.b.load(field));
    resets(lower, done, |lower, shape| reset(lower, shape, Dest::Back, numbers.into()));
}

/// Sends packets of the shape that fits the packet's IP version, and goes on in `done`.
fn resets(lower: &mut Lower<'_>, done: BlockId, send: impl Fn(&mut Lower<'_>, Shape)) {
    let (ip4, ip6) = (lower.b.block(), lower.b.block());
    branch_on(lower, Header::Ip4, ip4, ip6);
    lower.b.start(ip4);
    send(lower, Shape::Tcp4);
    lower.b.jump(done, Vec::new());
    lower.b.start(ip6);
    let there = lower.b.block();
    branch_on(lower, Header::Ip6, there, done);
    lower.b.start(there);
    send(lower, Shape::Tcp6);
    lower.b.jump(done, Vec::new());
}

/// Sends a RST with these numbers, as from the other end.
fn reset(lower: &mut Lower<'_>, shape: Shape, port: Dest, (seq, ack): (ValueId, ValueId)) {
    let mut ports = [Field::TcpSport, Field::TcpDport].map(|field| lower.b.load(field));
    if port == Dest::Back {
        ports.reverse();
    }
    let fields = vec![
        (Field::TcpSport, ports[0]),
        (Field::TcpDport, ports[1]),
        (Field::TcpSeq, seq),
        (Field::TcpAck, ack),
        (Field::TcpFlags, lower.b.constant(types::of_field(Field::TcpFlags), RST_ACK)),
    ];
    let (options, payload) = (Vec::new(), NewPayload::Empty);
    let new = NewPacket { shape, exchanged: false, fields, options, payload };
    lower.b.op(Op::Create { new: Box::new(new), port });
}

fn packet_only(what: &str, span: Span, diags: &mut Diagnostics) {
    let message = format!("{what} is for packets, and a stream function sees none");
    diags.push(
        Diagnostic::new(codes::MIXED_STREAM, message, span, "a packet operator")
            .help("a stream function ends with `forward;`, `reset;` or `bypass;`, and reads addresses and ports"),
    );
}

struct Mixed<'d> {
    diags: &'d mut Diagnostics,
}

impl<'a> Visitor<'a> for Mixed<'_> {
    fn stmt(&mut self, stmt: &'a Stmt) -> bool {
        let what = match &stmt.kind {
            StmtKind::Output(_) => "`output`",
            StmtKind::Drop(_) => "`drop`",
            StmtKind::Consume => "`consume`",
            StmtKind::Mirror(_) => "`mirror`",
            StmtKind::Hold { .. } => "`hold`",
            StmtKind::Resubmit => "`resubmit`",
            StmtKind::Send { .. } => "`send`",
            StmtKind::Push { .. } => "`push`",
            StmtKind::Pop { .. } => "`pop`",
            // These words end the path of a stream.
            StmtKind::Call { call: Expr { kind: ExprKind::Path(path), .. }, .. } => {
                return !path.parts.first().is_some_and(|p| ENDS.contains(&p.text.as_str()));
            }
            _ => return true,
        };
        packet_only(what, stmt.span, self.diags);
        true
    }

    fn expr(&mut self, expr: &'a Expr) -> bool {
        let ExprKind::Path(path) = &expr.kind else { return true };
        let name = joined(path);
        let field = Field::by_name(&name);
        if field.is_some_and(|field| field != Field::PktTime && !FlowKey::has_field(field))
            || matches!(name.as_str(), "packet" | "payload")
        {
            packet_only(&format!("`{name}`"), path.span, self.diags);
        } else if name.starts_with("stream.") && !STREAM.contains(&name.as_str()) {
            self.diags.push(
                Diagnostic::new(
                    codes::UNKNOWN_FIELD,
                    format!("there is no `{name}`"),
                    path.span,
                    "expected stream.data, stream.len or stream.offset",
                )
                .help_if(did_you_mean_help(&name, STREAM.iter().copied())),
            );
        }
        true
    }

    fn header(&mut self, path: &'a Path) {
        let name = joined(path);
        if !Header::by_name(&name).is_some_and(|header| flow::HEADERS.contains(&header)) {
            packet_only(&format!("`has {name}`"), path.span, self.diags);
        }
    }

    fn call(&mut self, _name: &'a Ident) {}
}
