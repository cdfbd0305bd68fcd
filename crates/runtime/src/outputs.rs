//! Where what leaves a chain goes: capture files or other sinks, and the events file.

use crate::follow::Follow;
use crate::json;
use braid_io::{PacketSink, WriteError};
use braid_ir::chain::Chain;
use braid_ir::engine::{Event, Outputs};
use braid_packet::Packet;
use std::io::Write;

/// A sink with what messages call it.
pub(crate) struct Output<'a> {
    pub(crate) name: String,
    /// Takes what leaves by this interface; `None`: all.
    pub(crate) interface: Option<u16>,
    pub(crate) sink: Box<dyn PacketSink + 'a>,
}

/// Hands on what an engine gives out. Engines can't be told that writing failed: the first error
/// is kept, and nothing is written after it.
pub(crate) struct Leaving<'a> {
    pub(crate) chain: &'a Chain,
    pub(crate) outputs: Vec<Output<'a>>,
    pub(crate) events: Option<Box<dyn Write + 'a>>,
    pub(crate) follow: Option<Follow>,
    pub(crate) failed: Option<Failed>,
}

/// What could not be written.
pub(crate) enum Failed {
    Packet(String, WriteError),
    Event(std::io::Error),
}

impl Leaving<'_> {
    /// Writes what is buffered.
    pub(crate) fn finish(&mut self) -> Result<(), Failed> {
        for output in &mut self.outputs {
            let name = &output.name;
            output.sink.finish().map_err(|error| Failed::Packet(name.clone(), error))?;
        }
        match &mut self.events {
            Some(events) => events.flush().map_err(Failed::Event),
            None => Ok(()),
        }
    }

    fn write(&mut self, interface: u16, packet: &Packet) -> Result<(), Failed> {
        for output in &mut self.outputs {
            if output.interface.is_none_or(|only| only == interface) {
                let name = &output.name;
                let written = output.sink.write_packet(packet);
                written.map_err(|error| Failed::Packet(name.clone(), error))?;
            }
        }
        Ok(())
    }
}

impl Outputs for Leaving<'_> {
    fn packet(&mut self, interface: u16, mut packet: Packet) {
        if let Some(follow) = &mut self.follow {
            follow.leave(&mut packet, interface);
        }
        if self.failed.is_none() {
            self.failed = self.write(interface, &packet).err();
        }
    }

    fn event(&mut self, event: Event) {
        if let (Some(events), None) = (&mut self.events, &self.failed) {
            let line = json::event(self.chain, &event);
            self.failed = writeln!(events, "{line}").err().map(Failed::Event);
        }
    }
}
