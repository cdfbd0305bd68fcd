//! Operates live runs by `braid ctl`, on veth devices in network namespaces of the tests. Where no
//! namespaces can be made, the tests say so and pass.

#[path = "../common/mod.rs"]
mod common;
mod confined;
mod ends;
mod isolated;
mod requests;
mod site;
mod steered;
mod watch;
#[path = "../../../io/tests/devices/world.rs"]
#[allow(unused_macros, unused_imports, reason = "the tests of devices use it")]
mod world;
