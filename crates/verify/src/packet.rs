//! A packet as terms: the bits of its fields, its tags, and which checksums were updated.
//!
//! Some fields share bits: `inet.ttl` and `ip.ttl`, `tcp.sport` and `l4.sport`, `ip.tos` and
//! `ip.dscp`, `icmp.rest` and `icmp.id`. Their smallest parts are stored once. No checksum is
//! computed. Both sides must write the same values to the covered fields, and must put the checksum
//! into canonical form in the same cases.

use std::collections::BTreeMap;

use braid_ir::residual::HeaderMask;
use braid_packet::{Field, Header};

use crate::headers;
use crate::sums::Sum;
use crate::term::{BitOp, Sort, Term, Terms};

/// The most VLAN tags that the parser reads.
const MAX_TAGS: usize = 8;
/// Number of VLAN tags that a packet here holds.
const TAGS: usize = MAX_TAGS + 4;
/// Name of the variable for whether the payload begins with a whole VXLAN header.
const VXLAN_IS_WHOLE: &str = "vxlan is whole";
/// Name of the variable for whether the transport checksum covers the IP addresses.
const COVERS_ADDRESSES: &str = "checksum covers addresses";
/// The UDP port of VXLAN.
const VXLAN_PORT: u128 = 4789;
/// Name of the variable for whether the payload begins with a whole Geneve header.
const GENEVE_IS_WHOLE: &str = "geneve is whole";
/// The UDP port of Geneve.
const GENEVE_PORT: u128 = 6081;
/// The types of ICMP echoes and of ICMPv6 echoes.
const ECHOES: [&[u128]; 2] = [&[0, 8], &[128, 129]];
/// The types of ICMP messages and of ICMPv6 messages that quote a packet.
const ERRORS: [&[u128]; 2] = [&[3, 4, 5, 11, 12], &[1, 2, 3, 4]];

/// A VLAN tag.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Tag {
    pub(crate) present: Term,
    pub(crate) tpid: Term,
    pub(crate) pcp: Term,
    pub(crate) dei: Term,
    pub(crate) id: Term,
}

/// The packets that a question covers.
pub(crate) struct Kind {
    /// Their header shape.
    pub(crate) shape: HeaderMask,
    /// Facts that hold for all of them.
    pub(crate) facts: Vec<Term>,
}

/// A packet.
#[derive(Clone, PartialEq)]
pub(crate) struct Packet {
    /// Fields that were written. Other fields have their arriving values.
    pub(crate) cells: BTreeMap<Field, Term>,
    /// Tags by name, 128 bits each.
    pub(crate) tags: BTreeMap<String, Term>,
    /// VLAN tags, from the outermost on.
    pub(crate) vlans: Vec<Tag>,
    /// How much the length has grown since arrival, in 16 bits.
    pub(crate) grown: Term,
    /// Whether each checksum was updated.
    pub(crate) sums: [Term; 5],
    /// The direction, and whether the packet comes from a queue.
    pub(crate) backward: Term,
    pub(crate) held: Term,
}

fn width(field: Field) -> u16 {
    field.info().width
}

impl Kind {
    /// Packets of this header shape, and the facts that hold for them.
    pub(crate) fn new(terms: &mut Terms, shape: HeaderMask) -> Self {
        let mut kind = Self { shape, facts: Vec::new() };
        let rules = headers::rules(terms, &|terms, header| arriving(terms, shape, header));
        kind.facts.extend(rules);
        kind.link_types(terms);
        kind.link_lengths(terms);
        kind.link_protocols(terms);
        kind.link_tags(terms);
        kind.link_checksums(terms);
        kind
    }

    /// Adds facts for headers that depend on a writable field: on arrival the field and the header
    /// agree.
    fn link_types(&mut self, terms: &mut Terms) {
        let shape = self.shape;
        for header in [
            Header::IcmpEcho,
            Header::Icmp6Echo,
            Header::Quoted4,
            Header::Quoted6,
            Header::QuotedL4,
            Header::QuotedEcho,
            Header::Vxlan,
            Header::Geneve,
        ] {
            let packet = Packet::arriving(terms, shape);
            let there = arriving(terms, shape, header);
            let means = self.meaning(terms, &packet, header);
            let same = terms.eq(there, means);
            self.facts.push(same);
        }
    }

    /// Adds facts for lengths: a payload is not longer than the packet, and not shorter than a
    /// VXLAN header in it.
    fn link_lengths(&mut self, terms: &mut Terms) {
        let packet = Packet::arriving(terms, self.shape);
        let length = packet.cell(terms, Field::PktLen);
        let payload = packet.cell(terms, Field::PktPayloadLen);
        self.facts.push(terms.at_most(payload, length));
        let whole = terms.var(VXLAN_IS_WHOLE, Sort::Bool);
        let (not_whole, header) = (terms.not(whole), terms.bits(32, 8));
        let long = terms.at_most(header, payload);
        self.facts.push(terms.or(&[not_whole, long]));
        let whole = terms.var(GENEVE_IS_WHOLE, Sort::Bool);
        let (not_whole, header) = (terms.not(whole), packet.geneve_length(terms));
        let long = terms.at_most(header, payload);
        self.facts.push(terms.or(&[not_whole, long]));
    }

    /// Adds facts for protocols and fragments: they agree with the headers that were found.
    fn link_protocols(&mut self, terms: &mut Terms) {
        let packet = Packet::arriving(terms, self.shape);
        let proto = packet.get(terms, self, &packet, Field::InetProto);
        let later = packet.get(terms, self, &packet, Field::PktLaterFragment);
        let fragment = packet.get(terms, self, &packet, Field::PktFragment);
        let (later, fragment) = (terms.truth(later), terms.truth(fragment));
        let (not_later, inet) = (terms.not(later), arriving(terms, self.shape, Header::Inet));
        self.facts.push(terms.or(&[not_later, fragment]));
        let not_fragment = terms.not(fragment);
        self.facts.push(terms.or(&[not_fragment, inet]));
        let protocols = [
            (Header::Tcp, 6),
            (Header::Udp, 17),
            (Header::Icmp, 1),
            (Header::Icmp6, 58),
            (Header::Gre, 47),
            (Header::Esp, 50),
        ];
        for (header, number) in protocols {
            let here = arriving(terms, self.shape, header);
            let not_here = terms.not(here);
            let number = terms.bits(8, number);
            let is = terms.eq(proto, number);
            let both = terms.both(is, not_later);
            self.facts.push(terms.or(&[not_here, both]));
        }
    }

    /// Adds facts for VLAN tags: they are present from the outermost on, up to the parser's limit.
    fn link_tags(&mut self, terms: &mut Terms) {
        let tags = Packet::arriving(terms, self.shape).vlans;
        for pair in tags.windows(2) {
            let not_inner = terms.not(pair[1].present);
            self.facts.push(terms.or(&[not_inner, pair[0].present]));
        }
        self.facts.push(terms.not(tags[MAX_TAGS].present));
    }

    /// Adds facts for checksums. Those of TCP, UDP and ICMPv6 cover the IP addresses, and that of
    /// ICMP does not. Without any of these headers, the payload may hold a malformed one whose
    /// checksum covers the addresses.
    fn link_checksums(&mut self, terms: &mut Terms) {
        let covers = terms.var(COVERS_ADDRESSES, Sort::Bool);
        for (header, is_covered) in
            [(Header::L4, true), (Header::Icmp6, true), (Header::Icmp, false)]
        {
            let here = arriving(terms, self.shape, header);
            let not_here = terms.not(here);
            let same = if is_covered { covers } else { terms.not(covers) };
            self.facts.push(terms.or(&[not_here, same]));
        }
    }

    /// Whether a header is present when the packet is parsed in its current form.
    pub(crate) fn has(&self, terms: &mut Terms, packet: &Packet, header: Header) -> Term {
        let now = match header {
            Header::Pkt => return terms.bool(true),
            Header::Eth => return arriving(terms, self.shape, header),
            Header::Vlan => return packet.vlans[0].present,
            Header::Vlan2 => return packet.vlans[1].present,
            Header::IcmpEcho
            | Header::Icmp6Echo
            | Header::Quoted
            | Header::Quoted4
            | Header::Quoted6
            | Header::QuotedL4
            | Header::QuotedEcho
            | Header::Vxlan
            | Header::Geneve => self.changeable(terms, packet, header),
            _ => arriving(terms, self.shape, header),
        };
        let too_deep = terms.not(packet.vlans[MAX_TAGS].present);
        if packet.vlans == Packet::arriving_tags(terms, self.shape) {
            return now;
        }
        terms.both(now, too_deep)
    }

    fn changeable(&self, terms: &mut Terms, packet: &Packet, header: Header) -> Term {
        let fields = [Field::IcmpType, Field::Icmp6Type, Field::L4Dport];
        if fields.iter().all(|field| !packet.cells.contains_key(field)) {
            return arriving(terms, self.shape, header);
        }
        self.meaning(terms, packet, header)
    }

    /// The condition for a header that depends on a field's value.
    fn meaning(&self, terms: &mut Terms, packet: &Packet, header: Header) -> Term {
        let base = |terms: &mut Terms, header| arriving(terms, self.shape, header);
        let of_type = |terms: &mut Terms, version: usize, types: [&[u128]; 2]| {
            let (header, field) =
                [(Header::Icmp, Field::IcmpType), (Header::Icmp6, Field::Icmp6Type)][version];
            let (there, kind) = (base(terms, header), packet.cell(terms, field));
            let types: Vec<_> = types[version].iter().map(|kind| (*kind, *kind)).collect();
            let fits = terms.in_intervals(kind, &types);
            terms.both(there, fits)
        };
        match header {
            Header::IcmpEcho => of_type(terms, 0, ECHOES),
            Header::Icmp6Echo => of_type(terms, 1, ECHOES),
            Header::Quoted4 | Header::Quoted6 => {
                let version = usize::from(header == Header::Quoted6);
                let whole = terms.var(format!("quote is whole {version}"), Sort::Bool);
                let error = of_type(terms, version, ERRORS);
                terms.both(error, whole)
            }
            Header::Quoted => {
                let four = self.meaning(terms, packet, Header::Quoted4);
                let six = self.meaning(terms, packet, Header::Quoted6);
                terms.or(&[four, six])
            }
            Header::QuotedL4 | Header::QuotedEcho => {
                let quoted = self.meaning(terms, packet, Header::Quoted);
                let ports = terms.var("quote has ports", Sort::Bool);
                let echo = terms.var("quote has an echo", Sort::Bool);
                let not_ports = terms.not(ports);
                if header == Header::QuotedL4 {
                    terms.both(quoted, ports)
                } else {
                    terms.and(&[quoted, not_ports, echo])
                }
            }
            Header::Vxlan => {
                let (udp, port) = (base(terms, Header::Udp), packet.cell(terms, Field::L4Dport));
                let number = terms.bits(16, VXLAN_PORT);
                let is = terms.eq(port, number);
                let whole = terms.var(VXLAN_IS_WHOLE, Sort::Bool);
                terms.and(&[udp, is, whole])
            }
            Header::Geneve => {
                let (udp, port) = (base(terms, Header::Udp), packet.cell(terms, Field::L4Dport));
                let number = terms.bits(16, GENEVE_PORT);
                let is = terms.eq(port, number);
                let whole = terms.var(GENEVE_IS_WHOLE, Sort::Bool);
                terms.and(&[udp, is, whole])
            }
            other => base(terms, other),
        }
    }
}

/// Whether a header was present on arrival.
pub(crate) fn arriving(terms: &mut Terms, shape: HeaderMask, header: Header) -> Term {
    match (header, shape.has(header)) {
        (Header::Pkt, _) => terms.bool(true),
        (_, Some(there)) => terms.bool(there),
        (_, None) => terms.var(format!("has {}", header.name()), Sort::Bool),
    }
}

impl Packet {
    /// A packet as it arrives.
    pub(crate) fn arriving(terms: &mut Terms, shape: HeaderMask) -> Self {
        let (no, grown) = (terms.bool(false), terms.bits(16, 0));
        let vlans = Self::arriving_tags(terms, shape);
        let (backward, held) = (terms.bits(1, 0), terms.bits(1, 0));
        Self {
            cells: BTreeMap::new(),
            tags: BTreeMap::new(),
            vlans,
            grown,
            sums: [no; 5],
            backward,
            held,
        }
    }

    fn arriving_tags(terms: &mut Terms, shape: HeaderMask) -> Vec<Tag> {
        let headers = [Header::Vlan, Header::Vlan2];
        (0..TAGS)
            .map(|place| Tag {
                present: match headers.get(place) {
                    Some(header) => arriving(terms, shape, *header),
                    None => terms.var(format!("has tag {place}"), Sort::Bool),
                },
                tpid: terms.var(format!("tag {place} tpid"), Sort::Bits(16)),
                pcp: terms.var(format!("tag {place} pcp"), Sort::Bits(3)),
                dei: terms.var(format!("tag {place} dei"), Sort::Bits(1)),
                id: terms.var(format!("tag {place} id"), Sort::Bits(12)),
            })
            .collect()
    }

    /// The length of a Geneve header with its options, if there is one.
    fn geneve_length(&self, terms: &mut Terms) -> Term {
        let options = self.cell(terms, Field::GeneveOptions);
        let (high, fixed) = (terms.bits(24, 0), terms.bits(32, 8));
        let options = terms.join(high, options);
        terms.op(BitOp::Add, options, fixed)
    }

    /// The bits of a field that has its own bits.
    pub(crate) fn cell(&self, terms: &mut Terms, field: Field) -> Term {
        match self.cells.get(&field) {
            Some(term) => *term,
            None => terms.var(field.info().name, Sort::Bits(width(field))),
        }
    }

    /// A field's value. `parsed` is the packet as it was last parsed.
    pub(crate) fn get(
        &self,
        terms: &mut Terms,
        kind: &Kind,
        parsed: &Packet,
        field: Field,
    ) -> Term {
        use Field::*;
        let has = |terms: &mut Terms, header| kind.has(terms, parsed, header);
        match field {
            VlanId => self.vlans[0].id,
            VlanPcp => self.vlans[0].pcp,
            VlanDei => self.vlans[0].dei,
            VlanTpid => self.vlans[0].tpid,
            Vlan2Id => self.vlans[1].id,
            Vlan2Pcp => self.vlans[1].pcp,
            Vlan2Dei => self.vlans[1].dei,
            PktLen => {
                let (length, grown) = (self.cell(terms, PktLen), terms.slice(self.grown, 15, 15));
                let negative = terms.truth(grown);
                let (high, zero) = (terms.bits(16, 0xffff), terms.bits(16, 0));
                let sign = terms.ite(negative, high, zero);
                let grown = terms.join(sign, self.grown);
                terms.op(BitOp::Add, length, grown)
            }
            PktPayloadLen => {
                let length = self.cell(terms, PktPayloadLen);
                let vxlan = has(terms, Header::Vxlan);
                let header = terms.bits(32, 8);
                let behind = terms.op(BitOp::Sub, length, header);
                let length = terms.ite(vxlan, behind, length);
                let geneve = has(terms, Header::Geneve);
                let header = self.geneve_length(terms);
                let behind = terms.op(BitOp::Sub, length, header);
                terms.ite(geneve, behind, length)
            }
            PktBackward => self.backward,
            PktHeld => self.held,
            IpTos => self.two(terms, IpDscp, IpEcn),
            IcmpRest => self.two(terms, IcmpId, IcmpSeq),
            Icmp6Rest => self.two(terms, Icmp6Id, Icmp6Seq),
            TcpSport | UdpSport => self.cell(terms, L4Sport),
            TcpDport | UdpDport => self.cell(terms, L4Dport),
            IpChecksum | L4Checksum => self.checksum(terms, field),
            _ if name_of_either(field) => self.either(terms, kind, parsed, field),
            _ => self.cell(terms, field),
        }
    }

    fn two(&self, terms: &mut Terms, high: Field, low: Field) -> Term {
        let (high, low) = (self.cell(terms, high), self.cell(terms, low));
        terms.join(high, low)
    }

    /// The value of a field `inet.…` or `quoted.inet.…`.
    fn either(&self, terms: &mut Terms, kind: &Kind, parsed: &Packet, field: Field) -> Term {
        use Field::*;
        let has = |terms: &mut Terms, header| kind.has(terms, parsed, header);
        let version4 = if matches!(
            field,
            QuotedInetVersion | QuotedInetSrc | QuotedInetDst | QuotedInetSport | QuotedInetDport
        ) {
            has(terms, Header::Quoted4)
        } else {
            has(terms, Header::Ip4)
        };
        let (four, six) = match field {
            InetVersion | QuotedInetVersion => (terms.bits(8, 4), terms.bits(8, 6)),
            InetSrc => (self.cell(terms, IpSrc), self.cell(terms, Ip6Src)),
            InetDst => (self.cell(terms, IpDst), self.cell(terms, Ip6Dst)),
            InetTtl => (self.cell(terms, IpTtl), self.cell(terms, Ip6Ttl)),
            InetProto => {
                let (ah, behind) = (has(terms, Header::Ah), terms.var("behind ah", Sort::Bits(8)));
                let proto = self.cell(terms, IpProto);
                (terms.ite(ah, behind, proto), self.cell(terms, Ip6Proto))
            }
            QuotedInetSrc => (self.cell(terms, QuotedIpSrc), self.cell(terms, QuotedIp6Src)),
            QuotedInetDst => (self.cell(terms, QuotedIpDst), self.cell(terms, QuotedIp6Dst)),
            InetSport | InetDport => {
                let port = self.cell(terms, if field == InetSport { L4Sport } else { L4Dport });
                let (echo, echo6) = (self.cell(terms, IcmpId), self.cell(terms, Icmp6Id));
                let (is_echo, is_echo6) =
                    (has(terms, Header::IcmpEcho), has(terms, Header::Icmp6Echo));
                let (ports, none) = (has(terms, Header::L4), terms.bits(16, 0));
                let port = terms.ite(ports, port, none);
                let port = terms.ite(is_echo6, echo6, port);
                return terms.ite(is_echo, echo, port);
            }
            _ => {
                let port = if field == QuotedInetSport { QuotedSport } else { QuotedDport };
                let (port, id) = (self.cell(terms, port), self.cell(terms, QuotedId));
                let (ports, echo) = (has(terms, Header::QuotedL4), has(terms, Header::QuotedEcho));
                let none = terms.bits(16, 0);
                let id = terms.ite(echo, id, none);
                return terms.ite(ports, port, id);
            }
        };
        let (four, six) = (terms.resize(four, width(field)), terms.resize(six, width(field)));
        terms.ite(version4, four, six)
    }

    /// The value of a checksum: as it arrived, or some function of everything that was written.
    fn checksum(&self, terms: &mut Terms, field: Field) -> Term {
        let sum = if field == Field::IpChecksum { Sum::Ip } else { Sum::Transport };
        let came = self.cell(terms, field);
        let touched = self.sums[sum as usize];
        let image = self.image(terms);
        let now = terms.apply(format!("{} of", field.info().name), &[image], Sort::Bits(16));
        terms.ite(touched, now, came)
    }

    /// Assigns a field. `parsed` is the packet as it was last parsed.
    pub(crate) fn set(
        &mut self,
        terms: &mut Terms,
        kind: &Kind,
        parsed: &Packet,
        field: Field,
        value: Term,
    ) {
        use Field::*;
        let value = terms.resize(value, width(field));
        match field {
            VlanId => self.vlans[0].id = value,
            VlanPcp => self.vlans[0].pcp = value,
            VlanDei => self.vlans[0].dei = value,
            Vlan2Id => self.vlans[1].id = value,
            Vlan2Pcp => self.vlans[1].pcp = value,
            Vlan2Dei => self.vlans[1].dei = value,
            IpTos => {
                let (high, low) = (terms.slice(value, 7, 2), terms.slice(value, 1, 0));
                self.cells.extend([(IpDscp, high), (IpEcn, low)]);
            }
            IcmpRest | Icmp6Rest => {
                let (high, low) = (terms.slice(value, 31, 16), terms.slice(value, 15, 0));
                let (id, seq) =
                    if field == IcmpRest { (IcmpId, IcmpSeq) } else { (Icmp6Id, Icmp6Seq) };
                self.cells.extend([(id, high), (seq, low)]);
            }
            L4Sport | TcpSport | UdpSport => {
                self.cells.insert(L4Sport, value);
            }
            L4Dport | TcpDport | UdpDport => {
                self.cells.insert(L4Dport, value);
            }
            InetTtl => {
                let four = kind.has(terms, parsed, Header::Ip4);
                let (old4, old6) = (self.cell(terms, IpTtl), self.cell(terms, Ip6Ttl));
                let (new4, new6) = (terms.ite(four, value, old4), terms.ite(four, old6, value));
                self.put(terms, IpTtl, new4);
                self.put(terms, Ip6Ttl, new6);
            }
            _ => {
                self.cells.insert(field, value);
            }
        }
        self.follow(terms, kind, parsed, field);
    }

    /// Assigns a cell, unless the value is the arriving one.
    fn put(&mut self, terms: &mut Terms, field: Field, value: Term) {
        if !self.cells.contains_key(&field) && value == self.cell(terms, field) {
            return;
        }
        self.cells.insert(field, value);
    }

    /// Marks the checksums that an assignment updates.
    fn follow(&mut self, terms: &mut Terms, kind: &Kind, parsed: &Packet, field: Field) {
        let yes = terms.bool(true);
        match field.info().header {
            Header::Eth | Header::Vlan | Header::Vlan2 | Header::Arp | Header::Mpls => {}
            Header::Ip4 => {
                self.touch(terms, Sum::Ip, yes);
                self.follow_address(terms, field, Sum::Transport);
            }
            Header::Ip6 => self.follow_address(terms, field, Sum::Transport),
            Header::Inet => {
                let four = kind.has(terms, parsed, Header::Ip4);
                self.touch(terms, Sum::Ip, four);
            }
            Header::GreKey => self.touch(terms, Sum::Gre, yes),
            Header::Quoted4 | Header::Quoted6 => {
                if field.info().header == Header::Quoted4 {
                    self.touch(terms, Sum::QuotedIp, yes);
                }
                self.follow_address(terms, field, Sum::QuotedTransport);
                self.touch(terms, Sum::Transport, yes);
            }
            Header::QuotedL4 | Header::QuotedEcho => {
                self.touch(terms, Sum::QuotedTransport, yes);
                self.touch(terms, Sum::Transport, yes);
            }
            _ => self.touch(terms, Sum::Transport, yes),
        }
    }

    /// Touches a transport checksum if it covers the field, which may be an address.
    fn follow_address(&mut self, terms: &mut Terms, field: Field, sum: Sum) {
        use Field::{Ip6Dst, Ip6Src, IpDst, IpSrc};
        use Field::{QuotedIp6Dst, QuotedIp6Src, QuotedIpDst, QuotedIpSrc};
        let [covers, last] = match sum {
            Sum::QuotedTransport => {
                ["quoted checksum covers addresses", "quoted destination is the last"]
            }
            _ => [COVERS_ADDRESSES, "destination is the last"],
        };
        let [covers, plain] = [covers, last].map(|name| terms.var(name, Sort::Bool));
        let covered = match field {
            IpSrc | Ip6Src | QuotedIpSrc | QuotedIp6Src => covers,
            IpDst | Ip6Dst | QuotedIpDst | QuotedIp6Dst => terms.both(covers, plain),
            _ => return,
        };
        self.touch(terms, sum, covered);
    }

    fn touch(&mut self, terms: &mut Terms, sum: Sum, when: Term) {
        let place = &mut self.sums[sum as usize];
        *place = terms.or(&[*place, when]);
    }

    /// Adds an outermost tag.
    pub(crate) fn push_vlan(&mut self, terms: &mut Terms, id: Term) {
        let tag = Tag {
            present: terms.bool(true),
            tpid: terms.bits(16, 0x8100),
            pcp: terms.bits(3, 0),
            dei: terms.bits(1, 0),
            id: terms.resize(id, 12),
        };
        self.vlans.pop();
        self.vlans.insert(0, tag);
        let four = terms.bits(16, 4);
        self.grown = terms.op(BitOp::Add, self.grown, four);
    }

    /// Removes the outermost tag.
    pub(crate) fn pop_vlan(&mut self, terms: &mut Terms) {
        self.vlans.remove(0);
        let none = Tag {
            present: terms.bool(false),
            tpid: terms.bits(16, 0),
            pcp: terms.bits(3, 0),
            dei: terms.bits(1, 0),
            id: terms.bits(12, 0),
        };
        self.vlans.push(none);
        let four = terms.bits(16, 4);
        self.grown = terms.op(BitOp::Sub, self.grown, four);
    }
}

/// Whether a field stands for the same field of both IP versions.
fn name_of_either(field: Field) -> bool {
    use Field::*;
    matches!(
        field,
        InetVersion
            | InetSrc
            | InetDst
            | InetProto
            | InetTtl
            | InetSport
            | InetDport
            | QuotedInetVersion
            | QuotedInetSrc
            | QuotedInetDst
            | QuotedInetSport
            | QuotedInetDport
    )
}
