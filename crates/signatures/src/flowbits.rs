//! Bits of a connection (`flowbits`): rules set them, and other rules ask for them.

use crate::counts::Counts;
use crate::limits::{MAX_BIT_NAME, MAX_BITS};
use braid_http::wire::{list, number, read_bool, read_list, read_number};
use std::sync::Arc;

/// What a rule does with bits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BitsOfRule {
    /// All of them hold, or the rule does not.
    pub asks: Vec<Ask>,
    /// What happens when the rule holds.
    pub writes: Vec<(Write, Arc<str>)>,
}

/// A question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ask {
    /// `isset`, or else `isnotset`.
    pub is_set: bool,
    /// For one of them at least.
    pub names: Box<[Arc<str>]>,
}

/// What a rule does with a bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Write {
    Set,
    Unset,
    Toggle,
}

impl BitsOfRule {
    /// Whether the rule neither asks nor writes.
    pub fn is_empty(&self) -> bool {
        self.asks.is_empty() && self.writes.is_empty()
    }

    /// How many names it has.
    pub fn names(&self) -> usize {
        self.asks.iter().map(|ask| ask.names.len()).sum::<usize>() + self.writes.len()
    }

    /// When the rule comes among rules for the same bytes: rules that only set bits come first,
    /// then rules that set and ask, then rules that ask, as in Suricata.
    pub fn rank(&self) -> u8 {
        match (self.writes.is_empty(), self.asks.is_empty()) {
            (false, true) => 0,
            (false, false) => 1,
            (true, false) => 2,
            (true, true) => 3,
        }
    }
}

/// The bits of a connection that have been set, by name, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bits(Vec<Bit>);

/// How many bytes of the client and of the server have come.
pub type Lengths = [u64; 2];

/// A bit.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Bit {
    name: Arc<str>,
    is_set: bool,
    /// What had come before the bytes that have made it so.
    since: Lengths,
}

impl Bits {
    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|one| (*one.name).cmp(name))
    }

    /// Whether none was ever set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Since when a bit is as a question wants it.
    fn since(&self, is_set: bool, name: &str) -> Option<Lengths> {
        match self.find(name).ok().and_then(|at| self.0.get(at)) {
            Some(bit) => (bit.is_set == is_set).then_some(bit.since),
            None => (!is_set).then_some([0; 2]),
        }
    }

    /// Whether the rule may hold for bytes of this end: behind how many of them the bits are as it
    /// asks.
    pub fn allow(&self, rule: &BitsOfRule, from_client: bool) -> Option<u64> {
        let of = |[client, server]: Lengths| if from_client { client } else { server };
        let first = |ask: &Ask| {
            let names = ask.names.iter().filter_map(|name| self.since(ask.is_set, name));
            names.map(of).min()
        };
        rule.asks.iter().try_fold(0, |from, ask| Some(from.max(first(ask)?)))
    }

    /// The rule holds. `since`: what had come before its bytes.
    pub fn write(&mut self, rule: &BitsOfRule, since: Lengths, counts: &mut Counts) {
        for (write, name) in &rule.writes {
            match self.find(name) {
                Ok(at) => {
                    let Some(bit) = self.0.get_mut(at) else { continue };
                    let is_set = match write {
                        Write::Set => true,
                        Write::Unset => false,
                        Write::Toggle => !bit.is_set,
                    };
                    if bit.is_set != is_set {
                        (bit.is_set, bit.since) = (is_set, since);
                    }
                }
                Err(_) if *write == Write::Unset => {}
                Err(_) if self.0.len() >= MAX_BITS => counts.bits += 1,
                Err(at) => {
                    self.0.insert(at, Bit { name: Arc::clone(name), is_set: true, since });
                }
            }
        }
    }

    /// Their memory (bytes). Rules have the names, but they may go before the connection.
    pub fn memory(&self) -> usize {
        let names = self.0.iter().map(|bit| 2 * size_of::<usize>() + bit.name.len());
        size_of::<Bit>() * self.0.capacity() + names.sum::<usize>()
    }

    pub fn put(&self, out: &mut Vec<u8>) {
        let mut all = Vec::new();
        for Bit { name, is_set, since } in &self.0 {
            list(name.as_bytes(), &mut all);
            number((*is_set).into(), &mut all);
            since.iter().for_each(|len| number(*len, &mut all));
        }
        list(&all, out);
    }

    pub fn read(from: &mut &[u8]) -> Option<Self> {
        let all = &mut read_list(from, MAX_BITS * (MAX_BIT_NAME + 32))?;
        let mut bits = Self::default();
        while !all.is_empty() {
            let name = std::str::from_utf8(read_list(all, MAX_BIT_NAME)?).ok()?;
            if bits.0.len() >= MAX_BITS || bits.0.last().is_some_and(|last| &*last.name >= name) {
                return None;
            }
            let is_set = read_bool(all)?;
            let since = [read_number(all)?, read_number(all)?];
            bits.0.push(Bit { name: name.into(), is_set, since });
        }
        Some(bits)
    }
}
