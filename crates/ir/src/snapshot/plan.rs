//! The plan of a change of chains: what of a snapshot a chain can take, and what is lost and why.

use super::data::{FunctionState, ParamState, ShardState, Snapshot, TableState};
use super::schema;
use crate::chain::{Chain, Node};
use crate::model::{Granularity, Model, ParamDecl, StateDecl, Timer};
use crate::text;
use crate::value::ParamValue;
use std::fmt;

/// What of a snapshot a chain can take.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// The functions of the chain in order, then the functions of the snapshot that are lost.
    pub functions: Vec<FunctionPlan>,
    /// The interfaces of the snapshot that the chain does not have.
    pub interfaces: Vec<String>,
}

/// What becomes of a function and its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionPlan {
    /// The function's name.
    pub name: String,
    /// What becomes of it.
    pub fate: Fate,
    /// Its parts, if it moves.
    pub parts: Vec<Part>,
    /// Its number in the snapshot.
    pub(super) from: Option<usize>,
}

/// A part of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Its kind.
    pub what: What,
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub fate: Fate,
    /// The number of entries, taken members or packets that move or are lost.
    pub count: u64,
    /// Its number in the snapshot, among the parts of its kind.
    pub(super) from: Option<usize>,
}

/// The kinds of parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A state table.
    Table,
    /// A parameter.
    Param,
    /// A queue.
    Queue,
    /// A timer.
    Timer,
    /// The counters of the rows.
    Rows,
    /// The random generators and pools.
    Shards,
    /// The memory of a native function.
    Memory,
    /// What the TCP stack of a stream function holds.
    Stack,
}

/// What becomes of a function or a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It moves.
    Moves,
    /// It moves, with this consequence.
    MovesBut(String),
    /// The chain has it, but the snapshot does not.
    New,
    /// It does not move, for this reason.
    Lost(String),
}

impl Fate {
    /// Whether it moves.
    #[must_use]
    pub fn moves(&self) -> bool {
        matches!(self, Fate::Moves | Fate::MovesBut(_))
    }
}

impl Plan {
    /// The plan for a snapshot and a chain. It changes nothing.
    #[must_use]
    pub fn new(snapshot: &Snapshot, chain: &Chain) -> Self {
        let mut functions: Vec<_> =
            chain.nodes.iter().map(|node| plan_function(snapshot, node, chain)).collect();
        let is_known = |name: &str| chain.nodes.iter().any(|node| node.name == name);
        let gone = snapshot.functions.iter().filter(|old| !is_known(&old.name));
        functions.extend(gone.map(|old| FunctionPlan {
            name: old.name.clone(),
            fate: Fate::Lost("the chain has no function of this name".to_owned()),
            parts: Vec::new(),
            from: None,
        }));
        let has = |name: &str| chain.interfaces.iter().any(|one| one.name == name);
        let interfaces = snapshot.totals.out.keys().filter(|name| !has(name)).cloned();
        Self { functions, interfaces: interfaces.collect() }
    }

    /// Whether everything moves, and the chain has nothing new.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let fates = self.functions.iter().flat_map(|function| {
            let parts = function.parts.iter().map(|part| &part.fate);
            parts.chain([&function.fate])
        });
        self.interfaces.is_empty() && fates.into_iter().all(Fate::moves)
    }

    /// Whether anything of the snapshot is lost.
    #[must_use]
    pub fn loses(&self) -> bool {
        let lost = |fate: &Fate| matches!(fate, Fate::Lost(_));
        self.functions.iter().any(|function| {
            lost(&function.fate) || function.parts.iter().any(|part| lost(&part.fate))
        })
    }
}

fn plan_function(snapshot: &Snapshot, node: &Node, chain: &Chain) -> FunctionPlan {
    let model = &*node.model;
    let found = snapshot.functions.iter().enumerate().find(|(_, old)| old.name == node.name);
    let (fate, parts, from) = match found {
        None => (Fate::New, Vec::new(), None),
        Some((_, old)) if old.model != model.name => {
            let why =
                format!("it was an instance of `{}` and is one of `{}`", old.model, model.name);
            (Fate::Lost(why), Vec::new(), None)
        }
        Some((at, old)) => {
            let steered_anew = snapshot.steering != schema::steering(chain);
            let parts = Parts { old, node, model, workers: chain.workers, steered_anew };
            (Fate::Moves, parts.plan(), Some(at))
        }
    };
    FunctionPlan { name: node.name.clone(), fate, parts, from }
}

/// A function of a snapshot and the function of a chain that takes its state.
struct Parts<'a> {
    old: &'a FunctionState,
    node: &'a Node,
    model: &'a Model,
    workers: u16,
    /// Whether packets went to other workers before.
    steered_anew: bool,
}

impl Parts<'_> {
    fn plan(&self) -> Vec<Part> {
        let mut parts = self.tables();
        let shards = self.shards(&parts);
        if !shards.fate.moves() && self.has_pools() {
            let why = "its pools do not move, and its entries may hold members of pools";
            parts.iter_mut().for_each(|table| lose(table, why));
        }
        parts.push(shards);
        let params = self.model.params.iter().zip(&self.node.params);
        parts.extend(params.map(|(decl, value)| self.param(decl, value)));
        parts.extend(self.queues());
        let timers = self.model.timers.iter().enumerate();
        parts.extend(timers.map(|(at, timer)| self.timer(at, timer)));
        parts.push(self.rows());
        parts.extend(self.memory());
        parts.extend(self.stack());
        parts
    }

    /// The tables. Tables whose entries live together move together.
    fn tables(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = self.model.state.iter().map(|decl| self.table(decl)).collect();
        for old in self.old.tables.iter().enumerate() {
            if !self.model.state.iter().any(|decl| decl.name == old.1.name) {
                let fate = Fate::Lost("the function has no such table any more".to_owned());
                parts.push(self.table_part(old, fate));
            }
        }
        let moves = |parts: &[Part], at: usize| {
            parts.iter().any(|part| part.from == Some(at) && part.fate.moves())
        };
        let mut again = true;
        while std::mem::take(&mut again) {
            for (at, old) in self.old.tables.iter().enumerate() {
                let Some(with) = old.lives_with.map(|with| with as usize) else { continue };
                if moves(&parts, at) != moves(&parts, with) {
                    again = true;
                    let why = "its entries live together with those of a table that does not move";
                    let both = parts.iter_mut();
                    both.filter(|part| part.from == Some(at) || part.from == Some(with))
                        .for_each(|part| lose(part, why));
                }
            }
        }
        parts
    }

    fn table(&self, decl: &StateDecl) -> Part {
        let found = self.old.tables.iter().enumerate().find(|(_, old)| old.name == decl.name);
        let Some((at, old)) = found else { return new_part(What::Table, &decl.name) };
        let schema = text::state_schema(self.model, decl);
        let fate = if old.schema != schema {
            Fate::Lost(format!("its schema was `{}` and is `{schema}`", old.schema))
        } else if decl.sharded && self.shards_differ() {
            Fate::Lost(self.divided())
        } else if let Some(why) = self.held_differs() {
            Fate::Lost(why)
        } else {
            self.room(decl, old)
        };
        self.table_part((at, old), fate)
    }

    /// The number of a table's entries, in the snapshot or in the engine.
    fn count(&self, table: &TableState) -> u64 {
        match self.old.stays {
            true => table.counters.entries,
            false => table.entries.len() as u64,
        }
    }

    fn table_part(&self, (at, old): (usize, &TableState), fate: Fate) -> Part {
        let count = self.count(old);
        Part { what: What::Table, name: old.name.clone(), fate, count, from: Some(at) }
    }

    /// Whether all entries of a table fit. The entry of a global table does, on each worker.
    fn room(&self, decl: &StateDecl, old: &TableState) -> Fate {
        if decl.granularity == Granularity::Global {
            return Fate::Moves;
        }
        let capacity = decl.capacity.value(&self.node.params);
        let count = u128::from(self.count(old));
        if count <= capacity {
            return Fate::Moves;
        }
        Fate::MovesBut(format!(
            "it has room for {capacity} entries, {} fewer than there are; none is lost, and new \
             ones are refused or replace the oldest",
            count - capacity
        ))
    }

    fn shards_differ(&self) -> bool {
        let count = usize::from(self.model.shards(self.workers));
        self.old.shards.len() != count || (count > 1 && self.steered_anew)
    }

    fn divided(&self) -> String {
        let (before, now) = (self.old.shards.len(), self.model.shards(self.workers));
        if before == usize::from(now) {
            return "its packets went to workers by another rule".to_owned();
        }
        format!("it was divided among {before} workers and is among {now}")
    }

    /// The first parameter with members that entries may hold, if its type has changed.
    fn held_differs(&self) -> Option<String> {
        let old: Vec<_> =
            self.old.params.iter().filter(|param| schema::is_held(&param.ty)).collect();
        let new = self.model.params.iter().filter(|decl| schema::is_held(&decl.ty));
        let new: Vec<_> = new.collect();
        let differs = |old: &ParamState| {
            !new.iter().any(|decl| (&decl.name, &decl.ty) == (&old.name, &old.ty))
        };
        let gone = old.iter().find(|old| differs(old)).map(|old| &old.name);
        let added = new.iter().find(|decl| !old.iter().any(|old| old.name == decl.name));
        let name = gone.or(added.map(|decl| &decl.name))?;
        Some(format!("its entries may hold members of `{name}`, which has another type"))
    }

    fn has_pools(&self) -> bool {
        self.old.pools().next().is_some()
    }

    /// The random generators and pools. Pools move only if all tables do: nobody would ever return
    /// a member that only a lost entry holds.
    fn shards(&self, tables: &[Part]) -> Part {
        let taken = self.old.shards.iter().flat_map(|shard| &shard.pools);
        let lost = tables.iter().find(|table| matches!(table.fate, Fate::Lost(_)));
        let fate = if self.shards_differ() {
            Fate::Lost(self.divided())
        } else if let (Some(lost), true) = (lost, self.has_pools()) {
            Fate::Lost(format!("the entries of `{}` do not move", lost.name))
        } else if let (Some(why), true) = (self.held_differs(), self.has_pools()) {
            Fate::Lost(why)
        } else {
            Fate::Moves
        };
        Part {
            what: What::Shards,
            name: String::new(),
            fate,
            count: taken.map(|pool| pool.taken.len() as u64).sum(),
            from: None,
        }
    }

    fn param(&self, decl: &ParamDecl, value: &ParamValue) -> Part {
        let found = self.old.params.iter().enumerate().find(|(_, old)| old.name == decl.name);
        let Some((from, old)) = found else { return new_part(What::Param, &decl.name) };
        let configured = old.configured.as_ref().unwrap_or(&old.value);
        let fate = match (old.ty == decl.ty, configured == value, &old.configured) {
            (false, ..) => Fate::Lost("it has another type".to_owned()),
            _ if old.is_secret() => Fate::MovesBut("it gets the keys of the chain".to_owned()),
            (true, true, None) => Fate::Moves,
            (true, true, Some(_)) => {
                Fate::MovesBut("it keeps the value that it got while the chain ran".to_owned())
            }
            (true, false, None) => Fate::MovesBut("it gets the chain's new value".to_owned()),
            (true, false, Some(_)) => Fate::MovesBut(
                "it gets the chain's new value instead of the value that it got while the chain ran"
                    .to_owned(),
            ),
        };
        Part { what: What::Param, name: decl.name.clone(), fate, count: 0, from: Some(from) }
    }

    fn queues(&self) -> Vec<Part> {
        let olds = self.old.queues.iter().enumerate();
        let part =
            |(at, name, fate, count)| Part { what: What::Queue, name, fate, count, from: Some(at) };
        let find = |name: &str| olds.clone().find(|(_, old)| old.name == name);
        let mut parts: Vec<_> = self
            .model
            .queues
            .iter()
            .map(|decl| match find(&decl.name) {
                None => new_part(What::Queue, &decl.name),
                Some((at, old)) => {
                    part((at, decl.name.clone(), Fate::Moves, old.packets.len() as u64))
                }
            })
            .collect();
        let gone = olds.filter(|(_, old)| !self.model.queues.iter().any(|q| q.name == old.name));
        parts.extend(gone.map(|(at, old)| {
            let fate = Fate::Lost("the function has no such queue any more".to_owned());
            part((at, old.name.clone(), fate, old.packets.len() as u64))
        }));
        parts
    }

    fn timer(&self, at: usize, timer: &Timer) -> Part {
        let period = text::period(self.model, timer);
        match self.old.timers.get(at).filter(|old| old.period == period) {
            None => new_part(What::Timer, &period),
            Some(_) => Part {
                what: What::Timer,
                name: period,
                fate: Fate::Moves,
                count: 0,
                from: Some(at),
            },
        }
    }

    fn rows(&self) -> Part {
        let old = self.old.rows.iter().map(|row| (&row.label, &row.text));
        let same = old.eq(self.model.rows.iter().map(|row| (&row.label, &row.text)));
        let fate = match same {
            true => Fate::Moves,
            false => Fate::Lost("its rows have changed, so they count from 0".to_owned()),
        };
        Part { what: What::Rows, name: String::new(), fate, count: 0, from: None }
    }

    fn memory(&self) -> Option<Part> {
        let function = self.model.native.as_ref().map(|native| &native.reference.function);
        let name = function.or(self.old.native.as_ref())?.clone();
        let mut memories = self.old.shards.iter().map(|shard| shard.memory.as_ref());
        let fate = if self.old.native.as_ref() != function {
            Fate::Lost("it calls another native function".to_owned())
        } else if self.shards_differ() {
            Fate::Lost(self.divided())
        } else if memories.any(|memory| memory.is_none()) {
            Fate::Lost("the function cannot save its memory".to_owned())
        } else {
            Fate::Moves
        };
        let count = self.bytes(|shard| shard.memory.as_ref());
        Some(Part { what: What::Memory, name, fate, count, from: None })
    }

    fn stack(&self) -> Option<Part> {
        let count = self.bytes(|shard| shard.stack.as_ref());
        let fate = match (count > 0, self.model.is_stream()) {
            (false, false) => return None,
            (false, true) => Fate::New,
            (true, false) => Fate::Lost("it is no stream function any more".to_owned()),
            (true, true) if self.shards_differ() => Fate::Lost(self.divided()),
            (true, true) => Fate::Moves,
        };
        Some(Part { what: What::Stack, name: String::new(), fate, count, from: None })
    }

    /// The number of bytes of a part that all shards have saved.
    fn bytes(&self, of: impl Fn(&ShardState) -> Option<&Vec<u8>>) -> u64 {
        self.old.shards.iter().filter_map(of).map(|bytes| bytes.len() as u64).sum()
    }
}

fn new_part(what: What, name: &str) -> Part {
    Part { what, name: name.to_owned(), fate: Fate::New, count: 0, from: None }
}

fn lose(part: &mut Part, why: &str) {
    if part.fate.moves() {
        part.fate = Fate::Lost(why.to_owned());
    }
}

/// A line for each function and each part that does not simply move, and a line with the number of
/// entries of each table.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for function in &self.functions {
            writeln!(f, "{}", function)?;
        }
        for interface in &self.interfaces {
            writeln!(f, "interface `{interface}`: the chain has no such interface")?;
        }
        Ok(())
    }
}

impl fmt::Display for FunctionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.name, self.fate)?;
        for part in self.parts.iter().filter(|part| part.is_told()) {
            write!(f, "\n  {part}")?;
        }
        Ok(())
    }
}

impl Part {
    /// Whether the plan shows it: only tables and queues with contents are shown when they simply
    /// move.
    fn is_told(&self) -> bool {
        let has_contents =
            matches!(self.what, What::Table | What::Queue | What::Memory | What::Stack);
        match self.fate {
            Fate::Moves => has_contents && self.count > 0,
            Fate::MovesBut(_) | Fate::Lost(_) => true,
            Fate::New => self.what == What::Table,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            What::Table => write!(f, "table `{}` ({} entries)", self.name, self.count)?,
            What::Param => write!(f, "parameter `{}`", self.name)?,
            What::Queue => write!(f, "queue `{}` ({} packets)", self.name, self.count)?,
            What::Timer => write!(f, "timer of {}", self.name)?,
            What::Rows => f.write_str("counters of rows")?,
            What::Shards => f.write_str("pools and random generators")?,
            What::Memory => write!(f, "memory of `{}` ({} bytes)", self.name, self.count)?,
            What::Stack => write!(f, "TCP stack ({} bytes)", self.count)?,
        }
        write!(f, " {}", self.fate)
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fate::Moves => f.write_str("moves"),
            Fate::MovesBut(what) => write!(f, "moves: {what}"),
            Fate::New => f.write_str("is new"),
            Fate::Lost(why) => write!(f, "is lost: {why}"),
        }
    }
}
