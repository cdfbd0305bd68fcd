//! Hostile template files: each gets a clear error, no panic, no endless work.

use crate::common::{Folder, all, udp};
use braid_traffic::Error;
use braid_traffic::template::{Options, Template};
use proptest::prelude::*;

const GOOD: &str = "\
- duration: 0.01
  generator: {distribution: seq, clients_start: 16.0.0.1, clients_end: 16.0.0.9,
    servers_start: 48.0.0.1, servers_end: 48.0.0.9}
  cap_ipg: false
  cap_info:
    - {name: x.pcap, cps: 100, ipg: 10, rtt: 10, w: 1, limit: 5}
";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.capture("x.pcap", &[udp(0, (1, 1), (2, 2), b""), udp(1, (2, 2), (1, 1), b"")]);
    folder
}

fn open(folder: &Folder, text: &[u8]) -> Result<u64, Error> {
    let path = folder.path("t.yaml");
    std::fs::write(&path, text).unwrap();
    let options =
        Options { packets: Some(1_000), duration_ns: Some(1_000_000), ..Options::default() };
    let (mut traffic, _) = Template::open(&path, &options)?;
    Ok(all(&mut traffic)?.1.packets)
}

#[track_caller]
fn refused(text: &[u8], expected: &str) {
    let error = open(&folder(), text).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn file_that_is_the_base_of_these_tests_is_good() {
    assert!(open(&folder(), GOOD.as_bytes()).is_ok());
}

#[test]
fn deep_nesting_is_refused() {
    refused("[".repeat(200).as_bytes(), "line 1: nested deeper than 32 levels");
    refused("[".repeat(500_000).as_bytes(), "line 1: no YAML: recursion limit exceeded");
    refused("- ".repeat(500_000).as_bytes(), "nested deeper than 32 levels");
    let value = GOOD.replace("cps: 100", &format!("cps: {}1{}", "[".repeat(40), "]".repeat(40)));
    refused(value.as_bytes(), "line 6: nested deeper than 32 levels");
}

#[test]
fn aliases_that_would_grow_are_refused() {
    let text = "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n";
    refused(text.as_bytes(), "line 2: aliases (`*name`) are not supported");
}

#[test]
fn huge_files_and_other_files_are_refused() {
    refused(&vec![b'#'; 2 << 20], "at most 1048576 are read");
    refused(&[0xff, 0xfe, 0x00], "no UTF-8 text");
    refused(b"", "the file is empty");
    let error = Template::open(&folder().path("none.yaml"), &Options::default()).err().unwrap();
    assert!(error.to_string().contains("none.yaml: cannot be read"), "{error}");
    let error = Template::open(folder().path("x").parent().unwrap(), &Options::default());
    assert!(error.is_err());
}

#[test]
fn huge_numbers_are_refused() {
    for (from, to) in [
        ("cps: 100", "cps: 1e308"),
        ("cps: 100", "cps: 0xffffffffffffffffffff"),
        ("ipg: 10", "ipg: 1e300"),
        ("w: 1", "w: 18446744073709551616"),
        ("limit: 5", "limit: 1048577"),
        ("duration: 0.01", "duration: 1e20"),
        ("clients_end: 16.0.0.9", "clients_end: 255.255.255.255"),
    ] {
        let error = open(&folder(), GOOD.replace(from, to).as_bytes()).unwrap_err().to_string();
        let key = from.split(':').next().unwrap();
        assert!(error.starts_with("line ") && error.contains(key), "{to}: {error}");
    }
}

#[test]
fn limits_of_many_templates_together_are_refused() {
    let line = "    - {name: x.pcap, cps: 100, ipg: 10, rtt: 10, w: 1, limit: 1048576}\n";
    refused(format!("{GOOD}{line}").as_bytes(), "all `limit`s together may be at most 1048576");
}

#[test]
fn numbers_at_their_limits_are_taken() {
    let text = GOOD.replace("ipg: 10", "ipg: 86400000000").replace("w: 1", "w: 1000000");
    let text = text.replace("servers_start: 48.0.0.1", "servers_start: 0.0.0.0");
    let text = text.replace("servers_end: 48.0.0.9", "servers_end: 255.255.255.255");
    assert!(open(&folder(), text.as_bytes()).is_ok());
}

#[test]
fn names_that_leave_the_folder_or_are_no_names_find_nothing() {
    for name in ["../../../../none.pcap", "/none.pcap", "\"\\0\"", "\"a\\nb\"", "..", "."] {
        let error = open(&folder(), GOOD.replace("x.pcap", name).as_bytes()).unwrap_err();
        assert!(matches!(error, Error::Missing(_)), "{name}: {error}");
    }
    let long = "a/".repeat(10_000);
    let error = open(&folder(), GOOD.replace("x.pcap", &long).as_bytes()).unwrap_err();
    assert!(matches!(error, Error::Missing(_)), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(300)))]

    #[test]
    fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = open(&folder(), &bytes);
    }

    #[test]
    fn any_damage_to_a_good_file_is_taken_or_refused(
        damage in proptest::collection::vec(
            (any::<prop::sample::Index>(), "[-\\[\\]{}:,&*!|>'\"#%@? \n\t0-9a-z.]{0,4}"), 1..6,
        ),
    ) {
        let mut text: Vec<char> = GOOD.chars().collect();
        for (at, with) in damage {
            let at = at.index(text.len());
            text.splice(at..(at + 1).min(text.len()), with.chars());
            if text.is_empty() {
                break;
            }
        }
        let text: String = text.into_iter().collect();
        let _ = open(&folder(), text.as_bytes());
    }
}
