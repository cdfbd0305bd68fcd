//! The files that `braid run` writes. They are created before the run, and refused if they would
//! overwrite something.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use braid_io::Precision;
use braid_ir::chain::Chain;
use braid_ir::engine::Engine;
use braid_runtime::{Sinks, Unwritten, json};

use crate::answer::Failure;
use crate::captures::{self, Inputs, Named, same_file};
use crate::output::Output;

/// The captures that the run writes. If one goes to standard output, results go to standard error.
pub fn named(texts: &[String], chain: &Chain, output: &Output) -> Result<Vec<Named>, Failure> {
    let named: Result<Vec<Named>, Failure> =
        texts.iter().map(|text| captures::named(text, chain)).collect();
    let named = named?;
    if named.iter().any(|named| captures::is_standard(&named.path)) {
        output.use_stderr();
    }
    Ok(named)
}

/// Refuses outputs that would overwrite a file that is read, or each other.
pub fn check(
    read: &[&Path],
    written: &[&Option<PathBuf>],
    outputs: &[Named],
    inputs: &Inputs,
) -> Result<(), Failure> {
    if written.iter().copied().flatten().any(|path| captures::is_standard(path)) {
        return Err(Failure::usage("standard output is for results: name a file to write"));
    }
    let others = written.iter().copied().flatten();
    let mut seen: Vec<&Path> = Vec::new();
    for path in outputs.iter().map(|named| &named.path).chain(others) {
        inputs.is_apart(path)?;
        let shown = path.display();
        if read.iter().any(|read| same_file(path, read)) {
            return Err(Failure::usage(format!("{shown} is read, so it cannot be an output")));
        }
        if seen.iter().any(|other| same_file(path, other)) {
            return Err(Failure::usage(format!("{shown} is named for two outputs")));
        }
        seen.push(path);
    }
    Ok(())
}

/// Creates the captures of a run. The run writes to them, and to the file of events.
pub fn create(
    captures: Vec<Named>,
    precision: Precision,
    events: Option<LineFile>,
) -> Result<Sinks<'static>, Failure> {
    let mut sinks = Sinks::default();
    for Named { interface, path } in captures {
        let writer = captures::create(&path, precision)?;
        sinks = sinks.output(path.display().to_string(), interface, writer);
    }
    Ok(match events {
        Some(LineFile { name, file }) => sinks.events(name, file),
        None => sinks,
    })
}

/// A file of JSON lines.
pub struct LineFile {
    /// Its path, for messages.
    pub name: String,
    /// The file.
    pub file: BufWriter<File>,
}

impl LineFile {
    /// Creates the file, or empties it.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path)
            .map_err(|why| Failure::file(path, format!("cannot be written: {why}")))?;
        Ok(Self { name: path.display().to_string(), file: BufWriter::new(file) })
    }

    /// Writes the engine's state entries.
    pub fn write_state(mut self, chain: &Chain, engine: &dyn Engine) -> Result<(), Unwritten> {
        let mut write = || -> io::Result<()> {
            for line in json::state_lines(chain, engine.state()) {
                writeln!(self.file, "{line}")?;
            }
            self.file.flush()
        };
        write().map_err(|why| Unwritten {
            name: self.name.clone(),
            why: format!("cannot be written: {why}"),
        })
    }
}
