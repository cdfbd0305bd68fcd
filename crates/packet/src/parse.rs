//! Finds the headers of a packet in one total parse without allocations. The headers' declarations
//! drive it.

mod fast;

use crate::declare::{Behind, Declaration, Parse};
use crate::field::{behind, behind_port};
use crate::layout::Layout;
use crate::link::Link;
use crate::malformed::Malformed;
use crate::names::{Base, Field, Header};
use crate::window::{Stop, Window};
use crate::wire::{cooked, ethernet, ipv4, ipv6, vlan};

impl Layout {
    /// Parses a packet of `wire_len` bytes. `data` holds the captured ones. It never fails. Bytes
    /// that are not recognised are payload, and a header that contradicts itself makes the packet
    /// [malformed](Self::malformed).
    #[inline]
    #[must_use]
    pub fn parse(link: Link, data: &[u8], wire_len: u32) -> Layout {
        let mut layout = Layout::default();
        layout.parse_here(link, data, wire_len);
        layout
    }

    /// Parses like [`Self::parse`], into this layout. Copying a layout right after it was written
    /// takes longer than making it, so this function makes it in place.
    #[inline(always)]
    pub fn parse_here(&mut self, link: Link, data: &[u8], wire_len: u32) {
        let wire = usize::try_from(wire_len).unwrap_or(usize::MAX).max(data.len());
        let parsed = if link == Link::Ethernet { fast::parse(self, data, wire) } else { None };
        match parsed {
            Some(0) => {}
            Some(port) => parse_behind_udp(self, data, port),
            None => *self = parse_any(link, data, wire_len),
        }
    }
}

/// Parses the headers behind UDP. The layout is complete up to there.
#[inline(never)]
fn parse_behind_udp(layout: &mut Layout, data: &[u8], port: u16) {
    let (payload, end) = (layout.payload_offset(), layout.payload_end());
    let rest = Window::new(data, end).limit(end).skip(payload);
    if let Some(declaration) = behind_port(port)
        && let (Parse::Rules(rules), (Base::L4, _)) = (&declaration.parse, declaration.at)
        && rules.is_all_of(rest.bytes())
    {
        // The most common header, found in fewer steps than below.
        layout.add(declaration.header);
        layout.behind(rest.skip(rules.least));
        return;
    }
    if let Err(Stop::Bad(reason)) = walk(layout, Some((Field::UdpDport, port, rest))) {
        layout.set_malformed(reason);
    }
    layout.finish();
}

/// Parses any packet.
#[inline(never)]
fn parse_any(link: Link, data: &[u8], wire_len: u32) -> Layout {
    let window = Window::new(data, usize::try_from(wire_len).unwrap_or(usize::MAX));
    let mut layout = Layout::of_nothing(window, data.len());
    if let Err(Stop::Bad(reason)) = parse_link(&mut layout, link, window) {
        layout.set_malformed(reason);
    }
    layout.finish();
    layout
}

/// Parses the link header and everything behind it.
fn parse_link(layout: &mut Layout, link: Link, window: Window<'_>) -> Result<(), Stop> {
    let (kind, rest) = match link {
        Link::Ethernet => return parse_ethernet(layout, window),
        Link::RawIp => return parse_raw(layout, window),
        Link::Cooked => cooked::check(window)?,
        Link::Cooked2 => cooked::check2(window)?,
    };
    layout.behind(rest);
    let (kind, rest) = parse_tags(layout, kind, rest, false)?;
    walk(layout, Some((Field::EthType, kind, rest)))
}

fn parse_ethernet(layout: &mut Layout, window: Window<'_>) -> Result<(), Stop> {
    let (kind, rest) = ethernet::check(window)?;
    layout.add(Header::Eth);
    layout.behind(rest);
    layout.set_ether_type(kind, Some(ethernet::TYPE));
    let (kind, rest) = parse_tags(layout, kind, rest, true)?;
    let (kind, rest) = ethernet::length_or_type(kind, rest)?;
    layout.set_ether_type(kind, None);
    layout.behind(rest);
    walk(layout, Some((Field::EthType, kind, rest)))
}

/// Parses VLAN tags. With `named`, the first two tags are headers that models can name.
fn parse_tags<'a>(
    layout: &mut Layout,
    mut kind: u16,
    mut rest: Window<'a>,
    named: bool,
) -> Result<(u16, Window<'a>), Stop> {
    let mut tags = 0;
    while vlan::is_tag(kind) {
        if tags == vlan::MAX {
            return Err(Stop::Bad(Malformed::VlanDepth));
        }
        (kind, rest) = vlan::check(rest)?;
        tags += 1;
        layout.behind(rest);
        if named {
            layout.set_ether_type(kind, Some(ethernet::TYPE + tags * vlan::LEN));
            match tags {
                1 => layout.add(Header::Vlan),
                2 => layout.add(Header::Vlan2),
                _ => {}
            }
        }
    }
    Ok((kind, rest))
}

/// Parses a packet that begins with an IP header.
fn parse_raw(layout: &mut Layout, window: Window<'_>) -> Result<(), Stop> {
    let first = window.fixed::<1>(Malformed::IpShort)?;
    let declaration = match first[0] >> 4 {
        4 => &ipv4::IP4,
        6 => &ipv6::IP6,
        _ => return Err(Stop::Bad(Malformed::IpVersion)),
    };
    let next = parse_one(layout, declaration, window)?;
    walk(layout, next)
}

/// Parses each announced header in turn.
fn walk(layout: &mut Layout, mut next: Behind<'_>) -> Result<(), Stop> {
    while let Some((field, value, window)) = next {
        let Some(declaration) = behind(field, value) else { return Ok(()) };
        next = parse_one(layout, declaration, window)?;
    }
    Ok(())
}

/// Parses one header.
fn parse_one<'a>(
    layout: &mut Layout,
    declaration: &Declaration,
    window: Window<'a>,
) -> Result<Behind<'a>, Stop> {
    match declaration.parse {
        Parse::Other => Ok(None),
        Parse::Own(own) => own.0(layout, window),
        Parse::Rules(rules) => {
            let (next, rest) = rules.check(window)?;
            layout.add(declaration.header);
            if let (Base::Network, 0) = declaration.at {
                layout.begin(Base::Network, window);
            }
            layout.behind(rest);
            Ok(next.map(|(field, value)| (field, value, rest)))
        }
    }
}
