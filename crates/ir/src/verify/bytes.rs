//! Checks operations on bytes that are no fields, and on outer headers.

use super::place::Problem;
use super::types::{Checked, OpCheck};
use crate::model::{Area, Inner, Op, StringParts, ValueId, Version};
use braid_packet::{Header, options, tunnel};

impl OpCheck<'_> {
    /// Checks a TCP option without a name, and the value that it gets.
    fn any_option(&self, kind: u8, value: Option<&StringParts>) -> Checked {
        if kind < 2 || options::has_name(kind) {
            return Err(Problem::NamedOption(kind));
        }
        let Some((len, words)) = value else { return Ok(()) };
        self.width(*len, 8)?;
        self.words(words)
    }

    /// Checks one operation on bytes or outer headers.
    pub(super) fn of_bytes(&self, op: &Op) -> Checked {
        match op {
            Op::LoadBytes { found, out, area, offset } => {
                is_area(*area)?;
                self.width(*found, 1)?;
                self.width(*offset, 32)?;
                whole_bytes(*out, self.width_of(*out))
            }
            Op::LoadString { found, outs, area, offset, len } => {
                is_area(*area)?;
                self.width(*found, 1)?;
                [*offset, *len].into_iter().try_for_each(|value| self.width(value, 32))?;
                if outs.is_empty() {
                    return Err(Problem::Words(0));
                }
                self.words(outs)
            }
            Op::StoreBytes { ok, area, offset, a } => {
                is_area(*area)?;
                if !area.is_writable() {
                    return Err(Problem::ReadOnlyArea);
                }
                self.width(*ok, 1)?;
                self.width(*offset, 32)?;
                whole_bytes(*a, self.width_of(*a))
            }
            Op::ReplaceBytes { ok, offset, old, new, words } => {
                self.width(*ok, 1)?;
                [*offset, *old].into_iter().try_for_each(|value| self.width(value, 32))?;
                self.width(*new, 8)?;
                self.words(words)
            }
            Op::SetOption { ok, kind, value } => {
                self.width(*ok, 1)?;
                self.any_option(*kind, value.as_ref())
            }
            Op::Encapsulate { ok, inner, parts, len, words, seal } => {
                self.width(*ok, 1)?;
                self.words(words)?;
                if let Some((association, number)) = seal {
                    self.association(*association)?;
                    self.width(*number, 64)?;
                }
                outer(*inner, (parts, seal.is_some()), (*len as usize, words.len()))
            }
            Op::Decapsulate { ok, last, offset, association, .. } => {
                self.width(*ok, 1)?;
                self.width(*offset, 32)?;
                association.map_or(Ok(()), |association| self.association(association))?;
                removable(*last, association.is_some())
            }
            Op::Translate { ok, to, own, quoted } => {
                self.width(*ok, 1)?;
                self.addresses(*to, own.iter().chain(quoted.iter().flatten()))
            }
            Op::Encrypt { ok, key, number, offset } => {
                self.width(*ok, 1)?;
                self.width(*number, 64)?;
                self.width(*offset, 32)?;
                self.cipher_key(*key)
            }
            Op::Decrypt { ok, key, offset } => {
                self.width(*ok, 1)?;
                self.width(*offset, 32)?;
                self.cipher_key(*key)
            }
            _ => Ok(()),
        }
    }

    /// Checks the widths of addresses of a version of IP.
    fn addresses<'a>(&self, of: Version, all: impl Iterator<Item = &'a ValueId>) -> Checked {
        let width = if of == Version::Ip4 { 32 } else { 128 };
        all.copied().try_for_each(|address| self.width(address, width))
    }
}

fn needs_key(header: Header) -> bool {
    tunnel::key_number(header).is_some()
}

/// Checks outer headers of `len` bytes in this number of words.
fn outer(
    inner: Inner,
    (parts, has_key): (&[Header], bool),
    (len, words): (usize, usize),
) -> Checked {
    let lens = parts.iter().map(|part| tunnel::added_len(*part));
    let least = lens.sum::<Option<usize>>().ok_or(Problem::Outer)?;
    let is_frame = parts.first() == Some(&Header::Eth);
    let fits = (least..=16 * words).contains(&len);
    let is_sealed = parts.last().is_some_and(|last| needs_key(*last)) == has_key;
    let is_right = fits && !parts.is_empty() && is_frame == (inner == Inner::Frame) && is_sealed;
    if is_right { Ok(()) } else { Err(Problem::Outer) }
}

/// Checks that headers up to this one can be removed, with a key or without one. A key behind UDP
/// is that of ESP.
fn removable(last: Header, has_key: bool) -> Checked {
    let is_right = needs_key(last) == has_key || last == Header::Udp;
    if is_right && tunnel::can_end(last) { Ok(()) } else { Err(Problem::Outer) }
}

/// Checks that an area exists. Options of the kinds 0 and 1 have no value.
fn is_area(area: Area) -> Checked {
    match area {
        Area::TcpOption(kind @ 0..=1) | Area::IpOption(kind @ 0..=1) => Err(Problem::NoValue(kind)),
        _ => Ok(()),
    }
}

/// Whether a value consists of whole bytes.
fn whole_bytes(value: ValueId, width: u16) -> Checked {
    match width.is_multiple_of(8) {
        true => Ok(()),
        false => Err(Problem::Bytes { value, width }),
    }
}
