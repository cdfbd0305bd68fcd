//! What inspections need beside the bytes, and what they say.

use braid_signatures::{Alert, Counts, Rules, Signatures, Thresholds};

/// What inspections have said so far.
#[derive(Default)]
pub struct Said {
    pub thresholds: Thresholds,
    pub now: u64,
    pub counts: Counts,
    pub alerts: Vec<Alert>,
}

impl Said {
    /// The rules of a set, which say more.
    pub fn by<'a>(&'a mut self, set: &'a Signatures) -> Rules<'a> {
        let Self { thresholds, now, counts, alerts } = self;
        Rules { set, thresholds, now: *now, counts, alerts }
    }

    /// The sids of the alerts, in order of their numbers.
    #[allow(dead_code, reason = "not all tests use it")]
    pub fn sids(&self, set: &Signatures) -> Vec<u32> {
        let sids = self.alerts.iter().filter_map(|alert| set.get(alert.rule)).map(|of| of.sid);
        let mut sids: Vec<u32> = sids.collect();
        sids.sort_unstable();
        sids
    }
}
