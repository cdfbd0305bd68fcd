//! Messages on the wire: headers with the length of a message, then the message in JSON.
//!
//! The length comes from the other side, so nothing is allocated for it in advance.

use std::io::{self, BufRead, Read as _, Write};

use serde_json::Value;

/// The longest message in bytes.
const MOST_BYTES: u64 = 32 << 20;
/// The longest line of a header, and the most lines.
const MOST_LINE: u64 = 4096;
const MOST_LINES: usize = 32;

/// A message that was read.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    /// A message in JSON.
    Message(Value),
    /// A message that is not JSON, and the reason. The next message can be read nevertheless.
    NotJson(String),
}

/// Why no further message can be read.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The system's error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Headers that cannot be understood.
    #[error("expected the header Content-Length with a number, found {0:?}")]
    Header(String),
    /// There is no length before the empty line.
    #[error("a message has no header Content-Length")]
    NoLength,
    /// The message is too long.
    #[error("a message of {0} bytes is longer than {most} bytes", most = MOST_BYTES)]
    TooLong(u64),
    /// The input ends within a message.
    #[error("the input ends within a message")]
    Cut,
}

/// Reads a message. `None` at the end of the input.
///
/// # Errors
/// The input does not follow the protocol, so the next message cannot be found.
pub fn read(input: &mut impl BufRead) -> Result<Option<Incoming>, WireError> {
    let Some(len) = headers(input)? else { return Ok(None) };
    if len > MOST_BYTES {
        return Err(WireError::TooLong(len));
    }
    let mut body = Vec::new();
    input.take(len).read_to_end(&mut body)?;
    if body.len() as u64 != len {
        return Err(WireError::Cut);
    }
    Ok(Some(match serde_json::from_slice(&body) {
        Ok(value) => Incoming::Message(value),
        Err(why) => Incoming::NotJson(why.to_string()),
    }))
}

/// Reads headers up to the empty line. Returns the length of the message.
fn headers(input: &mut impl BufRead) -> Result<Option<u64>, WireError> {
    let mut len = None;
    for number in 0..MOST_LINES {
        let mut line = Vec::new();
        input.by_ref().take(MOST_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() && number == 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            return Err(WireError::Cut);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            return len.map(Some).ok_or(WireError::NoLength);
        }
        let wrong = || WireError::Header(line.chars().take(80).collect());
        let (name, value) = line.split_once(':').ok_or_else(wrong)?;
        if name.eq_ignore_ascii_case("Content-Length") {
            len = Some(value.trim().parse().map_err(|_| wrong())?);
        }
    }
    Err(WireError::NoLength)
}

/// Writes a message.
///
/// # Errors
/// The system's error.
pub fn write(output: &mut impl Write, message: &Value) -> io::Result<()> {
    let body = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn all(mut input: &[u8]) -> (Vec<Incoming>, Option<String>) {
        let mut found = Vec::new();
        loop {
            match read(&mut input) {
                Ok(Some(incoming)) => found.push(incoming),
                Ok(None) => return (found, None),
                Err(why) => return (found, Some(why.to_string())),
            }
        }
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        for message in [json!({ "a": "ü" }), json!([1])] {
            write(&mut bytes, &message).unwrap();
        }
        let expected = vec![Incoming::Message(json!({ "a": "ü" })), Incoming::Message(json!([1]))];
        assert_eq!(all(&bytes), (expected, None));
    }

    #[test]
    fn message_that_is_not_json_does_not_end_the_reading() {
        let (found, why) = all(b"Content-Length: 2\r\n\r\n{]content-length:1\nX: y\n\n1");
        assert!(matches!(&found[..], [Incoming::NotJson(_), Incoming::Message(_)]), "{found:?}");
        assert_eq!(why, None);
        let deep = "[".repeat(100_000);
        let (found, _) = all(format!("Content-Length: {}\n\n{deep}", deep.len()).as_bytes());
        assert!(matches!(&found[..], [Incoming::NotJson(_)]));
    }

    #[test]
    fn wrong_headers_end_the_reading() {
        let long = "x".repeat(5000);
        for (input, why) in [
            ("hello\r\n\r\n".to_owned(), "Content-Length with a number"),
            ("Content-Length: -1\r\n\r\n".to_owned(), "Content-Length with a number"),
            ("Content-Length: 1e9\r\n\r\n".to_owned(), "Content-Length with a number"),
            ("Content-Length: 99999999999999999\r\n\r\n".to_owned(), "is longer than"),
            ("Content-Length: 99999999999999999999\r\n\r\n".to_owned(), "with a number"),
            ("X: y\r\n\r\n{}".to_owned(), "has no header"),
            ("Content-Length: 10\r\n\r\n{}".to_owned(), "ends within"),
            ("Content-Length: 10".to_owned(), "ends within"),
            (format!("X: {long}"), "ends within"),
            ("X: y\n".repeat(100), "has no header"),
        ] {
            let (found, error) = all(input.as_bytes());
            assert!(found.is_empty());
            assert!(error.is_some_and(|error| error.contains(why)), "{input:.40}");
        }
    }
}
