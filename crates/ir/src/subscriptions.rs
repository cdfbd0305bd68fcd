//! Subscriptions: which handlers of a chain run for which events.
//!
//! A handler takes events of its type and of all types that extend it, from all other functions of
//! the chain. A function has one handler for an event: the one whose type is nearest to the
//! event's. Types of two functions are the same if they have the same name. They must then have the
//! same fields and ancestors.

mod inlining;
mod subscriber;

pub use subscriber::Subscriber;

use crate::chain::Chain;
use crate::model::{Ancestor, EventDecl, EventId, EventTy, Model, Op, Program, StateDecl};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter::once;

/// Which handlers run for the events of each function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Subscriptions {
    /// For each function and each of its event types, the handlers in the order of the functions.
    /// Empty if there are none at all.
    of: Vec<Vec<Vec<Subscriber>>>,
    /// For each function and each of its event types, whether programs contain the handlers.
    inlined: Vec<Vec<bool>>,
}

/// A function that publishes an event, which makes the next function run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The function, by number.
    pub node: u16,
    /// The name of the event's type.
    pub event: String,
}

/// Subscriptions that cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// Two functions declare an event type differently.
    Unlike {
        /// The type's name.
        event: String,
        /// The function that publishes events of the type.
        publisher: u16,
        /// The function that takes them.
        subscriber: u16,
    },
    /// A function would get an event while it is at work: it publishes an event whose handler
    /// publishes another one, and so on, and the last one is for the first function.
    Circle(Vec<Step>),
}

impl Subscriptions {
    /// The subscriptions of a chain.
    ///
    /// # Errors
    /// A problem in words.
    pub fn new(chain: &Chain) -> Result<Self, String> {
        let models: Vec<&Model> = chain.nodes.iter().map(|node| &*node.model).collect();
        Self::of_models(&models).map_err(|problem| {
            let name = |node: u16| {
                chain.nodes.get(usize::from(node)).map_or("?", |node| node.name.as_str())
            };
            match problem {
                Problem::Unlike { event, publisher, subscriber } => format!(
                    "{} and {} declare the event {event} differently",
                    name(publisher),
                    name(subscriber)
                ),
                Problem::Circle(steps) => {
                    let steps = steps
                        .iter()
                        .map(|step| format!("{} publishes {}", name(step.node), step.event));
                    format!("events go round in a circle: {}", steps.collect::<Vec<_>>().join(", "))
                }
            }
        })
    }

    /// The subscriptions of functions with these models, in the order of the functions.
    ///
    /// # Errors
    /// The first problem.
    pub fn of_models(models: &[&Model]) -> Result<Self, Problem> {
        if models.iter().all(|model| model.handlers.is_empty()) {
            return Ok(Self::default());
        }
        let mut of = Vec::with_capacity(models.len());
        for (publisher, model) in (0..).zip(models) {
            let mut of_node = Vec::with_capacity(model.events.len());
            for event in &model.events {
                of_node.push(subscribers(models, publisher, event)?);
            }
            of.push(of_node);
        }
        if of.iter().flatten().all(Vec::is_empty) {
            of.clear();
        }
        let mut found = Self { of, inlined: Vec::new() };
        if let Some(circle) = found.circle(models) {
            return Err(Problem::Circle(circle));
        }
        found.inlined = inlining::inlined(models, &found.of);
        Ok(found)
    }

    /// The handlers that run for an event of a function, in their order.
    #[must_use]
    pub fn of(&self, node: u16, event: EventId) -> &[Subscriber] {
        let of_node = self.of.get(usize::from(node));
        of_node.and_then(|of_node| of_node.get(event.index())).map_or(&[], Vec::as_slice)
    }

    /// The handlers that a residual program contains behind the step that publishes the event, in
    /// their order.
    #[must_use]
    pub fn inlined(&self, node: u16, event: EventId) -> &[Subscriber] {
        let of_node = self.inlined.get(usize::from(node));
        match of_node.and_then(|of_node| of_node.get(event.index())) {
            Some(true) => self.of(node, event),
            Some(false) | None => &[],
        }
    }

    /// Whether handlers of an event stay outside of residual programs. The engine runs them behind
    /// the step that publishes the event.
    #[must_use]
    pub fn stays_outside(&self, node: u16, event: EventId) -> bool {
        self.of(node, event).len() > self.inlined(node, event).len()
    }

    /// Whether no function of the chain takes events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Each function that publishes events, with each function that takes some of them directly.
    #[must_use]
    pub fn pairs(&self, chain: &Chain) -> BTreeSet<(u16, u16)> {
        let mut pairs = BTreeSet::new();
        for (node, config) in (0..).zip(&chain.nodes) {
            for event in published(&config.model, config.model.programs()) {
                pairs.extend(self.of(node, event).iter().map(|taker| (node, taker.node)));
            }
        }
        pairs
    }

    /// The handlers to which no event of the chain comes: the function, and the event type.
    #[must_use]
    pub fn idle(&self, models: &[&Model]) -> Vec<(u16, EventId)> {
        let mut used = BTreeSet::new();
        for (node, model) in (0..).zip(models) {
            for event in published(model, model.programs()) {
                used.extend(self.of(node, event).iter().map(|taker| (taker.node, taker.handler)));
            }
        }
        let mut idle = Vec::new();
        for (node, model) in (0..).zip(models) {
            for (number, (event, _)) in model.handlers.iter().enumerate() {
                if !used.contains(&(node, number)) {
                    idle.push((node, *event));
                }
            }
        }
        idle
    }

    /// A function that would get an event while it is at work, by the shortest way.
    fn circle(&self, models: &[&Model]) -> Option<Vec<Step>> {
        let mut shortest: Option<Vec<Step>> = None;
        for (node, model) in (0..).zip(models).filter(|(_, model)| !model.handlers.is_empty()) {
            let handlers = (0..model.handlers.len()).map(Part::Handler);
            for part in once(Part::Own).chain(handlers) {
                let found = self.way_back(models, node, part);
                let is_shorter = |way: &Vec<Step>| {
                    shortest.as_ref().is_none_or(|shortest| way.len() < shortest.len())
                };
                if let Some(way) = found.filter(is_shorter) {
                    shortest = Some(way);
                }
            }
        }
        shortest
    }

    /// The way from a part of a function back to the function, breadth first.
    fn way_back(&self, models: &[&Model], start: u16, part: Part) -> Option<Vec<Step>> {
        let (mut came_by, mut seen) = (BTreeMap::new(), BTreeSet::new());
        let mut queue = VecDeque::from([(start, part)]);
        while let Some((node, part)) = queue.pop_front() {
            let model = models.get(usize::from(node))?;
            for event in part.events(model) {
                for taker in self.of(node, event) {
                    let next = (taker.node, Part::Handler(taker.handler));
                    if taker.node == start {
                        return Some(way(models, &came_by, (node, part), event));
                    }
                    if seen.insert(next) {
                        came_by.insert(next, ((node, part), event));
                        queue.push_back(next);
                    }
                }
            }
        }
        None
    }
}

/// A part of a function that publishes events by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// All programs but the handlers.
    Own,
    /// A handler, and the entries that it may evict.
    Handler(usize),
}

impl Part {
    fn events(self, model: &Model) -> BTreeSet<EventId> {
        let expire = model.expire.iter().map(|(_, program)| program);
        match self {
            Part::Own => published(model, model.own_programs()),
            Part::Handler(number) => {
                let Some((_, program)) = model.handlers.get(number) else { return BTreeSet::new() };
                let evicts = ops(program).any(|op| match op {
                    Op::StateSet { state, .. } | Op::StatePut { state, .. } => {
                        model.state.get(state.index()).is_some_and(StateDecl::evicts)
                    }
                    _ => false,
                });
                match evicts {
                    true => published(model, once(program).chain(expire)),
                    false => published(model, once(program)),
                }
            }
        }
    }
}

/// Where a function and a part of it were reached from, and by which event.
type CameBy = BTreeMap<(u16, Part), ((u16, Part), EventId)>;

/// The way to a part, and the event that it then publishes.
fn way(models: &[&Model], came_by: &CameBy, last: (u16, Part), event: EventId) -> Vec<Step> {
    let step = |node: u16, event: EventId| {
        let model = models.get(usize::from(node));
        let decl = model.and_then(|model| model.events.get(event.index()));
        Step { node, event: decl.map(|decl| decl.name.clone()).unwrap_or_default() }
    };
    let mut steps = vec![step(last.0, event)];
    let mut at = last;
    while let Some((before, event)) = came_by.get(&at) {
        steps.push(step(before.0, *event));
        at = *before;
    }
    steps.reverse();
    steps
}

fn ops(program: &Program) -> impl Iterator<Item = &Op> {
    program.blocks.iter().flat_map(|block| &block.ops)
}

/// The event types that programs of a model publish. Native code publishes what it declares.
fn published<'a>(model: &Model, programs: impl Iterator<Item = &'a Program>) -> BTreeSet<EventId> {
    let mut found = BTreeSet::new();
    for op in programs.flat_map(ops) {
        match op {
            Op::Emit { event, .. } => drop(found.insert(*event)),
            Op::Native { .. } => found.extend((0..).map(EventId).take(model.events.len())),
            _ => {}
        }
    }
    found
}

/// The handlers for an event type of a function.
fn subscribers(
    models: &[&Model],
    publisher: u16,
    event: &EventDecl,
) -> Result<Vec<Subscriber>, Problem> {
    let mut found = Vec::new();
    for (node, model) in (0..).zip(models).filter(|(node, _)| *node != publisher) {
        for seen in views(event) {
            let taken = model.handlers.iter().enumerate().find_map(|(handler, (taken, _))| {
                let decl = model.events.get(taken.index())?;
                (decl.name == seen.name).then_some((handler, decl))
            });
            let Some((handler, decl)) = taken else { continue };
            if own_view(decl) != seen {
                let event = seen.name.to_owned();
                return Err(Problem::Unlike { event, publisher, subscriber: node });
            }
            found.push(Subscriber { node, handler });
            break;
        }
    }
    Ok(found)
}

/// An event type as a declaration shows it, either its own or that of an ancestor.
#[derive(PartialEq)]
struct View<'a> {
    name: &'a str,
    fields: &'a [(String, EventTy)],
    ancestors: &'a [Ancestor],
}

fn own_view(decl: &EventDecl) -> View<'_> {
    View { name: &decl.name, fields: &decl.fields, ancestors: &decl.ancestors }
}

/// The type of a declaration, and then its ancestors, nearest first.
fn views(decl: &EventDecl) -> impl Iterator<Item = View<'_>> {
    let ancestors = decl.ancestors.iter().enumerate().map(|(at, ancestor)| View {
        name: &ancestor.name,
        fields: decl.fields.get(..ancestor.fields).unwrap_or_default(),
        ancestors: decl.ancestors.get(at + 1..).unwrap_or_default(),
    });
    once(own_view(decl)).chain(ancestors)
}
