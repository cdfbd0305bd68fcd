//! State functions of a way's functions: what each batch of them does with the payload, and which batches could run at
//! the same time (SpeedyBox §V-C, Table I). Here they run in order.

use super::class::Way;
use super::show::FlowPart;
pub use braid_native::Payload;
use braid_state::Resting;

/// Whether a batch need not wait for one of an earlier function (Table I): headers are settled before either runs.
pub(super) fn is_beside(first: Payload, second: Payload) -> bool {
    first != Payload::Write || second == Payload::Ignore
}

/// Batches of these functions in order, by function: those of a group could run at the same time, behind all of the group
/// before.
pub(super) fn groups(parts: &[FlowPart]) -> Vec<Vec<u16>> {
    let mut groups: Vec<Vec<(u16, Payload)>> = Vec::new();
    for (node, payload) in parts.iter().filter_map(|part| Some((part.node, part.state?))) {
        match groups.last_mut() {
            Some(group) if group.iter().all(|(_, first)| is_beside(*first, payload)) => {
                group.push((node, payload));
            }
            _ => groups.push(vec![(node, payload)]),
        }
    }
    groups.into_iter().map(|group| group.into_iter().map(|(node, _)| node).collect()).collect()
}

impl FlowPart {
    /// It searches the payload, if the way says so.
    pub(super) fn searches(&mut self, way: &Way) {
        if way.searches.iter().any(|search| search.node == self.node) {
            self.has_state(Payload::Read);
        }
    }

    /// Its packets change this entry, if it is one of its own that they do change.
    pub(super) fn changes(&mut self, resting: &Resting) {
        let is_changed = resting.puts > 0 || !resting.updates.is_empty();
        if resting.entry.node == self.node && is_changed {
            self.has_state(Payload::Ignore);
        }
    }

    /// A batch does what most its functions do.
    fn has_state(&mut self, payload: Payload) {
        self.state = self.state.max(Some(payload));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Payload::{Ignore, Read, Write};

    #[test]
    fn batches_wait_where_table_i_says_so() {
        let waits = |first, second| !is_beside(first, second);
        let all = [Ignore, Read, Write];
        let found: Vec<_> = all
            .into_iter()
            .flat_map(|first| all.map(|second| (first, second)))
            .filter(|(first, second)| waits(*first, *second))
            .collect();
        assert_eq!(found, [(Write, Read), (Write, Write)]);
    }

    #[test]
    fn groups_keep_the_order_of_functions() {
        let part = |(node, state): (u16, Option<Payload>)| FlowPart {
            node,
            backward: false,
            rows: Vec::new(),
            events: Vec::new(),
            state,
            native: None,
        };
        let states = [Some(Read), None, Some(Ignore), Some(Write), Some(Ignore), Some(Read)];
        let parts: Vec<_> = (0..).zip(states).map(part).collect();
        assert_eq!(groups(&parts), [vec![0, 2, 3, 4], vec![5]]);
        assert!(groups(&parts[1..2]).is_empty());
    }
}
