//! What machine code and its host agree on.
//!
//! **Running.** [`Code::run`](crate::Code::run) gets the packet with its layout, the time, a [`Count`]
//! for each tally and the host. It checks that the packet's headers are of the program's shape, runs
//! the program from block 0, and returns the block whose end was reached: the engine does what that
//! end says, except that its tally is already counted (as are `What::Tally` and the tallies of
//! faults). A `Hold` whose queue is full never comes back: the code goes on in `full`.
//!
//! **Host calls.** Arithmetic, loads, writes with their checksums, `Has`, tallies and branches are
//! machine code. Everything else is the host's. There is one universal call, [`Host::step`]: it names
//! the step, gives the values that the step uses (in the order of [`What::uses`]) and takes those that
//! it defines (in the order of [`What::outs`]). Hot steps have calls of their own, which name a resource (a
//! table, a rule set, …) by a number that the engine chose when it compiled the program; a resource
//! without a number goes through `step`.
//!
//! **Runs.** When a run begins, nothing has been found or assigned in any function. So `What::Enter` is no
//! call, unless the run can have come to the function before.
//!
//! **Values** are the low bits of a `u128`; those that a host gives must fit their types.
//!
//! **Headers.** Up to the first `PushVlan`, `PopVlan` or `Parse` on its way, code trusts that the packet
//! has the headers that it was entered with, where they were. A host that changes that earlier ends the
//! program with fault `truncated`. From there on, loads and writes are the host's.

use braid_ir::engine::Fault;
use braid_ir::model::{Op, ParamId, QueueId, StateId, Word};
use braid_ir::residual::What;
use braid_ir::rules::{RulePacket, RuleWords};
use braid_packet::{Layout, Packet};
use std::sync::Arc;

use crate::index::Index;

/// Something of a function that host calls work on.
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

/// What a program's functions have, as far as it matters when the program is compiled.
pub trait Resources {
    /// A number of the engine's choice for a resource; one without goes through [`Host::step`].
    fn number(&mut self, node: u16, resource: Resource) -> Option<u32>;

    /// Classes of addresses (IPv6 if `wide`): all addresses of one have the same hop in each of these
    /// route tables, given by function and parameter, as long as the code lives. `None` if the engine
    /// has none; each table is then asked by itself.
    fn classes(&mut self, tables: &[(u16, ParamId)], wide: bool) -> Option<Classes>;

    /// The members of a list, each with a value for each column, if they stay as they are as long as
    /// the code lives.
    fn list(&self, node: u16, param: ParamId) -> Option<&[Vec<Word>]>;

    /// Whether the host wants to know ahead ([`Host::ask`]) what a rule set will be asked about. By
    /// default it does not.
    fn asks_ahead(&mut self, node: u16, param: ParamId) -> bool {
        let _ = (node, param);
        false
    }
}

/// Classes of addresses.
#[derive(Clone, Debug)]
pub struct Classes {
    /// How many there are, numbered from 0.
    pub count: u32,
    /// How an address's class is found.
    pub search: Search,
}

/// How an address's class is found.
#[derive(Clone, Debug)]
pub enum Search {
    /// By machine code, for IPv4.
    Index(Arc<Index>),
    /// By [`Host::class`], with this number.
    Host(u32),
}

/// The engine, as machine code sees it. `number` always is what `compile`'s caller gave for the
/// resource. A host must not panic: that cannot pass through machine code and ends the process.
pub trait Host {
    /// Does a step: everything for which there is no call below, and resources without a number.
    /// The number of a block's end is that of its steps: it is `Hold`, uses the delay, and defines
    /// whether the queue has room (bool).
    ///
    /// # Errors
    /// The fault by which the program ends; its tally is then counted.
    fn step(&mut self, call: Call<'_>) -> Result<(), Fault>;

    /// As `What::Find`: the entry's handle and its slots (see [`Self::read`]). The key's parts lie in
    /// it in order, from bit 0 of word 0 up, contiguous, each with its width; the bits above are 0.
    fn find(&mut self, number: u32, key: &[u64]) -> Option<(u64, &[u64])>;

    /// As [`Self::find`], for a key of a size known when compiling.
    #[inline]
    fn find_words<const N: usize>(&mut self, number: u32, key: &[u64; N]) -> Option<(u64, &[u64])> {
        self.find(number, key)
    }

    /// As [`Self::find_words`], if that takes no time; `None`, and nothing is done, if it may. More words than
    /// the slots have may follow them.
    #[inline]
    fn find_again<const N: usize>(&mut self, number: u32, key: &[u64; N]) -> Option<(u64, &[u64])> {
        let _ = (number, key);
        None
    }

    /// As `What::Read`: the slots in order, each in one word; in two, the low one first, if it is
    /// wider than 64 bits. Too few words are read as zeros.
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

    /// As [`Self::classify`] for an IPv4 packet, and if `count` as [`Self::count_rule`] for the rule that
    /// decides.
    fn classify4(&mut self, number: u32, words: &RuleWords, count: bool) -> (bool, u32) {
        let (pass, rule) = self.classify(number, &words.packet());
        if count {
            self.count_rule(number, rule);
        }
        (pass, rule)
    }

    /// As `Op::Route`: the next hop, for an IPv6 address if `wide`.
    fn route(&mut self, number: u32, addr: u128, wide: bool) -> Option<u32>;

    /// The class of an address: below [`Classes::count`], or any other number if it has none.
    fn class(&mut self, number: u32, addr: u128) -> u32 {
        let _ = (number, addr);
        u32::MAX
    }

    /// As `Op::ListGet`; `None` past the end.
    fn member(&mut self, number: u32, index: u64, column: u32) -> Option<u128>;

    /// Whether a queue has room for one packet more.
    fn has_room(&mut self, number: u32) -> bool;

    /// A `classify4` with these words is likely soon, for rules that [`Resources::asks_ahead`] said of.
    /// By default this does nothing.
    fn ask(&mut self, number: u32, words: &RuleWords) {
        let _ = (number, words);
    }

    /// A `find` with this key is likely soon. By default this does nothing.
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
    /// What it uses.
    pub args: &'a [u128],
    /// What it defines; zeros at first.
    pub outs: &'a mut [u128],
    /// The packet.
    pub packet: &'a mut Packet,
    /// Where its headers are.
    pub layout: &'a mut Layout,
}

/// What a program works on.
#[derive(Debug)]
pub struct Work<'a> {
    /// The packet.
    pub packet: &'a mut Packet,
    /// Its layout.
    pub layout: &'a mut Layout,
    /// The time (ns).
    pub now: u64,
    /// A count for each tally of the program.
    pub counts: &'a mut [Count],
}

/// What was counted at a tally.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire, as the packets were then.
    pub bytes: u64,
}

/// How a run ended. Everything is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// At the end of this block.
    End(u32),
    /// At the end of this block, which is `Hold`: the queue has room.
    Hold {
        /// The block.
        block: u32,
        /// How long the packet waits (ns).
        delay: u64,
    },
    /// By a fault.
    Fault {
        /// The block.
        block: u32,
        /// The step.
        step: u32,
        /// The fault.
        fault: Fault,
    },
}

/// A program cannot run on this: nothing was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misfit {
    /// The packet's headers are not of the program's shape.
    Shape,
    /// The layout is of a longer packet.
    Layout,
    /// There are fewer counts than tallies.
    Counts,
}

/// Whether a step changes which headers a packet has.
pub(crate) fn reshapes(what: &What) -> bool {
    matches!(what, What::Parse | What::Op(Op::PushVlan { .. } | Op::PopVlan))
}
