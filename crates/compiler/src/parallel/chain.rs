//! Chains: finds the paths of packets through a chain, and makes a service graph for each path.
//!
//! A path continues through the ports that lead onward. Other packets begin paths of their own:
//! packets that a function sends back or to a declared port, mirrors, and created packets. Each
//! path gives a row of `Order` rules. The chain's policy adds its rules about the path's functions.

use super::action::{Action, actions, needs_whole_payload};
use super::policy::{Function, Origin, Problem, Rule};
use super::{ServiceGraph, service_graph};
use crate::profile::{Profile, derive_direction};
use braid_ir::chain::{Chain, PolicyRule, Sink};
use braid_ir::graph::{Graph, port};
use braid_ir::model::{Dest, LEFT, PortId, RIGHT};
use braid_ir::subscriptions::Subscriptions;
use serde::Serialize;
use std::collections::VecDeque;

/// Where a path begins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// At an interface.
    Interface(String),
    /// After a function, where packets leave by this port.
    Port {
        /// The function's name.
        function: String,
        /// The port's name.
        port: String,
    },
}

/// A path and its graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Path {
    /// Its number, from 1 (the paper's match identifier).
    pub number: usize,
    /// The places where packets begin the path. The classifier selects the path by these.
    pub entries: Vec<Entry>,
    /// Whether packets go backward through the functions.
    pub backward: bool,
    /// The interface where the path ends, if it leads to one.
    pub exit: Option<String>,
    /// Names of the functions in chain order. Function numbers in the graph are indices into this
    /// list.
    pub functions: Vec<String>,
    /// Whether only packets with a complete payload take the graph. If so, other packets take the
    /// functions in sequence, because a function may fault on them.
    pub whole_payload: bool,
    /// The graph.
    pub graph: ServiceGraph,
}

/// The reason why a chain has no graphs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// Its links or priorities are invalid.
    Links(String),
    /// The policy on a path is invalid. The path is named by its first entry.
    Policy(String, Problem),
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unfit::Links(why) => f.write_str(why),
            Unfit::Policy(path, problem) => write!(f, "on the path {path}: {problem}"),
        }
    }
}

impl std::error::Error for Unfit {}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Entry::Interface(name) => write!(f, "from {name}"),
            Entry::Port { function, port } => write!(f, "from {function}.{port}"),
        }
    }
}

impl Path {
    /// The ends and the direction of the path as text: `from lan to wan, forward`.
    #[must_use]
    pub fn title(&self) -> String {
        let entries: Vec<String> = self.entries.iter().map(ToString::to_string).collect();
        let exit = self.exit.as_ref().map(|exit| format!(" to {exit}")).unwrap_or_default();
        let direction = if self.backward { "backward" } else { "forward" };
        format!("{}{exit}, {direction}", entries.join(", "))
    }

    /// The gain and the costs of the graph as text.
    #[must_use]
    pub fn summary(&self) -> String {
        let copies = match self.graph.copies.len() {
            0 => "no copies".to_owned(),
            1 => "1 copy".to_owned(),
            many => format!("{many} copies"),
        };
        let (length, all) = (self.graph.equivalent_length, self.functions.len());
        format!("equivalent length {length} of {all}, {copies}")
    }
}

/// The paths of a chain with their graphs. Paths from interfaces come first, in the order of the
/// interfaces.
///
/// # Errors
/// Returns an error when rules or links contradict each other.
pub fn paths(chain: &Chain) -> Result<Vec<Path>, Unfit> {
    let graph = Graph::new(chain).map_err(Unfit::Links)?;
    let events = event_groups(chain).map_err(Unfit::Links)?;
    let mut walk = Walk { chain, graph: &graph, events, begun: Vec::new(), open: VecDeque::new() };
    for (number, interface) in chain.interfaces.iter().enumerate() {
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        walk.begin(graph.entry(number), Entry::Interface(interface.name.clone()));
    }
    let mut rows = Vec::new();
    while let Some(start) = walk.open.pop_front() {
        rows.push(walk.follow(start));
    }
    let begun = walk.begun;
    let with_entries = rows.into_iter().zip(begun);
    with_entries
        .enumerate()
        .map(|(at, (row, begun))| row.path(chain, at + 1, begun.entries))
        .collect()
}

/// A function and the direction in which packets pass it.
type Visit = (u16, bool);

/// A path that has been found but not followed yet.
struct Begun {
    at: Visit,
    entries: Vec<Entry>,
}

struct Walk<'c> {
    chain: &'c Chain,
    graph: &'c Graph,
    /// For each function, the number of the functions that events relate to it, if there are any.
    events: Vec<Option<u16>>,
    begun: Vec<Begun>,
    open: VecDeque<Visit>,
}

/// The functions of a path.
struct Row {
    backward: bool,
    nodes: Vec<u16>,
    profiles: Vec<Profile>,
    functions: Vec<Function>,
    /// The places of functions that are between related ones under `Priority`. Each follows the
    /// function in front of it on the same branch.
    following: Vec<usize>,
    exit: Option<u16>,
}

impl Walk<'_> {
    /// Adds an entry to the path that begins at the target of a link. Begins that path if it is
    /// new.
    fn begin(&mut self, sink: Option<Sink>, entry: Entry) {
        let Some(Sink::Port(node, port)) = sink else { return };
        // Under `Priority`, the path begins with the first member of the group on the path.
        let at = (node, port == RIGHT);
        match self.begun.iter_mut().find(|begun| begun.at == at) {
            Some(known) if known.entries.contains(&entry) => {}
            Some(known) => known.entries.push(entry),
            None => {
                self.begun.push(Begun { at, entries: vec![entry] });
                self.open.push_back(at);
            }
        }
    }

    fn follow(&mut self, start: Visit) -> Row {
        let backward = start.1;
        let mut row = Row {
            backward,
            nodes: vec![],
            profiles: vec![],
            functions: vec![],
            following: vec![],
            exit: None,
        };
        let mut next = Some(start);
        while let Some((node, backward)) = next {
            // A link that leads to the other side of a function changes the direction, which begins
            // another path.
            if backward != row.backward || row.nodes.contains(&node) {
                self.begin(
                    Some(Sink::Port(node, if backward { RIGHT } else { LEFT })),
                    row.last(self.chain),
                );
                break;
            }
            let members = self.members(node, backward);
            let onward = match members.as_slice() {
                [one] => self.graph.leads(*one, Dest::Onward, backward),
                _ => self.graph.next(node, port(Dest::Onward, backward)),
            };
            let mut before = None;
            for member in members {
                let follows = before.and_then(|node| self.graph.next_in_branch(node, backward));
                if follows == Some(member) {
                    row.following.push(row.nodes.len());
                }
                self.visit(member, &mut row);
                before = Some(member);
            }
            next = match onward {
                Some(Sink::Port(node, port)) => Some((node, port == RIGHT)),
                Some(Sink::Interface(number)) => {
                    row.exit = Some(number);
                    None
                }
                None => None,
            };
        }
        row
    }

    /// The functions that a packet visits when it reaches one of them, in path order: all of a
    /// group under `Priority`.
    fn members(&self, node: u16, backward: bool) -> Vec<u16> {
        if self.graph.branches(node, backward).is_none() {
            return vec![node];
        }
        let mut members = self.graph.group(node).to_vec();
        if backward {
            members.reverse();
        }
        members
    }

    fn visit(&mut self, node: u16, row: &mut Row) {
        let at = &self.chain.nodes[usize::from(node)];
        let profile = derive_direction(&at.model, row.backward);
        let onward = port(Dest::Onward, row.backward);
        let ports: Vec<PortId> = profile
            .outputs
            .iter()
            .filter_map(|name| output(name, &at.model.ports, row.backward))
            .collect();
        let steers = ports.iter().any(|port| *port != onward);
        let emits = profile.copies || !profile.creates.is_empty();
        for out in ports {
            if out != onward || emits {
                let name = at.model.ports.get(out.index()).cloned().unwrap_or_default();
                let entry = Entry::Port { function: at.name.clone(), port: name };
                let sink = match out == onward {
                    true => self.graph.leads(node, Dest::Onward, row.backward),
                    false => self.graph.next(node, out),
                };
                self.begin(sink, entry);
            }
        }
        let mut actions = actions(&profile, steers);
        let group = self.events.get(usize::from(node)).copied().flatten();
        actions.extend(group.map(Action::Events));
        row.nodes.push(node);
        row.functions.push(Function { name: at.name.clone(), actions });
        row.profiles.push(profile);
    }
}

/// For each function that publishes events which others take, or takes such events, the lowest
/// number of the functions that events relate to it.
fn event_groups(chain: &Chain) -> Result<Vec<Option<u16>>, String> {
    let mut groups = vec![None; chain.nodes.len()];
    let number = |node: u16, groups: &[Option<u16>]| {
        groups.get(usize::from(node)).copied().flatten().unwrap_or(node)
    };
    for (publisher, taker) in Subscriptions::new(chain)?.pairs(chain) {
        let (a, b) = (number(publisher, &groups), number(taker, &groups));
        for (node, group) in (0..).zip(&mut groups) {
            if [publisher, taker].contains(&node) || group.is_some_and(|old| [a, b].contains(&old))
            {
                *group = Some(a.min(b));
            }
        }
    }
    Ok(groups)
}

/// The port that an output of a profile means.
pub(super) fn output(name: &str, ports: &[String], backward: bool) -> Option<PortId> {
    match name {
        "onward" => Some(port(Dest::Onward, backward)),
        "back" => Some(port(Dest::Back, backward)),
        _ => {
            let at = ports.iter().position(|port| port == name)?;
            u32::try_from(at).ok().map(PortId)
        }
    }
}

impl Row {
    fn last(&self, chain: &Chain) -> Entry {
        let node = self.nodes.last().and_then(|node| chain.nodes.get(usize::from(*node)));
        let ahead = port(Dest::Onward, self.backward);
        Entry::Port {
            function: node.map(|node| node.name.clone()).unwrap_or_default(),
            port: node
                .and_then(|node| node.model.ports.get(ahead.index()).cloned())
                .unwrap_or_default(),
        }
    }

    /// The rules for this path: the rules of the policy about its functions, and its own order,
    /// unless the policy alone orders the functions.
    fn rules(&self, chain: &Chain) -> Vec<Rule> {
        let at = |node: u16| {
            self.nodes.iter().position(|n| *n == node).and_then(|at| u16::try_from(at).ok())
        };
        let here = |rule: &PolicyRule| {
            let rule = match *rule {
                // Rules refer to the forward direction, in which the chain is written.
                PolicyRule::Order(a, b) if self.backward => PolicyRule::Order(at(b)?, at(a)?),
                PolicyRule::First(a) if self.backward => PolicyRule::Last(at(a)?),
                PolicyRule::Last(a) if self.backward => PolicyRule::First(at(a)?),
                PolicyRule::Order(a, b) => PolicyRule::Order(at(a)?, at(b)?),
                PolicyRule::First(a) => PolicyRule::First(at(a)?),
                PolicyRule::Last(a) => PolicyRule::Last(at(a)?),
                PolicyRule::Priority(a, b) => PolicyRule::Priority(at(a)?, at(b)?),
            };
            Some(Rule { rule, origin: Origin::Policy })
        };
        let mut rules: Vec<Rule> = chain.policy.iter().filter_map(here).collect();
        let number = |at: usize| u16::try_from(at).ok();
        rules.extend(self.following.iter().filter_map(|at| {
            let rule = PolicyRule::Order(number(at - 1)?, number(*at)?);
            Some(Rule { rule, origin: Origin::Branch })
        }));
        if chain.by_rules {
            return rules;
        }
        let mut group: Vec<usize> = (0..self.nodes.len()).collect();
        for (a, b) in rules.iter().filter_map(Rule::joins) {
            let (kept, gone) = (group[a], group[b]);
            group.iter_mut().filter(|g| **g == gone).for_each(|g| *g = kept);
        }
        for b in 1..self.nodes.len() {
            // The last function before it that is not in the same group.
            let before = (0..b).rev().find(|a| group[*a] != group[b]);
            let ends = before.map(|a| (u16::try_from(a), u16::try_from(b)));
            let Some((Ok(a), Ok(b))) = ends else { continue };
            let rule = PolicyRule::Order(a, b);
            if !rules.iter().any(|known| known.rule == rule) {
                rules.push(Rule { rule, origin: Origin::Path });
            }
        }
        rules
    }

    fn path(self, chain: &Chain, number: usize, entries: Vec<Entry>) -> Result<Path, Unfit> {
        let rules = self.rules(chain);
        let graph = service_graph(number, &self.functions, &rules).map_err(|problem| {
            let from = entries.first().map(ToString::to_string).unwrap_or_default();
            Unfit::Policy(from, problem)
        })?;
        let exit = self.exit.and_then(|number| chain.interfaces.get(usize::from(number)));
        // The payload matters only if the graph runs functions in parallel.
        let sequential = graph.equivalent_length == self.functions.len();
        Ok(Path {
            number,
            entries,
            backward: self.backward,
            exit: exit.map(|interface| interface.name.clone()),
            functions: self.functions.iter().map(|f| f.name.clone()).collect(),
            whole_payload: !sequential && self.profiles.iter().any(needs_whole_payload),
            graph,
        })
    }
}
