//! Tests reports and state as JSON: names instead of numbers, sorted keys, addresses as text.

mod support;

use braid_ir::chain::{Chain, Node};
use braid_ir::engine::{Counters, NodeCounters, StateEntry, TableCounters, Traffic};
use braid_ir::model::{
    Granularity, Kind, Model, ParamDecl, ParamTy, RowDecl, Setting, StateDecl, Sum, Ty,
};
use braid_ir::value::ParamValue;
use braid_runtime::follow::FollowCounters;
use braid_runtime::{RefusedChange, Summary, json, report};
use std::sync::Arc;
use support::lan_wan;

/// A model with a rule set, a table and two rows.
fn model() -> Model {
    let row =
        |label: &str, text: &str, line| RowDecl { label: label.into(), text: text.into(), line };
    Model {
        params: vec![ParamDecl { name: "ok".into(), ty: ParamTy::Rules, default: None }],
        state: vec![StateDecl {
            capacity: Setting::Const(10),
            ..StateDecl::new("seen", Granularity::Biflow, Vec::new())
        }],
        rows: vec![row("1", "forward", 4), row("fault", "", 0)],
        ..Model::new("filter")
    }
}

fn filter_chain() -> Chain {
    let mut chain = lan_wan();
    let params = vec![ParamValue::Str(String::new())];
    chain.nodes.push(Node { name: "fw".into(), model: Arc::new(model()), params });
    chain
}

fn summary() -> Summary {
    let traffic = |packets, bytes| Traffic { packets, bytes };
    let table = TableCounters { entries: 1, created: 2, refused: 3, evicted: 4, expired: 5 };
    let node = NodeCounters {
        forward: traffic(6, 600),
        backward: traffic(1, 60),
        rows: vec![traffic(5, 500), traffic(2, 160)],
        rules: [(0, vec![0, 4, 2])].into(),
        tables: vec![table],
        ..NodeCounters::default()
    };
    let counters = Counters {
        packets_in: 9,
        created: 1,
        copied: 2,
        out: [(1, 5)].into(),
        consumed: 1,
        held: 1,
        lost: [("no_interface".into(), 2)].into(),
        drops: [((0, 1, "index".into()), 3)].into(),
        nodes: vec![node],
    };
    let follow = Some(FollowCounters { flows: 1, rewritten: 2, full: 3 });
    Summary {
        counters,
        follow,
        warnings: vec!["careful".into()],
        refused: vec![RefusedChange {
            line: Some(3),
            time_ns: 5,
            function: "fw".into(),
            parameter: "ok".into(),
            reason: "no".into(),
        }],
        unwritten: vec![],
    }
}

#[test]
fn report_names_interfaces_functions_and_rows() {
    let expected = concat!(
        r#"{"consumed":1,"copied":2,"created":1,"#,
        r#""drops":[{"count":3,"function":"fw","reason":"index","row":"fault"}],"#,
        r#""follow":{"flows":1,"full":3,"rewritten":2},"#,
        r#""functions":[{"background_faults":0,"backward":{"bytes":60,"packets":1},"#,
        r#""forward":{"bytes":600,"packets":6},"model":"filter","name":"fw","#,
        r#""rows":[{"bytes":500,"line":4,"packets":5,"row":"1","text":"forward"},"#,
        r#"{"bytes":160,"line":0,"packets":2,"row":"fault","text":""}],"#,
        r#""rules":{"ok":{"default":2,"hits":[{"packets":4,"rule":1}]}},"#,
        r#""tables":[{"created":2,"entries":1,"evicted":4,"expired":5,"refused":3,"#,
        r#""table":"seen"}],"timers_skipped":0}],"#,
        r#""held":1,"lost":{"no_interface":2},"packets_in":9,"packets_out":{"lan":0,"wan":5},"#,
        r#""refused_changes":[{"function":"fw","line":3,"parameter":"ok","reason":"no","#,
        r#""time_ns":5}],"warnings":["careful"]}"#,
    );
    assert_eq!(report::report(&filter_chain(), &summary()).to_string(), expected);
}

#[test]
fn report_leaves_following_out_when_it_was_not_asked_for() {
    let summary = Summary { follow: None, ..summary() };
    assert!(report::report(&filter_chain(), &summary).get("follow").is_none());
}

fn entry(key: Vec<(Kind, u128)>, slots: Vec<(&str, Kind, u128)>) -> StateEntry {
    let slots = slots.into_iter().map(|(name, kind, word)| (name.into(), kind, word)).collect();
    StateEntry {
        node: 0,
        table: "seen".into(),
        shard: 1,
        key,
        slots,
        created_ns: 1_700_000_000_000_000_001,
        last_seen_ns: 4,
        expires_ns: None,
    }
}

fn line(entry: StateEntry) -> String {
    json::state_lines(&filter_chain(), vec![entry]).next().unwrap()
}

#[test]
fn state_of_records_has_an_object_for_its_value() {
    let key = vec![(Kind::Ip4, 0x0a00_0001), (Kind::Port, 1234)];
    let entry = entry(key, vec![("port", Kind::Port, 7), ("addr", Kind::Ip4, 0x0102_0304)]);
    let expected = concat!(
        r#"{"created_ns":1700000000000000001,"expires_ns":50,"function":"fw","#,
        r#""key":["10.0.0.1",1234],"last_seen_ns":4,"table":"seen","#,
        r#""value":{"addr":"1.2.3.4","port":7}}"#,
    );
    assert_eq!(line(StateEntry { expires_ns: Some(50), ..entry }), expected);
}

#[test]
fn state_of_scalars_has_the_value_itself() {
    let expected = concat!(
        r#"{"created_ns":1700000000000000001,"expires_ns":null,"function":"fw","key":[],"#,
        r#""last_seen_ns":4,"table":"seen","value":true}"#,
    );
    assert_eq!(line(entry(vec![], vec![("", Kind::Bool, 1)])), expected);
}

#[test]
fn state_of_sharded_chains_says_the_shard() {
    let chain = Chain { workers: 2, ..filter_chain() };
    let entry = entry(vec![], vec![("", Kind::Uint, 3)]);
    assert_eq!(json::state_entry(&chain, &entry)["shard"], 1);
}

#[test]
fn entries_that_workers_have_for_one_key_of_a_counting_table_are_listed_as_their_sum() {
    let slot = |name: &str| (name.to_owned(), Ty { width: 64, kind: Kind::Uint });
    let decl = StateDecl {
        slots: ["packets", "first", "last"].map(slot).to_vec(),
        sums: vec![Sum::Add, Sum::First, Sum::Last],
        ..model().state.remove(0)
    };
    let model = Model { state: vec![decl], ..model() };
    let mut chain = Chain { workers: 2, ..filter_chain() };
    chain.nodes[0].model = Arc::new(model);
    let entry = |shard, key, [packets, first, last]: [u128; 3], expires_ns| {
        let slots = vec![
            ("packets", Kind::Uint, packets),
            ("first", Kind::Uint, first),
            ("last", Kind::Uint, last),
        ];
        let entry = entry(vec![(Kind::Uint, key)], slots);
        StateEntry {
            shard,
            created_ns: first as u64,
            last_seen_ns: last as u64,
            expires_ns,
            ..entry
        }
    };
    let entries = vec![
        entry(0, 7, [5, 10, 40], Some(50)),
        entry(1, 8, [1, 11, 11], Some(21)),
        entry(1, 7, [3, 12, 30], Some(60)),
    ];
    let lines: Vec<_> = json::state_lines(&chain, entries.clone()).collect();
    let expected = [
        concat!(
            r#"{"created_ns":10,"expires_ns":60,"function":"fw","key":[7],"last_seen_ns":40,"#,
            r#""shard":null,"table":"seen","value":{"first":10,"last":40,"packets":8}}"#,
        ),
        concat!(
            r#"{"created_ns":11,"expires_ns":21,"function":"fw","key":[8],"last_seen_ns":11,"#,
            r#""shard":null,"table":"seen","value":{"first":11,"last":11,"packets":1}}"#,
        ),
    ];
    assert_eq!(lines, expected);
    // Entries of other tables stay apart.
    let others = Chain { workers: 2, ..filter_chain() };
    assert_eq!(json::state_lines(&others, entries).count(), 3);
}

#[test]
fn scalars_are_written_by_what_they_denote() {
    for (kind, word, expected) in [
        (Kind::Ip6, 1, r#""::1""#),
        (Kind::Addr, 1, r#""0.0.0.1""#),
        (Kind::Addr, 1 << 127, r#""8000::""#),
        (Kind::Mac, 0x0200_0000_00ff, r#""02:00:00:00:00:ff""#),
        (Kind::Duration, 1_000, "1000"),
        (Kind::Bitrate, 8, "8"),
        (Kind::Uint, u128::from(u64::MAX), "18446744073709551615"),
        (Kind::Uint, 1 << 64, r#""18446744073709551616""#),
        (Kind::Bool, 0, "false"),
    ] {
        assert_eq!(json::scalar(kind, word).to_string(), expected, "{kind:?}");
    }
}
