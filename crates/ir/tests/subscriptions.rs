//! Subscriptions: which handlers take an event, event types that differ, circles; and what the
//! verifier says of handlers.

use braid_ir::model::{EventId, Model};
use braid_ir::subscriptions::{Problem, Step, Subscriber, Subscriptions};
use braid_ir::text::parse;
use braid_ir::verify::{Problem as Wrong, verify};

/// A model with these declarations and programs. Its packet program publishes these events.
fn model(declarations: &str, publishes: &str, handlers: &str) -> Model {
    let text = format!(
        "model test {{ {declarations} row \"fault\"
         packet {{ b0: {publishes} output onward at row0 }} {handlers} }}"
    );
    let model = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(verify(&model), Ok(()), "{text}");
    model
}

fn of(models: &[Model]) -> Result<Subscriptions, Problem> {
    Subscriptions::of_models(&models.iter().collect::<Vec<_>>())
}

fn taken(node: u16, handler: usize) -> Subscriber {
    Subscriber { node, handler }
}

const SCAN: &str = "event SCAN extends EVENT { src: u128 }";
const PORT_SCAN: &str = "event PORT_SCAN extends SCAN(1), EVENT { src: u128, ports: u32 }";
const RETURN: &str = "{ b0: return }";

#[test]
fn nearest_handler_of_each_other_function_takes_an_event() {
    let publisher = model(
        &format!("{PORT_SCAN} {SCAN}"),
        "v0:u128 = const 1 v1:u32 = const 2 emit PORT_SCAN(v0, v1) emit SCAN(v0)",
        &format!("on SCAN {RETURN}"),
    );
    let all = "event EVENT { }";
    let several = model(
        &format!("{all} {PORT_SCAN} {SCAN}"),
        "",
        &format!("on EVENT {RETURN} on SCAN {RETURN}"),
    );
    let exact = model(PORT_SCAN, "", &format!("on PORT_SCAN {RETURN}"));
    let found = of(&[exact, publisher.clone(), several, publisher]).expect("no problem");
    let (port_scan, scan) = (EventId(0), EventId(1));
    assert_eq!(found.of(1, port_scan), [taken(0, 0), taken(2, 1), taken(3, 0)]);
    assert_eq!(found.of(1, scan), [taken(2, 1), taken(3, 0)]);
    assert_eq!(found.of(3, scan), [taken(1, 0), taken(2, 1)]);
    assert!(!found.is_empty());
}

#[test]
fn handlers_that_no_other_function_publishes_for_are_idle() {
    let own = model(SCAN, "v0:u128 = const 1 emit SCAN(v0)", &format!("on SCAN {RETURN}"));
    let models = [own];
    let found = of(&models).expect("no problem");
    assert_eq!(found.idle(&[&models[0]]), [(0, EventId(0))]);
}

#[test]
fn types_of_the_same_name_that_differ_are_a_problem() {
    let publisher = || {
        let publishes = "v0:u128 = const 1 v1:u32 = const 2 emit PORT_SCAN(v0, v1)";
        model(PORT_SCAN, publishes, "")
    };
    for other in [
        "event SCAN extends EVENT { src: ip6 }",
        "event SCAN extends EVENT { src: u128, ports: u32 }",
        "event SCAN extends ALERT, EVENT { src: u128 }",
    ] {
        let taker = model(other, "", &format!("on SCAN {RETURN}"));
        let unlike = Problem::Unlike { event: "SCAN".into(), publisher: 0, subscriber: 1 };
        assert_eq!(of(&[publisher(), taker]), Err(unlike), "{other}");
    }
    assert!(of(&[publisher(), model(SCAN, "", &format!("on SCAN {RETURN}"))]).is_ok());
}

/// A function that takes the first event and then publishes the second one.
fn relay(first: &str, second: &str) -> Model {
    let types = format!("event {first} extends EVENT {{ }} event {second} extends EVENT {{ }}");
    model(&types, "", &format!("on {first} {{ b0: emit {second}() return }}"))
}

fn step(node: u16, event: &str) -> Step {
    Step { node, event: event.to_owned() }
}

#[test]
fn circles_name_the_shortest_way() {
    let models = [relay("A", "B"), relay("B", "C"), relay("C", "A"), relay("B", "A")];
    let circle = of(&models).expect_err("a circle");
    assert_eq!(circle, Problem::Circle(vec![step(0, "B"), step(3, "A")]));
    assert!(of(&models[..2]).is_ok());
    let circle = of(&models[..3]).expect_err("a circle");
    assert_eq!(circle, Problem::Circle(vec![step(0, "B"), step(1, "C"), step(2, "A")]));
}

#[test]
fn function_that_is_at_work_closes_a_circle_with_another_handler() {
    // The packet program of the first function publishes A, and its handler takes B.
    let types = "event A extends EVENT { } event B extends EVENT { }";
    let first = model(types, "emit A()", &format!("on B {RETURN}"));
    let circle = of(&[first, relay("A", "B")]).expect_err("a circle");
    assert_eq!(circle, Problem::Circle(vec![step(0, "A"), step(1, "B")]));
}

#[test]
fn entries_that_end_because_of_a_handler_close_circles() {
    // The packet program of the first function publishes A, and its handler takes B. The handler of
    // A in the second function may evict an entry, whose end publishes B.
    let types = "event A extends EVENT { } event B extends EVENT { }";
    let chain = |full: &str, handler: &str| {
        let state = format!("state s: u8 per [u8] capacity 1 full {full}");
        let programs =
            format!("expire s {{ b0: emit B() return }} on A {{ b0: {handler} return }}");
        let second = model(&format!("{state} {types}"), "", &programs);
        of(&[model(types, "emit A()", &format!("on B {RETURN}")), second])
    };
    let creates = "v0:u8 = const 1 v1:bool = set s[v0], (v0)";
    let circle = chain("evict_oldest", creates).expect_err("a circle");
    assert_eq!(circle, Problem::Circle(vec![step(0, "A"), step(1, "B")]));
    // Without a new entry, or where a full table refuses it, the handler ends none.
    assert!(chain("evict_oldest", "").is_ok());
    assert!(chain("refuse", creates).is_ok());
}

/// The problems of a model with a handler of the type SCAN.
fn problems(declarations: &str, packet: &str, handlers: &str) -> Vec<Wrong> {
    let text = format!(
        "model test {{ state s: u8 per (inet.proto) {declarations} row \"fault\"
         packet {{ b0: {packet} output onward at row0 }} {handlers} }}"
    );
    let model = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let errors = verify(&model).expect_err("a problem");
    errors.into_iter().map(|error| error.problem).collect()
}

#[test]
fn verifier_finds_what_handlers_cannot_have() {
    let handler = |ops: &str| format!("on SCAN {{ b0: {ops} return }}");
    let twice = format!("on SCAN {RETURN} on SCAN {RETURN}");
    let field = |field| Wrong::EventField { event: EventId(0), field };
    let text = "event SCAN extends EVENT { src: u128, said: string }";
    let wide = Wrong::Width { value: braid_ir::model::ValueId(0), found: 32, wanted: 128 };
    let few = "event SCAN extends ALERT(2) { src: u128 }";
    for (declared, packet, handlers, problem) in [
        (SCAN, "", twice, Wrong::SecondHandler(EventId(0))),
        (SCAN, "", handler("v0:u128 = load_event 1"), field(1)),
        (text, "", handler("v0:u128 = load_event 1"), field(1)),
        (SCAN, "", handler("v0:u32 = load_event 0"), wide),
        (
            SCAN,
            "v0:u128 = load_event 0",
            String::new(),
            Wrong::NotHere("a program that has no event"),
        ),
        (SCAN, "", handler("v0:bool = has ip"), Wrong::NotHere("a handler")),
        (SCAN, "", handler("v0:u8 = expiring"), Wrong::NotHere("a handler")),
        (few, "", String::new(), Wrong::AncestorFields("ALERT".to_owned())),
    ] {
        assert_eq!(problems(declared, packet, &handlers), [problem], "{declared} {handlers}");
    }
    let key = problems(SCAN, "", &handler("v0:bool = exists s[entry]"));
    assert!(matches!(key.as_slice(), [Wrong::NotHere(_) | Wrong::Key { .. }]), "{key:?}");
}

/// A function that publishes SCAN some times.
fn publisher(times: usize) -> Model {
    let publishes = "emit SCAN(v0) ".repeat(times);
    model(SCAN, &format!("v0:u128 = const 1 {publishes}"), "")
}

/// A function whose handler of SCAN has one block and some operations.
fn taker(declarations: &str, operations: usize) -> Model {
    let ops: String = (0..operations).map(|at| format!("v{at}:u8 = const 1 ")).collect();
    model(&format!("{SCAN} {declarations}"), "", &format!("on SCAN {{ b0: {ops} return }}"))
}

/// Whether the handlers of SCAN are part of the programs of its publishers.
fn inlined<const N: usize>(models: &[Model], publishers: [u16; N]) -> [bool; N] {
    let found = of(models).expect("no problem");
    publishers.map(|node| {
        let is_inlined = !found.inlined(node, EventId(0)).is_empty();
        assert_eq!(found.stays_outside(node, EventId(0)), !is_inlined);
        is_inlined
    })
}

#[test]
fn large_handlers_stay_outside_of_programs() {
    assert_eq!(inlined(&[publisher(1), taker("", 255)], [0]), [true]);
    assert_eq!(inlined(&[publisher(1), taker("", 256)], [0]), [false]);
    // All handlers of an event count together.
    assert_eq!(inlined(&[publisher(1), taker("", 127), taker("", 127)], [0]), [true]);
    assert_eq!(inlined(&[publisher(1), taker("", 127), taker("", 128)], [0]), [false]);
}

#[test]
fn handlers_of_a_chain_have_a_budget_together() {
    let (half, more) = (publisher(8), publisher(9));
    assert_eq!(inlined(&[half.clone(), half.clone(), taker("", 255)], [0, 1]), [true, true]);
    assert_eq!(inlined(&[half.clone(), more, taker("", 255)], [0, 1]), [true, false]);
    // A function that is too large does not keep others out.
    assert_eq!(inlined(&[publisher(17), half, taker("", 255)], [0, 1]), [false, true]);
}

#[test]
fn handlers_of_functions_whose_entries_live_with_others_stay_outside() {
    let declarations = "state a: u8 per [u8] idle 1 state b: u8 per [u8] lives with a";
    assert_eq!(inlined(&[publisher(1), taker(declarations, 1)], [0]), [false]);
}
