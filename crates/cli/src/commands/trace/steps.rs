//! The steps of a packet's walk: recording them, and formatting them as text and as JSON.

use std::fmt::Write as _;

use crate::commands::names::Names;
use crate::table::printable;
use braid_ir::chain::Chain;
use braid_ir::model::{Dest, Granularity, Kind, RowId, StateId, Word};
use braid_ir::show::{field_kind, show_all};
use braid_packet::show::format_field;
use braid_packet::{Field, Header, Packet};
use braid_reference::trace::{Observer, StateAccess, StateWhat, Verdict};
use serde_json::{Value, json};

/// The most steps to keep.
const MAX_STEPS: usize = 10_000;

/// A packet's walk.
pub struct Walk {
    time_ns: u64,
    interface: u16,
    packet: String,
    steps: Vec<Step>,
    left_out: usize,
}

/// One step.
#[derive(PartialEq)]
enum Step {
    Enter { node: u16, packet: String, backward: bool },
    Has { node: u16, header: Header, present: bool },
    Read { node: u16, field: Field, value: Option<Word> },
    Write { node: u16, field: Field, value: Word },
    Vlan { node: u16, pushed: Option<u16> },
    State { node: u16, state: StateId, key: Vec<Word>, what: What },
    Send { node: u16, dest: Dest, packet: String, created: bool },
    Row { node: u16, row: RowId },
    Verdict { node: u16, verdict: Verdict },
    Stands { node: u16 },
    Leave { interface: u16, packet: String },
    Lost { reason: String },
}

#[derive(PartialEq)]
enum What {
    Exists(bool),
    Get(Vec<Word>, bool),
    Assigned(Vec<Word>),
    Created(Vec<Word>),
    Refused,
    Deleted,
    Ended,
}

/// Records a walk.
pub struct Recorder(Walk);

impl Recorder {
    pub fn new(interface: u16, packet: &Packet) -> Self {
        Self(Walk {
            time_ns: packet.time_ns,
            interface,
            packet: packet.to_string(),
            steps: Vec::new(),
            left_out: 0,
        })
    }

    pub fn finish(self) -> Walk {
        self.0
    }

    fn push(&mut self, step: Step) {
        if self.0.steps.len() < MAX_STEPS {
            self.0.steps.push(step);
        } else {
            self.0.left_out += 1;
        }
    }
}

impl Observer for Recorder {
    fn enter(&mut self, node: u16, packet: &Packet) {
        self.push(Step::Enter { node, packet: packet.to_string(), backward: packet.backward });
    }

    fn has(&mut self, node: u16, header: Header, present: bool) {
        self.push(Step::Has { node, header, present });
    }

    fn read(&mut self, node: u16, field: Field, value: Option<Word>) {
        self.push(Step::Read { node, field, value });
    }

    fn compares(&self) -> bool {
        true
    }

    fn write(&mut self, node: u16, field: Field, value: Word) {
        self.push(Step::Write { node, field, value });
    }

    fn vlan(&mut self, node: u16, pushed: Option<u16>) {
        self.push(Step::Vlan { node, pushed });
    }

    fn state(&mut self, node: u16, access: &StateAccess<'_>) {
        let what = match access.what {
            StateWhat::Exists(found) => What::Exists(found),
            StateWhat::Get(slots, found) => What::Get(slots.to_vec(), found),
            StateWhat::Assigned(slots) => What::Assigned(slots.to_vec()),
            StateWhat::Created(slots) => What::Created(slots.to_vec()),
            StateWhat::Refused => What::Refused,
            StateWhat::Deleted => What::Deleted,
            StateWhat::Ended => What::Ended,
        };
        self.push(Step::State { node, state: access.state, key: access.key.to_vec(), what });
    }

    fn count(&mut self, node: u16, row: RowId) {
        self.push(Step::Row { node, row });
    }

    fn send(&mut self, node: u16, dest: Dest, packet: &Packet, created: bool) {
        self.push(Step::Send { node, dest, packet: packet.to_string(), created });
    }

    fn verdict(&mut self, node: u16, verdict: &Verdict) {
        self.push(Step::Verdict { node, verdict: verdict.clone() });
    }

    fn stands(&mut self, node: u16) {
        self.push(Step::Stands { node });
    }

    fn leave(&mut self, interface: u16, packet: &Packet) {
        self.push(Step::Leave { interface, packet: packet.to_string() });
    }

    fn lost(&mut self, reason: &str) {
        self.push(Step::Lost { reason: reason.to_owned() });
    }
}

/// Formats the walk as text.
pub fn text(number: u64, walk: &Walk, chain: &Chain) -> String {
    let names = Names(chain);
    let mut text = format!(
        "packet {number} at {}.{:09} enters at {}\n  {}\n",
        walk.time_ns / 1_000_000_000,
        walk.time_ns % 1_000_000_000,
        names.interface(walk.interface),
        walk.packet
    );
    let mut entered = None;
    for step in told_once(&walk.steps) {
        match step {
            Step::Enter { node, .. } => entered = Some(*node),
            // What handlers, timers and ended entries do, perhaps of another function.
            Step::State { node, .. } | Step::Row { node, .. } if Some(*node) != entered => {
                let _ = writeln!(text, "  {}: {}", names.name(*node), step_line(names, step).1);
                continue;
            }
            _ => {}
        }
        let _ = match step_line(names, step) {
            (true, line) => writeln!(text, "{line}"),
            (false, line) => writeln!(text, "  {line}"),
        };
    }
    if walk.left_out > 0 {
        let _ = writeln!(text, "and {} more steps", walk.left_out);
    }
    text
}

/// The steps without repeated reads of values that have not changed. Each row of a match reads its
/// values again. JSON contains these reads, the text omits them.
fn told_once(steps: &[Step]) -> Vec<&Step> {
    let mut told: Vec<&Step> = Vec::with_capacity(steps.len());
    let mut known = 0;
    for step in steps {
        match step {
            Step::Has { .. } | Step::Read { .. } if told[known..].contains(&step) => continue,
            Step::Enter { .. } | Step::Write { .. } | Step::Vlan { .. } => known = told.len() + 1,
            _ => {}
        }
        told.push(step);
    }
    told
}

/// Formats the walk as JSON.
pub fn value(number: u64, walk: &Walk, chain: &Chain) -> Value {
    let names = Names(chain);
    let steps: Vec<Value> = walk.steps.iter().map(|step| step_value(names, step)).collect();
    json!({
        "packet": number,
        "time_ns": walk.time_ns,
        "interface": names.interface(walk.interface),
        "summary": walk.packet,
        "steps": steps,
        "left_out": walk.left_out,
    })
}

/// The line of a step, and whether it starts at the margin.
fn step_line(names: Names<'_>, step: &Step) -> (bool, String) {
    let line = match step {
        Step::Enter { node, packet, backward } => {
            let model = names.node(*node).map_or("?", |node| &node.model.name);
            let way = if *backward { "backward" } else { "forward" };
            return (true, format!("{} ({model}) {way}\n  {packet}", names.name(*node)));
        }
        Step::Leave { interface, packet } => {
            return (true, format!("leaves by {}\n  {packet}", names.interface(*interface)));
        }
        Step::Lost { reason } => return (true, format!("lost: {reason}")),
        Step::Has { header, present, .. } => {
            format!("has {}: {}", header.name(), if *present { "yes" } else { "no" })
        }
        Step::Read { field, value, .. } => match value {
            Some(value) => {
                format!("reads {} = {}", field.info().name, format_field(*field, *value))
            }
            None => format!("reads {}: not captured", field.info().name),
        },
        Step::Write { field, value, .. } => {
            format!("writes {} = {}", field.info().name, format_field(*field, *value))
        }
        Step::Vlan { pushed: Some(id), .. } => format!("adds VLAN tag {id}"),
        Step::Vlan { pushed: None, .. } => "removes the outermost VLAN tag".into(),
        Step::State { node, state, key, what } => state_line(names, *node, *state, key, what),
        Step::Row { node, row } => match names.row(*node, *row) {
            (label, "") => format!("row {label}"),
            (label, text) => format!("row {label}: {text}"),
        },
        Step::Send { node, dest, packet, created } => {
            let what = if *created { "sends a new packet" } else { "sends a copy" };
            format!("{what} {}: {packet}", names.dest(*node, *dest))
        }
        Step::Verdict { node, verdict } => verdict_line(names, *node, verdict),
        Step::Stands { node } => format!("the verdict of {} stands", names.name(*node)),
    };
    (false, line)
}

/// `map[17, 10.0.0.1, 53] found: 1024`
fn state_line(names: Names<'_>, node: u16, state: StateId, key: &[Word], what: &What) -> String {
    let (name, keys, slots) = table_and_kinds(names, node, state, key);
    let place = match key {
        [] => name.to_owned(),
        key => format!("{name}[{}]", show(key, &keys)),
    };
    let of = |values: &[Word]| show(values, &slots);
    let what = match what {
        What::Exists(true) => "exists".into(),
        What::Exists(false) => "does not exist".into(),
        What::Get(values, true) => format!("is {}", of(values)),
        What::Get(values, false) => format!("has no entry, default {}", of(values)),
        What::Assigned(values) => format!("becomes {}", of(values)),
        What::Created(values) => format!("is created: {}", of(values)),
        What::Refused => "is refused".into(),
        What::Deleted => "is deleted".into(),
        What::Ended => "ends (expired or evicted)".into(),
    };
    format!("state {place} {what}")
}

/// The name of a table, and the kinds of its key parts and slots.
fn table_and_kinds<'c>(
    names: Names<'c>,
    node: u16,
    state: StateId,
    key: &[Word],
) -> (&'c str, Vec<Kind>, Vec<Kind>) {
    let model = names.node(node).map(|node| &*node.model);
    let Some(decl) = model.and_then(|model| model.state.get(state.index())) else {
        return ("?", Vec::new(), Vec::new());
    };
    let slots = decl.slots.iter().map(|(_, ty)| ty.kind).collect();
    (&decl.name, key_kinds(&decl.granularity, key), slots)
}

fn verdict_line(names: Names<'_>, node: u16, verdict: &Verdict) -> String {
    match verdict {
        Verdict::Output { ports, .. } => {
            let ports: Vec<&str> = ports.iter().map(|port| names.dest(node, *port)).collect();
            format!("output {}", ports.join(", "))
        }
        Verdict::Drop { reason, .. } => format!("drop: {}", printable(reason)),
        Verdict::Consume { .. } => "consumed".into(),
        Verdict::Hold { queue, until_ns, .. } => {
            format!("held in {} until {until_ns} ns", names.queue(node, *queue))
        }
        Verdict::Fault(fault) => format!("drop at row fault: {}", fault.reason()),
    }
}

fn step_value(names: Names<'_>, step: &Step) -> Value {
    match step {
        Step::Enter { node, packet, backward } => {
            let model = names.node(*node).map(|node| node.model.name.as_str());
            json!({ "what": "enter", "function": names.name(*node), "model": model,
                "backward": backward, "packet": packet })
        }
        Step::Has { node, header, present } => {
            json!({ "what": "has", "function": names.name(*node), "header": header.name(),
                "present": present })
        }
        Step::Read { node, field, value } => {
            let value = value.map(|value| format_field(*field, value));
            json!({ "what": "read", "function": names.name(*node), "field": field.info().name,
                "value": value })
        }
        Step::Write { node, field, value } => {
            json!({ "what": "write", "function": names.name(*node), "field": field.info().name,
                "value": format_field(*field, *value) })
        }
        Step::Vlan { node, pushed } => {
            json!({ "what": "vlan", "function": names.name(*node), "pushed": pushed })
        }
        Step::State { node, state, key, what } => state_value(names, *node, *state, key, what),
        Step::Row { node, row } => {
            let (label, text) = names.row(*node, *row);
            json!({ "what": "row", "function": names.name(*node), "row": label, "text": text })
        }
        Step::Send { node, dest, packet, created } => {
            json!({ "what": "send", "function": names.name(*node), "packet": packet,
                "port": names.dest(*node, *dest), "created": created })
        }
        Step::Verdict { node, verdict } => verdict_value(names, *node, verdict),
        Step::Stands { node } => json!({ "what": "stands", "function": names.name(*node) }),
        Step::Leave { interface, packet } => {
            json!({ "what": "leave", "interface": names.interface(*interface),
                "packet": packet })
        }
        Step::Lost { reason } => json!({ "what": "lost", "reason": reason }),
    }
}

fn state_value(names: Names<'_>, node: u16, state: StateId, key: &[Word], what: &What) -> Value {
    let (name, keys, slots) = table_and_kinds(names, node, state, key);
    let (access, values) = match what {
        What::Exists(true) => ("exists", None),
        What::Exists(false) => ("absent", None),
        What::Get(values, true) => ("read", Some(values)),
        What::Get(values, false) => ("read_default", Some(values)),
        What::Assigned(values) => ("assigned", Some(values)),
        What::Created(values) => ("created", Some(values)),
        What::Refused => ("refused", None),
        What::Deleted => ("deleted", None),
        What::Ended => ("ended", None),
    };
    let values = values.map(|values| list(values, &slots));
    json!({ "what": "state", "function": names.name(node), "table": name,
        "key": list(key, &keys), "access": access, "values": values })
}

fn verdict_value(names: Names<'_>, node: u16, verdict: &Verdict) -> Value {
    let function = names.name(node);
    match verdict {
        Verdict::Output { ports, row } => {
            let ports: Vec<&str> = ports.iter().map(|port| names.dest(node, *port)).collect();
            json!({ "what": "output", "function": function, "ports": ports,
                "row": names.row(node, *row).0 })
        }
        Verdict::Drop { reason, row } => {
            json!({ "what": "drop", "function": function, "reason": reason,
                "row": names.row(node, *row).0 })
        }
        Verdict::Consume { row } => {
            json!({ "what": "consume", "function": function, "row": names.row(node, *row).0 })
        }
        Verdict::Hold { queue, until_ns, row } => {
            json!({ "what": "hold", "function": function, "queue": names.queue(node, *queue),
                "until_ns": until_ns, "row": names.row(node, *row).0 })
        }
        Verdict::Fault(fault) => {
            json!({ "what": "drop", "function": function, "reason": fault.reason(),
                "row": "fault" })
        }
    }
}

/// The kinds of the parts of a key.
fn key_kinds(granularity: &Granularity, key: &[Word]) -> Vec<Kind> {
    match granularity {
        Granularity::Global => Vec::new(),
        Granularity::Flow | Granularity::Biflow => {
            let addr = if key.first() == Some(&4) { Kind::Ip4 } else { Kind::Ip6 };
            vec![Kind::Uint, addr, addr, Kind::Uint, Kind::Port, Kind::Port]
        }
        Granularity::Fields(fields) => fields.iter().map(|field| field_kind(*field)).collect(),
        Granularity::Key(types) => types.iter().map(|ty| ty.kind).collect(),
    }
}

/// Formats values by their kinds.
fn list(values: &[Word], kinds: &[Kind]) -> Vec<String> {
    let kinds = kinds.iter().copied().chain(std::iter::repeat(Kind::Uint));
    let values: Vec<_> = values.iter().zip(kinds).map(|(value, kind)| (kind, *value)).collect();
    show_all(&values)
}

fn show(values: &[Word], kinds: &[Kind]) -> String {
    list(values, kinds).join(", ")
}
