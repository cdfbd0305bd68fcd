//! An assembler for BPF programs. It knows the instructions that all kernels with BPF have (the
//! first version of the instruction set).

use std::os::fd::{AsRawFd, BorrowedFd};

/// An instruction as the kernel reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Instruction {
    code: u8,
    /// The destination register in the low half, the source register in the high half.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A register of 64 bits. `R0` holds results, `R1` to `R5` hold arguments and do not survive a
/// call. `R10` is the end of the stack, and cannot be assigned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names are those of the instruction set")]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}
use Register::R0;

/// The second operand of an operation or of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// A register.
    Register(Register),
    /// A number, whose sign is extended to 64 bits.
    Number(i32),
}

impl From<Register> for Operand {
    fn from(register: Register) -> Self {
        Self::Register(register)
    }
}

impl From<i32> for Operand {
    fn from(number: i32) -> Self {
        Self::Number(number)
    }
}

impl From<u16> for Operand {
    fn from(number: u16) -> Self {
        i32::from(number).into()
    }
}

impl From<u8> for Operand {
    fn from(number: u8) -> Self {
        i32::from(number).into()
    }
}

/// An operation on 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Addition.
    Add = 0x00,
    /// Multiplication.
    Multiply = 0x20,
    /// Bitwise or.
    Or = 0x40,
    /// Bitwise and.
    And = 0x50,
    /// Shift to the left.
    ShiftLeft = 0x60,
    /// Shift to the right, with zeros from the left.
    ShiftRight = 0x70,
    /// Bitwise exclusive or.
    Xor = 0xa0,
    /// Assignment.
    Set = 0xb0,
}

/// A test of two unsigned numbers of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    /// They are equal.
    Equal = 0x10,
    /// The first one is greater.
    Greater = 0x20,
    /// They differ.
    Differ = 0x50,
}

/// The size of a number in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// 1 byte.
    Byte,
    /// 2 bytes.
    Half,
    /// 4 bytes.
    Word,
    /// 8 bytes.
    Double,
}

impl Size {
    /// The code of the size in loads and stores.
    fn code(self) -> u8 {
        match self {
            Size::Byte => 0x10,
            Size::Half => 0x08,
            Size::Word => 0x00,
            Size::Double => 0x18,
        }
    }

    fn bits(self) -> i32 {
        match self {
            Size::Byte => 8,
            Size::Half => 16,
            Size::Word => 32,
            Size::Double => 64,
        }
    }
}

/// A function of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Helper {
    /// `bpf_skb_load_bytes(context, offset, to, length)`: copies bytes of the packet. The offset
    /// counts from the header that the kernel has reached. The result is 0 unless the packet has
    /// too few bytes.
    LoadBytes = 26,
    /// `bpf_redirect_map(map, key, default)`.
    RedirectMap = 51,
    /// `bpf_skb_load_bytes_relative(context, offset, to, length, start)`: the same, from the link
    /// header on if `start` is 0.
    LoadBytesRelative = 68,
}

/// A place in a program, to jump to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(usize);

/// The source register that makes a constant the descriptor of a map.
const MAP: u8 = 1;

/// A program that is being written, instruction by instruction.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    code: Vec<Instruction>,
    /// The place of each label, once it is known.
    labels: Vec<Option<usize>>,
    /// The places of jumps, and their targets.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// A program without instructions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A label without a place.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Gives a label its place: the next instruction.
    pub fn place(&mut self, label: Label) {
        let next = self.code.len();
        if let Some(place) = self.labels.get_mut(label.0) {
            *place = Some(next);
        }
    }

    /// Whether a jump goes to the label. The kernel refuses unreachable code.
    #[must_use]
    pub fn is_used(&self, label: Label) -> bool {
        self.jumps.iter().any(|(_, to)| *to == label)
    }

    fn push(&mut self, code: u8, to: Register, source: u8, offset: i16, immediate: i32) {
        let registers = to as u8 | source << 4;
        self.code.push(Instruction { code, registers, offset, immediate });
    }

    /// An instruction with two operands.
    fn pair(&mut self, code: u8, to: Register, operand: Operand) {
        match operand {
            Operand::Register(from) => self.push(code | 0x08, to, from as u8, 0, 0),
            Operand::Number(number) => self.push(code, to, 0, 0, number),
        }
    }

    /// `to = to OPERATION operand`
    pub fn operate(&mut self, operation: Operation, to: Register, operand: impl Into<Operand>) {
        self.pair(operation as u8 | 0x07, to, operand.into());
    }

    /// `to = operand`
    pub fn set(&mut self, to: Register, operand: impl Into<Operand>) {
        self.operate(Operation::Set, to, operand);
    }

    /// `to = value`, which takes two instructions.
    pub fn set_wide(&mut self, to: Register, value: u64) {
        let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
        self.push(0x18, to, 0, 0, i32::from_le_bytes([a, b, c, d]));
        self.push(0, R0, 0, 0, i32::from_le_bytes([e, f, g, h]));
    }

    /// `to = the map with this descriptor`, which takes two instructions.
    pub fn set_map(&mut self, to: Register, map: BorrowedFd<'_>) {
        self.push(0x18, to, MAP, 0, map.as_raw_fd());
        self.push(0, R0, 0, 0, 0);
    }

    /// `to = *(base + offset)`, in the machine's byte order.
    pub fn load(&mut self, size: Size, to: Register, base: Register, offset: i16) {
        self.push(0x61 | size.code(), to, base as u8, offset, 0);
    }

    /// `*(base + offset) = from`, in the machine's byte order.
    pub fn store(&mut self, size: Size, base: Register, offset: i16, from: Register) {
        self.push(0x63 | size.code(), base, from as u8, offset, 0);
    }

    /// Converts a number in the low bits of a register from network byte order to the machine's
    /// byte order. The other bits become 0.
    pub fn from_network(&mut self, size: Size, register: Register) {
        self.push(0xdc, register, 0, 0, size.bits());
    }

    /// Goes on at a label, which must come later.
    pub fn jump(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(0x05, R0, 0, 0, 0);
    }

    /// Goes on at a label, which must come later, if a test holds.
    pub fn jump_if(
        &mut self,
        test: Test,
        first: Register,
        second: impl Into<Operand>,
        label: Label,
    ) {
        self.jumps.push((self.code.len(), label));
        self.pair(test as u8 | 0x05, first, second.into());
    }

    /// `R0 = helper(R1, …)`
    pub fn call(&mut self, helper: Helper) {
        self.push(0x85, R0, 0, 0, helper as i32);
    }

    /// Ends the program with the result `R0`.
    pub fn exit(&mut self) {
        self.push(0x95, R0, 0, 0, 0);
    }

    /// The program. `None` if a jump goes back, or too far, or to a label without a place.
    #[must_use]
    pub fn finish(mut self) -> Option<Vec<Instruction>> {
        for (at, Label(label)) in self.jumps {
            let target = (*self.labels.get(label)?)?;
            let distance = target.checked_sub(at + 1)?;
            self.code.get_mut(at)?.offset = i16::try_from(distance).ok()?;
        }
        Some(self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::Register::{R1, R2, R10};
    use super::*;

    /// The instructions as bytes, as `llvm-objdump` prints them.
    fn bytes(code: &[Instruction]) -> Vec<[u8; 8]> {
        let one = |at: &Instruction| {
            let Instruction { code, registers, offset, immediate } = *at;
            let ([a, b], [c, d, e, f]) = (offset.to_le_bytes(), immediate.to_le_bytes());
            [code, registers, a, b, c, d, e, f]
        };
        code.iter().map(one).collect()
    }

    #[test]
    fn instructions_are_those_of_the_standard() {
        let mut code = Assembler::new();
        let end = code.label();
        code.set(R1, -1);
        code.operate(Operation::Add, R1, R2);
        code.set_wide(R2, 0x1122_3344_5566_7788);
        code.load(Size::Half, R2, R10, -6);
        code.store(Size::Double, R10, -8, R1);
        code.from_network(Size::Word, R2);
        code.jump_if(Test::Greater, R1, R2, end);
        code.jump(end);
        code.call(Helper::LoadBytes);
        code.place(end);
        code.exit();
        let expected = [
            [0xb7, 0x01, 0, 0, 0xff, 0xff, 0xff, 0xff],
            [0x0f, 0x21, 0, 0, 0, 0, 0, 0],
            [0x18, 0x02, 0, 0, 0x88, 0x77, 0x66, 0x55],
            [0x00, 0x00, 0, 0, 0x44, 0x33, 0x22, 0x11],
            [0x69, 0xa2, 0xfa, 0xff, 0, 0, 0, 0],
            [0x7b, 0x1a, 0xf8, 0xff, 0, 0, 0, 0],
            [0xdc, 0x02, 0, 0, 32, 0, 0, 0],
            [0x2d, 0x21, 2, 0, 0, 0, 0, 0],
            [0x05, 0x00, 1, 0, 0, 0, 0, 0],
            [0x85, 0x00, 0, 0, 26, 0, 0, 0],
            [0x95, 0x00, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(bytes(&code.finish().unwrap()), expected);
    }

    #[test]
    fn jumps_go_forward_to_a_place() {
        let mut code = Assembler::new();
        let label = code.label();
        code.jump(label);
        assert_eq!(code.clone().finish(), None);
        let back = code.label();
        code.place(label);
        code.place(back);
        assert!(code.clone().finish().is_some());
        code.exit();
        code.jump(back);
        assert_eq!(code.clone().finish(), None);
        let mut far = Assembler::new();
        let end = far.label();
        far.jump(end);
        (0..1 << 15).for_each(|_| far.exit());
        far.place(end);
        assert_eq!(far.finish(), None);
    }
}
