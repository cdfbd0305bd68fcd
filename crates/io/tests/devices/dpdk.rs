//! Devices by DPDK's drivers. Each test has devices with numbers of their own, because all tests
//! are in one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use braid_io::{
    CaptureWriter, Device, DpdkPort, PacketPort, PacketSink, Port, Precision, Share, State, Steer,
    Unsent, pool_for, read_all, wait,
};
use braid_packet::{Link, Packet, Pool};

use crate::traffic::{carry, frames, hosts_talk, receive, send, until};
use crate::world::spaces;

/// A name for a device of a driver that no other test uses, with arguments.
fn name(driver: &str, arguments: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{driver}{},{arguments}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A pool for some devices of DPDK.
pub fn pool() -> Pool {
    let devices = ["a", "b", "c"].map(|name| Device::Dpdk(name.into()));
    let share = Share::default();
    pool_for(devices.iter().map(|device| (device, &share))).unwrap()
}

/// All frames that the pool has.
fn free(pool: &mut Pool) -> usize {
    let frames: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
    let count = frames.len();
    frames.into_iter().for_each(|frame| pool.put(frame));
    count
}

#[test]
fn null_device_gives_frames_and_takes_them() {
    let mut pool = pool();
    let all = free(&mut pool);
    let mut port =
        DpdkPort::open(&name("net_null", "size=100"), &mut pool, &Share::default()).unwrap();
    let mut found = Vec::new();
    for _ in 0..1000 {
        assert_eq!(receive(&mut pool, &mut port, &mut found), 64);
        assert_eq!(send(&mut pool, &mut port, &found), []);
        assert!(found.drain(..).all(|frame| frame.len() == 100));
    }
    assert_eq!((port.overrun(), port.state()), (0, State::Up));
    assert!(port.facts().unwrap().starts_with("net_null, DPDK "));
    let too_long = [vec![0; 1515], vec![0; 60]];
    assert_eq!(send(&mut pool, &mut port, &too_long), [(0, Unsent::TooLong)]);
    drop(port);
    assert_eq!(free(&mut pool), all);
}

#[test]
fn device_without_memory_goes_on_when_frames_come_back() {
    let mut pool = pool();
    let mut port =
        DpdkPort::open(&name("net_null", "size=100"), &mut pool, &Share::default()).unwrap();
    let mut held = Vec::new();
    let lost = &mut |why| panic!("{why:?}");
    while port.receive(&mut pool, &mut held, lost).unwrap() > 0 {}
    assert!(pool.take().is_none() && held.len() > 8192, "{}", held.len());
    held.drain(..).for_each(|frame| pool.put(frame));
    let mut found = Vec::new();
    assert_eq!(receive(&mut pool, &mut port, &mut found), 64);
}

#[test]
fn captures_are_read_and_written_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["in.pcap", "out.pcap"].map(|name| folder.path().join(name));
    let sent = frames(500, 1514);
    let mut writer = CaptureWriter::create(&from, Precision::Micro).unwrap();
    for bytes in &sent {
        writer.write_packet(&Packet::new(Link::Ethernet, 0, bytes.clone())).unwrap();
    }
    writer.finish().unwrap();
    let device = name("net_pcap", &format!("rx_pcap={},tx_pcap={}", from.display(), to.display()));
    let mut pool = pool();
    let mut port = DpdkPort::open(&device, &mut pool, &Share::default()).unwrap();
    let mut all = Vec::new();
    while receive(&mut pool, &mut port, &mut all) > 0 {}
    assert!(all == sent);
    for burst in all.chunks(64) {
        assert_eq!(send(&mut pool, &mut port, burst), []);
    }
    drop(port);
    let (written, cut, wrong) = read_all(&std::fs::read(to).unwrap());
    assert!(cut.is_none() && wrong.is_none());
    assert!(written.iter().map(Packet::data).eq(sent.iter().map(|frame| &frame[..])));
}

#[test]
fn af_packet_device_carries_every_frame_both_ways() {
    spaces!(here, there);
    let mut pool = pool();
    here.join("va", &there, "vb");
    let device = name("net_af_packet", "iface=va");
    let mut a = here.within(|| DpdkPort::open(&device, &mut pool, &Share::default())).unwrap();
    let mut b = there.within(|| PacketPort::open("vb")).unwrap();
    let frames = frames(2000, 1514);
    carry(&mut pool, &mut a, &mut b, &frames);
    carry(&mut pool, &mut b, &mut a, &frames);
}

#[test]
fn hosts_talk_over_dpdk_ports() {
    spaces!(client, braid, server);
    hosts_talk(&client, &braid, &server, pool(), |device, pool| {
        // The driver truncates frames of several segments.
        client.ip("link set eth0 gso_max_segs 1");
        server.ip("link set eth0 gso_max_segs 1");
        DpdkPort::open(&name("net_af_packet", &format!("iface={device}")), pool, &Share::default())
            .unwrap()
    });
}

#[test]
fn tap_device_carries_every_frame_both_ways() {
    spaces!(here);
    let mut pool = pool();
    here.within(|| {
        let mut a =
            DpdkPort::open(&name("net_tap", "iface=t0"), &mut pool, &Share::default()).unwrap();
        here.ip("link set t0 up");
        let mut b = PacketPort::open("t0").unwrap();
        let frames = frames(1000, 1514);
        carry(&mut pool, &mut a, &mut b, &frames);
        carry(&mut pool, &mut b, &mut a, &frames);
    });
}

#[test]
fn packets_go_between_two_devices_in_shared_memory() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut pool = pool();
    let server = format!("role=server,socket-abstract=no,socket={}", socket.display());
    let client = format!("role=client,socket-abstract=no,socket={}", socket.display());
    let mut a = DpdkPort::open(&name("net_memif", &server), &mut pool, &Share::default()).unwrap();
    let mut b = DpdkPort::open(&name("net_memif", &client), &mut pool, &Share::default()).unwrap();
    until(&mut pool, &mut a, State::Up);
    until(&mut pool, &mut b, State::Up);
    // The client lends the server room when it looks for frames.
    assert_eq!(receive(&mut pool, &mut b, &mut Vec::new()), 0);
    let frames = frames(1000, 1514);
    carry(&mut pool, &mut a, &mut b, &frames);
    carry(&mut pool, &mut b, &mut a, &frames);
}

#[test]
fn virtio_device_reaches_a_vhost_device_in_the_packets_own_memory() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut pool = pool();
    let vhost = name("net_vhost", &format!("iface={}", socket.display()));
    let mut a = DpdkPort::open(&vhost, &mut pool, &Share::default()).unwrap();
    let virtio = name("virtio_user", &format!("path={}", socket.display()));
    let mut b = DpdkPort::open(&virtio, &mut pool, &Share::default()).unwrap();
    until(&mut pool, &mut a, State::Up);
    let frames = frames(1000, 1514);
    carry(&mut pool, &mut a, &mut b, &frames);
    carry(&mut pool, &mut b, &mut a, &frames);
}

#[test]
fn device_survives_a_link_that_goes_down_and_a_device_that_is_made_again() {
    spaces!(here, there);
    let mut pool = pool();
    let frames = frames(200, 1514);
    there.join("vb", &here, "va");
    let device = Device::Dpdk(name("net_af_packet", "iface=va"));
    here.within(|| {
        let mut a = device.open(&mut pool, Share::default()).unwrap();
        let mut b = there.within(|| PacketPort::open("vb")).unwrap();
        until(&mut pool, &mut *a, State::Up);
        carry(&mut pool, &mut *a, &mut b, &frames);
        here.ip("link set va down");
        until(&mut pool, &mut *a, State::Down);
        assert_eq!(send(&mut pool, &mut *a, &frames[..1]), [(0, Unsent::Refused)]);
        here.ip("link set va up");
        until(&mut pool, &mut *a, State::Up);
        // The driver learns that the link was down when it sends next, and sends later.
        let mut found = Vec::new();
        for frame in &frames[..2] {
            assert_eq!(send(&mut pool, &mut *a, std::slice::from_ref(frame)), []);
        }
        while found.len() < 2 {
            receive(&mut pool, &mut b, &mut found);
        }
        carry(&mut pool, &mut *a, &mut b, &frames);
        here.ip("link del va");
        until(&mut pool, &mut *a, State::Missing);
        assert_eq!(send(&mut pool, &mut *a, &frames[..1]), [(0, Unsent::Refused)]);
        there.join("vb", &here, "va");
        until(&mut pool, &mut *a, State::Up);
        let mut b = there.within(|| PacketPort::open("vb")).unwrap();
        carry(&mut pool, &mut *a, &mut b, &frames);
        carry(&mut pool, &mut b, &mut *a, &frames);
        let notes = a.notes().join(", ");
        for note in ["went down 1 time", "was removed 1 time", "was opened again 1 time"] {
            assert!(notes.contains(note), "{notes}");
        }
    });
}

#[test]
fn several_ports_share_a_device() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let mut b = there.within(|| PacketPort::open("vb")).unwrap();
    let mut pools = [pool(), pool()];
    let device = Device::Dpdk(name("net_af_packet", "iface=va"));
    let steer: Steer = Arc::new(|_| unreachable!("one port receives"));
    let shares = Share::all(2, &steer, None);
    let mut ports = here.within(|| {
        let mut open = |at: usize| device.open(&mut pools[at], shares[at].clone()).unwrap();
        [open(0), open(1)]
    });
    let frames = frames(500, 1514);
    // All ports send, and one receives.
    for (pool, port) in pools.iter_mut().zip(&mut ports) {
        carry(pool, &mut **port, &mut b, &frames);
    }
    carry(&mut pools[0], &mut b, &mut *ports[0], &frames);
    assert_eq!(receive(&mut pools[1], &mut *ports[1], &mut Vec::new()), 0);
    // The device outlives the port that was opened first.
    let [first, mut second] = ports;
    drop(first);
    carry(&mut pools[1], &mut *second, &mut b, &frames);
}

#[test]
fn what_is_wrong_with_a_device_is_said_in_one_line() {
    let mut pool = pool();
    let null = name("net_null", "size=64");
    let _first = DpdkPort::open(&null, &mut pool, &Share::default()).unwrap();
    for (device, expected) in [
        ("net_foo0", "its package is not installed"),
        ("net_pcap99,rx_pcap=/no/such", "/no/such: No such file or directory"),
        ("net_af_packet99,iface=nosuch", "No such device"),
        ("0000:99:00.0", "dpdk-devbind.py"),
        (&null, "uses the device already"),
    ] {
        let why = DpdkPort::open(device, &mut pool, &Share::default())
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(why.contains(expected) && !why.contains('\n'), "{device}: {why}");
    }
    let mut other = Pool::new(16, 2176).unwrap();
    let why = DpdkPort::open(&name("net_null", "size=64"), &mut other, &Share::default())
        .map(|_| ())
        .unwrap_err();
    assert!(why.to_string().contains("DPDK's memory"), "{why}");
}

#[test]
fn idle_device_lets_its_thread_sleep() {
    let mut pool = pool();
    let device = name("net_null", "size=64,no-rx=1");
    let mut port = DpdkPort::open(&device, &mut pool, &Share::default()).unwrap();
    let (start, mut looks) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_millis(300) {
        assert_eq!(receive(&mut pool, &mut port, &mut Vec::new()), 0);
        wait([port.descriptor()].into_iter(), Duration::from_millis(10)).unwrap();
        looks += 1;
    }
    // One for each millisecond, and some before the first of them.
    assert!(looks < 1000, "{looks}");
}
