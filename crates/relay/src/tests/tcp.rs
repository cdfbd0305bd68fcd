//! The proxy that leaves the bytes as they are.

use super::*;

/// Both ends send, and close when they have sent everything.
fn exchange(mut world: World, lens: [usize; 2], restarts: bool) {
    let bytes = [body(lens[0], 1), body(lens[1], 2)];
    world.client.to_send.extend(&bytes[0]);
    world.server.to_send.extend(&bytes[1]);
    (world.client.closes, world.server.closes) = (true, true);
    world.connect();
    for round in 0..600 {
        let both = |world: &World| world.client.is_over() && world.server.is_over();
        if world.until(997, |world| world.server.endpoint.is_some() && both(world)) {
            break;
        }
        assert!(round < 599, "the connection does not end");
        if restarts {
            world.restart();
        }
    }
    assert!(world.server.received == bytes[0], "{} bytes", world.server.received.len());
    assert!(world.client.received == bytes[1], "{} bytes", world.client.received.len());
    assert_eq!((world.passed, &world.dropped[..]), (0, &[][..]));
    assert_eq!(world.strays.len(), 0);
    let status = [world.client.status(), world.server.status()];
    assert_eq!(status.map(|status| status.and_then(|status| status.failure)), [None; 2]);
    assert!(world.until(30_000, |world| world.connections() == 0));
}

#[test]
fn bytes_of_both_ends_arrive() {
    for seed in 0..2 {
        exchange(world("tcp", 0, seed), [300_000, 500_000], false);
        exchange(world("tcp", 0, seed), [0, 1], false);
    }
}

#[test]
fn bytes_arrive_where_frames_get_lost() {
    for seed in 0..braid_cases::at_least(6).into() {
        exchange(world("tcp", 30, seed), [100_000, 60_000], false);
    }
}

#[test]
fn another_instance_goes_on() {
    for seed in 0..braid_cases::at_least(4).into() {
        exchange(world("tcp", 10, seed), [2_000_000, 300_000], true);
    }
}

#[test]
fn connections_of_ipv6_are_proxied() {
    let mut world = world("tcp", 10, 0);
    let ends = [("2001:db8::7", 40_000), ("2001:db8:1::1", 8081)];
    world.client = Host::new((ends[0], ends[1]), 1);
    world.server = Host::new((ends[1], ends[0]), 2);
    exchange(world, [40_000, 40_000], false);
}

/// A request in one half, its answer behind the end of it.
#[test]
fn half_of_a_connection_may_end_first() {
    let mut world = world("tcp", 0, 1);
    world.client.to_send.extend(b"question");
    world.client.closes = true;
    world.connect();
    assert!(world.until(1_000, |world| world.server.status().is_some_and(|s| s.has_peer_closed)));
    assert_eq!(world.server.received, b"question");
    world.server.to_send.extend(b"answer");
    world.server.closes = true;
    assert!(world.until(1_000, |world| world.client.received == b"answer"));
    assert!(world.until(15_000, |world| world.client.is_over() && world.server.is_over()));
    assert!(world.until(15_000, |world| world.connections() == 0));
}

#[test]
fn client_learns_that_the_server_refuses() {
    let mut world = world("tcp", 0, 0);
    world.listens = Some(false);
    world.connect();
    assert!(world.until(100, |world| world.client.is_over()));
    assert_eq!(world.client.status().unwrap().failure, Some(braid_endpoint::Failure::Refused));
    assert_eq!((world.counter("refused"), world.connections()), (1, 0));
}

#[test]
fn client_learns_that_the_server_says_nothing() {
    let mut world = world("tcp", 0, 1);
    world.listens = None;
    world.connect();
    assert!(world.until(400_000, |world| world.client.is_over()));
    assert!(world.until(10_000, |world| world.connections() == 0));
    assert_eq!(world.counter("refused"), 1);
}

#[test]
fn reset_of_one_end_reaches_the_other() {
    for from_client in [true, false] {
        let mut world = world("tcp", 0, 0);
        world.client.to_send.extend(b"hello");
        world.connect();
        assert!(world.until(1_000, |world| world.server.received == b"hello"));
        let host = if from_client { &mut world.client } else { &mut world.server };
        host.endpoint.as_mut().unwrap().abort();
        assert!(world.until(1_000, |world| world.client.is_over() && world.server.is_over()));
        assert!(world.until(1_000, |world| world.connections() == 0));
    }
}

/// The proxy takes no more from the server than the client reads, but for what it may keep.
#[test]
fn slow_reader_slows_the_sender_down() {
    let mut world = world("tcp", 0, 0);
    let bytes = body(4_000_000, 3);
    world.server.to_send.extend(&bytes);
    world.client.reads = 100_000;
    world.connect();
    assert!(!world.until(5_000, |world| world.server.to_send.is_empty()));
    let kept = bytes.len() - world.server.to_send.len();
    // Two buffers of both endpoints, those of the hosts, and the bytes between.
    assert!(kept < 1_300_000, "{kept}");
    world.client.reads = usize::MAX;
    assert!(world.until(60_000, |world| world.client.received.len() == bytes.len()));
    assert!(world.client.received == bytes);
}

#[test]
fn frames_of_other_connections_pass() {
    let mut world = world("tcp", 0, 0);
    world.client = Host::new((CLIENT, ("192.0.2.1", 81)), 1);
    world.server = Host::new((("192.0.2.1", 81), CLIENT), 2);
    world.client.to_send.extend(b"hello");
    world.connect();
    assert!(world.until(1_000, |world| world.server.received == b"hello"));
    assert!(world.passed > 2);
    assert_eq!(world.connections(), 0);
}

/// A connection that began before the proxy is left alone.
#[test]
fn segments_without_a_beginning_pass() {
    let mut world = world("tcp", 0, 0);
    world.client.to_send.extend(b"hello");
    world.connect();
    assert!(world.until(1_000, |world| world.server.received == b"hello"));
    let frames = world.client.endpoint.as_mut().map(|endpoint| endpoint.write(b"more"));
    assert_eq!(frames, Some(4));
    world.proxy = instance("tcp", &world.config);
    world.until(100, |_| false);
    assert!(world.passed > 0);
    assert_eq!(world.connections(), 0);
}

#[test]
fn what_is_no_right_segment_is_dropped() {
    let mut world = world("tcp", 0, 0);
    world.client.to_send.extend(b"hello");
    world.connect();
    assert!(world.until(1_000, |world| world.server.received == b"hello"));
    world.client.to_send.extend(b"more");
    let frame = world.client.run(world.now).remove(0);
    let mut wrong = frame.clone();
    *wrong.last_mut().unwrap() ^= 1;
    world.enter(true, wrong);
    // The same as a first fragment, with the checksum of its header as if it were none.
    let mut fragment = frame;
    fragment[20] = 0x20;
    world.enter(true, fragment);
    assert_eq!(world.dropped, [1, 2]);
    // The sender repeats it.
    assert!(world.until(2_000, |world| world.server.received == b"hellomore"));
}

#[test]
fn too_many_connections_are_refused() {
    let mut world = world("tcp", 0, 0);
    world.config.push(("flows".to_owned(), Value::scalar(1)));
    world.proxy = instance("tcp", &world.config);
    world.connect();
    assert!(world.until(100, |world| world.client.status().unwrap().is_established));
    world.client = Host::new((("10.0.0.8", 40_000), SERVER), 1);
    world.connect();
    assert!(world.until(100, |world| world.dropped == [0]));
}

#[test]
fn a_port_is_used_again() {
    let mut world = world("tcp", 0, 0);
    for _ in 0..3 {
        world.client.endpoint = None;
        world.server = Host::new((SERVER, CLIENT), 2);
        world.server.closes_behind = true;
        world.client.received.clear();
        world.client.to_send.extend(b"hello");
        world.client.closes = true;
        world.connect();
        assert!(world.until(3_000, |world| world.server.received == b"hello"));
        assert!(world.until(3_000, |world| world.server.is_over()));
        assert!(world.until(30_000, |world| world.connections() == 0));
    }
    assert_eq!(world.counter("connections"), 3);
}

#[test]
fn configuration_without_ports_is_refused() {
    crate::register();
    let checks = Checks { records: false, observe: false };
    let reference =
        Reference { library: crate::SET.into(), function: "tcp".into(), checks, isolated: None };
    let refused = Instance::new(&reference, "it", Vec::new()).err();
    let expected = "it needs a parameter `ports`: the set of the servers' ports";
    assert_eq!(refused.as_deref(), Some(expected));
}

#[test]
fn damaged_memory_is_refused() {
    let mut world = world("tcp", 0, 0);
    world.client.to_send.extend(body(50_000, 4));
    world.connect();
    world.until(40, |_| false);
    let memory = world.proxy.save().unwrap();
    for cut in (0..memory.len()).step_by(memory.len() / 200 + 1) {
        // Whatever is left of it is refused, or is one without connections.
        let mut next = instance("tcp", &world.config);
        let _ = next.restore(&memory[..cut]);
        next.advance(world.now + 1_000 * MS);
    }
}

/// The server closes first, so the proxy waits on the client's side. A client that uses its port
/// again does not wait for that.
#[test]
fn new_connection_ends_the_wait_of_the_old_one() {
    let mut world = world("tcp", 0, 0);
    for round in 0..3 {
        world.begin_anew(40_000);
        world.server.to_send.extend(b"bye");
        (world.server.closes, world.client.closes_behind) = (true, true);
        world.client.endpoint =
            Some(Endpoint::connect(&world.client.settings, 1_000_000 * round, world.now));
        assert!(world.until(1_000, |world| world.client.received == b"bye"), "round {round}");
        assert!(world.until(1_000, |world| world.client.is_over()), "round {round}");
        assert_eq!((world.connections(), world.counter("connections")), (1, u128::from(round) + 1));
    }
    assert!(world.until(15_000, |world| world.connections() == 0));
}

#[test]
fn connections_that_only_wait_make_room() {
    let mut world = world("tcp", 0, 0);
    world.config.push(("flows".to_owned(), Value::scalar(2)));
    world.proxy = instance("tcp", &world.config);
    for port in 1..=4 {
        world.begin_anew(port);
        world.client.to_send.extend(b"hello");
        (world.client.closes, world.server.closes_behind) = (port < 3, true);
        world.connect();
        assert!(world.until(1_000, |world| world.server.received == b"hello"), "port {port}");
        world.until(100, |_| false);
        assert_eq!(world.connections(), usize::from(port).min(2));
    }
    // The last two go on.
    world.begin_anew(5);
    world.connect();
    assert!(world.until(100, |world| !world.dropped.is_empty()));
    assert_eq!(world.dropped, [0]);
}

/// Both ends send much before they read anything.
#[test]
fn directions_do_not_wait_for_each_other() {
    for function in ["tcp", "http"] {
        for from_client in [true, false] {
            let mut world = world(function, 0, 0);
            let bytes = [body(3_000_000, 5), body(3_000_000, 6)];
            world.client.to_send.extend(&bytes[0]);
            world.server.to_send.extend(&bytes[1]);
            let sender = if from_client { &mut world.client } else { &mut world.server };
            sender.reads = 0;
            world.connect();
            let arrived = |world: &World| match from_client {
                true => world.server.received == bytes[0],
                false => world.client.received == bytes[1],
            };
            assert!(world.until(60_000, arrived), "{function}, {from_client}");
        }
    }
}

/// A client that asks for much and reads nothing is ended when the proxy needs its memory for
/// another one.
#[test]
fn connection_that_takes_most_memory_makes_room() {
    let mut world = world("tcp", 0, 0);
    world.config.push(("memory".to_owned(), Value::scalar(2 << 20)));
    world.proxy = instance("tcp", &world.config);
    for port in 1..=3 {
        // Each of them takes more than half a MiB.
        world.begin_anew(port);
        world.server.to_send.extend(body(3_000_000, port.into()));
        world.client.reads = 0;
        world.connect();
        world.until(5_000, |_| false);
    }
    assert!(world.counter("ended for memory") > 0, "{} connections", world.connections());
    let before = world.counter("ended for memory");
    let resets = |frame: &Vec<u8>| Frame::of(frame).unwrap().segment.flags.has(Flags::RST);
    // Its client learns of it, whether it is the last one or an earlier one.
    assert!(world.client.is_over() || world.strays.iter().any(resets));
    world.begin_anew(9);
    let page = body(100_000, 9);
    world.server.to_send.extend(&page);
    world.connect();
    assert!(world.until(5_000, |world| world.client.received == page));
    assert!(world.counter("ended for memory") <= before + 1);
}

/// A link on the way takes no segments of the usual size. Its router says so, and segments get
/// shorter.
#[test]
fn segments_fit_the_links_on_their_way() {
    for (ends, mtu) in
        [([CLIENT, SERVER], 1_300), ([("2001:db8::7", 40_000), ("2001:db8:1::1", 8081)], 1_400)]
    {
        let mut world = world("tcp", 0, 0);
        world.client = Host::new((ends[0], ends[1]), 1);
        world.server = Host::new((ends[1], ends[0]), 2);
        world.mtu = mtu;
        exchange(world, [400_000, 100_000], false);
    }
}

/// Messages that are damaged or about other connections pass.
#[test]
fn other_messages_about_long_packets_pass() {
    let mut world = world("tcp", 0, 0);
    world.client.to_send.extend(b"hello");
    world.connect();
    assert!(world.until(1_000, |world| world.server.received == b"hello"));
    let ends = world.client.ends;
    let message = |ends| {
        let payload = body(1_440, 2);
        let segment = braid_endpoint::Outgoing {
            seq: braid_tcp::Seq(1),
            ack: braid_tcp::Seq(0),
            flags: Flags::ACK,
            window: 0,
            options: Default::default(),
            payload: (&payload, &[]),
        };
        let mut frame = Vec::new();
        wire::write(&world.client.link, ends, 0, &segment, &mut frame);
        too_long(&frame, 1_300)
    };
    let other = Ends { from: (ends.from.0, 40_001), ..ends };
    let (own, of_other, mut damaged) = (message(ends), message(other), message(ends));
    damaged[LINK + 27] ^= 1;
    for (message, wanted) in
        [(own, Verdict::Consume), (of_other, Verdict::Forward), (damaged, Verdict::Forward)]
    {
        let mut packet = Packet::new(Link::Ethernet, world.now, &message);
        packet.backward = world.client_is_left;
        let verdict = world.proxy.packet(&mut packet, world.now).expect("a verdict");
        assert_eq!(verdict, wanted);
    }
}

/// A run ends its time at once.
#[test]
fn end_of_time_is_no_end_of_the_proxy() {
    let mut world = world("tcp", 0, 0);
    world.client.to_send.extend(b"hello");
    world.connect();
    assert!(world.until(1_000, |world| world.server.received == b"hello"));
    world.proxy.advance(u64::MAX);
    assert_eq!(world.proxy.problems(), []);
}

/// An idle connection takes little: 10,000 of them are no burden.
#[test]
fn connections_are_small() {
    use braid_connections::Kept;
    assert!(size_of::<Kept<crate::Relayed<crate::Unchanged>>>() <= 1_536);
    assert!(size_of::<Kept<crate::Relayed<crate::http::Http>>>() <= 2_048);
}
