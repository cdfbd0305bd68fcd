//! What a TCP connection brings a stream function, and what the function decides about it.

use braid_ir::model::StreamEvent;
use braid_packet::FlowKey;

/// The next bytes of an end of a connection, in order and without repetitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data<'a> {
    /// Whether the client has sent them.
    pub from_client: bool,
    /// The bytes.
    pub bytes: &'a [u8],
    /// The place of the first one in the stream, from 0.
    pub offset: u64,
    /// The number of bytes of this end directly in front of them that the function has not had.
    pub missing: u64,
}

/// What a connection brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What<'a> {
    /// It is open.
    Open,
    /// The next bytes of an end. Braid counts the missing ones.
    Data(Data<'a>),
    /// It is over.
    Close,
}

/// What a connection brings, with its ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct News<'a> {
    /// The ends: the client is the source.
    pub client: FlowKey,
    /// What it brings.
    pub what: What<'a>,
}

impl<'a> News<'a> {
    /// The news of an event. `flow` is that of the bytes, or the client's. `None` for events that
    /// native functions do not take.
    #[must_use]
    pub fn of(event: StreamEvent, flow: FlowKey, (offset, bytes): (u64, &'a [u8])) -> Option<Self> {
        let data = |from_client| What::Data(Data { from_client, bytes, offset, missing: 0 });
        let (client, what) = match event {
            StreamEvent::Open => (flow, What::Open),
            StreamEvent::Client => (flow, data(true)),
            StreamEvent::Server => (flow.reversed(), data(false)),
            StreamEvent::Close => (flow, What::Close),
            StreamEvent::Alert | StreamEvent::Request | StreamEvent::Response => return None,
        };
        Some(Self { client, what })
    }
}

/// What a function decides about a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The connection and the packet go on.
    Forward,
    /// Both ends get a RST, and the connection's packets are dropped, for the function's reason
    /// with this number.
    Reset(u32),
    /// The connection goes on, and the function hears no more of it.
    Bypass,
}

impl Decision {
    /// The code of the decision in the C interface, as for verdicts.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Self::Forward => 0,
            Self::Reset(reason) => i32::try_from(reason).unwrap_or(0) << 8 | 5,
            Self::Bypass => 6,
        }
    }

    /// The decision of a code; `None` if the code is not valid.
    #[must_use]
    pub fn of_code(code: i32) -> Option<Self> {
        let code = u32::try_from(code).ok()?;
        let number = code >> 8;
        match (code & 0xff, number) {
            (0, 0) => Some(Self::Forward),
            (5, _) => Some(Self::Reset(number)),
            (6, 0) => Some(Self::Bypass),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Data, Decision, News, What};
    use braid_ir::model::StreamEvent;
    use braid_packet::FlowKey;

    #[test]
    fn codes_are_read_as_they_are_made() {
        use Decision::{Bypass, Forward, Reset};
        for decision in [Forward, Reset(0), Reset(7), Bypass] {
            assert_eq!(Decision::of_code(decision.code()), Some(decision));
        }
        for code in [-1, i32::MIN, 1, 2, 3, 4, 7, 0x100, 0x106] {
            assert_eq!(Decision::of_code(code), None, "{code}");
        }
    }

    #[test]
    fn news_name_the_client_first() {
        let flow = FlowKey { version: 4, src: 1, dst: 2, proto: 6, sport: 3, dport: 80 };
        let of = |event, flow| News::of(event, flow, (7, b"x")).expect("news");
        let News { client, what } = of(StreamEvent::Server, flow.reversed());
        assert_eq!(client, flow);
        let data = Data { from_client: false, bytes: b"x", offset: 7, missing: 0 };
        assert_eq!(what, What::Data(data));
        assert_eq!(of(StreamEvent::Close, flow), News { client: flow, what: What::Close });
        assert_eq!(News::of(StreamEvent::Alert, flow, (0, b"")), None);
    }
}
