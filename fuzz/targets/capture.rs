#![no_main]
//! Reads capture files. Any bytes must give whole packets, and reading must end.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (packets, _, _) = braid_io::read_all(bytes);
    for packet in packets.iter().take(64) {
        assert!(packet.wire_len as usize >= packet.data().len());
        let _ = packet.parse();
    }
});
