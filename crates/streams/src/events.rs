//! What a packet brings: the events of its connection, and ends of others.

use braid_packet::FlowKey;
use braid_tcp::{ConnectionId, Direction, Gap, Place, Report, Sink};
use std::ops::Range;

/// The bytes of an event.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// Bytes of the packet's payload.
    Payload(Range<usize>),
    /// Bytes of earlier packets, which have waited for this one.
    Waited(Box<[u8]>),
}

/// An event.
#[derive(Clone, Debug)]
pub enum What {
    Open,
    /// The next bytes of a direction, from this offset on.
    Data(Direction, u64, Bytes),
    /// The next bytes of a direction are missing, from this offset on.
    Gap(Direction, u64),
    Close,
}

/// An event of a connection, with the client's flow.
#[derive(Clone, Debug)]
pub struct Event {
    pub connection: ConnectionId,
    /// The place of what the stack keeps of the connection, if it keeps anything.
    pub known: Option<usize>,
    pub flow: FlowKey,
    pub what: What,
}

/// Collects the events of one packet.
pub struct Collector<'a> {
    /// The packet's payload.
    pub payload: &'a [u8],
    pub events: &'a mut Vec<Event>,
    /// Connections that the monitor has forgotten.
    pub forgotten: &'a mut Vec<ConnectionId>,
}

impl Collector<'_> {
    fn add(&mut self, place: &Place, what: What) {
        let flow = match place.direction {
            Direction::Forward => place.flow,
            Direction::Backward => place.flow.reversed(),
        };
        self.events.push(Event { connection: place.connection, known: None, flow, what });
    }
}

impl Sink for Collector<'_> {
    fn data(&mut self, place: &Place, offset: u64, bytes: &[u8]) {
        let bytes = match range_in(self.payload, bytes) {
            Some(range) => Bytes::Payload(range),
            None => Bytes::Waited(bytes.into()),
        };
        self.add(place, What::Data(place.direction, offset, bytes));
    }

    fn gap(&mut self, place: &Place, gap: Gap) {
        self.add(place, What::Gap(place.direction, gap.offset));
    }

    fn opened(&mut self, place: &Place) {
        self.add(place, What::Open);
    }

    fn over(&mut self, place: &Place) {
        self.add(place, What::Close);
    }

    fn closed(&mut self, report: &Report) {
        let (connection, flow) = (report.connection, report.flow);
        self.events.push(Event { connection, known: None, flow, what: What::Close });
        self.forgotten.push(connection);
    }
}

/// The range of bytes in a payload, if they are a part of it and not a copy.
fn range_in(payload: &[u8], bytes: &[u8]) -> Option<Range<usize>> {
    let start = bytes.as_ptr().addr().checked_sub(payload.as_ptr().addr())?;
    let end = start.checked_add(bytes.len())?;
    (end <= payload.len()).then_some(start..end)
}
