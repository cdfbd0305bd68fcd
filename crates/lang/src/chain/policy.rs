//! Checks the policy: the rules of NFP Table 1, and each contradiction between two rules or between
//! a rule and the links. Without rules, the order of the paths decides.

mod branches;
pub(super) mod order;

use std::collections::BTreeSet;

use braid_ir::chain as ir;

use super::circle::find_cycle;
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

impl Rule {
    /// The functions that the rule names.
    fn ends(&self) -> Vec<usize> {
        match self.rule {
            ir::PolicyRule::Order(a, b) | ir::PolicyRule::Priority(a, b) => {
                vec![a.into(), b.into()]
            }
            ir::PolicyRule::First(a) | ir::PolicyRule::Last(a) => vec![a.into()],
        }
    }
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
        policy.branches(&mut found);
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
}

/// A list of names such as `a`, `a and b` or `a, b and c`.
fn join(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
