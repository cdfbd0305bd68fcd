//! Generated rules about packets, which groups preselect, against an oracle that tries all rules in
//! their order, and shares no code with them.

mod support;

use braid_signatures::{Flow, Inspection, Kind, Number, Packet, load};
use proptest::prelude::*;
use support::Said;

/// The numbers that rules ask for, by the names of their options.
const NUMBERS: [(&str, Number); 5] = [
    ("dsize", Number::Length),
    ("ttl", Number::Ttl),
    ("seq", Number::Seq),
    ("window", Number::Window),
    ("id", Number::Id),
];
/// The flags of TCP by their letters.
const FLAGS: [(char, u8); 4] = [('F', 1), ('S', 2), ('R', 4), ('A', 16)];

/// What a rule asks of a number.
#[derive(Clone, Copy, Debug)]
enum Asks {
    Is(u32),
    IsNot(u32),
    Below(u32),
    Above(u32),
}

impl Asks {
    fn written(self) -> String {
        match self {
            Self::Is(value) => value.to_string(),
            Self::IsNot(value) => format!("!{value}"),
            Self::Below(value) => format!("<{}", value + 1),
            Self::Above(value) => format!(">{value}"),
        }
    }

    fn holds(self, number: u32) -> bool {
        match self {
            Self::Is(value) => number == value,
            Self::IsNot(value) => number != value,
            Self::Below(value) => number < value + 1,
            Self::Above(value) => number > value,
        }
    }
}

/// Ports as a rule lists them: `any`, or ranges, or all others.
#[derive(Clone, Debug)]
struct Ports(Vec<(u16, u16)>, bool);

impl Ports {
    fn written(&self) -> String {
        let ranges = self.0.iter().map(|(first, last)| format!("{first}:{last}"));
        let list = ranges.collect::<Vec<_>>().join(",");
        match (self.0.is_empty(), self.1) {
            (true, _) => "any".to_owned(),
            (false, true) => format!("![{list}]"),
            (false, false) => format!("[{list}]"),
        }
    }

    fn has(&self, port: u16) -> bool {
        let is_listed = self.0.iter().any(|(first, last)| (*first..=*last).contains(&port));
        self.0.is_empty() || is_listed != self.1
    }
}

/// A rule.
#[derive(Clone, Debug)]
struct Rule {
    ports: [Ports; 2],
    is_both_ways: bool,
    numbers: Vec<(usize, Asks)>,
    /// A mark, and letters by their place.
    flags: Option<(&'static str, Vec<usize>)>,
    /// A content preselects it.
    content: bool,
}

/// A packet: its ports, its numbers, its flags. One without TTL is of a header that lacks it.
#[derive(Clone, Debug)]
struct Seen {
    ports: [u16; 2],
    numbers: [Option<u32>; NUMBERS.len()],
    flags: u8,
}

impl Rule {
    fn written(&self, sid: usize) -> String {
        let [from, to] = [0, 1].map(|at| self.ports[at].written());
        let way = if self.is_both_ways { "<>" } else { "->" };
        let mut options = String::new();
        for (at, asks) in &self.numbers {
            options += &format!("{}:{}; ", NUMBERS[*at].0, asks.written());
        }
        if let Some((mark, letters)) = &self.flags {
            let letters: String = letters.iter().map(|at| FLAGS[*at].0).collect();
            options += &format!("flags:{mark}{letters}; ");
        }
        if self.content {
            options += "content:\"x\"; ";
        }
        format!("alert tcp-pkt any {from} {way} any {to} ({options}sid:{sid};)\n")
    }

    fn holds(&self, packet: &Seen) -> bool {
        let [from, to] = packet.ports;
        let is_way = |from, to| self.ports[0].has(from) && self.ports[1].has(to);
        let has_flags = self.flags.as_ref().is_none_or(|(mark, letters)| {
            let wanted = letters.iter().fold(0, |mask, at| mask | FLAGS[*at].1);
            match *mark {
                "+" => packet.flags & wanted == wanted,
                "*" => packet.flags & wanted != 0,
                "!" => packet.flags & wanted != wanted,
                _ => packet.flags == wanted,
            }
        });
        let asked = |(at, asks): &(usize, Asks)| {
            packet.numbers[*at].is_some_and(|number| asks.holds(number))
        };
        (is_way(from, to) || self.is_both_ways && is_way(to, from))
            && has_flags
            && self.numbers.iter().all(asked)
    }
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let range = (0..6_u16, 0..3_u16).prop_map(|(first, more)| (first, first + more));
    let ports = (prop::collection::vec(range, 0..3), any::<bool>());
    let ports = ports.prop_map(|(ranges, not)| Ports(ranges, not)).boxed();
    let asks = (0..4, 0..6_u32).prop_map(|(how, value)| match how {
        0 => Asks::Is(value),
        1 => Asks::IsNot(value),
        2 => Asks::Below(value),
        _ => Asks::Above(value),
    });
    let numbers = prop::collection::vec((0..NUMBERS.len(), asks), 0..3);
    let letters = prop::collection::vec(0..FLAGS.len(), 1..3);
    let flags = prop::option::of((prop::sample::select(vec!["", "+", "*", "!"]), letters));
    let rule = ([ports.clone(), ports], 0..5, numbers, flags, 0..6);
    let rule = rule.prop_map(|(ports, ways, numbers, flags, content)| Rule {
        ports,
        is_both_ways: ways == 0,
        numbers,
        flags,
        content: content == 0,
    });
    prop::collection::vec(rule, 1..40)
}

fn packets() -> impl Strategy<Value = Vec<Seen>> {
    let number = prop::option::weighted(0.9, prop_oneof![9 => 0..7_u32, 1 => Just(u8::MAX.into())]);
    let port = prop_oneof![9 => 0..8_u16, 1 => Just(u16::MAX)].boxed();
    let numbers = [number.clone(), number.clone(), number.clone(), number.clone(), number];
    let flags = prop::sample::select(vec![0, 1, 2, 4, 16, 17, 18, 20, 255]);
    let packet = ([port.clone(), port], numbers, flags);
    let packet = packet.prop_map(|(ports, numbers, flags)| Seen { ports, numbers, flags });
    prop::collection::vec(packet, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(600)))]

    #[test]
    fn packets_alert_as_if_all_rules_were_tried_in_order(rules in rules(), packets in packets()) {
        let lines = rules.iter().enumerate().map(|(at, rule)| rule.written(at + 1));
        let loaded = load(&lines.collect::<String>());
        prop_assert_eq!(&loaded.refused, &[]);
        let (mut connection, mut said) = (Inspection::default(), Said::default());
        for packet in packets {
            let [sport, dport] = packet.ports;
            let flow = Flow { version: 4, src: 1, dst: 2, sport, dport };
            let number = &|of| match of {
                Number::Flags => Some(packet.flags.into()),
                of => {
                    let at = NUMBERS.iter().position(|(_, number)| *number == of);
                    packet.numbers[at.expect("a number of rules")]
                }
            };
            said.alerts.clear();
            let (kind, bytes) = (Kind::Tcp, &b"x"[..]);
            let seen =
                Packet { kind, flow, from_client: true, is_established: true, bytes, number };
            connection.packet(&mut said.by(&loaded.set), &seen);
            let found: Vec<u32> = said.alerts.iter().map(|alert| alert.rule).collect();
            let wanted = (0..).zip(&rules).filter(|(_, rule)| rule.holds(&packet));
            let wanted: Vec<u32> = wanted.map(|(at, _)| at).collect();
            prop_assert_eq!(found, wanted);
        }
    }
}
