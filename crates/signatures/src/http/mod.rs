//! The HTTP messages of a connection, as its bytes come.
//!
//! Each direction is a row of messages: HTTP/1.0 and HTTP/1.1, kept alive and pipelined. What is no
//! HTTP from its first bytes on is left alone. A malformed message ends the HTTP of its direction.

mod body;
mod head;
mod message;

pub use body::{Chunk, Framing, Method};
pub use message::{Messages, State};

use crate::limits::MAX_PIPELINED;
use crate::outcome::Context;
use std::collections::VecDeque;

/// Both directions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Http {
    pub requests: Messages,
    pub responses: Messages,
    /// Of the requests that wait for their responses.
    pub methods: VecDeque<Method>,
}

impl Default for Http {
    fn default() -> Self {
        let (requests, responses) = (Messages::new(true), Messages::new(false));
        Self { requests, responses, methods: VecDeque::new() }
    }
}

impl Http {
    /// The next bytes of an end have come.
    pub fn data(&mut self, from_client: bool, bytes: &[u8], context: &mut Context<'_, '_>) {
        let Self { requests, responses, methods } = self;
        if from_client {
            requests.data(bytes, methods, context);
        } else {
            responses.data(bytes, methods, context);
            // After CONNECT or an upgrade, neither direction is HTTP any more.
            if responses.is_tunnel {
                requests.leave();
            }
        }
        if methods.len() > MAX_PIPELINED {
            // Which response belongs to which request is not known any more.
            methods.clear();
            context.rules.counts.malformed += 1;
            responses.leave();
        }
    }

    /// No more bytes of an end come.
    pub fn finish(&mut self, from_client: bool, context: &mut Context<'_, '_>) {
        self.of(from_client).finish(context);
    }

    /// The bytes of an end are not inspected from now on.
    pub fn leave(&mut self, from_client: bool) {
        self.of(from_client).leave();
    }

    /// Whether the bytes of an end are not inspected.
    pub fn is_over(&self, from_client: bool) -> bool {
        let of = if from_client { &self.requests } else { &self.responses };
        of.state == State::Over
    }

    pub fn memory(&self) -> usize {
        self.requests.memory() + self.responses.memory() + self.methods.capacity()
    }

    fn of(&mut self, from_client: bool) -> &mut Messages {
        if from_client { &mut self.requests } else { &mut self.responses }
    }
}
