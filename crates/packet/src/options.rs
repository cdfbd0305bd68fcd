//! TCP options: adds one in front of the others, and makes one void. Lengths and checksums follow.

use crate::checksum::{self, Delta};
use crate::field::Header;
use crate::layout::Layout;
use crate::lengths::{self, write};
use crate::packet::Packet;
use crate::window::number;
use crate::wire::tcp;
use crate::wire::tcp::Form;

/// The TCP options that models can name.
pub const NAMED: [Header; 4] = tcp::NAMED;

/// The most values of a TCP option.
pub const MOST_VALUES: usize = 2;

/// The most bytes of an option with the NOPs that fill its words.
const MOST_BYTES: usize = 12;

/// The most bytes whose change a difference of a sum covers.
const PIECE: usize = 16;

/// How many bytes a packet grows by when it gets an option of this form: whole words.
fn grows(form: &Form) -> usize {
    form.len().next_multiple_of(4)
}

/// An option with these values, behind as many NOPs as fill its words, and then bytes without
/// meaning. Lacking values are 0.
fn written(form: &Form, values: &[u128]) -> [u8; MOST_BYTES] {
    let mut bytes = [tcp::NOP; MOST_BYTES];
    let own = [form.kind, u8::try_from(form.len()).unwrap_or(u8::MAX)];
    let values = (0..).zip(form.values).flat_map(|(at, len): (usize, _)| {
        let value = values.get(at).copied().unwrap_or(0);
        value.to_be_bytes().into_iter().skip(16 - len)
    });
    let places = bytes.iter_mut().skip(grows(form) - form.len());
    places.zip(own.into_iter().chain(values)).for_each(|(place, byte)| *place = byte);
    bytes
}

/// The number of bytes that a packet grows by when it gets a TCP option. `None` for headers that
/// are no such option.
#[must_use]
pub fn growth(option: Header) -> Option<usize> {
    Form::of(option).map(grows)
}

/// The number of bytes of each value of a TCP option. Empty for headers that are no such option.
#[must_use]
pub fn values(option: Header) -> &'static [usize] {
    Form::of(option).map_or(&[], |form| form.values)
}

/// Whether options of a kind are headers with names.
#[must_use]
pub fn has_name(kind: u8) -> bool {
    NAMED.iter().filter_map(|option| Form::of(*option)).any(|form| form.kind == kind)
}

/// Whether a packet can get a TCP option: it has TCP and lacks the option, its TCP header stays
/// within 60 bytes, and the lengths in its other headers can grow. False for fragments.
#[must_use]
pub fn has_room(packet: &Packet, layout: &Layout, option: Header) -> bool {
    let Some(more) = growth(option) else { return false };
    !layout.has(option) && takes(packet, layout, more)
}

/// Whether a packet has TCP, and room for this number of bytes of options.
fn takes(packet: &Packet, layout: &Layout, more: usize) -> bool {
    layout.has(Header::Tcp)
        && options_len(packet, layout) + more <= tcp::MOST_OPTIONS
        && lengths::can_grow(packet, layout, more)
}

/// Adds a TCP option in front of the others, behind as many NOPs as fill its words. `values` are
/// the option's values in their order. Earlier layouts become invalid. Returns false, and changes
/// nothing, if there is no room ([`has_room`]).
pub fn push(packet: &mut Packet, layout: &Layout, option: Header, values: &[u128]) -> bool {
    let Some(form) = Form::of(option).filter(|_| has_room(packet, layout, option)) else {
        return false;
    };
    let bytes = written(form, values);
    insert(packet, layout, bytes.get(..grows(form)).unwrap_or_default())
}

/// Puts whole words of options in front of the others.
fn insert(packet: &mut Packet, layout: &Layout, bytes: &[u8]) -> bool {
    if !packet.insert(layout.l4() + tcp::LEN, bytes) {
        return false;
    }
    let longer = lengths::change(packet, layout, bytes.len(), 0);
    // The data offset counts words in the upper half of its byte.
    let offset = layout.l4() + tcp::DATA_OFFSET;
    let before = packet.data().get(offset).copied().unwrap_or(0);
    let after = before.wrapping_add(u8::try_from(bytes.len() / 4).unwrap_or(0) << 4);
    write(packet, offset, &[after]);
    // The new bytes stand for zeros that were not there.
    let new = bytes.chunks(PIECE).map(|part| Delta::between(0, number(part), part.len()));
    let delta = Delta::between(before.into(), after.into(), 1);
    let delta = new.fold(delta, Delta::and).and(longer);
    if let Some(sum) = layout.sum() {
        checksum::update(packet.data_mut(), sum.at, delta, sum.is_udp());
    }
    true
}

/// Overwrites the first TCP option of this form with NOPs. Lengths stay. Earlier layouts become
/// invalid. Returns false, and changes nothing, if the packet lacks the option.
pub fn pop(packet: &mut Packet, layout: &Layout, option: Header) -> bool {
    let Some(form) = Form::of(option).filter(|_| layout.has(option)) else { return false };
    let is_it = |(kind, _, bytes): &(u8, usize, &[u8])| form.fits(*kind, bytes);
    let Some((_, at, bytes)) = all(packet, layout).find(is_it) else { return false };
    let len = bytes.len();
    void(packet, layout, at, len);
    true
}

/// Overwrites bytes of options with NOPs.
fn void(packet: &mut Packet, layout: &Layout, at: usize, len: usize) {
    let nops = [tcp::NOP; tcp::MOST_OPTIONS];
    let start = layout.l4() + tcp::LEN;
    for from in (at..at + len).step_by(PIECE) {
        let count = PIECE.min(at + len - from);
        let nops = nops.get(..count).unwrap_or_default();
        let old = packet.data().get(start + from..start + from + count).map_or(0, number);
        let delta = Delta::between(old, number(nops), count).at(from);
        write(packet, start + from, nops);
        if let Some(sum) = layout.sum() {
            checksum::update(packet.data_mut(), sum.at, delta, sum.is_udp());
        }
    }
}

/// Adds a TCP option of any kind with a value, in front of the others and behind as many NOPs as
/// fill its words, or without a value overwrites the first option of this kind with NOPs. Earlier
/// layouts become invalid. Returns false, and changes nothing, if the packet has such an option
/// already or has no room (see [`has_room`]), or if it has none to remove.
pub fn set(packet: &mut Packet, layout: &Layout, kind: u8, value: Option<&[u8]>) -> bool {
    let before = all(packet, layout).find(|(found, ..)| *found == kind);
    let before = before.map(|(_, at, bytes)| (at, bytes.len()));
    match (before, value) {
        (Some((at, len)), None) => {
            void(packet, layout, at, len);
            true
        }
        (None, Some(value)) => {
            let len = 2 + value.len();
            let words = len.next_multiple_of(4);
            if !takes(packet, layout, words) {
                return false;
            }
            let mut bytes = [tcp::NOP; tcp::MOST_OPTIONS];
            let own = [kind, u8::try_from(len).unwrap_or(u8::MAX)];
            let places = bytes.iter_mut().skip(words - len);
            places.zip(own.iter().chain(value)).for_each(|(place, byte)| *place = *byte);
            insert(packet, layout, bytes.get(..words).unwrap_or_default())
        }
        _ => false,
    }
}

/// Adds a TCP option with these values ([`push`]), or without values removes it ([`pop`]).
pub fn change(
    packet: &mut Packet,
    layout: &Layout,
    option: Header,
    values: Option<&[u128]>,
) -> bool {
    match values {
        Some(values) => push(packet, layout, option, values),
        None => pop(packet, layout, option),
    }
}

/// The place in the packet and the length of the value of the first TCP option of a kind. `None` if
/// the packet has none.
pub(crate) fn value(packet: &Packet, layout: &Layout, kind: u8) -> Option<(usize, usize)> {
    let start = layout.l4() + tcp::LEN;
    let found = all(packet, layout).find(|(found, ..)| *found == kind);
    found.map(|(_, at, bytes)| (start + at + 2, bytes.len() - 2))
}

/// The TCP options of a packet: their kinds, their offsets behind the fixed header, and their
/// bytes. None without TCP.
fn all<'a>(
    packet: &'a Packet,
    layout: &Layout,
) -> impl Iterator<Item = (u8, usize, &'a [u8])> + use<'a> {
    let start = layout.l4() + tcp::LEN;
    let bytes = match layout.has(Header::Tcp) {
        true => packet.data().get(start..start + options_len(packet, layout)),
        false => None,
    };
    tcp::each(bytes.unwrap_or_default()).flatten()
}

/// The number of bytes of options.
fn options_len(packet: &Packet, layout: &Layout) -> usize {
    let offset = packet.data().get(layout.l4() + tcp::DATA_OFFSET);
    offset.map_or(0, |byte| usize::from(byte >> 4) * 4).saturating_sub(tcp::LEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::verify;
    use crate::field::Field;
    use crate::{Link, Shape, build_fresh};

    const ALL: [(Header, &[u128]); 4] = [
        (Header::TcpMss, &[1460]),
        (Header::TcpWscale, &[7]),
        (Header::TcpSackOk, &[]),
        (Header::TcpTs, &[0x0102_0304, 9]),
    ];

    fn segment(shape: Shape, payload: &[u8]) -> Packet {
        let fields = [(Field::TcpSport, 7), (Field::TcpDport, 80), (Field::TcpFlags, 2)];
        build_fresh(Link::Ethernet, 0, shape, &fields, payload).unwrap()
    }

    /// The packet with other bytes between the MAC addresses and the IP header.
    fn behind(packet: &Packet, link: &[u8]) -> Packet {
        let data = packet.data();
        Packet::new(Link::Ethernet, 0, [&data[..12], link, &data[14..]].concat())
    }

    fn add(packet: &mut Packet, option: Header, values: &[u128]) -> bool {
        let layout = packet.parse();
        push(packet, &layout, option, values)
    }

    #[test]
    fn options_that_are_added_are_found_and_lengths_and_checksums_follow() {
        for shape in [Shape::Tcp4, Shape::Tcp6] {
            let mut packet = segment(shape, b"abc");
            let mut len = packet.wire_len as usize;
            for (option, values) in ALL {
                assert!(add(&mut packet, option, values));
                let layout = packet.parse();
                len += growth(option).unwrap();
                assert_eq!((packet.data().len(), packet.wire_len as usize), (len, len));
                assert!(layout.has(option) && verify(&packet, &layout).all_right(), "{option:?}");
                for (info, value) in option.info().fields.iter().zip(values) {
                    assert_eq!(packet.get(&layout, info.field), Some(*value));
                }
                assert_eq!(packet.payload(&layout), b"abc");
                // The packet has the option now.
                assert!(!add(&mut packet, option, values));
            }
            assert_eq!(packet.get(&packet.parse(), Field::TcpHlen), Some(20 + 4 + 4 + 4 + 12));
        }
    }

    #[test]
    fn a_wrong_checksum_stays_wrong_by_the_same_amount() {
        let mut packet = segment(Shape::Tcp4, b"abc");
        let at = packet.parse().sum().unwrap().at;
        packet.data_mut()[at] ^= 0x40;
        for (option, values) in ALL {
            assert!(add(&mut packet, option, values));
        }
        let wrong = packet.clone();
        checksum::fill(&mut packet);
        assert_eq!(packet.data()[at] ^ 0x40, wrong.data()[at]);
    }

    #[test]
    fn lengths_in_front_of_ip_follow() {
        let plain = segment(Shape::Tcp4, b"abc");
        let body = u8::try_from(plain.data().len() - 14).unwrap();
        let session = [0x88, 0x64, 0x11, 0, 0, 5, 0, body + 2, 0x00, 0x21];
        let snap = [0, body + 8, 0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00];
        for (link, at) in [(session, 12 + 6), (snap, 12)] {
            let mut packet = behind(&plain, &link);
            assert!(packet.parse().has(Header::Tcp));
            assert!(add(&mut packet, Header::TcpTs, &[1, 2]));
            let layout = packet.parse();
            assert!(layout.has(Header::TcpTs) && verify(&packet, &layout).all_right());
            assert_eq!(packet.data()[at + 1], link[at - 12 + 1] + 12);
            assert_eq!(layout.malformed_reason(), None);
        }
    }

    #[test]
    fn nothing_changes_where_there_is_no_room() {
        let has_room = |packet: &Packet| has_room(packet, &packet.parse(), Header::TcpTs);
        let small = segment(Shape::Tcp4, b"");
        assert!(has_room(&small));
        // Of 40 bytes of options, 29 are taken; a form of this kind with another length is no
        // option with a name.
        let mut full = small.clone();
        full.insert(14 + 20 + 20, &[[8, 29].as_slice(), &[0; 27], &[1; 3]].concat());
        full.data_mut()[14 + 20 + 12] = 13 << 4;
        full.data_mut()[14 + 3] = 40 + 32;
        assert!(full.parse().has(Header::Tcp) && !has_room(&full));
        let before = full.clone();
        assert!(!add(&mut full, Header::TcpTs, &[1, 2]));
        assert_eq!(full, before);
        assert!(add(&mut full, Header::TcpMss, &[1]));
        let mut fragment = small.clone();
        fragment.data_mut()[14 + 6] = 0x20;
        let udp = build_fresh(Link::Ethernet, 0, Shape::Udp4, &[], b"").unwrap();
        let long = segment(Shape::Tcp6, &vec![0; 65_535 - 20 - 11]);
        let just = segment(Shape::Tcp6, &vec![0; 65_535 - 20 - 12]);
        assert!(has_room(&just));
        assert!([fragment, udp, long].iter().all(|packet| !has_room(packet)));
    }

    #[test]
    fn options_of_any_kind_are_added_once_and_removed() {
        let set = |packet: &mut Packet, kind, value: Option<&[u8]>| {
            let layout = packet.parse();
            super::set(packet, &layout, kind, value)
        };
        for shape in [Shape::Tcp4, Shape::Tcp6] {
            for len in [0, 1, 2, 15, 22, 38] {
                let value: Vec<u8> = (100..100 + len).collect();
                let plain = segment(shape, b"abc");
                let mut packet = plain.clone();
                assert!(!set(&mut packet, 30, None) && packet == plain);
                assert!(set(&mut packet, 30, Some(&value)));
                let layout = packet.parse();
                assert!(verify(&packet, &layout).all_right(), "{len}");
                assert_eq!(packet.payload(&layout), b"abc");
                let words = (2 + value.len()).next_multiple_of(4);
                assert_eq!(packet.data().len(), plain.data().len() + words);
                let (at, found) = super::value(&packet, &layout, 30).unwrap();
                assert_eq!(&packet.data()[at..at + found], &value);
                // The packet has the option now.
                let before = packet.clone();
                assert!(!set(&mut packet, 30, Some(&[1])) && packet == before);
                assert!(set(&mut packet, 30, None));
                let layout = packet.parse();
                assert!(verify(&packet, &layout).all_right(), "{len}");
                assert_eq!(packet.data().len(), plain.data().len() + words);
                let start = layout.l4() + tcp::LEN;
                assert!(packet.data()[start..start + words].iter().all(|byte| *byte == tcp::NOP));
                assert_eq!(packet.payload(&layout), b"abc");
            }
            let mut packet = segment(shape, b"abc");
            assert!(!set(&mut packet, 30, Some(&[0; 39])));
            let datagram = build_fresh(Link::Ethernet, 0, Shape::Udp4, &[], b"").unwrap();
            assert!(!set(&mut datagram.clone(), 30, Some(&[])));
        }
    }

    #[test]
    fn removed_options_become_nops_at_any_offset() {
        for shape in [Shape::Tcp4, Shape::Tcp6] {
            let mut packet = segment(shape, b"abc");
            ALL.iter().for_each(|(option, values)| assert!(add(&mut packet, *option, values)));
            let len = packet.data().len();
            for (option, _) in ALL {
                let layout = packet.parse();
                assert!(pop(&mut packet, &layout, option));
                let layout = packet.parse();
                assert!(!layout.has(option) && verify(&packet, &layout).all_right(), "{option:?}");
                assert!(!pop(&mut packet, &layout, option));
                assert_eq!(packet.data().len(), len);
            }
        }
    }

    #[test]
    fn of_two_options_the_first_one_is_removed() {
        let mut packet = segment(Shape::Tcp4, b"abc");
        assert!(add(&mut packet, Header::TcpMss, &[5]));
        packet.insert(14 + 20 + 24, &[2, 4, 0, 9]);
        packet.data_mut()[14 + 20 + 12] = 7 << 4;
        packet.data_mut()[14 + 3] += 4;
        checksum::fill(&mut packet);
        let layout = packet.parse();
        assert_eq!(packet.get(&layout, Field::TcpMss), Some(5));
        assert!(pop(&mut packet, &layout, Header::TcpMss));
        let layout = packet.parse();
        assert_eq!(packet.get(&layout, Field::TcpMss), Some(9));
        assert!(verify(&packet, &layout).all_right());
    }
}
