//! `braid ctl … capture`: packets at an interface or a function of a live run, in a file.

use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use braid_io::{CaptureWriter, Format, PacketSink};
use braid_packet::{Link, Packet};
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::super::run::{duration, signal_flag};
use super::session::Session;
use crate::answer::{Answer, Failure, Outcome};
use crate::output::Output;

/// What to capture, and where to write it.
#[derive(clap::Args)]
pub struct Capture {
    /// An interface or a function: NAME for packets that enter and leave there, NAME:in or NAME:out
    /// for one of them
    point: String,
    /// Only packets for which this condition holds, such as "ip.dst == 10.0.0.1 and has tcp"
    filter: Option<String>,
    /// The file, in the format pcapng; compressed if its name ends in .gz
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// End after this many packets
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End after this time, such as 10s; without it and without --count, at Ctrl-C
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    time: Option<Duration>,
}

impl Capture {
    /// The request.
    pub fn request(&self) -> Value {
        let (point, way) = match self.point.split_once(':') {
            Some((point, way)) => (point, Some(way)),
            None => (self.point.as_str(), None),
        };
        json!({
            "do": "capture", "point": point, "way": way, "filter": self.filter,
            "count": self.count,
        })
    }

    /// Refuses a file that exists, unless the user wants to replace it. Terminals and pipes are no
    /// files to replace.
    pub fn check(&self) -> Result<(), Failure> {
        match std::fs::metadata(&self.out) {
            Ok(found) if found.is_file() && !self.force => Err(self.is_there()),
            _ => Ok(()),
        }
    }

    fn is_there(&self) -> Failure {
        Failure::file(&self.out, "the file exists; `--force` replaces it")
    }

    /// Creates the file. Another program may have made it since [`Self::check`].
    fn create(&self) -> Result<File, Failure> {
        self.check()?;
        let mut options = File::options();
        match self.force || self.out.exists() {
            true => options.write(true).create(true).truncate(true),
            false => options.write(true).create_new(true),
        };
        options.open(&self.out).map_err(|why| match why.kind() {
            ErrorKind::AlreadyExists => self.is_there(),
            _ => Failure::file(&self.out, why),
        })
    }

    /// Writes the packets that follow the answer.
    pub fn follow(&self, session: &mut Session, output: &Output) -> Outcome {
        let stop = signal_flag(&[SIGINT, SIGTERM], true)?;
        let wrong = |why: &dyn std::fmt::Display| Failure::file(&self.out, why);
        let file = self.create()?;
        let is_gzip = self.out.extension().is_some_and(|end| end == "gz");
        let mut writer = CaptureWriter::new(file, Format::PcapNg, is_gzip);
        let end = self.time.map(|time| Instant::now() + time);
        let (mut packets, mut lost) = (0, 0);
        loop {
            let is_enough = || {
                stop.load(Ordering::Relaxed)
                    || end.is_some_and(|end| Instant::now() >= end)
                    || self.count.is_some_and(|most| packets >= most)
            };
            let Some(line) = session.next(is_enough)? else { break };
            lost += line["lost"].as_u64().unwrap_or(0);
            if let Some((packet, comment)) = packet(&line) {
                writer.write_with_comment(&packet, comment).map_err(|why| wrong(&why))?;
                packets += 1;
            }
        }
        writer.finish().map_err(|why| wrong(&why))?;
        if output.json {
            output.value(&json!({ "packets": packets, "lost": lost }));
        } else {
            let beside = if lost > 0 { format!("; {lost} came too fast") } else { String::new() };
            output.text(format!("{packets} packets in {}{beside}\n", self.out.display()));
        }
        Ok(Answer::Yes)
    }
}

/// The packet of a line, and what happened to it.
fn packet(line: &Value) -> Option<(Packet, &str)> {
    let hex = line["bytes"].as_str()?;
    let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    let bytes = (0..hex.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>()?;
    let length = u32::try_from(line["length"].as_u64()?).ok()?;
    let packet = Packet::snapped(Link::Ethernet, line["time_ns"].as_u64()?, bytes, length);
    Some((packet, line["what"].as_str()?))
}
