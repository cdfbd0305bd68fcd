//! Searches for classes, and records of what follows from them (see [`crate::regions`]).
//!
//! Where a region begins, the record of the packet's class says by which exit ways leave it, and has the
//! values that are used behind. Its first word is 0 until the first packet of the class has run through the
//! region step by step.

use super::{ClBlock, Emitter, Way, at};
use crate::abi::Search;
use crate::error::Error;
use crate::index::FIRST_NODE;
use crate::regions::Regions;
use braid_ir::model::{Target, ValueId};
use braid_ir::residual::End;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, StackSlotData, StackSlotKind, Value, types};
use cranelift_frontend::{Switch, Variable};
use std::collections::HashMap;

/// What is known of regions while code is written.
pub(super) struct Records<'a> {
    pub(super) regions: &'a Regions,
    /// Where the first record lies.
    pub(super) start: u64,
    /// Values that have a definition on each way out of their region.
    pub(super) variables: HashMap<ValueId, Variable>,
    /// By group: the class of the packet's address.
    classes: Vec<Variable>,
    /// By region: the packet's record, while it is found out what it has to say.
    open: Vec<Option<Value>>,
    /// Where code goes on behind exits within blocks.
    behind: HashMap<(usize, usize), ClBlock>,
}

impl<'a> Records<'a> {
    pub(super) fn new(regions: &'a Regions, start: u64) -> Self {
        Records {
            regions,
            start,
            variables: HashMap::new(),
            classes: Vec::new(),
            open: vec![None; regions.all.len()],
            behind: HashMap::new(),
        }
    }
}

impl Emitter<'_, '_> {
    /// Makes variables for what has several definitions.
    pub(super) fn declare(&mut self) {
        let regions = self.records.regions;
        for _ in &regions.groups {
            let class = self.build.declare_var(types::I64);
            self.records.classes.push(class);
        }
        for value in &regions.outs {
            let ty = if self.is_wide(*value) { types::I128 } else { types::I64 };
            let build = &mut self.build;
            self.records.variables.entry(*value).or_insert_with(|| build.declare_var(ty));
        }
    }

    /// Begins or leaves regions before a step; behind all steps is the block's end.
    pub(super) fn at_step(&mut self, block: usize, step: usize) -> Result<(), Error> {
        let regions = self.records.regions;
        if let Some((region, exit)) = regions.cuts.get(&(block, step)).copied() {
            let behind = self.behind(region, exit);
            match self.hot {
                None => {
                    self.record(region, exit)?;
                    self.build.ins().jump(behind, &[]);
                }
                Some(hot) => self.skips = !hot.behind.contains(&(block, step)),
            }
            if !self.skips {
                self.build.switch_to_block(behind);
                self.fresh = None;
            }
        }
        match regions.starts.get(&(block, step)) {
            Some(region) if !self.skips => self.region(*region),
            _ => Ok(()),
        }
    }

    /// Where code goes on behind an exit within a block.
    fn behind(&mut self, region: usize, exit: usize) -> ClBlock {
        let build = &mut self.build;
        *self.records.behind.entry((region, exit)).or_insert_with(|| build.create_block())
    }

    /// Goes on by the record of the packet's class, if there is one; the steps that follow are for the
    /// first packet of a class.
    fn region(&mut self, number: usize) -> Result<(), Error> {
        let region = &self.records.regions.all[number];
        let group = &self.records.regions.groups[region.group];
        // The host may move what was at hand.
        self.fresh = None;
        let class_is = self.records.classes[region.group];
        let class = if region.known {
            self.build.use_var(class_is)
        } else {
            let class = match &group.classes.search {
                Search::Index(index) => self.search(index.address(), group.addr)?,
                Search::Host(search) => {
                    let (low, high) = self.halves(group.addr)?;
                    self.host_call(at::CLASS, *search, &[low, high], 1)[0]
                }
            };
            self.build.def_var(class_is, class);
            class
        };
        if self.hot.is_some() {
            let record = self.record_of(number, class);
            self.skips = true;
            return self.dispatch(number, record, None);
        }
        let slow = self.build.create_block();
        self.build.set_cold_block(slow);
        let open = self.build.append_block_param(slow, types::I64);
        if let Search::Host(_) = group.classes.search {
            // What it says of an address without a class is written where nobody reads it.
            let words = region.stride as u32 * 8;
            let nowhere = StackSlotData::new(StackSlotKind::ExplicitSlot, words, 3);
            let nowhere = self.build.create_sized_stack_slot(nowhere);
            let nowhere = self.build.ins().stack_addr(types::I64, nowhere, 0);
            let count = self.imm(group.classes.count.into());
            let is_one = self.build.ins().icmp(IntCC::UnsignedLessThan, class, count);
            let inside = self.build.create_block();
            self.build.ins().brif(is_one, inside, &[], slow, &[BlockArg::Value(nowhere)]);
            self.build.switch_to_block(inside);
        }
        let record = self.record_of(number, class);
        self.dispatch(number, record, Some(slow))?;
        self.build.switch_to_block(slow);
        self.records.open[number] = Some(open);
        Ok(())
    }

    /// Where the record of a class is.
    fn record_of(&mut self, number: usize, class: Value) -> Value {
        let region = &self.records.regions.all[number];
        let first = self.imm(self.records.start + region.first as u64 * 8);
        let bytes = region.stride as u64 * 8;
        let offset = if bytes.is_power_of_two() {
            self.up(class, bytes.trailing_zeros().into())
        } else {
            let bytes = self.imm(bytes);
            self.build.ins().imul(class, bytes)
        };
        self.build.ins().iadd(first, offset)
    }

    /// Goes on where a record says; where it says nothing, in a block that gets it, or in the whole program.
    fn dispatch(
        &mut self,
        number: usize,
        record: Value,
        slow: Option<ClBlock>,
    ) -> Result<(), Error> {
        let region = &self.records.regions.all[number];
        let which = self.take(record, 0);
        let gives_up = |this: &Self, exit: usize| {
            this.hot.is_some_and(|hot| hot.given_up.contains(&(number, exit)))
        };
        let mut blocks = Vec::new();
        for exit in 0..region.exits.len() {
            let up = gives_up(self, exit);
            blocks.push(if up { self.give_up() } else { self.build.create_block() });
        }
        let others = self.build.create_block();
        self.build.set_cold_block(others);
        let likely = self.build.ins().icmp_imm_u(IntCC::Equal, which, region.likely as i64 + 1);
        self.build.ins().brif(likely, blocks[region.likely], &[], others, &[]);
        self.build.switch_to_block(others);
        let none = self.build.create_block();
        self.build.set_cold_block(none);
        let mut switch = Switch::new();
        for (exit, block) in blocks.iter().enumerate() {
            if exit != region.likely && !gives_up(self, exit) {
                switch.set_entry(exit as u128 + 1, *block);
            }
        }
        switch.emit(&mut self.build, which, none);
        self.build.switch_to_block(none);
        match slow {
            Some(slow) => self.build.ins().jump(slow, &[BlockArg::Value(record)]),
            None => {
                let over = self.give_up();
                self.build.ins().jump(over, &[])
            }
        };
        for (exit, block) in blocks.into_iter().enumerate() {
            if !gives_up(self, exit) {
                self.build.switch_to_block(block);
                self.by_record(number, exit, record)?;
            }
        }
        Ok(())
    }

    /// Takes the values of an exit from a record, and goes on there.
    fn by_record(&mut self, region: usize, number: usize, record: Value) -> Result<(), Error> {
        let exit = &self.records.regions.all[region].exits[number];
        for (value, word) in &exit.live {
            let mut is = self.take(record, word * 8);
            if self.is_wide(*value) {
                let high = self.take(record, word * 8 + 8);
                is = self.build.ins().iconcat(is, high);
            }
            let variable = self.records.variables[value];
            self.build.def_var(variable, is);
        }
        let (to, args) = match exit.target {
            None => (self.behind(region, number), Vec::new()),
            Some(which) => {
                let end = &self.residual.blocks[exit.block].end;
                let target: &Target = end.targets()[which];
                self.target(target)?
            }
        };
        self.build.ins().jump(to, &args);
        Ok(())
    }

    /// Writes the record of the packet's class.
    fn record(&mut self, region: usize, number: usize) -> Result<(), Error> {
        let Some(record) = self.records.open[region] else { return Ok(()) };
        let exit = &self.records.regions.all[region].exits[number];
        for (value, word) in &exit.live {
            let (low, high) = self.halves(*value)?;
            self.put(low, record, word * 8);
            if self.is_wide(*value) {
                self.put(high, record, word * 8 + 8);
            }
        }
        let which = self.imm(number as u64 + 1);
        self.put(which, record, 0);
        Ok(())
    }

    /// Jumps that leave a region lead through a block of their own, which writes the record.
    pub(super) fn leaving(&mut self, block: usize, which: usize, (to, args): Way) -> Way {
        if !self.records.regions.jumps.contains_key(&(block, which)) {
            return (to, args);
        }
        let between = self.build.create_block();
        self.left.push((which, between, to, args));
        (between, Vec::new())
    }

    /// Writes those blocks, behind the block's own end.
    pub(super) fn leave_regions(&mut self, block: usize, end: &End) -> Result<(), Error> {
        debug_assert!(matches!(end, End::Jump(_) | End::Branch { .. }) || self.left.is_empty());
        for (which, between, to, args) in std::mem::take(&mut self.left) {
            self.build.switch_to_block(between);
            let (region, exit) = self.records.regions.jumps[&(block, which)];
            self.record(region, exit)?;
            self.build.ins().jump(to, &args);
        }
        Ok(())
    }

    /// The class of an IPv4 address, by an index.
    fn search(&mut self, index: u64, addr: ValueId) -> Result<Value, Error> {
        let addr = self.low(addr)?;
        let addr = self.masked(addr, 32);
        let index = self.imm(index);
        let done = self.build.create_block();
        let class = self.build.append_block_param(done, types::I64);
        let place = self.down(addr, 16);
        let mut entry = self.entry(index, place, 0);
        for rest in [8, 0] {
            let more = self.build.create_block();
            let leads_on = self.build.ins().icmp_imm_u(
                IntCC::UnsignedGreaterThanOrEqual,
                entry,
                i64::from(FIRST_NODE),
            );
            self.build.ins().brif(leads_on, more, &[], done, &[BlockArg::Value(entry)]);
            self.build.switch_to_block(more);
            let byte = self.down(addr, rest);
            let byte = self.masked(byte, 8);
            let place = self.build.ins().iadd(entry, byte);
            entry = self.entry(index, place, -(FIRST_NODE as i32) * 4);
        }
        self.build.ins().jump(done, &[BlockArg::Value(entry)]);
        self.build.switch_to_block(done);
        Ok(class)
    }

    /// An entry of an index, by its number.
    fn entry(&mut self, index: Value, place: Value, offset: i32) -> Value {
        let place = self.up(place, 2);
        let at = self.build.ins().iadd(index, place);
        let flags = cranelift_codegen::ir::MemFlagsData::trusted().with_readonly();
        self.build.ins().uload32(flags, at, offset)
    }
}
