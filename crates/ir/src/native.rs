//! A model's reference to a native function: data only. The crate `native` loads and calls the
//! code.

use serde::{Deserialize, Serialize};

mod fields;
mod problem;
mod profile;

pub use fields::{FieldSet, names_of};
pub use problem::{Noted, Problem, Problems};
pub use profile::{Profile, UnknownName, may};

/// The table that shows the counters of a native function. Each is an entry without a key.
pub const COUNTERS: &str = "counters";

/// The native function of a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Native {
    /// The library and the name of the function.
    pub reference: Reference,
    /// The actions on packets that the function declares, if it declares any.
    pub profile: Option<Profile>,
    /// The most packets that the function sends for each packet.
    pub sends: u32,
    /// What it keeps from packet to packet.
    pub keeps: Keeps,
}

impl Native {
    /// The actions that the function may perform on packets: all actions, unless it declares fewer.
    #[must_use]
    pub fn may(&self) -> Profile {
        self.profile.unwrap_or(Profile::ANYTHING)
    }
}

/// What a native function keeps from packet to packet, as it declares. It says which packets need
/// the same instance of the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Keeps {
    /// Anything: all packets need one instance.
    #[default]
    Anything,
    /// Nothing that matters to later packets.
    Nothing,
    /// Something for each flow in one direction: for packets with the same 5-tuple. An ICMP error
    /// may come to any instance.
    Flows,
    /// Something for each flow in both directions. An ICMP error may come to any instance.
    Biflows,
    /// Something for each connection of TCP or UDP, in both directions. ICMP errors belong to the
    /// connection of the packet that they quote. For other packets, the function keeps nothing.
    Connections,
}

impl Keeps {
    /// All, with their names in the text form of models.
    pub const NAMES: [(Self, &str); 5] = [
        (Self::Anything, "anything"),
        (Self::Nothing, "nothing"),
        (Self::Flows, "flows"),
        (Self::Biflows, "biflows"),
        (Self::Connections, "connections"),
    ];
}

/// A reference to a native function, as a chain file writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference {
    /// The path of a shared library, or the name of a set of functions that the program provides.
    pub library: String,
    /// The function's name in the library.
    pub function: String,
    /// The checks that Braid makes while the function runs.
    pub checks: Checks,
    /// If each instance runs in a process of its own: what happens to packets when that process
    /// fails.
    pub isolated: Option<OnFailure>,
}

/// What happens to the packets of an isolated function whose process has crashed or does not
/// answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnFailure {
    /// They are dropped, as faults.
    Drop,
    /// They go on, unchanged, as if the function had let them pass.
    Bypass,
}

/// The checks that Braid makes while a native function runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Checks {
    /// Compare the results for later packets of a flow with the function's record for the flow.
    pub records: bool,
    /// Observe the function's actions on packets, as an action profile.
    pub observe: bool,
}
