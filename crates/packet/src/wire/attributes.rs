//! Attributes of the packet itself.

use crate::declare::{Declaration, Show, Where, ro};
use crate::names::{Field, Header};

const NONE: Where = Where::Computed;

/// The packet itself, which is always present.
pub(crate) const PKT: Declaration = Declaration {
    fields: &[
        ro(
            Field::PktLen,
            "pkt.len",
            32,
            NONE,
            "Length on the wire in bytes, link header included, FCS excluded; also for snapped packets.",
        )
        .shown(Show::Size)
        .counts_payload(),
        ro(
            Field::PktPayloadLen,
            "pkt.payload_len",
            32,
            NONE,
            "Bytes behind the last recognised header, on the wire, link padding excluded.",
        )
        .shown(Show::Size)
        .counts_payload(),
        ro(
            Field::PktTime,
            "pkt.time",
            64,
            NONE,
            "Time of processing in nanoseconds since the epoch; never goes back.",
        )
        .shown(Show::Time),
        ro(
            Field::PktIngress,
            "pkt.ingress",
            16,
            NONE,
            "Number of the interface where the packet entered the chain.",
        ),
        ro(
            Field::PktBackward,
            "pkt.backward",
            1,
            NONE,
            "1 when the packet goes backward (right to left) through this function.",
        ),
        ro(
            Field::PktFragment,
            "pkt.fragment",
            1,
            NONE,
            "1 for any IP fragment, the first included.",
        ),
        ro(
            Field::PktLaterFragment,
            "pkt.later_fragment",
            1,
            NONE,
            "1 for IP fragments other than the first, which carry no transport header.",
        ),
        ro(
            Field::PktHeld,
            "pkt.held",
            1,
            NONE,
            "1 when the packet comes back from a queue in which this function held it.",
        ),
        ro(
            Field::PktTruncated,
            "pkt.truncated",
            1,
            NONE,
            "1 when fewer bytes were captured than were on the wire.",
        ),
    ],
    ..Declaration::new(Header::Pkt, "pkt", &[])
};
