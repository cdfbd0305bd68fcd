//! Checks the policy: the rules of NFP Table 1, and each contradiction between two rules or between
//! a rule and the links. Without rules, the order of the paths decides.

use std::collections::BTreeSet;

use braid_ir::chain::{self as ir, Sink, Source};
use braid_ir::model::{LEFT, Model, RIGHT, Term};

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

/// The functions of a chain in an order that its policy allows: neighbours where `Priority` relates
/// them, and otherwise as declared. `None`, and an error, if a rule is wrong or contradicts others.
pub(super) fn order(draft: &Draft<'_>, diags: &mut Diagnostics) -> Option<Vec<u16>> {
    let mut found = Diagnostics::new();
    let rules = resolve(draft, &mut found);
    let policy = Policy { draft, rules: &rules, after: Vec::new() };
    policy.cycles(&mut found);
    policy.positions(&mut found);
    policy.parallel_orders(&mut found);
    let is_wrong = found.has_errors();
    diags.extend(found);
    if is_wrong {
        return None;
    }
    let group = policy.parallel_groups();
    let group_of = |node: u16| group.get(usize::from(node)).copied().unwrap_or_default();
    let number = |group: usize| u16::try_from(group).unwrap_or(u16::MAX);
    let mut edges: Vec<(u16, u16, Rule)> = Vec::new();
    for rule in &rules {
        if let ir::PolicyRule::Order(a, b) = rule.rule {
            edges.push((number(group_of(a)), number(group_of(b)), *rule));
        }
    }
    if let Some(circle) = find_cycle(&edges) {
        let circle: Vec<Rule> = circle.into_iter().map(|at| edges[at].2).collect();
        diags.push(policy.split(&circle, &group));
        return None;
    }
    let place = |group: usize| {
        let has = |node: u16| group_of(node) == group;
        rules.iter().find_map(|rule| match rule.rule {
            ir::PolicyRule::First(node) if has(node) => Some(0),
            ir::PolicyRule::Last(node) if has(node) => Some(2),
            _ => None,
        })
    };
    let mut rest: Vec<usize> = (0..group.len()).filter(|at| group.contains(at)).collect();
    rest.sort_by_key(|group| place(*group).unwrap_or(1));
    let mut order = Vec::with_capacity(draft.nodes.len());
    while !rest.is_empty() {
        let waits = |of: usize| {
            edges.iter().any(|(a, b, _)| *b == number(of) && rest.contains(&usize::from(*a)))
        };
        // Without a circle, one of them waits for no other.
        let next = rest.remove(rest.iter().position(|of| !waits(*of)).unwrap_or_default());
        let members = (0..group.len()).filter(|node| group[*node] == next);
        order.extend(members.map(number));
    }
    Some(order)
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

    /// The message for orders that put a function between others that see packets together.
    fn split(&self, circle: &[Rule], group: &[usize]) -> Diagnostic {
        let of = |node: u16| group.get(usize::from(node)).copied();
        let touched: Vec<Option<usize>> = circle
            .iter()
            .filter_map(|rule| match rule.rule {
                ir::PolicyRule::Order(a, _) => Some(of(a)),
                _ => None,
            })
            .collect();
        let joins = |rule: &&Rule| match rule.rule {
            ir::PolicyRule::Priority(a, _) => touched.contains(&of(a)),
            _ => false,
        };
        let joining: Vec<Rule> = self.rules.iter().filter(joins).copied().collect();
        let texts = |rules: &[Rule]| {
            join(&rules.iter().map(|rule| self.text(rule.rule)).collect::<Vec<_>>())
        };
        let message = format!(
            "{} put a function between others that {} lets run in parallel",
            texts(circle),
            texts(&joining)
        );
        let span = joining.first().map_or(self.draft.ast.name.span, |rule| rule.span);
        let code = codes::PRIORITY_AGAINST_ORDER;
        let mut found = Diagnostic::new(code, message, span, "in parallel");
        for rule in circle {
            found = found.label(rule.span, "one after the other");
        }
        found.help("remove one of these rules")
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

    /// Reports parallel functions between which others are, or that hold packets.
    fn neighbours(&self, diags: &mut Diagnostics) {
        let group = self.parallel_groups();
        for rule in self.rules {
            if let ir::PolicyRule::Priority(winner, loser) = rule.rule {
                let members: Vec<u16> = (0..self.draft.nodes.len())
                    .filter(|node| group[*node] == group[usize::from(winner)])
                    .filter_map(|node| u16::try_from(node).ok())
                    .collect();
                if !self.together(winner, loser, &members) {
                    diags.push(self.apart(*rule, winner, loser));
                }
                for (left, right) in self.links_among(&members) {
                    if [left, right].contains(&loser) {
                        self.enters_between(*rule, left, right, diags);
                    }
                }
                for node in [winner, loser] {
                    self.holds(*rule, node, diags);
                }
            }
        }
    }

    /// The pairs of these functions whose first leads directly to the second.
    fn links_among(&self, members: &[u16]) -> Vec<(u16, u16)> {
        let among = |link: &super::draft::Link| match (link.source, link.sink) {
            (Source::Port(a, RIGHT), Sink::Port(b, LEFT)) => Some((a, b)),
            _ => None,
        };
        let inside = |(a, b): &(u16, u16)| members.contains(a) && members.contains(b);
        self.draft.links.iter().filter_map(among).filter(inside).collect()
    }

    /// Whether only functions of a group are between two of them on a path.
    fn together(&self, a: u16, b: u16, members: &[u16]) -> bool {
        let links = self.links_among(members);
        let mut reached = vec![a];
        let mut at = 0;
        while let Some(node) = reached.get(at).copied() {
            at += 1;
            for (left, right) in &links {
                let next = match node {
                    _ if node == *left => *right,
                    _ if node == *right => *left,
                    _ => continue,
                };
                if !reached.contains(&next) {
                    reached.push(next);
                }
            }
        }
        reached.contains(&b)
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

    fn apart(&self, rule: Rule, a: u16, b: u16) -> Diagnostic {
        let message =
            format!("{} relates functions that are not neighbours on a path", self.text(rule.rule));
        Diagnostic::new(codes::PRIORITY_APART, message, rule.span, "").help(self.apart_help(a, b))
    }

    /// Reports packets that enter between two functions that run in parallel.
    fn enters_between(&self, rule: Rule, left: u16, right: u16, diags: &mut Diagnostics) {
        let other = |sink: Sink, from: Source| {
            self.draft.links.iter().find(|link| link.sink == sink && link.source != from).copied()
        };
        let Some(intruder) = other(Sink::Port(right, LEFT), Source::Port(left, RIGHT))
            .or_else(|| other(Sink::Port(left, RIGHT), Source::Port(right, LEFT)))
        else {
            return;
        };
        let message = format!(
            "packets enter between `{}` and `{}`, which {} lets run in parallel",
            self.name(left),
            self.name(right),
            self.text(rule.rule)
        );
        diags.push(
            Diagnostic::new(codes::PRIORITY_APART, message, rule.span, "")
                .label(intruder.span, "they enter here")
                .help("link these packets to another place, or remove the rule"),
        );
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
