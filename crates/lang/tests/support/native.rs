//! Native functions for examples. They stand in for the set "five" that comes with Braid, and for
//! libraries.

use std::sync::Arc;

use braid_native::{
    Description, Function, Host, Info, LoadError, PacketRef, RawNf, Verdict, describe, register,
};

struct Monitor;

impl Function for Monitor {
    const INFO: Info = Info::new(c"lets everything pass");
    type Flow = ();

    fn new(_host: &mut Host<'_>) -> Result<Self, String> {
        Ok(Self)
    }

    fn packet(&mut self, _packet: &mut PacketRef<'_, Self>) -> Verdict {
        Verdict::Forward
    }
}

struct Maglev;

impl Function for Maglev {
    const INFO: Info = Info { reasons: c"no backend", ..Info::new(c"wants backends") };
    type Flow = ();

    fn new(host: &mut Host<'_>) -> Result<Self, String> {
        match host.config_rows::<2>("servers").len() {
            0 => Err("it needs at least one backend".to_owned()),
            _ => Ok(Self),
        }
    }

    fn packet(&mut self, _packet: &mut PacketRef<'_, Self>) -> Verdict {
        Verdict::Drop(0)
    }
}

/// The loader of examples: returns a native function.
pub fn native(library: &str, function: &str) -> Result<Arc<Description>, LoadError> {
    static MONITOR: RawNf = RawNf::of::<Monitor>();
    static MAGLEV: RawNf = RawNf::of::<Maglev>();
    register("five", "monitor", &MONITOR);
    register("five", "maglev", &MAGLEV);
    if library == "./built_for_another_version.so" {
        let label = format!("{function} of {library}");
        return Err(LoadError::Abi { label, found: 2, wanted: 1 });
    }
    describe(library, function, false)
}
