//! The commands, one file or folder each. A new command needs a file here, a `mod` line and a
//! variant.

mod actions;
mod bench;
mod check;
mod classes;
mod completions;
mod ctl;
mod diff;
mod doctor;
mod explain;
mod flows;
mod fmt;
mod r#gen;
mod graph;
mod inspect;
mod ir;
mod isolate;
mod lsp;
mod man;
mod names;
mod new;
mod nfs;
mod run;
mod sim;
mod streams;
mod test;
mod trace;
mod verify;

use clap::Subcommand;

use crate::answer::Outcome;
use crate::output::Output;

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    Check(check::Args),
    Fmt(fmt::Args),
    Lsp(lsp::Args),
    Run(run::Args),
    Test(test::Args),
    New(new::Args),
    Ctl(ctl::Args),
    Trace(trace::Args),
    Diff(diff::Args),
    Streams(streams::Args),
    Gen(r#gen::Args),
    Actions(actions::Args),
    Bench(bench::Args),
    Doctor(doctor::Args),
    Classes(classes::Args),
    Flows(flows::Args),
    Graph(graph::Args),
    Sim(sim::Args),
    Inspect(inspect::Args),
    Nfs(nfs::Args),
    Explain(explain::Args),
    Ir(ir::Args),
    Verify(verify::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)]
    Isolate(isolate::Args),
}

impl Command {
    /// Runs the command. `definition` makes the definition of the whole command line.
    pub fn run(self, definition: fn() -> clap::Command, output: &Output) -> Outcome {
        match self {
            Command::Check(args) => check::run(&args, output),
            Command::Fmt(args) => fmt::run(&args, output),
            Command::Lsp(args) => lsp::run(&args),
            Command::Run(args) => run::run(&args, output),
            Command::Test(args) => test::run(&args, output),
            Command::New(args) => new::run(&args, output),
            Command::Ctl(args) => ctl::run(&args, output),
            Command::Trace(args) => trace::run(&args, output),
            Command::Diff(args) => diff::run(&args, output),
            Command::Streams(args) => streams::run(&args, output),
            Command::Gen(args) => r#gen::run(&args, output),
            Command::Actions(args) => actions::run(&args, output),
            Command::Bench(args) => bench::run(&args, output),
            Command::Doctor(args) => doctor::run(&args, output),
            Command::Classes(args) => classes::run(&args, output),
            Command::Flows(args) => flows::run(&args, output),
            Command::Graph(args) => graph::run(&args, output),
            Command::Sim(args) => sim::run(&args, output),
            Command::Inspect(args) => inspect::run(&args, output),
            Command::Nfs(args) => nfs::run(&args, output),
            Command::Explain(args) => explain::run(&args, output),
            Command::Ir(args) => ir::run(&args, output),
            Command::Verify(args) => verify::run(&args, output),
            Command::Completions(args) => completions::run(&args, definition, output),
            Command::Man(args) => man::run(&args, definition, output),
            Command::Isolate(args) => isolate::run(&args),
        }
    }
}
