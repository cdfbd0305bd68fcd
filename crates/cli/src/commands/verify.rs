//! `braid verify`: whether the programs that a chain is put together into do what the chain does.

use std::path::PathBuf;
use std::time::Duration;

use braid_compiler::synth;
use braid_ir::chain::Chain;
use braid_ir::engine::Engine;
use braid_ir::graph::Graph;
use braid_ir::residual::{Extent, Point, Residual};
use braid_packet::format_field;
use braid_verify::chain::{Case, Overall, Report, point_text, shape_text, verify};
use braid_verify::check::{Difference, Verdict};
use braid_verify::example;
use braid_verify::replay::{Replay, replay};
use braid_verify::solver::Solver;
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::engines;
use crate::load::{self, Choice};
use crate::output::Output;

/// Show that a chain put together does what the chain does, function by function
#[derive(clap::Args)]
pub struct Args {
    /// The file with the chain
    file: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// The solver, if not z3 or cvc5 of the path
    #[arg(long, value_name = "PROGRAM")]
    solver: Option<PathBuf>,
    /// Most seconds for one question to the solver
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Look at programs with a bug
    #[cfg(feature = "planted-bugs")]
    #[arg(long, hide = true)]
    bug: Option<synth::PlantedBug>,
}

impl Args {
    /// The program for packets with these headers at a point.
    #[cfg_attr(
        not(feature = "planted-bugs"),
        allow(clippy::unused_self, reason = "it says which bug, with the feature")
    )]
    fn residual(&self, chain: &Chain, graph: &Graph, point: Point, presence: u128) -> Residual {
        #[cfg(feature = "planted-bugs")]
        if let Some(bug) = self.bug {
            let extent = Extent::Chain;
            return synth::residual_with_bug(chain, graph, point, presence, extent, bug);
        }
        synth::residual(chain, graph, point, presence, Extent::Chain)
    }

    /// The engine that runs these programs.
    #[cfg_attr(
        not(feature = "planted-bugs"),
        allow(clippy::unused_self, reason = "it says which bug, with the feature")
    )]
    fn engine(&self, chain: &Chain) -> Option<Box<dyn Engine>> {
        #[cfg(feature = "planted-bugs")]
        if let Some(bug) = self.bug {
            use braid_engine::{Compiled, Options};
            let options = Options::default();
            let engine = Compiled::with_bug(chain.clone(), Extent::Chain, options, bug).ok()?;
            return Some(Box::new(engine));
        }
        engines::make("synth", chain).ok()
    }
}

/// What holds whatever the chain is.
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
    let mut each = |case: &Case| {
        if !output.json {
            output.text(case_text(&chain, case));
        }
        true
    };
    let report = verify(&chain, &graph, &mut programs, &solver, &mut each);
    let confirmed: Vec<_> = report.cases.iter().map(|case| confirm(args, &chain, case)).collect();
    if output.json {
        output.value(&to_json(&chain, &report, &confirmed, &solver));
    } else {
        output.text(summary(&chain, &report, &confirmed, &solver));
    }
    match report.overall() {
        Overall::Proven => Ok(Answer::Yes),
        Overall::Refuted => Ok(Answer::No),
        Overall::Unknown => Ok(Answer::Unknown),
    }
}

fn case_text(chain: &Chain, case: &Case) -> String {
    let (point, shape) = (point_text(chain, case.point), shape_text(case.shape));
    let found = &case.found;
    let verdict = match &found.verdict {
        Verdict::Proven => "proven".to_owned(),
        Verdict::Refuted(_) => "REFUTED".to_owned(),
        Verdict::Unknown(why) => format!("unknown: {why}"),
    };
    format!(
        "{point} | {shape} | {verdict} | {} ways, {} questions, {} ms\n",
        found.ways, found.questions, found.millis
    )
}

/// Whether the packet of a refutation makes a difference when it is run.
#[derive(Clone, PartialEq, Debug)]
enum Confirmed {
    /// There is none to run.
    Nothing,
    /// It does.
    Yes(Replay),
    /// Not that could be found.
    No,
}

fn confirm(args: &Args, chain: &Chain, case: &Case) -> Confirmed {
    let Verdict::Refuted(difference) = &case.found.verdict else { return Confirmed::Nothing };
    let Some(packet) = example::packet(difference) else { return Confirmed::Nothing };
    let mut engines = |together| match together {
        true => args.engine(chain),
        false => engines::make(engines::REFERENCE, chain).ok(),
    };
    replay(chain, &packet, &mut engines).map_or(Confirmed::No, Confirmed::Yes)
}

fn difference_text(
    chain: &Chain,
    case: &Case,
    difference: &Difference,
    confirmed: &Confirmed,
) -> String {
    let mut text = format!(
        "\nREFUTED at {} for {}: {}\n",
        point_text(chain, case.point),
        shape_text(case.shape),
        difference.way
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
        Confirmed::No => "  not confirmed: run on both, this packet makes no difference, neither \
                          first nor after itself and replies to it\n"
            .to_owned(),
        Confirmed::Nothing => "  not confirmed: such a packet cannot be built here\n".to_owned(),
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
        text += &format!("REFUTED: {wrong}\n");
    }
    let proven = report.cases.iter().filter(|case| case.found.verdict == Verdict::Proven).count();
    let millis: u128 = report.cases.iter().map(|case| case.found.millis).sum();
    text += &format!(
        "\n{}: {} programs, {proven} proven by {} in {}.{:03} s\n",
        match report.overall() {
            Overall::Proven => "PROVEN",
            Overall::Refuted => "REFUTED",
            Overall::Unknown => "UNKNOWN",
        },
        report.cases.len(),
        solver.name(),
        millis / 1000,
        millis % 1000,
    );
    text += "\nproven means: for every packet of the program's headers and every state, the program and\n\
             the chain, function by function, come to the same end with equal fields, state operations,\n\
             events, sent packets and counters; shapes and ways cover all packets and do not overlap\n";
    text += "\nnot proven but taken for granted or tested:\n";
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
            "ways": case.found.ways,
            "questions": case.found.questions,
            "millis": u64::try_from(case.found.millis).unwrap_or(u64::MAX),
            "verdict": match &case.found.verdict {
                Verdict::Proven => "proven",
                Verdict::Refuted(_) => "refuted",
                Verdict::Unknown(_) => "unknown",
            },
        });
        match &case.found.verdict {
            Verdict::Proven => {}
            Verdict::Unknown(why) => value["why"] = json!(why),
            Verdict::Refuted(difference) => {
                let fields = difference.fields.iter().map(|(field, value)| {
                    (field.info().name.to_owned(), json!(format_field(*field, *value)))
                });
                value["way"] = json!(difference.way);
                value["differs"] = json!(difference.parts);
                value["packet"] = Value::Object(fields.collect());
                value["confirmed"] = json!(matches!(confirmed, Confirmed::Yes(_)));
            }
        }
        value
    });
    json!({
        "verdict": match report.overall() {
            Overall::Proven => "proven",
            Overall::Refuted => "refuted",
            Overall::Unknown => "unknown",
        },
        "solver": solver.name(),
        "programs": cases.collect::<Vec<_>>(),
        "shapes": report.shapes,
        "assumed": ASSUMED,
        "not_covered": report.not_covered,
    })
}
