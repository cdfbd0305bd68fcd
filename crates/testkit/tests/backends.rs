//! Tests the limit of backends in all engines.

use braid_ir::chain::{Change, Control};
use braid_ir::model::ParamId;
use braid_ir::value::{Backend, MAX_MEMBERS, ParamValue};
use braid_testkit::harness::{self, ENGINES, Form};
use braid_testkit::packet::udp;
use braid_testkit::record::{Detail, Output, Stimulus, record};
use std::collections::BTreeMap;

#[test]
fn backends_beyond_the_limit_are_refused_and_removed_ones_return() {
    let most = MAX_MEMBERS as u128;
    let source = format!(
        "nf f(all: backends<u32>) {{ if has ip and up(all, 3) {{ ip.ttl = 9; }} output; }}
         chain c {{ path f(all: [1..{}]); }}",
        most - 1
    );
    let chain = harness::compile(&source, &BTreeMap::new(), Form::AsWritten);
    let chain = chain.unwrap_or_else(|errors| panic!("{errors}"));
    let set = |name: u128| Change::Set(ParamValue::Backends(vec![Backend::up(vec![name])]));
    let changes = [
        (Change::AddBackend(vec![most]), true),
        (Change::AddBackend(vec![most + 1]), false),
        (Change::RemoveBackend(4), true),
        (Change::AddBackend(vec![most + 1]), false),
        (set(most + 1), false),
        (Change::AddBackend(vec![4]), true),
        (set(4), true),
    ];
    let mut stimuli = Vec::new();
    for (now, (change, _)) in (1..).zip(&changes) {
        let (param, change) = (ParamId(0), change.clone());
        stimuli.push(Stimulus::Control(Control {
            time_ns: now,
            node: 0,
            param,
            change,
            line: None,
        }));
        stimuli.push(Stimulus::Packet(0, udp("10.0.0.1:1 > 10.0.0.2:2").at(now)));
    }
    let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
    for (outputs, (change, is_allowed)) in expected.outputs.iter().step_by(2).zip(&changes) {
        let is_refused = matches!(&outputs[..], [Output::Refused(why)] if why.contains("limit"));
        assert_eq!(is_refused, !is_allowed, "{change:?}: {outputs:?}");
    }
    for engine in ENGINES {
        engine.check(&chain, &stimuli, &expected).unwrap_or_else(|report| panic!("{report}"));
    }
}
