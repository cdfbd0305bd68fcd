//! The path of a packet through the engine with flow records, and why, in words.

use std::collections::BTreeSet;

use braid_engine::{Basis, NoRecording, Obstacle, PacketPath, Reason, Stopped, Taken, Varying};
use braid_ir::chain::Chain;
use braid_ir::model::{Haystack, Op};
use braid_ir::residual::{Fate, What};
use braid_packet::Field;

use crate::commands::flows::condition;
use crate::commands::names::Names;

/// The path and the reason in one line.
pub fn line(path: &PacketPath, chain: &Chain) -> String {
    let record = if path.part { "record for a part of its path (hit)" } else { "record (hit)" };
    match (path.taken, why(path, chain)) {
        (Taken::Hit, why) if why.is_empty() => record.into(),
        (Taken::Hit, why) => format!("{record}: {why}"),
        (_, why) if path.rest => {
            format!("{}: {why}; it took a record for the rest of its path", taken(path))
        }
        (_, why) => format!("{}: {why}", taken(path)),
    }
}

/// The path in one word.
pub fn taken(path: &PacketPath) -> &'static str {
    match path.taken {
        Taken::Hit => "hit",
        Taken::GuardFailure => "guard failure",
        Taken::Miss => "miss",
    }
}

/// The reason. Empty for a hit on a record that existed before.
pub fn why(path: &PacketPath, chain: &Chain) -> String {
    let names = Names(chain);
    let text = match &path.why {
        None => "",
        Some(Reason::Made) => "made for this packet",
        Some(Reason::Renewed) => "made for this packet, in place of one that is outdated",
        Some(Reason::NowhereToGo) => "no function is where it enters",
        Some(Reason::First) => "it is the first packet of all",
        Some(Reason::Paused) => "no packet takes a record while the state is being copied",
        Some(Reason::LeftOut) => {
            "no search for a record: few earlier packets belonged to known flows or took records, \
             so most packets skip the search"
        }
        Some(Reason::TooEarly) => {
            "no record yet: Braid tries to make one for the flow's fourth packet, then for the \
             eighth, the sixteenth, … (later if earlier records were hardly used, and for the \
             second if they were used often)"
        }
        Some(Reason::Hopeless) => {
            "no attempt to make a record: many attempts for similar packets failed or would have \
             saved no time"
        }
        Some(Reason::Priority) => "functions under Priority have no records",
        Some(Reason::NewHeaders) => "no packet with such headers has run yet",
        Some(Reason::Malformed(why)) => return format!("the packet is malformed: {}", why.name()),
        Some(Reason::OnlyRoutes) => {
            "its path looks up nothing but routes: a record would save no time"
        }
        Some(Reason::NoOutline) => {
            "only IP over Ethernet, with up to two tags, without options or extension headers, has \
             records"
        }
        Some(Reason::NoKey) => {
            "it belongs to no flow: its worker depends on fields that cannot be part of its key"
        }
        Some(Reason::Due) => "something is due",
        Some(Reason::Outdated(bases, other)) => return outdated(names, bases, other.as_ref()),
        Some(Reason::Inside) => {
            "the packet in the tunnel has other headers than the packets of its record"
        }
        Some(Reason::Link) => "its link addresses differ from those of its record",
        Some(Reason::Guard { template, guard, is_outer, is }) => {
            let condition = condition(template, guard, *is_outer);
            return format!("guard {condition} does not hold: it is {}", condition.show(*is));
        }
        Some(Reason::Function(node, why)) => {
            return format!("{} {}", names.name(*node), no_recording(*why));
        }
        Some(Reason::Pattern(node)) => {
            return format!("a pattern of {} matches the payload", names.name(*node));
        }
        Some(Reason::Fuel) => "its record has used up its fuel, which must be computed again",
        Some(Reason::Contended) => {
            "no record can be made: other records read state that it would change, or change state \
             that it would read"
        }
        Some(Reason::Full) => "no record can be made: there are too many",
        Some(Reason::Impossible(obstacle)) => {
            return format!("no record can be made: {}", obstacle_in_words(names, obstacle));
        }
    };
    text.into()
}

/// Says that a record depends on parameters that have changed, and why no other record can be made.
fn outdated(names: Names<'_>, bases: &[Basis], other: Option<&Obstacle>) -> String {
    let name = |basis: &Basis| {
        format!("{}.{}", names.name(basis.node), names.param(basis.node, basis.param))
    };
    let bases: BTreeSet<String> = bases.iter().map(name).collect();
    let bases: Vec<String> = bases.into_iter().collect();
    let bases = bases.join(" or ");
    let outdated = format!("its record is outdated: it depends on {bases}, which has changed");
    match other.map(|other| obstacle_in_words(names, other)) {
        None => outdated,
        Some(why) => format!("{outdated}, and no other record can be made: {why}"),
    }
}

fn obstacle_in_words(names: Names<'_>, obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::Due => "something is due".into(),
        Obstacle::OnlyRoutes => {
            "its path looks up nothing but routes: a record would save no time".into()
        }
        Obstacle::ShortPart => "it looks up little before a function that no record contains: a \
                                record would save no time"
            .into(),
        Obstacle::TooDynamic => {
            "too many values must be computed for each packet: a record would save no time".into()
        }
        Obstacle::TooLong => "it needs a longer record than others of its kind: Braid tries to \
                              make one for later packets"
            .into(),
        Obstacle::Path(stopped) => path_in_words(names, *stopped),
        Obstacle::GoesOn(fate) => match fate {
            Fate::Go(point) => {
                format!("it continues at {}, in another program", names.name(point.node))
            }
            Fate::Output { node, .. } => {
                format!("{} sends the packet or copies of it to other functions", names.name(*node))
            }
            Fate::Resubmit { node } => format!("{} runs on it anew", names.name(*node)),
            Fate::Leave { .. } | Fate::Drop { .. } | Fate::Fault { .. } | Fate::Consume { .. } => {
                "it sends packets".into()
            }
        },
        Obstacle::Waits(node) => format!("{} lets it wait", names.name(*node)),
        Obstacle::Branch(on) => format!("the packet's treatment depends on {}", varying(on)),
        Obstacle::Contradiction => {
            "it would change what it takes for granted, or what it sent a copy of".into()
        }
        Obstacle::NewEntry(node, state) => {
            format!("it changes state: new entry {}", names.table(*node, *state))
        }
        Obstacle::TakenEvent(node, event) => {
            let (event, name) = (names.event(*node, *event), names.name(*node));
            format!("functions take the event {event} of {name}")
        }
        Obstacle::Step(node, what, on) => step(names, *node, what, on),
    }
}

/// What on a packet's path, but not in a program, no record can express.
fn path_in_words(names: Names<'_>, stopped: Stopped) -> String {
    match stopped {
        Stopped::Step | Stopped::GoesOn => "it goes nowhere".into(),
        Stopped::Uneven => {
            "the end of the packet's path does not determine how many functions it visits".into()
        }
        Stopped::Unknown(node) => {
            format!("no packet with such headers has reached {} yet", names.name(node))
        }
        Stopped::Beside => {
            "tags, events and copies would come out of order with what native functions do".into()
        }
        Stopped::Headers => "its headers are elsewhere".into(),
        Stopped::Function(node, why) => format!("{} {}", names.name(node), no_recording(why)),
    }
}

/// What a step does that no record can express.
fn step(names: Names<'_>, node: u16, what: &What, on: &Varying) -> String {
    let name = names.name(node);
    match what {
        What::Op(Op::StateSet { state, .. } | Op::StatePut { state, .. }) => {
            format!("it changes state: {}", names.table(node, *state))
        }
        What::Op(Op::StateDelete { state, .. }) => {
            format!("it changes state: removes {}", names.table(node, *state))
        }
        What::Op(Op::StateLen { state, .. }) => format!(
            "the packet's treatment depends on the number of entries of {}",
            names.table(node, *state)
        ),
        What::Op(Op::Take { pool, .. } | Op::TakeThis { pool, .. } | Op::Release { pool, .. }) => {
            format!("it changes state: {name}'s pool {}", names.param(node, *pool))
        }
        What::Op(Op::Emit { event, .. }) => {
            let event = names.event(node, *event);
            format!("a field of the event {event} of {name} depends on {}", varying(on))
        }
        What::Op(Op::Create { .. }) => format!("{name} sends a packet"),
        What::Op(Op::PushVlan { .. }) => format!("{name} adds a ninth VLAN tag"),
        What::Op(Op::InStrings { .. } | Op::FindPatterns { of: Haystack::Text(..), .. }) => {
            format!("{name} looks a string up")
        }
        What::Op(
            Op::Patterns { .. }
            | Op::FindPatterns { .. }
            | Op::LoadBytes { .. }
            | Op::LoadString { .. },
        ) => format!("{name} reads the payload"),
        What::Op(op) if op.changes_payload() => format!("{name} writes the payload"),
        What::Op(Op::Encapsulate { seal: Some(_), .. }) => format!("{name} encrypts the packet"),
        What::Op(Op::Encapsulate { .. }) => format!("{name} adds outer headers"),
        What::Op(Op::Decapsulate { .. }) => format!("{name} removes outer headers"),
        What::Op(Op::Translate { .. }) => format!("{name} translates between IPv4 and IPv6"),
        What::Op(Op::HasRoom { .. } | Op::PushOption { .. } | Op::PopOption { .. }) => {
            format!("{name} adds or removes a TCP option")
        }
        What::Op(Op::Extern { name: of, .. }) => format!("{name} calls {of}"),
        What::Op(Op::Load { field, .. }) => format!(
            "{name} reads {}, which was assigned before or is not at a known place",
            field.info().name
        ),
        What::Write(fields) => {
            let fields: Vec<_> = fields.iter().map(|(field, _)| field.info().name).collect();
            let fields = fields.join(", ");
            format!("the value that {name} assigns to {fields} depends on {}", varying(on))
        }
        _ => format!("the action of {name} depends on {}", varying(on)),
    }
}

/// Fields outside the key, the time, state.
fn varying(on: &Varying) -> String {
    let name = |field: &Field| match field {
        Field::PktTime => "the time",
        field => field.info().name,
    };
    let fields = on.fields.iter().map(name);
    let all: BTreeSet<&str> =
        fields.chain(on.counts.then_some("what is counted in state")).collect();
    match all.len() {
        0 => "bits of the packet that are not in the key".into(),
        _ => all.into_iter().collect::<Vec<_>>().join(", "),
    }
}

/// Why a record cannot contain the work of a native function or a stream function. The text follows
/// the function's name.
fn no_recording(why: NoRecording) -> &'static str {
    match why {
        NoRecording::Absent => "is not there",
        NoRecording::Checked => "is isolated or checked, and so runs on each packet",
        NoRecording::Taken => "publishes events that functions take, and so runs on each packet",
        NoRecording::Due => "has due work",
        NoRecording::Stack => "follows the connection in a TCP stack",
        NoRecording::Twice => "has the packet twice",
        NoRecording::Fragment => "gets a fragment",
        NoRecording::NoFlow => "gets a packet of no flow",
        NoRecording::Nothing => "has recorded nothing for the packet's flow",
        NoRecording::OtherSide => "has recorded actions for packets from the other side",
        NoRecording::Undeclared => "has recorded an action that it does not declare",
        NoRecording::NotKey => "has recorded a change that depends on more than the key",
        NoRecording::Tags => "may read tags that functions in front of it set",
        NoRecording::WritesPayload => "writes the payload",
        NoRecording::Cut => "needs a payload that the capture has cut",
        NoRecording::NoChecksums => "sees checksums that the capture lacks",
        NoRecording::DropsChanged => "drops packets whose length it has changed",
        NoRecording::ChangesMoved => "changes headers that it has moved",
        NoRecording::BehindHeaders => "inserts or removes bytes behind the headers",
    }
}
