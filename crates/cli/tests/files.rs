//! Tests the commands on `.braid` files: `braid check`, `fmt`, `actions`, `ir`.

mod common;

use common::{Folder, LIMIT, braid, command, ended};
use serde_json::json;

#[test]
fn check_says_what_is_in_a_good_file() {
    let folder = Folder::edge();
    let text = folder.braid(&["check", "chain.braid"]).code(0);
    assert_eq!(text.out, "chain.braid: 1 function, 1 chain; 0 errors, 0 warnings\n");
    let value = folder.braid(&["check", "chain.braid", "--json"]).code(0).json();
    let expected = json!({
        "ok": true, "errors": 0, "warnings": 0, "functions": ["limit"], "chains": ["edge"],
        "diagnostics": [],
    });
    assert_eq!(value, expected);
}

#[test]
fn check_reports_all_errors_at_once_and_ends_with_1() {
    let folder = Folder::new();
    let bad = "nf f() { output; }\nchain c { x = f(); path in <-> y <-> out; }\nchain d { }\n";
    folder.write("bad.braid", bad);
    let text = folder.braid(&["check", "bad.braid"]).code(1);
    let text = text.warns("E0502").warns("bad.braid:2:32").warns("E0517");
    assert!(text.out.ends_with("2 errors, 0 warnings\n"), "{}", text.out);
    let value = folder.braid(&["check", "bad.braid", "--json"]).code(1).json();
    assert_eq!((&value["ok"], &value["errors"]), (&json!(false), &json!(2)));
    let first = &value["diagnostics"][0];
    assert_eq!((&first["code"], &first["severity"]), (&json!("E0502"), &json!("error")));
    assert_eq!(first["labels"][0]["line"], 2);
}

#[test]
fn check_looks_into_the_files_that_chains_name() {
    let folder = Folder::edge();
    folder.write("ok.rules", "pass proto udp\npas\n");
    folder.braid(&["check", "chain.braid"]).code(1).warns("ok.rules").warns("pas");
    std::fs::remove_file(folder.path("ok.rules")).unwrap();
    folder.braid(&["check", "chain.braid"]).code(1).warns("ok.rules");
}

#[test]
fn keys_are_read_from_files_of_their_owner_only_and_are_not_shown() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let digits = "00112233445566778899aabbccddeeff01020304";
    let source = "nf hide(k: keys) { match {
                    has udp => { encrypt(k, 7, 1, 0) else drop; output; } else => output; } }
                  chain c { path in <-> hide(k: keys(\"k\")) <-> out; }";
    folder.write("chain.braid", source).write("k", &format!("7 aes-128-gcm {digits}\n"));
    let set = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.path("k"), mode).unwrap();
    };
    for mode in [0o644, 0o640, 0o602, 0o601] {
        set(mode);
        let text = folder.braid(&["check", "chain.braid"]).code(1);
        text.warns("E0601").warns(&format!("its mode {mode:o}")).warns("chmod 600");
    }
    set(0o600);
    folder.braid(&["check", "chain.braid"]).code(0);
    for command in [&["ir", "chain.braid"][..], &["ir", "chain.braid", "--shape", "eth,ip,udp"]] {
        let shown = folder.braid(command).code(0).out;
        assert!(shown.contains("key k[") && !shown.contains("0011"), "{shown}");
    }
    // A wrong line is not shown either.
    folder.write("k", &format!("7 aes-256-gcm {digits}\n"));
    let text = folder.braid(&["check", "chain.braid"]).code(1).warns("k:1:1").warns("36 bytes");
    assert!(!text.err.contains("0011"), "{}", text.err);
}

#[test]
fn check_reads_control_files() {
    let folder = Folder::edge();
    folder.write("good", "+1 set f.most 7 B\n").write("bad", "+1 set f.most \"x\"\n");
    folder.braid(&["check", "chain.braid", "--control", "good"]).code(0);
    folder.braid(&["check", "chain.braid", "--control", "bad"]).code(1).warns("bad:1:15");
    folder.braid(&["check", "chain.braid", "--control", "none"]).code(3).warns("none");
}

#[test]
fn file_that_is_not_text_is_an_error_at_its_first_wrong_byte() {
    let folder = Folder::new();
    std::fs::write(folder.path("bad.braid"), b"nf f() {\n  \xff output; }\n").unwrap();
    let text = folder.braid(&["check", "bad.braid"]).code(1);
    text.warns("E0120").warns("bad.braid:2:3");
    folder.braid(&["ir", "bad.braid"]).code(3).warns("E0120");
}

#[test]
fn check_of_a_missing_file_ends_with_3() {
    let ended = braid(&["check", "/nonexistent.braid", "--json"]).code(3);
    assert!(ended.json()["error"].as_str().unwrap().contains("/nonexistent.braid"));
}

#[test]
fn fmt_formats_in_place_and_only_once() {
    let folder = Folder::new();
    folder.write("a.braid", "nf   f( ){output;}\n");
    folder.braid(&["fmt", "--check", "a.braid"]).code(1).says("a.braid is not formatted");
    assert_eq!(folder.read("a.braid"), "nf   f( ){output;}\n", "--check changes nothing");
    let first = folder.braid(&["fmt", "a.braid", "--json"]).code(0).json();
    assert_eq!(first, json!({ "files": [{ "file": "a.braid", "changed": true }] }));
    let formatted = folder.read("a.braid");
    assert_ne!(formatted, "nf   f( ){output;}\n");
    let again = folder.braid(&["fmt", "a.braid", "--json"]).code(0).json();
    assert_eq!(again["files"][0]["changed"], false);
    assert_eq!(folder.read("a.braid"), formatted);
    folder.braid(&["fmt", "--check", "a.braid"]).code(0);
}

#[test]
fn fmt_leaves_files_with_errors_as_they_are() {
    let folder = Folder::new();
    folder.write("good.braid", "nf   f() {output;}").write("bad.braid", "nf f( { output; }");
    folder.braid(&["fmt", "good.braid", "bad.braid"]).code(3).warns("bad.braid:1:");
    assert_eq!(folder.read("good.braid"), "nf   f() {output;}");
    assert_eq!(folder.read("bad.braid"), "nf f( { output; }");
}

#[test]
fn fmt_reads_standard_input() {
    let folder = Folder::new();
    folder.write("a.braid", "nf   f( ){output;}\n");
    let input = std::fs::File::open(folder.path("a.braid")).unwrap();
    let output = command().args(["fmt", "-"]).stdin(input).output().unwrap();
    let piped = ended(&output).code(0);
    folder.braid(&["fmt", "a.braid"]).code(0);
    assert_eq!(piped.out, folder.read("a.braid"));
}

#[test]
fn actions_show_a_profile_for_each_function() {
    let folder = Folder::edge();
    folder
        .braid(&["actions", "chain.braid"])
        .code(0)
        .says("NF     SIP  DIP  SPORT  DPORT  Payload  Add/Rm  Drop  Create  Copy  State")
        .says(
            "limit  R    R    R      R                       T                   seen/(ip.src) R/W",
        );
    let value = folder.braid(&["actions", "chain.braid", "--json"]).code(0).json();
    let profile = &value["functions"][0];
    assert_eq!(profile["function"], "limit");
    assert_eq!(profile["drops"], json!(["seen full", "too long"]));
    assert_eq!(profile["writes"], json!([]));
    assert_eq!(profile["state"][0]["per"], "(ip.src)");
}

#[test]
fn actions_without_a_file_show_the_library() {
    let value = braid(&["actions", "--json"]).code(0).json();
    let names: Vec<&str> = value["functions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["function"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"napt") && names.contains(&"router"), "{names:?}");
    let napt = value["functions"].as_array().unwrap().iter().find(|p| p["function"] == "napt");
    assert!(napt.unwrap()["writes"].as_array().unwrap().contains(&json!("ip.src")));
}

#[test]
fn ir_prints_what_the_text_form_reads_back() {
    let folder = Folder::new();
    folder.write("f.braid", &format!("{LIMIT}\nnf g() {{ output; }}\n"));
    let value = folder.braid(&["ir", "f.braid", "--json"]).code(0).json();
    for function in value["functions"].as_array().unwrap() {
        let text = function["ir"].as_str().unwrap();
        let model = braid_ir::text::parse(text).unwrap();
        assert_eq!(model.name, function["name"].as_str().unwrap());
    }
    folder.braid(&["ir", "f.braid", "--function", "g"]).code(0).says("model g {");
    folder.braid(&["ir", "f.braid", "--function", "h"]).code(2).warns("no function `h`");
}
