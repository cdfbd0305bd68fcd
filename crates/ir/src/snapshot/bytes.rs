//! Snapshots as bytes: numbers take 7 bits in each byte, and lists and texts begin with their
//! lengths. Parameters are written in the text form of models.
//!
//! A reader refuses whatever does not fit, and takes no more memory than a multiple of the bytes
//! that are there.

use super::data::{
    EntryState, FunctionState, HeldState, ParamState, PoolState, QueueState, RowState, ShardState,
    Snapshot, TableState, TimerState, Totals,
};
use crate::counters::{TableCounters, Traffic};
use crate::model::ParamDecl;
use crate::text;
use braid_packet::{Link, Packet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most elements of a list for which memory is taken before they are read.
const AT_ONCE: usize = 1024;

/// The reason why bytes are not a snapshot.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("byte {at}: {why}")]
pub struct BytesError {
    /// The position of the error.
    pub at: usize,
    /// The error.
    pub why: String,
}

type Result<T> = std::result::Result<T, BytesError>;

impl Snapshot {
    /// The snapshot as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// The snapshot in these bytes.
    ///
    /// # Errors
    /// The bytes are not a snapshot.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader { bytes, at: 0 };
        let snapshot = Self::get(&mut reader)?;
        if reader.at == bytes.len() { Ok(snapshot) } else { reader.wrong("more bytes follow") }
    }
}

/// A position in bytes.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn wrong<T>(&self, why: impl Into<String>) -> Result<T> {
        Err(BytesError { at: self.at, why: why.into() })
    }

    fn byte(&mut self) -> Result<u8> {
        match self.take(1)? {
            [byte] => Ok(*byte),
            _ => self.wrong("the end"),
        }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let taken = self.at.checked_add(len).and_then(|end| self.bytes.get(self.at..end));
        match taken {
            Some(taken) => {
                self.at += len;
                Ok(taken)
            }
            None => self.wrong("the bytes end too early"),
        }
    }

    /// A number of about this many bits. The caller checks that it fits.
    fn number(&mut self, bits: u32) -> Result<u128> {
        let (mut value, mut shift) = (0_u128, 0);
        loop {
            let byte = self.byte()?;
            let part = u128::from(byte & 0x7f);
            if shift >= bits || part.checked_shl(shift).is_none_or(|up| up >> shift != part) {
                return self.wrong("a number is too large");
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
        }
        Ok(value)
    }

    /// The length of a list or text. Each element takes at least one byte.
    fn len(&mut self) -> Result<usize> {
        let len = usize::get(self)?;
        if len > self.bytes.len() - self.at {
            return self.wrong("a list is longer than the rest");
        }
        Ok(len)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the loop ends when seven bits are left")]
fn put_number(mut value: u128, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push(0x80 | (value & 0x7f) as u8);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Data that has a form in bytes.
trait Stored: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn get(from: &mut Reader<'_>) -> Result<Self>;
}

/// Numbers.
macro_rules! numbers {
    ($($ty:ty: $bits:literal),*) => {$(
        impl Stored for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                put_number(u128::from(*self), out);
            }

            fn get(from: &mut Reader<'_>) -> Result<Self> {
                match <$ty>::try_from(from.number($bits)?) {
                    Ok(number) => Ok(number),
                    Err(_) => from.wrong("a number is too large"),
                }
            }
        }
    )*};
}
numbers!(u16: 16, u32: 32, u64: 64, u128: 128);

impl Stored for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }

    fn get(from: &mut Reader<'_>) -> Result<Self> {
        match usize::try_from(u64::get(from)?) {
            Ok(number) => Ok(number),
            Err(_) => from.wrong("a number is too large"),
        }
    }
}

/// Structures, field by field. Fields after `;` are not written.
macro_rules! structures {
    ($($ty:ident { $($field:ident),* $(; $unwritten:ident)? })*) => {$(
        impl Stored for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn get(from: &mut Reader<'_>) -> Result<Self> {
                Ok(Self { $($field: Stored::get(from)?,)* $($unwritten: Default::default())? })
            }
        }
    )*};
}
structures! {
    Snapshot { chain, workers, steering, now_ns, started, totals, functions }
    Totals { packets_in, created, copied, consumed, out, lost }
    FunctionState {
        name, model, native, forward, backward, timers_skipped, background_faults, rows, params,
        tables, queues, timers, shards; stays
    }
    RowState { label, text, traffic, drops }
    TableState { name, schema, lives_with, counters, entries }
    EntryState { key, slots, shard, creator, created_ns, last_seen_ns, root }
    QueueState { name, packets }
    HeldState { until_ns, hops, worker, packet }
    TimerState { period, next_ns }
    ShardState { random, pools, memory, stack }
    PoolState { name, taken, free }
    Traffic { packets, bytes }
    TableCounters { entries, created, refused, evicted, expired }
}

impl Stored for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn get(from: &mut Reader<'_>) -> Result<Self> {
        match from.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => from.wrong("expected 0 or 1"),
        }
    }
}

impl Stored for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn get(from: &mut Reader<'_>) -> Result<Self> {
        from.byte()
    }
}

impl Stored for String {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn get(from: &mut Reader<'_>) -> Result<Self> {
        let len = from.len()?;
        match std::str::from_utf8(from.take(len)?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => from.wrong("a text is not UTF-8"),
        }
    }
}

impl Stored for Arc<str> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).to_owned().put(out);
    }

    fn get(from: &mut Reader<'_>) -> Result<Self> {
        String::get(from).map(Arc::from)
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        self.iter().for_each(|one| one.put(out));
    }

    fn get(from: &mut Reader<'_>) -> Result<Self> {
        let len = from.len()?;
        let mut all = Vec::with_capacity(len.min(AT_ONCE));
        for _ in 0..len {
            all.push(T::get(from)?);
        }
        Ok(all)
    }
}

impl<T: Stored> Stored for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|one| one.put(out));
    }

    fn get(from: &mut Reader<'_>) -> Result<Self> {
        Ok(if bool::get(from)? { Some(T::get(from)?) } else { None })
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn get(from: &mut Reader<'_>) -> Result<Self> {
        Ok((A::get(from)?, B::get(from)?))
    }
}

impl<K: Stored + Ord, V: Stored> Stored for BTreeMap<K, V> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        for (key, value) in self {
            key.put(out);
            value.put(out);
        }
    }

    fn get(from: &mut Reader<'_>) -> Result<Self> {
        let len = from.len()?;
        (0..len).map(|_| Ok((K::get(from)?, V::get(from)?))).collect()
    }
}

impl Stored for ParamState {
    fn put(&self, out: &mut Vec<u8>) {
        let mut param = ParamDecl {
            name: self.name.clone(),
            ty: self.ty.clone(),
            default: Some(self.value.clone()),
        };
        text::print_param(&param).put(out);
        let configured = self.configured.clone().map(|value| {
            param.default = Some(value);
            text::print_param(&param)
        });
        configured.put(out);
        self.rule_counts.put(out);
    }

    fn get(from: &mut Reader<'_>) -> Result<Self> {
        let param = param(from)?;
        let configured = match bool::get(from)? {
            true => self::param(from)?.default,
            false => None,
        };
        let Some(value) = param.default else { return from.wrong("a parameter has no value") };
        let rule_counts = Stored::get(from)?;
        Ok(Self { name: param.name, ty: param.ty, value, configured, rule_counts })
    }
}

fn param(from: &mut Reader<'_>) -> Result<ParamDecl> {
    let text = String::get(from)?;
    match text::parse_param(&text) {
        Ok(param) => Ok(param),
        Err(why) => from.wrong(format!("a parameter cannot be read: {why}")),
    }
}

/// The kinds of link headers, by number. New kinds come last.
const LINKS: [Link; 4] = [Link::Ethernet, Link::RawIp, Link::Cooked, Link::Cooked2];

impl Stored for Packet {
    fn put(&self, out: &mut Vec<u8>) {
        let link = LINKS.iter().position(|link| *link == self.link).unwrap_or(LINKS.len());
        link.put(out);
        self.time_ns.put(out);
        self.wire_len.put(out);
        self.ingress.put(out);
        self.backward.put(out);
        self.held.put(out);
        self.tags.put(out);
        self.data().len().put(out);
        out.extend_from_slice(self.data());
    }

    fn get(from: &mut Reader<'_>) -> Result<Self> {
        let Some(link) = LINKS.get(usize::get(from)?) else {
            return from.wrong("no kind of link header has this number");
        };
        let (time_ns, wire_len, ingress) =
            Stored::get(from).and_then(|time: u64| Ok((time, u32::get(from)?, u16::get(from)?)))?;
        let (backward, held) = Stored::get(from)?;
        let tags: BTreeMap<Arc<str>, u128> = Stored::get(from)?;
        let len = from.len()?;
        let mut packet = Packet::snapped(*link, time_ns, from.take(len)?, wire_len);
        (packet.ingress, packet.backward, packet.held) = (ingress, backward, held);
        packet.tags = tags.into();
        Ok(packet)
    }
}
