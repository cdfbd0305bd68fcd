//! `braid ir`: the lowered form of functions.

use std::path::PathBuf;
use std::sync::Arc;

use braid_ir::model::Model;
use braid_ir::text::print;
use braid_lang::diag::did_you_mean_help;
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};
use crate::load;
use crate::output::Output;

/// Print the lowered form of the functions that a file defines or its chains use
#[derive(clap::Args)]
pub struct Args {
    /// The file
    file: PathBuf,
    /// Print only this function
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let mut models = load::program(&args.file)?.models();
    if let Some(name) = &args.function {
        only(&mut models, name)?;
    }
    if output.json {
        let entry = |model: &Arc<Model>| json!({ "name": model.name, "ir": print(model) });
        output.value(&json!({ "functions": models.iter().map(entry).collect::<Vec<_>>() }));
    } else {
        let texts: Vec<String> = models.iter().map(|model| print(model)).collect();
        output.text(texts.join("\n"));
    }
    Ok(Answer::Yes)
}

fn only(models: &mut Vec<Arc<Model>>, name: &str) -> Result<(), Failure> {
    let names: Vec<String> = models.iter().map(|model| model.name.clone()).collect();
    models.retain(|model| model.name == name);
    if models.is_empty() {
        let help = did_you_mean_help(name, names.iter().map(String::as_str))
            .unwrap_or_else(|| format!("it has {}", names.join(", ")));
        return Err(Failure::usage(format!("the file has no function `{name}`; {help}")));
    }
    Ok(())
}
