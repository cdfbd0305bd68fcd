//! Orders the functions of a chain that has a policy and no path.

use braid_ir::chain as ir;

use super::{Policy, Rule, join, resolve};
use crate::chain::circle::find_cycle;
use crate::chain::draft::Draft;
use crate::diag::{Diagnostic, Diagnostics, codes};

/// The functions of a chain in an order that its policy allows: together where `Priority` relates
/// them, and otherwise as declared. A function comes between others that `Priority` relates only if
/// orders put it there. `None`, and an error, if a rule is wrong or contradicts others.
pub(in crate::chain) fn order(draft: &Draft<'_>, diags: &mut Diagnostics) -> Option<Vec<u16>> {
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
    let group = match policy.clusters() {
        Ok(group) => group,
        Err(error) => {
            diags.push(error);
            return None;
        }
    };
    let edges = policy.orders(&group);
    let place = |group_at: usize| {
        let has = |node: u16| group.get(usize::from(node)) == Some(&group_at);
        rules.iter().find_map(|rule| match rule.rule {
            ir::PolicyRule::First(node) if has(node) => Some(0),
            ir::PolicyRule::Last(node) if has(node) => Some(2),
            _ => None,
        })
    };
    let mut clusters: Vec<usize> = (0..group.len()).filter(|at| group.contains(at)).collect();
    clusters.sort_by_key(|cluster| place(*cluster).unwrap_or(1));
    let each: Vec<usize> = (0..group.len()).collect();
    let inner = policy.orders(&each);
    let mut order = Vec::with_capacity(group.len());
    for cluster in sorted(clusters, &edges) {
        let members = each.iter().copied().filter(|node| group[*node] == cluster).collect();
        order.extend(sorted(members, &inner).into_iter().map(number));
    }
    Some(order)
}

/// Sorts numbers so that the first of each edge comes before the second. There is no circle.
fn sorted(mut rest: Vec<usize>, edges: &[(u16, u16, Rule)]) -> Vec<usize> {
    let mut sorted = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let waits = |of: &usize| {
            edges.iter().any(|(a, b, _)| *b == number(*of) && rest.contains(&usize::from(*a)))
        };
        sorted.push(rest.remove(rest.iter().position(|of| !waits(of)).unwrap_or_default()));
    }
    sorted
}

fn number(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}

impl Policy<'_, '_> {
    /// The orders between functions of different groups, as edges between these groups.
    fn orders(&self, group: &[usize]) -> Vec<(u16, u16, Rule)> {
        let of = |node: u16| number(group.get(usize::from(node)).copied().unwrap_or_default());
        let edge = |rule: &Rule| match rule.rule {
            ir::PolicyRule::Order(a, b) => Some((of(a), of(b), *rule)),
            _ => None,
        };
        self.rules.iter().filter_map(edge).filter(|(a, b, _)| a != b).collect()
    }

    /// For each function, the group of functions with which it must stay together: functions that
    /// run in parallel, and others that orders put between them.
    fn clusters(&self) -> Result<Vec<usize>, Diagnostic> {
        let parallel = self.parallel_groups();
        let are_related = |group: usize| parallel.iter().filter(|of| **of == group).count() > 1;
        let mut group = parallel.clone();
        loop {
            let edges = self.orders(&group);
            let Some(circle) = find_cycle(&edges) else { return Ok(group) };
            let circle: Vec<Rule> = circle.into_iter().map(|at| edges[at].2).collect();
            let mut touched: Vec<usize> = circle.iter().flat_map(|rule| rule.ends()).collect();
            let mut related: Vec<usize> = touched.iter().map(|node| parallel[*node]).collect();
            related.retain(|group| are_related(*group));
            related.sort_unstable();
            related.dedup();
            if related.len() > 1 {
                return Err(self.split(&circle, &related));
            }
            touched.iter_mut().for_each(|node| *node = group[*node]);
            let kept = touched[0];
            group.iter_mut().filter(|of| touched.contains(of)).for_each(|of| *of = kept);
        }
    }

    /// The message for orders that put functions that run in parallel between others that do.
    fn split(&self, circle: &[Rule], related: &[usize]) -> Diagnostic {
        let parallel = self.parallel_groups();
        let joins = |rule: &&Rule| {
            let is_in = |node: usize| related.contains(&parallel[node]);
            matches!(rule.rule, ir::PolicyRule::Priority(..)) && rule.ends().into_iter().all(is_in)
        };
        let joining: Vec<Rule> = self.rules.iter().filter(joins).copied().collect();
        let texts = |rules: &[Rule]| {
            join(&rules.iter().map(|rule| self.text(rule.rule)).collect::<Vec<_>>())
        };
        let message = format!(
            "{} put functions of one rule between those of another, but {} let them run in parallel",
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
}
