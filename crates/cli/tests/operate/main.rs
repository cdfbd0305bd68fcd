//! Operates live runs by `braid ctl`, on veth devices in network namespaces of the tests. Where no
//! namespaces can be made, the tests say so and pass.

#[path = "../common/mod.rs"]
mod common;
mod ends;
mod site;
#[path = "../../../io/tests/devices/world.rs"]
mod world;
