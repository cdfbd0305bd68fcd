//! Scripts: the work that remains for a flow if its path is known.
//!
//! The specialiser finds a path's record template once. Meanwhile it writes a script
//! (`recording.rs`). For later flows of the path, the script alone finds the entries and the
//! constants of the record. Scripts form trees: scripts of packets with the same kind of key share
//! their steps up to the first pin at which their values differ. There, the other script branches
//! off into a strand of its own.

use crate::absences::Keys;
use crate::entry_use::EntryUse;
use crate::findings::Findings;
use crate::host::Functions;
use crate::key::of_kind;
use crate::peel::{Arrived, Inside};
use crate::prefix::{Met, Prefix};
use crate::recording::{Recording, Write};
use crate::registers::{MOST_REGISTERS, Registers};
use crate::script::{Find, MOST_WORDS, Pinned, SlotRef, Step};
use crate::slab::NONE;
use crate::template::Templates;
use braid_ir::engine::Outputs;
use braid_ir::model::Word;
use braid_ir::values::Values;
use braid_packet::rewrite::{SumChanges, WIDE, WIDE_BYTES, Window, wide_window, words};
use braid_packet::{Header, Layout, Packet};
use braid_state::Handle;
use foldhash::HashMap;

/// The largest number of strands of all trees, and of their steps. Further paths get no scripts.
const MOST_STRANDS: usize = 1 << 16;
const MOST_STEPS: usize = 1 << 19;
/// The largest number of templates at the end of a script.
const MOST_ENDS: usize = 16;
/// The number of recordings in a row that may give no script before most recordings are left out.
const FREE_FAILURES: u32 = 8;
/// Afterwards, one run of the specialiser in this number is recorded.
const AMONG: u32 = 16;
/// The number of strands that are freed before each batch of packets.
const FREED_AT_A_TIME: usize = 64;

/// Packets whose scripts form a tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Tree {
    /// The kind of the flow ([`crate::key::kind`]).
    pub(crate) kind: u32,
    pub(crate) worker: u16,
    /// Whether the packet has a transport checksum that covers addresses, and whether the capture
    /// has cut the checksum off.
    sums: [bool; 2],
    /// The headers of the packet inside the tunnel that the flow is in.
    inside: Option<u128>,
    /// The records of these scripts end in front of this function.
    pub(crate) up_to: Option<u16>,
}

impl Tree {
    pub(crate) fn of(kind: u32, worker: u16, Arrived { layout, inside, .. }: Arrived<'_>) -> Self {
        let (layout, inside) = match inside {
            Some(inside) => {
                let present = inside.layout.presence() & !Header::bits(Header::PASSING);
                (inside.layout, Some(present))
            }
            None => (layout, None),
        };
        let sums = [layout.has_pseudo_sum(), layout.lacks_sum()];
        Self { kind, worker, sums, inside, up_to: None }
    }

    /// The tree for records of these packets that end in front of a function.
    pub(crate) fn part(self, node: u16) -> Self {
        Self { up_to: Some(node), ..self }
    }
}

/// The steps of a script from the root of the tree, or from the pin where it branches off, to its
/// end.
struct Strand {
    steps: Box<[Step]>,
    /// The ends of scripts with these steps. Guards decide between them.
    ends: Vec<ScriptEnd>,
    /// Where the specialiser met something that no record contains after these steps.
    met: Option<Met>,
}

/// What a script found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Found {
    /// The parts of the packet's record.
    Known(Known),
    /// The packet's record ends in front of this function. Other scripts find its parts.
    UpTo(u16),
}

/// The strands that begin at a pin, by the value of the pin's register, in order of the values.
type Branches = Vec<(Word, u32)>;

/// The end of a script.
struct ScriptEnd {
    template: u32,
    /// The number of the list of uses that the record has of entries.
    uses: u32,
    /// Uses with bounds, with the number of their entry.
    bounded: Box<[(usize, EntryUse)]>,
    writes: Box<[Write]>,
    pays: bool,
    lookups: u32,
}

/// What a script has found. The rest is in [`Findings`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Known {
    pub(crate) template: u32,
    pub(crate) uses: u32,
    /// Whether a record saves time, and the number of lookups that it replaces.
    pub(crate) pays: bool,
    pub(crate) lookups: u32,
}

impl Found {
    /// The parts of the packet's record.
    pub(crate) fn known(self) -> Option<Known> {
        match self {
            Found::Known(known) => Some(known),
            Found::UpTo(_) => None,
        }
    }
}

/// All scripts.
#[derive(Default)]
pub(crate) struct Scripts {
    roots: HashMap<Tree, u32>,
    strands: Vec<Strand>,
    branches: Vec<Branches>,
    /// The number of steps of all strands.
    steps: usize,
    /// The number of runs of the specialiser since one last gave a script.
    failures: u32,
    /// Scripts that are not valid any more. They are freed little by little.
    old: Vec<(Vec<Strand>, Vec<Branches>)>,
    registers: Registers,
}

impl Scripts {
    /// Removes all scripts, because something has changed that they do not test.
    pub(crate) fn clear(&mut self) {
        if !self.strands.is_empty() {
            self.roots.clear();
            self.steps = 0;
            let branches = std::mem::take(&mut self.branches);
            self.old.push((std::mem::take(&mut self.strands), branches));
        }
    }

    /// Whether there is room for another script.
    fn has_room(&self) -> bool {
        self.strands.len() < MOST_STRANDS && self.steps < MOST_STEPS
    }

    /// Whether to record the next run of the specialiser. While runs give no scripts, most of them
    /// are not recorded, because a recording takes time.
    pub(crate) fn is_wanted(&self) -> bool {
        self.has_room() && (self.failures < FREE_FAILURES || self.failures.is_multiple_of(AMONG))
    }

    /// Notes that a run of the specialiser gave no script.
    pub(crate) fn fail(&mut self) {
        self.failures = self.failures.wrapping_add(1).max(1);
    }

    /// Whether there is memory of removed scripts.
    #[inline]
    pub(crate) fn has_old(&self) -> bool {
        !self.old.is_empty()
    }

    /// Frees some memory of removed scripts.
    pub(crate) fn free_some(&mut self) {
        if let Some((strands, branches)) = self.old.last_mut() {
            strands.truncate(strands.len().saturating_sub(FREED_AT_A_TIME));
            branches.truncate(branches.len().saturating_sub(FREED_AT_A_TIME));
            if strands.is_empty() && branches.is_empty() {
                self.old.pop();
            }
        }
    }

    /// Adds a script that leads to a template. `uses` holds the uses of entries. Does nothing if
    /// there is no room, or if the script does not fit into the tree.
    pub(crate) fn add(
        &mut self,
        tree: Tree,
        recording: &Recording,
        known: Known,
        uses: &[(Handle, EntryUse)],
    ) {
        self.failures = 0;
        let Recording { written, writes, .. } = recording;
        let bounded = (0..).zip(uses).filter(|(_, (_, one))| !one.bounds.is_empty());
        let bounded = bounded.map(|(entry, (_, one))| (entry, one.clone())).collect();
        let Known { template, uses, pays, lookups } = known;
        let end =
            ScriptEnd { template, uses, bounded, writes: writes.as_slice().into(), pays, lookups };
        let last = |strand: &mut Strand| {
            let is_known = strand.ends.iter().any(|one| one.template == template);
            if !is_known && strand.ends.len() < MOST_ENDS {
                strand.ends.push(end);
            }
        };
        self.lead(tree, written, recording.registers(), last);
    }

    /// Adds a script that leads to a place which no record contains. As for [`Self::add`].
    pub(crate) fn add_met(&mut self, tree: Tree, prefix: &Prefix) {
        let last = |strand: &mut Strand| strand.met = Some(prefix.met.clone());
        self.lead(tree, &prefix.written, prefix.registers, last);
    }

    /// Adds steps that use this number of registers to a tree, and lets `last` change the strand at
    /// their end.
    #[expect(clippy::cast_possible_truncation, reason = "there are at most `MOST_STRANDS` strands")]
    fn lead(
        &mut self,
        tree: Tree,
        written: &[Step],
        registers: usize,
        last: impl FnOnce(&mut Strand),
    ) {
        if !self.has_room() || registers > MOST_REGISTERS {
            return;
        }
        let new = self.strands.len() as u32;
        let Some(root) = self.roots.get(&tree).copied() else {
            self.roots.insert(tree, new);
            self.add_strand(written, last);
            return;
        };
        let (mut at, mut from) = (root, 0);
        while let Some(strand) = self.strands.get_mut(at as usize) {
            let rest = written.get(from..).unwrap_or(&[]);
            let same = strand.steps.iter().zip(rest).take_while(|(a, b)| a.is_like(b)).count();
            if same == strand.steps.len() && same == rest.len() {
                last(strand);
                return;
            }
            let (Some(old), Some(other)) = (strand.steps.get_mut(same), rest.get(same)) else {
                return;
            };
            let (Step::Pin { what, branch, .. }, Step::Pin { what: other, value, .. }) =
                (old, other)
            else {
                return;
            };
            if what != other {
                return;
            }
            from += same + 1;
            if *branch == NONE {
                *branch = self.branches.len() as u32;
                self.branches.push(Vec::new());
            }
            let Some(branches) = self.branches.get_mut(*branch as usize) else { return };
            match branches.binary_search_by_key(value, |(value, _)| *value) {
                Ok(known) => at = branches.get(known).map_or(NONE, |(_, strand)| *strand),
                Err(place) => {
                    branches.insert(place, (*value, new));
                    self.add_strand(written.get(from..).unwrap_or(&[]), last);
                    return;
                }
            }
        }
    }

    fn add_strand(&mut self, steps: &[Step], last: impl FnOnce(&mut Strand)) {
        self.steps += steps.len();
        let mut strand = Strand { steps: steps.into(), ends: Vec::new(), met: None };
        last(&mut strand);
        self.strands.push(strand);
    }

    /// Runs the script for a packet. Returns `None` if no script knows the packet's path; the
    /// findings then have no meaning.
    pub(crate) fn run<F: Functions>(
        &mut self,
        tree: Tree,
        (functions, out): (&mut F, &mut dyn Outputs),
        at_hand: Arrived<'_>,
        templates: &Templates,
        findings: &mut Findings,
    ) -> Option<Found> {
        let mut at = *self.roots.get(&tree)?;
        let Findings { absent, handles, .. } = findings;
        absent.clear();
        handles.clear();
        let Self { strands, branches, registers, .. } = self;
        let Arrived { packet, layout, inside } = at_hand;
        let now = packet.time_ns.max(functions.now());
        let mut run = Run {
            worker: tree.worker,
            functions,
            out,
            packet,
            layout,
            inside,
            now,
            head: wide_window(packet.data()),
            registers,
            found: handles,
            absent,
        };
        let Strand { ends, met, .. } = loop {
            let strand = strands.get(at as usize)?;
            match run.steps(&strand.steps)? {
                Some((branch, value)) => at = next(branches, branch, value)?,
                None => break strand,
            }
        };
        if let Some(met) = met.as_ref().filter(|met| met.fits(packet)) {
            return Some(Found::UpTo(met.node));
        }
        let (.., is_narrow) = of_kind(tree.kind);
        for end in ends {
            let (template, path) = templates.get(end.template)?;
            if !template.fits(at_hand) || !end.bounded.iter().all(|one| run.is_within(one)) {
                continue;
            }
            let (mut bytes, mut changes) = (run.head, SumChanges::of(run.layout, path.outline));
            let mut stored = [0; WIDE_BYTES];
            for Write { bits, from, is_stored } in &end.writes {
                let value = run.registers.get(*from);
                if *is_stored {
                    bits.set(&mut stored, value);
                    continue;
                }
                let old = bits.number_in(&bytes);
                bits.set(&mut bytes, value);
                changes.add((bits.at, bits.len), old, bits.number_in(&bytes));
            }
            let keep = path.rewrite.keep;
            findings.sums = changes.sums();
            findings.bytes = words::<WIDE>(&bytes);
            let stored = words::<WIDE>(&stored);
            let new = findings.bytes.iter_mut().zip(keep).zip(stored);
            new.for_each(|((word, keep), stored)| *word = *word & !keep | stored);
            if is_narrow && !has_first(&findings.bytes, path.first) {
                continue;
            }
            let ScriptEnd { template, uses, pays, lookups, .. } = *end;
            return Some(Found::Known(Known { template, uses, pays, lookups }));
        }
        None
    }
}

/// Whether these are the first words of a packet.
fn has_first(bytes: &Window<WIDE>, first: [u64; 2]) -> bool {
    bytes.first_chunk() == Some(&first)
}

/// The strand that begins at a branch for a value.
fn next(branches: &[Branches], branch: u32, value: Word) -> Option<u32> {
    let branches = branches.get(branch as usize)?;
    let place = branches.binary_search_by_key(&value, |(value, _)| *value).ok()?;
    branches.get(place).map(|(_, strand)| *strand)
}

/// A script that runs.
struct Run<'a, F> {
    worker: u16,
    functions: &'a mut F,
    out: &'a mut dyn Outputs,
    packet: &'a Packet,
    layout: &'a Layout,
    /// The packet inside a tunnel, before the script has left the tunnel.
    inside: Option<Inside<'a>>,
    now: u64,
    /// The packet's first bytes.
    head: [u8; WIDE_BYTES],
    registers: &'a mut Registers,
    found: &'a mut Vec<Handle>,
    absent: &'a mut Keys,
}

impl<F: Functions> Run<'_, F> {
    /// Executes the steps of a strand. Returns the branch at which the script may go on elsewhere,
    /// with the value that decides, if a pin fails. `None` if another test fails, or if a step
    /// cannot be executed: the script does not go on.
    #[expect(clippy::option_option, reason = "a script ends, goes on elsewhere, or is over")]
    fn steps(&mut self, steps: &[Step]) -> Option<Option<(u32, Word)>> {
        for step in steps {
            match step {
                Step::Pin { what, value, branch } => {
                    let is = self.pinned(what)?;
                    if is != *value {
                        return Some(Some((*branch, is)));
                    }
                }
                Step::Slot { out, from } => self.registers.set(*out, self.slot(*from)?),
                Step::Calc { out, calc } => self.registers.set(*out, calc.run(self.registers)?),
                Step::Const { out, value } => self.registers.set(*out, *value),
                Step::Bits { out, bits } => self.registers.set(*out, bits.get(&self.head)),
                _ => self.rare(step)?,
            }
        }
        Some(None)
    }

    /// The value of something that is pinned. `None` for a fault, or if an entry has another number
    /// than on the recorded path.
    #[inline(always)]
    fn pinned(&mut self, what: &Pinned) -> Option<Word> {
        match what {
            Pinned::Register(register) => Some(self.registers.get(*register)),
            Pinned::Calc { out, calc } => {
                let is = calc.run(self.registers)?;
                self.registers.set(*out, is);
                Some(is)
            }
            Pinned::Find(find) => self.find(find).map(Word::from),
        }
    }

    /// Executes a step that few scripts have.
    #[inline(never)]
    fn rare(&mut self, step: &Step) -> Option<()> {
        let (out, value) = match step {
            Step::Field { out, field } => (*out, self.packet.get(self.layout, *field)?),
            Step::Length { out, longer } => {
                (*out, Word::try_from(i64::from(self.packet.wire_len) + longer).ok()?)
            }
            Step::Time { out } => (*out, self.now.into()),
            Step::Sum { out, from, sum } => (*out, sum.of(self.slot(*from)?, self.packet.wire_len)),
            Step::Call(call) => {
                return call.run(self.functions, self.worker, self.out, self.registers);
            }
            Step::Classify(one) => {
                let values = Values { words: self.registers.all(), types: &[] };
                let packet = one.packet.as_ref().map(|fields| values.rule_packet(fields));
                let (passes, rule) = self.functions.classify(one.node, one.param, packet.as_ref());
                self.registers.set(one.pass, passes.into());
                (one.rule, rule.into())
            }
            Step::Search(search) => {
                let chain = self.functions.chain();
                return search.finds_nothing(chain, self.packet, self.layout).then_some(());
            }
            Step::MayBound { out, from: SlotRef { entry, table, slot, .. } } => {
                let handle = *self.found.get(*entry)?;
                let state = self.functions.state();
                let records = state.dependents();
                (*out, records.may_bound(state.tables(), (*table, handle), *slot).into())
            }
            Step::Leave { peel, less } => {
                let is_it = |inside: &Inside<'_>| (inside.peel, inside.less) == (*peel, *less);
                let inside = self.inside.take().filter(is_it)?;
                (self.packet, self.layout) = (inside.packet, inside.layout);
                self.head = wide_window(self.packet.data());
                return Some(());
            }
            Step::Holds { from, value } => {
                return (self.slot(*from)? == self.registers.get(*value)).then_some(());
            }
            Step::NotLater { from } => {
                let now = Word::from(self.functions.now());
                return (self.slot(*from)? <= now).then_some(());
            }
            _ => return None,
        };
        self.registers.set(out, value);
        Some(())
    }

    /// Looks an entry up. Returns whether it is there. `None` if the entry has another number than
    /// on the recorded path.
    #[inline(always)]
    fn find(&mut self, find: &Find) -> Option<bool> {
        // These are the most common sizes: addresses and ports.
        if let Some(key) = find.key::<1>(self.registers) {
            self.find_key(find, &key)
        } else if let Some(key) = find.key::<2>(self.registers) {
            self.find_key(find, &key)
        } else {
            let mut key = [0; MOST_WORDS];
            let key = find.any_key(self.registers, &mut key)?;
            self.find_key(find, key)
        }
    }

    /// As [`Self::find`], with the packed key. Inlined, so that the compiler knows the key's size.
    #[inline(always)]
    fn find_key(&mut self, find: &Find, key: &[u64]) -> Option<bool> {
        let entry = self.functions.parts().1.find(find.table, key);
        match entry {
            Some(entry) => {
                let is_it = |at: &&usize| self.found.get(**at) == Some(&entry);
                let number = match find.others.iter().find(is_it) {
                    Some(known) => *known,
                    None => {
                        self.found.push(entry);
                        self.found.len() - 1
                    }
                };
                // Where the entry must be absent, its number does not matter.
                if number != find.entry {
                    return None;
                }
            }
            None => self.absent.add(find.table, key)?,
        }
        Some(entry.is_some())
    }

    /// The content of a slot of an entry that was found.
    #[inline(always)]
    fn slot(&self, from: SlotRef) -> Option<Word> {
        let handle = *self.found.get(from.entry)?;
        Some(from.get(self.functions.state().slots(from.table, handle)?))
    }

    /// Whether the bounded slots of an entry stay within their bounds with this packet, and records
    /// may have bounds on them.
    fn is_within(&self, (entry, one): &(usize, EntryUse)) -> bool {
        let state = self.functions.state();
        let (Some(handle), table) = (self.found.get(*entry).copied(), one.table) else {
            return false;
        };
        one.bounds.iter().all(|bound| {
            let may = state.dependents().may_bound(state.tables(), (table, handle), bound.slot);
            let shape = state.slot_shape(table);
            let value = self.slot(SlotRef::new(*entry, table, shape, bound.slot));
            may && value.is_some_and(|value| one.stays_within(*bound, value, self.packet.wire_len))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::Mutants;

    #[test]
    fn few_runs_are_recorded_while_none_gives_a_script() {
        let mut scripts = Scripts::default();
        let mut recorded = 0;
        for _ in 0..FREE_FAILURES + 100 * AMONG {
            recorded += u32::from(scripts.is_wanted());
            scripts.fail();
        }
        assert_eq!(recorded, FREE_FAILURES + 100);
        let mut recording = Recording::default();
        recording.start(false, Mutants::default());
        let known = Known { template: 0, uses: 0, pays: true, lookups: 1 };
        let tree = Tree { kind: 0, worker: 0, sums: [true, false], inside: None, up_to: None };
        scripts.add(tree, &recording, known, &[]);
        assert!((0..FREE_FAILURES).all(|_| {
            let is_wanted = scripts.is_wanted();
            scripts.fail();
            is_wanted
        }));
    }
}
