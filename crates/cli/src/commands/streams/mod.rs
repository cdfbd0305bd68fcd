//! `braid streams`: the bytes of TCP connections, one file for each direction.

mod files;
mod listing;
mod written;

use std::path::{Path, PathBuf};

use braid_io::PacketSource;
use braid_packet::Layout;
use braid_tcp::{Checksums, Monitor, Options, Policies, PolicyOf};

use crate::answer::{Answer, Failure, Outcome};
use crate::captures::Capture;
use crate::output::{Output, warn};
use crate::progress::Shown;
use files::Files;
use written::Written;

/// Write what TCP connections carry: one file for each direction, and a listing
///
/// The files are called as tcpflow calls them: 192.168.001.010.01234-010.000.000.001.00080 holds
/// the bytes from 192.168.1.10, port 1234, to 10.0.0.1, port 80; with c1, c2, … for later
/// connections. The place of a byte in its file is its place in the stream: missing bytes are
/// holes. Urgent bytes stay in the stream. Segments with a wrong TCP checksum count like others,
/// because many captures have them from senders that leave checksums to their network card; see
/// --verify-checksums. Fragments of IP packets are counted and not put together.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The capture; `-` is standard input
    #[arg(long = "in", value_name = "CAPTURE")]
    input: PathBuf,
    /// The folder for the files: a new or an empty one
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Which bytes count where segments that wait for earlier bytes disagree: first, last, or as
    /// the receiver's system decides: bsd (the default), linux, old-linux, solaris. With @PREFIX
    /// for the receivers of a prefix; may be given several times
    #[arg(long = "policy", value_name = "POLICY[@PREFIX]")]
    policies: Vec<PolicyOf>,
    /// Leave out segments with a wrong TCP checksum
    #[arg(long)]
    verify_checksums: bool,
    /// The memory of all connections. At the limit, the connection that is idle for the longest
    /// time is given up
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    memory: u32,
    /// The memory of bytes of one stream that wait for earlier ones. At the limit, the stream goes
    /// on behind the missing bytes
    #[arg(long, value_name = "KIB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    stream_memory: u32,
}

/// A capture is read to its end anyway, so missing bytes have much time to come (ns).
const PATIENCE_NS: u64 = 10_000_000_000;

pub fn run(args: &Args, output: &Output) -> Outcome {
    let policies = Policies::new(&args.policies).map_err(Failure::usage)?;
    let mut capture = Capture::open(&args.input)?;
    prepare(&args.out)?;
    let options = Options {
        is_inline: false,
        policies,
        stream_memory: args.stream_memory as usize * 1024,
        memory: args.memory as usize * 1024 * 1024,
        patience_ns: PATIENCE_NS,
        checksums: match args.verify_checksums {
            true => Checksums::Verified,
            false => Checksums::Ignored,
        },
    };
    let mut monitor = Monitor::new(options);
    let mut written = Written::new(Files::new(&args.out), output);
    let end = drive(&mut capture, &mut monitor, &mut written, &args.input);
    // What was read before an error counts.
    monitor.finish(&mut written);
    written.check()?;
    output.text(listing::total(&monitor.counts(), written.files(), written.bytes, output.json));
    if let Some(warning) = capture.warning() {
        warn(format!("{}: {warning}", args.input.display()));
    }
    end.map(|()| Answer::Yes)
}

/// Takes all packets of a capture.
fn drive(
    capture: &mut Capture,
    monitor: &mut Monitor,
    written: &mut Written<'_>,
    path: &Path,
) -> Result<(), Failure> {
    let mut source = Shown::new(capture, "packets");
    let mut layout = Layout::default();
    while let Some(packet) = source.next_packet().map_err(|why| Failure::file(path, why))? {
        packet.parse_to(&mut layout);
        monitor.packet(&packet, &layout, written);
        written.check()?;
    }
    Ok(())
}

/// Makes the folder, or checks that it is empty.
fn prepare(dir: &Path) -> Result<(), Failure> {
    let failure = |why: std::io::Error| Failure::file(dir, why);
    std::fs::create_dir_all(dir).map_err(failure)?;
    match std::fs::read_dir(dir).map_err(failure)?.next() {
        None => Ok(()),
        Some(_) => Err(Failure::usage(format!(
            "{} is not empty; name a new folder, or remove its files",
            dir.display()
        ))),
    }
}
