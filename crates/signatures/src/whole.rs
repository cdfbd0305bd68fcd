//! Evaluates rules on buffers that have come whole: those of HTTP messages, and datagrams.

use crate::eval;
use crate::outcome::Context;
use crate::prefilter::Prefilter;
use crate::rule::Buffer;
use crate::work::Work;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Buffers and their bytes, in the order of the buffers.
pub type Seen<'a> = [(Buffer, Cow<'a, [u8]>)];

/// Evaluates the rules that the buffers select. They alert if they hold. `is_established`: both
/// ends have sent something.
pub fn evaluate(
    rules: &Prefilter,
    seen: &Seen<'_>,
    (from_client, is_established): (bool, bool),
    mut work: Work,
    context: &mut Context<'_, '_>,
) {
    let mut selected: BTreeSet<u32> = rules.always().iter().copied().collect();
    for (buffer, bytes) in seen {
        let patterns: BTreeSet<u32> = rules.patterns(bytes).collect();
        for pattern in patterns {
            selected.extend(rules.selected(pattern, *buffer));
        }
    }
    for number in selected {
        let Some(rule) = context.rules.set.rule(number) else { continue };
        let is_asked = rule.is_established.is_none_or(|wanted| wanted == is_established);
        if !is_asked || !rule.applies(&context.flow, from_client) {
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
