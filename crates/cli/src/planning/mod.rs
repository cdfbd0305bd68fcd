//! The choice of `--engine auto`: run-to-completion (`fused`), or stages (`parallel:N`), from costs
//! that are measured on packets.
//!
//! Only instances made for the measurement see these packets. A run's state, counters and events do
//! not change.

pub mod calibration;
pub mod sample;
pub mod words;

use std::time::{Duration, Instant};

use braid_bench::costs::{self, Measured};
use braid_compiler::parallel::stages::stages;
use braid_ir::chain::Chain;
use braid_ir::service_graph::stages::Stages;
use braid_sim::{Candidate, Cost, Goal, Overheads, Staged, choose};
use serde_json::{Value, json};

use crate::answer::Failure;
use crate::native;
use sample::{Sample, sample};

/// The time for the whole chain, and for all its stages.
const LIMITS: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(120)];
/// The time after which no further plan is compiled and measured.
const COMPILING: Duration = Duration::from_secs(1);

/// What was measured of a chain, and what it predicts.
pub struct Planned {
    /// The packets that were measured.
    pub packets: usize,
    /// Where they come from.
    pub source: &'static str,
    /// The overheads of stages.
    pub overheads: Overheads,
    /// The cost of the chain on `fused`.
    pub whole: Cost,
    /// The plans of 2 stages and more.
    pub plans: Vec<(Stages, Measured)>,
    /// Run-to-completion, and then the plans.
    pub candidates: Vec<Candidate>,
}

/// The plans of a chain with 2 stages and more, at most this number.
pub fn plans(chain: &Chain, most: usize) -> Vec<Stages> {
    let mut plans: Vec<Stages> = (2..=most.min(chain.nodes.len()))
        .map(|most| stages(chain, most))
        .filter(|plan| plan.stages.len() > 1)
        .collect();
    plans.dedup_by_key(|plan| plan.stages.len());
    plans
}

/// The reason why a chain must not be measured.
pub fn unmeasurable(chain: &Chain) -> Option<String> {
    if native::any(chain) {
        let why = "it has native functions, which are not called for a measurement because they \
            may have effects outside";
        return Some(why.to_owned());
    }
    let workers = chain.workers;
    (workers > 1).then(|| format!("its {workers} workers already use several cores"))
}

/// The reason why a chain has no plan of several stages, if at most this number is allowed.
pub fn undivided(chain: &Chain, most: usize) -> Option<String> {
    let plan = stages(chain, most);
    if plan.stages.len() > 1 {
        return None;
    }
    let mut why: Vec<String> =
        plan.together.iter().map(|one| words::reason(chain, &one.why)).collect();
    why.dedup();
    Some(match why.is_empty() {
        true => "it has fewer than two functions".to_owned(),
        false => format!("it is one stage: {}", why.join("; ")),
    })
}

/// The reason why a chain cannot be measured in stages, at most this number of them.
pub fn obstacle(chain: &Chain, most: usize) -> Option<String> {
    unmeasurable(chain).or_else(|| undivided(chain, most))
}

/// Measures a chain that has no [`obstacle`], and predicts it in up to this number of stages.
pub fn plan(chain: &Chain, sample: &Sample, most: usize) -> Result<Planned, String> {
    let [for_whole, for_plans] = LIMITS;
    let packets = &sample.packets;
    let whole = costs::whole(chain, packets, for_whole)?;
    let plans = plans(chain, most);
    let each = for_plans / u32::try_from(plans.len()).unwrap_or(u32::MAX).max(1);
    let begin = Instant::now();
    let measured = |plan: Stages| {
        let found = costs::stages(chain, &plan, packets, each)?;
        Ok((plan, found))
    };
    // With many cores, compiling the stages of many plans takes longer than measuring them.
    let in_time = plans.into_iter().take_while(|_| begin.elapsed() < COMPILING);
    let plans: Vec<(Stages, Measured)> = in_time.map(measured).collect::<Result<_, String>>()?;
    let overheads = calibration::now()?;
    let mut candidates = vec![Candidate::on_one_core(whole)];
    for (plan, Measured { costs, reach, traffic }) in &plans {
        let staged = Staged { routes: &plan.routes, costs: costs.clone(), reach: reach.clone() };
        candidates.push(Candidate::in_stages(&staged, &overheads, traffic));
    }
    let Sample { source, .. } = *sample;
    Ok(Planned { packets: packets.len(), source, overheads, whole, plans, candidates })
}

/// What `auto` has chosen for a run.
pub struct Choice {
    /// The engine.
    pub engine: String,
    /// What the run is for.
    pub goal: Goal,
    /// The reason, a sentence with numbers.
    pub why: String,
    /// What was predicted, if anything was measured.
    pub candidates: Vec<Candidate>,
}

/// Chooses the engine of a run whose captures are these, or of a live run.
pub fn choice(chain: &Chain, goal: Goal, inputs: &[String]) -> Result<Choice, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let fused = |why: String| Choice {
        engine: "fused".to_owned(),
        goal,
        why: format!("the chain runs on one core: {why}"),
        candidates: Vec::new(),
    };
    if cores < 2 {
        return Ok(fused("the machine has no other".to_owned()));
    }
    if let Some(why) = obstacle(chain, cores) {
        return Ok(fused(why));
    }
    let planned = match plan(chain, &sample(inputs, chain)?, cores) {
        Ok(planned) => planned,
        Err(why) => return Ok(fused(why)),
    };
    Ok(match choose(goal, &planned.candidates) {
        Some(best) => Choice {
            engine: engine(best),
            goal,
            why: planned.why(goal, best),
            candidates: planned.candidates.clone(),
        },
        None => fused("nothing was predicted".to_owned()),
    })
}

/// The engine that runs a candidate.
pub fn engine(candidate: &Candidate) -> String {
    match candidate.stages {
        1 => "fused".to_owned(),
        stages => format!("parallel:{stages}"),
    }
}

/// The name of a goal.
pub fn goal_name(goal: Goal) -> &'static str {
    match goal {
        Goal::Throughput => "throughput",
        Goal::Latency => "latency",
    }
}

impl Planned {
    /// The reason why a candidate was chosen for a goal.
    fn why(&self, goal: Goal, chosen: &Candidate) -> String {
        let what = match goal {
            Goal::Throughput => "a packet in full bursts",
            Goal::Latency => "a packet that passes alone",
        };
        let others = self.candidates.iter().filter(|other| other.stages != chosen.stages);
        let best = others.min_by(|a, b| a.time_ns(goal).total_cmp(&b.time_ns(goal)));
        let other = best.map_or_else(String::new, |other| {
            format!(", on {} {:.0} ns", engine(other), other.time_ns(goal))
        });
        format!(
            "{what} should take {:.0} ns{other} (measured on {} packets of {})",
            chosen.time_ns(goal),
            self.packets,
            self.source
        )
    }
}

impl Choice {
    /// The choice as a line for people.
    pub fn text(&self) -> String {
        let Self { engine, goal, why, .. } = self;
        format!("braid: engine {engine} for {}: {why}\n", goal_name(*goal))
    }

    /// The choice as JSON.
    pub fn value(&self) -> Value {
        json!({
            "engine": self.engine,
            "goal": goal_name(self.goal),
            "why": self.why,
            "candidates": self.candidates,
        })
    }
}
