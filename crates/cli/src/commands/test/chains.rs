//! The chains of cases, each compiled once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use braid_casefile::Case;
use braid_ir::chain::Chain;

use crate::load::{self, Choice, Program};
use crate::output::tell;

/// Compiled chains by file.
#[derive(Default)]
pub struct Chains {
    known: BTreeMap<PathBuf, Result<(Program, Chain), String>>,
}

impl Chains {
    /// Does something with the chain of a case, and the program that it is in.
    pub fn of<T>(
        &mut self,
        case: &Case,
        then: impl FnOnce(&Program, &Chain) -> Result<T, String>,
    ) -> Result<T, String> {
        let path = case.chain.as_ref().ok_or_else(|| {
            let folder = case.folder.display();
            format!("{folder}: there is no chain.braid, here or in the two folders above")
        })?;
        let entry = self.known.entry(path.clone()).or_insert_with(|| compile(path));
        match entry {
            Ok((program, chain)) => then(program, chain),
            Err(why) => Err(why.clone()),
        }
    }
}

/// Compiles a file with one chain.
fn compile(path: &Path) -> Result<(Program, Chain), String> {
    let program = load::checked_cases(path).map_err(|failure| failure.text)?;
    if program.has_errors() {
        return Err(program.rendered());
    }
    tell(program.rendered());
    if let [_, _, ..] = program.chains() {
        return Err(format!(
            "{} has several chains, and a case needs the one that it runs",
            path.display()
        ));
    }
    let chain = program.chain(&Choice::default()).map_err(|failure| failure.text)?;
    Ok((program, chain))
}
