//! What Braid and an isolated function's process say to each other beside packets: a text in JSON,
//! and bytes behind it.

use crate::description::Description;
use crate::dump::Entry;
use crate::load_error::LoadError;
use crate::output::Output;
use crate::part::Part;
use crate::value::{Config, Value};
use braid_ir::native::{Checks, Noted, Profile};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// The most bytes of a large message's text, and of the bytes behind it.
const MOST: u32 = 1 << 28;
/// The most bytes of a small message.
const FEW: u32 = 1 << 20;
/// The limits of a message that may be large.
pub(super) const LARGE: [u32; 2] = [MOST; 2];

/// What Braid asks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// The description of a library's function.
    Describe { library: String, function: String },
    /// To make the instance.
    Create { job: Job, config: Config },
    /// The state that it shows.
    Report,
    /// Its problems.
    Problems,
    /// The actions that were observed.
    Observed,
    /// The number of timer firings that were skipped.
    TimersSkipped,
    /// What it has published.
    Outputs,
    /// To take a parameter's new value.
    Change { name: String, value: Value },
    /// Its memory. The bytes come behind the answer.
    Save,
    /// To go on from the bytes behind this request.
    Restore,
}

impl Request {
    /// The most bytes of the answer's text, and of the bytes behind it.
    pub(super) fn limits(&self) -> [u32; 2] {
        match self {
            Request::Report | Request::Outputs => [MOST, 0],
            Request::Save => [FEW, MOST],
            _ => [FEW, 0],
        }
    }
}

/// Which function an instance runs, and where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) library: String,
    pub(super) function: String,
    pub(super) part: Part,
    pub(super) node: String,
    pub(super) checks: Checks,
}

/// What the process answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Description(Box<Result<Description, LoadError>>),
    Done(Result<(), String>),
    Report(Vec<Entry>),
    Problems(Vec<Noted>),
    Observed(Profile),
    Count(u64),
    Outputs(Vec<Output>),
    /// Whether the function could save its memory.
    Saved(bool),
}

/// Sends a message.
pub(super) fn send<T: Serialize>(to: &mut impl Write, what: &T, bytes: &[u8]) -> io::Result<()> {
    let text = serde_json::to_vec(what)?;
    let length = |bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= MOST);
        length.ok_or_else(|| io::Error::other(format!("a message of more than {MOST} bytes")))
    };
    let (text_length, bytes_length) = (length(&text)?, length(bytes)?);
    let mut all = Vec::with_capacity(8 + text.len() + bytes.len());
    all.extend_from_slice(&text_length.to_le_bytes());
    all.extend_from_slice(&bytes_length.to_le_bytes());
    all.extend_from_slice(&text);
    all.extend_from_slice(bytes);
    to.write_all(&all)
}

/// Receives a message of at most these numbers of bytes. Memory grows with the bytes that come.
pub(super) fn receive<T: DeserializeOwned>(
    from: &mut impl Read,
    limits: [u32; 2],
) -> io::Result<(T, Vec<u8>)> {
    let mut head = [0; 8];
    from.read_exact(&mut head)?;
    let [a, b, c, d, e, f, g, h] = head;
    let [text, bytes] = [[a, b, c, d], [e, f, g, h]].map(u32::from_le_bytes);
    let [most_text, most_bytes] = limits;
    if text > most_text || bytes > most_bytes {
        return Err(io::Error::other(format!("a message says that it has {text} + {bytes} bytes")));
    }
    let text = part(from, text)?;
    Ok((serde_json::from_slice(&text)?, part(from, bytes)?))
}

/// Receives a part of a message.
fn part(from: &mut impl Read, length: u32) -> io::Result<Vec<u8>> {
    let mut part = Vec::new();
    let got = from.take(length.into()).read_to_end(&mut part)?;
    match got == length as usize {
        true => Ok(part),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, LARGE, MOST, Request, receive, send};
    use crate::value::Value;

    #[test]
    fn messages_are_read_as_they_are_sent() {
        let value =
            Value { rows: vec![vec![0, u128::MAX], vec![]], texts: vec![vec![0, 255, 10], vec![]] };
        let sent = Request::Change { name: "größe \"\n".to_owned(), value };
        let mut wire = Vec::new();
        send(&mut wire, &sent, &[1, 2, 3]).unwrap();
        send(&mut wire, &Answer::Saved(true), &[]).unwrap();
        let mut from = &wire[..];
        let (got, bytes): (Request, _) = receive(&mut from, LARGE).unwrap();
        assert_eq!((format!("{got:?}"), bytes), (format!("{sent:?}"), vec![1, 2, 3]));
        let (got, bytes): (Answer, _) = receive(&mut from, LARGE).unwrap();
        assert!(matches!(got, Answer::Saved(true)) && bytes.is_empty() && from.is_empty());
    }

    #[test]
    fn wrong_messages_are_refused() {
        let mut wire = Vec::new();
        send(&mut wire, &Answer::Saved(true), &[1, 2, 3]).unwrap();
        for length in 0..wire.len() {
            assert!(receive::<Answer>(&mut &wire[..length], LARGE).is_err(), "{length}");
        }
        let long = [&(MOST + 1).to_le_bytes()[..], &[0; 100]].concat();
        assert!(receive::<Answer>(&mut &long[..], LARGE).is_err());
        assert!(receive::<Answer>(&mut &wire[..], [100, 3]).is_ok());
        assert!(receive::<Answer>(&mut &wire[..], [100, 2]).is_err());
        wire[9] = b'?';
        assert!(receive::<Answer>(&mut &wire[..], LARGE).is_err());
    }
}
