//! Writes a case's chain, rules, routes and packets to files, so that other programs can be
//! measured with the same input.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use braid_io::{CaptureWriter, Format, PacketSink, Precision};
use braid_packet::{Link, Packet};

use crate::Error;
use crate::definition::{Case, Definition};
use crate::frames::{START_NS, STEP_NS};
use crate::setup::Setup;

/// The largest number of packets that are written. They fit into a capture of about 100 MiB.
const MAX_PACKETS: u64 = 1 << 20;

/// Writes `chain.braid`, its files and `packets.pcap` to a new folder for the case below `folder`,
/// and returns the new folder. The capture has the packets in the order in which they are sent,
/// with one train for each flow.
///
/// # Errors
/// Returns an error when a file cannot be written.
pub fn export(
    definition: &Definition,
    case: &Case,
    setup: &Setup,
    folder: &Path,
) -> Result<PathBuf, Error> {
    let folder = folder.join(format!("{}-{}", definition.name, case.label()));
    let wrong = |path: &Path, why: String| Error::File { path: path.display().to_string(), why };
    fs::create_dir_all(&folder).map_err(|why| wrong(&folder, why.to_string()))?;
    let chain = ("chain.braid".to_owned(), setup.source.text.clone());
    for (name, text) in setup.source.files.clone().into_iter().chain([chain]) {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|why| wrong(&path, why.to_string()))?;
    }
    let path = folder.join("packets.pcap");
    packets(setup, case, &definition.payloads, &path).map_err(|why| wrong(&path, why))?;
    Ok(folder)
}

fn packets(setup: &Setup, case: &Case, payloads: &[String], path: &Path) -> Result<(), String> {
    let file = File::create(path).map_err(|why| why.to_string())?;
    let mut writer = CaptureWriter::new(file, Format::Pcap(Precision::Nano), false);
    if let Some(trace) = &setup.trace {
        for packet in &trace.packets {
            writer.write_packet(packet).map_err(|why| why.to_string())?;
        }
        return writer.finish().map_err(|why| why.to_string());
    }
    if let Some(sequence) = &setup.sequence {
        for packet in sequence.in_order() {
            writer.write_packet(&packet).map_err(|why| why.to_string())?;
        }
        return writer.finish().map_err(|why| why.to_string());
    }
    for (number, headers) in (0..MAX_PACKETS).zip(&setup.headers) {
        let frame = headers.frame(case.frame_bytes as usize, payloads);
        let packet = Packet::new(Link::Ethernet, START_NS + number * STEP_NS, frame);
        writer.write_packet(&packet).map_err(|why| why.to_string())?;
    }
    let mut cursor = setup.ring.cursor(u64::MAX);
    for number in 0..setup.ring.packets().min(MAX_PACKETS * case.train) {
        let (frame, time_ns) = cursor.next_frame();
        if number % case.train == 0 {
            let packet = Packet::new(Link::Ethernet, time_ns, frame);
            writer.write_packet(&packet).map_err(|why| why.to_string())?;
        }
    }
    writer.finish().map_err(|why| why.to_string())
}
