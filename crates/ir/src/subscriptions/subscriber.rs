//! One subscription.

/// A handler that takes an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subscriber {
    /// The function, by number.
    pub node: u16,
    /// The handler's place in [`Model::handlers`](crate::model::Model::handlers).
    pub handler: usize,
}
