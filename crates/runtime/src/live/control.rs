//! The control thread: it answers requests and does everything that takes time, while the worker
//! moves packets.

use super::clock::nanoseconds;
use super::operator::{Flags, Operator};
use super::tracing::{Tracing, capture};
use super::worker::{Mailbox, Next, Replaced, Worker};
use crate::ctl::{Job, Request, Served, page};
use crate::outcome::Summary;
use crate::report::report;
use braid_ir::chain::Chain;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest time until a flag is seen.
const TICK: Duration = Duration::from_millis(20);

/// The control of a run.
pub(super) struct Controller<'a> {
    pub(super) chain: Arc<Chain>,
    pub(super) worker: Mailbox,
    pub(super) operator: &'a mut dyn Operator,
    pub(super) flags: Flags<'a>,
    pub(super) socket: Option<Served>,
    /// The client that traces packets.
    pub(super) tracing: Tracing,
    /// The period in which the state is saved, and the time of the next time.
    pub(super) saves: Option<(Duration, Instant)>,
}

/// The worker has ended.
struct Ended;

impl Controller<'_> {
    /// Serves until the worker has ended.
    pub(super) fn serve(mut self, has_ended: impl Fn() -> bool) {
        while !has_ended() {
            let job = match &self.socket {
                Some(socket) => socket.next(TICK),
                None => {
                    std::thread::sleep(TICK);
                    None
                }
            };
            // A worker that has ended is seen at the loop's condition.
            let _ = self.turn(job);
        }
    }

    fn turn(&mut self, job: Option<Job>) -> Result<(), Ended> {
        if let Some(Job { request, answer }) = job {
            let value = self.answer(request)?;
            // The client may have gone.
            let _ = answer.try_send(value);
        }
        self.tracing.show(self.operator, &self.worker).ok_or(Ended)?;
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
            let snapshot = self.worker.ask(|worker| worker.engine.export()).ok_or(Ended)?;
            self.operator.save(&snapshot);
            self.saves = Some((period, next.max(Instant::now()) + period));
        }
        Ok(())
    }

    fn answer(&mut self, request: Request) -> Result<Value, Ended> {
        let done = json!({ "ok": true });
        let error = |why: String| json!({ "error": why });
        Ok(match request {
            Request::Status => self.worker.ask(|worker| worker.status()).ok_or(Ended)?,
            Request::Counters { text } => {
                let so_far = self.so_far()?;
                match text {
                    true => json!({ "text": self.operator.present(&self.chain, &so_far) }),
                    false => report(&self.chain, &so_far),
                }
            }
            Request::State(wanted) => {
                let entries = self.worker.ask(|worker| worker.engine.state()).ok_or(Ended)?;
                page(&self.chain, &entries, &wanted)
            }
            Request::Change(text) => self.change(&text)?.map_or_else(error, |()| done),
            Request::Events(listener) => {
                let add = move |worker: &mut Worker<'_>| {
                    worker.sink.listeners.add(listener);
                };
                self.worker.ask(add).ok_or(Ended)?;
                done
            }
            Request::Reload { plan: true } => match self.load() {
                Err(why) => error(why),
                Ok(Next { chain, .. }) => {
                    let plan = self.worker.ask(move |worker| worker.plan(&chain)).ok_or(Ended)?;
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
                let begun = capture(wanted, &self.chain, self.operator, &self.worker);
                begun.ok_or(Ended)?.map_or_else(error, |()| done)
            }
            Request::Trace(wanted) => {
                let begun = self.tracing.begin(wanted, self.operator, &self.worker);
                begun.ok_or(Ended)?.map_or_else(error, |()| done)
            }
            Request::Drain { within } => {
                let within_ns = nanoseconds(within);
                let held = self.worker.ask(move |worker| worker.drain(within_ns)).ok_or(Ended)?;
                json!({ "ok": true, "held": held })
            }
            Request::Stop => {
                self.flags.stop.store(true, Ordering::Relaxed);
                done
            }
        })
    }

    /// Makes changes of configuration. The inner error says why they cannot be made.
    fn change(&mut self, text: &str) -> Result<Result<(), String>, Ended> {
        let changes = match self.operator.changes(text, &self.chain) {
            Ok(changes) => changes,
            Err(why) => return Ok(Err(why)),
        };
        let prepare = self.worker.ask(|worker| worker.engine.preparer());
        let changes = changes.into_iter().map(prepare.ok_or(Ended)?);
        let mut changes: Vec<_> = changes.collect();
        // What the changes replace comes back, because to drop it takes time.
        let made = self.worker.ask(move |worker| {
            let made = worker.change(&mut changes);
            (made, changes)
        });
        made.map(|(made, _)| made).ok_or(Ended)
    }

    /// The results so far.
    fn so_far(&self) -> Result<Summary, Ended> {
        let counters = self.worker.ask(|worker| worker.counters()).ok_or(Ended)?;
        Ok(Summary::so_far(counters))
    }

    /// Loads the chain again.
    fn load(&mut self) -> Result<Next, String> {
        let (chain, engine) = self.operator.load()?;
        if chain.name != self.chain.name {
            let (old, new) = (&self.chain.name, &chain.name);
            return Err(format!("the chain is called `{old}`, and `{new}` after the change"));
        }
        Ok(Next { chain: Arc::new(chain), engine })
    }

    /// Loads the chain again and puts it in the place of the one that runs. The inner error is the
    /// reason why the chain stays.
    fn reload(&mut self) -> Result<Result<Replaced, String>, Ended> {
        let next = match self.load() {
            Ok(next) => next,
            Err(why) => return Ok(Err(why)),
        };
        let chain = Arc::clone(&next.chain);
        let replaced = self.worker.ask(move |worker| worker.replace(next)).ok_or(Ended)?;
        if replaced.is_ok() {
            self.chain = chain;
        }
        Ok(replaced)
    }
}

/// Whether a flag is set. Takes it back.
fn take(flag: &AtomicBool) -> bool {
    flag.swap(false, Ordering::Relaxed)
}

/// What the user is told about a reload.
fn told(replaced: &Replaced) -> String {
    let ms = replaced.pause.as_secs_f64() * 1e3;
    format!("braid: the chain was loaded again; packets waited {ms:.1} ms\n{}", replaced.plan)
}
