//! Mutants of the analysis: deliberate mistakes. Tests show that generated chains find each of
//! them. A mutant can be active only with the feature `mutants`.

/// A mutant of the analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "mutants"), allow(dead_code, reason = "no mutant is active then"))]
pub enum ShardingMutant {
    /// ICMP echoes that functions build are forgotten.
    NoEchoes,
    /// Packets that functions build with a header behind a UDP port are forgotten.
    NoPorts,
    /// Packets that functions build with a header between link header and IP are forgotten.
    BareLinks,
    /// Packets that functions build with a quote that is too short are forgotten.
    LongQuotes,
    /// The values of a table that only counts may decide something.
    DecidingSums,
    /// Any new value of an index takes turns.
    AnyTurns,
    /// The connections of stream functions, and what native functions keep, are forgotten.
    NoConnections,
    /// Stream functions are followed in the direction of the packet only.
    OneWay,
    /// Handlers of stream functions decide about no connection.
    OrdersIgnored,
}

/// A text that stays in each program with mutants. `scripts/check-no-mutants.sh` looks for it.
#[cfg(feature = "mutants")]
const MARK: &str = "built with mutants of sharding";

/// Whether this mutant is active. Without the feature `mutants`, none is.
pub(super) fn is(bug: Option<ShardingMutant>, this: ShardingMutant) -> bool {
    #[cfg(feature = "mutants")]
    std::hint::black_box(MARK);
    cfg!(feature = "mutants") && bug == Some(this)
}
