//! How an instance publishes messages and events.

use crate::host::{Refused, State};
use crate::output::{Log, MOST, Output, Publication};
use braid_ir::engine::Content;
use braid_ir::model::EventDecl;
use braid_ir::native::Problem;

impl State {
    /// Makes room for an output.
    fn room(&mut self) -> Result<(), Refused> {
        if self.outputs.len() < MOST {
            return Ok(());
        }
        let text = format!("publishes more than {MOST} messages and events at once");
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
        if let Err(wrong) = output.check(&self.events) {
            return Err(self.misuse(wrong));
        }
        self.room()?;
        self.outputs.push(output);
        Ok(())
    }
}
