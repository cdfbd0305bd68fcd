//! Types, literals and fields for generated programs.

use crate::generate::Rng;
use braid_ir::model::{Kind, Ty};
use braid_packet::{Access, FIELDS, Field, Header};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Scalar types that states, tags and lets may have.
pub(super) const SCALARS: &[Ty] = &[
    Ty { width: 1, kind: Kind::Bool },
    Ty { width: 8, kind: Kind::Uint },
    Ty { width: 13, kind: Kind::Uint },
    Ty { width: 16, kind: Kind::Uint },
    Ty { width: 32, kind: Kind::Uint },
    Ty { width: 64, kind: Kind::Uint },
    Ty { width: 128, kind: Kind::Uint },
    Ty { width: 16, kind: Kind::Port },
    Ty { width: 32, kind: Kind::Ip4 },
    Ty { width: 128, kind: Kind::Ip6 },
    Ty { width: 128, kind: Kind::Addr },
    Ty { width: 48, kind: Kind::Mac },
    Ty { width: 64, kind: Kind::Duration },
    Ty { width: 64, kind: Kind::Time },
    Ty { width: 64, kind: Kind::Size },
];

/// `u32`, the type of counts.
pub(super) const U32: Ty = Ty { width: 32, kind: Kind::Uint };
/// `port`.
pub(super) const PORT: Ty = Ty { width: 16, kind: Kind::Port };
/// `ip4`.
pub(super) const IP4: Ty = Ty { width: 32, kind: Kind::Ip4 };
/// `ip6`.
pub(super) const IP6: Ty = Ty { width: 128, kind: Kind::Ip6 };
/// `addr`.
pub(super) const ADDR: Ty = Ty { width: 128, kind: Kind::Addr };
/// `size`.
pub(super) const SIZE: Ty = Ty { width: 64, kind: Kind::Size };
/// `bitrate`.
pub(super) const BITRATE: Ty = Ty { width: 64, kind: Kind::Bitrate };
/// `time`
pub(super) const TIME: Ty = Ty { width: 64, kind: Kind::Time };
/// `bool`.
pub(super) const BOOL: Ty = Ty { width: 1, kind: Kind::Bool };

/// A type in its written form.
pub(super) fn name(ty: Ty) -> String {
    match ty.kind {
        Kind::Uint => format!("u{}", ty.width),
        other => other.name().to_owned(),
    }
}

/// A literal of a type. It may differ from call to call.
pub(super) fn literal(rng: &mut Rng, ty: Ty) -> String {
    let small = rng.range(1, 200);
    match ty.kind {
        Kind::Bool => if rng.one_in(2) { "true" } else { "false" }.to_owned(),
        Kind::Ip4 => ip4(rng).to_string(),
        Kind::Ip6 => ip6(rng).to_string(),
        Kind::Addr if rng.one_in(2) => ip4(rng).to_string(),
        Kind::Addr => ip6(rng).to_string(),
        Kind::Mac => format!("02:00:00:00:00:{:02x}", small),
        Kind::Port => rng.pick(&[53, 80, 443, 1024, 5000, 8080]).to_string(),
        Kind::Duration => duration(rng),
        Kind::Time | Kind::Length | Kind::Bytes => "0".to_owned(),
        Kind::Size => match rng.below(3) {
            0 => format!("{small} B"),
            1 => "1 KiB".to_owned(),
            _ => format!("{}", 40 + small * 4),
        },
        Kind::Bitrate => format!("{small} kbit/s"),
        Kind::Uint => {
            let max = ty.max().min(1 << 40);
            let value = match rng.below(4) {
                0 => rng.wide() % max.max(1),
                1 => max - u128::from(small) % max.max(1),
                _ => u128::from(small).min(max),
            };
            if rng.one_in(4) { format!("{value:#x}") } else { value.to_string() }
        }
    }
}

/// An address from a small set, so that functions and traffic use the same ones.
pub(super) fn ip4(rng: &mut Rng) -> Ipv4Addr {
    let base = *rng.pick(&[0x0a00_0000, 0x0a01_0200, 0xc633_6400, 0xcb00_7100]);
    Ipv4Addr::from_bits(base + u32::try_from(rng.range(1, 6)).unwrap_or(1))
}

/// An IPv6 address from a small set.
pub(super) fn ip6(rng: &mut Rng) -> Ipv6Addr {
    Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(rng.range(1, 6)))
}

/// A duration in its written form.
pub(super) fn duration(rng: &mut Rng) -> String {
    let n = rng.range(1, 40);
    let unit = rng.pick(&["ms", "ms", "s"]);
    format!("{n} {unit}")
}

/// A prefix in its written form.
pub(super) fn prefix4(rng: &mut Rng) -> String {
    let len = rng.range(8, 32);
    let mask = u32::MAX.checked_shl(u32::try_from(32 - len).unwrap_or(0)).unwrap_or(0);
    format!("{}/{len}", Ipv4Addr::from_bits(ip4(rng).to_bits() & mask))
}

/// A set of addresses of both versions in its written form.
pub(super) fn addresses(rng: &mut Rng) -> String {
    let six = match rng.below(3) {
        0 => "::/0".to_owned(),
        1 => format!("2001:db8::/{}", rng.range(32, 125)),
        _ => ip6(rng).to_string(),
    };
    format!("{{ {}, {six} }}", prefix4(rng))
}

/// The type of a field in the language.
pub(super) fn of_field(field: Field) -> Ty {
    braid_lang::of_field(field)
}

/// Fields that can be read if these headers are present.
pub(super) fn readable(headers: &[Header]) -> impl Iterator<Item = Field> {
    FIELDS
        .iter()
        .filter(|info| info.header != Header::Pkt && headers.contains(&info.header))
        .map(|info| info.field)
}

/// Fields that can be assigned if these headers are present. ICMP types and codes are excluded,
/// because the headers behind them depend on them.
pub(super) fn writable(headers: &[Header]) -> impl Iterator<Item = Field> {
    readable(headers).filter(|field| {
        let shapes = [Field::IcmpType, Field::IcmpCode, Field::Icmp6Type, Field::Icmp6Code];
        field.info().access == Access::Rw && !shapes.contains(field)
    })
}

/// These headers and all headers that they imply.
pub(super) fn closed(headers: &[Header]) -> Vec<Header> {
    let mut all = vec![Header::Pkt];
    for header in headers {
        all.push(*header);
        all.extend(header.implies());
    }
    all.sort_unstable();
    all.dedup();
    all
}
