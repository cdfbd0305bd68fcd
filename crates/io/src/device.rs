//! Devices by their names on the command line, such as `af_packet:eth0`.

use crate::port::{OpenError, Port};
use crate::ports::{CapturePort, Lasting, PacketPort, Share, TapPort, XdpPort, xdp_needs};
#[cfg(feature = "dpdk")]
use crate::ports::{DPDK_NEEDS, DpdkPort, dpdk_pool};
use braid_packet::Pool;
use braid_packet::frame::{FRAME, SPREAD_FRAME};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Frames of a pool for packets on their way, and for packets that functions hold.
const HELD: u32 = 8192;

/// The remedy if Braid is built without DPDK.
pub const HOW_TO_GET_DPDK: &str = "install DPDK 22.11 or newer (Debian, Ubuntu: apt-get install libdpdk-dev pkg-config) and run \
     `cargo build --release --package braid-cli --features dpdk`";

/// A device with its name on the command line: `af_packet:eth0`, `tap:tap0`.
#[derive(Clone, PartialEq, Debug)]
pub enum Device {
    /// A device of the machine, through a packet socket.
    Packet(String),
    /// A device of the machine, through AF_XDP sockets.
    Xdp(String),
    /// A TAP device. It is created if it does not exist.
    Tap(String),
    /// The frames of a capture, again and again; or none.
    Memory(Option<PathBuf>),
    /// The frames of a capture at their times, with time this many times as fast.
    Replay(PathBuf, f64),
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
            Device::Memory(None) => write!(f, "memory"),
            Device::Memory(Some(path)) => write!(f, "memory:{}", path.display()),
            Device::Replay(path, _) => write!(f, "replay:{}", path.display()),
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
            "memory" => return Ok(Device::Memory((!name.is_empty()).then(|| name.into()))),
            "replay" => return replay(name).map_err(|why| format!("`{text}`: {why}")),
            "dpdk" => return dpdk(name).map_err(|why| format!("`{text}`: {why}")),
            _ => {
                return Err(format!(
                    "`{text}`: expected af_packet:DEVICE, xdp:DEVICE, tap:DEVICE, dpdk:DEVICE, \
                     replay:CAPTURE[,speed=FACTOR], memory:CAPTURE or memory"
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

/// `CAPTURE[,speed=FACTOR]`
fn replay(text: &str) -> Result<Device, &'static str> {
    let (path, speed) = text.rsplit_once(",speed=").unwrap_or((text, "1"));
    let factor: f64 = speed.parse().map_err(|_| "the speed is no number")?;
    if !(0.01..=1000.0).contains(&factor) {
        return Err("a speed is from 0.01 to 1000");
    }
    match path {
        "" => Err("the name of the capture is missing"),
        _ => Ok(Device::Replay(path.into(), factor)),
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

    /// Whether only one interface can have the device.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        !matches!(self, Device::Memory(_) | Device::Replay(..))
    }

    fn open_once(&self, pool: &mut Pool, share: &Share) -> Result<Box<dyn Port>, OpenError> {
        Ok(match self {
            Device::Packet(name) => Box::new(PacketPort::open_share(name, share)?),
            Device::Xdp(name) => Box::new(XdpPort::open(name, pool, share)?),
            Device::Tap(name) => Box::new(TapPort::open_share(name, share)?),
            Device::Memory(path) => Box::new(CapturePort::endless(path.as_deref(), share)?),
            Device::Replay(path, speed) => Box::new(CapturePort::timed(path, *speed, share)?),
            #[cfg(feature = "dpdk")]
            Device::Dpdk(name) => Box::new(DpdkPort::open(name, pool, share)?),
        })
    }

    /// Whether this is a device by DPDK.
    #[must_use]
    pub fn is_dpdk(&self) -> bool {
        #[cfg(feature = "dpdk")]
        return matches!(self, Device::Dpdk(_));
        #[cfg(not(feature = "dpdk"))]
        false
    }

    /// The size and the number of frames that a pool needs for a port to the device.
    fn needs(&self, share: &Share) -> (u32, u32) {
        let needs = match self {
            // Problems of the device are reported when it is opened.
            Device::Xdp(name) => xdp_needs(name, share),
            #[cfg(feature = "dpdk")]
            Device::Dpdk(_) => Some((SPREAD_FRAME, DPDK_NEEDS)),
            _ => None,
        };
        needs.unwrap_or((0, 0))
    }
}

/// A pool for ports with these shares of devices, and for packets that are held.
///
/// # Errors
/// When there is not enough memory, or DPDK is needed and cannot be started.
pub fn pool_for<'d>(
    ports: impl Iterator<Item = (&'d Device, &'d Share)> + Clone,
) -> Result<Pool, OpenError> {
    let needs = ports.clone().map(|(device, share)| device.needs(share));
    let (size, frames) =
        needs.fold((0, HELD), |sum, more| (sum.0.max(more.0), sum.1.saturating_add(more.1)));
    // AF_XDP knows only powers of two.
    let has_xdp = ports.clone().any(|(device, _)| matches!(device, Device::Xdp(_)));
    let size = if has_xdp { size.max(FRAME).next_power_of_two() } else { size.max(SPREAD_FRAME) };
    #[cfg(feature = "dpdk")]
    if ports.clone().any(|(device, _)| device.is_dpdk()) {
        let names = ports.filter_map(|(device, _)| match device {
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
        assert_eq!("memory".parse(), Ok(Device::Memory(None)));
        assert_eq!("memory:a.pcap".parse(), Ok(Device::Memory(Some("a.pcap".into()))));
        assert_eq!("replay:a,b.pcap".parse(), Ok(Device::Replay("a,b.pcap".into(), 1.0)));
        assert_eq!("replay:a,speed=0.5".parse(), Ok(Device::Replay("a".into(), 0.5)));
        for wrong in ["replay", "replay:a,speed=0", "replay:a,speed=x", "replay:,speed=2"] {
            assert!(wrong.parse::<Device>().is_err(), "{wrong}");
        }
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
