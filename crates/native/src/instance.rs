//! An instance of a native function, the interface for engines: in this process, or in a process of
//! its own.

use crate::description::Description;
use crate::dump::Entry;
use crate::isolated::{self, Coming, Declared, Isolated};
use crate::library::find;
use crate::load_error::LoadError;
use crate::local::Local;
use crate::output::Output;
use crate::part::Part;
use crate::record::{Recorded, StateFunction};
use crate::stream::{Decision, News};
use crate::value::{Config, Value};
use crate::verdict::{Failed, Verdict};
use braid_ir::model::Model;
use braid_ir::native::{Noted, Profile, Reference};
use braid_packet::{FlowKey, Packet};
use std::sync::Arc;

/// The description of a function. If the function is isolated, a process of its own loads the
/// library.
///
/// # Errors
/// The reason why it cannot be used.
pub fn describe(
    library: &str,
    function: &str,
    is_isolated: bool,
) -> Result<Arc<Description>, LoadError> {
    match is_isolated {
        true => isolated::describe(library, function),
        false => find(library, function).map(|found| found.description.clone()),
    }
}

/// An instance.
pub struct Instance(Place);

enum Place {
    Here(Box<Local>),
    Apart(Box<Isolated>),
}

use Place::{Apart, Here};

impl Instance {
    /// A new instance for a node of a chain, with its part of the packets: in a process of its own,
    /// if the model says so.
    ///
    /// # Errors
    /// The function cannot be found, or it refuses its configuration.
    pub fn of(model: &Model, node: &str, config: Config, part: Part) -> Result<Self, String> {
        let native = model.native.as_ref().ok_or("it is not native")?;
        let Some(on_failure) = native.reference.isolated else {
            return Self::here(&native.reference, node, config, part);
        };
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let declared = Declared {
            profile: native.may(),
            reasons: count(model.reasons.len()),
            // Beside left and right.
            ports: count(model.ports.len().saturating_sub(2)),
            events: model.events.clone(),
            tags: model.tags.clone(),
            sends: native.sends,
        };
        let isolated = Isolated::new(&native.reference, on_failure, declared, node, config, part)?;
        Ok(Self(Apart(Box::new(isolated))))
    }

    /// A new instance in this process, for all packets.
    ///
    /// # Errors
    /// As for [`Self::of`].
    pub fn new(reference: &Reference, node: &str, config: Config) -> Result<Self, String> {
        Self::here(reference, node, config, Part::WHOLE)
    }

    fn here(reference: &Reference, node: &str, config: Config, part: Part) -> Result<Self, String> {
        let definition =
            find(&reference.library, &reference.function).map_err(|why| why.to_string())?;
        let local = Local::of(&definition, node, config, part, reference.checks)?;
        Ok(Self(Here(Box::new(local))))
    }

    /// Tells an isolated function which packets come to it next, in this order, so that it can run
    /// them before they come. Nothing else may come in between: other packets, other calls of this
    /// instance (except [`Self::take_outputs`] and [`Self::has_outputs`]). Returns the number of
    /// packets that it can run ahead.
    pub fn announce<'a>(&mut self, coming: impl Iterator<Item = Coming<'a>>) -> usize {
        match &mut self.0 {
            Here(_) => 0,
            Apart(isolated) => isolated.announce(coming),
        }
    }

    /// The number of announced packets that it runs ahead and that have not come yet.
    #[must_use]
    pub fn ahead(&self) -> usize {
        match &self.0 {
            Here(_) => 0,
            Apart(isolated) => isolated.ahead(),
        }
    }

    /// Says that all announced packets have come. It would be a mistake if one had not: then the
    /// function's process has run it in vain, and is given up.
    pub fn settle(&mut self) {
        if let Apart(isolated) = &mut self.0 {
            isolated.settle();
        }
    }

    /// Runs the function for a packet.
    ///
    /// # Errors
    /// The function failed. The packet keeps the changes that it has made. If its process failed,
    /// the packet is as it was.
    pub fn packet(&mut self, packet: &mut Packet, now: u64) -> Result<Verdict, Failed> {
        match &mut self.0 {
            Here(local) => local.packet(packet, now),
            Apart(isolated) => isolated.packet(packet, now),
        }
    }

    /// Runs a stream function for what a connection brings.
    ///
    /// # Errors
    /// The function failed. The connection goes on.
    pub fn connection(&mut self, news: News<'_>, now: u64) -> Result<Decision, Failed> {
        match &mut self.0 {
            Here(local) => local.connection(news, now),
            Apart(isolated) => isolated.connection(news, now),
        }
    }

    /// Processes everything that is due by a time.
    #[inline]
    pub fn advance(&mut self, now: u64) {
        match &mut self.0 {
            Here(local) => local.advance(now),
            Apart(isolated) => isolated.advance(now),
        }
    }

    /// Changes the value of a parameter.
    ///
    /// # Errors
    /// The function refuses the new value and keeps the previous one.
    pub fn change(&mut self, name: &str, value: Value) -> Result<(), String> {
        match &mut self.0 {
            Here(local) => local.change(name, value),
            Apart(isolated) => isolated.change(name, value),
        }
    }

    /// The value of a parameter.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        match &self.0 {
            Here(local) => local.value(name),
            Apart(isolated) => isolated.value(name),
        }
    }

    /// Whether outputs wait: messages and events to be published.
    #[must_use]
    pub fn has_outputs(&self) -> bool {
        match &self.0 {
            Here(local) => local.has_outputs(),
            Apart(isolated) => isolated.has_outputs(),
        }
    }

    /// The outputs since the last call.
    pub fn take_outputs(&mut self) -> Vec<Output> {
        match &mut self.0 {
            Here(local) => local.take_outputs(),
            Apart(isolated) => isolated.take_outputs(),
        }
    }

    /// The state: flows, counters, and the entries that the function itself shows.
    #[must_use]
    pub fn report(&self) -> Vec<Entry> {
        match &self.0 {
            Here(local) => local.report(),
            Apart(isolated) => isolated.report(),
        }
    }

    /// The problems so far.
    #[must_use]
    pub fn problems(&self) -> Vec<Noted> {
        match &self.0 {
            Here(local) => local.problems(),
            Apart(isolated) => isolated.problems(),
        }
    }

    /// The instance's memory, from which another instance can go on. `None` if the function cannot
    /// save it. Records are not part of it.
    pub fn save(&mut self) -> Option<Vec<u8>> {
        match &mut self.0 {
            Here(local) => local.save(),
            Apart(isolated) => isolated.save(),
        }
    }

    /// Goes on from the memory of an earlier instance. This instance is new.
    ///
    /// # Errors
    /// The reason why it cannot. It is then of no further use.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        match &mut self.0 {
            Here(local) => local.restore(bytes),
            Apart(isolated) => isolated.restore(bytes),
        }
    }

    /// The number of timer firings that were skipped because the time jumped.
    #[must_use]
    pub fn timers_skipped(&self) -> u64 {
        match &self.0 {
            Here(local) => local.timers_skipped(),
            Apart(isolated) => isolated.timers_skipped(),
        }
    }

    /// The actions that were observed, with [`braid_ir::native::Checks::observe`].
    #[must_use]
    pub fn observed(&self) -> Profile {
        match &self.0 {
            Here(local) => local.observed(),
            Apart(isolated) => isolated.observed(),
        }
    }

    /// The flow with the key of a packet, if it has a record: its number and the record. The
    /// records of isolated functions stay in their processes.
    #[must_use]
    pub fn recorded(&self, key: &FlowKey) -> Option<(u64, &Recorded)> {
        self.local()?.recorded(key)
    }

    /// Whether the function has recorded anything for any flow that exists.
    #[must_use]
    pub fn has_recorded(&self) -> bool {
        self.local().is_some_and(Local::has_recorded)
    }

    /// Runs a packet by the record of its flow instead of by the function: header actions, then
    /// state functions in order, then guards. Returns `None`, without doing anything, if the flow
    /// has no record or the record does not fit the packet.
    pub fn replay(&mut self, packet: &mut Packet, now: u64) -> Option<Verdict> {
        self.local_mut()?.replay(packet, now)
    }

    /// Runs the part of a flow's record that is not header actions, for an engine that does these
    /// by itself: the given state functions in order, on the packet as it enters the function, then
    /// the record's guards. The caller ensures that nothing is due at this time ([`Self::is_due`]).
    pub fn run_state(
        &mut self,
        flow: u64,
        functions: &[StateFunction],
        packet: &mut Packet,
        now: u64,
    ) {
        if let Some(local) = self.local_mut() {
            local.run_state(flow, functions, packet, now);
        }
    }

    /// Counts a packet that an engine processed by a record without state functions and guards. The
    /// caller ensures that nothing is due at this time.
    pub fn sees(&mut self, flow: u64, now: u64) {
        if let Some(local) = self.local_mut() {
            local.sees(flow, now);
        }
    }

    /// Whether [`Self::advance`] may have something to do at this time, or no packet has come yet.
    #[must_use]
    pub fn is_due(&self, now: u64) -> bool {
        match &self.0 {
            Here(local) => local.is_due(now),
            Apart(isolated) => isolated.is_due(now),
        }
    }

    /// Whether the function itself must run for each packet: because it is isolated, or because its
    /// actions are checked or recorded.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        self.local().is_none_or(Local::is_checked)
    }

    /// Whether [`Self::take_changed`] has flows to return.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.local().is_some_and(Local::has_changed)
    }

    /// Starts recording the flows whose records change ([`Self::take_changed`]).
    pub fn watch(&mut self) {
        if let Some(local) = self.local_mut() {
            local.watch();
        }
    }

    /// The flows whose records have changed or ended since the last call, each once.
    pub fn take_changed(&mut self) -> Vec<u64> {
        self.local_mut().map(Local::take_changed).unwrap_or_default()
    }

    fn local(&self) -> Option<&Local> {
        match &self.0 {
            Here(local) => Some(local),
            Apart(_) => None,
        }
    }

    fn local_mut(&mut self) -> Option<&mut Local> {
        match &mut self.0 {
            Here(local) => Some(local),
            Apart(_) => None,
        }
    }
}
