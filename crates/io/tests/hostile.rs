//! Damaged, cut-off and hostile files end in an error or a warning, never in a panic or in
//! unbounded work. The packets before the damage are returned.

mod build;

use braid_io::{CaptureReader, PacketSource, ReadError, Warning, read_all};
use build::*;
use proptest::prelude::*;
use std::io::Cursor;

fn damage(file: &[u8]) -> (usize, u64, String) {
    match read_all(file) {
        (packets, None, Some(ReadError::Corrupt { offset, what })) => (packets.len(), offset, what),
        other => panic!("{other:?}"),
    }
}

/// The files under test, each with the places where its packets' records end.
fn valid_files() -> Vec<(Vec<u8>, Vec<usize>)> {
    // 24 bytes of header, 16 for each record.
    let pcap_ends = vec![44, 60, 85];
    // 28 + 20 + 28 bytes, then a packet; 28 + 32 bytes, then two packets.
    let pcapng_ends = vec![112, 204, 248];
    vec![(small_pcap(), pcap_ends), (small_pcapng(), pcapng_ends)]
}

#[test]
fn cut_anywhere_gives_whole_packets_and_a_warning() {
    for (file, ends) in valid_files() {
        let (all, ..) = read_all(&file);
        assert_eq!(ends.last(), Some(&file.len()));
        for len in 4..=file.len() {
            let (packets, warning, error) = read_all(&file[..len]);
            if len < record_ends(&file)[0] {
                assert!(matches!(error, Some(ReadError::CutHeader)), "{len}: {error:?}");
                continue;
            }
            assert!(error.is_none(), "{len}: {error:?}");
            let whole = ends.iter().filter(|&&end| end <= len).count();
            assert_eq!(packets[..], all[..whole], "{len}");
            if let Some(Warning { packets, offset }) = warning {
                assert_eq!(packets, whole as u64);
                assert!(offset < len as u64);
            }
            // A file that is cut where a record ends is complete. A cut at any other place is
            // reported.
            assert_eq!(warning.is_none(), record_ends(&file).contains(&len), "{len}");
        }
    }
}

fn record_ends(file: &[u8]) -> Vec<usize> {
    match file.starts_with(&[0x0a, 0x0d]) {
        true => vec![28, 48, 76, 112, 140, 172, 204, 248],
        false => vec![24, 44, 60, 85],
    }
}

#[test]
fn compressed_and_cut_anywhere_gives_a_prefix_and_a_warning() {
    for (file, _) in valid_files() {
        let (all, ..) = read_all(&file);
        for compressed in [gzip(&file), zstd(&file)] {
            for len in 4..compressed.len() {
                let (packets, warning, error) = read_all(&compressed[..len]);
                // The bytes that can be decompressed may end within the file's header.
                assert!(matches!(error, None | Some(ReadError::CutHeader)), "{len}: {error:?}");
                assert!(warning.is_some() || error.is_some(), "{len}");
                assert_eq!(packets[..], all[..packets.len()], "{len}");
            }
        }
    }
}

#[test]
fn cut_compression_gives_most_of_a_long_file() {
    let mut file = Little.pcap(MICRO, 4, 1);
    for second in 0..40_u32 {
        // Hardly compressible, so that compressed blocks end throughout the file.
        let noise = |at: u32| (second * 10_000 + at).wrapping_mul(0x9e37_79b9).to_be_bytes()[0];
        let data: Vec<u8> = (0..10_000).map(noise).collect();
        file.extend(Little.record((second, 0), 10_000, 10_000, &data));
    }
    for compressed in [gzip(&file), zstd(&file)] {
        let (packets, warning, error) = read_all(&compressed[..compressed.len() * 9 / 10]);
        assert!(error.is_none() && warning.is_some());
        assert!(packets.len() >= 20, "{}", packets.len());
    }
}

#[test]
fn capture_that_ends_within_its_header_says_so() {
    let (_, _, error) = read_all(&small_pcapng()[..20]);
    assert_eq!(
        error.unwrap().to_string(),
        "the file is cut off within its header, so no packet can be read; expected a whole pcap or \
         pcapng capture"
    );
}

#[test]
fn warning_says_what_is_missing() {
    let (_, warning, _) = read_all(&small_pcap()[..84]);
    assert_eq!(
        warning.unwrap().to_string(),
        "the file is cut off: its last record, at byte 60, is incomplete and was left out; 2 \
         whole packets were read"
    );
}

#[test]
fn pcap_record_of_impossible_length_is_an_error_at_its_place() {
    let mut file = small_pcap();
    file.extend(Little.record((4, 0), u32::MAX, 60, b"abc"));
    let what = "the packet's record claims 4294967295 captured bytes; at most 262144 are possible";
    assert_eq!(damage(&file), (3, 85, what.into()));
    let mut file = small_pcap();
    file.extend(Little.record((4, 0), 262_145, 60, &[0; 300_000]));
    assert_eq!(damage(&file).1, 85);
}

#[test]
fn largest_possible_packet_is_read() {
    let data = vec![5; 262_144];
    let file = [Little.pcap(MICRO, 4, 1), Little.record((0, 0), 262_144, 262_144, &data)].concat();
    let (packets, warning, error) = read_all(&file);
    assert!(warning.is_none() && error.is_none());
    assert_eq!(packets[0].data(), data);
}

#[test]
fn pcapng_block_of_impossible_length_is_an_error_at_its_place() {
    let start = [Little.section(), Little.interface(1, 0, &[])].concat();
    for len in [0, 4, 11, 13, 34] {
        let block = [Little.u32(6), Little.u32(len), vec![0; 64]].concat();
        let what = format!("a block claims a length of {len}, which no block can have");
        assert_eq!(damage(&[start.clone(), block].concat()), (0, 48, what));
    }
    let block = [Little.u32(6), Little.u32(0xffff_fffc), vec![0; 64]].concat();
    let what = "a block claims 4294967292 bytes; at most 16777216 are possible";
    assert_eq!(damage(&[start.clone(), block].concat()), (0, 48, what.into()));
    // A block that is not needed is skipped: the file counts as cut off inside it.
    let block = [Little.u32(5), Little.u32(0xffff_fffc), vec![0; 64]].concat();
    let (_, warning, error) = read_all(&[start, block].concat());
    assert!(error.is_none());
    assert_eq!(warning, Some(Warning { packets: 0, offset: 48 }));
}

#[test]
fn pcapng_block_with_two_lengths_is_an_error() {
    for kind in [6, 5] {
        let mut block = Little.block(kind, &[0; 24]);
        block[32] = 40;
        let file = [Little.section(), block].concat();
        let what = "a block's two lengths differ (36 and 40)";
        assert_eq!(damage(&file), (0, 28, what.into()));
    }
}

#[test]
fn pcapng_packet_of_impossible_length_is_an_error() {
    let start = [Little.section(), Little.interface(1, 0, &[])].concat();
    let body = |captured: u32| [vec![0; 12], Little.u32(captured), vec![0; 20]].concat();
    for (kind, captured) in [(6, 17), (6, u32::MAX), (2, 17), (2, u32::MAX)] {
        let block = Little.block(kind, &body(captured));
        let (packets, offset, _) = damage(&[start.clone(), block].concat());
        assert_eq!((packets, offset), (0, 48), "{kind} {captured}");
    }
    for kind in [1, 2, 3, 6] {
        let (packets, offset, _) = damage(&[start.clone(), Little.block(kind, &[])].concat());
        assert_eq!((packets, offset), (0, 48), "{kind} without a body");
    }
    // A simple packet that claims more bytes than its block has.
    let (_, _, what) = damage(&[start, Little.simple(17, &[0; 16])].concat());
    assert_eq!(what, "a packet claims 17 captured bytes, more than its block has");
}

#[test]
fn pcapng_packet_of_an_undescribed_interface_is_an_error() {
    let what = "a packet is of interface 1, which was not described";
    let file =
        [Little.section(), Little.interface(1, 0, &[]), Little.enhanced(1, 0, 1, b"x")].concat();
    assert_eq!(damage(&file), (0, 48, what.into()));
    // A new section has none of the interfaces of the previous one.
    let file =
        [Little.section(), Little.interface(1, 0, &[]), Big.section(), Big.enhanced(0, 0, 1, b"x")]
            .concat();
    assert_eq!(damage(&file).1, 76);
}

#[test]
fn pcapng_section_with_too_many_interfaces_is_an_error() {
    let mut file = Little.section();
    file.extend(Little.interface(1, 0, &[]).repeat(65_537));
    assert_eq!(damage(&file), (0, 28 + 65_536 * 20, "a section has too many interfaces".into()));
}

#[test]
fn pcapng_section_without_byte_order_is_an_error() {
    let mut file = Little.section();
    file[8] = 0;
    assert_eq!(damage(&file), (0, 0, "a section header has no byte-order magic".into()));
}

#[test]
fn options_that_run_over_their_block_are_ignored() {
    let mut interface = Little.interface(1, 0, &[Little.option(9, &[9])]);
    // The option claims 200 bytes.
    interface[18] = 200;
    let file = [Little.section(), interface, Little.enhanced(0, 5, 1, b"x")].concat();
    let (packets, _, error) = read_all(&file);
    assert!(error.is_none());
    assert_eq!(packets[0].time_ns, 5_000);
}

#[test]
fn damaged_compression_is_an_error() {
    let plain = [small_pcap(), Little.record((4, 0), 262_144, 262_144, &[3; 262_144])].concat();
    let mut gz = gzip(&plain);
    let middle = gz.len() / 2;
    gz[middle..middle + 8].fill(0xff);
    let mut zst = zstd(&plain);
    let last = zst.len() - 1;
    zst[5..last].fill(0xff);
    for (file, name) in [(gz, "gzip"), (zst, "zstd")] {
        match read_all(&file) {
            (_, None, Some(ReadError::Decompress { format, .. })) => assert_eq!(format, name),
            other => panic!("{name}: {:?} {:?}", other.1, other.2),
        }
    }
}

#[test]
fn reader_ends_after_an_error() {
    let mut file = small_pcap();
    file.extend(Little.record((4, 0), u32::MAX, 60, b"abc"));
    file.extend(Little.record((4, 0), 1, 60, b"a"));
    let mut reader = CaptureReader::new(Cursor::new(file)).unwrap();
    for _ in 0..3 {
        assert!(reader.next_packet().unwrap().is_some());
    }
    assert!(reader.next_packet().is_err());
    assert!(reader.next_packet().unwrap().is_none());
    assert_eq!(reader.warning(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

    #[test]
    fn any_byte_changed_never_panics(
        which in 0..2_usize,
        changes in proptest::collection::vec((0..300_usize, any::<u8>()), 1..6),
    ) {
        let mut file = valid_files().swap_remove(which).0;
        for (at, value) in changes {
            let at = at % file.len();
            file[at] = value;
        }
        let _ = read_all(&file);
    }

    #[test]
    fn any_bytes_behind_a_file_header_never_panic(
        which in 0..4_usize,
        tail in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let head = match which {
            0 => Little.pcap(MICRO, 4, 1),
            1 => Big.pcap(NANO, 3, 101),
            2 => [Big.section(), Big.interface(1, 0, &[])].concat(),
            _ => vec![0x28, 0xb5, 0x2f, 0xfd],
        };
        let _ = read_all(&[head, tail].concat());
    }
}
