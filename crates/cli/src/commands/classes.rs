//! `braid classes`: the traffic classes of a chain (SNF), and the savings from merging the
//! functions.

use std::path::PathBuf;

use braid_compiler::classes::{Detail, classes, svg, text};

use crate::answer::{Answer, Failure, Outcome};
use crate::load::{self, Choice};
use crate::output::Output;

/// Show a chain as one program: its traffic classes, their conditions and effects, and what merging
/// the functions saves
#[derive(clap::Args)]
pub struct Args {
    /// The file
    file: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// The most classes to list for each program
    #[arg(long, value_name = "N", default_value_t = 3)]
    paths: usize,
    /// Print the programs, too
    #[arg(long)]
    programs: bool,
    /// Draw the programs' graphs instead, as SVG
    #[arg(long, conflicts_with_all = ["paths", "programs"])]
    svg: bool,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let chain = load::program(&args.file)?.chain(&args.choice)?;
    let detail = Detail { paths: args.paths.min(100_000), programs: args.programs };
    let found = classes(&chain, detail).map_err(Failure::inconsistent)?;
    if args.svg {
        output.text(svg(&chain, &found));
    } else if output.json {
        output.value(&found);
    } else {
        output.text(text(&found));
    }
    Ok(Answer::Yes)
}
