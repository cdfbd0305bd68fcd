//! Policies (NFP §3) and their intermediate representation (§4.4.1): positions of single functions,
//! and the result of Algorithm 1 for each pair of functions that a rule relates.

use super::action::{Action, Kind};
use super::depend::{Conflict, Finding, Reading, identify, identify_priority};
use braid_ir::chain::PolicyRule;
use serde::Serialize;
use std::fmt;

/// The largest number of functions of a policy. It bounds the pairs of functions to examine.
pub const MAX_FUNCTIONS: usize = 256;

/// A function as NFP describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its name in the policy.
    pub name: String,
    /// The actions that it may perform.
    pub actions: Vec<Action>,
}

/// The origin of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A rule of the policy.
    Policy,
    /// The order of functions on a path.
    Path,
    /// The order of functions on a branch: the second one is between functions that `Priority`
    /// relates.
    Branch,
}

/// A rule over functions by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The content of the rule.
    pub rule: PolicyRule,
    /// The origin of the rule.
    pub origin: Origin,
}

impl Rule {
    /// The functions that the rule makes one unit.
    pub(super) fn joins(&self) -> Option<(usize, usize)> {
        let on_branch = order(self.rule).filter(|_| self.origin == Origin::Branch);
        priority(self.rule).or(on_branch)
    }
}

/// The reason why a policy has no graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// More functions than [`MAX_FUNCTIONS`].
    TooMany(usize),
    /// A rule names an unknown function.
    Unknown(String),
    /// Two rules contradict each other.
    Conflict(String, String),
    /// Rules that form a cycle.
    Cycle(Vec<String>),
    /// No rule orders these pairs of functions, and the result depends on their order.
    Undecided(Vec<Open>),
}

/// Two functions that no rule orders, although the result depends on their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Open {
    /// Their names.
    pub between: [String; 2],
    /// Why the result depends on their order.
    pub why: String,
}

impl fmt::Display for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([a, b], why) = (&self.between, &self.why);
        write!(
            f,
            "no rule says which of {a} and {b} comes first, but the result depends on it: {why}; \
             add Order({a}, before, {b}), Order({b}, before, {a}) or a Priority"
        )
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::TooMany(count) => {
                write!(f, "{count} functions in a row, but at most {MAX_FUNCTIONS} are analysed")
            }
            Problem::Unknown(rule) => write!(f, "{rule} names a function that is not there"),
            Problem::Conflict(a, b) => write!(f, "{a} contradicts {b}"),
            Problem::Cycle(rules) => write!(f, "rules go round in a circle: {}", rules.join(", ")),
            Problem::Undecided(open) => {
                let open: Vec<String> = open.iter().map(Open::to_string).collect();
                f.write_str(&open.join("\n"))
            }
        }
    }
}

impl std::error::Error for Problem {}

/// Two related functions: the right half of the intermediate representation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Pair {
    /// The function that comes first. Under `Priority`, the function with the lower priority.
    pub first: usize,
    /// The other function. If both run in parallel, its result has the higher priority.
    pub second: usize,
    /// The rule as written. `None`: the order follows from other rules.
    pub rule: Option<String>,
    /// Whether the rule is a `Priority`.
    pub priority: bool,
    /// The result of Algorithm 1.
    pub finding: Finding,
}

/// The intermediate representation of a policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Representation {
    /// The function that comes before all others.
    pub first: Option<usize>,
    /// The function that comes after all others.
    pub last: Option<usize>,
    /// Functions that no rule names.
    pub free: Vec<usize>,
    /// Related pairs, without the functions that have a position.
    pub pairs: Vec<Pair>,
    /// The units, in an order in which they could run in sequence. A unit is a group of functions
    /// that `Priority` relates and those between them, or a single function. In a group, branches
    /// with lower priority come first.
    #[serde(skip)]
    pub(super) units: Vec<Vec<usize>>,
    /// For each function, the first function of its branch.
    #[serde(skip)]
    pub(super) first_of: Vec<usize>,
}

/// The policy with its lookup tables.
struct Policy<'p> {
    functions: &'p [Function],
    rules: &'p [Rule],
    /// The unit of each function.
    unit_of: Vec<usize>,
    units: Vec<Vec<usize>>,
    /// The first function of each function's branch.
    first_of: Vec<usize>,
}

/// Turns a policy into its intermediate representation.
///
/// # Errors
/// Returns an error when rules contradict each other, or when pairs need a rule and have none.
pub fn represent(functions: &[Function], rules: &[Rule]) -> Result<Representation, Problem> {
    if functions.len() > MAX_FUNCTIONS {
        return Err(Problem::TooMany(functions.len()));
    }
    let each: Vec<usize> = (0..functions.len()).collect();
    let (unit_of, first_of) = (each.clone(), each);
    let mut policy = Policy { functions, rules, unit_of, units: Vec::new(), first_of };
    policy.names()?;
    policy.positions()?;
    policy.join()?;
    policy.rank()?;
    policy.representation()
}

/// The two functions of a rule. `None` for a rule about one function.
fn both(rule: PolicyRule) -> Option<(usize, usize)> {
    match rule {
        PolicyRule::Order(a, b) | PolicyRule::Priority(a, b) => Some((a.into(), b.into())),
        PolicyRule::First(_) | PolicyRule::Last(_) => None,
    }
}

fn order(rule: PolicyRule) -> Option<(usize, usize)> {
    both(rule).filter(|_| matches!(rule, PolicyRule::Order(..)))
}

fn priority(rule: PolicyRule) -> Option<(usize, usize)> {
    both(rule).filter(|_| matches!(rule, PolicyRule::Priority(..)))
}

impl Policy<'_> {
    fn text(&self, rule: &Rule) -> String {
        let name = |at: u16| {
            self.functions.get(usize::from(at)).map_or_else(|| at.to_string(), |f| f.name.clone())
        };
        match (rule.rule, rule.origin) {
            (PolicyRule::Order(a, b), Origin::Path | Origin::Branch) => {
                format!("the path, where {} comes before {}", name(a), name(b))
            }
            (PolicyRule::Order(a, b), Origin::Policy) => {
                format!("Order({}, before, {})", name(a), name(b))
            }
            (PolicyRule::Priority(a, b), _) => format!("Priority({} > {})", name(a), name(b)),
            (PolicyRule::First(a), _) => format!("Position({}, first)", name(a)),
            (PolicyRule::Last(a), _) => format!("Position({}, last)", name(a)),
        }
    }

    fn names(&self) -> Result<(), Problem> {
        let unknown = self.rules.iter().find(|rule| {
            let (a, b) = match rule.rule {
                PolicyRule::Order(a, b) | PolicyRule::Priority(a, b) => (a, b),
                PolicyRule::First(a) | PolicyRule::Last(a) => (a, a),
            };
            usize::from(a.max(b)) >= self.functions.len()
        });
        unknown.map_or(Ok(()), |rule| Err(Problem::Unknown(self.text(rule))))
    }

    /// Checks that rules about positions do not contradict each other or other rules.
    fn positions(&self) -> Result<(), Problem> {
        use PolicyRule::{First, Last, Order, Priority};
        let contradict = |a: PolicyRule, b: PolicyRule| match (a, b) {
            (First(x), First(y)) | (Last(x), Last(y)) => x != y,
            (First(x), Last(y)) => x == y,
            (First(x), Order(_, y)) | (Last(x), Order(y, _)) => x == y,
            (First(x) | Last(x), Priority(y, z)) => x == y || x == z,
            _ => false,
        };
        for (at, a) in self.rules.iter().enumerate() {
            for b in &self.rules[at + 1..] {
                if contradict(a.rule, b.rule) || contradict(b.rule, a.rule) {
                    return Err(Problem::Conflict(self.text(a), self.text(b)));
                }
            }
        }
        Ok(())
    }

    /// Joins functions that `Priority` relates, and those between them, into one unit. Branches
    /// with lower priority come first.
    fn join(&mut self) -> Result<(), Problem> {
        let priorities: Vec<(usize, usize, usize)> = self
            .rules
            .iter()
            .enumerate()
            .filter_map(|(at, rule)| priority(rule.rule).map(|(a, b)| (a, b, at)))
            .collect();
        for (a, b) in self.rules.iter().filter_map(Rule::joins) {
            let (kept, joined) = (self.unit_of[a], self.unit_of[b]);
            self.unit_of.iter_mut().filter(|u| **u == joined).for_each(|unit| *unit = kept);
        }
        for rule in self.rules.iter().filter(|rule| rule.origin == Origin::Branch) {
            if let Some((a, b)) = order(rule.rule) {
                self.first_of[b] = self.first_of[a];
            }
        }
        let sorted = self.sort(&(0..self.functions.len()).collect::<Vec<_>>(), &priorities)?;
        let mut units: Vec<Vec<usize>> = vec![Vec::new(); self.functions.len()];
        // Where no rule compares two functions, the earlier one has the higher priority, as in the
        // engines.
        for first in sorted.into_iter().rev() {
            let branch = (0..self.functions.len()).filter(|f| self.first_of[*f] == first);
            units[self.unit_of[first]].extend(branch);
        }
        self.units = units;
        // An order of two functions in one unit contradicts their priorities.
        for rule in self.rules {
            let Some((a, b)) = order(rule.rule) else { continue };
            let are_related = self.first_of[a] == a && self.first_of[b] == b;
            if are_related && self.unit_of[a] == self.unit_of[b] {
                let between = |r: &&Rule| {
                    priority(r.rule).is_some_and(|(x, _)| self.unit_of[x] == self.unit_of[a])
                };
                let joining = self.rules.iter().find(between).map(|r| self.text(r));
                return Err(match joining {
                    Some(joining) => Problem::Conflict(self.text(rule), joining),
                    None => Problem::Cycle(vec![self.text(rule)]),
                });
            }
        }
        Ok(())
    }

    /// Numbers the units in an order that the rules allow. Where they allow several orders, the
    /// order of the policy's functions decides.
    fn rank(&mut self) -> Result<(), Problem> {
        let orders: Vec<(usize, usize, usize)> = self
            .rules
            .iter()
            .enumerate()
            .filter_map(|(at, rule)| order(rule.rule).map(|(a, b)| (a, b, at)))
            .map(|(a, b, at)| (self.unit_of[a], self.unit_of[b], at))
            .filter(|(a, b, _)| a != b)
            .collect();
        let used: Vec<usize> =
            (0..self.units.len()).filter(|u| !self.units[*u].is_empty()).collect();
        let sorted = self.sort(&used, &orders)?;
        let mut number = vec![0; self.units.len()];
        for (rank, unit) in sorted.iter().enumerate() {
            number[*unit] = rank;
        }
        self.units = sorted.iter().map(|unit| std::mem::take(&mut self.units[*unit])).collect();
        self.unit_of.iter_mut().for_each(|unit| *unit = number[*unit]);
        Ok(())
    }

    /// Sorts things topologically by edges of the form (from, to, rule).
    fn sort(
        &self,
        things: &[usize],
        edges: &[(usize, usize, usize)],
    ) -> Result<Vec<usize>, Problem> {
        let (mut rest, mut sorted) = (things.to_vec(), Vec::with_capacity(things.len()));
        while !rest.is_empty() {
            let is_free = |thing: usize| {
                !edges.iter().any(|(from, to, _)| *to == thing && rest.contains(from))
            };
            let Some(at) = rest.iter().position(|thing| is_free(*thing)) else {
                return Err(self.circle(&rest, edges));
            };
            sorted.push(rest.remove(at));
        }
        Ok(sorted)
    }

    /// The rules of a cycle among `things`. Each of the things has an edge to it from another one.
    fn circle(&self, things: &[usize], edges: &[(usize, usize, usize)]) -> Problem {
        let mut at = things.first().copied().unwrap_or_default();
        let (mut seen, mut rules): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        while !seen.contains(&at) {
            seen.push(at);
            let into = edges.iter().find(|(from, to, _)| *to == at && things.contains(from));
            let Some((from, _, rule)) = into else { break };
            rules.push(*rule);
            at = *from;
        }
        let start = seen.iter().position(|thing| *thing == at).unwrap_or_default();
        let circle = rules[start..].iter().rev().map(|rule| self.text(&self.rules[*rule]));
        Problem::Cycle(circle.collect())
    }

    fn representation(self) -> Result<Representation, Problem> {
        let position = |wanted: fn(PolicyRule) -> Option<u16>| {
            self.rules.iter().find_map(|rule| wanted(rule.rule)).map(usize::from)
        };
        let first = position(|rule| matches!(rule, PolicyRule::First(_)).then(|| of(rule)));
        let last = position(|rule| matches!(rule, PolicyRule::Last(_)).then(|| of(rule)));
        let named = |function: usize| {
            Some(function) == first
                || Some(function) == last
                || self
                    .rules
                    .iter()
                    .filter_map(|rule| both(rule.rule))
                    .any(|(a, b)| a == function || b == function)
        };
        let free = (0..self.functions.len()).filter(|function| !named(*function)).collect();
        let pairs = self.pairs(first, last)?;
        Ok(Representation { first, last, free, pairs, units: self.units, first_of: self.first_of })
    }

    /// All pairs of functions without a position.
    fn pairs(&self, first: Option<usize>, last: Option<usize>) -> Result<Vec<Pair>, Problem> {
        let follows = self.follows();
        let alone = |unit: &[usize]| unit.iter().any(|f| Some(*f) == first || Some(*f) == last);
        let (mut pairs, mut open) = (Vec::new(), Vec::new());
        for (a, unit_a) in self.units.iter().enumerate() {
            if alone(unit_a) {
                continue;
            }
            for (at, yields) in unit_a.iter().enumerate() {
                pairs.extend(unit_a[at + 1..].iter().map(|other| {
                    match self.first_of[*yields] == self.first_of[*other] {
                        true => self.ordered(*yields, *other),
                        false => self.joined(*yields, *other),
                    }
                }));
            }
            for (b, unit_b) in self.units.iter().enumerate().skip(a + 1) {
                if alone(unit_b) {
                    continue;
                }
                for (x, y) in unit_a.iter().flat_map(|x| unit_b.iter().map(move |y| (*x, *y))) {
                    let pair = self.ordered(x, y);
                    if !follows[a][b] {
                        open.extend(self.open(&pair));
                    }
                    pairs.push(pair);
                }
            }
        }
        if open.is_empty() { Ok(pairs) } else { Err(Problem::Undecided(open)) }
    }

    /// For each unit, the units that follow it directly or through other orders.
    fn follows(&self) -> Vec<Vec<bool>> {
        let count = self.units.len();
        let mut follows = vec![vec![false; count]; count];
        for (a, b) in self.rules.iter().filter_map(|rule| order(rule.rule)) {
            follows[self.unit_of[a]][self.unit_of[b]] = true;
        }
        // Orders lead to units with higher numbers, so later units are complete first.
        for a in (0..count).rev() {
            for b in a + 1..count {
                if follows[a][b] {
                    let after = follows[b].clone();
                    follows[a].iter_mut().zip(after).for_each(|(known, more)| *known |= more);
                }
            }
        }
        follows
    }

    fn rule_of(&self, wanted: PolicyRule) -> Option<String> {
        self.rules.iter().find(|rule| rule.rule == wanted).map(|rule| self.text(rule))
    }

    fn ordered(&self, first: usize, second: usize) -> Pair {
        let (a, b) = (&self.functions[first].actions, &self.functions[second].actions);
        let rule = self.rule_of(PolicyRule::Order(number(first), number(second)));
        let finding = identify(a, b, Reading::default());
        Pair { first, second, rule, priority: false, finding }
    }

    fn joined(&self, yields: usize, wins: usize) -> Pair {
        let (a, b) = (&self.functions[yields].actions, &self.functions[wins].actions);
        let rule = self.rule_of(PolicyRule::Priority(number(wins), number(yields)));
        let finding = identify_priority(a, b);
        Pair { first: yields, second: wins, rule, priority: true, finding }
    }

    /// Why the order of two functions that no rule relates makes a difference. `None` if it does
    /// not. The sum of two changes of a checksum is the same in either order.
    fn open(&self, pair: &Pair) -> Option<Open> {
        let (a, b) = (&self.functions[pair.first], &self.functions[pair.second]);
        let reverse = identify(&b.actions, &a.actions, Reading::default());
        let both = [(&pair.finding, a, b), (&reverse, b, a)];
        let differ = both.into_iter().flat_map(|(finding, first, second)| {
            let conflicts = finding.conflicts.iter().filter(|conflict| conflict.beside.is_none());
            conflicts.map(move |conflict| (conflict, first, second))
        });
        // A written field says more than that packets are dropped.
        let writes = |conflict: &Conflict| {
            [&conflict.first, &conflict.second].iter().any(|action| action.kind() == Kind::Write)
        };
        let (why, first, second) = differ.min_by_key(|(conflict, ..)| !writes(conflict))?;
        let why = why.text(&first.name, &second.name);
        Some(Open { between: [a.name.clone(), b.name.clone()], why })
    }
}

fn of(rule: PolicyRule) -> u16 {
    match rule {
        PolicyRule::Order(a, _)
        | PolicyRule::Priority(a, _)
        | PolicyRule::First(a)
        | PolicyRule::Last(a) => a,
    }
}

/// A function as a number of a rule. There are at most [`MAX_FUNCTIONS`] functions.
fn number(function: usize) -> u16 {
    u16::try_from(function).unwrap_or(u16::MAX)
}
