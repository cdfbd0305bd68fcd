//! Rules: their headers, and the tests of their buffers.

use crate::expression::Expression;
use crate::flow::Flow;
use crate::flowbits::BitsOfRule;
use crate::headers::OfPackets;
use crate::number::{Comparison, Jump, NumberAt, Scale, Value};
use crate::threshold::Threshold;
use braid_intervals::IntervalSet;

/// What an alert says of its rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// Its number.
    pub sid: u32,
    /// The number of its generator, 1 by default.
    pub gid: u32,
    /// Its revision.
    pub rev: u32,
    /// Its priority. 1 is the highest.
    pub priority: u8,
    /// Its message.
    pub message: String,
    /// Whether its action is `drop` or `reject`.
    pub is_drop: bool,
}

impl Signature {
    /// What tells it apart from the other rules of a file.
    pub(crate) fn key(&self) -> u64 {
        u64::from(self.gid) << 32 | u64::from(self.sid)
    }
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    pub signature: Signature,
    pub header: Header,
    /// The end that sends the bytes that the rule sees: `None` for both.
    pub from_client: Option<bool>,
    /// Of packets: whether both ends must have agreed on the connection or have sent datagrams, or
    /// must not.
    pub is_established: Option<bool>,
    pub stage: Stage,
    /// The packets on which it is evaluated, one by one.
    pub of_packets: OfPackets,
    pub buffers: Vec<Tested>,
    pub bits: BitsOfRule,
    /// It only writes bits (`noalert`).
    pub is_silent: bool,
    pub threshold: Option<Threshold>,
}

/// When a rule is evaluated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// On the bytes of a stream, whenever more of them have come.
    Stream,
    /// On the bytes of a stream, when all of them have come: more bytes may make the rule false.
    StreamEnd,
    /// When the head of an HTTP message has come.
    Head,
    /// When the body of an HTTP message has come.
    Body,
    /// On packets alone.
    Packet,
}

/// The tests of a buffer, in order.
#[derive(Clone, Debug)]
pub struct Tested {
    pub buffer: Buffer,
    pub tests: Vec<Test>,
}

/// What a test looks at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Buffer {
    /// The bytes of the stream, or of the packet. For rules about HTTP: of the message.
    Raw,
    Method,
    Uri,
    RawUri,
    RequestLine,
    ResponseLine,
    StatusCode,
    StatusMessage,
    Header,
    RawHeader,
    Host,
    Cookie,
    RequestBody,
    ResponseBody,
    /// The value of this field. Its name is in lower case.
    Field(&'static str),
}

impl Buffer {
    /// Whether only requests have it, or only responses (`Some(false)`).
    pub fn is_of_requests(self) -> Option<bool> {
        match self {
            Self::Method | Self::Uri | Self::RawUri | Self::RequestLine => Some(true),
            Self::Host | Self::RequestBody => Some(true),
            Self::ResponseLine | Self::StatusCode | Self::StatusMessage => Some(false),
            Self::ResponseBody => Some(false),
            Self::Raw | Self::Header | Self::RawHeader | Self::Cookie => None,
            Self::Field("location" | "server") => Some(false),
            Self::Field("content-type" | "content-length" | "connection") => None,
            Self::Field(_) => Some(true),
        }
    }

    /// Whether it is complete when the head has come.
    pub fn is_of_head(self) -> bool {
        !matches!(self, Self::Raw | Self::RequestBody | Self::ResponseBody)
    }
}

/// A test of a buffer.
#[derive(Clone, Debug)]
pub struct Test {
    pub what: What,
    pub is_negated: bool,
    /// Whether it counts from the end of the match before it.
    pub is_relative: bool,
    /// Whether a later test counts from the end of its match.
    pub feeds: bool,
}

impl Test {
    /// Whether a later test may count from where it ends.
    pub fn has_end(&self) -> bool {
        let has_end = matches!(
            self.what,
            What::Content(_) | What::Regex(_) | What::Jump(..) | What::Extract(..)
        );
        has_end && !self.is_negated
    }
}

/// What a test looks for.
#[derive(Clone, Debug)]
pub enum What {
    Content(Content),
    Regex(Box<Expression>),
    /// That many bytes are there, behind the match before if the test is relative.
    DataAt(usize),
    /// The length of the buffer.
    Length(usize, usize),
    /// A number in the buffer compares so with another one.
    Compare(NumberAt, Comparison, Value),
    /// The next relative test counts from where the number leads.
    Jump(NumberAt, Jump),
    /// The number gets a name, by its place. The next relative test counts from its end.
    Extract(NumberAt, Scale, usize),
}

/// A literal and where it may be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Content {
    /// In lower case if the case of letters does not matter.
    pub bytes: Box<[u8]>,
    pub is_nocase: bool,
    /// `offset`, or `distance` if the test is relative.
    pub from: i64,
    /// `depth`, or `within` if the test is relative: it lies in that many bytes.
    pub room: Option<usize>,
    /// `endswith`.
    pub is_at_end: bool,
}

/// The header of a rule.
#[derive(Clone, Debug)]
pub struct Header {
    pub src: Addresses,
    pub sports: IntervalSet,
    pub dst: Addresses,
    pub dports: IntervalSet,
    /// `<>`.
    pub is_both_ways: bool,
}

/// Addresses of both versions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Addresses {
    pub v4: IntervalSet,
    pub v6: IntervalSet,
}

impl Addresses {
    /// The addresses of this version, or all.
    pub fn of_version(self, version: Option<u8>) -> Self {
        match version {
            Some(4) => Self { v6: IntervalSet::default(), ..self },
            Some(_) => Self { v4: IntervalSet::default(), ..self },
            None => self,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    fn contains(&self, version: u8, address: u128) -> bool {
        let of = if version == 4 { &self.v4 } else { &self.v6 };
        of.contains(address)
    }
}

impl Header {
    /// Whether it asks nothing of ports.
    pub fn has_all_ports(&self) -> bool {
        let is_all = |ports: &IntervalSet| ports.intervals() == [(0, u16::MAX.into())];
        is_all(&self.sports) && is_all(&self.dports)
    }

    /// Whether the rule is about this direction of a connection.
    pub fn matches(&self, flow: &Flow) -> bool {
        let one = |flow: &Flow| {
            self.src.contains(flow.version, flow.src)
                && self.dst.contains(flow.version, flow.dst)
                && self.sports.contains(flow.sport.into())
                && self.dports.contains(flow.dport.into())
        };
        one(flow) || self.is_both_ways && one(&flow.reversed())
    }
}

impl Rule {
    /// Whether it needs a match that lies behind the bytes for which it has held before.
    pub fn has_match(&self) -> bool {
        self.buffers.iter().any(|of| {
            let ends = of.tests.iter().filter(|test| test.has_end());
            let matches = ends.enumerate().filter(|(at, test)| {
                // Behind another test, it counts from there.
                *at == 0 || !test.is_relative
            });
            let mut matches = matches.map(|(_, test)| &test.what);
            matches.any(|what| matches!(what, What::Content(_) | What::Regex(_)))
        })
    }

    /// Whether the rule is about the bytes of this direction.
    pub fn applies(&self, flow: &Flow, from_client: bool) -> bool {
        self.from_client.is_none_or(|client| client == from_client) && self.header.matches(flow)
    }
}
