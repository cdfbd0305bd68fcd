//! Requests: their JSON form.

use serde_json::Value;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// The largest number of entries of a page of state, and the number that a page has if the request
/// does not say.
pub(crate) const MOST_ENTRIES: usize = 1_000;
const ENTRIES: usize = 100;

/// The longest time for which a run drains, and the time if the request does not say (ms).
const MOST_DRAIN_MS: usize = 3_600_000;
const DRAIN_MS: usize = 10_000;

/// What a client wants.
pub(crate) enum Request {
    /// How the run is.
    Status,
    /// The counters, as at the end of a run: as text for people, or as JSON.
    Counters {
        /// As text.
        text: bool,
    },
    /// A page of the state entries.
    State(Page),
    /// Changes of configuration, to be made now, as a control file has them without times.
    Change(String),
    /// All events from now on, one JSON line each.
    Events(SyncSender<String>),
    /// The chain, loaded again.
    Reload {
        /// Only say what would move.
        plan: bool,
    },
    /// The end of the run as soon as no packet waits in it any more. No further packet enters.
    Drain {
        /// The end comes after this time at the latest.
        within: Duration,
    },
    /// The end of the run.
    Stop,
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
    /// The largest number of entries.
    pub(crate) limit: usize,
}

/// A request with the way back for its answer.
pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) answer: SyncSender<Value>,
}

/// Reads a request. `events` makes the receiver's end of a stream of events.
pub(crate) fn parse(
    line: &str,
    events: impl FnOnce() -> SyncSender<String>,
) -> Result<Request, String> {
    let value: Value =
        serde_json::from_str(line).map_err(|why| format!("the request is no JSON: {why}"))?;
    let object = value.as_object().ok_or("the request is no JSON object")?;
    let text = |key: &str| match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{key}` is no text")),
    };
    let number = |key: &str, default: usize| match object.get(key) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => value
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
            .ok_or_else(|| format!("`{key}` is no whole number")),
    };
    let flag = |key: &str| match object.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(value) => value.as_bool().ok_or_else(|| format!("`{key}` is neither true nor false")),
    };
    let known = |allowed: &[&str]| match object.keys().find(|key| !allowed.contains(&&***key)) {
        Some(key) => Err(format!("`{key}` is not known; known are {}", allowed.join(", "))),
        None => Ok(()),
    };
    let word = text("do")?.ok_or("the request lacks `do`")?;
    match word.as_str() {
        "state" => known(&["do", "function", "table", "contains", "from", "limit"])?,
        "change" => known(&["do", "change"])?,
        "counters" => known(&["do", "text"])?,
        "reload" => known(&["do", "plan"])?,
        "drain" => known(&["do", "within_ms"])?,
        _ => known(&["do"])?,
    }
    Ok(match word.as_str() {
        "status" => Request::Status,
        "counters" => Request::Counters { text: flag("text")? },
        "state" => Request::State(Page {
            function: text("function")?,
            table: text("table")?,
            contains: text("contains")?,
            from: number("from", 0)?,
            limit: number("limit", ENTRIES)?.min(MOST_ENTRIES),
        }),
        "change" => Request::Change(text("change")?.ok_or("the request lacks `change`")?),
        "reload" => Request::Reload { plan: flag("plan")? },
        "events" => Request::Events(events()),
        "drain" => {
            let ms = number("within_ms", DRAIN_MS)?.min(MOST_DRAIN_MS) as u64;
            Request::Drain { within: Duration::from_millis(ms) }
        }
        "stop" => Request::Stop,
        other => {
            let known = "status, counters, state, change, events, reload, drain, stop";
            return Err(format!("there is no `{other}`; known are {known}"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    fn read(line: &str) -> Result<Request, String> {
        parse(line, || sync_channel(1).0)
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
    }

    #[test]
    fn what_is_wrong_with_a_request_is_said() {
        for (line, why) in [
            ("", "is no JSON"),
            ("[1]", "no JSON object"),
            ("{}", "lacks `do`"),
            (r#"{"do":1}"#, "`do` is no text"),
            (r#"{"do":"dance"}"#, "there is no `dance`; known are status"),
            (r#"{"do":"status","x":1}"#, "`x` is not known; known are do"),
            (r#"{"do":"state","from":-1}"#, "`from` is no whole number"),
            (r#"{"do":"counters","text":1}"#, "`text` is neither true nor false"),
            (r#"{"do":"change"}"#, "lacks `change`"),
            (r#"{"do":"change","change":["a"]}"#, "`change` is no text"),
            (r#"{"do":"reload","plan":"yes"}"#, "`plan` is neither true nor false"),
        ] {
            let said = read(line).err().unwrap_or_default();
            assert!(said.contains(why), "{line}: {said}");
        }
    }
}
