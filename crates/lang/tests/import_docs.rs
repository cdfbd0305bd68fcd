//! Tests that the examples of docs/rule-files.md are valid files of their kind.

use braid_lang::import::{
    Family, ImportErrors, Unsupported, classbench, hosts, patterns, prefixes, routes, rules,
    signatures, strings,
};
use std::collections::BTreeMap;
use std::path::Path;

/// The page's code blocks by language.
fn blocks(page: &str) -> BTreeMap<&str, String> {
    let mut blocks: BTreeMap<&str, String> = BTreeMap::new();
    let mut kind = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), kind) {
            (Some(name), None) => kind = Some(name),
            (Some(_), Some(_)) => kind = None,
            (None, Some(name)) => {
                let block = blocks.entry(name).or_default();
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

fn good<T>(result: Result<T, ImportErrors>) -> T {
    result.unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn examples_of_the_page_are_read_as_it_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rule-files.md");
    let page = std::fs::read_to_string(path).expect("docs/rule-files.md");
    let blocks = blocks(&page);

    let set = good(rules(&blocks["rules"]));
    assert_eq!((set.rules.len(), set.default_pass), (5, false));
    assert_eq!(good(rules(&set.to_string())).rules.len(), 5);

    let set = good(classbench(&blocks["classbench"], true, false));
    assert_eq!(set.rules.len(), 3);
    assert_eq!((set.rules[1].tcp_flags, set.rules[2].icmp), ((0x02, 0x12), (0x0800, 0xff00)));

    let table = good(routes(&blocks["routes"]));
    assert_eq!((table.len(), table.lookup4(0x0a00_0001)), (4, Some(2)));

    // A range of 2^24 addresses, one address, and eleven addresses.
    assert_eq!(good(prefixes(&blocks["prefixes"], Family::V4)).len(), (1 << 24) + 1 + 11);

    let set = good(patterns(&blocks["patterns"]));
    let numbers: Vec<u32> = set.patterns().iter().map(|p| p.number).collect();
    assert_eq!(numbers, [1, 7, 8, 4, 10]);
    assert_eq!(set.lowest_match(b"GET /../../etc/passwd"), Some(4));
    assert_eq!(set.lowest_match(b"get /x.PHP"), Some(10));

    let (set, left_out) = signatures(&blocks["signatures"], Unsupported::Refuse);
    let set = good(set);
    let read = set.iter().map(|of| (of.sid, of.rev, of.priority));
    assert_eq!((read.collect::<Vec<_>>(), left_out), (vec![(1, 2, 3), (2, 0, 1)], None));

    let set = good(strings(&blocks["strings"], 16));
    let read: [&[u8]; 4] = [b"# no comment", b"GET", b"two words", b"\xff\x00 any bytes"];
    assert_eq!(set.entries(), read);
    let set = good(hosts(&blocks["hosts"]));
    let known = ["example.org", "x.example.org", "XN--mller-kva.example."];
    assert!(set.len() == 3 && known.iter().all(|name| set.contains(name.as_bytes())));
}
