//! Programs that look at packets of sockets.

use super::call;
use crate::bpf::Instruction;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A loaded program for packets of sockets (`BPF_PROG_TYPE_SOCKET_FILTER`). It ends with this
/// value, unless a socket uses it.
#[derive(Debug)]
pub struct Filter(OwnedFd);

impl Filter {
    /// Loads a program.
    ///
    /// # Errors
    /// When it is not permitted, or the kernel refuses the program: then the error holds the
    /// reasons.
    pub fn load(program: &[Instruction]) -> io::Result<Self> {
        call::load(call::SOCKET_FILTER, program).map(Self)
    }

    /// The result of the program for an Ethernet frame, as the kernel runs it
    /// (`BPF_PROG_TEST_RUN`).
    ///
    /// # Errors
    /// When it is not permitted, or the frame is too short or too long for the kernel.
    pub fn run(&self, frame: &[u8]) -> io::Result<u32> {
        call::run(&self.0, frame)
    }
}

impl AsFd for Filter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
