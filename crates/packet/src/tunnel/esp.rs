//! Encrypts the packet in a tunnel, and decrypts it: ESP in tunnel mode (RFC 4303).
//!
//! Behind the header of ESP follow the initialisation vector, the encrypted packet with padding,
//! the padding's length and the next header, and the check value. It covers everything from the
//! header of ESP on, and the upper half of an extended sequence number, which is not sent.

use super::Association;
use crate::bytes::{self, Cut};
use crate::lengths::write;
use crate::packet::Packet;
use crate::wire::ipsec::{ESP_LEN, ESP_SEQ};
use crate::wire::{ether_type, proto};
use arrayvec::ArrayVec;
use braid_crypto::{Key, MAX_BLOCK, MAX_IV, TAG};

/// The bytes behind the padding: its length, and the next header.
const END: usize = 2;
/// The encrypted bytes are a multiple of this (RFC 4303 §2.4).
const ALIGNED: usize = 4;

/// The bytes of padding behind a packet of this length.
fn padding(key: &Key, len: usize) -> usize {
    (len + END).next_multiple_of(key.block().max(ALIGNED)) - len - END
}

/// The bytes that a packet of this length gets, apart from the headers.
pub(super) fn added(key: &Key, len: usize) -> usize {
    key.iv_len() + padding(key, len) + END + TAG
}

/// Puts headers that end in ESP in front of the bytes at a place, which have a length and an
/// EtherType, and encrypts these. Returns false, and changes nothing, if the packet has no room, or
/// if it cannot be inside of ESP.
///
/// # Errors
/// The capture lacks some of the bytes. Nothing has changed.
pub(super) fn seal(
    packet: &mut Packet,
    (at, len, kind): (usize, usize, u16),
    headers: &[u8],
    (association, number): (&Association, u64),
) -> Result<bool, Cut> {
    let next = match kind {
        ether_type::IPV4 => proto::IP4,
        ether_type::IPV6 => proto::IP6,
        ether_type::MPLS => proto::MPLS,
        _ => return Ok(false),
    };
    packet.data().get(at..at + len).ok_or(Cut)?;
    let key = &association.key;
    let (iv_len, pad) = (key.iv_len(), padding(key, len));
    let mut behind = [0; MAX_BLOCK + END + TAG];
    for (byte, count) in behind.iter_mut().take(pad).zip(1..) {
        *byte = count;
    }
    let Some(behind) = behind.get_mut(..pad + END + TAG) else { return Ok(false) };
    if let Some(place) = behind.get_mut(pad..pad + END) {
        // The padding is shorter than a block.
        place.copy_from_slice(&[u8::try_from(pad).unwrap_or(u8::MAX), next]);
    }
    let iv = key.iv(number);
    let mut front = [0; 16 * bytes::MAX_WORDS + MAX_IV];
    let Some(front) = front.get_mut(..headers.len() + iv_len) else { return Ok(false) };
    for (place, byte) in front.iter_mut().zip(headers.iter().chain(&iv)) {
        *place = *byte;
    }
    if !packet.insert(at + len, behind) {
        return Ok(false);
    }
    if !packet.insert(at, front) {
        packet.remove(at + len, behind.len());
        return Ok(false);
    }
    let esp = at + headers.len() - ESP_LEN;
    let sealed = Sealed { esp, iv_len, len: len + pad + END };
    let tag = sealed.parts(packet).and_then(|(header, iv, data)| {
        let (front, behind) = covered(association, header);
        key.encrypt(iv, (&front, &behind), data)
    });
    tag.inspect(|tag| write(packet, sealed.tag(), tag));
    Ok(true)
}

/// The readable bytes that a check value covers, in front of the vector and behind the encrypted
/// bytes. The upper half of a sequence number comes in front of the lower half for ciphers that
/// compute the check value while they encrypt (RFC 4106 §5), and last for others (RFC 4303 §2.2.1).
fn covered(association: &Association, header: &[u8]) -> (ArrayVec<u8, 12>, ArrayVec<u8, 4>) {
    let high = association.high();
    let (spi, seq) = header.split_at_checked(ESP_SEQ).unwrap_or_default();
    let (between, behind) = match association.key.is_combined() {
        true => (high, ArrayVec::new()),
        false => (ArrayVec::new(), high),
    };
    (spi.iter().chain(&between).chain(seq).copied().collect(), behind)
}

/// The place of encrypted bytes in a packet.
#[derive(Clone, Copy)]
struct Sealed {
    /// Offset of the header of ESP.
    esp: usize,
    /// Length of the initialisation vector.
    iv_len: usize,
    /// Number of encrypted bytes.
    len: usize,
}

impl Sealed {
    /// Offset of the encrypted bytes.
    fn data(self) -> usize {
        self.esp + ESP_LEN + self.iv_len
    }

    /// Offset of the check value.
    fn tag(self) -> usize {
        self.data() + self.len
    }

    /// The header of ESP, the initialisation vector and the encrypted bytes.
    fn parts(self, packet: &mut Packet) -> Option<(&[u8], &[u8], &mut [u8])> {
        let bytes = packet.data_mut().get_mut(self.esp..self.tag())?;
        let (clear, bytes) = bytes.split_at_mut_checked(ESP_LEN)?;
        let (iv, data) = bytes.split_at_mut_checked(self.iv_len)?;
        Some((clear, iv, data))
    }
}

/// Decrypts the packet behind headers that end in ESP, and removes them. The headers begin at
/// `start`, the bytes `behind` them end at `end`, and the EtherType at `type_at`, if there is one,
/// announces the outermost header. Returns false, and changes nothing, if the check value is wrong,
/// or if no packet is inside.
///
/// # Errors
/// The capture lacks some of the bytes. Nothing has changed.
pub(super) fn open(
    packet: &mut Packet,
    (start, behind, end): (usize, usize, usize),
    type_at: Option<usize>,
    association: &Association,
) -> Result<bool, Cut> {
    let key = &association.key;
    let iv_len = key.iv_len();
    let rest = end.checked_sub(behind);
    let Some(len) = rest.and_then(|rest| rest.checked_sub(iv_len + TAG)) else { return Ok(false) };
    let sealed = Sealed { esp: behind - ESP_LEN, iv_len, len };
    let tag = packet.data().get(sealed.tag()..end).ok_or(Cut)?;
    let Some(tag) = tag.first_chunk().copied() else { return Ok(false) };
    let Some((header, iv, data)) = sealed.parts(packet) else { return Ok(false) };
    let (front, behind) = covered(association, header);
    if !key.decrypt(iv, (&front, &behind), data, &tag) {
        return Ok(false);
    }
    let fits = |(_, kind): &(usize, u16)| *kind != ether_type::MPLS || type_at.is_some();
    let Some((len, kind)) = inside(data).filter(fits) else {
        // Encrypted with the same vector, the bytes are the same as before.
        let _ = key.encrypt(iv, (&front, &behind), data);
        return Ok(false);
    };
    if let Some(at) = type_at {
        write(packet, at, &kind.to_be_bytes());
    }
    let first = sealed.data();
    packet.remove(first + len, end - first - len);
    Ok(packet.remove(start, first - start))
}

/// The length and the EtherType of the packet in decrypted bytes. `None` if the padding is not that
/// of RFC 4303 §2.4, or if no packet is inside.
fn inside(data: &[u8]) -> Option<(usize, u16)> {
    let [bytes @ .., pad, next] = data else { return None };
    let (packet, padding) = bytes.split_at_checked(bytes.len().checked_sub((*pad).into())?)?;
    let kind = match (*next, packet.first()? >> 4) {
        (proto::IP4, 4) => ether_type::IPV4,
        (proto::IP6, 6) => ether_type::IPV6,
        (proto::MPLS, _) => ether_type::MPLS,
        _ => return None,
    };
    padding.iter().zip(1..).all(|(byte, count)| *byte == count).then_some((packet.len(), kind))
}

#[cfg(test)]
mod tests;
