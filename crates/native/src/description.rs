//! What a function says of itself.

use crate::flows::Limits;
use braid_ir::native::{Keeps, Profile};
use braid_ir::text::Declared;
use serde::{Deserialize, Serialize};

/// A function's description of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Description {
    /// The function and its library, for messages.
    pub label: String,
    /// The purpose of the function.
    pub about: String,
    /// The reasons for which it drops packets.
    pub reasons: Vec<String>,
    /// Ports beside left and right.
    pub ports: Vec<String>,
    /// The declared action profile.
    pub profile: Option<Profile>,
    /// What else it declares.
    pub declared: Declared,
    /// The most packets that it sends for each packet.
    pub sends: u32,
    /// What it keeps from packet to packet.
    pub keeps: Keeps,
    /// Whether it is a stream function: it gets what TCP connections bring, and no packets.
    pub is_stream: bool,
    /// Whether a flow number stands for both directions.
    pub per_biflow: bool,
    /// The limits of its flows, unless the configuration has others.
    pub limits: Limits,
}
