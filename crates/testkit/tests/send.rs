//! Tests that engines can move to other threads, as for workers.

use braid_engine::Compiled;
use braid_reference::Reference;

fn goes_to_threads<T: Send>() {}

#[test]
fn compiled_engines_go_to_threads() {
    goes_to_threads::<Compiled>();
}

#[test]
fn reference_goes_to_threads() {
    goes_to_threads::<Reference>();
}
