//! The contract between machine code and its host.
//!
//! **Running.** [`Code::run`](crate::Code::run) gets the packet with its layout, the time, a
//! [`Count`] for each counter list, and the host. It checks that the packet's headers have the
//! program's shape, runs the program from block 0, and returns the block whose end the program
//! reached. The engine then carries out that end. The code has already counted the packet at the
//! counters of steps, of faults and of the end. A `Hold` whose queue is full is not an end: the
//! code continues in `full`.
//!
//! **Host calls.** Arithmetic, loads, writes with their checksums, `Has`, counters and branches are
//! machine code. The host does everything else. [`Host::step`] is the universal call. It names the
//! step, passes the values that the step uses (in the order of [`What::uses`]) and takes the values
//! that the step defines (in the order of [`What::outs`]). Hot steps have their own calls. These
//! name a resource (a table, a rule set, …) by a number that the engine chose when it compiled the
//! program. Steps on a resource without a number go through `step`.
//!
//! **Runs.** When a run begins, no function has found or assigned an entry yet. So `What::Enter`
//! needs a host call only if the run may have entered the function before.
//!
//! **Inputs.** A program for an event without a packet of its own reads words that the engine gives
//! to the runner ([`Code::runner_with_inputs`](crate::Code::runner_with_inputs)): `Op::LoadEvent`
//! reads the word with its number.
//!
//! **Values** are the low bits of a `u128`. A value from the host, or from an input, must fit its
//! type.
//!
//! **Headers.** Up to the first `PushVlan`, `PopVlan` or `Parse` on its path, code relies on the
//! packet's headers being the same and at the same places as on entry. If a host changes them
//! earlier, the program ends with the fault `truncated`. After that step, the host does all loads
//! and writes.

use braid_ir::engine::Fault;
use braid_ir::model::{Op, ParamId, QueueId, StateId, Word};
use braid_ir::residual::What;
use braid_ir::rules::{RulePacket, RuleWords};
use braid_packet::{Layout, Packet};
use std::sync::Arc;

use crate::index::Index;

/// A resource of a function that host calls use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Resource {
    /// A state table: [`Host::find`], [`Host::read`], [`Host::set`], [`Host::put`],
    /// [`Host::prefetch`].
    Table(StateId),
    /// A rule set: [`Host::classify`], [`Host::classify4`], [`Host::count_rule`].
    Rules(ParamId),
    /// Routes: [`Host::route`].
    Routes(ParamId),
    /// A list or backends: [`Host::member`].
    List(ParamId),
    /// A pool: [`Host::take`].
    Pool(ParamId),
    /// A queue: [`Host::has_room`].
    Queue(QueueId),
}

/// Answers the compiler's questions about the resources of a program's functions.
pub trait Resources {
    /// The number that the engine chooses for a resource. Steps on a resource without a number go
    /// through [`Host::step`].
    fn number(&mut self, node: u16, resource: Resource) -> Option<u32>;

    /// The address groups of route tables for IPv4, or for IPv6 if `wide`. The tables are named by
    /// function and parameter. All addresses of a group have the same next hop in each of these
    /// tables. This must hold as long as the code lives. `None` if the engine has no groups. The
    /// code then searches each table separately.
    fn address_groups(&mut self, tables: &[(u16, ParamId)], wide: bool) -> Option<AddressGroups>;

    /// The members of a list, each with a value for each column. `None` if the list may change
    /// while the code lives.
    fn list(&self, node: u16, param: ParamId) -> Option<&[Vec<Word>]>;

    /// Whether code announces to the host ([`Host::prefetch_classify`]) the packets that a rule set
    /// will probably classify. By default it does not.
    fn prefetches_rules(&mut self, node: u16, param: ParamId) -> bool {
        let _ = (node, param);
        false
    }
}

/// Address groups of route tables.
#[derive(Clone, Debug)]
pub struct AddressGroups {
    /// The number of groups. Groups are numbered from 0.
    pub count: u32,
    /// How code finds the group of an address.
    pub search: Search,
}

/// How code finds the group of an address.
#[derive(Clone, Debug)]
pub enum Search {
    /// Machine code searches an index, for IPv4.
    Index(Arc<Index>),
    /// The code calls [`Host::address_group`] with this number.
    Host(u32),
}

/// The engine, as machine code sees it. `number` is always the number that [`Resources::number`]
/// gave to the resource. A host must not panic: a panic cannot unwind through machine code and ends
/// the process.
pub trait Host {
    /// Performs a step that has no call below, or whose resource has no number. A `Hold` at the end
    /// of a block is step number n, where n is the number of the block's steps. It uses the delay
    /// and defines whether the queue has room (bool).
    ///
    /// # Errors
    /// The fault with which the program ends. Machine code then counts it.
    fn step(&mut self, call: Call<'_>) -> Result<(), Fault>;

    /// As `What::Find`: returns the entry's handle and its slots (see [`Self::read`]). The key
    /// holds its fields in order and without gaps, from bit 0 of word 0 upward, each with its
    /// width. The remaining bits are 0.
    fn find(&mut self, number: u32, key: &[u64]) -> Option<(u64, &[u64])>;

    /// As [`Self::find`], for a key whose size is known at compile time.
    #[inline]
    fn find_words<const N: usize>(&mut self, number: u32, key: &[u64; N]) -> Option<(u64, &[u64])> {
        self.find(number, key)
    }

    /// As [`Self::find_words`], but only if the lookup is fast. Otherwise returns `None`, without
    /// any effect. Further words may follow the slots.
    #[inline]
    fn find_again<const N: usize>(&mut self, number: u32, key: &[u64; N]) -> Option<(u64, &[u64])> {
        let _ = (number, key);
        None
    }

    /// As `What::Read`: returns the slots in order. A slot takes one word. A slot wider than 64
    /// bits takes two, the low one first. The code reads zeros if the result is too short.
    fn read(&mut self, number: u32, entry: u64) -> &[u64];

    /// As `Op::StateSet`, with key and slots in words as in [`Self::find`] and [`Self::read`].
    /// Returns false if the table refuses a new entry.
    fn set(&mut self, number: u32, key: &[u64], slots: &[u64]) -> bool;

    /// As [`Self::set`], for a key of one word.
    #[inline]
    fn set_word(&mut self, number: u32, key: u64, slots: &[u64]) -> bool {
        self.set(number, &[key], slots)
    }

    /// As [`Self::set_word`], for an entry that probably does not exist.
    #[inline]
    fn set_new_word(&mut self, number: u32, key: u64, slots: &[u64]) -> bool {
        self.set_word(number, key, slots)
    }

    /// As `Op::StatePut`.
    ///
    /// # Errors
    /// As for [`Self::step`].
    fn put(&mut self, number: u32, key: &[u64], slot: u32, value: u128) -> Result<bool, Fault>;

    /// As `What::Classify`, for IP packets.
    fn classify(&mut self, number: u32, packet: &RulePacket) -> (bool, u32);

    /// As `What::CountRule`.
    fn count_rule(&mut self, number: u32, rule: u32);

    /// As [`Self::classify`] for an IPv4 packet. With `count`, also as [`Self::count_rule`] for the
    /// deciding rule.
    fn classify4(&mut self, number: u32, words: &RuleWords, count: bool) -> (bool, u32) {
        let (pass, rule) = self.classify(number, &words.packet());
        if count {
            self.count_rule(number, rule);
        }
        (pass, rule)
    }

    /// As `Op::Route`: the next hop for an address (IPv6 if `wide`). `None` if no route matches.
    fn route(&mut self, number: u32, addr: u128, wide: bool) -> Option<u32>;

    /// The group of an address. A result of [`AddressGroups::count`] or more means that the address
    /// has no group.
    fn address_group(&mut self, number: u32, addr: u128) -> u32 {
        let _ = (number, addr);
        u32::MAX
    }

    /// As `Op::ListGet`. `None` if the list has no such member.
    fn member(&mut self, number: u32, index: u64, column: u32) -> Option<u128>;

    /// Takes a member of a pool. `None` if none is free.
    fn take(&mut self, number: u32) -> Option<u128>;

    /// Whether a queue has room for one more packet.
    fn has_room(&mut self, number: u32) -> bool;

    /// Announces that the program will probably call `classify4` with these words. The rule set is
    /// one of [`Resources::prefetches_rules`]. By default this does nothing.
    fn prefetch_classify(&mut self, number: u32, words: &RuleWords) {
        let _ = (number, words);
    }

    /// Announces that this run will probably call `find` or `set` with this key soon, for a table
    /// that has no such entry. By default this does nothing.
    fn announce(&mut self, number: u32, key: &[u64]) {
        let _ = (number, key);
    }

    /// Announces that a later run of the program will probably first call `find` with this key. By
    /// default this does nothing.
    fn prefetch(&mut self, number: u32, key: &[u64]) {
        let _ = (number, key);
    }
}

/// A universal host call: a step of the program.
#[derive(Debug)]
pub struct Call<'a> {
    /// The block.
    pub block: u32,
    /// The step's number in the block.
    pub step: u32,
    /// The values that the step uses.
    pub args: &'a [u128],
    /// The values that the step defines, initially 0.
    pub outs: &'a mut [u128],
    /// The packet.
    pub packet: &'a mut Packet,
    /// The places of the packet's headers.
    pub layout: &'a mut Layout,
}

/// The data on which a program works.
#[derive(Debug)]
pub struct Work<'a> {
    /// The packet.
    pub packet: &'a mut Packet,
    /// Its layout.
    pub layout: &'a mut Layout,
    /// The time (ns).
    pub now: u64,
    /// The counts of the program's counter lists.
    pub counts: &'a mut [Count],
}

/// The count of a counter list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// The bytes of these packets on the wire, at the time of counting.
    pub bytes: u64,
}

/// The end of a run. All counters are up to date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The program reached the end of this block.
    End(u32),
    /// The program reached the end of this block, which is a `Hold` whose queue has room.
    Hold {
        /// The block.
        block: u32,
        /// How long the packet waits (ns).
        delay: u64,
    },
    /// The program ended with a fault.
    Fault {
        /// The block.
        block: u32,
        /// The step.
        step: u32,
        /// The fault.
        fault: Fault,
    },
}

/// The reason why a program cannot run on a packet. The run had no effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GuardFailure {
    /// The packet's headers do not have the program's shape.
    Shape,
    /// The packet has fewer bytes than its layout says.
    Layout,
    /// There are fewer counts than counter lists.
    Counts,
    /// There are fewer inputs than the program reads.
    Inputs,
}

/// Whether a step may change the packet's set of headers.
pub(crate) fn reshapes(what: &What) -> bool {
    matches!(
        what,
        What::Parse
            | What::Op(
                Op::PushVlan { .. }
                    | Op::PopVlan
                    | Op::PushOption { .. }
                    | Op::PopOption { .. }
                    | Op::ReplaceBytes { .. }
                    | Op::SetOption { .. }
                    | Op::Encapsulate { .. }
                    | Op::Decapsulate { .. }
                    | Op::Translate { .. }
                    | Op::Encrypt { .. }
                    | Op::Decrypt { .. }
            )
    )
}
