//! The steering of a chain as a BPF program. The kernel runs it for each frame that arrives at a
//! device which several workers share, and gives the frame to the worker of the packet. So packets
//! need not be passed on.
//!
//! The program decides as [`Steering::worker`] does. It leaves packets that are rare and slow to
//! parse to the workers, which steer all packets anyway. Its decision about malformed packets is
//! arbitrary.

mod choose;
mod parse;

use braid_io::bpf::Register::{self, R0, R1, R2, R3, R4, R5, R6, R7, R8, R10};
use braid_io::bpf::{Assembler, Helper, Instruction, Label, Operation, Size, Test};
use braid_ir::steering::{By, Steering};
use braid_packet::Field;

// Fields of the program's argument, `struct __sk_buff`.
const PROTOCOL: i16 = 16;
const HAS_TAG: i16 = 20;
const TAG: i16 = 24;

// The stack: bytes of the packet, then the flow key, with two words for each address.
const BYTES: i16 = -48;
const SRC: i16 = -64;
const DST: i16 = -80;
const SPORT: i16 = -88;
const DPORT: i16 = -96;
/// The offset at which the IP packet ends.
const END: i16 = -104;

/// The program that gives the packets that enter at an interface to this number of workers: its
/// result is the number of the worker, from 0, or the number of workers for a packet that it does
/// not decide about. `None` if no program can follow the rule of the interface: it looks at a field
/// that is deep in a packet, or at a pool in many pieces.
#[must_use]
pub fn steering_program(
    steering: &Steering,
    interface: u16,
    workers: u16,
) -> Option<Vec<Instruction>> {
    let by = steering.by(interface);
    let mut writer = Writer::new(workers);
    match by {
        By::Field(field) => writer.by_field(*field)?,
        By::Connection | By::Part(_) | By::Pool(..) => {
            writer.parse(steering.errors_follow);
            writer.choose(by)?;
        }
    }
    writer.finish()
}

/// A program that is being written. `R6` holds its argument, `R7` the offset in the packet, from
/// the end of the Ethernet header and of the tag that the kernel keeps beside the packet. `R8`
/// holds the EtherType, then the protocol, and `R9` the IP version.
struct Writer {
    code: Assembler,
    workers: u16,
    /// All of the flow key is known.
    key: Label,
    /// The packet belongs to worker 0, because it lacks a field that the rule reads.
    first: Label,
    /// The program does not decide.
    undecided: Label,
}

impl Writer {
    fn new(workers: u16) -> Self {
        let mut code = Assembler::new();
        let [key, first, undecided] = [code.label(), code.label(), code.label()];
        code.set(R6, R1);
        code.set(R7, 0);
        code.load(Size::Word, R8, R6, PROTOCOL);
        code.from_network(Size::Half, R8);
        Self { code, workers, key, first, undecided }
    }

    /// Copies bytes of the packet to the stack. A packet with too few bytes is malformed.
    fn bytes(&mut self, count: i32) {
        self.code.set(R2, R7);
        self.copy(count, Helper::LoadBytes);
    }

    /// Copies bytes from the offset in `R2` to the stack.
    fn copy(&mut self, count: i32, helper: Helper) {
        self.code.set(R1, R6);
        self.code.set(R3, R10);
        self.code.operate(Operation::Add, R3, i32::from(BYTES));
        self.code.set(R4, count);
        self.code.set(R5, 0);
        self.code.call(helper);
        self.code.jump_if(Test::Differ, R0, 0, self.undecided);
    }

    /// A number of the bytes on the stack, at an offset that is a multiple of its size.
    fn number(&mut self, to: Register, size: Size, at: i16) {
        self.code.load(size, to, R10, BYTES + at);
        if size != Size::Byte {
            self.code.from_network(size, to);
        }
    }

    /// Decides by a field of the link header.
    fn by_field(&mut self, field: Field) -> Option<()> {
        match field {
            Field::EthDst | Field::EthSrc => {
                self.code.set(R2, if field == Field::EthSrc { 6 } else { 0 });
                self.copy(6, Helper::LoadBytesRelative);
                self.number(R1, Size::Word, 0);
                self.number(R3, Size::Half, 4);
                self.code.operate(Operation::ShiftLeft, R1, 16);
                self.code.operate(Operation::Or, R1, R3);
            }
            Field::VlanId => {
                let (inside, found) = (self.code.label(), self.code.label());
                self.code.load(Size::Word, R1, R6, HAS_TAG);
                self.code.jump_if(Test::Equal, R1, 0, inside);
                self.code.load(Size::Word, R1, R6, TAG);
                self.code.jump(found);
                self.code.place(inside);
                self.unless_tag(self.first);
                self.bytes(2);
                self.number(R1, Size::Half, 0);
                self.code.place(found);
                self.code.operate(Operation::And, R1, 0xfff);
            }
            _ => return None,
        }
        self.code.set(R2, 0);
        self.spread(&[R1, R2]);
        Some(())
    }

    /// Ends the program with the code for the labels.
    fn finish(mut self) -> Option<Vec<Instruction>> {
        for (label, result) in [(self.first, 0), (self.undecided, self.workers)] {
            if !self.code.is_used(label) {
                continue;
            }
            self.code.place(label);
            self.code.set(R0, i32::from(result));
            self.code.exit();
        }
        self.code.finish()
    }
}
