//! Measures engines against each other and against floors.
//!
//! Packets lie in memory. Within one run on one core, engines take turns: each runs a trial of some
//! milliseconds at a time, so that a change of the machine's speed affects all of them. The time to
//! copy frames into packet buffers is measured in the same way and subtracted. Before the
//! measurements, the output of each engine is compared with the output of `reference`.
#![forbid(unsafe_code)]

mod answers;
pub mod check;
mod clock;
pub mod compile;
pub mod costs;
pub mod definition;
pub mod export;
pub mod feed;
mod first;
mod floor;
mod flow_time;
pub mod frames;
pub mod html;
pub mod inputs;
pub mod machine;
pub mod measure;
pub mod memory;
pub mod mix;
pub mod overheads;
mod percentiles;
mod perf;
mod plan;
mod plot;
pub mod report;

mod seen;
pub mod selection;
pub mod sequence;
pub mod setup;
mod spread;
pub mod stages;
pub mod subject;
mod sweep;
pub mod tables;
pub mod trace;
pub mod traffic;

use thiserror::Error as ThisError;

/// The reasons why a bench cannot run.
#[derive(Debug, ThisError)]
pub enum Error {
    /// A definition is wrong.
    #[error("bench {name}: {why}")]
    Definition {
        /// The bench.
        name: String,
        /// The mistake.
        why: String,
    },
    /// A bench's chain, rules or routes are wrong.
    #[error("bench {name}: {why}")]
    Chain {
        /// The bench.
        name: String,
        /// The mistake.
        why: String,
    },
    /// An engine's output differs from the output of `reference`.
    #[error("bench {name}: {engine} differs from reference: {why}")]
    Differs {
        /// The bench and its case.
        name: String,
        /// The engine.
        engine: String,
        /// The difference.
        why: String,
    },
    /// No checked packet took a flow record.
    #[error(
        "bench {name}: fused: none of the {packets} packets of the check took a flow record, so the \
         check says nothing about records; `hits = false` says that the chain has none"
    )]
    NoHits {
        /// The bench and its case.
        name: String,
        /// Number of packets.
        packets: u64,
    },
    /// The machine does not allow something that the bench needs.
    #[error("{0}")]
    Machine(String),
    /// A file cannot be used.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        why: String,
    },
}
