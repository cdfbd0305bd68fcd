//! Residual programs as text, for people and tests.

use super::program::{
    Counter, CounterListId, End, Fate, Point, Residual, RuleFields, Step, What, shape_words,
};
use crate::chain::Chain;
use crate::model::{Model, Program, ValueId};
use crate::text::words;
use std::fmt::Write;

/// The program, in lines like the lines of the model IR. Each step begins with the name of its
/// function. [`super::parse()`] reads the text.
#[must_use]
pub fn print(program: &Residual, chain: &Chain) -> String {
    write_program(program, chain, false)
}

/// As [`print()`], with each step's place in its function's program: `name@BLOCK.OPERATION`.
#[must_use]
pub fn print_with_sites(program: &Residual, chain: &Chain) -> String {
    write_program(program, chain, true)
}

fn write_program(program: &Residual, chain: &Chain, sites: bool) -> String {
    let types = Program { blocks: Vec::new(), values: program.values.clone() };
    let mut out = String::new();
    let headers = shape_words(program.shape);
    let at = point(chain, program.point);
    let _ = writeln!(out, "at {at} for {headers}, {} functions", program.visits);
    let text = Text { program, chain, types: &types, sites };
    for (number, block) in program.blocks.iter().enumerate() {
        let params = block.params.iter().map(|value| words::typed(&types, *value));
        let params: Vec<String> = params.collect();
        let params =
            if params.is_empty() { String::new() } else { format!("({})", params.join(", ")) };
        let _ = writeln!(out, "b{number}{params}:");
        for step in &block.steps {
            let _ = writeln!(out, "  {}", text.step(step));
        }
        let _ = writeln!(out, "  {}", text.end(&block.end));
    }
    out
}

struct Text<'a> {
    program: &'a Residual,
    chain: &'a Chain,
    types: &'a Program,
    /// Whether the text includes the sites of steps.
    sites: bool,
}

impl Text<'_> {
    fn name(&self, node: u16) -> String {
        name(self.chain, node)
    }

    fn model(&self, node: u16) -> Option<&Model> {
        self.chain.nodes.get(usize::from(node)).map(|node| &*node.model)
    }

    fn typed(&self, values: &[ValueId]) -> String {
        let all: Vec<String> =
            values.iter().map(|value| words::typed(self.types, *value)).collect();
        all.join(", ")
    }

    fn step(&self, step: &Step) -> String {
        let Some(model) = self.model(step.site.node) else { return "?".to_owned() };
        let what = match &step.what {
            What::Op(op) => words::print_op(model, self.types, op),
            What::Enter => "enter".to_owned(),
            What::Classify { pass, rule, param, packet } => {
                let param = model.param_word(*param);
                let outs = self.typed(&[*pass, *rule]);
                let packet = packet.as_ref().map(|packet| rule_fields(packet));
                format!("{outs} = classify {param}{}", packet.unwrap_or_default())
            }
            What::CountRule { param, rule } => {
                format!("count_rule {}, {rule}", model.param_word(*param))
            }
            What::Find { found, entry, state, key } => {
                let (outs, table) = (self.typed(&[*found, *entry]), model.state_word(*state));
                format!("{outs} = find {table}[{}]", list(key))
            }
            What::Read { outs, state, entry } => {
                format!("{} = read {}, {entry}", self.typed(outs), model.state_word(*state))
            }
            What::Write(fields) => {
                let fields = fields.iter();
                let fields: Vec<String> = fields
                    .map(|(field, value)| format!("{} = {value}", field.info().name))
                    .collect();
                format!("write {}", fields.join(", "))
            }
            What::Parse => "parse".to_owned(),
            What::Count(counters) => format!("count {}", self.counters(*counters)),
        };
        let fault = step.fault.map(|counters| format!(" else {}", self.counters(counters)));
        let site = &step.site;
        let place = if self.sites { format!("@{}.{}", site.block, site.op) } else { String::new() };
        format!("{}{place}: {what}{}", self.name(site.node), fault.unwrap_or_default())
    }

    /// `a:forward b:row1-4`: counters, each with the number to add to the length.
    fn counters(&self, counters: CounterListId) -> String {
        let all =
            self.program.counter_lists.get(counters.0 as usize).map_or(&[][..], Vec::as_slice);
        let words = all.iter().map(|one| {
            let counter = match one.counter {
                Counter::Forward => "forward".to_owned(),
                Counter::Backward => "backward".to_owned(),
                Counter::Row(row) => row.to_string(),
                Counter::Background => "background".to_owned(),
            };
            let length = if one.length == 0 { String::new() } else { format!("{:+}", one.length) };
            format!("{}:{counter}{length}", self.name(one.node))
        });
        format!("[{}]", words.collect::<Vec<_>>().join(" "))
    }

    fn end(&self, end: &End) -> String {
        match end {
            End::Jump(target) => format!("jump {}", words::target(target)),
            End::Branch { cond, yes, no } => {
                format!("branch {cond}, {}, {}", words::target(yes), words::target(no))
            }
            End::Exit(exit) => {
                format!("{} {}", self.fate(&exit.fate), self.counters(exit.counters))
            }
            End::Hold { node, queue, delay, counters, full } => {
                let queue =
                    self.model(*node).map_or_else(String::new, |model| model.queue_word(*queue));
                let (counters, full) = (self.counters(*counters), words::target(full));
                format!("hold {}.{queue} for {delay} {counters} else {full}", self.name(*node))
            }
        }
    }

    fn fate(&self, fate: &Fate) -> String {
        match fate {
            Fate::Leave { interface } => {
                let names = self.chain.interfaces.iter().map(|interface| &*interface.name);
                format!("leave {}", words::refer("interface", names, (*interface).into()))
            }
            Fate::Go(to) => format!("go {}", point(self.chain, *to)),
            Fate::Output { node, ports } => {
                let ports = ports.iter().map(|port| match self.model(*node) {
                    Some(model) => words::dest(model, *port),
                    None => "?".to_owned(),
                });
                format!("{}: output {}", self.name(*node), ports.collect::<Vec<_>>().join(", "))
            }
            Fate::Drop { node, row, reason } => {
                let reason = self.model(*node).map(|model| words::reason(model, *reason));
                format!("{}: drop {} at {row}", self.name(*node), reason.unwrap_or_default())
            }
            Fate::Fault { node, fault } => {
                format!("{}: fault {}", self.name(*node), fault.reason())
            }
            Fate::Consume { node } => format!("{}: consume", self.name(*node)),
            Fate::Resubmit { node } => format!("{}: resubmit", self.name(*node)),
        }
    }
}

fn list(values: &[ValueId]) -> String {
    let all: Vec<String> = values.iter().map(ToString::to_string).collect();
    all.join(", ")
}

/// The name of a function, or its number if the name is not a word or not unique.
fn name(chain: &Chain, node: u16) -> String {
    words::refer("node", chain.nodes.iter().map(|node| &*node.name), node.into())
}

/// The packet that rules read: ` ip4(source, destination, protocol) ports(…) icmp(…) flags(…)`.
fn rule_fields(packet: &RuleFields) -> String {
    let RuleFields { version, src, dst, proto, ports, tcp_flags, icmp } = packet;
    let mut out = format!(" ip{version}({src}, {dst}, {proto})");
    for (word, pair) in [("ports", ports), ("icmp", icmp)] {
        if let Some((a, b)) = pair {
            let _ = write!(out, " {word}({a}, {b})");
        }
    }
    if let Some(flags) = tcp_flags {
        let _ = write!(out, " flags({flags})");
    }
    out
}

fn point(chain: &Chain, point: Point) -> String {
    let name = name(chain, point.node);
    let way = if point.backward { "backward" } else { "forward" };
    let held = if point.held { " held" } else { "" };
    format!("{name} {way}{held}")
}
