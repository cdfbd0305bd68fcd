//! Tests large rule sets. Engines classify the packets of a batch before the first one runs, and
//! must use the rules that are current when a packet runs.

use braid_ir::chain::{Chain, Change, Control};
use braid_ir::model::ParamId;
use braid_ir::rules::ANY_PORT;
use braid_ir::value::{ParamValue, Rule, RuleAddrs};
use braid_testkit::harness::{self, ENGINES, Form};
use braid_testkit::packet::{tcp, udp};
use braid_testkit::record::{Detail, Stimulus, record};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// More rules than fit into the first-level cache. Packets match only a small part of them.
const RULES: u32 = 1200;

/// Two firewalls with an address translation between them, so the second one sees changed packets.
fn chain() -> Chain {
    let mut inner = String::new();
    let mut outer = String::new();
    for number in 0..RULES {
        let host = format!("10.0.{}.{}", number / 200, number % 200);
        let action = if number % 3 == 0 { "drop" } else { "pass" };
        let ports = ["", " port 9", " port 5-8"][(number % 4).min(2) as usize];
        let _ = writeln!(inner, "{action} from {host}/31 to 192.0.2.{}{ports}", number % 7);
        let _ =
            writeln!(outer, "{action} proto udp to 192.0.2.{} port {}", number % 5, number % 17);
    }
    inner.push_str("pass proto tcp flags ACK,!SYN\npass from 2001:db8::/32\n");
    outer.push_str("pass from 203.0.113.1\ndefault drop\n");
    let source = "chain walls { interface near; interface far { behind 203.0.113.0/24 }\n\
        a = stateless_firewall(allow: rules(\"inner\"));\n\
        n = napt(public: 203.0.113.1);\n\
        b = stateless_firewall(allow: rules(\"outer\"));\n\
        path near <-> a <-> n <-> b <-> far; }";
    let files = [("inner", inner), ("outer", outer)];
    let files: BTreeMap<String, String> =
        files.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
    let chain = harness::compile(source, &files, Form::AsWritten);
    chain.unwrap_or_else(|errors| panic!("{errors}"))
}

/// Packets of many flows, two for each flow. The second ones come in another order. Most packets
/// have the same header shape.
fn packets(stimuli: &mut Vec<Stimulus>, now: &mut u64) {
    for step in [7, 11] {
        for number in 0..90_u32 {
            *now += 1000;
            let number = number * step % 90;
            let from = format!("10.0.{}.{}", number % 7, number * 13 % 211);
            let flow = format!("{from}:{} > 192.0.2.{}:{}", 1000 + number, number % 7, number % 11);
            let packet = match number % 10 {
                3 => tcp(&flow),
                4 => udp(&format!("[2001:db8::{number:x}]:7 > [2001:db9::1]:9")),
                _ => udp(&flow),
            };
            stimuli.push(Stimulus::Packet(0, packet.at(*now)));
        }
    }
}

fn change(stimuli: &mut Vec<Stimulus>, now: u64, node: u16, change: Change) {
    let param = ParamId(0);
    stimuli.push(Stimulus::Control(Control { time_ns: now, node, param, change, line: None }));
}

#[test]
fn changed_rules_are_those_of_the_next_packet() {
    let chain = chain();
    let (mut stimuli, mut now) = (Vec::new(), 0);
    packets(&mut stimuli, &mut now);
    let all = (0, u32::MAX);
    let some = Rule {
        addrs: Some(RuleAddrs::V4 { src: all, dst: (0xc000_0202, 0xc000_0204) }),
        ..Rule::any(false)
    };
    let ports = Rule { dport: (9, 10), sport: ANY_PORT, ..Rule::any(true) };
    change(&mut stimuli, now, 0, Change::AddRule(Some(2), some));
    change(&mut stimuli, now, 2, Change::AddRule(Some(0), ports));
    packets(&mut stimuli, &mut now);
    for _ in 0..5 {
        change(&mut stimuli, now, 0, Change::RemoveRule(1));
        change(&mut stimuli, now, 2, Change::RemoveRule(3));
    }
    packets(&mut stimuli, &mut now);
    // The first firewall gets few rules, and the reverse.
    let ParamValue::Rules(set) = &chain.nodes[0].params[0] else { panic!("no rules") };
    let mut few = set.clone();
    few.rules.drain(20..1195);
    change(&mut stimuli, now, 0, Change::Set(ParamValue::Rules(few)));
    packets(&mut stimuli, &mut now);
    change(&mut stimuli, now, 0, Change::Set(ParamValue::Rules(set.clone())));
    packets(&mut stimuli, &mut now);
    let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
    for engine in ENGINES {
        engine.check(&chain, &stimuli, &expected).unwrap_or_else(|report| panic!("{report}"));
    }
}
