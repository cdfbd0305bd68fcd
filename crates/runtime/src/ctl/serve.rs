//! Answers requests between two bursts.

use super::request::{Job, Page, Request};
use super::socket::Socket;
use crate::json::{event, state_entry};
use crate::outcome::Summary;
use crate::report::report;
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, Engine, Event, Outputs};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};

/// The least time between two answers while packets arrive (ns).
const PAUSE_NS: u64 = 1_000_000;

/// The driver's side of a control socket.
pub(crate) struct Serving {
    socket: Socket,
    /// Before this time, no request is answered.
    next_ns: u64,
    /// Clients that want events, each with the number of events that it has lost.
    listeners: Vec<(SyncSender<String>, u64)>,
}

/// What only the driver knows.
pub(crate) enum Asked<'a> {
    /// How the run is, as the answer.
    Status,
    /// The driver's own counts, to be added to these.
    Counters(&'a mut Counters),
}

/// What requests are about.
pub(crate) struct Subject<'a> {
    pub(crate) chain: &'a Chain,
    pub(crate) engine: &'a mut dyn Engine,
    pub(crate) out: &'a mut dyn Outputs,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) now_ns: u64,
}

impl Serving {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, next_ns: 0, listeners: Vec::new() }
    }

    /// Answers a request that waits, if it is time for one. Asks the driver for its part of the
    /// answer. Returns whether there was a request.
    pub(crate) fn serve(
        &mut self,
        subject: &mut Subject<'_>,
        driver: impl FnOnce(Asked<'_>) -> Value,
    ) -> bool {
        if subject.now_ns < self.next_ns {
            return false;
        }
        let Some(Job { request, answer }) = self.socket.next() else { return false };
        self.next_ns = subject.now_ns + PAUSE_NS;
        let value = match request {
            Request::Status => driver(Asked::Status),
            Request::Counters => counters(subject, driver),
            Request::State(page) => state(subject, &page),
            Request::Change(changes) => {
                let made = changes.into_iter().try_for_each(|mut change| {
                    change.time_ns = subject.now_ns;
                    subject.engine.control(&change, subject.out)
                });
                made.map_or_else(|why| json!({ "error": why }), |()| json!({ "ok": true }))
            }
            Request::Events(listener) => {
                self.listeners.push((listener, 0));
                json!({ "ok": true })
            }
            Request::Stop => {
                subject.stop.store(true, Ordering::Relaxed);
                json!({ "ok": true })
            }
        };
        // The client may have gone.
        let _ = answer.try_send(value);
        true
    }

    /// Gives an event to all clients that want events.
    pub(crate) fn event(&mut self, chain: &Chain, published: &Event) {
        if self.listeners.is_empty() {
            return;
        }
        let line = event(chain, published).to_string();
        self.listeners.retain_mut(|(listener, lost)| {
            if *lost > 0 && listener.try_send(json!({ "lost": *lost }).to_string()).is_ok() {
                *lost = 0;
            }
            match listener.try_send(line.clone()) {
                Ok(()) => true,
                Err(TrySendError::Full(_)) => {
                    *lost += 1;
                    true
                }
                Err(TrySendError::Disconnected(_)) => false,
            }
        });
    }
}

fn counters(subject: &Subject<'_>, driver: impl FnOnce(Asked<'_>) -> Value) -> Value {
    let mut counters = subject.engine.counters();
    driver(Asked::Counters(&mut counters));
    let summary = Summary { counters, follow: None, warnings: Vec::new(), unwritten: Vec::new() };
    report(subject.chain, &summary)
}

fn state(subject: &Subject<'_>, page: &Page) -> Value {
    let Subject { chain, engine, .. } = subject;
    let node = match &page.function {
        None => None,
        Some(name) => match (0..).zip(&chain.nodes).find(|(_, node)| node.name == *name) {
            Some((number, _)) => Some(number),
            None => return json!({ "error": format!("there is no function `{name}`") }),
        },
    };
    let entries = engine.state();
    let mut matching = entries.iter().filter(|entry| {
        let is_of_table = page.table.as_ref().is_none_or(|table| entry.table == *table);
        let is_it = node.is_none_or(|node| entry.node == node) && is_of_table;
        is_it
            && page
                .contains
                .as_ref()
                .is_none_or(|text| state_entry(chain, entry).to_string().contains(text.as_str()))
    });
    let page_of = matching.by_ref().skip(page.from).take(page.limit);
    let shown: Vec<Value> = page_of.map(|entry| state_entry(chain, entry)).collect();
    let next = page.from + shown.len();
    let has_more = matching.next().is_some();
    json!({ "entries": shown, "next": if has_more { json!(next) } else { Value::Null } })
}
