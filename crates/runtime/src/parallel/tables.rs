//! The tables of the service graph (NFP §5) in the form in which threads use them.

use super::bundle::{Copier, Handle, Target};
use super::merger::{Changes, Merger};
use super::options::Options;
use braid_ir::service_graph::stages::{Route, Stages};
use braid_ir::service_graph::{Extent, Forwarding, Step, Target as From};

/// An action with a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Copy { version: u32, extent: Extent },
    Send { version: u32, target: Target },
}

/// What happens to a bundle that has been classified, processed or merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Actions(Vec<Action>);

impl Actions {
    fn new(route: &Route, steps: &[Step]) -> Self {
        let target = |to: &From| match to {
            From::Function(function) => {
                Target::Stage(route.stages.get(*function).copied().unwrap_or_default())
            }
            From::Merger(merger) => Target::Merger(*merger),
        };
        let actions = steps.iter().flat_map(|step| match step {
            Step::Copy { to, extent, .. } => vec![Action::Copy { version: *to, extent: *extent }],
            Step::Distribute { version, targets } => {
                let send = |to| Action::Send { version: *version, target: target(to) };
                targets.iter().map(send).collect()
            }
            Step::Output { version } => {
                vec![Action::Send { version: *version, target: Target::End }]
            }
        });
        Actions(actions.collect())
    }

    /// Whether the bundle itself goes to a merger.
    pub(super) fn is_merged(&self) -> bool {
        let is_merger =
            |action: &Action| matches!(action, Action::Send { target: Target::Merger(_), .. });
        self.0.last().is_some_and(is_merger)
    }

    /// Carries out the actions. Copies come first.
    pub(super) fn run(
        &self,
        mut bundle: Handle,
        copier: &mut Copier,
        mut send: impl FnMut(Handle),
    ) {
        let own = bundle.meta.version();
        // Most bundles are not copied, and then this takes no memory.
        let mut copies = Vec::new();
        let mut to = Target::End;
        for action in &self.0 {
            match action {
                Action::Copy { version, extent } => {
                    copies.push(copier.copy(&mut bundle, *version, *extent));
                }
                Action::Send { version, target } if *version == own => to = *target,
                Action::Send { version, target } => {
                    let place = copies.iter().position(|copy| copy.meta.version() == *version);
                    if let Some(mut copy) = place.map(|place| copies.swap_remove(place)) {
                        copy.target = *target;
                        send(copy);
                    }
                }
            }
        }
        bundle.target = to;
        send(bundle);
    }
}

/// A stage's part of the forwarding table: for each route, the stage's place in the route, and the
/// actions.
pub(super) type Forwards = Vec<Option<(usize, Actions)>>;

/// The tables of a chain in stages.
pub(super) struct Tables {
    /// By route: the first actions with a bundle.
    pub(super) first: Vec<Actions>,
    /// By stage.
    pub(super) stages: Vec<Forwards>,
    /// By route and number: the mergers, each with the actions afterwards.
    pub(super) mergers: Vec<Vec<(Merger, Actions)>>,
}

impl Tables {
    pub(super) fn new(plan: &Stages, options: Options) -> Self {
        let routes = &plan.routes;
        let first =
            routes.iter().map(|route| Actions::new(route, &route.tables.classification.steps));
        let of = |route: &Route, from: From| {
            let mut all = route.tables.forwarding.iter();
            all.find(|one: &&Forwarding| one.from == from)
                .map(|one| Actions::new(route, &one.steps))
                .unwrap_or_default()
        };
        let stage = |stage: usize| {
            let of_route = |route: &Route| {
                let place = route.stages.iter().position(|one| *one == stage)?;
                Some((place, of(route, From::Function(place))))
            };
            routes.iter().map(of_route).collect()
        };
        let mergers = routes.iter().map(|route| {
            let merger = |merging: &braid_ir::service_graph::Merging| {
                let changes = Changes::new(&plan.stages, route, &merging.merge);
                let merger = Merger::new(&merging.merge, changes, options);
                (merger, of(route, From::Merger(merging.merger)))
            };
            route.tables.merging.iter().map(merger).collect()
        });
        Self {
            first: first.collect(),
            stages: (0..plan.stages.len()).map(stage).collect(),
            mergers: mergers.collect(),
        }
    }
}
