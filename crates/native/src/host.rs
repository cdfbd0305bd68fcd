//! Braid's data for an instance of a function, and the calls that the instance may make. Everything
//! that comes from native code is checked here. The module `sys` has the code that follows
//! pointers.

use crate::flows::{Flow, Flows, Found};
use crate::output::Output;
use crate::part::Part;
use crate::record::{Guard, Handler, HeaderAction, MOST, MOST_BYTES, Recorded, StateFunction};
use crate::value::Config;
use braid_ir::model::{EventDecl, TagDecl};
use braid_ir::native::{Checks, Problem, Problems, Profile};
use braid_packet::{FlowKey, HEADERS, Header};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// The most counters of an instance.
const MOST_COUNTERS: usize = 256;
/// The most timers of an instance at a time.
const MOST_TIMERS: usize = 64;
/// A timer that is more than this many periods late skips its earliest firings.
const CATCH_UP: u64 = 10_000;

/// The reasons for refusing a call, with their numbers in the C interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Refused {
    /// The thing does not exist.
    Absent = -1,
    /// The call is not allowed here.
    Misuse = -2,
    /// A limit is reached.
    Full = -3,
    /// The declared profile does not allow it.
    Denied = -4,
}

/// A timer.
#[derive(Clone, Copy, Debug)]
struct Timer {
    /// The period. 0: the timer fires once.
    period_ns: u64,
    /// The delay after the timer was set, or after the first packet.
    after_ns: u64,
    /// When it fires next. `None` before the first packet.
    due: Option<u64>,
    /// Whether it fires behind all other work, at the time to which the time goes on.
    is_soon: bool,
    handler: Handler,
}

/// The delay and the period that stand for a timer that fires as soon as the time goes on.
pub(crate) const SOON: (u64, u64) = (0, u64::MAX);

/// A hash for the numbers of flows, which Braid chooses itself.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// An event that is due.
pub(crate) enum Due {
    /// This flow has ended.
    Flow(u64, Flow),
    /// This timer fires.
    Timer(Handler),
}

/// Braid's data for an instance.
pub(crate) struct State {
    pub(crate) config: Config,
    /// The texts of [`Config`] in C form: each ends with a 0.
    pub(crate) texts: BTreeMap<(usize, usize), Box<[u8]>>,
    pub(crate) per_biflow: bool,
    /// The instance's part of the packets.
    pub(crate) part: Part,
    /// Whether the function gets what TCP connections bring, and no packets.
    pub(crate) is_stream: bool,
    pub(crate) flows: Flows,
    pub(crate) recorded: HashMap<u64, Recorded, BuildHasherDefault<NumberHasher>>,
    /// Flows whose records have changed, if someone watches.
    pub(crate) changed: Option<BTreeSet<u64>>,
    /// The flow whose record this call has emptied and writes again.
    recording: Option<u64>,
    /// The direction of the current packet, if the two directions are separate flows.
    pub(crate) side: Option<bool>,
    /// Flows whose guards must be checked.
    pub(crate) notified: Vec<u64>,
    /// Flows that ended during this call. The function is told after the call.
    pub(crate) ended: Vec<(u64, Flow)>,
    pub(crate) counters: Vec<(String, u64)>,
    pub(crate) outputs: Vec<Output>,
    timers: Vec<Timer>,
    pub(crate) timers_skipped: u64,
    pub(crate) problems: Problems,
    pub(crate) declared: Option<Profile>,
    /// The actions that were observed, with [`Checks::observe`] or a declared profile.
    pub(crate) observed: Profile,
    pub(crate) checks: Checks,
    /// The current time.
    pub(crate) now: u64,
    /// Whether a packet has come.
    pub(crate) started: bool,
    /// The number of packets so far.
    pub(crate) packets: u64,
    /// The function's reason for its failure.
    pub(crate) failure: Option<String>,
    /// The number of reasons and ports of the function.
    pub(crate) reasons: u32,
    pub(crate) ports: u32,
    /// The types of the events that the function publishes.
    pub(crate) events: Vec<EventDecl>,
    /// The tags that the function reads or sets.
    pub(crate) tags: Vec<TagDecl>,
    /// The most packets that the function sends in a call, and how many it has sent in this one.
    pub(crate) sends: u32,
    pub(crate) sent: u32,
    /// Whether the present call is one of a timer.
    pub(crate) runs_timer: bool,
}

impl State {
    pub(crate) fn new(config: Config, flows: Flows) -> Self {
        let mut texts = BTreeMap::new();
        for (at, (_, value)) in config.iter().enumerate() {
            for (row, text) in value.texts.iter().enumerate() {
                let with_end: Vec<u8> = text.iter().copied().chain([0]).collect();
                texts.insert((at, row), with_end.into_boxed_slice());
            }
        }
        Self {
            config,
            texts,
            per_biflow: false,
            part: Part::WHOLE,
            is_stream: false,
            flows,
            recorded: HashMap::default(),
            changed: None,
            recording: None,
            side: None,
            notified: Vec::new(),
            ended: Vec::new(),
            counters: Vec::new(),
            outputs: Vec::new(),
            timers: Vec::new(),
            timers_skipped: 0,
            problems: Problems::default(),
            declared: None,
            observed: Profile::default(),
            checks: Checks::default(),
            now: 0,
            started: false,
            packets: 0,
            failure: None,
            reasons: 0,
            ports: 0,
            events: Vec::new(),
            tags: Vec::new(),
            sends: 0,
            sent: 0,
            runs_timer: false,
        }
    }

    /// Prepares for a call.
    pub(crate) fn begin(&mut self) {
        self.recording = None;
        self.failure = None;
        self.sent = 0;
    }

    /// Records wrong use of the interface.
    pub(crate) fn misuse(&mut self, text: String) -> Refused {
        self.problems.add(Problem::Misuse(text), self.packets);
        Refused::Misuse
    }

    /// Whether the declared profile allows an action. A violation is recorded.
    pub(crate) fn allowed(
        &mut self,
        may: impl FnOnce(&Profile) -> bool,
        what: impl FnOnce() -> String,
    ) -> Result<(), Refused> {
        match &self.declared {
            Some(declared) if !may(declared) => {
                self.problems.add(Problem::Profile(what()), self.packets);
                Err(Refused::Denied)
            }
            _ => Ok(()),
        }
    }

    /// Whether the actions of calls are recorded.
    pub(crate) fn is_observed(&self) -> bool {
        self.checks.observe
    }

    // Flows.

    /// The flow of a key, created if it does not exist; 0 if there is no room.
    pub(crate) fn flow(&mut self, key: FlowKey) -> u64 {
        let key = if self.per_biflow { key.bidirectional() } else { key };
        match self.flows.find(key, self.now) {
            Found::Known(number) | Found::New(number, None) => number,
            Found::New(number, Some((old, flow))) => {
                self.gone(old, flow);
                number
            }
            Found::Full => 0,
        }
    }

    /// Handles the end of a flow. The function is told after its current call.
    fn gone(&mut self, number: u64, flow: Flow) {
        self.drop_record(number);
        self.ended.push((number, flow));
    }

    pub(crate) fn end_flow(&mut self, number: u64) {
        match self.flows.remove(number) {
            Some(flow) => self.gone(number, flow),
            None => {
                self.misuse(format!("ends flow {number}, which it does not have"));
            }
        }
    }

    // Recordings.

    /// The record of a flow, to add to. The first addition of a call empties it.
    fn record(&mut self, flow: u64, what: &str) -> Result<&mut Recorded, Refused> {
        if self.is_stream {
            return Err(self.misuse(format!("{what}, which a stream function cannot do")));
        }
        if self.flows.get_mut(flow).is_none() {
            let why = match flow {
                0 => format!("{what} for flow 0, which stands for no flow"),
                _ => format!("{what} for flow {flow}, which it does not have"),
            };
            return Err(self.misuse(why));
        }
        if let Some(changed) = &mut self.changed {
            changed.insert(flow);
        }
        let record = self.recorded.entry(flow).or_default();
        if self.recording != Some(flow) {
            self.recording = Some(flow);
            let backward = self.side.or(record.backward);
            *record = Recorded { backward, ..Recorded::default() };
        }
        Ok(record)
    }

    pub(crate) fn add_header_action(
        &mut self,
        flow: u64,
        action: HeaderAction,
    ) -> Result<(), Refused> {
        self.check_action(&action)?;
        let record = self.record(flow, "records a header action")?;
        if record.headers.len() >= MOST {
            return Err(self.too_many("header actions"));
        }
        record.headers.push(action);
        Ok(())
    }

    fn too_many(&mut self, what: &str) -> Refused {
        self.misuse(format!("records more than {MOST} {what} for one flow"));
        Refused::Full
    }

    pub(crate) fn check_action(&mut self, action: &HeaderAction) -> Result<(), Refused> {
        let (reasons, ports) = (self.reasons, self.ports);
        let wrong = match action {
            HeaderAction::Drop(reason) if *reason >= reasons => {
                format!("records a drop for reason {reason}; it has {reasons}")
            }
            HeaderAction::Output(port) if *port >= ports => {
                format!("records an output to port {port}; it has {ports}")
            }
            HeaderAction::Modify(field, _) if field.info().access == braid_packet::Access::Ro => {
                format!("records a change of {}, which is read-only", field.info().name)
            }
            HeaderAction::Encap { bytes, .. } if bytes.len() > MOST_BYTES => {
                format!("records {} bytes to be added; {MOST_BYTES} are the most", bytes.len())
            }
            _ => return Ok(()),
        };
        Err(self.misuse(wrong))
    }

    pub(crate) fn add_state_function(
        &mut self,
        flow: u64,
        function: StateFunction,
    ) -> Result<(), Refused> {
        let record = self.record(flow, "records a state function")?;
        if record.state.len() >= MOST {
            return Err(self.too_many("state functions"));
        }
        record.state.push(function);
        Ok(())
    }

    pub(crate) fn register_guard(&mut self, flow: u64, guard: Guard) -> Result<(), Refused> {
        if let Some(action) = &guard.action {
            self.check_action(action)?;
        }
        let record = self.record(flow, "registers a guard")?;
        if record.guards.len() >= MOST {
            return Err(self.too_many("guards"));
        }
        record.guards.push(guard);
        Ok(())
    }

    pub(crate) fn notify(&mut self, flow: u64) -> Result<(), Refused> {
        if flow == 0 {
            self.notified = self.recorded.keys().copied().collect();
            // Sorted, so that the order does not depend on the hash. The last one is processed
            // first.
            self.notified.sort_unstable_by(|a, b| b.cmp(a));
            return Ok(());
        }
        if !self.recorded.contains_key(&flow) {
            return Err(Refused::Absent);
        }
        if !self.notified.contains(&flow) {
            self.notified.push(flow);
        }
        Ok(())
    }

    pub(crate) fn forget(&mut self, flow: u64) -> Result<(), Refused> {
        if self.drop_record(flow) { Ok(()) } else { Err(Refused::Absent) }
    }

    /// Ends a flow's record. Returns whether there was one.
    fn drop_record(&mut self, flow: u64) -> bool {
        let was = self.recorded.remove(&flow).is_some();
        if was {
            self.changed(flow);
        }
        was
    }

    /// Records that a flow's record has changed.
    pub(crate) fn changed(&mut self, flow: u64) {
        if let Some(changed) = &mut self.changed {
            changed.insert(flow);
        }
    }

    // Counters.

    pub(crate) fn counter(&mut self, name: &str) -> Result<usize, Refused> {
        if let Some(at) = self.counters.iter().position(|(known, _)| known == name) {
            return Ok(at);
        }
        if self.counters.len() >= MOST_COUNTERS {
            self.misuse(format!("makes more than {MOST_COUNTERS} counters"));
            return Err(Refused::Full);
        }
        self.counters.push((name.to_owned(), 0));
        Ok(self.counters.len() - 1)
    }

    pub(crate) fn count(&mut self, counter: i32, n: u64) {
        let at = usize::try_from(counter).ok();
        match at.and_then(|at| self.counters.get_mut(at)) {
            Some((_, count)) => *count = count.saturating_add(n),
            None => {
                self.misuse(format!("counts at counter {counter}, which it did not make"));
            }
        }
    }

    // Time.

    pub(crate) fn timer(
        &mut self,
        after_ns: u64,
        period_ns: u64,
        handler: Handler,
    ) -> Result<(), Refused> {
        if self.timers.len() >= MOST_TIMERS {
            self.misuse(format!("sets more than {MOST_TIMERS} timers"));
            return Err(Refused::Full);
        }
        let is_soon = (after_ns, period_ns) == SOON;
        if after_ns == 0 && !is_soon {
            return Err(self.misuse("sets a timer of 0 ns".to_owned()));
        }
        let (after_ns, period_ns) = if is_soon { (1, 0) } else { (after_ns, period_ns) };
        let due = match (self.started, is_soon) {
            (false, _) => None,
            // At the end of time, it does not go on.
            (true, true) => self.now.checked_add(after_ns),
            (true, false) => Some(self.now.saturating_add(after_ns)),
        };
        self.timers.push(Timer { period_ns, after_ns, due, is_soon, handler });
        Ok(())
    }

    /// Starts the timers, as the first packet has come.
    pub(crate) fn start(&mut self, now: u64) {
        self.started = true;
        for timer in &mut self.timers {
            timer.due = now.checked_add(timer.after_ns);
        }
    }

    /// The timers: period, delay, and the time of the next firing.
    pub(crate) fn timers(&self) -> impl Iterator<Item = (u64, u64, Option<u64>)> {
        self.timers.iter().map(|timer| (timer.period_ns, timer.after_ns, timer.due))
    }

    /// Lets the timers of this new instance go on as those of an earlier one, which have the same
    /// periods and delays in the same order. A timer for one firing that the earlier instance has
    /// no more has fired. Later timers of the earlier instance are the function's to set again.
    pub(crate) fn resume_timers(&mut self, earlier: Vec<(u64, u64, Option<u64>)>) {
        let mut earlier = earlier.into_iter().peekable();
        let (now, started) = (self.now, self.started);
        self.timers.retain_mut(|timer| {
            let same = earlier.next_if(|(period, after, _)| {
                (*period, *after) == (timer.period_ns, timer.after_ns)
            });
            match same {
                Some((.., due)) => timer.due = due,
                None if started => timer.due = now.checked_add(timer.after_ns),
                None => {}
            }
            same.is_some() || timer.period_ns > 0 || !started
        });
    }

    /// The earliest time at which something may be due.
    pub(crate) fn wake(&self) -> u64 {
        let timers = self.timers.iter().filter_map(|timer| timer.due);
        timers.chain(self.flows.next_deadline()).min().unwrap_or(u64::MAX)
    }

    /// Lets timers that are far behind skip their earliest firings.
    pub(crate) fn skip(&mut self, now: u64) {
        for timer in self.timers.iter_mut().filter(|timer| timer.period_ns > 0) {
            let Some(due) = timer.due.as_mut().filter(|due| **due <= now) else { continue };
            let behind = (now - *due) / timer.period_ns;
            let skipped = behind.saturating_sub(CATCH_UP);
            *due += skipped * timer.period_ns;
            self.timers_skipped += skipped;
        }
    }

    /// The next event that is due by a time: the earliest one, and flows before timers. The current
    /// time becomes its time.
    #[expect(clippy::indexing_slicing, reason = "`at` is a place in `timers`")]
    pub(crate) fn due(&mut self, now: u64) -> Option<Due> {
        let due_of = |timer: &Timer| {
            let due = timer.due.filter(|due| *due <= now);
            due.map(|due| if timer.is_soon { now } else { due })
        };
        let timer = (0..self.timers.len())
            .filter_map(|at| Some((due_of(&self.timers[at])?, at)))
            .min_by_key(|(due, at)| (*due, self.timers[*at].is_soon, *at));
        let until = timer.map_or(now, |(due, _)| due);
        if let Some((deadline, number, flow)) = self.flows.ended_by(until) {
            self.now = self.now.max(deadline);
            self.drop_record(number);
            return Some(Due::Flow(number, flow));
        }
        let (due, at) = timer?;
        self.now = self.now.max(due);
        let timer = &mut self.timers[at];
        let handler = timer.handler;
        if timer.period_ns > 0 {
            timer.due = due.checked_add(timer.period_ns);
        } else {
            self.timers.remove(at);
        }
        Some(Due::Timer(handler))
    }

    // Configuration.

    /// A number of a parameter.
    pub(crate) fn number(&self, name: &str, row: usize, column: usize) -> Result<u128, Refused> {
        let (_, value) =
            self.config.iter().find(|(known, _)| known == name).ok_or(Refused::Absent)?;
        value.rows.get(row).and_then(|row| row.get(column)).copied().ok_or(Refused::Absent)
    }

    /// The number of rows (or texts) of a parameter.
    pub(crate) fn rows(&self, name: &str) -> Result<usize, Refused> {
        let (_, value) =
            self.config.iter().find(|(known, _)| known == name).ok_or(Refused::Absent)?;
        Ok(value.rows.len().max(value.texts.len()))
    }

    /// A text of a parameter, with a 0 at the end.
    pub(crate) fn text(&self, name: &str, row: usize) -> Option<&[u8]> {
        let at = self.config.iter().position(|(known, _)| known == name)?;
        self.texts.get(&(at, row)).map(|text| &**text)
    }
}

/// The header with this number of the C interface.
pub(crate) fn header(number: i32) -> Option<Header> {
    let at = usize::try_from(number).ok()?;
    HEADERS.get(at).map(|(header, _)| *header)
}
