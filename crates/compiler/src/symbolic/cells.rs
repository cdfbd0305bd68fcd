//! Cells: the fields of a packet of known shape, without aliases. Every field is a constant, a
//! cell, some bits of one, or two together.

use super::headers::Headers;
use braid_ir::model::Word;
use braid_packet::{Field, Header};

/// What a field is in packets of a shape.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Place {
    /// The same in all of them.
    Const(Word),
    /// Bits of a cell, from a bit on, as many as the field has.
    Cell(Field, u16),
    /// Two cells of 16 bits, the upper one first.
    Halves([Field; 2]),
}

impl Place {
    /// The cells that the field is made of.
    pub(super) fn cells(self) -> impl Iterator<Item = Field> {
        let (one, two) = match self {
            Place::Const(_) => (None, None),
            Place::Cell(cell, _) => (Some(cell), None),
            Place::Halves([upper, lower]) => (Some(upper), Some(lower)),
        };
        one.into_iter().chain(two)
    }
}

/// What a field is, or the header whose presence has to be known for that. The field's own header
/// is present.
pub(super) fn place(field: Field, headers: &mut Headers) -> Result<Place, Header> {
    use Field::*;
    let cell = |field| Ok(Place::Cell(field, 0));
    match field {
        IpDscp => Ok(Place::Cell(IpTos, 2)),
        IpEcn => cell(IpTos),
        TcpSport | UdpSport => cell(L4Sport),
        TcpDport | UdpDport => cell(L4Dport),
        // The identifier is the same in all packets of a flow, the sequence number is not.
        IcmpRest if headers.has(Header::IcmpEcho)? => Ok(Place::Halves([IcmpId, IcmpSeq])),
        Icmp6Rest if headers.has(Header::Icmp6Echo)? => Ok(Place::Halves([Icmp6Id, Icmp6Seq])),
        IpProto => proto(headers, IpProto),
        Ip6Proto | InetProto => proto(headers, InetProto),
        InetVersion => Ok(Place::Const(if headers.has(Header::Ip4)? { 4 } else { 6 })),
        InetSrc => cell(if headers.has(Header::Ip4)? { IpSrc } else { Ip6Src }),
        InetDst => cell(if headers.has(Header::Ip4)? { IpDst } else { Ip6Dst }),
        InetTtl => cell(if headers.has(Header::Ip4)? { IpTtl } else { Ip6Ttl }),
        InetSport => inet_port(headers, L4Sport),
        InetDport => inet_port(headers, L4Dport),
        PktFragment if !headers.has(Header::Inet)? => Ok(Place::Const(0)),
        PktLaterFragment if is_whole(headers)? => Ok(Place::Const(0)),
        QuotedInetVersion => Ok(Place::Const(if headers.has(Header::Quoted4)? { 4 } else { 6 })),
        QuotedInetSrc => {
            cell(if headers.has(Header::Quoted4)? { QuotedIpSrc } else { QuotedIp6Src })
        }
        QuotedInetDst => {
            cell(if headers.has(Header::Quoted4)? { QuotedIpDst } else { QuotedIp6Dst })
        }
        QuotedInetSport => quoted_port(headers, QuotedSport),
        QuotedInetDport => quoted_port(headers, QuotedDport),
        _ => cell(field),
    }
}

/// A protocol, which the header behind tells where it is recognised.
fn proto(headers: &mut Headers, field: Field) -> Result<Place, Header> {
    let version4 = headers.has(Header::Ip4)?;
    if field == Field::IpProto && headers.has(Header::Ah)? {
        return Ok(Place::Cell(Field::IpProto, 0));
    }
    let known = [(Header::Tcp, 6), (Header::Udp, 17), (Header::Icmp, 1), (Header::Icmp6, 58)];
    for (header, number) in known {
        if headers.has(header)? {
            return Ok(Place::Const(number));
        }
    }
    // Without AH both are the byte in the IPv4 header.
    let same = version4 && !headers.has(Header::Ah)?;
    Ok(Place::Cell(if same { Field::IpProto } else { Field::InetProto }, 0))
}

fn inet_port(headers: &mut Headers, port: Field) -> Result<Place, Header> {
    Ok(if headers.has(Header::L4)? {
        Place::Cell(port, 0)
    } else if headers.has(Header::IcmpEcho)? {
        Place::Cell(Field::IcmpId, 0)
    } else if headers.has(Header::Icmp6Echo)? {
        Place::Cell(Field::Icmp6Id, 0)
    } else {
        Place::Const(0)
    })
}

fn quoted_port(headers: &mut Headers, port: Field) -> Result<Place, Header> {
    Ok(if headers.has(Header::QuotedL4)? {
        Place::Cell(port, 0)
    } else if headers.has(Header::QuotedEcho)? {
        Place::Cell(Field::QuotedId, 0)
    } else {
        Place::Const(0)
    })
}

/// Whether the packet is certainly no later fragment.
fn is_whole(headers: &mut Headers) -> Result<bool, Header> {
    Ok(!headers.has(Header::Inet)?
        || headers.has(Header::L4)?
        || headers.has(Header::Icmp)?
        || headers.has(Header::Icmp6)?)
}

/// Of [`checksums`] those of transport headers that cover addresses.
pub(super) const TRANSPORTS: u32 = 2 | 4;
/// Of [`checksums`] that of ICMP, which covers none.
pub(super) const ICMP: u32 = 512;

/// Checksums that come out in canonical form when a cell is written, as bits.
pub(super) fn checksums(field: Field) -> u32 {
    use Field::*;
    const IP: u32 = 1;
    const TRANSPORT: u32 = 2;
    match field.info().header {
        Header::Ip4 => match field {
            IpSrc => IP | TRANSPORT,
            // Only if it stands in the pseudo header: not where a source route is under way.
            IpDst => IP | 4,
            _ => IP,
        },
        Header::Ip6 => match field {
            Ip6Src => TRANSPORT,
            Ip6Dst => 4,
            _ => 0,
        },
        Header::Eth | Header::Vlan | Header::Vlan2 | Header::Arp | Header::Mpls => 0,
        Header::GreKey => 8,
        Header::Icmp | Header::IcmpEcho => ICMP,
        Header::Quoted4 | Header::Quoted6 | Header::QuotedL4 | Header::QuotedEcho => match field {
            QuotedIpSrc | QuotedIp6Src => TRANSPORT | 16,
            QuotedIpDst | QuotedIp6Dst => TRANSPORT | 32,
            QuotedSport => TRANSPORT | 64,
            QuotedDport => TRANSPORT | 128,
            _ => TRANSPORT | 256,
        },
        _ => TRANSPORT,
    }
}

/// Headers whose presence has to be known to say what a field is.
pub(super) fn needs(field: Field) -> &'static [Header] {
    use Field::*;
    match field {
        IpProto | Ip6Proto | InetProto => {
            &[Header::Ah, Header::Tcp, Header::Udp, Header::Icmp, Header::Icmp6]
        }
        PktLaterFragment => &[Header::L4, Header::Icmp, Header::Icmp6],
        PktFragment => &[Header::Inet],
        InetSport | InetDport => &[Header::L4, Header::IcmpEcho, Header::Icmp6Echo],
        IcmpRest => &[Header::IcmpEcho],
        Icmp6Rest => &[Header::Icmp6Echo],
        InetVersion | InetSrc | InetDst | InetTtl => &[Header::Ip4],
        QuotedInetVersion | QuotedInetSrc | QuotedInetDst => &[Header::Quoted4],
        QuotedInetSport | QuotedInetDport => &[Header::QuotedL4, Header::QuotedEcho],
        PktPayloadLen => &[Header::Vxlan],
        _ => &[],
    }
}
