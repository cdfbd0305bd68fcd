//! The fence: everything unsafe about running generated code. What the code reads and writes, the
//! functions that it calls, its memory.
//!
//! **Why generated code stays in bounds.** It gets one pointer, to a [`Frame`], and goes from there to
//! - the packet's bytes: at offsets of headers that are present, which lie in the first
//!   `Layout::captured` bytes; [`Runner::aim`] and every host call that could change the packet check that there
//!   are so many, and that the headers are those that the code was generated for;
//! - the layout: its own parts ([`parts`](braid_packet::layout::parts)); the packet: fields of its own;
//! - the counts: those of the program's tallies, of which [`Entrance::counts`] checks that there are enough;
//! - records ([`Records`]), entries of indexes and columns of lists, which live as long as the code: at
//!   classes below their number and at members below the length of the list, all of them known when the code is made;
//!   nothing else refers to records, and a `Code` runs on one thread at a time;
//! - slots of entries: as many as `find` and `read` were told to check for, and only until the
//!   next host call;
//! - its own stack.
//!
//! The bytes are those of a vector on the heap, the layout is borrowed for the whole run, the counts are cells, and both are
//! touched by generated code only between host calls, so that no two exclusive references to the
//! same thing are in use at once.

mod calls;
mod records;

pub(crate) use records::Records;

use crate::abi::{Count, Ended, Host, Misfit};
use braid_ir::engine::Fault;
use braid_ir::residual::HeaderMask;
use braid_packet::{Layout, Packet};
use calls::Table;
use cranelift_jit::JITModule;
use cranelift_module::FuncId;
use std::cell::Cell;
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::null_mut;

/// What generated code works on.
#[repr(C)]
pub(crate) struct Frame {
    /// The packet's bytes.
    pub(crate) data: *mut u8,
    /// How many.
    pub(crate) captured: u64,
    /// Where its headers are.
    pub(crate) layout: *mut Layout,
    /// A count for each tally.
    pub(crate) counts: *mut Count,
    /// The host's functions.
    pub(crate) calls: *const Calls,
    /// The packet itself.
    pub(crate) packet: *mut Packet,
    /// The time.
    pub(crate) now: u64,
    /// How long the packet is to wait in a queue.
    pub(crate) delay: u64,
    host: *mut c_void,
    shape: HeaderMask,
}

/// Two words, which come back in registers.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Two {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// An entry that was looked up.
#[repr(C)]
pub(crate) struct Found {
    entry: u64,
    slots: *const u64,
}

type Step = unsafe extern "C" fn(*mut Frame, u32, u32, *mut u128, u64, u64) -> u64;

/// The functions that generated code calls, for one kind of host.
#[repr(C)]
pub(crate) struct Calls {
    /// `Host::step`: frame, block, step, arguments (results go behind them), numbers of both;
    /// 0 or a fault as [`code`] has it.
    pub(crate) step: Step,
    /// The same, for steps behind which the packet may have other headers.
    pub(crate) reshape: Step,
    /// `Host::find`: frame, number, key, its words, words of slots that will be read.
    pub(crate) find: unsafe extern "C" fn(*mut Frame, u32, *const u64, u64, u64) -> Found,
    /// `Host::find_words`: frame, number, a key of one word, words of slots that will be read.
    pub(crate) find_1: unsafe extern "C" fn(*mut Frame, u32, u64, u64) -> Found,
    /// The same for a key of two words.
    pub(crate) find_2: unsafe extern "C" fn(*mut Frame, u32, u64, u64, u64) -> Found,
    /// The same for a key of five words, which lie on the stack.
    pub(crate) find_5: unsafe extern "C" fn(*mut Frame, u32, *const u64, u64) -> Found,
    /// `Host::read`: frame, number, entry, words that will be read.
    pub(crate) read: unsafe extern "C" fn(*mut Frame, u32, u64, u64) -> *const u64,
    /// `Host::set`: frame, number, key with the slots behind it, words of both; 0 or 1.
    pub(crate) set: unsafe extern "C" fn(*mut Frame, u32, *const u64, u64, u64) -> u64,
    /// `Host::put`: frame, number, key with the two halves of the value behind it, words of the key, slot;
    /// 0 or 1, or twice the [`code`] of a fault.
    pub(crate) put: unsafe extern "C" fn(*mut Frame, u32, *const u64, u64, u32) -> u64,
    /// `Host::classify`: frame, number, fields; the rule, and 2^32 more if the packet passes.
    pub(crate) classify: unsafe extern "C" fn(*mut Frame, u32, *const Fields) -> u64,
    /// `Host::classify4`: frame, number, the three words, whether to count; as `classify`.
    pub(crate) classify4: unsafe extern "C" fn(*mut Frame, u32, u64, u64, u64, u64) -> u64,
    /// `Host::count_rule`: frame, number, rule.
    pub(crate) count_rule: unsafe extern "C" fn(*mut Frame, u32, u64),
    /// `Host::route`: frame, number, low and high half of the address, whether it is wide; the hop, and
    /// 2^32 more if there is one.
    pub(crate) route: unsafe extern "C" fn(*mut Frame, u32, u64, u64, u64) -> u64,
    /// `Host::class`: frame, number, low and high half of the address.
    pub(crate) class: unsafe extern "C" fn(*mut Frame, u32, u64, u64) -> u64,
    /// `Host::member`: frame, number, index, column; the low half of the value, and 1 if there is one.
    pub(crate) member: unsafe extern "C" fn(*mut Frame, u32, u64, u32) -> Two,
    /// `Host::has_room`: frame, number; 0 or 1.
    pub(crate) has_room: unsafe extern "C" fn(*mut Frame, u32) -> u64,
    /// `Host::ask`: frame, number, the three words.
    pub(crate) ask: unsafe extern "C" fn(*mut Frame, u32, u64, u64, u64),
    /// `Host::prefetch`: frame, number, key, its words.
    pub(crate) prefetch: unsafe extern "C" fn(*mut Frame, u32, *const u64, u64),
    /// An operation on 128 bits that the machine has not (see [`Wide`]).
    pub(crate) wide: unsafe extern "C" fn(u32, u64, u64, u64, u64) -> Two,
}

/// What rules look at, as generated code hands it over.
#[repr(C)]
pub(crate) struct Fields {
    pub(crate) src: [u64; 2],
    pub(crate) dst: [u64; 2],
    /// 4 or 6.
    pub(crate) version: u64,
    pub(crate) proto: u64,
    /// Two ports and the bit above them, or 0.
    pub(crate) ports: u64,
    /// TCP flags and the bit above them, or 0.
    pub(crate) tcp_flags: u64,
    /// ICMP type, code and the bit above them, or 0.
    pub(crate) icmp: u64,
}

/// Operations on 128 bits that are functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wide {
    MulSat,
    /// By anything but 0.
    Div,
    /// By anything but 0.
    Rem,
}

/// Most words of slots that can be read without a `step`.
pub(crate) const SLOTS: usize = 64;

/// What is read where a host has fewer slots than it should.
static ZEROS: [u64; SLOTS] = [0; SLOTS];
/// Where the slots of an entry that was not found are.
static MISSING: [u64; SLOTS] = [0; SLOTS];

/// The address of the slots of an entry that was not found.
pub(crate) fn missing() -> u64 {
    MISSING.as_ptr() as u64
}

/// In the result of generated code, above the block in 32 bits and the step in 24: at the end of a
/// block 0, if the packet waits this, after a fault its [`code`].
pub(crate) const HOLD: u64 = 1;

/// The result of generated code that has done nothing yet and leaves it to the whole program.
pub(crate) const WHOLE: u64 = u64::MAX;

/// A fault in the result of generated code, and of `step`.
pub(crate) fn code(fault: Fault) -> u64 {
    match fault {
        Fault::Index => 2,
        Fault::Division => 3,
        Fault::NoEntry => 4,
        Fault::Resubmit => 5,
        Fault::Truncated => 6,
        Fault::Native => 7,
    }
}

fn fault(code: u64) -> Fault {
    match code {
        2 => Fault::Index,
        3 => Fault::Division,
        4 => Fault::NoEntry,
        5 => Fault::Resubmit,
        7 => Fault::Native,
        _ => Fault::Truncated,
    }
}

/// Generated code in memory.
pub(crate) struct Memory {
    /// Only taken out to be freed.
    module: Option<JITModule>,
    run: *const u8,
    /// What runs where that leaves it to the whole program.
    whole: *const u8,
    prefetch: Option<*const u8>,
}

// SAFETY: The pointers lead to code, which nothing writes to after it was made, and which lives as
// long as the module does; the module itself is only touched by `drop`.
unsafe impl Send for Memory {}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: Nobody runs the code, since that borrows `self`, and its addresses do not
            // leave this module.
            unsafe { module.free_memory() };
        }
    }
}

impl Memory {
    /// Takes over a module with its finished functions: `extern "C" fn(*mut Frame) -> u64` for the whole
    /// program and, if there is one, its main way; `extern "C" fn(*mut Frame)` to prefetch.
    pub(crate) fn new(
        module: JITModule,
        whole: FuncId,
        main_way: Option<FuncId>,
        prefetch: Option<FuncId>,
    ) -> Self {
        let start = |id| module.get_finalized_function(id);
        let (run, whole) = (start(main_way.unwrap_or(whole)), start(whole));
        let prefetch = prefetch.map(start);
        Memory { run, whole, prefetch, module: Some(module) }
    }

    /// Whether there is code that prefetches.
    pub(crate) fn prefetches(&self) -> bool {
        self.prefetch.is_some()
    }
}

/// A program, its counts and its host, for packet after packet.
pub(crate) struct Runner<'a, H> {
    memory: &'a Memory,
    shape: HeaderMask,
    host: &'a mut H,
    frame: Frame,
    counts: PhantomData<&'a [Cell<Count>]>,
}

/// A program's code, the shape of the packets that it is for, and its number of tallies.
#[derive(Clone, Copy)]
pub(crate) struct Entrance<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) shape: HeaderMask,
    pub(crate) tallies: usize,
}

impl Entrance<'_> {
    /// Where its counts are, if there are enough.
    #[inline(always)]
    fn counts(&self, counts: &[Cell<Count>]) -> Result<*mut Count, Misfit> {
        if counts.len() < self.tallies {
            return Err(Misfit::Counts);
        }
        // A cell lies in memory as what is in it.
        Ok(counts.as_ptr().cast_mut().cast())
    }
}

impl<'a, H: Host> Runner<'a, H> {
    /// For packets of the program's shape, with a count for each of its tallies.
    #[inline(always)]
    pub(crate) fn new(
        entrance: Entrance<'a>,
        host: &'a mut H,
        counts: &'a [Cell<Count>],
    ) -> Result<Self, Misfit> {
        let counts = entrance.counts(counts)?;
        let Entrance { memory, shape, .. } = entrance;
        let frame = Frame {
            data: null_mut(),
            captured: 0,
            layout: null_mut(),
            counts,
            calls: &Table::<H>::CALLS,
            packet: null_mut(),
            now: 0,
            delay: 0,
            host: null_mut(),
            shape,
        };
        Ok(Runner { memory, shape, host, frame, counts: PhantomData })
    }

    /// From now on another program runs.
    #[inline(always)]
    pub(crate) fn turn_to(
        &mut self,
        entrance: Entrance<'a>,
        counts: &'a [Cell<Count>],
    ) -> Result<(), Misfit> {
        self.frame.counts = entrance.counts(counts)?;
        (self.memory, self.shape) = (entrance.memory, entrance.shape);
        Ok(())
    }

    /// The host.
    #[inline(always)]
    pub(crate) fn host(&mut self) -> &mut H {
        self.host
    }

    /// Runs on one packet.
    #[inline(always)]
    pub(crate) fn run(
        &mut self,
        packet: &mut Packet,
        layout: &mut Layout,
        now: u64,
    ) -> Result<Ended, Misfit> {
        self.aim(packet, layout, now)?;
        // SAFETY: The code was generated for this signature (`Memory::new`), and lives as long as `memory`.
        // The frame leads to this packet, its layout and the host, all of which are borrowed until the code
        // has run, and to the counts, which are cells of this thread.
        let result = unsafe {
            let run: unsafe extern "C" fn(*mut Frame) -> u64 = std::mem::transmute(self.memory.run);
            run(&raw mut self.frame)
        };
        // Nothing but a block: its end was reached.
        match u32::try_from(result) {
            Ok(block) => Ok(Ended::End(block)),
            Err(_) => Ok(other(self.memory, &mut self.frame, result)),
        }
    }

    /// Runs the code that prefetches for a packet, if there is any.
    pub(crate) fn prefetch(
        &mut self,
        packet: &mut Packet,
        layout: &mut Layout,
        now: u64,
    ) -> Result<(), Misfit> {
        let Some(start) = self.memory.prefetch else { return Ok(()) };
        self.aim(packet, layout, now)?;
        // SAFETY: As in `run`. This code counts nothing.
        unsafe {
            let prefetch: unsafe extern "C" fn(*mut Frame) = std::mem::transmute(start);
            prefetch(&raw mut self.frame);
        }
        Ok(())
    }

    /// Leads the frame to a packet, if it is of the shape and its layout lies in its bytes.
    #[inline(always)]
    fn aim(&mut self, packet: &mut Packet, layout: &mut Layout, now: u64) -> Result<(), Misfit> {
        if !self.shape.fits(layout.presence()) {
            return Err(Misfit::Shape);
        }
        if layout.captured() > packet.data().len() {
            return Err(Misfit::Layout);
        }
        let frame = &mut self.frame;
        frame.data = packet.data_mut().as_mut_ptr();
        frame.captured = packet.data().len() as u64;
        frame.layout = layout;
        frame.packet = packet;
        frame.now = now;
        frame.host = std::ptr::from_mut(&mut *self.host).cast();
        // The last packet may have changed it.
        frame.shape = self.shape;
        Ok(())
    }
}

/// How a run ended that did not just come to the end of a block.
#[cold]
fn other(memory: &Memory, frame: &mut Frame, mut result: u64) -> Ended {
    if result == WHOLE {
        // SAFETY: As in `Runner::run`, with the frame as it was then: nothing was done.
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

fn low(word: u64) -> u32 {
    (word & 0xffff_ffff) as u32
}
