//! Frames for tests, and hosts that talk over a wire.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use braid_io::{Port, State, Unsent, wait};
use braid_packet::checksum::{Sum16, rfc1071};
use braid_packet::frame::FRAME;
use braid_packet::{Frame, Pool};

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

/// A datagram of the flow with this number.
pub fn datagram(flow: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0, flow, 0, 53, 0, 26, 0, 0]);
    frame.resize(60, 0);
    frame
}

/// Segments of a TCP connection, as they follow each other: 1,400 bytes in each, and fewer in the
/// last one.
pub fn segments(count: u16) -> Vec<Vec<u8>> {
    let segment = |number: u16| {
        let is_last = number + 1 == count;
        let payload = pattern(if is_last { 700 } else { 1400 });
        let length = u16::try_from(20 + payload.len()).unwrap();
        let mut tcp = vec![0x9c, 0x40, 0, 80];
        tcp.extend((u32::from(number) * 1400).to_be_bytes());
        tcp.extend([0, 0, 0, 1, 0x50, if is_last { 0x18 } else { 0x10 }, 1, 0, 0, 0, 0, 0]);
        tcp.extend(payload);
        let addresses = [10, 1, 0, 1, 10, 1, 0, 2];
        let sum = Sum16::default().with(&addresses).with_word(6).with_word(length.into());
        let sum = !sum.with(&tcp).folded();
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let mut ip = vec![0x45, 0];
        ip.extend((20 + length).to_be_bytes());
        ip.extend(65_500_u16.wrapping_add(number).to_be_bytes());
        ip.extend([0x40, 0, 64, 6, 0, 0]);
        ip.extend(addresses);
        let sum = rfc1071(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        [vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0], ip, tcp].concat()
    };
    (0..count).map(segment).collect()
}

/// A pool that is large enough for all ports of a test.
pub fn pool() -> Pool {
    Pool::new(24_576, FRAME).unwrap()
}

/// Sends frames. Returns the places of the frames that were not sent, and the reasons.
pub fn send(pool: &mut Pool, port: &mut dyn Port, frames: &[Vec<u8>]) -> Vec<(usize, Unsent)> {
    let fill = |(place, bytes): (usize, &Vec<u8>)| {
        // Each third frame has memory of its own, as have frames that are too long for the pool's.
        let frame = if place % 3 == 0 { None } else { pool.take() };
        let filled = frame.and_then(|mut frame| frame.push(bytes).then_some(frame));
        filled.unwrap_or_else(|| Frame::of(bytes))
    };
    let mut filled = frames.iter().enumerate().map(fill).collect();
    let mut lost = Vec::new();
    port.send(pool, &mut filled, &mut |place, why| lost.push((place, why)));
    assert!(filled.is_empty());
    lost
}

/// Receives the frames that have arrived, and expects that none is lost on reading.
pub fn receive(pool: &mut Pool, port: &mut dyn Port, found: &mut Vec<Vec<u8>>) -> usize {
    let mut frames = Vec::new();
    let lost = &mut |why| panic!("lost: {why:?}");
    let count = port.receive(pool, &mut frames, lost).unwrap();
    for frame in frames {
        found.push(frame.bytes().to_vec());
        pool.put(frame);
    }
    count
}

/// Polls the port until its device has this state. No frame may arrive during this time.
pub fn until(pool: &mut Pool, port: &mut dyn Port, state: State) {
    let end = Instant::now() + PATIENCE;
    let mut found = Vec::new();
    while port.state() != state {
        assert_eq!(receive(pool, port, &mut found), 0);
        assert!(Instant::now() < end, "the device is not {state:?}");
    }
}

/// Sends frames from one port to another one, and expects them there, in order.
pub fn carry(pool: &mut Pool, from: &mut dyn Port, to: &mut dyn Port, frames: &[Vec<u8>]) {
    let (mut found, end) = (Vec::new(), Instant::now() + PATIENCE);
    for burst in frames.chunks(64) {
        assert_eq!(send(pool, from, burst), []);
        let expected = found.len() + burst.len();
        while found.len() < expected {
            assert!(Instant::now() < end, "{} of {expected} frames arrived", found.len());
            if receive(pool, to, &mut found) == 0 {
                wait(std::iter::once(to.descriptor()), Duration::from_millis(10)).unwrap();
            }
        }
    }
    let foreign: Vec<_> = found.iter().filter(|found| !frames.contains(found)).collect();
    assert_eq!(found.len(), frames.len(), "others: {foreign:02x?}");
    for (number, (found, sent)) in found.iter().zip(frames).enumerate() {
        assert_eq!(found, sent, "frame {number}");
    }
    assert_eq!(to.overrun(), 0);
}

/// Sends more frames to a port than it has room for, before it reads any. The lost ones are
/// counted, and the port goes on.
pub fn flood(pool: &mut Pool, from: &mut dyn Port, to: &mut dyn Port) {
    let (sent, mut found) = (frames(12_000, 100), Vec::new());
    for burst in sent.chunks(64) {
        assert_eq!(send(pool, from, burst), []);
    }
    let (mut overrun, end) = (0, Instant::now() + PATIENCE);
    while found.len() as u64 + overrun < 12_000 {
        receive(pool, to, &mut found);
        overrun += to.overrun();
        assert!(Instant::now() < end, "{} found, {overrun} counted as lost", found.len());
    }
    assert!(overrun > 0 && found.len() > 1000, "{overrun} lost");
    assert!(found.iter().zip(&sent).all(|(found, sent)| found == sent));
    carry(pool, from, to, &sent[..500]);
}

/// Carries frames between two ports until `stop`. Returns how many frames were lost on reading and
/// on sending.
pub fn forward(
    pool: &mut Pool,
    a: &mut dyn Port,
    b: &mut dyn Port,
    stop: &AtomicBool,
) -> (usize, usize) {
    let mut lost = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let there = pass(pool, a, b, &mut lost);
        let back = pass(pool, b, a, &mut lost);
        if !there && !back {
            wait([a.descriptor(), b.descriptor()].into_iter(), Duration::from_millis(10)).unwrap();
        }
    }
    lost
}

/// Carries the frames that have arrived. Returns whether there were any.
fn pass(
    pool: &mut Pool,
    from: &mut dyn Port,
    to: &mut dyn Port,
    lost: &mut (usize, usize),
) -> bool {
    let mut frames = Vec::new();
    let count = from.receive(pool, &mut frames, &mut |_| lost.0 += 1).unwrap();
    to.send(pool, &mut frames, &mut |_, _| lost.1 += 1);
    count > 0
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
    braid.join_queues("lan", client, "eth0", 2);
    braid.join_queues("wan", server, "eth0", 2);
    client.ip("addr add 10.1.0.1/24 dev eth0");
    server.ip("addr add 10.1.0.2/24 dev eth0");
}

/// Two hosts talk over a namespace that carries frames between two devices. `open` opens them.
pub fn hosts_talk<P: Port + Send>(
    client: &Space,
    braid: &Space,
    server: &Space,
    mut pool: Pool,
    open: impl Fn(&str, &mut Pool) -> P + Sync,
) {
    join_hosts(client, braid, server);
    let (mut lan, mut wan) = braid.within(|| (open("lan", &mut pool), open("wan", &mut pool)));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let run = scope.spawn(|| forward(&mut pool, &mut lan, &mut wan, &stop));
        echo(client, server, "10.1.0.1:4000", "10.1.0.2:4000");
        talk(client, server, "10.1.0.2:4000", 3_000_000);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(run.join().unwrap(), (0, 0));
    });
}
