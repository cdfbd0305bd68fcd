//! The part of the program that chooses the worker for a flow key.

use super::{DPORT, DST, SPORT, SRC, Writer};
use braid_io::bpf::Register::{self, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use braid_io::bpf::{Label, Operation, Size, Test};
use braid_ir::model::Word;
use braid_ir::steering::{By, Of, Part, Side, owner};
use braid_ir::value::IntervalSet;

/// The most pieces of a pool's members for which a program is made.
const MOST_PIECES: usize = 64;

/// The numbers of [`braid_ir::steering`]'s hash: its start and its factor.
const START: u64 = 0x243f_6a88_85a3_08d3;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Writer {
    /// Decides about the packet whose key is on the stack. `None` if the rule is too long.
    pub(super) fn choose(&mut self, by: &By) -> Option<()> {
        self.code.place(self.key);
        match by {
            By::Connection | By::Field(_) => self.by_connection(),
            By::Part(part) => {
                let (address, port) = slots(*part);
                // The halves of each word.
                let whole = [(R1, address), (R2, address + 8), (R3, port)];
                for (register, slot) in whole {
                    self.code.load(Size::Double, register, R10, slot);
                }
                self.code.set(R4, 0);
                match part.what {
                    Of::Both => self.spread(&[R1, R2, R3, R4]),
                    Of::Address => self.spread(&[R1, R2]),
                    Of::Port => self.spread(&[R3, R4]),
                }
            }
            By::Pool(part, pool) => {
                let (address, port) = slots(*part);
                if part.what == Of::Port {
                    self.code.load(Size::Double, R1, R10, port);
                    self.code.set(R2, 0);
                } else {
                    self.code.load(Size::Double, R1, R10, address);
                    self.code.load(Size::Double, R2, R10, address + 8);
                }
                self.by_pool(&pool.members)?;
            }
        }
        Some(())
    }

    /// Puts the smaller end first, so that both directions have the same key, and hashes the key.
    fn by_connection(&mut self) {
        let slots = [SRC + 8, SRC, SPORT, DST + 8, DST, DPORT];
        let [src, dst] = [[R1, R2, R3], [R4, R5, R0]];
        for (register, slot) in src.into_iter().chain(dst).zip(slots) {
            self.code.load(Size::Double, register, R10, slot);
        }
        let [exchange, ordered] = [(); 2].map(|()| self.code.label());
        for (first, second) in src.into_iter().zip(dst) {
            self.code.jump_if(Test::Greater, first, second, exchange);
            self.code.jump_if(Test::Differ, first, second, ordered);
        }
        self.code.jump(ordered);
        self.code.place(exchange);
        for (first, second) in src.into_iter().zip(dst) {
            self.code.set(R7, first);
            self.code.set(first, second);
            self.code.set(second, R7);
        }
        self.code.place(ordered);
        // Ports, version and protocol are one word.
        for (more, bits) in [(R0, 16), (R9, 8), (R8, 8)] {
            self.code.operate(Operation::ShiftLeft, R3, bits);
            self.code.operate(Operation::Or, R3, more);
        }
        self.code.set(R8, 0);
        self.spread(&[R2, R1, R5, R4, R3, R8]);
    }

    /// Ends the program with a worker by a hash of words of 64 bits.
    pub(super) fn spread(&mut self, words: &[Register]) {
        self.code.set_wide(R6, START);
        self.code.set_wide(R7, FACTOR);
        for word in words {
            self.code.operate(Operation::Xor, R6, *word);
            self.code.operate(Operation::Multiply, R6, R7);
            self.code.set(R0, R6);
            self.code.operate(Operation::ShiftRight, R0, 32);
            self.code.operate(Operation::Xor, R6, R0);
        }
        self.code.operate(Operation::Multiply, R6, R7);
        self.code.operate(Operation::ShiftRight, R6, 32);
        self.code.operate(Operation::Multiply, R6, i32::from(self.workers));
        self.code.operate(Operation::ShiftRight, R6, 32);
        self.code.set(R0, R6);
        self.code.exit();
    }

    /// Decides by the share that holds the word in `R1` and `R2`, or by a hash if none does.
    fn by_pool(&mut self, members: &IntervalSet) -> Option<()> {
        let pieces = pieces(members, self.workers);
        if pieces.len() > MOST_PIECES {
            return None;
        }
        let spread = self.code.label();
        // Smaller words have already left this path.
        let mut before = None;
        for (low, high, worker) in pieces {
            let above = self.code.label();
            self.if_greater(high, above);
            if let Some(below) = low.checked_sub(1).filter(|below| before != Some(*below)) {
                let within = self.code.label();
                self.if_greater(below, within);
                self.code.jump(spread);
                self.code.place(within);
            }
            self.code.set(R0, i32::from(worker));
            self.code.exit();
            self.code.place(above);
            before = Some(high);
        }
        self.code.place(spread);
        self.spread(&[R1, R2]);
        Some(())
    }

    /// Goes to a label if the word in `R1` and `R2` is greater than another one.
    fn if_greater(&mut self, than: Word, label: Label) {
        let no = self.code.label();
        self.code.set_wide(R3, (than >> 64) as u64);
        self.code.jump_if(Test::Greater, R2, R3, label);
        self.code.jump_if(Test::Differ, R2, R3, no);
        #[expect(clippy::cast_possible_truncation, reason = "`R3` gets the low half")]
        self.code.set_wide(R3, than as u64);
        self.code.jump_if(Test::Greater, R1, R3, label);
        self.code.place(no);
    }
}

/// The slots of the address and the port of an end.
fn slots(part: Part) -> (i16, i16) {
    match part.end {
        Side::Source => (SRC, SPORT),
        Side::Destination => (DST, DPORT),
    }
}

/// The members of a pool in ascending pieces, each with the worker whose share holds it.
fn pieces(members: &IntervalSet, workers: u16) -> Vec<(Word, Word, u16)> {
    let mut pieces = Vec::new();
    for (low, high) in members.intervals() {
        let mut from = *low;
        while let Some(worker) = owner(members, from, workers) {
            // The last member of the interval that belongs to the worker.
            let (mut last, mut beyond) = (from, *high);
            while last < beyond {
                let middle = beyond - (beyond - last) / 2;
                match owner(members, middle, workers) == Some(worker) {
                    true => last = middle,
                    false => beyond = middle - 1,
                }
            }
            pieces.push((from, last, worker));
            match last.checked_add(1).filter(|next| next <= high) {
                Some(next) => from = next,
                None => break,
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::{owner, pieces};
    use braid_ir::value::IntervalSet;

    #[test]
    fn pieces_are_the_members_by_worker() {
        let members = IntervalSet::new([(0, 9), (20, 20), (30, 47), (u128::MAX - 3, u128::MAX)]);
        for workers in [2, 3, 5, 40] {
            let found = pieces(&members, workers);
            assert!(found.is_sorted());
            for value in (0..60).chain(u128::MAX - 6..=u128::MAX) {
                let holds = |(low, high, _): &&(u128, u128, u16)| (*low..=*high).contains(&value);
                let worker = found.iter().find(holds).map(|(.., worker)| *worker);
                assert_eq!(worker, owner(&members, value, workers), "{value} of {workers}");
            }
        }
    }
}
