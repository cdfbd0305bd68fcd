//! Generates chains of library functions that read the same fields: routers by the same address,
//! translators in sequence, tables per flow in several functions. Limits are small, so traffic
//! reaches them.

use super::beside;
use super::counters;
use super::function;
use super::function::declare::files;
use super::source::Program;
use super::types::ip4;
use crate::generate::Rng;
use std::fmt::Write as _;

/// A function in which one direction counts and writes times that the other direction reads and
/// changes. Its keys are addresses only, so several flows share an entry. Ports matter only for the
/// choice of the worker.
fn quota(option: &str, both: bool) -> String {
    let inside = match both {
        true => "forward and exists sent and exists sent[ip.dst] => { drop \"inside\"; }\n    ",
        false => "",
    };
    format!(
        "nf quota(most: u32, pause: duration) {{
  state sent: {{ packets: u32, last: time }} per ip.src, capacity 30{option};
  match {{
    {inside}forward and exists sent => {{ sent.packets += 1; sent.last = pkt.time; output; }}
    forward and has ip => {{ sent = {{ packets: 1, last: pkt.time }} else drop \"full\"; output; }}
    backward and exists sent[ip.dst] and sent[ip.dst].packets > most => {{
      sent[ip.dst].last = pkt.time + pause;
      drop \"quota\";
    }}
    else => output;
  }}
}}
"
    )
}

/// A function that stores the backend of each source as long as the backend is up. Replies only
/// test whether their source is a backend.
const SPREAD: &str = "nf spread(vip: ip4, backends: backends<ip4>) {
  state chosen: index(backends) per ip.src, capacity 20, full evict_oldest;
  match {
    forward and exists chosen and up(backends, chosen) => {
      ip.dst = backends[chosen];
      output;
    }
    forward and has ip => {
      let backend = pick(backends, hash(ip.src)) else drop \"no backend\";
      chosen = backend;
      ip.dst = backends[backend];
      output;
    }
    backward and ip.src in backends => { ip.src = vip; output; }
    else => output;
  }
}
";

/// The kind of function that a chain mainly consists of.
#[derive(Clone, Copy)]
enum Kind {
    Routers,
    Translators,
    PerFlow,
    Quotas,
    Spread,
    Natives,
    Counters,
    Mixed,
}

/// Native functions. Some of them record their actions.
const NATIVES: &str = r#"
native nf ids5(signatures: patterns, block: bool = false) from "five" function ids;
native nf maglev5(vip: ip4, servers: backends<ip4>, idle: duration, flows: u32)
    from "five" function maglev;
native nf ipfilter5(filter: rules, idle: duration, flows: u32) from "five" function ipfilter;
native nf monitor5(idle: duration, flows: u32) from "five" function monitor;
native nf mazunat5(public: ip4, ports: pool<port>, idle: duration, mappings: u32)
    from "five" function mazunat;
"#;

/// Generates a chain.
pub(super) fn program(rng: &mut Rng) -> Program {
    let mut program = Program::default();
    let kind = *rng.pick(&[
        Kind::Routers,
        Kind::Translators,
        Kind::PerFlow,
        Kind::Quotas,
        Kind::Quotas,
        Kind::Spread,
        Kind::Spread,
        Kind::Natives,
        Kind::Natives,
        Kind::Counters,
        Kind::Counters,
        Kind::Mixed,
    ]);
    let count = match kind {
        Kind::Quotas | Kind::Spread | Kind::Counters => 1 + rng.below(3),
        _ => 2 + rng.below(5),
    };
    let beside = rng.one_in(2);
    let count = count + if beside { rng.below(3) } else { 0 };
    // There are few files, so functions share some.
    for file in 0..2 {
        program.files.insert(format!("routes{file}.txt"), routes(rng));
        program.files.insert(format!("rules{file}.txt"), files::rules(rng));
    }
    if let Kind::Natives = kind {
        program.source += NATIVES;
        let signatures = "1 \"a\"\n2 \"GET /evil\" nocase\n3 /cmd=[a-z]+;/\n";
        program.files.insert("signatures.txt".to_owned(), signatures.to_owned());
    }
    let (mut nodes, holding) = nodes(rng, &mut program, kind, (count, beside));
    let (side, end) = end(rng, &mut program, &mut nodes, beside);
    let stops = (0..count).map(|number| format!("n{number}"));
    let mut stops: Vec<_> = stops.chain(end).collect();
    let workers = match kind {
        Kind::Quotas => 1 + usize::from(rng.one_in(4)),
        _ => 1 + rng.below(12) / 9,
    };
    if nodes.contains(" quota(") {
        let drawn = rng.below(4);
        let option = [", sharded", "", ", portions (most)", ""][drawn];
        program.source += &quota(option, drawn < 2);
    }
    if nodes.contains(" spread(") {
        program.source += SPREAD;
    }
    let seed = rng.below(1000);
    // What comes out of a tunnel belongs to the worker of the packet that came in.
    if rng.one_in(if workers > 1 { 2 } else { 5 }) {
        tunnel(rng, &mut program, &mut nodes, &mut stops);
    } else if rng.one_in(6) {
        translate(rng, &mut program, &mut nodes, &mut stops);
    }
    let rarely = if matches!(kind, Kind::Natives) { 2 } else { 4 };
    let mut own = Rng::new(rng.clone().bits() ^ 0x7072_696f);
    let policy =
        if own.one_in(rarely) { policy(&mut own, &stops, &holding) } else { String::new() };
    let _ = write!(
        program.source,
        "chain library {{\n\
         interface lan {{ behind 10.0.0.0/8, 2001:db8::/125 }}\n\
         interface wan;\n\
         {nodes}path lan <-> {} <-> wan;\n\
         {policy}{side}seed {seed};\nworkers {workers};\n}}\n",
        stops.join(" <-> ")
    );
    program
}

/// Relates two or three functions of a path by `Priority`, often with others between them.
/// None of them may hold packets.
fn policy(rng: &mut Rng, stops: &[String], holding: &[String]) -> String {
    if stops.len() < 2 {
        return String::new();
    }
    let first = rng.below(stops.len() - 1);
    let last = first + 1 + rng.below(stops.len() - 1 - first);
    let related = [first, first + rng.below(last - first + 1), last];
    if stops[first..=last].iter().any(|stop| holding.contains(stop)) {
        return String::new();
    }
    let mut rules = String::new();
    for pair in related.windows(2).filter(|pair| pair[0] < pair[1]) {
        let (a, b) = (&stops[pair[0]], &stops[pair[1]]);
        let (a, b) = if rng.one_in(2) { (a, b) } else { (b, a) };
        let _ = write!(rules, " Priority({a} > {b});");
    }
    format!("policy {{{rules} }}\n")
}

/// Generates functions of a chain. The count comes first in the pair. With `beside`, some of them
/// are small functions that stand between others. Also returns the names of functions that may hold
/// packets.
fn nodes(
    rng: &mut Rng,
    program: &mut Program,
    kind: Kind,
    (count, beside): (usize, bool),
) -> (String, Vec<String>) {
    let (mut nodes, mut holding) = (String::new(), Vec::new());
    for number in 0..count {
        // A function with ports of its own needs links that these chains lack.
        let own = function::generate(&mut rng.split(), number, false);
        let text = if own.ports.is_empty() && rng.one_in(6) {
            own.add_to(&mut program.source);
            holding.extend(own.holds.then(|| format!("n{number}")));
            program.files.extend(own.files);
            let args: Vec<_> = own.args.into_iter().map(|(arg, _)| arg).collect();
            format!("{}({})", own.name, args.join(", "))
        } else if beside && rng.one_in(2) {
            let (text, source) = beside::one(rng);
            if !program.source.contains(source) {
                program.source += source;
            }
            text
        } else if let (Kind::Counters, 0..6) = (kind, rng.below(8)) {
            let name = format!("counter{number}");
            program.source += &counters::function(rng, &name);
            name + "()"
        } else {
            one(rng, kind, number)
        };
        let _ = writeln!(nodes, "n{number} = {text};");
    }
    (nodes, holding)
}

/// Generates routes that let most packets through. Addresses behind the left interface are routed
/// to it, and all others to the right.
fn routes(rng: &mut Rng) -> String {
    let mut text = files::routes(rng);
    text.push_str("10.0.0.0/8 0\n");
    if !text.contains("0.0.0.0/0") {
        text.push_str("0.0.0.0/0 1\n");
    }
    text
}

/// Adds a function for the end of a path to some chains. Returns its interface and link at the
/// side, and its name.
fn end(
    rng: &mut Rng,
    program: &mut Program,
    nodes: &mut String,
    beside: bool,
) -> (&'static str, Option<String>) {
    let name = Some("end".to_owned());
    if beside && rng.one_in(3) {
        program.source += beside::TAP;
        let _ = writeln!(nodes, "end = tap(least: {});", rng.pick(&[0, 53, 1023, 2000]));
        return ("interface log;\nlink end.side -> log;\n", name);
    }
    if rng.one_in(4) {
        wrap(rng, program, nodes, "end");
        return ("", name);
    }
    ("", None)
}

/// Adds a function that puts packets into tunnels.
fn wrap(rng: &mut Rng, program: &mut Program, nodes: &mut String, name: &str) {
    if !program.source.contains(beside::WRAP) {
        program.source += beside::WRAP;
    }
    let (least, ends) = (rng.pick(&[0, 53, 1023]), "192.0.2.2, 192.0.2.3, 198.51.100.7");
    let _ = writeln!(nodes, "{name} = wrap(least: {least}, ends: [{ends}]);");
}

/// Adds the end of a tunnel to the beginning of a path, in front of the first function or behind
/// it. The tunnel begins in the chain, too, or elsewhere.
fn tunnel(rng: &mut Rng, program: &mut Program, nodes: &mut String, stops: &mut Vec<String>) {
    program.source += beside::UNWRAP;
    nodes.push_str("ends = unwrap();\n");
    stops.insert(rng.below(2), "ends".to_owned());
    if rng.one_in(2) {
        wrap(rng, program, nodes, "begins");
        stops.insert(0, "begins".to_owned());
    }
}

/// Adds functions that make IPv4 packets IPv6 packets for a part of the path, or up to its end.
fn translate(rng: &mut Rng, program: &mut Program, nodes: &mut String, stops: &mut Vec<String>) {
    program.source += beside::SIIT;
    nodes.push_str("six = siit(up: 1);\n");
    let from = rng.below(2);
    stops.insert(from, "six".to_owned());
    if rng.one_in(2) {
        nodes.push_str("four = siit(up: 0);\n");
        stops.insert(from + 1 + rng.below(stops.len() - from), "four".to_owned());
    }
}

/// One function with its arguments.
fn one(rng: &mut Rng, kind: Kind, number: usize) -> String {
    let router = |rng: &mut Rng| router(rng, number);
    match (kind, rng.below(8)) {
        (Kind::Routers, 0..6) => router(rng),
        (Kind::Translators, 0..5) => translator(rng, number),
        (Kind::PerFlow, 0..6) => per_flow(rng),
        (Kind::Quotas, 0..5) => {
            let (most, pause) = (1 + rng.below(8), rng.below(3000));
            format!("quota(most: {most}, pause: {pause} ms)")
        }
        (Kind::Quotas, 5..7) => router(rng),
        (Kind::Spread, 0..5) => {
            format!("spread(vip: {}, backends: [10.0.5.1, 10.0.5.2, 10.0.5.3])", ip4(rng))
        }
        (Kind::Natives, 0..5) => native(rng, number),
        (_, choice) => match choice % 4 {
            0 => router(rng),
            1 => translator(rng, number),
            2 => per_flow(rng),
            _ => filter(rng),
        },
    }
}

fn router(rng: &mut Rng, number: usize) -> String {
    let hops: Vec<_> = (0..2 + rng.below(8))
        .map(|hop| {
            let left = hop % 4 == 0;
            format!(
                "{{ mac: 02:00:00:00:{number:02x}:{hop:02x}, neighbour: 02:00:00:01:00:{hop:02x}, left: {left} }}"
            )
        })
        .collect();
    let mtu = if rng.one_in(4) { ", mtu: 120" } else { "" };
    format!(
        "router(table: routes(\"routes{}.txt\"), hops: [{}], left: 10.0.0.{}, right: 192.0.2.{}{mtu})",
        rng.below(2),
        hops.join(", "),
        200 + number,
        200 + number,
    )
}

fn translator(rng: &mut Rng, number: usize) -> String {
    let low = 1024 + 16 * number;
    match rng.below(5) {
        0 => format!("static_nat(inside: 10.0.0.0, outside: 192.0.{number}.0)"),
        // This table is so large that entries are prefetched.
        1 => format!("napt(public: 203.0.113.{}, idle: {} ms)", 1 + number, 5 + rng.below(3000)),
        _ => format!(
            "napt(public: 203.0.113.{}, ports: {low}..{}, idle: {} ms, mappings: {})",
            1 + number,
            low + rng.below(12),
            5 + rng.below(3000),
            1 + rng.below(12),
        ),
    }
}

fn per_flow(rng: &mut Rng) -> String {
    let (idle, few) = (5 + rng.below(2000), 1 + rng.below(9));
    let flows = if rng.one_in(5) { 10_000 } else { few };
    match rng.below(7) {
        0..3 => format!("monitor(idle: {idle} ms, flows: {flows})"),
        3 => format!("syn_flood(threshold: {}, window: {idle} ms, flows: {flows})", rng.below(4)),
        4 => format!(
            "stateful_firewall(ok: rules(\"rules{}.txt\"), tcp_opening: {idle} ms, tcp_idle: 9 s, other_idle: {idle} ms, connections: {flows})",
            rng.below(2)
        ),
        5 => format!(
            "heavy_hitter(threshold: {} B, window: {idle} ms, block: true, sources: {flows})",
            100 + rng.below(900)
        ),
        _ => format!(
            "maglev(vip: {}, backends: [10.0.4.1, 10.0.4.2, 10.0.4.3], idle: {idle} ms, flows: {flows})",
            ip4(rng)
        ),
    }
}

fn filter(rng: &mut Rng) -> String {
    match rng.below(4) {
        0 => format!(
            "l3_load_balancer(vip: {}, servers: [10.0.1.1, 10.0.1.2], idle: 2 s, flows: 5)",
            ip4(rng)
        ),
        1 => format!("ipfilter(filter: rules(\"rules{}.txt\"))", rng.below(2)),
        2 => format!(
            "source_rate_limiter(rate: 80 kbit/s, burst: 3000 B, idle: 2 s, sources: {})",
            1 + rng.below(4)
        ),
        _ => format!("stateless_firewall(allow: rules(\"rules{}.txt\"))", rng.below(2)),
    }
}

/// A native function. Limits are large more often than elsewhere, so that recordings stay valid for
/// a while.
fn native(rng: &mut Rng, number: usize) -> String {
    let idle = 5 + rng.below(4000);
    let flows = if rng.one_in(2) { 10_000 } else { 1 + rng.below(9) };
    match rng.below(7) {
        0 | 1 => format!("monitor5(idle: {idle} ms, flows: {flows})"),
        2 | 3 => format!(
            "ipfilter5(filter: rules(\"rules{}.txt\"), idle: {idle} ms, flows: {flows})",
            rng.below(2)
        ),
        4 => format!(
            "maglev5(vip: {}, servers: [10.0.4.1, 10.0.4.2, 10.0.4.3], idle: {idle} ms, flows: {flows})",
            ip4(rng)
        ),
        5 => format!(
            "mazunat5(public: 203.0.113.{}, ports: {}..{}, idle: {idle} ms, mappings: {})",
            1 + number,
            1024 + 16 * number,
            1028 + 16 * number + rng.below(8),
            1 + rng.below(12),
        ),
        _ => format!("ids5(signatures: patterns(\"signatures.txt\"), block: {})", rng.one_in(3)),
    }
}
