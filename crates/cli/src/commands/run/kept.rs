//! `braid run --state-dir`: the state of a chain outlives the run.

use std::path::{Path, PathBuf};

use braid_ir::chain::Chain;
use braid_ir::snapshot::{ImportError, Plan, Snapshot};
use braid_runtime::state_files::StateFiles;
use braid_runtime::{Engines, Unwritten};

use crate::answer::Failure;
use crate::output::{tell, warn};

/// The state of a chain in a folder.
pub struct Kept {
    folder: PathBuf,
    files: StateFiles,
}

impl Kept {
    /// Opens the folder, or creates it.
    pub fn open(folder: &Path, chain: &Chain) -> Result<Self, Failure> {
        let files = StateFiles::new(folder, &chain.name)
            .map_err(|why| Failure::file(folder, format!("cannot keep state: {why}")))?;
        Ok(Self { folder: folder.to_owned(), files })
    }

    /// Whether there is a state to go on from.
    pub fn has_state(&self) -> bool {
        self.files.exist()
    }

    /// What runs the chain, as `begin` makes it, and goes on from the latest state that it can
    /// take. Without any, it begins anew. Warns of files that are not used, and tells what does not
    /// move.
    pub fn resume(
        &mut self,
        chain: &Chain,
        begin: impl Fn() -> Result<Engines, Failure>,
    ) -> Result<Engines, Failure> {
        let (resumed, refused) =
            self.files.load(|path, snapshot| resumed(&begin, chain, path, snapshot));
        for refused in &refused {
            warn(format!("{refused}; it is not used"));
        }
        resumed.map_or_else(begin, Ok)
    }

    /// Saves a state of the chain.
    pub fn save(&mut self, snapshot: &Snapshot) -> Result<(), Unwritten> {
        self.files.save(snapshot).map_err(|refused| Unwritten {
            name: self.folder.display().to_string(),
            why: format!("the state cannot be saved: {refused}"),
        })
    }
}

/// The engine that goes on from a snapshot.
fn resumed(
    begin: impl Fn() -> Result<Engines, Failure>,
    chain: &Chain,
    path: &Path,
    snapshot: Snapshot,
) -> Result<Engines, ImportError> {
    let plan = Plan::new(&snapshot, chain);
    let entries = snapshot.entries();
    let mut engine = begin().map_err(|failure| ImportError::Refused {
        function: chain.name.clone(),
        why: failure.text,
    })?;
    engine.whole().import(snapshot)?;
    let path = path.display();
    tell(format!("braid: goes on from {path} ({entries} entries)\n"));
    if !plan.is_whole() {
        tell(plan.to_string());
    }
    Ok(engine)
}
