//! Evaluates rules on buffers that have come whole: those of HTTP messages, and packets.

use crate::eval;
use crate::outcome::Context;
use crate::prefilter::Prefilter;
use crate::rule::{Buffer, Rule};
use crate::work::Work;
use std::borrow::Cow;

/// Buffers and their bytes, in the order of the buffers.
pub type Seen<'a> = [(Buffer, Cow<'a, [u8]>)];

/// Evaluates the rules that are `selected` already and the ones that the buffers select, if they
/// apply. They alert if they hold.
pub fn evaluate(
    (mut selected, rules): (Vec<u32>, &Prefilter),
    seen: &Seen<'_>,
    (from_client, applies): (bool, &dyn Fn(&Rule) -> bool),
    mut work: Work,
    context: &mut Context<'_, '_>,
) {
    let mut patterns = Vec::new();
    for (buffer, bytes) in seen {
        patterns.clear();
        patterns.extend(rules.patterns(bytes));
        patterns.sort_unstable();
        patterns.dedup();
        for pattern in &patterns {
            selected.extend(rules.selected(*pattern, *buffer));
        }
    }
    selected.sort_unstable();
    selected.dedup();
    for number in selected {
        let Some(rule) = context.rules.set.rule(number) else { continue };
        if !applies(rule) {
            continue;
        }
        if work.is_used_up() {
            context.rules.counts.exhausted += 1;
            return;
        }
        work.look_up(&rule.bits);
        if context.bits.allow(&rule.bits, from_client).is_none() {
            continue;
        }
        let mut of_rule = work.of_rule();
        let each = rule.buffers.iter().map(|of| {
            let at = seen.binary_search_by_key(&of.buffer, |(buffer, _)| *buffer);
            let bytes = at.ok().and_then(|at| seen.get(at));
            bytes.map_or(Ok(false), |(_, bytes)| eval::holds(&of.tests, bytes, 0, &mut of_rule))
        });
        match eval::all(each) {
            Ok(true) => {
                context.bits.write(&rule.bits, context.before, context.rules.counts);
                if !rule.is_silent {
                    context.alert(number, rule, from_client);
                }
            }
            Ok(false) => {}
            Err(_) => context.rules.counts.exhausted += 1,
        }
    }
}
