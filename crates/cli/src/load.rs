//! Programs: files of the language with what they use, and control files for their chains.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_ir::chain::{Chain, Control, Scheduled};
use braid_ir::model::Model;
use braid_lang::ast::Item;
use braid_lang::control::control;
use braid_lang::diag::{Diagnostics, Style, did_you_mean_help, render, to_json};
use braid_lang::import::read_text;
use braid_lang::sema::Env;
use braid_lang::source::SourceMap;
use braid_lang::{Compiled, Loader, Unit, compile, parse};
use braid_native::{Definition, LoadError};
use serde_json::Value;

use crate::answer::Failure;
use crate::output::tell;

/// Largest file of the language.
pub const MAX_BYTES: usize = braid_lang::source::MAX_FILE_BYTES;

/// Which chain of a file, and what to change about it.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Choice {
    /// Which chain of the file; needed where there are several
    #[arg(long, value_name = "NAME")]
    pub chain: Option<String>,
    /// Seed of random choices, instead of the chain's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Workers that sharded state is split over, instead of the chain's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,
}

/// A program that was compiled.
pub struct Program {
    path: PathBuf,
    unit: Option<Unit>,
    functions: Vec<String>,
    chains: Vec<String>,
    sources: SourceMap,
    found: Diagnostics,
}

/// Compiles a file. Errors in it are left to the caller.
pub fn checked(path: &Path) -> Result<Program, Failure> {
    let text = text(path)?;
    let name = path.display().to_string();
    let library: Vec<(&str, &str)> =
        braid_nfs::all().iter().map(|nf| (nf.name, nf.source)).collect();
    let Compiled { unit, diagnostics, sources } = compile((&name, &text), &library, &Files);
    let (mut functions, mut chains) = (Vec::new(), Vec::new());
    for item in parse::parse(&text, 0).0.items {
        match item {
            Item::Nf(nf) => functions.push(nf.name.text),
            Item::Chain(chain) => chains.push(chain.name.text),
            _ => {}
        }
    }
    let path = path.to_owned();
    Ok(Program { path, unit, functions, chains, sources, found: diagnostics })
}

/// Compiles a file, which must be right. Warnings go to standard error.
pub fn program(path: &Path) -> Result<Program, Failure> {
    let program = checked(path)?;
    if program.has_errors() {
        return Err(program.failure());
    }
    if !program.found.is_empty() {
        tell(program.rendered());
    }
    Ok(program)
}

/// The models of the library, by name.
pub fn library() -> Result<Vec<Arc<Model>>, Failure> {
    let mut models = BTreeMap::new();
    for nf in braid_nfs::all() {
        let name = format!("library/{}.braid", nf.name);
        let compiled = compile((&name, nf.source), &[], &Files);
        let unit = compiled.unit.ok_or_else(|| {
            let text = render(&compiled.diagnostics, &compiled.sources, style());
            Failure::inconsistent(format!("a function of the library has errors\n{text}"))
        })?;
        models.extend(unit.models);
    }
    Ok(models.into_values().collect())
}

/// The text of a file.
pub fn text(path: &Path) -> Result<String, Failure> {
    read_text(path).map_err(|why| Failure::file(path, why))
}

/// The formatted text of a file.
pub fn format(path: &Path, text: &str) -> Result<String, Failure> {
    braid_lang::fmt::format(text).map_err(|found| {
        let mut sources = SourceMap::new();
        sources.add(path.display().to_string(), text);
        wrong(&found, &sources, path)
    })
}

/// Errors of files as a failure.
fn wrong(found: &Diagnostics, sources: &SourceMap, path: &Path) -> Failure {
    let text = render(found, sources, style());
    let mut failure = Failure::input(format!("{} has errors\n{text}", path.display()));
    failure.diagnostics = Some(to_json(found, sources));
    failure
}

fn style() -> Style {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    Style { color, ..Style::default() }
}

impl Program {
    /// Whether anything stops it from running.
    pub fn has_errors(&self) -> bool {
        self.found.has_errors()
    }

    /// Number of errors, those beyond the limit included.
    pub fn errors(&self) -> usize {
        let shown = self.found.iter().filter(|found| found.is_error()).count();
        shown + self.found.left_out()
    }

    /// Number of warnings.
    pub fn warnings(&self) -> usize {
        self.found.iter().filter(|found| !found.is_error()).count()
    }

    /// Functions that the file defines.
    pub fn function_names(&self) -> &[String] {
        &self.functions
    }

    /// Chains that the file defines.
    pub fn chain_names(&self) -> &[String] {
        &self.chains
    }

    /// All findings as JSON.
    pub fn diagnostics(&self) -> Value {
        to_json(&self.found, &self.sources)
    }

    /// All findings as text for a terminal.
    pub fn rendered(&self) -> String {
        render(&self.found, &self.sources, style())
    }

    /// Functions of the file and of those that it uses, and those of the library that its chains
    /// name; by name.
    pub fn models(&self) -> Vec<Arc<Model>> {
        self.unit.iter().flat_map(|unit| unit.models.values().cloned()).collect()
    }

    /// The chain that was chosen.
    pub fn chain(&self, choice: &Choice) -> Result<Chain, Failure> {
        let chains = self.unit.as_ref().map_or(&[][..], |unit| &unit.chains);
        let names = || chains.iter().map(|chain| chain.name.as_str()).collect::<Vec<_>>();
        let file = self.path.display();
        let found = match (&choice.chain, chains) {
            (None, [one]) => Some(one),
            (None, []) => return Err(Failure::input(format!("{file} has no chain"))),
            (None, _) => {
                let names = names().join(", ");
                let text = format!("{file} has several chains; choose with --chain: {names}");
                return Err(Failure::usage(text));
            }
            (Some(name), _) => chains.iter().find(|chain| chain.name == *name),
        };
        let mut chain = found.cloned().ok_or_else(|| {
            let name = choice.chain.as_deref().unwrap_or_default();
            let help = did_you_mean_help(name, names())
                .unwrap_or_else(|| format!("it has {}", names().join(", ")));
            Failure::usage(format!("{file} has no chain `{name}`; {help}"))
        })?;
        chain.seed = choice.seed.unwrap_or(chain.seed);
        chain.workers = choice.workers.unwrap_or(chain.workers);
        Ok(chain)
    }

    /// Reads a control file for a chain; what is wrong with it joins the findings.
    pub fn check_control(&mut self, path: &Path, chain: &Chain) -> Result<Vec<Scheduled>, Failure> {
        let text = text(path)?;
        let file = self.sources.add(path.display().to_string(), text);
        let env = Env { constants: &(), loader: &Files, sources: &self.sources };
        Ok(control(file, chain, &env, &mut self.found))
    }

    /// The changes of a control file, which must be right, in a run whose first packet has this
    /// time.
    pub fn control(
        &mut self,
        path: &Path,
        chain: &Chain,
        first_packet_ns: u64,
    ) -> Result<Vec<Control>, Failure> {
        let scheduled = self.check_control(path, chain)?;
        if self.has_errors() {
            return Err(wrong(&self.found, &self.sources, path));
        }
        Ok(scheduled.iter().map(|change| change.resolve(first_packet_ns)).collect())
    }

    fn failure(&self) -> Failure {
        wrong(&self.found, &self.sources, &self.path)
    }
}

/// Files that programs name, beside the file that names them.
struct Files;

impl Loader for Files {
    fn read(&self, path: &str, relative_to: &str) -> Result<Vec<u8>, String> {
        let beside = Path::new(relative_to).parent().unwrap_or(Path::new(""));
        read_text(&beside.join(path)).map(String::into_bytes).map_err(|why| why.to_string())
    }

    fn native(&self, library: &str, function: &str) -> Result<Arc<Definition>, LoadError> {
        braid_native_five::register();
        braid_native::find(library, function)
    }
}
