//! Divides the functions of a chain into stages for threads (NFP §5).
//!
//! A stage processes packets in the order of their arrival, whatever side they come from, so that
//! its functions see what they see in sequence. Functions that send packets to each other besides
//! the arriving one are one stage (`visits`, `groups`). Between stages, packets take the service
//! graph of the stages (`routes`). Each stage has a chain of its own (`chains`).

mod chains;
mod firsts;
mod groups;
mod log;
mod routes;
mod visits;

use braid_ir::chain::Chain;
use braid_ir::service_graph::stages::{Stage, Stages, Together, Why};
use braid_ir::subscriptions::Subscriptions;
pub use firsts::firsts;
use groups::Groups;
use routes::Draft;
use visits::Visits;

/// Divides a chain into at most this number of stages. A chain that cannot be divided is one stage;
/// [`Stages::together`] has the reason.
#[must_use]
pub fn stages(chain: &Chain, most: usize) -> Stages {
    let found = Visits::new(chain).and_then(|visits| {
        let subscriptions = Subscriptions::new(chain).map_err(Why::Unfit)?;
        let mut groups = Groups::new(chain, &visits, &subscriptions);
        loop {
            groups.close(&visits)?;
            let draft = routes::draft(chain, &visits, &groups)?;
            if let Some((a, b, why)) = unfit(&groups, &draft, most) {
                groups.join(a, b, why);
                continue;
            }
            return Ok(chains::divided(chain, &visits, groups, draft));
        }
    });
    found.unwrap_or_else(|why| whole(chain, why))
}

/// Two stages that must become one, and the reason.
fn unfit(groups: &Groups, draft: &Draft, most: usize) -> Option<(usize, usize, Why)> {
    if let Some((a, b)) = draft.unmergeable {
        return Some((a, b, Why::Merge));
    }
    if groups.count() <= most.max(1) {
        return None;
    }
    // Neighbours in sequence, and then the ones with the least work.
    let cost = |(a, b, is_parallel): &(usize, usize, bool)| {
        (*is_parallel, groups.work(*a) + groups.work(*b), *a)
    };
    let (a, b, _) = *draft.neighbours.iter().min_by_key(|pair| cost(pair))?;
    Some((a, b, Why::Threads))
}

/// All functions as one stage.
fn whole(chain: &Chain, why: Why) -> Stages {
    let functions = (0..).zip(&chain.nodes).map(|(node, _)| node).collect();
    let stage = Stage { functions, chain: chain.clone(), logged: Vec::new(), is_apart: false };
    let together = vec![Together { functions: Vec::new(), why }];
    Stages { stages: vec![stage], together, ..Stages::default() }
}
