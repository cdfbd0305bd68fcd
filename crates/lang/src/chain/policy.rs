//! Checks the policy: the rules of NFP Table 1, and each contradiction between two rules or between
//! a rule and the links. Without rules, the order of the paths decides.

use std::collections::{BTreeSet, VecDeque};

use braid_ir::chain::{self as ir, Sink, Source};
use braid_ir::model::{LEFT, Model, RIGHT, Term};
use rustc_hash::FxHashMap;

use super::draft::{Draft, End, MAX_RULES};
use super::graph;
use crate::ast::{ChainItem, Ident, PolicyKind, PolicyRule, Span};
use crate::diag::{Code, Diagnostic, Diagnostics, codes, did_you_mean_help};

/// A rule over numbered functions, with its place.
#[derive(Clone, Copy)]
struct Rule {
    rule: ir::PolicyRule,
    span: Span,
}

/// Checks the policy. Returns its rules and the pairs of functions that run in parallel. Consistent
/// rules are compared with the links, if no link is missing.
pub(super) fn check(
    draft: &Draft<'_>,
    links_are_whole: bool,
    diags: &mut Diagnostics,
) -> (Vec<ir::PolicyRule>, Vec<ir::Priority>) {
    let rules = resolve(draft, diags);
    let policy = Policy { draft, rules: &rules, after: graph::after(draft) };
    let mut found = Diagnostics::new();
    policy.cycles(&mut found);
    policy.positions(&mut found);
    policy.parallel_orders(&mut found);
    if links_are_whole && !found.has_errors() {
        policy.orders_and_path(&mut found);
        policy.neighbours(&mut found);
    }
    diags.extend(found);
    let priorities = rules.iter().filter_map(|rule| match rule.rule {
        ir::PolicyRule::Priority(winner, loser) => Some(ir::Priority { winner, loser }),
        _ => None,
    });
    let priorities = priorities.collect();
    (rules.iter().map(|rule| rule.rule).collect(), priorities)
}

/// The rules with right names, without duplicates.
fn resolve(draft: &Draft<'_>, diags: &mut Diagnostics) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for item in &draft.ast.items {
        let ChainItem::Policy { rules: written, .. } = item else { continue };
        for written in written {
            if rules.len() >= MAX_RULES {
                let message = format!("a policy has at most {MAX_RULES} rules");
                let code = codes::CHAIN_TOO_LARGE;
                diags.push(Diagnostic::new(code, message, written.span, "one too many"));
                return rules;
            }
            let Some(rule) = resolve_rule(draft, written, diags) else { continue };
            if !rules.iter().any(|known| known.rule == rule) {
                rules.push(Rule { rule, span: written.span });
            }
        }
    }
    rules
}

fn resolve_rule(
    draft: &Draft<'_>,
    written: &PolicyRule,
    diags: &mut Diagnostics,
) -> Option<ir::PolicyRule> {
    let (a, b) = match &written.kind {
        PolicyKind::Order(a, b) | PolicyKind::Priority(a, b) => {
            (function(draft, a, diags), function(draft, b, diags))
        }
        PolicyKind::Position(a, place) => {
            let a = function(draft, a, diags);
            return match place.text.as_str() {
                "first" => Some(ir::PolicyRule::First(a?)),
                "last" => Some(ir::PolicyRule::Last(a?)),
                other => {
                    let message = format!("expected `first` or `last`, found `{other}`");
                    diags.push(
                        Diagnostic::new(codes::POLICY_POSITION, message, place.span, "")
                            .help_if(did_you_mean_help(other, ["first", "last"])),
                    );
                    None
                }
            };
        }
    };
    let (a, b) = (a?, b?);
    if a == b {
        let message = format!("this rule relates `{}` to itself", draft.node_name(a));
        diags.push(
            Diagnostic::new(codes::POLICY_SELF, message, written.span, "")
                .help("name two different functions"),
        );
        return None;
    }
    Some(match written.kind {
        PolicyKind::Order(..) => ir::PolicyRule::Order(a, b),
        _ => ir::PolicyRule::Priority(a, b),
    })
}

fn function(draft: &Draft<'_>, name: &Ident, diags: &mut Diagnostics) -> Option<u16> {
    if let Some(End::Node(at)) = draft.names.get(name.text.as_str()) {
        return Some(*at);
    }
    // A function in place has a generated name. Paths cannot use it, but policies can.
    if let Some(at) = draft.node_names().position(|node| node == name.text) {
        return u16::try_from(at).ok();
    }
    if draft.doubt {
        return None;
    }
    let known: Vec<&str> = draft.node_names().collect();
    let message = format!("the chain has no function `{}`", name.text);
    diags.push(
        Diagnostic::new(codes::POLICY_UNKNOWN_FUNCTION, message, name.span, "unknown")
            .note(format!("its functions are {}", known.join(", ")))
            .help_if(did_you_mean_help(&name.text, known.iter().copied())),
    );
    None
}

struct Policy<'d, 'a> {
    draft: &'d Draft<'a>,
    rules: &'d [Rule],
    /// For each function, the functions behind it on forward paths.
    after: Vec<BTreeSet<u16>>,
}

impl Policy<'_, '_> {
    fn name(&self, node: u16) -> &str {
        self.draft.node_name(node)
    }

    /// A rule in its written form.
    fn text(&self, rule: ir::PolicyRule) -> String {
        match rule {
            ir::PolicyRule::Order(a, b) => {
                format!("Order({}, before, {})", self.name(a), self.name(b))
            }
            ir::PolicyRule::Priority(a, b) => {
                format!("Priority({} > {})", self.name(a), self.name(b))
            }
            ir::PolicyRule::First(a) => format!("Position({}, first)", self.name(a)),
            ir::PolicyRule::Last(a) => format!("Position({}, last)", self.name(a)),
        }
    }

    /// The message for two rules that cannot both hold.
    fn conflict(&self, code: Code, first: Rule, second: Rule, why: &str) -> Diagnostic {
        let (a, b) = (self.text(first.rule), self.text(second.rule));
        Diagnostic::new(code, format!("{b} contradicts {a}"), second.span, why)
            .label(first.span, "the other rule")
            .help("remove one of the two rules")
    }

    fn pairs(&self) -> impl Iterator<Item = (Rule, Rule)> {
        let rules = self.rules;
        (0..rules.len())
            .flat_map(move |at| (at + 1..rules.len()).map(move |b| (rules[at], rules[b])))
    }

    /// Reports cycles among orders and among priorities.
    fn cycles(&self, diags: &mut Diagnostics) {
        let order = |rule: &Rule| match rule.rule {
            ir::PolicyRule::Order(a, b) => Some((a, b, *rule)),
            _ => None,
        };
        let priority = |rule: &Rule| match rule.rule {
            ir::PolicyRule::Priority(a, b) => Some((a, b, *rule)),
            _ => None,
        };
        let orders: Vec<_> = self.rules.iter().filter_map(order).collect();
        let priorities: Vec<_> = self.rules.iter().filter_map(priority).collect();
        self.cycle(codes::ORDER_CYCLE, &orders, "before", diags);
        self.cycle(codes::PRIORITY_CYCLE, &priorities, "over", diags);
    }

    fn cycle(
        &self,
        code: Code,
        edges: &[(u16, u16, Rule)],
        relation: &str,
        diags: &mut Diagnostics,
    ) {
        let Some(cycle) = find_cycle(edges) else { return };
        let rules: Vec<Rule> = cycle.iter().map(|at| edges[*at].2).collect();
        let names: Vec<String> = rules.iter().map(|rule| self.text(rule.rule)).collect();
        let start = self.name(edges[cycle[0]].0);
        let message = format!("{} put `{start}` {relation} itself", join(&names));
        let mut spans: Vec<Span> = rules.iter().map(|rule| rule.span).collect();
        spans.sort_by_key(|span| (span.file, span.start));
        let last = spans.pop().unwrap_or(self.draft.ast.name.span);
        let mut diagnostic = Diagnostic::new(code, message, last, "closes the circle");
        for span in spans {
            diagnostic = diagnostic.label(span, "part of the circle");
        }
        diags.push(diagnostic.help("remove one of these rules"));
    }

    fn positions(&self, diags: &mut Diagnostics) {
        use ir::PolicyRule::{First, Last, Order, Priority};
        for (a, b) in self.pairs() {
            let found = match (a.rule, b.rule) {
                (First(x), First(y)) | (Last(x), Last(y)) if x != y => {
                    Some((codes::POSITION_CONFLICT, "only one function can be there"))
                }
                (First(x), Last(y)) | (Last(y), First(x)) if x == y => {
                    Some((codes::POSITION_CONFLICT, "a function cannot be both"))
                }
                (First(x), Order(_, y)) | (Order(_, y), First(x)) if x == y => {
                    Some((codes::POSITION_AGAINST_ORDER, "nothing runs before the first function"))
                }
                (Last(x), Order(y, _)) | (Order(y, _), Last(x)) if x == y => {
                    Some((codes::POSITION_AGAINST_ORDER, "nothing runs after the last function"))
                }
                (First(x) | Last(x), Priority(y, z)) | (Priority(y, z), First(x) | Last(x))
                    if x == y || x == z =>
                {
                    Some((
                        codes::PRIORITY_AGAINST_POSITION,
                        "a function with a position runs alone, not in parallel",
                    ))
                }
                _ => None,
            };
            if let Some((code, why)) = found {
                diags.push(self.conflict(code, a, b, why));
            }
        }
    }

    /// Whether `b` comes after `a` on a forward path.
    fn follows(&self, a: u16, b: u16) -> bool {
        self.after.get(usize::from(a)).is_some_and(|after| after.contains(&b))
    }

    fn orders_and_path(&self, diags: &mut Diagnostics) {
        let count = u16::try_from(self.draft.nodes.len()).unwrap_or(u16::MAX);
        for rule in self.rules {
            match rule.rule {
                ir::PolicyRule::Order(a, b) if self.follows(b, a) => {
                    let message = format!(
                        "{} contradicts the path, where `{}` comes before `{}`",
                        self.text(rule.rule),
                        self.name(b),
                        self.name(a)
                    );
                    diags.push(
                        Diagnostic::new(codes::ORDER_AGAINST_PATH, message, rule.span, "")
                            .help("change the rule or the path"),
                    );
                }
                ir::PolicyRule::First(a) => {
                    if let Some(other) = (0..count).find(|other| self.follows(*other, a)) {
                        diags.push(self.misplaced(*rule, other, "before", a));
                    }
                }
                ir::PolicyRule::Last(a) => {
                    if let Some(other) = (0..count).find(|other| self.follows(a, *other)) {
                        diags.push(self.misplaced(*rule, other, "after", a));
                    }
                }
                _ => {}
            }
        }
    }

    fn misplaced(&self, rule: Rule, other: u16, relation: &str, node: u16) -> Diagnostic {
        let message = format!(
            "{} contradicts the path, where `{}` comes {relation} `{}`",
            self.text(rule.rule),
            self.name(other),
            self.name(node)
        );
        Diagnostic::new(codes::POSITION_AGAINST_PATH, message, rule.span, "")
            .help("change the rule or the path")
    }

    /// For each function, the group of functions that run in parallel with it, including itself.
    fn parallel_groups(&self) -> Vec<usize> {
        let mut group: Vec<usize> = (0..self.draft.nodes.len()).collect();
        for rule in self.rules {
            if let ir::PolicyRule::Priority(a, b) = rule.rule {
                let (kept, joined) = (group[usize::from(a)], group[usize::from(b)]);
                for of_node in group.iter_mut().filter(|of_node| **of_node == joined) {
                    *of_node = kept;
                }
            }
        }
        group
    }

    /// Reports orders between functions that run in parallel, because such functions have no order.
    fn parallel_orders(&self, diags: &mut Diagnostics) {
        use ir::PolicyRule::{Order, Priority};
        let group = self.parallel_groups();
        for (a, b) in self.pairs() {
            let (pair, order) = match (a.rule, b.rule) {
                (Priority(x, y), Order(v, w)) | (Order(v, w), Priority(x, y)) => ((x, y), (v, w)),
                _ => continue,
            };
            // Functions are parallel when priorities join them, directly or through other
            // functions.
            let touches = order.0 == pair.0 || order.0 == pair.1;
            if touches && group[usize::from(order.0)] == group[usize::from(order.1)] {
                let why = "in parallel or one after the other?";
                diags.push(self.conflict(codes::PRIORITY_AGAINST_ORDER, a, b, why));
            }
        }
    }

    /// Reports parallel functions that are not neighbours or that hold packets.
    fn neighbours(&self, diags: &mut Diagnostics) {
        for rule in self.rules {
            if let ir::PolicyRule::Priority(winner, loser) = rule.rule {
                if let Some(diagnostic) = self.apart(*rule, winner, loser) {
                    diags.push(diagnostic);
                }
                for node in [winner, loser] {
                    self.holds(*rule, node, diags);
                }
            }
        }
    }

    /// Reports a parallel function that is native code or that holds packets. A held packet would
    /// come back after the other function's result was used.
    fn holds(&self, rule: Rule, node: u16, diags: &mut Diagnostics) {
        let node = &self.draft.nodes[usize::from(node)];
        let holds = |model: &std::sync::Arc<Model>| {
            model.packet.blocks.iter().any(|block| matches!(block.term, Term::Hold { .. }))
        };
        if node.model.as_ref().is_some_and(|model| model.native.is_some()) {
            let message = format!("`{}` is native code, so it cannot run in parallel", node.name);
            diags.push(
                Diagnostic::new(codes::PRIORITY_NATIVE, message, rule.span, "")
                    .label(node.span, "native code")
                    .help("use Order instead"),
            );
        }
        if node.model.as_ref().is_some_and(holds) {
            let message = format!("`{}` holds packets, so it cannot run in parallel", node.name);
            diags.push(
                Diagnostic::new(codes::PRIORITY_HOLDS, message, rule.span, "")
                    .label(node.span, "holds packets")
                    .help("use Order instead"),
            );
        }
    }

    /// The reason why two functions cannot run in parallel, if any.
    fn apart(&self, rule: Rule, a: u16, b: u16) -> Option<Diagnostic> {
        let right_to_left = |from: u16, to: u16| {
            self.draft.links.iter().any(|link| {
                link.source == Source::Port(from, RIGHT) && link.sink == Sink::Port(to, LEFT)
            })
        };
        let (left, right) = match (right_to_left(a, b), right_to_left(b, a)) {
            (true, _) => (a, b),
            (false, true) => (b, a),
            (false, false) => {
                let message = format!(
                    "{} relates functions that are not neighbours on a path",
                    self.text(rule.rule)
                );
                return Some(
                    Diagnostic::new(codes::PRIORITY_APART, message, rule.span, "")
                        .help(self.apart_help(a, b)),
                );
            }
        };
        let enters_between = |sink: Sink, from: Source| {
            self.draft.links.iter().find(|link| link.sink == sink && link.source != from).copied()
        };
        let intruder = enters_between(Sink::Port(right, LEFT), Source::Port(left, RIGHT))
            .or_else(|| enters_between(Sink::Port(left, RIGHT), Source::Port(right, LEFT)))?;
        let message = format!(
            "packets enter between `{}` and `{}`, which {} lets run in parallel",
            self.name(left),
            self.name(right),
            self.text(rule.rule)
        );
        Some(
            Diagnostic::new(codes::PRIORITY_APART, message, rule.span, "")
                .label(intruder.span, "they enter here")
                .help("link these packets to another place, or remove the rule"),
        )
    }

    fn apart_help(&self, a: u16, b: u16) -> String {
        let (first, second) = if self.follows(b, a) { (b, a) } else { (a, b) };
        let between: Vec<String> = self
            .after
            .get(usize::from(first))
            .into_iter()
            .flatten()
            .filter(|node| self.follows(**node, second))
            .map(|node| format!("`{}`", self.name(*node)))
            .collect();
        if between.is_empty() {
            return "link one directly to the other".into();
        }
        format!(
            "{} between them: move it, or write Order({}, before, {})",
            match between.as_slice() {
                [one] => format!("{one} stands"),
                many => format!("{} stand", many.join(", ")),
            },
            self.name(first),
            self.name(second)
        )
    }
}

/// A list of names such as `a`, `a and b` or `a, b and c`.
fn join(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A shortest cycle, as numbers of edges in order.
fn find_cycle(edges: &[(u16, u16, Rule)]) -> Option<Vec<usize>> {
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
fn is_acyclic(edges: &[(u16, u16, Rule)], leaving: &FxHashMap<u16, Vec<usize>>) -> bool {
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
fn shortest(
    edges: &[(u16, u16, Rule)],
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
