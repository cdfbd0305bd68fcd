//! Checks where functions under `Priority` are: on one path, to which no other packets come between
//! them, and on which nothing holds packets.

use std::sync::Arc;

use braid_ir::chain::{self as ir, Sink, Source};
use braid_ir::model::{LEFT, Model, RIGHT, Term};

use super::{Policy, Rule, join};
use crate::chain::draft::Link;
use crate::diag::{Diagnostic, Diagnostics, codes};

impl Policy<'_, '_> {
    /// Reports rules between functions that cannot take a packet side by side.
    pub(super) fn branches(&self, diags: &mut Diagnostics) {
        let group = self.parallel_groups();
        let mut paths: Vec<(Rule, Vec<u16>)> = Vec::new();
        for of in 0..group.len() {
            let is_of = |rule: &&Rule| {
                matches!(rule.rule, ir::PolicyRule::Priority(..)) && group[rule.ends()[0]] == of
            };
            let rules: Vec<Rule> = self.rules.iter().filter(is_of).copied().collect();
            let Some(first) = rules.first() else { continue };
            let members = (0..=u16::MAX).zip(&group).filter(|(_, g)| **g == of);
            let members: Vec<u16> = members.map(|(node, _)| node).collect();
            match self.path(&members) {
                Some(path) => paths.push((*first, path)),
                None => diags.push(self.apart(rules)),
            }
        }
        for (at, (rule, path)) in paths.iter().enumerate() {
            for (other, among) in &paths[..at] {
                if let Some(node) = path.iter().find(|node| among.contains(node)) {
                    diags.push(self.overlap([*other, *rule], *node));
                }
            }
            self.inside(path, diags);
        }
    }

    /// Where forward packets go from a function by its right port.
    fn next(&self, node: u16) -> Option<u16> {
        let is_right = |link: &&Link| link.source == Source::Port(node, RIGHT);
        match self.draft.links.iter().find(is_right)?.sink {
            Sink::Port(next, LEFT) => Some(next),
            _ => None,
        }
    }

    /// The functions from the first one of a group on its path to the last one.
    fn path(&self, members: &[u16]) -> Option<Vec<u16>> {
        members.iter().find_map(|start| {
            let mut path = vec![*start];
            while !members.iter().all(|node| path.contains(node)) {
                let next = self.next(*path.last()?).filter(|next| !path.contains(next))?;
                path.push(next);
            }
            Some(path)
        })
    }

    /// Reports what may not be on the path of a group.
    fn inside(&self, path: &[u16], diags: &mut Diagnostics) {
        let place = |node: u16| path.iter().position(|at| *at == node);
        let is_related = |node: &u16| {
            let is_named = |rule: &Rule| rule.ends().contains(&usize::from(*node));
            let is_priority = |rule: &&Rule| matches!(rule.rule, ir::PolicyRule::Priority(..));
            self.rules.iter().filter(is_priority).any(is_named)
        };
        let is_apart = !path.iter().all(is_related);
        let mut reported = Vec::new();
        for rule in self.rules {
            let ir::PolicyRule::Priority(a, b) = rule.rule else { continue };
            let (Some(x), Some(y)) = (place(a), place(b)) else { continue };
            for at in x.min(y)..x.max(y) {
                let link = (path[at], path[at + 1]);
                if !reported.contains(&link) {
                    self.joint(*rule, link, is_apart, diags);
                    reported.push(link);
                }
            }
            for node in &path[x.min(y)..=x.max(y)] {
                self.holds(*rule, *node, diags);
            }
        }
    }

    /// Reports packets that enter between two functions of a group, or leave there. `left` leads
    /// directly to `right`.
    fn joint(
        &self,
        rule: Rule,
        (left, right): (u16, u16),
        is_apart: bool,
        diags: &mut Diagnostics,
    ) {
        let (ahead, back) = (Source::Port(left, RIGHT), Source::Port(right, LEFT));
        let enters = |link: &&Link| match link.sink {
            Sink::Port(node, LEFT) if node == right => link.source != ahead,
            Sink::Port(node, RIGHT) if node == left => link.source != back,
            // What enters by a side would pass functions that it does not pass otherwise.
            Sink::Port(node, port) => is_apart && node == right && port != RIGHT,
            Sink::Interface(_) => false,
        };
        let leaves =
            |link: &&Link| is_apart && link.source == back && link.sink != Sink::Port(left, RIGHT);
        let (left, right) = (self.name(left), self.name(right));
        let text = self.text(rule.rule);
        let links = &self.draft.links;
        let (link, message, label) = if let Some(link) = links.iter().find(enters) {
            let message = format!("packets enter between `{left}` and `{right}`");
            (link, message, "they enter here")
        } else if let Some(link) = links.iter().find(leaves) {
            let message = format!("backward packets from `{right}` do not go to `{left}`");
            (link, message, "they go here")
        } else {
            return;
        };
        let message = format!("{message}, which {text} lets run in parallel");
        let help = format!("link these packets to another place, or remove {text}");
        diags.push(
            Diagnostic::new(codes::PRIORITY_APART, message, rule.span, "")
                .label(link.span, label)
                .help(help),
        );
    }

    /// Reports a function that holds packets. A held packet would come back after the other
    /// functions' results were used.
    fn holds(&self, rule: Rule, node: u16, diags: &mut Diagnostics) {
        let holds = |model: &Arc<Model>| {
            model.packet.blocks.iter().any(|block| matches!(block.term, Term::Hold { .. }))
        };
        let function = &self.draft.nodes[usize::from(node)];
        if !function.model.as_ref().is_some_and(holds) {
            return;
        }
        let (name, text) = (&function.name, self.text(rule.rule));
        let (message, help) = match rule.ends().contains(&usize::from(node)) {
            true => (
                format!("`{name}` holds packets, so it cannot run in parallel"),
                "use Order instead".to_owned(),
            ),
            false => (
                format!("`{name}` holds packets, so it cannot be between the functions of {text}"),
                format!("move `{name}` before or behind them, or use Order instead of {text}"),
            ),
        };
        diags.push(
            Diagnostic::new(codes::PRIORITY_HOLDS, message, rule.span, "")
                .label(function.span, "holds packets")
                .help(help),
        );
    }

    /// The message for rules between functions that are not on one path.
    fn apart(&self, mut rules: Vec<Rule>) -> Diagnostic {
        let is_apart = |rule: &Rule| match rule.rule {
            ir::PolicyRule::Priority(a, b) => self.path(&[a, b]).is_none(),
            _ => false,
        };
        if rules.iter().any(is_apart) {
            rules.retain(is_apart);
        }
        let texts: Vec<String> = rules.iter().map(|rule| self.text(rule.rule)).collect();
        let relate = if texts.len() == 1 { "relates" } else { "relate" };
        let message = format!("{} {relate} functions that are not on one path", join(&texts));
        let last = rules.pop().map_or(self.draft.ast.name.span, |rule| rule.span);
        let mut found = Diagnostic::new(codes::PRIORITY_APART, message, last, "");
        for rule in rules {
            found = found.label(rule.span, "the other rule");
        }
        found
            .note(
                "on a path, the right port of each function is linked to the left port of the next",
            )
            .help(format!(
                "link one behind the other, directly or through other functions, or remove {}",
                join(&texts)
            ))
    }

    /// The message for two groups whose functions are in part between each other's.
    fn overlap(&self, [one, other]: [Rule; 2], node: u16) -> Diagnostic {
        let texts = [one, other].map(|rule| self.text(rule.rule));
        let message = format!("{} overlap on the path at `{}`", join(&texts), self.name(node));
        let [a, b] = [one, other].map(|rule| rule.ends()[0]).map(|end| &self.draft.nodes[end].name);
        Diagnostic::new(codes::PRIORITY_APART, message, other.span, "")
            .label(one.span, "the other rule")
            .help(format!("remove one of the two rules, or relate all: add Priority({a} > {b})"))
    }
}
