//! The sets of headers that a packet can have. They are written from the rules of `docs/packets.md`
//! and do not use the parser's code.

use braid_packet::Header;
use braid_packet::Header::{
    Ah, Arp, Esp, Eth, Geneve, Gre, GreKey, Icmp, Icmp6, Icmp6Echo, IcmpEcho, Inet, Ip4, Ip6, L4,
    Mpls, Pkt, Ppp, Pppoe, Quoted, Quoted4, Quoted6, QuotedEcho, QuotedL4, Tcp, TcpMss, TcpSackOk,
    TcpTs, TcpWscale, Udp, Vlan, Vlan2, Vxlan,
};

use crate::term::{Term, Terms};

/// The bit of a header in a mask of headers.
#[must_use]
pub fn bit(header: Header) -> u128 {
    1 << header as u32
}

fn mask(headers: &[Header]) -> u128 {
    headers.iter().fold(0, |mask, header| mask | bit(*header))
}

/// Every set of headers that a packet can have.
#[must_use]
pub fn all() -> Vec<u128> {
    let links = [&[][..], &[Eth], &[Eth, Vlan], &[Eth, Vlan, Vlan2]];
    let mut found = Vec::new();
    for link in links {
        let base = mask(link) | bit(Pkt);
        found.push(base);
        found.push(base | bit(Mpls));
        if base & bit(Eth) != 0 {
            found.push(base | bit(Arp));
        }
        let session = mask(&[Pppoe, Ppp]);
        found.extend([base | bit(Pppoe), base | session]);
        for behind in network() {
            found.extend([base | behind, base | session | behind]);
        }
    }
    found
}

/// The sets of an IP header and the headers behind it.
fn network() -> Vec<u128> {
    let mut found = Vec::new();
    for (version, behind) in [(Ip4, messages(4)), (Ip6, messages(6))] {
        for auth in [0, bit(Ah)] {
            for transport in transports().into_iter().chain(behind.iter().copied()) {
                found.push(mask(&[version, Inet]) | auth | transport);
            }
        }
    }
    found
}

/// The sets of headers behind an IP header of either version, including the empty set.
fn transports() -> Vec<u128> {
    let mut found = vec![0, bit(Esp), bit(Gre), mask(&[Gre, GreKey])];
    found.extend([mask(&[L4, Udp]), mask(&[L4, Udp, Vxlan]), mask(&[L4, Udp, Geneve])]);
    let options = [TcpMss, TcpWscale, TcpSackOk, TcpTs];
    for chosen in 0..1_u32 << options.len() {
        let picked = options.iter().enumerate().filter(|(place, _)| chosen >> place & 1 == 1);
        found.push(picked.fold(mask(&[L4, Tcp]), |mask, (_, option)| mask | bit(*option)));
    }
    found
}

/// The sets of headers of ICMP messages of a version.
fn messages(version: u8) -> Vec<u128> {
    let (icmp, echo, quoted) =
        if version == 4 { (Icmp, IcmpEcho, Quoted4) } else { (Icmp6, Icmp6Echo, Quoted6) };
    let error = mask(&[icmp, Quoted, quoted]);
    vec![bit(icmp), mask(&[icmp, echo]), error, error | bit(QuotedL4), error | bit(QuotedEcho)]
}

/// The rules between the headers of any packet. `has` gives the term for a header's presence.
pub fn rules(terms: &mut Terms, has: &dyn Fn(&mut Terms, Header) -> Term) -> Vec<Term> {
    let mut found = Vec::new();
    let implications: &[(Header, &[Header])] = &[
        (Vlan, &[Eth]),
        (Vlan2, &[Vlan]),
        (Arp, &[Eth]),
        (Tcp, &[L4]),
        (Udp, &[L4]),
        (TcpMss, &[Tcp]),
        (TcpWscale, &[Tcp]),
        (TcpSackOk, &[Tcp]),
        (TcpTs, &[Tcp]),
        (Vxlan, &[Udp]),
        (Geneve, &[Udp]),
        (Ppp, &[Pppoe]),
        (IcmpEcho, &[Icmp]),
        (Icmp6Echo, &[Icmp6]),
        (Icmp, &[Ip4]),
        (Icmp6, &[Ip6]),
        (GreKey, &[Gre]),
        (Gre, &[Inet]),
        (Ah, &[Inet]),
        (Esp, &[Inet]),
        (Quoted4, &[Quoted, Icmp]),
        (Quoted6, &[Quoted, Icmp6]),
        (QuotedL4, &[Quoted]),
        (QuotedEcho, &[Quoted]),
        (L4, &[Inet]),
    ];
    for (header, implied) in implications {
        let here = has(terms, *header);
        let not = terms.not(here);
        for other in *implied {
            let there = has(terms, *other);
            found.push(terms.or(&[not, there]));
        }
    }
    let alternatives: &[(Header, &[Header])] =
        &[(Inet, &[Ip4, Ip6]), (L4, &[Tcp, Udp]), (Quoted, &[Quoted4, Quoted6])];
    for (either, of) in alternatives {
        let whole = has(terms, *either);
        let parts: Vec<_> = of.iter().map(|header| has(terms, *header)).collect();
        let any = terms.or(&parts);
        found.push(terms.eq(whole, any));
    }
    let exclusive: &[&[Header]] = &[
        &[Ip4, Ip6, Arp, Mpls],
        &[Pppoe, Arp, Mpls],
        &[Tcp, Udp, Icmp, Icmp6, Gre, Esp],
        &[Vxlan, Geneve],
        &[IcmpEcho, Quoted],
        &[Icmp6Echo, Quoted],
        &[QuotedL4, QuotedEcho],
    ];
    for group in exclusive {
        for (place, one) in group.iter().enumerate() {
            for other in &group[place + 1..] {
                let (a, b) = (has(terms, *one), has(terms, *other));
                let both = terms.both(a, b);
                found.push(terms.not(both));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Kind, Packet, arriving};
    use crate::term::Sort;
    use braid_ir::residual::HeaderMask;
    use braid_packet::{FIELDS, Field, HEADERS, Layout, Link};

    #[test]
    fn every_set_of_headers_keeps_the_rules_and_is_there_once() {
        let mut terms = Terms::default();
        let mut sets = all();
        for set in &sets {
            let rules = rules(&mut terms, &|terms, header| terms.bool(set & bit(header) != 0));
            let all = terms.and(&rules);
            assert_eq!(terms.decided(all), Some(true), "{set:#x}");
        }
        let count = sets.len();
        sets.sort_unstable();
        sets.dedup();
        assert_eq!(sets.len(), count);
    }

    #[test]
    fn implied_headers_of_the_field_table_are_in_every_set() {
        for set in all() {
            for (header, name) in HEADERS.iter().filter(|(header, _)| set & bit(*header) != 0) {
                let implied = mask(header.implies());
                assert_eq!(set & implied, implied, "{name} in {set:#x}");
            }
        }
    }

    #[test]
    fn parsed_packets_have_one_of_the_sets() {
        let sets = all();
        // Bytes from a small generator, biased towards recognised headers.
        let mut rng = braid_externs::Rng::new(1);
        let mut byte = || rng.next_u64().to_be_bytes()[0];
        let ports: Vec<u16> = Header::behind_ports()
            .flat_map(|header| header.announced_by(Field::UdpDport).to_vec())
            .collect();
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..braid_cases::at_least(60_000) {
            let mut data: Vec<u8> = (0..90).map(|_| byte()).collect();
            data[12..14].copy_from_slice(&[0x08, [0x00, 0x06][usize::from(round % 17 == 0)]]);
            data[14] = 0x45;
            data[16..22].copy_from_slice(&[0, 76, 0, 0, 0, 0]);
            data[23] = [6, 17, 1, 47, 50, 51, 58, 6][round as usize % 8];
            data[46] = 0x50 | data[46] & 0x30;
            data[38..40].copy_from_slice(&[0, 40]);
            if round % 5 == 0 {
                let port = ports[round as usize / 5 % ports.len()];
                data[36..38].copy_from_slice(&port.to_be_bytes());
            }
            if round % 3 == 0 {
                data[34] = [0, 8, 3, 11][round as usize / 3 % 4];
                data[42] = 0x45;
                data[51] = [6, 17, 1][round as usize / 12 % 3];
            }
            let data = if round % 7 == 0 { &data[14..] } else { &data[..] };
            let link = if round % 7 == 0 { Link::RawIp } else { Link::Ethernet };
            let set = Layout::parse(link, data, data.len() as u32).presence();
            assert!(sets.contains(&set), "{set:#x}");
            seen.insert(set);
        }
        assert!(seen.len() > 20, "{} sets", seen.len());
    }

    #[test]
    fn headers_that_an_assigned_field_decides_are_not_those_of_the_arrival() {
        let shape = HeaderMask { care: 0, present: 0 };
        let mut terms = Terms::default();
        let kind = Kind::new(&mut terms, shape);
        for info in FIELDS {
            let mut packet = Packet::arriving(&mut terms, shape);
            let new = terms.var("new", Sort::Bits(info.width));
            packet.cells.insert(info.field.owner(), new);
            for header in info.field.decides() {
                let (now, before) =
                    (kind.has(&mut terms, &packet, header), arriving(&mut terms, shape, header));
                assert_ne!(now, before, "{} after {}", header.name(), info.name);
            }
        }
    }

    #[test]
    fn rules_speak_of_headers_that_are_not_known() {
        let mut terms = Terms::default();
        let rules = rules(&mut terms, &|terms, header| terms.var(header.name(), Sort::Bool));
        assert!(rules.iter().all(|rule| terms.decided(*rule).is_none()));
    }
}
