//! Traffic classes as they are printed for people.

use braid_compiler::classes::{Classes, Detail, Program, classes, svg, text};
use braid_ir::chain::Chain;
use braid_testkit::harness::{Form, compile};
use std::collections::BTreeMap;
use std::path::Path;

/// A filter, and two functions behind it that decrement TTL.
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
    let found = classes(&chain, Detail { paths: 100, programs: true }).unwrap();
    (chain, found)
}

#[test]
fn class_that_passes_writes_each_field_once() {
    let (_, found) = two();
    let programs = &found.entries[0].programs;
    let udp = programs.iter().find(|program| program.present.contains(&"udp")).unwrap();
    let pass = udp.paths.iter().find(|path| path.end == "leaves by far").unwrap();
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
    let paths = found.entries[0].programs.iter().flat_map(|program| &program.paths);
    let late: Vec<_> = paths.filter(|path| path.end.starts_with("c drops it")).collect();
    assert!(!late.is_empty(), "packets of TTL 2 end at the second hop");
    for path in late {
        assert!(path.effects.is_empty(), "{path:?}");
        assert!(path.conditions.contains(&"ip.ttl == 2".to_owned()), "{path:?}");
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
fn tag_that_comes_and_goes_is_not_there_and_said_to_be_saved() {
    let source = "
    nf tag() { match { has eth => { push vlan(9); output; } else => output; } }
    nf untag() { match { vlan.id == 9 => { pop vlan; output; } else => drop \"no tag\"; } }
    chain c {
      interface a;
      interface b;
      one = tag();
      two = untag();
      path a <-> one <-> two <-> b;
    }";
    let chain = compile(source, &BTreeMap::new(), Form::AsWritten).unwrap();
    let found = classes(&chain, Detail { paths: 10, programs: true }).unwrap();
    let plain = |program: &&Program| program.absent.contains(&"vlan") && program.visits == 2;
    let eth = found.entries[0].programs.iter().filter(plain);
    let eth: Vec<_> = eth.filter(|program| program.present.contains(&"eth")).collect();
    assert_eq!(eth.len(), 1);
    assert_eq!((eth[0].saved.cancelled, eth[0].after.others, eth[0].after.parses), (1, 0, 1));
    assert_eq!((eth[0].before.others, eth[0].blocks), (2, 1));
    assert!(text(&found).contains(", 1 VLAN tags left as they are"));
}

/// The program on the page is the one that the chain on the page compiles to.
#[test]
fn example_of_the_page_is_what_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/synthesis.md")).unwrap();
    let block = |start: &str| page.split(start).nth(1).unwrap().split("```").next().unwrap();
    let chain = compile(block("```braid\n"), &BTreeMap::new(), Form::AsWritten).unwrap();
    let found = classes(&chain, Detail { paths: 1, programs: true }).unwrap();
    let programs = found.entries[0].programs.iter().filter_map(|program| program.text.as_deref());
    let printed: String = programs.collect();
    let shown = block("```text\n");
    assert!(shown.contains("  …\n"));
    for part in shown.split("  …\n") {
        assert!(printed.contains(part), "{part}\nis not in\n{printed}");
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
