//! The driver's side of a control socket.

use super::request::{Job, Page};
use super::socket::Socket;
use crate::json::{event, state_entry};
use crate::outcome::Summary;
use braid_ir::chain::Chain;
use braid_ir::engine::{Engine, Event, StateEntry};
use serde_json::{Value, json};
use std::sync::mpsc::{SyncSender, TrySendError};

/// The least time between two answers (ns).
const PAUSE_NS: u64 = 1_000_000;

/// The requests of a control socket, and the clients that follow events.
pub(crate) struct Serving {
    socket: Socket,
    /// Before this time, no request is answered.
    next_ns: u64,
    /// Clients that want events, each with the number of events that it has lost.
    listeners: Vec<(SyncSender<String>, u64)>,
}

impl Serving {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, next_ns: 0, listeners: Vec::new() }
    }

    /// A request that waits, if it is time for one.
    pub(crate) fn next(&mut self, now_ns: u64) -> Option<Job> {
        if now_ns < self.next_ns {
            return None;
        }
        let job = self.socket.next()?;
        self.next_ns = now_ns + PAUSE_NS;
        Some(job)
    }

    /// A summary as text for people.
    pub(crate) fn text(&self, summary: &Summary) -> String {
        (self.socket.present)(summary)
    }

    /// From now on, a client gets all events.
    pub(crate) fn listen(&mut self, listener: SyncSender<String>) {
        self.listeners.push((listener, 0));
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

/// A page of an engine's state entries.
pub(crate) fn state(chain: &Chain, engine: &dyn Engine, page: &Page) -> Value {
    let node = match &page.function {
        None => None,
        Some(name) => match (0..).zip(&chain.nodes).find(|(_, node)| node.name == *name) {
            Some((number, _)) => Some(number),
            None => return json!({ "error": format!("there is no function `{name}`") }),
        },
    };
    let is_wanted = |entry: &&StateEntry| {
        let is_of_function = node.is_none_or(|node: u16| entry.node == node);
        let is_of_table = page.table.as_ref().is_none_or(|table| entry.table == *table);
        let has = |text: &String| state_entry(chain, entry).to_string().contains(text.as_str());
        is_of_function && is_of_table && page.contains.as_ref().is_none_or(has)
    };
    let entries = engine.state();
    let mut wanted = entries.iter().filter(is_wanted).skip(page.from);
    let shown = wanted.by_ref().take(page.limit).map(|entry| state_entry(chain, entry));
    let shown: Vec<Value> = shown.collect();
    let next = wanted.next().map(|_| page.from + shown.len());
    json!({ "entries": shown, "next": next })
}
