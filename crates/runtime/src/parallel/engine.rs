//! The interface of an engine with stages.

use super::Parallel;
use super::bundle::{Handle, Out};
use super::entering::{Entering, Enters};
use super::merger::forget_log;
use super::stage::lock;
use crate::share::What;
use braid_ir::chain::{Control, Malformed};
use braid_ir::engine::{
    Compilation, Counters, Engine, Event, LOST_UNLINKED, Outputs, Prepared, StateEntry, Watcher,
};
use braid_ir::native::{Noted, Profile};
use braid_ir::service_graph::stages::{Entry, LOG};
use braid_ir::snapshot::{ImportError, Snapshot};
use braid_packet::{Burst, Layout, Packet, Reached};

impl Parallel {
    /// Classifies a packet (NFP §5.2).
    fn classify(&mut self, packet: &mut Packet, layout: &Layout) -> Enters {
        self.steerer.steer(packet, layout);
        self.own.packets_in += 1;
        let reason = match self.steerer.chain.malformed {
            Malformed::Drop => layout.malformed(),
            Malformed::Pass => None,
        };
        let entry = self.entries.get(usize::from(packet.ingress)).copied();
        let lost = match (reason, entry) {
            (Some(reason), _) => reason,
            (None, Some(Entry::Routes { graph, sequence })) => {
                let is_cut = packet.wire_len as usize > packet.data().len();
                let is_odd = is_cut || layout.malformed().is_some() || layout.is_fragment();
                return Enters::Route(if is_odd { sequence } else { graph });
            }
            (None, Some(Entry::Leaves(interface))) => {
                *self.own.out.entry(interface).or_default() += 1;
                return Enters::Leaves(interface);
            }
            (None, Some(Entry::Unlinked) | None) => LOST_UNLINKED,
        };
        *self.own.lost.entry(lost.to_owned()).or_default() += 1;
        Enters::Lost
    }

    /// Classifies the packets of a burst. Uses the memory of the burst before.
    fn entering(&mut self, burst: &mut Burst) -> Entering {
        let mut entering = std::mem::take(&mut self.entering);
        entering.packets.clear();
        entering.times.clear();
        entering.cuts.clear();
        let (packets, layouts, _) = burst.parts();
        for (at, (packet, layout)) in packets.iter_mut().zip(layouts).enumerate() {
            let enters = self.classify(packet, layout);
            entering.packets.push(enters);
            entering.times.push(packet.time_ns);
            if self.steerer.cuts(packet.time_ns) {
                entering.cuts.push(at);
            }
        }
        entering
    }

    /// Runs what is due by the time of the packet before a place, in all stages that have not seen
    /// that packet.
    fn catch_up(&mut self, entering: &Entering, place: usize) {
        let Some(&time_ns) = place.checked_sub(1).and_then(|at| entering.times.get(at)) else {
            return;
        };
        if !self.options.catches_up() {
            return;
        }
        let until = u16::try_from(place).unwrap_or(u16::MAX);
        for (stage, core) in self.cores.iter().enumerate() {
            if self.hub.has_seen(stage, until) {
                continue;
            }
            let mut core = lock(core);
            let after = core.pass(self.hub.burst(), until);
            if after < until {
                let mut out = Due { after, outs: &mut self.hub.outs };
                core.engine.pass_time(time_ns, &mut out);
            }
        }
    }

    /// Sends all packets of a burst on their routes, and waits until they are back.
    fn run(&mut self, burst: &mut Burst, entering: &Entering) {
        let mut cuts = entering.cuts.iter().copied().peekable();
        let mut open: Option<(usize, Handle)> = None;
        let packets = burst.drain().zip(&entering.packets).enumerate();
        for (at, (packet, enters)) in packets {
            let is_cut = cuts.next_if_eq(&at).is_some();
            let is_next = matches!((&open, enters), (Some((route, bundle)), Enters::Route(own))
                if route == own && bundle.places.len() < self.options.bundle);
            if is_cut || !is_next {
                self.send(open.take());
            }
            if is_cut || self.hub.is_full() {
                self.hub.finish();
            }
            if is_cut {
                self.catch_up(entering, at);
            }
            let reached = match enters {
                Enters::Route(route) => {
                    let (_, bundle) = open.get_or_insert_with(|| (*route, self.hub.bundle()));
                    bundle.burst.push(packet);
                    bundle.places.push(u16::try_from(at).unwrap_or(u16::MAX));
                    self.hub.back.push(None);
                    continue;
                }
                Enters::Leaves(interface) => Reached::Interface(*interface),
                Enters::Lost => Reached::Ended,
            };
            self.hub.back.push(Some((packet, reached)));
        }
        self.send(open);
        self.hub.finish();
        self.catch_up(entering, entering.times.len());
    }

    fn send(&mut self, bundle: Option<(usize, Handle)>) {
        if let Some((number, bundle)) = bundle {
            let route = self.routes.get(number).map_or(&[][..], Vec::as_slice);
            self.hub.send(bundle, number, route);
        }
    }

    /// Puts a burst together again.
    fn collect(&mut self, burst: &mut Burst, times: &[u64], out: &mut dyn Outputs) {
        let mut outs = std::mem::take(&mut self.hub.outs);
        if !outs.is_empty() {
            let is_native = |node: u16| self.natives.get(usize::from(node)) == Some(&true);
            let settled = outs.iter_mut().filter(|one| !one.what.is_of(&is_native));
            settled.for_each(|one| one.settle(times));
            outs.sort_by_key(|one| (one.own, !one.is_due, one.order));
            for one in outs.drain(..) {
                out.at(one.own.unwrap_or_default().into());
                one.what.without_log(self.has_logs).give(out);
            }
        }
        self.hub.outs = outs;
        for (mut packet, reached) in self.hub.back.drain(..).flatten() {
            if self.has_logs {
                forget_log(&mut packet);
            }
            burst.push(packet);
            burst.reached.push(reached);
        }
    }
}

impl Out {
    /// Finds the place of the burst to which it belongs: its packet's, or the place of the first
    /// packet that comes when it is due. Events of native functions are not settled: they come with
    /// the packet that visits the function, also if they were due before.
    fn settle(&mut self, times: &[u64]) {
        let time_ns = self.what.time_ns();
        let own = self.own.filter(|own| {
            let own = times.get(usize::from(*own));
            !self.is_due && own.is_some_and(|own| *own <= time_ns)
        });
        if own.is_none() {
            let due = times.partition_point(|time| *time < time_ns);
            self.is_due = true;
            self.own = Some(self.after.max(u16::try_from(due).unwrap_or(u16::MAX)));
        }
    }
}

impl What {
    /// The function that has published it, if it is an event.
    fn node(&self) -> Option<u16> {
        match self {
            What::Event(event) => Some(event.node),
            What::Packet(..) => None,
        }
    }

    /// Whether it is an event of such a function.
    fn is_of(&self, such: &dyn Fn(u16) -> bool) -> bool {
        self.node().is_some_and(such)
    }

    fn without_log(mut self, has_logs: bool) -> Self {
        if let What::Packet(_, packet) = &mut self
            && has_logs
        {
            forget_log(packet);
        }
        self
    }
}

/// Takes what is due in a stage behind its packets.
struct Due<'a> {
    after: u16,
    outs: &'a mut Vec<Out>,
}

impl Due<'_> {
    fn push(&mut self, what: What) {
        let after = self.after;
        self.outs.push(Out { after, own: None, is_due: true, order: 0, what });
    }
}

impl Outputs for Due<'_> {
    fn packet(&mut self, interface: u16, packet: Packet) {
        self.push(What::Packet(interface, packet));
    }

    fn event(&mut self, event: Event) {
        self.push(What::Event(event));
    }
}

impl Engine for Parallel {
    fn burst(&mut self, burst: &mut Burst, out: &mut dyn Outputs) {
        let entering = self.entering(burst);
        if let Some(first) = entering.times.first()
            && self.steerer.begins()
        {
            self.all().for_each(|mut core| core.engine.begin(*first, out));
        }
        self.hub.begin();
        self.run(burst, &entering);
        self.collect(burst, &entering.times, out);
        self.entering = entering;
    }

    fn watched(
        &mut self,
        ingress: u16,
        packet: Packet,
        out: &mut dyn Outputs,
        watcher: &mut dyn Watcher,
    ) {
        let mut burst = Burst::of(ingress, packet);
        let entering = self.entering(&mut burst);
        let (Some(packet), [enters], [time_ns]) =
            (burst.pop(), &entering.packets[..], &entering.times[..])
        else {
            return;
        };
        if self.steerer.begins() {
            self.each(out, |engine, out| engine.begin(*time_ns, out));
        }
        self.each(out, |engine, out| engine.pass_time(*time_ns, out));
        match enters {
            Enters::Route(route) => self.walk((*route, ingress), packet, out, watcher),
            Enters::Leaves(interface) => out.packet(*interface, packet),
            Enters::Lost => {}
        }
    }

    fn advance(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.pass_time(time_ns, out);
        // What is left is the due work of native functions. It comes in the order of the functions.
        let mut outs = Vec::new();
        let mut due = Due { after: 0, outs: &mut outs };
        self.each(&mut due, |engine, out| engine.advance(time_ns, out));
        outs.sort_by_key(|one| one.what.node());
        outs.into_iter().for_each(|one| one.what.give(out));
    }

    fn pass_time(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.steerer.advance(time_ns);
        self.each(out, |engine, out| engine.pass_time(time_ns, out));
    }

    fn begin(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.steerer.advance(time_ns);
        self.steerer.begins();
        self.each(out, |engine, out| engine.begin(time_ns, out));
    }

    fn control(&mut self, control: &Control, out: &mut dyn Outputs) -> Result<(), String> {
        let (preparer, control) = (self.preparer(), control.clone());
        self.control_prepared(&mut preparer(control), out)
    }

    fn preparer(&self) -> fn(Control) -> Prepared {
        // All stages have engines of one kind.
        match self.core(0) {
            Some(core) => core.engine.preparer(),
            None => |control| Prepared { control, made: None },
        }
    }

    fn control_prepared(
        &mut self,
        change: &mut Prepared,
        out: &mut dyn Outputs,
    ) -> Result<(), String> {
        self.pass_time(change.control.time_ns, out);
        let stage = self.stage_of.get(usize::from(change.control.node)).copied().unwrap_or(0);
        if let Some(mut core) = self.core(stage) {
            core.engine.control_prepared(change, out)?;
        }
        self.steerer.change(&change.control);
        Ok(())
    }

    fn counters(&self) -> Counters {
        self.united_counters()
    }

    fn state(&self) -> Vec<StateEntry> {
        self.united_state()
    }

    fn export(&mut self) -> Snapshot {
        self.united_export()
    }

    fn import(&mut self, snapshot: Snapshot) -> Result<(), ImportError> {
        self.divide(snapshot)
    }

    fn prepare_copy(&mut self) -> bool {
        // Each stage prepares a part.
        let done: Vec<bool> = self.all().map(|mut core| core.engine.prepare_copy()).collect();
        done.into_iter().all(|is_done| is_done)
    }

    fn resume(&mut self) {
        self.all().for_each(|mut core| core.engine.resume());
    }

    fn problems(&self) -> Vec<(u16, Noted)> {
        let mut all: Vec<_> = self.all().flat_map(|core| core.engine.problems()).collect();
        all.sort_by_key(|(node, _)| *node);
        all
    }

    fn observed(&self) -> Vec<(u16, Profile)> {
        let mut all: Vec<_> = self.all().flat_map(|core| core.engine.observed()).collect();
        all.sort_by_key(|(node, _)| *node);
        all
    }

    fn compilation(&self) -> Option<Compilation> {
        self.all().filter_map(|core| core.engine.compilation()).reduce(|mut sum, more| {
            sum.compiled += more.compiled;
            sum.interpreted += more.interpreted;
            for (reason, count) in more.refused {
                *sum.refused.entry(reason).or_default() += count;
            }
            sum.has_ended |= more.has_ended;
            sum
        })
    }
}

impl Parallel {
    /// Lets one packet walk from stage to stage, and shows it between functions.
    fn walk(
        &mut self,
        (route, ingress): (usize, u16),
        packet: Packet,
        out: &mut dyn Outputs,
        watcher: &mut dyn Watcher,
    ) {
        let onward = u16::try_from(self.entries.len()).unwrap_or(u16::MAX);
        let mut next = Some(packet);
        for stage in self.routes.get(route).into_iter().flatten() {
            let (Some(packet), Some(mut core)) = (next.take(), self.core(*stage)) else { return };
            let mut passing = Passing { onward, next: &mut next, out };
            core.engine.watched(ingress, packet, &mut passing, &mut Unlogged(watcher));
        }
    }
}

/// Keeps the packet that goes on to another stage.
struct Passing<'a> {
    onward: u16,
    next: &'a mut Option<Packet>,
    out: &'a mut dyn Outputs,
}

impl Outputs for Passing<'_> {
    fn packet(&mut self, interface: u16, mut packet: Packet) {
        if interface == self.onward {
            *self.next = Some(packet);
        } else {
            forget_log(&mut packet);
            self.out.packet(interface, packet);
        }
    }

    fn event(&mut self, event: Event) {
        self.out.event(event);
    }
}

/// Shows packets without the logs of writes.
struct Unlogged<'a>(&'a mut dyn Watcher);

impl Unlogged<'_> {
    fn show(&mut self, packet: &Packet, show: impl FnOnce(&mut dyn Watcher, &Packet)) {
        if !packet.tags.keys().any(|name| name.starts_with(LOG)) {
            return show(self.0, packet);
        }
        let mut packet = packet.clone();
        forget_log(&mut packet);
        show(self.0, &packet);
    }
}

impl Watcher for Unlogged<'_> {
    fn enters(&mut self, node: u16, packet: &Packet) {
        self.show(packet, |watcher, packet| watcher.enters(node, packet));
    }

    fn leaves(&mut self, node: u16, packet: &Packet) {
        self.show(packet, |watcher, packet| watcher.leaves(node, packet));
    }
}
