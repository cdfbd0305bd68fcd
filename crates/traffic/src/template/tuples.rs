//! Addresses and ports of connections.

use super::config::{Config, Range};
use crate::random::Random;

/// The first port of clients. It is above the ports of services and of tunnels such as VXLAN
/// (4789), which would change the meaning of a packet.
pub const FIRST_PORT: u16 = 10_000;
/// The number of ports of a client.
pub const PORTS: u16 = u16::MAX - FIRST_PORT + 1;

/// The addresses and the port that distinguish a connection from others of its template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuple {
    /// Client address.
    pub client: u32,
    /// Server address.
    pub server: u32,
    /// The first port of the client, counted from [`FIRST_PORT`].
    pub port: u16,
}

impl Tuple {
    /// The client's port with this number.
    pub fn port(self, slot: u16) -> u16 {
        let port = (u32::from(self.port) + u32::from(slot)) % u32::from(PORTS);
        FIRST_PORT + port as u16
    }
}

/// Assigns clients, servers and ports to connections of all templates, in the order of arrival.
#[derive(Clone, Debug)]
pub struct Tuples {
    clients: Range,
    servers: Range,
    random: Option<Random>,
    next_client: u64,
    next_server: u64,
    /// The next port of each client.
    ports: Vec<u16>,
}

impl Tuples {
    /// As the template file specifies.
    pub fn new(config: &Config, seed: u64) -> Self {
        let count = usize::try_from(config.clients.count).unwrap_or(0);
        Self {
            clients: config.clients,
            servers: config.servers,
            random: config.random.then(|| Random::new(seed, u64::MAX)),
            next_client: 0,
            next_server: 0,
            ports: vec![0; count],
        }
    }

    /// The next client.
    pub fn client(&mut self) -> u32 {
        draw(self.clients, &mut self.next_client, self.random.as_mut())
    }

    /// The next server.
    pub fn server(&mut self) -> u32 {
        draw(self.servers, &mut self.next_server, self.random.as_mut())
    }

    /// The next `count` consecutive ports of a client. Ports repeat after [`PORTS`].
    pub fn port(&mut self, client: u32, count: u16) -> u16 {
        let number = client.wrapping_sub(self.clients.first) as usize;
        let Some(next) = self.ports.get_mut(number) else { return 0 };
        let port = *next;
        *next = ((u32::from(port) + u32::from(count)) % u32::from(PORTS)) as u16;
        port
    }
}

fn draw(range: Range, next: &mut u64, random: Option<&mut Random>) -> u32 {
    let offset = match random {
        Some(random) => random.below(range.count),
        None => {
            let offset = *next;
            *next = (offset + 1) % range.count.max(1);
            offset
        }
    };
    range.first.wrapping_add(offset as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuples(random: bool) -> Tuples {
        let config = Config {
            duration_ns: None,
            clients: Range { first: 10, count: 3 },
            servers: Range { first: 20, count: 2 },
            random,
            upper6: [None; 2],
            own_gaps: None,
            entries: Vec::new(),
        };
        Tuples::new(&config, 1)
    }

    #[test]
    fn addresses_come_one_after_the_other_and_round() {
        let mut tuples = tuples(false);
        let clients: Vec<u32> = (0..5).map(|_| tuples.client()).collect();
        let servers: Vec<u32> = (0..5).map(|_| tuples.server()).collect();
        assert_eq!((clients, servers), (vec![10, 11, 12, 10, 11], vec![20, 21, 20, 21, 20]));
    }

    #[test]
    fn random_addresses_reach_all_and_only_the_range() {
        let mut tuples = tuples(true);
        let mut clients: Vec<u32> = (0..100).map(|_| tuples.client()).collect();
        clients.sort_unstable();
        clients.dedup();
        assert_eq!(clients, [10, 11, 12]);
    }

    #[test]
    fn ports_are_each_clients_own_and_come_round() {
        let mut tuples = tuples(false);
        assert_eq!((tuples.port(10, 2), tuples.port(11, 1), tuples.port(10, 1)), (0, 0, 2));
        tuples.ports[2] = PORTS - 1;
        let last = Tuple { client: 12, server: 20, port: tuples.port(12, 2) };
        assert_eq!((last.port(0), last.port(1)), (65_535, FIRST_PORT));
        assert_eq!(tuples.port(12, 1), 1);
    }
}
