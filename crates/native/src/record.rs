//! The record of a flow that a function makes (SpeedyBox's local match-action table, §IV). It is
//! plain data. An engine can run later packets of the flow by it, without the function's own code.

use crate::verdict::Verdict;
use braid_packet::{Field, Packet};
use std::sync::Arc;

/// The most entries of each kind in a flow's record.
pub const MOST: usize = 32;

/// The most bytes that a header action adds.
pub const MOST_BYTES: usize = 256;

/// How to process later packets of a flow.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recorded {
    /// The actions on the packet, in order.
    pub headers: Vec<HeaderAction>,
    /// The functions that run for each packet, in order.
    pub state: Vec<StateFunction>,
    /// Conditions that change the record.
    pub guards: Vec<Guard>,
    /// The direction of the record's packets (true: backward), if only one direction uses it. It is
    /// the direction of the packet for which the record was made, if the two directions are
    /// separate flows.
    pub backward: Option<bool>,
}

/// An action on each packet of a flow (§IV-A1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeaderAction {
    /// The packet goes on unchanged.
    Forward,
    /// The packet is dropped for this reason.
    Drop(u32),
    /// A field gets a value. Checksums are updated.
    Modify(Field, u128),
    /// Bytes are inserted at an offset from the packet's start.
    Encap {
        /// The offset.
        at: usize,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Bytes are removed.
    Decap {
        /// The offset.
        at: usize,
        /// The number of bytes.
        len: usize,
    },
    /// The packet leaves by a declared port.
    Output(u32),
    /// A tag, by name, gets a value.
    Tag(Arc<str>, u128),
}

/// How a state function uses the payload (§IV-A2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Payload {
    /// It does not use it.
    Ignore,
    /// It reads it.
    Read,
    /// It writes it.
    Write,
}

/// Code of a function, with the argument that it was registered with. Only the instance that
/// registered the handler can run it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handler {
    pub(crate) code: usize,
    pub(crate) arg: usize,
}

/// A function that runs for each packet of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateFunction {
    /// The code.
    pub handler: Handler,
    /// How it uses the payload.
    pub payload: Payload,
}

/// A condition on the function's state (SpeedyBox's event, §V-C1). It is checked after the record's
/// own state functions have run, and when the function notifies Braid. When it holds, the record
/// changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guard {
    /// The code that checks the condition.
    pub condition: Handler,
    /// If present, the record's only header action from then on.
    pub action: Option<HeaderAction>,
    /// If present, code that records again.
    pub update: Option<Handler>,
}

/// The record's header actions do not fit the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DoesNotFit;

impl Recorded {
    /// Applies the header actions and returns the packet's verdict.
    ///
    /// # Errors
    /// When the packet lacks something that an action needs.
    pub fn apply(&self, packet: &mut Packet) -> Result<Verdict, DoesNotFit> {
        let mut verdict = Verdict::Forward;
        for action in &self.headers {
            let done = match action {
                HeaderAction::Forward => true,
                HeaderAction::Drop(reason) => return Ok(Verdict::Drop(*reason)),
                HeaderAction::Modify(field, value) => {
                    let layout = packet.parse();
                    packet.set(&layout, *field, *value)
                }
                HeaderAction::Encap { at, bytes } => packet.insert(*at, bytes),
                HeaderAction::Decap { at, len } => packet.remove(*at, *len),
                HeaderAction::Output(port) => {
                    verdict = Verdict::Port(*port);
                    true
                }
                HeaderAction::Tag(name, value) => {
                    packet.tags.set(name, *value);
                    true
                }
            };
            if !done {
                return Err(DoesNotFit);
            }
        }
        Ok(verdict)
    }

    /// Whether the record fits a packet of its flow. It does not fit if the packet goes in the
    /// other direction, or if state functions need a payload that the capture cut.
    #[must_use]
    pub fn is_for(&self, packet: &Packet) -> bool {
        self.is_for_side(packet.backward)
            && (self.payload() == Payload::Ignore || !packet.parse().payload_truncated())
    }

    /// Whether the record fits packets in a direction.
    #[must_use]
    pub fn is_for_side(&self, backward: bool) -> bool {
        self.backward.is_none_or(|own| own == backward)
    }

    /// How its state functions together use the payload: the strongest use of any of them (Table
    /// I).
    #[must_use]
    pub fn payload(&self) -> Payload {
        let all = self.state.iter().map(|function| function.payload);
        all.max().unwrap_or(Payload::Ignore)
    }
}

#[cfg(test)]
mod tests {
    use super::{DoesNotFit, Handler, HeaderAction, Payload, Recorded, StateFunction};
    use crate::verdict::Verdict;
    use braid_packet::{Field, Link, Packet, Shape, build_fresh};

    fn udp() -> Packet {
        let fields = [(Field::L4Dport, 53)];
        build_fresh(Link::Ethernet, 0, Shape::Udp4, &fields, b"text").expect("a packet")
    }

    fn recorded(headers: Vec<HeaderAction>) -> Recorded {
        Recorded { headers, ..Recorded::default() }
    }

    #[test]
    fn actions_are_done_in_order() {
        let mut packet = udp();
        let modify = |value| HeaderAction::Modify(Field::L4Dport, value);
        let record = recorded(vec![modify(1), modify(2), HeaderAction::Output(1)]);
        assert_eq!(record.apply(&mut packet), Ok(Verdict::Port(1)));
        assert_eq!(packet.get(&packet.parse(), Field::L4Dport), Some(2));
    }

    #[test]
    fn drop_ends_the_packet_whatever_follows() {
        let mut packet = udp();
        let record = recorded(vec![HeaderAction::Drop(3), HeaderAction::Modify(Field::TcpSeq, 1)]);
        assert_eq!(record.apply(&mut packet), Ok(Verdict::Drop(3)));
    }

    #[test]
    fn encap_then_decap_leaves_the_packet_as_it_was() {
        let (mut packet, before) = (udp(), udp());
        let encap = HeaderAction::Encap { at: 14, bytes: vec![1, 2, 3, 4] };
        let record = recorded(vec![encap, HeaderAction::Decap { at: 14, len: 4 }]);
        assert_eq!(record.apply(&mut packet), Ok(Verdict::Forward));
        assert_eq!(packet, before);
    }

    #[test]
    fn action_on_what_is_not_there_does_not_fit() {
        let record = recorded(vec![HeaderAction::Modify(Field::TcpSeq, 1)]);
        assert_eq!(record.apply(&mut udp()), Err(DoesNotFit));
        let record = recorded(vec![HeaderAction::Decap { at: 10_000, len: 4 }]);
        assert_eq!(record.apply(&mut udp()), Err(DoesNotFit));
    }

    #[test]
    fn record_is_for_packets_of_its_side() {
        let sided = |backward| Recorded { backward, ..Recorded::default() };
        let (forward, mut packet) = (udp(), udp());
        packet.backward = true;
        for (side, one, other) in
            [(None, true, true), (Some(false), true, false), (Some(true), false, true)]
        {
            assert_eq!((sided(side).is_for(&forward), sided(side).is_for(&packet)), (one, other));
        }
    }

    #[test]
    fn batch_of_state_functions_counts_as_the_one_that_does_most() {
        let handler = Handler { code: 0, arg: 0 };
        let function = |payload| StateFunction { handler, payload };
        let state =
            vec![function(Payload::Read), function(Payload::Write), function(Payload::Read)];
        assert_eq!(Recorded { state, ..Recorded::default() }.payload(), Payload::Write);
        assert_eq!(Recorded::default().payload(), Payload::Ignore);
    }
}
