//! The names that lines declare.

use super::header::Lists;
use std::collections::HashMap;

/// What lines so far have declared.
#[derive(Debug, Default)]
pub struct Names {
    pub lists: Lists,
    /// The priorities of classes.
    pub classes: HashMap<String, u8>,
}
