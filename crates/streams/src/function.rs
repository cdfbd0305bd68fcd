//! A function that takes the events of a stack.

use crate::inspections::{Inspected, Lately};
use crate::missed::Missed;
use braid_ir::model::{Model, ParamId, ReasonId, StreamEvent};
use braid_ir::value::ParamValue;

/// A function that takes events.
#[derive(Clone, Debug)]
pub struct Function {
    /// The parameters whose patterns are searched.
    pub scanned: Vec<ParamId>,
    /// The parameters whose signatures inspect the connections.
    pub inspected: Vec<ParamId>,
    /// The names of both.
    pub searched_names: Vec<String>,
    /// The reasons for which the function resets connections, by number.
    pub reasons: Vec<String>,
    /// The events for which it has programs.
    pub events: Vec<StreamEvent>,
    /// Whether it has programs for HTTP requests and for responses.
    pub takes: [bool; 2],
    /// The number of changes of these parameters.
    pub changes: u64,
}

impl Function {
    /// The function of a model.
    pub fn of(model: &Model) -> Self {
        let scanned = model.scanned();
        let inspected = model.inspected();
        let searched = scanned.iter().chain(&inspected);
        let decls = searched.filter_map(|param| model.params.get(param.index()));
        let searched_names = decls.map(|decl| decl.name.clone()).collect();
        let events = model.streams.iter().map(|(event, _)| *event).collect();
        let takes = [StreamEvent::Request, StreamEvent::Response];
        let takes = takes.map(|event| model.stream(event).is_some());
        let reasons = model.reasons.clone();
        Self { scanned, inspected, searched_names, reasons, events, takes, changes: 0 }
    }

    /// Whether it has programs for HTTP messages.
    pub fn has_http(&self) -> bool {
        self.takes.contains(&true)
    }

    /// The reason with a name.
    pub fn reason(&self, name: &str) -> Option<ReasonId> {
        let named = (0..).map(ReasonId).zip(&self.reasons);
        named.into_iter().find(|(_, one)| *one == name).map(|(reason, _)| reason)
    }

    /// What inspections for the function need.
    pub fn inspected<'a>(
        &'a self,
        params: &'a [ParamValue],
        lately: &'a mut Lately,
        now: u64,
        missed: &'a mut Missed,
    ) -> Inspected<'a> {
        Inspected { of: &self.inspected, params, lately, now, missed, changes: self.changes }
    }
}
