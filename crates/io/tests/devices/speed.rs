//! How fast each kind of port moves frames. Prints figures, and judges none. To run it:
//! `cargo test --release -p braid-io --test devices speed -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use braid_io::{PacketPort, Port, Share, TapPort, XdpPort};
use braid_packet::{BURST, Frame, Pool};

use crate::traffic::pool;
use crate::world::spaces;

const BURSTS: usize = 4000;

/// Frames of 64 bytes, of a protocol that hosts ignore.
fn fill(pool: &mut Pool, frames: &mut Vec<Frame>) {
    for _ in 0..BURST {
        let mut bytes = [0; 64];
        bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
        let mut frame = pool.take().unwrap();
        assert!(frame.push(&bytes));
        frames.push(frame);
    }
}

/// One thread sends bursts, and receives them at the other end of the wire. Prints the median time
/// of both calls for a frame, with all that the kernel does within them.
fn measure(what: &str, pool: &mut Pool, from: &mut dyn Port, to: &mut dyn Port) {
    let (mut frames, mut sending, mut receiving) = (Vec::new(), Vec::new(), Vec::new());
    let mut lost = 0;
    for _ in 0..BURSTS {
        fill(pool, &mut frames);
        let start = Instant::now();
        from.send(pool, &mut frames, &mut |_, _| lost += 1);
        let sent = Instant::now();
        let (mut found, mut received) = (0, Duration::ZERO);
        while found < BURST && sent.elapsed() < Duration::from_millis(100) {
            let before = Instant::now();
            to.receive(pool, &mut frames, &mut |_| lost += 1).unwrap();
            if !frames.is_empty() {
                received += before.elapsed();
                found += frames.len();
                frames.drain(..).for_each(|frame| pool.put(frame));
            }
        }
        lost += BURST - found;
        sending.push(sent - start);
        receiving.push(received);
    }
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times[BURSTS / 2].as_nanos() / BURST as u128
    };
    let (sending, receiving) = (median(sending), median(receiving));
    let rate = 1_000_000 / (sending + receiving).max(1);
    println!(
        "{what:12} sent in {sending:5} ns, received in {receiving:5} ns a frame: {rate:5} \
         kframes/s on one core, {lost} lost"
    );
}

#[test]
#[ignore = "takes seconds, and its figures depend on the machine"]
fn speed_of_ports() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let mut pool = pool();
    let mut a = here.within(|| PacketPort::open("va")).unwrap();
    let mut b = there.within(|| PacketPort::open("vb")).unwrap();
    measure("af_packet", &mut pool, &mut a, &mut b);
    drop((a, b));
    let mut a = here.within(|| XdpPort::open("va", &mut pool, &Share::default())).unwrap();
    let mut b = there.within(|| XdpPort::open("vb", &mut pool, &Share::default())).unwrap();
    measure("xdp", &mut pool, &mut a, &mut b);
    here.within(|| {
        let mut tap = TapPort::open("t0").unwrap();
        here.ip("link set t0 up");
        let mut end = PacketPort::open("t0").unwrap();
        measure("tap, out", &mut pool, &mut tap, &mut end);
        measure("tap, in", &mut pool, &mut end, &mut tap);
    });
}

/// Of two devices that do next to nothing: the time is that of the port and of DPDK.
#[cfg(feature = "dpdk")]
#[test]
#[ignore = "takes seconds, and its figures depend on the machine"]
fn speed_of_dpdk() {
    let mut pool = crate::dpdk::pool();
    let mut a = braid_io::DpdkPort::open("net_null900", &mut pool, &Share::default()).unwrap();
    let mut b = braid_io::DpdkPort::open("net_null901", &mut pool, &Share::default()).unwrap();
    measure("dpdk", &mut pool, &mut a, &mut b);
}
