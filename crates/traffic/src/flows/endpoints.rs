//! The addresses, ports and protocol of each flow, computed from its number.

use super::options::{Options, Ports, Protocol};
use crate::permutation::Permutation;
use crate::random::{hash, scale};
use crate::template::{FIRST_PORT, PORTS};
use crate::{Error, Prefix};

/// The two ends of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Client address and port.
    pub client: (u128, u16),
    /// Server address and port.
    pub server: (u128, u16),
    /// TCP; otherwise UDP.
    pub tcp: bool,
}

/// The ends of all flows. No two flows have the same client address and port.
#[derive(Clone, Debug)]
pub struct Endpoints {
    clients: Permutation,
    from: Prefix,
    to: Prefix,
    ports: Ports,
    protocol: Protocol,
    seed: u64,
}

impl Endpoints {
    /// Refuses prefixes of different IP versions, and too few clients for the flows.
    pub fn new(options: &Options) -> Result<Self, Error> {
        let Options { from, to, .. } = options;
        if from.is_v6() != to.is_v6() {
            let what = format!("{from} and {to} are of different IP versions");
            return Err(Error::Options(what));
        }
        let room = from.hosts().saturating_mul(u64::from(PORTS));
        if options.flows > room {
            return Err(Error::Options(format!(
                "{from} has room for {room} flows ({} addresses with {PORTS} ports each); give \
                 a shorter prefix (--from)",
                from.hosts()
            )));
        }
        Ok(Self {
            clients: Permutation::new(room, options.seed),
            from: *from,
            to: *to,
            ports: options.ports.clone(),
            protocol: options.protocol,
            seed: options.seed,
        })
    }

    /// The ends of a flow.
    pub fn of(&self, flow: u32) -> Ends {
        let client = self.clients.at(u64::from(flow));
        let (host, port) = (client / u64::from(PORTS), client % u64::from(PORTS));
        let draw = |use_: u64, n: u64| scale(hash(self.seed ^ use_ << 56, u64::from(flow)), n);
        Ends {
            client: (self.from.host(host), FIRST_PORT + port as u16),
            server: (
                self.to.host(draw(1, self.to.hosts())),
                self.ports.at(draw(2, self.ports.count())),
            ),
            tcp: match self.protocol {
                Protocol::Tcp => true,
                Protocol::Udp => false,
                Protocol::Mix => draw(3, 4) < 3,
            },
        }
    }

    /// The first sequence numbers of client and server.
    pub fn sequence(&self, flow: u32) -> [u32; 2] {
        let bits = hash(self.seed ^ 4 << 56, u64::from(flow));
        [bits as u32, (bits >> 32) as u32]
    }

    /// Random bits for a flow's place in time.
    pub fn phase(&self, flow: u32) -> u32 {
        hash(self.seed ^ 5 << 56, u64::from(flow)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn clients_are_distinct_even_when_all_are_used() {
        let options =
            Options { from: "10.0.0.4/32".parse().unwrap(), ..Options::new(55_536, 55_536) };
        let ends = Endpoints::new(&options).unwrap();
        let clients: HashSet<(u128, u16)> = (0..55_536).map(|flow| ends.of(flow).client).collect();
        assert_eq!(clients.len(), 55_536);
        assert!(clients.iter().all(|(address, port)| *address == 0x0a00_0004 && *port >= 10_000));
    }

    #[test]
    fn too_many_flows_for_the_clients_are_refused() {
        let options =
            Options { from: "10.0.0.4/32".parse().unwrap(), ..Options::new(55_537, 60_000) };
        let error = Endpoints::new(&options).unwrap_err().to_string();
        assert!(error.starts_with("10.0.0.4/32 has room for 55536 flows"), "{error}");
    }

    #[test]
    fn versions_do_not_mix() {
        let options = Options { from: "2001:db8::/64".parse().unwrap(), ..Options::new(1, 1) };
        let error = Endpoints::new(&options).unwrap_err().to_string();
        assert_eq!(error, "2001:db8::/64 and 198.18.0.0/15 are of different IP versions");
    }

    #[test]
    fn mixed_flows_are_mostly_tcp() {
        let ends = Endpoints::new(&Options::new(4_000, 4_000)).unwrap();
        let tcp = (0..4_000).filter(|flow| ends.of(*flow).tcp).count();
        // 3,000, with a standard deviation of 27.
        assert!((2_865..3_135).contains(&tcp), "{tcp}");
    }
}
