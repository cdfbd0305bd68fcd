//! All unsafe parts of generated code: the data that it reads and writes, the functions that it
//! calls, and its memory.
//!
//! **Why generated code stays in bounds.** It gets one pointer, to a [`Frame`]. From there it
//! reaches
//! - the packet's bytes, at offsets of headers that are present. These lie in the first
//!   `Layout::captured` bytes. [`Runner::load_packet`] and every host call that could change the
//!   packet check that the packet has this many bytes and the headers for which the code was
//!   generated;
//! - the layout, at its [`parts`](braid_packet::layout::parts), and the packet's own fields;
//! - the counts of the program's counter lists, and its inputs. [`EntryPoint::counts`] checks that
//!   there are enough of both. Both are borrowed as long as the runner lives;
//! - outcomes ([`OutcomeMemory`]), entries of indexes and columns of lists. They live as long as
//!   the code. The code reads outcomes at address groups below their number, and columns at members
//!   below the length of the list. Both limits are fixed when the code is made. Nothing else refers
//!   to outcomes, and a `Code` runs on one thread at a time;
//! - slots of entries. The code reads only as many as it told `find` and `read` to check for, and
//!   only until the next host call;
//! - its own stack.
//!
//! The packet's bytes lie in a frame of a pool, perhaps in memory that a device shares. A packet
//! owns its frame's bytes alone: neither the device nor another packet uses them until the frame is
//! back in its pool, and the bytes do not move while the packet is borrowed. The layout is borrowed
//! for the whole run. The counts are cells. Generated code touches them only between host calls, so
//! two exclusive references to one object are never in use at the same time.

mod calls;
mod frame;
mod outcomes;

pub(crate) use frame::{Calls, Fields, Frame, HOLD, SLOTS, WHOLE, Wide, code, missing};
pub(crate) use outcomes::OutcomeMemory;

use crate::abi::{Count, Ended, GuardFailure, Host};
use braid_ir::model::Word;
use braid_ir::residual::HeaderMask;
use braid_packet::{Layout, Packet};
use calls::Table;
use cranelift_jit::JITModule;
use cranelift_module::FuncId;
use frame::{fault, low};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::null_mut;

/// The machine code of a program in memory.
pub(crate) struct CodeMemory {
    /// `None` only while the memory is freed.
    module: Option<JITModule>,
    run: *const u8,
    /// The whole program, for packets that fall back from the main path.
    whole: *const u8,
    prefetch: Option<*const u8>,
}

// SAFETY: The pointers lead to code. Nothing writes to the code once it is made, and it lives as
// long as the module. Only `drop` touches the module itself.
unsafe impl Send for CodeMemory {}

impl fmt::Debug for CodeMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeMemory").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: Nobody runs the code, because that borrows `self`, and the addresses of the
            // code do not leave this module.
            unsafe { module.free_memory() };
        }
    }
}

impl CodeMemory {
    /// Takes over a module with its finished functions. The whole program and its main path, if
    /// there is one, are of type `extern "C" fn(*mut Frame) -> u64`. The function that prefetches
    /// is of type `extern "C" fn(*mut Frame)`.
    pub(crate) fn new(
        module: JITModule,
        whole: FuncId,
        main_path: Option<FuncId>,
        prefetch: Option<FuncId>,
    ) -> Self {
        let start = |id| module.get_finalized_function(id);
        let (run, whole) = (start(main_path.unwrap_or(whole)), start(whole));
        let prefetch = prefetch.map(start);
        CodeMemory { run, whole, prefetch, module: Some(module) }
    }

    /// Whether there is a function that prefetches.
    pub(crate) fn prefetches(&self) -> bool {
        self.prefetch.is_some()
    }
}

/// A program, its counts and its host, for runs on one packet after the other.
pub(crate) struct Runner<'a, H> {
    memory: &'a CodeMemory,
    shape: HeaderMask,
    host: &'a mut H,
    frame: Frame,
    inputs: &'a [Word],
    counts: PhantomData<&'a [Cell<Count>]>,
}

/// A program's code, the header shape of its packets, and the numbers of its counter lists and of
/// its inputs.
#[derive(Clone, Copy)]
pub(crate) struct EntryPoint<'a> {
    pub(crate) memory: &'a CodeMemory,
    pub(crate) shape: HeaderMask,
    pub(crate) counters: usize,
    pub(crate) inputs: usize,
}

impl EntryPoint<'_> {
    /// The address of the counts. An error if there are fewer counts than counter lists, or fewer
    /// inputs than the program reads.
    #[inline(always)]
    fn counts(&self, counts: &[Cell<Count>], inputs: &[Word]) -> Result<*mut Count, GuardFailure> {
        if counts.len() < self.counters {
            return Err(GuardFailure::Counts);
        }
        if inputs.len() < self.inputs {
            return Err(GuardFailure::Inputs);
        }
        // A `Cell` has the same memory layout as its content.
        Ok(counts.as_ptr().cast_mut().cast())
    }
}

impl<'a, H: Host> Runner<'a, H> {
    /// Prepares runs of a program on packets of its shape. `counts` has a count for each counter
    /// list, and `inputs` a word for each input.
    #[inline(always)]
    pub(crate) fn new(
        entry_point: EntryPoint<'a>,
        host: &'a mut H,
        counts: &'a [Cell<Count>],
        inputs: &'a [Word],
    ) -> Result<Self, GuardFailure> {
        let counts = entry_point.counts(counts, inputs)?;
        let EntryPoint { memory, shape, .. } = entry_point;
        let frame = Frame {
            data: null_mut(),
            captured: 0,
            layout: null_mut(),
            counts,
            calls: &Table::<H>::CALLS,
            packet: null_mut(),
            now: 0,
            inputs: inputs.as_ptr(),
            delay: 0,
            host: null_mut(),
            shape,
        };
        Ok(Runner { memory, shape, host, frame, inputs, counts: PhantomData })
    }

    /// Switches to another program.
    #[inline(always)]
    pub(crate) fn switch_to(
        &mut self,
        entry_point: EntryPoint<'a>,
        counts: &'a [Cell<Count>],
    ) -> Result<(), GuardFailure> {
        self.frame.counts = entry_point.counts(counts, self.inputs)?;
        (self.memory, self.shape) = (entry_point.memory, entry_point.shape);
        Ok(())
    }

    /// The host.
    #[inline(always)]
    pub(crate) fn host(&mut self) -> &mut H {
        self.host
    }

    /// Runs the program on one packet.
    #[inline(always)]
    pub(crate) fn run(
        &mut self,
        packet: &mut Packet,
        layout: &mut Layout,
        now: u64,
    ) -> Result<Ended, GuardFailure> {
        self.load_packet(packet, layout, now)?;
        // SAFETY: The code was generated for this signature (`CodeMemory::new`) and lives as long
        // as `memory`. The frame leads to this packet, its layout and the host, which are all
        // borrowed until the code has run, and to the counts, which are cells of this thread.
        let result = unsafe {
            let run: unsafe extern "C" fn(*mut Frame) -> u64 = std::mem::transmute(self.memory.run);
            run(&raw mut self.frame)
        };
        // Only a block number: the program reached the block's end.
        match u32::try_from(result) {
            Ok(block) => Ok(Ended::End(block)),
            Err(_) => Ok(decode_result(self.memory, &mut self.frame, result)),
        }
    }

    /// Runs the function that prefetches for a packet, if there is one.
    #[inline(always)]
    pub(crate) fn prefetch(
        &mut self,
        packet: &mut Packet,
        layout: &mut Layout,
        now: u64,
    ) -> Result<(), GuardFailure> {
        let Some(start) = self.memory.prefetch else { return Ok(()) };
        self.load_packet(packet, layout, now)?;
        // SAFETY: As in `run`. This code counts nothing.
        unsafe {
            let prefetch: unsafe extern "C" fn(*mut Frame) = std::mem::transmute(start);
            prefetch(&raw mut self.frame);
        }
        Ok(())
    }

    /// Points the frame to a packet. An error if the packet does not have the program's shape, or
    /// has fewer bytes than its layout says.
    #[inline(always)]
    fn load_packet(
        &mut self,
        packet: &mut Packet,
        layout: &mut Layout,
        now: u64,
    ) -> Result<(), GuardFailure> {
        if !self.shape.fits(layout.presence()) {
            return Err(GuardFailure::Shape);
        }
        if layout.captured() > packet.data().len() {
            return Err(GuardFailure::Layout);
        }
        let frame = &mut self.frame;
        frame.data = packet.data_mut().as_mut_ptr();
        frame.captured = packet.data().len() as u64;
        frame.layout = layout;
        frame.packet = packet;
        frame.now = now;
        frame.host = std::ptr::from_mut(&mut *self.host).cast();
        // The last run may have changed the shape in the frame.
        frame.shape = self.shape;
        Ok(())
    }
}

/// Decodes the result of a run that is not simply the end of a block. Runs the whole program if the
/// main path has given up.
#[cold]
fn decode_result(memory: &CodeMemory, frame: &mut Frame, mut result: u64) -> Ended {
    if result == WHOLE {
        // SAFETY: As in `Runner::run`. The frame is unchanged, because the main path has changed
        // nothing.
        result = unsafe {
            let whole: unsafe extern "C" fn(*mut Frame) -> u64 = std::mem::transmute(memory.whole);
            whole(std::ptr::from_mut(frame))
        };
    }
    if let Ok(block) = u32::try_from(result) {
        return Ended::End(block);
    }
    let (block, step) = (low(result), low(result >> 32 & 0xff_ffff));
    match result >> 56 {
        HOLD => Ended::Hold { block, delay: frame.delay },
        code => Ended::Fault { block, step, fault: fault(code) },
    }
}
