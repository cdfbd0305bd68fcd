//! The HTTP messages of a connection for one function, and the programs that run for them.

use crate::program::{End, MAX_TEXT, Message, Request, View};
use braid_http::limits::MAX_PIPELINED;
use braid_http::wire::{list, number, read_bool, read_list, read_number};
use braid_http::{Head, Http, Line, Part};
use braid_ir::model::StreamEvent;
use braid_packet::FlowKey;
use std::collections::VecDeque;

/// What functions have missed of HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HttpCounts {
    /// Directions whose bytes behind missing ones are not parsed.
    pub gaps: u64,
    /// Directions that ended at a malformed message.
    pub malformed: u64,
    /// Connections whose responses are not parsed, because too many requests waited for them.
    pub crowded: u64,
}

/// What is kept of the HTTP messages of a connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Messages {
    http: Http,
    /// The requests that wait for their responses, if there is a program for these.
    asked: Asked,
    /// The offsets of the next bytes of the client and of the server.
    next: [u64; 2],
}

/// What a direction's bytes are for: the flow from their sender, whether that is the client, the
/// time, and whether the function has programs for requests and for responses.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    pub flow: FlowKey,
    pub from_client: bool,
    pub now: u64,
    pub takes: [bool; 2],
}

/// Runs a program of the function.
type Run<'a> = dyn FnMut(&View<'_>) -> End + 'a;

impl Messages {
    /// The next bytes of an end have come, from this offset on. Runs a program for each head that
    /// is complete, until one of them gives up or resets the connection.
    pub fn data(
        &mut self,
        given: Given,
        (offset, mut bytes): (u64, &[u8]),
        counts: &mut HttpCounts,
        run: &mut Run<'_>,
    ) -> End {
        let Self { http, asked, next: [of_client, of_server] } = self;
        let next = if given.from_client { of_client } else { of_server };
        let missing = offset.saturating_sub(*next);
        if missing > 0 && !http.skip(given.from_client, missing) {
            counts.gaps += 1;
        }
        *next = offset.saturating_add(bytes.len() as u64);
        loop {
            asked.keep(http.waiting());
            let end = match http.next(given.from_client, &mut bytes) {
                None => return End::Forward,
                Some(Part::Head(head)) => asked.head(&head, given, run),
                Some(Part::Body(..) | Part::End) => continue,
                Some(Part::Malformed) => {
                    counts.malformed += 1;
                    continue;
                }
                Some(Part::Crowded) => {
                    counts.crowded += 1;
                    continue;
                }
            };
            if end != End::Forward {
                return end;
            }
        }
    }

    /// Its memory (bytes).
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.http.memory() + self.asked.memory()
    }

    /// The messages as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.next.iter().for_each(|next| number(*next, &mut out));
        self.http.put(&mut out);
        self.asked.put(&mut out);
        out
    }

    /// Reads the bytes for a function that has a program for responses or not. `None` if they are
    /// damaged.
    pub fn from_bytes(mut bytes: &[u8], takes_responses: bool) -> Option<Self> {
        let from = &mut bytes;
        let next = [read_number(from)?, read_number(from)?];
        let http = Http::read(from)?;
        let mut asked = Asked::read(from)?;
        match takes_responses {
            true => asked.fill(http.waiting())?,
            false => asked = Asked::default(),
        }
        from.is_empty().then_some(Self { http, asked, next })
    }
}

/// Requests that wait for their responses, the first one first. `None` stands for a request that is
/// not known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Asked {
    requests: VecDeque<Option<Box<Known>>>,
    /// The memory of the known ones (bytes).
    known: usize,
}

/// A request that waits for its response.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Known {
    time: u64,
    texts: [Box<[u8]>; 5],
}

impl Asked {
    /// A head is complete. Runs the program for it.
    fn head(&mut self, head: &Head<'_>, given: Given, run: &mut Run<'_>) -> End {
        let Given { flow, now, takes: [requests, responses], .. } = given;
        let length = head.content_length().ok().flatten();
        let content_length = if head.is_chunked() { None } else { length };
        match head.line {
            Line::Request { method, target } => {
                let (host, path) = (head.host().unwrap_or_default(), head.path());
                let agent = head.values("user-agent").next().unwrap_or_default();
                let path = path.as_deref().unwrap_or_default();
                let texts = [method.as_bytes(), target.as_bytes(), &host, path, agent];
                if responses {
                    let texts = texts.map(|text| text.get(..MAX_TEXT).unwrap_or(text).into());
                    self.push(Some(Box::new(Known { time: now, texts })));
                }
                if !requests {
                    return End::Forward;
                }
                let request = Some(Request { time: now, texts });
                let message = Message { request, status: 0, content_length };
                run(&View { http: Some(message), ..View::of(StreamEvent::Request, flow) })
            }
            Line::Response { code, .. } if responses => {
                let request = self.requests.front().and_then(|request| request.as_deref());
                let request = request.map(Known::request);
                let message = Message { request, status: code, content_length };
                run(&View { http: Some(message), ..View::of(StreamEvent::Response, flow) })
            }
            Line::Response { .. } => End::Forward,
        }
    }

    fn push(&mut self, request: Option<Box<Known>>) {
        self.known += request.as_deref().map_or(0, Known::memory);
        self.requests.push_back(request);
    }

    /// Keeps the last ones, this many at most.
    fn keep(&mut self, count: usize) {
        while self.requests.len() > count {
            let request = self.requests.pop_front().flatten();
            self.known -= request.as_deref().map_or(0, Known::memory);
        }
    }

    /// Adds unknown requests in front, up to this number. `None` if there are more already.
    fn fill(&mut self, count: usize) -> Option<()> {
        let missing = count.checked_sub(self.requests.len())?;
        (0..missing).for_each(|_| self.requests.push_front(None));
        Some(())
    }

    fn memory(&self) -> usize {
        self.requests.capacity() * size_of::<Option<Box<Known>>>() + self.known
    }

    fn put(&self, out: &mut Vec<u8>) {
        number(self.requests.len() as u64, out);
        for request in &self.requests {
            number(request.is_some().into(), out);
            if let Some(Known { time, texts }) = request.as_deref() {
                number(*time, out);
                texts.iter().for_each(|text| list(text, out));
            }
        }
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let count = read_number(from)?;
        if count > MAX_PIPELINED as u64 {
            return None;
        }
        let mut asked = Self::default();
        for _ in 0..count {
            let known = match read_bool(from)? {
                true => Some(Box::new(Known::read(from)?)),
                false => None,
            };
            asked.push(known);
        }
        Some(asked)
    }
}

impl Known {
    fn request(&self) -> Request<'_> {
        Request { time: self.time, texts: self.texts.each_ref().map(|text| &**text) }
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.texts.iter().map(|text| text.len()).sum::<usize>()
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let time = read_number(from)?;
        let mut texts: [Box<[u8]>; 5] = Default::default();
        for text in &mut texts {
            *text = read_list(from, MAX_TEXT)?.into();
        }
        Some(Self { time, texts })
    }
}

#[cfg(test)]
mod tests {
    use super::{Given, HttpCounts, Messages};
    use crate::program::{End, MAX_TEXT, View};
    use braid_http::limits::MAX_PIPELINED;
    use braid_ir::model::{StreamEvent, StreamField, StreamText};
    use braid_packet::FlowKey;

    /// The messages of a connection under test.
    #[derive(Default)]
    struct Test {
        messages: Messages,
        counts: HttpCounts,
        sent: [u64; 2],
        now: u64,
    }

    impl Test {
        /// Gives bytes behind this number of missing ones. Returns what programs see: the path, the
        /// status, and the request's time.
        fn gives(&mut self, from_client: bool, missing: u64, bytes: &[u8]) -> Vec<String> {
            let mut seen = Vec::new();
            let sent = &mut self.sent[usize::from(!from_client)];
            let offset = *sent + missing;
            *sent = offset + bytes.len() as u64;
            self.now += 1;
            let flow = FlowKey { version: 4, src: 1, dst: 2, proto: 6, sport: 3, dport: 80 };
            let given = Given { flow, from_client, now: self.now, takes: [true; 2] };
            let mut run = |view: &View<'_>| {
                assert_eq!(view.event == StreamEvent::Request, from_client);
                let path = String::from_utf8_lossy(view.text(StreamText::Path)).into_owned();
                let [status, time] =
                    [StreamField::Status, StreamField::RequestTime].map(|field| view.number(field));
                seen.push(format!("{path} {status} {time}"));
                if path == "/end" { End::Bypass } else { End::Forward }
            };
            let end = self.messages.data(given, (offset, bytes), &mut self.counts, &mut run);
            assert_eq!(
                end == End::Bypass,
                seen.last().is_some_and(|last| last.starts_with("/end"))
            );
            seen
        }

        fn moved(&mut self) {
            let read = Messages::from_bytes(&self.messages.to_bytes(), true).expect("whole");
            assert_eq!(read, self.messages);
            self.messages = read;
        }
    }

    const OK: &[u8] = b"HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n";

    #[test]
    fn responses_know_their_requests() {
        let mut test = Test::default();
        assert_eq!(test.gives(false, 0, OK), [" 200 0"]);
        let empty = test.messages.memory();
        let both = b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\nGET /";
        assert_eq!(test.gives(true, 0, both), ["/a 0 2", "/b 0 2"]);
        assert!(test.messages.memory() > empty);
        test.moved();
        assert_eq!(test.gives(true, 0, b"c HTTP/1.1\r\n\r\n"), ["/c 0 3"]);
        assert_eq!(test.gives(false, 0, b"HTTP/1.1 100 x\r\n\r\n"), ["/a 100 2"]);
        test.moved();
        let three = [OK, OK, OK].concat();
        assert_eq!(test.gives(false, 0, &three), ["/a 200 2", "/b 200 2", "/c 200 3"]);
        test.moved();
        assert_eq!(test.messages.asked.known, 0);
        assert_eq!(test.counts, HttpCounts::default());
    }

    #[test]
    fn program_that_gives_up_sees_no_later_head_of_the_same_bytes() {
        let bytes = b"GET /a HTTP/1.1\r\n\r\nGET /end HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n";
        assert_eq!(Test::default().gives(true, 0, bytes), ["/a 0 1", "/end 0 1"]);
    }

    #[test]
    fn missing_bytes_and_malformed_heads_are_counted_once() {
        let mut test = Test::default();
        let post = b"POST /a HTTP/1.1\r\nContent-Length: 9\r\n\r\n12";
        assert_eq!(test.gives(true, 0, post), ["/a 0 1"]);
        assert_eq!(test.gives(true, 7, b"GET /b HTTP/1.1\r\n\r\n"), ["/b 0 2"]);
        assert_eq!(test.counts, HttpCounts::default());
        for _ in 0..2 {
            assert!(test.gives(true, 1, b"GET /c HTTP/1.1\r\n\r\n").is_empty());
            assert_eq!(test.counts, HttpCounts { gaps: 1, ..HttpCounts::default() });
        }
        assert_eq!(test.gives(false, 0, OK), ["/a 200 1"]);
        for _ in 0..2 {
            assert!(test.gives(false, 0, b"HTTP/1.1 200 x\r\nno field\r\n\r\n").is_empty());
            assert_eq!(test.counts, HttpCounts { gaps: 1, malformed: 1, crowded: 0 });
        }
    }

    #[test]
    fn requests_that_wait_are_bounded() {
        let mut test = Test::default();
        let long = "x".repeat(15_000);
        let one = format!("GET /{long} HTTP/1.1\r\nHost: {long}\r\n\r\n");
        assert!(test.gives(true, 0, one.as_bytes()).is_empty(), "a head of 30 KB");
        assert_eq!(test.counts.malformed, 1);
        let mut test = Test::default();
        let one = format!("GET /{long} HTTP/1.1\r\nUser-Agent: x\r\n\r\n");
        for _ in 0..MAX_PIPELINED {
            assert_eq!(test.gives(true, 0, one.as_bytes()).len(), 1);
        }
        let each = 3 * MAX_TEXT + 200;
        assert!(test.messages.memory() < MAX_PIPELINED * each, "{}", test.messages.memory());
        test.moved();
        assert_eq!(test.gives(true, 0, one.as_bytes()).len(), 1);
        assert_eq!(test.counts.crowded, 1);
        assert_eq!(test.messages.asked.known, 0);
        assert!(test.gives(false, 0, OK).is_empty());
    }

    #[test]
    fn requests_of_a_function_without_responses_are_not_known_to_another_one() {
        let mut test = Test::default();
        test.gives(true, 0, b"GET /a HTTP/1.1\r\n\r\n");
        let bytes = test.messages.to_bytes();
        let without = Messages::from_bytes(&bytes, false).expect("whole");
        assert!(without.asked.requests.is_empty());
        test.messages = Messages::from_bytes(&without.to_bytes(), true).expect("whole");
        assert_eq!(test.gives(true, 0, b"GET /b HTTP/1.1\r\n\r\n"), ["/b 0 2"]);
        assert_eq!(test.gives(false, 0, &[OK, OK].concat()), [" 200 0", "/b 200 2"]);
        for len in 0..bytes.len() {
            assert!(Messages::from_bytes(&bytes[..len], true).is_none(), "{len} bytes");
        }
    }
}
