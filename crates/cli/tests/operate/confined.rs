//! What a live run may do: its user, its capabilities, its files and its system calls.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::common::{Folder, request};
use crate::site::{Site, site};

const NET_RAW: u64 = 1 << 13;
const DAC_OVERRIDE: u64 = 1 << 1;
/// The user `nobody`.
const NOBODY: &str = "65534";

/// A line of the process's status.
fn status(site: &Site, name: &str) -> String {
    let all = fs::read_to_string(format!("/proc/{}/status", site.process())).unwrap();
    let line = all.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("no {name} in {all}")).trim().to_owned()
}

fn capabilities(site: &Site) -> [u64; 3] {
    ["CapEff", "CapPrm", "CapInh"].map(|set| u64::from_str_radix(&status(site, set), 16).unwrap())
}

/// Expects that packets pass, that the chain can be loaded again with another rule, and that the
/// state is saved.
fn works(site: &mut Site) {
    site.send(&[request(0, 1, 10)]);
    assert_eq!(site.arrived(1).len(), 1);
    site.folder.write("ok.rules", "pass proto tcp\n");
    site.ask("reload").code(0).says("packets waited");
    site.until("the state is saved", |site| {
        fs::metadata(site.folder.path("st/edge.state")).is_ok_and(|file| file.len() > 0)
    });
}

#[test]
fn run_is_confined_and_does_all_that_it_should() {
    site!(site, Folder::edge(), &["--state-dir", "st", "--state-every", "100ms"]);
    works(&mut site);
    let on = ["Seccomp", "Seccomp_filters", "NoNewPrivs"].map(|name| status(&site, name));
    assert_eq!(on, ["2", "2", "1"]);
    assert_eq!(capabilities(&site), [NET_RAW | DAC_OVERRIDE, NET_RAW | DAC_OVERRIDE, 0]);
    // A file elsewhere is out of reach, even for root.
    let elsewhere = Folder::new();
    elsewhere.write("other.rules", "pass proto udp\n");
    let rules = elsewhere.path("other.rules").display().to_string();
    let chain = site.folder.read("chain.braid");
    site.folder.write("chain.braid", &chain.replace("ok.rules", &rules));
    site.ask("reload").code(3).warns("Permission denied");
    // A device that is made anew is opened again.
    site.inside().ip("link del lan0");
    site.until("the device is missing", |site| {
        site.json("status")["devices"][0]["state"] == "missing"
    });
    site.inside().ip("link add lan0 type veth peer name lan2");
    site.inside().ip("link set lan0 up");
    site.inside().ip("link set lan2 up");
    site.until("the device is back", |site| site.json("status")["devices"][0]["state"] == "up");
    let socket = site.socket();
    site.ask("stop").code(0);
    site.end().code(0);
    assert!(!socket.exists());
}

#[test]
fn run_of_another_user_keeps_what_its_devices_need() {
    let folder = Folder::edge();
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o755)).unwrap();
    let options = ["--user", "nobody", "--state-dir", "st", "--state-every", "100ms"];
    site!(site, folder, &options);
    works(&mut site);
    assert_eq!(status(&site, "Uid").split_whitespace().collect::<Vec<_>>(), [NOBODY; 4]);
    assert_eq!(status(&site, "Groups"), "");
    assert_eq!(capabilities(&site), [NET_RAW, NET_RAW, 0]);
    site.ask("stop").code(0);
    site.end().code(0);
}

#[test]
fn user_without_access_is_told_what_will_not_work() {
    let folder = Folder::edge();
    fs::set_permissions(folder.path("chain.braid"), Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(folder.path("st")).unwrap();
    folder.write("st/old", "");
    site!(site, folder, &["--user", "nobody", "--state-dir", "st"]);
    site.ask("reload").code(3).warns("Permission denied");
    site.ask("stop").code(0);
    let ended = site.end();
    let ended =
        ended.warns("the user nobody cannot read chain.braid").warns("run `chown -R nobody st`");
    // The state cannot be saved.
    assert_eq!(ended.code, 3, "{}", ended.err);
}

#[test]
fn sandbox_can_be_turned_off() {
    site!(site, Folder::edge(), &["--no-sandbox"]);
    assert_eq!((status(&site, "Seccomp"), status(&site, "NoNewPrivs")), ("0".into(), "0".into()));
}
