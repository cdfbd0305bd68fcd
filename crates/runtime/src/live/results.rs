//! The combined results of several workers.

use super::shared::Shared;
use super::sink::{remedies, settle};
use super::worker::{Counted, Worker};
use crate::engines::Engines;
use crate::outcome::{RunError, Summary};
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, Engine};
use std::sync::Arc;

/// A live run that has ended.
pub struct Done {
    /// The chain that ran last, as it was loaded.
    pub chain: Arc<Chain>,
    /// Its engine.
    pub engine: Box<dyn Engine>,
    /// The results. If an output cannot be written, the run ends with a summary that contains the
    /// failure ([`Summary::unwritten`]). An error says that a device cannot be read, or packets are
    /// unaccounted for.
    pub result: Result<Summary, RunError>,
}

/// The counters of a chain, from those of its workers.
pub(super) fn united(parts: Vec<Counted>, chain: &Chain) -> Counters {
    let (counters, unsent): (Vec<_>, Vec<_>) =
        parts.into_iter().map(|Counted { counters, unsent }| (counters, unsent)).unzip();
    let mut all = Counters::united(counters, chain);
    unsent.iter().for_each(|unsent| settle(&mut all, unsent));
    all
}

/// The results of a run whose workers have ended, each with its own result.
pub(super) fn of<'a>(
    ended: Vec<(Worker<'a>, Result<(), RunError>)>,
    shared: &Arc<Shared<'a>>,
) -> Done {
    let (mut workers, ran): (Vec<_>, Vec<_>) = ended.into_iter().unzip();
    let ran = ran.into_iter().collect();
    workers.iter_mut().for_each(Worker::end);
    shared.record(|record| record.sinks.finish());
    #[expect(clippy::indexing_slicing, reason = "a run has at least one worker")]
    let chain = Arc::clone(&workers[0].chain);
    let result = summary(&mut workers, ran, &chain, shared);
    let engines = workers.into_iter().map(|worker| worker.engine).collect();
    let engine = Engines::of(engines, &chain).into_engine();
    Done { chain, engine, result }
}

fn summary(
    workers: &mut [Worker<'_>],
    ran: Result<(), RunError>,
    chain: &Chain,
    shared: &Shared<'_>,
) -> Result<Summary, RunError> {
    ran?;
    let counters = united(workers.iter().map(Worker::counted).collect(), chain);
    if !counters.balanced() {
        return Err(RunError::Unbalanced(Box::new(counters)));
    }
    let mut warnings = shared.hosts_warnings();
    warnings.extend(workers.iter_mut().flat_map(|worker| worker.sink.warnings()));
    warnings.extend(remedies(&counters));
    let mut unwritten = Vec::new();
    shared.record(|record| unwritten.append(&mut record.sinks.failed));
    let refused = shared.refused(0);
    Ok(Summary { counters, follow: None, warnings, refused, unwritten })
}
