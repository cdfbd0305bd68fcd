//! Requests: their JSON form.

use super::feed::{Feed, Reader, feed};
use serde_json::{Map, Value};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// The largest number of entries of a page of state, and the number that a page has if the request
/// does not say.
pub(crate) const MOST_ENTRIES: usize = 1_000;
const ENTRIES: usize = 100;

/// The longest time for which a run drains, and the time if the request does not say (ms).
const MOST_DRAIN_MS: usize = 3_600_000;
const DRAIN_MS: usize = 10_000;

/// The longest condition on packets (bytes).
const LONGEST_FILTER: usize = 1_000;

/// The most packets that a client can trace, and the most state entries that are copied for each of
/// them if the request does not say.
const MOST_TRACES: usize = 1_000;
const TRACE_ENTRIES: usize = 100_000;

/// A request of a client.
pub(crate) enum Request {
    /// The status of the run.
    Status,
    /// The counters, as at the end of a run: as text for people, or as JSON.
    Counters {
        /// As text.
        text: bool,
    },
    /// A page of the state entries.
    State(Page),
    /// A page of flow records.
    Flows(FlowsWanted),
    /// Changes of configuration to make now, in the form of a control file without times.
    Change(String),
    /// All events from now on, one JSON line each.
    Events(Feed),
    /// Copies of the packets at an interface or a function, one JSON line each.
    Capture(Capture),
    /// The paths of packets, one JSON line each.
    Trace(TraceWanted),
    /// The chain, loaded again.
    Reload {
        /// Only report what would move.
        plan: bool,
    },
    /// The end of the run as soon as no packet waits in it. No further packet enters.
    Drain {
        /// The end comes after this time at the latest.
        within: Duration,
    },
    /// The end of the run.
    Stop,
}

/// Copies of the packets at an interface or a function.
pub(crate) struct Capture {
    /// The name of the interface or the function.
    pub(crate) point: String,
    /// Packets that enter there.
    pub(crate) enters: bool,
    /// Packets that leave there.
    pub(crate) leaves: bool,
    /// Only packets for which this condition holds.
    pub(crate) filter: Option<String>,
    pub(crate) feed: Feed,
}

/// A request for the paths of packets.
pub(crate) struct TraceWanted {
    /// Only packets for which this condition holds.
    pub(crate) filter: Option<String>,
    /// The number of packets.
    pub(crate) count: u64,
    /// The most state entries that a chain may have, because they are copied for each packet.
    pub(crate) most_entries: u64,
    /// As text instead of JSON.
    pub(crate) text: bool,
    pub(crate) feed: Feed,
}

/// Some of a worker's flow records.
pub(crate) struct FlowsWanted {
    /// The worker, by number.
    pub(crate) worker: usize,
    /// Only records whose JSON contains this text.
    pub(crate) contains: Option<String>,
    /// The place at which to begin, from an earlier answer.
    pub(crate) from: usize,
    /// The largest number of records to look at, at least 1.
    pub(crate) limit: usize,
    /// As text for people.
    pub(crate) text: bool,
}

/// Some of the state entries.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Page {
    /// Only entries of this function.
    pub(crate) function: Option<String>,
    /// Only entries of this table.
    pub(crate) table: Option<String>,
    /// Only entries whose JSON line contains this text.
    pub(crate) contains: Option<String>,
    /// The number of such entries to leave out.
    pub(crate) from: usize,
    /// The largest number of entries, at least 1: pages without entries would never end.
    pub(crate) limit: usize,
}

/// A request with the channel for its answer.
pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) answer: SyncSender<Value>,
}

/// Reads a request. If its answer is followed by a feed, sets `reader` to the client's end.
pub(crate) fn parse(line: &str, reader: &mut Option<Reader>) -> Result<Request, String> {
    let value: Value =
        serde_json::from_str(line).map_err(|why| format!("the request is not JSON: {why}"))?;
    let given = Given(value.as_object().ok_or("the request is no JSON object")?);
    let word = given.text("do")?.ok_or("the request lacks `do`")?;
    let mut feed = |most| {
        let (feed, client) = feed(most);
        *reader = Some(client);
        feed
    };
    given.knows(match word.as_str() {
        "state" => &["do", "function", "table", "contains", "from", "limit"],
        "change" => &["do", "change"],
        "counters" => &["do", "text"],
        "reload" => &["do", "plan"],
        "capture" => &["do", "point", "way", "filter", "count"],
        "trace" => &["do", "filter", "count", "most_entries", "text"],
        "drain" => &["do", "within_ms"],
        "flows" => &["do", "worker", "contains", "from", "limit", "text"],
        _ => &["do"],
    })?;
    Ok(match word.as_str() {
        "status" => Request::Status,
        "counters" => Request::Counters { text: given.flag("text")? },
        "state" => Request::State(given.page()?),
        "change" => Request::Change(given.text("change")?.ok_or("the request lacks `change`")?),
        "reload" => Request::Reload { plan: given.flag("plan")? },
        "events" => Request::Events(feed(u64::MAX)),
        "capture" => Request::Capture(given.capture(feed)?),
        "trace" => Request::Trace(TraceWanted {
            filter: given.filter()?,
            count: given.number("count", 1)?.min(MOST_TRACES) as u64,
            most_entries: given.number("most_entries", TRACE_ENTRIES)? as u64,
            text: given.flag("text")?,
            feed: feed(u64::MAX),
        }),
        "drain" => {
            let ms = given.number("within_ms", DRAIN_MS)?.min(MOST_DRAIN_MS) as u64;
            Request::Drain { within: Duration::from_millis(ms) }
        }
        "flows" => Request::Flows(FlowsWanted {
            worker: given.number("worker", 0)?,
            contains: given.text("contains")?,
            from: given.number("from", 0)?,
            limit: given.number("limit", ENTRIES)?.clamp(1, MOST_ENTRIES),
            text: given.flag("text")?,
        }),
        "stop" => Request::Stop,
        other => {
            let known = "status, counters, state, flows, change, events, capture, trace, reload, drain, \
                 stop";
            return Err(format!("there is no `{other}`; known are {known}"));
        }
    })
}

/// The members of a request. A member that is null counts as not given.
struct Given<'r>(&'r Map<String, Value>);

impl Given<'_> {
    fn knows(&self, keys: &[&str]) -> Result<(), String> {
        match self.0.keys().find(|key| !keys.contains(&&***key)) {
            Some(key) => Err(format!("`{key}` is not known; known are {}", keys.join(", "))),
            None => Ok(()),
        }
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("`{key}` is no text")),
        }
    }

    fn number(&self, key: &str, default: usize) -> Result<usize, String> {
        let Some(value) = self.get(key) else { return Ok(default) };
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| format!("`{key}` is not a whole number"))
    }

    fn flag(&self, key: &str) -> Result<bool, String> {
        let Some(value) = self.get(key) else { return Ok(false) };
        value.as_bool().ok_or_else(|| format!("`{key}` is neither true nor false"))
    }

    fn filter(&self) -> Result<Option<String>, String> {
        match self.text("filter")? {
            Some(filter) if filter.len() > LONGEST_FILTER => {
                Err(format!("a filter has at most {LONGEST_FILTER} bytes"))
            }
            filter => Ok(filter),
        }
    }

    fn page(&self) -> Result<Page, String> {
        Ok(Page {
            function: self.text("function")?,
            table: self.text("table")?,
            contains: self.text("contains")?,
            from: self.number("from", 0)?,
            limit: self.number("limit", ENTRIES)?.clamp(1, MOST_ENTRIES),
        })
    }

    fn capture(&self, feed: impl FnOnce(u64) -> Feed) -> Result<Capture, String> {
        let (enters, leaves) = match self.text("way")?.as_deref() {
            None => (true, true),
            Some("in") => (true, false),
            Some("out") => (false, true),
            Some(other) => {
                return Err(format!("a packet's way is `in` or `out`, and not `{other}`"));
            }
        };
        let point = self.text("point")?.ok_or("the request lacks `point`")?;
        let (filter, count) = (self.filter()?, self.number("count", usize::MAX)?);
        Ok(Capture { point, enters, leaves, filter, feed: feed(count as u64) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(line: &str) -> Result<Request, String> {
        parse(line, &mut None)
    }

    #[test]
    fn page_has_limits() {
        let page = |line| match read(line) {
            Ok(Request::State(page)) => page,
            _ => panic!("{line}"),
        };
        let all = Page { limit: ENTRIES, ..Page::default() };
        assert_eq!(page(r#"{"do":"state"}"#), all);
        let some = Page { function: Some("nat".into()), from: 5, limit: MOST_ENTRIES, ..all };
        let line = r#"{"do":"state","function":"nat","from":5,"limit":99999999,"table":null}"#;
        assert_eq!(page(line), some);
        assert_eq!(page(r#"{"do":"state","limit":0}"#).limit, 1);
    }

    /// A value of a member: of the right kind, of another kind, or beyond its limit.
    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,40}".prop_map(Value::from),
            (LONGEST_FILTER..2 * LONGEST_FILTER).prop_map(|long| "x".repeat(long).into()),
            prop::collection::vec(any::<u8>(), 0..4).prop_map(Value::from),
        ]
    }

    /// The parts of a request that exceed its limits.
    fn beyond(request: &Request) -> bool {
        let is_long = |filter: &Option<String>| {
            filter.as_ref().is_some_and(|filter| filter.len() > LONGEST_FILTER)
        };
        match request {
            Request::State(page) => page.limit > MOST_ENTRIES,
            Request::Drain { within } => within.as_millis() > MOST_DRAIN_MS as u128,
            Request::Trace(wanted) => wanted.count > MOST_TRACES as u64 || is_long(&wanted.filter),
            Request::Capture(wanted) => is_long(&wanted.filter),
            _ => false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

        #[test]
        fn any_line_is_an_error_or_a_request_within_its_limits(line in ".{0,200}") {
            prop_assert!(!read(&line).is_ok_and(|request| beyond(&request)));
        }

        #[test]
        fn any_members_are_an_error_or_a_request_within_its_limits(
            verb in "status|counters|state|change|events|capture|trace|reload|drain|stop|other",
            members in prop::collection::btree_map(
                "text|function|table|contains|from|limit|change|plan|point|way|filter|count\
                 |most_entries|within_ms|other",
                value(),
                0..3,
            ),
        ) {
            let mut object: Map<String, Value> = members.into_iter().collect();
            object.insert("do".into(), verb.into());
            prop_assert!(!read(&Value::from(object).to_string()).is_ok_and(|one| beyond(&one)));
        }
    }

    #[test]
    fn what_is_wrong_with_a_request_is_said() {
        for (line, why) in [
            ("", "is not JSON"),
            ("[1]", "no JSON object"),
            ("{}", "lacks `do`"),
            (r#"{"do":1}"#, "`do` is no text"),
            (r#"{"do":"dance"}"#, "there is no `dance`; known are status"),
            (r#"{"do":"status","x":1}"#, "`x` is not known; known are do"),
            (r#"{"do":"state","from":-1}"#, "`from` is not a whole number"),
            (r#"{"do":"counters","text":1}"#, "`text` is neither true nor false"),
            (r#"{"do":"capture"}"#, "lacks `point`"),
            (r#"{"do":"capture","point":"lan","way":"up"}"#, "is `in` or `out`, and not `up`"),
            (r#"{"do":"trace","count":"all"}"#, "`count` is not a whole number"),
            (r#"{"do":"change"}"#, "lacks `change`"),
            (r#"{"do":"change","change":["a"]}"#, "`change` is no text"),
            (r#"{"do":"reload","plan":"yes"}"#, "`plan` is neither true nor false"),
        ] {
            let said = read(line).err().unwrap_or_default();
            assert!(said.contains(why), "{line}: {said}");
        }
    }
}
