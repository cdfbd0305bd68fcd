//! The functions that are not at work, which events may reach.

use super::instance::Instance;
use braid_ir::model::EventId;
use braid_ir::subscriptions::{Subscriber, Subscriptions};
use smallvec::{SmallVec, smallvec};

/// Parts of the list of all functions, each with the number of its first function. There are two
/// until a handler runs within another one.
type Pieces<'a> = SmallVec<[(u16, &'a mut [Instance]); 3]>;

/// The functions that are not at work, as pieces of the list of all functions.
pub(super) struct Others<'a> {
    pieces: Pieces<'a>,
    subscriptions: &'a Subscriptions,
}

impl<'a> Others<'a> {
    /// All functions of a chain.
    pub(super) fn all(nodes: &'a mut [Instance], subscriptions: &'a Subscriptions) -> Self {
        Self { pieces: smallvec![(0, nodes)], subscriptions }
    }

    /// A function, and the functions besides it. `None` if the function is at work.
    pub(super) fn take(self, node: u16) -> Option<(&'a mut Instance, Self)> {
        let mut taken = None;
        let mut pieces = Pieces::new();
        for (first, piece) in self.pieces {
            let place = node.checked_sub(first).map(usize::from);
            match place.filter(|place| *place < piece.len()) {
                None => pieces.push((first, piece)),
                Some(place) => {
                    let (before, rest) = piece.split_at_mut(place);
                    let (instance, after) = rest.split_first_mut()?;
                    pieces.extend([(first, before), (node.saturating_add(1), after)]);
                    taken = Some(instance);
                }
            }
        }
        Some((taken?, Others { pieces, subscriptions: self.subscriptions }))
    }

    /// The same functions, for a program that runs within another one.
    pub(super) fn again(&mut self) -> Others<'_> {
        let pieces = self.pieces.iter_mut().map(|(first, piece)| (*first, &mut **piece));
        Others { pieces: pieces.collect(), subscriptions: self.subscriptions }
    }

    /// The handlers of an event, in the order of their functions.
    pub(super) fn takers(&self, node: u16, event: EventId) -> Vec<Subscriber> {
        self.subscriptions.of(node, event).to_vec()
    }
}
