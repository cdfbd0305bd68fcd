//! Which connections a function takes.

use braid_native::{Function, Host, PacketRef};
use braid_packet::Field;

/// The first and the last one of each interval.
type Intervals<T> = Vec<(T, T)>;

/// The addresses and ports of servers.
#[derive(Debug)]
pub struct Wanted {
    /// `None`: all addresses.
    addresses: Option<Intervals<u128>>,
    ports: Intervals<u16>,
}

impl Wanted {
    /// The configured ones. With `is_end`, the addresses are the function's own.
    pub fn new(host: &Host<'_>, is_end: bool) -> Result<Self, String> {
        let port = |port: u128| u16::try_from(port).map_err(|_| "`ports` has other numbers");
        let ports = host.config_rows::<2>("ports").into_iter();
        let ports = ports.map(|[first, last]| Ok((port(first)?, port(last)?)));
        let ports = ports.collect::<Result<Vec<_>, &str>>()?;
        if ports.is_empty() {
            return Err("it needs a parameter `ports`: the set of the servers' ports".to_owned());
        }
        let addresses = host.config_rows::<2>("addresses").into_iter();
        let addresses: Vec<_> = addresses.map(|[first, last]| (first, last)).collect();
        if is_end && addresses.is_empty() {
            let why = "it needs a parameter `addresses`: the set of addresses at which it serves";
            return Err(why.to_owned());
        }
        Ok(Self { addresses: is_end.then_some(addresses), ports })
    }

    /// Whether connections to this port are wanted.
    pub fn has_port(&self, port: u16) -> bool {
        self.ports.iter().any(|(first, last)| (*first..=*last).contains(&port))
    }

    /// Whether a packet may be of a connection that is wanted.
    pub fn has<T: Function>(&self, packet: &mut PacketRef<'_, T>) -> bool {
        let port = |port: Option<u128>| port.and_then(|port| u16::try_from(port).ok());
        let is_wanted = |port: Option<u16>| port.is_some_and(|port| self.has_port(port));
        let to = is_wanted(port(packet.get(Field::L4Dport)));
        match &self.addresses {
            Some(addresses) => {
                let at = packet.get(Field::InetDst).filter(|_| to);
                let has = |at| addresses.iter().any(|(first, last)| (*first..=*last).contains(&at));
                at.is_some_and(has)
            }
            None => to || is_wanted(port(packet.get(Field::L4Sport))),
        }
    }
}
