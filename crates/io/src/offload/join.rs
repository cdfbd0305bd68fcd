//! Joins consecutive TCP segments of a connection to one frame for the kernel. The kernel passes
//! such a frame on as a whole if the receiver takes it. Otherwise the kernel or the network card
//! separates the segments again (generic segmentation offload).
//!
//! Segments are joined only if separating them gives the same bytes again.

use super::header::{ECE, FIN, HEADER, NEEDS_CHECKSUM, PSH, TCP4, TCP6};
use arrayvec::ArrayVec;
use braid_packet::checksum::{Sum16, rfc1071};
use braid_packet::{Frame, proto};

/// The length of an Ethernet header.
const ETHERNET: usize = 14;
const IP4_HEADER: usize = 20;
const IP6_HEADER: usize = 40;
const ACK: u8 = 0x10;
/// The most bytes of headers: Ethernet, IPv6, and TCP with its options.
const MOST_HEADERS: usize = ETHERNET + IP6_HEADER + 60;
/// The most bytes behind the Ethernet header, by IP's fields for the length.
const MOST_BYTES: usize = 0xffff;
/// The places of fields in a TCP header.
const SEQUENCE: usize = 4;
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;

/// What the kernel gets as one frame: a frame of a burst, or segments that leave together.
pub(crate) struct Message {
    /// How many frames of the burst these are.
    pub(crate) count: usize,
    /// The `virtio_net_hdr`, and the headers of joined segments.
    pub(crate) front: ArrayVec<u8, { HEADER + MOST_HEADERS }>,
    /// What follows `front` begins at this place in each of the frames.
    pub(crate) payload_at: usize,
}

impl Message {
    /// Joins the first frames of a burst, or takes the first one as it is. Frames of more than
    /// `longest` bytes are not joined: the kernel would not refuse them.
    pub(crate) fn of_first(frames: &[Frame], longest: usize) -> Self {
        let lead = Lead::of_burst(frames).filter(|lead| lead.bytes.len() <= longest);
        let several = lead.and_then(|lead| lead.join(frames));
        several.unwrap_or_else(|| {
            let front = [0; HEADER].into_iter().collect();
            Self { count: 1, front, payload_at: 0 }
        })
    }
}

/// The first segment of some that may leave together.
struct Lead<'f> {
    bytes: &'f [u8],
    transport: usize,
    payload_at: usize,
}

impl<'f> Lead<'f> {
    /// The first frame, if it is a segment that may be followed by others. IP has no options and no
    /// extension headers, and nothing follows the payload.
    fn of_burst(frames: &'f [Frame]) -> Option<Self> {
        let [first, _, ..] = frames else { return None };
        let bytes = first.bytes();
        let ip = bytes.get(ETHERNET..)?;
        let transport = ETHERNET
            + match *bytes.get(12..)?.first_chunk()? {
                [0x08, 0x00] => {
                    let &[version, _, l0, l1, _, _, f0, f1, _, protocol, ..] =
                        ip.first_chunk::<IP4_HEADER>()?;
                    let is_whole = u16::from_be_bytes([f0, f1]) & !0x4000 == 0;
                    let length = usize::from(u16::from_be_bytes([l0, l1]));
                    let is_plain = version == 0x45 && is_whole && protocol == proto::TCP;
                    (is_plain && length == ip.len()).then_some(IP4_HEADER)?
                }
                [0x86, 0xdd] => {
                    let &[version, _, _, _, l0, l1, next, ..] = ip.first_chunk::<IP6_HEADER>()?;
                    let length = IP6_HEADER + usize::from(u16::from_be_bytes([l0, l1]));
                    let is_plain = version >> 4 == 6 && next == proto::TCP;
                    (is_plain && length == ip.len()).then_some(IP6_HEADER)?
                }
                _ => return None,
            };
        let header = usize::from(bytes.get(transport + 12)? >> 4) * 4;
        let payload_at = transport + header;
        let is_plain = header >= 20 && bytes.len() > payload_at;
        let lead = is_plain.then_some(Self { bytes, transport, payload_at })?;
        let is_data = lead.flags(bytes) & !ECE == ACK;
        is_data.then_some(lead)
    }

    fn is_ip4(&self) -> bool {
        self.transport == ETHERNET + IP4_HEADER
    }

    /// The flags of a segment with headers of the same lengths.
    fn flags(&self, segment: &[u8]) -> u8 {
        segment.get(self.transport + FLAGS).copied().unwrap_or_default()
    }

    /// Joins the first frames of the burst. `None` if that would be a single one.
    fn join(&self, frames: &[Frame]) -> Option<Message> {
        let (mut count, mut len, mut flags) = (1, self.bytes.len(), self.flags(self.bytes));
        for segment in frames.iter().skip(1).map(Frame::bytes) {
            let payload = segment.len().saturating_sub(self.payload_at);
            let has_room = len + payload <= ETHERNET + MOST_BYTES;
            if !has_room || !self.is_followed_by(segment, count) {
                break;
            }
            (count, len, flags) = (count + 1, len + payload, self.flags(segment));
            // Only the last one may be shorter, and have these flags.
            if segment.len() < self.bytes.len() || flags & (PSH | FIN) != 0 {
                break;
            }
        }
        if count == 1 || !self.has_right_checksums(self.bytes) {
            return None;
        }
        let front = self.front(len, flags)?;
        Some(Message { count, front, payload_at: self.payload_at })
    }

    /// Whether a segment is the one that the kernel would make at this place behind the lead.
    fn is_followed_by(&self, segment: &[u8], place: usize) -> bool {
        let has_payload = segment.len() > self.payload_at && segment.len() <= self.bytes.len();
        has_payload
            && self.flags(segment) & !(PSH | FIN) == self.flags(self.bytes)
            && self.headers_at(place, segment).as_deref() == segment.get(..self.payload_at)
            && self.has_right_checksums(segment)
    }

    /// The headers of the segment at a place behind the lead, with the flags and checksums of this
    /// one.
    fn headers_at(&self, place: usize, segment: &[u8]) -> Option<ArrayVec<u8, MOST_HEADERS>> {
        let mut headers = ArrayVec::new();
        headers.try_extend_from_slice(self.bytes.get(..self.payload_at)?).ok()?;
        let (ip, tcp) = headers.split_at_mut_checked(self.transport)?;
        let ip = ip.get_mut(ETHERNET..)?;
        put_length(ip, segment.len() - ETHERNET)?;
        if self.is_ip4() {
            let id = u16::from_be_bytes(*ip.get(4..)?.first_chunk()?);
            let id = id.wrapping_add(u16::try_from(place).ok()?);
            ip.get_mut(4..6)?.copy_from_slice(&id.to_be_bytes());
            ip.get_mut(10..12)?.copy_from_slice(segment.get(ETHERNET + 10..ETHERNET + 12)?);
        }
        let behind = place * (self.bytes.len() - self.payload_at);
        let sequence = u32::from_be_bytes(*tcp.get(SEQUENCE..)?.first_chunk()?);
        let sequence = sequence.wrapping_add(u32::try_from(behind).ok()?);
        tcp.get_mut(SEQUENCE..SEQUENCE + 4)?.copy_from_slice(&sequence.to_be_bytes());
        let own = segment.get(self.transport..)?;
        *tcp.get_mut(FLAGS)? = *own.get(FLAGS)?;
        tcp.get_mut(CHECKSUM..CHECKSUM + 2)?.copy_from_slice(own.get(CHECKSUM..CHECKSUM + 2)?);
        Some(headers)
    }

    /// Whether the kernel would compute the checksums that a segment has.
    fn has_right_checksums(&self, segment: &[u8]) -> bool {
        let parts = segment.get(ETHERNET..).and_then(|ip| ip.split_at_checked(self.ip_len()));
        let Some((ip, tcp)) = parts else { return false };
        // 0 and all ones are the same sum, but the kernel writes 0.
        let is_written = |bytes: Option<&[u8]>| bytes != Some(&[0xff, 0xff]);
        let is_ip_right = !self.is_ip4() || is_written(ip.get(10..12)) && rfc1071(ip) == 0;
        is_ip_right
            && is_written(tcp.get(CHECKSUM..CHECKSUM + 2))
            && self.pseudo(tcp.len()).with(tcp).folded() == 0xffff
    }

    fn ip_len(&self) -> usize {
        self.transport - ETHERNET
    }

    /// The sum of the pseudo header for this many bytes of TCP.
    fn pseudo(&self, len: usize) -> Sum16 {
        let addresses = if self.is_ip4() { ETHERNET + 12 } else { ETHERNET + 8 };
        let addresses = self.bytes.get(addresses..self.transport).unwrap_or_default();
        Sum16::pseudo_header(proto::TCP, len).with(addresses)
    }

    /// The front of joined segments, which have this length with one set of headers. `flags` are
    /// those of the last one.
    fn front(&self, len: usize, flags: u8) -> Option<ArrayVec<u8, { HEADER + MOST_HEADERS }>> {
        let word = |number: usize| u16::try_from(number).ok().map(u16::to_ne_bytes);
        let mut front = ArrayVec::new();
        front.push(NEEDS_CHECKSUM);
        front.push(if self.is_ip4() { TCP4 } else { TCP6 });
        let segment = self.bytes.len() - self.payload_at;
        for number in [self.payload_at, segment, self.transport, CHECKSUM] {
            front.extend(word(number)?);
        }
        front.try_extend_from_slice(self.bytes.get(..self.payload_at)?).ok()?;
        let headers = front.get_mut(HEADER..)?;
        let (ip, tcp) = headers.split_at_mut_checked(self.transport)?;
        let ip = ip.get_mut(ETHERNET..)?;
        put_length(ip, len - ETHERNET)?;
        if self.is_ip4() {
            ip.get_mut(10..12)?.fill(0);
            let sum = rfc1071(ip).to_be_bytes();
            ip.get_mut(10..12)?.copy_from_slice(&sum);
        }
        *tcp.get_mut(FLAGS)? = flags;
        // The kernel adds the rest.
        let pseudo = self.pseudo(len - self.transport).folded().to_be_bytes();
        tcp.get_mut(CHECKSUM..CHECKSUM + 2)?.copy_from_slice(&pseudo);
        Some(front)
    }
}

/// Writes the length of a packet, which is that of its IP header and all behind, to the header.
fn put_length(ip: &mut [u8], len: usize) -> Option<()> {
    let is_ip4 = ip.len() == IP4_HEADER;
    let (at, len) = if is_ip4 { (2, len) } else { (4, len.checked_sub(IP6_HEADER)?) };
    ip.get_mut(at..at + 2)?.copy_from_slice(&u16::try_from(len).ok()?.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests;
