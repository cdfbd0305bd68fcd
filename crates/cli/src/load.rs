//! Loads programs (a file of the language and the files that it names) and control files.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_compiler::parallel::chain::{Unfit, paths};
use braid_compiler::parallel::policy::{Open, Problem};
use braid_compiler::sharding::divide;
use braid_externs::Extern;
use braid_ir::chain::{Chain, Control};
use braid_ir::model::Model;
use braid_ir::value::ParamValue;
use braid_lang::control::{self, Line, control, follow};
use braid_lang::diag::{Diagnostic, Diagnostics, Style, codes, did_you_mean_help, render, to_json};
use braid_lang::source::SourceMap;
use braid_lang::{Compiled, Loader, Unit, compile};
use braid_native::{Description, LoadError};
use serde_json::Value;

use crate::answer::Failure;
use crate::output::tell;
use crate::read::{read_bytes, read_secret, read_text};

/// The most findings that a terminal shows: a file of something else has hundreds.
const MOST_SHOWN: usize = 20;

/// The largest size of a file of the language.
pub const MAX_BYTES: usize = braid_lang::source::MAX_FILE_BYTES;

/// Which chain of a file to take, and the settings that the command line overrides.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Choice {
    /// The chain of the file; needed if the file has several
    #[arg(long, value_name = "NAME")]
    pub chain: Option<String>,
    /// The seed of random choices, instead of the chain's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The number of workers that divide the packets, instead of the chain's; with `auto`, as many
    /// as there are cores
    #[arg(long, value_name = "N", value_parser = workers)]
    pub workers: Option<Workers>,
}

/// A number of workers.
#[derive(Clone, Copy, Debug)]
pub enum Workers {
    /// As many as there are cores, but not more than a pool of the chain has members.
    Auto,
    Number(u16),
}

/// Parses a number of workers.
fn workers(text: &str) -> Result<Workers, String> {
    match text.parse() {
        _ if text == "auto" => Ok(Workers::Auto),
        Ok(number @ 1..=1024) => Ok(Workers::Number(number)),
        _ => Err("expected `auto` or a number from 1 to 1024".to_owned()),
    }
}

impl Workers {
    fn of(self, chain: &Chain) -> u16 {
        if let Workers::Number(number) = self {
            return number;
        }
        let params = chain.nodes.iter().flat_map(|node| &node.params);
        let members = params.filter_map(|param| match param {
            ParamValue::Pool(members) => Some(members.len()),
            _ => None,
        });
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let most = members.min().unwrap_or(u128::MAX).clamp(1, 1024);
        u16::try_from(most.min(cores as u128)).unwrap_or(1)
    }
}

/// A compiled program.
pub struct Program {
    path: PathBuf,
    unit: Option<Unit>,
    functions: Vec<String>,
    chains: Vec<String>,
    sources: SourceMap,
    found: Diagnostics,
    /// The files that the program names, and its libraries.
    named: Vec<PathBuf>,
    /// The files that control files name.
    in_control: Vec<PathBuf>,
}

/// Compiles a file. The caller looks at its errors.
pub fn checked(path: &Path) -> Result<Program, Failure> {
    checked_with(path, Files::default())
}

/// Compiles a file of test cases. Their keys are no secrets, so other users may read them.
pub fn checked_cases(path: &Path) -> Result<Program, Failure> {
    checked_with(path, Files { keys_are_open: true, ..Files::default() })
}

fn checked_with(path: &Path, files: Files) -> Result<Program, Failure> {
    let name = path.display().to_string();
    let bytes = read_bytes(path).map_err(|why| Failure::file(path, why))?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Ok(Program::not_text(path, error.as_bytes())),
    };
    let library: Vec<(&str, &str)> =
        braid_nfs::all().iter().map(|nf| (nf.name, nf.source)).collect();
    let mut compiled = compile((&name, &text), &library, &files);
    check_policies(&mut compiled);
    let Compiled { unit, functions, chains, diagnostics, sources } = compiled;
    let path = path.to_owned();
    Ok(Program {
        path,
        unit,
        functions,
        chains,
        sources,
        found: diagnostics,
        named: files.named.into_inner(),
        in_control: Vec::new(),
    })
}

/// Adds an error for each chain without a path whose policy leaves an order open that makes a
/// difference.
pub fn check_policies(compiled: &mut Compiled) {
    let Some(unit) = &compiled.unit else { return };
    for chain in &unit.chains {
        let Some(span) = unit.by_rules.get(&chain.name) else { continue };
        let Err(Unfit::Policy(_, problem)) = paths(chain) else { continue };
        let all = match &problem {
            Problem::Undecided(open) => open.iter().map(Open::to_string).collect(),
            other => vec![other.to_string()],
        };
        for message in all {
            let label = "one rule more is needed here";
            let wrong = Diagnostic::new(codes::POLICY_UNDECIDED, message, *span, label);
            compiled.diagnostics.push(wrong);
        }
    }
}

/// Compiles a file that must have no errors. Warnings go to standard error.
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
        let compiled = compile((&name, nf.source), &[], &Files::default());
        let unit = compiled.unit.ok_or_else(|| {
            let text = render(&compiled.diagnostics, &compiled.sources, style());
            Failure::inconsistent(format!("a function of the library has errors\n{text}"))
        })?;
        models.extend(unit.models);
    }
    Ok(models.into_values().collect())
}

/// Reads the text of a file.
pub fn text(path: &Path) -> Result<String, Failure> {
    read_text(path).map_err(|why| Failure::file(path, why))
}

/// Formats the text of a file.
pub fn format(path: &Path, text: &str) -> Result<String, Failure> {
    braid_lang::fmt::format(text).map_err(|found| {
        let mut sources = SourceMap::new();
        sources.add(path.display().to_string(), text);
        wrong(&found, &sources, path)
    })
}

/// Converts the errors of files to a failure.
fn wrong(found: &Diagnostics, sources: &SourceMap, path: &Path) -> Failure {
    let text = render(found, sources, style());
    let mut failure = Failure::input(format!("{} has errors\n{text}", path.display()));
    failure.diagnostics = Some(to_json(found, sources));
    failure
}

fn style() -> Style {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    Style { color, most: Some(MOST_SHOWN), ..Style::default() }
}

/// Reads a change of configuration as a line of a control file has it, without its time. It names
/// files as the chain's file does.
pub fn change(text: &str, chain: &Chain, path: &Path) -> Result<Control, String> {
    change_with(0, text, (chain, path), &Files::default())
}

/// The same in a test case, for a time (ns). It names files beside the case's `path`.
pub fn change_of_case(
    time_ns: u64,
    text: &str,
    chain: &Chain,
    path: &Path,
) -> Result<Control, String> {
    let files = Files { keys_are_open: true, ..Files::default() };
    change_with(time_ns, text, (chain, path), &files)
}

fn change_with(
    time_ns: u64,
    text: &str,
    (chain, path): (&Chain, &Path),
    files: &Files,
) -> Result<Control, String> {
    let (mut sources, mut found) = (SourceMap::new(), Diagnostics::new());
    let file = sources.add(path.with_file_name("change").display().to_string(), text);
    let change = control::change(file, chain, files, &sources, &mut found);
    match change.filter(|_| !found.has_errors()) {
        Some(change) => Ok(Control { time_ns, ..change.resolve(0) }),
        None => Err(render(&found, &sources, Style::default())),
    }
}

impl Program {
    /// The program of a file that is not text: it has nothing but this error.
    fn not_text(path: &Path, bytes: &[u8]) -> Self {
        let (mut sources, mut found) = (SourceMap::new(), Diagnostics::new());
        let (_, wrong) = sources.add_bytes(path.display().to_string(), bytes);
        wrong.into_iter().for_each(|wrong| found.push(wrong));
        let path = path.to_owned();
        let (functions, chains) = (Vec::new(), Vec::new());
        let (named, in_control) = (Vec::new(), Vec::new());
        Self { path, unit: None, functions, chains, sources, found, named, in_control }
    }

    /// Whether the program has errors, so that it cannot run.
    pub fn has_errors(&self) -> bool {
        self.found.has_errors()
    }

    /// The number of errors, including those beyond the limit of messages.
    pub fn errors(&self) -> usize {
        let shown = self.found.iter().filter(|found| found.is_error()).count();
        shown + self.found.left_out_errors()
    }

    /// The number of warnings.
    pub fn warnings(&self) -> usize {
        self.found.iter().filter(|found| !found.is_error()).count()
    }

    /// The names of the functions that the file defines.
    pub fn function_names(&self) -> &[String] {
        &self.functions
    }

    /// The names of the chains that the file defines.
    pub fn chain_names(&self) -> &[String] {
        &self.chains
    }

    /// Whether a function is the library's.
    pub fn is_of_library(&self, function: &str) -> bool {
        self.sources.find(&format!("library/{function}.braid")).is_some()
    }

    /// The folders of the file, and of the files that it names.
    pub fn folders(&self) -> Vec<PathBuf> {
        let all = self.named.iter().chain([&self.path]);
        let folders: BTreeSet<&Path> = all.filter_map(|path| path.parent()).collect();
        folders.into_iter().map(Path::to_owned).collect()
    }

    /// The files that the program and its control files name.
    pub fn named_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.named.iter().chain(&self.in_control)
    }

    /// All findings as JSON.
    pub fn diagnostics(&self) -> Value {
        to_json(&self.found, &self.sources)
    }

    /// All findings as text for a terminal.
    pub fn rendered(&self) -> String {
        render(&self.found, &self.sources, style())
    }

    /// The functions of the file and of the files that it uses, and the library functions that its
    /// chains name, sorted by name.
    pub fn models(&self) -> Vec<Arc<Model>> {
        self.unit.iter().flat_map(|unit| unit.models.values().cloned()).collect()
    }

    /// The chains of the file, if it has no errors.
    pub fn chains(&self) -> &[Chain] {
        self.unit.as_ref().map_or(&[], |unit| &unit.chains)
    }

    /// Adds the error that workers cannot share a chain, if the chain asks for several workers.
    pub fn not_divisible(&mut self, chain: &str, why: &[String]) {
        let spans = self.unit.as_ref().map(|unit| &unit.workers);
        let Some(span) = spans.and_then(|spans| spans.get(chain)) else { return };
        let message = format!("the chain `{chain}` must run on one worker");
        let mut error = Diagnostic::new(codes::CHAIN_NOT_DIVISIBLE, message, *span, "");
        for why in why {
            error = error.note(why);
        }
        self.found.push(error.help("remove `workers`"));
    }

    /// The chain with a name.
    pub fn named(&self, name: &str) -> Result<&Chain, Failure> {
        self.chains().iter().find(|chain| chain.name == name).ok_or_else(|| {
            let names = self.chain_names();
            let help = did_you_mean_help(name, names.iter().map(String::as_str))
                .unwrap_or_else(|| format!("it has {}", names.join(", ")));
            Failure::usage(format!("{} has no chain `{name}`; {help}", self.path.display()))
        })
    }

    /// The chain that the user chose.
    pub fn chain(&self, choice: &Choice) -> Result<Chain, Failure> {
        let chains = self.chains();
        let file = self.path.display();
        let found = match (&choice.chain, chains) {
            (None, [one]) => one,
            (None, []) => return Err(Failure::input(format!("{file} has no chain"))),
            (None, _) => {
                let names = self.chain_names().join(", ");
                let text = format!("{file} has several chains; choose with --chain: {names}");
                return Err(Failure::usage(text));
            }
            (Some(name), _) => self.named(name)?,
        };
        let mut chain = found.clone();
        chain.seed = choice.seed.unwrap_or(chain.seed);
        chain.workers = choice.workers.map_or(chain.workers, |workers| workers.of(&chain));
        if chain.workers <= 1 {
            return Ok(chain);
        }
        let (divided, found) = divide(chain).map_err(Failure::inconsistent)?;
        if divided.workers == 1 {
            let why = found.why_not.join("; ");
            tell(format!("warning: chain `{}` runs on one worker: {why}\n", divided.name));
        }
        Ok(divided)
    }

    /// Reads a control file for a chain. Its errors are added to the program's.
    fn read_control(&mut self, path: &Path, chain: &Chain) -> Result<Vec<Line>, Failure> {
        let text = text(path)?;
        let file = self.sources.add(path.display().to_string(), text);
        let files = Files::default();
        let lines = control(file, chain, &files, &self.sources, &mut self.found);
        self.in_control.extend(files.named.into_inner());
        Ok(lines)
    }

    /// Checks a control file for a chain. Its errors are added to the program's.
    pub fn check_control(&mut self, path: &Path, chain: &Chain) -> Result<(), Failure> {
        let lines = self.read_control(path, chain)?;
        if !self.has_errors() {
            follow(&lines, chain, None, &mut self.found);
        }
        Ok(())
    }

    /// The changes of a control file that must have no errors. Relative times count from the first
    /// packet. `is_new` says that the chain begins as its file has it, so that its rules and
    /// backends are known.
    pub fn control(
        &mut self,
        path: &Path,
        chain: &Chain,
        first_packet_ns: u64,
        is_new: bool,
    ) -> Result<Vec<Control>, Failure> {
        let lines = self.read_control(path, chain)?;
        if is_new && !self.has_errors() {
            follow(&lines, chain, Some(first_packet_ns), &mut self.found);
        }
        if self.has_errors() {
            return Err(wrong(&self.found, &self.sources, path));
        }
        Ok(lines.iter().map(|line| line.scheduled.resolve(first_packet_ns)).collect())
    }

    fn failure(&self) -> Failure {
        wrong(&self.found, &self.sources, &self.path)
    }
}

/// Reads the files that a program names, relative to the file that names them.
#[derive(Default)]
struct Files {
    /// The files that were named, and the libraries.
    named: RefCell<Vec<PathBuf>>,
    /// Whether other users may read files with keys.
    keys_are_open: bool,
}

impl Loader for Files {
    fn read(&self, path: &str, relative_to: &str) -> Result<Vec<u8>, String> {
        let beside = Path::new(relative_to).parent().unwrap_or(Path::new(""));
        let path = beside.join(path);
        self.named.borrow_mut().push(path.clone());
        read_text(&path).map(String::into_bytes).map_err(|why| why.to_string())
    }

    fn secret(&self, path: &str, relative_to: &str) -> Result<Vec<u8>, String> {
        let beside = Path::new(relative_to).parent().unwrap_or(Path::new(""));
        let path = beside.join(path);
        self.named.borrow_mut().push(path.clone());
        read_secret(&path, self.keys_are_open).map_err(|why| why.to_string())
    }

    fn native(
        &self,
        library: &str,
        function: &str,
        is_isolated: bool,
    ) -> Result<Arc<Description>, LoadError> {
        self.named.borrow_mut().push(PathBuf::from(library));
        crate::native::register();
        braid_native::describe(library, function, is_isolated)
    }

    fn operator(&self, library: &str, name: &str) -> Result<&'static Extern, LoadError> {
        self.named.borrow_mut().push(PathBuf::from(library));
        braid_native::operator(library, name)
    }
}
