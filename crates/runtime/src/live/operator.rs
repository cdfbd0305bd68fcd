//! The program around a live run.

use super::watch::{Filter, Traced};
use crate::engines::Engines;
use crate::outcome::{RefusedChange, Summary};
use braid_ir::chain::{Chain, Control};
use braid_ir::snapshot::Snapshot;
use serde_json::Value;
use std::any::Any;
use std::sync::atomic::AtomicBool;

/// Requests to a live run. Signals set these flags.
#[derive(Clone, Copy)]
pub struct Flags<'a> {
    /// Asks the run to end.
    pub stop: &'a AtomicBool,
    /// Asks to show the results so far.
    pub show: &'a AtomicBool,
    /// Asks to load the chain again.
    pub reload: &'a AtomicBool,
}

/// The program around a live run. The thread that called [`Live::run`](super::Live::run) makes all
/// calls.
pub trait Operator {
    /// Reads changes of configuration in the form of a control file without times.
    ///
    /// # Errors
    /// The mistake in the text.
    fn changes(&mut self, text: &str, chain: &Chain) -> Result<Vec<Control>, String>;

    /// Reads a condition on packets, in the notation of the language.
    ///
    /// # Errors
    /// The mistake in the text.
    fn filter(&mut self, text: &str) -> Result<Filter, String>;

    /// The path of a packet that was traced, as text for people or as JSON. `number` counts these
    /// packets from 1.
    ///
    /// # Errors
    /// Why it cannot be shown.
    fn traced(&mut self, number: u64, traced: Traced, as_text: bool) -> Result<Value, String>;

    /// A page of the flow records of an engine of this program, as text for people or as JSON,
    /// without records whose JSON lacks a text. Returns also where the next page begins.
    fn flows(
        &mut self,
        chain: &Chain,
        page: Box<dyn Any + Send>,
        contains: Option<&str>,
        as_text: bool,
    ) -> (Value, Option<usize>);

    /// A summary as text for people.
    fn present(&mut self, chain: &Chain, summary: &Summary) -> String;

    /// Warns of changes of the control file that could not be applied.
    fn refused(&mut self, changes: &[RefusedChange]);

    /// Tells the user something.
    fn tell(&mut self, text: &str);

    /// Loads the chain again, and makes engines for it.
    ///
    /// # Errors
    /// Why the chain cannot be loaded.
    fn load(&mut self) -> Result<(Chain, Engines), String>;

    /// Saves the state of the chain. Tells the user if that fails.
    fn save(&mut self, snapshot: &Snapshot);
}
