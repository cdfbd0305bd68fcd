//! Native functions: switching on checks. Problems of native functions and stream functions.

use braid_ir::chain::Chain;
use braid_ir::engine::Engine;
use braid_native::{Checks, Noted};
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

/// The problems of native functions and stream functions, one line each, with the numbers of the
/// functions.
pub fn problems(chain: &Chain, engine: &dyn Engine) -> Vec<(u16, String)> {
    let line = |(node, noted): (u16, Noted)| {
        let at = chain.nodes.get(usize::from(node));
        let text = at.map_or_else(String::new, |at| match &at.model.native {
            Some(native) => {
                let (function, library) = (&native.reference.function, &native.reference.library);
                format!("native function `{}` ({function} of {library}) {noted}", at.name)
            }
            None => format!("stream function `{}` {noted}", at.name),
        });
        (node, text)
    };
    engine.problems().into_iter().map(line).collect()
}
