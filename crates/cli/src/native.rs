//! Native functions: switching on checks, and collecting their problems.

use braid_ir::chain::Chain;
use braid_ir::engine::Engine;
use braid_native::{Checks, Noted};
use std::sync::Arc;

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

/// The problems of native functions, one line each.
pub fn problems(chain: &Chain, engine: &dyn Engine) -> Vec<String> {
    problems_by_function(chain, engine).into_iter().map(|(_, text)| text).collect()
}

/// As [`problems`], each with the number of its function.
pub fn problems_by_function(chain: &Chain, engine: &dyn Engine) -> Vec<(u16, String)> {
    let line = |(node, noted): (u16, Noted)| {
        let at = chain.nodes.get(usize::from(node));
        let text = at.map_or_else(String::new, |at| {
            let native = at.model.native.as_ref().map(|native| &native.reference);
            let from = native.map_or_else(String::new, |reference| {
                format!("{} of {}", reference.function, reference.library)
            });
            format!("native function `{}` ({from}) {noted}", at.name)
        });
        (node, text)
    };
    engine.problems().into_iter().map(line).collect()
}
