//! Many requests at once.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{Folder, request};
use crate::site::site;

#[test]
fn flood_of_requests_costs_no_packet() {
    site!(site, Folder::edge(), &[]);
    let (socket, is_over, answered) = (site.socket(), AtomicBool::new(false), AtomicU64::new(0));
    let ask = || {
        let mut write = UnixStream::connect(&socket).unwrap();
        let mut read = BufReader::new(write.try_clone().unwrap());
        while !is_over.load(Ordering::Relaxed) {
            writeln!(write, "{{\"do\":\"counters\"}}").unwrap();
            let mut line = String::new();
            read.read_line(&mut line).unwrap();
            assert!(line.contains("packets_in"), "{line}");
            answered.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        (0..8).for_each(|_| drop(scope.spawn(ask)));
        for host in 0..50 {
            let packets = [(); 20].map(|()| request(0, host, 10));
            site.send(&packets);
            assert_eq!(site.arrived(20).len(), 20);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(answered.load(Ordering::Relaxed) > 50, "{answered:?} requests");
    site.ask("stop").code(0);
    let report = site.end().code(0).json();
    assert_eq!(
        (&report["packets_out"]["wan"], &report["lost"]),
        (&1_000.into(), &serde_json::json!({}))
    );
}
