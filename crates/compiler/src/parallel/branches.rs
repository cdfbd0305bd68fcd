//! Turns a layout into the graph: decides which branches share a version of the packet and which
//! get a copy (NFP §4.2), and how the merger combines the versions (§5.3).

use super::action::Action;
use super::depend::Parallel;
use super::plan::{Layout, Plan};
use super::versions::{Sharing, Versions};
use braid_ir::service_graph::{Branch, Extent, Fork, Merge, Node, Operation, Part, Verdict};

/// A predicate on actions.
type Is<'a> = &'a dyn Fn(&Action) -> bool;

/// A branch that has no version yet.
struct Draft<'l> {
    /// The branch's functions, in the order of the rules.
    functions: Vec<usize>,
    layout: Option<&'l Layout>,
}

impl Plan<'_> {
    /// The part of the graph for a layout, which works on version `version` of the packet.
    pub(super) fn node(&self, layout: &Layout, version: u32, versions: &mut Versions) -> Node {
        match layout {
            Layout::Unit(unit) => match self.representation.units[*unit].as_slice() {
                [function] => Node::Function(*function),
                members => {
                    let branch = |first: &usize| {
                        let all = members.iter().copied();
                        let functions = all.filter(|f| self.first_of(*f) == *first).collect();
                        Draft { functions, layout: None }
                    };
                    let firsts = members.iter().filter(|f| self.first_of(**f) == **f);
                    self.fork(firsts.map(branch).collect(), true, version, versions)
                }
            },
            Layout::Sequence(parts) => Node::Sequence(
                parts.iter().map(|part| self.node(part, version, versions)).collect(),
            ),
            Layout::Parallel(parts) => {
                let draft = |part| Draft { functions: self.functions_of(part), layout: Some(part) };
                self.fork(parts.iter().map(draft).collect(), false, version, versions)
            }
        }
    }

    /// The first function of a function's branch under `Priority`.
    fn first_of(&self, function: usize) -> usize {
        self.representation.first_of[function]
    }

    fn functions_of(&self, layout: &Layout) -> Vec<usize> {
        let mut found = match layout {
            Layout::Unit(unit) => self.representation.units[*unit].clone(),
            Layout::Sequence(parts) | Layout::Parallel(parts) => {
                parts.iter().flat_map(|part| self.functions_of(part)).collect()
            }
        };
        found.sort_unstable_by_key(|function| self.rank[*function]);
        found
    }

    fn fork(
        &self,
        mut drafts: Vec<Draft<'_>>,
        priority: bool,
        version: u32,
        versions: &mut Versions,
    ) -> Node {
        versions.merges += 1;
        let first = |draft: &Draft<'_>| draft.functions.first().map(|f| self.rank[*f]);
        drafts.sort_by_key(first);
        let groups = self.share(&drafts);
        let (mut copies, mut given) = (Vec::new(), vec![version; drafts.len()]);
        for members in groups.iter().skip(1) {
            let copy = versions.copy(version, self.extent(members.iter().map(|at| &drafts[*at])));
            copies.push(copy);
            members.iter().for_each(|at| given[*at] = copy.to);
        }
        let operations = self.operations(&drafts, &given, version, priority);
        let mut functions: Vec<usize> =
            drafts.iter().flat_map(|draft| draft.functions.iter().copied()).collect();
        functions.sort_unstable_by_key(|function| self.rank[*function]);
        let verdict = if priority {
            let (mut first, between): (Vec<usize>, Vec<usize>) =
                functions.iter().partition(|function| self.first_of(**function) == **function);
            first.reverse();
            match between.as_slice() {
                [] => Verdict::FirstThatMayDrop(first),
                _ => Verdict::BetweenOrFirst { between, first },
            }
        } else {
            Verdict::AnyDrops(functions.last().copied().unwrap_or_default())
        };
        let merge = Merge { into: version, expects: drafts.len(), operations, verdict };
        let branches = drafts.iter().zip(given).map(|(draft, version)| {
            let node = match draft.layout {
                Some(layout) => self.node(layout, version, versions),
                None => match draft.functions.as_slice() {
                    [function] => Node::Function(*function),
                    row => Node::Sequence(row.iter().copied().map(Node::Function).collect()),
                },
            };
            Branch { version, node }
        });
        Node::Parallel(Box::new(Fork { branches: branches.collect(), copies, merge }))
    }

    /// Groups the branches that can share a version. The first group keeps the existing version.
    /// Preferably, it has the branches that touch the payload, so that copies need only headers. If
    /// several branches change the header stack, it has the first of them, so that merge operations
    /// apply in order.
    fn share(&self, drafts: &[Draft<'_>]) -> Vec<Vec<usize>> {
        let shapes = |draft: &Draft<'_>| {
            self.any(draft, |a| matches!(a, Action::Add(_) | Action::Remove(_)))
        };
        let several = drafts.iter().filter(|draft| shapes(draft)).count() > 1;
        let mut order: Vec<usize> = (0..drafts.len()).collect();
        order.sort_by_key(|at| {
            let draft = &drafts[*at];
            let full = self.extent(std::iter::once(draft)) == Extent::Full;
            let writes = self.any(draft, |action| matches!(action, Action::Write(_)));
            (!(several && shapes(draft)), !full, !shapes(draft), !writes)
        });
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for at in order {
            let fits = |group: &&mut Vec<usize>| {
                group.iter().all(|other| !self.conflict(&drafts[at], &drafts[*other]))
            };
            match groups.iter_mut().find(fits) {
                Some(group) => group.push(at),
                None => groups.push(vec![at]),
            }
        }
        groups
    }

    fn any(&self, draft: &Draft<'_>, holds: impl Fn(&Action) -> bool) -> bool {
        draft.functions.iter().any(|f| self.functions[*f].actions.iter().any(&holds))
    }

    /// Whether two branches must not share a version.
    fn conflict(&self, a: &Draft<'_>, b: &Draft<'_>) -> bool {
        if self.sharing == Sharing::Nothing {
            return true;
        }
        let pairs = a.functions.iter().flat_map(|x| b.functions.iter().map(move |y| (*x, *y)));
        pairs.into_iter().any(|(x, y)| {
            let (x, y) = if self.rank[x] < self.rank[y] { (x, y) } else { (y, x) };
            self.between(x, y) != Parallel::WithoutCopy
        })
    }

    /// The extent of the packet that a copy for these branches needs.
    fn extent<'d, 'l: 'd>(&self, drafts: impl Iterator<Item = &'d Draft<'l>>) -> Extent {
        let beyond = |action: &Action| action.part().is_some_and(|part| !part.is_in_headers());
        if drafts.into_iter().any(|draft| self.any(draft, beyond)) {
            Extent::Full
        } else {
            Extent::Headers
        }
    }

    /// The merge operations, in an order in which the functions could run in sequence. Writes to
    /// the resulting version itself need no operation.
    fn operations(
        &self,
        drafts: &[Draft<'_>],
        given: &[u32],
        into: u32,
        priority: bool,
    ) -> Vec<Operation> {
        let mut by: Vec<(usize, u32)> = drafts
            .iter()
            .zip(given)
            .flat_map(|(draft, version)| draft.functions.iter().map(|f| (*f, *version)))
            .collect();
        by.sort_unstable_by_key(|(function, _)| self.rank[*function]);
        let mut operations = Vec::new();
        for (at, (function, from)) in by.iter().enumerate() {
            if *from == into {
                continue;
            }
            let later = |counts: Is<'_>| -> Vec<usize> {
                let later = by[at + 1..].iter().filter(|(_, version)| *version == into || priority);
                let writes = later.filter(|(f, _)| self.functions[*f].actions.iter().any(counts));
                writes.map(|(f, _)| *f).collect()
            };
            let actions = &self.functions[*function].actions;
            let each = |action| operations_of(action, *from, *function, &later, priority);
            operations.extend(actions.iter().flat_map(each));
        }
        operations
    }
}

/// The merge operations for an action that changes the packet. `later` returns the functions whose
/// matching action takes precedence.
fn operations_of(
    action: &Action,
    from: u32,
    by: usize,
    later: &dyn Fn(Is<'_>) -> Vec<usize>,
    priority: bool,
) -> Vec<Operation> {
    let shapes = |action: &Action| priority && matches!(action, Action::Add(_) | Action::Remove(_));
    match action {
        Action::Write(whole) => {
            let modify = |part: Part| {
                let over = |other: &Action| matches!(other, Action::Write(p) if p.changes(&part));
                let unless = later(&over);
                Operation::Modify { part, from, by, unless }
            };
            whole.pieces().into_iter().map(modify).collect()
        }
        Action::Add(header) => {
            vec![Operation::Add { header: header.name(), from, by, unless: later(&shapes) }]
        }
        Action::Remove(header) => {
            vec![Operation::Remove { header: header.name(), by, unless: later(&shapes) }]
        }
        _ => Vec::new(),
    }
}
