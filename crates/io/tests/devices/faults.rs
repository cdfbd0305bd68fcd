//! Hosts that talk over a bad line.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use braid_io::{Device, Faulty, PacketPort, Port, Share};

use crate::traffic::{forward, join_hosts, pool, talk};
use crate::world::spaces;

#[test]
fn connections_survive_all_faults() {
    spaces!(client, braid, server);
    join_hosts(&client, &braid, &server);
    let faults = "loss=1%,duplicate=1%,reorder=1%,corrupt=1%,truncate=1%,delay=1%,time=5ms";
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let run = scope.spawn(|| {
            braid.within(|| {
                let mut pool = pool();
                let lan = Device::Packet("lan".into()).open(&mut pool, Share::default()).unwrap();
                let mut lan = Faulty::new(lan, faults.parse().unwrap());
                let mut wan = PacketPort::open("wan").unwrap();
                forward(&mut pool, &mut lan, &mut wan, &stop);
                lan.notes()
            })
        });
        talk(&client, &server, "10.1.0.2:4000", 200_000);
        stop.store(true, Ordering::Relaxed);
        let notes = run.join().unwrap();
        assert!(notes[0].starts_with("injected into arriving frames: loss "), "{notes:?}");
        assert_eq!(notes.len(), 2);
    });
}
