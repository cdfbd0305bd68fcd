//! Output of the control socket: pages of state entries, and events as they happen.

use super::feed::Feed;
use super::request::Page;
use crate::json::{event, state_entry};
use braid_ir::chain::Chain;
use braid_ir::engine::{Event, StateEntry};
use serde_json::{Value, json};

/// The clients that follow events.
#[derive(Default)]
pub(crate) struct Listeners(Vec<Feed>);

impl Listeners {
    /// From now on, a client gets all events.
    pub(crate) fn add(&mut self, listener: Feed) {
        self.0.retain(|listener| !listener.is_over());
        self.0.push(listener);
    }

    /// Gives an event to all clients that want events.
    pub(crate) fn event(&mut self, chain: &Chain, published: &Event) {
        if self.0.is_empty() {
            return;
        }
        let line = event(chain, published).to_string();
        self.0.retain(|listener| !listener.is_over());
        self.0.iter().for_each(|listener| listener.text(line.clone()));
    }
}

/// A page of these state entries. They are those of the function that the page asks for, or of all
/// functions.
pub(crate) fn page(chain: &Chain, entries: &[StateEntry], page: &Page) -> Value {
    let is_wanted = |entry: &&StateEntry| {
        let is_of_table = page.table.as_ref().is_none_or(|table| entry.table == *table);
        let has = |text: &String| state_entry(chain, entry).to_string().contains(text.as_str());
        is_of_table && page.contains.as_ref().is_none_or(has)
    };
    let mut wanted = entries.iter().filter(is_wanted).skip(page.from);
    let shown = wanted.by_ref().take(page.limit).map(|entry| state_entry(chain, entry));
    let shown: Vec<Value> = shown.collect();
    let next = wanted.next().map(|_| page.from + shown.len());
    json!({ "entries": shown, "next": next })
}
