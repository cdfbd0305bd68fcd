//! Gives a packet in a tunnel a check value, and checks it: AH in tunnel mode (RFC 4302).
//!
//! The check value lies behind the header of AH. It covers the IP header in front, apart from the
//! bytes that routers change, the header of AH, the whole packet behind it, and the upper half of
//! an extended sequence number, which is not sent (RFC 4302 §2.5.1).

use super::Association;
use crate::bytes::{self, Cut};
use crate::field::Header;
use crate::lengths::write;
use crate::packet::Packet;
use crate::wire::ipsec::{AH_LEN, AH_LENGTH};
use crate::wire::{ipv4, ipv6};
use braid_crypto::TAG;

/// The most bytes of padding behind a check value (RFC 4302 §2.6).
const MAX_PAD: usize = 4;

/// The bytes behind the header of AH that follows such an IP header: the check value, and padding
/// to a multiple of 4 bytes, or of 8 behind IPv6 (RFC 4302 §3.3.3.2.1).
pub(super) fn added(ip: Header) -> usize {
    let aligned = if ip == Header::Ip6 { 8 } else { 4 };
    (AH_LEN + TAG).next_multiple_of(aligned) - AH_LEN
}

/// Puts headers that end in an IP header and AH in front of the bytes at a place, which have a
/// length, and fills in the check value. Returns false, and changes nothing, if the packet has no
/// room, or if the key is one that encrypts.
///
/// # Errors
/// The capture lacks some of the bytes. Nothing has changed.
pub(super) fn seal(
    packet: &mut Packet,
    (at, len): (usize, usize),
    (headers, ip): (&[u8], Header),
    association: &Association,
) -> Result<bool, Cut> {
    let more = added(ip);
    let mut front = [0; 16 * bytes::MAX_WORDS + TAG + MAX_PAD];
    let Some(front) = front.get_mut(..headers.len() + more) else { return Ok(false) };
    for (place, byte) in front.iter_mut().zip(headers) {
        *place = *byte;
    }
    let Some(ah) = headers.len().checked_sub(AH_LEN) else { return Ok(false) };
    if let Some(length) = front.get_mut(ah + AH_LENGTH) {
        // The header's length in words, less 2.
        *length = u8::try_from((AH_LEN + more) / 4 - 2).unwrap_or(u8::MAX);
    }
    packet.data().get(at..at + len).ok_or(Cut)?;
    let ip_len = if ip == Header::Ip6 { ipv6::LEN } else { ipv4::LEN };
    let (Some(ip), false) = (ah.checked_sub(ip_len), association.key.encrypts()) else {
        return Ok(false);
    };
    if !packet.insert(at, front) {
        return Ok(false);
    }
    let (ah, end) = (at + ah, at + front.len() + len);
    let covered = Covered { ip: at + ip, ah, behind: at + front.len(), end };
    let high = association.high();
    let check = |front: &[u8], data: &mut [u8]| association.key.encrypt(&[], (front, &high), data);
    let tag = covered.with(packet, check).flatten();
    tag.inspect(|tag| write(packet, ah + AH_LEN, tag));
    Ok(true)
}

/// What a check value covers, as offsets in a packet.
#[derive(Clone, Copy)]
pub(super) struct Covered {
    /// The IP header.
    pub(super) ip: usize,
    /// The header of AH behind it.
    pub(super) ah: usize,
    /// The end of the check value and its padding.
    pub(super) behind: usize,
    /// The end of the packet.
    pub(super) end: usize,
}

impl Covered {
    /// Whether the check value is right. False also for a key that encrypts, if IPv4 options or
    /// IPv6 extension headers are in front of AH, and for a check value of another length.
    ///
    /// # Errors
    /// The capture lacks some of the bytes.
    pub(super) fn is_right(
        self,
        packet: &mut Packet,
        association: &Association,
    ) -> Result<bool, Cut> {
        let (key, high) = (&association.key, association.high());
        let data = packet.data().get(..self.end).ok_or(Cut)?;
        let tag = data.get(self.ah + AH_LEN..).and_then(|tag| tag.first_chunk()).copied();
        let (Some(tag), false) = (tag, key.encrypts()) else { return Ok(false) };
        let is_right = |front: &[u8], data: &mut [u8]| key.decrypt(&[], (front, &high), data, &tag);
        Ok(self.with(packet, is_right).unwrap_or(false))
    }

    /// Calls a function with the headers, which have 0 in place of the check value and of the bytes
    /// that routers change (RFC 4302 §3.3.3.1), and with the bytes behind them.
    fn with<T>(self, packet: &mut Packet, call: impl FnOnce(&[u8], &mut [u8]) -> T) -> Option<T> {
        let bytes = packet.data_mut().get_mut(self.ip..self.end)?;
        let (headers, data) = bytes.split_at_mut_checked(self.behind.checked_sub(self.ip)?)?;
        let mut front = [0; ipv6::LEN + AH_LEN + TAG + MAX_PAD];
        let front = front.get_mut(..headers.len())?;
        front.copy_from_slice(headers);
        let (ip, ah) = front.split_at_mut_checked(self.ah.checked_sub(self.ip)?)?;
        match (ip.first()? >> 4, ip.len()) {
            (4, ipv4::LEN) => {
                let changed = [ipv4::TOS, ipv4::FRAGMENT, ipv4::FRAGMENT + 1, ipv4::TTL];
                let changed = changed.into_iter().chain(ipv4::CHECKSUM..ipv4::CHECKSUM + 2);
                changed.for_each(|at| ip.get_mut(at).into_iter().for_each(|byte| *byte = 0));
            }
            (6, ipv6::LEN) => {
                // The traffic class, the flow label and the hop limit.
                ip.get_mut(..4)?.copy_from_slice(&[0x60, 0, 0, 0]);
                *ip.get_mut(ipv6::TTL)? = 0;
            }
            _ => return None,
        }
        let padded = AH_LEN + TAG..=AH_LEN + TAG + MAX_PAD;
        if !padded.contains(&ah.len()) {
            return None;
        }
        ah.get_mut(AH_LEN..AH_LEN + TAG)?.fill(0);
        Some(call(front, data))
    }
}

#[cfg(test)]
mod tests;
