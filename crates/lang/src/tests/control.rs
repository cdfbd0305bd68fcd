//! Tests of control files: the changes of their lines, and all wrong lines.

use std::sync::Arc;

use crate::control::{self, control, follow};
use crate::diag::Diagnostics;
use crate::sema::{Loader, types};
use crate::source::SourceMap;
use braid_ir::chain::{Chain, Change, Malformed, Node, Scheduled, When};
use braid_ir::model::{Model, ParamDecl, ParamId, ParamTy, Program, Setting, Timer, Ty};
use braid_ir::rules::ANY_PORT;
use braid_ir::steering::Steering;
use braid_ir::value::{Backend, ParamValue, RuleAddrs, RuleSet};

struct NoFiles;

impl Loader for NoFiles {
    fn read(&self, _path: &str, _relative_to: &str) -> Result<Vec<u8>, String> {
        Err("there are no files here".into())
    }
}

/// A chain with one function `f`. It has a parameter of each kind that control lines distinguish.
fn chain() -> Chain {
    let columns = vec![(String::new(), types::IP4)];
    let pairs = vec![("addr".to_owned(), types::IP4), ("port".to_owned(), types::PORT)];
    let params = [
        ("most", ParamTy::Scalar(Ty::uint(32)), ParamValue::Scalar(1)),
        ("ok", ParamTy::Rules, ParamValue::Rules(RuleSet { rules: vec![], default_pass: true })),
        ("servers", ParamTy::Backends(columns), ParamValue::Backends(vec![])),
        ("pairs", ParamTy::Backends(pairs), ParamValue::Backends(Vec::<Backend>::new())),
        ("tick", ParamTy::Scalar(types::DURATION), ParamValue::Scalar(1)),
        ("name", ParamTy::Str, ParamValue::Str(String::new())),
    ];
    let decl = |(name, ty, _): &(&str, ParamTy, ParamValue)| ParamDecl {
        name: (*name).into(),
        ty: ty.clone(),
        default: None,
    };
    let model = Model {
        params: params.iter().map(decl).collect(),
        timers: vec![Timer { period: Setting::Param(ParamId(4)), body: Program::default() }],
        ..Model::new("model")
    };
    let values = params.into_iter().map(|(_, _, value)| value).collect();
    Chain {
        name: "c".into(),
        interfaces: vec![],
        nodes: vec![Node { name: "f".into(), model: Arc::new(model), params: values }],
        links: vec![],
        priorities: vec![],
        policy: vec![],
        malformed: Malformed::Drop,
        seed: 0,
        workers: 1,
        steering: Steering::by_connection(),
        only: None,
        by_rules: false,
    }
}

fn read(text: &str) -> (Vec<Scheduled>, Vec<String>) {
    let mut sources = SourceMap::new();
    let file = sources.add("changes.control", text);
    let mut diags = Diagnostics::new();
    let lines = control(file, &chain(), &NoFiles, &sources, &mut diags);
    let changes = lines.into_iter().map(|line| line.scheduled).collect();
    let message = |d: &crate::diag::Diagnostic| {
        format!("{} {} {}", d.code, sources.place(d.span()), d.message)
    };
    (changes, diags.iter().map(message).collect())
}

/// The only change of a text without errors.
#[track_caller]
fn change(line: &str) -> Change {
    let (changes, errors) = read(line);
    assert!(errors.is_empty(), "{errors:#?}");
    assert_eq!(changes.len(), 1);
    changes.into_iter().next().unwrap().change
}

#[track_caller]
fn error(line: &str, code_and_place: &str, says: &str) {
    let (changes, errors) = read(line);
    assert!(changes.is_empty(), "{changes:?}");
    assert_eq!(errors.len(), 1, "{errors:#?}");
    let place = code_and_place.replacen(' ', " changes.control:", 1);
    assert!(errors[0].starts_with(&place) && errors[0].contains(says), "{errors:#?}");
}

#[test]
fn lines_become_changes_in_order_and_comments_are_skipped() {
    let text = "# first\n\n+0.5 set f.most 9 # half a second in\n1700000000 set f.most 10\n";
    let (changes, errors) = read(text);
    assert!(errors.is_empty(), "{errors:#?}");
    let when: Vec<When> = changes.iter().map(|change| change.when).collect();
    assert_eq!(when, [When::AfterFirst(500_000_000), When::At(1_700_000_000_000_000_000)]);
    let first = changes[0].resolve(2_000_000_000);
    assert_eq!((first.time_ns, first.node, first.param), (2_500_000_000, 0, ParamId(0)));
    assert!(matches!(first.change, Change::Set(ParamValue::Scalar(9))));
    assert_eq!(changes[1].resolve(5).time_ns, 1_700_000_000_000_000_000);
}

#[test]
fn set_takes_values_as_the_language_writes_them() {
    assert!(matches!(change("+1 set f.most 2 Ki"), Change::Set(ParamValue::Scalar(2048))));
    let text = change("+1 set f.name \"a # b\"");
    assert!(matches!(text, Change::Set(ParamValue::Str(text)) if text == "a # b"));
    let servers = change("+1 set f.servers [10.0.0.1]");
    let one = Backend::up(vec![0x0a00_0001]);
    assert!(matches!(servers, Change::Set(ParamValue::Backends(all)) if all == [one]));
}

#[test]
fn rules_are_added_in_front_of_a_rule_or_at_the_end() {
    let Change::AddRule(at, rule) = change("+1 add-rule f.ok at 2 pass proto tcp to 10.0.0.0/8")
    else {
        panic!("not a rule")
    };
    let dst = (0x0a00_0000, 0x0aff_ffff);
    assert_eq!((at, rule.pass, rule.proto, rule.dport), (Some(2), true, (6, 0xff), ANY_PORT));
    assert_eq!(rule.addrs, Some(RuleAddrs::V4 { src: (0, u32::MAX), dst }));
    assert!(matches!(change("+1 add-rule f.ok drop"), Change::AddRule(None, _)));
    assert!(matches!(change("+1 remove-rule f.ok 0"), Change::RemoveRule(0)));
}

#[test]
fn lines_of_both_kinds_of_times_have_an_order_once_the_first_packet_is_known() {
    let mut sources = SourceMap::new();
    let file = sources.add("changes.control", "+1 remove-rule f.ok 0\n3 add-rule f.ok drop\n");
    let follow = |first_packet_ns| {
        let mut diags = Diagnostics::new();
        let lines = control(file, &chain(), &NoFiles, &sources, &mut diags);
        follow(&lines, &chain(), first_packet_ns, &mut diags);
        diags.iter().map(|wrong| sources.place(wrong.span())).collect::<Vec<_>>()
    };
    assert_eq!(follow(None), [""; 0]);
    assert_eq!(follow(Some(5_000_000_000)), [""; 0]);
    // The rule is removed one second before it is added.
    assert_eq!(follow(Some(1_000_000_000)), ["changes.control:1:21"]);
}

#[test]
fn backends_go_up_and_down_come_and_go() {
    let addr = 0x0a00_0002;
    assert!(
        matches!(change("+1 backend f.servers up 10.0.0.2"), Change::BackendUp(a, true) if a == addr)
    );
    assert!(
        matches!(change("+1 backend f.servers down 10.0.0.2"), Change::BackendUp(a, false) if a == addr)
    );
    assert!(
        matches!(change("+1 backend f.servers remove 10.0.0.2"), Change::RemoveBackend(a) if a == addr)
    );
    let added = change("+1 backend f.pairs add 10.0.0.2 8080");
    assert!(matches!(added, Change::AddBackend(columns) if columns == [addr, 8080]));
    assert!(
        matches!(change("+1 backend f.pairs down 10.0.0.2"), Change::BackendUp(a, false) if a == addr)
    );
}

#[test]
fn wrong_lines_are_reported_with_their_places() {
    error("1s set f.most 1", "E0702 1:1 ", "found `1s`");
    error("+1", "E0701 1:3 ", "found the end of the line");
    error("+1 put f.most 1", "E0701 1:4 ", "found `put`");
    error("+1 set most 1", "E0701 1:8 ", "expected FUNCTION.PARAM");
    error("+1 set g.most 1", "E0703 1:8 ", "no function `g`");
    error("+1 set f.mots 1", "E0704 1:10 ", "no parameter `mots`");
    error("+1 set f.most", "E0701 1:14 ", "expected a value");
    error("\n+1 set f.most \"x\"", "E0", "");
    error("+1 set f.tick 0 s", "E0314 1:15 ", "period of a timer");
}

#[test]
fn changes_that_a_parameter_does_not_have_are_reported() {
    error("+1 add-rule f.most pass", "E0705 1:13 ", "`add-rule` is for parameters of type `rules`");
    error("+1 remove-rule f.servers 1", "E0705 1:16 ", "`remove-rule` is for");
    error("+1 backend f.ok up 10.0.0.1", "E0705 1:12 ", "`backend` is for");
}

#[test]
fn wrong_values_are_reported() {
    error("+1 add-rule f.ok at x pass", "E0706 1:21 ", "the number of a rule");
    error("+1 add-rule f.ok pass prooto tcp", "E0706 1:23 ", "`proto`");
    error("+1 add-rule f.ok", "E0706 1:17 ", "end of the line");
    error("+1 remove-rule f.ok -1", "E0706 1:21 ", "found `-1`");
    error("+1 remove-rule f.ok 1 2", "E0701 1:23 ", "expected the end of the line");
    error("+1 backend f.servers off 10.0.0.1", "E0701 1:22 ", "found `off`");
    error("+1 backend f.servers up", "E0706 1:24 ", "expected a value");
    error("+1 backend f.servers up 10.0.0.1 80", "E0706 1:34 ", "takes 1 value");
    error("+1 backend f.pairs add 10.0.0.1", "E0706 1:32 ", "a value for `port`");
    error("+1 backend f.pairs add 10.0.0.1 70000", "E0303 1:33 ", "70000");
}

#[test]
fn a_wrong_line_does_not_hide_others() {
    let (changes, errors) = read("+1 put\n+2 set f.most 2\n+x set f.most 3\n");
    assert_eq!((changes.len(), errors.len()), (1, 2));
}

#[test]
fn any_bytes_are_read_without_panic() {
    for text in
        ["\u{feff}+1 set f.most 1", "+1 set f.most ¼", "+1 add-rule f.ok pass é ü", "\0\0 \r\r\n"]
    {
        read(text);
    }
}

#[test]
fn change_is_one_line_without_a_time() {
    let read = |text: &str| {
        let (mut sources, mut diags) = (SourceMap::new(), Diagnostics::new());
        let file = sources.add("change", text);
        let change = control::change(file, &chain(), &NoFiles, &sources, &mut diags);
        let told: Vec<_> = diags
            .iter()
            .map(|told| format!("{} {}", sources.place(told.span()), told.message))
            .collect();
        (change, told)
    };
    for text in ["set f.most 9", "  set f.most 9 # nine\n\n# and no more\n"] {
        let (change, told) = read(text);
        assert!(matches!(change.unwrap().change, Change::Set(ParamValue::Scalar(9))), "{told:?}");
    }
    for (text, place) in [
        ("set f.most 9\n+3600 set f.most 10", "change:2:1 a change is one line"),
        ("# nine\n  set f.most 9", "change:2:3 a change is one line"),
        ("+0 set f.most 9", "change:1:1 expected `set`"),
        ("set f.mots 9", "change:1:7 `f` has no parameter `mots`"),
        ("", "change:1:1 expected `set`"),
    ] {
        let (change, told) = read(text);
        assert!(change.is_none() && told.len() == 1 && told[0].starts_with(place), "{told:?}");
    }
}
