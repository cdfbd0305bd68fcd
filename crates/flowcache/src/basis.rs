//! Dependencies of flow records on parameters, and the parts of a parameter that a control change
//! affects.

use braid_ir::chain::{Change, Control};
use braid_ir::model::{ParamId, Word};
use braid_ir::value::{Backend, ParamValue};

/// A dependency of a record on a parameter or on a part of one. Values that programs contain as
/// constants need no such dependency, because all records end when such a value changes. Patterns
/// need none either, because a record searches each packet for the current patterns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Basis {
    /// The function.
    pub node: u16,
    /// The parameter.
    pub param: ParamId,
    /// The part of the parameter.
    pub part: Part,
}

/// A part of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// The whole parameter.
    Whole,
    /// Which backends exist, and what their columns hold, but not whether they are up.
    Members,
    /// The backend with this number: its columns, and whether it is up.
    Backend(u32),
}

/// The parts of a parameter that a control change affects.
#[derive(Debug)]
pub struct Changed {
    node: u16,
    param: ParamId,
    what: What,
}

#[derive(Debug)]
enum What {
    Whole,
    /// A rule was added and has this number.
    RuleAdded(u32),
    /// The rule with this number was removed.
    RuleRemoved(u32),
    /// The backends with these numbers have changed. `members` says whether their columns changed,
    /// too, or whether backends came or went.
    Backends {
        which: Vec<u32>,
        members: bool,
    },
}

impl Changed {
    /// The change of a parameter to `value`. Changes of backends are not among these changes.
    #[must_use]
    pub fn new(control: &Control, value: &ParamValue) -> Self {
        let what = match (&control.change, value) {
            // The last place is the one before the default.
            (Change::AddRule(at, _), ParamValue::Rules(set)) => {
                What::RuleAdded(number(at.unwrap_or(set.rules.len() - 1)))
            }
            (Change::RemoveRule(at), _) => What::RuleRemoved(number(*at)),
            _ => What::Whole,
        };
        Self { node: control.node, param: control.param, what }
    }

    /// The change of the backend with this number from `before` to `now`.
    #[must_use]
    pub fn backend(control: &Control, at: usize, before: Option<&Backend>, now: &Backend) -> Self {
        let which = if before == Some(now) { Vec::new() } else { vec![number(at)] };
        let what = What::Backends { which, members: member(before) != member(Some(now)) };
        Self { node: control.node, param: control.param, what }
    }

    /// The change of all backends from `before` to `now`. Backends keep their numbers.
    #[must_use]
    pub fn backends(control: &Control, before: &[Backend], now: &[Backend]) -> Self {
        let most = before.len().max(now.len());
        let differ = |at: &usize| before.get(*at) != now.get(*at);
        let what = What::Backends {
            which: (0..most).filter(differ).map(number).collect(),
            members: (0..most).any(|at| member(before.get(at)) != member(now.get(at))),
        };
        Self { node: control.node, param: control.param, what }
    }

    /// Whether the change affects the parameter, or the part of it, that a record depends on.
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

    /// A rule (function, rule set, rule) with its number after the change. `None` if the change
    /// removed the rule and its counts.
    pub(crate) fn rule(&self, one: (u16, ParamId, u32)) -> Option<(u16, ParamId, u32)> {
        let (node, param, rule) = one;
        if (node, param) != (self.node, self.param) {
            return Some(one);
        }
        let rule = match self.what {
            What::RuleAdded(at) => Some(rule + u32::from(rule >= at)),
            What::RuleRemoved(at) if rule != at => Some(rule - u32::from(rule > at)),
            _ => None,
        };
        rule.map(|rule| (node, param, rule))
    }
}

/// The columns of a backend and whether it was removed, but not whether it is up.
fn member(one: Option<&Backend>) -> Option<(&[Word], bool)> {
    one.map(|one| (one.columns.as_slice(), one.is_removed()))
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
