//! Measures engines against each other and against floors.
//!
//! Packets lie in memory. Engines take turns on one core within one run, each for a segment of
//! packets at a time, so that what changes on the machine changes for all; the time that it takes to
//! copy frames into packet buffers is measured as one of them and subtracted. Before anything is
//! measured, what each engine gives out is compared with what `reference` gives.
#![forbid(unsafe_code)]

pub mod check;
mod clock;
pub mod compile;
pub mod definition;
pub mod export;
mod first;
mod floor;
mod flow_time;
pub mod frames;
pub mod html;
pub mod inputs;
pub mod machine;
pub mod measure;
pub mod memory;
mod percentiles;
mod perf;
mod plot;
pub mod report;
pub mod setup;
pub mod subject;
mod sweep;
pub mod tables;
pub mod trace;
pub mod traffic;

use thiserror::Error as ThisError;

/// Why a bench cannot run.
#[derive(Debug, ThisError)]
pub enum Error {
    /// A definition is wrong.
    #[error("bench {name}: {why}")]
    Definition {
        /// The bench.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// Its chain, rules or routes are.
    #[error("bench {name}: {why}")]
    Chain {
        /// The bench.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// An engine does not do what `reference` does.
    #[error("bench {name}: {engine} differs from reference: {why}")]
    Differs {
        /// The bench and its case.
        name: String,
        /// The engine.
        engine: String,
        /// How.
        why: String,
    },
    /// Something about the machine.
    #[error("{0}")]
    Machine(String),
    /// A file.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: String,
        /// Why not.
        why: String,
    },
}
