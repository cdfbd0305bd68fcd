//! An application that is none of the set's: the example.

use super::*;
use braid_native::RawNf;
use braid_relay::Relay;
use quote::Quote;

#[path = "../../examples/quote.rs"]
mod quote;

static QUOTE: RawNf = RawNf::of::<Relay<Quote>>();

/// Lines of many lengths, some of them longer than segments, with losses and other instances in
/// between.
#[test]
fn application_may_change_the_number_of_bytes() {
    braid_native::register(crate::SET, "quote", &QUOTE);
    for seed in 0..braid_cases::at_least(4).into() {
        let mut world = world("quote", 20, seed);
        let lines = (0..300).map(|at| "x".repeat(at * at % 2_000) + "\n");
        let text: String = lines.collect::<String>() + "the last one";
        let quoted: String = text.split_inclusive('\n').map(|line| format!("> {line}")).collect();
        world.client.to_send.extend(b"go on");
        world.server.to_send.extend(text.as_bytes());
        (world.client.closes, world.server.closes) = (true, true);
        world.connect();
        let ends = (0..200).any(|_| {
            world.restart();
            world.until(997, |world| world.server.endpoint.is_some() && world.client.is_over())
        });
        assert!(ends, "the connection does not end");
        assert!(world.client.received == quoted.as_bytes());
        assert_eq!(world.server.received, b"go on");
    }
}
