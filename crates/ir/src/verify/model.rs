//! Checks declarations.

use super::place::{Place, Problem, VerifyError};
use crate::model::{
    Ancestor, EventId, EventTy, Granularity, MAX_STATES, Model, ParamDecl, ParamId, ParamTy,
    QueueId, Setting, StateDecl, StateId, TagId, Ty,
};
use crate::strings::MAX_STRING;
use std::collections::HashSet;

/// Collects errors about declarations.
pub(super) fn check(model: &Model, errors: &mut Vec<VerifyError>) {
    Check { model, errors }.all();
}

struct Check<'a> {
    model: &'a Model,
    errors: &'a mut Vec<VerifyError>,
}

impl Check<'_> {
    fn all(&mut self) {
        let model = self.model;
        if !matches!(&*model.ports, [left, right, ..] if left == "left" && right == "right") {
            self.report(Place::Model, Problem::Ports);
        }
        if model.state.len() > MAX_STATES {
            self.report(Place::Model, Problem::States(model.state.len()));
        }
        self.names();
        for (id, decl) in (0..).map(ParamId).zip(&model.params) {
            self.param(id, decl);
        }
        for (id, decl) in (0..).map(StateId).zip(&model.state) {
            self.state(id, decl);
            self.lives_with(id, decl);
        }
        for (id, decl) in (0..).map(QueueId).zip(&model.queues) {
            self.setting(Place::Queue(id), decl.capacity);
        }
        for (id, decl) in (0..).map(EventId).zip(&model.events) {
            for (_, ty) in &decl.fields {
                if let EventTy::Scalar(ty) = ty {
                    self.ty(Place::Event(id), *ty);
                }
            }
            let too_many = |ancestor: &&Ancestor| ancestor.fields > decl.fields.len();
            if let Some(ancestor) = decl.ancestors.iter().find(too_many) {
                self.report(Place::Event(id), Problem::AncestorFields(ancestor.name.clone()));
            }
        }
        for (id, decl) in (0..).map(TagId).zip(&model.tags) {
            self.ty(Place::Tag(id), decl.ty);
        }
        self.rows();
        self.programs();
    }

    fn report(&mut self, place: Place, problem: Problem) {
        self.errors.push(VerifyError { place, problem });
    }

    fn names(&mut self) {
        let model = self.model;
        self.unique("port", model.ports.iter());
        self.unique("parameter", model.params.iter().map(|decl| &decl.name));
        self.unique("state", model.state.iter().map(|decl| &decl.name));
        self.unique("queue", model.queues.iter().map(|decl| &decl.name));
        self.unique("event", model.events.iter().map(|decl| &decl.name));
        self.unique("tag", model.tags.iter().map(|decl| &decl.name));
        self.unique("reason", model.reasons.iter());
    }

    fn unique<'n>(&mut self, what: &'static str, names: impl Iterator<Item = &'n String>) {
        let mut seen = HashSet::new();
        for name in names {
            if !seen.insert(name) {
                self.report(Place::Model, Problem::DuplicateName(what, name.clone()));
            }
        }
    }

    fn ty(&mut self, place: Place, ty: Ty) {
        if !ty.is_valid() {
            self.report(place, Problem::Type(ty.to_string()));
        }
    }

    /// Checks columns or slots: there is at least one, and their types exist.
    fn parts(&mut self, place: Place, what: &'static str, parts: &[(String, Ty)]) {
        if parts.is_empty() {
            self.report(place, Problem::Without(what));
        }
        for (_, ty) in parts {
            self.ty(place, *ty);
        }
    }

    fn param(&mut self, id: ParamId, decl: &ParamDecl) {
        let place = Place::Param(id);
        match &decl.ty {
            ParamTy::Scalar(ty) | ParamTy::Set(ty) | ParamTy::Pool(ty, _) => self.ty(place, *ty),
            ParamTy::List(columns) | ParamTy::Backends(columns) => {
                self.parts(place, "columns", columns);
            }
            ParamTy::Strings(most) => {
                let most = usize::from(*most);
                if most == 0 || most > MAX_STRING || !most.is_multiple_of(16) {
                    self.report(place, Problem::Type(format!("strings<{most}>")));
                }
            }
            ParamTy::Rules
            | ParamTy::Routes
            | ParamTy::Patterns
            | ParamTy::Signatures
            | ParamTy::Hosts
            | ParamTy::Keys
            | ParamTy::Str => {}
        }
        if let Some(Err(why)) = decl.default.as_ref().map(|value| value.check(&decl.ty)) {
            self.report(place, Problem::ParamDefault(why));
        }
    }

    /// Checks a setting: a constant or a scalar parameter. Returns the parameter's width.
    fn setting(&mut self, place: Place, setting: Setting) -> Option<u16> {
        let Setting::Param(param) = setting else { return None };
        match self.model.params.get(param.index()).map(|decl| &decl.ty) {
            Some(ParamTy::Scalar(ty)) => return Some(ty.width),
            _ => self.report(place, Problem::Setting(param)),
        }
        None
    }

    fn state(&mut self, id: StateId, decl: &StateDecl) {
        let place = Place::State(id);
        self.parts(place, "slots", &decl.slots);
        match &decl.granularity {
            Granularity::Fields(fields) if fields.is_empty() => {
                self.report(place, Problem::Without("key"));
            }
            Granularity::Key(types) => {
                if types.is_empty() {
                    self.report(place, Problem::Without("key"));
                }
                for ty in types {
                    self.ty(place, *ty);
                }
            }
            Granularity::Global => self.global(place, decl),
            Granularity::Fields(_) | Granularity::Flow | Granularity::Biflow => {}
        }
        if let Some(default) = &decl.default {
            self.default(place, decl, default);
        }
        for setting in [decl.idle, decl.hard, Some(decl.capacity)].into_iter().flatten() {
            self.setting(place, setting);
        }
        self.setting(place, decl.tick);
        for param in &decl.portions {
            self.setting(place, Setting::Param(*param));
        }
        if !decl.sums.is_empty() && decl.sums.len() != decl.slots.len() {
            self.report(place, Problem::Without("way to unite the values of each slot"));
        }
        if decl.tick == Setting::Const(0) {
            self.report(place, Problem::Zero("tick"));
        }
    }

    fn global(&mut self, place: Place, decl: &StateDecl) {
        if decl.default.is_none() {
            self.report(place, Problem::Global("needs a default"));
        }
        if decl.idle.is_some() || decl.hard.is_some() {
            self.report(place, Problem::Global("never expires"));
        }
        if decl.lives_with.is_some() {
            self.report(place, Problem::Global("lives with nothing"));
        }
    }

    fn default(&mut self, place: Place, decl: &StateDecl, default: &[Setting]) {
        if default.len() != decl.slots.len() {
            let (found, wanted) = (default.len(), decl.slots.len());
            self.report(place, Problem::DefaultLength { found, wanted });
        }
        for (setting, (_, ty)) in default.iter().zip(&decl.slots) {
            match (*setting, self.setting(place, *setting)) {
                (Setting::Const(value), _) if value > ty.max() => {
                    self.report(place, Problem::TooWide { value, width: ty.width });
                }
                (Setting::Param(param), Some(width)) if width != ty.width => {
                    self.report(place, Problem::ParamKind { param, wanted: "as wide as the slot" });
                }
                _ => {}
            }
        }
    }

    fn lives_with(&mut self, id: StateId, decl: &StateDecl) {
        let (Some(with), place) = (decl.lives_with, Place::State(id)) else { return };
        let Some(partner) = self.model.state.get(with.index()) else {
            return self.report(place, Problem::Missing(with.to_string()));
        };
        let mut wrong = |why| self.report(place, Problem::LivesWith { with, why });
        if decl.idle.is_some() || decl.hard.is_some() {
            wrong("it has no time-outs of its own");
        }
        if decl.sharded != partner.sharded {
            wrong("it must be sharded like that");
        }
        if partner.granularity == Granularity::Global {
            wrong("that must not be global");
        }
        let mut at = with;
        for _ in 0..self.model.state.len() {
            if at == id {
                return self.report(place, Problem::LivesWith { with, why: "that must end" });
            }
            match self.model.state.get(at.index()).and_then(|decl| decl.lives_with) {
                Some(next) => at = next,
                None => return,
            }
        }
    }

    fn rows(&mut self) {
        let place = self.model.rows.iter().position(|row| row.label == "fault");
        if place.is_none_or(|place| place + 1 != self.model.rows.len()) {
            self.report(Place::Model, Problem::FaultRow);
        }
    }

    fn programs(&mut self) {
        let mut seen = HashSet::new();
        for (state, _) in &self.model.expire {
            match self.model.state.get(state.index()) {
                None => self.report(Place::Model, Problem::Missing(state.to_string())),
                Some(decl) if decl.granularity == Granularity::Global => {
                    self.report(Place::State(*state), Problem::Global("never expires"));
                }
                Some(_) if !seen.insert(*state) => {
                    self.report(Place::Model, Problem::SecondExpire(*state));
                }
                Some(_) => {}
            }
        }
        for (at, (event, _)) in self.model.streams.iter().enumerate() {
            if self.model.streams.iter().take(at).any(|(other, _)| other == event) {
                self.report(Place::Model, Problem::SecondStream(*event));
            }
        }
        for (at, (event, _)) in self.model.handlers.iter().enumerate() {
            if event.index() >= self.model.events.len() {
                self.report(Place::Model, Problem::Missing(event.to_string()));
            }
            if self.model.handlers.iter().take(at).any(|(other, _)| other == event) {
                self.report(Place::Model, Problem::SecondHandler(*event));
            }
        }
        for timer in &self.model.timers {
            self.setting(Place::Model, timer.period);
            if timer.period == Setting::Const(0) {
                self.report(Place::Model, Problem::Zero("timer's period"));
            }
        }
    }
}
