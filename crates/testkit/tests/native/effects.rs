//! Tests what native functions do besides their verdicts: they publish events, set tags and send
//! packets.

use super::isolated::isolated;
use super::*;
use braid_engine::Flows;
use braid_ir::engine::EventValue;

/// Functions of the language that publish events and take those of others.
const MODELS: &str = r#"
event SCAN extends EVENT { src: addr }
event MANY extends SCAN { packets: u32, why: string }
event TICK extends EVENT { now: time }
event SEEN extends EVENT { src: addr }

nf teller() {
  match { tcp.flags & 0x02 == 0x02 => { emit SEEN { src: inet.src }; output; } else => output; }
}

nf wall() {
  state blocked: u32 per (addr) = 0, hard 2 s, full evict_oldest;
  state ticks: u32 global = 0;
  on SCAN { blocked[event.src] = blocked[event.src] + 1; emit SEEN { src: event.src }; }
  on TICK { ticks += 1; }
  match {
    has inet and blocked[inet.src] > 2 => drop "blocked";
    ticks > 1000 => drop "late";
    else => output;
  }
}

nf marker() {
  tag colour: u8;
  match { l4.dport == 53 => { colour = 1; output; } else => output; }
}

nf by_colour() {
  tag colour: u8;
  tag hops: u16;
  match {
    colour == 3 => drop "three";
    colour == 2 and has ip => { ip.dst = 192.0.2.77; output; }
    hops > 1 and has ip => { ip.ttl = u8(77 + hops); emit SEEN { src: inet.src }; output; }
    else => output;
  }
}
"#;

/// A chain with the functions of `effects.c` between those of the language.
pub fn chain(path: &str) -> Chain {
    let library = library("crates/testkit/tests/native/effects.c");
    let (mut path, mut links) = (path.to_owned(), String::new());
    for name in ["echo", "beacon"] {
        for number in 0..path.matches(&format!("{name}()")).count() {
            let one = format!("{name}{number}");
            path = path.replacen(&format!("{name}()"), &one, 1);
            links += &format!("interface spy_{one}; {one} = {name}(); ");
            links += &format!("link {one}.tap -> spy_{one}; ");
        }
    }
    compile(&format!(
        r#"{MODELS}
        native nf herald(flows: u32 = 100, idle: duration = 9 s) from "{library}";
        native nf ticker(flows: u32 = 20) from "{library}";
        native nf painter() from "{library}";
        native nf echo() from "{library}";
        native nf beacon() from "{library}";
        native nf stain(flows: u32 = 100, idle: duration = 9 s) from "{library}";
        chain c {{ {INTERFACES} {links} path lan <-> {path} <-> wan; }}"#
    ))
}

/// Chains in which native functions publish events, read and set tags, and send packets.
pub fn chains() -> Vec<Chain> {
    [
        "teller() <-> herald() <-> monitor()",
        "herald() <-> wall()",
        "wall() <-> herald() <-> teller() <-> ticker()",
        "monitor() <-> ticker() <-> herald() <-> wall()",
        "marker() <-> painter() <-> by_colour()",
        "stain() <-> by_colour() <-> monitor()",
        "marker() <-> stain() <-> painter() <-> by_colour() <-> painter()",
        "by_colour() <-> painter() <-> stain() <-> stain() <-> by_colour()",
        "teller() <-> echo() <-> by_colour()",
        "monitor() <-> echo() <-> stain() <-> wall()",
        "herald() <-> echo() <-> echo() <-> monitor()",
        "monitor() <-> beacon() <-> herald() <-> wall()",
        "stain() <-> beacon() <-> by_colour() <-> echo() <-> beacon()",
    ]
    .map(chain)
    .into()
}

#[test]
fn engines_do_the_same() {
    for (at, chain) in chains().into_iter().enumerate() {
        for seed in braid_cases::seeds(3) {
            let (stimuli, expected) = recorded(&chain, seed, STIMULI);
            let apart = isolated(chain.clone());
            for engine in ENGINES.iter().filter(|engine| seed == 0 || !engine.has_machine_code()) {
                for chain in [&chain, &apart] {
                    let found = engine.check(chain, &stimuli, &expected);
                    assert!(found.is_ok(), "{at}, seed {seed}: {}", found.unwrap_err());
                }
            }
        }
    }
}

/// The events of one run in the reference engine, by name.
fn events(chain: &Chain) -> BTreeMap<String, Vec<Event>> {
    let mut events: BTreeMap<String, Vec<Event>> = BTreeMap::new();
    for output in recorded(chain, 1, STIMULI).1.outputs.into_iter().flatten() {
        if let Output::Event(event) = output {
            events.entry(event.name.clone()).or_default().push(event);
        }
    }
    events
}

#[test]
fn events_have_their_types_and_reach_handlers() {
    let found = events(&chain("herald() <-> wall()"));
    assert!(found["SCAN"].len() > 10 && found["LOG"].len() > 10, "{found:?}");
    let many = &found["MANY"][0];
    assert_eq!(many.ancestors, ["SCAN", "EVENT"]);
    let why = EventValue::Str("many \"packets\"".to_owned());
    assert_eq!(
        many.fields[1..],
        [
            ("packets".to_owned(), EventValue::Scalar(braid_ir::model::Kind::Uint, 4)),
            ("why".to_owned(), why)
        ]
    );
    assert_eq!(found["SEEN"].len(), found["SCAN"].len() + found["MANY"].len());
    assert_eq!(found["LOG"].len(), found["MANY"].len());
    let ticks = events(&chain("monitor() <-> ticker() <-> herald() <-> wall()"));
    assert!(ticks["TICK"].len() > 3);
}

/// The packets of timers run through the functions on both sides, also while no packets come.
#[test]
fn timers_send_packets() {
    let chain = chain("monitor() <-> beacon() <-> by_colour()");
    let mut engine = harness::reference(&chain);
    let one = packet("udp 10.0.0.1:3 > 192.0.2.1:9").at(0);
    let first = step(engine.as_mut(), &Stimulus::Packet(0, one.clone()));
    assert_eq!(first, [Output::Packet(1, one.clone())]);
    assert_eq!(step(engine.as_mut(), &Stimulus::Advance(49_999_999)), []);
    let outputs = step(engine.as_mut(), &Stimulus::Advance(100_000_000));
    let places = outputs.iter().filter_map(|output| match output {
        Output::Packet(interface, packet) => {
            assert_eq!((packet.data(), packet.time_ns), (one.data(), 100_000_000));
            Some(*interface)
        }
        _ => None,
    });
    // The right side, the left one, and the port. Twice, because 100 ms have passed.
    assert_eq!(places.collect::<Vec<_>>(), [1, 0, 2, 1, 0, 2]);
    let times = outputs.iter().filter_map(|output| match output {
        Output::Event(event) => Some(event.time_ns),
        _ => None,
    });
    assert_eq!(times.collect::<Vec<_>>(), [50_000_000, 100_000_000]);
    assert_eq!(engine.counters().created, 6);
}

/// The numbers of packets and records of one run.
fn flows(path: &str) -> Flows {
    let chain = chain(path);
    let (stimuli, expected) = recorded(&chain, 2, STIMULI);
    let engine = ENGINES.iter().find(|engine| engine.has_records()).expect("one");
    let mut fused = engine.compiled(&chain);
    assert!(engine.difference_of(&mut fused, &stimuli, &expected).is_none());
    fused.flows().expect("records")
}

#[test]
fn records_set_the_tags_of_recordings() {
    let stained = flows("stain() <-> by_colour()");
    assert!(stained.hits > 20 && stained.part_hits == 0, "{stained:?}");
    let (found, table) =
        paths(&chain("stain() <-> by_colour()"), &["udp 10.0.0.1:2 > 192.0.2.1:53"; 4]);
    assert!(found[2..].iter().all(|path| path.taken == Taken::Hit), "{found:?}");
    assert_eq!(table.templates[0].path.effects.tags, [("colour".into(), 2)]);
    // The second function's state functions may read the tag of the first, so a record ends there.
    let (found, table) =
        paths(&chain("stain() <-> stain() <-> monitor()"), &["udp 10.0.0.1:2 > 192.0.2.1:53"; 4]);
    assert!(found[2].part && found[3].part && found[3].rest, "{found:?}");
    let ends = table.templates.iter().map(|one| one.onward.map(|onward| onward.point.node));
    assert_eq!(ends.collect::<Vec<_>>(), [Some(1), None]);
}

#[test]
fn records_publish_what_state_functions_publish() {
    let heard = flows("monitor() <-> herald()");
    assert!(heard.hits > 20 && heard.part_hits == 0, "{heard:?}");
    // From the other side, records end in front of the herald, whose events the wall takes.
    let taken = flows("herald() <-> wall()");
    assert!(taken.hits > 20 && taken.part_hits == taken.hits, "{taken:?}");
    let (found, _) = paths(&chain("herald() <-> wall()"), &["udp 10.0.0.1:1 > 192.0.2.1:53"; 4]);
    let Some(Reason::Impossible(Obstacle::Path(stopped))) = found[2].why else { panic!() };
    assert_eq!(stopped, Stopped::Function(0, NoRecording::Taken));
}

#[test]
fn functions_publish_and_tag_as_they_recorded() {
    for chain in chains() {
        let chain = checked(chain);
        let mut engine = harness::reference(&chain);
        for stimulus in recorded(&chain, 3, STIMULI).0 {
            step(engine.as_mut(), &stimulus);
        }
        let problems = engine.problems();
        assert!(problems.is_empty(), "{problems:?}");
    }
}

#[test]
fn packets_of_native_functions_go_where_they_send_them() {
    let chain = chain("teller() <-> echo() <-> by_colour()");
    let ask =
        |sport| packet(&format!("udp 10.0.0.1:{sport} > 192.0.2.1:53 \"question\"")).at(1_000_000);
    let mut engine = harness::reference(&chain);
    let outputs = step(engine.as_mut(), &Stimulus::Packet(0, ask(3)));
    let found: Vec<_> = outputs
        .iter()
        .map(|output| match output {
            Output::Packet(interface, packet) => {
                let field = |field| packet.get(&packet.parse(), field).unwrap_or(0);
                format!("{interface}: {:x}", field(Field::IpDst))
            }
            Output::Event(event) => event.name.clone(),
            Output::Refused(why) => why.clone(),
        })
        .collect();
    // First the event, then the new packets in their order, then the packet itself.
    assert_eq!(found, ["LOG", "0: a000001", "1: c0000201", "1: c0000201"]);
    step(engine.as_mut(), &Stimulus::Packet(0, ask(4)));
    let counters = engine.counters();
    assert_eq!((counters.created, counters.lost.values().sum::<u64>()), (5, 2), "{counters:?}");
    assert_eq!(counters.lost.keys().filter(|reason| *reason != "unlinked").count(), 2);
}

#[test]
fn event_types_of_the_library_must_be_those_of_the_program() {
    let library = library("crates/testkit/tests/native/effects.c");
    let wrong = |declared: &str| {
        let source = format!(
            r#"{declared}
            native nf herald() from "{library}";
            nf taker() {{ on SCAN {{ }} output; }}
            chain c {{ path herald() <-> taker(); }}"#
        );
        harness::compile(&source, &files(), Form::AsWritten).err()
    };
    assert_eq!(wrong("event SCAN extends EVENT { src: addr }"), None);
    let told = wrong("event SCAN extends EVENT { src: ip4 }").expect("errors");
    assert!(
        told.contains("`herald` and this program declare the event SCAN differently"),
        "{told}"
    );
    assert!(told.contains("declare `event SCAN extends EVENT { src: addr }`"), "{told}");
}
