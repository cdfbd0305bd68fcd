//! Connections as bytes, so that another monitor goes on from them. Numbers take 7 bits in each
//! byte, and lists begin with their lengths.
//!
//! A reader refuses whatever no monitor would hold, and takes no more memory than a multiple of the
//! bytes that are there. The numbers of reports are not written: they begin anew.

use std::collections::VecDeque;
use std::ops::Range;

use braid_packet::{FlowKey, proto};

use crate::connection::Connection;
use crate::direction::Pair;
use crate::report::{Opening, State};
use crate::segment::Syn;
use crate::seq::Seq;
use crate::side::{MOST_SCALE, Side};
use crate::stream::{GAPS, Stream};

/// A bound for offsets. Streams stay far below, and sums of offsets and lengths have room.
const MOST_OFFSET: u64 = 1 << 56;

/// Bytes that are still to be read.
#[derive(Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// Whether all bytes have been read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// The length of a list. Each element takes at least one byte.
    pub fn len_of_list(&mut self) -> Option<usize> {
        usize::try_from(u64::get(self)?).ok().filter(|len| *len <= self.0.len())
    }

    /// Bytes behind their length.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.len_of_list()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }
}

/// Writes bytes behind their length.
pub fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    (bytes.len() as u64).put(out);
    out.extend_from_slice(bytes);
}

/// Data that has a form in bytes.
pub trait Stored: Sized {
    /// Writes the data.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads the data. `None` if the bytes are not such data.
    fn get(from: &mut Reader<'_>) -> Option<Self>;
}

impl Stored for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn get(from: &mut Reader<'_>) -> Option<Self> {
        let (byte, rest) = from.0.split_first()?;
        from.0 = rest;
        Some(*byte)
    }
}

impl Stored for u128 {
    #[expect(clippy::cast_possible_truncation, reason = "the loop ends when seven bits are left")]
    fn put(&self, out: &mut Vec<u8>) {
        let mut value = *self;
        while value > 0x7f {
            out.push(0x80 | (value & 0x7f) as u8);
            value >>= 7;
        }
        out.push(value as u8);
    }

    fn get(from: &mut Reader<'_>) -> Option<Self> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = u8::get(from)?;
            let part = u128::from(byte & 0x7f);
            let up = part.checked_shl(shift).filter(|up| up >> shift == part)?;
            value |= up;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            shift += 7;
        }
    }
}

/// Smaller numbers.
macro_rules! numbers {
    ($($ty:ty)*) => {$(
        impl Stored for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                u128::from(*self).put(out);
            }

            fn get(from: &mut Reader<'_>) -> Option<Self> {
                <$ty>::try_from(u128::get(from)?).ok()
            }
        }
    )*};
}
numbers!(u16 u32 u64);

impl Stored for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push((*self).into());
    }

    fn get(from: &mut Reader<'_>) -> Option<Self> {
        match u8::get(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<T: Stored> Stored for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|one| one.put(out));
    }

    fn get(from: &mut Reader<'_>) -> Option<Self> {
        Some(if bool::get(from)? { Some(T::get(from)?) } else { None })
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn get(from: &mut Reader<'_>) -> Option<Self> {
        Some((A::get(from)?, B::get(from)?))
    }
}

impl<T: Stored> Stored for Pair<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.forward.put(out);
        self.backward.put(out);
    }

    fn get(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self { forward: T::get(from)?, backward: T::get(from)? })
    }
}

impl Stored for Seq {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn get(from: &mut Reader<'_>) -> Option<Self> {
        u32::get(from).map(Self)
    }
}

/// Gives enumerations a form in bytes: the number of the value. New ones come last.
#[macro_export]
macro_rules! stored_enumerations {
    ($($ty:ident { $($value:ident)* })*) => {$(
        impl $crate::Stored for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                out.push(*self as u8);
            }

            fn get(from: &mut $crate::Reader<'_>) -> Option<Self> {
                let all = [$($ty::$value),*];
                all.get(usize::from(<u8 as $crate::Stored>::get(from)?)).copied()
            }
        }
    )*};
}
stored_enumerations! {
    Opening { MidStream Incomplete Handshake Simultaneous }
    State {
        Closed SynSent SynReceived Established FinWait1 FinWait2 CloseWait Closing LastAck TimeWait
        Ended
    }
}

/// Gives structures a form in bytes, field by field. Fields behind a semicolon are not written, and
/// begin anew. A condition checks what was read.
#[macro_export]
macro_rules! stored_structures {
    ($($ty:ident { $($field:ident),* $(; $($unwritten:ident),*)? } $is_right:expr;)*) => {$(
        impl $crate::Stored for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                $($crate::Stored::put(&self.$field, out);)*
            }

            fn get(from: &mut $crate::Reader<'_>) -> Option<Self> {
                let is_right: fn(&Self) -> bool = $is_right;
                $(let $field = $crate::Stored::get(from)?;)*
                let read = Self { $($field,)* $($($unwritten: Default::default(),)*)? };
                Some(read).filter(is_right)
            }
        }
    )*};
}
stored_structures! {
    FlowKey { version, src, dst, proto, sport, dport } is_tcp;
    Syn { isn, wscale, sack_ok, timestamp, is_right } |_| true;
    Side {
        state, isn, base, stream, ack, window, heard_ns, offered_scale, offers_timestamps, recent,
        candidate, is_fin_received, has_right; report
    } |side| side.offered_scale.is_none_or(|scale| scale <= MOST_SCALE);
    Connection {
        flow, opening, sides, is_open, is_over, over_ns; id, memory_gaps, charged
    } |_| true;
}

/// Whether a key is that of a TCP flow.
fn is_tcp(key: &FlowKey) -> bool {
    let most = if key.version == 4 { u32::MAX.into() } else { u128::MAX };
    matches!(key.version, 4 | 6) && key.proto == proto::TCP && key.src.max(key.dst) <= most
}

impl Stored for Stream {
    fn put(&self, out: &mut Vec<u8>) {
        self.frontier.put(out);
        self.top.put(out);
        self.fin.put(out);
        self.acked.put(out);
        self.behind_since.put(out);
        (self.lost.len() as u64).put(out);
        for lost in &self.lost {
            (lost.start, lost.end).put(out);
        }
        (self.pieces.len() as u64).put(out);
        for (at, piece) in &self.pieces {
            at.put(out);
            put_bytes(piece, out);
        }
    }

    fn get(from: &mut Reader<'_>) -> Option<Self> {
        let (frontier, top) = (offset(from)?, offset(from)?);
        let fin = if bool::get(from)? { Some(offset(from)?) } else { None };
        let (acked, behind_since, lost) =
            (offset(from)?, Stored::get(from)?, lost(from, frontier)?);
        let mut stream = Self::default();
        (stream.frontier, stream.top, stream.fin) = (frontier, top, fin);
        (stream.acked, stream.behind_since, stream.lost) = (acked, behind_since, lost);
        // Pieces do not touch the frontier: the first missing byte is there.
        let mut least = frontier + 1;
        for _ in 0..from.len_of_list()? {
            let (at, bytes) = (u64::get(from)?, from.bytes()?);
            let end = at.checked_add(bytes.len() as u64)?;
            if at < least || bytes.is_empty() || end > fin.unwrap_or(MOST_OFFSET) {
                return None;
            }
            stream.keep(at, bytes);
            least = end;
        }
        Some(stream)
    }
}

fn offset(from: &mut Reader<'_>) -> Option<u64> {
    u64::get(from).filter(|offset| *offset <= MOST_OFFSET)
}

/// The last gaps of a stream, which lie in front of its frontier.
fn lost(from: &mut Reader<'_>, frontier: u64) -> Option<VecDeque<Range<u64>>> {
    let (mut all, mut least) = (VecDeque::new(), 0);
    let count = from.len_of_list().filter(|count| *count <= GAPS)?;
    for _ in 0..count {
        let (start, end) = Stored::get(from)?;
        if start < least || end < start || end > frontier {
            return None;
        }
        all.push_back(start..end);
        least = end;
    }
    Some(all)
}
