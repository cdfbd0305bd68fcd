//! `braid verify`: whether the residual programs of a chain do what the chain does.

use std::path::PathBuf;
use std::time::Duration;

use braid_compiler::synth;
use braid_ir::chain::Chain;
use braid_ir::engine::Engine;
use braid_ir::graph::Graph;
use braid_ir::residual::{Extent, Point, Residual};
use braid_packet::format_field;
use braid_verify::chain::{Case, Report, point_text, shape_text, verify};
use braid_verify::check::{Difference, Verdict};
use braid_verify::example;
use braid_verify::replay::{Replay, replay};
use braid_verify::solver::Solver;
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::engines;
use crate::load::{self, Choice};
use crate::output::Output;

/// Prove that a chain's program does what its functions do one after another
#[derive(clap::Args)]
pub struct Args {
    /// The file with the chain
    file: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// The solver to use instead of z3 or cvc5 from PATH
    #[arg(long, value_name = "PROGRAM")]
    solver: Option<PathBuf>,
    /// The time limit for one question to the solver, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Look at programs with a bug
    #[cfg(feature = "mutants")]
    #[arg(long, hide = true)]
    bug: Option<synth::SynthMutant>,
}

impl Args {
    /// The residual program at a point for packets with these headers.
    #[cfg_attr(
        not(feature = "mutants"),
        allow(clippy::unused_self, reason = "it says which bug, with the feature")
    )]
    fn residual(&self, chain: &Chain, graph: &Graph, point: Point, presence: u128) -> Residual {
        #[cfg(feature = "mutants")]
        if let Some(bug) = self.bug {
            let extent = Extent::Chain;
            return synth::residual_with_mutant(chain, graph, point, presence, extent, bug);
        }
        synth::residual(chain, graph, point, presence, Extent::Chain)
    }

    /// The engine that runs these programs.
    #[cfg_attr(
        not(feature = "mutants"),
        allow(clippy::unused_self, reason = "it says which bug, with the feature")
    )]
    fn engine(&self, chain: &Chain) -> Option<Box<dyn Engine>> {
        #[cfg(feature = "mutants")]
        if let Some(bug) = self.bug {
            use braid_engine::{Compiled, Options};
            let options = Options::default();
            let engine = Compiled::with_mutant(chain.clone(), Extent::Chain, options, bug).ok()?;
            return Some(Box::new(engine));
        }
        engines::make("synth", chain).ok()
    }
}

/// The assumptions for every chain.
const ASSUMED: &[&str] = &[
    "the arithmetic of checksums: shown is that what they cover is written with the same values, \
     and that they are brought up to date in the same cases",
    "hashes, operators, lookups in rules, routes, patterns and lists of backends give equal \
     answers to equal questions; multiplication and division are taken as such functions, too",
    "the tables, pools and queues beneath, and the machine code of programs: tests compare \
     engines with the reference",
    "packets have at most 8 VLAN tags, and visit fewer functions than the limit",
    "timers, endings of entries and control changes run between packets, not by these programs",
];

pub fn run(args: &Args, output: &Output) -> Outcome {
    let chain = load::program(&args.file)?.chain(&args.choice)?;
    let graph = Graph::new(&chain).map_err(Failure::inconsistent)?;
    let solver = Solver::find(args.solver.as_deref(), Duration::from_secs(args.timeout))
        .map_err(Failure::input)?;
    let mut programs = |point, presence| args.residual(&chain, &graph, point, presence);
    let mut confirmed = Vec::new();
    let mut each = |case: &Case| {
        confirmed.push(confirm(args, &chain, case));
        if let (false, Some(last)) = (output.json, confirmed.last()) {
            output.text(case_text(&chain, case, last));
        }
        true
    };
    let report = verify(&chain, &graph, &mut programs, &solver, &mut each);
    if output.json {
        output.value(&to_json(&chain, &report, &confirmed, &solver));
    } else {
        output.text(summary(&chain, &report, &confirmed, &solver));
    }
    Ok(Judgement::overall(&report, &confirmed).answer())
}

/// The command's judgement of a program or a chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Judgement {
    /// It does what the chain does, function by function.
    Proven,
    /// No answer was found.
    Unknown,
    /// A difference was found that no run of a packet has confirmed.
    Unconfirmed,
    /// A packet was run on both and showed a difference.
    Refuted,
}

impl Judgement {
    fn of(case: &Case, confirmed: &Confirmed) -> Self {
        match (&case.found.verdict, confirmed) {
            (Verdict::Proven, _) => Self::Proven,
            (Verdict::Unknown(_), _) => Self::Unknown,
            (Verdict::Refuted(_), Confirmed::Yes(_)) => Self::Refuted,
            (Verdict::Refuted(_), _) => Self::Unconfirmed,
        }
    }

    /// The worst judgement of all programs. No packet can show that one shape overlaps another.
    fn overall(report: &Report, confirmed: &[Confirmed]) -> Self {
        let cases = report.cases.iter().zip(confirmed);
        let programs = cases.map(|(case, confirmed)| Self::of(case, confirmed)).max();
        let shapes = (!report.shapes.is_empty()).then_some(Self::Unconfirmed);
        programs.max(shapes).unwrap_or(Self::Unknown)
    }

    fn answer(self) -> Answer {
        match self {
            Self::Proven => Answer::Yes,
            Self::Unknown => Answer::Unknown,
            Self::Unconfirmed => Answer::Unconfirmed,
            Self::Refuted => Answer::No,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Unknown => "unknown",
            Self::Unconfirmed => "unconfirmed",
            Self::Refuted => "refuted",
        }
    }

    /// The word in capital letters, for the headline.
    fn headline(self) -> String {
        self.word().to_uppercase()
    }
}

fn case_text(chain: &Chain, case: &Case, confirmed: &Confirmed) -> String {
    let (point, shape) = (point_text(chain, case.point), shape_text(case.shape));
    let found = &case.found;
    let verdict = match (&found.verdict, Judgement::of(case, confirmed)) {
        (Verdict::Unknown(why), _) => format!("unknown: {why}"),
        (Verdict::Proven, judgement) => judgement.word().to_owned(),
        (Verdict::Refuted(_), judgement) => judgement.headline(),
    };
    format!(
        "{point} | {shape} | {verdict} | {} paths, {} questions, {} ms\n",
        found.paths, found.questions, found.millis
    )
}

/// Whether a run of the solver's packet shows the difference.
#[derive(Clone, PartialEq, Debug)]
enum Confirmed {
    /// There is no packet to run.
    Nothing,
    /// The run showed a difference.
    Yes(Box<Replay>),
    /// No run showed a difference.
    No,
}

fn confirm(args: &Args, chain: &Chain, case: &Case) -> Confirmed {
    let Verdict::Refuted(difference) = &case.found.verdict else { return Confirmed::Nothing };
    let Some(packet) = example::packet(difference) else { return Confirmed::Nothing };
    let mut engines = |together| match together {
        true => args.engine(chain),
        false => engines::make(engines::REFERENCE, chain).ok(),
    };
    replay(chain, &packet, &mut engines)
        .map_or(Confirmed::No, |replay| Confirmed::Yes(Box::new(replay)))
}

fn difference_text(
    chain: &Chain,
    case: &Case,
    difference: &Difference,
    confirmed: &Confirmed,
) -> String {
    let mut text = format!(
        "\n{} at {} for {}: {}\n",
        Judgement::of(case, confirmed).headline(),
        point_text(chain, case.point),
        shape_text(case.shape),
        difference.path
    );
    for part in &difference.parts {
        text += &format!("  differs: {part}\n");
    }
    let fields = difference.fields.iter().filter(|(_, value)| *value != 0);
    for (field, value) in fields {
        text += &format!("  {} = {}\n", field.info().name, format_field(*field, *value));
    }
    text += &match confirmed {
        Confirmed::Yes(replay) => {
            format!("  confirmed by running it on both:\n{}", replay.text(chain))
        }
        Confirmed::No => {
            "  not confirmed: both engines gave the same results for this packet, alone \
                          and after itself and replies to it\n"
                .to_owned()
        }
        Confirmed::Nothing => "  not confirmed: Braid cannot build this packet\n".to_owned(),
    };
    text
}

fn summary(chain: &Chain, report: &Report, confirmed: &[Confirmed], solver: &Solver) -> String {
    let mut text = String::new();
    for (case, confirmed) in report.cases.iter().zip(confirmed) {
        if let Verdict::Refuted(difference) = &case.found.verdict {
            text += &difference_text(chain, case, difference, confirmed);
        }
    }
    for wrong in &report.shapes {
        text += &format!("UNCONFIRMED: {wrong}\n");
    }
    let proven = report.cases.iter().filter(|case| case.found.verdict == Verdict::Proven).count();
    text += &format!(
        "\n{}: {} programs, {proven} proven by {} in {}.{:03} s\n",
        Judgement::overall(report, confirmed).headline(),
        report.cases.len(),
        solver.name(),
        report.millis / 1000,
        report.millis % 1000,
    );
    text += "\nproven means: for every packet of the program's headers and every state, the program and\n\
             the chain, function by function, come to the same end with equal fields, state operations,\n\
             events, sent packets and counters; shapes and paths cover all packets and do not overlap\n";
    text += "\nassumed or tested, not proven:\n";
    for assumed in ASSUMED {
        text += &format!("  - {assumed}\n");
    }
    if !report.not_covered.is_empty() {
        text += "\nnot covered in this chain:\n";
        for one in &report.not_covered {
            text += &format!("  - {one}\n");
        }
    }
    text
}

fn to_json(chain: &Chain, report: &Report, confirmed: &[Confirmed], solver: &Solver) -> Value {
    let cases = report.cases.iter().zip(confirmed).map(|(case, confirmed)| {
        let mut value = json!({
            "point": point_text(chain, case.point),
            "headers": shape_text(case.shape),
            "paths": case.found.paths,
            "questions": case.found.questions,
            "millis": u64::try_from(case.found.millis).unwrap_or(u64::MAX),
            "verdict": Judgement::of(case, confirmed).word(),
        });
        match &case.found.verdict {
            Verdict::Proven => {}
            Verdict::Unknown(why) => value["why"] = json!(why),
            Verdict::Refuted(difference) => {
                let fields = difference.fields.iter().map(|(field, value)| {
                    (field.info().name.to_owned(), json!(format_field(*field, *value)))
                });
                value["path"] = json!(difference.path);
                value["differs"] = json!(difference.parts);
                value["packet"] = Value::Object(fields.collect());
                value["confirmed"] = json!(matches!(confirmed, Confirmed::Yes(_)));
            }
        }
        value
    });
    json!({
        "verdict": Judgement::overall(report, confirmed).word(),
        "solver": solver.name(),
        "programs": cases.collect::<Vec<_>>(),
        "shapes": report.shapes,
        "assumed": ASSUMED,
        "not_covered": report.not_covered,
    })
}
