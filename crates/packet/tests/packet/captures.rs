//! Tests with real captures under `BRAID_DATA` (classic pcap files with Ethernet). They are skipped
//! when the variable is unset.

use crate::oracle;
use braid_packet::{Access, FIELDS, Link, Packet, checksum};
use std::path::{Path, PathBuf};

/// The most packets that are read from one file.
const MOST: usize = 2000;

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "pcap" || e == "cap") {
            found.push(path);
        }
    }
}

/// The packets of a classic pcap file with Ethernet. Any other file gives none.
fn packets(bytes: &[u8]) -> Vec<Packet> {
    let word = |at: usize, big: bool| {
        let word: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
    };
    let big = match bytes.first_chunk::<4>() {
        Some([0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d]) => true,
        Some([0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1]) => false,
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    let mut at = 24;
    while word(20, big) == Some(1) && found.len() < MOST {
        let (Some(captured), Some(wire)) = (word(at + 8, big), word(at + 12, big)) else { break };
        let end = at + 16 + usize::try_from(captured).unwrap();
        let Some(data) = bytes.get(at + 16..end) else { break };
        found.push(Packet::snapped(Link::Ethernet, 0, data, wire));
        at = end;
    }
    found
}

/// Checks that writing a field's own value changes at most the form of a zero checksum.
fn rewrite(packet: &Packet) {
    let layout = packet.parse();
    let before = checksum::verify(packet, &layout);
    let mut changed = packet.clone();
    for info in FIELDS.iter().filter(|info| info.access == Access::Rw) {
        if let Some(value) = packet.get(&layout, info.field) {
            assert!(changed.set(&layout, info.field, !value));
            assert!(changed.set(&layout, info.field, value));
        }
    }
    assert_eq!(changed.parse(), layout);
    assert_eq!(checksum::verify(&changed, &layout), before, "{packet}");
}

#[test]
fn captures_agree_with_the_oracle_and_keep_their_checksums() {
    let Some(dir) = std::env::var_os("BRAID_DATA") else {
        println!("skipped: BRAID_DATA is not set");
        return;
    };
    let mut paths = Vec::new();
    files(Path::new(&dir), &mut paths);
    let (mut seen, mut compared, mut malformed, mut wrong) = (0, 0, 0, 0);
    for path in &paths {
        for packet in packets(&std::fs::read(path).unwrap()) {
            seen += 1;
            let layout = packet.parse();
            malformed += usize::from(layout.malformed().is_some());
            wrong += usize::from(!checksum::verify(&packet, &layout).all_right());
            if packet.data().len() == usize::try_from(packet.wire_len).unwrap() {
                compared += usize::from(oracle::compare(&packet));
            }
            rewrite(&packet);
        }
    }
    let files = paths.len();
    println!("{files} files: {seen} packets, {compared} compared with the oracle,");
    println!("{malformed} malformed, {wrong} with a wrong checksum");
    assert!(compared > 0);
}
