//! Makes chains and engines from source text: everything that tests need from the other crates.

use braid_compiler::sharding::divide;
use braid_ir::chain::{Chain, Control};
use braid_lang::diag::{Diagnostics, Style, render};
use braid_lang::source::SourceMap;
use braid_lang::{Loader, Unit};
use braid_native::{Description, LoadError};
use braid_packet::Packet;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

pub mod budget;
mod engines;
mod owners;
mod steering;

pub use engines::{ENGINES, Engine, HOSTILE, Stages, USERS, reference};
pub use owners::conflict;
pub use steering::{by_sender, differs_from_shards, over_workers, roomy, settled};

/// The form of the source that is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// As their authors wrote them.
    AsWritten,
    /// As `braid fmt` prints them.
    Formatted,
}

/// Files in memory, then files on disk beside the file that names them.
struct Files<'a>(&'a BTreeMap<String, String>);

impl Loader for Files<'_> {
    fn read(&self, path: &str, relative_to: &str) -> Result<Vec<u8>, String> {
        if let Some(text) = self.0.get(path) {
            return Ok(text.clone().into_bytes());
        }
        let folder = Path::new(relative_to).parent().unwrap_or(Path::new(""));
        std::fs::read(folder.join(path)).map_err(|error| error.to_string())
    }

    fn native(
        &self,
        library: &str,
        function: &str,
        is_isolated: bool,
    ) -> Result<Arc<Description>, LoadError> {
        register_natives();
        braid_native::describe(library, function, is_isolated)
    }
}

/// Compiles a C file of the repository to a shared library in a folder, and returns the library's
/// path. Each thread has a library of its own.
///
/// # Panics
/// There is no C compiler, or it warns.
#[must_use]
pub fn c_library(source: &str, folder: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = root.join(source);
    let name = source.file_stem().expect("a name").to_string_lossy();
    let out = Path::new(folder).join(format!("{name}-{:?}.so", std::thread::current().id()));
    let built = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-DBRAID_NF_FUNCTION"])
        .args(["-shared", "-fPIC", "-I"])
        .arg(root.join("crates/native/include"))
        .arg(&source)
        .arg("-o")
        .arg(&out)
        .output()
        .expect("a C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    out.to_string_lossy().into_owned()
}

/// Registers the sets of native functions that come with Braid.
pub fn register_natives() {
    braid_native_five::register();
    braid_relay::register();
    braid_server::register();
    braid_fragments::register();
}

/// The chain in a source text. It may use the given files and the library's functions. If it has
/// several workers, they are steered by any rules ([`over_workers`]).
///
/// # Errors
/// All diagnostics as text, or a message that there is not exactly one chain.
pub fn compile(
    source: &str,
    files: &BTreeMap<String, String>,
    form: Form,
) -> Result<Chain, String> {
    one_chain(unit("test.braid", source, files, form)?).map(over_workers)
}

/// The chain in a file. It may use the library's functions. Several workers divide it as users get
/// it.
///
/// # Errors
/// All diagnostics or the wrong number of chains, as for [`compile`].
pub fn compile_file(path: &Path, form: Form) -> Result<Chain, String> {
    let source = std::fs::read_to_string(path);
    let source = source.map_err(|error| format!("{}: {error}", path.display()))?;
    let chain = one_chain(unit(&path.to_string_lossy(), &source, &BTreeMap::new(), form)?)?;
    Ok(if chain.workers > 1 { divide(chain)?.0 } else { chain })
}

fn one_chain(mut unit: Unit) -> Result<Chain, String> {
    match (unit.chains.pop(), unit.chains.len()) {
        (Some(chain), 0) => Ok(chain),
        (Some(_), more) => Err(format!("expected one chain, found {}", more + 1)),
        (None, _) => Err("there is no chain".to_owned()),
    }
}

/// A program: all its functions and chains.
///
/// # Errors
/// All diagnostics, as text.
pub fn unit(
    name: &str,
    source: &str,
    files: &BTreeMap<String, String>,
    form: Form,
) -> Result<Unit, String> {
    let in_form = |text: &str| match form {
        Form::AsWritten => Ok(text.to_owned()),
        Form::Formatted => format(text),
    };
    let library: Vec<(&str, String)> = braid_nfs::all()
        .iter()
        .map(|nf| Ok((nf.name, in_form(nf.source)?)))
        .collect::<Result<_, String>>()?;
    let library: Vec<(&str, &str)> =
        library.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let compiled = braid_lang::compile((name, &in_form(source)?), &library, &Files(files));
    let errors = render(&compiled.diagnostics, &compiled.sources, PLAIN);
    compiled.unit.ok_or(errors)
}

/// The chains in `crates/testkit/chains` with the names of their files. Together they contain all
/// functions of the library, with limits within reach of traffic.
///
/// # Errors
/// When a file cannot be read or compiled.
pub fn library_chains() -> Result<Vec<(String, Chain)>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("chains");
    let entries = std::fs::read_dir(&folder).map_err(|error| error.to_string())?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "braid"));
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, compile_file(&path, Form::AsWritten)?))
        })
        .collect()
}

const PLAIN: Style = Style { color: false, ascii: true, most: None };

/// The source in the form that `braid fmt` prints.
///
/// # Errors
/// All diagnostics, as text.
pub fn format(source: &str) -> Result<String, String> {
    braid_lang::fmt::format(source).map_err(|diagnostics| {
        let mut sources = SourceMap::new();
        sources.add("test.braid", source);
        render(&diagnostics, &sources, PLAIN)
    })
}

/// All packets of a capture.
///
/// # Errors
/// Why the capture cannot be read.
pub fn read_capture(path: &Path) -> Result<Vec<Packet>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let (packets, _, error) = braid_io::read_all(&bytes);
    match error {
        Some(error) => Err(format!("{}: {error}", path.display())),
        None => Ok(packets),
    }
}

/// Reads a line of a control file without its time, for this time.
///
/// # Errors
/// The error in the line.
pub fn control(chain: &Chain, time_ns: u64, line: &str, folder: &Path) -> Result<Control, String> {
    let mut sources = SourceMap::new();
    let text = format!("{}.{:09} {line}\n", time_ns / 1_000_000_000, time_ns % 1_000_000_000);
    let file = sources.add(folder.join("case.txt").to_string_lossy(), text);
    let mut diagnostics = Diagnostics::new();
    let files = BTreeMap::new();
    let changes =
        braid_lang::control::control(file, chain, &Files(&files), &sources, &mut diagnostics);
    match changes.first() {
        Some(change) if !diagnostics.has_errors() => Ok(change.scheduled.resolve(0)),
        _ => Err(render(&diagnostics, &sources, PLAIN)),
    }
}
