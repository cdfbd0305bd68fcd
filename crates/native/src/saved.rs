//! Braid's data for an instance as bytes, so that another instance goes on from it: the time,
//! flows, counters and timers, and then what the function itself has saved.
//!
//! Records are not saved. The function runs for the next packet of each flow and records again.

use crate::flows::{Flow, Flows};
use crate::host::State;
use braid_packet::FlowKey;

/// The bytes that are still to be read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    /// A number that can be counted on.
    fn count(&mut self) -> Option<u64> {
        self.word().filter(|count| *count < 1 << 56)
    }

    fn wide(&mut self) -> Option<u128> {
        let (low, high) = (self.word()?, self.word()?);
        Some(u128::from(high) << 64 | u128::from(low))
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.word()?).ok()
    }

    fn text(&mut self) -> Option<String> {
        let length = self.small()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn maybe(&mut self) -> Option<Option<u64>> {
        Some(match self.word()? {
            0 => None,
            _ => Some(self.word()?),
        })
    }
}

fn put_wide(value: u128, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put(words: &[u64], out: &mut Vec<u8>) {
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

fn put_maybe(value: Option<u64>, out: &mut Vec<u8>) {
    match value {
        None => put(&[0], out),
        Some(value) => put(&[1, value], out),
    }
}

/// The data as bytes.
pub(crate) fn save(state: &State) -> Vec<u8> {
    let mut out = Vec::new();
    let flows = &state.flows;
    put(&[state.now, state.started.into(), state.packets, state.timers_skipped], &mut out);
    put(&[flows.next(), flows.refused, flows.iter().count() as u64], &mut out);
    for (number, Flow { key, created_ns, last_seen_ns, ends, .. }) in flows.iter() {
        put(&[number, key.version.into(), key.proto.into()], &mut out);
        put(&[key.sport.into(), key.dport.into(), *created_ns, *last_seen_ns], &mut out);
        put_wide(key.src, &mut out);
        put_wide(key.dst, &mut out);
        put(ends, &mut out);
    }
    put(&[state.counters.len() as u64], &mut out);
    for (name, count) in &state.counters {
        put(&[name.len() as u64], &mut out);
        out.extend_from_slice(name.as_bytes());
        put(&[*count], &mut out);
    }
    let timers: Vec<_> = state.timers().collect();
    put(&[timers.len() as u64], &mut out);
    for (period_ns, after_ns, due) in timers {
        put(&[period_ns, after_ns], &mut out);
        put_maybe(due, &mut out);
    }
    out
}

/// Takes over saved data, and returns the bytes behind it. `None` if the bytes are not such data.
/// The instance is new.
pub(crate) fn restore<'a>(state: &mut State, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let mut from = Reader(bytes);
    state.now = from.word()?;
    state.started = from.word()? != 0;
    state.packets = from.count()?;
    state.timers_skipped = from.count()?;
    restore_flows(&mut state.flows, &mut from)?;
    for _ in 0..from.word()? {
        let name = from.text()?;
        let count = from.word()?;
        let number = state.counter(&name).ok()?;
        state.counters.get_mut(number)?.1 = count;
    }
    let mut timers = Vec::new();
    for _ in 0..from.word()? {
        timers.push((from.word()?, from.word()?, from.maybe()?));
    }
    state.resume_timers(timers);
    Some(from.0)
}

fn restore_flows(flows: &mut Flows, from: &mut Reader<'_>) -> Option<()> {
    let next = from.count()?;
    flows.refused = from.count()?;
    for _ in 0..from.word()? {
        let number = from.word()?;
        let (version, proto) = (from.small()?, from.small()?);
        let (sport, dport) = (from.small()?, from.small()?);
        let (created_ns, last_seen_ns) = (from.word()?, from.word()?);
        let (src, dst) = (from.wide()?, from.wide()?);
        let key = FlowKey { version, src, dst, proto, sport, dport };
        let ends = [from.word()?, from.word()?];
        let is_known = number > 0 && number < next;
        if !is_known || !flows.put_back(number, key, (created_ns, last_seen_ns), ends) {
            return None;
        }
    }
    flows.go_on(next);
    Some(())
}
