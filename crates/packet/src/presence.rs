//! Which sets of headers a packet can have: every value of [`Layout::presence`].
//!
//! [`Layout::presence`]: crate::Layout::presence

use crate::field::Header::{self, *};

/// Every set of headers that a parse can give, as bits by [`Header`] number, in ascending order
/// (about a thousand).
#[must_use]
pub fn presences() -> Vec<u32> {
    let mut all = Vec::new();
    for link in [&[] as &[Header], &[Eth], &[Eth, Vlan], &[Eth, Vlan, Vlan2]] {
        let start = bits(link) | bits(&[Pkt]);
        all.extend([start, start | bits(&[Mpls])]);
        if link.contains(&Eth) {
            all.push(start | bits(&[Arp]));
        }
        for version in [Ip4, Ip6] {
            for auth in [&[] as &[Header], &[Ah]] {
                let network = start | bits(&[Inet, version]) | bits(auth);
                all.extend(transports(version).into_iter().map(|headers| network | headers));
            }
        }
    }
    all.sort_unstable();
    all
}

/// What can be behind an IP header and AH, nothing included.
fn transports(version: Header) -> Vec<u32> {
    let mut all = vec![
        0,
        bits(&[L4, Udp]),
        bits(&[L4, Udp, Vxlan]),
        bits(&[Gre]),
        bits(&[Gre, GreKey]),
        bits(&[Esp]),
    ];
    let options = [TcpMss, TcpWscale, TcpSackOk, TcpTs];
    for chosen in 0..1_u32 << options.len() {
        let some = options.iter().enumerate().filter(|(place, _)| chosen & (1 << place) != 0);
        all.push(some.fold(bits(&[L4, Tcp]), |headers, (_, option)| headers | bits(&[*option])));
    }
    let (icmp, echo, quoted) =
        if version == Ip4 { (Icmp, IcmpEcho, Quoted4) } else { (Icmp6, Icmp6Echo, Quoted6) };
    all.extend([bits(&[icmp]), bits(&[icmp, echo])]);
    for behind in [&[] as &[Header], &[QuotedL4], &[QuotedEcho]] {
        all.push(bits(&[icmp, Quoted, quoted]) | bits(behind));
    }
    all
}

fn bits(headers: &[Header]) -> u32 {
    headers.iter().fold(0, |bits, header| bits | 1 << *header as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Link};
    use std::collections::BTreeSet;

    /// Bytes that are often enough what a parse looks for.
    fn random_frame(state: &mut u64) -> Vec<u8> {
        let mut next = || {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (*state >> 33) as u32
        };
        let kinds: [[u8; 2]; 7] =
            [[8, 0], [0x86, 0xdd], [8, 6], [0x81, 0], [0x88, 0xa8], [0x88, 0x47], [8, 0]];
        let protos = [6, 17, 1, 58, 47, 51, 50, 4];
        let mut bytes = vec![2; 12];
        for _ in 0..next() % 4 {
            let kind = kinds[next() as usize % kinds.len()];
            bytes.extend(kind);
            match kind {
                [0x81, 0] | [0x88, 0xa8] => {
                    bytes.extend([0, 5]);
                    continue;
                }
                [0x86, 0xdd] => {
                    bytes.extend([0x60, 0, 0, 0, 0, 60, protos[next() as usize % 8], 9]);
                    bytes.extend([1; 32]);
                }
                [8, 6] => bytes.extend([0, 1, 8, 0, 6, 4, 0, 1]),
                _ => {
                    bytes.extend([0x45, 0, 0, 100, 0, 0, 0, 0, 9, protos[next() as usize % 8]]);
                    bytes.extend([0; 10]);
                }
            }
            break;
        }
        while bytes.len() < 140 {
            let small = [0, 1, 2, 3, 4, 8, 11, 17, 0x12, 0xb5, 0x45, 0x60, 0x20, 0x50, 0x70, 128];
            bytes.push(small[next() as usize % small.len()]);
        }
        let cut = if next() % 4 == 0 { next() as usize % bytes.len() } else { bytes.len() };
        bytes.truncate(cut);
        bytes
    }

    #[test]
    fn presences_hold_whatever_a_parse_gives() {
        let all: BTreeSet<u32> = presences().into_iter().collect();
        let mut state = 1;
        let mut seen = BTreeSet::new();
        for _ in 0..200_000 {
            let frame = random_frame(&mut state);
            for link in [Link::Ethernet, Link::RawIp, Link::Cooked, Link::Cooked2] {
                let skip = if link == Link::RawIp { 14.min(frame.len()) } else { 0 };
                let wire = u32::try_from(frame.len() - skip).unwrap();
                seen.insert(Layout::parse(link, &frame[skip..], wire).presence());
            }
        }
        let strange: Vec<_> = seen.difference(&all).collect();
        assert!(strange.is_empty(), "a parse gives headers that are not listed: {strange:x?}");
        assert!(seen.len() > 60, "the frames reach {} sets of headers only", seen.len());
    }

    #[test]
    fn presences_keep_what_headers_imply() {
        for headers in presences() {
            for (header, _) in crate::HEADERS {
                let implied = bits(header.implies());
                let present = headers & bits(&[*header]) != 0;
                assert!(!present || headers & implied == implied, "{headers:x} {header:?}");
            }
        }
    }

    #[test]
    fn presences_are_listed_once() {
        let all = presences();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
