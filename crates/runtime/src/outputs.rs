//! The outputs of a run: capture files or other sinks for packets, and the events file.

use crate::json;
use crate::load::Load;
use braid_io::{PacketSink, WriteError};
use braid_ir::chain::Chain;
use braid_ir::engine::Event;
use braid_packet::Packet;
use std::io::Write;

/// A sink with its name in messages.
pub(crate) struct Output<'a> {
    pub(crate) name: String,
    /// The interface whose leaving packets the sink takes. With `None`, it takes all packets.
    pub(crate) interface: Option<u16>,
    pub(crate) sink: Box<dyn PacketSink + Send + 'a>,
}

/// The events file, with its name in messages.
pub(crate) type Events<'a> = (String, Box<dyn Write + Send + 'a>);

/// Where a run writes the packets that leave, and events. The outputs have no way to report a
/// failure to the engine. So they keep the first error, and write nothing after it.
#[derive(Default)]
pub struct Sinks<'a> {
    pub(crate) outputs: Vec<Output<'a>>,
    pub(crate) events: Option<Events<'a>>,
    pub(crate) failed: Vec<Unwritten>,
}

/// An output that could not be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{name}: {why}")]
pub struct Unwritten {
    /// The output's name, such as its path.
    pub name: String,
    /// The reason why it could not be written.
    pub why: String,
}

impl Unwritten {
    fn packets(name: &str, why: &WriteError) -> Self {
        Self { name: name.to_owned(), why: why.to_string() }
    }

    fn events(name: &str, why: &std::io::Error) -> Self {
        Self { name: name.to_owned(), why: format!("cannot be written: {why}") }
    }
}

impl<'a> Sinks<'a> {
    /// Adds a sink for the packets that leave by an interface, or by any interface. Messages use
    /// `name` for the sink.
    #[must_use]
    pub fn output(
        mut self,
        name: impl Into<String>,
        interface: Option<u16>,
        sink: impl PacketSink + Send + 'a,
    ) -> Self {
        self.outputs.push(Output { name: name.into(), interface, sink: Box::new(sink) });
        self
    }

    /// Writes events as JSON lines (see [`crate::json::event`]). Messages use `name` for the file.
    #[must_use]
    pub fn events(mut self, name: impl Into<String>, events: impl Write + Send + 'a) -> Self {
        self.events = Some((name.into(), Box::new(events)));
        self
    }

    /// Whether an output could not be written.
    pub(crate) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Writes the buffers of all outputs. An output that failed before is not reported twice.
    pub(crate) fn finish(&mut self) {
        for output in &mut self.outputs {
            if let Err(why) = output.sink.finish() {
                let failed = Unwritten::packets(&output.name, &why);
                if self.failed.iter().all(|other| other.name != failed.name) {
                    self.failed.push(failed);
                }
            }
        }
        self.flush_events();
    }

    /// Writes the buffered events, so that readers of the file see them.
    pub(crate) fn flush_events(&mut self) {
        if let Some((name, events)) = &mut self.events
            && let Err(why) = events.flush()
        {
            self.failed.push(Unwritten::events(name, &why));
            // No more events are written to the file.
            self.events = None;
        }
    }

    /// Whether anything is written.
    pub(crate) fn is_used(&self) -> bool {
        !self.outputs.is_empty() || self.events.is_some()
    }

    /// Writes the packets and events of a load.
    pub(crate) fn write_load(&mut self, chain: &Chain, load: &mut Load) {
        if !self.is_used() {
            return;
        }
        load.events.drain(..).for_each(|event| self.event(chain, &event));
        load.deliver(|interface, packet| self.packet(interface, packet));
    }

    /// Writes a packet that left by an interface.
    pub(crate) fn packet(&mut self, interface: u16, packet: &Packet) {
        if self.has_failed() {
            return;
        }
        for output in &mut self.outputs {
            if output.interface.is_none_or(|only| only == interface)
                && let Err(why) = output.sink.write_packet(packet)
            {
                self.failed.push(Unwritten::packets(&output.name, &why));
                return;
            }
        }
    }

    /// Writes an event of the chain.
    pub(crate) fn event(&mut self, chain: &Chain, event: &Event) {
        if self.has_failed() {
            return;
        }
        if let Some((name, events)) = &mut self.events
            && let Err(why) = writeln!(events, "{}", json::event(chain, event))
        {
            self.failed.push(Unwritten::events(name, &why));
            self.events = None;
        }
    }
}
