//! Work on all cores, with results in the order of the jobs.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread::{available_parallelism, scope};

/// Does all jobs. `each` receives every result in the order of the jobs, and decides whether to
/// continue. Jobs that have begun by then end first, without a result.
pub(crate) fn in_order<J: Sync, R: Send>(
    jobs: &[J],
    work: &(dyn Fn(&J) -> R + Sync),
    each: &mut dyn FnMut(&J, R) -> bool,
) {
    let next = AtomicUsize::new(0);
    let workers = available_parallelism().map_or(1, NonZero::get).min(jobs.len());
    scope(|scope| {
        let (sender, results) = channel();
        for _ in 0..workers {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(number) else { break };
                    if sender.send((number, work(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut wanted = 0;
        for (number, result) in results {
            early.insert(number, result);
            while let Some(result) = early.remove(&wanted) {
                if !each(&jobs[wanted], result) {
                    next.store(jobs.len(), Ordering::Relaxed);
                    return;
                }
                wanted += 1;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..200).rev().collect();
        let mut seen = Vec::new();
        // The first jobs take longest.
        let work = |job: &u64| (0..*job * 1000).fold(0_u64, |sum, one| sum.rotate_left(3) ^ one);
        in_order(&jobs, &work, &mut |job, result| {
            assert_eq!(result, work(job));
            seen.push(*job);
            true
        });
        assert_eq!(seen, jobs);
    }

    #[test]
    fn no_result_comes_after_the_last_wanted_one() {
        let jobs: Vec<u64> = (0..1000).collect();
        let mut seen = Vec::new();
        in_order(&jobs, &|job| *job, &mut |job, _| {
            seen.push(*job);
            *job < 9
        });
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
    }
}
