//! Mutants of the delivery of events to the functions that take them. Tests show that generated
//! chains find each of them. A mutant can be active only with the feature `mutants`.

/// A mutant of delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "mutants"), allow(dead_code, reason = "no mutant is active then"))]
pub enum DeliveryMutant {
    /// Events of types that extend the handler's type do not come to it.
    DescendantsIgnored,
    /// Only the first of several handlers runs.
    OthersIgnored,
    /// Handlers run in the opposite order of their functions.
    HandlersReversed,
    /// Events of handlers are handled after the other handlers.
    NestedLast,
    /// Handlers do not renew the entries that they find.
    NothingRenewed,
    /// After a handler, the program has found no entries.
    FoundForgotten,
    /// Residual programs do not deliver their events before they go on.
    DeliveredLater,
    /// Flow records are made for paths that publish events which functions take.
    TakenRecorded,
}

/// All mutants, for tests that try each of them.
#[cfg(feature = "mutants")]
pub const DELIVERY_MUTANTS: [DeliveryMutant; 8] = [
    DeliveryMutant::DescendantsIgnored,
    DeliveryMutant::OthersIgnored,
    DeliveryMutant::HandlersReversed,
    DeliveryMutant::NestedLast,
    DeliveryMutant::NothingRenewed,
    DeliveryMutant::FoundForgotten,
    DeliveryMutant::DeliveredLater,
    DeliveryMutant::TakenRecorded,
];

/// A text that stays in each program with mutants. `scripts/check-no-mutants.sh` looks for it.
#[cfg(feature = "mutants")]
const MARK: &str = "built with mutants of delivery";

/// The mutant that the functions of an engine have, if any.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Mutants {
    #[cfg(feature = "mutants")]
    pub(crate) active: Option<DeliveryMutant>,
}

impl Mutants {
    /// Whether the functions have this mutant. Without the feature they have none.
    #[inline(always)]
    pub(crate) fn has(self, mutant: DeliveryMutant) -> bool {
        #[cfg(feature = "mutants")]
        {
            std::hint::black_box(MARK);
            self.active == Some(mutant)
        }
        #[cfg(not(feature = "mutants"))]
        {
            let _ = mutant;
            false
        }
    }
}
