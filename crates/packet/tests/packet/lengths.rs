//! Tests that the fields that count the payload follow a change of its length, and no others.

use crate::samples::all;
use braid_packet::{FIELDS, Field, Header, checksum, replace::replace};

#[test]
fn fields_that_count_the_payload_and_no_others_follow_it() {
    for (name, before) in all() {
        let layout = before.parse();
        let mut after = before.clone();
        let done = replace(&mut after, &layout, (0, 0), (3, &[u128::MAX]));
        let has_fixed_length = layout.has(Header::Quoted) || layout.has(Header::Arp);
        let may = !layout.is_fragment() && !has_fixed_length;
        assert_eq!(done, Ok(may), "{name}");
        let now = after.parse();
        assert!(checksum::verify(&after, &now).all_right(), "{name}");
        let grows = if may { 3 } else { 0 };
        for info in FIELDS {
            if matches!(info.field, Field::IpChecksum | Field::L4Checksum) {
                continue;
            }
            let more = if info.counts_payload { grows } else { 0 };
            let expected = before.get(&layout, info.field).map(|value| value + more);
            assert_eq!(after.get(&now, info.field), expected, "{name}: {}", info.name);
        }
    }
}
