//! Action profiles of models in the IR's text form.

use braid_compiler::profile::{Profile, Use, derive, derive_direction, details, table};
use braid_ir::text;
use braid_packet::{Field, Header};

/// The profile of a model. Row 0 is `body`, row 1 is `fault`.
fn profile(declarations: &str, programs: &str) -> Profile {
    let text = format!("model m {{ {declarations} row \"body\" row \"fault\" {programs} }}");
    let model = text::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    braid_ir::verify::verify(&model).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    derive(&model)
}

fn packet(declarations: &str, blocks: &str) -> Profile {
    profile(declarations, &format!("packet {{ {blocks} }}"))
}

fn names(fields: &std::collections::BTreeSet<Field>) -> Vec<&str> {
    fields.iter().map(|field| field.info().name).collect()
}

#[test]
fn wire_touches_nothing() {
    let p = packet("", "b0: output onward at row0");
    let expected = Profile {
        function: "m".into(),
        outputs: ["onward".to_owned()].into(),
        ..Profile::default()
    };
    assert_eq!(p, expected);
}

#[test]
fn reads_writes_and_tests_are_listed_by_field_and_header() {
    let p = packet(
        "",
        "b0: v0:bool = has ip
             branch v0, b1, b2
         b1: v1:ip4 = load ip.src
             v2:ip4 = load_entry ip.dst
             store ip.dst, v1
             store ip.src, v2
             jump b2
         b2: output onward at row0",
    );
    assert_eq!(names(&p.reads), ["ip.src", "ip.dst"]);
    assert_eq!(names(&p.writes), ["ip.src", "ip.dst"]);
    assert_eq!(p.tests, [Header::Ip4].into());
    assert_eq!(p.uses(&[Field::IpSrc]), Use::ReadWrite);
    assert_eq!(p.uses(&[Field::L4Sport]), Use::None);
}

#[test]
fn blocks_that_cannot_run_do_not_count() {
    let p = packet(
        "reason \"never\"",
        "b0: output onward at row0
         b1: drop \"never\" at row0",
    );
    assert!(p.drops.is_empty(), "{:?}", p.drops);
}

#[test]
fn drops_by_rows_and_by_faults_are_apart() {
    let p = packet(
        "reason \"denied\"",
        "b0: v0:u16 = const 7
             v1:u16 = load pkt.ingress
             v2:u16 = div v0, v1
             v3:bool = eq v2, v0
             branch v3, b1, b2
         b1: drop \"denied\" at row0
         b2: output onward at row0",
    );
    assert_eq!(p.drops, ["denied".to_owned()].into());
    assert_eq!(p.faults, ["division"].into());
}

#[test]
fn division_by_a_constant_cannot_fault() {
    let divide = |by: u16| {
        let blocks = format!(
            "b0: v0:u16 = load pkt.ingress
                 v1:u16 = const {by}
                 v2:u16 = rem v0, v1
                 output onward at row0"
        );
        packet("", &blocks).faults
    };
    assert!(divide(3).is_empty());
    assert_eq!(divide(0), ["division"].into());
}

#[test]
fn direction_leaves_out_the_rows_of_the_other() {
    let text = "model m { row \"body\" row \"fault\" reason \"in\" packet {
        b0: v0:bool = load pkt.backward
            v1:bool = not v0
            branch v1, b1, b2
        b1: v2:size = load pkt.len
            output onward at row0
        b2: drop \"in\" at row0
    } }";
    let model = text::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let (forward, backward) = (derive_direction(&model, false), derive_direction(&model, true));
    assert_eq!(names(&forward.reads), ["pkt.len", "pkt.backward"]);
    assert!(forward.drops.is_empty() && forward.outputs.len() == 1);
    assert_eq!(names(&backward.reads), ["pkt.backward"]);
    assert!(backward.drops.len() == 1 && backward.outputs.is_empty());
    let both = derive(&model);
    assert_eq!((both.drops.len(), both.outputs.len(), both.reads.len()), (1, 1, 2));
}

#[test]
fn headers_added_and_removed_are_listed() {
    let p = packet(
        "",
        "b0: v0:bool = has vlan
             branch v0, b1, b2
         b1: pop_vlan
             output onward at row0
         b2: v1:bool = has eth
             branch v1, b3, b4
         b3: v2:u12 = const 5
             push_vlan v2
             output onward at row0
         b4: consume at row0",
    );
    assert_eq!((&p.adds, &p.removes), (&[Header::Vlan].into(), &[Header::Vlan].into()));
    assert!(p.adds_or_removes() && p.consumes && p.drops.is_empty());
}

#[test]
fn implicit_keys_are_reads_of_what_they_hold() {
    let p = packet(
        "state seen: bool per flow default (false) idle 5 capacity 9 full refuse tick 1
         state by: u8 per (ip.src) capacity 9 full refuse tick 1
         state total: u32 global default (0) capacity 1 full refuse tick 1",
        "b0: v0:bool = has ip
             branch v0, b1, b3
         b1: v1:bool = exists seen[entry]
             v2:u8 = const 1
             v3:bool = set by[entry], (v2)
             branch v1, b2, b3
         b2: output onward at row0
         b3: v4:u32 = get total[entry]
             v5:u32 = const 1
             v6:u32 = add_sat v4, v5
             v7:bool = set total[entry], (v6)
             output onward at row0",
    );
    let flow = [
        "ip.src",
        "inet.version",
        "inet.src",
        "inet.dst",
        "inet.proto",
        "inet.sport",
        "inet.dport",
    ];
    assert_eq!(names(&p.reads), flow);
    let [seen, by, total] = p.state.as_slice() else { panic!("{:?}", p.state) };
    assert_eq!((&seen.per[..], seen.reads, seen.writes, seen.renews), ("flow", true, false, true));
    assert_eq!((&by.per[..], by.reads, by.writes, by.renews), ("(ip.src)", false, true, false));
    assert_eq!((&total.per[..], total.reads, total.writes), ("global", true, true));
    assert!(p.faults.is_empty(), "{:?}", p.faults);
}

#[test]
fn reading_an_entry_without_default_may_fault() {
    let p = packet(
        "state by: u8 per [u8] capacity 9 full refuse tick 1",
        "b0: v0:u8 = const 1
             v1:u8 = get by[v0]
             output onward at row0",
    );
    assert_eq!(p.faults, ["no_entry"].into());
    assert_eq!(p.state[0].per, "(u8)");
    assert!(p.reads.is_empty(), "an explicit key reads what its values read");
}

/// The faults of a program whose table has no default, under a policy for a full table.
fn faults_of(full: &str, blocks: &str) -> Vec<&'static str> {
    let table = format!("state by: u8 per [u8] capacity 9 full {full} tick 1");
    packet(&table, blocks).faults.into_iter().collect()
}

#[test]
fn entries_that_were_found_or_assigned_can_be_read_without_fault() {
    let found = "b0: v0:u8 = const 1
                     v1:bool = exists by[v0]
                     branch v1, b1, b2
                 b1: v2:u8 = get by[v0]
                     v3:bool = put by[v0], 0, v2
                     output onward at row0
                 b2: v4:bool = set by[v0], (v0)
                     branch v4, b3, b4
                 b3: v5:u8 = get by[v0]
                     output onward at row0
                 b4: output onward at row0";
    assert!(faults_of("refuse", found).is_empty());
    assert!(faults_of("evict_oldest", found).is_empty());
}

#[test]
fn entries_that_may_have_gone_since_may_fault() {
    let gone = |between: &str| {
        format!(
            "b0: v0:u8 = const 1
                 v1:bool = exists by[v0]
                 branch v1, b1, b2
             b1: v2:u8 = const 2
                 {between}
                 v3:u8 = get by[v0]
                 output onward at row0
             b2: output onward at row0"
        )
    };
    assert_eq!(faults_of("refuse", &gone("delete by[v2]")), ["no_entry"]);
    assert_eq!(faults_of("evict_oldest", &gone("v4:bool = set by[v2], (v2)")), ["no_entry"]);
    assert!(faults_of("refuse", &gone("v4:bool = set by[v2], (v2)")).is_empty());
    let on_one_way_only = "b0: v0:u8 = const 1
             v1:bool = exists by[v0]
             branch v1, b1, b2
         b1: jump b2
         b2: v2:u8 = get by[v0]
             output onward at row0";
    assert_eq!(faults_of("refuse", on_one_way_only), ["no_entry"]);
}

#[test]
fn rule_sets_patterns_and_externs_read_what_they_declare() {
    let p = packet(
        "param ok: rules param bad: patterns",
        "b0: v0:bool, v1:u32 = rules ok
             v2:bool, v3:u32 = patterns bad
             v4:u32 = const 9
             v5:u32 = extern random(v4)
             output onward at row0",
    );
    assert!(p.reads.contains(&Field::L4Dport) && p.reads.contains(&Field::TcpFlags));
    assert!(p.reads_payload && !p.writes_payload);
    assert_eq!(p.payload().text(), "R");
    assert_eq!(p.faults, ["truncated"].into());
    assert_eq!(p.stateful_externs, ["random".to_owned()].into());
}

#[test]
fn new_packets_copies_and_ports_are_listed() {
    let p = packet(
        "ports left, right, log",
        "b0: v0:bool = has ip
             branch v0, b1, b2
         b1: v1:u8 = const 11
             create icmp { icmp.type = v1 } payload quote 28 to back
             mirror port log
             output onward, back at row0
         b2: consume at row0",
    );
    assert_eq!(p.creates, ["icmp"].into());
    assert!(p.copies && p.reads_payload);
    assert_eq!(p.outputs, ["back", "log", "onward"].map(String::from).into());
    assert!(p.reads.contains(&Field::IpSrc) && p.writes.is_empty());
}

#[test]
fn timers_and_expiries_count_apart_from_packets() {
    let p = profile(
        "param ports: pool<port, lowest>
         state map: port per (ip.src) idle 5 capacity 9 full refuse tick 1
         state tokens: u32 global default (0) capacity 1 full refuse tick 1",
        "packet { b0: output onward at row0 }
         expire map { b0: v0:port = expiring release ports, v0 return }
         every 10 { b0: v0:u32 = const 7 v1:bool = set tokens[entry], (v0) return }",
    );
    assert!(p.acts_on_time);
    assert_eq!(p.pools, ["ports".to_owned()].into());
    let tokens = &p.state[1];
    assert_eq!((tokens.reads, tokens.writes, tokens.on_time), (false, false, true));
}

/// NFP Table 2's row of a NAT (R/W of all four) and of a firewall (R of all four, drops).
#[test]
fn table_has_the_columns_of_nfp() {
    let nat = packet(
        "",
        "b0: v0:bool = has ip
             branch v0, b1, b3
         b1: v1:bool = has l4
             branch v1, b2, b3
         b2: v2:ip4 = load ip.src
             v3:ip4 = load ip.dst
             v4:port = load l4.sport
             v5:port = load l4.dport
             store ip.src, v3
             store ip.dst, v2
             store l4.sport, v5
             store l4.dport, v4
             output onward at row0
         b3: output onward at row0",
    );
    let firewall = packet(
        "param ok: rules reason \"denied\"",
        "b0: v0:bool, v1:u32 = rules ok
             branch v0, b1, b2
         b1: output onward at row0
         b2: drop \"denied\" at row0",
    );
    let text = table(&[nat, firewall]);
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
    let head = ["NF", "SIP", "DIP", "SPORT", "DPORT", "Payload", "Add/Rm", "Drop"];
    assert_eq!(lines[0][..8], head);
    assert_eq!(lines[1], ["m", "R/W", "R/W", "R/W", "R/W"]);
    assert_eq!(lines[2], ["m", "R", "R", "R", "R", "T"]);
    let drop_column = text.lines().next().unwrap().find("Drop").unwrap();
    assert_eq!(text.lines().nth(2).unwrap().find('T'), Some(drop_column));
}

#[test]
fn details_leave_out_what_is_empty() {
    let p = packet("", "b0: output onward at row0");
    assert_eq!(details(&p), "m\n  outputs              onward\n");
}

#[test]
fn profile_serialises_with_names() {
    let p = packet(
        "reason \"no\"",
        "b0: v0:bool = has ip
             branch v0, b1, b2
         b1: v1:u8 = load ip.ttl
             store ip.ttl, v1
             output onward at row0
         b2: drop \"no\" at row0",
    );
    let value = serde_json::to_value(&p).unwrap();
    assert_eq!(value["reads"], serde_json::json!(["ip.ttl"]));
    assert_eq!(value["writes"], serde_json::json!(["ip.ttl"]));
    assert_eq!(value["tests"], serde_json::json!(["ip"]));
    assert_eq!(value["drops"], serde_json::json!(["no"]));
    assert_eq!(value["copies"], serde_json::json!(false));
}
