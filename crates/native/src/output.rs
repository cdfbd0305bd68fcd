//! What functions publish and send: messages, events and packets. It waits in the instance until
//! the engine takes it.

use crate::verdict::Verdict;
use braid_ir::engine::Content;
use braid_ir::model::{EventDecl, EventTy};
use serde::{Deserialize, Serialize};

/// The most outputs that wait. A single call can make this many.
pub(crate) const MOST: usize = 1024;
/// The most packets that a function may send for one packet.
pub(crate) const MOST_SENT: u32 = 64;
/// The most bytes of a packet that a function sends.
pub(crate) const MOST_BYTES: usize = 65_535;
/// The most bytes of a text in an event.
const MOST_TEXT: usize = 4096;

/// What a function has published or sent, in the order of its calls.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Output {
    /// A message.
    Log(Log),
    /// An event of a type that the function declares.
    Event(Publication),
    /// A packet that it has made.
    Packet(Sent),
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

/// A packet that a function sends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sent {
    /// Where it goes: onward, back, or to a port. From a timer, onward is to the right.
    pub to: Verdict,
    /// Whether a timer has sent it.
    pub from_timer: bool,
    /// Its bytes, from the link header on.
    pub bytes: Vec<u8>,
}

/// What a function may publish and send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed<'a> {
    /// The types of its events.
    pub(crate) events: &'a [EventDecl],
    /// The number of its ports beside left and right.
    pub(crate) ports: u32,
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
    /// Whether the function can make it. The error says why not.
    pub(crate) fn check(&self, Allowed { events, ports }: Allowed<'_>) -> Result<(), String> {
        match self {
            Output::Log(_) => Ok(()),
            Output::Packet(Sent { bytes, .. }) if !(1..=MOST_BYTES).contains(&bytes.len()) => {
                let len = bytes.len();
                Err(format!("sends a packet of {len} bytes; 1 to {MOST_BYTES} are possible"))
            }
            Output::Packet(Sent { to, .. }) => match to {
                Verdict::Forward | Verdict::Back => Ok(()),
                Verdict::Port(port) if *port < ports => Ok(()),
                Verdict::Port(port) => {
                    Err(format!("sends a packet to port {port}; it has {ports}"))
                }
                _ => Err("sends a packet to no place".to_owned()),
            },
            Output::Event(Publication { event, values, .. }) => {
                let decl = events.get(*event as usize);
                let decl = decl.ok_or("publishes an event that it does not declare")?;
                fit(decl, values)
            }
        }
    }
}
