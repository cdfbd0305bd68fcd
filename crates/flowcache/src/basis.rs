//! What records depend on beside state: parameters, and how changes of configuration touch them.

use braid_ir::chain::{Change, Control};
use braid_ir::model::ParamId;
use braid_ir::value::{Backend, ParamValue};

/// What records depend on beside state: a parameter, or a part of one. (Values that are compiled into programs are
/// not among them, nor are patterns, which records search for as they are when a packet comes.)
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Basis {
    /// The function.
    pub node: u16,
    /// The parameter.
    pub param: ParamId,
    /// Which part of it.
    pub part: Part,
}

/// A part of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// All of it.
    Whole,
    /// Which backends there are, and what their columns hold; not whether they are up.
    Members,
    /// The backend with this number: its columns, and whether it is up.
    Backend(u32),
}

/// What a change has changed.
pub struct Changed {
    pub(crate) node: u16,
    pub(crate) param: ParamId,
    what: What,
}

enum What {
    Whole,
    /// There is one more rule, with this number.
    RuleAdded(u32),
    /// The rule with this number is gone.
    RuleRemoved(u32),
    /// Backends have changed, by number; perhaps their columns, too, or there are others.
    Backends {
        which: Vec<u32>,
        members: bool,
    },
}

impl Changed {
    /// What has changed in a parameter, which had these backends before, if any.
    #[must_use]
    pub fn new(control: &Control, before: &[Backend], value: &ParamValue) -> Self {
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let what = match (&control.change, value) {
            // One behind all others comes before the default.
            (Change::AddRule(at, _), ParamValue::Rules(set)) => {
                What::RuleAdded(number(*at).min(number(set.rules.len()) - 1))
            }
            (Change::RemoveRule(at), _) => What::RuleRemoved(number(*at)),
            (_, ParamValue::Backends(all)) => backends(before, all),
            _ => What::Whole,
        };
        Self { node: control.node, param: control.param, what }
    }

    /// Whether this is, or is part of, what has changed.
    pub(crate) fn touches(&self, basis: &Basis) -> bool {
        let is_it = (self.node, self.param) == (basis.node, basis.param);
        is_it
            && match (&self.what, basis.part) {
                (What::Backends { which, .. }, Part::Backend(number)) => which.contains(&number),
                (What::Backends { members, .. }, Part::Members) => *members,
                (What::Backends { which, .. }, Part::Whole) => !which.is_empty(),
                _ => true,
            }
    }

    /// The number that a rule has now; `None` if it is gone, with what it has counted.
    pub(crate) fn moved(&self, rule: u32) -> Option<u32> {
        match self.what {
            What::RuleAdded(at) => Some(rule + u32::from(rule >= at)),
            What::RuleRemoved(at) if rule != at => Some(rule - u32::from(rule > at)),
            _ => None,
        }
    }
}

/// What differs between backends, which keep their numbers.
fn backends(before: &[Backend], now: &[Backend]) -> What {
    let most = before.len().max(now.len());
    let differ = |at: &usize| before.get(*at) != now.get(*at);
    let member = |one: Option<&Backend>| one.map(|one| (one.columns.clone(), one.is_removed()));
    What::Backends {
        which: (0..most).filter(differ).map(|at| at as u32).collect(),
        members: (0..most).any(|at| member(before.get(at)) != member(now.get(at))),
    }
}
