//! The data that generated code exchanges with the functions that it calls: the frame, arguments
//! and results.

use crate::abi::Count;
use braid_ir::engine::Fault;
use braid_ir::residual::HeaderMask;
use braid_packet::{Layout, Packet};
use std::ffi::c_void;

/// The data on which generated code works. The code gets its address as its only argument.
#[repr(C)]
pub(crate) struct Frame {
    /// The packet's bytes.
    pub(crate) data: *mut u8,
    /// The number of the packet's bytes.
    pub(crate) captured: u64,
    /// The places of the packet's headers.
    pub(crate) layout: *mut Layout,
    /// The count of each counter list.
    pub(crate) counts: *mut Count,
    /// The host's functions.
    pub(crate) calls: *const Calls,
    /// The packet itself.
    pub(crate) packet: *mut Packet,
    /// The time (ns).
    pub(crate) now: u64,
    /// The words that the program reads as inputs.
    pub(crate) inputs: *const u128,
    /// How long the packet will wait in a queue (ns), if the program ends with a `Hold`.
    pub(crate) delay: u64,
    pub(super) host: *mut c_void,
    pub(super) shape: HeaderMask,
}

/// Two words, which a function returns in registers.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// The result of a lookup of an entry.
#[repr(C)]
pub(crate) struct Found {
    pub(super) entry: u64,
    pub(super) slots: *const u64,
}

pub(super) type Step = unsafe extern "C" fn(*mut Frame, u32, u32, *mut u128, u64, u64) -> u64;

/// The table of functions that generated code calls, for one type of host. Each comment lists the
/// arguments and, after the semicolon, the result.
#[repr(C)]
pub(crate) struct Calls {
    /// `Host::step`: frame, block, step, address of the arguments (the results follow them), number
    /// of arguments, number of results; 0 or the [`code`] of a fault.
    pub(crate) step: Step,
    /// As `step`, for steps after which the packet may have other headers.
    pub(crate) reshape: Step,
    /// `Host::find`: frame, number, key, words of the key, words of slots that will be read; the
    /// entry.
    pub(crate) find: unsafe extern "C" fn(*mut Frame, u32, *const u64, u64, u64) -> Found,
    /// `Host::find_words`: frame, number, key of one word, words of slots that will be read; the
    /// entry.
    pub(crate) find_1: unsafe extern "C" fn(*mut Frame, u32, u64, u64) -> Found,
    /// As `find_1`, for a key of two words.
    pub(crate) find_2: unsafe extern "C" fn(*mut Frame, u32, u64, u64, u64) -> Found,
    /// As `find_1`, for the address of a key of five words.
    pub(crate) find_5: unsafe extern "C" fn(*mut Frame, u32, *const u64, u64) -> Found,
    /// `Host::read`: frame, number, entry, words of slots that will be read; the address of the
    /// slots.
    pub(crate) read: unsafe extern "C" fn(*mut Frame, u32, u64, u64) -> *const u64,
    /// `Host::set`: frame, number, key followed by the slots, words of the key, words of the slots;
    /// 0 or 1.
    pub(crate) set: unsafe extern "C" fn(*mut Frame, u32, *const u64, u64, u64) -> u64,
    /// As `set`, for a key of one word: frame, number, key, slots, words of the slots; 0 or 1.
    pub(crate) set_1: unsafe extern "C" fn(*mut Frame, u32, u64, *const u64, u64) -> u64,
    /// As `set_1`, for an entry that probably does not exist.
    pub(crate) set_new_1: unsafe extern "C" fn(*mut Frame, u32, u64, *const u64, u64) -> u64,
    /// `Host::put`: frame, number, key followed by the two halves of the value, words of the key,
    /// slot; 0 or 1, or twice the [`code`] of a fault.
    pub(crate) put: unsafe extern "C" fn(*mut Frame, u32, *const u64, u64, u32) -> u64,
    /// `Host::classify`: frame, number, fields; the rule, plus 2^32 if the packet passes.
    pub(crate) classify: unsafe extern "C" fn(*mut Frame, u32, *const Fields) -> u64,
    /// `Host::classify4`: frame, number, the three words, whether to count the rule; as `classify`.
    pub(crate) classify4: unsafe extern "C" fn(*mut Frame, u32, u64, u64, u64, u64) -> u64,
    /// `Host::count_rule`: frame, number, rule.
    pub(crate) count_rule: unsafe extern "C" fn(*mut Frame, u32, u64),
    /// `Host::route`: frame, number, low and high half of the address, whether it is IPv6; the next
    /// hop plus 2^32, or 0 if there is none.
    pub(crate) route: unsafe extern "C" fn(*mut Frame, u32, u64, u64, u64) -> u64,
    /// `Host::address_group`: frame, number, low and high half of the address; the group.
    pub(crate) address_group: unsafe extern "C" fn(*mut Frame, u32, u64, u64) -> u64,
    /// `Host::member`: frame, number, index, column; the low half of the value, and 1 if the member
    /// exists.
    pub(crate) member: unsafe extern "C" fn(*mut Frame, u32, u64, u32) -> Pair,
    /// `Host::take`: frame, number; the low half of the member, and 1 if one was free.
    pub(crate) take: unsafe extern "C" fn(*mut Frame, u32) -> Pair,
    /// `Host::has_room`: frame, number; 0 or 1.
    pub(crate) has_room: unsafe extern "C" fn(*mut Frame, u32) -> u64,
    /// `Host::prefetch_classify`: frame, number, the three words.
    pub(crate) prefetch_classify: unsafe extern "C" fn(*mut Frame, u32, u64, u64, u64),
    /// `Host::announce`: frame, number, key, words of the key.
    pub(crate) announce: unsafe extern "C" fn(*mut Frame, u32, *const u64, u64),
    /// As `announce`, for a key of one word.
    pub(crate) announce_1: unsafe extern "C" fn(*mut Frame, u32, u64),
    /// `Host::prefetch`: frame, number, key, words of the key.
    pub(crate) prefetch: unsafe extern "C" fn(*mut Frame, u32, *const u64, u64),
    /// An operation on 128 bits for which the machine has no instruction (see [`Wide`]): the
    /// operation, and the halves of both operands; the halves of the result.
    pub(crate) wide: unsafe extern "C" fn(u32, u64, u64, u64, u64) -> Pair,
}

/// The fields of a packet for a rule set, as generated code passes them.
#[repr(C)]
pub(crate) struct Fields {
    pub(crate) src: [u64; 2],
    pub(crate) dst: [u64; 2],
    /// The IP version: 4 or 6.
    pub(crate) version: u64,
    pub(crate) proto: u64,
    /// The two ports and a set bit above them, or 0.
    pub(crate) ports: u64,
    /// The TCP flags and a set bit above them, or 0.
    pub(crate) tcp_flags: u64,
    /// The ICMP type and code and a set bit above them, or 0.
    pub(crate) icmp: u64,
}

/// Operations on 128 bits that are function calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wide {
    MulSat,
    /// The divisor is not 0.
    Div,
    /// The divisor is not 0.
    Rem,
}

/// The largest number of words of slots that code reads without a universal host call.
pub(crate) const SLOTS: usize = 64;

/// The words that code reads if a host returns too few slots.
pub(super) static ZEROS: [u64; SLOTS] = [0; SLOTS];
/// The slots of an entry that was not found.
pub(super) static MISSING: [u64; SLOTS] = [0; SLOTS];

/// The address of the slots of an entry that was not found.
pub(crate) fn missing() -> u64 {
    MISSING.as_ptr() as u64
}

/// The marker of a `Hold` in the result of generated code. A result has the block in the low 32
/// bits and the step in the next 24. Above them, it has 0 at the end of a block, [`HOLD`] if the
/// packet waits, or the [`code`] of a fault.
pub(crate) const HOLD: u64 = 1;

/// The result of a main path that has given up without any effect, so that the whole program must
/// run.
pub(crate) const WHOLE: u64 = u64::MAX;

/// The code of a fault in the results of generated code and of `step`.
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

pub(super) fn fault(code: u64) -> Fault {
    match code {
        2 => Fault::Index,
        3 => Fault::Division,
        4 => Fault::NoEntry,
        5 => Fault::Resubmit,
        7 => Fault::Native,
        _ => Fault::Truncated,
    }
}

pub(super) fn low(word: u64) -> u32 {
    (word & 0xffff_ffff) as u32
}
