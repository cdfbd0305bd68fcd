//! Groups of functions that see a packet side by side: functions that `Priority` relates, and the
//! functions between them on the path.

use crate::chain::{Chain, Sink};
use crate::model::{LEFT, Model, RIGHT, Term};
use std::sync::Arc;

/// Functions that `Priority` relates and those between them, or one function.
#[derive(Clone)]
pub(super) struct Group {
    /// The functions in the order of the path.
    pub(super) functions: Vec<u16>,
    /// The branches of forward and of backward packets. Those whose results win come first.
    branches: [Arc<[Vec<u16>]>; 2],
}

/// Where each port of each function leads.
type Ports = [Vec<Option<Sink>>];

/// The groups of a chain.
pub(super) fn groups(chain: &Chain, ports: &Ports) -> Result<Vec<Group>, String> {
    let count = u16::try_from(chain.nodes.len()).map_err(|_| "too many functions".to_owned())?;
    let mut groups: Vec<Group> = Vec::new();
    for related in related(chain, count)? {
        if related.len() > 1 {
            let ranked = in_order(chain, related)?;
            let group = Group::new(path(chain, ports, &ranked)?, &ranked);
            let is_in = |other: &Group| group.functions.iter().any(|f| other.functions.contains(f));
            if groups.iter().any(is_in) {
                return Err("two groups of functions under Priority overlap on a path".to_owned());
            }
            let mut nodes =
                group.functions.iter().filter_map(|node| chain.nodes.get(usize::from(*node)));
            if let Some(node) = nodes.find(|node| holds(&node.model)) {
                return Err(format!("{} holds packets, so it cannot be under Priority", node.name));
            }
            groups.push(group);
        }
    }
    let alone: Vec<u16> = (0..count)
        .filter(|node| !groups.iter().any(|group| group.functions.contains(node)))
        .collect();
    groups.extend(alone.into_iter().map(|node| Group::new(vec![node], &[node])));
    Ok(groups)
}

impl Group {
    /// A group of the functions of a path. `ranked` has the functions that `Priority` relates,
    /// winners first: one begins each branch.
    fn new(functions: Vec<u16>, ranked: &[u16]) -> Self {
        let backward: Vec<u16> = functions.iter().rev().copied().collect();
        let branches = [&functions, &backward].map(|path| branches(path, ranked).into());
        Self { functions, branches }
    }

    pub(super) fn branches(&self, backward: bool) -> &Arc<[Vec<u16>]> {
        let [forward, back] = &self.branches;
        if backward { back } else { forward }
    }

    /// The function behind a function in its branch.
    pub(super) fn next(&self, node: u16, backward: bool) -> Option<u16> {
        let of = |branch: &Vec<u16>| branch.iter().skip_while(|at| **at != node).nth(1).copied();
        self.branches(backward).iter().find_map(of)
    }
}

/// Divides a path into branches.
fn branches(path: &[u16], ranked: &[u16]) -> Vec<Vec<u16>> {
    let mut found: Vec<Vec<u16>> = Vec::new();
    for node in path {
        match found.last_mut() {
            Some(branch) if !ranked.contains(node) => branch.push(*node),
            _ => found.push(vec![*node]),
        }
    }
    found.sort_by_key(|branch| ranked.iter().position(|node| branch.first() == Some(node)));
    found
}

/// The functions from the first of these on the path to the last one.
fn path(chain: &Chain, ports: &Ports, ranked: &[u16]) -> Result<Vec<u16>, String> {
    let missing = |path: &[u16]| ranked.iter().find(|node| !path.contains(node)).copied();
    let mut apart = ranked.first().copied();
    for start in ranked {
        let mut path = vec![*start];
        apart = missing(&path);
        while let (Some(node), Some(_)) = (path.last(), apart) {
            match ports.get(usize::from(*node)).and_then(|out| *out.get(RIGHT.index())?) {
                Some(Sink::Port(next, LEFT)) if !path.contains(&next) => path.push(next),
                _ => break,
            }
            apart = missing(&path);
        }
        if apart.is_none() {
            return Ok(path);
        }
    }
    let name = apart.and_then(|node| chain.nodes.get(usize::from(node))).map(|node| &node.name);
    let name = name.map_or("", String::as_str);
    Err(format!("{name} is under Priority with functions that are not on a path with it"))
}

/// The functions that priorities relate, directly or through others. Every other function is alone.
#[expect(clippy::indexing_slicing, reason = "`find` gives places in `groups`")]
fn related(chain: &Chain, count: u16) -> Result<Vec<Vec<u16>>, String> {
    let mut groups: Vec<Vec<u16>> = (0..count).map(|node| vec![node]).collect();
    for rule in &chain.priorities {
        let find = |node: u16| groups.iter().position(|group| group.contains(&node));
        let (Some(a), Some(b)) = (find(rule.winner), find(rule.loser)) else {
            return Err("a priority of a function that the chain does not have".to_owned());
        };
        if a != b {
            let joined = groups[a].iter().chain(&groups[b]).copied().collect();
            groups[a] = joined;
            groups.remove(b);
        }
    }
    Ok(groups)
}

/// Sorts functions: winners before losers, and otherwise by position in the chain.
fn in_order(chain: &Chain, mut rest: Vec<u16>) -> Result<Vec<u16>, String> {
    rest.sort_unstable();
    let mut sorted = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let yields = |node: u16| {
            chain.priorities.iter().any(|rule| rule.loser == node && rest.contains(&rule.winner))
        };
        let Some(place) = rest.iter().position(|node| !yields(*node)) else {
            return Err("priorities that go round in a circle".to_owned());
        };
        sorted.push(rest.remove(place));
    }
    Ok(sorted)
}

fn holds(model: &Model) -> bool {
    model.packet.blocks.iter().any(|block| matches!(block.term, Term::Hold { .. }))
}
