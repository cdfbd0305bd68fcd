//! Residual programs in machine code: when they are compiled, and the services that the engine
//! offers to the code.
#![expect(
    clippy::indexing_slicing,
    reason = "machine code names steps of its own program, and resources by results of `number`"
)]

use crate::deliver::deliver_now;
use crate::exec::Exec;
use crate::exec_context::{ExecContext, Functions, NearTable};
use crate::ops;
use crate::options::Jit;
use crate::prefetch;
use crate::work::{Emission, Walk, Work};
use braid_ir::chain::Chain;
use braid_ir::engine::{Fault, Outputs};
use braid_ir::graph::Graph;
use braid_ir::model::{ParamId, QueueId, ValueId, Word};
use braid_ir::residual::{End, Residual, Step};
use braid_ir::rules::{RulePacket, RuleWords};
use braid_ir::value::ParamValue;
use braid_ir::values::Values;
use braid_jit::{
    AddressGroups, Call, Code, Count, Ended, Error, Host, Resource, Resources, compile_with,
};
use braid_packet::{Layout, Packet};
use braid_state::{Absent, Created, Handle, New, TableRef};
use std::cell::Cell;

/// The largest number of blocks of a program that is compiled. A longer compilation would delay
/// packets too much.
const MOST_BLOCKS: usize = 20_000;

/// A program in machine code.
pub(crate) struct MachineCode {
    pub(crate) code: Code,
    /// The values that each step of each block uses and defines, in the order of host calls.
    steps: Vec<Vec<Io>>,
}

struct Io {
    uses: Vec<ValueId>,
    outs: Vec<ValueId>,
}

/// The stage of a program: interpreted or compiled.
pub(crate) enum Stage {
    /// The program stays interpreted.
    Interpreted,
    /// The program stays interpreted, because no machine code can be made.
    Refused(Error),
    /// The program is compiled after this number of packets.
    Waiting(u32),
    /// The workshop compiles the program.
    Ordered,
    Compiled(Box<MachineCode>),
}

impl Stage {
    /// The first stage of a new program with `blocks` blocks.
    pub(crate) fn first(jit: Jit, blocks: usize) -> Self {
        match jit {
            _ if blocks > MOST_BLOCKS => Stage::Interpreted,
            Jit::Off => Stage::Interpreted,
            Jit::After(packets) => Stage::Waiting(packets),
        }
    }

    /// Discards machine code that contains address groups, because a route table has changed. The
    /// next packet compiles the program again.
    pub(crate) fn routes_changed(&mut self) {
        if matches!(self, Stage::Compiled(machine_code) if machine_code.code.uses_address_groups())
        {
            *self = Stage::Waiting(0);
        }
    }

    /// Counts one more packet, and compiles the program if it is time. Returns the program's
    /// machine code, if there is any.
    pub(crate) fn next(
        &mut self,
        program: &Residual,
        functions: &mut Functions,
    ) -> Option<&MachineCode> {
        match self {
            Stage::Waiting(0) => {
                *self = match compile_with(program, &mut Means(functions)) {
                    Ok(code) => Stage::Compiled(Box::new(MachineCode::new(code, program))),
                    Err(why) => Stage::Refused(why),
                };
            }
            Stage::Waiting(packets) => *packets -= 1,
            Stage::Interpreted | Stage::Refused(_) | Stage::Ordered | Stage::Compiled(_) => {}
        }
        self.machine_code()
    }

    /// Counts one more packet. Returns whether it is time to order machine code.
    pub(crate) fn is_to_order(&mut self) -> bool {
        match self {
            Stage::Waiting(0) => return true,
            Stage::Waiting(packets) => *packets -= 1,
            Stage::Interpreted | Stage::Refused(_) | Stage::Ordered | Stage::Compiled(_) => {}
        }
        false
    }

    /// The program's machine code, if there is any.
    #[inline(always)]
    pub(crate) fn machine_code(&self) -> Option<&MachineCode> {
        match self {
            Stage::Compiled(machine_code) => Some(machine_code),
            _ => None,
        }
    }
}

/// The engine's answers to the compiler's questions about functions.
struct Means<'a>(&'a mut Functions);

impl Resources for Means<'_> {
    fn number(&mut self, node: u16, resource: Resource) -> Option<u32> {
        let first_locator = |node: u16| self.0.instances[usize::from(node)].first_locator;
        number(first_locator, node, resource)
    }

    fn address_groups(&mut self, tables: &[(u16, ParamId)], wide: bool) -> Option<AddressGroups> {
        let Functions { address_groups, instances, .. } = &mut *self.0;
        let routes = |(node, param): &(u16, ParamId)| {
            instances.get(usize::from(*node))?.routes.get(param.index())?.as_ref()
        };
        address_groups.of(routes, tables, wide)
    }

    fn prefetches_rules(&mut self, node: u16, param: ParamId) -> bool {
        let is_large = prefetch::is_large(&self.0.chain, node, param);
        self.0.prefetch.is_used |= is_large;
        is_large
    }

    fn list(&self, node: u16, param: ParamId) -> Option<&[Vec<Word>]> {
        list(&self.0.chain, node, param)
    }
}

/// The constant members of a list. A change of a list replaces the programs.
pub(crate) fn list(chain: &Chain, node: u16, param: ParamId) -> Option<&[Vec<Word>]> {
    match chain.nodes.get(usize::from(node))?.params.get(param.index())? {
        ParamValue::List(rows) => Some(rows),
        _ => None,
    }
}

/// The number of a function's resource in machine code. A table has its number among the tables of
/// all functions, where those of a function begin at `first_locator`. Any other resource has a
/// number that combines the function and the resource's number there.
pub(crate) fn number(
    first_locator: impl Fn(u16) -> usize,
    node: u16,
    resource: Resource,
) -> Option<u32> {
    let own = match resource {
        Resource::Table(state) => return u32::try_from(first_locator(node) + state.index()).ok(),
        Resource::Rules(ParamId(own))
        | Resource::Routes(ParamId(own))
        | Resource::List(ParamId(own))
        | Resource::Pool(ParamId(own))
        | Resource::Queue(QueueId(own)) => u16::try_from(own).ok()?,
    };
    Some(u32::from(node) << 16 | u32::from(own))
}

/// The function and the resource's number there, for a resource that is not a table.
fn resource(number: u32) -> (usize, u32) {
    ((number >> 16) as usize, number & 0xffff)
}

impl MachineCode {
    pub(crate) fn new(code: Code, program: &Residual) -> Self {
        let steps = program.blocks.iter().map(|block| {
            let steps = block.steps.iter();
            let io = steps.map(|step| Io { uses: step.what.uses(), outs: step.what.outs() });
            io.collect()
        });
        Self { code, steps: steps.collect() }
    }

    /// Runs the program on a packet. Returns `None`, without any effect, if the program cannot run
    /// on this packet. Inlined, so that the result stays in registers.
    #[inline(always)]
    pub(crate) fn run(
        &self,
        program: &Residual,
        words: &mut [Word],
        functions: &mut Functions,
        walk: &mut Walk<'_>,
        work: Work<'_>,
        counts: &[Cell<Count>],
    ) -> Option<Ended> {
        let Work { packet, layout, emissions } = work;
        let now = functions.now;
        let mut machine = self.machine(program, words, functions, walk.out, emissions);
        machine.begin(now, walk.worker);
        machine.start();
        self.code.runner(&mut machine, counts).ok()?.run(packet, layout, now).ok()
    }

    /// Prepares runs of the program, with the engine as host.
    #[inline(always)]
    pub(crate) fn machine<'a>(
        &'a self,
        program: &'a Residual,
        words: &'a mut [Word],
        functions: &'a mut Functions,
        out: &'a mut dyn Outputs,
        emissions: &'a mut Vec<Emission>,
    ) -> Machine<'a> {
        let steps = &*self.steps;
        let place = None;
        Machine {
            program,
            steps,
            functions,
            place,
            worker: 0,
            first_table: 0,
            out,
            emissions,
            words,
        }
    }
}

/// The engine as the host of machine code.
pub(crate) struct Machine<'a> {
    program: &'a Residual,
    steps: &'a [Vec<Io>],
    pub(crate) functions: &'a mut Functions,
    /// The packet's place in its burst, if the outputs do not know it yet.
    pub(crate) place: Option<usize>,
    worker: u16,
    /// The position of the worker's first table in [`Functions::tables`].
    first_table: usize,
    out: &'a mut dyn Outputs,
    pub(crate) emissions: &'a mut Vec<Emission>,
    words: &'a mut [Word],
}

impl<'m> Machine<'m> {
    /// Sets the worker whose tables lookups use.
    #[inline(always)]
    pub(crate) fn set_worker(&mut self, worker: u16) {
        if self.worker != worker {
            self.worker = worker;
            self.first_table = usize::from(worker) * self.functions.locators.len();
        }
    }

    /// The parts that the flow cache uses.
    pub(crate) fn cache_host<'h, P>(
        &'h mut self,
        programs: &'h P,
        graph: &'h Graph,
        wake: u64,
    ) -> braid_flowcache::Host<'h, P, Functions> {
        let Self { functions, words, out, .. } = self;
        braid_flowcache::Host { programs, functions, graph, wake, words, out: &mut **out }
    }

    /// Prepares a run for a packet of a worker.
    #[inline(always)]
    pub(crate) fn begin(&mut self, now: u64, worker: u16) {
        self.set_worker(worker);
        self.functions.now = now;
        self.functions.store.begin();
    }

    /// Prepares the run of the packet's next function.
    #[inline(always)]
    pub(crate) fn start(&mut self) {
        self.functions.touched.start();
    }

    /// Switches to another program.
    #[inline(always)]
    pub(crate) fn turn_to(&mut self, program: &'m Residual, machine_code: &'m MachineCode) {
        (self.program, self.steps) = (program, &machine_code.steps);
    }

    fn has_room_in(&self, node: u16, queue: QueueId) -> bool {
        self.functions.queue_has_room(node, queue, self.worker)
    }

    /// The table with this number of the worker whose packet runs.
    #[inline(always)]
    fn near(&self, number: u32) -> NearTable {
        let place = self.first_table.wrapping_add(number as usize);
        match self.functions.tables.get(place) {
            Some(near) => *near,
            None => self.functions.near_table(number as usize, self.worker),
        }
    }

    /// As [`Self::near`], only the table.
    #[inline(always)]
    fn table(&self, number: u32) -> TableRef {
        let place = self.first_table.wrapping_add(number as usize);
        match self.functions.tables.get(place) {
            Some(near) => near.table,
            None => self.functions.near_table(number as usize, self.worker).table,
        }
    }

    /// Finds an entry and its slots.
    #[inline(always)]
    fn look_up(&mut self, number: u32, key: &[u64]) -> Option<(u64, &[u64])> {
        let near = self.near(number);
        let Functions { store, touched, now, .. } = &mut *self.functions;
        let (entry, slots) = store.find_hinted(near.table, key, *now)?;
        if near.is_partner {
            touched.set(near.table, entry);
        }
        Some((entry.to_bits(), slots))
    }

    /// As [`Host::set`]. Inlined, so that the compiler knows the key's size.
    #[inline(always)]
    fn set_entry(&mut self, number: u32, key: &[u64], slots: &[u64]) -> bool {
        let near = self.near(number);
        let table = near.table;
        let Functions { store, touched, now, .. } = &mut *self.functions;
        let absent = match store.find_or_absent(table, key, *now) {
            Ok(entry) => {
                if near.is_partner {
                    touched.set(table, entry);
                }
                return store.assign(table, entry, slots, *now);
            }
            Err(absent) => absent,
        };
        self.create_entry(number, near, key, slots, absent)
    }

    /// Creates the entry with a key, which is known to be absent.
    #[inline(always)]
    fn create_entry(
        &mut self,
        number: u32,
        near: NearTable,
        key: &[u64],
        slots: &[u64],
        absent: Absent,
    ) -> bool {
        let table = near.table;
        let Functions { store, touched, now, .. } = &mut *self.functions;
        if !store.has_room(table) {
            return self.set_full(number, key, slots);
        }
        let partner = near.partner.and_then(|partner| touched.get(partner));
        let new = New { key, slots, partner, now: *now, shard: near.shard, renews: true };
        let Created::Entry(entry) = store.create_in_room(table, &new, absent) else { return false };
        if near.is_partner {
            touched.set(table, entry);
        }
        true
    }

    /// As [`Host::set_word`], out of line.
    #[inline(never)]
    fn set_any(&mut self, number: u32, key: u64, slots: &[u64]) -> bool {
        self.set_entry(number, &[key], slots)
    }

    /// As [`Host::set`] for a new entry of a table without room: entries end first, and their
    /// programs run.
    #[inline(never)]
    fn set_full(&mut self, number: u32, key: &[u64], slots: &[u64]) -> bool {
        let (node, state) = self.functions.owners[number as usize];
        let done = self.context(node).assign_packed(state, key, slots);
        deliver_now(self.functions, self.out);
        done
    }

    /// The context in which a function's state changes.
    fn context(&mut self, node: u16) -> ExecContext<'_> {
        self.tell_place();
        self.functions.context_of(node, self.worker, self.out)
    }

    /// Tells the outputs which packet causes the next outputs.
    fn tell_place(&mut self) {
        if let Some(place) = self.place {
            self.out.at(place);
        }
    }

    /// Executes a step as the interpreter does.
    fn interpret(
        &mut self,
        step: &Step,
        packet: &mut Packet,
        layout: &mut Layout,
    ) -> Result<(), Fault> {
        self.tell_place();
        let mut exec = Exec {
            functions: self.functions,
            worker: self.worker,
            out: self.out,
            work: Work { packet, layout, emissions: self.emissions },
            counts: &[],
        };
        let mut values = Values { words: self.words, types: &self.program.values };
        exec.step(&mut values, step)
    }
}

impl Host for Machine<'_> {
    fn step(&mut self, call: Call<'_>) -> Result<(), Fault> {
        let (block, step) = (call.block as usize, call.step as usize);
        let Some(io) = self.steps[block].get(step) else {
            if let (End::Hold { node, queue, .. }, [room, ..]) =
                (&self.program.blocks[block].end, call.outs)
            {
                *room = self.has_room_in(*node, *queue).into();
            }
            return Ok(());
        };
        let step = &self.program.blocks[block].steps[step];
        for (value, word) in io.uses.iter().zip(call.args) {
            self.words[value.index()] = *word;
        }
        self.interpret(step, call.packet, call.layout)?;
        for (value, word) in io.outs.iter().zip(call.outs) {
            *word = self.words[value.index()];
        }
        Ok(())
    }

    fn find(&mut self, number: u32, key: &[u64]) -> Option<(u64, &[u64])> {
        self.look_up(number, key)
    }

    #[inline(always)]
    fn find_words<const N: usize>(&mut self, number: u32, key: &[u64; N]) -> Option<(u64, &[u64])> {
        self.look_up(number, key)
    }

    #[inline(always)]
    fn find_again<const N: usize>(&mut self, number: u32, key: &[u64; N]) -> Option<(u64, &[u64])> {
        let Functions { tables, store, touched, now, .. } = &mut *self.functions;
        let near = tables.get(self.first_table.wrapping_add(number as usize))?;
        let (entry, slots) = store.find_at_hint(near.table, key, *now)?;
        if near.is_partner {
            touched.set(near.table, entry);
        }
        Some((entry.to_bits(), slots))
    }

    fn read(&mut self, number: u32, entry: u64) -> &[u64] {
        let table = self.functions.locators[number as usize].table(self.worker);
        self.functions.store.slots(table, Handle::from_bits(entry)).unwrap_or(&[])
    }

    #[inline(always)]
    fn set(&mut self, number: u32, key: &[u64], slots: &[u64]) -> bool {
        match *key {
            [a, b] => self.set_entry(number, &[a, b], slots),
            _ => self.set_entry(number, key, slots),
        }
    }

    #[inline(always)]
    fn set_word(&mut self, number: u32, key: u64, slots: &[u64]) -> bool {
        self.set_entry(number, &[key], slots)
    }

    #[inline(always)]
    fn set_new_word(&mut self, number: u32, key: u64, slots: &[u64]) -> bool {
        let near = self.near(number);
        match self.functions.store.absent(near.table, &[key]) {
            Some(absent) => self.create_entry(number, near, &[key], slots, absent),
            None => self.set_any(number, key, slots),
        }
    }

    fn put(&mut self, number: u32, key: &[u64], slot: u32, value: u128) -> Result<bool, Fault> {
        let table = self.functions.locators[number as usize].table(self.worker);
        if let Some((entry, _)) = self.look_up(number, key) {
            let (entry, now) = (Handle::from_bits(entry), self.functions.now);
            return Ok(self.functions.store.put(table, entry, slot as usize, value, now));
        }
        let (node, state) = self.functions.owners[number as usize];
        let done = self.context(node).put_packed(state, key, slot, value);
        deliver_now(self.functions, self.out);
        done
    }

    fn classify(&mut self, number: u32, packet: &RulePacket) -> (bool, u32) {
        let (node, param) = resource(number);
        self.functions.instances[node].classify(ParamId(param), Some(packet))
    }

    /// Inlined, so that the words stay in registers.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a function's number has 16 bits")]
    fn classify4(&mut self, number: u32, words: &RuleWords, count: bool) -> (bool, u32) {
        let (node, param) = resource(number);
        let Functions { instances, prefetch, .. } = &mut *self.functions;
        let known = prefetch.known(node as u16, ParamId(param), words);
        instances[node].classify4(ParamId(param), words, known, count)
    }

    fn count_rule(&mut self, number: u32, rule: u32) {
        let (node, param) = resource(number);
        self.functions.instances[node].count_rule(ParamId(param), rule);
    }

    fn route(&mut self, number: u32, addr: u128, wide: bool) -> Option<u32> {
        let (node, param) = resource(number);
        let width = if wide { 128 } else { 32 };
        self.functions.instances[node].route(ParamId(param), width, addr)
    }

    fn address_group(&mut self, number: u32, addr: u128) -> u32 {
        let groups = &self.functions.address_groups;
        groups.search(&self.functions.instances, number, addr).unwrap_or(u32::MAX)
    }

    fn member(&mut self, number: u32, index: u64, column: u32) -> Option<u128> {
        let (node, param) = resource(number);
        let params = &self.functions.chain.nodes[node].params;
        ops::list_get(params, ParamId(param), index.into(), column).ok()
    }

    #[inline(always)]
    fn take(&mut self, number: u32) -> Option<u128> {
        let (node, pool) = resource(number);
        let instance = &mut self.functions.instances[node];
        instance.take(instance.shard(self.worker), ParamId(pool))
    }

    #[expect(clippy::cast_possible_truncation, reason = "a function's number has 16 bits")]
    fn has_room(&mut self, number: u32) -> bool {
        let (node, queue) = resource(number);
        self.has_room_in(node as u16, QueueId(queue))
    }

    #[expect(clippy::cast_possible_truncation, reason = "a function's number has 16 bits")]
    fn prefetch_classify(&mut self, number: u32, words: &RuleWords) {
        let (node, param) = resource(number);
        self.functions.prefetch.ask(node as u16, ParamId(param), *words);
    }

    #[inline(always)]
    fn announce(&mut self, number: u32, key: &[u64]) {
        let table = self.table(number);
        self.functions.store.announce(table, key);
    }

    #[inline(always)]
    fn prefetch(&mut self, number: u32, key: &[u64]) {
        let table = self.table(number);
        self.functions.store.prefetch(table, key);
    }
}
