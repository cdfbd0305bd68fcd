//! Tests `braid test` and `braid new`, in folders outside of the repository.

mod common;

use common::{Folder, S, request};
use serde_json::json;

/// A folder with a new function `guard`.
fn new() -> Folder {
    let folder = Folder::new();
    folder.braid(&["new", "nf", "guard"]).code(0).says("`braid test guard`");
    folder
}

/// A case of `guard` that expects something else than happens.
const WRONG: &str = "\
# Wrong.
0s lan: udp 10.0.0.1:1 > 8.8.8.8:53 \"x\"
    wan: udp 10.0.0.1:1 > 8.8.8.8:53 ttl=63 \"x\"
";

fn add(folder: &Folder, name: &str, text: &str) {
    let case = folder.path(&format!("guard/cases/{name}"));
    std::fs::create_dir(&case).unwrap();
    std::fs::write(case.join("case.txt"), text).unwrap();
}

#[test]
fn new_function_holds_at_once_and_takes_all_rows() {
    let folder = new();
    let text = folder.braid(&["test", "guard", "--all-rows"]).code(0);
    assert!(text.out.ends_with("3 cases: 3 hold; they take 3 of 3 rows\n"), "{}", text.out);
    folder.braid(&["test", "guard", "--engine", "all"]).code(0).says("15 cases: 15 hold");
    let files = ["guard/model.braid", "guard/chain.braid"];
    folder.braid(&["fmt", "--check", files[0], files[1]]).code(0);
    folder.braid(&["check", files[1]]).code(0);
}

#[test]
fn bad_names_and_folders_that_exist_are_refused() {
    let folder = new();
    for name in ["guard", "match", "napt", "7up", "a/b", "..", "a-b", "", "ünder"] {
        folder.braid(&["new", "nf", name]).code(2);
    }
    folder.braid(&["new", "nf", "match"]).code(2).warns("cannot be a function's name");
    folder.braid(&["new", "nf", "guard"]).code(2).warns("guard exists already");
    let value = folder.braid(&["new", "nf", "other", "--json"]).code(0).json();
    assert_eq!(value["files"][1], "other/model.braid");
}

#[test]
fn cases_are_found_at_every_depth_and_by_their_paths() {
    let folder = new();
    for place in [".", "guard", "guard/cases", "guard/cases/idle_flows_end"] {
        folder.braid(&["test", place, "--case", "idle_flows_end"]).code(0).says("1 case: 1 hold");
    }
    folder.braid(&["test", "guard", "--case", "none"]).code(2).warns("`none`");
    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.braid(&["test", "empty"]).code(3).warns("no folder has a case.txt");
    folder.braid(&["test", "missing"]).code(3).warns("missing");
    folder.braid(&["test", "guard", "--engine", "warp"]).code(2).warns("no engine `warp`");
}

#[test]
fn difference_shows_both_outcomes_and_the_fields() {
    let folder = new();
    add(&folder, "wrong", WRONG);
    let text = folder.braid(&["test", "guard"]).code(1);
    let text =
        text.says("DIFFERS  guard/cases/wrong\n").says("guard/cases/wrong/case.txt:2: 0s lan: udp");
    let text = text.says("    - wan: udp 10.0.0.1:1 > 8.8.8.8:53 ttl=63 \"x\"\n");
    let text = text.says("    + wan: udp 10.0.0.1:1 > 8.8.8.8:53 \"x\"\n").says("ip.ttl: 63 -> 64");
    text.says("4 cases: 3 hold, 1 differ; they take 3 of 3 rows\n");
    let value = folder.braid(&["test", "guard", "--json"]).code(1).json();
    assert_eq!(value["ok"], false);
    let wrong = value["cases"].as_array().unwrap().iter().find(|case| case["result"] == "differs");
    let found = &wrong.unwrap()["differences"][0];
    assert_eq!((&found["line"], &found["outcomes"][0]["what"]), (&json!(2), &json!("missing")));
    assert_eq!(value["rows"][0]["function"], "guard");
}

#[test]
fn bless_writes_what_happens_and_keeps_the_rest() {
    let folder = new();
    add(&folder, "wrong", &format!("{WRONG}# Behind.\nstate guard\n"));
    folder.braid(&["test", "guard", "--bless"]).code(3).warns("1 case cannot be run");
    folder.write("guard/cases/wrong/case.txt", &format!("{WRONG}# Behind.\n"));
    folder.braid(&["test", "guard", "--bless"]).code(0).says("blessed  guard/cases/wrong");
    let text = WRONG.replace(" ttl=63", "");
    assert_eq!(folder.read("guard/cases/wrong/case.txt"), format!("{text}# Behind.\n"));
    folder.braid(&["test", "guard"]).code(0).says("4 cases: 4 hold");
}

#[test]
fn rows_that_no_case_takes_are_listed() {
    let folder = new();
    std::fs::remove_dir_all(folder.path("guard/cases/strangers_are_dropped")).unwrap();
    std::fs::remove_dir_all(folder.path("guard/cases/idle_flows_end")).unwrap();
    let text = folder.braid(&["test", "guard"]).code(0);
    text.says("no case takes\n  guard row 3, line 7: else\n").says("they take 2 of 3 rows");
    folder.braid(&["test", "guard", "--all-rows"]).code(1).warns("taken by no case");
    let value = folder.braid(&["test", "guard", "--json"]).code(0).json();
    let packets: Vec<_> =
        value["rows"].as_array().unwrap().iter().map(|row| &row["packets"]).collect();
    assert_eq!(packets, [1, 1, 0]);
}

#[test]
fn function_that_no_chain_has_counts_as_untaken() {
    let folder = new();
    let model = folder.read("guard/model.braid");
    let more = "\nnf unused() {\n  match {\n    else => output;\n  }\n}\n";
    folder.write("guard/model.braid", &(model + more));
    folder.braid(&["test", "guard"]).code(0).says("unused row 1");
}

#[test]
fn mistakes_name_their_file_and_line() {
    let folder = new();
    add(&folder, "step", "# x\n\nsoon advance\n");
    add(&folder, "interface", "0s dmz: udp 10.0.0.1:1 > 8.8.8.8:53\n");
    add(&folder, "control", "0s set door.idel 3 s\n");
    add(&folder, "capture", "lan: capture none.pcap\n");
    add(&folder, "endless", "lan: capture /dev/zero\n");
    add(&folder, "huge", "0s lan: udp 10.0.0.1:1 > 8.8.8.8:53 bytes=99999999999\n");
    let text = folder.braid(&["test", "guard"]).code(3).warns("6 cases cannot be run");
    let text = text.says("step/case.txt:3: expected a time").says("there is no interface `dmz`");
    text.says("did you mean `idle`").says("none.pcap");
    let folder = new();
    folder.write("guard/model.braid", "nf guard( {\n");
    folder.braid(&["test", "guard"]).code(3).says("model.braid:1:");
    std::fs::remove_file(folder.path("guard/chain.braid")).unwrap();
    folder.braid(&["test", "guard"]).code(3).says("there is no chain.braid");
}

#[test]
fn captures_control_and_state_are_steps() {
    let folder = new();
    add(&folder, "all", "lan: capture in.pcap quietly\n10s set door.idle 1 s\nstate\n    x\n");
    folder.capture("guard/cases/all/in.pcap", &[request(S, 1, 4)]);
    folder.braid(&["test", "guard", "--bless"]).code(0).says("blessed");
    let text = folder.read("guard/cases/all/case.txt");
    assert!(text.contains("state\n    door.seen["), "{text}");
}

#[test]
fn report_for_continuous_integration_has_each_case() {
    let folder = new();
    add(&folder, "wrong", WRONG);
    folder.braid(&["test", "guard", "--junit", "report.xml"]).code(1);
    let text = folder.read("report.xml");
    assert!(text.contains("tests=\"4\" failures=\"1\" errors=\"0\""), "{text}");
    assert!(text.contains("name=\"guard/cases/idle_flows_end\""), "{text}");
    assert!(text.contains("ip.ttl: 63 -&gt; 64"), "{text}");
    folder.braid(&["test", "guard", "--junit", "no/where.xml"]).code(3).warns("no/where.xml");
}
