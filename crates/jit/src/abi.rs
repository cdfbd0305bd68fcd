//! The contract between machine code and its host.
//!
//! **Running.** [`Code::run`](crate::Code::run) gets the packet with its layout, the time, a
//! [`Count`] for each counter, and the host. It checks that the packet's headers have the program's
//! shape, runs the program from block 0, and returns the block whose end it reached. The engine
//! then does what that end says; its counter is already counted, as are those of steps and of
//! faults. A `Hold` whose queue is full does not return: the code goes on in `full`.
//!
//! **Host calls.** Arithmetic, loads, writes with their checksums, `Has`, counters and branches are
//! machine code. The host does everything else. [`Host::step`] is the universal call. It names the
//! step, passes the values that the step uses (in the order of [`What::uses`]) and takes the values
//! that the step defines (in the order of [`What::outs`]). Hot steps have their own calls. These
//! name a resource (a table, a rule set, …) by a number that the engine chose when it compiled the
//! program. Steps on a resource without a number go through `step`.
//!
//! **Runs.** When a run begins, no function has found or assigned anything yet. So `What::Enter`
//! needs a call only if the run may have entered the function before.
//!
//! **Values** are the low bits of a `u128`. Values from a host must fit their types.
//!
//! **Headers.** Up to the first `PushVlan`, `PopVlan` or `Parse` on its path, code relies on the
//! packet to have the same headers at the same places as when it entered. If a host changes that
//! earlier, the program ends with the fault `truncated`. Behind that step, the host does all loads
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
    /// A queue: [`Host::has_room`].
    Queue(QueueId),
}

/// The resources of a program's functions, as far as the compiler needs them.
pub trait Resources {
    /// The number that the engine chooses for a resource. Steps on a resource without a number go
    /// through [`Host::step`].
    fn number(&mut self, node: u16, resource: Resource) -> Option<u32>;

    /// Address groups (of IPv6 addresses if `wide`). All addresses of a group have the same next
    /// hop in each of these route tables, given by function and parameter, as long as the code
    /// lives. `None` if the engine has no groups; then the code looks up each table by itself.
    fn address_groups(&mut self, tables: &[(u16, ParamId)], wide: bool) -> Option<AddressGroups>;

    /// The members of a list, each with a value for each column, if they never change while the
    /// code lives.
    fn list(&self, node: u16, param: ParamId) -> Option<&[Vec<Word>]>;

    /// Whether the host wants to hear in advance ([`Host::prefetch_classify`]) about packets that a
    /// rule set will classify. By default it does not.
    fn prefetches_rules(&mut self, node: u16, param: ParamId) -> bool {
        let _ = (node, param);
        false
    }
}

/// Address groups: addresses with the same next hops.
#[derive(Clone, Debug)]
pub struct AddressGroups {
    /// The number of groups, which are numbered from 0.
    pub count: u32,
    /// How to find an address's group.
    pub search: Search,
}

/// The way to find an address's group.
#[derive(Clone, Debug)]
pub enum Search {
    /// Machine code searches an index, for IPv4.
    Index(Arc<Index>),
    /// [`Host::address_group`] searches, with this number.
    Host(u32),
}

/// The engine, as machine code sees it. `number` is always the number that the caller of `compile`
/// gave to the resource. A host must not panic: that cannot pass through machine code and ends the
/// process.
pub trait Host {
    /// Performs a step that has no call below, or whose resource has no number. `Hold`, at the end
    /// of a block, has the number of the block's steps as its step; it uses the delay and defines
    /// whether the queue has room (bool).
    ///
    /// # Errors
    /// The fault with which the program ends. Machine code then counts it.
    fn step(&mut self, call: Call<'_>) -> Result<(), Fault>;

    /// As `What::Find`: returns the entry's handle and its slots (see [`Self::read`]). The key
    /// holds its fields in order, contiguous, from bit 0 of word 0 up, each with its width; the
    /// bits above are 0.
    fn find(&mut self, number: u32, key: &[u64]) -> Option<(u64, &[u64])>;

    /// As [`Self::find`], for a key whose size is known at compile time.
    #[inline]
    fn find_words<const N: usize>(&mut self, number: u32, key: &[u64; N]) -> Option<(u64, &[u64])> {
        self.find(number, key)
    }

    /// As [`Self::find_words`], if that is fast. `None`, without any effect, if it may be slow. The
    /// slots may be followed by further words.
    #[inline]
    fn find_again<const N: usize>(&mut self, number: u32, key: &[u64; N]) -> Option<(u64, &[u64])> {
        let _ = (number, key);
        None
    }

    /// As `What::Read`: returns the slots in order. A slot takes one word or, if it is wider than
    /// 64 bits, two, the low one first. If there are too few words, zeros are read.
    fn read(&mut self, number: u32, entry: u64) -> &[u64];

    /// As `Op::StateSet`: key and slots in words, as [`Self::find`] and [`Self::read`] have them.
    fn set(&mut self, number: u32, key: &[u64], slots: &[u64]) -> bool;

    /// As `Op::StatePut`.
    ///
    /// # Errors
    /// As for [`Self::step`].
    fn put(&mut self, number: u32, key: &[u64], slot: u32, value: u128) -> Result<bool, Fault>;

    /// As `What::Classify`, for IP packets.
    fn classify(&mut self, number: u32, packet: &RulePacket) -> (bool, u32);

    /// As `What::CountRule`.
    fn count_rule(&mut self, number: u32, rule: u32);

    /// As [`Self::classify`] for an IPv4 packet. If `count`, also as [`Self::count_rule`] for the
    /// rule that decides.
    fn classify4(&mut self, number: u32, words: &RuleWords, count: bool) -> (bool, u32) {
        let (pass, rule) = self.classify(number, &words.packet());
        if count {
            self.count_rule(number, rule);
        }
        (pass, rule)
    }

    /// As `Op::Route`: the next hop for an address, which is IPv6 if `wide`.
    fn route(&mut self, number: u32, addr: u128, wide: bool) -> Option<u32>;

    /// The group of an address: below [`AddressGroups::count`], or any other number if the address
    /// has no group.
    fn address_group(&mut self, number: u32, addr: u128) -> u32 {
        let _ = (number, addr);
        u32::MAX
    }

    /// As `Op::ListGet`; `None` past the end.
    fn member(&mut self, number: u32, index: u64, column: u32) -> Option<u128>;

    /// Whether a queue has room for one more packet.
    fn has_room(&mut self, number: u32) -> bool;

    /// The program will probably call `classify4` with these words, for a rule set of
    /// [`Resources::prefetches_rules`]. By default this does nothing.
    fn prefetch_classify(&mut self, number: u32, words: &RuleWords) {
        let _ = (number, words);
    }

    /// The program will probably call `find` with this key. By default this does nothing.
    fn prefetch(&mut self, number: u32, key: &[u64]) {
        let _ = (number, key);
    }
}

/// A universal host call.
#[derive(Debug)]
pub struct Call<'a> {
    /// The block.
    pub block: u32,
    /// The step in it.
    pub step: u32,
    /// The values that the step uses.
    pub args: &'a [u128],
    /// The values that the step defines; zeros at first.
    pub outs: &'a mut [u128],
    /// The packet.
    pub packet: &'a mut Packet,
    /// The places of its headers.
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
    /// A count for each counter of the program.
    pub counts: &'a mut [Count],
}

/// The value of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// The bytes of these packets on the wire, when they were counted.
    pub bytes: u64,
}

/// How a run ended. All counters are up to date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The program reached the end of this block.
    End(u32),
    /// The program reached the end of this block, which is `Hold`, and the queue has room.
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

/// The reason why a program cannot run on a packet. Nothing was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GuardFailure {
    /// The packet's headers do not have the program's shape.
    Shape,
    /// The layout belongs to a longer packet.
    Layout,
    /// There are fewer counts than counters.
    Counts,
}

/// Whether a step changes which headers a packet has.
pub(crate) fn reshapes(what: &What) -> bool {
    matches!(what, What::Parse | What::Op(Op::PushVlan { .. } | Op::PopVlan))
}
