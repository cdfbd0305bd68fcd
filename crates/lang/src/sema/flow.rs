//! What a program for an event of a TCP connection knows: the fields that the connection's flow
//! decides, and bytes if some have come.

use braid_ir::model::StreamEvent;
use braid_packet::{Field, FlowKey, Header};

use super::lower::{Lower, Mode};
use crate::ast::Span;
use crate::diag::{Diagnostic, codes};

/// Checks that there are bytes here, because the program is for bytes of a stream.
pub fn has_bytes(lower: &mut Lower<'_>, span: Span) -> bool {
    if let Mode::Stream(StreamEvent::Client | StreamEvent::Server) = lower.mode {
        return true;
    }
    let message = match lower.mode {
        Mode::Stream(StreamEvent::Alert) => "an alert may come without bytes",
        Mode::Stream(StreamEvent::Request | StreamEvent::Response) => {
            "a head may have come in several parts"
        }
        _ => "there are no bytes when a connection opens or closes",
    };
    lower.say(
        Diagnostic::new(codes::MIXED_STREAM, message, span, "no bytes here")
            .help("write it in `on data`"),
    );
    false
}

/// The headers that a stream function can test.
pub const HEADERS: [Header; 6] =
    [Header::Ip4, Header::Ip6, Header::Inet, Header::L4, Header::Tcp, Header::Udp];

/// Whether a stream function can test a header, because the flow of its connection decides it.
pub fn knows_header(lower: &Lower<'_>, header: Header) -> bool {
    lower.mode.is_stream() && HEADERS.contains(&header)
}

/// Whether a stream function can read a field, because the flow of its connection decides it.
pub fn is_of_flow(lower: &Lower<'_>, field: Field) -> bool {
    lower.mode.is_stream() && FlowKey::has_field(field)
}
