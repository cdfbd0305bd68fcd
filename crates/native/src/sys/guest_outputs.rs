//! Events, tags and packets of functions in Rust.

use super::abi::{RawValue, RawWide};
use super::guest::{Function, Host, PacketRef, Tag, Told, c_text, call, told};
use crate::verdict::Verdict;
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

    /// Sends a new packet from a timer, with these bytes, from the Ethernet header on: onward is
    /// to the right, back to the left.
    ///
    /// # Errors
    /// No timer runs, the function declares no packets, or it has sent as many as it may.
    pub fn send_from_timer(&mut self, bytes: &[u8], to: Verdict) -> Told {
        told(call!(self.raw, send_from_timer, bytes.as_ptr(), bytes.len(), to.code()))
    }

    /// The tag with this name, which [`super::info::Info::tags`] declares.
    ///
    /// # Errors
    /// The function declares no such tag.
    pub fn tag(&mut self, name: &str) -> Result<Tag, i32> {
        let number = call!(self.raw, tag_named, c_text(name).as_ptr());
        told(number).map(|()| Tag(number))
    }
}

impl<T: Function> PacketRef<'_, T> {
    /// A tag's value: 0 if no function has set it.
    #[must_use]
    pub fn tag(&self, tag: Tag) -> u128 {
        let mut value = RawWide::default();
        // Refused only where there is no packet.
        let _code = call!(self.raw, get_tag, tag.0, &raw mut value);
        value.value()
    }

    /// Sets a tag.
    ///
    /// # Errors
    /// The value has too many bits, or a state function calls it.
    pub fn set_tag(&mut self, tag: Tag, value: u128) -> Told {
        let value = RawWide::of(value);
        told(call!(self.raw, set_tag, tag.0, &raw const value))
    }

    /// Sends a new packet with these bytes, from the link header on: onward, back or to a port.
    ///
    /// # Errors
    /// The function declares no such packets, or has sent as many as it may.
    pub fn send(&mut self, bytes: &[u8], to: Verdict) -> Told {
        told(call!(self.raw, send, bytes.as_ptr(), bytes.len(), to.code()))
    }
}
