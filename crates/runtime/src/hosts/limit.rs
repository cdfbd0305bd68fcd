//! Rate limits.

/// Allows an action a number of times a second, and a burst of actions after a pause.
#[derive(Debug)]
pub(super) struct Limit {
    interval_ns: u64,
    at_once: u64,
    /// The time at which the last action would have been due if actions came evenly.
    due_ns: u64,
}

impl Limit {
    /// A limit of `per_second` actions a second and bursts of `at_once` actions; both are at least
    /// 1.
    pub(super) fn new(per_second: u64, at_once: u64) -> Self {
        Self { interval_ns: 1_000_000_000 / per_second.max(1), at_once: at_once.max(1), due_ns: 0 }
    }

    /// Whether the action is allowed now. If so, it is counted.
    pub(super) fn allows(&mut self, now_ns: u64) -> bool {
        let due_ns = self.due_ns.max(now_ns);
        let allows = due_ns - now_ns <= self.interval_ns.saturating_mul(self.at_once - 1);
        if allows {
            self.due_ns = due_ns.saturating_add(self.interval_ns);
        }
        allows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_allows_some_at_once_and_then_evenly() {
        let mut limit = Limit::new(10, 3);
        let mut allowed = |now_ns| (0..9).filter(|_| limit.allows(now_ns)).count();
        assert_eq!(allowed(0), 3);
        assert_eq!(allowed(99_999_999), 0);
        assert_eq!(allowed(100_000_000), 1);
        assert_eq!(allowed(10_000_000_000), 3);
    }
}
