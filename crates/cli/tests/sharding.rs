//! Tests of the sharding analysis. The table in `docs/sharding.md` is derived anew. Generated
//! traffic runs through the reference engine with one shard for each worker; the test searches for
//! an entry that packets of two workers use.

use braid_compiler::sharding::{Class, Sharding, Verdict, sharding};
use braid_ir::chain::Chain;
use braid_lang::{Loader, compile};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The functions of the library with arguments for a chain of one function.
const ARGUMENTS: [(&str, &str); 17] = [
    ("hash_load_balancer", "vip: 192.0.2.1, servers: [192.0.2.2, 192.0.2.3]"),
    ("heavy_hitter", ""),
    ("ids", "signatures: patterns(\"web.patterns\"), scope: rules(\"all.rules\")"),
    ("ipfilter", "filter: rules(\"all.rules\")"),
    ("l3_load_balancer", "vip: 192.0.2.1, servers: [192.0.2.2, 192.0.2.3]"),
    ("l4_load_balancer", "vip: 192.0.2.1, port: 80, servers: [{ addr: 192.0.2.2, port: 80 }]"),
    ("maglev", "vip: 192.0.2.1, backends: [192.0.2.2, 192.0.2.3]"),
    ("monitor", ""),
    ("napt", "public: 203.0.113.1"),
    ("rate_limiter", "rate: 1 Gbit/s"),
    (
        "router",
        "table: routes(\"routes\"), hops: [{ mac: 02:00:00:00:00:01, \
         neighbour: 02:00:00:00:00:02, left: false }], left: 10.0.0.1, right: 198.51.100.1",
    ),
    ("source_rate_limiter", "rate: 1 Gbit/s"),
    ("stateful_firewall", "ok: rules(\"all.rules\")"),
    ("stateless_firewall", "allow: rules(\"all.rules\")"),
    ("static_nat", "inside: 10.0.0.0, outside: 203.0.113.0, mask: 255.255.255.0"),
    ("syn_flood", ""),
    ("vlan_gateway", "vlan: 7"),
];

/// The files that the chains name.
struct Files;

impl Loader for Files {
    fn read(&self, path: &str, _relative_to: &str) -> Result<Vec<u8>, String> {
        let text = match path.rsplit_once('.') {
            Some((_, "rules")) => "default pass\n",
            Some((_, "patterns")) => "1 \"attack\"\n",
            _ => "0.0.0.0/0 0\n",
        };
        Ok(text.into())
    }
}

fn chains(text: &str) -> Vec<Chain> {
    let library: Vec<_> = braid_nfs::all().iter().map(|nf| (nf.name, nf.source)).collect();
    let compiled = compile(("chain.braid", text), &library, &Files);
    let found: Vec<String> =
        compiled.diagnostics.iter().map(|found| format!("{found}\n")).collect();
    compiled.unit.unwrap_or_else(|| panic!("{}\n{text}", found.concat())).chains
}

fn derive(text: &str) -> (Chain, Sharding) {
    let chain = chains(text).remove(0);
    let found = sharding(&chain).expect("a chain with a graph");
    (chain, found)
}

fn alone(name: &str, arguments: &str) -> (Chain, Sharding) {
    derive(&format!(
        "chain alone {{ interface left; interface right; f = {name}({arguments}); \
         path left <-> f <-> right; }}"
    ))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The steering and the classes of the tables, as cells of a row.
fn cells(found: &Sharding) -> String {
    let verdict = match found.verdict {
        Verdict::Stateless => "no state",
        Verdict::Split => "divided",
        Verdict::OneWorker => "one worker",
    };
    let rules: Vec<String> =
        found.entries.iter().map(|rule| format!("{}: {}", rule.interface, rule.by)).collect();
    let rules = match found.verdict {
        Verdict::Split => rules.join("; "),
        Verdict::Stateless => "any".to_owned(),
        Verdict::OneWorker => found.why_not.join("; "),
    };
    let table = |class: Class| {
        let of = found.tables.iter().filter(|table| table.class == class);
        let names: Vec<&str> = of.map(|table| &*table.table).collect();
        let mut names: Vec<&str> = names.into_iter().collect();
        names.dedup();
        (!names.is_empty()).then(|| format!("{}: {}", class.word(), names.join(", ")))
    };
    let classes = [
        Class::Local,
        Class::Replicated,
        Class::Summed,
        Class::Turns,
        Class::Portions,
        Class::Owner,
    ];
    let classes: Vec<String> = classes.into_iter().filter_map(table).collect();
    format!("{verdict} | {rules} | {} |", classes.join("; "))
}

#[test]
fn the_table_of_the_documents_is_true() {
    let mut text = "\n| chain | verdict | steering | tables |\n|---|---|---|---|\n".to_owned();
    for (name, arguments) in ARGUMENTS {
        let _ = writeln!(text, "| {name} | {}", cells(&alone(name, arguments).1));
    }
    for name in ["branch", "datacentre", "demo", "edge", "nfd", "pass_through", "router"] {
        let file = root().join("examples").join(name).with_extension("braid");
        let source = std::fs::read_to_string(file).expect("an example");
        let _ = writeln!(text, "| examples/{name} | {}", cells(&derive(&source).1));
    }
    let path = root().join("docs/sharding.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once("writes it -->\n").expect("the start of the table");
    let (old, after) = rest.split_once("\n<!-- end of the table").expect("the end of the table");
    if std::env::var_os("BLESS").is_some() {
        let page = format!("{before}writes it -->\n{text}\n<!-- end of the table{after}");
        std::fs::write(&path, page).expect("the page can be written");
    } else {
        assert_eq!(old, text, "BLESS=1 rewrites docs/sharding.md");
    }
}

#[test]
fn the_table_has_the_whole_library() {
    let names: Vec<_> = ARGUMENTS.iter().map(|(name, _)| *name).collect();
    let library: Vec<_> = braid_nfs::all().iter().map(|nf| nf.name).collect();
    assert_eq!(names, library);
}
