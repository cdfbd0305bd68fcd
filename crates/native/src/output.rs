//! What functions publish: messages and events. It waits in the instance until the engine takes it.

use braid_ir::engine::Content;
use braid_ir::model::{EventDecl, EventTy};
use serde::{Deserialize, Serialize};

/// The most outputs that wait. A single call can make this many.
pub(crate) const MOST: usize = 1024;
/// The most bytes of a text in an event.
const MOST_TEXT: usize = 4096;

/// What a function has published, in the order of its calls.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Output {
    /// A message.
    Log(Log),
    /// An event of a type that the function declares.
    Event(Publication),
}

/// A message that the function publishes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Log {
    /// The time (ns).
    pub time_ns: u64,
    /// The severity.
    pub level: String,
    /// The message.
    pub text: String,
}

/// An event that the function publishes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Publication {
    /// The time (ns).
    pub time_ns: u64,
    /// The number of its type among the declared ones.
    pub event: u32,
    /// The values of its fields.
    pub values: Vec<Content>,
}

/// Whether the values fit an event type. The error says what does not.
fn fit(decl: &EventDecl, values: &[Content]) -> Result<(), String> {
    let (name, fields) = (&decl.name, &decl.fields);
    if fields.len() != values.len() {
        let (given, wanted) = (values.len(), fields.len());
        return Err(format!("publishes {name} with {given} values; it has {wanted} fields"));
    }
    for ((field, ty), value) in fields.iter().zip(values) {
        let wrong = match (ty, value) {
            (EventTy::Scalar(ty), Content::Word(word)) if *word > ty.max() => {
                Some(format!("the value {word}; it has {} bits", ty.width))
            }
            (EventTy::Scalar(_), Content::Str(_)) => Some("a text; it is a number".to_owned()),
            (EventTy::Str, Content::Word(_)) => Some("a number; it is a text".to_owned()),
            (EventTy::Str, Content::Str(text)) if text.len() > MOST_TEXT => {
                Some(format!("{} bytes; {MOST_TEXT} are the most", text.len()))
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(format!("gives {field} of {name} {wrong}"));
        }
    }
    Ok(())
}

impl Output {
    /// Whether a function with these event types can make it. The error says why not.
    pub(crate) fn check(&self, events: &[EventDecl]) -> Result<(), String> {
        match self {
            Output::Log(_) => Ok(()),
            Output::Event(Publication { event, values, .. }) => {
                let decl = events.get(*event as usize);
                let decl = decl.ok_or("publishes an event that it does not declare")?;
                fit(decl, values)
            }
        }
    }
}
