//! The verifier on stream functions: each rule has a model that breaks it.

use braid_ir::model::{Granularity, MAX_STATES, Model, StateDecl, Ty};
use braid_ir::text;
use braid_ir::verify::verify;

/// The packet program of most models here.
const PASS: &str = "v0:u32, v1:bool, v2:u32, v3:u32 = stream output onward at row0";
const EMPTY: &str = "stream client { b0: return }";

fn model(packet: &str, programs: &str) -> Model {
    let text = format!(
        "model test {{ param p: patterns param n: u8
         state flow: u8 per flow capacity 9 full refuse tick 1
         state port: u16 per (tcp.sport) capacity 9 full refuse tick 1
         state ttl: u8 per (ip.ttl) capacity 9 full refuse tick 1
         reason \"why\" row \"body\" row \"fault\"
         packet {{ b0: {packet} }} {programs} }}"
    );
    text::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn errors(model: &Model) -> Vec<String> {
    verify(model).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// Checks the errors of a program for an event, without their places.
fn check(event: &str, body: &str, expected: &[&str]) {
    let found = errors(&model(PASS, &format!("stream {event} {{ b0: {body} }}")));
    let found: Vec<_> = found.iter().map(|e| e.split_once(": ").unwrap().1).collect();
    assert_eq!(found, expected, "{event}: {body}");
}

#[test]
fn programs_for_events_read_the_stream_and_the_flow() {
    let body = "v0:u64 = load_stream len v1:u64 = load_stream offset
        v2:bool, v3:u32 = stream_match p v4:bool = has ip6 v5:u128 = load inet.src
        v6:port = load tcp.dport v7:time = load pkt.time v8:bool = exists flow[entry]
        v9:bool = exists port[entry] count row0 return";
    for event in ["open", "client", "server", "request", "response", "close"] {
        check(event, body, &[]);
    }
    let search = "v0:bool, v1:u32 = stream_match p, host return";
    check("request", search, &[]);
    for event in ["client", "response", "close"] {
        check(event, search, &["this cannot stand in a program that has no HTTP request"]);
    }
    check("open", "reset \"why\" at row0", &[]);
    check("server", "bypass at row0", &[]);
}

#[test]
fn programs_for_events_have_no_packet() {
    let no = ["this cannot stand in a stream's program"];
    for op in ["pop_vlan", "v0:bool, v1:u32 = patterns p", "mirror onward"] {
        check("client", &format!("{op} return"), &no);
    }
    check("client", "v0:u8 = load ip.ttl return", &["ip.ttl is no part of a flow key"]);
    // Both versions have such a flow, so the program must test which one this is.
    check("client", "v0:ip4 = load ip.src return", &["header `ip` is not known to be present"]);
    let absent = ["header `ip` is not known to have been present on entry"];
    check("client", "v0:bool = exists ttl[entry] return", &absent);
    check("client", "output onward at row0", &no);
    check("client", "drop \"why\" at row0", &no);
}

#[test]
fn connection_that_is_over_is_not_decided_about() {
    let no = ["this cannot stand in a stream's program"];
    check("close", "reset \"why\" at row0", &no);
    check("close", "bypass at row0", &no);
}

#[test]
fn handlers_decide_about_flows_that_their_events_name() {
    let flow = "version: u8, src: addr, dst: addr, proto: u8, sport: port, dport: port";
    let with = |events: &str, body: &str| {
        let mut made = text::parse(&format!(
            "model test {{ {events} reason \"why\" row \"body\" row \"fault\"
             packet {{ b0: {PASS} }} on event0 {{ b0: {body} }} }}"
        ))
        .unwrap_or_else(|error| panic!("{error}"));
        made.state.clear();
        errors(&made)
    };
    let flows = [
        format!("event FLOW extends EVENT(0) {{ {flow} }}"),
        format!("event END extends FLOW(6), EVENT(0) {{ {flow}, why: u8 }}"),
    ];
    let others = [
        "event END extends EVENT(0) { why: u8 }".to_owned(),
        "event FLOW extends EVENT(0) { src: addr, dst: addr }".to_owned(),
        format!("event END extends EVENT(0) {{ {flow} }}"),
    ];
    for body in ["reset \"why\" at row0", "bypass at row0", "resume at row0"] {
        for events in &flows {
            assert_eq!(with(events, body), <[String; 0]>::default(), "{events}: {body}");
        }
        for events in &others {
            let no = ["on event0, b0, terminator: this cannot stand in a handler"];
            assert_eq!(with(events, body), no, "{events}: {body}");
        }
    }
    check("client", "resume at row0", &["this cannot stand in a stream's program"]);
    let packet = errors(&model("resume at row0", EMPTY));
    assert_eq!(packet, ["packet, b0, terminator: this cannot stand in the packet program"]);
}

#[test]
fn widths_and_parameters_are_checked() {
    check("client", "v0:u32 = load_stream len return", &["v0 has 32 bits instead of 64"]);
    let narrow = "v0:bool, v1:u8 = stream_match p return";
    check("client", narrow, &["v1 has 8 bits instead of 32"]);
    let other = "v0:bool, v1:u32 = stream_match n return";
    check("client", other, &["param1 is not patterns"]);
}

#[test]
fn only_packet_programs_of_stream_functions_have_a_stack() {
    let missing = "packet, b0, operation 0: there is no program for events of connections";
    assert_eq!(errors(&model(PASS, "")), [missing]);
    let changes = format!("v4:u8 = const 1 v5:bool = has ip {PASS}");
    assert_eq!(errors(&model(&changes, EMPTY)), Vec::<String>::new());
    let changes = "push_vlan v0 output onward at row0";
    let changes = format!("v0:u12 = const 1 {changes}");
    let found = errors(&model(&changes, EMPTY));
    let expected =
        "packet, b0, operation 1: this cannot stand in the packet program of a stream function";
    assert_eq!(found, [expected]);
    let outside = errors(&model("v0:u64 = load_stream len output onward at row0", ""));
    let expected = "packet, b0, operation 0: this cannot stand in a program that has no stream";
    assert_eq!(outside, [expected]);
    let reset = errors(&model("reset \"why\" at row0", EMPTY));
    assert_eq!(reset, ["packet, b0, terminator: this cannot stand in the packet program"]);
    let twice = format!("{EMPTY} {EMPTY}");
    assert_eq!(errors(&model(PASS, &twice)), ["model: a second program for `stream client`"]);
}

#[test]
fn number_of_tables_is_limited() {
    let mut model = model(PASS, EMPTY);
    let table = |number: usize| {
        StateDecl::new(format!("s{number}"), Granularity::Flow, vec![(String::new(), Ty::uint(8))])
    };
    model.state.extend((model.state.len()..MAX_STATES).map(table));
    assert_eq!(errors(&model), Vec::<String>::new());
    model.state.push(table(MAX_STATES));
    assert_eq!(errors(&model), ["model: a function has at most 65536 tables, not 65537"]);
}
