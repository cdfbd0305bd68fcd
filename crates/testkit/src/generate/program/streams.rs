//! Generates chains of stream functions, with packet functions between them: some that pass all
//! packets, so that stream functions share a TCP stack, and some that drop or change packets.

use super::source::Program;
use super::steered::Steering;
use super::text::Text;
use crate::generate::Rng;
use std::collections::BTreeMap;

/// The patterns of all generated functions. Traffic has many texts that match.
const PATTERNS: &[&str] = &[
    "{ \"evil\", nocase(\"GET /a\") }",
    "{ \"ab\", \"aba\", \"xx\" }",
    "{ regex(\"a+b.x\"), \"zzz\" }",
    "{ \"a very long text that hardly ever comes\" }",
];

/// Functions between stream functions, with the way to call them.
const BETWEEN: &[(&str, &str)] = &[
    ("nf pass() { output; }", "pass()"),
    ("nf mark() { match { has ip => { ip.dscp = 3; output; } else => output; } }", "mark()"),
    (
        "nf count() { state n: u64 per flow = 0, capacity 100, full evict_oldest;
  match { has tcp => { n += 1; output; } else => output; } }",
        "count()",
    ),
    (
        "nf thin() { state n: u32 global = 0;
  match { has tcp => { n = wrapping(n + 1); if n % 9 == 0 { drop \"thin\"; } output; } else => output; } }",
        "thin()",
    ),
    (
        "nf aged() { match { has ip and ip.ttl < 2 => drop \"aged\"; has ip => { ip.ttl -= 1; output; } else => output; } }",
        "aged()",
    ),
    ("", "napt(public: 203.0.113.7, ports: 4000..4100)"),
    // It takes events of the stream functions, and the drops change what later ones see.
    (
        "nf wall() { state seen: u32 per (u128) = 0, idle 2 s, capacity 3, full evict_oldest;
  on SEEN { seen[event.src] += 1; }
  match { has inet and seen[inet.src] > 3 => { if seen[inet.src] > 12 { delete seen[inet.src]; } drop \"seen\"; }
  else => output; } }",
        "wall()",
    ),
    (
        "nf watch() { state last: { port: u16, times: u8 } per (u128), capacity 2, full evict_oldest;
  on SEEN { last[event.src] = { port: event.sport, times: u8(event.dport) }; }
  on FOUND0 { if exists last[event.src] { last[event.src].times = u8(event.number); } }
  match { has ip and exists last[inet.src] => { ip.tos = last[inet.src].times; output; } else => output; } }",
        "watch()",
    ),
];

/// The signatures of generated functions. Traffic reaches them all.
const SIGNATURES: &str = r#"
alert tcp any any -> any any (msg:"evil"; content:"evil"; nocase; sid:1; rev:2; priority:1;)
alert tcp any any -> any [1:90] (msg:"a \"b\""; content:"a"; content:"b"; within:3; sid:2;)
alert tcp any any -> any any (flow:to_server; content:"x"; content:!"z"; sid:3;)
alert tcp any any -> any any (pcre:"/(zz|ab)+/"; content:"x"; distance:0; sid:4;)
alert http any any -> any any (msg:"get"; http.method; content:"GET"; sid:5;)
drop tcp any any <> 10.0.0.2 any (msg:"evil"; content:"aba"; sid:6;)
alert tcp any any -> any any (content:"x"; flowbits:toggle,x; flowbits:noalert; sid:7;)
alert tcp any any -> any any (content:"a"; flowbits:isset,x; sid:8;)
alert tcp any any -> any any (content:"b"; flowbits:isnotset,x; flowbits:set,b; sid:9;)
alert udp any any -> any any (content:"a"; flowbits:isnotset,a; flowbits:set,a; sid:12;)
alert udp any any -> any any (flow:established; dsize:>1; content:"b"; sid:13;)
drop udp any any -> any any (byte_test:1,&,1,0; content:"evil"; sid:14;)
alert tcp any any -> any [1:80] (flags:S,12; flowbits:set,syn; noalert; sid:15;)
alert tcp any any -> any any (flow:to_client; dsize:1<>4; flowbits:isset,syn; sid:16;)
alert tcp any any -> any 81 (flags:R+; ttl:64; sid:17;)
drop tcp-pkt any any -> any any (flow:established; content:"zz"; dsize:>90; sid:18;)
alert ip any any -> any any (content:"aab"; sid:19;)
alert icmp any any -> any any (itype:8; icmp_seq:<3; sid:20;)
drop icmp any any -> any any (content:"ab"; sid:21;)
drop ip any any -> any any (ip_proto:47; sid:22;)
alert ip any any -> any any (fragbits:*M; fragoffset:<9; sid:23;)
drop udp any any -> any any (fragoffset:>0; sid:24;)
alert ip any any -> any any (ipopts:any; sid:25;)
"#;

/// More of them. With these, what holds for one connection counts for others.
const THRESHOLDS: &str = r#"
alert tcp any any -> any any (content:"a"; threshold:type both,track by_src,count 2,seconds 2; sid:10;)
alert http any any -> any any (content:"a"; detection_filter:track by_dst,count 1,seconds 1; sid:11;)
"#;

/// The program of a seed.
#[must_use]
pub fn program(seed: u64) -> Program {
    let mut rng = Rng::new(seed ^ 0x7374_7265_616d);
    let mut text = Text::default();
    let mut path = vec!["lan".to_owned()];
    let mut used = [false; BETWEEN.len()];
    text.line("event SEEN extends EVENT { src: addr, sport: u16, dport: u16 }");
    let is_wide = rng.one_in(2);
    let mut inspects = Rng::new(seed ^ 0x0073_6967);
    let mut parses = Rng::new(seed ^ 0x6874_7470);
    let mut steers = Steering::new(seed, is_wide, &mut text);
    let mut files = BTreeMap::new();
    for number in 0..1 + rng.below(4) {
        steers.add(number, &mut text, &mut path);
        if rng.one_in(2) {
            let at = rng.below(BETWEEN.len());
            let (source, call) = BETWEEN[at];
            if !std::mem::replace(&mut used[at], true) {
                source.lines().for_each(|line| text.line(line));
            }
            path.push(call.to_owned());
        }
        let mut function = Function { rng: rng.split(), number, is_wide, text: Text::default() };
        function.write();
        function.text.finish().lines().for_each(|line| text.line(line.trim_start()));
        let patterns = rng.pick(PATTERNS);
        path.push(format!("s{number}(bad: {patterns}, most: {} B)", 1 + rng.below(60)));
        if inspects.one_in(2) {
            inspecting(number, &mut inspects, &mut text);
            path.push(format!("g{number}(rules: signatures(\"alerts.rules\"))"));
            let more = if inspects.one_in(3) { THRESHOLDS } else { "" };
            files.insert("alerts.rules".to_owned(), [SIGNATURES, more].concat());
        }
        if parses.one_in(2) {
            parsing(number, &mut parses, &mut text);
            path.push(format!("h{number}(bad: {})", parses.pick(PATTERNS)));
        }
    }
    steers.finish(&mut text, &mut path);
    path.push("wan".to_owned());
    text.line("chain generated {");
    text.line("interface lan { behind 10.0.0.0/8, 2001:db8::/125 }");
    text.line("interface wan;");
    text.line(&format!("path {};", path.join(" <-> ")));
    text.line("}");
    Program { source: text.finish(), files }
}

/// A stream function that inspects connections by signatures.
fn inspecting(number: usize, rng: &mut Rng, text: &mut Text) {
    text.line(&format!(
        "event ALERT{number} extends EVENT {{ sid: u32, rev: u32, priority: u8, message: string, \
         client: bool, src: addr, dport: u16 }}"
    ));
    text.line(&format!("stream nf g{number}(rules: signatures) {{"));
    text.line("state alerts: u32 per biflow = 0, capacity 3, full evict_oldest;");
    text.line("on alert {");
    text.line("alerts += 1;");
    text.line(&format!(
        "emit ALERT{number} {{ sid: alert.sid, rev: alert.rev, priority: alert.priority, message: \
         alert.message, client: alert.from_client, src: inet.src, dport: inet.dport }};"
    ));
    let end = *rng.pick(&["bypass;", "reset \"alerts\";", "forward;"]);
    text.line(&format!("if alert.drop or alerts > {} {{ {end} }}", 1 + rng.below(4)));
    text.line("}");
    text.line("on close { delete alerts; }");
    text.line("}");
}

/// A stream function that takes HTTP messages.
fn parsing(number: usize, rng: &mut Rng, text: &mut Text) {
    text.line(&format!(
        "event REQUEST{number} extends EVENT {{ method: string, target: string, host: string, path: \
         string, agent: string, at: time, size: size, has_size: bool, bad: u32, src: addr }}"
    ));
    text.line(&format!(
        "event RESPONSE{number} extends EVENT {{ status: u16, method: string, host: string, path: \
         string, at: time, size: size, has_size: bool, known: bool, src: addr }}"
    ));
    text.line(&format!("stream nf h{number}(bad: patterns) {{"));
    text.line("state messages: u32 per biflow = 0, capacity 3, full evict_oldest;");
    let mut end = || *rng.pick(&["bypass;", "reset \"http\";", "forward;", "forward;"]);
    let emit = format!(
        "emit REQUEST{number} {{ method: request.method, target: request.target, host: \
         request.host, path: request.path, agent: request.user_agent, at: request.time, size: \
         request.content_length, has_size: request.has_content_length, src: inet.src, bad: "
    );
    let takes_both = [end(), end()];
    text.line("on request {");
    text.line("messages += 1;");
    text.line(&format!("let m = find(request.path, bad) else {{ {emit}99 }}; forward; }}"));
    text.line(&format!("{emit}m.number }};"));
    text.line(&format!("if request.host matches bad {{ {} }}", takes_both[0]));
    text.line(&format!("if request.method == \"HEAD\" or messages > 4 {{ {} }}", takes_both[1]));
    text.line("}");
    let end = end();
    if !rng.one_in(4) {
        text.line("on response {");
        text.line("messages += 1;");
        text.line(&format!(
            "emit RESPONSE{number} {{ status: response.status, method: request.method, host: \
             request.host, path: request.path, at: request.time, size: response.content_length, \
             has_size: response.has_content_length, known: response.has_request, src: inet.src }};"
        ));
        text.line(&format!("if response.status > 400 {{ {end} }}"));
        text.line("}");
    }
    if rng.one_in(3) {
        text.line("on data { if stream.data matches bad and messages > 3 { bypass; } forward; }");
    }
    text.line("on close { delete messages; }");
    text.line("}");
}

/// A stream function that is being written.
struct Function {
    rng: Rng,
    number: usize,
    /// Whether connections have state in common.
    is_wide: bool,
    text: Text,
}

impl Function {
    fn write(&mut self) {
        let number = self.number;
        let event =
            |name: &str, more: &str| format!("event {name}{number} extends SEEN {{{more} }}");
        self.text.line(&event("OPEN", ""));
        self.text.line(&event("FOUND", " offset: size, len: size, number: u32"));
        self.text.line(&event("CLOSED", " total: u64"));
        self.text.line(&format!("stream nf s{number}(bad: patterns, most: size) {{"));
        let idle = *self.rng.pick(&["300 ms", "5 s", "5 min"]);
        let capacity = *self.rng.pick(&["2", "1000"]);
        let full = *self.rng.pick(&["", ", full evict_oldest"]);
        self.text.line(&format!(
            "state bytes: size per biflow = 0 B, idle {idle}, capacity {capacity}{full};"
        ));
        self.text.line("state parts: u32 per flow = 0;");
        let (by, of) = if self.is_wide { ("inet.src", "global") } else { ("biflow", "per biflow") };
        self.text.line(&format!("state by: u8 per {by} = 0, capacity 2, full evict_oldest;"));
        self.text.line(&format!("state total: u64 {of} = 0;"));
        let flow = "src: inet.src, sport: tcp.sport, dport: tcp.dport";
        self.text.line("on open {");
        self.text.line("total += 1;");
        self.text.line("by += 1;");
        if self.rng.one_in(2) {
            self.text.line(&format!("emit OPEN{number} {{ {flow} }};"));
        }
        if self.rng.one_in(4) {
            let end = self.end();
            let test = *self.rng.pick(&["tcp.dport == 81", "has ip6", "total % 5 == 0"]);
            self.text.line(&format!("if {test} {{ {end} }}"));
        }
        self.text.line("}");
        match self.rng.below(4) {
            0 => self.data("from client", true),
            1 => {
                self.data("from client", false);
                self.data("from server", true);
            }
            _ => self.data("", true),
        }
        if self.is_wide && self.rng.one_in(2) {
            self.text.line("on SEEN { total += u64(event.dport); }");
        }
        self.text.line("on close {");
        self.text.line("delete parts;");
        if self.rng.one_in(2) {
            self.text.line(&format!("emit CLOSED{number} {{ {flow}, total: total }};"));
        }
        self.text.line("}");
        self.text.line("}");
    }

    /// A block for data. With `all`, it uses all that the function declares.
    fn data(&mut self, from: &str, all: bool) {
        let number = self.number;
        self.text.line(&format!("on data {from} {{"));
        self.text.line("bytes += stream.len;");
        self.text.line("parts = wrapping(parts + 1);");
        let emit = format!(
            "emit FOUND{number} {{ src: inet.src, sport: tcp.sport, dport: tcp.dport, offset: \
             stream.offset, len: stream.len, number: "
        );
        if all {
            self.text.line(
                "let m = find(stream.data, bad) else { if bytes > most { bypass; } forward; }",
            );
            self.text.line(&format!("{emit}m.number }};"));
        }
        self.text.line("match {");
        // Each kind of test comes once, so that no row hides another one.
        let first = self.rng.below(7);
        for kind in (first..7).take(1 + self.rng.below(3)) {
            let (test, end) = (self.test(kind), self.end());
            self.text.line(&format!("{test} => {{ total += 1; {end} }}"));
        }
        self.text.line("else => {");
        if self.rng.one_in(3) {
            self.text.line(&format!("{emit}0 }};"));
        }
        let end = self.end();
        self.text.line(&end);
        self.text.line("}");
        self.text.line("}");
        self.text.line("}");
    }

    fn test(&mut self, kind: usize) -> String {
        let number = self.rng.below(40);
        match kind {
            0 => "stream.data matches bad".to_owned(),
            1 => format!("stream.len > {number} B"),
            2 => format!("stream.offset >= {number} B and tcp.sport != 80"),
            3 => format!("bytes > {number} B"),
            4 => format!("parts > {}", number / 8),
            5 => "has ip and ip.src in 10.0.0.2".to_owned(),
            _ => format!("by > {}", number / 10),
        }
    }

    fn end(&mut self) -> String {
        match self.rng.below(9) {
            0 => format!("reset \"reason {}\";", self.rng.below(2)),
            1 => "bypass;".to_owned(),
            2 => "by = 0; forward;".to_owned(),
            _ => "forward;".to_owned(),
        }
    }
}
