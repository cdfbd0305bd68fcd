//! Events of functions in Rust.

use super::abi::{RawValue, RawWide};
use super::guest::{Host, Told, c_text, call, told};
use braid_ir::engine::Content;
use std::ptr;

/// The number of an event type; see [`Host::event`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event(i32);

impl Host<'_> {
    /// The event type with this name, which [`super::info::Info::events`] declares.
    ///
    /// # Errors
    /// The function declares no such type.
    pub fn event(&mut self, name: &str) -> Result<Event, i32> {
        let number = call!(self.raw, event_named, c_text(name).as_ptr());
        told(number).map(|()| Event(number))
    }

    /// Publishes an event, with values for all its fields.
    ///
    /// # Errors
    /// The values do not fit, or too many events wait. The report has the details.
    pub fn publish(&mut self, event: Event, values: &[Content]) -> Told {
        let raw = |value: &Content| match value {
            Content::Word(word) => {
                RawValue { number: RawWide::of(*word), text: ptr::null(), length: 0 }
            }
            Content::Str(text) => RawValue {
                number: RawWide::default(),
                text: text.as_ptr().cast(),
                length: text.len(),
            },
        };
        let values: Vec<RawValue> = values.iter().map(raw).collect();
        told(call!(self.raw, publish, event.0, values.as_ptr(), values.len()))
    }
}
