//! Reads every capture of `BRAID_DATA/pcaps` and compares it with the packet counts and link types
//! of the manifest. Without `BRAID_DATA` the test prints a message and passes.

use braid_io::{CaptureReader, PacketSource, ReadError};
use std::path::Path;

/// The supported link types, with their names in the manifest (those of `capinfos`).
const SUPPORTED: &[&str] = &["ether", "rawip", "rawip4", "rawip6", "linux-sll"];

/// A file in Kuznetzov's modified pcap, which the reader refuses by name.
const MODIFIED: &str = "pcap-parser__assets__modified-format.pcap";

#[test]
fn captures_of_the_corpus_give_the_counts_of_their_manifest() {
    let Some(data) = std::env::var_os("BRAID_DATA") else {
        println!("skipped: BRAID_DATA is not set");
        return;
    };
    let data = Path::new(&data);
    let manifest = std::fs::read_to_string(data.join("MANIFEST.tsv")).unwrap();
    let mut read = 0;
    let mut wrong = Vec::new();
    for line in manifest.lines().filter(|line| line.starts_with("pcaps/")) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (Some(count), link) = (columns[6].strip_suffix(" packets"), columns[7]) else {
            continue;
        };
        read += 1;
        let path = data.join(columns[0]).join(columns[1]);
        if let Err(why) = check(&path, count.parse().unwrap(), link) {
            wrong.push(format!("{}: {why}", columns[1]));
        }
    }
    println!("{read} captures read, {} differ from the manifest", wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn check(path: &Path, expected: u64, link: &str) -> Result<(), String> {
    let mut count = 0;
    let end = CaptureReader::open(path).and_then(|mut reader| {
        while reader.next_packet()?.is_some() {
            count += 1;
        }
        Ok(reader.warning())
    });
    match end {
        Err(ReadError::LinkType { .. }) if !SUPPORTED.contains(&link) => Ok(()),
        Err(ReadError::Format { .. }) if path.ends_with(MODIFIED) => Ok(()),
        Ok(_) if count == expected && SUPPORTED.contains(&link) => Ok(()),
        other => Err(format!("{count} packets of {expected}, {link}: {other:?}")),
    }
}
