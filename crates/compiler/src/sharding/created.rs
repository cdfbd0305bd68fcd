//! Packets that functions build.

use super::facts::{Facts, Law, Term};
use super::place::Place;
use braid_ir::model::{Dest, NewPacket, NewPayload, Shape, ValueId};
use braid_packet::{Field, Header};

/// A packet that a function builds: the fields whose values are known, and its headers.
#[derive(Clone, Debug)]
pub(super) struct Created {
    shape: Shape,
    payload: NewPayload,
    /// The fields with their values.
    fields: Vec<(Field, Term)>,
}

/// Fields of a packet, with the fields that show them in a packet that quotes it.
const QUOTED: [(Field, Field); 8] = [
    (Field::IpSrc, Field::QuotedIpSrc),
    (Field::IpDst, Field::QuotedIpDst),
    (Field::Ip6Src, Field::QuotedIp6Src),
    (Field::Ip6Dst, Field::QuotedIp6Dst),
    (Field::L4Sport, Field::QuotedSport),
    (Field::L4Dport, Field::QuotedDport),
    (Field::IcmpId, Field::QuotedId),
    (Field::Icmp6Id, Field::QuotedId),
];

/// Addresses with the opposite ones.
const OPPOSITE: [(Field, Field); 4] = [
    (Field::IpSrc, Field::IpDst),
    (Field::IpDst, Field::IpSrc),
    (Field::Ip6Src, Field::Ip6Dst),
    (Field::Ip6Dst, Field::Ip6Src),
];

/// The bit of a header.
fn bit(header: Header) -> u128 {
    1 << header as u32
}

impl Created {
    /// The packet that a step builds and sends.
    pub(super) fn new(
        new: &NewPacket,
        to: Dest,
        term: &dyn Fn(ValueId) -> Term,
        place: &Place,
    ) -> Self {
        let mut fields = Vec::new();
        for (field, opposite) in OPPOSITE {
            let from = if to == Dest::Back { opposite } else { field };
            fields.extend(place.value(from).map(|value| (field, value)));
        }
        if let NewPayload::Quote(_) = new.payload {
            for (field, quoted) in QUOTED {
                fields.extend(place.value(field).map(|value| (quoted, value)));
            }
        }
        for (field, value) in &new.fields {
            fields.retain(|(other, _)| *other != field.owner());
            fields.push((field.owner(), term(*value)));
        }
        Self { shape: new.shape, payload: new.payload, fields }
    }

    /// What is known about the worker, in terms of the packet's fields.
    pub(super) fn carried(&self, place: &Place) -> Facts {
        let holders = |term: Term| -> Vec<Term> {
            let fields = self.fields.iter().filter(|(_, value)| *value == term);
            let mut found: Vec<Term> = fields.map(|(field, _)| Term::Field(*field)).collect();
            if let Term::Word(_) | Term::Param(..) = term {
                found.push(term);
            }
            found
        };
        let facts = place.facts.iter().map(|fact| match (fact.law, self.payload) {
            // The quoted packet says in another field which protocol it has.
            (Law::Connection, NewPayload::Quote(_)) => {
                let mut fact = fact.clone();
                fact.terms[1] = Term::Field(Field::QuotedProto);
                fact
            }
            _ => fact.clone(),
        });
        let holders = |term: Term| match term {
            Term::Field(Field::QuotedProto) => vec![term],
            _ => holders(term),
        };
        facts.flat_map(|fact| fact.renamed(&holders)).collect()
    }

    /// Its headers, if the packet that it answers has these.
    pub(super) fn presence(&self, of: u128) -> u128 {
        use Header::{Eth, Icmp, Icmp6, Icmp6Echo, IcmpEcho, Inet, Ip4, Ip6, L4, Pkt};
        use Header::{Quoted, Quoted4, Quoted6, QuotedEcho, QuotedL4, Tcp, Udp, Vlan, Vlan2};
        let bits = |headers: &[Header]| headers.iter().fold(0, |all, header| all | bit(*header));
        let link = of & bits(&[Eth, Vlan, Vlan2]) | bit(Pkt);
        let own = match self.shape {
            Shape::Icmp => bits(&[Inet, Ip4, Icmp]),
            Shape::Icmp6 => bits(&[Inet, Ip6, Icmp6]),
            Shape::Tcp4 => bits(&[Inet, Ip4, L4, Tcp]),
            Shape::Tcp6 => bits(&[Inet, Ip6, L4, Tcp]),
            Shape::Udp4 => bits(&[Inet, Ip4, L4, Udp]),
            Shape::Udp6 => bits(&[Inet, Ip6, L4, Udp]),
            Shape::Arp => bit(Header::Arp),
        };
        let quotes = matches!(self.payload, NewPayload::Quote(_));
        let quoted = match self.shape {
            Shape::Icmp if quotes => bits(&[Quoted, Quoted4]),
            Shape::Icmp6 if quotes => bits(&[Quoted, Quoted6]),
            _ => return link | own,
        };
        let part = match of {
            _ if of & bit(L4) != 0 => bit(QuotedL4),
            _ if of & bits(&[IcmpEcho, Icmp6Echo]) != 0 => bit(QuotedEcho),
            _ => 0,
        };
        link | own | quoted | part
    }
}
