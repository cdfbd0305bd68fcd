//! Facts about a device from the kernel and the driver, on which advice is based.

use crate::netlink::{self, XdpSupport};
use crate::port::{OpenError, State};
use crate::sys::device;
use crate::sys::ethtool::{self, Setting};
use std::net::IpAddr;
use std::os::fd::AsFd;

/// The facts about a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceFacts {
    /// Whether it carries frames.
    pub state: State,
    /// Its frames are Ethernet.
    pub is_ethernet: bool,
    /// Its MTU.
    pub mtu: u32,
    /// The name of its driver.
    pub driver: Option<String>,
    /// The number of queues that receive.
    pub queues: u32,
    /// The driver's support for XDP. `None`: the kernel does not report it.
    pub xdp: Option<XdpSupport>,
    /// A program is attached to the device's XDP.
    pub has_xdp_program: bool,
    /// The addresses that the kernel answers for.
    pub addresses: Vec<IpAddr>,
    /// The card joins packets that it receives. `None`: the driver does not report it.
    pub joins_received: Option<bool>,
    /// The card removes VLAN tags.
    pub removes_vlan: Option<bool>,
    /// The kernel joins packets that it receives (GRO).
    pub kernel_joins_received: Option<bool>,
}

/// The facts about the device with this name.
///
/// # Errors
/// When there is no such device, or the kernel does not answer.
pub fn device_facts(name: &str) -> Result<DeviceFacts, OpenError> {
    let socket = device::any_socket()?;
    let index = device::index(&socket, name)?;
    let setting = |setting| ethtool::setting(socket.as_fd(), name, setting);
    Ok(DeviceFacts {
        state: device::state(&socket, index),
        is_ethernet: device::is_ethernet(device::hardware(&socket, name)?),
        mtu: device::mtu(&socket, name)?,
        driver: ethtool::driver(socket.as_fd(), name),
        queues: ethtool::channels(socket.as_fd(), name).unwrap_or(1).max(1),
        xdp: netlink::xdp_support(index),
        has_xdp_program: netlink::has_xdp_program(index).unwrap_or(false),
        addresses: netlink::addresses(index).unwrap_or_default(),
        joins_received: setting(Setting::Lro),
        removes_vlan: setting(Setting::RemoveVlan),
        kernel_joins_received: setting(Setting::Gro),
    })
}

/// Whether this kernel has AF_XDP sockets, and this process may make them. `None`: the process may
/// not make any.
#[must_use]
pub fn has_xdp() -> Option<bool> {
    device::has_xdp()
}
