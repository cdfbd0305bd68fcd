//! Bit vectors: each part of a field has a row with a bit for each rule. This structure takes any
//! set.
//!
//! As in Lakshman and Stiliadis' bit vectors (1998) a lookup ands one row of each field, beginning
//! with the first rules, and stops at the first rule that is left. Rows grow with the rules, and
//! with a row for each rank memory would grow with their square. Therefore a field has at most
//! 2,048 rows here. Each row stands for equally many ends of ranges, and has the rules that match
//! any of its values. A rule that is left after the and is therefore compared in full. Whatever the
//! rules are, a lookup reads at most a word for each 64 rules and field, and memory is bounded by
//! [`MEMORY`].

use crate::flat::{Flat, FlatSet, Query};
use crate::packed::{NONE, Range, Service};

/// Most rows of a field.
const ROWS: usize = 2048;

/// The most bytes of the rows of all fields.
const MEMORY: usize = 128 << 20;

/// Words that are read together.
const STEP: usize = 4;

/// The structure.
#[derive(Clone, Debug)]
pub struct Bits {
    services: Vec<Service>,
    rules: Vec<Flat>,
    /// Source, destination, source port, destination port.
    fields: [Field; 4],
    /// Rows by protocol.
    protos: Field,
}

/// The rows of a field.
#[derive(Clone, Debug)]
struct Field {
    /// The row of each value.
    row: Vec<u16>,
    /// The rows, one after the other.
    bits: Vec<u64>,
}

impl Bits {
    /// Builds the structure for these rules.
    #[must_use]
    pub fn new(flat: &FlatSet) -> Self {
        let words = flat.rules.len().div_ceil(64).next_multiple_of(STEP);
        let most = (MEMORY / (4 * 8 * words.max(1))).clamp(1, ROWS);
        let wide = |range: Range<u16>| (u32::from(range.0), u32::from(range.1));
        let ports = u32::from(u16::MAX) + 1;
        let field = |values: u32, range: &dyn Fn(&Flat) -> Range<u32>| {
            let ranges: Vec<_> = flat.rules.iter().map(range).collect();
            Field::new(values.max(1), &ranges, words, most)
        };
        let fields = [
            field(flat.src_ranks, &|rule| rule.src),
            field(flat.dst_ranks, &|rule| rule.dst),
            field(ports, &|rule| wide(flat.service(rule).sport())),
            field(ports, &|rule| wide(flat.service(rule).dport())),
        ];
        let protos = Field::of_protocols(flat, words);
        Self { services: flat.services.clone(), rules: flat.rules.clone(), fields, protos }
    }

    /// The number of the first rule that matches, or [`NONE`].
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "a row of each of the four fields has `words` words"
    )]
    pub fn find(&self, query: &Query) -> u32 {
        let point = [query.src, query.dst, query.ask.sport().into(), query.ask.dport().into()];
        let words = self.rules.len().div_ceil(64).next_multiple_of(STEP);
        let proto = u32::from(query.ask.proto());
        let [a, b, c, d] = std::array::from_fn(|field| self.fields[field].of(point[field], words));
        let e = self.protos.of(proto, words);
        for start in (0..words).step_by(STEP) {
            let left: [u64; STEP] = std::array::from_fn(|word| {
                let at = start + word;
                a[at] & b[at] & c[at] & d[at] & e[at]
            });
            if left.iter().fold(0, |all, word| all | word) != 0
                && let Some(number) = self.first(start, &left, query)
            {
                return number;
            }
        }
        NONE
    }

    fn first(&self, start: usize, left: &[u64; STEP], query: &Query) -> Option<u32> {
        for (word, place) in left.iter().zip(start..) {
            let mut word = *word;
            while word != 0 {
                let rule = self.rules.get(place * 64 + word.trailing_zeros() as usize)?;
                if rule.matches(query, &self.services) {
                    return Some(rule.number);
                }
                word &= word - 1;
            }
        }
        None
    }

    /// Makes a rule match nothing.
    pub fn forget(&mut self, number: u32) {
        let place = self.rules.binary_search_by_key(&number, |rule| rule.number);
        if let Some(rule) = place.ok().and_then(|place| self.rules.get_mut(place)) {
            rule.src = (1, 0);
        }
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        let fields = self.fields.iter().chain([&self.protos]);
        fields.map(|field| field.row.len() * 2 + field.bits.len() * 8).sum::<usize>()
            + size_of_val(self.rules.as_slice())
            + size_of_val(self.services.as_slice())
    }
}

impl Field {
    /// Builds rows for a field of `values` values.
    #[expect(
        clippy::indexing_slicing,
        reason = "each start has a row of `words` words, one for every 64 ranges"
    )]
    fn new(values: u32, ranges: &[Range<u32>], words: usize, most: usize) -> Self {
        let past = |&(_, hi): &Range<u32>| Some(hi + 1).filter(|past| *past < values);
        let mut ends: Vec<u32> = ranges.iter().filter_map(past).collect();
        ends.extend(ranges.iter().map(|range| range.0).chain([0]));
        ends.sort_unstable();
        ends.dedup();
        let each = ends.len().div_ceil(most);
        let starts: Vec<u32> = ends.into_iter().step_by(each).collect();
        let row_of = |value: u32| starts.partition_point(|start| *start <= value) - 1;
        let row = (0..values).map(|value| u16::try_from(row_of(value)).unwrap_or(0)).collect();
        let mut bits = vec![0; starts.len() * words];
        // Fills the column of one word (64 rules) at a time, so that it stays in cache.
        let mut column = vec![0_u64; starts.len()];
        for (rules, word) in ranges.chunks(64).zip(0..) {
            column.fill(0);
            for (&(lo, hi), bit) in rules.iter().zip(0..) {
                column[row_of(lo)..=row_of(hi)].iter_mut().for_each(|cell| *cell |= 1 << bit);
            }
            for (cell, row) in column.iter().zip(0..) {
                bits[row * words + word] = *cell;
            }
        }
        Self { row, bits }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "each protocol has a row of `words` words, one for every 64 rules"
    )]
    fn of_protocols(flat: &FlatSet, words: usize) -> Self {
        let mut bits = vec![0; 256 * words];
        for (rule, place) in flat.rules.iter().zip(0..) {
            let service = flat.service(rule);
            for proto in (0..=u8::MAX).filter(|proto| service.has_proto(*proto)) {
                bits[usize::from(proto) * words + place / 64] |= 1 << (place % 64);
            }
        }
        Self { row: (0..256).collect(), bits }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "`row` has a row of `words` words for each of the field's values"
    )]
    fn of(&self, value: u32, words: usize) -> &[u64] {
        &self.bits[usize::from(self.row[value as usize]) * words..][..words]
    }
}
