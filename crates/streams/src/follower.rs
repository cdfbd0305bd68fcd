//! What a stack keeps of a connection for one function.

use crate::function::Function;
use crate::http::{Given, Messages};
use crate::inspections::{Inspected, Inspections, Run};
use crate::program::{End, Matches, View};
use braid_externs::patterns::Scan;
use braid_ir::model::{ReasonId, StreamEvent};
use braid_ir::value::ParamValue;
use braid_packet::FlowKey;
use braid_tcp::{Direction, Pair};
use smallvec::SmallVec;

/// The next bytes of a stream.
pub struct Data<'a> {
    /// The client's flow.
    pub flow: FlowKey,
    pub direction: Direction,
    pub offset: u64,
    pub bytes: &'a [u8],
}

/// How a function takes part in a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Part {
    /// It does not know of the connection yet.
    #[default]
    New,
    /// It takes the connection's events.
    Follows,
    /// The connection is over.
    Over,
    /// The function has given up its events.
    Left,
    /// It has reset the connection.
    Reset(ReasonId),
}

/// Searches for the patterns of parameters. Most functions have one parameter with patterns.
pub type Scans = SmallVec<[Scan; 1]>;

/// What a stack keeps of a connection for one function.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    pub part: Part,
    /// For each direction and each parameter whose patterns are searched: how far the search is.
    pub scans: Pair<Scans>,
    /// The inspections by signatures.
    pub inspections: Inspections,
    /// The HTTP messages, if the function has programs for them.
    pub http: Option<Box<Messages>>,
    /// The number of changes of these parameters that the searches know of.
    pub changes: u64,
}

impl Follower {
    /// The function learns of the connection.
    pub fn open(&mut self, flow: FlowKey, run: &mut Run<'_>) {
        self.part = Part::Follows;
        self.ended(run(&View::of(StreamEvent::Open, flow)));
    }

    /// The next bytes of a direction have come. Signatures inspect them, and they are searched for
    /// the patterns of some parameters. After a change of such a parameter, the searches begin
    /// anew.
    pub fn data(
        &mut self,
        data: &Data<'_>,
        function: &Function,
        matches: &mut Matches,
        inspected: &mut Inspected<'_>,
        run: &mut Run<'_>,
    ) {
        if self.part != Part::Follows {
            return;
        }
        self.learn(function.changes);
        let (event, flow) = match data.direction {
            Direction::Forward => (StreamEvent::Client, data.flow),
            Direction::Backward => (StreamEvent::Server, data.flow.reversed()),
        };
        if !function.inspected.is_empty() {
            let (from_client, bytes) = (event == StreamEvent::Client, (data.offset, data.bytes));
            let end = self.inspections.data((flow, from_client), bytes, inspected, run);
            self.ended(end);
        }
        if self.part == Part::Follows && function.has_http() {
            let (from_client, now) = (event == StreamEvent::Client, inspected.now);
            let given = Given { flow, from_client, now, takes: function.takes };
            let messages = self.http.get_or_insert_default();
            let bytes = (data.offset, data.bytes);
            let end = messages.data(given, bytes, &mut inspected.missed.http, run);
            self.ended(end);
        }
        if self.part != Part::Follows || !function.events.contains(&event) {
            return;
        }
        let scans = self.scans.of_mut(data.direction);
        let mut first = Scan::default();
        if data.offset > 0 {
            first.skip();
        }
        scans.resize(function.scanned.len(), first);
        matches.clear();
        matches.extend(function.scanned.iter().zip(scans).map(|(param, state)| {
            let found = match inspected.params.get(param.index()) {
                Some(ParamValue::Patterns(set)) => set.scan(state, data.bytes),
                _ => None,
            };
            (*param, found)
        }));
        let Data { offset, bytes, .. } = *data;
        self.ended(run(&View { bytes, offset, matches, ..View::of(event, flow) }));
    }

    /// Searches begin anew if their parameters have changed.
    pub fn learn(&mut self, changes: u64) {
        if self.changes != changes {
            (self.scans, self.changes) = (Pair::default(), changes);
            self.inspections.changed();
        }
    }

    /// The searches begin anew. HTTP is not parsed any more.
    pub fn search_anew(&mut self) {
        self.scans = Pair::default();
        self.inspections = Inspections::default();
        self.http = None;
    }

    /// Its memory (bytes).
    pub fn memory(&self) -> usize {
        let memory = |scans: &Scans| {
            let spilled = if scans.spilled() { scans.capacity() * size_of::<Scan>() } else { 0 };
            spilled + scans.iter().map(Scan::memory).sum::<usize>()
        };
        let scans = memory(&self.scans.forward) + memory(&self.scans.backward);
        let http = self.http.as_ref().map_or(0, |http| http.memory());
        size_of::<Self>() + self.inspections.memory() + scans + http
    }

    /// Bytes of a direction are missing.
    pub fn skip(&mut self, direction: Direction) {
        self.scans.of_mut(direction).iter_mut().for_each(Scan::skip);
    }

    /// The connection is over.
    pub fn close(&mut self, flow: FlowKey, inspected: &mut Inspected<'_>, run: &mut Run<'_>) {
        if self.part == Part::Follows {
            self.part = Part::Over;
            self.learn(inspected.changes);
            self.inspections.close(flow, inspected, run);
            self.search_anew();
            run(&View::of(StreamEvent::Close, flow));
        }
    }

    /// A program has ended.
    pub fn ended(&mut self, end: End) {
        match end {
            End::Forward => return,
            End::Bypass => self.part = Part::Left,
            End::Reset(reason) => self.part = Part::Reset(reason),
            End::Resume => {
                if self.part == Part::Left {
                    self.part = Part::Follows;
                }
                return;
            }
        }
        self.search_anew();
    }
}
