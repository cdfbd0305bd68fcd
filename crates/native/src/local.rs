//! An instance of a native function in this process.

mod connections;

use crate::dump::{self, Entry};
use crate::flows::{Flows, Limits};
use crate::host::{Due, State};
use crate::output::Output;
use crate::part::Part;
use crate::record::{Payload, Recorded, StateFunction};
use crate::saved;
use crate::sys::{Bound, Definition};
use crate::value::{Config, FLOWS, IDLE, Value, number};
use crate::verdict::{FAILED, Failed, PANICKED, Verdict};
use braid_ir::model::TagDecl;
use braid_ir::native::{Checks, Noted, Problem, Profile};
use braid_packet::{Difference, FlowKey, Link, Packet, diff_fields};
use std::sync::Arc;

/// An instance in this process.
pub(crate) struct Local {
    bound: Bound,
    /// The earliest time at which something may be due.
    wake: u64,
    /// With [`Checks::records`]: a second instance, which runs packets by their records if it can.
    shadow: Option<Box<Local>>,
}

impl Local {
    /// A new instance for a node of a chain.
    ///
    /// # Errors
    /// The function refuses its configuration.
    pub(crate) fn of(
        definition: &Arc<Definition>,
        node: &str,
        config: Config,
        part: Part,
        checks: Checks,
    ) -> Result<Self, String> {
        let description = &definition.description;
        let shadow = match checks.records && !description.is_stream {
            true => {
                let shadow = Self::of(definition, node, config.clone(), part, Checks::default())?;
                Some(Box::new(shadow))
            }
            false => None,
        };
        let mut limits = limits(description.limits, &config);
        limits.capacity = part.share(limits.capacity);
        let mut state = State::new(config, Flows::new(limits));
        state.part = part;
        state.is_stream = description.is_stream;
        state.per_biflow = description.per_biflow;
        state.declared = description.profile;
        state.checks = checks;
        state.events.clone_from(&description.declared.events);
        state.sends = description.sends;
        state.tags.clone_from(&description.declared.tags);
        let count = |all: &[String]| u32::try_from(all.len()).unwrap_or(u32::MAX);
        (state.reasons, state.ports) = (count(&description.reasons), count(&description.ports));
        let label = format!("`{node}` ({})", description.label);
        let bound = Bound::new(definition.clone(), &label, state)?;
        Ok(Self { bound, wake: 0, shadow })
    }

    /// Runs the function for a packet.
    ///
    /// # Errors
    /// The function failed. The packet keeps the changes that it has made.
    pub(crate) fn packet(&mut self, packet: &mut Packet, now: u64) -> Result<Verdict, Failed> {
        self.starts(now);
        let state = self.bound.state_mut();
        state.packets += 1;
        state.begin();
        let recorded = recorded(state, packet);
        // A packet counts for a flow with a record, whether the function or the record runs it.
        if let Some((key, _)) = recorded {
            state.flow(key);
        }
        state.side = (!state.per_biflow).then_some(packet.backward);
        let by_record = self.shadow.as_mut().map(|shadow| shadow.run(packet.clone(), now));
        let called = self.bound.packet(std::mem::replace(packet, nothing()));
        *packet = called.packet;
        self.bound.state_mut().side = None;
        let result = self.verdict(called.code);
        if let Some((by_record, verdict)) = by_record {
            self.compare((&by_record, verdict), (packet, result));
        }
        // The function itself has done the work of its state functions.
        if let Some((_, flow)) = recorded {
            self.guard(flow);
        }
        self.after_call();
        result
    }

    /// Does what is due before a call at this time. The first call starts the timers.
    fn starts(&mut self, now: u64) {
        if !self.bound.state().started {
            self.bound.state_mut().start(now);
            self.wake = 0;
        }
        self.advance(now);
    }

    /// Runs a packet by the record of its flow if possible, otherwise by the function.
    fn run(&mut self, mut packet: Packet, now: u64) -> (Packet, Result<Verdict, Failed>) {
        let replayed = self.replay(&mut packet, now);
        let verdict = replayed.map_or_else(|| self.packet(&mut packet, now), Ok);
        (packet, verdict)
    }

    /// The verdict for a call's return code, checked.
    fn verdict(&mut self, code: i32) -> Result<Verdict, Failed> {
        let state = self.bound.state_mut();
        let failure = state.failure.take();
        let verdict = Verdict::of_code(code);
        let wrong = match verdict {
            Some(Verdict::Drop(reason)) if reason >= state.reasons => {
                Some(format!("drops for reason {reason}; it has {}", state.reasons))
            }
            Some(Verdict::Port(port)) if port >= state.ports => {
                Some(format!("sends to port {port}; it has {}", state.ports))
            }
            None if code != FAILED => Some(format!("returns {code}, which is no verdict")),
            _ => None,
        };
        if let Some(wrong) = wrong {
            state.misuse(wrong);
            return Err(Failed::Drop);
        }
        let Some(verdict) = verdict else {
            let why = failure.unwrap_or_else(|| "it does not say why".to_owned());
            state.problems.add(failed(why), state.packets);
            return Err(Failed::Drop);
        };
        // The action has happened already. If the profile does not declare it, the report says so.
        let _told = match verdict {
            Verdict::Forward => Ok(()),
            Verdict::Drop(_) => {
                state.observed.drops = true;
                state.allowed(|p| p.drops, || "drops a packet".to_owned())
            }
            Verdict::Back | Verdict::Consume | Verdict::Port(_) => {
                state.observed.redirects = true;
                state.allowed(|p| p.redirects, || "sends a packet elsewhere".to_owned())
            }
        };
        Ok(verdict)
    }

    /// Does the work that a call has left: tells the function about flows that ended, and checks
    /// guards that it notified.
    fn after_call(&mut self) {
        loop {
            let state = self.bound.state_mut();
            if let Some(why) = state.failure.take() {
                state.problems.add(failed(why), state.packets);
            }
            if let Some((number, flow)) = state.ended.pop() {
                self.bound.flow_end(number, flow);
            } else if let Some(flow) = state.notified.pop() {
                self.guard(flow);
            } else {
                break;
            }
        }
        self.wake = self.bound.state().wake();
    }

    /// Checks a flow's guards. The first guard that holds changes the record.
    fn guard(&mut self, flow: u64) {
        let guard_at = |bound: &Bound, at: usize| {
            let record = bound.state().recorded.get(&flow)?;
            record.guards.get(at).map(|guard| guard.condition)
        };
        let mut at = 0;
        while let Some(condition) = guard_at(&self.bound, at) {
            if !self.bound.condition(condition, flow) {
                at += 1;
                continue;
            }
            self.change_record(flow, at);
            return;
        }
    }

    /// Changes a flow's record after its guard number `at` held.
    #[expect(clippy::indexing_slicing, reason = "the record has more than `at` guards")]
    fn change_record(&mut self, flow: u64, at: usize) {
        let state = self.bound.state_mut();
        let record = state.recorded.get_mut(&flow);
        let Some(record) = record.filter(|record| at < record.guards.len()) else { return };
        let guard = record.guards[at].clone();
        match (guard.action.clone(), guard.update) {
            (None, None) => drop(state.recorded.remove(&flow)),
            (action, _) => {
                record.guards.retain(|other| *other != guard);
                if let Some(action) = action {
                    record.headers = vec![action];
                }
            }
        }
        state.changed(flow);
        if let Some(update) = guard.update {
            state.begin();
            self.bound.update(update, flow);
        }
    }

    /// Compares a packet that the record has processed, in the second instance, with the function's
    /// packet.
    fn compare(
        &mut self,
        (by_record, recorded): (&Packet, Result<Verdict, Failed>),
        (packet, verdict): (&Packet, Result<Verdict, Failed>),
    ) {
        let wrong = match (recorded, verdict) {
            (recorded, verdict) if recorded != verdict => Some(format!(
                "a packet is {} by the record and {} in fact",
                said(recorded),
                said(verdict)
            )),
            (_, Err(_) | Ok(Verdict::Drop(_) | Verdict::Consume)) => None,
            _ => {
                let differs = diff_fields(by_record, packet).into_iter().next();
                let differs = differs.or_else(|| self.tag_differs(by_record, packet));
                differs.map(|Difference { what, a, b }| {
                    format!("{what} is {a} by the record and {b} in fact")
                })
            }
        };
        let state = self.bound.state_mut();
        if let Some(wrong) = wrong {
            state.problems.add(Problem::Record(wrong), state.packets);
        }
    }

    /// The first of the function's tags that differs between two packets.
    fn tag_differs(&self, one: &Packet, other: &Packet) -> Option<Difference> {
        self.tags().iter().find_map(|tag| {
            let [a, b] = [one, other].map(|packet| packet.tags.value(&tag.name));
            let what = format!("the tag {}", tag.name);
            (a != b).then(|| Difference { what, a: a.to_string(), b: b.to_string() })
        })
    }

    /// The tags that the function reads or sets.
    pub(crate) fn tags(&self) -> &[TagDecl] {
        &self.bound.state().tags
    }

    /// The first difference between the states of the two instances.
    fn state_differs(&self) -> Option<Noted> {
        let shadow = self.shadow.as_ref()?;
        let (by_record, in_fact) = (shadow.report(), self.report());
        let shown = |entry: &Entry| (entry.table.clone(), entry.key.clone(), entry.values.clone());
        let most = by_record.len().max(in_fact.len());
        let differs = |at: &usize| by_record.get(*at).map(shown) != in_fact.get(*at).map(shown);
        let at = (0..most).find(differs)?;
        let text = |entries: &[Entry]| {
            entries.get(at).map_or("absent".to_owned(), |entry| format!("{:?}", entry.values))
        };
        let table = by_record.get(at).or(in_fact.get(at)).map_or("", |entry| &*entry.table);
        let text = format!(
            "state `{table}` is {} by the record and {} in fact",
            text(&by_record),
            text(&in_fact)
        );
        Some(Noted { problem: Problem::Record(text), times: 1, packet: self.bound.state().packets })
    }

    /// Processes everything that is due by a time.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64) {
        if now >= self.wake {
            self.catch_up(now);
        }
        if let Some(shadow) = &mut self.shadow {
            shadow.advance(now);
        }
        let state = self.bound.state_mut();
        state.now = state.now.max(now);
    }

    fn catch_up(&mut self, now: u64) {
        self.bound.state_mut().skip(now);
        while let Some(due) = self.bound.state_mut().due(now) {
            let state = self.bound.state_mut();
            state.begin();
            state.runs_timer = matches!(due, Due::Timer(_));
            match due {
                Due::Flow(number, flow) => self.bound.flow_end(number, flow),
                Due::Timer(handler) => self.bound.timer(handler),
            }
            self.bound.state_mut().runs_timer = false;
            self.after_call();
        }
        self.wake = self.bound.state().wake();
    }

    /// Changes the value of a parameter.
    ///
    /// # Errors
    /// The function refuses the new value and keeps the previous one.
    pub(crate) fn change(&mut self, name: &str, value: Value) -> Result<(), String> {
        if name == FLOWS || name == IDLE {
            return Err(format!("`{name}` of a native function cannot be changed while it runs"));
        }
        let given = value.clone();
        let before = self.exchange(name, value);
        self.bound.state_mut().begin();
        let done = self.bound.change(name);
        match (&done, before) {
            (Err(_), Some(before)) => {
                self.exchange(name, before);
            }
            _ => {
                if let Some(shadow) = &mut self.shadow {
                    shadow.change(name, given)?;
                }
            }
        }
        self.after_call();
        done
    }

    /// The value of a parameter.
    #[must_use]
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        let config = &self.bound.state().config;
        config.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    #[expect(clippy::indexing_slicing, reason = "`place` is a place in `config`")]
    fn exchange(&mut self, name: &str, value: Value) -> Option<Value> {
        let state = self.bound.state_mut();
        let place = state.config.iter().position(|(known, _)| known == name)?;
        state.texts.retain(|(at, _), _| *at != place);
        for (row, text) in value.texts.iter().enumerate() {
            let with_end: Vec<u8> = text.iter().copied().chain([0]).collect();
            state.texts.insert((place, row), with_end.into_boxed_slice());
        }
        Some(std::mem::replace(&mut state.config[place].1, value))
    }

    /// Whether outputs wait.
    #[must_use]
    pub(crate) fn has_outputs(&self) -> bool {
        !self.bound.state().outputs.is_empty()
            || self.shadow.as_ref().is_some_and(|shadow| shadow.has_outputs())
    }

    /// The outputs since the last call.
    pub(crate) fn take_outputs(&mut self) -> Vec<Output> {
        let state = self.bound.state_mut();
        let outputs = std::mem::take(&mut state.outputs);
        if let Some(shadow) = &mut self.shadow
            && shadow.take_outputs() != outputs
        {
            let text = "it publishes other things by the record than in fact".to_owned();
            state.problems.add(Problem::Record(text), state.packets);
        }
        outputs
    }

    /// The state: flows, counters, and the entries that the function itself shows.
    #[must_use]
    pub(crate) fn report(&self) -> Vec<Entry> {
        let mut entries = dump::of_host(self.bound.state());
        entries.extend(self.bound.dump());
        entries
    }

    /// The problems so far.
    #[must_use]
    pub(crate) fn problems(&self) -> Vec<Noted> {
        let noted = self.bound.state().problems.all().iter().cloned();
        noted.chain(self.strays()).chain(self.state_differs()).collect()
    }

    /// The calls that came when none was allowed.
    fn strays(&self) -> Option<Noted> {
        let text = "calls Braid outside of its own calls, or from another thread".to_owned();
        let (times, packet) = (self.bound.refused(), self.bound.state().packets);
        (times > 0).then_some(Noted { problem: Problem::Misuse(text), times, packet })
    }

    /// The instance's memory, from which another instance can go on. `None` if the function cannot
    /// save it. Records are not part of it.
    pub(crate) fn save(&mut self) -> Option<Vec<u8>> {
        self.bound.state_mut().begin();
        let own = self.bound.save()?;
        let mut bytes = saved::save(self.bound.state());
        bytes.extend(own);
        Some(bytes)
    }

    /// Goes on from the memory of an earlier instance. This instance is new.
    ///
    /// # Errors
    /// The reason why it cannot. It is then of no further use.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let state = self.bound.state_mut();
        state.begin();
        let own = saved::restore(state, bytes).ok_or("its memory is damaged")?;
        self.bound.restore(own)?;
        if let Some(shadow) = &mut self.shadow {
            shadow.restore(bytes)?;
        }
        self.after_call();
        Ok(())
    }

    /// The number of timer firings that were skipped because the time jumped.
    #[must_use]
    pub(crate) fn timers_skipped(&self) -> u64 {
        self.bound.state().timers_skipped
    }

    /// The actions that were observed, with [`Checks::observe`].
    #[must_use]
    pub(crate) fn observed(&self) -> Profile {
        self.bound.state().observed
    }

    /// The flow with the key of a packet, if it has a record: its number and the record.
    #[must_use]
    pub(crate) fn recorded(&self, key: &FlowKey) -> Option<(u64, &Recorded)> {
        let state = self.bound.state();
        let key = if state.per_biflow { key.bidirectional() } else { *key };
        let flow = state.flows.known(&key)?;
        Some((flow, state.recorded.get(&flow)?))
    }

    /// Whether the function has recorded anything for any flow that exists.
    pub(crate) fn has_recorded(&self) -> bool {
        !self.bound.state().recorded.is_empty()
    }

    /// Runs a packet by the record of its flow instead of by the function: header actions, then
    /// state functions in order, then guards. Returns `None`, without doing anything, if the flow
    /// has no record or the record does not fit the packet.
    pub(crate) fn replay(&mut self, packet: &mut Packet, now: u64) -> Option<Verdict> {
        if !self.bound.state().started {
            return None;
        }
        self.advance(now);
        let state = self.bound.state_mut();
        let key = packet.flow_key(&packet.parse())?;
        let key = if state.per_biflow { key.bidirectional() } else { key };
        let flow = state.flows.known(&key)?;
        let record = state.recorded.get(&flow).filter(|record| record.is_for(packet))?.clone();
        let mut done = packet.clone();
        let verdict = record.apply(&mut done).ok()?;
        self.run_state(flow, &record.state, packet, now);
        if record.payload() == Payload::Write {
            copy_payload(packet, &mut done);
        }
        *packet = done;
        Some(verdict)
    }

    /// Runs the part of a flow's record that is not header actions, for an engine that does these
    /// by itself: the given state functions in order, on the packet as it enters the function, then
    /// the record's guards. The caller ensures that nothing is due at this time ([`Self::is_due`]).
    pub(crate) fn run_state(
        &mut self,
        flow: u64,
        functions: &[StateFunction],
        packet: &mut Packet,
        now: u64,
    ) {
        self.sees(flow, now);
        self.bound.state_mut().begin();
        if !functions.is_empty() {
            let mut given = std::mem::replace(packet, nothing());
            for function in functions {
                given = self.bound.state_function(*function, given, flow);
            }
            *packet = given;
        }
        self.guard(flow);
        self.after_call();
    }

    /// Counts a packet that an engine processed by a record without state functions and guards. The
    /// caller ensures that nothing is due at this time.
    pub(crate) fn sees(&mut self, flow: u64, now: u64) {
        let state = self.bound.state_mut();
        state.now = state.now.max(now);
        state.packets += 1;
        state.flows.touch(flow, state.now);
    }

    /// The earliest time at which something may be due.
    pub(crate) fn wake(&self) -> u64 {
        self.wake
    }

    /// Whether [`Self::advance`] may have something to do at this time, or no packet has come yet.
    #[must_use]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        now >= self.wake || !self.bound.state().started
    }

    /// Whether the function itself must run for each packet, because its actions are checked or
    /// recorded.
    #[must_use]
    pub(crate) fn is_checked(&self) -> bool {
        self.bound.state().checks != Checks::default()
    }

    /// Whether [`Self::take_changed`] has flows to return.
    #[must_use]
    pub(crate) fn has_changed(&self) -> bool {
        self.bound.state().changed.as_ref().is_some_and(|changed| !changed.is_empty())
    }

    /// Starts recording the flows whose records change ([`Self::take_changed`]).
    pub(crate) fn watch(&mut self) {
        self.bound.state_mut().changed.get_or_insert_default();
    }

    /// The flows whose records have changed or ended since the last call, each once.
    pub(crate) fn take_changed(&mut self) -> Vec<u64> {
        let changed = self.bound.state_mut().changed.as_mut().map(std::mem::take);
        changed.unwrap_or_default().into_iter().collect()
    }
}

/// The problem for a failure, or for a panic of a function in Rust.
fn failed(why: String) -> Problem {
    match why.strip_prefix(PANICKED) {
        Some(text) => Problem::Panic(text.to_owned()),
        None => Problem::Failed(why),
    }
}

/// The flow of a packet, if it has a record: its key and number.
fn recorded(state: &State, packet: &Packet) -> Option<(FlowKey, u64)> {
    if state.recorded.is_empty() {
        return None;
    }
    let key = packet.flow_key(&packet.parse())?;
    let known = state.flows.known(&if state.per_biflow { key.bidirectional() } else { key })?;
    state.recorded.contains_key(&known).then_some((key, known))
}

/// A verdict in words, for messages.
fn said(verdict: Result<Verdict, Failed>) -> String {
    match verdict {
        Ok(Verdict::Forward) => "let pass".to_owned(),
        Ok(Verdict::Drop(reason)) => format!("dropped (reason {reason})"),
        Ok(Verdict::Back) => "sent back".to_owned(),
        Ok(Verdict::Consume) => "consumed".to_owned(),
        Ok(Verdict::Port(port)) => format!("sent to port {port}"),
        Err(_) => "a failure".to_owned(),
    }
}

/// Copies a payload over another payload of the same length.
fn copy_payload(from: &Packet, to: &mut Packet) {
    let (old, new) = (from.parse(), to.parse());
    let source = from.payload(&old).to_vec();
    let (start, len) = (new.payload_offset(), to.payload(&new).len());
    if let Some(target) = to.data_mut().get_mut(start..start + len)
        && target.len() == source.len()
    {
        target.copy_from_slice(&source);
    }
}

fn limits(defined: Limits, config: &Config) -> Limits {
    let configured = |name| number(config, name).map(|n| u64::try_from(n).unwrap_or(u64::MAX));
    Limits {
        capacity: configured(FLOWS).unwrap_or(defined.capacity),
        idle_ns: configured(IDLE).unwrap_or(defined.idle_ns),
        ..defined
    }
}

/// The placeholder for a packet while the function has it.
fn nothing() -> Packet {
    Packet::empty(Link::RawIp)
}
