//! How an instance publishes messages and events, and sends packets.

use crate::host::{Refused, State};
use crate::output::{Allowed, Log, MOST, MOST_BYTES, Output, Publication, Sent};
use crate::verdict::Verdict;
use braid_ir::engine::Content;
use braid_ir::model::EventDecl;
use braid_ir::native::Problem;

impl State {
    /// Makes room for an output.
    fn room(&mut self) -> Result<(), Refused> {
        if self.outputs.len() < MOST {
            return Ok(());
        }
        let text = format!("makes more than {MOST} messages, events and packets at once");
        self.problems.add(Problem::Misuse(text), self.packets);
        Err(Refused::Full)
    }

    pub(crate) fn log(&mut self, level: &str, text: &str) {
        if self.room().is_ok() {
            let (level, text) = (level.to_owned(), text.to_owned());
            self.outputs.push(Output::Log(Log { time_ns: self.now, level, text }));
        }
    }

    /// The number of an event type.
    pub(crate) fn event_named(&self, name: &str) -> Option<i32> {
        let at = self.events.iter().position(|decl| decl.name == name)?;
        i32::try_from(at).ok()
    }

    fn event(&self, number: i32) -> Option<(u32, &EventDecl)> {
        let number = u32::try_from(number).ok()?;
        Some((number, self.events.get(number as usize)?))
    }

    /// Whether the event type exists and has this number of fields.
    pub(crate) fn takes_values(&mut self, number: i32, count: usize) -> Result<(), Refused> {
        let wrong = match self.event(number) {
            None => format!("publishes event {number}, which it does not declare"),
            Some((_, decl)) if decl.fields.len() != count => {
                let (name, wanted) = (&decl.name, decl.fields.len());
                format!("publishes {name} with {count} values; it has {wanted} fields")
            }
            Some(_) => return Ok(()),
        };
        Err(self.misuse(wrong))
    }

    pub(crate) fn publish(&mut self, number: i32, values: Vec<Content>) -> Result<(), Refused> {
        self.takes_values(number, values.len())?;
        let event = u32::try_from(number).unwrap_or(u32::MAX);
        let output = Output::Event(Publication { time_ns: self.now, event, values });
        if let Err(wrong) = output.check(self.allowed_outputs()) {
            return Err(self.misuse(wrong));
        }
        self.room()?;
        self.outputs.push(output);
        Ok(())
    }

    fn allowed_outputs(&self) -> Allowed<'_> {
        Allowed { events: &self.events, ports: self.ports }
    }

    /// Whether the function may send a packet of this length now.
    pub(crate) fn may_send(&mut self, length: usize) -> Result<(), Refused> {
        if self.sends == 0 {
            let what = "sends a packet".to_owned();
            self.problems.add(Problem::Profile(what), self.packets);
            return Err(Refused::Denied);
        }
        if !(1..=MOST_BYTES).contains(&length) {
            let wrong = format!("sends a packet of {length} bytes; 1 to {MOST_BYTES} are possible");
            return Err(self.misuse(wrong));
        }
        if self.sent >= self.sends {
            let most = self.sends;
            self.misuse(format!("sends more than {most} packets in one call"));
            return Err(Refused::Full);
        }
        Ok(())
    }

    /// Whether a timer may send a packet of this length now.
    pub(crate) fn may_send_from_timer(&mut self, length: usize) -> Result<(), Refused> {
        if !self.runs_timer {
            return Err(self.misuse("sends a packet as a timer, and no timer runs".to_owned()));
        }
        self.may_send(length)
    }

    /// Sends a packet.
    pub(crate) fn send(&mut self, bytes: &[u8], to: i32) -> Result<(), Refused> {
        let Some(to) = Verdict::of_code(to) else {
            return Err(self.misuse(format!("sends a packet to {to}, which is no place")));
        };
        let from_timer = self.runs_timer;
        let output = Output::Packet(Sent { to, from_timer, bytes: bytes.to_vec() });
        if let Err(wrong) = output.check(self.allowed_outputs()) {
            return Err(self.misuse(wrong));
        }
        self.room()?;
        self.sent += 1;
        self.outputs.push(output);
        Ok(())
    }
}
