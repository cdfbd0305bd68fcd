//! A set of rules, ready to inspect connections.

use crate::groups::Groups;
use crate::headers::Kind;
use crate::prefilter::Prefilter;
use crate::rule::{Buffer, Rule, Signature, Stage};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The rules of a file. Cheap to clone; equal when the lines that it came from are equal.
#[derive(Clone, Default)]
pub struct Signatures(Arc<Compiled>);

#[derive(Default)]
struct Compiled {
    lines: Vec<String>,
    rules: Vec<Rule>,
    /// Rules about the bytes of streams.
    streams: Prefilter,
    /// Rules about the heads of HTTP messages, and about whole ones.
    heads: Prefilter,
    bodies: Prefilter,
    /// Rules about packets, by the number of their kind.
    packets: [OfKind; Kind::ALL.len()],
    /// The buffers in which contents preselect rules about HTTP messages.
    of_heads: BTreeSet<Buffer>,
    of_bodies: BTreeSet<Buffer>,
}

/// The rules about packets of a kind.
#[derive(Debug, Default)]
pub struct OfKind {
    /// Those with a content.
    pub contents: Prefilter,
    /// The others.
    pub groups: Groups,
}

impl OfKind {
    /// Of no rules.
    const NONE: Self = Self { contents: Prefilter::NONE, groups: Groups::NONE };

    /// Of rules that are evaluated at the same places.
    fn new(contents: Prefilter, rules: &[Rule]) -> Self {
        let always = contents.always().iter();
        let always = always.filter_map(|number| {
            let rule = usize::try_from(*number).ok().and_then(|at| rules.get(at));
            Some((*number, rule?))
        });
        Self { groups: Groups::new(always), contents }
    }
}

impl Signatures {
    /// # Errors
    /// The automata cannot be built.
    pub(crate) fn new(lines: Vec<String>, mut rules: Vec<Rule>) -> Result<Self, String> {
        // Rules are evaluated in the order of their numbers.
        rules.sort_by_key(|rule| rule.bits.rank());
        let which = |is_one: &dyn Fn(&Rule) -> bool| {
            Prefilter::new((0..).zip(&rules).filter(|(_, rule)| is_one(rule)))
        };
        let of = |stage: Stage| which(&|rule| rule.stage == stage);
        let streams = which(&|rule| matches!(rule.stage, Stage::Stream | Stage::StreamEnd))?;
        let (heads, bodies) = (of(Stage::Head)?, of(Stage::Body)?);
        let mut packets = [const { OfKind::NONE }; Kind::ALL.len()];
        for (kind, of_kind) in Kind::ALL.into_iter().zip(&mut packets) {
            let contents = which(&|rule| rule.of_packets.kinds.contains(&kind))?;
            *of_kind = OfKind::new(contents, &rules);
        }
        let buffers = |stage: Stage| {
            let rules = rules.iter().filter(|rule| rule.stage == stage);
            rules.flat_map(|rule| rule.buffers.iter().map(|of| of.buffer)).collect()
        };
        let (of_heads, of_bodies) = (buffers(Stage::Head), buffers(Stage::Body));
        let made = Compiled { lines, rules, streams, heads, bodies, packets, of_heads, of_bodies };
        Ok(Self(Arc::new(made)))
    }

    /// The lines that make the set: variables, classes and rules, without the rules that were left
    /// out.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.0.lines
    }

    /// What the rules say of themselves: first the ones that set bits, then the ones that ask for
    /// bits, then all others, each in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Signature> {
        self.0.rules.iter().map(|rule| &rule.signature)
    }

    /// The number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.rules.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.rules.is_empty()
    }

    /// What a rule says of itself.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Signature> {
        self.rule(number).map(|rule| &rule.signature)
    }

    pub(crate) fn rule(&self, number: u32) -> Option<&Rule> {
        usize::try_from(number).ok().and_then(|at| self.0.rules.get(at))
    }

    pub(crate) fn streams(&self) -> &Prefilter {
        &self.0.streams
    }

    /// Whether there are rules about packets of a kind.
    #[must_use]
    pub fn has_packets(&self, kind: Kind) -> bool {
        !self.packets(kind).contents.is_empty()
    }

    /// Whether what holds for one connection may count for others: there are thresholds.
    #[must_use]
    pub fn has_thresholds(&self) -> bool {
        self.0.rules.iter().any(|rule| rule.threshold.is_some())
    }

    pub(crate) fn packets(&self, kind: Kind) -> &OfKind {
        let [tcp, udp, icmp, other, fragment] = &self.0.packets;
        match kind {
            Kind::Tcp => tcp,
            Kind::Udp => udp,
            Kind::Icmp => icmp,
            Kind::Other => other,
            Kind::Fragment => fragment,
        }
    }

    /// The rules about HTTP messages for a stage, and the buffers that preselect them.
    pub(crate) fn messages(&self, stage: Stage) -> (&Prefilter, &BTreeSet<Buffer>) {
        match stage {
            Stage::Body => (&self.0.bodies, &self.0.of_bodies),
            _ => (&self.0.heads, &self.0.of_heads),
        }
    }
}

impl PartialEq for Signatures {
    fn eq(&self, other: &Self) -> bool {
        self.0.lines == other.0.lines
    }
}

impl Eq for Signatures {}

impl fmt::Debug for Signatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signatures").field(&self.0.lines).finish()
    }
}
