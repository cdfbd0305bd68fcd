//! The parts of messages, as tests compare them.

use braid_http::{Http, Line, Part};

/// What a direction has given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    /// The method, the target, the host and the field Content-Length.
    Request(String, String, Option<String>, Option<u64>),
    /// The status and the field Content-Length.
    Response(u16, Option<u64>),
    /// Data of a body, all that has come without anything between.
    Data(Vec<u8>),
    End,
    Malformed,
    Crowded,
}

/// Gives bytes of an end, and adds what they bring.
pub fn feed(http: &mut Http, from_client: bool, mut bytes: &[u8], seen: &mut Vec<Seen>) {
    while let Some(part) = http.next(from_client, &mut bytes) {
        match part {
            Part::Head(head) => {
                let length = head.content_length().unwrap_or(None);
                let host = head.host().map(|host| String::from_utf8_lossy(&host).into_owned());
                seen.push(match head.line {
                    Line::Request { method, target } => {
                        Seen::Request(method.to_owned(), target.to_owned(), host, length)
                    }
                    Line::Response { code, .. } => Seen::Response(code, length),
                });
            }
            Part::Body(data, true) => match seen.last_mut() {
                Some(Seen::Data(before)) => before.extend(data),
                _ => seen.push(Seen::Data(data.to_vec())),
            },
            Part::Body(_, false) => {}
            Part::End => seen.push(Seen::End),
            Part::Malformed => seen.push(Seen::Malformed),
            Part::Crowded => seen.push(Seen::Crowded),
        }
    }
    assert!(bytes.is_empty(), "all bytes are taken");
}

/// The same HTTP after it was written and read.
#[allow(dead_code, reason = "not all tests use it")]
pub fn moved(http: &Http) -> Http {
    let mut bytes = Vec::new();
    http.put(&mut bytes);
    let from = &mut bytes.as_slice();
    let read = Http::read(from).expect("whole");
    assert!(from.is_empty(), "all bytes are read");
    assert_eq!(&read, http);
    read
}
