//! Encrypts the payload and decrypts it (NFD's operators Encrypt and Decrypt, §III-B). Lengths and
//! checksums follow.
//!
//! The initialisation vector lies in front of the encrypted bytes, and the check value behind them.
//! Bytes of the payload in front of both stay as they are; the check value covers them, too.

use crate::bytes::{Area, Cut, place};
use crate::field::Header;
use crate::layout::Layout;
use crate::lengths;
use crate::packet::Packet;
use crate::replace::{settle, summed};
use braid_crypto::{Key, MAX_BLOCK, TAG};

/// A payload that is encrypted or decrypted.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Change {
    /// [`encrypt`] from an offset on, with a key and a number.
    Encrypt(u128, (Key, u64)),
    /// [`decrypt`] from an offset on, with a key.
    Decrypt(u128, Key),
}

impl Change {
    /// Makes the change, as the function that it names. Earlier layouts become invalid.
    ///
    /// # Errors
    /// As for that function.
    pub fn apply(&self, packet: &mut Packet, layout: &Layout) -> Result<bool, Cut> {
        match self {
            Change::Encrypt(offset, (key, number)) => {
                encrypt(packet, layout, *offset, (key, *number))
            }
            Change::Decrypt(offset, key) => decrypt(packet, layout, *offset, key),
        }
    }
}

/// Encrypts the payload of TCP or UDP from byte `offset` on. `number` is one that this key has not
/// been used with before ([`Key::iv`]). For a cipher with blocks, each byte of padding holds the
/// padding's length (RFC 5652 §6.3). Earlier layouts become invalid.
///
/// Returns false, and changes nothing, if the payload ends before, for packets without TCP and UDP
/// and for fragments, and if a length in a header would not fit.
///
/// # Errors
/// The capture lacks bytes of the payload. Nothing has changed.
pub fn encrypt(
    packet: &mut Packet,
    layout: &Layout,
    offset: u128,
    (key, number): (&Key, u64),
) -> Result<bool, Cut> {
    let Some((at, end)) = rest(packet, layout, offset)? else { return Ok(false) };
    let pad = match key.block() {
        1 => 0,
        block => block - (end - at) % block,
    };
    let grows = key.iv_len() + pad + TAG;
    if !lengths::can_grow(packet, layout, grows) {
        return Ok(false);
    }
    let before = summed(packet, layout, at..end);
    let iv = key.iv(number);
    let iv = iv.get(..key.iv_len()).unwrap_or_default();
    // The padding is not longer than a block.
    let mut behind = [u8::try_from(pad).unwrap_or(u8::MAX); MAX_BLOCK + TAG];
    let behind = behind.get_mut(..pad + TAG).unwrap_or_default();
    if !packet.insert(end, behind) {
        return Ok(false);
    }
    if !packet.insert(at, iv) {
        packet.remove(end, behind.len());
        return Ok(false);
    }
    let sealed = (at + iv.len(), end - at + pad);
    let tag = parts(packet, layout, at, sealed)
        .and_then(|(clear, iv, data)| key.encrypt(iv, (clear, &[]), data));
    tag.inspect(|tag| lengths::write(packet, sealed.0 + sealed.1, tag));
    settle(packet, layout, (before, at..end + grows), (grows, 0));
    Ok(true)
}

/// Decrypts the payload of TCP or UDP from byte `offset` on, as [`encrypt`] made it. Earlier
/// layouts become invalid.
///
/// Returns false, and changes nothing, if the check value is wrong, if the padding is, if the
/// payload ends before, and for packets without TCP and UDP and for fragments.
///
/// # Errors
/// The capture lacks bytes of the payload. Nothing has changed.
pub fn decrypt(packet: &mut Packet, layout: &Layout, offset: u128, key: &Key) -> Result<bool, Cut> {
    let Some((at, end)) = rest(packet, layout, offset)? else { return Ok(false) };
    let len = (end - at).checked_sub(key.iv_len() + TAG);
    let Some(len) = len.filter(|_| lengths::can_grow(packet, layout, 0)) else { return Ok(false) };
    let sealed = (at + key.iv_len(), len);
    let Some(tag) = packet.data().get(sealed.0 + len..end).and_then(|tag| tag.first_chunk()) else {
        return Ok(false);
    };
    let (tag, before) = (*tag, summed(packet, layout, at..end));
    let Some((clear, iv, data)) = parts(packet, layout, at, sealed) else { return Ok(false) };
    if !key.decrypt(iv, (clear, &[]), data, &tag) {
        return Ok(false);
    }
    let Some(inside) = unpadded(key, data) else {
        // Encrypted with the same vector, the bytes are the same as before.
        let _ = key.encrypt(iv, (clear, &[]), data);
        return Ok(false);
    };
    packet.remove(sealed.0 + inside, end - sealed.0 - inside);
    packet.remove(at, key.iv_len());
    settle(packet, layout, (before, at..at + inside), (0, end - at - inside));
    Ok(true)
}

/// The place in the packet of the payload's bytes from byte `offset` on. `None` if there are none.
fn rest(packet: &Packet, layout: &Layout, offset: u128) -> Result<Option<(usize, usize)>, Cut> {
    let start = place(packet, layout, (Area::Payload, offset), 0);
    let Some(at) = start.filter(|_| layout.has(Header::L4)) else { return Ok(None) };
    let end = layout.payload_offset() + layout.payload_len();
    packet.data().get(at..end).ok_or(Cut)?;
    Ok(Some((at, end)))
}

/// The payload in front of `at`, the initialisation vector, and the encrypted bytes at a place and
/// of a length.
fn parts<'a>(
    packet: &'a mut Packet,
    layout: &Layout,
    at: usize,
    (start, len): (usize, usize),
) -> Option<(&'a [u8], &'a [u8], &'a mut [u8])> {
    let bytes = packet.data_mut().get_mut(layout.payload_offset()..start + len)?;
    let (front, data) = bytes.split_at_mut_checked(start - layout.payload_offset())?;
    let (clear, iv) = front.split_at_checked(at - layout.payload_offset())?;
    Some((clear, iv, data))
}

/// The number of decrypted bytes without their padding. `None` if that is wrong.
fn unpadded(key: &Key, data: &[u8]) -> Option<usize> {
    if key.block() == 1 {
        return Some(data.len());
    }
    let pad = *data.last()?;
    let (inside, padding) = data.split_at_checked(data.len().checked_sub(pad.into())?)?;
    let is_right = (1..=key.block()).contains(&padding.len());
    (is_right && padding.iter().all(|byte| *byte == pad)).then_some(inside.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::verify;
    use crate::field::Field;
    use crate::{Link, Shape, build_fresh};
    use braid_crypto::Keys;

    const SHAPES: [Shape; 4] = [Shape::Tcp4, Shape::Tcp6, Shape::Udp4, Shape::Udp6];

    fn packet(shape: Shape, payload: &[u8]) -> Packet {
        let fields = [(Field::L4Sport, 7), (Field::L4Dport, 80)];
        build_fresh(Link::Ethernet, 0, shape, &fields, payload).unwrap()
    }

    fn keys() -> Keys {
        let mut keys = Keys::default();
        keys.add(&format!("1 aes-128-gcm {}", "5a".repeat(20))).unwrap();
        keys.add(&format!("2 aes-256-cbc-hmac-sha-256-128 {}", "a5".repeat(64))).unwrap();
        keys
    }

    #[test]
    fn payloads_are_encrypted_and_decrypted_and_lengths_and_checksums_follow() {
        let text: Vec<u8> = (0..40).collect();
        for (number, shape) in [1, 2].into_iter().flat_map(|n| SHAPES.map(|shape| (n, shape))) {
            let keys = keys();
            let key = keys.get(number).unwrap();
            for (len, offset) in [(0, 0), (1, 0), (15, 3), (16, 0), (31, 15), (33, 0), (40, 40)] {
                let before = packet(shape, &text[..len]);
                let mut changed = before.clone();
                let layout = changed.parse();
                assert_eq!(encrypt(&mut changed, &layout, offset, (key, 9)), Ok(true));
                let layout = changed.parse();
                assert!(verify(&changed, &layout).all_right(), "{shape:?} {len}");
                let clear = usize::try_from(offset).unwrap();
                let pad = if key.block() == 1 { 0 } else { 16 - (len - clear) % 16 };
                assert_eq!(layout.payload_len(), len + key.iv_len() + pad + TAG);
                assert_eq!(changed.payload(&layout)[..clear], text[..clear]);
                assert_eq!(changed.wire_len as usize, changed.data().len());
                for at in 0..layout.payload_len() {
                    let mut wrong = changed.clone();
                    wrong.data_mut()[layout.payload_offset() + at] ^= 0x80;
                    let same = wrong.clone();
                    assert_eq!(decrypt(&mut wrong, &layout, offset, key), Ok(false));
                    assert_eq!(wrong, same);
                }
                assert_eq!(decrypt(&mut changed, &layout, offset, key), Ok(true));
                assert_eq!(changed, before, "{shape:?} {len}");
            }
        }
    }

    #[test]
    fn nothing_changes_where_it_cannot() {
        let keys = keys();
        let key = keys.get(1).unwrap();
        let small = packet(Shape::Udp4, b"abcdef");
        let mut fragment = small.clone();
        fragment.data_mut()[14 + 6] = 0x20;
        let mut other = small.clone();
        other.data_mut()[14 + 9] = 99;
        let long = packet(Shape::Udp6, &vec![0; 65_535 - 8 - 23]);
        for (before, offset) in
            [(&small, 7), (&small, u128::MAX), (&fragment, 0), (&other, 0), (&long, 0)]
        {
            let mut changed = before.clone();
            let layout = changed.parse();
            assert_eq!(encrypt(&mut changed, &layout, offset, (key, 1)), Ok(false));
            assert_eq!(decrypt(&mut changed, &layout, offset, key), Ok(false));
            assert_eq!(changed, *before);
        }
        let data = &small.data()[..small.data().len() - 1];
        let cut = Packet::snapped(Link::Ethernet, 0, data, small.wire_len);
        let mut changed = cut.clone();
        let layout = changed.parse();
        assert_eq!(encrypt(&mut changed, &layout, 0, (key, 1)), Err(Cut));
        assert_eq!(decrypt(&mut changed, &layout, 0, key), Err(Cut));
        assert_eq!(changed, cut);
    }

    #[test]
    fn the_padding_must_be_right() {
        let keys = keys();
        let key = keys.get(2).unwrap();
        for (end, expected) in [([2, 2], true), ([1, 2], false), ([0, 0], false), ([9, 17], false)]
        {
            let mut data = [&[7; 14][..], &end].concat();
            let iv = key.iv(1);
            let tag = key.encrypt(&iv, (&[], &[]), &mut data).unwrap();
            let before = packet(Shape::Udp4, &[&iv[..], &data, &tag].concat());
            let mut changed = before.clone();
            let layout = changed.parse();
            assert_eq!(decrypt(&mut changed, &layout, 0, key), Ok(expected), "{end:?}");
            let inside = packet(Shape::Udp4, &[7; 14]);
            assert_eq!(changed, if expected { inside } else { before });
        }
    }
}
