//! Values of parameters: sets, rule sets, route tables, backends, pools, patterns, strings, keys.

use crate::ty::{ParamTy, Ty, Word};
pub use braid_intervals::IntervalSet;

/// The most members of a list, and the most backends that a parameter ever has: removed backends
/// keep their numbers.
pub const MAX_MEMBERS: usize = 65_536;
/// The most rules of a rule set.
pub const MAX_RULES: usize = 1 << 20;

/// A parameter's value.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamValue {
    /// One scalar.
    Scalar(Word),
    /// Members, each with a value for each column.
    List(Vec<Vec<Word>>),
    /// A set.
    Set(IntervalSet),
    /// An ordered rule set.
    Rules(RuleSet),
    /// A route table.
    Routes(crate::routes::RouteTable),
    /// Patterns.
    Patterns(braid_externs::patterns::PatternSet),
    /// Signatures.
    Signatures(braid_signatures::Signatures),
    /// A set of strings.
    Strings(crate::strings::StringSet),
    /// Secret keys.
    Keys(braid_crypto::Keys),
    /// A pool's members.
    Pool(IntervalSet),
    /// Backends.
    Backends(Vec<Backend>),
    /// Text.
    Str(String),
}

/// A backend. Its number is its place in the list. The number stays the same for the whole run,
/// because state holds numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Backend {
    /// A value for each column. The first value identifies the backend.
    pub columns: Vec<Word>,
    /// Whether it can be used.
    pub health: Health,
}

/// Whether a backend can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Health {
    /// It can be used.
    Up,
    /// It cannot be used at the moment.
    Down,
    /// It was removed: it is treated as down, and is no longer a member. It keeps its number, so a
    /// number in state never refers to another backend later.
    Removed,
}

impl Backend {
    /// A backend that is up.
    #[must_use]
    pub fn up(columns: Vec<Word>) -> Self {
        Self { columns, health: Health::Up }
    }

    /// Whether it was removed.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.health == Health::Removed
    }
}

/// An ordered rule set. The first matching rule decides, then the default. A packet that is not IP
/// matches no rule and does not pass.
#[derive(Clone, PartialEq, Debug)]
pub struct RuleSet {
    /// Rules in order.
    pub rules: Vec<Rule>,
    /// Whether packets that match no rule pass.
    pub default_pass: bool,
}

impl RuleSet {
    /// The number of rules, for messages.
    #[must_use]
    pub fn counted(&self) -> String {
        match self.rules.len() {
            1 => "1 rule".to_owned(),
            count => format!("{count} rules"),
        }
    }
}

/// A rule: a conjunction of conditions. `None` in an optional part matches everything.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// Source and destination addresses, which determine the IP version. `None` matches either
    /// version.
    pub addrs: Option<RuleAddrs>,
    /// Upper-layer protocol: (value, mask). Mask 0 matches everything.
    pub proto: (u8, u8),
    /// TCP or UDP source port, inclusive. (0, 65535) also matches packets without ports.
    pub sport: (u16, u16),
    /// TCP or UDP destination port, inclusive. (0, 65535) also matches packets without ports.
    pub dport: (u16, u16),
    /// TCP flags: (value, mask). A mask other than 0 matches only packets with a TCP header.
    pub tcp_flags: (u8, u8),
    /// ICMP or ICMPv6 type (high half) and code (low half): (value, mask). A mask other than 0
    /// matches only packets with an ICMP or ICMPv6 header.
    pub icmp: (u16, u16),
    /// Whether packets that match pass.
    pub pass: bool,
    /// Line in its file, from 1. It is 0 if unknown.
    pub line: u32,
}

/// Addresses of a rule: inclusive ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleAddrs {
    /// IPv4.
    V4 {
        /// Source addresses.
        src: (u32, u32),
        /// Destination addresses.
        dst: (u32, u32),
    },
    /// IPv6.
    V6 {
        /// Source addresses.
        src: (u128, u128),
        /// Destination addresses.
        dst: (u128, u128),
    },
}

impl braid_externs::Backend for Backend {
    fn name(&self) -> Word {
        self.columns.first().copied().unwrap_or(0)
    }

    fn is_up(&self) -> bool {
        self.health == Health::Up
    }
}

impl ParamValue {
    /// The key with this number, if the value has keys.
    #[must_use]
    pub fn key(&self, number: Word) -> Option<&braid_crypto::Key> {
        match self {
            Self::Keys(keys) => keys.get(number),
            _ => None,
        }
    }

    /// Checks that the value has this type: every scalar fits its width, and every row has a value
    /// for each column.
    ///
    /// # Errors
    /// The part that does not fit.
    pub fn check(&self, ty: &ParamTy) -> Result<(), String> {
        match (ty, self) {
            (ParamTy::Scalar(ty), Self::Scalar(value)) => fits(*ty, *value),
            (ParamTy::List(columns), Self::List(rows)) => {
                rows.iter().try_for_each(|row| row_fits(columns, row))
            }
            (ParamTy::Backends(columns), Self::Backends(all)) => {
                all.iter().try_for_each(|one| row_fits(columns, &one.columns))
            }
            (ParamTy::Set(ty), Self::Set(set)) | (ParamTy::Pool(ty, _), Self::Pool(set)) => {
                set.intervals().last().map_or(Ok(()), |(_, hi)| fits(*ty, *hi))
            }
            (ParamTy::Rules, Self::Rules(_))
            | (ParamTy::Routes, Self::Routes(_))
            | (ParamTy::Patterns, Self::Patterns(_))
            | (ParamTy::Signatures, Self::Signatures(_))
            | (ParamTy::Keys, Self::Keys(_))
            | (ParamTy::Str, Self::Str(_)) => Ok(()),
            (ParamTy::Hosts, Self::Strings(set)) if set.is_of_hosts() => Ok(()),
            (ParamTy::Strings(most), Self::Strings(set)) if !set.is_of_hosts() => {
                match set.longest() {
                    long if long > usize::from(*most) => {
                        Err(format!("a string of {long} bytes is no bytes<{most}>"))
                    }
                    _ => Ok(()),
                }
            }
            _ => Err("a value of another type".to_owned()),
        }
    }
}

fn fits(ty: Ty, value: Word) -> Result<(), String> {
    if value <= ty.max() { Ok(()) } else { Err(format!("{value} does not fit {ty}")) }
}

fn row_fits(columns: &[(String, Ty)], row: &[Word]) -> Result<(), String> {
    if row.len() != columns.len() {
        return Err(format!("a row of {} values for {} columns", row.len(), columns.len()));
    }
    columns.iter().zip(row).try_for_each(|((_, ty), value)| fits(*ty, *value))
}
