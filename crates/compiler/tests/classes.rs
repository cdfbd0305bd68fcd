//! Traffic classes as people see them.

use braid_compiler::classes::{Classes, Detail, classes, svg, text};
use braid_ir::chain::Chain;
use braid_testkit::harness::{Form, compile};
use std::collections::BTreeMap;

/// Two functions that count TTL down behind a filter.
const SOURCE: &str = "
nf filter() {
  match {
    ip.dst in 10.0.0.0/8 and udp.dport == 53 => output;
    else => drop \"filtered\";
  }
}
nf hop() {
  match {
    has ip and ip.ttl <= 1 => drop \"expired\";
    has ip => { ip.ttl -= 1; output; }
    else => drop \"not ip\";
  }
}
chain two {
  interface near;
  interface far;
  a = filter();
  b = hop();
  c = hop();
  path near <-> a <-> b <-> c <-> far;
}";

fn two() -> (Chain, Classes) {
    let chain = compile(SOURCE, &BTreeMap::new(), Form::AsWritten).unwrap();
    let found = classes(&chain, Detail { ways: 100, programs: true }).unwrap();
    (chain, found)
}

#[test]
fn class_that_passes_writes_each_field_once() {
    let (_, found) = two();
    let programs = &found.entries[0].programs;
    let udp = programs.iter().find(|program| program.present.contains(&"udp")).unwrap();
    let pass = udp.ways.iter().find(|way| way.end == "leaves by far").unwrap();
    assert_eq!(pass.effects, ["ip.ttl = (ip.ttl - 2)"]);
    let dst = "ip.dst in { 10.0.0.0..10.255.255.255 }".to_owned();
    assert!(pass.conditions.contains(&dst), "{:?}", pass.conditions);
    assert!(pass.conditions.contains(&"l4.dport == 53".to_owned()), "{:?}", pass.conditions);
    assert!(pass.conditions.contains(&"ip.ttl >= 3".to_owned()), "{:?}", pass.conditions);
    assert!(udp.after.total() < udp.before.total());
    assert_eq!((udp.before.parses, udp.after.parses), (3, 1));
    assert_eq!((udp.before.writes, udp.after.writes), (2, 1));
}

#[test]
fn class_that_is_dropped_is_cut_before_any_write() {
    let (_, found) = two();
    let ways = found.entries[0].programs.iter().flat_map(|program| &program.ways);
    let late: Vec<_> = ways.filter(|way| way.end.starts_with("c drops it")).collect();
    assert!(!late.is_empty(), "packets of TTL 2 end at the second hop");
    for way in late {
        assert!(way.effects.is_empty(), "{way:?}");
        assert!(way.conditions.contains(&"ip.ttl == 2".to_owned()), "{way:?}");
    }
}

#[test]
fn classes_hold_every_possible_set_of_headers_once() {
    let (_, found) = two();
    for entry in &found.entries {
        let all: usize = entry.programs.iter().map(|program| program.shapes).sum();
        assert_eq!(all, braid_packet::presences().len(), "{}", entry.interface);
    }
}

#[test]
fn text_and_picture_name_what_happens() {
    let (chain, found) = two();
    let text = text(&found);

    assert!(text.starts_with("chain two: a, b, c\n"), "{text}");
    assert!(text.contains("a drops it at row 2: filtered"), "{text}");
    let picture = svg(&chain, &found);
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert!(picture.contains("leaves by far"));
    assert_eq!(picture.matches("<g>").count(), picture.matches("</g>").count());
}
