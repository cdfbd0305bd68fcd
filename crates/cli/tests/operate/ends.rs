//! How a run ends, and how busy it is.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Folder, request};
use crate::site::site;

/// A chain whose packets wait for half a second.
const SLOW: &str = "\
nf delay(by: duration = 500 ms) {
  queue waiting capacity 1 k;
  match {
    pkt.held == 1 => output;
    else => hold waiting for by else drop \"queue full\";
  }
}
chain slow { interface lan; interface wan; path lan <-> delay() <-> wan; }
";

fn slow() -> Folder {
    let folder = Folder::new();
    folder.write("chain.braid", SLOW);
    folder
}

#[test]
fn drain_lets_held_packets_leave_and_no_other_enter() {
    site!(site, slow(), &[]);
    site.send(&[request(0, 1, 10), request(0, 2, 10), request(0, 3, 10)]);
    site.until("three packets wait", |site| site.json("counters")["held"] == 3);
    site.ask("drain --within 15s").code(0).says("3 packets wait; the run ends when");
    site.send(&[request(0, 4, 10)]);
    assert_eq!(site.arrived(3).len(), 3);
    let report = site.end().code(0).json();
    assert_eq!((&report["held"], &report["packets_out"]["wan"]), (&0.into(), &3.into()));
    assert_eq!(report["lost"]["drained"], 1, "{report}");
}

#[test]
fn drain_ends_in_bounded_time_with_packets_that_still_wait() {
    site!(site, slow(), &[]);
    site.send(&[request(0, 1, 10)]);
    site.until("a packet waits", |site| site.json("counters")["held"] == 1);
    site.ask("drain --within 10ms").code(0);
    assert_eq!(site.end().code(0).json()["held"], 1);
}

#[test]
fn status_shows_the_rates_of_the_last_second() {
    site!(site, slow(), &[]);
    let packets: Vec<_> = (0..250).map(|number| request(0, number, 10)).collect();
    site.send(&packets);
    site.until("a second has passed", |site| {
        let rates = &site.json("status")["workers"][0];
        assert!(rates["busy_percent"].as_u64().is_some_and(|share| share <= 100), "{rates}");
        rates["packets_per_second"].as_u64().is_some_and(|packets| packets > 0)
    });
}

#[test]
fn signal_behind_a_request_to_stop_lets_the_run_save_its_state() {
    let kept = Folder::new();
    let state = kept.path("st").display().to_string();
    site!(site, Folder::edge(), &["--state-dir", &state]);
    site.send(&[request(0, 1, 10)]);
    assert_eq!(site.arrived(1).len(), 1);
    let mut client = UnixStream::connect(site.socket()).expect("connects");
    client.write_all(b"{\"do\": \"stop\"}\n").expect("written");
    let answered = client.read(&mut [0; 512]).expect("read");
    let process = Pid::from_raw(site.process().try_into().unwrap()).unwrap();
    kill_process(process, Signal::TERM).expect("the run is there");
    assert!(answered > 0);
    site.end().code(0);
    assert!(std::fs::metadata(kept.path("st/edge.state")).is_ok_and(|file| file.len() > 0));
}
