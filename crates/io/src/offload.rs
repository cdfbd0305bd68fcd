//! Does the work that a sender has left to its network card: it completes checksums that contain
//! only the sum of the pseudo header, splits frames of several segments, and inserts VLAN tags that
//! are beside the frame. Frames within a machine (veth, bridges) never pass a card that could do
//! this work. [`join`] leaves such work to the kernel.
//!
//! The `virtio_net_hdr` in front of a frame describes the work (virtio 1.2, §5.1.6).

mod header;
mod join;
mod layers;

use crate::port::Unreceived;
use braid_packet::checksum::{Sum16, rfc1071};
use braid_packet::frame::HEADROOM;
use braid_packet::{Frame, Pool, ether_type, proto};
pub(crate) use header::HEADER;
use header::{CWR, ECN, FIN, MAX_SEGMENTS, NEEDS_CHECKSUM, NO_SEGMENTS, PSH, TCP4, TCP6, UDP};
pub(crate) use join::Message;
use layers::{Layer, Layers, network};

/// The work that is left to do in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Offload {
    flags: u8,
    kind: u8,
    /// Bytes of payload in each segment.
    segment: usize,
    /// The start of the bytes under the checksum: the transport header.
    start: usize,
    /// The place of the checksum, counted from `start`.
    place: usize,
}

impl Offload {
    /// Reads the header in front of a frame, in the machine's byte order.
    pub(crate) fn parse(header: [u8; HEADER]) -> Self {
        let [flags, kind, _, _, a, b, c, d, e, f] = header;
        let word = |bytes| usize::from(u16::from_ne_bytes(bytes));
        Self {
            flags,
            kind: kind & !ECN,
            segment: word([a, b]),
            start: word([c, d]),
            place: word([e, f]),
        }
    }

    /// Does the work, and appends the resulting frame or frames, in memory of the pool. Inserts a
    /// VLAN tag (TPID and TCI) that the kernel passed beside the frame.
    pub(crate) fn finish(
        self,
        bytes: &[u8],
        vlan: Option<(u16, u16)>,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
    ) -> Result<(), Unreceived> {
        let before = frames.len();
        let finished = if self.kind == NO_SEGMENTS {
            self.whole(bytes, pool, frames)
        } else {
            self.segments(bytes, pool, frames)
        };
        if finished.is_err() {
            frames.truncate(before);
        }
        if let Some((tpid, tci)) = vlan {
            frames.iter_mut().skip(before).for_each(|frame| put_vlan(frame, tpid, tci));
        }
        finished
    }

    fn whole(
        self,
        bytes: &[u8],
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
    ) -> Result<(), Unreceived> {
        let mut frame = filled(pool, bytes, &[]).ok_or(Unreceived::NoMemory)?;
        if self.flags & NEEDS_CHECKSUM != 0 {
            self.checksum(frame.bytes_mut()).ok_or(Unreceived::Offload)?;
        }
        frames.push(frame);
        Ok(())
    }

    /// Completes the checksum. The field already holds the sum of the pseudo header.
    fn checksum(self, frame: &mut [u8]) -> Option<()> {
        let sum = Sum16::default().with(frame.get(self.start..)?).folded();
        let at = self.start.checked_add(self.place)?;
        let field = frame.get_mut(at..at.checked_add(2)?)?;
        // A UDP checksum of 0 would mean that there is no checksum.
        let value = if sum == 0xffff && self.place == 6 { 0xffff } else { !sum };
        field.copy_from_slice(&value.to_be_bytes());
        Some(())
    }

    /// Separates the segments.
    fn segments(
        self,
        bytes: &[u8],
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
    ) -> Result<(), Unreceived> {
        let (layers, payload_at) = self.headers(bytes).ok_or(Unreceived::Offload)?;
        let (headers, payload) = bytes.split_at(payload_at);
        let pieces = payload.chunks(self.segment);
        let count = pieces.len();
        if count == 0 || count > MAX_SEGMENTS {
            return Err(Unreceived::Offload);
        }
        for (at, piece) in pieces.enumerate() {
            let mut frame = filled(pool, headers, piece).ok_or(Unreceived::NoMemory)?;
            let is_last = at + 1 == count;
            let done = self.segment(frame.bytes_mut(), &layers, at, piece.len(), is_last);
            done.ok_or(Unreceived::Offload)?;
            frames.push(frame);
        }
        Ok(())
    }

    /// The headers in front of the transport header, and the start of the payload, in a frame of
    /// several segments.
    fn headers(self, frame: &[u8]) -> Option<(Layers, usize)> {
        let is_udp = self.kind == UDP;
        if !(is_udp || self.kind == TCP4 || self.kind == TCP6) || self.segment == 0 {
            return None;
        }
        let transport = self.start;
        let length =
            if is_udp { 8 } else { usize::from(frame.get(transport.checked_add(12)?)? >> 4) * 4 };
        let payload_at = transport.checked_add(length)?;
        let least = if is_udp { 8 } else { 20 };
        let layers = Layers::find(frame, transport)?;
        (length >= least && payload_at <= frame.len()).then_some((layers, payload_at))
    }

    /// Adjusts the headers of a segment, which are copies of the whole frame's headers.
    fn segment(
        self,
        segment: &mut [u8],
        layers: &Layers,
        at: usize,
        payload: usize,
        is_last: bool,
    ) -> Option<()> {
        let (transport, is_udp) = (self.start, self.kind == UDP);
        if is_udp {
            let length = u16::try_from(8 + payload).ok()?;
            segment.get_mut(transport + 4..transport + 6)?.copy_from_slice(&length.to_be_bytes());
        } else {
            tcp(segment.get_mut(transport..)?, at, at.checked_mul(self.segment)?, is_last)?;
        }
        // The checksum of an outer header covers the headers inside, so the innermost comes first.
        let mut inside = Some((transport, is_udp));
        for layer in layers.inside_out() {
            match layer {
                Layer::Ip(ip) => {
                    lengths(segment, ip, at)?;
                    if let Some((transport, is_udp)) = inside.take() {
                        transport_checksum(segment, ip, transport, is_udp)?;
                    }
                }
                Layer::Udp(udp, ip) => {
                    let length = u16::try_from(segment.len() - udp).ok()?;
                    let header = segment.get_mut(udp..)?.first_chunk_mut::<8>()?;
                    header[4..6].copy_from_slice(&length.to_be_bytes());
                    // 0 stands for no checksum.
                    if header[6..] != [0, 0] {
                        transport_checksum(segment, ip, udp, true)?;
                    }
                }
            }
        }
        Some(())
    }
}

/// A frame with these bytes. It has memory of its own if a frame of the pool is too small.
pub(crate) fn filled(pool: &mut Pool, front: &[u8], behind: &[u8]) -> Option<Frame> {
    let room = usize::try_from(pool.frame_size().saturating_sub(HEADROOM)).unwrap_or(0);
    if front.len() + behind.len() > room {
        return Some(Frame::of(&[front, behind].concat()));
    }
    let mut frame = pool.take()?;
    (frame.push(front) && frame.push(behind)).then_some(frame)
}

/// Writes the sequence number and the flags of a segment that begins `behind` bytes after the first
/// one.
fn tcp(header: &mut [u8], number: usize, behind: usize, last: bool) -> Option<()> {
    let header = header.first_chunk_mut::<20>()?;
    let sequence = u32::from_be_bytes(*header[4..].first_chunk()?);
    let sequence = sequence.wrapping_add(u32::try_from(behind).ok()?);
    header[4..8].copy_from_slice(&sequence.to_be_bytes());
    if !last {
        header[13] &= !(PSH | FIN);
    }
    if number > 0 {
        header[13] &= !CWR;
    }
    Some(())
}

/// Writes the length, identification and header checksum of a segment's IP header.
fn lengths(segment: &mut [u8], ip: usize, number: usize) -> Option<()> {
    let packet = segment.get_mut(ip..)?;
    let total = u16::try_from(packet.len()).ok()?;
    let first = *packet.first()?;
    if first >> 4 == 6 {
        let payload = total.checked_sub(40)?;
        packet.get_mut(4..6)?.copy_from_slice(&payload.to_be_bytes());
        return Some(());
    }
    let header = packet.get_mut(..usize::from(first & 15) * 4)?;
    let fixed = header.first_chunk_mut::<20>()?;
    fixed[2..4].copy_from_slice(&total.to_be_bytes());
    let id = u16::from_be_bytes([fixed[4], fixed[5]]);
    let id = id.wrapping_add(u16::try_from(number & 0xffff).ok()?);
    fixed[4..6].copy_from_slice(&id.to_be_bytes());
    fixed[10..12].fill(0);
    let value = rfc1071(header);
    header.get_mut(10..12)?.copy_from_slice(&value.to_be_bytes());
    Some(())
}

/// Computes the whole checksum of a segment's transport header.
fn transport_checksum(segment: &mut [u8], ip: usize, transport: usize, is_udp: bool) -> Option<()> {
    let at = transport + if is_udp { 6 } else { 16 };
    segment.get_mut(at..at + 2)?.fill(0);
    let addresses = if segment.get(ip)? >> 4 == 6 { ip + 8..ip + 40 } else { ip + 12..ip + 20 };
    let protocol = if is_udp { proto::UDP } else { proto::TCP };
    let pseudo = Sum16::pseudo_header(protocol, segment.len().checked_sub(transport)?);
    let sum = pseudo.with(segment.get(addresses)?).with(segment.get(transport..)?);
    let value = !sum.folded();
    let value = if value == 0 && is_udp { 0xffff } else { value };
    segment.get_mut(at..at + 2)?.copy_from_slice(&value.to_be_bytes());
    Some(())
}

/// Whether a frame has a VLAN tag. Tagged frames may be longer.
pub(crate) fn is_tagged(frame: &[u8]) -> bool {
    let kind = frame.get(12..).and_then(|tail| tail.first_chunk()).copied();
    kind.is_some_and(|kind| ether_type::TAGS.contains(&u16::from_be_bytes(kind)))
}

/// Completes the checksum of a TCP or UDP segment that holds only the sum of the pseudo header, as
/// left by a sender for its card. AF_XDP does not report such frames. A frame is taken as one if
/// the field holds that sum and this is not the right checksum by chance.
pub(crate) fn complete(frame: &mut [u8]) -> Option<()> {
    let ip = network(frame, 0)?;
    let first = *frame.get(ip)?;
    let (protocol, addresses, transport, total) = if first >> 4 == 6 {
        let length = u16::from_be_bytes(*frame.get(ip + 4..)?.first_chunk()?);
        (*frame.get(ip + 6)?, ip + 8..ip + 40, ip + 40, 40 + usize::from(length))
    } else {
        let header = frame.get(ip..)?.first_chunk::<20>()?;
        // Only whole packets have a checksum to complete.
        if u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0 {
            return None;
        }
        let length = u16::from_be_bytes([header[2], header[3]]);
        (header[9], ip + 12..ip + 20, ip + usize::from(first & 15) * 4, usize::from(length))
    };
    let place = match protocol {
        6 => 16,
        17 => 6,
        _ => return None,
    };
    let end = ip.checked_add(total)?;
    let pseudo = Sum16::pseudo_header(protocol, end.checked_sub(transport)?);
    let pseudo = pseudo.with(frame.get(addresses)?);
    let segment = frame.get_mut(transport..end)?;
    let field = u16::from_be_bytes(*segment.get(place..)?.first_chunk()?);
    if field != pseudo.folded() {
        return None;
    }
    // The field stands for the pseudo header in the sum.
    let sum = Sum16::default().with(segment);
    let whole = sum.folded();
    let is_right = sum.with_word(field.into()).folded() == 0xffff;
    if !is_right {
        let value = if whole == 0xffff && place == 6 { 0xffff } else { !whole };
        segment.get_mut(place..place + 2)?.copy_from_slice(&value.to_be_bytes());
    }
    Some(())
}

/// Inserts a VLAN tag that the kernel passed beside the frame.
pub(crate) fn put_vlan(frame: &mut Frame, tpid: u16, tci: u16) {
    if frame.open(12, 4)
        && let Some(tag) = frame.bytes_mut().get_mut(12..16)
    {
        let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
        tag.copy_from_slice(&[a, b, c, d]);
    }
}

#[cfg(test)]
mod tests;
