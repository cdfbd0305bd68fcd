//! Standard output: text or JSON. A reader may close the pipe early. Then the remaining output is
//! not written, and the exit code stays the same.

use std::cell::Cell;
use std::io::{self, ErrorKind, Write};

use serde::Serialize;

/// Prints a message on standard error. If standard error is closed, the message is lost.
pub fn tell(text: impl AsRef<str>) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_ref().as_bytes()).and_then(|()| err.flush());
}

/// Prints a warning on standard error.
pub fn warn(text: impl std::fmt::Display) {
    tell(format!("braid: warning: {text}\n"));
}

/// The destination of results.
pub struct Output {
    /// Whether the user asked for JSON.
    pub json: bool,
    /// Whether standard output holds a capture, so that results go to standard error.
    on_stderr: Cell<bool>,
    closed: Cell<bool>,
    failed: Cell<Option<ErrorKind>>,
}

impl Output {
    /// Standard output.
    pub fn new(json: bool) -> Self {
        Self {
            json,
            on_stderr: Cell::new(false),
            closed: Cell::new(false),
            failed: Cell::new(None),
        }
    }

    /// Leaves standard output to a capture: results go to standard error.
    pub fn use_stderr(&self) {
        self.on_stderr.set(true);
    }

    /// Prints text as it is.
    pub fn text(&self, text: impl AsRef<str>) {
        if self.on_stderr.get() {
            return tell(text);
        }
        if self.closed.get() {
            return;
        }
        let mut out = io::stdout().lock();
        let result = out.write_all(text.as_ref().as_bytes()).and_then(|()| out.flush());
        if let Err(error) = result {
            self.closed.set(true);
            if error.kind() != ErrorKind::BrokenPipe {
                self.failed.set(Some(error.kind()));
            }
        }
    }

    /// Prints a value as JSON, followed by a line end.
    pub fn value(&self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.text(text + "\n"),
            Err(_) => self.failed.set(Some(ErrorKind::InvalidData)),
        }
    }

    /// The reason why writing failed, for example a full disk. A closed pipe is not a failure.
    pub fn failure(&self) -> Option<ErrorKind> {
        self.failed.get()
    }
}
