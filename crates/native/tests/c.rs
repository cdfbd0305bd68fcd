//! Functions in C: their input, their records, and the reports about functions that go wrong.

mod support;

use braid_native::{Checks, HeaderAction, Instance, Log, Output, Sent, Verdict};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use support::{RECORDS, config, error, library, problems, reference, udp};

const S: u64 = 1_000_000_000;

fn instance(library: &str, function: &str, values: &[(&str, u128)], checks: Checks) -> Instance {
    Instance::new(&reference(library, function, checks), "it", config(values)).expect("an instance")
}

/// The messages of an instance.
fn logs(instance: &mut Instance) -> Vec<Log> {
    let log = |output| match output {
        Output::Log(log) => Some(log),
        Output::Event(_) | Output::Packet(_) => None,
    };
    instance.take_outputs().into_iter().filter_map(log).collect()
}

/// The counters of an instance.
fn counters(instance: &Instance) -> Vec<(String, u128)> {
    let counters = instance.report().into_iter().filter(|entry| entry.table == "counters");
    counters.map(|entry| (entry.values[0].0.clone(), entry.values[0].2)).collect()
}

#[test]
fn function_keeps_state_records_and_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = library(folder.path(), "good");
    let mut limiter = instance(&good, "limiter", &[("limit", 2)], RECORDS);
    let verdicts: Vec<_> = (0..4).map(|_| limiter.packet(&mut udp(1), 0)).collect();
    let (forward, drop) = (Ok(Verdict::Forward), Ok(Verdict::Drop(0)));
    assert_eq!(verdicts, [forward, forward, drop, drop]);
    assert_eq!(limiter.packet(&mut udp(2), 0), forward);
    assert_eq!(problems(&limiter), [""; 0]);
    let record = limiter.recorded(&udp(1).flow_key(&udp(1).parse()).expect("a key"));
    // The guard has replaced the forward with the drop.
    assert_eq!(record.map(|(_, record)| &*record.headers), Some(&[HeaderAction::Drop(0)][..]));
    let report = limiter.report();
    let shown: Vec<_> = report.iter().map(|e| (&*e.table, e.values[0].2)).collect();
    assert_eq!(shown, [("flows", 1), ("flows", 1), ("counters", 3), ("limiter", 2)]);
}

#[test]
fn record_does_what_the_function_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = library(folder.path(), "good");
    let mut function = instance(&good, "limiter", &[("limit", 5)], Checks::default());
    let mut recorded = instance(&good, "limiter", &[("limit", 5)], Checks::default());
    for _ in 0..8 {
        let (mut a, mut b) = (udp(1), udp(1));
        let verdict = function.packet(&mut a, 0);
        let by_record = recorded.replay(&mut b, 0).map_or_else(|| recorded.packet(&mut b, 0), Ok);
        assert_eq!((verdict, a), (by_record, b));
    }
}

#[test]
fn instance_goes_on_from_the_memory_of_an_earlier_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = library(folder.path(), "good");
    let make = || instance(&good, "limiter", &[("limit", 3)], Checks::default());
    let mut first = make();
    for sport in [1, 1, 2] {
        assert_eq!(first.packet(&mut udp(sport), S), Ok(Verdict::Forward));
    }
    let memory = first.save().expect("it can save its memory");
    let mut second = make();
    second.restore(&memory).expect("its own memory");
    assert_eq!(second.save(), Some(memory.clone()));
    let verdicts: Vec<_> = (0..2).map(|_| second.packet(&mut udp(1), 2 * S)).collect();
    assert_eq!(verdicts, [Ok(Verdict::Forward), Ok(Verdict::Drop(0))], "the third, the fourth");
    let report = second.report();
    let counter = report.iter().find(|entry| entry.table == "counters").expect("a counter");
    assert_eq!(counter.values[0].2, 4, "packets of both instances");
    assert_eq!(problems(&second), [""; 0]);

    // The last bytes are those of the function: 16 for each of two flows.
    for length in 0..memory.len() - 32 {
        assert!(make().restore(&memory[..length]).is_err(), "{length} bytes");
    }
    let mut dos = instance(&good, "dos", &[], Checks::default());
    assert_eq!(dos.save(), None, "a function without `save`");
}

#[test]
fn timers_go_on_with_the_memory_of_an_earlier_instance() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = library(folder.path(), "good");
    let make = || instance(&good, "clock", &[("idle", 0)], Checks::default());
    let mut first = make();
    first.packet(&mut udp(1), 0).expect("a verdict");
    first.advance(2 * S);
    let texts = |clock: &mut Instance| -> Vec<_> {
        logs(clock).into_iter().map(|log| (log.time_ns / S, log.text)).collect()
    };
    assert_eq!(texts(&mut first).len(), 4, "two seconds, once after 1.5 s, and once at the end");
    let mut second = make();
    second.restore(&first.save().expect("it can save its memory")).expect("its own memory");
    second.advance(4 * S);
    assert_eq!(texts(&mut second), [(3, "tick".to_owned()), (4, "tick".to_owned())]);
}

#[test]
fn changes_of_records_are_noted() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = library(folder.path(), "good");
    let values = [("limit", 2), ("idle", u128::from(S))];
    let mut limiter = instance(&good, "limiter", &values, Checks::default());
    limiter.watch();
    let at = |limiter: &mut Instance, sport, now| {
        limiter.packet(&mut udp(sport), now).expect("a verdict");
        limiter.take_changed()
    };
    assert_eq!(at(&mut limiter, 1, 0), [1], "recorded");
    assert_eq!(at(&mut limiter, 2, 0), [2], "recorded");
    assert_eq!(at(&mut limiter, 1, 0), [1], "its guard held");
    assert!(at(&mut limiter, 1, S / 2).is_empty());
    assert_eq!(limiter.change("limit", braid_native::Value::scalar(9)), Ok(()));
    assert_eq!(limiter.take_changed(), [1], "dropped no more");
    limiter.advance(2 * S);
    assert_eq!(limiter.take_changed(), [1, 2], "ended");
}

#[test]
fn configuration_is_refused_and_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = library(folder.path(), "good");
    let wanted = reference(&good, "limiter", Checks::default());
    let refused = |values: &[(&str, u128)]| error(Instance::new(&wanted, "it", config(values)));
    assert_eq!(refused(&[]), "it needs a `limit`");
    assert_eq!(refused(&[("limit", 0)]), "a limit of 0 lets nothing pass");
    let mut limiter = instance(&good, "limiter", &[("limit", 1), ("flows", 9)], Checks::default());
    let value = |value| braid_native::Value::scalar(value);
    assert_eq!(limiter.change("limit", value(0)), Err("a limit of 0 lets nothing pass".into()));
    assert!(limiter.change("flows", value(3)).is_err());
    assert_eq!(limiter.change("limit", value(3)), Ok(()));
    let passed = (0..5).filter(|_| limiter.packet(&mut udp(1), 0) == Ok(Verdict::Forward)).count();
    assert_eq!(passed, 3);
}

#[test]
fn headers_are_added_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = library(folder.path(), "good");
    let mut tunnel = instance(&good, "tunnel", &[], Checks::default());
    let mut packet = udp(1);
    assert_eq!(tunnel.packet(&mut packet, 0), Ok(Verdict::Forward));
    assert_eq!(packet.data().len(), udp(1).data().len() + 4);
    assert_eq!(packet.wire_len, udp(1).wire_len + 4);
    packet.backward = true;
    assert_eq!(tunnel.packet(&mut packet, 0), Ok(Verdict::Forward));
    assert_eq!(packet.data(), udp(1).data());
    assert_eq!(problems(&tunnel), [""; 0]);
}

#[test]
fn timers_and_time_outs_come_in_the_order_in_which_they_are_due() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = library(folder.path(), "good");
    let mut clock = instance(&good, "clock", &[], Checks::default());
    assert_eq!(clock.packet(&mut udp(1), 10 * S), Ok(Verdict::Forward));
    assert!(!clock.has_outputs());
    clock.advance(12 * S);
    let logs = logs(&mut clock);
    let logs: Vec<_> = logs.iter().map(|log| (log.time_ns - 10 * S, &*log.text)).collect();
    let due = [
        (S, "tick"),
        (12 * S / 10, "flow 1 ended"),
        (15 * S / 10, "once"),
        (2 * S, "tick"),
        (2 * S, "soon"),
    ];
    assert_eq!(logs, due);
}

#[test]
fn library_that_does_not_fit_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = library(folder.path(), "bad");
    let why = |library: &str, function: &str| {
        let wanted = reference(library, function, Checks::default());
        error(Instance::new(&wanted, "it", Vec::new())).replace(&bad, "bad.so")
    };
    assert_eq!(
        why(&bad, "old"),
        "old of bad.so was built for version 0 of braid_nf.h, and this is version 1"
    );
    assert_eq!(
        why(&bad, "small"),
        "small of bad.so says that its `braid_nf` has 16 bytes, but it must have at least 96"
    );
    assert_eq!(
        why(&bad, "empty"),
        "empty of bad.so has no `packet`: nothing would run for packets"
    );
    assert_eq!(
        why(&bad, "huge"),
        "huge of bad.so asks for 1073741824 bytes for each flow, but at most 65536 are allowed"
    );
    assert_eq!(
        why(&bad, "nonsense"),
        "nonsense of bad.so: its profile names `ip.source`, which is no field"
    );
    assert_eq!(why(&bad, "mute"), "mute of bad.so: in its events, line 1, column 29: expected `,`");
    assert_eq!(
        why(&bad, "untyped"),
        "untyped of bad.so: in its tags, line 1, column 7: expected `:`"
    );
    assert_eq!(
        why(&bad, "spammer"),
        "spammer of bad.so: it sends 65 packets for each packet; 64 are the most"
    );
    assert_eq!(why(&bad, "keeper"), "keeper of bad.so: its `keeps` is 4; 0 to 3 are possible");
    assert_eq!(
        why(&bad, "absent"),
        "the library bad.so has no function of this name: it lacks the symbol `braid_nf_absent`"
    );
    let missing = why("./no_such_library.so", "f");
    let begins = "the library ./no_such_library.so cannot be loaded: ";
    assert!(missing.starts_with(begins) && missing.contains("No such file"), "{missing}");
}

#[test]
fn wrong_use_is_told_and_the_packet_is_a_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = library(folder.path(), "bad");
    let mut misuse = instance(&bad, "misuse", &[], Checks::default());
    assert!(misuse.packet(&mut udp(1), 0).is_err());
    misuse.advance(1000);
    let expected = [
        "wrong use: asks for field 9999, which does not exist (its packet 1)",
        "wrong use: assigns ip.len, which is read-only (its packet 1)",
        "wrong use: assigns 70000 to l4.dport, which has 16 bits (its packet 1)",
        "wrong use: records a header action for flow 0, which stands for no flow (its packet 1)",
        "wrong use: records a header action for flow 77, which it does not have (its packet 1)",
        "wrong use: records a drop for reason 5; it has 0 (its packet 1)",
        "wrong use: records a state function without code (its packet 1)",
        "wrong use: counts at counter 3, which it did not make (its packet 1)",
        "wrong use: asks for a header `ipx`, which there is none (its packet 1)",
        "wrong use: asks for a flow's memory, and has declared no `flow_bytes` (its packet 1)",
        "wrong use: returns 77, which is no verdict (its packet 1)",
        "wrong use: uses a packet when there is none (its packet 1)",
    ];
    assert_eq!(problems(&misuse), expected);
}

#[test]
fn events_that_do_not_fit_are_refused_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = library(folder.path(), "bad");
    let mut loud = instance(&bad, "loud", &[], Checks::default());
    assert_eq!(loud.packet(&mut udp(1), 0), Ok(Verdict::Forward));
    let (absent, misuse, full) = (1, 2, 3);
    let counters = counters(&loud);
    let counters: Vec<_> = counters.iter().map(|(name, count)| (&**name, *count)).collect();
    let expected = [
        ("unknown", absent),
        ("unknown handle", misuse),
        ("negative handle", misuse),
        ("too few", misuse),
        ("nowhere", misuse),
        ("too large", misuse),
        ("a text", misuse),
        ("no text", misuse),
        ("long text", misuse),
        ("good", 0),
        ("too many", full),
    ];
    assert_eq!(counters, expected);
    let expected = [
        "wrong use: asks for an event type `SCANS`, which there is none (its packet 1)",
        "wrong use: publishes event 1, which it does not declare (its packet 1)",
        "wrong use: publishes event -1, which it does not declare (its packet 1)",
        "wrong use: publishes SCAN with 1 values; it has 2 fields (its packet 1)",
        "wrong use: publishes values from nowhere (its packet 1)",
        "wrong use: gives risk of SCAN the value 256; it has 8 bits (its packet 1)",
        "wrong use: gives risk of SCAN a text; it is a number (its packet 1)",
        "wrong use: gives who of SCAN a number; it is a text (its packet 1)",
        "wrong use: gives who of SCAN 5000 bytes; 4096 are the most (its packet 1)",
        "wrong use: makes more than 1024 messages, events and packets at once (its packet 1)",
    ];
    assert_eq!(problems(&loud), expected);
    assert_eq!(loud.take_outputs().len(), 1024);
}

#[test]
fn tags_that_do_not_fit_are_refused_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = library(folder.path(), "bad");
    let mut painter = instance(&bad, "painter", &[], Checks::default());
    let mut packet = udp(1);
    assert_eq!(painter.packet(&mut packet, 0), Ok(Verdict::Forward));
    assert_eq!(packet.tags.value("colour"), 255);
    let mut by_record = udp(1);
    assert_eq!(painter.replay(&mut by_record, 0), Some(Verdict::Forward));
    assert_eq!(by_record.tags.value("colour"), 255);
    let counters = counters(&painter);
    let counters: Vec<_> = counters.iter().map(|(name, count)| (&**name, *count)).collect();
    let expected = [
        ("unknown", 1),
        ("unknown handle", 2),
        ("negative handle", 2),
        ("too large", 2),
        ("mark too large", 2),
        ("mark unknown", 2),
        ("mark", 0),
        ("good", 0),
        ("late", 2),
    ];
    assert_eq!(counters, expected);
    let expected = [
        "wrong use: asks for a tag `color`, which there is none (its packet 1)",
        "wrong use: uses tag 1, which it does not declare (its packet 1)",
        "wrong use: uses tag -1, which it does not declare (its packet 1)",
        "wrong use: sets the tag colour to 256; it has 8 bits (its packet 1)",
        "wrong use: records a header action that does not exist (its packet 1), 2 times",
        "wrong use: a state function sets a tag (its packet 2)",
    ];
    assert_eq!(problems(&painter), expected);
}

/// A timer of the function sends a packet to each place every 1000 ns, and then one too many.
#[test]
fn timers_send_packets() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = library(folder.path(), "bad");
    let mut beacon = instance(&bad, "beacon", &[], Checks::default());
    assert_eq!(beacon.packet(&mut udp(1), 0), Ok(Verdict::Forward));
    beacon.advance(999);
    assert_eq!(beacon.take_outputs(), []);
    beacon.advance(2000);
    let one = |to, byte: &[u8]| Output::Packet(Sent { to, from_timer: true, bytes: byte.to_vec() });
    let thrice =
        [one(Verdict::Forward, b"r"), one(Verdict::Back, b"l"), one(Verdict::Port(0), b"t")];
    assert_eq!(beacon.take_outputs(), [&thrice[..], &thrice[..]].concat());
    assert_eq!(
        problems(&beacon),
        ["wrong use: sends more than 3 packets in one call (its packet 1), 2 times"]
    );
}

#[test]
fn packets_that_cannot_be_sent_are_refused_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = library(folder.path(), "bad");
    let mut sender = instance(&bad, "sender", &[], Checks::default());
    assert_eq!(sender.packet(&mut udp(1), 0), Ok(Verdict::Forward));
    let sent = |output: &Output| match output {
        Output::Packet(Sent { to, bytes, from_timer: false }) => Some((*to, bytes.len())),
        _ => None,
    };
    let found: Vec<_> = sender.take_outputs().iter().filter_map(sent).collect();
    assert_eq!(found, [(Verdict::Port(0), 65_535), (Verdict::Back, 1)]);
    assert_eq!(sender.replay(&mut udp(1), 0), Some(Verdict::Forward));
    sender.advance(1000);
    assert_eq!(sender.take_outputs(), []);
    let counters = counters(&sender);
    let counters: Vec<_> = counters.iter().map(|(name, count)| (&**name, *count)).collect();
    let expected = [
        ("nothing", 2),
        ("too long", 2),
        ("nowhere", 2),
        ("to no port", 2),
        ("a drop", 2),
        ("no verdict", 2),
        ("good", 0),
        ("too many", 3),
        ("not a timer", 2),
        ("late", 2),
        ("timer", 2),
    ];
    assert_eq!(counters, expected);
    let expected = [
        "wrong use: sends a packet of 0 bytes; 1 to 65535 are possible (its packet 1)",
        "wrong use: sends a packet of 70000 bytes; 1 to 65535 are possible (its packet 1)",
        "wrong use: sends bytes from nowhere (its packet 1)",
        "wrong use: sends a packet to port 1; it has 1 (its packet 1)",
        "wrong use: sends a packet to no place (its packet 1)",
        "wrong use: sends a packet to 77, which is no place (its packet 1)",
        "wrong use: sends more than 2 packets in one call (its packet 1)",
        "wrong use: sends a packet as a timer, and no timer runs (its packet 1)",
        "wrong use: a state function sends a packet (its packet 2)",
        "wrong use: uses a packet when there is none (its packet 2)",
    ];
    assert_eq!(problems(&sender), expected);
    let mut stowaway = instance(&bad, "stowaway", &[], Checks::default());
    assert_eq!(stowaway.packet(&mut udp(1), 0), Ok(Verdict::Forward));
    assert_eq!(
        problems(&stowaway),
        ["exceeds its declared profile: sends a packet (its packet 1)"]
    );
}

#[test]
fn function_that_sets_another_tag_than_it_recorded_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = library(folder.path(), "bad");
    let mut dyer = instance(&bad, "dyer", &[], RECORDS);
    for _ in 0..2 {
        assert_eq!(dyer.packet(&mut udp(1), 0), Ok(Verdict::Forward));
    }
    let told = "does other than it recorded: the tag colour is 1 by the record and 2 in fact \
                (its packet 2)";
    assert_eq!(problems(&dyer), [told]);
}

#[test]
fn calls_from_other_threads_are_refused_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = library(folder.path(), "bad");
    let mut threaded = instance(&bad, "threaded", &[], Checks::default());
    assert_eq!(threaded.packet(&mut udp(1), 0), Ok(Verdict::Forward));
    let told = "wrong use: calls Braid outside of its own calls, or from another thread \
                (its packet 1), 4 times";
    assert_eq!(problems(&threaded), [told]);
}

#[test]
fn run_that_exceeds_the_declared_profile_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = library(folder.path(), "bad");
    let mut secret = instance(&bad, "secret", &[], Checks::default());
    assert_eq!(secret.packet(&mut udp(1), 0), Ok(Verdict::Drop(0)));
    let expected = [
        "exceeds its declared profile: reads ip.dst (its packet 1)",
        "exceeds its declared profile: writes ip.ttl (its packet 1)",
        "exceeds its declared profile: drops a packet (its packet 1)",
    ];
    assert_eq!(problems(&secret), expected);
}

#[test]
fn function_that_does_other_than_it_recorded_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = library(folder.path(), "bad");
    let mut liar = instance(&bad, "liar", &[], RECORDS);
    for _ in 0..4 {
        assert_eq!(liar.packet(&mut udp(1), 0), Ok(Verdict::Forward));
    }
    let told = "does other than it recorded: l4.dport is 80 by the record and 81 in fact \
                (its packet 3), 2 times";
    assert_eq!(problems(&liar), [told]);
}

#[test]
fn state_function_that_does_less_than_the_function_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = library(folder.path(), "bad");
    let mut forgetful = instance(&bad, "forgetful", &[], RECORDS);
    for _ in 0..4 {
        assert_eq!(forgetful.packet(&mut udp(1), 0), Ok(Verdict::Forward));
    }
    let told = "does other than it recorded: state `counters` is [(\"packets\", Uint, 1)] by the \
                record and [(\"packets\", Uint, 4)] in fact (its packet 4)";
    assert_eq!(problems(&forgetful), [told]);
}

#[test]
fn state_function_that_changes_headers_is_refused_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = library(folder.path(), "bad");
    let mut meddler = instance(&bad, "meddler", &[], Checks::default());
    assert_eq!(meddler.packet(&mut udp(1), 0), Ok(Verdict::Forward));
    let mut packet = udp(1);
    assert_eq!(meddler.replay(&mut packet, 0), Some(Verdict::Forward));
    assert_eq!(packet, udp(1));
    let told = "wrong use: a state function changes the packet's headers (its packet 2)";
    assert_eq!(problems(&meddler), [told]);
}

#[test]
fn record_is_not_for_packets_from_the_other_side() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = library(folder.path(), "bad");
    let mut liar = instance(&bad, "liar", &[], Checks::default());
    assert_eq!(liar.packet(&mut udp(1), 0), Ok(Verdict::Forward));
    let mut backward = udp(1);
    backward.backward = true;
    assert_eq!(liar.replay(&mut backward, 0), None);
    assert_eq!(liar.replay(&mut udp(1), 0), Some(Verdict::Forward));
}

#[test]
fn layout_of_the_first_version_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    library(folder.path(), "layout");
}

/// Whether this process is the one that must crash. In that process, the call never returns.
fn crash_here(function: &str) {
    let Some(library) = std::env::var_os("BRAID_TEST_CRASH") else { return };
    let mut it = instance(&library.to_string_lossy(), function, &[], Checks::default());
    for _ in 0..5 {
        it.packet(&mut udp(1), 0).expect("a verdict");
    }
    panic!("it lives");
}

fn crashes(test: &str, function: &str, signal: i32, message: &str) {
    crash_here(function);
    let folder = tempfile::tempdir().expect("a folder");
    let bad = library(folder.path(), "bad");
    let crashed = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", test, "--nocapture"])
        .env("BRAID_TEST_CRASH", &bad)
        .output()
        .expect("it runs");
    assert_eq!(crashed.status.signal(), Some(signal));
    let told = String::from_utf8_lossy(&crashed.stderr).replace(&bad, "bad.so");
    assert!(told.contains(message), "{told}");
}

#[test]
fn crash_names_function_and_packet() {
    let message = "braid: SIGSEGV in native function `it` (crash of bad.so), on its packet 3\n";
    crashes("crash_names_function_and_packet", "crash", 11, message);
}

#[test]
fn abort_names_function_and_packet() {
    let message = "braid: SIGABRT in native function `it` (aborts of bad.so), on its packet 1\n";
    crashes("abort_names_function_and_packet", "aborts", 6, message);
}
