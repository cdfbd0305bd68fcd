//! Resolves names of HTTP messages: `request.NAME` in `on request` and `on response`,
//! `response.NAME` in `on response`.

use braid_ir::model::{StreamEvent, StreamField, StreamText, Ty};

use super::lower::{Lower, Mode};
use super::names::Named;
use super::types::{self, BOOL, SIZE, TIME};
use crate::ast::{Expr, ExprKind, Path, joined};
use crate::diag::{Diagnostic, codes};

/// What a name stands for.
#[derive(Clone, Copy)]
enum Part {
    Number(StreamField, Ty),
    Text(StreamText),
    /// A number that only `on request` knows.
    OfRequest(StreamField, Ty),
}

/// What can be read of a request.
const REQUEST: &[(&str, Part)] = &[
    ("request.method", Part::Text(StreamText::Method)),
    ("request.host", Part::Text(StreamText::Host)),
    ("request.path", Part::Text(StreamText::Path)),
    ("request.target", Part::Text(StreamText::Target)),
    ("request.user_agent", Part::Text(StreamText::UserAgent)),
    ("request.time", Part::Number(StreamField::RequestTime, TIME)),
    ("request.content_length", Part::OfRequest(StreamField::Length, SIZE)),
    ("request.has_content_length", Part::OfRequest(StreamField::HasLength, BOOL)),
];

/// What can be read of a response.
const RESPONSE: &[(&str, Part)] = &[
    ("response.status", Part::Number(StreamField::Status, types::uint(16))),
    ("response.has_request", Part::Number(StreamField::HasRequest, BOOL)),
    ("response.content_length", Part::Number(StreamField::Length, SIZE)),
    ("response.has_content_length", Part::Number(StreamField::HasLength, BOOL)),
];

/// Whether a name is of a message.
pub fn is_of_message(path: &Path) -> bool {
    let first = path.parts.first().map(|part| part.text.as_str());
    path.parts.len() > 1 && matches!(first, Some("request" | "response"))
}

/// Resolves a name of a message in the program for an event.
pub fn resolve<'a>(lower: &mut Lower<'a>, event: StreamEvent, path: &Path) -> Option<Named<'a>> {
    let name = joined(path);
    let of_request = name.starts_with("request.");
    let known = if of_request { REQUEST } else { RESPONSE };
    if event == StreamEvent::Request && !of_request {
        let message = format!("`{name}` belongs to a response, and this is a request");
        let wrong = Diagnostic::new(codes::MIXED_STREAM, message, path.span, "no response here");
        return lower.fail(wrong.help("write it in `on response`"));
    }
    match known.iter().find(|(of, _)| *of == name).map(|(_, part)| *part) {
        Some(Part::Text(text)) => Some(Named::Text(text)),
        Some(Part::Number(field, ty)) => Some(Named::Stream(field, ty)),
        Some(Part::OfRequest(field, ty)) if event == StreamEvent::Request => {
            Some(Named::Stream(field, ty))
        }
        Some(Part::OfRequest(..)) => {
            let message = format!("`{name}` is not kept for the response");
            let wrong = Diagnostic::new(codes::MIXED_STREAM, message, path.span, "not known here");
            lower.fail(wrong.help("write it in `on request`"))
        }
        None => {
            let names = known.iter().map(|(name, _)| *name);
            let label = format!("expected {}", names.clone().collect::<Vec<_>>().join(", "));
            let message = format!("there is no `{name}`");
            let wrong = Diagnostic::new(codes::UNKNOWN_FIELD, message, path.span, label);
            lower.fail(wrong.help_if(lower.suggest(&name, names)))
        }
    }
}

/// The message for a name of a message where there is none.
pub fn absent(path: &Path) -> Diagnostic {
    let message = format!("`{}` belongs to an HTTP message, and there is none here", joined(path));
    Diagnostic::new(codes::MIXED_STREAM, message, path.span, "no message")
        .help("`on request` and `on response` of a `stream nf` read it")
}

/// The string of a request that an expression names, to be searched. `Some(None)` after an error,
/// which is then reported.
#[expect(clippy::option_option, reason = "the outer one says whether it is such a string")]
pub fn searched(lower: &mut Lower<'_>, expr: &Expr) -> Option<Option<StreamText>> {
    let ExprKind::Path(path) = &expr.kind else { return None };
    if !lower.mode.is_stream() || !is_of_message(path) {
        return None;
    }
    let name = joined(path);
    let found = REQUEST.iter().find_map(|(of, part)| match part {
        Part::Text(text) if *of == name => Some(*text),
        _ => None,
    });
    let event = match lower.mode {
        Mode::Stream(event @ (StreamEvent::Request | StreamEvent::Response)) => event,
        _ => return Some(lower.fail(absent(path))),
    };
    let Some(text) = found else {
        // An unknown name has a message of its own.
        return Some(resolve(lower, event, path).and_then(|_| {
            let message = format!("`{name}` is no string");
            let label = "cannot be searched";
            lower.fail(Diagnostic::new(codes::WRONG_NAME, message, path.span, label))
        }));
    };
    if event == StreamEvent::Response {
        let message = format!("`{name}` is searched when the request comes");
        let wrong = Diagnostic::new(codes::MIXED_STREAM, message, path.span, "not kept whole");
        return Some(lower.fail(wrong.help("write it in `on request`")));
    }
    Some(Some(text))
}
