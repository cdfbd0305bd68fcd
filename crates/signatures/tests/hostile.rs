//! Hostile rule files, streams and saved inspections: no panic, bounded work and memory.

mod support;

use braid_signatures::{Counts, Datagrams, Flow, Inspection, Kind, Packet, limits, load};
use proptest::prelude::*;
use support::Said;

const FLOW: Flow = Flow { version: 4, src: 1, dst: 2, sport: 3, dport: 80 };

/// Pieces of rules, which meet in random orders.
const PIECES: &[&str] = &[
    "alert ",
    "tcp ",
    "http ",
    "ip ",
    "icmp ",
    "flags:",
    "S,12; ",
    "+0",
    "dsize:",
    "ttl:1<>",
    "sameip; ",
    "any any -> any any ",
    "(",
    ")",
    "content:\"",
    "\"; ",
    "|",
    "0a ",
    "nocase; ",
    "sid:1; ",
    "sid:2; ",
    "pcre:\"/",
    "/R\"; ",
    "[",
    "]",
    "{2,3}",
    "\\",
    "!",
    "$X",
    "distance:-5; ",
    "within:9; ",
    "http_uri; ",
    "http.uri; ",
    "var X ",
    "10.0.0.0/8",
    ":",
    ",",
    "\n",
    "isdataat:!1,relative; ",
    "urilen:5<>9; ",
    "é",
    "\0",
    "flow:to_server; ",
    ";",
    "isdataat:16777216,relative; ",
    "byte_test:1,>,5,0,relative; ",
    "byte_jump:4,-9,relative,align,multiplier 65535; ",
    "byte_jump:8,0,from_end,post_offset -1; ",
    "byte_extract:2,0,x,relative; ",
    "byte_test:4,!&,x,x; ",
    "flowbits:set,x; ",
    "flowbits:toggle,y; ",
    "flowbits:isnotset,x|y; ",
    "flowbits:noalert; ",
    "threshold:type both,track by_src,count 2,seconds 60; ",
    "detection_filter:track by_rule,count 1,seconds 4294967295; ",
    "18446744073709551615",
    "4294967296",
];

/// Pieces of HTTP.
const HTTP: &[&str] = &[
    "GET / HTTP/1.1\r\n",
    "POST /a%41%zz HTTP/1.1\r\n",
    "HTTP/1.1 200 OK\r\n",
    "\r\n",
    "\n",
    " ",
    "Transfer-Encoding: chunked\r\n",
    "Content-Length: 5\r\n",
    "Host: a\r\n",
    "5\r\nabcde\r\n",
    "0\r\n\r\n",
    "FFFFFFFFFFFFFFFF\r\n",
    "HTTP/1.1 101 X\r\n",
    "CONNECT a HTTP/1.1\r\n",
    "x",
    "\0",
];

fn pieces(of: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(of), 0..most).prop_map(|all| all.concat())
}

fn memory_is_bounded(inspection: &Inspection) -> bool {
    let messages = limits::MAX_HEAD + limits::RAW_BODY_DEPTH + limits::BODY_DEPTH;
    // Vectors may have twice the room that they need.
    inspection.memory() <= 2 * (2 * (limits::STREAM_DEPTH + messages) + (64 << 10))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(1_000)))]

    #[test]
    fn rule_files(text in pieces(PIECES, 60), streams in prop::collection::vec(pieces(HTTP, 12), 4)) {
        let wrapped = format!("alert tcp any any -> any any (content:\"a\"; {text} sid:9;)");
        for text in [text.as_str(), &wrapped] {
            let set = load(text).set;
            let (mut inspection, mut said) = (Inspection::default(), Said::default());
            let mut offsets = [0; 2];
            for (at, stream) in streams.iter().enumerate() {
                let offset = &mut offsets[at % 2];
                let bytes = (*offset, stream.as_bytes());
                inspection.data(&mut said.by(&set), (FLOW, at % 2 == 0), bytes);
                *offset += stream.len() as u64;
            }
            for kind in [Kind::Tcp, Kind::Udp, Kind::Icmp, Kind::Other] {
                let (bytes, number) = (streams[0].as_bytes(), &|_| Some(2));
                let packet = Packet {
                    kind, flow: FLOW, from_client: true, is_established: false, bytes, number,
                };
                inspection.packet(&mut said.by(&set), &packet);
                Datagrams::default().packet(&mut said.by(&set), &packet);
            }
            inspection.close(&mut said.by(&set), FLOW);
            prop_assert!(said.alerts.iter().all(|alert| set.get(alert.rule).is_some()));
        }
    }

    #[test]
    fn http_is_cut_anywhere(stream in pieces(HTTP, 20), step in 1..9_usize) {
        let rules = "alert http any any -> any any (content:\"a\"; sid:1;)\n\
            alert http any any -> any any (http.uri; content:\"a\"; nocase; sid:2;)\n\
            alert http any any -> any any (file_data; content:\"cde\"; endswith; sid:3;)\n";
        let set = load(rules).set;
        let play = |step: usize, from_client: bool| {
            let (mut inspection, mut said) = (Inspection::default(), Said::default());
            let mut offset = 0;
            for part in stream.as_bytes().chunks(step) {
                inspection.data(&mut said.by(&set), (FLOW, from_client), (offset, part));
                inspection = Inspection::from_bytes(&inspection.to_bytes()).expect("whole");
                offset += part.len() as u64;
            }
            inspection.close(&mut said.by(&set), FLOW);
            (said.alerts, said.counts)
        };
        for from_client in [true, false] {
            prop_assert_eq!(play(step, from_client), play(usize::MAX, from_client));
        }
    }

    #[test]
    fn saved_inspections(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let set = load("alert http any any -> any any (content:\"a\"; sid:1;)\n\
            alert tcp any any -> any any (content:\"GET\"; flowbits:set,bit; sid:2;)\n\
            alert tcp any any -> any any (content:\"P\"; flowbits:isset,bit; flowbits:unset,bit; sid:3;)").set;
        let (mut inspection, mut said) = (Inspection::default(), Said::default());
        let request = b"GET / HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab";
        inspection.data(&mut said.by(&set), (FLOW, true), (0, request));
        let mut bytes = inspection.to_bytes();
        let at = at.index(bytes.len());
        match cut {
            true => bytes.truncate(at),
            false => bytes[at] = byte,
        }
        // What is read can be used.
        if let Some(mut read) = Inspection::from_bytes(&bytes) {
            prop_assert!(memory_is_bounded(&read));
            read.data(&mut said.by(&set), (FLOW, true), (request.len() as u64, b"cde\r\n0\r\n\r\n"));
            read.close(&mut said.by(&set), FLOW);
        }
    }
}

#[test]
fn memory_is_bounded_for_long_streams() {
    let set = load(
        "alert http any any -> any any (content:\"no such\"; sid:1;)\n\
        alert tcp any any -> any any (content:\"no such\"; sid:2;)",
    )
    .set;
    let (mut inspection, mut said) = (Inspection::default(), Said::default());
    let head = b"POST / HTTP/1.1\r\nContent-Length: 10000000\r\n\r\n";
    let mut offset = 0;
    for part in [&head[..]].into_iter().chain(std::iter::repeat_n(&[b'x'; 997][..], 1_000)) {
        inspection.data(&mut said.by(&set), (FLOW, true), (offset, part));
        offset += part.len() as u64;
        assert!(memory_is_bounded(&inspection), "{}", inspection.memory());
    }
    assert_eq!((said.counts.depths, said.counts.malformed), (1, 0));
}

/// Gives a stream to rules in segments of this length. Returns the sids of their alerts and the
/// counts.
fn alerts_of(rules: &str, bytes: &[u8], step: usize) -> (Vec<u32>, Counts) {
    let set = load(rules).set;
    let (mut inspection, mut said) = (Inspection::default(), Said::default());
    let mut offset = 0;
    for part in bytes.chunks(step) {
        inspection.data(&mut said.by(&set), (FLOW, true), (offset, part));
        offset += part.len() as u64;
    }
    inspection.close(&mut said.by(&set), FLOW);
    (said.sids(&set), said.counts)
}

/// Rules that take much work on these streams, in front of a rule that takes little.
#[test]
fn rule_that_takes_much_work_does_not_hide_other_rules() {
    let other = "alert tcp any any -> any any (content:\"cmd.exe\"; sid:2;)\n";
    let lines = b"\n".repeat(9_000);
    let letters = [b"q".as_slice(), &b"a".repeat(20_000)].concat();
    for (weak, stream) in [
        ("content:\"|0a|\"; pcre:\"/^Host: evil/R\";", lines.as_slice()),
        ("content:\"|0a|\"; pcre:\"/^.*evil/Rs\";", &lines),
        ("content:\"a\"; pcre:\"/a(.*z)?/Rs\"; content:\"q\"; distance:0;", &letters),
        ("pcre:\"/^SSH-1/\";", &letters),
        ("content:\"a\"; byte_extract:1,0,n,relative; content:\"zz\"; distance:0;", &letters),
        (
            "content:\"a\"; byte_extract:1,0,n,relative; byte_extract:1,0,m; content:\"zz\";",
            &letters,
        ),
        ("pcre:\"/[a-d].{400}[e-h].{400}[^a-z]/s\";", &letters),
    ] {
        let rules = format!("alert tcp any any -> any any ({weak} sid:1;)\n{other}");
        let stream = [stream, b"cmd.exe"].concat();
        for step in [1, 1_000, usize::MAX] {
            let (sids, counts) = alerts_of(&rules, &stream, step);
            assert_eq!(sids, [2], "{weak} in steps of {step}: {counts:?}");
        }
    }
}

/// A datagram's counts of what rules have not seen.
fn counts_of_datagram(rules: &str, bytes: &[u8]) -> Counts {
    let loaded = load(rules);
    assert_eq!(loaded.refused, []);
    let mut said = Said::default();
    let (kind, number) = (Kind::Udp, &|_| None);
    let packet =
        Packet { kind, flow: FLOW, from_client: true, is_established: false, bytes, number };
    Datagrams::default().packet(&mut said.by(&loaded.set), &packet);
    said.counts
}

#[test]
fn bytes_of_numbers_cost_work() {
    let test = "byte_test:23,>=,0,0,relative,string,dec; ".repeat(60);
    let zeros = [b'0'; 2_000];
    let digits = format!("alert udp any any -> any any (content:\"0\"; {test} sid:1;)");
    assert_eq!(counts_of_datagram(&digits, &zeros).exhausted, 1);
    assert_eq!(counts_of_datagram(&digits, &zeros[..1_000]).exhausted, 0);
}

#[test]
fn lists_of_variables_are_shared() {
    let addresses: Vec<String> =
        (0..4_000).map(|at| format!("10.{}.{}.1", at / 256, at % 256)).collect();
    // A line has at most 16 KiB, so the list is made of several.
    let parts = addresses.chunks(1_000).enumerate();
    let mut rules: String =
        parts.map(|(at, part)| format!("var P{at} [{}]\n", part.join(","))).collect();
    rules += "var V [$P0,$P1,$P2,$P3]\n";
    for sid in 1..=20_000 {
        rules += &format!("alert tcp $V any -> $V any (content:\"{sid}\"; sid:{sid};)\n");
    }
    let before = std::time::Instant::now();
    let loaded = load(&rules);
    assert_eq!((loaded.set.len(), loaded.refused.len()), (20_000, 0));
    assert!(before.elapsed().as_secs() < 20, "{:?}", before.elapsed());
}

#[test]
fn work_is_bounded_and_counted() {
    let rules = (1..=200).map(|sid| {
        format!("alert tcp any any -> any any (content:\"a\"; content:\"b{sid}\"; pcre:\"/a.*c/R\"; sid:{sid};)\n")
    });
    let set = load(&rules.collect::<String>()).set;
    assert_eq!(set.len(), 200);
    let (mut inspection, mut said) = (Inspection::default(), Said::default());
    let names: String = (1..=200).map(|sid| format!("b{sid}")).collect();
    inspection.data(&mut said.by(&set), (FLOW, true), (0, names.as_bytes()));
    let start = names.len() as u64;
    for offset in start..start + limits::STREAM_DEPTH as u64 {
        inspection.data(&mut said.by(&set), (FLOW, true), (offset, b"a"));
    }
    assert_eq!((said.counts.exhausted, said.counts.depths), (1, 0));
}
