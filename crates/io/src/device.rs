//! Devices by their names on the command line, such as `af_packet:eth0`.

use crate::port::{OpenError, Port};
#[cfg(feature = "dpdk")]
use crate::ports::{DPDK_NEEDS, DpdkPort, dpdk_pool};
use crate::ports::{Lasting, PacketPort, Share, TapPort, XdpPort, xdp_needs};
use braid_packet::Pool;
use braid_packet::frame::FRAME;
#[cfg(feature = "dpdk")]
use braid_packet::frame::SPREAD_FRAME;
use std::fmt;
use std::str::FromStr;

/// Frames of a pool for packets on their way, and for packets that functions hold.
const HELD: u32 = 8192;

/// What to do where Braid is built without DPDK.
pub const HOW_TO_GET_DPDK: &str = "install DPDK 22.11 or newer (Debian, Ubuntu: apt-get install libdpdk-dev pkg-config) and run \
     `cargo build --release --package braid-cli --features dpdk`";

/// A device with its name on the command line: `af_packet:eth0`, `tap:tap0`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Device {
    /// A device of the machine, through a packet socket.
    Packet(String),
    /// A device of the machine, through AF_XDP sockets.
    Xdp(String),
    /// A TAP device. It is created if it does not exist.
    Tap(String),
    /// A device by DPDK: a PCI address or a virtual device, with its driver's arguments.
    #[cfg(feature = "dpdk")]
    Dpdk(String),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Packet(name) => write!(f, "af_packet:{name}"),
            Device::Xdp(name) => write!(f, "xdp:{name}"),
            Device::Tap(name) => write!(f, "tap:{name}"),
            #[cfg(feature = "dpdk")]
            Device::Dpdk(name) => write!(f, "dpdk:{name}"),
        }
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once(':').unwrap_or((text, ""));
        let make = match kind {
            "af_packet" => Device::Packet,
            "xdp" => Device::Xdp,
            "tap" => Device::Tap,
            "dpdk" => return dpdk(name).map_err(|why| format!("`{text}`: {why}")),
            _ => {
                return Err(format!(
                    "`{text}`: expected af_packet:DEVICE, xdp:DEVICE, tap:DEVICE or dpdk:DEVICE"
                ));
            }
        };
        // IFNAMSIZ, including the 0 at the end.
        let fits = (1..16).contains(&name.len());
        if !fits || name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control()) {
            return Err(format!("`{text}`: a device's name has 1 to 15 characters"));
        }
        Ok(make(name.to_owned()))
    }
}

/// A device by DPDK.
#[cfg(feature = "dpdk")]
fn dpdk(name: &str) -> Result<Device, String> {
    // DPDK's limits: 63 bytes for the name, and a line for all.
    let first = name.split(',').next().unwrap_or_default();
    let fits = (1..64).contains(&first.len()) && name.len() < 1024;
    if !fits || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        let expected = "expected dpdk:DEVICE, such as dpdk:net_tap0,iface=t0 or dpdk:0000:03:00.0";
        return Err(expected.to_owned());
    }
    Ok(Device::Dpdk(name.to_owned()))
}

#[cfg(not(feature = "dpdk"))]
fn dpdk(_: &str) -> Result<Device, String> {
    Err(format!("this braid is built without DPDK; {HOW_TO_GET_DPDK}"))
}

impl Device {
    /// Opens the device by one of the ports that share it. The port outlasts failures of the
    /// device.
    ///
    /// # Errors
    /// When the device does not exist or cannot be used, with a remedy.
    pub fn open(&self, pool: &mut Pool, share: Share) -> Result<Box<dyn Port>, OpenError> {
        let device = self.clone();
        Ok(Box::new(Lasting::open(pool, move |pool| device.open_once(pool, &share))?))
    }

    fn open_once(&self, pool: &mut Pool, share: &Share) -> Result<Box<dyn Port>, OpenError> {
        Ok(match self {
            Device::Packet(name) => Box::new(PacketPort::open_share(name, share)?),
            Device::Xdp(name) => Box::new(XdpPort::open_share(name, pool, share)?),
            Device::Tap(name) => Box::new(TapPort::open_share(name, share)?),
            #[cfg(feature = "dpdk")]
            Device::Dpdk(name) => Box::new(DpdkPort::open_share(name, pool, share)?),
        })
    }

    /// The size and the number of frames that a pool needs for a port to the device.
    fn needs(&self, share: &Share) -> (u32, u32) {
        let needs = match self {
            // What is wrong with the device is said when it is opened.
            Device::Xdp(name) => xdp_needs(name, share),
            Device::Packet(_) | Device::Tap(_) => None,
            #[cfg(feature = "dpdk")]
            Device::Dpdk(_) => Some((SPREAD_FRAME, DPDK_NEEDS)),
        };
        needs.unwrap_or((FRAME, 0))
    }
}

/// A pool for one of the ports that share each of these devices, and for packets that are held.
///
/// # Errors
/// When there is not enough memory, or DPDK is needed and cannot be started.
pub fn pool_for(devices: &[Device], share: &Share) -> Result<Pool, OpenError> {
    let needs = devices.iter().map(|device| device.needs(share));
    let (size, frames) =
        needs.fold((FRAME, HELD), |sum, more| (sum.0.max(more.0), sum.1.saturating_add(more.1)));
    // AF_XDP knows no other sizes.
    let has_xdp = devices.iter().any(|device| matches!(device, Device::Xdp(_)));
    let size = if has_xdp { size.next_power_of_two() } else { size };
    #[cfg(feature = "dpdk")]
    if devices.iter().any(|device| matches!(device, Device::Dpdk(_))) {
        let names = devices.iter().filter_map(|device| match device {
            Device::Dpdk(name) => Some(name.as_str()),
            _ => None,
        });
        return dpdk_pool(names, frames, size);
    }
    Pool::new(frames, size).ok_or(OpenError::Memory)
}

/// The release of DPDK, such as `DPDK 22.11.11`. `None` if Braid is built without it.
#[must_use]
pub fn dpdk_version() -> Option<String> {
    #[cfg(feature = "dpdk")]
    return Some(crate::sys::dpdk::version());
    #[cfg(not(feature = "dpdk"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_by_kind_and_name() {
        assert_eq!("af_packet:veth0".parse(), Ok(Device::Packet("veth0".into())));
        assert_eq!("xdp:eth0".parse(), Ok(Device::Xdp("eth0".into())));
        assert_eq!("tap:t0".parse(), Ok(Device::Tap("t0".into())));
        for wrong in ["veth0", "af_packet:", "tap", "dpdk:", "tap:a/b", "tap:1234567890123456"] {
            assert!(wrong.parse::<Device>().is_err(), "{wrong}");
        }
        assert_eq!(Device::Tap("t0".into()).to_string(), "tap:t0");
    }

    #[test]
    fn missing_device_is_said_so() {
        let mut pool = Pool::new(1, FRAME).unwrap();
        let device = Device::Packet("no-such-dev".into());
        let error = device.open(&mut pool, Share::default()).map(|_| ()).unwrap_err();
        // Without privileges, this error comes first.
        assert!(matches!(error, OpenError::NoDevice | OpenError::Permission(_)), "{error}");
    }
}
