//! Programs for events of connections as residual programs.

use braid_compiler::streams::{COMMON, EventProgram, Input, common, program};
use braid_ir::chain::Chain;
use braid_ir::engine::Fault;
use braid_ir::model::{Op, ParamId, StreamEvent, StreamField, StreamText};
use braid_ir::residual::{End, Fate, Residual, What, check};
use braid_packet::{FlowKey, proto};
use braid_testkit::harness::{Form, compile};

/// The kinds of flows that have programs of their own.
fn kinds() -> Vec<FlowKey> {
    let flow = |version, proto| FlowKey { version, src: 9, dst: 2, proto, sport: 5, dport: 7 };
    let versions = [4, 6].into_iter();
    versions.flat_map(|it| [flow(it, proto::TCP), flow(it, proto::UDP)]).collect()
}

fn chain(function: &str, call: &str) -> Chain {
    let source = format!(
        "{function} chain c {{ interface in; interface out; path in <-> {call} <-> out; }}"
    );
    let rule = "alert tcp any any -> any any (content:\"x\"; sid:1;)\n";
    let files = [("rules".to_owned(), rule.to_owned())].into();
    compile(&source, &files, Form::AsWritten).unwrap_or_else(|why| panic!("{why}"))
}

/// The program of a chain's function, which must be well formed.
fn lowered(chain: &Chain, event: StreamEvent, flow: FlowKey) -> EventProgram {
    let made = program(&chain.nodes[0].model, event, flow).expect("a program for machine code");
    if let Err(problems) = check(&made.residual, chain) {
        panic!("{event:?} {flow:?}: {}", problems.join("; "));
    }
    made
}

/// The ends of a program.
fn fates(program: &Residual) -> Vec<Fate> {
    let ends = program.blocks.iter().filter_map(|block| match &block.end {
        End::Exit(exit) => Some(exit.fate.clone()),
        _ => None,
    });
    ends.collect()
}

#[test]
fn programs_of_the_library_are_well_formed_for_all_kinds_of_flows() {
    let mut count = 0;
    let calls = [
        "stream_ids(signatures: { \"x\" })",
        "connection_log()",
        "signature_ids(rules: signatures(\"rules\"))",
    ];
    for chain in calls.map(|call| chain("", call)) {
        for (event, _) in &chain.nodes[0].model.streams {
            for flow in kinds() {
                lowered(&chain, *event, flow);
                count += 1;
            }
        }
    }
    assert!(count >= 7 * kinds().len(), "{count}");
}

#[test]
fn parameters_and_numbers_of_the_event_are_inputs() {
    let chain = chain(
        "stream nf f(bad: patterns, most: size) {
           state bytes: size per biflow = 0 B;
           on data {
             bytes += stream.len;
             if stream.offset > most or stream.data matches bad { bypass; }
             forward;
           }
         }",
        "f(bad: { \"x\" }, most: 1 KB)",
    );
    let made = lowered(&chain, StreamEvent::Client, kinds()[0]);
    let mut inputs = made.inputs.clone();
    inputs.sort_by_key(|input| format!("{input:?}"));
    let [bad, most] = [ParamId(0), ParamId(1)];
    assert_eq!(inputs, [Input::Found(bad, None), Input::Param(most), Input::Which(bad, None)]);
    let steps = made.residual.blocks.iter().flat_map(|block| &block.steps);
    for step in steps {
        match &step.what {
            What::Op(Op::LoadEvent { field, .. }) => {
                assert!((*field as usize) < COMMON + inputs.len());
            }
            What::Op(Op::Param { .. } | Op::LoadStream { .. } | Op::StreamMatch { .. }) => {
                panic!("{:?} depends on the event or on a parameter", step.what);
            }
            _ => {}
        }
    }
    assert!(fates(&made.residual).contains(&Fate::Consume { node: 0 }), "bypass");
}

#[test]
fn alerts_are_inputs_of_their_programs() {
    let chain = chain("", "signature_ids(rules: signatures(\"rules\"))");
    let made = lowered(&chain, StreamEvent::Alert, kinds()[0]);
    for field in [StreamField::Sid, StreamField::Drop, StreamField::TextLen(StreamText::Message)] {
        assert!(made.inputs.contains(&Input::Number(field)), "{:?}", made.inputs);
    }
}

#[test]
fn searches_of_strings_are_inputs_of_their_own() {
    let chain = chain(
        "stream nf f(bad: patterns) {
           on request {
             match {
               request.host matches bad => { reset \"host\"; }
               request.path matches bad => { reset \"path\"; }
               else => forward;
             }
           }
         }",
        "f(bad: { \"x\" })",
    );
    let made = lowered(&chain, StreamEvent::Request, kinds()[0]);
    for text in [StreamText::Host, StreamText::Path] {
        assert!(made.inputs.contains(&Input::Found(ParamId(0), Some(text))), "{:?}", made.inputs);
    }
}

#[test]
fn common_inputs_are_the_ends_of_the_flow_in_both_orders() {
    // The smaller end comes first where both directions have the same key.
    let expected = [9, 2, 5, 7, 2, 9, 7, 5, 30, 40];
    assert_eq!(common(kinds()[0], 30, 40), expected);
}

#[test]
fn fields_of_the_other_version_are_faults() {
    let chain =
        chain("stream nf f() { on open { if has ip and ip.src == 10.0.0.1 { bypass; } } }", "f()");
    for flow in kinds() {
        let fates = fates(&lowered(&chain, StreamEvent::Open, flow).residual);
        let fault = Fate::Fault { node: 0, fault: Fault::Truncated };
        assert_eq!(fates.contains(&fault), flow.version == 6, "{flow:?}: {fates:?}");
    }
}

#[test]
fn reads_without_an_entry_and_without_a_default_are_faults() {
    let chain = chain(
        "stream nf f() {
           state seen: u32 per biflow, capacity 10;
           on open { seen = 1; }
           on data { if seen > 3 { bypass; } forward; }
         }",
        "f()",
    );
    let made = lowered(&chain, StreamEvent::Server, kinds()[0]);
    let fault = Fate::Fault { node: 0, fault: Fault::NoEntry };
    assert!(fates(&made.residual).contains(&fault));
}

#[test]
fn events_without_a_program_have_none() {
    let chain = chain("", "stream_ids(signatures: { \"x\" })");
    assert_eq!(program(&chain.nodes[0].model, StreamEvent::Alert, kinds()[0]), None);
}
