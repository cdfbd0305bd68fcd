//! Devices by their names on the command line, such as `af_packet:eth0`.

use crate::port::{OpenError, Port};
use crate::ports::{Lasting, PacketPort, Share, TapPort, XdpPort, xdp_needs};
use braid_packet::Pool;
use braid_packet::frame::FRAME;
use std::fmt;
use std::str::FromStr;

/// Frames of a pool for packets on their way, and for packets that functions hold.
const HELD: u32 = 8192;

/// A device with its name on the command line: `af_packet:eth0`, `tap:tap0`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Device {
    /// A device of the machine, through a packet socket.
    Packet(String),
    /// A device of the machine, through AF_XDP sockets.
    Xdp(String),
    /// A TAP device. It is created if it does not exist.
    Tap(String),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Packet(name) => write!(f, "af_packet:{name}"),
            Device::Xdp(name) => write!(f, "xdp:{name}"),
            Device::Tap(name) => write!(f, "tap:{name}"),
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
            _ => {
                return Err(format!(
                    "`{text}`: expected af_packet:DEVICE, xdp:DEVICE or tap:DEVICE"
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
        })
    }

    /// The size and the number of frames that a pool needs for a port to the device.
    fn needs(&self, share: &Share) -> (u32, u32) {
        let needs = match self {
            // What is wrong with the device is said when it is opened.
            Device::Xdp(name) => xdp_needs(name, share),
            Device::Packet(_) | Device::Tap(_) => None,
        };
        needs.unwrap_or((FRAME, 0))
    }
}

/// A pool for one of the ports that share each of these devices, and for packets that are held.
/// `None` if there is not enough memory.
#[must_use]
pub fn pool_for(devices: &[Device], share: &Share) -> Option<Pool> {
    let needs = devices.iter().map(|device| device.needs(share));
    let (size, frames) =
        needs.fold((FRAME, HELD), |sum, more| (sum.0.max(more.0), sum.1.saturating_add(more.1)));
    Pool::new(frames, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_by_kind_and_name() {
        assert_eq!("af_packet:veth0".parse(), Ok(Device::Packet("veth0".into())));
        assert_eq!("xdp:eth0".parse(), Ok(Device::Xdp("eth0".into())));
        assert_eq!("tap:t0".parse(), Ok(Device::Tap("t0".into())));
        for wrong in ["veth0", "af_packet:", "tap", "dpdk:eth0", "tap:a/b", "tap:1234567890123456"]
        {
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
