//! The engines of a run: one, or one for each worker.

use crate::sharded::Sharded;
use crate::steer::Steerer;
use braid_ir::chain::Chain;
use braid_ir::engine::Engine;
use std::any::TypeId;

/// The engines that run the packets of a chain.
pub enum Engines {
    /// One engine.
    One(Box<dyn Engine>),
    /// An engine for each worker.
    Workers(Box<Sharded>),
}

impl From<Box<dyn Engine>> for Engines {
    fn from(engine: Box<dyn Engine>) -> Self {
        Self::One(engine)
    }
}

impl Engines {
    /// Makes the engine of a chain, or the engines of its workers.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn new<E>(
        chain: &Chain,
        make: impl Fn(Chain) -> Result<Box<dyn Engine>, E>,
    ) -> Result<Self, E> {
        Ok(match chain.workers {
            0 | 1 => Self::One(make(chain.clone())?),
            _ => Self::Workers(Box::new(Sharded::new(chain, make)?)),
        })
    }

    /// All engines as one.
    pub fn whole(&mut self) -> &mut dyn Engine {
        match self {
            Engines::One(engine) => engine.as_mut(),
            Engines::Workers(workers) => workers.as_mut(),
        }
    }

    /// All engines as one.
    #[must_use]
    pub fn into_engine(self) -> Box<dyn Engine> {
        match self {
            Engines::One(engine) => engine,
            Engines::Workers(workers) => workers,
        }
    }

    /// The type of the engines, if they can take over the tables of engines of the same type.
    pub(crate) fn type_of(&mut self) -> Option<TypeId> {
        type_of(match self {
            Engines::One(engine) => engine.as_mut(),
            Engines::Workers(workers) => workers.engines.first_mut()?.as_mut(),
        })
    }

    /// The engines by worker. With several, also the steerer that gives them their packets.
    pub(crate) fn into_parts(self) -> (Vec<Box<dyn Engine>>, Option<Steerer>) {
        match self {
            Engines::One(engine) => (vec![engine], None),
            Engines::Workers(workers) => {
                let Sharded { steerer, engines, .. } = *workers;
                (engines, Some(steerer))
            }
        }
    }

    /// The engines of a chain, by worker.
    pub(crate) fn of(engines: Vec<Box<dyn Engine>>, chain: &Chain) -> Self {
        match <[_; 1]>::try_from(engines) {
            Ok([engine]) => Self::One(engine),
            Err(engines) => Self::Workers(Box::new(Sharded::of(engines, chain))),
        }
    }
}

/// The type of an engine, if engines of this type can take over each other's tables.
pub(crate) fn type_of(engine: &mut dyn Engine) -> Option<TypeId> {
    engine.movable().map(|engine| (*engine).type_id())
}
