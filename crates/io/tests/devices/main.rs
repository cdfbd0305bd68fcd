//! Ports on real devices: veth and TAP devices in network namespaces of the tests.
//! Where no namespaces can be made, the tests say so and pass.

#[cfg(feature = "dpdk")]
mod dpdk;
mod facts;
mod faults;
mod lasting;
mod packet;
mod shares;
mod speed;
mod traffic;
mod world;
mod xdp;
