//! Tests `braid streams` from the command line.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use braid_packet::{Field, Link, Packet, Shape, build_fresh};
use common::{Ended, Folder, S, braid, command, ended, request};
use serde_json::{Value, json};

const FIN: u128 = 1;
const SYN: u128 = 2;
const RST: u128 = 4;
const ACK: u128 = 16;

/// A TCP packet from port `sport` of 10.0.0.1 to port 80 of 10.0.0.2, or back.
fn tcp(time: u64, sport: u128, up: bool, flags: u128, seq: u128, ack: u128, text: &str) -> Packet {
    let (client, server) = ((0x0a00_0001, sport), (0x0a00_0002, 80));
    let (src, dst) = if up { (client, server) } else { (server, client) };
    let fields = [
        (Field::IpSrc, src.0),
        (Field::TcpSport, src.1),
        (Field::IpDst, dst.0),
        (Field::TcpDport, dst.1),
        (Field::TcpFlags, flags),
        (Field::TcpSeq, seq),
        (Field::TcpAck, ack),
        (Field::TcpWindow, 0xffff),
    ];
    build_fresh(Link::Ethernet, time, Shape::Tcp4, &fields, text.as_bytes()).expect("built")
}

/// A connection in which the client says `text`, and closes.
fn connection(time: u64, sport: u128, isn: u128, text: &str) -> Vec<Packet> {
    let end = isn + 1 + text.len() as u128;
    vec![
        tcp(time, sport, true, SYN, isn, 0, ""),
        tcp(time + 1, sport, false, SYN | ACK, 500, isn + 1, ""),
        tcp(time + 2, sport, true, ACK, isn + 1, 501, text),
        tcp(time + 3, sport, false, ACK, 501, end, "ok"),
        tcp(time + 4, sport, true, FIN | ACK, end, 503, ""),
        tcp(time + 5, sport, false, FIN | ACK, 503, end + 1, ""),
        tcp(time + 6, sport, true, ACK, end + 1, 504, ""),
    ]
}

/// The files in a folder.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read(path).unwrap())
    };
    std::fs::read_dir(dir).unwrap().map(entry).collect()
}

/// The objects of the listing: streams, and the total.
fn objects(ended: &Ended) -> (Vec<Value>, Value) {
    let mut all: Vec<Value> =
        ended.out.lines().map(|line| serde_json::from_str(line).expect("a JSON object")).collect();
    let total = all.pop().expect("a total");
    assert_eq!(total["type"], "total");
    assert!(all.iter().all(|one| one["type"] == "stream"));
    (all, total)
}

fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/captures/domain-client.pcap.gz")
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn bundled_capture_gives_the_streams_that_scapy_gives() {
    let folder = Folder::new();
    let (out, input) = (folder.path("out"), bundled());
    let (out, input) = (out.to_str().unwrap(), input.to_str().unwrap());
    let ended = braid(&["streams", "--in", input, "--out", out, "--json"]).code(0);
    let (streams, total) = objects(&ended);
    let found = files(Path::new(out));
    let listed = include_str!("expected_streams/domain-client.txt");
    let mut expected = 0;
    for line in listed.lines().filter(|line| !line.starts_with('#')) {
        let [name, bytes, len, hash] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let file = &found[name];
        assert_eq!(
            (file.len().to_string().as_str(), format!("{:016x}", fnv(file))),
            (len, hash.to_owned()),
            "{name}"
        );
        let stream = streams.iter().find(|stream| stream["file"] == name).expect(name);
        assert_eq!(stream["bytes"].to_string(), bytes, "{name}");
        expected += 1;
    }
    assert_eq!((found.len(), total["files"].as_u64()), (expected, Some(expected as u64)));
    let packets = total["packets"].as_u64().unwrap();
    assert_eq!(packets, braid_io_packets(&bundled()));
    let kinds = ["segments", "not_tcp", "fragments", "malformed", "wrong_checksums"];
    assert_eq!(kinds.iter().map(|kind| total[kind].as_u64().unwrap()).sum::<u64>(), packets);
}

fn braid_io_packets(path: &Path) -> u64 {
    common::packets(path).len() as u64
}

#[test]
fn listing_says_how_streams_began_and_ended() {
    let folder = Folder::new();
    let mut packets = connection(S, 1234, 100, "hello");
    packets.extend(connection(2 * S, 1234, 9000, "again"));
    packets.push(tcp(3 * S, 99, true, ACK, 7, 9, "middle"));
    packets.push(tcp(3 * S + 1, 99, false, RST, 9, 0, ""));
    packets.push(request(4 * S, 1, 3));
    folder.capture("in.pcap", &packets);
    let ended = folder.braid(&["streams", "--in", "in.pcap", "--out", "out"]).code(0);
    assert_eq!(
        ended.out,
        "10.0.0.1:1234 > 10.0.0.2:80: 5 bytes, handshake, syn, fin\n\
         10.0.0.2:80 > 10.0.0.1:1234: 2 bytes, handshake, syn, fin\n\
         10.0.0.1:1234 > 10.0.0.2:80: 5 bytes, handshake, syn, fin\n\
         10.0.0.2:80 > 10.0.0.1:1234: 2 bytes, handshake, syn, fin\n\
         10.0.0.1:99 > 10.0.0.2:80: 6 bytes, mid-stream, mid-stream, reset by receiver\n\
         10.0.0.2:80 > 10.0.0.1:99: 0 bytes, mid-stream, unseen, reset\n\
         3 connections, 20 bytes in 5 files; 17 packets, 16 TCP segments, 1 not tcp\n"
    );
    let found: Vec<(String, String)> = files(&folder.path("out"))
        .into_iter()
        .map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap()))
        .collect();
    let expected = [
        ("010.000.000.001.00099-010.000.000.002.00080", "middle"),
        ("010.000.000.001.01234-010.000.000.002.00080", "hello"),
        ("010.000.000.001.01234-010.000.000.002.00080c1", "again"),
        ("010.000.000.002.00080-010.000.000.001.01234", "ok"),
        ("010.000.000.002.00080-010.000.000.001.01234c1", "ok"),
    ];
    assert_eq!(found, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
}

/// A gap, bytes that wait and disagree, and bytes that disagree with those in the file.
fn odd() -> Vec<Packet> {
    let data = |time, seq, text| tcp(time, 1, true, ACK, seq, 501, text);
    vec![
        tcp(S, 1, true, SYN, 100, 0, ""),
        tcp(S + 1, 1, false, SYN | ACK, 500, 101, ""),
        data(S + 2, 101, "abcd"),
        data(S + 3, 102, "bXX"),
        data(S + 4, 109, "ijkl"),
        data(S + 5, 109, "IJ"),
    ]
}

#[test]
fn gaps_and_overlaps_are_listed_and_gaps_are_holes() {
    let (earlier, later) = ("abcd\0\0\0\0ijkl", "abcd\0\0\0\0IJkl");
    for (policies, kept, text) in [
        (&["first"][..], "earlier", earlier),
        (&["last"], "later", later),
        // The policy of the receiver counts.
        (&["last", "first@10.0.0.2"], "earlier", earlier),
        (&["first", "last@10.0.0.2/31"], "later", later),
        (&["first", "last@10.0.0.1"], "earlier", earlier),
    ] {
        let folder = Folder::new();
        folder.capture("in.pcap", &odd());
        let mut args = vec!["streams", "--in", "in.pcap", "--out", "out"];
        args.extend(policies.iter().flat_map(|policy| ["--policy", policy]));
        let ended = folder.braid(&args).code(0);
        let listed = format!(
            "10.0.0.1:1 > 10.0.0.2:80: 8 bytes, handshake, syn, capture end\n\
             \x20 gap at 4: 4 bytes (end)\n\
             \x20 overlap at 2: 2 bytes, kept earlier\n\
             \x20 overlap at 8: 2 bytes, kept {kept}\n"
        );
        assert!(ended.out.starts_with(&listed), "{}", ended.out);
        let found = files(&folder.path("out"));
        assert_eq!(found["010.000.000.001.00001-010.000.000.002.00080"], text.as_bytes());
        args[4] = "json";
        args.push("--json");
        let (streams, _) = objects(&folder.braid(&args).code(0));
        assert_eq!(streams[0]["gaps"], json!([{ "offset": 4, "len": 4, "why": "end" }]));
        let overlaps = json!([
            { "offset": 2, "len": 2, "kept": "earlier" },
            { "offset": 8, "len": 2, "kept": kept },
        ]);
        assert_eq!(streams[0]["overlap_count"], 2);
        assert_eq!(streams[0]["overlaps"], overlaps);
    }
}

#[test]
fn wrong_checksums_count_unless_they_are_verified() {
    let folder = Folder::new();
    let mut packets = connection(S, 1, 100, "hello");
    let last = packets[2].data().len() - 1;
    packets[2].data_mut()[last] ^= 0x40;
    folder.capture("in.pcap", &packets);
    let name = "010.000.000.001.00001-010.000.000.002.00080";
    folder.braid(&["streams", "--in", "in.pcap", "--out", "a"]).code(0);
    assert_eq!(files(&folder.path("a"))[name], b"hell/");
    let args = ["streams", "--in", "in.pcap", "--out", "b", "--verify-checksums"];
    folder.braid(&args).code(0).says("gap at 0: 5 bytes (acknowledged)").says("1 wrong checksums");
    assert!(!files(&folder.path("b")).contains_key(name));
}

#[test]
fn more_streams_than_open_files_are_written() {
    let folder = Folder::new();
    let all: Vec<Vec<Packet>> =
        (0..200).map(|n| connection(S, 1000 + n, 100, "some text")).collect();
    let interleaved: Vec<Packet> =
        (0..7).flat_map(|at| all.iter().map(move |one| one[at].clone())).collect();
    folder.capture("in.pcap", &interleaved);
    let program = command().get_program().to_owned();
    let script = "ulimit -n 20; exec \"$0\" streams --in in.pcap --out out";
    let mut shell = std::process::Command::new("sh");
    shell.current_dir(folder.path("")).arg("-c").arg(script).arg(program);
    ended(&shell.output().unwrap()).code(0).says("200 connections, 2,200 bytes in 400 files");
    let found = files(&folder.path("out"));
    let texts = [&b"some text"[..], b"ok"];
    assert!(found.len() == 400 && found.values().all(|text| texts.contains(&text.as_slice())));
}

#[test]
fn memory_limits_are_kept_and_losses_are_counted() {
    let folder = Folder::new();
    let syns: Vec<Packet> =
        (0..4000).map(|n| tcp(S + n, 1000 + u128::from(n), true, ACK, 100, 1, "text")).collect();
    folder.capture("in.pcap", &syns);
    let args = ["streams", "--in", "in.pcap", "--out", "out", "--memory", "1", "--json"];
    let (streams, total) = objects(&folder.braid(&args).code(0));
    let given_up = total["given_up"].as_u64().unwrap();
    assert!(given_up > 1000, "{total}");
    let listed = streams.iter().filter(|stream| stream["ended"] == "given up").count();
    assert_eq!(
        (listed as u64, streams.len(), total["bytes"].as_u64()),
        (given_up, 4000, Some(16_000))
    );
}

#[test]
fn folder_that_is_not_empty_or_cannot_be_made_is_refused() {
    let folder = Folder::new();
    folder.capture("in.pcap", &odd());
    std::fs::create_dir(folder.path("full")).unwrap();
    folder.write("full/a", "a");
    let args = |out| ["streams", "--in", "in.pcap", "--out", out];
    folder.braid(&args("full")).code(2).warns("full is not empty; name a new folder");
    folder.braid(&args("full/a/b")).code(3).warns("full/a/b: ");
    folder.braid(&args("in.pcap")).code(3).warns("in.pcap: ");
    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.braid(&args("empty")).code(0);
    let missing = ["streams", "--in", "none.pcap", "--out", "new"];
    folder.braid(&missing).code(3).warns("none.pcap: ");
    assert!(!folder.path("new").exists());
    let policy = ["streams", "--in", "in.pcap", "--out", "x", "--policy", "mac"];
    folder
        .braid(&policy)
        .code(2)
        .warns("the policies are first, last, bsd, linux, old-linux, solaris");
    let twice = ["streams", "--in", "in.pcap", "--out", "x", "--policy", "bsd", "--policy", "last"];
    folder.braid(&twice).code(2).warns("two policies for the same hosts");
}

#[test]
fn capture_that_ends_early_gives_what_it_has() {
    let folder = Folder::new();
    folder.capture("in.pcap", &connection(S, 1, 100, "hello"));
    let whole = std::fs::read(folder.path("in.pcap")).unwrap();
    std::fs::write(folder.path("cut.pcap"), &whole[..whole.len() - 5]).unwrap();
    let ended = folder.braid(&["streams", "--in", "cut.pcap", "--out", "a"]).code(0);
    ended.says("5 bytes, handshake, syn, fin").warns("cut.pcap: ");
    let mut damaged = whole.clone();
    damaged.extend([0xff; 64]);
    std::fs::write(folder.path("bad.pcap"), damaged).unwrap();
    let ended = folder.braid(&["streams", "--in", "bad.pcap", "--out", "b"]).code(3);
    ended.says("5 bytes, handshake, syn, fin").warns("bad.pcap: ");
}

/// The gaps are more than the monitor remembers, so that it takes late bytes for repeated ones.
#[test]
fn bytes_that_come_long_after_their_gap_are_not_compared_with_the_hole() {
    let folder = Folder::new();
    let at = |time, seq, text| tcp(time, 1, true, ACK, seq, 501, text);
    let mut packets = vec![at(S, 1000, "ab")];
    for n in 1..40_u64 {
        let seq = u128::from(n) * 4 + 1000;
        packets.push(at(S * n * 20, seq, "cd"));
        packets.push(tcp(S * n * 20 + 1, 1, false, ACK, 501, seq + 2, ""));
        packets.push(tcp(S * (n * 20 + 12), 1, false, ACK, 501, seq + 2, ""));
    }
    packets.push(at(S * 900, 1002, "XX"));
    folder.capture("in.pcap", &packets);
    let args = ["streams", "--in", "in.pcap", "--out", "out", "--json"];
    let (streams, _) = objects(&folder.braid(&args).code(0));
    assert_eq!((&streams[0]["gap_count"], &streams[0]["overlap_count"]), (&json!(39), &json!(0)));
}

#[test]
fn long_gaps_have_short_holes() {
    let folder = Folder::new();
    let at = |time, seq, text| tcp(time, 1, true, ACK, seq, 501, text);
    let far = 1000 + (100 << 20);
    let packets = [at(S, 1000, "abc"), at(S + 1, far, "def"), at(S + 2, far, "deF")];
    folder.capture("in.pcap", &packets);
    let ended = folder.braid(&["streams", "--in", "in.pcap", "--out", "out"]).code(0);
    let ended = ended.says("gap at 3: 104857597 bytes (end)");
    ended.says("overlap at 104857602: 1 bytes, kept earlier");
    let found = files(&folder.path("out"));
    let file = &found["010.000.000.001.00001-010.000.000.002.00080"];
    let mut expected = b"abc".to_vec();
    expected.resize(3 + (16 << 20), 0);
    expected.extend(b"def");
    assert!(*file == expected, "{} bytes", file.len());
}

#[test]
fn fragments_are_counted() {
    let folder = Folder::new();
    let mut packets = connection(S, 1, 100, "hello");
    // The flag "more fragments" of IPv4, behind 14 bytes of Ethernet.
    packets[2].data_mut()[20] |= 0x20;
    folder.capture("in.pcap", &packets);
    let ended = folder.braid(&["streams", "--in", "in.pcap", "--out", "out"]).code(0);
    ended.says("gap at 0: 5 bytes (acknowledged)").says("1 fragments");
}
