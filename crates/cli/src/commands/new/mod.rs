//! `braid new`: makes a folder to start from.

use std::io;
use std::path::{Path, PathBuf};

use braid_lang::diag::{Style, render};
use braid_lang::{Loader, compile};
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};
use crate::output::Output;

/// The name of the function in the template.
const NAME: &str = "doorman";
/// The longest name: names of folders have at most 255 bytes.
const LONGEST: usize = 64;

/// The files of the template, by their paths in the new folder.
const FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("template/README.md")),
    ("model.braid", include_str!("template/model.braid")),
    ("chain.braid", include_str!("template/chain.braid")),
    (
        "cases/replies_are_let_in/case.txt",
        include_str!("template/cases/replies_are_let_in/case.txt"),
    ),
    (
        "cases/strangers_are_dropped/case.txt",
        include_str!("template/cases/strangers_are_dropped/case.txt"),
    ),
    ("cases/idle_flows_end/case.txt", include_str!("template/cases/idle_flows_end/case.txt")),
];

/// Make a folder to start from
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// A function with a chain, cases and a page: NAME/, for which `braid test NAME` holds
    Nf {
        /// The function's name, and the folder's
        name: String,
    },
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let What::Nf { name } = &args.what;
    check(name)?;
    let folder = Path::new(name);
    std::fs::create_dir(folder).map_err(|why| match why.kind() {
        io::ErrorKind::AlreadyExists => Failure::usage(format!("{name} exists already")),
        _ => Failure::file(folder, why),
    })?;
    for (file, text) in FILES {
        let path = folder.join(file);
        write(&path, &text.replace(NAME, name)).map_err(|why| Failure::file(&path, why))?;
    }
    if output.json {
        let files: Vec<PathBuf> = FILES.iter().map(|(file, _)| folder.join(file)).collect();
        output.value(&json!({ "folder": folder, "files": files }));
    } else {
        output.text(format!(
            "{name}/ has a function (model.braid), a chain (chain.braid), cases (cases/) and a page \
             (README.md)\n`braid test {name}` runs the cases\n"
        ));
    }
    Ok(Answer::Yes)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)
}

/// Refuses what cannot be the name of a new function.
fn check(name: &str) -> Result<(), Failure> {
    let refuse =
        |why: &str| Err(Failure::usage(format!("`{name}` cannot be a function's name: {why}")));
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_next = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.starts_with(is_first) || !name.chars().all(is_next) {
        return refuse("it must have letters, digits and `_`, and begin with no digit");
    }
    if name.len() > LONGEST {
        return refuse("it is longer than 64 letters");
    }
    if braid_nfs::by_name(name).is_some() {
        return refuse("the library has a function of this name");
    }
    let model = format!("nf {name}() {{ output; }}\n");
    let compiled = compile(("model.braid", &model), &[], &Nothing);
    if compiled.unit.is_none() {
        return refuse(&render(&compiled.diagnostics, &compiled.sources, Style::default()));
    }
    Ok(())
}

/// There are no files.
struct Nothing;

impl Loader for Nothing {
    fn read(&self, _: &str, _: &str) -> Result<Vec<u8>, String> {
        Err("there are no files".to_owned())
    }
}
