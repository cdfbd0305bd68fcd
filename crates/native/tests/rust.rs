//! Functions in Rust: the same interface with safe names.

mod support;

use braid_native::{
    Action, Checks, Content, Dump, Event, Flow, Full, Function, Host, Info, Instance, Kind, Output,
    PacketRef, Payload, Publication, RawNf, Scope, Sent, Tag, Verdict, register,
};
use braid_packet::Field;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{RECORDS, config, error, problems, reference, udp};

/// Rewrites the destination port to a different number for each flow. Panics at port 666.
struct Renumber {
    next: u128,
    ended: i32,
}

static KEPT: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct Kept {
    port: Option<u128>,
    packets: u64,
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT.fetch_add(1, Ordering::SeqCst);
    }
}

impl Function for Renumber {
    const INFO: Info =
        Info { scope: Scope::Biflow, full: Full::EvictOldest, ..Info::new(c"renumbers ports") };
    type Flow = Kept;

    fn new(host: &mut Host<'_>) -> Result<Self, String> {
        Ok(Self { next: host.config("first")?, ended: host.counter("ended") })
    }

    fn packet(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
        assert_ne!(packet.get(Field::L4Sport), Some(666), "the number of the beast");
        let next = self.next;
        let Some(kept) = packet.kept() else { return Verdict::Forward };
        let port = *kept.port.get_or_insert(next);
        kept.packets += 1;
        let first = kept.packets == 1;
        if packet.set(Field::L4Dport, port).is_err() {
            return Verdict::Forward;
        }
        if let Some(flow) = packet.flow().filter(|_| first) {
            self.next += 1;
            let host = packet.host();
            let recorded = host
                .add_header_action(flow, Action::Modify(Field::L4Dport, port))
                .and_then(|()| host.add_state_function::<Self>(flow, 1, Payload::Ignore));
            assert_eq!(recorded, Ok(()));
        }
        Verdict::Forward
    }

    fn state_function(&mut self, number: u32, packet: &mut PacketRef<'_, Self>) {
        assert_eq!((number, packet.payload()), (1, None), "it ignores the payload");
        if let Some(kept) = packet.kept() {
            kept.packets += 1;
        }
    }

    fn flow_end(&mut self, _flow: Flow, kept: Kept, host: &mut Host<'_>) {
        host.count(self.ended, kept.packets);
    }

    fn dump(&self, into: &mut Dump<'_>) {
        into.entry(c"next", &[(Kind::Ip4, 1)], &[(c"port", Kind::Port, self.next)]);
    }
}

static DEFINITION: RawNf = RawNf::of::<Renumber>();

fn renumber(values: &[(&str, u128)], checks: Checks) -> Instance {
    register("test", "renumber", &DEFINITION);
    let wanted = reference("test", "renumber", checks);
    Instance::new(&wanted, "it", config(values)).expect("an instance")
}

fn dport(packet: &braid_packet::Packet) -> Option<u128> {
    packet.get(&packet.parse(), Field::L4Dport)
}

#[test]
fn function_in_rust_keeps_flows_until_they_end() {
    let before = KEPT.load(Ordering::SeqCst);
    let mut it = renumber(&[("first", 100), ("flows", 2)], RECORDS);
    for (sport, expected) in [(1, 100), (2, 101), (1, 100), (3, 102), (1, 103)] {
        let mut packet = udp(sport);
        assert_eq!(it.packet(&mut packet, 0), Ok(Verdict::Forward));
        assert_eq!(dport(&packet), Some(expected));
    }
    assert_eq!(problems(&it), [""; 0]);
    let report = it.report();
    // The oldest flows have ended to make room: one flow of two packets, one of one packet.
    let ended = report.iter().find(|entry| entry.table == "counters").expect("a counter");
    assert_eq!(ended.values, [("ended".to_owned(), Kind::Uint, 3)]);
    let next = report.iter().find(|entry| entry.table == "next").expect("what it shows");
    assert_eq!((next.key[0], next.values[0].2), ((Kind::Ip4, 1), 104));
    drop(it);
    assert!(KEPT.load(Ordering::SeqCst) - before >= 4);
}

#[test]
fn panic_is_caught_and_told() {
    let mut it = renumber(&[("first", 100)], Checks::default());
    assert!(it.packet(&mut udp(666), 0).is_err());
    assert_eq!(it.packet(&mut udp(1), 0), Ok(Verdict::Forward));
    let told = problems(&it);
    assert!(
        told[0].starts_with("panicked: ") && told[0].contains("number of the beast"),
        "{told:?}"
    );
    assert!(told[0].ends_with("(its packet 1)"), "{told:?}");
}

#[test]
fn refusal_says_why() {
    register("test", "renumber", &DEFINITION);
    let wanted = reference("test", "renumber", Checks::default());
    assert_eq!(error(Instance::new(&wanted, "it", Vec::new())), "it needs a parameter `first`");
    let unknown = reference("test", "other", Checks::default());
    assert!(error(Instance::new(&unknown, "it", Vec::new())).contains("lacks"));
    let unknown = reference("nowhere", "other", Checks::default());
    assert!(error(Instance::new(&unknown, "it", Vec::new())).contains("no path"));
}

#[test]
fn state_function_gets_what_its_class_says() {
    let mut it = renumber(&[("first", 7)], Checks::default());
    it.packet(&mut udp(1), 0).expect("a verdict");
    let mut packet = udp(1);
    assert_eq!(it.replay(&mut packet, 0), Some(Verdict::Forward));
    assert_eq!(dport(&packet), Some(7));
    // The function reads the payload that it declares to ignore.
    assert_eq!(
        problems(&it),
        ["wrong use: a state function reads the payload that it says it ignores (its packet 2)"]
    );
}

/// Publishes each packet's source port, and gives it as a tag, which it records.
struct Herald {
    seen: Event,
    from: Tag,
}

impl Function for Herald {
    const INFO: Info = Info {
        events: c"SEEN { port: port, why: string }",
        tags: c"from: port",
        sends: 1,
        ..Info::new(c"tells")
    };
    type Flow = ();

    fn new(host: &mut Host<'_>) -> Result<Self, String> {
        assert_eq!(host.event("UNSEEN"), Err(-1));
        let (seen, from) = (host.event("SEEN"), host.tag("from"));
        Ok(Self { seen: seen.expect("it declares it"), from: from.expect("it declares it") })
    }

    fn packet(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
        let port = packet.get(Field::L4Sport).unwrap_or(0);
        let host = packet.host();
        let told = host.publish(self.seen, &[Content::Word(port), Content::Str("a port".into())]);
        assert_eq!((told, host.publish(self.seen, &[])), (Ok(()), Err(-2)));
        let sent = [packet.send(b"new", Verdict::Back), packet.send(b"two", Verdict::Forward)];
        assert_eq!(sent, [Ok(()), Err(-3)]);
        let before = packet.tag(self.from);
        assert_eq!((before, packet.set_tag(self.from, port)), (0, Ok(())));
        if let Some(flow) = packet.flow() {
            let recorded = packet.host().add_header_action(flow, Action::Tag(self.from, port));
            assert_eq!(recorded, Ok(()));
        }
        Verdict::Forward
    }
}

static HERALD: RawNf = RawNf::of::<Herald>();

#[test]
fn function_in_rust_publishes_tags_and_sends() {
    register("heralds", "herald", &HERALD);
    let wanted = reference("heralds", "herald", Checks::default());
    let mut it = Instance::new(&wanted, "it", Vec::new()).expect("an instance");
    let mut packet = udp(7);
    it.packet(&mut packet, 5).expect("a verdict");
    assert_eq!(packet.tags.value("from"), 7);
    let mut by_record = udp(7);
    assert_eq!(it.replay(&mut by_record, 5), Some(Verdict::Forward));
    assert_eq!(by_record.tags, packet.tags);
    let values = vec![Content::Word(7), Content::Str("a port".to_owned())];
    let event = Output::Event(Publication { time_ns: 5, event: 0, values });
    let sent =
        Output::Packet(Sent { to: Verdict::Back, from_timer: false, bytes: b"new".to_vec() });
    assert_eq!(it.take_outputs(), [event, sent]);
    assert_eq!(
        problems(&it),
        [
            "wrong use: asks for an event type `UNSEEN`, which there is none",
            "wrong use: publishes SEEN with 0 values; it has 2 fields (its packet 1)",
            "wrong use: sends more than 1 packets in one call (its packet 1)"
        ]
    );
}
