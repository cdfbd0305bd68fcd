//! The control thread: it answers requests and performs all slow work, while the workers move
//! packets.

use super::listing::Listing;
use super::operator::{Flags, Operator};
use super::results::united;
use super::shared::Shared;
use super::tracing::{Tracing, capture};
use super::worker::{HandedOver, Mailbox, Next, Status, Worker};
use crate::ctl::{FlowsWanted, Job, Page, Request, Served, page};
use crate::engines::Engines;
use crate::listing::united as united_entries;
use crate::outcome::Summary;
use crate::report::report;
use crate::sharded::united_state;
use braid_ir::chain::Chain;
use braid_ir::engine::{Engine, Later, Room, StateEntry};
use braid_ir::model::Model;
use braid_ir::snapshot::{Plan, Snapshot, unite};
use serde_json::{Value, json};
use std::any::TypeId;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// The longest time until a flag is seen.
const TICK: Duration = Duration::from_millis(20);

/// The control of a run.
pub(super) struct Controller<'a> {
    pub(super) chain: Arc<Chain>,
    pub(super) workers: Vec<Mailbox>,
    pub(super) shared: Arc<Shared<'a>>,
    pub(super) operator: &'a mut dyn Operator,
    pub(super) flags: Flags<'a>,
    pub(super) socket: Option<Served>,
    /// The client that traces packets.
    pub(super) tracing: Tracing,
    /// The entries of the page of state that was asked for last.
    pub(super) listing: Option<Listing>,
    /// No packet enters any more, and the run ends at this time at the latest.
    pub(super) drains_until: Option<Instant>,
    /// The number of refused changes that the operator knows.
    pub(super) warned: usize,
    /// The period in which the state is saved, and the time of the next save.
    pub(super) saves: Option<(Duration, Instant)>,
}

/// A worker has ended.
struct Ended;

/// A chain that has taken the place of another one.
struct Replaced {
    plan: Plan,
    /// How long packets waited.
    pause: Duration,
}

impl Controller<'_> {
    /// Serves until all workers have ended.
    pub(super) fn serve(mut self, has_ended: impl Fn() -> bool) {
        while !has_ended() {
            let job = match &self.socket {
                Some(socket) => socket.next(TICK),
                None => {
                    std::thread::sleep(TICK);
                    None
                }
            };
            // Workers that have ended are seen at the loop's condition.
            let _ = self.turn(job);
            self.warn();
        }
        self.warn();
    }

    /// Warns of the changes that have been refused since the last time.
    fn warn(&mut self) {
        let new = self.shared.refused(self.warned);
        if !new.is_empty() {
            self.operator.refused(&new);
            self.warned += new.len();
        }
    }

    fn turn(&mut self, job: Option<Job>) -> Result<(), Ended> {
        if let Some(Job { request, answer }) = job {
            let value = self.answer(request)?;
            // The client may have gone.
            let _ = answer.try_send(value);
        }
        self.tracing.show(self.operator, &self.workers).ok_or(Ended)?;
        self.listing.take_if(|listing| listing.is_old());
        if let Some(until) = self.drains_until
            && (Instant::now() >= until || self.drain()? == 0)
        {
            self.flags.stop.store(true, Ordering::Relaxed);
        }
        if take(self.flags.show) {
            let so_far = self.so_far()?;
            let text = self.operator.present(&self.chain, &so_far);
            self.operator.tell(&text);
        }
        if take(self.flags.reload) {
            let text = match self.reload()? {
                Ok(replaced) => told(&replaced),
                Err(why) => format!("braid: the chain stays as it is: {why}\n"),
            };
            self.operator.tell(&text);
        }
        if let Some((period, next)) = self.saves.filter(|(_, next)| Instant::now() >= *next) {
            let snapshot = self.export()?;
            self.operator.save(&snapshot);
            self.saves = Some((period, next.max(Instant::now()) + period));
        }
        Ok(())
    }

    fn answer(&mut self, request: Request) -> Result<Value, Ended> {
        let done = json!({ "ok": true });
        let error = |why: String| json!({ "error": why });
        Ok(match request {
            Request::Status => self.status()?,
            Request::Counters { text } => {
                let so_far = self.so_far()?;
                match text {
                    true => json!({ "text": self.operator.present(&self.chain, &so_far) }),
                    false => report(&self.chain, &so_far),
                }
            }
            Request::State(wanted) => self.state(&wanted)?,
            Request::Flows(wanted) => self.flows(&wanted)?,
            Request::Change(text) => self.change(&text)?.map_or_else(error, |()| done),
            Request::Events(listener) => {
                self.shared.record(|record| record.listeners.add(listener));
                done
            }
            Request::Reload { plan: true } => match self.load() {
                Err(why) => error(why),
                Ok((chain, mut engines)) => {
                    let plan = self.plan(&chain, engines.type_of())?;
                    plan.map_or_else(error, |plan| json!({ "plan": plan.to_string() }))
                }
            },
            Request::Reload { plan: false } => match self.reload()? {
                Err(why) => error(why),
                Ok(replaced) => {
                    self.operator.tell(&told(&replaced));
                    json!({
                        "plan": replaced.plan.to_string(),
                        "pause_us": u64::try_from(replaced.pause.as_micros()).unwrap_or(u64::MAX),
                    })
                }
            },
            Request::Capture(wanted) => {
                let begun = capture(&wanted, &self.chain, self.operator, &self.workers);
                begun.ok_or(Ended)?.map_or_else(error, |()| done)
            }
            Request::Trace(wanted) => {
                let begun = self.tracing.begin(wanted, self.operator, &self.workers);
                begun.ok_or(Ended)?.map_or_else(error, |()| done)
            }
            Request::Drain { within } => {
                self.drains_until = Some(Instant::now() + within);
                json!({ "ok": true, "held": self.drain()? })
            }
            Request::Stop => {
                self.flags.stop.store(true, Ordering::Relaxed);
                done
            }
        })
    }

    /// Asks all workers at once. Returns their answers by worker.
    fn ask<T: Send + 'static>(
        &self,
        work: impl for<'w> Fn(&mut Worker<'w>) -> T + Clone + Send + 'static,
    ) -> Result<Vec<T>, Ended> {
        let asked = self.workers.iter().map(|worker| worker.send(work.clone()));
        let asked: Vec<_> = asked.collect::<Option<_>>().ok_or(Ended)?;
        asked.into_iter().map(|answer| answer.recv().map_err(|_| Ended)).collect()
    }

    /// Stops packets from entering. Returns the number of packets that wait in queues of functions
    /// and for their next hops.
    fn drain(&self) -> Result<u64, Ended> {
        let held: u64 = self.ask(|worker| worker.drain())?.into_iter().sum();
        Ok(held + self.shared.waiting_for_hops())
    }

    /// A page of a worker's flow records.
    fn flows(&mut self, wanted: &FlowsWanted) -> Result<Value, Ended> {
        let Some(worker) = self.workers.get(wanted.worker) else {
            let count = self.workers.len();
            return Ok(json!({ "error": format!("workers have numbers below {count}") }));
        };
        let FlowsWanted { from, limit, .. } = *wanted;
        let page = worker.send(move |worker| worker.engine.flow_page(from, limit)).ok_or(Ended)?;
        let Some(page) = page.recv().map_err(|_| Ended)? else {
            return Ok(json!({ "error": "the engine of this run makes no flow records" }));
        };
        let contains = wanted.contains.as_deref();
        let (flows, next) = self.operator.flows(&self.chain, page, contains, wanted.text);
        Ok(json!({ "flows": flows, "next": next }))
    }

    /// The results so far.
    fn so_far(&self) -> Result<Summary, Ended> {
        let parts = self.ask(|worker| worker.counted())?;
        let so_far = Summary::so_far(united(parts, &self.chain));
        Ok(Summary { refused: self.shared.refused(0), ..so_far })
    }

    /// The status of the run.
    fn status(&self) -> Result<Value, Ended> {
        let parts = self.ask(|worker| worker.status())?;
        let clock = self.shared.clock;
        let since_ns = clock.now_ns().saturating_sub(clock.start_ns());
        let is_only = parts.len() == 1;
        let one = |one: &Status| {
            json!({
                "packets": one.packets,
                "passed_on": one.passed_on,
                "busy_percent": one.rates.busy_percent,
                "packets_per_second": one.rates.packets_per_second,
                "longest_pause_us": one.longest_pause_us,
                "devices": if is_only { &[][..] } else { &one.devices },
                "programs": one.compilation.as_ref().map(|compilation| json!({
                    "machine_code": compilation.compiled,
                    "interpreted": compilation.interpreted,
                    "refused": compilation.refused,
                    "compiler_has_ended": compilation.has_ended,
                })),
            })
        };
        let workers: Value = parts.iter().map(one).collect();
        Ok(json!({
            "chain": self.chain.name,
            "seconds": since_ns / 1_000_000_000,
            "packets": parts.iter().map(|one| one.packets).sum::<u64>(),
            "longest_pause_us": parts.iter().map(|one| one.longest_pause_us).max(),
            "devices": parts.first().map(|one| &one.devices),
            "hosts": self.shared.hosts_status(&self.chain),
            "workers": workers,
        }))
    }

    /// Makes all engines prepare a copy of their state, while they move packets.
    fn prepare(&self) -> Result<(), Ended> {
        let (preparing, ready) = sync_channel(0);
        self.ask(move |worker| worker.prepare(preparing.clone()))?;
        // Nothing is sent: a worker drops its sender when its engine is ready, or when it ends.
        let _ = ready.recv();
        Ok(())
    }

    /// Makes all engines copy their state, of all functions or of one, while packets wait. Returns
    /// the data that this thread then makes from each copy.
    fn copies<T: 'static>(
        &self,
        function: Option<u16>,
        copy: fn(&mut dyn Engine, Room, Option<u16>) -> Later<T>,
    ) -> Result<Vec<T>, Ended> {
        self.prepare()?;
        let mut copies = Vec::new();
        for (worker, room) in self.workers.iter().zip(self.rooms(function)?) {
            let made = worker.send(move |worker| {
                let made = copy(&mut *worker.engine, room, function);
                worker.resume();
                made
            });
            copies.push(made.ok_or(Ended)?);
        }
        let copies: Vec<_> = copies.into_iter().map(|copy| copy.recv()).collect();
        copies.into_iter().map(|made| made.map(|make| make()).map_err(|_| Ended)).collect()
    }

    /// Memory for a copy of each worker's state.
    fn rooms(&self, function: Option<u16>) -> Result<Vec<Room>, Ended> {
        let rooms = self.ask(move |worker| worker.engine.room(function))?;
        Ok(rooms.into_iter().map(|room| room()).collect())
    }

    /// A page of the state entries of all workers. The pages of one listing come from one copy.
    fn state(&mut self, wanted: &Page) -> Result<Value, Ended> {
        let function = match &wanted.function {
            None => None,
            Some(name) => match (0..).zip(&self.chain.nodes).find(|(_, node)| node.name == *name) {
                Some((number, _)) => Some(number),
                None => return Ok(json!({ "error": self.no_function(name) })),
            },
        };
        if let Some(table) = &wanted.table {
            let nodes = (0..).zip(&self.chain.nodes);
            let mut wanted = nodes.filter(|(at, _)| function.is_none_or(|one| one == *at));
            // Native functions name their tables when they list them.
            let may_have = |model: &Model| {
                model.native.is_some() || model.state.iter().any(|decl| decl.name == *table)
            };
            if !wanted.any(|(_, node)| may_have(&node.model)) {
                let tables = (0..).zip(&self.chain.nodes);
                let tables = tables.filter(|(at, _)| function.is_none_or(|one| one == *at));
                let tables: BTreeSet<&str> = tables
                    .flat_map(|(_, node)| &node.model.state)
                    .map(|decl| decl.name.as_str())
                    .collect();
                let known = match tables.is_empty() {
                    true => "there are none".to_owned(),
                    false => format!("the tables are {}", Vec::from_iter(tables).join(", ")),
                };
                return Ok(json!({ "error": format!("there is no table `{table}`; {known}") }));
            }
        }
        let listing = match self.listing.take().filter(|one| one.goes_on(function, wanted.from)) {
            Some(listing) => listing,
            None => Listing::new(function, self.entries(function)?),
        };
        let page = page(&self.chain, listing.entries(), wanted);
        let has_more = page.get("next").is_some_and(|next| !next.is_null());
        self.listing = has_more.then(|| listing.used());
        Ok(page)
    }

    /// The answer about a function that the chain does not have.
    fn no_function(&self, name: &str) -> String {
        let names: Vec<&str> = self.chain.nodes.iter().map(|node| node.name.as_str()).collect();
        let chain = &self.chain.name;
        let known = match names.is_empty() {
            true => format!("chain `{chain}` has none"),
            false => format!("those of chain `{chain}` are {}", names.join(", ")),
        };
        format!("there is no function `{name}`; {known}")
    }

    /// The state entries of all workers: of all functions, or of one.
    fn entries(&self, function: Option<u16>) -> Result<Vec<StateEntry>, Ended> {
        let mut parts = self.copies(function, |engine, room, one| engine.reporter(room, one))?;
        let entries = match parts.len() {
            1 => parts.remove(0),
            _ => united_state(parts.into_iter(), &self.chain),
        };
        Ok(united_entries(&self.chain, entries))
    }

    /// The state of all workers.
    fn export(&self) -> Result<Snapshot, Ended> {
        Ok(whole(self.copies(None, |engine, room, _| engine.exporter(room))?, &self.chain))
    }

    /// Changes the configuration of all workers. All of them have the same configuration, so all
    /// refuse the changes, or none does. The inner error is the reason.
    fn change(&mut self, text: &str) -> Result<Result<(), String>, Ended> {
        let changes = match self.operator.changes(text, &self.chain) {
            Ok(changes) => changes,
            Err(why) => return Ok(Err(why)),
        };
        let mut asked = Vec::new();
        for (worker, prepare) in
            self.workers.iter().zip(self.ask(|worker| worker.engine.preparer())?)
        {
            let mut changes: Vec<_> = changes.iter().cloned().map(prepare).collect();
            // The workers give the replaced values back, because dropping them takes time.
            let made = worker.send(move |worker| (worker.change(&mut changes), changes));
            asked.push(made.ok_or(Ended)?);
        }
        let made: Vec<_> = asked
            .into_iter()
            .map(|made| made.recv())
            .collect::<Result<_, _>>()
            .map_err(|_| Ended)?;
        Ok(made.into_iter().try_for_each(|(made, _)| made))
    }

    /// Loads the chain again, with engines for it.
    fn load(&mut self) -> Result<(Arc<Chain>, Engines), String> {
        let (chain, engines) = self.operator.load()?;
        if chain.name != self.chain.name {
            let (old, new) = (&self.chain.name, &chain.name);
            return Err(format!("the change renames the chain `{old}` to `{new}`"));
        }
        let (old, new) = (self.workers.len(), usize::from(chain.workers.max(1)));
        if old != new {
            return Err(format!(
                "workers: the changed chain needs {new} instead of {old}; stop the run and start \
                 it again"
            ));
        }
        Ok((Arc::new(chain), engines))
    }

    /// The plan of the state that moves if a chain with engines of this type replaces the running
    /// one. The inner error is the reason why it cannot replace it.
    fn plan(
        &self,
        next: &Arc<Chain>,
        engines: Option<TypeId>,
    ) -> Result<Result<Plan, String>, Ended> {
        self.prepare()?;
        let chain = Arc::clone(next);
        let parts = self.ask(move |worker| {
            let part = worker.hand_over(&chain, engines);
            worker.resume();
            part
        })?;
        let parts: Result<Vec<_>, String> = parts.into_iter().collect();
        Ok(parts.map(|parts| {
            let snapshots = parts.into_iter().map(|part| part.snapshot).collect();
            Plan::new(&whole(snapshots, &self.chain), next)
        }))
    }

    /// Loads the chain again and replaces the running one. The inner error is the reason why the
    /// running chain stays.
    fn reload(&mut self) -> Result<Result<Replaced, String>, Ended> {
        let (chain, engines) = match self.load() {
            Ok(next) => next,
            Err(why) => return Ok(Err(why)),
        };
        self.prepare()?;
        let replaced = self.replace(&chain, engines)?;
        match &replaced {
            Ok(_) => (self.chain, self.listing) = (chain, None),
            Err(_) => drop(self.ask(|worker| worker.resume())?),
        }
        Ok(replaced)
    }

    /// Replaces the running chain. Each worker waits from the time when it hands its state over
    /// until it gets its new engine.
    fn replace(
        &self,
        chain: &Arc<Chain>,
        mut engines: Engines,
    ) -> Result<Result<Replaced, String>, Ended> {
        let kind = engines.type_of();
        let (mut states, mut waiting) = (Vec::new(), Vec::new());
        for (at, worker) in self.workers.iter().enumerate() {
            let (give_state, state) = sync_channel(1);
            let (give_next, next) = sync_channel(1);
            let chain = Arc::clone(chain);
            let before = worker.send(move |worker| {
                let start = Instant::now();
                let state = worker.hand_over(&chain, kind);
                // Without an answer, this chain stays.
                let given = give_state.send(state);
                let next = given.ok().and_then(|()| next.recv().ok());
                next.map(|next| (worker.replace(next, at == 0), start.elapsed()))
            });
            states.push(state);
            waiting.push((give_next, before.ok_or(Ended)?));
        }
        let states = states.iter().map(|state| state.recv().map_err(|_| Ended));
        let states: Vec<_> = states.collect::<Result<_, Ended>>()?;
        let states: Vec<HandedOver> = match states.into_iter().collect::<Result<_, String>>() {
            Ok(states) => states,
            Err(why) => return Ok(Err(why)),
        };
        let (snapshots, places): (Vec<_>, Vec<_>) =
            states.into_iter().map(|one| (one.snapshot, (one.numbers, one.staying))).unzip();
        let snapshot = whole(snapshots, &self.chain);
        let plan = Plan::new(&snapshot, chain);
        if let Err(why) = engines.whole().import(snapshot) {
            return Ok(Err(why.to_string()));
        }
        let (engines, steerer) = engines.into_parts();
        // The old engines are dropped when no worker waits any more, because this takes time.
        let mut before = Vec::new();
        for (((give, replaced), engine), places) in waiting.into_iter().zip(engines).zip(places) {
            let (chain, steerer, (numbers, staying)) = (Arc::clone(chain), steerer.clone(), places);
            let next = Next { chain, engine, steerer, numbers, staying };
            give.send(next).map_err(|_| Ended)?;
            // The first worker replaces the shared data before the others go on.
            before.extend(replaced.recv().map_err(|_| Ended)?);
        }
        let pause = before.iter().map(|(_, pause)| *pause).max().unwrap_or_default();
        Ok(Ok(Replaced { plan, pause }))
    }
}

/// The state of a chain, from that of its workers.
fn whole(mut parts: Vec<Snapshot>, chain: &Chain) -> Snapshot {
    match parts.len() {
        1 => parts.remove(0),
        _ => unite(parts, chain),
    }
}

/// Whether a flag is set. Clears the flag.
fn take(flag: &AtomicBool) -> bool {
    flag.swap(false, Ordering::Relaxed)
}

/// The report about a reload, for the user.
fn told(replaced: &Replaced) -> String {
    let ms = replaced.pause.as_secs_f64() * 1e3;
    format!("braid: the chain was loaded again; packets waited {ms:.1} ms\n{}", replaced.plan)
}
