//! A proxy that puts `> ` in front of each line that comes from the server.

use braid_native::Host;
use braid_relay::{Application, At, Queues, Relay, Side};
use std::ffi::CStr;

/// The lines of a connection.
pub struct Quote {
    /// Whether the next byte of the server begins a line.
    begins: bool,
}

impl Application for Quote {
    const ABOUT: &CStr = c"quotes what servers say";
    type Shared = ();

    fn shared(_: &Host<'_>) -> Result<(), String> {
        Ok(())
    }

    fn new((): &()) -> Self {
        Self { begins: true }
    }

    fn data(&mut self, from: Side, bytes: &[u8], to: &mut Queues, _: At, (): &mut ()) -> usize {
        if from == Side::Client {
            to.to_server.extend(bytes);
            return bytes.len();
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.begins {
                to.to_client.extend(b"> ");
            }
            to.to_client.extend(line);
            self.begins = line.ends_with(b"\n");
        }
        bytes.len()
    }

    fn put(&mut self, _: &mut Queues, out: &mut Vec<u8>) {
        out.push(self.begins.into());
    }

    fn read(from: &mut &[u8], (): &()) -> Option<Self> {
        let begins = *from.split_off_first()? != 0;
        Some(Self { begins })
    }
}

braid_native::export!(braid_nf_quote, Relay<Quote>);
