//! Functions that look strings of the payload up in sets, find patterns there, and write strings in
//! lower case.

use super::Family;
use braid_compiler::synth::SynthMutant;
use braid_testkit::generate::Rng;
use braid_testkit::harness::{self, Form};
use braid_testkit::packet::parse;
use braid_testkit::record::{Detail, Output, Stimulus, record};

pub const FAMILY: Family = Family {
    functions: FUNCTIONS,
    names: &NAMES,
    packet,
    keys: "",
    mutants: &[SynthMutant::PlaceSwapped, SynthMutant::LengthLost],
};

/// Functions by name. Each of them acts on some packets only.
const FUNCTIONS: &str = r#"
const METHODS = { "GET", "HEAD" };
nf exact(words: set<bytes<32>> = { "", "a.example", "GET", "0123456789abcdefg", "x\0" }) {
  match {
    has l4 => {
      let word = bytes<32> at payload for pkt.payload_len else output;
      if word in words { drop "known"; }
      if word not in words and bytes<32> at payload for 3 in METHODS { output back; }
      output;
    }
    else => output;
  }
}
nf hosts_of(names: hosts = { "a.example", "*.b.example", "*.org." }, more: hosts = { "*.a.example" }) {
  match {
    bytes<48> at payload for pkt.payload_len in names - more => drop "host";
    bytes<16> at payload + 1 for size(pkt.payload_len) - 1 B in names | { "GET /", "" } => output back;
    has ip and bytes<16> at payload for (ip.ttl & 15) not in more => { ip.tos = 3; output; }
    else => output;
  }
}
nf places(words: patterns = { nocase("host: "), regex("[a-z]+[.](example|org)"), "GET", regex("$") }) {
  match {
    has l4 => {
      let place = find(payload, words) else drop "nothing";
      let named = bytes<32> at payload + place.start for place.end - place.start else output back;
      if has ip { ip.id = u16(place.start << 8 | place.end); ip.tos = u8(place.number); }
      if place.number == 2 {
        bytes<32> at payload + place.start for place.end - place.start = "a.example" else drop "room";
      }
      if named == "GET" { u8 at payload + place.end = 90 else output; }
      output;
    }
    else => output;
  }
}
nf often(words: patterns = { regex("(?i)host: *"), regex("(?i)host: *[^ ]*") }) {
  state seen: u32 per (bytes<32>) = 0, capacity 3, full evict_oldest;
  match {
    payload matches words => {
      let name = find(payload, words) else drop;
      let host = bytes<32> at payload + name.end for pkt.payload_len - size(name.end) else output;
      seen[lowercase(host)] += 1;
      if seen[lowercase(host)] > 2 { drop "often"; }
      output;
    }
    else => output;
  }
}
nf quiet() {
  match {
    has l4 => {
      let all = bytes<48> at payload for pkt.payload_len else output;
      bytes<48> at payload for pkt.payload_len = lowercase(all) else drop "room";
      output;
    }
    else => output;
  }
}
const FEW = { "GET", nocase("HOST: "), regex("^a") };
nf parts() {
  match {
    payload[3..7] matches FEW => drop "near the front";
    has ip and not payload[ip.ttl & 7..65_535] matches { "a", "." } => { ip.tos = 5; output; }
    has l4 => {
      let place = find(payload[1..u16(l4.sport)], { regex("[.][a-z]"), "e" }) else output back;
      if has ip { ip.id = u16(place.start << 8 | place.end); ip.tos = u8(place.number); }
      let number = which(payload[place.end..u32(place.end) + 2], { "xam", "rg", "x" }) else drop "else";
      u8 at payload = u8(number) else output;
      output;
    }
    else => output;
  }
}
nf texts(words: set<bytes<48>> = { "a.example", "GET" }) {
  state seen: u32 per (bytes<48>) = 0, capacity 3, full evict_oldest;
  match {
    bytes<48> at payload for pkt.payload_len matches { "[@Z{", regex("^host") } => drop "here";
    has l4 => {
      let all = bytes<32> at payload for pkt.payload_len else output;
      let short = bytes<16> at payload for 3 else output;
      if all == short or all in words { drop "known"; }
      seen[all] += 1;
      if seen[short] > 1 { drop "often"; }
      let place = find(all, FEW) else output back;
      if place.start > 0 and which_of(place.number) == 2 { drop "inside"; }
      if has ip { ip.id = u16(place.start << 8 | place.end); }
      bytes<32> at payload for 1 = short else drop "room";
      output;
    }
    else => output;
  }
}
fn which_of(number: u32) -> u32 = number;
nf longer() {
  match {
    has l4 and "GET" at payload => { bytes<16> at payload for 1 = "x.ge" else drop; output; }
    has udp and udp.sport == 9 => { udp.dport = 6081; u8 at payload = 0 else output; output; }
    else => output;
  }
}
"#;

const NAMES: [&str; 8] =
    ["exact", "hosts_of", "places", "often", "quiet", "parts", "texts", "longer"];

fn packet(rng: &mut Rng) -> String {
    let (from, to) = (7 + rng.below(3), *rng.pick(&[53, 80, 6081]));
    let cut = rng.pick(&["", "", "", " snap=44", " snap=50", " pad=3"]);
    let words = [
        "",
        "a.example",
        "A.Example.",
        "GET",
        "get",
        "GET /",
        "x.b.example",
        "b.example",
        "x\\x00",
        "x",
        "Host: ",
        "hOsT: a.example",
        "host:",
        ".a.example",
        "y.X.org",
        "0123456789abcdefg",
        "\\xff\\xc1[@Z{",
        "HEAD",
        "x.a.example",
        "org",
    ];
    let word = |rng: &mut Rng| match rng.below(6) {
        0 => format!("{}{}", rng.pick(&words), rng.pick(&words)),
        1 => format!(" {}", rng.pick(&words)),
        _ => (*rng.pick(&words)).to_owned(),
    };
    let body = match word(rng).as_str() {
        "" => String::new(),
        word => format!(" \"{word}\""),
    };
    match rng.below(8) {
        0 => format!("icmp 10.0.0.1 > 10.0.0.2 echo-request id=3{body}{cut}"),
        1 => format!("udp [2001:db8::1]:{from} > [2001:db8::2]:{to}{body}"),
        2 | 3 => format!("tcp 10.0.0.1:{from} > 10.0.0.2:{to} PA ttl=57{body}{cut}"),
        4 => format!("ip 10.0.0.1 > 10.0.0.2 proto=6{body}"),
        _ => format!("udp 10.0.0.1:{from} > 10.0.0.2:{to} ttl=57{body}{cut}"),
    }
}

/// The payload of a UDP packet behind a chain of one function, by the reference. `None` if the
/// packet was dropped.
fn behind(function: &str, payload: &[u8]) -> Option<Vec<u8>> {
    let source = format!("{function}\nchain c {{ path in <-> f() <-> out; }}");
    let chain = harness::compile(&source, &Default::default(), Form::AsWritten).expect("a chain");
    let hex: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
    let packet = parse(&format!("udp 10.0.0.1:1 > 10.0.0.2:2 hex={hex}")).expect("a packet");
    let stimuli = [Stimulus::Packet(0, packet.at(0))];
    let trace = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
    let [Output::Packet(_, packet), ..] = trace.outputs.first()?.as_slice() else { return None };
    Some(packet.data().get(42..42 + payload.len())?.to_vec())
}

#[test]
fn lower_case_is_that_of_ascii_for_every_byte() {
    let function = "nf f() { match { has udp => {
        let all = bytes<128> at payload for pkt.payload_len else drop;
        bytes<128> at payload for pkt.payload_len = lowercase(all) else drop;
        output;
      } else => drop; } }";
    let all: Vec<u8> = (0..=255).collect();
    // In words of 16 bytes and in shorter ones, with each byte beside others.
    for len in [1, 15, 16, 17, 128] {
        for part in all.chunks(len) {
            assert_eq!(behind(function, part), Some(part.to_ascii_lowercase()));
        }
    }
}

#[test]
fn hosts_are_known_as_their_entries_say() {
    let function = "nf f(sites: hosts = { \"a.example\", \"*.b.example\" }) { match {
        bytes<240> at payload for pkt.payload_len in sites => drop;
        else => output; } }";
    let labels = ["a", "B", "example", "Example", "b", "", "ab"];
    let mut rng = Rng::new(1);
    let mut known = 0;
    for _ in 0..braid_cases::at_least(400) {
        let parts: Vec<_> = (0..1 + rng.below(4)).map(|_| *rng.pick(&labels)).collect();
        let name = parts.join(".");
        let lower = name.to_lowercase();
        let lower = lower.strip_suffix('.').unwrap_or(&lower);
        let expected = lower == "a.example" || lower.ends_with(".b.example");
        let is_known = behind(function, name.as_bytes()).is_none();
        assert_eq!(is_known, expected, "{name}");
        known += u32::from(is_known);
    }
    assert!(known > 5, "{known}");
}

#[test]
fn parts_of_payloads_are_searched_as_a_text_of_their_own() {
    // The function writes where it found something into the payload's first bytes.
    let found = |place: &str, payload: &str| {
        let (text, place) = match place.starts_with("bytes") {
            true => (format!("let text = {place} else drop;"), "text"),
            false => (String::new(), place),
        };
        let function = format!(
            "nf f() {{ match {{ has udp => {{ {text}
               let m = find({place}, {{ \"cd\", regex(\"^b\"), regex(\"e$\") }}) else drop;
               u8 at payload = u8(m.number) else drop;
               u8 at payload + 1 = u8(m.start) else drop;
               u8 at payload + 2 = u8(m.end) else drop;
               output;
             }} else => drop; }} }}"
        );
        behind(&function, payload.as_bytes()).map(|bytes| [bytes[0], bytes[1], bytes[2]])
    };
    assert_eq!(found("payload", "abcdef"), Some([1, 2, 4]));
    // Both ends count: byte 3 is the `d`.
    assert_eq!(found("payload[2..3]", "abcdef"), Some([1, 2, 4]));
    assert_eq!(found("payload[2..2]", "abcdef"), None);
    // The ends of the part are those of the text.
    assert_eq!(found("payload[1..2]", "abcdef"), Some([2, 1, 2]));
    assert_eq!(found("payload[3..4]", "abcdef"), Some([3, 4, 5]));
    // A part goes as far as the payload, also where it begins behind it.
    assert_eq!(found("payload[4..65_535]", "abcdee"), Some([3, 5, 6]));
    assert_eq!(found("payload[u32(pkt.payload_len)..99]", "abcdee"), None);
    // Computed ends that leave nothing.
    assert_eq!(found("payload[u32(pkt.payload_len)..2]", "abcdee"), None);
    // Places in a string count from its first byte.
    assert_eq!(found("bytes<16> at payload + 2 for 3", "zzbcdef"), Some([1, 1, 3]));
    assert_eq!(found("bytes<16> at payload + 3 for 3", "abdcef"), None);
}

#[test]
fn strings_of_several_lengths_are_compared_and_kept() {
    let function = "nf f(words: set<bytes<64>> = { \"abc\" }) {
      state seen: u32 per (bytes<32>) = 0, idle 1 s, full evict_oldest;
      match { has udp => {
        let short = bytes<16> at payload for 3 else drop;
        let long = bytes<32> at payload for 3 else drop;
        seen[short] += 4;
        if short == long and seen[long] == 4 and short in words { u8 at payload = 90 else drop; }
        if bytes<48> at payload for 4 != short { u8 at payload + 1 = 91 else drop; }
        output;
      } else => drop; } }";
    assert_eq!(behind(function, b"abcd"), Some(b"Z[cd".to_vec()));
    assert_eq!(behind(function, b"abdd"), Some(b"a[dd".to_vec()));
}
