//! Devices by their names on the command line, such as `af_packet:eth0`.

use crate::interface::{Interface, OpenError};
use crate::ports::{Lasting, PacketPort, TapPort, XdpPort};
use std::fmt;
use std::str::FromStr;

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
    /// Opens the device. The interface outlasts failures of the device.
    ///
    /// # Errors
    /// When the device does not exist or cannot be used, with a remedy.
    pub fn open(&self) -> Result<Box<dyn Interface>, OpenError> {
        let device = self.clone();
        Ok(Box::new(Lasting::open(move || device.open_once())?))
    }

    fn open_once(&self) -> Result<Box<dyn Interface>, OpenError> {
        Ok(match self {
            Device::Packet(name) => Box::new(PacketPort::open(name)?),
            Device::Xdp(name) => Box::new(XdpPort::open(name)?),
            Device::Tap(name) => Box::new(TapPort::open(name)?),
        })
    }
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
        let error = Device::Packet("no-such-dev".into()).open().map(|_| ()).unwrap_err();
        // Without privileges, this error comes first.
        assert!(matches!(error, OpenError::NoDevice | OpenError::Permission(_)), "{error}");
    }
}
