//! Learns whether new records save more time than it takes to make them.

use std::collections::VecDeque;

/// The number of samples after which the admission may change.
const SAMPLES: u32 = 128;
/// The most samples that wait for their judgement.
const WAITING: usize = 256;
/// A sample is judged when it has reached both ages: a time (ns), and the number of packets that
/// have entered the chain since the record was made. On a fast link, the time is the longer one. On
/// a slow link, flows send few packets within the time, and yet their records may pay.
const AGE_NS: u64 = 1_000_000_000;
const AGE_PACKETS: u64 = 1 << 15;
/// A flow still sends if its record was taken within this part of its age.
const LATELY: u64 = 4;
/// The number of packets for which a record counts if its flow still sends, as a multiple of the
/// number for which it pays.
const SENDS_ON: u64 = 8;

/// The most times in a row that the advice to admit flows earlier is held back.
const MOST_PATIENCE: u32 = 64;

/// The number of packets that must take a record so that they save as much time as it takes to make
/// the record. `lookups` is the number of lookups that the record replaces. Measured by
/// instructions: 14 packets for one NAPT (39 in trains), 9 for three (15), 6 for ten (7).
fn pays(lookups: u64) -> u64 {
    5 + 13 / lookups.max(1)
}

/// What the samples tell about the admission of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
    /// Records cost more time than they save. Flows should send more packets before they get one.
    Later,
    /// Records save much more time than they cost. Flows should get them earlier.
    Earlier,
}

/// The time (ns), and the number of packets that have entered the chain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    pub(crate) ns: u64,
    pub(crate) packets: u64,
}

/// Samples of the records that were made lately.
#[derive(Debug, Default)]
pub(crate) struct Payback {
    /// The records that wait, each with the clock when it was made, the oldest first.
    waiting: VecDeque<(u32, Clock)>,
    /// The number of samples that were judged, and the packets that took these records.
    judged: u32,
    packets: u64,
    /// How often the advice to admit flows earlier is still ignored, and how often it was ignored
    /// after records last failed to pay. Without this, the admission would return too soon.
    wait: u32,
    patience: u32,
    /// The last advice.
    last: Option<Advice>,
}

impl Payback {
    /// Takes a record that was made just now as a sample, if not too many wait.
    pub(crate) fn made(&mut self, record: u32, now: Clock) {
        if self.waiting.len() < WAITING {
            self.waiting.push_back((record, now));
        }
    }

    /// Judges the samples that are old enough. `taken` gives the time at which a record was last
    /// taken (ns) and the packets that have taken it, or `None` if it has ended. Such a record
    /// counts as taken by no packet. `lookups` is the number of lookups that a record replaces.
    pub(crate) fn judge(
        &mut self,
        now: Clock,
        lookups: u64,
        taken: impl Fn(u32) -> Option<(u64, u32)>,
    ) -> Option<Advice> {
        let pays = pays(lookups);
        while let Some((record, made)) = self.waiting.front().copied()
            && let age_ns = now.ns.saturating_sub(made.ns)
            && age_ns >= AGE_NS
            && now.packets - made.packets >= AGE_PACKETS
        {
            self.waiting.pop_front();
            self.judged += 1;
            self.packets += taken(record).map_or(0, |(seen, packets)| {
                let sends_on = now.ns.saturating_sub(seen) < age_ns / LATELY;
                if sends_on { SENDS_ON * pays } else { packets.into() }
            });
        }
        if self.judged < SAMPLES {
            return None;
        }
        let (judged, packets) = (u64::from(self.judged), self.packets);
        (self.judged, self.packets) = (0, 0);
        let was_earlier = self.last == Some(Advice::Earlier);
        if packets < judged * pays {
            self.patience = if was_earlier { 2 * self.patience } else { self.patience };
            self.patience = self.patience.clamp(1, MOST_PATIENCE);
            (self.wait, self.last) = (self.patience, Some(Advice::Later));
            return self.last;
        }
        if packets < judged * pays * 2 {
            return None;
        }
        if self.wait > 0 {
            self.wait -= 1;
            return None;
        }
        self.patience = if was_earlier { 0 } else { self.patience };
        self.last = Some(Advice::Earlier);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOKUPS: u64 = 3;
    const SILENT_NS: u64 = AGE_NS / LATELY;

    /// This time after the first packet, on a link with a packet each 10 us.
    fn after(ns: u64) -> Clock {
        Clock { ns, packets: ns / 10_000 }
    }

    /// The advice after the samples were judged, if each record was last taken `since` ns before,
    /// by this number of packets.
    fn advice(since: u64, packets: Option<u64>) -> Option<Advice> {
        let mut payback = Payback::default();
        (0..SAMPLES).for_each(|record| payback.made(record, after(5)));
        let taken = |now: u64| move |_| packets.map(|packets| (now - since, packets as u32));
        assert_eq!(
            payback.judge(after(4 + AGE_NS), LOOKUPS, taken(4 + AGE_NS)),
            None,
            "no sample is old enough"
        );
        payback.judge(after(5 + AGE_NS), LOOKUPS, taken(5 + AGE_NS))
    }

    #[test]
    fn records_that_few_packets_take_come_later() {
        let pays = pays(LOOKUPS);
        assert_eq!(advice(SILENT_NS, None), Some(Advice::Later));
        assert_eq!(advice(SILENT_NS, Some(pays - 1)), Some(Advice::Later));
        assert_eq!(advice(SILENT_NS, Some(pays)), None);
        assert_eq!(advice(SILENT_NS, Some(2 * pays - 1)), None);
        assert_eq!(advice(SILENT_NS, Some(2 * pays)), Some(Advice::Earlier));
        assert_eq!(advice(SILENT_NS - 1, Some(1)), Some(Advice::Earlier), "the flows still send");
    }

    #[test]
    fn admission_rarely_returns_to_where_records_do_not_pay() {
        // Records pay unless flows are admitted at the first step.
        let (mut payback, mut step, mut at_first) = (Payback::default(), 0_u32, 0);
        for round in 0..1000_u64 {
            let now = round * 2 * AGE_NS;
            (0..SAMPLES).for_each(|record| payback.made(record, after(now)));
            at_first += u32::from(step == 0);
            let packets = if step == 0 { 0 } else { 1000 };
            match payback.judge(after(now + AGE_NS), LOOKUPS, |_| Some((now, packets))) {
                Some(Advice::Later) => step += 1,
                Some(Advice::Earlier) => step -= 1,
                None => {}
            }
        }
        assert!((2..60).contains(&at_first), "{at_first}");
    }

    #[test]
    fn number_of_waiting_samples_is_limited() {
        let mut payback = Payback::default();
        (0..10_000).for_each(|record| payback.made(record, after(0)));
        assert_eq!(payback.waiting.len(), WAITING);
        assert_eq!(payback.judge(after(AGE_NS), LOOKUPS, |_| None), Some(Advice::Later));
        assert_eq!(
            payback.judge(after(AGE_NS), LOOKUPS, |_| None),
            None,
            "all samples were judged at once"
        );
    }

    #[test]
    fn samples_on_a_slow_link_wait_for_packets() {
        let mut payback = Payback::default();
        (0..SAMPLES).for_each(|record| payback.made(record, Clock::default()));
        let an_hour = 3600 * AGE_NS;
        let judge = |payback: &mut Payback, packets| {
            payback.judge(Clock { ns: an_hour, packets }, LOOKUPS, |_| Some((0, 0)))
        };
        assert_eq!(judge(&mut payback, AGE_PACKETS - 1), None);
        assert_eq!(judge(&mut payback, AGE_PACKETS), Some(Advice::Later));
    }
}
