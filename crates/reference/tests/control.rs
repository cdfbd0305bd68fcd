//! Changes of configuration: their effects, and the rule that a refused change has none.

mod common;

use braid_ir::chain::Change;
use braid_ir::engine::Engine;
use braid_ir::value::{Backend, ParamValue, Rule, RuleSet};
use common::{Bench, LAN, WAN, from_port, line, nf};

fn rule(port: u16, pass: bool) -> Rule {
    Rule { sport: (port, port), ..Rule::any(pass) }
}

/// A filter by source port: port 1 passes, and the default is to drop.
fn filter() -> Bench {
    let model = nf(
        "param ok: rules reason \"no\"",
        "b0: v0:bool, v1:u32 = rules ok
             branch v0, b1, b2
         b1: output onward at row0
         b2: drop \"no\" at row1",
    );
    let set = RuleSet { rules: vec![rule(1, true)], default_pass: false };
    Bench::new(line(vec![(model, vec![ParamValue::Rules(set)])]))
}

#[test]
fn change_holds_from_its_time_on() {
    let model = nf_says_param();
    let mut bench = Bench::new(line(vec![(model, vec![ParamValue::Scalar(1)])]));
    bench.send(LAN, from_port(10, 1));
    bench.control(20, 0, Change::Set(ParamValue::Scalar(2))).unwrap();
    bench.send(LAN, from_port(20, 1));
    assert_eq!(bench.events(), [(10, 1), (20, 2)]);
    // The time of the change has been reached, so a packet with an earlier time is processed at
    // that time.
    bench.control(50, 0, Change::Set(ParamValue::Scalar(3))).unwrap();
    bench.send(LAN, from_port(30, 1));
    assert_eq!(bench.events(), [(50, 3)]);
}

fn nf_says_param() -> std::sync::Arc<braid_ir::model::Model> {
    nf(
        "param p: u8 event SAYS { p: u8 }",
        "b0: v0:u8 = param p
             emit SAYS(v0)
             output onward at row0",
    )
}

#[test]
fn value_of_another_type_is_refused() {
    let model = nf_says_param();
    let mut bench = Bench::new(line(vec![(model, vec![ParamValue::Scalar(1)])]));
    for value in [ParamValue::Scalar(256), ParamValue::Str("x".to_owned())] {
        assert!(bench.control(1, 0, Change::Set(value)).is_err());
    }
    assert!(bench.control(1, 9, Change::Set(ParamValue::Scalar(1))).is_err());
    assert!(bench.control(1, 0, Change::RemoveRule(0)).is_err());
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.events(), [(1, 1)]);
}

#[test]
fn rules_come_and_go_with_their_counts() {
    let mut bench = filter();
    bench.send(LAN, from_port(1, 1)).send(LAN, from_port(1, 2));
    assert_eq!(bench.left_by(), [WAN]);
    bench.control(2, 0, Change::AddRule(Some(0), rule(2, true))).unwrap();
    bench.send(LAN, from_port(3, 2));
    assert_eq!(bench.left_by(), [WAN]);
    assert_eq!(bench.counters().nodes[0].rules[&0], [1, 1, 1]);
    // The first rule goes in front of the rule that passes port 1.
    bench.control(4, 0, Change::AddRule(Some(1), rule(1, false))).unwrap();
    bench.control(4, 0, Change::AddRule(Some(3), rule(3, true))).unwrap();
    let beyond = bench.control(4, 0, Change::AddRule(Some(5), rule(4, true)));
    assert_eq!(beyond.unwrap_err(), "ok has no place 5 for a rule: it has 4 rules");
    bench.send(LAN, from_port(5, 1)).send(LAN, from_port(5, 3));
    assert_eq!(bench.left_by(), [WAN]);
    assert_eq!(bench.counters().nodes[0].rules[&0], [1, 1, 1, 1, 1]);
    bench.control(6, 0, Change::RemoveRule(1)).unwrap();
    assert_eq!(bench.counters().nodes[0].rules[&0], [1, 1, 1, 1]);
    let missing = bench.control(6, 0, Change::RemoveRule(3));
    assert_eq!(missing.unwrap_err(), "ok has no rule 3: it has 3 rules");
    let all = RuleSet { rules: vec![], default_pass: true };
    bench.control(7, 0, Change::Set(ParamValue::Rules(all))).unwrap();
    assert_eq!(bench.counters().nodes[0].rules[&0], [0]);
}

#[test]
fn backends_go_down_come_and_leave() {
    let model = nf(
        "param bs: backends<{ addr: ip4, weight: u8 }> event SAYS { what: u8 }",
        "b0: v0:u32 = len bs
             v1:u8 = resize v0
             emit SAYS(v1)
             v2:u32 = const 1
             v3:bool = up bs, v2
             v4:u8 = resize v3
             emit SAYS(v4)
             output onward at row0",
    );
    let backend = |addr| Backend::up(vec![addr, 1]);
    let value = ParamValue::Backends(vec![backend(10), backend(20)]);
    let mut bench = Bench::new(line(vec![(model, vec![value])]));
    let mut after = |change: Option<Change>| {
        if let Some(change) = change {
            bench.control(1, 0, change).unwrap();
        }
        bench.send(LAN, from_port(1, 1));
        bench.events().into_iter().map(|(_, what)| what).collect::<Vec<_>>()
    };
    assert_eq!(after(None), [2, 1]);
    assert_eq!(after(Some(Change::BackendUp(20, false))), [2, 0]);
    assert_eq!(after(Some(Change::BackendUp(20, true))), [2, 1]);
    assert_eq!(after(Some(Change::AddBackend(vec![30, 1]))), [3, 1]);
    assert_eq!(after(Some(Change::RemoveBackend(20))), [3, 0], "30 stays number 2");
    for change in [
        Change::BackendUp(20, true),
        Change::RemoveBackend(20),
        Change::AddBackend(vec![30, 1]),
        Change::AddBackend(vec![40]),
        Change::AddBackend(vec![40, 256]),
    ] {
        assert!(bench.control(2, 0, change).is_err());
    }
}

/// A function that reports the first column of each of the backends 0 to 2, or 0 if the backend is
/// not up. It also reports whether 20 is a member.
fn roll_call() -> Bench {
    let mut text = String::from("b0: v0:u8 = const 0 v1:u8 = const 20\n");
    for index in 0_u32..3 {
        let v = 2 + 4 * index;
        text += &format!(
            "v{v}:u32 = const {index} v{a}:bool = up bs, v{v} v{b}:u8 = member bs, v{v}, 0
             v{c}:u8 = select v{a}, v{b}, v0 emit SAYS(v{c})\n",
            a = v + 1,
            b = v + 2,
            c = v + 3,
        );
    }
    text += "v14:bool = in v1, list bs, 0 v15:u8 = resize v14 emit SAYS(v15) output onward at row0";
    let model = nf("param bs: backends<{ name: u8, weight: u8 }> event SAYS { what: u8 }", &text);
    let value = [10, 20, 30].map(|name| Backend::up(vec![name, 1])).to_vec();
    Bench::new(line(vec![(model, vec![ParamValue::Backends(value)])]))
}

#[test]
fn backends_keep_their_numbers_when_others_leave() {
    let mut bench = roll_call();
    let mut after = |change: Change| {
        bench.control(1, 0, change).unwrap();
        bench.send(LAN, from_port(1, 1));
        bench.events().into_iter().map(|(_, what)| what).collect::<Vec<_>>()
    };
    assert_eq!(after(Change::RemoveBackend(20)), [10, 0, 30, 0]);
    // A new backend does not get the number of a removed one. The removed backend has it again when
    // it returns.
    assert_eq!(after(Change::AddBackend(vec![40, 1])), [10, 0, 30, 0]);
    assert_eq!(after(Change::AddBackend(vec![20, 2])), [10, 20, 30, 1]);
    // A backend that is down is still a member.
    assert_eq!(after(Change::BackendUp(20, false)), [10, 0, 30, 1]);
    let set = |names: &[u128]| {
        let all = names.iter().map(|name| Backend::up(vec![*name, 1])).collect();
        Change::Set(ParamValue::Backends(all))
    };
    // All changes at once: another order, one backend removed, one added.
    assert_eq!(after(set(&[50, 30, 20])), [0, 20, 30, 1]);
    assert_eq!(after(set(&[])), [0, 0, 0, 0]);
    assert_eq!(after(set(&[10])), [10, 0, 0, 0]);
}

#[test]
fn what_is_due_runs_before_the_change() {
    let model = common::nf_with(
        "param p: u8 event SAYS { p: u8 }",
        "b0: output onward at row0",
        "every 10 { b0: v0:u8 = param p emit SAYS(v0) return }",
    );
    let mut bench = Bench::new(line(vec![(model, vec![ParamValue::Scalar(1)])]));
    bench.send(LAN, from_port(0, 1));
    bench.control(10, 0, Change::Set(ParamValue::Scalar(2))).unwrap();
    bench.engine.advance(20, &mut bench.got);
    assert_eq!(bench.events(), [(10, 1), (20, 2)]);
}
