//! Packets that functions build.

use super::facts::{Facts, Law, Term};
use super::mutants::ShardingMutant::{self, BareLinks, LongQuotes, NoEchoes, NoPorts};
use super::mutants::is;
use super::place::Place;
use crate::symbolic::{Arriving, arriving};
use braid_ir::model::{Dest, NewPacket, NewPayload, Shape, ValueId, Word};
use braid_packet::field::Where;
use braid_packet::{Access, Base, Field, FlowKey, HEADERS, Header};

/// A packet that a function builds: the fields whose values are known, and its headers.
#[derive(Clone, Debug)]
pub(super) struct Created {
    shape: Shape,
    payload: NewPayload,
    /// The fields with their values.
    fields: Vec<(Field, Term)>,
    /// The fields that the function assigns.
    assigned: Vec<Field>,
}

/// The part of the answered packet that a built packet quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shown {
    /// It quotes nothing, or all headers up to the ports.
    Whole,
    /// The quote may end in front of some headers of the packet.
    Cut,
}

fn headers() -> impl Iterator<Item = Header> {
    HEADERS.iter().map(|(header, _)| *header)
}

/// The headers whose presence the fields of this shape decide.
fn decided(shape: Shape) -> u128 {
    let fields = shape.headers().iter().flat_map(|header| header.info().fields);
    fields.fold(0, |all, info| all | info.field.decided_bits())
}

/// The headers between the link header and IP, and those in the place of IP.
fn between() -> u128 {
    Header::bits(headers().filter(|header| header.info().at.0 == Base::Network))
}

/// The addresses of a packet, with the opposite ones.
fn opposite(shape: Shape) -> impl Iterator<Item = (Field, Field)> {
    let fields = shape.headers().iter().flat_map(|header| header.info().fields);
    let ends = fields.filter(|info| info.address.is_some());
    ends.filter_map(|end| Some((end.field, end.field.opposite()?)))
}

/// Fields of a packet, with the fields that hold them in a packet of this shape that quotes it.
fn quoted(shape: Shape) -> Vec<(Field, Field)> {
    let [quotes, echo] = match shape {
        Shape::Icmp => [Header::Quoted4, Header::IcmpEcho],
        Shape::Icmp6 => [Header::Quoted6, Header::Icmp6Echo],
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    for (own, shown) in [(Header::L4, Header::QuotedL4), (echo, Header::QuotedEcho)] {
        let own = Header::bits(shape.headers()) & !Header::Icmp.bit() & !Header::Icmp6.bit()
            | own.closure();
        for (field, quoted) in FlowKey::FIELDS.into_iter().zip(FlowKey::QUOTED_FIELDS) {
            let cells =
                (arriving(field, own), arriving(quoted, quotes.closure() | shown.closure()));
            if let (Some(Arriving::Cell(field)), Some(Arriving::Cell(quoted))) = cells {
                found.push((field, quoted));
            }
        }
    }
    found
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
        for (field, opposite) in opposite(new.shape) {
            let from = if new.goes_back(to) { opposite } else { field };
            fields.extend(place.value(from).map(|value| (field, value)));
        }
        if let NewPayload::Quote(_) = new.payload {
            for (field, quoted) in quoted(new.shape) {
                fields.extend(place.value(field).map(|value| (quoted, value)));
            }
        }
        let mut assigned = Vec::new();
        for (field, value) in &new.fields {
            fields.retain(|(other, _)| !overlap(*other, *field));
            // An assignment of a part does not give the value of the whole field.
            if field.info().width == field.owner().info().width {
                fields.push((field.owner(), term(*value)));
            }
            assigned.push(field.owner());
        }
        Self { shape: new.shape, payload: new.payload, fields, assigned }
    }

    /// The facts about the worker, in terms of the packet's fields.
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
            // The protocol of the quoted packet is in another field.
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

    /// The headers that the packet may have, if the packet that it answers has the headers `of`.
    pub(super) fn headers(&self, of: u128) -> Possible {
        let open = self.open(of);
        let quotes =
            matches!(self.payload, NewPayload::Quote(_)) && open & Header::Quoted.bit() != 0;
        Possible {
            certain: self.link(of) | Header::bits(self.shape.headers()) | self.announced(of),
            open,
            part: quotes.then(|| part(of)),
            // The protocol of a quote that ends in an authentication header is that of this header.
            ah: of & Header::Ah.bit() != 0 && self.shape == Shape::Icmp,
        }
    }

    /// The headers of a packet that decide which headers its answers have.
    pub(super) fn relevant() -> u128 {
        use Header::{Ah, Icmp6Echo, IcmpEcho, Inet, Ip4, Ip6, L4, Pkt};
        between()
            | Header::bits(Header::LINK)
            | Header::bits([Ah, Icmp6Echo, IcmpEcho, Inet, Ip4, Ip6, L4, Pkt])
    }

    /// The headers in front of IP or ARP, which come from the answered packet. Only a packet with
    /// IP keeps the headers between its link header and IP.
    fn link(&self, of: u128) -> u128 {
        use Header::{Eth, Inet, Pkt};
        let is_inside = of & Eth.bit() != 0 && of & Inet.bit() != 0 && self.shape != Shape::Arp;
        let between = if is_inside { between() } else { 0 };
        of & (Pkt.bit() | Header::bits(Header::LINK) | between)
    }

    /// The headers that its fields and its payload may decide.
    fn open(&self, of: u128) -> u128 {
        let is_open = |header: &Header| {
            let mut by = self.announcers(*header).peekable();
            let never = by.peek().is_some() && by.all(|announces| announces == Some(false));
            let has_room = match self.payload {
                NewPayload::Empty => header.is_certain(),
                NewPayload::Quote(_) => *header != Header::Quoted || self.is_quotable(of),
                NewPayload::Same => true,
            };
            !never && has_room
        };
        decided(self.shape) & Header::bits(headers().filter(is_open))
    }

    /// Whether its quote of the packet has the right IP version.
    fn is_quotable(&self, of: u128) -> bool {
        let mut ip = self.shape.headers().iter().filter(|header| **header != Header::Inet);
        ip.any(|header| header.group() == Header::Inet && of & header.bit() != 0)
    }

    /// The headers that its fields certainly announce and for which it has room.
    fn announced(&self, of: u128) -> u128 {
        let is_announced = |header: Header| self.announcers(header).any(|by| by == Some(true));
        let certain = headers().filter(|header| header.is_certain() && is_announced(*header));
        let quoted = if is_announced(Header::Quoted) { self.quoted(of) } else { 0 };
        Header::bits(certain) | quoted
    }

    /// For each of its fields that can announce this header: whether the field does so, if that is
    /// known.
    fn announcers(&self, header: Header) -> impl Iterator<Item = Option<bool>> {
        let own = |field: Field| {
            let info = field.info();
            info.access == Access::Rw && self.shape.headers().contains(&info.header)
        };
        let by = header.info().follows.iter().filter(move |(field, _)| own(*field));
        by.map(|(field, values)| {
            let number = self.number(field.owner())?;
            Some(values.iter().any(|value| Word::from(*value) == number))
        })
    }

    /// The value of a field that is not an address, if it is known.
    fn number(&self, field: Field) -> Option<Word> {
        if !self.assigned.contains(&field) {
            return Some(0);
        }
        match self.fields.iter().find(|(other, _)| *other == field)?.1 {
            Term::Word(word) => Some(word),
            _ => None,
        }
    }

    /// The headers that its quote certainly has. An IPv4 header has at most 60 bytes, and the
    /// headers of an IPv6 packet may be longer than any quote.
    fn quoted(&self, of: u128) -> u128 {
        const IP: u16 = 60;
        const ECHO: u16 = 8;
        let NewPayload::Quote(most) = self.payload else { return 0 };
        if self.shape != Shape::Icmp || of & Header::Ip4.bit() == 0 || most < IP {
            return 0;
        }
        let part = match of & Header::Ah.bit() == 0 && most >= IP + ECHO {
            true => part(of),
            false => 0,
        };
        Header::bits([Header::Quoted, Header::Quoted4]) | part
    }
}

/// The headers that a built packet may have.
pub(super) struct Possible {
    certain: u128,
    open: u128,
    /// If it may quote a packet: the header that holds the ports of the quoted packet.
    part: Option<u128>,
    /// Whether it may quote an authentication header.
    ah: bool,
}

impl Possible {
    /// The part of the answered packet that a packet with these headers quotes. `None`: it cannot
    /// have these headers.
    pub(super) fn shown(&self, now: u128, bug: Option<ShardingMutant>) -> Option<Shown> {
        use Header::{Quoted4, Quoted6, QuotedEcho, QuotedL4};
        let Self { certain, open, .. } = self;
        if now & certain != *certain || now & !(certain | open) != 0 {
            return None;
        }
        let is_whole = self.part.is_none_or(|part| {
            let is_quoted = now & Header::bits([Quoted4, Quoted6]) != 0;
            is_quoted && !self.ah && now & Header::bits([QuotedL4, QuotedEcho]) == part
        });
        let shown = if is_whole { Shown::Whole } else { Shown::Cut };
        (!is_lost(now, shown, bug)).then_some(shown)
    }
}

/// Whether a mutant forgets packets with these headers.
fn is_lost(now: u128, shown: Shown, bug: Option<ShardingMutant>) -> bool {
    let has = |all: &[Header]| now & Header::bits(all) != 0;
    is(bug, NoEchoes) && has(&[Header::IcmpEcho, Header::Icmp6Echo])
        || is(bug, NoPorts) && now & Header::bits(Header::behind_ports()) != 0
        || is(bug, BareLinks) && now & between() != 0
        || is(bug, LongQuotes) && shown == Shown::Cut
}

/// The header that holds the ports of a packet in a quote.
fn part(of: u128) -> u128 {
    match of {
        _ if of & Header::L4.bit() != 0 => Header::QuotedL4.bit(),
        _ if of & Header::bits([Header::IcmpEcho, Header::Icmp6Echo]) != 0 => {
            Header::QuotedEcho.bit()
        }
        _ => 0,
    }
}

/// Whether an assignment of one field changes the other.
fn overlap(one: Field, other: Field) -> bool {
    let halves = |whole: Field, half: Field| match whole.info().place {
        Where::Halves(_, halves, _) => halves.contains(&half),
        _ => false,
    };
    one.owner() == other.owner() || halves(one, other) || halves(other, one)
}
