//! State in files: an engine's state is saved, and a later run goes on from it.
//!
//! A new file is written beside the current one and then takes its place. The old file is kept. A
//! file that is cut short, changed, or not a state file of Braid is refused, and the old file is
//! used.

use braid_ir::snapshot::{BytesError, ImportError, Snapshot};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The first bytes of a file.
const MAGIC: &[u8; 8] = b"BRAIDST\n";
/// The version of the format.
const VERSION: u32 = 3;
/// The length of the header: [`MAGIC`], the version, the checksum and the length of the contents.
const HEADER: usize = 24;

/// The reason why a file of state is refused.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The file cannot be written.
    #[error("it cannot be written: {0}")]
    Write(io::Error),
    /// The file is something else.
    #[error("it is not a state file of Braid")]
    Foreign,
    /// The file has another version.
    #[error("its format has version {0}, and this Braid reads version {VERSION}")]
    Version(u32),
    /// The file was not written to its end, or something was added to it.
    #[error("it has {found} bytes of state instead of {expected}")]
    Torn {
        /// The number of bytes in the header.
        expected: u64,
        /// The number of bytes in the file.
        found: u64,
    },
    /// The file has changed.
    #[error("its checksum is wrong")]
    Checksum,
    /// The contents cannot be read.
    #[error("{0}")]
    Contents(#[from] BytesError),
    /// The engine does not take the state.
    #[error("{0}")]
    Import(#[from] ImportError),
}

/// A file that is not used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct Refused {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub error: StateError,
}

/// The state of a chain in a folder.
#[derive(Debug)]
pub struct StateFiles {
    current: PathBuf,
    before: PathBuf,
    new: PathBuf,
    /// Whether the current file is valid, so that it is kept when the next one takes its place.
    is_good: bool,
    /// Locked as long as this value lives: two runs would overwrite each other's files.
    _lock: File,
}

impl StateFiles {
    /// The files of a chain's state in a folder, which is created if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be created or written, or another run keeps the state of a chain with this
    /// name there.
    pub fn new(folder: &Path, chain: &str) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let plain = |c: char| if c.is_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = chain.chars().map(plain).collect();
        let file = |end: &str| folder.join(format!("{name}.{end}"));
        let (current, before, new) = (file("state"), file("state.before"), file("state.new"));
        let lock = file("state.lock");
        let lock =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(lock)?;
        lock.try_lock().map_err(|why| match why {
            TryLockError::WouldBlock => io::Error::other("another run keeps its state there"),
            TryLockError::Error(why) => why,
        })?;
        Ok(Self { current, before, new, is_good: false, _lock: lock })
    }

    /// Whether a state was saved before.
    #[must_use]
    pub fn exist(&self) -> bool {
        self.current.exists() || self.before.exists()
    }

    /// The result of `take` for the latest state that it accepts, and the files that are refused.
    /// There is no result before a state was saved.
    pub fn load<T>(
        &mut self,
        mut take: impl FnMut(&Path, Snapshot) -> Result<T, ImportError>,
    ) -> (Option<T>, Vec<Refused>) {
        let mut refused = Vec::new();
        for path in [&self.current, &self.before] {
            match read(path).and_then(|snapshot| Ok(take(path, snapshot)?)) {
                Ok(taken) => {
                    self.is_good = *path == self.current;
                    return (Some(taken), refused);
                }
                Err(StateError::Read(why)) if why.kind() == io::ErrorKind::NotFound => {}
                Err(error) => refused.push(Refused { path: path.clone(), error }),
            }
        }
        (None, refused)
    }

    /// Saves a state. The file that was the current one is kept until the next call.
    ///
    /// # Errors
    /// The file that cannot be written, and the reason. The state that was saved last still exists,
    /// as the current file or the old one.
    pub fn save(&mut self, snapshot: &Snapshot) -> Result<(), Refused> {
        let failed = |why| Refused { path: self.new.clone(), error: StateError::Write(why) };
        if let Err(error) = write(&self.new, snapshot) {
            // A part of a file is of no use. The next call overwrites what cannot be removed.
            let _ = fs::remove_file(&self.new);
            return Err(failed(error));
        }
        if self.is_good {
            fs::rename(&self.current, &self.before).map_err(failed)?;
            self.is_good = false;
        }
        fs::rename(&self.new, &self.current).map_err(failed)?;
        self.is_good = true;
        // The names reach the disk with their folder.
        let folder = self.current.parent().unwrap_or_else(|| Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

fn write(path: &Path, snapshot: &Snapshot) -> io::Result<()> {
    // The state shows which hosts communicate, so only its owner may read it.
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(&encode(snapshot))?;
    file.sync_all()
}

fn read(path: &Path) -> Result<Snapshot, StateError> {
    decode(&fs::read(path)?)
}

/// The contents of a file of state.
#[must_use]
pub fn encode(snapshot: &Snapshot) -> Vec<u8> {
    let contents = snapshot.to_bytes();
    let mut file = Vec::with_capacity(HEADER + contents.len());
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(&crc32fast::hash(&contents).to_le_bytes());
    file.extend_from_slice(&(contents.len() as u64).to_le_bytes());
    file.extend_from_slice(&contents);
    file
}

/// The state in a file with these contents.
///
/// # Errors
/// The reason why the file is refused.
pub fn decode(file: &[u8]) -> Result<Snapshot, StateError> {
    let Some((magic, rest)) = file.split_first_chunk::<8>() else {
        return Err(StateError::Foreign);
    };
    if magic != MAGIC {
        return Err(StateError::Foreign);
    }
    let torn = StateError::Torn { expected: HEADER as u64, found: file.len() as u64 };
    let Some((version, rest)) = rest.split_first_chunk() else { return Err(torn) };
    match u32::from_le_bytes(*version) {
        VERSION => {}
        other => return Err(StateError::Version(other)),
    }
    let Some((checksum, rest)) = rest.split_first_chunk() else { return Err(torn) };
    let Some((length, contents)) = rest.split_first_chunk() else { return Err(torn) };
    let (expected, found) = (u64::from_le_bytes(*length), contents.len() as u64);
    if expected != found {
        return Err(StateError::Torn { expected, found });
    }
    if crc32fast::hash(contents) != u32::from_le_bytes(*checksum) {
        return Err(StateError::Checksum);
    }
    Ok(Snapshot::from_bytes(contents)?)
}
