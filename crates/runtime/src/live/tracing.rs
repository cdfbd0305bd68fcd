//! The control thread's side of captures and traces.

use super::operator::Operator;
use super::watch::{Filter, Place, Tap, Trace, Traced};
use super::worker::Mailbox;
use crate::ctl::{Capture, Feed, TraceWanted};
use braid_ir::chain::Chain;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

/// The client that traces packets, if there is one.
#[derive(Default)]
pub(super) struct Tracing(Option<Client>);

struct Client {
    is_armed: Arc<AtomicBool>,
    found: Receiver<Result<Traced, String>>,
    feed: Feed,
    /// The number of packets that it has seen, and the number that it wants to see.
    seen: u64,
    count: u64,
    as_text: bool,
}

/// Begins a capture. `None` if a worker has ended; the error says why there is no capture.
pub(super) fn capture(
    wanted: &Capture,
    chain: &Chain,
    operator: &mut dyn Operator,
    workers: &[Mailbox],
) -> Option<Result<(), String>> {
    let Capture { point: name, enters, leaves, filter, feed } = wanted;
    let Some(place) = Place::named(name, chain) else {
        return Some(Err(no_place(name, chain)));
    };
    let filters = match filters(filter.as_deref(), operator, workers) {
        Ok(filters) => filters,
        Err(why) => return Some(Err(why)),
    };
    for (worker, filter) in workers.iter().zip(filters) {
        let (name, feed) = (name.as_str().into(), feed.clone());
        let tap = Tap { place, name, enters: *enters, leaves: *leaves, filter, feed };
        worker.ask(move |worker| worker.sink.watch.tap(tap))?;
    }
    Some(Ok(()))
}

fn no_place(name: &str, chain: &Chain) -> String {
    let list = |names: Vec<&str>| names.join(", ");
    let interfaces = list(chain.interfaces.iter().map(|one| &*one.name).collect());
    let functions = list(chain.nodes.iter().map(|node| &*node.name).collect());
    format!(
        "there is no interface or function `{name}`; the chain has the interfaces {interfaces} and \
         the functions {functions}"
    )
}

/// Makes memory for the copy of the worker's state that the next trace needs. `None` if the worker
/// has ended.
fn make_room(worker: &Mailbox) -> Option<()> {
    let room = worker.ask(|worker| worker.room_for_trace())?();
    worker.ask(move |worker| {
        if let Some(trace) = &mut worker.sink.watch.trace {
            trace.room = room;
        }
    })
}

/// A filter for each worker.
fn filters(
    text: Option<&str>,
    operator: &mut dyn Operator,
    workers: &[Mailbox],
) -> Result<Vec<Option<Filter>>, String> {
    let mut filter = |_| text.map(|text| operator.filter(text)).transpose();
    workers.iter().map(&mut filter).collect()
}

impl Tracing {
    /// Begins to trace packets. `None` if a worker has ended; the error says why there is no trace.
    pub(super) fn begin(
        &mut self,
        wanted: TraceWanted,
        operator: &mut dyn Operator,
        workers: &[Mailbox],
    ) -> Option<Result<(), String>> {
        if self.0.as_ref().is_some_and(|client| !client.feed.is_over()) {
            return Some(Err("another client traces packets".to_owned()));
        }
        let TraceWanted { filter, count, most_entries, text: as_text, feed } = wanted;
        let filters = match filters(filter.as_deref(), operator, workers) {
            Ok(filters) => filters,
            Err(why) => return Some(Err(why)),
        };
        let is_armed = Arc::new(AtomicBool::new(false));
        let (send, found) = sync_channel(1);
        for (worker, filter) in workers.iter().zip(filters) {
            let (is_armed, found) = (Arc::clone(&is_armed), send.clone());
            let trace = Trace { is_armed, filter, most_entries, room: None, found };
            worker.ask(move |worker| worker.sink.watch.trace = Some(trace))?;
            make_room(worker)?;
        }
        is_armed.store(count > 0, Ordering::Relaxed);
        self.0 = Some(Client { is_armed, found, feed, seen: 0, count, as_text });
        Some(Ok(()))
    }

    /// Shows a packet that was traced, if there is one. `None` if a worker has ended.
    pub(super) fn show(&mut self, operator: &mut dyn Operator, workers: &[Mailbox]) -> Option<()> {
        let Some(client) = &mut self.0 else { return Some(()) };
        let mut is_over = client.feed.is_over() || client.seen >= client.count;
        if let Ok(found) = client.found.try_recv() {
            client.seen += 1;
            let used = found.as_ref().map_or(0, |traced| traced.worker.unwrap_or(0));
            let shown = found.and_then(|one| operator.traced(client.seen, one, client.as_text));
            is_over |= shown.is_err() || client.seen >= client.count;
            let line: Value = shown.unwrap_or_else(|why| json!({ "error": why }));
            client.feed.text(line.to_string());
            if !is_over && let Some(worker) = workers.get(usize::from(used)) {
                make_room(worker)?;
                client.is_armed.store(true, Ordering::Relaxed);
            }
        }
        if is_over {
            self.0 = None;
            for worker in workers {
                worker.ask(|worker| worker.sink.watch.trace = None)?;
            }
        }
        Some(())
    }
}
