//! Paths through a program. Each path is a traffic class: the conditions that its packets fulfil,
//! and what happens to them.

use super::say::{Bound, Speaker, Test, end_text, set_text};
use braid_ir::chain::Chain;
use braid_ir::model::{Target, Ty};
use braid_ir::residual::{Block, End, Fate, Residual};
use braid_ir::value::IntervalSet;
use serde::Serialize;
use std::cmp::Reverse;

/// A path through a program, in words.
#[derive(Clone, Debug, Serialize)]
pub struct Path {
    /// The conditions on packets and state: the packet filter (SNF, "Packet unit representation").
    pub conditions: Vec<String>,
    /// Its effects: writes, state, events.
    pub effects: Vec<String>,
    /// What happens to the packet in the end.
    pub end: String,
}

/// The number of paths through a program. `None` if there are more than 10^18.
pub(super) fn count(program: &Residual) -> Option<u64> {
    const MOST: u64 = 1_000_000_000_000_000_000;
    let mut paths = vec![0_u64; program.blocks.len()];
    for (number, block) in program.blocks.iter().enumerate().rev() {
        let targets = block.end.targets();
        let next: u64 = targets.iter().map(|target| paths[target.block.index()]).sum();
        let ends = u64::from(matches!(block.end, End::Exit(_) | End::Hold { .. }));
        paths[number] = next + ends;
        if paths[number] > MOST {
            return None;
        }
    }
    paths.first().copied()
}

/// The largest number of blocks that the search for the first paths visits.
const MOST_LOOKED_AT: usize = 200_000;

/// The first paths that packets can take, at most `most`. At each branch, the side with fewer
/// conditions up to an end outside of the chain comes first. Paths with contradictory conditions
/// are left out.
pub(super) fn paths(chain: &Chain, program: &Residual, most: usize) -> Vec<Path> {
    let far = distance(program);
    let speaker = Speaker::new(chain, program);
    let mut found = Vec::new();
    let mut open = vec![(0, Started::default())];
    for _ in 0..MOST_LOOKED_AT {
        let Some((at, mut path)) = open.pop() else { break };
        if found.len() >= most {
            break;
        }
        let block: &Block = &program.blocks[at];
        let said: Vec<_> =
            block.steps.iter().filter_map(|step| speaker.on(&path.bound).effect(step)).collect();
        path.effects.extend(said);
        match &block.end {
            End::Jump(target) => open.push(path.go(program, target)),
            End::Branch { cond, yes, no } => {
                let test = speaker.on(&path.bound).test(*cond);
                let sides = [(yes, true), (no, false)];
                let mut sides: Vec<_> = sides
                    .into_iter()
                    .filter_map(|(to, holds)| {
                        Some(path.clone().with(&test, holds)?.go(program, to))
                    })
                    .collect();
                // The side that is pushed last is searched first.
                sides.sort_by_key(|(block, _)| Reverse(far[*block]));
                open.extend(sides);
            }
            End::Hold { full, .. } => {
                let mut refused = path.clone();
                refused.others.push("the queue is full".to_owned());
                open.push(refused.go(program, full));
                found.push(path.ended(end_text(chain, &block.end)));
            }
            End::Exit(_) => found.push(path.ended(end_text(chain, &block.end))),
        }
    }
    found
}

/// For each block, the least number of conditions on a path from it to an end outside of the chain.
fn distance(program: &Residual) -> Vec<usize> {
    let mut far = vec![usize::MAX; program.blocks.len()];
    for (number, block) in program.blocks.iter().enumerate().rev() {
        let next = block.end.targets().into_iter().map(|target| far[target.block.index()]).min();
        far[number] = match &block.end {
            End::Exit(exit) => match exit.fate {
                Fate::Leave { .. } | Fate::Go(_) | Fate::Output { .. } => 0,
                _ => usize::MAX,
            },
            _ => next.unwrap_or(usize::MAX).saturating_add(1),
        };
    }
    far
}

/// A path that has not ended yet.
#[derive(Clone, Default)]
struct Started {
    bound: Bound,
    /// The tested values in order: subject, text, type, and the set that the tests leave.
    tested: Vec<(String, String, Ty, IntervalSet)>,
    others: Vec<String>,
    effects: Vec<String>,
}

impl Started {
    fn go(mut self, program: &Residual, target: &Target) -> (usize, Self) {
        let at = target.block.index();
        let args = target.args.iter().copied();
        self.bound.extend(program.blocks[at].params.iter().copied().zip(args));
        (at, self)
    }

    /// The path on which a test holds or fails. `None` if that is impossible.
    fn with(mut self, test: &Test, holds: bool) -> Option<Self> {
        let set = if holds { test.set.clone() } else { test.set.complement(test.ty.max()) };
        let known = self.tested.iter_mut().find(|(subject, ..)| *subject == test.subject);
        match known {
            Some((.., left)) => *left = left.intersection(&set),
            None => self.tested.push((test.subject.clone(), test.text.clone(), test.ty, set)),
        }
        let possible = self.tested.iter().all(|(.., left)| !left.is_empty());
        possible.then_some(self)
    }

    fn ended(self, end: String) -> Path {
        let mut conditions: Vec<String> =
            self.tested.iter().map(|(_, text, ty, set)| said(text, *ty, set)).collect();
        conditions.extend(self.others);
        Path { conditions, effects: self.effects, end }
    }
}

/// The condition that a value is in a set, in words.
fn said(text: &str, ty: Ty, set: &IntervalSet) -> String {
    let rest = set.complement(ty.max());
    match (set.intervals(), rest.intervals()) {
        ([(1, 1)], _) if ty.width == 1 => text.to_owned(),
        ([(0, 0)], _) if ty.width == 1 => format!("not {text}"),
        ([(low, high)], _) if low == high => format!("{text} == {}", ty.kind.show(*low)),
        (_, [(low, high)]) if low == high => format!("{text} != {}", ty.kind.show(*low)),
        ([(low, high)], _) if *high == ty.max() => format!("{text} >= {}", ty.kind.show(*low)),
        ([(0, high)], _) => format!("{text} <= {}", ty.kind.show(*high)),
        (many, few) if few.len() < many.len() => format!("{text} not in {}", set_text(ty, &rest)),
        _ => format!("{text} in {}", set_text(ty, set)),
    }
}
