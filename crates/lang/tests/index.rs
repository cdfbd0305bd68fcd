//! The index of names finds each place of a name: with another name in all of them, programs mean
//! the same.

use std::path::{Path, PathBuf};

use braid_lang::index::{Index, Kind, index};
use braid_lang::source::{SourceMap, Span};
use braid_lang::{Compiled, Loader, Unit, compile};

struct Disk;

impl Loader for Disk {
    fn read(&self, path: &str, relative_to: &str) -> Result<Vec<u8>, String> {
        let folder = Path::new(relative_to).parent().unwrap_or(Path::new(""));
        std::fs::read(folder.join(path)).map_err(|why| why.to_string())
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The functions of the library: name and text.
fn library() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("crates/nfs")).expect("the library").flatten() {
        if let Ok(text) = std::fs::read_to_string(entry.path().join("model.braid")) {
            found.push((entry.file_name().to_string_lossy().into_owned(), text));
        }
    }
    found.sort();
    assert!(found.len() > 20);
    found
}

fn borrowed(library: &[(String, String)]) -> Vec<(&str, &str)> {
    library.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
}

/// Everything about a program, as text.
fn meaning(unit: &Unit) -> String {
    format!("{:?}\n{:?}", unit.models, unit.chains)
}

const NEW: &str = "renamed_zz";

/// Gives each name of a file another one, and compares what the programs mean.
fn check(name: &str, text: &str, library: &[(String, String)]) -> usize {
    let library = borrowed(library);
    let program = |text: &str| -> Compiled { compile((name, text), &library, &Disk) };
    let Some(before) = program(text).unit else { return 0 };
    let (found, sources) = index((name, text), &library, &Disk);
    let file = sources.find(name).expect("the file");
    let mut count = 0;
    for (at, definition) in found.definitions.iter().enumerate() {
        if definition.span.file != file || is_shared(&found, at) {
            continue;
        }
        let changed = renamed(text, &found.places(at), file);
        let after = program(&changed);
        let what = format!("{name}: {:?} {}", definition.kind, definition.name);
        let errors: Vec<String> = after.diagnostics.iter().map(ToString::to_string).collect();
        let unit = after.unit.unwrap_or_else(|| panic!("{what}: {errors:?}\n{changed}"));
        let same = order(&meaning(&unit).replace(NEW, &definition.name));
        assert_eq!(same, order(&meaning(&before).replace(NEW, &definition.name)), "{what}");
        count += 1;
    }
    count
}

/// Whether a name belongs to an event type that the library declares, too. Programs give the type
/// and its fields the library's names.
fn is_shared(found: &Index, at: usize) -> bool {
    let event = &found.definitions[found.definitions[at].owner.unwrap_or(at)];
    let mut of_library = found.definitions.iter().filter(|one| one.is_of_library);
    event.kind == Kind::Event
        && of_library.any(|one| one.kind == Kind::Event && one.name == event.name)
}

/// The words of a text, sorted: maps by name change their order with a name. Numbers are left out,
/// because places behind a longer name move.
fn order(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|part| part.parse::<u64>().is_err())
        .map(ToOwned::to_owned)
        .collect();
    parts.sort();
    parts
}

fn renamed(text: &str, places: &[Span], file: u32) -> String {
    let mut places: Vec<&Span> = places.iter().filter(|place| place.file == file).collect();
    places.sort_by_key(|place| place.start);
    let mut new = text.to_owned();
    for place in places.into_iter().rev() {
        new.replace_range(place.range(), NEW);
    }
    new
}

#[test]
fn library_means_the_same_with_other_names() {
    let library = library();
    let mut count = 0;
    for (name, text) in &library {
        // The place of the file does not matter: it uses no other files.
        count += check(&format!("{name}.braid"), text, &[]);
    }
    assert!(count > 200, "{count}");
}

#[test]
fn chains_mean_the_same_with_other_names() {
    let library = library();
    let mut count = 0;
    for folder in ["examples", "crates/testkit/chains"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("chains").flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == "braid") {
                let text = std::fs::read_to_string(&path).expect("a chain");
                count += check(&path.to_string_lossy(), &text, &library);
            }
        }
    }
    assert!(count > 50, "{count}");
}

const ALL: &str = "\
const LIMIT = 5;
event SEEN extends EVENT { host: ip4 }
event SEEN_OFTEN extends SEEN { often: u32 }
header outer after udp when outer.kind > LIMIT and udp.dport == 5 { kind: u32 }
header inner after outer { len: u16, flag: u16 } length inner.len;
fn double(x: u32) -> u32 = x + x;
action note(what: ip4, times: u32) {
  emit SEEN_OFTEN { host: what, often: times };
}
nf all(most: u32 = LIMIT, ports: pool<port> = 1..9) {
  const OWN = 3;
  port side;
  tag mark: u8;
  state seen: { times: u32 } per ip.src = { times: 0 }, idle 9 s;
  state kept: port per ip.src, lives with seen;
  queue waiting capacity 9;
  fn least(a: u32) -> u32 = min(a, OWN);
  state heard: ip4 global = 0.0.0.0;
  on expire kept { release(ports, kept); }
  on SEEN { heard = event.host; }
  match {
    not has udp => { output side; }
    has inner and u8 at inner + 4 == 0 => { inner.flag = u16(outer.kind); output; }
    seen.times > most => {
      let times = double(seen.times);
      note(ip.src, times);
      mark = 1;
      hold waiting for 1 s else { output; }
    }
    has ip => {
      seen.times += least(1) else output;
      let got = take(ports) else drop;
      kept = got else { release(ports, got); drop; }
      for i in 0..2 { mark = mark + i; }
      output;
    }
    else => output;
  }
}
";

fn of(text: &str) -> (Index, SourceMap) {
    index(("a.braid", text), &[], &Disk)
}

#[test]
fn every_kind_of_name_is_found_with_its_type() {
    let (found, _) = of(ALL);
    let kinds = [
        (Kind::Const, "LIMIT", None, 3),
        (Kind::Header, "outer", None, 4),
        (Kind::HeaderField, "kind", Some("u32"), 3),
        (Kind::Header, "inner", None, 5),
        (Kind::HeaderField, "len", Some("u16"), 2),
        (Kind::Event, "SEEN", None, 3),
        (Kind::EventField, "host", Some("ip4"), 3),
        (Kind::Event, "SEEN_OFTEN", None, 2),
        (Kind::Fn, "double", Some("u32"), 2),
        (Kind::Param, "x", Some("u32"), 3),
        (Kind::Action, "note", None, 2),
        (Kind::Nf, "all", None, 1),
        (Kind::Param, "ports", Some("pool<port>"), 4),
        (Kind::Const, "OWN", None, 2),
        (Kind::Port, "side", None, 2),
        (Kind::Tag, "mark", Some("u8"), 4),
        (Kind::State, "seen", Some("{ times: u32 }"), 5),
        (Kind::State, "kept", Some("port"), 4),
        (Kind::Queue, "waiting", None, 2),
        (Kind::Local, "times", Some("u32"), 2),
        (Kind::Local, "got", Some("port"), 3),
        (Kind::Local, "i", None, 2),
    ];
    for (kind, name, ty, places) in kinds {
        let at = found.definitions.iter().position(|one| one.kind == kind && one.name == name);
        let at = at.unwrap_or_else(|| panic!("{kind:?} {name}"));
        assert_eq!(found.definitions[at].ty.as_deref(), ty, "{name}");
        assert_eq!(found.places(at).len(), places, "{name}");
    }
    let fields: Vec<&str> = found.fields.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(fields, ["udp.dport", "ip.src", "ip.src", "ip.src"]);
}

#[test]
fn names_mean_the_same_in_a_file_with_everything() {
    assert!(compile(("a.braid", ALL), &[], &Disk).unit.is_some(), "{:?}", {
        let all = compile(("a.braid", ALL), &[], &Disk).diagnostics;
        all.iter().map(ToString::to_string).collect::<Vec<_>>()
    });
    assert_eq!(check("a.braid", ALL, &[]), 30);
}

#[test]
fn any_text_has_an_index() {
    for end in 0..ALL.len() {
        let (found, sources) = of(&ALL[..end]);
        for (at, definition) in found.definitions.iter().enumerate() {
            for place in found.places(at) {
                assert_eq!(sources.slice(place), definition.name);
            }
        }
    }
    of(&"nf f() { match { ".repeat(2000));
}
