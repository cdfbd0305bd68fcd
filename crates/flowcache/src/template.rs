//! Record templates: what all records of one path share, and the work for each packet that takes
//! one.

use crate::basis::Changed;
use crate::computed::{Computed, Words};
use crate::counted::Counted;
use crate::effects::SideEffects;
use crate::goal::{Goal, Onward};
use crate::guard::{ByteGuard, Guard, Link};
use crate::host::{Functions, State};
use crate::key::{LENGTH, OPEN};
use crate::mutants::RecordMutant;
use crate::path::{Path, Search};
use crate::peel::{Arrived, Front, Inside};
use braid_ir::engine::Outputs;
use braid_ir::model::ParamId;
use braid_ir::walk::Reached;
use braid_packet::rewrite::{NARROW_BYTES, NarrowRewrite, Outline, Rewrite, WIDE, Window};
use braid_packet::{Layout, Packet};
use foldhash::HashMap;
use std::cell::Cell;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;

/// The largest number of templates. A flow whose path would need another one gets no record.
const MOST: usize = 1 << 16;
/// The largest number of different link addresses in templates. A record with other link addresses
/// is wide.
const MOST_LINKS: usize = 1 << 12;
/// The largest number of templates with side effects. There can be many if each flow has its own
/// side effects.
const MOST_WITH_EFFECTS: usize = MOST / 2;

/// From this number of templates on, new templates depend on all backends of a list instead of
/// single backends.
const FINE: usize = 1 << 12;

/// A record template. The order of the fields is the order in which packets usually need them.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Template {
    pub(crate) narrow: NarrowRewrite,
    /// The further tests and work for each packet.
    pub(crate) more: Option<Box<More>>,
    /// The end of a tunnel. Everything else is about the packets inside.
    pub(crate) front: Option<Box<Front>>,
    pub(crate) link: Link,
    /// The guards that the fields below do not cover.
    pub(crate) guards: Box<[Guard]>,
    /// The guards that the hit loop tests: the least TTL at its usual place, a condition on bits of
    /// one byte (mostly TCP flags), and the largest length on the wire.
    least_ttl: u8,
    byte: ByteGuard,
    most_bytes: u32,
    /// Whether packets must not have any tag.
    pub(crate) is_bare: bool,
    /// The destination of the packets, unless they go on ([`Goal::onward`]).
    pub(crate) reached: Reached,
    pub(crate) rewrite: Rewrite,
    /// The packets and bytes that have already been added to the counters of programs and rules.
    pub(crate) settled: Cell<(u64, u64)>,
}

/// Further tests and work for each packet of some templates.
#[derive(Debug)]
pub(crate) struct More {
    /// Whether there are tests, or events to publish before the packet changes.
    pub(crate) asks: bool,
    pub(crate) searches: Vec<Search>,
    pub(crate) dynamic: Computed,
    effects: SideEffects,
    pub(crate) goal: Goal,
}

impl Template {
    /// Marks the template as outdated. From now on, no packet passes its guards.
    fn outdate(&mut self) {
        self.guards = Box::new([Guard::NEVER]);
    }

    /// Whether a packet that is about to enter passes the guards.
    pub(crate) fn fits(&self, Arrived { packet, inside, .. }: Arrived<'_>) -> bool {
        match (&self.front, inside) {
            (None, _) => self.fits_bytes(packet, packet.data(), packet.wire_len),
            (Some(front), Some(inside)) => {
                let Inside { packet: inner, layout, .. } = inside;
                front.fits(packet, layout) && self.fits_bytes(packet, inner.data(), inner.wire_len)
            }
            (Some(_), None) => false,
        }
    }

    /// Whether a packet passes the guards but those of outer headers. Those headers may come in
    /// front of `data` and `wire_len`.
    pub(crate) fn fits_bytes(&self, packet: &Packet, data: &[u8], wire_len: u32) -> bool {
        let ttl = data.get(Outline::PLAIN.ttl()).copied().unwrap_or(u8::MAX);
        ttl >= self.least_ttl
            && wire_len <= self.most_bytes
            && self.byte.holds(data)
            && self.link.holds(data)
            && (!self.is_bare || packet.tags.is_empty())
            && self.guards.iter().all(|guard| guard.holds(data, wire_len))
    }

    /// Whether a packet with a narrow record passes the guards and needs no further work. `data`
    /// holds the packet's bytes, and `wire_len` is its length on the wire. This calls no function,
    /// so the hit loop keeps its variables in registers.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "the TTL of a plain packet is in `head`")]
    pub(crate) fn simply_fits(&self, data: &[u8], wire_len: u32) -> bool {
        let Some(head) = data.first_chunk::<NARROW_BYTES>() else { return false };
        self.more.is_none()
            && self.guards.is_empty()
            && head[Outline::PLAIN.ttl()] >= self.least_ttl
            && wire_len <= self.most_bytes
            && self.byte.holds(data)
            && self.link.holds(head)
    }
}

/// The guards of packets with an outline: the common ones with fields of their own, and all others.
struct Split {
    least_ttl: u8,
    most_bytes: u32,
    byte: ByteGuard,
    others: Box<[Guard]>,
}

impl Split {
    fn of(guards: &[Guard], outline: Outline) -> Self {
        let (mut least_ttl, mut most_bytes, mut byte) = (0, u32::MAX, None);
        let mut others = Vec::new();
        for guard in guards {
            let ttl = guard.least_ttl().filter(|_| outline == Outline::PLAIN);
            if let Some(ttl) = ttl {
                least_ttl = ttl.max(least_ttl);
            } else if guard.number == LENGTH && guard.least == 0 {
                most_bytes = guard.most.min(most_bytes);
            } else if let Some(one) = ByteGuard::of(guard).filter(|_| byte.is_none()) {
                byte = Some(one);
            } else {
                others.push(*guard);
            }
        }
        let (byte, others) = (byte.unwrap_or_default(), others.into());
        Self { least_ttl, most_bytes, byte, others }
    }
}

impl More {
    /// The further tests and work for packets of a path with this goal. `None` if there are none.
    fn of(path: &Path, goal: Goal) -> Option<Box<Self>> {
        let (searches, dynamic) = (path.searches.clone(), Computed::of(&path.dynamic));
        let mut effects = path.effects.clone();
        if goal.reached == Reached::Ended && goal.onward.is_none() && goal.copies.is_empty() {
            effects.tags.clear();
            effects.splices.clear();
        }
        let asks = path.asks();
        // In a chain with native functions, each packet must check whether the functions have due
        // work.
        let is_there = asks || effects != SideEffects::default() || goal.leaves.is_some();
        let is_there = is_there || goal.onward.is_some() || path.entry >= OPEN;
        is_there.then(|| Box::new(Self { asks, searches, dynamic, effects, goal }))
    }

    /// Tests the conditions, computes the dynamic values and publishes the events for a packet that
    /// takes the record with number `record`. Returns false, without any effect, if a condition
    /// fails.
    #[inline(never)]
    pub(crate) fn run(
        &self,
        functions: &mut impl Functions,
        record: u32,
        (packet, layout): (&Packet, &Layout),
        time: u64,
        out: &mut dyn Outputs,
    ) -> bool {
        let mut words = Words::new();
        let (chain, state) = functions.parts();
        let fits = self.searches.iter().all(|search| search.finds_nothing(chain, packet, layout))
            && self.dynamic.run(state, record, packet, time, &mut words);
        if fits {
            let value = |number| self.dynamic.value(&words, number);
            self.effects.publish(chain, packet, (time, &value), out);
        }
        fits
    }

    /// Applies the remaining effects to a packet whose first bytes have been rewritten. `layout`
    /// and `new` are as in [`SideEffects::finish`]. Returns where the packet goes on, if it does.
    #[inline(never)]
    pub(crate) fn finish(
        &self,
        (packet, layout): (&mut Packet, &Layout),
        new: &Window<WIDE>,
        counted: &mut Counted,
        out: &mut dyn Outputs,
    ) -> Option<Onward> {
        self.effects.finish(packet, layout, new);
        self.goal.send(packet, counted, out);
        self.goal.onward
    }
}

/// All templates.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    pub(crate) all: Vec<Template>,
    /// The path of each template.
    pub(crate) paths: Vec<Path>,
    pub(crate) numbers: HashMap<Path, u32>,
    /// The link addresses of templates, and how many templates have each.
    links: HashMap<(Link, [u64; 2]), u32>,
    /// How many templates have side effects.
    with_effects: usize,
    /// Changes that some templates do not reflect yet, in order.
    pending: VecDeque<Pending>,
}

/// A change of a parameter that the templates from number `next` on do not reflect yet.
#[derive(Debug)]
struct Pending {
    changed: Changed,
    next: usize,
}

impl Templates {
    /// A template and its path.
    pub(crate) fn get(&self, number: u32) -> Option<(&Template, &Path)> {
        Some((self.all.get(number as usize)?, self.paths.get(number as usize)?))
    }

    /// The number of the template of a path. `None` if there is none. If there are already many
    /// templates, the path first gives up its dependencies on single backends.
    pub(crate) fn known(&self, path: &mut Path) -> Option<u32> {
        if self.numbers.len() >= FINE {
            path.coarsen();
        }
        self.numbers.get(path).copied()
    }

    /// Whether there is room for one more template, for this path.
    pub(crate) fn takes(&self, path: &Path) -> bool {
        self.with_effects < MOST_WITH_EFFECTS || !path.has_effects()
    }

    /// Adds a template. `instead` is the number of an outdated template that it replaces. Returns
    /// the new template's number, or `None` if there are too many templates.
    #[expect(clippy::indexing_slicing, reason = "`instead` is the number of a template")]
    #[expect(clippy::cast_possible_truncation, reason = "there are at most `MOST` templates")]
    pub(crate) fn add(&mut self, path: Path, goal: Goal, instead: Option<u32>) -> Option<u32> {
        let number = instead.unwrap_or(self.all.len() as u32);
        let (narrow, rewrite) = (path.rewrite.narrow(path.first), path.rewrite);
        let Split { least_ttl, most_bytes, byte, others: guards } =
            Split::of(&path.guards, path.outline);
        let link = path.link;
        let (reached, front) = (goal.reached, path.front.clone());
        let more = More::of(&path, goal);
        let (settled, is_bare) = (Cell::default(), path.dynamic.is_bare);
        let template = Template {
            narrow,
            more,
            front,
            link,
            guards,
            least_ttl,
            byte,
            most_bytes,
            is_bare,
            reached,
            rewrite,
            settled,
        };
        if instead.is_some() {
            self.leave(number);
            self.all[number as usize] = template;
            self.paths[number as usize] = path.clone();
        } else if self.all.len() < MOST {
            self.all.push(template);
            self.paths.push(path.clone());
        } else {
            return None;
        }
        self.with_effects += usize::from(path.has_effects());
        *self.links.entry((path.link, path.first)).or_default() += 1;
        self.numbers.insert(path, number);
        Some(number)
    }

    /// Subtracts a template, which is about to be replaced, from the counts of link addresses and
    /// side effects.
    #[expect(clippy::indexing_slicing, reason = "`number` is the number of a template")]
    fn leave(&mut self, number: u32) {
        let path = &self.paths[number as usize];
        self.with_effects -= usize::from(path.has_effects());
        if let Entry::Occupied(mut link) = self.links.entry((path.link, path.first)) {
            *link.get_mut() -= 1;
            if *link.get() == 0 {
                link.remove();
            }
        }
    }

    /// Whether a path needs link addresses that no template has, while the templates already have
    /// the largest number of them.
    pub(crate) fn lacks_link(&self, path: &Path) -> bool {
        self.links.len() >= MOST_LINKS && !self.links.contains_key(&(path.link, path.first))
    }

    /// Announces a change of a parameter. [`Templates::outdate_some`] brings the templates up to
    /// date. Until it has done so, no packet may take a record and no template may be added.
    pub(crate) fn outdate(&mut self, changed: Changed) {
        self.pending.push_back(Pending { changed, next: 0 });
    }

    /// Whether some templates do not reflect all changes yet.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Brings up to `most` templates up to date with the first pending change. Templates that
    /// depend on the changed parameter become outdated.
    #[expect(clippy::cast_possible_truncation, reason = "there are at most `MOST` templates")]
    pub(crate) fn outdate_some(&mut self, most: usize, state: &mut State) {
        let Some(Pending { changed, next }) = self.pending.front_mut() else { return };
        let (records, _) = state.parts();
        let touched = |path: &Path| path.depends_on(changed);
        let left_out = match records.has_mutant(RecordMutant::TemplateNotOutdated) {
            true => self.paths.iter().rposition(touched),
            false => None,
        };
        let moves = !records.has_mutant(RecordMutant::RulesNotMoved);
        let all = self.all.iter_mut().zip(&mut self.paths).enumerate();
        for (at, (template, path)) in all.skip(*next).take(most) {
            if !touched(path) || left_out == Some(at) {
                continue;
            }
            if !records.is_template_outdated(at as u32) {
                self.numbers.remove(path);
                template.outdate();
                records.outdate_template(at as u32);
            }
            // The counts of this template's records belong to the rules that decided, whose numbers
            // may have changed.
            path.rules.retain_mut(|one| {
                let moved = if moves { changed.rule(*one) } else { Some(*one) };
                moved.inspect(|moved| *one = *moved).is_some()
            });
        }
        *next = next.saturating_add(most);
        if *next >= self.all.len() {
            self.pending.pop_front();
        }
    }

    /// The rules that a template's records count, by their present numbers: function, rule set,
    /// rule.
    pub(crate) fn rules(&self, number: u32) -> impl Iterator<Item = (u16, ParamId, u32)> {
        let number = number as usize;
        let path = self.paths.get(number);
        let pending = path.into_iter().flat_map(move |path| self.pending_for(path, number));
        let now = move |rule| pending.clone().try_fold(rule, |rule, changed| changed.rule(rule));
        path.into_iter().flat_map(|path| path.rules.iter().copied()).filter_map(now)
    }

    /// The pending changes on which a template with this path and number depends.
    fn pending_for(&self, path: &Path, number: usize) -> impl Iterator<Item = &Changed> + Clone {
        let ahead = self.pending.iter().filter(move |one| one.next <= number);
        ahead.map(|one| &one.changed).filter(|changed| path.depends_on(changed))
    }

    /// Removes all templates, because there are no records.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.paths.clear();
        self.numbers.clear();
        self.links.clear();
        self.with_effects = 0;
        self.pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basis::{Basis, Part};
    use braid_ir::model::ParamId;

    /// A path that depends on a backend of a load balancer.
    fn path(backend: u32) -> Path {
        let basis = Basis { node: 0, param: ParamId(0), part: Part::Backend(backend) };
        Path { bases: vec![basis], ..Path::new() }
    }

    fn goal() -> Goal {
        Goal { reached: Reached::Ended, copies: Vec::new(), leaves: None, onward: None }
    }

    #[test]
    fn ways_by_too_many_backends_share_a_template() {
        let mut templates = Templates::default();
        let mut number = |backend| {
            let mut path = path(backend);
            let known = templates.known(&mut path);
            known.or_else(|| templates.add(path, goal(), None))
        };
        let fine: Vec<_> = (0..FINE as u32).map(&mut number).collect();
        assert_eq!((fine[1], number(1)), (Some(1), Some(FINE as u32)));
        assert_eq!(number(FINE as u32 + 7), Some(FINE as u32));
        assert_eq!(templates.paths[FINE].bases[0].part, Part::Whole);
    }

    #[test]
    fn template_takes_the_place_of_another_one() {
        let mut templates = Templates::default();
        assert_eq!(templates.add(path(0), goal(), None), Some(0));
        templates.numbers.clear();
        assert_eq!(templates.add(path(1), goal(), Some(0)), Some(0));
        assert_eq!(templates.known(&mut path(1)), Some(0));
        assert_eq!((templates.known(&mut path(0)), templates.all.len()), (None, 1));
    }

    #[test]
    fn addresses_of_the_link_that_no_template_has_any_more_are_forgotten() {
        let mut templates = Templates::default();
        let to = |address: u64| Path { first: [address, 0], ..Path::new() };
        for address in 0..2 * MOST_LINKS as u64 {
            let instead = (address > 0).then_some(0);
            assert!(!templates.lacks_link(&to(address)));
            templates.add(to(address), goal(), instead);
        }
        assert_eq!(templates.links.len(), 1);
    }
}
