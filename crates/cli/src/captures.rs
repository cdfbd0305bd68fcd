//! Captures named on the command line as `[IF=]FILE`: opening and creating them.

use std::io::IsTerminal as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use braid_io::{
    CaptureReader, CaptureWriter, Format, PacketSource, Precision, Progress, ReadError, Warning,
};
use braid_ir::chain::{Chain, Control};
use braid_lang::diag::did_you_mean_help;
use braid_packet::{Burst, Packet, Pool};
use braid_runtime::{Input, Summary};

use crate::answer::Failure;
use crate::load::{self, Choice};
use crate::summary::warn_refused;

/// A capture as named on the command line.
pub struct Named {
    /// The interface, by number, if one is named.
    pub interface: Option<u16>,
    /// The file.
    pub path: PathBuf,
}

/// Reads `[IF=]FILE`. A file's name may hold a `=` itself.
pub fn named(text: &str, chain: &Chain) -> Result<Named, Failure> {
    let whole = || Named { interface: None, path: PathBuf::from(text) };
    let Some((name, file)) = text.split_once('=') else { return Ok(whole()) };
    if let Some(interface) = (0..).zip(&chain.interfaces).find(|(_, i)| i.name == name) {
        return Ok(Named { interface: Some(interface.0), path: PathBuf::from(file) });
    }
    if Path::new(text).exists() || name.contains('/') {
        return Ok(whole());
    }
    let names: Vec<&str> = chain.interfaces.iter().map(|i| i.name.as_str()).collect();
    let help = did_you_mean_help(name, names.iter().copied())
        .unwrap_or_else(|| format!("its interfaces are {}", names.join(", ")));
    Err(Failure::usage(format!("the chain `{}` has no interface `{name}`; {help}", chain.name)))
}

/// A capture that is read. Its first packet is read in advance, because control files need its
/// time.
pub struct Capture {
    reader: CaptureReader,
    first: Option<Result<Option<Packet>, ReadError>>,
}

impl Capture {
    /// Opens a file, or standard input for `-`, and reads its first packet.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let reader = match is_standard(path) {
            true => CaptureReader::new(std::io::stdin()),
            false => CaptureReader::open(path),
        };
        let mut reader = reader.map_err(|why| Failure::file(path, why))?;
        let first = Some(reader.next_packet());
        Ok(Self { reader, first })
    }

    /// The first packet's time, if there is one.
    pub fn first_time_ns(&self) -> Option<u64> {
        match &self.first {
            Some(Ok(Some(packet))) => Some(packet.time_ns),
            _ => None,
        }
    }

    /// The precision that an output needs to keep the time stamps.
    pub fn precision(&self) -> Precision {
        if self.reader.nanoseconds() { Precision::Nano } else { Precision::Micro }
    }
}

impl PacketSource for Capture {
    fn next_packet(&mut self) -> Result<Option<Packet>, ReadError> {
        self.first.take().unwrap_or_else(|| self.reader.next_packet())
    }

    fn next_in(&mut self, pool: &mut Pool) -> Result<Option<Packet>, ReadError> {
        self.first.take().unwrap_or_else(|| self.reader.next_in(pool))
    }

    fn fill(&mut self, burst: &mut Burst, pool: &mut Pool) -> Result<bool, ReadError> {
        match self.first.take() {
            None => self.reader.fill(burst, pool),
            Some(first) => match first? {
                Some(packet) => {
                    burst.push(packet);
                    self.reader.fill(burst, pool)
                }
                None => Ok(false),
            },
        }
    }

    fn warning(&self) -> Option<Warning> {
        self.reader.warning()
    }

    fn progress(&self) -> Option<Progress> {
        self.reader.progress()
    }
}

/// The arguments of commands that run a chain over captures and show something about the run.
#[derive(clap::Args)]
pub struct Replay {
    /// The file with the chain
    file: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// A capture whose packets enter the chain; with IF=, all of them at this interface
    #[arg(long = "in", value_name = "[IF=]CAPTURE", required = true, num_args = 1..)]
    pub inputs: Vec<String>,
    /// Rewrite each captured reply so that it answers the request as the chain sent it
    #[arg(long)]
    pub follow: bool,
    /// A file of configuration changes to make during the run
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
}

impl Replay {
    /// Warns of the control lines that could not be applied.
    pub fn warn_refused(&self, done: &Summary) {
        warn_refused(self.control.as_deref(), &done.refused);
    }

    /// Opens the chain, the captures and the control file.
    pub fn open(&self) -> Result<(Chain, Inputs, Vec<Control>), Failure> {
        let mut program = load::program(&self.file)?;
        let chain = program.chain(&self.choice)?;
        let inputs = Inputs::open(&self.inputs, &chain)?;
        let control = match &self.control {
            Some(file) => program.control(file, &chain, inputs.first_time_ns(), true)?,
            None => Vec::new(),
        };
        Ok((chain, inputs, control))
    }
}

/// Captures that enter a chain.
pub struct Inputs {
    /// Each capture with its name.
    pub captures: Vec<(Named, Capture)>,
}

impl Inputs {
    /// Opens the captures that `--in` names.
    pub fn open(texts: &[String], chain: &Chain) -> Result<Self, Failure> {
        let open = |text: &String| -> Result<_, Failure> {
            let named = named(text, chain)?;
            let capture = Capture::open(&named.path)?;
            Ok((named, capture))
        };
        Ok(Self { captures: texts.iter().map(open).collect::<Result<_, _>>()? })
    }

    /// The time of the earliest first packet; 0 if there are no packets.
    pub fn first_time_ns(&self) -> u64 {
        self.captures.iter().filter_map(|(_, capture)| capture.first_time_ns()).min().unwrap_or(0)
    }

    /// The bytes of all captures whose size is known.
    pub fn bytes(&self) -> u64 {
        let sizes = self.captures.iter().filter_map(|(_, capture)| capture.progress());
        sizes.map(|progress| progress.total).sum()
    }

    /// The precision of an output: nanoseconds if any capture has them.
    pub fn precision(&self) -> Precision {
        let nano = |(_, capture): &(Named, Capture)| capture.precision() == Precision::Nano;
        if self.captures.iter().any(nano) { Precision::Nano } else { Precision::Micro }
    }

    /// The captures as inputs of a run.
    pub fn into_inputs(self) -> impl Iterator<Item = Input> {
        self.captures.into_iter().map(|(named, capture)| Input {
            name: named.path.display().to_string(),
            interface: named.interface,
            source: Box::new(capture),
        })
    }

    /// Refuses an output that is also an input. Creating it would empty it before it is read.
    pub fn is_apart(&self, output: &Path) -> Result<(), Failure> {
        let is_same = |named: &Named| !is_standard(output) && same_file(output, &named.path);
        match self.captures.iter().any(|(named, _)| is_same(named)) {
            true => Err(Failure::usage(format!(
                "{} is an input, so it cannot be an output",
                output.display()
            ))),
            false => Ok(()),
        }
    }
}

/// Whether both paths are one regular file, which need not exist yet. Hard links are one file.
/// Pipes and devices do not count, because several outputs may write to one.
pub fn same_file(a: &Path, b: &Path) -> bool {
    Identity::of(a).is_some_and(|a| Identity::of(b) == Some(a))
}

/// What tells a file from all others.
#[derive(PartialEq)]
enum Identity {
    /// The device and the inode of a file that exists.
    Inode(u64, u64),
    /// The path of a file that does not exist.
    Path(PathBuf),
}

impl Identity {
    fn of(path: &Path) -> Option<Self> {
        if let Ok(file) = path.metadata() {
            return file.is_file().then(|| Self::Inode(file.dev(), file.ino()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(Self::Path(folder.join(path.file_name()?)))
    }
}

/// Whether a path stands for standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Creates a capture, or writes one to standard output for `-`.
pub fn create(path: &Path, precision: Precision) -> Result<CaptureWriter, Failure> {
    if is_standard(path) {
        let out = std::io::stdout();
        if out.is_terminal() {
            return Err(Failure::usage(
                "standard output is a terminal, which cannot hold a capture",
            ));
        }
        return Ok(CaptureWriter::new(out, Format::Pcap(precision), false));
    }
    CaptureWriter::create(path, precision).map_err(|why| Failure::file(path, why))
}
