//! Tests `braid doctor`. What it finds depends on the machine.

mod common;

use common::{command, ended};

#[test]
fn doctor_says_whether_all_is_well() {
    let run = |args: &[&str]| ended(&command().arg("doctor").args(args).output().unwrap());
    let found = run(&["--json"]);
    let json = found.json();
    let findings = json["machine"].as_array().unwrap();
    let problems = findings.iter().filter(|finding| finding["health"] == "problem").count();
    assert_eq!(json["ok"], problems == 0);
    assert_eq!(found.code, i32::from(problems > 0));
    for finding in findings.iter().filter(|finding| finding["health"] == "problem") {
        assert!(finding["remedy"].is_string(), "{finding}");
    }
    let subjects: Vec<_> =
        findings.iter().map(|finding| finding["subject"].as_str().unwrap()).collect();
    for subject in ["kernel", "privileges", "memlock", "huge pages", "af_xdp", "steering", "dpdk"] {
        assert!(subjects.contains(&subject), "{subjects:?}");
        run(&[]).says(subject);
    }
}

#[test]
fn missing_device_is_a_problem() {
    let run = |args: &[&str]| ended(&command().arg("doctor").args(args).output().unwrap());
    run(&["--if", "no-such-dev"]).code(1).says("there is no such device").says("ip link");
    let json = run(&["--if", "no-such-dev", "--json"]).code(1).json();
    assert_eq!(json["devices"][0]["findings"][0]["health"], "problem");
    // Every machine has this device.
    run(&["--if", "lo"]).says("device lo");
    run(&["--if", "lo", "no-such-dev"]).code(1).says("device lo").says("device no-such-dev");
}
