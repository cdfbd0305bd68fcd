//! Finds circles of rules: each rule is an edge from one function to another.

use std::collections::{BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

/// A shortest cycle, as numbers of edges in order.
pub(super) fn find_cycle<T>(edges: &[(u16, u16, T)]) -> Option<Vec<usize>> {
    let mut leaving: FxHashMap<u16, Vec<usize>> = FxHashMap::default();
    for (at, edge) in edges.iter().enumerate() {
        leaving.entry(edge.0).or_default().push(at);
    }
    if is_acyclic(edges, &leaving) {
        return None;
    }
    (0..edges.len()).filter_map(|start| shortest(edges, &leaving, start)).min_by_key(Vec::len)
}

/// Whether the graph has no cycle: removing functions without entering edges repeatedly removes all
/// edges. Nearly all policies have no cycle, so this check avoids the search for the shortest one.
fn is_acyclic<T>(edges: &[(u16, u16, T)], leaving: &FxHashMap<u16, Vec<usize>>) -> bool {
    let mut entering: FxHashMap<u16, usize> = FxHashMap::default();
    for edge in edges {
        *entering.entry(edge.1).or_default() += 1;
    }
    let mut free: Vec<u16> =
        leaving.keys().filter(|node| !entering.contains_key(node)).copied().collect();
    let mut left = edges.len();
    while let Some(node) = free.pop() {
        for at in leaving.get(&node).into_iter().flatten() {
            left -= 1;
            let target = edges[*at].1;
            if let Some(count) = entering.get_mut(&target) {
                *count -= 1;
                if *count == 0 {
                    free.push(target);
                }
            }
        }
    }
    left == 0
}

/// An edge and then the shortest path from its end to its start, found breadth first.
fn shortest<T>(
    edges: &[(u16, u16, T)],
    leaving: &FxHashMap<u16, Vec<usize>>,
    start: usize,
) -> Option<Vec<usize>> {
    let goal = edges[start].0;
    let mut came_by: FxHashMap<usize, usize> = FxHashMap::default();
    let mut seen = BTreeSet::from([edges[start].1]);
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        if edges[at].1 == goal {
            let mut way = vec![at];
            while let Some(before) = came_by.get(&way[way.len() - 1]) {
                way.push(*before);
            }
            way.reverse();
            return Some(way);
        }
        for next in leaving.get(&edges[at].1).into_iter().flatten() {
            if seen.insert(edges[*next].1) {
                came_by.insert(*next, at);
                queue.push_back(*next);
            }
        }
    }
    None
}
