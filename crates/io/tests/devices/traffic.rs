//! Frames for tests, and hosts that talk over a wire.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use braid_io::{Interface, Received, wait};

use crate::world::Space;

/// The time after which a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Frames of all lengths up to this one, of a protocol that hosts ignore. Each fourth frame has a
/// VLAN tag.
pub fn frames(count: u32, longest: u32) -> Vec<Vec<u8>> {
    let frame = |number: u32| {
        let length = 60 + number * 37 % (longest - 59);
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        if number.is_multiple_of(4) {
            frame.extend([0x81, 0, 0, 5]);
        }
        frame.extend([0x88, 0xb5]);
        frame.extend(number.to_be_bytes());
        let mut state = number;
        while frame.len() < length as usize {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            frame.push((state >> 24) as u8);
        }
        frame
    };
    (0..count).map(frame).collect()
}

/// Sends frames from one interface to another one, and expects them there, in order.
pub fn carry(from: &mut dyn Interface, to: &mut dyn Interface, frames: &[Vec<u8>]) {
    let (mut found, end) = (Vec::new(), Instant::now() + PATIENCE);
    for burst in frames.chunks(64) {
        for frame in burst {
            from.send(frame).unwrap();
        }
        let expected = found.len() + burst.len();
        while found.len() < expected {
            assert!(Instant::now() < end, "{} of {expected} frames arrived", found.len());
            if to.receive(&mut found).unwrap() == Received::Nothing {
                wait([&*to].into_iter(), Duration::from_millis(10)).unwrap();
            }
        }
    }
    assert_eq!(found.len(), frames.len());
    for (number, (found, sent)) in found.iter().zip(frames).enumerate() {
        assert_eq!(found, sent, "frame {number}");
    }
    assert_eq!(to.overrun(), 0);
}

/// Carries frames between two interfaces until `stop`. Returns how many frames were lost on
/// reading and on sending.
pub fn forward(a: &mut dyn Interface, b: &mut dyn Interface, stop: &AtomicBool) -> (usize, usize) {
    let mut lost = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let there = pass(a, b, &mut lost);
        let back = pass(b, a, &mut lost);
        if !there && !back {
            wait([&*a, &*b].into_iter(), Duration::from_millis(10)).unwrap();
        }
    }
    lost
}

/// Carries the frames that have arrived. Returns whether there were any.
fn pass(from: &mut dyn Interface, to: &mut dyn Interface, lost: &mut (usize, usize)) -> bool {
    let mut frames = Vec::new();
    for number in 0..64 {
        match from.receive(&mut frames).unwrap() {
            Received::Nothing => return number > 0,
            Received::Something => {}
            Received::Lost(_) => lost.0 += 1,
        }
        lost.1 += frames.drain(..).filter(|frame| to.send(frame).is_err()).count();
    }
    true
}

/// Bytes of a pattern without a short period.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at ^ at >> 8 ^ at >> 16).wrapping_mul(31) as u8).collect()
}

/// The client sends `length` bytes by TCP, and the server sends them back. The kernel hands large
/// segments with partial checksums to the device.
pub fn talk(client: &Space, server: &Space, address: &str, length: usize) {
    let address: SocketAddr = address.parse().unwrap();
    let listener = server.within(|| TcpListener::bind(address)).unwrap();
    let sent = pattern(length);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            stream.write_all(&all).unwrap();
        });
        let mut stream = client.within(|| TcpStream::connect_timeout(&address, PATIENCE)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&sent).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert!(all == sent, "{} bytes of {length} came back", all.len());
    });
}

/// The client sends datagrams of some lengths by UDP, and the server sends them back.
pub fn echo(client: &Space, server: &Space, from: &str, to: &str) {
    let server = server.within(|| UdpSocket::bind(to)).unwrap();
    let client = client.within(|| UdpSocket::bind(from)).unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = [0; 2048];
    for length in [1, 17, 64, 1000, 1472] {
        let sent = pattern(length);
        client.send_to(&sent, to).unwrap();
        let (length, peer) = server.recv_from(&mut buffer).unwrap();
        server.send_to(&buffer[..length], peer).unwrap();
        let (length, _) = client.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], sent);
    }
}

/// Gives the two hosts addresses, and joins both to the namespace in the middle, by its devices
/// `lan` and `wan`.
pub fn join_hosts(client: &Space, braid: &Space, server: &Space) {
    braid.join("lan", client, "eth0");
    braid.join("wan", server, "eth0");
    client.ip("addr add 10.1.0.1/24 dev eth0");
    server.ip("addr add 10.1.0.2/24 dev eth0");
}

/// Two hosts talk over a namespace that carries frames between two devices. `open` opens them.
pub fn hosts_talk<I: Interface + Send>(
    client: &Space,
    braid: &Space,
    server: &Space,
    open: impl Fn(&str) -> I + Sync,
) {
    join_hosts(client, braid, server);
    let (mut lan, mut wan) = braid.within(|| (open("lan"), open("wan")));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let run = scope.spawn(|| forward(&mut lan, &mut wan, &stop));
        echo(client, server, "10.1.0.1:4000", "10.1.0.2:4000");
        talk(client, server, "10.1.0.2:4000", 3_000_000);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(run.join().unwrap(), (0, 0));
    });
}
