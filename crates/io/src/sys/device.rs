//! Facts about a network device from the kernel.

use super::ethtool;
use super::request::named;
use super::socket::{packet_socket, set};
use crate::port::{Ethernet, OpenError, State};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// `ARPHRD_ETHER`
const ETHER: u16 = 1;
/// `ARPHRD_LOOPBACK`
const LOOPBACK: u16 = 772;

/// A device, by its number. The kernel never gives the number to another device. While this value
/// lives, the device is in promiscuous mode.
pub(crate) struct Reference {
    /// A packet socket that receives nothing.
    socket: OwnedFd,
    index: u32,
}

impl Reference {
    pub(crate) fn open(name: &str) -> Result<Self, OpenError> {
        let socket = packet_socket()?;
        let index = index(&socket, name)?;
        ethernet(&socket, name)?;
        promiscuous(&socket, index)?;
        Ok(Self { socket, index })
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    pub(crate) fn state(&self) -> State {
        state(&self.socket, self.index)
    }

    pub(crate) fn ethernet(&self) -> Option<Ethernet> {
        self::ethernet_of(&self.socket, self.index)
    }

    pub(crate) fn mtu(&self) -> io::Result<u32> {
        self::mtu_of(&self.socket, self.index)
    }

    /// The number of queues that receive.
    pub(crate) fn queues(&self) -> u32 {
        let name = netdevice::index_to_name(&self.socket, self.index);
        let channels = name.ok().and_then(|name| ethtool::channels(self.socket.as_fd(), &name));
        channels.unwrap_or(1).max(1)
    }
}

/// The number of the device with this name.
pub(crate) fn index(socket: impl AsFd, name: &str) -> Result<u32, OpenError> {
    netdevice::name_to_index(socket, name).map_err(|error| match error {
        Errno::NODEV => OpenError::NoDevice,
        error => OpenError::Io(error.into()),
    })
}

/// Sets a device to promiscuous mode for as long as the packet socket lives.
pub(super) fn promiscuous(socket: &OwnedFd, index: u32) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: i32::try_from(index).unwrap_or(-1),
        mr_type: u16::try_from(libc::PACKET_MR_PROMISC).unwrap_or(1),
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// A socket that can be asked about all devices of its network namespace.
pub(crate) fn any_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

/// Whether this kernel has AF_XDP sockets. `None` if this process may not make any.
pub(crate) fn has_xdp() -> Option<bool> {
    match socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None) {
        Ok(_) => Some(true),
        Err(Errno::PERM | Errno::ACCESS) => None,
        Err(_) => Some(false),
    }
}

/// The hardware type of a device.
pub(crate) fn hardware(socket: impl AsFd, name: &str) -> io::Result<u16> {
    let request = ask(socket.as_fd(), name, libc::SIOCGIFHWADDR)?;
    // SAFETY: after this request, the union holds the hardware's address.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}

/// The properties on its link of the device with this number.
pub(crate) fn ethernet_of(socket: impl AsFd, index: u32) -> Option<Ethernet> {
    let socket = socket.as_fd();
    let name = netdevice::index_to_name(socket, index).ok()?;
    ethernet_named(socket, &name)
}

/// The properties on its link of the device with this name.
pub(super) fn ethernet_named(socket: impl AsFd, name: &str) -> Option<Ethernet> {
    let request = ask(socket.as_fd(), name, libc::SIOCGIFHWADDR).ok()?;
    // SAFETY: after this request, the union holds the hardware's address.
    let data = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
    let mac = *data.map(|byte| byte.to_ne_bytes()[0]).first_chunk::<6>()?;
    Some(Ethernet { mac, mtu: mtu(socket, name).ok()? })
}

/// Refuses a device whose frames have no Ethernet headers.
pub(super) fn ethernet(socket: impl AsFd, name: &str) -> Result<(), OpenError> {
    let hardware = hardware(socket, name)?;
    if is_ethernet(hardware) { Ok(()) } else { Err(OpenError::NotEthernet(hardware)) }
}

/// Whether devices of a hardware type have frames with Ethernet headers.
pub(crate) fn is_ethernet(hardware: u16) -> bool {
    [ETHER, LOOPBACK].contains(&hardware)
}

/// The state of the device with this number.
pub(crate) fn state(socket: impl AsFd, index: u32) -> State {
    let socket = socket.as_fd();
    let Ok(name) = netdevice::index_to_name(socket, index) else { return State::Missing };
    let Ok(request) = ask(socket, &name, libc::SIOCGIFFLAGS) else { return State::Missing };
    // SAFETY: after this request, the union holds the flags.
    let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags });
    let wanted = libc::IFF_UP | libc::IFF_RUNNING;
    if flags & wanted == wanted { State::Up } else { State::Down }
}

/// The device's MTU.
pub(crate) fn mtu_of(socket: impl AsFd, index: u32) -> io::Result<u32> {
    let socket = socket.as_fd();
    mtu(socket, &netdevice::index_to_name(socket, index)?)
}

/// As [`mtu_of`], by the device's name.
pub(crate) fn mtu(socket: impl AsFd, name: &str) -> io::Result<u32> {
    let request = ask(socket.as_fd(), name, libc::SIOCGIFMTU)?;
    // SAFETY: after this request, the union holds the MTU.
    Ok(u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0))
}

fn ask(socket: BorrowedFd<'_>, name: &str, what: libc::Ioctl) -> io::Result<libc::ifreq> {
    let mut request = named(name);
    // SAFETY: the requests of this module take an `ifreq`, whose name ends with a zero. It lives,
    // and nobody else borrows it, until the call returns.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut request) };
    if done == 0 { Ok(request) } else { Err(io::Error::last_os_error()) }
}
