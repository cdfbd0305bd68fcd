//! Packets as signatures see them, one by one.

use crate::inspections::{self, Inspected, Inspections, Run};
use crate::program::{End, View};
use braid_ir::model::{StreamEvent, Word};
use braid_packet::bytes::{self, Area};
use braid_packet::{Field, FlowKey, Header, Layout, Packet, proto};
use braid_signatures::{Datagrams, Inspection, Kind, Number, Packet as Seen, Rules};

/// The place of the flags in the header of IPv4, and the bytes in front of its options.
const FLAGS: usize = 6;
const FIXED: usize = 20;
/// The protocol number of the fragment header of IPv6.
const FRAGMENT_HEADER: u8 = 44;
/// The length of a UDP header, and of what all ICMP messages begin with.
const HEADER: usize = 8;

/// A packet, and what its flow says of it.
#[derive(Clone, Copy)]
pub struct OfFlow<'a> {
    pub packet: &'a Packet,
    pub layout: &'a Layout,
    /// From its sender.
    pub flow: FlowKey,
    /// Whether the sender is the client. True without a flow.
    pub from_client: bool,
    /// Whether both ends have agreed on the connection, or have sent datagrams.
    pub is_established: bool,
}

/// The kind of a packet of this protocol over IP.
pub fn kind(protocol: u8) -> Kind {
    match protocol {
        proto::TCP => Kind::Tcp,
        proto::UDP => Kind::Udp,
        proto::ICMP | proto::ICMP6 => Kind::Icmp,
        _ => Kind::Other,
    }
}

impl<'a> OfFlow<'a> {
    /// Inspects the packet by the signatures of each parameter, and runs a program for each alert
    /// until one of them gives up or resets. `by` gives the packet to the inspection of a
    /// parameter, by its number among those of the function.
    pub fn inspect(
        self,
        inspected: &mut Inspected<'_>,
        run: &mut Run<'_>,
        by: &mut dyn FnMut(usize, &mut Rules<'_>, &Seen<'_>),
    ) -> End {
        let Self { packet, layout, flow, from_client, is_established } = self;
        let kind = if layout.is_fragment() { Kind::Fragment } else { kind(flow.proto) };
        let (bytes, len) = bytes(packet, layout, kind);
        let number = |number| self.number(number, len);
        let number = &number;
        let flow_of_rules = inspections::flow(flow);
        let seen = Seen { kind, flow: flow_of_rules, from_client, is_established, bytes, number };
        let view = View { bytes, ..View::of(StreamEvent::Alert, flow) };
        for at in 0..inspected.of.len() {
            let inspect = |rules: &mut Rules<'_>| by(at, rules, &seen);
            let end = inspected
                .by(at, inspect, &mut |set, alert| inspections::said(set, alert, view, run));
            if end != End::Forward {
                return end;
            }
        }
        End::Forward
    }

    /// Inspects a packet of a connection, likewise.
    pub fn inspect_connection(
        self,
        inspections: &mut Inspections,
        inspected: &mut Inspected<'_>,
        run: &mut Run<'_>,
    ) -> End {
        let Inspections(all) = inspections;
        all.resize(inspected.of.len(), Inspection::default());
        self.inspect(inspected, run, &mut |at, rules, seen| {
            all.get_mut(at).into_iter().for_each(|one| one.packet(rules, seen));
        })
    }

    /// A number in the packet's headers. `len`: the bytes that it carries.
    fn number(self, number: Number, len: usize) -> Option<u32> {
        let field = match number {
            Number::Flags => Field::TcpFlags,
            Number::Seq => Field::TcpSeq,
            Number::Ack => Field::TcpAck,
            Number::Window => Field::TcpWindow,
            Number::IcmpType => self.of_icmp(Field::IcmpType, Field::Icmp6Type),
            Number::IcmpCode => self.of_icmp(Field::IcmpCode, Field::Icmp6Code),
            Number::IcmpId => self.of_icmp(Field::IcmpId, Field::Icmp6Id),
            Number::IcmpSeq => self.of_icmp(Field::IcmpSeq, Field::Icmp6Seq),
            Number::Ttl => Field::InetTtl,
            Number::Tos => Field::IpTos,
            Number::Id => Field::IpId,
            Number::Protocol => Field::InetProto,
            Number::Length => return u32::try_from(len).ok(),
            Number::HasSameEnds => return Some((self.flow.src == self.flow.dst).into()),
            Number::FragmentBits => return self.fragment_bits(),
            Number::FragmentOffset if self.layout.has(Header::Ip6) => {
                let header = (Area::Ip6Extension(FRAGMENT_HEADER), 0);
                let word = bytes::load(self.packet, self.layout, header, 2).ok()??;
                return u32::try_from(word >> 3).ok();
            }
            Number::FragmentOffset => Field::IpFrag,
            Number::HasOption(kind) => return Some(has_option(self.options()?, kind).into()),
        };
        self.packet.get(self.layout, field).and_then(|word| u32::try_from(word).ok())
    }

    /// The three flags of IPv4.
    fn fragment_bits(self) -> Option<u32> {
        let word = self.packet.data().get(self.layout.ip() + FLAGS);
        let word = word.filter(|_| self.layout.has(Header::Ip4));
        word.map(|byte| u32::from(byte >> 5))
    }

    /// The options of IPv4, as far as they were captured.
    fn options(self) -> Option<&'a [u8]> {
        let len = self.packet.get(self.layout, Field::IpHlen)?;
        let len = usize::try_from(len).ok()?;
        let (begin, data) = (self.layout.ip(), self.packet.data());
        data.get(begin + FIXED..(begin + len).min(data.len())).or(Some(&[]))
    }

    fn of_icmp(self, field: Field, field6: Field) -> Field {
        if self.layout.has(Header::Icmp6) { field6 } else { field }
    }
}

/// Whether the options of IPv4 have one of this type, or any.
fn has_option(mut options: &[u8], wanted: Option<u8>) -> bool {
    const END: u8 = 0;
    const PADDING: u8 = 1;
    while let [kind, behind @ ..] = options {
        if wanted.is_none_or(|wanted| wanted == *kind) {
            return true;
        }
        options = match (*kind, behind) {
            (END, _) | (_, []) => return false,
            (PADDING, _) => behind,
            (_, [len, ..]) => options.get(usize::from(*len).max(2)..).unwrap_or_default(),
        };
    }
    false
}

/// Inspects a packet that belongs to no flow.
pub fn alone(
    packet: &Packet,
    layout: &Layout,
    flow: FlowKey,
    inspected: &mut Inspected<'_>,
    run: &mut Run<'_>,
) -> End {
    let of_flow = OfFlow { packet, layout, flow, from_client: true, is_established: false };
    of_flow.inspect(inspected, run, &mut |_, rules, seen| Datagrams::default().packet(rules, seen))
}

/// The bytes that a packet carries, as far as they were captured, and how many it carries.
fn bytes<'a>(packet: &'a Packet, layout: &Layout, kind: Kind) -> (&'a [u8], usize) {
    let mut end = layout.payload_offset() + layout.payload_len();
    let begin = match kind {
        Kind::Tcp => layout.payload_offset(),
        Kind::Udp => {
            // A length of 0 is that of a jumbogram.
            let len = packet.get(layout, Field::UdpLen);
            let len = len.and_then(|len: Word| usize::try_from(len).ok());
            let len = len.filter(|len| *len >= HEADER);
            end = len.map_or(end, |len| end.min(layout.l4() + len));
            layout.l4() + HEADER
        }
        Kind::Icmp => layout.l4() + HEADER,
        Kind::Other => layout.l4(),
        Kind::Fragment => return (&[], 0),
    };
    let captured = packet.data().get(begin..end.min(packet.data().len()));
    (captured.unwrap_or_default(), end.saturating_sub(begin))
}
