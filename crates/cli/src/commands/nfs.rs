//! `braid nfs`: the library of functions.

use braid_lang::diag::did_you_mean_help;
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};
use crate::output::Output;
use crate::table::{Align, table};

/// List the library of functions, or print one function's page
#[derive(clap::Args)]
pub struct Args {
    /// The function whose page to print
    name: Option<String>,
    /// Print the function's model instead of its page
    #[arg(long, requires = "name")]
    source: bool,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    match &args.name {
        None => list(output),
        Some(name) => page(name, args.source, output)?,
    }
    Ok(Answer::Yes)
}

fn list(output: &Output) {
    let all = braid_nfs::all();
    if output.json {
        let entry = |nf: &braid_nfs::Nf| json!({ "name": nf.name, "summary": nf.summary() });
        output.value(&json!({ "functions": all.iter().map(entry).collect::<Vec<_>>() }));
        return;
    }
    let rows: Vec<Vec<String>> =
        all.iter().map(|nf| vec![nf.name.to_owned(), nf.summary().to_owned()]).collect();
    output.text(table(&[("function", Align::Left), ("what it does", Align::Left)], &rows));
    output.text("\n`braid nfs NAME` prints a function's page, with `--source` its model.\n");
}

fn page(name: &str, source: bool, output: &Output) -> Result<(), Failure> {
    let Some(nf) = braid_nfs::by_name(name) else {
        let names = braid_nfs::all().iter().map(|nf| nf.name);
        let help =
            did_you_mean_help(name, names).unwrap_or_else(|| "`braid nfs` lists them".into());
        return Err(Failure::usage(format!("the library has no function `{name}`; {help}")));
    };
    if output.json {
        output.value(&json!({
            "name": nf.name, "summary": nf.summary(), "page": nf.page, "source": nf.source,
        }));
    } else {
        output.text(if source { nf.source } else { nf.page });
    }
    Ok(())
}
