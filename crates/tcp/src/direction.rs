//! The two directions of a connection, and pairs of things that each direction has.

/// A direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Direction {
    /// From the end that opened the connection. If the start of the connection was not seen, from
    /// the sender of the first packet.
    Forward,
    /// To that end.
    Backward,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];

    /// The other direction.
    #[must_use]
    pub fn reversed(self) -> Direction {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }
}

/// One thing for each direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pair<T> {
    /// The one of the forward direction.
    pub forward: T,
    /// The one of the backward direction.
    pub backward: T,
}

impl<T> Pair<T> {
    /// The one of a direction.
    #[must_use]
    pub fn of(&self, direction: Direction) -> &T {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Backward => &self.backward,
        }
    }

    /// The one of a direction, to be changed.
    pub fn of_mut(&mut self, direction: Direction) -> &mut T {
        self.split(direction).0
    }

    /// The one of a direction and then the other one.
    pub fn split(&mut self, direction: Direction) -> (&mut T, &mut T) {
        match direction {
            Direction::Forward => (&mut self.forward, &mut self.backward),
            Direction::Backward => (&mut self.backward, &mut self.forward),
        }
    }
}
