//! Native functions: switching on checks. Problems of native functions and stream functions.

use braid_ir::chain::Chain;
use braid_ir::engine::Engine;
use braid_native::{Checks, Noted, Problem};
use std::sync::Arc;

/// Registers the sets of native functions that come with Braid.
pub fn register() {
    braid_native_five::register();
    braid_relay::register();
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
