//! `braid isolate`: starts the processes of isolated functions. Braid runs this command itself.

use braid_native::isolated::launch;

use super::run::confine_function;
use crate::answer::{Answer, Failure, Outcome};

/// Start processes of isolated functions, for the Braid at the other end of standard input
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Args {}

pub fn run(_: &Args) -> Outcome {
    crate::native::register();
    match launch(confine_function) {
        Ok(0) => Ok(Answer::Yes),
        Ok(code) => std::process::exit(code),
        Err(why) => Err(Failure::usage(format!(
            "`isolate` is for Braid itself, which runs it for isolated functions: {why}"
        ))),
    }
}
