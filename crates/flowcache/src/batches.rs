//! Batches of state functions. The state functions of one function on a path form a batch. This
//! module finds the batches that could run at the same time (SpeedyBox §V-C, Table I). The flow
//! cache runs all batches in order.

pub use braid_native::Payload;

/// Whether a batch with the payload access `second` could run at the same time as an earlier batch
/// with the payload access `first` (SpeedyBox, Table I). All header changes are made before either
/// batch runs.
pub(crate) fn is_beside(first: Payload, second: Payload) -> bool {
    first != Payload::Write || second == Payload::Ignore
}

/// Groups the batches of functions in path order. The batches of a group could run at the same
/// time, after all batches of the previous group.
pub(crate) fn groups(parts: impl Iterator<Item = (u16, Option<Payload>)>) -> Vec<Vec<u16>> {
    let mut groups: Vec<Vec<(u16, Payload)>> = Vec::new();
    for (node, payload) in parts.filter_map(|(node, state)| Some((node, state?))) {
        match groups.last_mut() {
            Some(group) if group.iter().all(|(_, first)| is_beside(*first, payload)) => {
                group.push((node, payload));
            }
            _ => groups.push(vec![(node, payload)]),
        }
    }
    groups.into_iter().map(|group| group.into_iter().map(|(node, _)| node).collect()).collect()
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
        let states = [Some(Read), None, Some(Ignore), Some(Write), Some(Ignore), Some(Read)];
        let parts: Vec<_> = (0..).zip(states).collect();
        assert_eq!(groups(parts.iter().copied()), [vec![0, 2, 3, 4], vec![5]]);
        assert!(groups(parts[1..2].iter().copied()).is_empty());
    }
}
