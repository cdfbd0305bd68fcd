//! Stream functions, in C and in Rust: what they get, what they decide, and what is refused.

mod support;

use braid_ir::engine::Content;
use braid_native::{
    Checks, Connection, Data, Decision, Event, Failed, Function, Host, Info, Instance, News,
    Output, RawNf, What, describe, register,
};
use braid_packet::FlowKey;
use support::{RECORDS, config, library, problems, reference};

const CLIENT: FlowKey =
    FlowKey { version: 4, src: 0x0a00_0001, dst: 0xc000_0201, proto: 6, sport: 999, dport: 80 };

fn instance(library: &str, function: &str) -> Instance {
    Instance::new(&reference(library, function, RECORDS), "it", config(&[])).expect("an instance")
}

/// What a connection with this client's port brings.
fn news(sport: u16, what: What<'_>) -> News<'_> {
    News { client: FlowKey { sport, ..CLIENT }, what }
}

fn data(from_client: bool, offset: u64, bytes: &str) -> What<'_> {
    What::Data(Data { from_client, offset, bytes: bytes.as_bytes(), missing: 0 })
}

/// The messages of an instance.
fn logs(instance: &mut Instance) -> Vec<String> {
    let text = |output| match output {
        Output::Log(log) => Some(log.text),
        Output::Event(_) | Output::Packet(_) => None,
    };
    instance.take_outputs().into_iter().filter_map(text).collect()
}

#[test]
fn function_gets_what_a_connection_brings_and_memory_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut it = instance(&library(folder.path(), "streams"), "told");
    let mut gives = |what| it.connection(news(999, what), 5).expect("a decision");
    assert_eq!(gives(What::Open), Decision::Forward);
    assert_eq!(gives(data(true, 0, "ab")), Decision::Forward);
    assert_eq!(gives(data(false, 3, "x")), Decision::Forward);
    assert_eq!(gives(data(true, 2, "reset")), Decision::Reset(1));
    assert_eq!(
        logs(&mut it),
        [
            "open 1 v4 a000001:999 c0000201:80, memory 0",
            "data 1 client ab at 0, 0 missing, memory 1",
            "data 1 server x at 3, 3 missing, memory 2",
            "data 1 client reset at 2, 0 missing, memory 3",
            "end 1 after 4 calls",
        ]
    );
    assert_eq!(problems(&it), [""; 0]);
}

#[test]
fn memory_ends_with_the_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut it = instance(&library(folder.path(), "streams"), "told");
    let mut gives = |sport, what| it.connection(news(sport, what), 5).expect("a decision");
    gives(1, What::Open);
    gives(1, What::Close);
    // An end without a connection begins no memory.
    gives(1, What::Close);
    gives(2, data(true, 9, "leave"));
    // The connection opens again without an end.
    gives(3, What::Open);
    gives(3, What::Open);
    // There is room for two.
    gives(4, What::Open);
    gives(5, data(true, 7, "y"));
    let [told, own @ ..] = &logs(&mut it)[..] else { panic!("no message") };
    assert_eq!(told, "open 1 v4 a000001:1 c0000201:80, memory 0");
    assert_eq!(
        own,
        [
            "close 1",
            "end 1 after 1 calls",
            "close 0",
            "data 2 client leave at 9, 9 missing, memory 0",
            "end 2 after 1 calls",
            "open 3 v4 a000001:3 c0000201:80, memory 0",
            "end 3 after 1 calls",
            "open 4 v4 a000001:3 c0000201:80, memory 0",
            "open 5 v4 a000001:4 c0000201:80, memory 0",
            "data 0 client y at 7, 0 missing, memory -1",
        ]
    );
}

#[test]
fn new_instance_knows_which_bytes_have_come() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = library(folder.path(), "streams");
    let mut first = instance(&library, "told");
    first.connection(news(1, data(true, 0, "abc")), 5).expect("a decision");
    let memory = first.save().expect("it saves nothing of its own");
    let mut second = instance(&library, "told");
    second.restore(&memory).expect("its own memory");
    second.connection(news(1, data(true, 5, "f")), 6).expect("a decision");
    assert_eq!(logs(&mut second), ["data 1 client f at 5, 2 missing, memory 0"]);
}

#[test]
fn wrong_decisions_and_calls_are_refused_and_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut it = instance(&library(folder.path(), "streams"), "wrong");
    let failed = Err(Failed::Drop);
    for bytes in ["d", "p", "r", "f", "s", "x"] {
        assert_eq!(it.connection(news(1, data(true, 0, bytes)), 5), failed, "{bytes}");
    }
    for bytes in ["b", "a", "e"] {
        let decision = it.connection(news(1, data(true, 0, bytes)), 5);
        assert_eq!(decision, Ok(Decision::Forward), "{bytes}");
    }
    let found = problems(&it).join("\n");
    for expected in [
        "returns 1, which is no decision about a connection",
        "returns 4, which is no decision about a connection",
        "resets for reason 1; it has 1",
        "no such protocol",
        "it does not say why",
        "returns 77, which is no decision about a connection",
        "sends a packet as a timer, and no timer runs",
        "records a header action, which a stream function cannot do",
        "ends flow 1, which it does not have",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
}

#[test]
fn stream_function_has_nothing_that_is_for_packets() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = library(folder.path(), "streams");
    for (function, what) in [
        ("both", "no `packet`"),
        ("ported", "no ports"),
        ("tagged", "no tags"),
        ("sending", "no `sends`"),
        ("profiled", "no profile"),
    ] {
        let why = describe(&library, function, false).expect_err(function).to_string();
        let text = "it takes connections (open, data, close) and no packets, so it has ";
        assert!(why.ends_with(&format!("{text}{what}")), "{why}");
    }
}

/// Counts the bytes of connections, publishes them, and panics at a word.
struct Bytes {
    total: Event,
}

impl Function for Bytes {
    const INFO: Info = Info {
        stream: true,
        reasons: c"enough",
        events: c"TOTAL { bytes: u64 }",
        ..Info::new(c"counts bytes")
    };
    type Flow = u64;

    fn new(host: &mut Host<'_>) -> Result<Self, String> {
        let total = host.event("TOTAL").map_err(|_| "it declares TOTAL")?;
        Ok(Self { total })
    }

    fn data(&mut self, connection: &Connection, data: &Data<'_>, host: &mut Host<'_>) -> Decision {
        assert!(data.bytes != b"panic", "at the word");
        let Some(flow) = connection.flow else { return Decision::Bypass };
        let Some(bytes) = host.flow::<Self>(flow) else { return Decision::Bypass };
        *bytes += data.bytes.len() as u64;
        if *bytes > 9 { Decision::Reset(0) } else { Decision::Forward }
    }

    fn close(&mut self, connection: &Connection, host: &mut Host<'_>) {
        let bytes = connection.flow.and_then(|flow| host.flow::<Self>(flow).copied());
        let _told = host.publish(self.total, &[Content::Word(bytes.unwrap_or(0).into())]);
    }
}

#[test]
fn function_in_rust_follows_connections() {
    static DEFINITION: RawNf = RawNf::of::<Bytes>();
    register("streams", "bytes", &DEFINITION);
    let reference = reference("streams", "bytes", Checks::default());
    let mut it = Instance::new(&reference, "it", config(&[])).expect("an instance");
    let mut gives = |sport, what| it.connection(news(sport, what), 5);
    assert_eq!(gives(1, What::Open), Ok(Decision::Forward));
    assert_eq!(gives(1, data(true, 0, "1234")), Ok(Decision::Forward));
    assert_eq!(gives(2, data(true, 0, "0123456789")), Ok(Decision::Reset(0)));
    assert_eq!(gives(1, data(false, 0, "panic")), Err(Failed::Drop));
    assert_eq!(gives(1, data(false, 5, "5")), Ok(Decision::Forward));
    assert_eq!(gives(1, What::Close), Ok(Decision::Forward));
    let outputs = it.take_outputs();
    let [Output::Event(total)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(total.values, [Content::Word(5)]);
    assert_eq!(problems(&it).len(), 1, "the panic: {:?}", problems(&it));
}
