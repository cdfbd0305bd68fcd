//! Native functions: switching on checks. Problems of native functions and stream functions.

use braid_ir::chain::Chain;
use braid_ir::engine::Engine;
use braid_native::{Checks, Noted, Problem, bridge};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Registers the sets of native functions that come with Braid.
pub fn register() {
    braid_native_five::register();
    braid_relay::register();
    braid_server::register();
    braid_fragments::register();
}

/// Makes the engine compare native functions with their recordings.
pub fn check_records(chain: &mut Chain) {
    check(chain, |checks| checks.records = true);
}

/// Makes the engine observe the actions of native functions.
pub fn observe(chain: &mut Chain) {
    check(chain, |checks| checks.observe = true);
}

fn check(chain: &mut Chain, set: impl Fn(&mut Checks)) {
    for node in chain.nodes.iter_mut().filter(|node| node.model.native.is_some()) {
        if let Some(native) = &mut Arc::make_mut(&mut node.model).native {
            set(&mut native.reference.checks);
        }
    }
}

/// Whether a chain has native functions.
pub fn any(chain: &Chain) -> bool {
    chain.nodes.iter().any(|node| node.model.native.is_some())
}

/// The folders from which functions of a chain serve files.
pub fn served_folders(chain: &Chain) -> Vec<PathBuf> {
    paths(chain, "pages", "folder")
}

/// The Unix sockets at which functions of a chain hand connections to servers.
pub fn sockets(chain: &Chain) -> Vec<PathBuf> {
    paths(chain, braid_server::sockets::NAME, "path")
}

/// Opens these sockets, unless this process has opened them before.
///
/// # Errors
/// The reason why one cannot be opened.
pub fn open_sockets(chain: &Chain) -> Result<(), String> {
    let mut all = sockets(chain).into_iter();
    all.try_for_each(|path| braid_server::sockets::open(&path))
}

/// The paths that a parameter of a function of the set of servers has in a chain.
fn paths(chain: &Chain, function: &str, parameter: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for node in &chain.nodes {
        let reference = node.model.native.as_ref().map(|native| &native.reference);
        let is_it = |library: &str, name: &str| library == braid_server::SET && name == function;
        if !reference.is_some_and(|at| is_it(&at.library, &at.function)) {
            continue;
        }
        for (name, value) in bridge::config(&node.model, &node.params) {
            let texts = value.texts.iter().filter(|text| name == parameter && !text.is_empty());
            found.extend(texts.map(|text| PathBuf::from(OsStr::from_bytes(text))));
        }
    }
    found
}

/// A problem of a native function, or of a stream function.
pub struct Told {
    /// The number of the function.
    pub node: u16,
    /// The problem in a line.
    pub text: String,
    /// Whether it is the traffic's, and the function has done nothing wrong.
    pub of_traffic: bool,
}

/// The problems of native functions and stream functions.
pub fn problems(chain: &Chain, engine: &dyn Engine) -> Vec<Told> {
    let told = |(node, noted): (u16, Noted)| {
        let of_traffic = matches!(noted.problem, Problem::Traffic(_));
        let at = chain.nodes.get(usize::from(node));
        let text = at.map_or_else(String::new, |at| match &at.model.native {
            Some(native) if !of_traffic => {
                let (function, library) = (&native.reference.function, &native.reference.library);
                format!("native function `{}` ({function} of {library}) {noted}", at.name)
            }
            _ => format!("stream function `{}` {noted}", at.name),
        });
        Told { node, text, of_traffic }
    };
    engine.problems().into_iter().map(told).collect()
}
