//! Native functions in processes of their own in live runs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::common::{Folder, request, udp};
use crate::site::{Site, site};

/// A folder with a chain of one isolated function, from `prober.c`.
fn prober() -> Folder {
    let folder = Folder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", "-I"])
        .arg(root.join("../native/include"))
        .arg(root.join("tests/operate/prober.c"))
        .arg("-o")
        .arg(folder.path("prober.so"))
        .status();
    assert!(built.expect("a C compiler").success());
    folder.write("chain.braid.bak", "");
    folder.write(
        "chain.braid",
        r#"native nf prober() from "./prober.so" isolated on failure bypass;
        chain c { interface lan; interface wan; path lan <-> prober() <-> wan; }"#,
    );
    folder
}

/// The values that the function shows: what worked before the first packet and since, which files
/// it could read before, and its packets.
#[track_caller]
fn shown(site: &Site) -> [u64; 4] {
    let state = site.json("state prober");
    let entries = state["entries"].as_array().unwrap_or_else(|| panic!("{state}"));
    let entry = entries.iter().find(|entry| entry["table"] == "worked");
    let values = &entry.unwrap_or_else(|| panic!("{state}"))["value"];
    ["created", "running", "files_read", "packets"]
        .map(|name| values[name].as_u64().unwrap_or_else(|| panic!("{values}")))
}

/// The processes below a process.
fn below(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    let children = children.split_whitespace().map(|child| child.parse::<u32>().unwrap());
    children.flat_map(|child| [vec![child], below(child)].concat()).collect()
}

/// The launcher and the function's process, once the one that was asked whether it accepts its
/// configuration has been ended.
#[track_caller]
fn processes(site: &mut Site) -> Vec<u32> {
    site.until("one function and its launcher are there", |site| below(site.process()).len() == 2);
    below(site.process())
}

#[test]
fn isolated_function_is_confined_and_comes_back_when_it_has_crashed() {
    site!(site, prober(), &[]);
    site.send(&[request(0, 1, 10)]);
    assert_eq!(site.arrived(1).len(), 1);
    assert_eq!(shown(&site), [0, 0, 1, 1]);
    assert!(!site.folder.path("written").exists());
    // The run has given its rights up, and still gets new processes.
    let crash = udp(0, (0x0a00_0001, 1000), (0xc000_0201, 666), 10);
    for times in 1..=3 {
        site.send(&[crash.clone(), request(0, 2, 10)]);
        assert_eq!(site.arrived(2).len(), 2, "{times}");
        // The next failure is not soon after this one.
        std::thread::sleep(std::time::Duration::from_millis(1_100));
    }
    site.send(&[request(0, 1, 10)]);
    assert_eq!(site.arrived(1).len(), 1);
    let [_, _, _, packets] = shown(&site);
    assert_eq!(packets, 2);
    // A reload starts a process for the new instance, and ends the one of the old instance.
    let chain = site.folder.read("chain.braid");
    site.folder.write("chain.braid", &chain.replace("on failure bypass", ""));
    site.ask("reload").code(0);
    site.send(&[crash, request(0, 1, 10)]);
    assert_eq!(site.arrived(1).len(), 1);
    let processes = processes(&mut site);
    site.ask("stop").code(0);
    let ended = site.end();
    ended.warns("lost its process, which crashed (SIGSEGV)");
    for process in processes {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while Path::new(&format!("/proc/{process}")).exists() {
            assert!(std::time::Instant::now() < end, "process {process} is left");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[test]
fn processes_of_functions_have_the_user_of_the_run() {
    let folder = prober();
    std::fs::set_permissions(folder.path(""), Permissions::from_mode(0o755)).unwrap();
    site!(site, folder, &["--user", "nobody"]);
    site.send(&[request(0, 1, 10)]);
    assert_eq!(site.arrived(1).len(), 1);
    let processes = processes(&mut site);
    for process in processes {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        assert!(status.contains("Uid:\t65534\t65534\t65534\t65534"), "{status}");
    }
    site.ask("stop").code(0);
    site.end().code(0);
}

#[test]
fn processes_of_functions_end_with_a_killed_run() {
    site!(site, prober(), &[]);
    let processes = processes(&mut site);
    drop(site);
    for process in processes {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while Path::new(&format!("/proc/{process}")).exists() {
            assert!(std::time::Instant::now() < end, "process {process} is left");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}
