//! `braid actions`: action profiles (NFP Table 2).

use std::path::PathBuf;
use std::sync::Arc;

use braid_compiler::profile::{Profile, derive, details, table};
use braid_ir::model::Model;
use serde_json::json;

use crate::answer::{Answer, Outcome};
use crate::load;
use crate::output::Output;

/// Show what each function does to packets and state, derived from its model (NFP Table 2)
#[derive(clap::Args)]
pub struct Args {
    /// The file; without one, the library
    file: Option<PathBuf>,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let models: Vec<Arc<Model>> = match &args.file {
        Some(file) => load::program(file)?.models(),
        None => load::library()?,
    };
    let profiles: Vec<Profile> = models.iter().map(|model| derive(model)).collect();
    if output.json {
        output.value(&json!({ "functions": profiles }));
    } else {
        output.text(table(&profiles));
        for profile in &profiles {
            output.text(format!("\n{}", details(profile)));
        }
    }
    Ok(Answer::Yes)
}
