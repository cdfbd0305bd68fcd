//! A host that records its calls and answers them by fixed rules.

use crate::random::Random;
use braid_ir::engine::Fault;
use braid_ir::model::{Op, ValueId};
use braid_ir::residual::{Residual, What};
use braid_ir::rules::{RulePacket, RuleWords};
use braid_ir::show::max_of;
use braid_jit::{Call, Host};
use std::collections::BTreeMap;

/// A call of the host.
#[derive(Clone, PartialEq, Debug)]
pub enum Asked {
    Step(u32, u32, Vec<u128>),
    Find(u32, Vec<u64>),
    Read(u32, u64),
    Set(u32, Vec<u64>, Vec<u64>),
    Put(u32, Vec<u64>, u32, u128),
    Classify(u32, RulePacket),
    CountRule(u32, u32),
    PrefetchRules(u32, RulePacket),
    Route(u32, u128, bool),
    AddressGroup(u32, u128),
    Member(u32, u64, u32),
    Take(u32),
    HasRoom(u32),
    Announce(u32, Vec<u64>),
    Prefetch(u32, Vec<u64>),
}

/// The answers: tags have the values `tags`; `seed` determines other results of steps.
pub struct Recorder {
    pub residual: Residual,
    pub tags: Vec<u128>,
    pub seed: u64,
    /// Faults of steps.
    pub faults: BTreeMap<(u32, u32), Fault>,
    /// Entries by table and key: handle and slots.
    pub entries: BTreeMap<(u32, Vec<u64>), (u64, Vec<u64>)>,
    pub asked: Vec<Asked>,
    pub room: bool,
    /// Tables without a route for addresses with these lowest two bits, in addition to even
    /// addresses.
    pub no_route: Vec<(u32, u128)>,
    /// Whether no address has an address group.
    pub classless: bool,
    /// Whether steps get the same answers for routes and members as the special calls do.
    pub routes_by_step: bool,
    pub lists: Vec<Vec<u128>>,
}

impl Recorder {
    pub fn new(residual: &Residual) -> Self {
        Recorder {
            residual: residual.clone(),
            tags: Vec::new(),
            seed: 1,
            faults: BTreeMap::new(),
            entries: BTreeMap::new(),
            asked: Vec::new(),
            room: true,
            no_route: Vec::new(),
            classless: false,
            routes_by_step: false,
            lists: Vec::new(),
        }
    }

    fn answer(&self, block: u32, step: u32, out: ValueId) -> u128 {
        let mut random = Random::new(
            self.seed ^ u64::from(block) << 40 ^ u64::from(step) << 20 ^ u64::from(out.0),
        );
        random.value(self.residual.values[out.index()].width)
    }

    fn hop(&self, number: u32, addr: u128) -> Option<u32> {
        let has = addr & 1 == 1 && !self.no_route.contains(&(number, addr & 3));
        has.then_some(u32::MAX - 1)
    }

    /// The step of the call; `None` for the end of a block.
    fn what(&self, block: u32, step: u32) -> Option<What> {
        let steps = &self.residual.blocks[block as usize].steps;
        steps.get(step as usize).map(|step| step.what.clone())
    }
}

impl Host for Recorder {
    fn step(&mut self, call: Call<'_>) -> Result<(), Fault> {
        let Call { block, step, args, outs, packet, layout } = call;
        assert!(outs.iter().all(|out| *out == 0), "results are zeros at first");
        self.asked.push(Asked::Step(block, step, args.to_vec()));
        if let Some(fault) = self.faults.get(&(block, step)) {
            return Err(*fault);
        }
        match self.what(block, step) {
            None => outs[0] = u128::from(self.room),
            Some(What::Op(Op::LoadTag { out, tag })) => {
                let width = self.residual.values[out.index()].width;
                outs[0] = self.tags[tag.index()] & max_of(width);
            }
            Some(What::Op(Op::Load { field, .. })) => {
                outs[0] = packet.get(layout, field).ok_or(Fault::Truncated)?;
            }
            Some(What::Op(Op::Route { param, .. })) if self.routes_by_step => {
                let hop = self.hop(300 + param.0, args[0]);
                (outs[0], outs[1]) = (hop.is_some().into(), hop.unwrap_or(0).into());
            }
            Some(What::Op(Op::ListGet { column, .. })) if self.routes_by_step => {
                let row = usize::try_from(args[0]).ok().and_then(|at| self.lists.get(at));
                outs[0] = row.ok_or(Fault::Index)?[column as usize];
            }
            Some(What::Op(Op::PushVlan { .. })) => assert!(packet.push_vlan(args[0] as u16)),
            Some(What::Op(Op::PopVlan)) => assert!(packet.pop_vlan()),
            Some(What::Parse) => *layout = packet.parse(),
            Some(What::Write(fields)) => {
                for ((field, _), value) in fields.iter().zip(args) {
                    assert!(packet.set(layout, *field, *value));
                }
            }
            Some(what) => {
                for (slot, out) in outs.iter_mut().zip(what.outs()) {
                    *slot = self.answer(block, step, out);
                }
            }
        }
        Ok(())
    }

    fn find(&mut self, number: u32, key: &[u64]) -> Option<(u64, &[u64])> {
        self.asked.push(Asked::Find(number, key.to_vec()));
        let (handle, slots) = self.entries.get(&(number, key.to_vec()))?;
        Some((*handle, slots))
    }

    fn read(&mut self, number: u32, entry: u64) -> &[u64] {
        self.asked.push(Asked::Read(number, entry));
        let mut entries = self.entries.iter();
        let entry = entries.find(|((table, _), (handle, _))| *table == number && *handle == entry);
        entry.map_or(&[], |(_, (_, slots))| slots)
    }

    fn set(&mut self, number: u32, key: &[u64], slots: &[u64]) -> bool {
        self.asked.push(Asked::Set(number, key.to_vec(), slots.to_vec()));
        self.room
    }

    fn put(&mut self, number: u32, key: &[u64], slot: u32, value: u128) -> Result<bool, Fault> {
        self.asked.push(Asked::Put(number, key.to_vec(), slot, value));
        if self.entries.is_empty() { Err(Fault::NoEntry) } else { Ok(self.room) }
    }

    fn classify(&mut self, number: u32, packet: &RulePacket) -> (bool, u32) {
        self.asked.push(Asked::Classify(number, *packet));
        (packet.proto & 1 == 1, u32::MAX - number)
    }

    fn count_rule(&mut self, number: u32, rule: u32) {
        self.asked.push(Asked::CountRule(number, rule));
    }

    fn route(&mut self, number: u32, addr: u128, wide: bool) -> Option<u32> {
        self.asked.push(Asked::Route(number, addr, wide));
        self.hop(number, addr)
    }

    fn address_group(&mut self, number: u32, addr: u128) -> u32 {
        self.asked.push(Asked::AddressGroup(number, addr));
        if self.classless { 4 } else { (addr & 3) as u32 }
    }

    fn member(&mut self, number: u32, index: u64, column: u32) -> Option<u128> {
        self.asked.push(Asked::Member(number, index, column));
        (index < 3).then(|| u128::from(index * 10 + u64::from(column)))
    }

    fn take(&mut self, number: u32) -> Option<u128> {
        self.asked.push(Asked::Take(number));
        self.room.then_some(1 << 60 | 7)
    }

    fn has_room(&mut self, number: u32) -> bool {
        self.asked.push(Asked::HasRoom(number));
        self.room
    }

    fn prefetch_classify(&mut self, number: u32, words: &RuleWords) {
        self.asked.push(Asked::PrefetchRules(number, words.packet()));
    }

    fn announce(&mut self, number: u32, key: &[u64]) {
        self.asked.push(Asked::Announce(number, key.to_vec()));
    }

    fn prefetch(&mut self, number: u32, key: &[u64]) {
        self.asked.push(Asked::Prefetch(number, key.to_vec()));
    }
}
