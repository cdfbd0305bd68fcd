//! Several tables over the same packet, looked up at once.

use crate::{Lpm, RuleTable};
use braid_ir::routes::RouteTable;
use braid_ir::rules::RulePacket;
use braid_ir::value::{Rule, RuleSet};

/// Which address a route table is asked about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The source.
    Src,
    /// The destination.
    Dst,
}

/// A table to be looked up with others.
#[derive(Clone, Copy, Debug)]
pub enum Member<'a> {
    /// A rule set.
    Rules(&'a RuleSet),
    /// A route table, asked about an address of the packet's IP version.
    Routes(&'a RouteTable, Side),
}

/// What one table answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Whether the packet passes, and the number of the rule that decides.
    Rule(bool, u32),
    /// The next hop, if there is a route.
    Hop(Option<u32>),
}

/// Several tables over the same packet, looked up at once. Each answers as it would alone.
#[derive(Clone, Debug)]
pub struct Joint {
    members: Vec<One>,
}

#[derive(Clone, Debug)]
enum One {
    Rules(RuleTable),
    Routes(Lpm, Side),
}

impl Joint {
    /// These tables, numbered from 0.
    #[must_use]
    pub fn new(members: &[Member<'_>]) -> Self {
        let one = |member: &Member<'_>| match *member {
            Member::Rules(set) => One::Rules(RuleTable::new(set)),
            Member::Routes(table, side) => One::Routes(Lpm::new(table), side),
        };
        Self { members: members.iter().map(one).collect() }
    }

    /// The answer of each table, in order; as many as `answers` has places for.
    pub fn lookup(&self, packet: &RulePacket, answers: &mut [Answer]) {
        for (member, answer) in self.members.iter().zip(answers) {
            *answer = member.lookup(packet);
        }
    }

    /// Number of tables.
    #[must_use]
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// Adds a rule to a table of rules (see [`RuleTable::insert`]); does nothing to another.
    pub fn insert_rule(&mut self, member: usize, at: usize, rule: Rule) {
        if let Some(One::Rules(table)) = self.members.get_mut(member) {
            table.insert(at, rule);
        }
    }

    /// Removes a rule from a table of rules (see [`RuleTable::remove`]).
    pub fn remove_rule(&mut self, member: usize, at: usize) -> Option<Rule> {
        match self.members.get_mut(member) {
            Some(One::Rules(table)) => table.remove(at),
            _ => None,
        }
    }

    /// Takes pending changes into the structure itself. Answers are the same before and after.
    pub fn settle(&mut self) {}
}

impl One {
    fn lookup(&self, packet: &RulePacket) -> Answer {
        match self {
            Self::Rules(table) => {
                let (pass, rule) = table.lookup(packet);
                Answer::Rule(pass, rule)
            }
            Self::Routes(table, side) => {
                let addr = match side {
                    Side::Src => packet.src,
                    Side::Dst => packet.dst,
                };
                Answer::Hop(if packet.version == 4 {
                    u32::try_from(addr).ok().and_then(|addr| table.lookup4(addr))
                } else {
                    table.lookup6(addr)
                })
            }
        }
    }
}
