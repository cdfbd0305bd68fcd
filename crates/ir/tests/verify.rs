//! The verifier: each rule has a model that breaks it.

use braid_ir::model::{
    BlockId, Dest, Model, Op, ParamId, PortId, Program, QueueId, ReasonId, RowId, Setting, StateId,
    TagId, Term, Ty, ValueId,
};
use braid_ir::text;
use braid_ir::verify::verify;

fn parse(declarations: &str, blocks: &str, programs: &str) -> Model {
    let text = format!(
        "model test {{ {declarations} reason \"why\" row \"body\" row \"fault\"
         packet {{ {blocks} }} {programs} }}"
    );
    text::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn errors(model: &Model) -> Vec<String> {
    verify(model).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

const PASS: &str = "b0: output onward at row0";

/// Checks that the declarations have exactly this error.
fn bad_declarations(declarations: &str, error: &str) {
    assert_eq!(errors(&parse(declarations, PASS, "")), [error], "{declarations}");
}

/// Checks that the last operation of a packet program has exactly this error.
fn bad_ops(ops: &str, error: &str) {
    let declarations = "
        param n: u8 param l: list<{ a: ip4, b: u8 }> param s: set<ip4> param r: rules
        param t: routes param p: patterns param pool: pool<port> param bs: backends<ip4>
        param text: string param names: strings<32> param sites: hosts
        state keyed: { x: u8, y: u16 } per [u8] capacity 9 full refuse tick 1
        state flow: u8 per flow capacity 9 full refuse tick 1
        state biflow: u8 per biflow capacity 9 full refuse tick 1
        state fields: u8 per (tcp.sport) capacity 9 full refuse tick 1
        state all: u8 global default (0)
        queue q capacity 3
        event E { a: u8, b: string }
        tag mark: u8";
    let blocks = format!(
        "b0: v0:u8 = const 1
             v1:u16 = const 1
             v2:bool = const true
             v3:ip4 = const 1.1.1.1
             v4:u32 = const 0
             {ops}
             output onward at row0"
    );
    let found = errors(&parse(declarations, &blocks, ""));
    let stripped: Vec<_> = found.iter().map(|e| e.split_once(": ").unwrap().1).collect();
    assert_eq!(stripped, [error], "{ops}: {found:?}");
}

/// Checks that blocks of a packet program have exactly this error.
fn bad_blocks(blocks: &str, error: &str) {
    assert_eq!(errors(&parse("queue q capacity 3", blocks, "")), [error], "{blocks}");
}

/// Checks the errors of a timer program and of an expiry program with this operation. An empty text
/// means no error.
fn bad_background(op: &str, timer: &str, expiry: &str) {
    let declarations = "param r: rules param p: patterns tag mark: u8 queue q capacity 3
        state s: u8 per [u8] capacity 9 full refuse tick 1
        state f: u8 per (pkt.len) capacity 9 full refuse tick 1";
    let body = format!("v0:u8 = const 1 {op} return");
    let model = parse(declarations, PASS, &format!("every 9 {{ b0: {body} }}"));
    assert_eq!(errors(&model), Vec::from_iter((!timer.is_empty()).then_some(timer)), "{op}");
    let model = parse(declarations, PASS, &format!("expire s {{ b0: {body} }}"));
    assert_eq!(errors(&model), Vec::from_iter((!expiry.is_empty()).then_some(expiry)), "{op}");
}

#[test]
fn declared_names_and_ports_are_checked() {
    bad_declarations("ports right, left", "model: the first two ports must be `left` and `right`");
    bad_declarations("ports left, right, left", "model: another port has the name `left`");
    bad_declarations("param a: u8 param a: u9", "model: another parameter has the name `a`");
    bad_declarations("tag a: u8 tag a: u8", "model: another tag has the name `a`");
    bad_declarations(
        "queue a capacity 1 queue a capacity 2",
        "model: another queue has the name `a`",
    );
    bad_declarations("event A { } event A { }", "model: another event has the name `A`");
    bad_declarations("reason \"why\"", "model: another reason has the name `why`");
    bad_declarations(
        "state a: u8 global default (0) state a: u8 global default (0)",
        "model: another state has the name `a`",
    );
}

#[test]
fn declared_types_and_defaults_are_checked() {
    bad_declarations("param a: u0", "param0: the type u0 does not exist");
    bad_declarations("param a: u129", "param0: the type u129 does not exist");
    bad_declarations("param a: ip4/8", "param0: the type ip4/8 does not exist");
    bad_declarations("param a: list<{ }>", "param0: it has no columns");
    bad_declarations("param a: u8 = 256", "param0: its default: 256 does not fit u8");
    bad_declarations("param a: rules = 7", "param0: its default: a value of another type");
    bad_declarations("param a: set<u8> = set {1-256}", "param0: its default: 256 does not fit u8");
    bad_declarations(
        "param a: list<u8> = [(1, 2)]",
        "param0: its default: a row of 2 values for 1 columns",
    );
    bad_declarations("tag a: u0", "tag0: the type u0 does not exist");
    bad_declarations("event A { a: u0 }", "event0: the type u0 does not exist");
    bad_declarations(
        "param a: rules queue q capacity a",
        "queue0: param0 is not a scalar parameter",
    );
}

#[test]
fn declared_state_is_checked() {
    let bad = |state: &str, error: &str| {
        bad_declarations(
            &format!("param r: rules param w: u16 state s: {state}"),
            &format!("state0: {error}"),
        );
    };
    bad("{ } per flow", "it has no slots");
    bad("u0 per flow", "the type u0 does not exist");
    bad("u8 per ()", "it has no key");
    bad("u8 per []", "it has no key");
    bad("u8 per [u0]", "the type u0 does not exist");
    bad("u8 global", "global state needs a default");
    bad("u8 global default (0) idle 3", "global state never expires");
    bad("u8 global default (0) hard 3", "global state never expires");
    bad("u8 per flow default (0, 0)", "its default has 2 values for 1 slots");
    bad("u8 per flow default (256)", "the value 256 does not fit 8 bits");
    bad("u8 per flow default (w)", "param1 is not as wide as the slot");
    bad("u8 per flow idle r", "param0 is not a scalar parameter");
    bad("u8 per flow capacity r", "param0 is not a scalar parameter");
    bad("u8 per flow tick 0", "its tick is 0");
    bad("u8 per flow portions (r)", "param0 is not a scalar parameter");
}

#[test]
fn state_that_lives_with_other_state_is_checked() {
    let bad = |states: &str, error: &str| bad_declarations(states, error);
    bad(
        "state a: u8 per flow state b: u8 per flow idle 1 lives with a",
        "state1: it lives with state0, so it has no time-outs of its own",
    );
    bad(
        "state a: u8 per flow state b: u8 per flow lives with a sharded",
        "state1: it lives with state0, so it must be sharded like that",
    );
    bad(
        "state a: u8 global default (0) state b: u8 per flow lives with a",
        "state1: it lives with state0, so that must not be global",
    );
    bad("state a: u8 per flow lives with a", "state0: it lives with state0, so that must end");
    let model =
        parse("state a: u8 per flow lives with b state b: u8 per flow lives with a", PASS, "");
    assert_eq!(errors(&model).len(), 2, "a circle, seen from each");
    bad(
        "state a: u8 per flow state b: u8 global default (0) lives with a",
        "state1: global state lives with nothing",
    );
}

#[test]
fn rows_timers_and_expiry_programs_are_checked() {
    let no_fault = text::parse("model m { row \"body\" packet { b0: consume at row0 } }").unwrap();
    let error = "model: the last row, and no other, must be `fault`";
    assert_eq!(errors(&no_fault), [error]);
    bad_declarations("row \"fault\" row \"1\"", error);
    let state = "state s: u8 per flow state g: u8 global default (0)";
    let model = parse(state, PASS, "every 0 { b0: return }");
    assert_eq!(errors(&model), ["model: its timer's period is 0"]);
    let model = parse(state, PASS, "expire s { b0: return } expire s { b0: return }");
    assert_eq!(errors(&model), ["model: a second program for expiring entries of state0"]);
    let model = parse(state, PASS, "expire g { b0: return }");
    assert_eq!(errors(&model), ["state1: global state never expires"]);
}

#[test]
fn blocks_and_jumps_are_checked() {
    let mut model = parse("", PASS, "");
    model.packet = Program::default();
    assert_eq!(errors(&model), ["packet: it has no blocks"]);
    bad_blocks("b0(v0:u8): output onward at row0", "packet: the first block has parameters");
    bad_blocks("b0: jump b0", "packet, b0, terminator: it goes back to b0");
    bad_blocks("b0: jump b1 b1: jump b0", "packet, b1, terminator: it goes back to b0");
    bad_blocks("b0: jump b5", "packet, b0, terminator: there is no b5");
    bad_blocks(
        "b0: v0:u64 = const 1 hold q for v0 at row0 else b0",
        "packet, b0, terminator: it goes back to b0",
    );
    bad_blocks(
        "b0: jump b1 b1(v0:u8): output onward at row0",
        "packet, b0, terminator: it gives 0 values to b1, which has 1 parameters",
    );
    bad_blocks(
        "b0: v0:u8 = const 1 jump b1(v0) b1(v1:u16): output onward at row0",
        "packet, b0, terminator: v0 has 8 bits instead of 16",
    );
    bad_blocks("unused v0:u0 b0: output onward at row0", "packet: the type u0 does not exist");
}

#[test]
fn definitions_must_come_before_uses_on_every_way() {
    bad_blocks(
        "b0: v0:u8 = const 1 v0:u8 = const 2 output onward at row0",
        "packet, b0, operation 1: v0 is defined twice",
    );
    bad_blocks(
        "b0: v0:u8 = not v1 v1:u8 = const 2 output onward at row0",
        "packet, b0, operation 0: v1 is not defined on every path to this place",
    );
    bad_blocks(
        "b0: v0:u8 = not v0 output onward at row0",
        "packet, b0, operation 0: v0 is not defined on every path to this place",
    );
    bad_blocks(
        "b0: v0:bool = const true branch v0, b1, b2
         b1: v1:u8 = const 1 jump b2
         b2: v2:u8 = not v1 output onward at row0",
        "packet, b2, operation 0: v1 is not defined on every path to this place",
    );
    bad_blocks(
        "unused v0:bool b0: branch v0, b1, b1 b1: output onward at row0",
        "packet, b0, terminator: v0 is not defined on every path to this place",
    );
    // A definition before the paths part is valid on both.
    let model = parse(
        "",
        "b0: v0:bool = const true v1:u8 = const 1 branch v0, b1, b2
         b1: jump b3
         b2: jump b3
         b3: v2:u8 = not v1 output onward at row0",
        "",
    );
    assert_eq!(errors(&model), Vec::<String>::new());
    let mut model = parse("", "b0: v0:u8 = const 1 output onward at row0", "");
    model.packet.blocks[0].ops.push(Op::Not { out: ValueId(0), a: ValueId(7) });
    let found = errors(&model);
    assert!(found.contains(&"packet, b0, operation 1: there is no v7".to_owned()), "{found:?}");
}

#[test]
fn widths_of_arithmetic_are_checked() {
    bad_ops("v5:u8 = const 256", "the value 256 does not fit 8 bits");
    bad_ops("v5:u8 = add_sat v0, v1", "v1 has 16 bits instead of 8");
    bad_ops("v5:u16 = add_sat v0, v1", "v0 has 8 bits instead of 16");
    bad_ops("v5:bool = eq v0, v1", "v1 has 16 bits instead of 8");
    bad_ops("v5:u8 = eq v0, v0", "v5 has 8 bits instead of 1");
    bad_ops("v5:u8 = not v1", "v1 has 16 bits instead of 8");
    bad_ops("v5:u8 = select v0, v0, v0", "v0 has 8 bits instead of 1");
    bad_ops("v5:u8 = select v2, v0, v1", "v1 has 16 bits instead of 8");
}

#[test]
fn operations_on_parameters_are_checked() {
    bad_ops("v5:u16 = param n", "v5 has 16 bits instead of 8");
    bad_ops("v5:u16 = param r", "param3 is not a scalar");
    bad_ops("v5:u8 = len l", "v5 has 8 bits instead of 32");
    bad_ops("v5:u32 = len n", "param0 is not a list or backends");
    bad_ops("v5:u8 = member l, v4, 0", "v5 has 8 bits instead of 32");
    bad_ops("v5:u8 = member l, v4, 2", "param1 has no column 2");
    bad_ops("v5:u8 = up bs, v4", "v5 has 8 bits instead of 1");
    bad_ops("v5:bool = up l, v4", "param1 is not backends");
    bad_ops("v5:bool = in v0, {1, 256}", "the value 256 does not fit 8 bits");
    bad_ops("v5:bool = in v0, set s", "v0 has 8 bits instead of 32");
    bad_ops("v5:bool = in v0, set n", "param0 is not a set");
    bad_ops("v5:bool = in v0, list l, 0", "v0 has 8 bits instead of 32");
    bad_ops("v5:u8 = in v3, set s", "v5 has 8 bits instead of 1");
    bad_ops("v5:bool, v6:u32 = rules n", "param0 is not a rule set");
    bad_ops("v5:bool, v6:u8 = rules r", "v6 has 8 bits instead of 32");
    bad_ops("v5:bool, v6:u32 = route n, v3", "param0 is not a route table");
    bad_ops("v5:bool, v6:u32 = route t, v0", "v0 is not an address");
    bad_ops("v5:bool, v6:u32 = patterns n", "param0 is not patterns");
    bad_ops("v5:u8, v6:u32 = patterns p", "v5 has 8 bits instead of 1");
    let three = "v5:bool, v6:u32, v7:u32";
    bad_ops(&format!("{three}, v8:u32 = find_patterns sites"), "param10 is not patterns");
    bad_ops(&format!("{three}, v8:u8 = find_patterns p"), "v8 has 8 bits instead of 32");
    let word = "v5:u128 = const 1";
    bad_ops(&format!("{word} v6:bool = in_strings p, v0, (v5)"), "param5 is not a set of strings");
    bad_ops(&format!("{word} v6:bool = in_strings names, v1, (v5)"), "v1 has 16 bits instead of 8");
    bad_ops(&format!("{word} v6:u8 = in_strings sites, v0, (v5)"), "v6 has 8 bits instead of 1");
    bad_ops("v5:bool = in_strings names, v0, (v4)", "v4 has 32 bits instead of 128");
    bad_ops("v5:bool = in_strings names, v0, ()", "a string has 1 to 15 words, not 0");
    bad_ops("v5:bool, v6:u8 = take pool", "v6 has 8 bits instead of 16");
    bad_ops("v5:bool, v6:u8 = take n", "param0 is not a pool");
    bad_ops("v5:bool = take_this pool, v0", "v0 has 8 bits instead of 16");
    bad_ops("release pool, v0", "v0 has 8 bits instead of 16");
}

#[test]
fn calls_of_operators_are_checked() {
    bad_ops("v5:u32 = extern nothing()", "there is no operator `nothing`");
    bad_ops("v5:u16 = extern hash(v0)", "v5 has 16 bits instead of 32");
    bad_ops("v5:u32 = extern hash()", "0 arguments instead of 1");
    bad_ops("v5:u32 = extern random(v0)", "v0 has 8 bits instead of 32");
    bad_ops("v5:u32 = extern random(v4, v4)", "2 arguments instead of 1");
    bad_ops("extern hash(v0)", "0 results instead of 1");
    bad_ops("v5:u32 = extern hash[bs](v0)", "1 parameters instead of 0");
    bad_ops("v5:bool, v6:u32 = extern maglev(v4)", "0 parameters instead of 1");
    bad_ops("v5:bool, v6:u32 = extern maglev[l](v4)", "param1 is not backends");
}

#[test]
fn operations_on_state_are_checked() {
    bad_ops("v5:u8 = exists keyed[v0]", "v5 has 8 bits instead of 1");
    bad_ops("v5:bool = exists keyed[v1]", "v1 has 16 bits instead of 8");
    bad_ops("v5:bool = exists keyed[]", "0 key parts instead of 1");
    bad_ops("v5:bool = exists keyed[entry]", "state0 has no such key: its key must be given");
    bad_ops(
        "v5:bool = exists keyed[quoted]",
        "state0 has no such key: only flows are quoted or reversed",
    );
    bad_ops(
        "v5:bool = exists biflow[reverse]",
        "state2 has no such key: only flows are quoted or reversed",
    );
    bad_ops("v5:bool = exists all[v0]", "state4 has no such key: global state has none");
    bad_ops("v5:u8 = get keyed[v0]", "1 slots instead of 2");
    bad_ops("v5:u8, v6:u8 = get keyed[v0]", "v6 has 8 bits instead of 16");
    bad_ops("v5:bool = set keyed[v0], (v0)", "1 slots instead of 2");
    bad_ops("v5:u8 = set keyed[v0], (v0, v1)", "v5 has 8 bits instead of 1");
    bad_ops("v5:bool = put keyed[v0], 1, v0", "v0 has 8 bits instead of 16");
    bad_ops("v5:bool = put keyed[v0], 2, v0", "there is no slot 2");
    bad_ops("delete all[entry]", "global state is never deleted");
    bad_ops("v5:u8 = entries keyed", "v5 has 8 bits instead of 32");
}

#[test]
fn operations_on_packets_are_checked() {
    bad_ops("v5:u8 = has eth", "v5 has 8 bits instead of 1");
    bad_ops("v5:u8 = load pkt.len", "v5 has 8 bits instead of 32");
    bad_ops("v5:u8 = load_entry pkt.len", "v5 has 8 bits instead of 32");
    bad_ops("store pkt.len, v4", "pkt.len is read-only");
    bad_ops("v5:u16 = load_tag mark", "v5 has 16 bits instead of 8");
    bad_ops("store_tag mark, v1", "v1 has 16 bits instead of 8");
    bad_ops("emit E(v0)", "1 arguments instead of 2");
    bad_ops("emit E(v1, \"x\")", "v1 has 16 bits instead of 8");
    bad_ops("emit E(v0, v0)", "argument 1 is not of the event field's type");
    bad_ops("emit E(\"x\", \"x\")", "argument 0 is not of the event field's type");
    bad_ops("emit E(v0, param n)", "param0 is not a string");
    bad_ops("count row9", "there is no row9");
    bad_ops("create icmp { ip.proto = v0 } payload empty to back", "ip.proto is read-only");
    bad_ops(
        "create icmp { tcp.window = v1 } payload empty to back",
        "the new packet has no tcp.window",
    );
    bad_ops("create icmp { icmp.type = v1 } payload empty to back", "v1 has 16 bits instead of 8");
}

#[test]
fn terminators_are_checked() {
    bad_blocks("b0: return", "packet, b0, terminator: this cannot stand in the packet program");
    bad_blocks(
        "b0: v0:u8 = const 1 branch v0, b1, b1 b1: output onward at row0",
        "packet, b0, terminator: v0 has 8 bits instead of 1",
    );
    bad_blocks(
        "b0: v0:u8 = const 1 hold q for v0 at row0 else b1 b1: output onward at row0",
        "packet, b0, terminator: v0 has 8 bits instead of 64",
    );
    for term in ["output onward", "drop \"why\"", "consume", "resubmit"] {
        bad_blocks(&format!("b0: {term} at row9"), "packet, b0, terminator: there is no row9");
    }
    bad_blocks("b0: drop reason9 at row0", "packet, b0, terminator: there is no reason9");
}

#[test]
fn numbers_out_of_range_are_found() {
    let ends = |term: Term| {
        let mut model = parse("", PASS, "");
        model.packet.blocks[0].term = term;
        errors(&model)
    };
    let row = RowId(0);
    let error = |what: &str| vec![format!("packet, b0, terminator: {what}")];
    assert_eq!(ends(Term::Output { ports: vec![], row }), error("it leads to no port"));
    let nowhere = vec![Dest::Port(PortId(9))];
    assert_eq!(ends(Term::Output { ports: nowhere, row }), error("there is no port9"));
    assert_eq!(ends(Term::Drop { reason: ReasonId(9), row }), error("there is no reason9"));
    let does = |op: Op| {
        let mut model = parse("", "b0: v0:u64 = const 1 output onward at row0", "");
        model.packet.values.push(Ty::uint(8));
        model.packet.blocks[0].ops.push(op);
        errors(&model)
    };
    let error = |what: &str| vec![format!("packet, b0, operation 1: there is no {what}")];
    let (out, a) = (ValueId(1), ValueId(0));
    assert_eq!(does(Op::Param { out, param: ParamId(9) }), error("param9"));
    assert_eq!(does(Op::LoadTag { out, tag: TagId(9) }), error("tag9"));
    assert_eq!(does(Op::StateLen { out, state: StateId(9) }), error("state9"));
    assert_eq!(does(Op::Mirror { port: Dest::Port(PortId(9)) }), error("port9"));
    assert_eq!(does(Op::Release { pool: ParamId(9), a }), error("param9"));
    let mut model = parse("queue q capacity 1", "b0: v0:u64 = const 1 output onward at row0", "");
    let full = braid_ir::model::Target { block: BlockId(1), args: vec![] };
    model.packet.blocks.push(model.packet.blocks[0].clone());
    model.packet.blocks[1].ops.clear();
    model.packet.blocks[0].term = Term::Hold { queue: QueueId(9), delay: ValueId(0), row, full };
    assert_eq!(errors(&model), ["packet, b0, terminator: there is no queue9"]);
    let mut model = parse("state s: u8 per flow", PASS, "");
    model.state[0].lives_with = Some(StateId(9));
    assert_eq!(errors(&model), ["state0: there is no state9"]);
    model.state[0].lives_with = None;
    model.state[0].capacity = Setting::Param(ParamId(9));
    assert_eq!(errors(&model), ["state0: param9 is not a scalar parameter"]);
    model.state[0].capacity = Setting::Const(1);
    model.expire.push((StateId(9), model.packet.clone()));
    assert_eq!(errors(&model), ["model: there is no state9"]);
}

#[test]
fn operations_on_packets_stand_in_packet_programs_only() {
    for op in [
        "v1:bool = has eth",
        "v1:u32 = load pkt.len",
        "v1:u32 = load_entry pkt.len",
        "v1:u8 = load_tag mark",
        "store_tag mark, v0",
        "pop_vlan",
        "v1:bool, v2:u32 = rules r",
        "v1:bool, v2:u32 = patterns p",
        "v1:bool, v2:u32, v3:u32, v4:u32 = find_patterns p",
        "v1:u16 = extern checksum()",
        "count row0",
        "mirror onward",
        "create icmp { } payload empty to back",
    ] {
        bad_background(
            op,
            "timer 0, b0, operation 1: this cannot stand in a timer's program",
            "expire state0, b0, operation 1: this cannot stand in an expiry program",
        );
    }
    bad_background(
        "v1:bool = exists f[entry]",
        "timer 0, b0, operation 1: state1 has no such key: there is no packet to read it from",
        "expire state0, b0, operation 1: state1 has no such key: there is no packet to read it from",
    );
    bad_background(
        "output onward at row0 b1:",
        "timer 0, b0, terminator: this cannot stand in a timer's program",
        "expire state0, b0, terminator: this cannot stand in an expiry program",
    );
    bad_background("v1:time = load pkt.time", "", "");
    bad_background("v1:bool = exists s[v0]", "", "");
    let error = "timer 0, b0, operation 1: this cannot stand in a timer's program";
    bad_background("v1:u8 = expiring", error, "");
    bad_background("v1:u8 = expiring_key", error, "");
    bad_background(
        "v1:u16 = expiring",
        error,
        "expire state0, b0, operation 1: v1 has 16 bits instead of 8",
    );
    bad_ops("v5:u8 = expiring", "this cannot stand in the packet program");
}

#[test]
fn headers_must_be_known_to_be_present() {
    bad_ops("v5:u8 = load ip.ttl", "header `ip` is not known to be present");
    bad_ops("v5:u12 = const 1 store vlan.id, v5", "header `vlan` is not known to be present");
    bad_ops("v5:ip4 = load_entry ip.src", "header `ip` is not known to have been present on entry");
    bad_ops("pop_vlan", "header `vlan` is not known to be present");
    bad_ops(
        "v5:bool = exists flow[entry]",
        "header `inet` is not known to have been present on entry",
    );
    bad_ops(
        "v5:bool = exists flow[quoted reverse]",
        "header `quoted` is not known to have been present on entry",
    );
    bad_ops(
        "v5:bool = exists fields[entry]",
        "header `tcp` is not known to have been present on entry",
    );
}

/// The errors of a program. Its last block is reached as `before` specifies, and uses headers as
/// `ops` specifies.
fn presence(before: &str, ops: &str) -> Vec<String> {
    let blocks = format!(
        "unused v7:bool, v8:bool, v9:bool
         b0: v0:bool = has tcp
             v1:bool = has vlan
             v2:bool = has udp
             v3:bool = const true
             v4:u12 = const 1
             v5:u8 = const 8
             v6:bool = has icmp.echo
             {before}
         b3: {ops} jump b4
         b4: output onward at row0"
    );
    errors(&parse("state f: u8 per flow capacity 1 full refuse tick 1", &blocks, ""))
}

#[test]
fn branch_on_presence_makes_it_known_on_one_side() {
    let load = "v10:u16 = load tcp.sport";
    let ok = Vec::<String>::new();
    let absent = ["packet, b3, operation 0: header `tcp` is not known to be present"];
    assert_eq!(presence("branch v0, b3, b1 b1: jump b4 b2: jump b4", load), ok);
    assert_eq!(presence("branch v0, b4, b3 b1: jump b4 b2: jump b4", load), absent);
    // Both sides lead to the same block.
    assert_eq!(presence("branch v0, b3, b1 b1: jump b3 b2: jump b4", load), absent);
    // Implied headers are known as well, and the knowledge that both paths share stays.
    let inet = "v10:u8 = load inet.proto v11:bool = exists f[entry]";
    assert_eq!(presence("branch v0, b3, b1 b1: jump b4 b2: jump b4", inet), ok);
    let l4 = "v10:port = load l4.sport";
    assert_eq!(presence("branch v0, b3, b1 b1: branch v2, b3, b2 b2: jump b4", l4), ok);
    assert_eq!(presence("branch v0, b3, b1 b1: branch v2, b3, b2 b2: jump b4", load), absent);
}

#[test]
fn presence_is_known_through_and_or_not() {
    let load = "v10:u16 = load tcp.sport";
    let ways = |cond: &str, side: &str| {
        let (yes, no) = if side == "yes" { ("b3", "b4") } else { ("b4", "b3") };
        presence(&format!("v7:bool = {cond} branch v7, {yes}, {no} b1: jump b4 b2: jump b4"), load)
    };
    assert!(ways("and v0, v3", "yes").is_empty());
    assert!(!ways("and v0, v3", "no").is_empty());
    assert!(!ways("or v0, v3", "yes").is_empty());
    assert!(ways("not v0", "no").is_empty());
    assert!(!ways("not v0", "yes").is_empty());
    let not_either = "v8:bool = not v0 v9:bool = or v8, v3 v7:bool = not v9
                      branch v7, b3, b4 b1: jump b4 b2: jump b4";
    assert!(presence(not_either, load).is_empty());
}

#[test]
fn changes_of_headers_undo_what_was_known() {
    let to_b3 = |ops: &str| format!("branch v1, b1, b2 b1: {ops} jump b3 b2: jump b4");
    let vlan = "v10:u12 = load vlan.id";
    assert!(presence(&to_b3(""), vlan).is_empty());
    assert_eq!(presence(&to_b3("pop_vlan"), vlan).len(), 1);
    assert!(presence(&to_b3("pop_vlan push_vlan v4"), vlan).is_empty());
    // There are two tags after one was added, and one after one was removed.
    assert!(presence(&to_b3("push_vlan v4"), "v10:u12 = load vlan2.id").is_empty());
    assert!(presence(&to_b3("push_vlan v4 pop_vlan"), vlan).is_empty());
    assert_eq!(presence(&to_b3("push_vlan v4 pop_vlan"), "v10:u12 = load vlan2.id").len(), 1);
    // The header was present on entry.
    assert!(presence(&to_b3("pop_vlan"), "v10:u12 = load_entry vlan.id").is_empty());
    // A condition from before a change does not describe the current packet. A condition from after
    // the change does not describe the packet on entry.
    let stale = "branch v1, b1, b4 b1: pop_vlan branch v1, b3, b2 b2: jump b4";
    assert_eq!(presence(stale, vlan).len(), 1);
    let later = "branch v1, b1, b4 b1: pop_vlan v7:bool = has vlan2 branch v7, b3, b2 b2: jump b4";
    assert!(presence(later, "v10:u12 = load vlan2.id").is_empty());
    assert_eq!(presence(later, "v10:u12 = load_entry vlan2.id").len(), 1);
    let on_one_way = "branch v1, b1, b4 b1: branch v3, b2, b5 b2: pop_vlan jump b5";
    assert_eq!(joined(on_one_way), 1);
    assert_eq!(joined(&on_one_way.replace("pop_vlan", "")), 0);
    // The ICMP type decides whether there is an identifier.
    let echo = |ops: &str| format!("branch v6, b1, b2 b1: {ops} jump b3 b2: jump b4");
    let id = "v10:u16 = load icmp.id";
    assert!(presence(&echo(""), id).is_empty());
    assert_eq!(presence(&echo("store icmp.type, v5"), id).len(), 1);
    assert!(presence(&echo("store icmp.type, v5"), "v10:u16 = load_entry icmp.id").is_empty());
    let stale = "branch v6, b1, b4 b1: store icmp.type, v5 branch v6, b3, b2 b2: jump b4";
    assert_eq!(presence(stale, id).len(), 1);
}

/// The errors of a program. After `before`, which ends in b4 or b5, block b5 tests for a second
/// VLAN tag. If there is one, the program reads the second tag on entry.
fn joined(before: &str) -> usize {
    let blocks = format!(
        "b0: v0:bool = has tcp
             v1:bool = has vlan
             v2:bool = has udp
             v3:bool = const true
             {before}
         b3: jump b4
         b4: output onward at row0
         b5: v4:bool = has vlan2
             branch v4, b6, b7
         b6: v5:u12 = load_entry vlan2.id
             jump b7
         b7: output onward at row0"
    );
    errors(&parse("", &blocks, "")).len()
}

#[test]
fn unreachable_blocks_are_not_judged_by_what_is_known() {
    let model = parse(
        "",
        "b0: output onward at row0
         b1: v0:u8 = load ip.ttl jump b2
         b2: v1:u8 = not v0 output onward at row0",
        "",
    );
    assert_eq!(errors(&model), Vec::<String>::new());
}
