//! Tests `braid ir`: the programs of chains after each pass.

mod common;

use common::{Folder, braid};
use serde_json::Value;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write(
        "c.braid",
        "nf hop() { match { has ip and ip.ttl <= 1 => drop \"old\"; has ip => { ip.ttl -= 1; output; } else => output; } }\n\
         chain c { interface lan; interface wan; a = hop(); path lan <-> a <-> wan; }\n",
    );
    folder
}

#[test]
fn program_is_printed_as_it_is_after_each_pass_that_is_listed() {
    let folder = folder();
    let listed = braid(&["ir", "--passes", "--json"]).code(0).json();
    let passes = listed["passes"].as_array().expect("a list");
    assert!(passes.len() >= 4);
    let mut last = Value::Null;
    for pass in passes {
        assert_ne!(pass["reason"], "");
        let name = pass["name"].as_str().expect("a name");
        let args = ["ir", "c.braid", "--shape", "eth,ip,udp", "--after", name, "--json"];
        let found = folder.braid(&args).code(0).json();
        assert_eq!(found["after"], name);
        last = found["program"].clone();
    }
    let whole = folder.braid(&["ir", "c.braid", "--shape", "eth,ip,udp"]).code(0).out;
    assert_eq!(last, whole.as_str());
    assert!(whole.starts_with("at a forward for ip, 1 functions\nb0:\n"), "{whole}");
    let back = folder.braid(&["ir", "c.braid", "--shape", "ip", "--from", "wan"]).code(0).out;
    assert!(back.starts_with("at a backward for ip"), "{back}");
}

#[test]
fn names_that_do_not_exist_are_refused_with_existing_ones() {
    let folder = folder();
    let wrong = |args: &[&str], text: &str| {
        let all: Vec<&str> = ["ir", "c.braid"].iter().chain(args).copied().collect();
        folder.braid(&all).code(2).warns(text);
    };
    wrong(&["--shape", "ipx"], "there is no header `ipx`");
    wrong(&["--shape", "ip", "--after", "nothing"], "there is no pass `nothing`");
    wrong(&["--shape", "ip", "--from", "moon"], "there is no interface `moon`");
    wrong(&["--after", "place"], "--shape");
}

#[test]
fn tcp_packets_have_no_program_through_a_tcp_stack() {
    let folder = Folder::new();
    folder.write(
        "c.braid",
        "stream nf log() { on data { forward; } }
         nf plain() { match { else => output; } }
         chain c { interface lan; interface wan; a = log(); b = plain(); path lan <-> a <-> b <-> wan; }\n",
    );
    let of = |shape: &str, from: &str| {
        folder.braid(&["ir", "c.braid", "--shape", shape, "--from", from])
    };
    of("eth,ip,tcp", "lan").code(3).warns("have no program");
    let other = of("eth,ip,udp", "lan").code(0);
    assert!(other.out.contains("leave wan"), "{}", other.out);
    let back = of("eth,ip,tcp", "wan").code(0);
    assert!(back.out.contains("go a backward"), "{}", back.out);
    let classes = folder.braid(&["classes", "c.braid"]).code(0);
    assert!(classes.out.contains("TCP packets go to the TCP stack of a first."), "{}", classes.out);
}
